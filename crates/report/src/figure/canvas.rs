//! Colours, sizes and text of all figures, and the SVG element around them.
//!
//! Colours are literal in the SVG; the page's style sheet selects them by value to swap them in dark mode.
//! Figures are drawn at `SCALE` times their displayed size, because plotters rounds coordinates to whole
//! pixels.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::rc::Rc;

use plotters::coord::Shift;
use plotters::coord::ranged1d::ValueFormatter;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::data::Data;
use super::drawing::{Align, Canvas, Drawing, Paint, Shape};

/// Drawn pixels per CSS pixel.
pub(super) const SCALE: u32 = 2;

/// Text and strong lines.
pub(super) const INK: RGBColor = RGBColor(0x1f, 0x23, 0x28);
/// Labels of axes.
pub(super) const MUTED: RGBColor = RGBColor(0x5c, 0x65, 0x70);
/// Grid lines.
pub(super) const GRID: RGBColor = RGBColor(0xdf, 0xe3, 0xe8);
/// The warm-up.
pub(super) const SHADE: RGBColor = RGBColor(0xf1, 0xf3, 0xf5);
/// Lines of entitlements, which are dashed.
pub(super) const LEVEL: RGBColor = RGBColor(0x30, 0x35, 0x3b);

/// Colours of keys, with their counterparts in dark mode.
///
/// Okabe and Ito, "Color Universal Design", 2008, without black and yellow (too close to text and
/// background); then Paul Tol's "muted" indigo, wine, olive and teal.
pub(super) const PALETTE: [(u32, u32); 10] = [
    (0x00_72B2, 0x4D_A6E0),
    (0xD5_5E00, 0xF0_7B2A),
    (0x00_9E73, 0x2F_C298),
    (0xCC_79A7, 0xDF_95BF),
    (0xE6_9F00, 0xF0_B429),
    (0x56_B4E9, 0x8C_CFF5),
    (0x33_2288, 0x8F_84E0),
    (0x88_2255, 0xD0_6A9C),
    (0x99_9933, 0xBD_BD5B),
    (0x44_AA99, 0x6F_CFC0),
];
/// Keys beyond the palette.
pub(super) const OTHERS: (u32, u32) = (0x8A_9099, 0x9A_A1AB);
/// Neutral colours with their counterparts in dark mode.
pub(super) const NEUTRAL: [(RGBColor, u32); 5] =
    [(INK, 0xE6_EAEE), (MUTED, 0x9A_A4AE), (GRID, 0x30_363D), (SHADE, 0x1C_2128), (LEVEL, 0xC9_D1D9)];

/// Number of keys with a colour of their own.
pub const COLOURS: usize = PALETTE.len();

/// A colour for the key with this index.
pub(crate) fn colour(key: usize) -> RGBColor {
    rgb(PALETTE.get(key).unwrap_or(&OTHERS).0)
}

pub(super) fn rgb(hex: u32) -> RGBColor {
    let [_, r, g, b] = hex.to_be_bytes();
    RGBColor(r, g, b)
}

/// The style sheet rules for key swatches (`.k0` ...) and for figures in dark mode.
pub(crate) fn style_sheet() -> String {
    let keys = || PALETTE.iter().chain([&OTHERS]);
    let swatches: String =
        keys().enumerate().map(|(i, (light, _))| format!(".k{i}{{background:#{light:06X}}}\n")).collect();
    let neutral = NEUTRAL.iter().map(|&(RGBColor(r, g, b), dark)| (u32::from_be_bytes([0, r, g, b]), dark));
    let dark: String = keys()
        .copied()
        .chain(neutral)
        .map(|(light, dark)| {
            format!(
                "svg [fill=\"#{light:06X}\"]{{fill:#{dark:06X}}}\n\
                 svg [stroke=\"#{light:06X}\"]{{stroke:#{dark:06X}}}\n"
            )
        })
        .collect();
    let dark_swatches: String =
        keys().enumerate().map(|(i, (_, dark))| format!(".k{i}{{background:#{dark:06X}}}\n")).collect();
    format!("{swatches}@media (prefers-color-scheme:dark){{\n{dark}{dark_swatches}}}\n")
}

/// The colours for scripts of pages, as a constant `INKS`.
pub(crate) fn inks() -> String {
    let keys: Vec<String> =
        PALETTE.iter().chain([&OTHERS]).map(|(light, _)| format!("\"#{light:06X}\"")).collect();
    let neutral = [("ink", INK), ("muted", MUTED), ("grid", GRID), ("shade", SHADE), ("level", LEVEL)]
        .map(|(name, RGBColor(r, g, b))| format!("{name}:\"#{r:02X}{g:02X}{b:02X}\""));
    format!("const INKS = {{keys:[{}],{}}};", keys.join(","), neutral.join(","))
}

pub(super) type Area = DrawingArea<Canvas, Shift>;
pub(super) type Drawn = Result<(), DrawingAreaErrorKind<Infallible>>;

/// The width of a figure in CSS pixels at its natural size. Chosen: a phone shows it unscaled, and three
/// stand side by side on 1280 pixels.
pub(super) const WIDTH: u32 = 320;

/// What a figure says beside what it draws: its data, and which shapes belong to which of its series.
pub(super) struct Shown {
    shapes: Rc<RefCell<Vec<Shape>>>,
    data: RefCell<Option<Data>>,
    /// The series of the last group.
    last: Cell<usize>,
}

impl Shown {
    /// Gives the figure its data.
    pub(super) fn data(&self, data: Data) {
        self.data.replace(Some(data));
    }

    /// What `draw` draws belongs to the series at this place of the data. Groups of the same series that follow each other are one.
    pub(super) fn of_series(&self, place: usize, draw: impl FnOnce() -> Drawn) -> Drawn {
        let goes_on = self.shapes.borrow().last() == Some(&Shape::End) && self.last.get() == place;
        if goes_on {
            self.shapes.borrow_mut().pop();
        } else {
            self.shapes.borrow_mut().push(Shape::Begin(place));
        }
        self.last.set(place);
        let drawn = draw();
        let mut shapes = self.shapes.borrow_mut();
        // A group of nothing is none.
        if shapes.last() == Some(&Shape::Begin(place)) {
            shapes.pop();
        } else {
            shapes.push(Shape::End);
        }
        drawn
    }
}

/// Draws on an area of this size in CSS pixels; a failure becomes a line of text.
pub(super) fn draw(width: u32, height: u32, draw: impl FnOnce(&Area, &Shown) -> Drawn) -> Drawing {
    let size = (width * SCALE, height * SCALE);
    let shapes = Rc::new(RefCell::new(Vec::new()));
    let area = Canvas { size, shapes: Rc::clone(&shapes) }.into_drawing_area();
    let shown = Shown { shapes: Rc::clone(&shapes), data: RefCell::default(), last: Cell::default() };
    let drawn = draw(&area, &shown);
    drop(area);
    let data = shown.data.take();
    let mut shapes = shapes.take();
    if let Err(error) = drawn {
        let text = format!("This figure could not be drawn: {error}");
        let (at, paint) = ((0, px(12) as i32), Paint { rgb: (INK.0, INK.1, INK.2), alpha: 1.0 });
        let (h, v) = (Align::Start, Align::Middle);
        shapes.push(Shape::Text { text, at, size: f64::from(px(11)), h, v, paint });
    }
    Drawing { size, shapes, data }
}

/// Left, top, right and bottom of the plot of a chart, in drawn pixels.
pub(super) fn plot_area<X, Y>(chart: &ChartContext<'_, Canvas, Cartesian2d<X, Y>>) -> [i32; 4]
where
    X: Ranged,
    Y: Ranged,
{
    let (x, y) = chart.plotting_area().get_pixel_range();
    [x.start, y.start, x.end, y.end]
}

/// CSS pixels in drawn pixels.
pub(super) const fn px(shown: u32) -> u32 {
    shown * SCALE
}

/// Text of `shown` CSS pixels, anchored.
pub(super) fn text(shown: u32, colour: RGBColor, h: HPos, v: VPos) -> TextStyle<'static> {
    ("sans-serif", f64::from(px(shown))).into_font().color(&colour).pos(Pos::new(h, v))
}

/// Labels of axes.
pub(super) fn axis_text() -> TextStyle<'static> {
    text(11, MUTED, HPos::Center, VPos::Center)
}

/// Draws the horizontal grid and the axes of a chart, with this many labels on the horizontal one.
pub(super) fn mesh<X>(
    chart: &mut ChartContext<'_, Canvas, Cartesian2d<X, RangedCoordf64>>,
    x_labels: usize,
    x_label: &dyn Fn(&f64) -> String,
) -> Drawn
where
    X: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(x_labels)
        .y_labels(5)
        .bold_line_style(GRID.stroke_width(px(1)))
        .light_line_style(TRANSPARENT)
        .axis_style(GRID)
        .set_all_tick_mark_size(px(3))
        .label_style(axis_text())
        .x_label_formatter(&x_label)
        .y_label_formatter(&|y| tick(*y))
        .draw()
}

/// The end of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Right,
    Top,
}

/// An interval from its lower to its upper end, with a triangle if it continues beyond the end of its axis.
/// There is no triangle at zero, because no quantity is below.
pub(super) fn interval(area: &Area, ends: [(i32, i32); 2], beyond: Option<End>, style: ShapeStyle) -> Drawn {
    area.draw(&PathElement::new(ends, style))?;
    let (x, y) = ends[1];
    let (length, half) = (px(5) as i32, px(4) as i32);
    let corners = match beyond {
        None => return Ok(()),
        Some(End::Right) => [(x, y), (x - length, y - half), (x - length, y + half)],
        Some(End::Top) => [(x, y), (x - half, y + length), (x + half, y + length)],
    };
    area.draw(&Polygon::new(corners, style.color.filled()))
}

/// A number on an axis, with no more decimals than it needs.
pub(super) fn tick(x: f64) -> String {
    // The margin has room for five characters.
    if x.abs() >= 10_000.0 {
        return tick(x / 1_000.0) + "k";
    }
    let text = format!("{x:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// `name`, shortened in the middle to `max` characters.
pub(super) fn shorten(name: &str, max: usize) -> String {
    let count = name.chars().count();
    if count <= max {
        return name.to_owned();
    }
    let tail = (max - 1) / 2;
    let head = max - 1 - tail;
    let start: String = name.chars().take(head).collect();
    let end: String = name.chars().skip(count - tail).collect();
    format!("{start}…{end}")
}

/// `max` if an axis can end there, else 1.
pub(super) fn axis_end(max: f64) -> f64 {
    if max.is_finite() && max > 0.0 { max } else { 1.0 }
}
