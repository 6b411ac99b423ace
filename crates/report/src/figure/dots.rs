//! Rows of dots with intervals: a parameter whose values are names.

use plotters::prelude::*;

use super::canvas::{
    End, GRID, LEVEL, WIDTH, axis_end, axis_text, colour, draw, interval, plot_area, px, tick,
};
use super::data::{Along, Axis, Data, by_key, place};
use super::drawing::Drawing;
use super::named_rows::NamedRows;

/// One row.
pub(crate) struct DotRow {
    pub(crate) label: String,
    /// Dots (key, value, half of the interval).
    pub(crate) dots: Vec<(usize, f64, Option<f64>)>,
}

const TOP: u32 = 4;
const AXIS: u32 = 22;
const RIGHT: u32 = 14;
/// Height of a dot with its interval.
const LANE: u32 = 11;
const AIR: u32 = 8;

/// Draws the rows on a scale from zero to `max`, with a dashed vertical line at `level`.
pub(crate) fn dots(rows: &[DotRow], max: f64, level: Option<f64>) -> Drawing {
    let max = axis_end(max);
    // A lane for each key.
    let mut all = by_key(rows.iter().flat_map(|row| &row.dots).map(|dot| dot.0));
    let lanes = all.len().max(1) as u32;
    let lane = |of: usize| of as f64 + 0.5 - f64::from(lanes) / 2.0;
    for (of, series) in all.iter_mut().enumerate() {
        series.shift = (lane(of) * f64::from(px(LANE))) as i32;
    }
    let names = NamedRows::of(rows.iter().map(|row| row.label.as_str()), lanes * LANE + AIR);
    draw(WIDTH, TOP + names.height() + AXIS, |area, shown| {
        let mut chart = ChartBuilder::on(area)
            .margin_top(px(TOP))
            .margin_right(px(RIGHT))
            .set_label_area_size(LabelAreaPosition::Left, px(names.left()))
            .set_label_area_size(LabelAreaPosition::Bottom, px(AXIS))
            .build_cartesian_2d(0.0..max, f64::from(names.height().max(1))..0.0)?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .y_labels(0)
            .x_labels(5)
            .bold_line_style(GRID.stroke_width(px(1)))
            .light_line_style(TRANSPARENT)
            .axis_style(GRID)
            .set_all_tick_mark_size(0)
            .label_style(axis_text())
            .x_label_formatter(&|x| tick(*x))
            .draw()?;
        if let Some(level) = level.filter(|level| *level <= max) {
            let line = [(level, 0.0), (level, f64::from(names.height()))];
            chart.draw_series([PathElement::new(line, LEVEL.stroke_width(3))])?;
        }
        let mut data = Data::new(
            plot_area(&chart),
            Axis::numbers("", 0.0, max),
            names.axis(rows.iter().map(|row| row.label.as_str()), TOP),
            Along::Y,
            &["±"],
        );
        data.series = all;
        for (i, row) in rows.iter().enumerate() {
            let (top, height) = names.band(i);
            for &(key, value, half) in &row.dots {
                let ink = colour(key);
                let of = place(&data.series, key);
                let y = top + height / 2.0 + lane(of) * f64::from(LANE);
                data.series[of].add(value, i as f64, [half.unwrap_or(f64::NAN)]);
                shown.of_series(of, || {
                    if let Some(half) = half.filter(|half| half.is_finite()) {
                        let end = |x: f64| chart.backend_coord(&(x.clamp(0.0, max), y));
                        let (low, high) = (value - half, value + half);
                        let beyond = (high > max).then_some(End::Right);
                        interval(area, [end(low), end(high)], beyond, ink.stroke_width(px(1) + 1))?;
                    }
                    chart.draw_series([Circle::new((value.min(max), y), px(4), ink.filled())])?;
                    Ok(())
                })?;
            }
        }
        shown.data(data);
        names.draw_names(area, TOP)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_not_joined_by_lines_and_every_one_is_written() {
        let row = |label: &str, value| DotRow { label: label.into(), dots: vec![(0, value, Some(0.1))] };
        let svg = dots(&[row("fifo", 1.0), row("fq_codel quantum=300B", 2.0)], 2.0, Some(1.0)).svg();
        assert_eq!(svg.matches("<circle").count(), 2);
        assert!(svg.contains(">fifo</text>") && svg.contains(">fq_codel quantum=300B</text>"), "{svg}");
        let coloured = svg.lines().filter(|l| l.starts_with("<polyline") && l.contains("#0072B2"));
        // Only the intervals, each at one height.
        for line in coloured {
            let points = line.split_once("points=\"").unwrap().1.trim_end_matches("\"/>");
            let heights: Vec<&str> = points.split(' ').map(|p| p.split_once(',').unwrap().1).collect();
            assert!(heights.windows(2).all(|pair| pair[0] == pair[1]), "{line}");
        }
    }

    #[test]
    fn an_interval_that_goes_on_beyond_the_figure_has_a_triangle() {
        let of = |half| {
            let row = DotRow { label: "fifo".into(), dots: vec![(0, 1.0, Some(half))] };
            dots(&[row], 3.0, None).svg().matches("<polygon").count()
        };
        assert_eq!([0.5, 1.5, 2.5].map(of), [0, 0, 1]);
    }
}
