//! Heat maps: a number for each pair of values of two parameters.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::canvas::{Area, Drawn, INK, MUTED, WIDTH, draw, px, text};
use super::data::{Along, Axis, Data, Series};
use super::drawing::Drawing;
use crate::statistics::number;

/// The numbers of a heat map, and their axes.
pub(crate) struct Heat {
    /// The name of the horizontal axis, with its unit, and its values from left to right.
    pub(crate) x: (String, Vec<String>),
    /// The name of the vertical axis, and its values from top to bottom.
    pub(crate) y: (String, Vec<String>),
    /// Cells (row, column, value).
    pub(crate) cells: Vec<(usize, usize, f64)>,
    /// The quantity with its unit.
    pub(crate) of: String,
    /// The values with the darkest and the lightest colour.
    pub(crate) ends: (f64, f64),
}

const CELL_HEIGHT: u32 = 24;
/// Width of a cell, which holds a number of six letters.
const CELL_WIDTH: u32 = 44;
/// More columns than this get narrow cells without numbers, and a colour key.
const MAX_COLUMNS: usize = 16;
const NARROW: u32 = 12;
const TOP: u32 = 18;
const AXIS: u32 = 38;
const LETTER: u32 = 7;
/// The scale of colours: its height with the text above and below it, and its steps.
const SCALE: u32 = 48;
const STEPS: u32 = 40;
const STEP: u32 = 4;

/// Colours from low to high: "cividis", which readers with and without colour vision see alike, as a path
/// through five of its colours (Nuñez, Anderton, Renslow, "Optimizing colormaps with consideration for color
/// vision deficiency", 2018).
const COLOURS: [(f64, f64, f64); 5] = [
    (0.0, 34.0, 78.0),
    (67.0, 78.0, 108.0),
    (124.0, 123.0, 120.0),
    (186.0, 174.0, 105.0),
    (254.0, 232.0, 56.0),
];
/// Literal, like the colours of cells, so they stay in dark mode.
const BLACK: RGBColor = RGBColor(0, 0, 0);
const WHITE: RGBColor = RGBColor(255, 255, 255);

/// Draws the cells with their numbers, and the scale of their colours below.
pub(crate) fn heat(map: &Heat) -> Drawing {
    let (columns, rows) = (map.x.1.len().max(1), map.y.1.len());
    let left = map.y.1.iter().map(|label| label.chars().count()).max().unwrap_or(0) as u32 * LETTER + 8;
    let has_numbers = columns <= MAX_COLUMNS;
    let least = if has_numbers { CELL_WIDTH } else { NARROW };
    let cell = least.max((WIDTH - left.min(WIDTH)) / columns as u32).min(2 * CELL_WIDTH);
    let height = if has_numbers { CELL_HEIGHT } else { NARROW };
    let width = (left + cell * columns as u32).max(WIDTH);
    let bottom = TOP + height * rows as u32;
    let place = |x: u32, y: u32| (px(x) as i32, px(y) as i32);
    draw(width, bottom + AXIS + SCALE, |area, shown| {
        let across = |(column, label): (usize, &String)| {
            (label.clone(), px(left + cell * column as u32 + cell / 2) as i32)
        };
        let down = |(row, label): (usize, &String)| {
            (label.clone(), px(TOP + height * row as u32 + height / 2) as i32)
        };
        let ([left_end, top], [right, low]) =
            ([px(left), px(TOP)], [px(left + cell * columns as u32), px(bottom)]);
        let mut data = Data::new(
            [left_end, top, right, low].map(|at| at as i32),
            Axis::names(map.x.0.as_str(), map.x.1.iter().enumerate().map(across).collect()),
            Axis::names(map.y.0.as_str(), map.y.1.iter().enumerate().map(down).collect()),
            Along::X,
            &[map.of.as_str()],
        );
        let series = |label: &String| Series { name: label.clone(), ..Series::of(None) };
        data.series = map.y.1.iter().map(series).collect();
        area.draw(&Text::new(map.y.0.as_str(), place(0, 2), text(11, INK, HPos::Left, VPos::Top)))?;
        for &(row, column, value) in map.cells.iter().filter(|cell| cell.2.is_finite()) {
            let (x, y) = (left + cell * column as u32, TOP + height * row as u32);
            if let Some(series) = data.series.get_mut(row) {
                series.add(column as f64, row as f64, [value]);
            }
            let (fill, ink) = shade(value, map.ends);
            let corners = [place(x, y), place(x + cell - 1, y + height - 1)];
            area.draw(&Rectangle::new(corners, fill.filled()))?;
            if has_numbers {
                let style = text(11, ink, HPos::Center, VPos::Center);
                area.draw(&Text::new(number(value), place(x + cell / 2, y + height / 2), style))?;
            }
        }
        let mut free = 0;
        for (row, label) in map.y.1.iter().enumerate() {
            let y = TOP + height * row as u32 + height / 2;
            if y >= free {
                let style = text(11, MUTED, HPos::Right, VPos::Center);
                area.draw(&Text::new(label.as_str(), place(left - 6, y), style))?;
                free = y + 14;
            }
        }
        let mut free = 0;
        for (column, label) in map.x.1.iter().enumerate() {
            let (x, half) =
                (left + cell * column as u32 + cell / 2, label.chars().count() as u32 * LETTER / 2);
            if x >= free + half {
                let style = text(11, MUTED, HPos::Center, VPos::Top);
                area.draw(&Text::new(label.as_str(), place(x, bottom + 4), style))?;
                free = x + half + 4;
            }
        }
        let name = text(11, INK, HPos::Center, VPos::Bottom);
        let middle = left + cell * columns as u32 / 2;
        area.draw(&Text::new(map.x.0.as_str(), place(middle, bottom + AXIS - 4), name))?;
        shown.data(data);
        scale(area, map, (left.min(WIDTH - STEPS * STEP), bottom + AXIS + 6))
    })
}

/// Draws the colours from low to high with the values at the ends and in the middle, below the name of the
/// quantity.
fn scale(area: &Area, map: &Heat, (left, top): (u32, u32)) -> Drawn {
    let place = |x: u32, y: u32| (px(left + x) as i32, px(top + y) as i32);
    area.draw(&Text::new(map.of.as_str(), place(0, 0), text(11, INK, HPos::Left, VPos::Top)))?;
    let (low, high) = map.ends;
    if low >= high {
        return Ok(());
    }
    let value = |part: f64| low + part * (high - low);
    for step in 0..STEPS {
        let (fill, _) = shade(value(f64::from(step) / f64::from(STEPS - 1)), map.ends);
        let corners = [place(step * STEP, 15), place((step + 1) * STEP, 25)];
        area.draw(&Rectangle::new(corners, fill.filled()))?;
    }
    for (part, anchor) in [(0, HPos::Left), (1, HPos::Center), (2, HPos::Right)] {
        let style = text(11, MUTED, anchor, VPos::Top);
        let at = place(part * STEPS * STEP / 2, 28);
        area.draw(&Text::new(number(value(f64::from(part) / 2.0)), at, style))?;
    }
    Ok(())
}

/// The colour of a cell with this value, and of the number in it.
fn shade(value: f64, (low, high): (f64, f64)) -> (RGBColor, RGBColor) {
    let at = if high > low { ((value - low) / (high - low)).clamp(0.0, 1.0) } else { 0.0 };
    let position = at * (COLOURS.len() - 1) as f64;
    let below = (position as usize).min(COLOURS.len() - 2);
    let part = position - below as f64;
    let (from, to) = (COLOURS[below], COLOURS[below + 1]);
    let mix = |from: f64, to: f64| (from + part * (to - from)).round() as u8;
    let fill = RGBColor(mix(from.0, to.0), mix(from.1, to.1), mix(from.2, to.2));
    (fill, if at > 0.5 { BLACK } else { WHITE })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_has_its_number_and_the_ends_of_the_scale_their_colours() {
        let axis =
            |name: &str, values: &[&str]| (name.to_owned(), values.iter().map(|v| (*v).into()).collect());
        let map = Heat {
            x: axis("rate, Mb/s", &["2", "5"]),
            y: axis("delay, ms", &["10", "20"]),
            cells: vec![(0, 0, 1.0), (0, 1, 2.0), (1, 0, 3.0), (1, 1, 5.0)],
            of: "Jain index".to_owned(),
            ends: (1.0, 5.0),
        };
        let svg = heat(&map).svg();
        // The scale: its ends and its middle, from dark to light.
        let scale = svg.split_once(">Jain index</text>").unwrap().1;
        let fills: Vec<&str> = scale.lines().filter(|line| line.starts_with("<rect")).collect();
        assert!(
            fills.len() == 40 && fills[0].contains("#00224E") && fills[39].contains("#FEE838"),
            "{scale}"
        );
        for number in ["1.00", "3.00", "5.00"] {
            assert!(scale.contains(&format!(">{number}</text>")), "{number} in {scale}");
        }
        for number in ["1.00", "2.00", "3.00", "5.00", "rate, Mb/s", "delay, ms"] {
            assert!(svg.contains(&format!(">{number}</text>")), "{number} in {svg}");
        }
        assert!(svg.contains("#00224E") && svg.contains("#FEE838"), "{svg}");
        // Numbers are white on dark cells and black on light ones.
        assert_eq!((svg.matches("#FFFFFF").count(), svg.matches("#000000").count()), (3, 1));
    }

    #[test]
    fn nothing_to_draw_is_still_a_figure() {
        let none = || (String::new(), Vec::new());
        let map =
            Heat { x: none(), y: none(), cells: vec![(0, 0, f64::NAN)], of: String::new(), ends: (0.0, 0.0) };
        assert!(heat(&map).svg().starts_with("<svg"));
    }
}
