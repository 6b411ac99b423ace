//! The parameters of a sweep as axes of numbers or names, and the points on them.

use std::collections::BTreeSet;

use apportion_core::units::{Bytes, Packets, Rate, Span};

/// A parameter with its values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    /// The shortest end of its path that no other parameter has.
    pub(crate) name: String,
    /// Values as written; ascending if they are numbers, else in the order of the points.
    pub(crate) values: Vec<String>,
    /// The values as numbers, if all are of one kind.
    pub(crate) numbers: Option<Numbers>,
}

/// Values as numbers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Numbers {
    /// The unit, for example `Mb/s`; empty for plain numbers.
    pub(crate) unit: &'static str,
    /// The values in this unit, ascending.
    pub(crate) values: Vec<f64>,
}

impl Numbers {
    /// Whether a logarithmic axis shows the values better. Chosen: from a factor of 20 on.
    pub(crate) fn is_log(&self) -> bool {
        match (self.values.first(), self.values.last()) {
            (Some(&low), Some(&high)) => low > 0.0 && high >= 20.0 * low,
            _ => false,
        }
    }
}

impl Axis {
    /// The name with its unit.
    pub(crate) fn title(&self) -> String {
        match &self.numbers {
            Some(Numbers { unit, .. }) if !unit.is_empty() => format!("{}, {unit}", self.name),
            _ => self.name.clone(),
        }
    }

    /// The values as labels of an axis: numbers without their unit.
    pub(crate) fn labels(&self) -> Vec<String> {
        self.numbers.as_ref().map_or_else(
            || self.values.clone(),
            |numbers| numbers.values.iter().map(f64::to_string).collect(),
        )
    }

    fn of(name: String, texts: &[&str]) -> Self {
        let mut values: Vec<String> = Vec::new();
        let mut seen = BTreeSet::new();
        for text in texts {
            if seen.insert(*text) {
                values.push((*text).to_owned());
            }
        }
        let Some((unit, found)) = numbers(&values) else { return Self { name, values, numbers: None } };
        let mut both: Vec<(f64, String)> = found.into_iter().zip(values).collect();
        both.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (found, values) = both.into_iter().unzip();
        Self { name, values, numbers: Some(Numbers { unit, values: found }) }
    }
}

/// The points of a run on their axes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sweep {
    /// The parameters with several values. Parameters that vary together are one axis, with the values of the
    /// first.
    pub(crate) axes: Vec<Axis>,
    /// Indices of the values of each point on the axes.
    pub(crate) at: Vec<Vec<usize>>,
}

impl Sweep {
    /// The axes of points with these settings (path and value); `None` if they are not settings of the same parameters.
    pub(crate) fn of(points: &[&[(String, String)]]) -> Option<Self> {
        let first = points.first()?;
        let same = |point: &&[(String, String)]| point.iter().map(|s| &s.0).eq(first.iter().map(|s| &s.0));
        if !points.iter().all(same) {
            return None;
        }
        let paths: Vec<&str> = first.iter().map(|(path, _)| path.as_str()).collect();
        let texts = |axis: usize| points.iter().map(|point| point[axis].1.as_str()).collect::<Vec<_>>();
        let mut axes = Vec::new();
        let mut at = vec![Vec::new(); points.len()];
        for (i, path) in paths.iter().enumerate() {
            let texts = texts(i);
            let axis = Axis::of(short_name(path, &paths), &texts);
            if axis.values.len() < 2 {
                continue;
            }
            let places: Vec<usize> =
                texts.iter().filter_map(|text| axis.values.iter().position(|value| value == text)).collect();
            let varies_with = |other: &usize| {
                let pairs: BTreeSet<_> =
                    at.iter().zip(&places).map(|(point, place)| (point[*other], *place)).collect();
                let other: &Axis = &axes[*other];
                pairs.len() == axis.values.len() && pairs.len() == other.values.len()
            };
            match (0..axes.len()).find(varies_with) {
                Some(other) => axes[other].name = format!("{} with {}", axes[other].name, axis.name),
                None => {
                    at.iter_mut().zip(places).for_each(|(point, place)| point.push(place));
                    axes.push(axis);
                }
            }
        }
        (!axes.is_empty()).then_some(Self { axes, at })
    }

    /// The axis of numbers with the most values that is not `taken`; the first of several.
    pub(crate) fn longest_numbers(&self, taken: &[usize]) -> Option<usize> {
        self.longest(taken, |axis| axis.numbers.is_some())
    }

    /// The axis of names with the most values that is not `taken`.
    pub(crate) fn longest_names(&self, taken: &[usize]) -> Option<usize> {
        self.longest(taken, |axis| axis.numbers.is_none())
    }

    fn longest(&self, taken: &[usize], is_one: impl Fn(&Axis) -> bool) -> Option<usize> {
        let axes = self.axes.iter().enumerate().rev();
        axes.filter(|(i, axis)| is_one(axis) && !taken.contains(i))
            .max_by_key(|(_, axis)| axis.values.len())
            .map(|(i, _)| i)
    }
}

/// The shortest end of a path that no other path has.
fn short_name(path: &str, all: &[&str]) -> String {
    let ends = path.match_indices('.').map(|(dot, _)| &path[dot + 1..]).collect::<Vec<_>>();
    let has = |other: &str, end: &str| other.strip_suffix(end).is_some_and(|rest| rest.ends_with('.'));
    let unique = |end: &&&str| all.iter().filter(|other| has(other, end)).count() == 1;
    ends.iter().rev().find(unique).map_or_else(|| path.to_owned(), |end| (*end).to_owned())
}

/// All texts as numbers of one kind, with the unit that reports use for it.
fn numbers(texts: &[String]) -> Option<(&'static str, Vec<f64>)> {
    fn all(texts: &[String], read: impl Fn(&str) -> Option<f64>) -> Option<Vec<f64>> {
        texts.iter().map(|text| read(text.trim()).filter(|value| value.is_finite())).collect()
    }
    let plain = || Some(("", all(texts, |text| text.parse().ok())?));
    let percent = || Some(("%", all(texts, |text| text.strip_suffix('%')?.trim().parse().ok())?));
    let rate = || Some(("Mb/s", all(texts, |text| Some(text.parse::<Rate>().ok()?.as_mbit_f64()))?));
    let time = || Some(("ms", all(texts, |text| Some(text.parse::<Span>().ok()?.as_nanos() as f64 / 1e6))?));
    let size = || Some(("kB", all(texts, |text| Some(text.parse::<Bytes>().ok()?.get() as f64 / 1e3))?));
    let count = || Some(("packets", all(texts, |text| Some(text.parse::<Packets>().ok()?.get() as f64))?));
    plain().or_else(percent).or_else(rate).or_else(time).or_else(size).or_else(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sweep(points: &[&[(&str, &str)]]) -> Sweep {
        let owned = |point: &&[(&str, &str)]| -> Vec<(String, String)> {
            point.iter().map(|(path, value)| ((*path).to_owned(), (*value).to_owned())).collect()
        };
        let points: Vec<_> = points.iter().map(owned).collect();
        Sweep::of(&points.iter().map(Vec::as_slice).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn values_with_units_are_numbers_in_ascending_order() {
        let sweep = sweep(&[
            &[("link.wire.rate", "10Mbit"), ("link.wire.queue", "red")],
            &[("link.wire.rate", "500kbit"), ("link.wire.queue", "fifo")],
            &[("link.wire.rate", "500kbit"), ("link.wire.queue", "red")],
        ]);
        assert_eq!(sweep.axes[0].title(), "rate, Mb/s");
        assert_eq!(sweep.axes[0].labels(), ["0.5", "10"]);
        assert!(sweep.axes[0].numbers.as_ref().unwrap().is_log());
        assert_eq!(
            (&sweep.axes[1].numbers, &sweep.axes[1].labels()[..]),
            (&None, &["red".into(), "fifo".into()][..])
        );
        assert_eq!(sweep.at, [[1, 0], [0, 1], [0, 0]]);
        assert_eq!((sweep.longest_numbers(&[]), sweep.longest_names(&[1])), (Some(0), None));
    }

    #[test]
    fn kinds_of_numbers_do_not_mix() {
        let numbers = |texts: &[&str]| numbers(&texts.iter().map(|&t| t.to_owned()).collect::<Vec<_>>());
        assert_eq!(numbers(&["5ms", "0.2s"]), Some(("ms", vec![5.0, 200.0])));
        assert_eq!(numbers(&["1%", "10%"]), Some(("%", vec![1.0, 10.0])));
        assert_eq!(numbers(&["50p", "64kB"]), None);
        assert_eq!(numbers(&["5", "auto"]), None);
        assert_eq!(numbers(&["inf", "5"]), None);
    }

    #[test]
    fn a_parameter_is_called_by_the_end_of_its_path_that_no_other_has() {
        let paths = ["link.a.rate", "link.b.rate", "flow.x.count"];
        assert_eq!(paths.map(|path| short_name(path, &paths)), ["a.rate", "b.rate", "count"]);
        assert_eq!(short_name("seed", &["seed"]), "seed");
    }

    #[test]
    fn parameters_that_vary_together_are_one_axis() {
        let sweep = sweep(&[
            &[("l.rate", "5Mbit"), ("l.queue", "red"), ("l.delay", "40ms")],
            &[("l.rate", "5Mbit"), ("l.queue", "fifo"), ("l.delay", "40ms")],
            &[("l.rate", "50Mbit"), ("l.queue", "red"), ("l.delay", "4ms")],
            &[("l.rate", "50Mbit"), ("l.queue", "fifo"), ("l.delay", "4ms")],
        ]);
        let titles: Vec<_> = sweep.axes.iter().map(Axis::title).collect();
        assert_eq!(titles, ["rate with delay, Mb/s", "queue"]);
        assert_eq!(sweep.at, [[0, 0], [0, 1], [1, 0], [1, 1]]);
    }

    #[test]
    fn settings_of_different_parameters_are_no_sweep() {
        let (a, b) = ([("a".to_owned(), "1".to_owned())], [("b".to_owned(), "1".to_owned())]);
        assert_eq!(Sweep::of(&[&a, &b]), None);
        assert_eq!(Sweep::of(&[&a, &a]), None);
    }
}
