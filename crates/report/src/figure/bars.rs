//! Horizontal bars of throughput, drawn over hollow bars of entitlement.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::canvas::{
    COLOURS, End, GRID, INK, MUTED, WIDTH, axis_end, axis_text, colour, draw, interval, plot_area, px, text,
    tick,
};
use super::data::{Along, Axis, Data, by_key, place};
use super::drawing::Drawing;
use super::named_rows::NamedRows;

/// One row.
pub(crate) struct Bar {
    pub(crate) label: String,
    pub(crate) key: usize,
    pub(crate) value: f64,
    /// The ends of the whisker: an interval, or the range over the members of a group.
    pub(crate) whisker: Option<(f64, f64)>,
    pub(crate) entitlement: Option<f64>,
    /// Text to the right of the bar.
    pub(crate) note: String,
}

/// Rows are tall if there are few; many rows are kept within one screen.
const ROW: u32 = 19;
const NARROW_ROW: u32 = 14;
const MANY: usize = 16;
const TOP: u32 = 4;
const AXIS: u32 = 22;
const NOTES: u32 = 46;

/// Bars from zero to at most `max` on the common scale.
pub(crate) fn bars(rows: &[Bar], max: f64) -> Drawing {
    let max = axis_end(max);
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
            .x_labels(5)
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
            &["entitlement", "from", "to"],
        );
        data.series = by_key(rows.iter().map(|row| row.key.min(COLOURS)));
        for (i, row) in rows.iter().enumerate() {
            let of = place(&data.series, row.key.min(COLOURS));
            let (low, high) = row.whisker.unwrap_or((f64::NAN, f64::NAN));
            data.series[of].add(row.value, i as f64, [row.entitlement.unwrap_or(f64::NAN), low, high]);
            shown.of_series(of, || {
                let (top, height) = names.band(i);
                let y = |part: f64| top + part * height;
                let fill = colour(row.key);
                if let Some(e) = row.entitlement {
                    let hollow =
                        Rectangle::new([(0.0, y(0.12)), (e.min(max), y(0.88))], fill.mix(0.2).filled());
                    chart.draw_series([hollow])?;
                }
                let bar = Rectangle::new([(0.0, y(0.24)), (row.value.min(max), y(0.76))], fill.filled());
                chart.draw_series([bar])?;
                if let Some((low, high)) = row.whisker {
                    let end = |x: f64| chart.backend_coord(&(x.clamp(0.0, max), y(0.5)));
                    let beyond = (high > max).then_some(End::Right);
                    interval(area, [end(low), end(high)], beyond, MUTED.stroke_width(3))?;
                }
                if let Some(e) = row.entitlement.filter(|&e| e <= max) {
                    let line = PathElement::new([(e, y(0.06)), (e, y(0.94))], INK.stroke_width(4));
                    chart.draw_series([line])?;
                }
                let reach =
                    row.whisker.map_or(0.0, |w| w.1).max(row.value).max(row.entitlement.unwrap_or(0.0));
                let (end, middle) = chart.backend_coord(&(reach.min(max), y(0.5)));
                let note = text(11, MUTED, HPos::Left, VPos::Center);
                area.draw(&Text::new(row.note.clone(), (end + px(5) as i32, middle), note))
            })?;
        }
        shown.data(data);
        names.draw_names(area, TOP)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(value: f64, entitlement: Option<f64>) -> Bar {
        Bar { label: "f".into(), key: 0, value, whisker: None, entitlement, note: String::new() }
    }

    /// Widths of filled rectangles in the key's colour, pale ones included.
    fn widths(svg: &str) -> Vec<f64> {
        svg.lines()
            .filter(|l| l.starts_with("<rect") && l.contains("fill=\"#0072B2\""))
            .map(|l| l.split_once(" width=\"").unwrap().1.split_once('"').unwrap().0.parse().unwrap())
            .collect()
    }

    #[test]
    fn lengths_are_proportional_to_values_on_the_common_scale() {
        // Half and a quarter of the scale, the second with an entitlement of the whole scale, which is
        // drawn first.
        let widths = widths(&bars(&[bar(5.0, None), bar(2.5, Some(10.0))], 10.0).svg());
        let [half, whole, quarter] = widths[..] else { panic!("{widths:?}") };
        assert!((half / whole - 0.5).abs() < 0.01 && (quarter / whole - 0.25).abs() < 0.01, "{widths:?}");
    }

    #[test]
    fn a_whisker_that_goes_on_beyond_the_figure_has_a_triangle() {
        let of = |whisker| {
            let svg = bars(&[Bar { whisker: Some(whisker), ..bar(5.0, None) }], 10.0).svg();
            svg.matches("<polygon").count()
        };
        assert_eq!([(4.0, 6.0), (4.0, 11.0), (-1.0, 6.0), (-1.0, 11.0)].map(of), [0, 1, 0, 1]);
    }

    #[test]
    fn nothing_to_draw_is_still_a_figure() {
        for svg in [bars(&[], 0.0), bars(&[bar(0.0, Some(0.0))], 0.0), bars(&[bar(1.0, None)], f64::NAN)]
            .map(|drawing| drawing.svg())
        {
            assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{svg}");
        }
    }
}
