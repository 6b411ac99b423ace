//! Lines over a parameter, with a dot and an interval at each of its values.

use std::ops::Range;

use plotters::coord::ranged1d::ValueFormatter;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::canvas::{
    Area, Drawn, End, GRID, INK, LEVEL, MUTED, Shown, WIDTH, axis_end, colour, draw, interval, mesh,
    plot_area, px, text,
};
use super::data::{Along, Axis, Data, Series};
use super::drawing::{Canvas, Drawing};

/// A line in the colour of a key.
pub(crate) struct Line {
    pub(crate) key: usize,
    /// Points (x, y, half of the interval), ascending in x.
    pub(crate) points: Vec<(f64, f64, Option<f64>)>,
}

/// The axes.
pub(crate) struct Across {
    /// The name of the horizontal axis, with its unit.
    pub(crate) name: String,
    /// The values of the parameter, ascending, with their labels.
    pub(crate) ticks: Vec<(f64, String)>,
    pub(crate) is_log: bool,
    pub(crate) y_max: f64,
    /// The height of a dashed horizontal line.
    pub(crate) level: Option<f64>,
}

const HEIGHT: u32 = 210;
const LEFT: u32 = 40;
const RIGHT: u32 = 14;
const TOP: u32 = 8;
const AXIS: u32 = 40;
/// Width of a letter of a tick, in CSS pixels.
const LETTER: f64 = 6.5;
/// More values than this are drawn without dots, and intervals as bands.
const MAX_DOTS: usize = 40;
/// Maximum of drawn values. Chosen: about one for each pixel; of more values every n-th is drawn.
const MAX_VALUES: usize = 300;

/// Draws the lines on an axis that begins at zero.
pub(crate) fn lines(across: &Across, all: &[Line]) -> Drawing {
    let (low, high) = match (across.ticks.first(), across.ticks.last()) {
        (Some((low, _)), Some((high, _))) if low < high => (*low, *high),
        (Some((only, _)), _) => (only - 0.5, only + 0.5),
        _ => (0.0, 1.0),
    };
    draw(WIDTH, HEIGHT, |area, shown| {
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
            fill(
                builder.build_cartesian_2d((low / air..high * air).log_scale(), y)?,
                area,
                shown,
                across,
                all,
            )
        } else {
            let air = 0.03 * (high - low);
            fill(builder.build_cartesian_2d(low - air..high + air, y)?, area, shown, across, all)
        }
    })
}

fn fill<X>(
    mut chart: ChartContext<'_, Canvas, Cartesian2d<X, RangedCoordf64>>,
    area: &Area,
    shown: &Shown,
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
    let top = chart.y_range().end;
    shown.data(data_of(plot_area(&chart), chart.x_range(), top, across, all));
    for (of, line) in all.iter().enumerate() {
        shown.of_series(of, || {
            let ink = colour(line.key);
            let has_dots = line.points.len() <= MAX_DOTS;
            let points: Vec<_> = line.points.iter().step_by(stride(line)).collect();
            let of = |&&(x, y, half): &&(f64, f64, Option<f64>)| {
                let half = half.filter(|half| half.is_finite())?;
                Some(Within { x, low: y - half, high: y + half, top })
            };
            let ends: Vec<Within> = points.iter().filter_map(of).collect();
            let marked: Vec<&Within> = if has_dots {
                ends.iter().collect()
            } else {
                let low = ends.iter().map(Within::low);
                let outline: Vec<(f64, f64)> = low.chain(ends.iter().rev().map(Within::high)).collect();
                chart.draw_series([Polygon::new(outline, ink.mix(0.22).filled())])?;
                // Once for each stretch in which it is cut at the same ends.
                let stretches = ends.chunk_by(|a, b| a.is_cut() == b.is_cut());
                stretches.filter_map(|all| all.get(all.len() / 2)).filter(|of| of.is_cut()).collect()
            };
            for of in marked {
                let ends = [of.low(), of.high()].map(|end| chart.backend_coord(&end));
                interval(area, ends, of.is_cut().then_some(End::Top), ink.stroke_width(px(1)))?;
            }
            let places = points.iter().map(|&&(x, y, _)| (x, y));
            chart.draw_series(LineSeries::new(places.clone(), ink.stroke_width(px(2) - 1)))?;
            if has_dots {
                chart.draw_series(places.map(|place| Circle::new(place, px(3), ink.filled())))?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Every how many values one is drawn.
fn stride(line: &Line) -> usize {
    line.points.len().div_ceil(MAX_VALUES).max(1)
}

/// The drawn values of the lines on axes of these ends.
fn data_of(area: [i32; 4], x: Range<f64>, top: f64, across: &Across, all: &[Line]) -> Data {
    let name = across.name.as_str();
    let axis = if across.is_log && x.start > 0.0 { Axis::log } else { Axis::numbers };
    let mut data = Data::new(area, axis(name, x.start, x.end), Axis::numbers("", 0.0, top), Along::X, &["±"]);
    data.levels = across.level.map(|level| (level, None)).into_iter().collect();
    for line in all {
        let mut series = Series::of(Some(line.key));
        for &(x, y, half) in line.points.iter().step_by(stride(line)) {
            series.add(x, y, [half.unwrap_or(f64::NAN)]);
        }
        data.series.push(series);
    }
    if let Some(every) = all.iter().map(stride).max().filter(|every| *every > 1) {
        data.note = format!("one of {every} values is shown");
    }
    data
}

/// An interval at a value of the parameter, on an axis from zero to `top`.
struct Within {
    x: f64,
    low: f64,
    high: f64,
    top: f64,
}

impl Within {
    fn low(&self) -> (f64, f64) {
        (self.x, self.low.clamp(0.0, self.top))
    }

    fn high(&self) -> (f64, f64) {
        (self.x, self.high.clamp(0.0, self.top))
    }

    /// Whether the interval continues beyond the axis.
    fn is_cut(&self) -> bool {
        self.high > self.top
    }
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
    fn what_goes_on_beyond_the_figure_has_a_triangle() {
        let triangles = |points: Vec<(f64, f64, Option<f64>)>| {
            let xs: Vec<f64> = points.iter().map(|point| point.0).collect();
            let svg = lines(&across(&xs, false), &[Line { key: 0, points }]).svg();
            let heights = |line: &str| -> Vec<f64> {
                let (_, rest) = line.split_once("points=\"").unwrap();
                let pairs = rest.split_once('"').unwrap().0.split_whitespace();
                pairs.map(|pair| pair.split_once(',').unwrap().1.parse().unwrap()).collect()
            };
            let all = svg.lines().filter(|line| line.starts_with("<poly"));
            assert!(all.flat_map(heights).all(|y| y >= f64::from(px(TOP))), "outside: {svg}");
            svg.lines().filter(|line| line.starts_with("<polygon") && heights(line).len() < 5).count()
        };
        // The axis ends at 4: one that fits, and two that are cut.
        let few = vec![(1.0, 2.0, Some(1.0)), (2.0, 3.0, Some(2.0)), (3.0, 2.0, Some(3.0))];
        assert_eq!(triangles(few), 2);
        // A band is cut in two stretches.
        let cut = |k: i32| if (10..20).contains(&k) || k > 90 { 9.0 } else { 0.5 };
        let band = (0..100).map(|k| (f64::from(k), 2.0, Some(cut(k)))).collect();
        assert_eq!(triangles(band), 2);
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
