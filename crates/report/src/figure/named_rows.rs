//! Rows with names: to the left of the drawing, or above it if one of them is long, so that none is cut.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::canvas::{Area, Drawn, INK, WIDTH, px, text};
use super::data::Axis;

/// Maximum of letters of names that stand to the left.
const SHORT: usize = 13;
/// Width of a letter of a name, in the widest of the usual fonts, in CSS pixels.
const LETTER: u32 = 8;
/// Letters of a name above a row.
const LINE_LETTERS: usize = (WIDTH / LETTER) as usize;
/// Height of a line of a name, in CSS pixels.
const LINE: u32 = 16;

/// The layout of rows and their names. The unit of heights is a CSS pixel, from the top.
pub(super) struct NamedRows {
    names: Vec<Vec<String>>,
    are_above: bool,
    /// The height of the drawing in a row.
    band: u32,
}

impl NamedRows {
    pub(super) fn of<'a>(names: impl Iterator<Item = &'a str> + Clone, band: u32) -> Self {
        let are_above = names.clone().any(|name| name.chars().count() > SHORT);
        let lines = |name: &str| if are_above { wrap(name, LINE_LETTERS) } else { vec![name.to_owned()] };
        Self { names: names.map(lines).collect(), are_above, band }
    }

    /// The width of the names to the left.
    pub(super) fn left(&self) -> u32 {
        let longest = self.names.iter().flatten().map(|line| line.chars().count()).max().unwrap_or(0);
        if self.are_above { 14 } else { longest as u32 * LETTER + 8 }
    }

    /// The height of all rows together.
    pub(super) fn height(&self) -> u32 {
        (0..self.names.len()).map(|row| self.row(row)).sum()
    }

    fn row(&self, row: usize) -> u32 {
        self.band + if self.are_above { LINE * self.names[row].len() as u32 } else { 0 }
    }

    /// The top of the band of this row, and its height.
    pub(super) fn band(&self, row: usize) -> (f64, f64) {
        let bottom: u32 = (0..=row).map(|row| self.row(row)).sum();
        (f64::from(bottom - self.band), f64::from(self.band))
    }

    /// The axis of the rows, which begin `top` below the upper edge of the area, for the data of the figure.
    pub(super) fn axis<'a>(&self, names: impl Iterator<Item = &'a str>, top: u32) -> Axis {
        let place = |(row, name): (usize, &str)| {
            let (band, height) = self.band(row);
            (name.to_owned(), (f64::from(px(top)) + (band + height / 2.0) * f64::from(px(1))) as i32)
        };
        Axis::names("row", names.enumerate().map(place).collect())
    }

    /// Draws the names of rows that begin `top` below the upper edge of the area.
    pub(super) fn draw_names(&self, area: &Area, top: u32) -> Drawn {
        for (row, lines) in self.names.iter().enumerate() {
            let (band, height) = self.band(row);
            if !self.are_above {
                let middle = f64::from(px(top)) + (band + height / 2.0) * f64::from(px(1));
                let at = (px(self.left() - 6) as i32, middle as i32);
                area.draw(&Text::new(lines[0].as_str(), at, text(12, INK, HPos::Right, VPos::Center)))?;
                continue;
            }
            for (line, above) in lines.iter().zip((1..=lines.len() as u32).rev()) {
                let y = px(top) + px(band as u32) + px(LINE / 2) - px(LINE * above);
                let style = text(12, INK, HPos::Left, VPos::Center);
                area.draw(&Text::new(line.as_str(), (px(1) as i32, y as i32), style))?;
            }
        }
        Ok(())
    }
}

/// `name` in lines of at most `letters`, broken after a comma or space if possible.
pub(super) fn wrap(name: &str, letters: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest: Vec<char> = name.chars().collect();
    while rest.len() > letters {
        let at = rest[..=letters].iter().rposition(|c| *c == ' ').filter(|at| *at > 0);
        let line: String = rest.drain(..at.unwrap_or(letters)).collect();
        lines.push(line);
        if rest.first() == Some(&' ') {
            rest.remove(0);
        }
    }
    lines.push(rest.into_iter().collect());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_broken_at_spaces_and_loses_nothing_else() {
        assert_eq!(wrap("rate=5Mbit, queue=fifo", 12), ["rate=5Mbit,", "queue=fifo"]);
        assert_eq!(wrap("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(wrap("", 3), [""]);
    }

    #[test]
    fn names_stand_above_their_rows_if_one_is_long() {
        let short = NamedRows::of(["udp", "tcp.1"].into_iter(), 20);
        assert_eq!((short.height(), short.band(1)), (40, (20.0, 20.0)));
        let long = NamedRows::of(["udp", "queue=fq_codel, rate=10Mbit"].into_iter(), 20);
        assert_eq!((long.height(), long.band(1)), (2 * (LINE + 20), (52.0, 20.0)));
        assert!(long.left() < short.left());
    }
}
