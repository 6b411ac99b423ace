//! Lines over a parameter, with a dot and an interval at each of its values.

use plotters::coord::ranged1d::ValueFormatter;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::canvas::{Area, Drawn, GRID, INK, LEVEL, MUTED, WIDTH, axis_end, colour, draw, mesh, px, text};
use super::drawing::{Canvas, Drawing};

/// A line in the colour of a key.
pub(crate) struct Line {
    pub(crate) key: usize,
    /// (x, y, half of the interval), ascending in x.
    pub(crate) points: Vec<(f64, f64, Option<f64>)>,
}

/// The axes.
pub(crate) struct Across {
    /// The name of the horizontal axis, with its unit.
    pub(crate) name: String,
    /// The values of the parameter, ascending, with what is written below them.
    pub(crate) ticks: Vec<(f64, String)>,
    pub(crate) is_log: bool,
    pub(crate) y_max: f64,
    /// A dashed horizontal line.
    pub(crate) level: Option<f64>,
}

const HEIGHT: u32 = 210;
const LEFT: u32 = 40;
const RIGHT: u32 = 14;
const TOP: u32 = 8;
const AXIS: u32 = 40;
/// Width of a letter of a tick, in CSS pixels.
const LETTER: f64 = 6.5;
/// Chosen: more values than this are drawn without dots, and intervals as bands.
const MAX_DOTS: usize = 40;
/// Chosen: a point for each pixel or so; of more values every so many are drawn.
const MAX_VALUES: usize = 300;

/// Draws the lines from zero.
pub(crate) fn lines(across: &Across, all: &[Line]) -> Drawing {
    let (low, high) = match (across.ticks.first(), across.ticks.last()) {
        (Some((low, _)), Some((high, _))) if low < high => (*low, *high),
        (Some((only, _)), _) => (only - 0.5, only + 0.5),
        _ => (0.0, 1.0),
    };
    draw(WIDTH, HEIGHT, |area| {
        let y = 0.0..axis_end(across.y_max);
        let mut builder = ChartBuilder::on(area);
        builder
            .margin_top(px(TOP))
            .margin_right(px(RIGHT))
            .set_label_area_size(LabelAreaPosition::Left, px(LEFT))
            .set_label_area_size(LabelAreaPosition::Bottom, px(AXIS));
        // Room on both sides for the dots at the ends.
        if across.is_log && low > 0.0 {
            let air = (high / low).powf(0.03);
            fill(builder.build_cartesian_2d((low / air..high * air).log_scale(), y)?, area, across, all)
        } else {
            let air = 0.03 * (high - low);
            fill(builder.build_cartesian_2d(low - air..high + air, y)?, area, across, all)
        }
    })
}

fn fill<X>(
    mut chart: ChartContext<'_, Canvas, Cartesian2d<X, RangedCoordf64>>,
    area: &Area,
    across: &Across,
    all: &[Line],
) -> Drawn
where
    X: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    mesh(&mut chart, 0, &|_| String::new())?;
    if let Some(level) = across.level {
        let line = [(chart.x_range().start, level), (chart.x_range().end, level)];
        chart.draw_series([PathElement::new(line, LEVEL.stroke_width(3))])?;
    }
    let mut free = f64::NEG_INFINITY;
    for (x, label) in &across.ticks {
        let (at, bottom) = chart.backend_coord(&(*x, 0.0));
        let half = f64::from(px(1)) * LETTER * label.chars().count() as f64 / 2.0;
        if f64::from(at) - half < free {
            continue;
        }
        let tick = [(at, bottom), (at, bottom + px(3) as i32)];
        area.draw(&PathElement::new(tick, GRID.stroke_width(px(1))))?;
        free = f64::from(at) + half + f64::from(px(4));
        let style = text(11, MUTED, HPos::Center, VPos::Top);
        area.draw(&Text::new(label.as_str(), (at, bottom + px(6) as i32), style))?;
    }
    let name = text(11, INK, HPos::Center, VPos::Bottom);
    let middle = px((WIDTH + LEFT - RIGHT) / 2) as i32;
    area.draw(&Text::new(across.name.as_str(), (middle, px(HEIGHT - 4) as i32), name))?;
    for line in all {
        let ink = colour(line.key);
        let has_dots = line.points.len() <= MAX_DOTS;
        let points: Vec<_> =
            line.points.iter().step_by(line.points.len().div_ceil(MAX_VALUES).max(1)).collect();
        let ends = points.iter().filter_map(|&&(x, y, half)| Some((x, y, half.filter(|h| h.is_finite())?)));
        if has_dots {
            chart.draw_series(ends.map(|(x, y, half)| {
                PathElement::new([(x, (y - half).max(0.0)), (x, y + half)], ink.stroke_width(px(1)))
            }))?;
        } else {
            let low = ends.clone().map(|(x, y, half)| (x, (y - half).max(0.0)));
            let high = ends.clone().rev().map(|(x, y, half)| (x, y + half));
            let outline: Vec<(f64, f64)> = low.chain(high).collect();
            chart.draw_series([Polygon::new(outline, ink.mix(0.22).filled())])?;
        }
        let places = points.iter().map(|&&(x, y, _)| (x, y));
        chart.draw_series(LineSeries::new(places.clone(), ink.stroke_width(px(2) - 1)))?;
        if has_dots {
            chart.draw_series(places.map(|place| Circle::new(place, px(3), ink.filled())))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn across(values: &[f64], is_log: bool) -> Across {
        let ticks = values.iter().map(|x| (*x, x.to_string())).collect();
        Across { name: "rate, Mb/s".into(), ticks, is_log, y_max: 4.0, level: Some(1.0) }
    }

    /// The centres of dots.
    fn dots(svg: &str) -> Vec<f64> {
        let of = |line: &str| line.split_once("cx=\"")?.1.split_once('"')?.0.parse().ok();
        svg.lines().filter_map(of).collect()
    }

    #[test]
    fn equal_ratios_are_equally_far_apart_on_a_logarithmic_axis() {
        let line = Line { key: 0, points: [1.0, 10.0, 100.0].map(|x| (x, 1.0, Some(0.5))).to_vec() };
        let svg = lines(&across(&[1.0, 10.0, 100.0], true), &[line]).svg();
        let dots = dots(&svg);
        assert!((dots[1] - dots[0] - (dots[2] - dots[1])).abs() <= 1.0, "{dots:?}");
        assert!(svg.contains(">100</text>") && svg.contains(">rate, Mb/s</text>"), "{svg}");
    }

    #[test]
    fn of_very_many_values_every_so_many_are_drawn() {
        let values: Vec<f64> = (0..10_000).map(f64::from).collect();
        let points = values.iter().map(|&x| (x, 1.0, Some(0.5))).collect();
        let svg = lines(&across(&values, false), &[Line { key: 0, points }]).svg();
        assert!(svg.len() < 20_000 && svg.contains("#0072B2"), "{} bytes", svg.len());
    }

    #[test]
    fn ticks_are_at_the_values_as_far_as_there_is_room() {
        let many: Vec<f64> = (0..100).map(f64::from).collect();
        let svg = lines(&across(&many, false), &[]).svg();
        let labels = svg.matches("</text>").count();
        assert!((10..30).contains(&labels), "{labels}");
        assert!(lines(&across(&[], false), &[]).svg().starts_with("<svg"));
    }
}
