//! Scatter plots, with intervals, lines of ideal values, and names of the marks.

use plotters::prelude::*;

use plotters::style::text_anchor::{HPos, VPos};

use super::canvas::{
    Area, Drawn, GRID, LEVEL, MUTED, WIDTH, axis_end, axis_text, colour, draw, plot_area, px, text, tick,
};
use super::data::{Along, Axis, Data, Series};
use super::drawing::Drawing;

/// Marks in the colour of one key.
pub struct Scatter {
    /// Index of the colour.
    pub key: usize,
    /// Marks (x, y, half of the interval).
    pub marks: Vec<(f64, f64, Option<f64>)>,
    /// Ideal values, ascending in x: a dashed line.
    pub ideal: Vec<(f64, f64)>,
    /// The names of the marks; empty for marks without one.
    pub names: Vec<String>,
}

const HEIGHT: u32 = 230;
/// Height with names, which need room.
const NAMED_HEIGHT: u32 = 320;
const LEFT: u32 = 38;
const RIGHT: u32 = 16;
const TOP: u32 = 8;
const BOTTOM: u32 = 40;

/// Draws `all` into one plane from the origin, with the name of the horizontal axis below. Each name stands
/// next to its mark, or at the end of a thin line from it, if there is room. The names of the last marks are
/// placed first.
#[must_use]
pub fn scatter(all: &[Scatter], x_label: &str) -> Drawing {
    let marks = || all.iter().flat_map(|one| &one.marks);
    let ideal = || all.iter().flat_map(|one| &one.ideal);
    let x_max = marks().map(|m| m.0).chain(ideal().map(|p| p.0)).fold(0.0, f64::max);
    let y_max = marks().map(|m| m.1 + m.2.unwrap_or(0.0)).chain(ideal().map(|p| p.1)).fold(0.0, f64::max);
    let height = if all.iter().all(|one| one.names.is_empty()) { HEIGHT } else { NAMED_HEIGHT };
    draw(WIDTH, height, |area, shown| {
        let mut chart = ChartBuilder::on(area)
            .margin_top(px(TOP))
            .margin_right(px(RIGHT))
            .set_label_area_size(LabelAreaPosition::Left, px(LEFT))
            .set_label_area_size(LabelAreaPosition::Bottom, px(BOTTOM))
            .build_cartesian_2d(0.0..axis_end(x_max * 1.03), 0.0..axis_end(y_max * 1.05))?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_labels(6)
            .y_labels(5)
            .x_desc(x_label)
            .axis_desc_style(axis_text())
            .bold_line_style(GRID.stroke_width(px(1)))
            .light_line_style(TRANSPARENT)
            .axis_style(GRID)
            .set_all_tick_mark_size(px(3))
            .label_style(axis_text())
            .x_label_formatter(&|x| tick(*x))
            .y_label_formatter(&|y| tick(*y))
            .draw()?;
        for one in all {
            chart.draw_series([PathElement::new(one.ideal.clone(), LEVEL.stroke_width(3))])?;
        }
        let place = |mark: &(f64, f64, Option<f64>)| {
            let (x, y) = chart.backend_coord(&(mark.0, mark.1));
            (x / px(1) as i32, y / px(1) as i32)
        };
        let taken = |mark: &(f64, f64, Option<f64>)| {
            let (half, (x, y)) = (mark.2.unwrap_or(0.0), place(mark));
            let [low, high] = [-half, half].map(|by| place(&(mark.0, (mark.1 + by).max(0.0), None)).1);
            [[x - MARK, y - MARK, x + MARK, y + MARK], [x - 1, high, x + 1, low]]
        };
        let mut names = Names::among(marks().flat_map(taken).collect(), height);
        for (of, one) in all.iter().enumerate().rev() {
            for (mark, name) in one.marks.iter().zip(&one.names) {
                shown.of_series(of, || names.add(area, place(mark), name, colour(one.key)))?;
            }
        }
        let (x, y) = (chart.x_range(), chart.y_range());
        let (x, y) = (Axis::numbers(x_label, x.start, x.end), Axis::numbers("", y.start, y.end));
        let mut data = Data::new(plot_area(&chart), x, y, Along::X, &["±"]);
        for (of, one) in all.iter().enumerate() {
            let ink = colour(one.key);
            let mut series = Series { names: one.names.clone(), ..Series::of(Some(one.key)) };
            one.marks.iter().for_each(|&(x, y, half)| series.add(x, y, [half.unwrap_or(f64::NAN)]));
            data.series.push(series);
            shown.of_series(of, || {
                for &(x, y, half) in &one.marks {
                    if let Some(half) = half {
                        let interval = [(x, (y - half).max(0.0)), (x, y + half)];
                        chart.draw_series([PathElement::new(interval, ink.stroke_width(px(1)))])?;
                    }
                    chart.draw_series([Circle::new((x, y), px(4), ink.filled())])?;
                }
                Ok(())
            })?;
        }
        shown.data(data);
        Ok(())
    })
}

/// A rectangle in CSS pixels: left, top, right, bottom.
type Area4 = [i32; 4];

/// Places of names, and the areas that they must not cover.
struct Names {
    taken: Vec<Area4>,
    bounds: Area4,
}

/// Half of the size of a mark.
const MARK: i32 = 5;
/// Width of a letter, and the height of a name.
const LETTER: i32 = 6;
const NAME: i32 = 11;
/// The farthest place of a name from its mark, in steps; from the second step on a line connects them.
const FAR: i32 = 14;
const STEP: i32 = 8;

impl Names {
    fn among(taken: Vec<Area4>, height: u32) -> Self {
        let [left, top, right, bottom] = [LEFT + 2, TOP, WIDTH - 1, height - BOTTOM - 2].map(|x| x as i32);
        Self { taken, bounds: [left, top, right, bottom] }
    }

    /// Writes a name at the nearest free place, or nowhere if there is none.
    fn add(&mut self, area: &Area, (x, y): (i32, i32), name: &str, ink: RGBColor) -> Drawn {
        let width = name.chars().count() as i32 * LETTER;
        let boxed = |(dx, dy): (i32, i32), step: i32| {
            let away = MARK + 2 + step * STEP;
            let side = |d: i32, size: i32| match d {
                0 => -size / 2,
                1 => away,
                _ => -away - size,
            };
            let (left, top) = (x + side(dx, width), y + side(dy, NAME));
            [left, top, left + width, top + NAME]
        };
        const WAYS: [(i32, i32); 8] = [(1, 0), (-1, 0), (0, -1), (0, 1), (1, -1), (-1, -1), (1, 1), (-1, 1)];
        let all = (0..FAR).flat_map(|step| WAYS.into_iter().map(move |way| (step, way)));
        let place = all.map(|(step, way)| (step, boxed(way, step))).find(|(_, place)| self.is_free(place));
        let Some((step, [left, top, right, bottom])) = place else { return Ok(()) };
        let at = |x: i32, y: i32| (x * px(1) as i32, y * px(1) as i32);
        if step > 0 {
            let end = (x.clamp(left, right), y.clamp(top, bottom));
            area.draw(&PathElement::new([at(x, y), at(end.0, end.1)], MUTED.mix(0.6).stroke_width(1)))?;
        }
        self.taken.push([left, top, right, bottom]);
        let style = text(10, ink, HPos::Left, VPos::Center);
        area.draw(&Text::new(name.to_owned(), at(left, top + NAME / 2), style))
    }

    fn is_free(&self, &[left, top, right, bottom]: &Area4) -> bool {
        let is_apart = |of: &Area4| right <= of[0] || left >= of[2] || bottom <= of[1] || top >= of[3];
        let [from, above, to, below] = self.bounds;
        left >= from && top >= above && right <= to && bottom <= below && self.taken.iter().all(is_apart)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_next_to_their_marks_and_cover_nothing() {
        let near = (0..24).map(|k| (1.0 + f64::from(k % 5) * 0.05, 0.5 + f64::from(k) * 0.01, None));
        let names: Vec<String> = (0..24).map(|k| format!("queue_{k}")).collect();
        let mut marks: Vec<_> = near.collect();
        marks.push((4.0, 1.0, None));
        let names = names.into_iter().chain(["alone".to_owned()]).collect();
        let svg = scatter(&[Scatter { key: 0, marks, ideal: Vec::new(), names }], "x").svg();
        let number = |line: &str, name: &str| -> f64 {
            line.split_once(&format!(" {name}=\"")).unwrap().1.split_once('"').unwrap().0.parse().unwrap()
        };
        let texts: Vec<&str> = svg.lines().filter(|line| line.contains("font-size=\"20\"")).collect();
        assert_eq!(texts.len(), 25, "{svg}");
        let boxes: Vec<[f64; 4]> = texts
            .iter()
            .map(|line| {
                let letters = line.split_once('>').unwrap().1.split_once('<').unwrap().0.len() as f64;
                let (x, y) = (number(line, "x"), number(line, "y"));
                [x, y - 15.0, x + 12.0 * letters, y + 3.0]
            })
            .collect();
        let covers = |a: &[f64; 4], b: &[f64; 4]| a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
        for (at, one) in boxes.iter().enumerate() {
            assert!(boxes[..at].iter().all(|other| !covers(one, other)), "{}", texts[at]);
            for dot in svg.lines().filter(|line| line.starts_with("<circle")) {
                let (x, y) = (number(dot, "cx"), number(dot, "cy"));
                assert!(!covers(one, &[x - 8.0, y - 8.0, x + 8.0, y + 8.0]), "{} covers {dot}", texts[at]);
            }
        }
        // An isolated mark has its name without a line.
        let of_alone = texts.iter().find(|line| line.contains(">alone<")).unwrap();
        let dot = svg.lines().rfind(|line| line.starts_with("<circle")).unwrap();
        assert!((number(of_alone, "y") - number(dot, "cy")).abs() < 10.0, "{of_alone} {dot}");
    }

    #[test]
    fn every_mark_is_a_dot_and_every_interval_a_line() {
        let one = Scatter {
            key: 0,
            marks: vec![(1.0, 0.1, Some(0.01)), (2.0, 0.2, None), (3.0, 0.3, Some(0.02))],
            ideal: vec![(1.0, 0.1), (3.0, 0.3)],
            names: Vec::new(),
        };
        let svg = scatter(&[one], "tickets").svg();
        assert_eq!(svg.matches("<circle").count(), 3);
        let lines =
            |colour: &str| svg.lines().filter(|l| l.starts_with("<polyline") && l.contains(colour)).count();
        // Two intervals in the colour of the key, one dashed line.
        assert_eq!((lines("#0072B2"), lines("#30353B")), (2, 1));
        assert!(svg.contains("tickets"));
    }

    #[test]
    fn nothing_to_draw_is_still_a_figure() {
        assert!(scatter(&[], "x").svg().starts_with("<svg"));
    }
}
