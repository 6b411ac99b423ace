//! Figures of quantities over time.

use std::fmt::Write as _;

use apportion_report::figure::{Curve, Level, Plot, XAxis, curves};
use apportion_report::statistics::number;

use crate::figure::{CourseFigure, DifferenceFigure};
use crate::measure::course::Course;
use crate::measure::differing::delivered;
use crate::measure::step::Answer;
use crate::runs::{RunOutcomes, Runs, run_of, samples};
use crate::value::Length;

use super::card::{Card, level};

/// Points of a curve. Chosen: one per visible pixel, so that the marked times are visible in the curve.
const POINTS: usize = 400;

/// A curve per course.
pub(super) fn course(figure: &CourseFigure, runs: &Runs<'_, RunOutcomes>, seeds: usize) -> Option<Card> {
    let first = figure.series.first()?;
    let found: Vec<(&str, Vec<(f64, f64)>)> = figure
        .series
        .iter()
        .filter_map(|one| Some((one.label.as_str(), points(figure, &one.course, runs, seeds)?)))
        .collect();
    // A control may have nothing to show, for example a FIFO without allocations.
    if found.iter().all(|(_, line)| line.is_empty()) {
        return None;
    }
    let ends = |pick: fn(f64, f64) -> f64, start: f64| {
        found.iter().flat_map(|(_, line)| line).map(|point| point.0).fold(start, pick)
    };
    let begin = figure.from.map_or(0.0, |from| from.0.as_secs_f64());
    let end = figure.to.map_or_else(|| ends(f64::max, 0.0), |to| to.0.as_secs_f64());
    let mut levels: Vec<Level> = figure.levels.iter().map(|one| level(one, begin, end)).collect();
    let drawn = match figure.seed {
        Some(seed) => format!("seed {seed}"),
        None => "mean over seeds".to_owned(),
    };
    let mut caption = format!("{}, {drawn}.", first.course.show.label());
    let target = (!levels.is_empty()).then_some("target");
    let mut dashed = target;
    if let Some(times) = &figure.step
        && let Some(answer) = times.answer(&first.course, runs, 0)
    {
        levels.extend(marks(&answer, times.within, end));
        caption += &in_words(&answer, times.at.0.as_secs_f64());
        dashed = Some(if target.is_some() { "target; marks of the step" } else { "marks of the step" });
    }
    let top = found.iter().flat_map(|(_, line)| line).map(|point| point.1).fold(0.0, f64::max);
    let top = levels.iter().map(|level| level.at).fold(top, f64::max);
    let x =
        if begin > 0.0 { XAxis::Number { low: begin, high: end } } else { XAxis::Time { end, warm_up: 0.0 } };
    let plot = Plot { x, y_min: 0.0, y_max: top * 1.05, levels };
    Some(draw(&figure.title, caption, found, dashed, &plot))
}

fn draw(
    title: &str,
    caption: String,
    found: Vec<(&str, Vec<(f64, f64)>)>,
    dashed: Option<&'static str>,
    plot: &Plot,
) -> Card {
    let names: Vec<String> = found.iter().map(|(label, _)| (*label).to_owned()).collect();
    let curve = |(key, (_, line))| Curve { key: Some(key), line, band: Vec::new() };
    let all: Vec<Curve> = found.into_iter().enumerate().map(curve).collect();
    Card { title: title.to_owned(), caption, names, dashed, drawing: curves(plot, &all), numbers: None }
}

/// Means over seeds unless the figure draws one seed, and over a bin where there are more intervals than
/// points.
fn points(
    figure: &CourseFigure,
    course: &Course,
    runs: &Runs<'_, RunOutcomes>,
    seeds: usize,
) -> Option<Vec<(f64, f64)>> {
    let scenario = &run_of(runs, &course.run).ok()?.scenario;
    let window = samples(scenario, figure.from.or(Some(START)), figure.to).ok()?;
    let drawn = figure.seed.map_or(0..seeds, |seed| seed.get() - 1..seed.get().min(seeds));
    let all: Vec<_> = drawn.filter_map(|seed| course.values(runs, seed)).collect();
    let size = window.len().div_ceil(POINTS).max(1);
    let bin = |begin: usize| {
        let values = all.iter().flat_map(|values| values.iter().skip(begin).take(size)).flatten();
        let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
        let middle = course.time(scenario, begin) + (size - 1) as f64 / 2.0 * scenario.sample.as_secs_f64();
        (count > 0.0).then(|| (middle, sum / count))
    };
    let line: Vec<_> = window.step_by(size).filter_map(bin).collect();
    (!line.is_empty()).then_some(line)
}

const START: Length = Length(apportion_core::units::Span::ZERO);

/// Dashes at 10 % and 90 % of the step between the times at which they are reached, along both edges of the settling
/// band, and at the peak.
fn marks(answer: &Answer, within: f64, end: f64) -> Vec<Level> {
    let dash = |at: f64, from: f64, to: f64| Level { at, span: Some((from, to.min(end))) };
    let &Answer { low, high, t10, t90, settled, peak } = answer;
    let mut all = vec![dash(peak.1, t90.min(peak.0), peak.0)];
    if t90.is_finite() {
        all.extend([0.1, 0.9].map(|share| dash(low + share * (high - low), t10, t90)));
    }
    if settled < end {
        all.extend([1.0 - within, 1.0 + within].map(|share| dash(high * share, settled, end)));
    }
    all
}

/// The numbers of a step response as a sentence.
fn in_words(answer: &Answer, at: f64) -> String {
    let mut out = String::from(" First curve, first seed:");
    let ms = |seconds: f64| {
        if seconds.is_finite() { format!("{} ms", number(seconds * 1e3)) } else { "never".to_owned() }
    };
    let overshoot = (answer.peak.1 - answer.high) / (answer.high - answer.low);
    let _ = write!(
        out,
        " response {}, settling {}, overshoot {} of the step.",
        ms(answer.t90 - answer.t10),
        ms(answer.settled - at),
        number(overshoot)
    );
    out
}

/// A curve per run: how much less it delivered than the reference run.
pub(super) fn difference(figure: &DifferenceFigure, runs: &Runs<'_, RunOutcomes>, seeds: usize) -> Card {
    let found: Vec<(&str, Vec<(f64, f64)>)> = figure
        .series
        .iter()
        .filter_map(|one| Some((one.label.as_str(), lacking(figure, &one.run, runs, seeds)?)))
        .collect();
    let ends = || found.iter().flat_map(|(_, line)| line);
    let end = ends().map(|point| point.0).fold(0.0, f64::max);
    let top = ends().map(|point| point.1).fold(0.0, f64::max);
    let plot = Plot {
        x: XAxis::Time { end, warm_up: 0.0 },
        y_min: ends().map(|point| point.1).fold(0.0, f64::min) * 1.05,
        y_max: top * 1.05,
        levels: Vec::new(),
    };
    let caption = format!(
        "Bytes delivered since the start by `{}` minus those of each run, MB, mean over seeds.",
        figure.alone
    );
    draw(&figure.title, caption, found, None, &plot)
}

/// Megabytes lacking at the end of each bin of intervals.
fn lacking(
    figure: &DifferenceFigure,
    run: &str,
    runs: &Runs<'_, RunOutcomes>,
    seeds: usize,
) -> Option<Vec<(f64, f64)>> {
    let step = run_of(runs, &figure.alone).ok()?.scenario.sample.as_secs_f64();
    let mut sums: Vec<f64> = Vec::new();
    for seed in 0..seeds {
        let alone = delivered(runs, &figure.alone, &figure.of, seed)?;
        let other = delivered(runs, run, &figure.of, seed)?;
        sums.resize(alone.len(), 0.0);
        let mut sum = 0.0;
        for (total, (alone, other)) in sums.iter_mut().zip(alone.iter().zip(&other)) {
            sum += (alone - other) / 1e6;
            *total += sum / seeds as f64;
        }
    }
    let size = sums.len().div_ceil(POINTS).max(1);
    let point = |(k, value): (usize, &f64)| ((k + 1) as f64 * step, *value);
    Some(sums.iter().enumerate().skip(size - 1).step_by(size).map(point).collect())
}
