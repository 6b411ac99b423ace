//! Time series of a run, in bounded memory.

use serde_json::{Value, json};

/// The maximum number of points of a series: more than a screen has columns for it. An even number.
pub(super) const MOST: usize = 1_200;

/// A series in which each point is the mean of the known values of `step` samples. When there are too many
/// points, pairs of them are merged.
#[derive(Debug, Default)]
pub(super) struct Series {
    /// The points; not a number where the value is unknown.
    points: Vec<f32>,
    sum: f64,
    count: u32,
}

impl Series {
    /// Creates a series of `points` unknown points.
    pub fn unknown(points: usize) -> Self {
        Self { points: vec![f32::NAN; points], ..Self::default() }
    }

    /// Adds the value of a sample; none if it is unknown.
    pub fn add(&mut self, value: Option<f64>) {
        if let Some(value) = value {
            self.sum += value;
            self.count += 1;
        }
    }

    /// Ends a point, which summarizes the samples since the last call.
    fn end_point(&mut self) {
        let mean = if self.count > 0 { (self.sum / f64::from(self.count)) as f32 } else { f32::NAN };
        self.points.push(mean);
        (self.sum, self.count) = (0.0, 0);
    }

    /// Merges each pair of successive points.
    fn halve(&mut self) {
        let mean = |two: &[f32]| match (two[0].is_nan(), two.last().is_some_and(|last| last.is_nan())) {
            (true, _) => two[two.len() - 1],
            (false, true) => two[0],
            (false, false) => two.iter().sum::<f32>() / two.len() as f32,
        };
        self.points = self.points.chunks(2).map(mean).collect();
    }

    /// Returns the points in `unit`, rounded to a thousandth; null where the value is unknown.
    pub fn json(&self, unit: f64) -> Value {
        let rounded = |point: &f32| {
            let value = (f64::from(*point) / unit * 1e3).round() / 1e3;
            if value.is_nan() { Value::Null } else { json!(value) }
        };
        Value::Array(self.points.iter().map(rounded).collect())
    }
}

/// The number of samples per point, shared by several series.
#[derive(Debug)]
pub(super) struct Scale {
    /// Number of samples per point.
    pub step: u32,
    /// Number of finished points.
    pub points: usize,
    within: u32,
}

impl Scale {
    pub const fn new() -> Self {
        Self { step: 1, points: 0, within: 0 }
    }

    /// Notes that all series have the values of another sample.
    pub fn end_sample<'a>(&mut self, all: impl Iterator<Item = &'a mut Series>) {
        self.within += 1;
        if self.within < self.step {
            return;
        }
        (self.within, self.points) = (0, self.points + 1);
        let is_full = self.points == MOST;
        for series in all {
            series.end_point();
            if is_full {
                series.halve();
            }
        }
        if is_full {
            (self.step, self.points) = (self.step * 2, MOST / 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_has_as_many_points_and_the_same_mean() {
        let (mut scale, mut all) = (Scale::new(), [Series::default(), Series::default()]);
        let samples = 4 * MOST as u32;
        for sample in 0..samples {
            all[0].add(Some(f64::from(sample)));
            // Known in the second half only.
            all[1].add((sample >= samples / 2).then_some(5.0));
            scale.end_sample(all.iter_mut());
            assert!(scale.points < MOST && all.iter().all(|series| series.points.len() == scale.points));
        }
        assert_eq!((scale.step, scale.points), (8, MOST / 2));
        let mean = all[0].points.iter().sum::<f32>() / all[0].points.len() as f32;
        assert!((f64::from(mean) - f64::from(samples - 1) / 2.0).abs() < 0.5, "{mean}");
        let is_known: Vec<bool> = all[1].points.iter().map(|point| !point.is_nan()).collect();
        assert_eq!(is_known, [vec![false; MOST / 4], vec![true; MOST / 4]].concat());
    }

    #[test]
    fn it_is_written_in_its_unit_and_rounded() {
        let mut series = Series::unknown(1);
        for value in [Some(1.0), Some(2.0), None] {
            series.add(value);
        }
        series.end_point();
        series.end_point();
        assert_eq!(series.json(1e-3).to_string(), "[null,1500.0,null]");
    }
}
