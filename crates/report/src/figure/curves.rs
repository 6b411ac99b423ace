//! Curves over time or over a delay, with bands.

use plotters::coord::ranged1d::ValueFormatter;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::canvas::{
    Drawn, GRID, INK, LEVEL, MUTED, SHADE, Shown, WIDTH, axis_end, colour, draw, mesh, plot_area, px, text,
    tick,
};
use super::data::{Along, Axis, Data, Series};
use super::drawing::{Canvas, Drawing};

/// A line with an optional band around it. Coordinates are those of the axes.
pub struct Curve {
    /// The key of its colour, or none for ink.
    pub key: Option<usize>,
    /// Points (x, y), ascending in x.
    pub line: Vec<(f64, f64)>,
    /// The band, (x, low, high).
    pub band: Vec<(f64, f64, f64)>,
}

impl Curve {
    /// A curve without points, in the colour of a key or in ink.
    #[must_use]
    pub const fn empty(key: Option<usize>) -> Self {
        Self { key, line: Vec::new(), band: Vec::new() }
    }
}

/// The axes and reference lines of a plot.
pub struct Plot {
    /// The horizontal axis.
    pub x: XAxis,
    /// The lower end of the vertical axis.
    pub y_min: f64,
    /// The upper end of the vertical axis.
    pub y_max: f64,
    /// Horizontal lines: entitlements.
    pub levels: Vec<Level>,
}

/// A dashed horizontal line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// Height, in the unit of the vertical axis.
    pub at: f64,
    /// Start and end on the horizontal axis; the whole axis if `None`.
    pub span: Option<(f64, f64)>,
}

/// The horizontal axis.
#[derive(Clone)]
pub enum XAxis {
    /// Seconds up to `end`; the part before `warm_up` is shaded.
    Time {
        /// The end of the axis.
        end: f64,
        /// Start of the measured part.
        warm_up: f64,
    },
    /// Milliseconds.
    Delay {
        /// The lower end of the axis.
        low: f64,
        /// The upper end of the axis.
        high: f64,
    },
    /// Milliseconds on a logarithmic scale; `low` is above zero.
    LogDelay {
        /// The lower end of the axis.
        low: f64,
        /// The upper end of the axis.
        high: f64,
    },
    /// Plain numbers.
    Number {
        /// The lower end of the axis.
        low: f64,
        /// The upper end of the axis.
        high: f64,
    },
}

const HEIGHT: u32 = 200;

/// Draws `all` into one plot.
#[must_use]
pub fn curves(plot: &Plot, all: &[Curve]) -> Drawing {
    curves_with_events(plot, all, &[])
}

/// Like [`curves`], with a thin vertical line at each of these places of the horizontal axis.
pub(crate) fn curves_with_events(plot: &Plot, all: &[Curve], events: &[f64]) -> Drawing {
    draw(WIDTH, HEIGHT, |area, shown| {
        let mut builder = ChartBuilder::on(area);
        builder
            .margin_top(px(8))
            .margin_right(px(16))
            .set_label_area_size(LabelAreaPosition::Left, px(38))
            .set_label_area_size(LabelAreaPosition::Bottom, px(24));
        let y = plot.y_min..axis_end(plot.y_max).max(plot.y_min + f64::EPSILON);
        match plot.x {
            XAxis::Time { end, warm_up } => {
                let mut chart = builder.build_cartesian_2d(0.0..axis_end(end), y.clone())?;
                if warm_up > 0.0 {
                    let shade =
                        Rectangle::new([(0.0, y.start), (warm_up.min(axis_end(end)), y.end)], SHADE.filled());
                    chart.draw_series([shade])?;
                    let (left, top) = chart.backend_coord(&(0.0, y.end));
                    let style = text(11, MUTED, HPos::Left, VPos::Top);
                    area.draw(&Text::new("warm-up", (left + px(4) as i32, top + px(2) as i32), style))?;
                }
                finish(chart, &|x| format!("{} s", tick(*x)), 6, &Content { plot, all, events }, shown)
            }
            XAxis::Delay { low, high } => {
                let chart = builder.build_cartesian_2d(low..high.max(low + 0.001), y)?;
                finish(chart, &|x| format!("{} ms", tick(*x)), 5, &Content { plot, all, events }, shown)
            }
            XAxis::Number { low, high } => {
                let chart = builder.build_cartesian_2d(low..high.max(low + f64::EPSILON), y)?;
                finish(chart, &|x| tick(*x), 6, &Content { plot, all, events }, shown)
            }
            XAxis::LogDelay { low, high } => {
                let high = high.max(low * 1.001);
                let chart = builder.build_cartesian_2d((low..high).log_scale(), y)?;
                for x in log_ticks(low, high) {
                    let (at, bottom) = chart.backend_coord(&(x, plot.y_min));
                    let mark = [(at, bottom), (at, bottom + px(3) as i32)];
                    area.draw(&PathElement::new(mark, GRID.stroke_width(px(1))))?;
                    let style = text(11, MUTED, HPos::Center, VPos::Top);
                    area.draw(&Text::new(format!("{} ms", tick(x)), (at, bottom + px(6) as i32), style))?;
                }
                finish(chart, &|_| String::new(), 0, &Content { plot, all, events }, shown)
            }
        }
    })
}

/// Maximum of labels on a logarithmic axis. Chosen: as many as it has room for.
const LOG_TICKS: usize = 5;

/// The decades of an axis, and values between them if there is room.
fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    let decades = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let ticks = |steps: &[f64]| -> Vec<f64> {
        let all = decades.clone().flat_map(|decade| steps.iter().map(move |step| step * 10_f64.powi(decade)));
        all.filter(|x| (low..=high).contains(x)).collect()
    };
    let fitting = [&[1.0, 2.0, 5.0][..], &[1.0, 3.0], &[1.0]].map(ticks);
    let [.., least] = &fitting;
    fitting.iter().find(|ticks| ticks.len() <= LOG_TICKS).unwrap_or(least).clone()
}

type Chart<'a, X> = ChartContext<'a, Canvas, Cartesian2d<X, RangedCoordf64>>;

/// Draws grid and curves with this horizontal axis.
fn finish<X>(
    mut chart: Chart<'_, X>,
    x_label: &dyn Fn(&f64) -> String,
    x_labels: usize,
    &Content { plot, all, events }: &Content<'_>,
    shown: &Shown,
) -> Drawn
where
    X: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    let (x, y) = (chart.x_range(), chart.y_range());
    shown.data(data_of(plot_area(&chart), [x.start, x.end], [y.start, y.end], plot, all, events));
    mesh(&mut chart, x_labels, x_label)?;
    for &at in events {
        let line = [(at, plot.y_min), (at, chart.y_range().end)];
        chart.draw_series([PathElement::new(line, MUTED.stroke_width(1))])?;
    }
    let pen = |curve: &Curve| curve.key.map_or(INK, colour);
    // Curves end at the edges, and their data do not.
    let within = |(at, height): (f64, f64)| (at.clamp(x.start, x.end), height.clamp(y.start, y.end));
    for (of, curve) in all.iter().enumerate().filter(|(_, c)| !c.band.is_empty()) {
        let low = curve.band.iter().map(|&(x, low, _)| (x, low));
        let high = curve.band.iter().rev().map(|&(x, _, high)| (x, high));
        let outline: Vec<(f64, f64)> = low.chain(high).map(within).collect();
        shown.of_series(of, || {
            chart.draw_series([Polygon::new(outline, pen(curve).mix(0.22).filled())])?;
            Ok(())
        })?;
    }
    for level in &plot.levels {
        let (from, to) = level.span.unwrap_or((chart.x_range().start, chart.x_range().end));
        let line = [(from, level.at), (to, level.at)];
        chart.draw_series([PathElement::new(line, LEVEL.stroke_width(3))])?;
    }
    for (of, curve) in all.iter().enumerate() {
        let line = curve.line.iter().copied().map(within);
        shown.of_series(of, || {
            chart.draw_series(LineSeries::new(line, pen(curve).stroke_width(4)))?;
            Ok(())
        })?;
    }
    Ok(())
}

/// What is drawn on the axes.
struct Content<'a> {
    plot: &'a Plot,
    all: &'a [Curve],
    events: &'a [f64],
}

/// The curves on axes of these ends, with their bands as the lowest and the highest value.
fn data_of(area: [i32; 4], x: [f64; 2], y: [f64; 2], plot: &Plot, all: &[Curve], events: &[f64]) -> Data {
    let [low, high] = x;
    let axis = match plot.x {
        XAxis::Time { .. } => Axis::numbers("time, s", low, high),
        XAxis::Delay { .. } => Axis::numbers("delay, ms", low, high),
        XAxis::LogDelay { .. } => Axis::log("delay, ms", low, high),
        XAxis::Number { .. } => Axis::numbers("x", low, high),
    };
    let mut data = Data::new(area, axis, Axis::numbers("", y[0], y[1]), Along::X, &["lowest", "highest"]);
    if let XAxis::Time { warm_up, .. } = plot.x {
        data.warm_up = warm_up.min(high);
    }
    data.events = events.to_vec();
    data.levels = plot.levels.iter().map(|level| (level.at, level.span)).collect();
    for curve in all {
        let mut series = Series::of(curve.key);
        let mut bands = curve.band.iter();
        for &(x, y) in &curve.line {
            let (low, high) = bands.next().map_or((f64::NAN, f64::NAN), |&(_, low, high)| (low, high));
            series.add(x, y, [low, high]);
        }
        data.series.push(series);
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logarithmic_axis_has_two_to_five_labels() {
        assert_eq!(log_ticks(1.0, 100.0), [1.0, 3.0, 10.0, 30.0, 100.0]);
        assert_eq!(log_ticks(26.0, 410.0), [50.0, 100.0, 200.0]);
        assert_eq!(log_ticks(0.05, 900.0).len(), 4);
        for (low, high) in [(8.0, 95.0), (0.2, 3.0), (3.0, 2_900.0), (0.001, 1.0)] {
            let count = log_ticks(low, high).len();
            assert!((2..=LOG_TICKS).contains(&count), "{low} to {high}: {count}");
        }
    }

    #[test]
    fn a_distribution_is_drawn_from_its_least_to_its_longest_delay() {
        let curve =
            Curve { key: Some(0), line: vec![(10.0, 0.0), (100.0, 0.5), (1_000.0, 1.0)], band: Vec::new() };
        let x = XAxis::LogDelay { low: 10.0, high: 1_000.0 };
        let svg = curves(&Plot { x, y_min: 0.0, y_max: 1.0, levels: Vec::new() }, &[curve]).svg();
        for label in ["10 ms", "100 ms", "1000 ms"] {
            assert!(svg.contains(&format!(">{label}</text>")), "{label} in {svg}");
        }
    }
}
