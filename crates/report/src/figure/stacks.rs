//! Rows of stacked bars: a count and its parts.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::canvas::{GRID, MUTED, WIDTH, axis_end, axis_text, colour, draw, plot_area, px, text, tick};
use super::data::{Along, Axis, Data, by_key, place};
use super::drawing::Drawing;
use super::named_rows::NamedRows;
use crate::statistics::number;

/// One row.
pub(crate) struct Stack {
    pub(crate) label: String,
    /// Parts (key, value), from left to right.
    pub(crate) parts: Vec<(usize, f64)>,
}

const TOP: u32 = 4;
const AXIS: u32 = 22;
const ROW: u32 = 18;
const NOTES: u32 = 52;

/// Bars from zero on a common scale, with their sums.
pub(crate) fn stacks(rows: &[Stack]) -> Drawing {
    let sum = |row: &Stack| row.parts.iter().map(|part| part.1).sum::<f64>();
    let max = axis_end(rows.iter().map(sum).fold(0.0, f64::max));
    let names = NamedRows::of(rows.iter().map(|row| row.label.as_str()), ROW);
    draw(WIDTH, TOP + names.height() + AXIS, |area, shown| {
        let mut chart = ChartBuilder::on(area)
            .margin_top(px(TOP))
            .margin_right(px(NOTES))
            .set_label_area_size(LabelAreaPosition::Left, px(names.left()))
            .set_label_area_size(LabelAreaPosition::Bottom, px(AXIS))
            .build_cartesian_2d(0.0..max, f64::from(names.height().max(1))..0.0)?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .y_labels(0)
            .x_labels(4)
            .bold_line_style(GRID.stroke_width(px(1)))
            .light_line_style(TRANSPARENT)
            .axis_style(GRID)
            .set_all_tick_mark_size(0)
            .label_style(axis_text())
            .x_label_formatter(&|x| tick(*x))
            .draw()?;
        let mut data = Data::new(
            plot_area(&chart),
            Axis::numbers("", 0.0, max),
            names.axis(rows.iter().map(|row| row.label.as_str()), TOP),
            Along::Y,
            &[],
        );
        data.is_stacked = true;
        let is_drawn = |part: &&(usize, f64)| part.1 > 0.0;
        data.series = by_key(rows.iter().flat_map(|row| &row.parts).filter(is_drawn).map(|part| part.0));
        for (i, row) in rows.iter().enumerate() {
            let (top, height) = names.band(i);
            let mut from = 0.0;
            for &(key, value) in row.parts.iter().filter(is_drawn) {
                let corners = [(from, top + 0.2 * height), (from + value, top + 0.8 * height)];
                let of = place(&data.series, key);
                data.series[of].add(value, i as f64, []);
                shown.of_series(of, || {
                    chart.draw_series([Rectangle::new(corners, colour(key).filled())])?;
                    Ok(())
                })?;
                from += value;
            }
            let (end, middle) = chart.backend_coord(&(from, top + height / 2.0));
            let note = text(11, MUTED, HPos::Left, VPos::Center);
            area.draw(&Text::new(number(from), (end + px(5) as i32, middle), note))?;
        }
        shown.data(data);
        names.draw_names(area, TOP)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stand_side_by_side_and_the_sum_at_the_end() {
        let svg = stacks(&[Stack { label: "fifo".into(), parts: vec![(0, 30.0), (1, 10.0)] }]).svg();
        let of = |colour: &str, name: &str| -> f64 {
            let line = svg.lines().find(|line| line.starts_with("<rect") && line.contains(colour)).unwrap();
            let (_, rest) = line.split_once(&format!(" {name}=\"")).unwrap();
            rest.split_once('"').unwrap().0.parse().unwrap()
        };
        let (blue, red) = ("#0072B2", "#D55E00");
        assert!((of(blue, "width") / of(red, "width") - 3.0).abs() < 0.05, "{svg}");
        assert!((of(blue, "x") + of(blue, "width") - of(red, "x")).abs() <= 1.0, "{svg}");
        assert!(svg.contains(">40.0</text>"), "{svg}");
    }
}
