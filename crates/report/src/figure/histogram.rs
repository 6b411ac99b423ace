//! Histograms: numbers of items by value.

use plotters::prelude::*;

use super::canvas::{LEVEL, WIDTH, axis_end, colour, draw, mesh, plot_area, px, tick};
use super::data::{Along, Axis, Data, Series};
use super::drawing::Drawing;

const HEIGHT: u32 = 170;
/// Number of bins. Chosen: a bar for eight pixels.
const BINS: usize = 32;

/// Counts of `values` of this name in equal bins from zero to the largest, with a dashed line at `level`.
pub(crate) fn histogram(name: &str, values: &[f64], level: Option<f64>) -> Drawing {
    let most = values.iter().copied().filter(|value| value.is_finite()).fold(level.unwrap_or(0.0), f64::max);
    let end = axis_end(most * 1.02);
    let width = end / BINS as f64;
    let mut counts = [0_usize; BINS];
    for value in values.iter().filter(|value| value.is_finite()) {
        counts[((value / width) as usize).min(BINS - 1)] += 1;
    }
    let high = counts.iter().max().copied().unwrap_or(0) as f64;
    draw(WIDTH, HEIGHT, |area, shown| {
        let mut chart = ChartBuilder::on(area)
            .margin_top(px(8))
            .margin_right(px(14))
            .set_label_area_size(LabelAreaPosition::Left, px(40))
            .set_label_area_size(LabelAreaPosition::Bottom, px(24))
            .build_cartesian_2d(0.0..end, 0.0..axis_end(high * 1.05))?;
        mesh(&mut chart, 6, &|x| tick(*x))?;
        let y = Axis::numbers("flows", 0.0, axis_end(high * 1.05));
        let mut data =
            Data::new(plot_area(&chart), Axis::numbers(name, 0.0, end), y, Along::X, &["from", "to"]);
        let mut series = Series::of(Some(0));
        for (bin, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let corners = [(bin as f64 * width, 0.0), ((bin as f64 + 0.92) * width, *count as f64)];
            chart.draw_series([Rectangle::new(corners, colour(0).filled())])?;
            let from = bin as f64 * width;
            series.add(from + 0.5 * width, *count as f64, [from, from + width]);
        }
        data.series = vec![series];
        shown.data(data);
        if let Some(level) = level {
            let line = [(level, 0.0), (level, high * 1.05)];
            chart.draw_series([PathElement::new(line, LEVEL.stroke_width(3))])?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_in_one_bin() {
        // Bins are 1.02 / 32 wide: nine values in the last but one, one in the first.
        let values = [[0.0].as_slice(), &[1.0; 9]].concat();
        let svg = histogram("share", &values, Some(1.0)).svg();
        let heights: Vec<f64> = svg
            .lines()
            .filter(|line| line.starts_with("<rect"))
            .map(|line| line.split_once(" height=\"").unwrap().1.split_once('"').unwrap().0.parse().unwrap())
            .collect();
        let [low, high] = heights[..] else { panic!("{heights:?}") };
        assert!((high / low - 9.0).abs() < 0.3, "{heights:?}");
        assert!(histogram("", &[], None).svg().starts_with("<svg"));
        assert!(histogram("", &[f64::NAN], None).svg().starts_with("<svg"));
    }
}
