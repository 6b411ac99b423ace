//! Groups of vertical bars, with a dashed line across each group for its target.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::canvas::{GRID, INK, LEVEL, MUTED, WIDTH, axis_text, colour, draw, px, shorten, text, tick};
use super::drawing::Drawing;

/// A group of adjacent bars.
pub struct Group {
    /// The name below the group.
    pub name: String,
    /// A bar for each key, in their order: its height and half of its interval. `None` leaves a gap.
    pub bars: Vec<Option<(f64, Option<f64>)>>,
    /// The target, drawn as a dashed line.
    pub ideal: Option<f64>,
}

/// More bars than this get the width of two figures.
const MANY: usize = 20;
const HEIGHT: u32 = 240;
const LEFT: u32 = 42;
const RIGHT: u32 = 8;
/// Width of a letter of a name.
const LETTER: u32 = 6;
/// Height of a line of a name.
const LINE: u32 = 14;
/// Space on each side of a group's bars, relative to its width.
const AIR: f64 = 0.12;

/// Draws the groups from left to right; bars begin at zero.
#[must_use]
pub fn groups(all: &[Group]) -> Drawing {
    let y = heights(all);
    let count = all.len().max(1);
    let bars: usize = all.iter().map(|group| group.bars.len()).sum();
    let width = if bars > MANY { 2 * WIDTH } else { WIDTH };
    let letters = ((width - LEFT - RIGHT) / LETTER) as usize / count;
    let names = names(all, letters.max(2));
    let most = names.iter().map(Vec::len).max().unwrap_or(1) as u32;
    draw(width, HEIGHT, |area, _| {
        let mut chart = ChartBuilder::on(area)
            .margin_top(px(8))
            .margin_right(px(RIGHT))
            .set_label_area_size(LabelAreaPosition::Left, px(LEFT))
            .set_label_area_size(LabelAreaPosition::Bottom, px(10 + LINE * most))
            .build_cartesian_2d(0.0..count as f64, y.clone())?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_labels(0)
            .y_labels(5)
            .bold_line_style(GRID.stroke_width(px(1)))
            .light_line_style(TRANSPARENT)
            .axis_style(GRID)
            .set_all_tick_mark_size(px(3))
            .label_style(axis_text())
            .y_label_formatter(&|y| tick(*y))
            .draw()?;
        for (i, (group, name)) in all.iter().zip(&names).enumerate() {
            let left = i as f64 + AIR;
            let width = (1.0 - 2.0 * AIR) / group.bars.len().max(1) as f64;
            for (key, bar) in group.bars.iter().enumerate() {
                let Some((value, half)) = bar.filter(|bar| bar.0.is_finite()) else { continue };
                let from = left + key as f64 * width;
                let shape = Rectangle::new([(from, 0.0), (from + width, value)], colour(key).filled());
                chart.draw_series([shape])?;
                if let Some(half) = half.filter(|half| *half > 0.0 && half.is_finite()) {
                    let middle = from + width / 2.0;
                    let interval = [(middle, value - half), (middle, value + half)];
                    chart.draw_series([PathElement::new(interval, MUTED.stroke_width(3))])?;
                }
            }
            if let Some(ideal) = group.ideal.filter(|ideal| ideal.is_finite()) {
                let line = [(left - AIR / 2.0, ideal), (i as f64 + 1.0 - AIR / 2.0, ideal)];
                chart.draw_series([PathElement::new(line, LEVEL.stroke_width(4))])?;
            }
            let (middle, bottom) = chart.backend_coord(&(i as f64 + 0.5, y.start));
            for (k, line) in (0..).zip(name) {
                let place = (middle, bottom + px(6 + LINE * k) as i32);
                area.draw(&Text::new(line.as_str(), place, text(11, INK, HPos::Center, VPos::Top)))?;
            }
        }
        Ok(())
    })
}

/// Names in one line of at most `max` letters, or all in two lines if one is longer.
fn names(all: &[Group], max: usize) -> Vec<Vec<String>> {
    let length = |text: &str| text.chars().count();
    let long = all.iter().any(|group| length(&group.name) > max);
    let lines = |group: &Group| {
        let name = &group.name;
        let halves = name.match_indices(' ').map(|(at, _)| (&name[..at], &name[at + 1..]));
        match halves.min_by_key(|(one, other)| length(one).max(length(other))) {
            Some((one, other)) if long => vec![shorten(one, max), shorten(other, max)],
            _ => vec![shorten(name, max)],
        }
    };
    all.iter().map(lines).collect()
}

/// The range of the vertical axis: from zero, or from the lowest value if that is negative, with a margin.
fn heights(all: &[Group]) -> std::ops::Range<f64> {
    let bar = |bar: &(f64, Option<f64>)| [bar.0, bar.0 - bar.1.unwrap_or(0.0), bar.0 + bar.1.unwrap_or(0.0)];
    let bars = all.iter().flat_map(|group| group.bars.iter().flatten().flat_map(bar));
    let ends = bars.chain(all.iter().filter_map(|group| group.ideal)).filter(|end| end.is_finite());
    let (low, high) = ends.fold((0.0_f64, 0.0_f64), |(low, high), end| (low.min(end), high.max(end)));
    if low < high { low * 1.05..high * 1.05 } else { 0.0..1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(name: &str, bars: &[Option<f64>], ideal: Option<f64>) -> Group {
        let bars = bars.iter().map(|bar| bar.map(|value| (value, None))).collect();
        Group { name: name.into(), bars, ideal }
    }

    fn attribute(line: &str, name: &str) -> f64 {
        let (_, rest) = line.split_once(&format!(" {name}=\"")).unwrap();
        rest.split_once('"').unwrap().0.parse().unwrap()
    }

    /// (left, height) of the bars in this colour.
    fn bars(svg: &str, colour: &str) -> Vec<(f64, f64)> {
        svg.lines()
            .filter(|line| line.starts_with("<rect") && line.contains(colour))
            .map(|line| (attribute(line, "x"), attribute(line, "height")))
            .collect()
    }

    #[test]
    fn a_bar_stands_in_its_group_at_its_height_and_a_missing_one_leaves_its_place() {
        let all = [group("a", &[Some(4.0), Some(2.0)], None), group("b", &[None, Some(1.0)], None)];
        let svg = groups(&all).svg();
        let (first, second) = (bars(&svg, "#0072B2"), bars(&svg, "#D55E00"));
        let ([one], [two, three]) = (&first[..], &second[..]) else { panic!("{first:?} {second:?}") };
        assert!((two.1 / one.1 - 0.5).abs() < 0.01 && (three.1 / one.1 - 0.25).abs() < 0.01, "{svg}");
        // Groups are (320 - 42 - 8) / 2 = 135 wide, drawn at twice the size; a bar takes (1 - 0.24) / 2 of
        // it.
        assert!((two.0 - one.0 - 0.38 * 270.0).abs() <= 2.0, "{first:?} {second:?}");
        assert!((three.0 - two.0 - 270.0).abs() <= 2.0, "{second:?}");
    }

    #[test]
    fn intervals_are_lines_and_what_was_due_is_a_dashed_one_across_the_group() {
        let mut all =
            [group("a", &[Some(4.0), Some(2.0)], Some(3.0)), group("b", &[Some(3.0), Some(1.0)], None)];
        all[0].bars[0] = Some((4.0, Some(0.5)));
        let svg = groups(&all).svg();
        let lines = |colour: &str| -> Vec<&str> {
            svg.lines().filter(|line| line.starts_with("<polyline") && line.contains(colour)).collect()
        };
        // MUTED and LEVEL.
        assert_eq!((lines("#5C6570").len(), lines("#30353B").len()), (1, 1), "{svg}");
        assert!(svg.contains(">a</text>") && svg.contains(">b</text>"), "{svg}");
    }

    #[test]
    fn the_axis_holds_intervals_and_what_was_due_and_goes_below_zero_only_if_something_does() {
        let above = [group("a", &[Some(4.0)], Some(6.0)), group("b", &[None], None)];
        assert_eq!(heights(&above), 0.0..6.0 * 1.05);
        let mut below = [group("a", &[Some(-1.0), Some(4.0)], None)];
        below[0].bars[1] = Some((4.0, Some(1.0)));
        assert_eq!(heights(&below), -1.05..5.0 * 1.05);
    }

    #[test]
    fn names_stand_in_two_lines_if_one_is_too_long_and_are_shortened_only_then() {
        let lines = |all: &[&str], max| {
            let all: Vec<Group> = all.iter().map(|name| group(name, &[], None)).collect();
            names(&all, max).iter().map(|lines| lines.join("|")).collect::<Vec<_>>()
        };
        assert_eq!(lines(&["TCP", "UDP 1"], 6), ["TCP", "UDP 1"]);
        assert_eq!(lines(&["A long", "A short"], 6), ["A|long", "A|short"]);
        // "a bb" and "cccc" are more even than "a" and "bb cccc".
        assert_eq!(lines(&["a bb cccc", "abcdefgh"], 6), ["a bb|cccc", "abc…gh"]);
        assert_eq!(lines(&["über längere"], 5), ["über|lä…re"]);
    }

    #[test]
    fn nothing_to_draw_is_still_a_figure() {
        let odd = [group("", &[Some(f64::NAN), Some(0.0)], Some(f64::INFINITY))];
        let many: Vec<Group> = (0..100).map(|k| group(&k.to_string(), &[], None)).collect();
        for svg in [groups(&[]), groups(&odd), groups(&many)].map(|drawing| drawing.svg()) {
            assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{svg}");
        }
    }
}
