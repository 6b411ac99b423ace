//! One row per point: a distribution as a thin line, a thick line and a dot.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::canvas::{GRID, INK, MUTED, WIDTH, axis_end, axis_text, draw, plot_area, px, text, tick};
use super::data::{Along, Axis, Data, Series};
use super::drawing::Drawing;
use super::named_rows::NamedRows;

/// One row.
pub(crate) struct Range {
    pub(crate) label: String,
    /// The thin line: from the 1st to the 99th percentile.
    pub(crate) wide: (f64, f64),
    /// The thick line: the middle half.
    pub(crate) narrow: (f64, f64),
    pub(crate) median: f64,
    /// Text at the end of the row.
    pub(crate) note: String,
}

/// Rows are tall if there are few; many rows are kept within one screen.
const ROW: u32 = 22;
const NARROW_ROW: u32 = 16;
const MANY: usize = 8;
const TOP: u32 = 4;
const AXIS: u32 = 24;
const NOTES: u32 = 62;

/// Distributions on a common scale from zero.
pub(crate) fn ranges(rows: &[Range]) -> Drawing {
    let max = axis_end(rows.iter().map(|r| r.wide.1).fold(0.0, f64::max));
    let band = if rows.len() > MANY { NARROW_ROW } else { ROW };
    let names = NamedRows::of(rows.iter().map(|row| row.label.as_str()), band);
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
            .x_label_formatter(&|x| format!("{} ms", tick(*x)))
            .draw()?;
        let mut data = Data::new(
            plot_area(&chart),
            Axis::numbers("", 0.0, max),
            names.axis(rows.iter().map(|row| row.label.as_str()), TOP),
            Along::Y,
            &["p1", "p25", "p75", "p99"],
        );
        let mut series = Series { name: "median".to_owned(), ..Series::of(None) };
        for (i, row) in rows.iter().enumerate() {
            let (top, height) = names.band(i);
            let y = top + height / 2.0;
            series.add(row.median, i as f64, [row.wide.0, row.narrow.0, row.narrow.1, row.wide.1]);
            chart.draw_series([
                PathElement::new([(row.wide.0, y), (row.wide.1, y)], MUTED.stroke_width(px(1))),
                PathElement::new([(row.narrow.0, y), (row.narrow.1, y)], MUTED.stroke_width(px(6))),
            ])?;
            chart.draw_series([Circle::new((row.median, y), px(5), INK.filled())])?;
            let (end, middle) = chart.backend_coord(&(row.wide.1, y));
            let note = text(11, MUTED, HPos::Left, VPos::Center);
            area.draw(&Text::new(row.note.clone(), (end + px(8) as i32, middle), note))?;
        }
        data.series = vec![series];
        shown.data(data);
        names.draw_names(area, TOP)
    })
}
