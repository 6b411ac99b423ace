//! Several drawings as one, with titles and keys: the content of a file.

use super::canvas::{INK, MUTED, SCALE, WIDTH, colour, px};
use super::drawing::{Align, Drawing, Paint, Shape};
use super::named_rows::wrap;

/// A figure with the text above it.
#[derive(Clone, Debug)]
pub struct Panel {
    /// The quantity with its unit, and its subject.
    pub title: String,
    /// Settings common to all of it, for example values of parameters; empty if there are none.
    pub note: String,
    /// Keys of colours with their names; empty if there is one without a name.
    pub legend: Vec<(usize, String)>,
    /// The figure.
    pub drawing: Drawing,
}

/// Space between drawings.
const GAP: u32 = 14;
/// Height of a line of a title or key.
const LINE: u32 = 16;
/// Maximum width of a letter of titles and keys.
const LETTER: u32 = 7;
const SWATCH: u32 = 10;
const MAX_COLUMNS: usize = 3;

/// The panels from left to right and top to bottom, in at most three columns.
#[must_use]
pub fn compose(panels: &[Panel]) -> Drawing {
    let columns = match panels.len() {
        0 | 1 => 1,
        2..=4 => 2,
        _ => MAX_COLUMNS,
    };
    let all: Vec<Drawing> = panels.iter().map(titled).collect();
    let column = all.iter().map(Drawing::width).max().unwrap_or(WIDTH);
    let width = columns as u32 * (column + GAP) - GAP;
    let mut shapes = Vec::new();
    let mut top = 0;
    for row in all.chunks(columns) {
        for (place, drawing) in row.iter().enumerate() {
            let at = (px(place as u32 * (column + GAP)) as i32, px(top) as i32);
            shapes.extend(drawing.shapes.iter().map(|shape| shape.moved(at)));
        }
        top += row.iter().map(|drawing| drawing.size.1 / SCALE).max().unwrap_or(0) + GAP;
    }
    Drawing { size: (px(width), px(top.saturating_sub(GAP).max(1))), shapes, data: None }
}

/// A drawing with title, note and keys above it.
fn titled(panel: &Panel) -> Drawing {
    let drawing = &panel.drawing;
    let letters = (drawing.width() / LETTER) as usize;
    let mut shapes = Vec::new();
    let mut top = 0;
    for (text, ink) in [(&panel.title, INK), (&panel.note, MUTED)] {
        for line in wrap(text, letters).into_iter().filter(|line| !line.is_empty()) {
            shapes.push(label(line, (0, top + LINE / 2), ink));
            top += LINE;
        }
    }
    let mut left = 0;
    for (key, name) in &panel.legend {
        let width = SWATCH + 4 + name.chars().count() as u32 * LETTER + GAP;
        if left > 0 && left + width > drawing.width() + GAP {
            (left, top) = (0, top + LINE);
        }
        let corner = |x: u32, y: u32| (px(left + x) as i32, px(top + y) as i32);
        let (from, to) = (corner(0, 3), corner(SWATCH, 3 + SWATCH));
        shapes.push(Shape::Box { from, to, paint: solid(colour(*key)) });
        shapes.push(label(name.clone(), (left + SWATCH + 4, top + LINE / 2), INK));
        left += width;
    }
    if !panel.legend.is_empty() {
        top += LINE;
    }
    shapes.extend(drawing.shapes.iter().map(|shape| shape.moved((0, px(top) as i32))));
    Drawing { size: (drawing.size.0, drawing.size.1 + px(top)), shapes, data: None }
}

fn label(text: String, (x, y): (u32, u32), ink: plotters::style::RGBColor) -> Shape {
    let (at, size) = ((px(x) as i32, px(y) as i32), f64::from(px(11)));
    Shape::Text { text, at, size, h: Align::Start, v: Align::Middle, paint: solid(ink) }
}

const fn solid(colour: plotters::style::RGBColor) -> Paint {
    Paint { rgb: (colour.0, colour.1, colour.2), alpha: 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::histogram;

    fn panel(title: &str, legend: &[&str]) -> Panel {
        let legend = legend.iter().map(|name| (*name).to_owned()).enumerate().collect();
        Panel { title: title.into(), note: String::new(), legend, drawing: histogram("", &[1.0], None) }
    }

    #[test]
    fn panels_stand_side_by_side_below_their_titles() {
        let one = compose(&[panel("Delay, ms", &["tcp", "udp"])]);
        let two = compose(&[panel("Delay, ms", &["tcp", "udp"]), panel("Jain", &[])]);
        assert_eq!((one.width(), two.width()), (WIDTH, 2 * WIDTH + GAP));
        assert_eq!(one.size.1, two.size.1);
        assert_eq!(one.size.1, panel("", &[]).drawing.size.1 + px(2 * LINE));
        let svg = two.svg();
        for text in ["Delay, ms", "tcp", "udp", "Jain"] {
            assert!(svg.contains(&format!(">{text}</text>")), "{text}");
        }
        assert_eq!(compose(&[]).width(), WIDTH);
    }
}
