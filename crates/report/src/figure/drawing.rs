//! A drawing: the shapes of a figure, and its text as SVG.

use std::cell::RefCell;
use std::convert::Infallible;
use std::fmt::Write;
use std::rc::Rc;

use plotters::style::text_anchor::{HPos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind,
};

use super::canvas::{LEVEL, SCALE, WIDTH};
use super::data::Data;
use crate::html::escape;

/// A figure as shapes, independent of its file format. The same input gives the same drawing.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawing {
    /// Width and height in drawn pixels.
    pub(super) size: (u32, u32),
    pub(super) shapes: Vec<Shape>,
    /// Its values; none for several figures as one.
    pub(super) data: Option<Data>,
}

/// Dashes and the gaps between them, in drawn pixels.
pub(super) const DASHES: [f32; 2] = [10.0, 8.0];

/// Coordinates are in drawn pixels, from the upper left corner.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    Line {
        points: Vec<(i32, i32)>,
        paint: Paint,
        width: u32,
    },
    Area {
        points: Vec<(i32, i32)>,
        paint: Paint,
    },
    Box {
        from: (i32, i32),
        to: (i32, i32),
        paint: Paint,
    },
    Dot {
        centre: (i32, i32),
        radius: u32,
        paint: Paint,
    },
    Text {
        text: String,
        at: (i32, i32),
        size: f64,
        h: Align,
        v: Align,
        paint: Paint,
    },
    /// The shapes until [`Shape::End`] belong to the series at this place of the data.
    Begin(usize),
    End,
}

/// The anchor of text: its left or upper end, its middle, or its right or lower end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    Start,
    Middle,
    End,
}

impl Align {
    /// The attribute of an anchor, unless it is the start.
    const fn anchor(self) -> &'static str {
        match self {
            Self::Start => "",
            Self::Middle => " text-anchor=\"middle\"",
            Self::End => " text-anchor=\"end\"",
        }
    }
}

/// A colour and its opacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Paint {
    pub(super) rgb: (u8, u8, u8),
    pub(super) alpha: f64,
}

impl Paint {
    fn hex(self) -> String {
        let (r, g, b) = self.rgb;
        format!("#{r:02X}{g:02X}{b:02X}")
    }

    /// Whether lines of this colour are dashed, as those of entitlements are.
    pub(super) fn is_dashed(self) -> bool {
        self.rgb == (LEVEL.0, LEVEL.1, LEVEL.2)
    }

    /// The attribute for its opacity, if it is not opaque.
    fn opacity(self) -> String {
        if self.alpha < 1.0 { format!(" opacity=\"{}\"", self.alpha) } else { String::new() }
    }
}

impl From<BackendColor> for Paint {
    fn from(colour: BackendColor) -> Self {
        Self { rgb: colour.rgb, alpha: colour.alpha }
    }
}

impl Drawing {
    /// The width in CSS pixels at its natural size.
    #[must_use]
    pub const fn width(&self) -> u32 {
        self.size.0 / SCALE
    }

    /// Whether it is wider than most figures.
    #[must_use]
    pub const fn is_wide(&self) -> bool {
        self.width() > WIDTH
    }

    /// Names the measured quantity, with its unit after a comma, and the series by their keys.
    pub(crate) fn of(mut self, quantity: &str, names: &[String]) -> Self {
        if let Some(data) = &mut self.data {
            data.name(quantity, names);
        }
        self
    }

    /// The first cell of table rows about the series at each place.
    pub(crate) fn with_rows(mut self, row: impl Fn(Option<usize>) -> String) -> Self {
        for series in self.data.iter_mut().flat_map(|data| &mut data.series) {
            series.row = row(series.key);
        }
        self
    }

    /// The drawing as an SVG element of its natural size, for a file.
    #[must_use]
    pub fn svg(&self) -> String {
        self.element(|shapes, out| shapes.iter().for_each(|shape| shape.write_svg(out)))
    }

    /// The drawing for a page: short paths, a group for each series, and its data.
    pub(crate) fn html(&self) -> String {
        let mut out = self.element(write_html);
        if let Some(data) = &self.data {
            let _ = writeln!(out, "<script type=\"application/json\">{}</script>", data.json());
        }
        out
    }

    fn element(&self, write: impl Fn(&[Shape], &mut String)) -> String {
        let (width, height) = self.size;
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"system-ui, sans-serif\">\n",
            width / SCALE,
            height / SCALE,
        );
        write(&self.shapes, &mut out);
        out.push_str("</svg>\n");
        out
    }
}

impl Shape {
    /// The shape's colour.
    pub(super) const fn paint(&self) -> Option<Paint> {
        match self {
            Self::Line { paint, .. }
            | Self::Area { paint, .. }
            | Self::Box { paint, .. }
            | Self::Dot { paint, .. }
            | Self::Text { paint, .. } => Some(*paint),
            Self::Begin(_) | Self::End => None,
        }
    }

    /// The same shape, moved by this many pixels to the right and down.
    pub(super) fn moved(&self, (dx, dy): (i32, i32)) -> Self {
        let by = |&(x, y): &(i32, i32)| (x + dx, y + dy);
        let mut moved = self.clone();
        match &mut moved {
            Self::Line { points, .. } | Self::Area { points, .. } => {
                points.iter_mut().for_each(|point| *point = by(point));
            }
            Self::Box { from, to, .. } => (*from, *to) = (by(from), by(to)),
            Self::Dot { centre: at, .. } | Self::Text { at, .. } => *at = by(at),
            Self::Begin(_) | Self::End => {}
        }
        moved
    }

    /// The points of a line or area.
    fn points(&self) -> Option<&[(i32, i32)]> {
        match self {
            Self::Line { points, .. } | Self::Area { points, .. } => Some(points),
            _ => None,
        }
    }

    /// Writes a text of a group that has its style.
    fn write_words(&self, out: &mut String) {
        if let Self::Text { text, at, size, v, .. } = self {
            let y = f64::from(at.1) + baseline(*v) * size;
            let _ = writeln!(out, "<text x=\"{}\" y=\"{y:.0}\">{}</text>", at.0, escape(text));
        }
    }

    /// Whether both are lines of one style, or texts of one style, which a page writes together.
    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Line { paint: a, width: b, .. }, Self::Line { paint, width, .. }) => {
                (a, b) == (paint, width) && !paint.is_dashed() && paint.alpha >= 1.0
            }
            (Self::Text { paint: a, size: b, h: c, .. }, Self::Text { paint, size, h, .. }) => {
                (a, b, c) == (paint, size, h)
            }
            _ => false,
        }
    }

    fn write_svg(&self, out: &mut String) {
        let dashes = format!(" stroke-dasharray=\"{} {}\"", DASHES[0], DASHES[1]);
        let _ = match self {
            Self::Line { points, paint, width } => writeln!(
                out,
                "<polyline fill=\"none\" stroke=\"{}\"{}{} stroke-width=\"{width}\" points=\"{}\"/>",
                paint.hex(),
                paint.opacity(),
                if paint.is_dashed() { dashes.as_str() } else { "" },
                coordinates(points)
            ),
            Self::Area { points, paint } => writeln!(
                out,
                "<polygon fill=\"{}\"{} points=\"{}\"/>",
                paint.hex(),
                paint.opacity(),
                coordinates(points)
            ),
            Self::Box { from, to, paint } => writeln!(
                out,
                "<rect fill=\"{}\"{} x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
                paint.hex(),
                paint.opacity(),
                from.0,
                from.1,
                to.0 - from.0,
                to.1 - from.1
            ),
            Self::Dot { centre, radius, paint } => writeln!(
                out,
                "<circle fill=\"{}\"{} cx=\"{}\" cy=\"{}\" r=\"{radius}\"/>",
                paint.hex(),
                paint.opacity(),
                centre.0,
                centre.1
            ),
            Self::Text { text, at, size, h, v, paint } => {
                let y = f64::from(at.1) + baseline(*v) * size;
                writeln!(
                    out,
                    "<text fill=\"{}\"{} x=\"{}\" y=\"{y:.0}\" font-size=\"{size}\"{}>{}</text>",
                    paint.hex(),
                    paint.opacity(),
                    at.0,
                    h.anchor(),
                    escape(text)
                )
            }
            Self::Begin(_) | Self::End => Ok(()),
        };
    }
}

/// Distance of the baseline of text below its anchor, relative to its size: the height of capitals is about
/// 0.72 of it.
pub(super) const fn baseline(v: Align) -> f64 {
    match v {
        Align::Start => 0.76,
        Align::Middle => 0.35,
        Align::End => -0.25,
    }
}

fn coordinates(points: &[(i32, i32)]) -> String {
    let mut out = String::with_capacity(points.len() * 9);
    for (i, (x, y)) in points.iter().enumerate() {
        let _ = write!(out, "{}{x},{y}", if i > 0 { " " } else { "" });
    }
    out
}

/// Writes shapes for a page, with groups of series and in fewer bytes than for a file: lines of one style are a path, and texts
/// of one style a group.
fn write_html(shapes: &[Shape], out: &mut String) {
    for like in shapes.chunk_by(Shape::is_like) {
        let [first, ..] = like else { continue };
        let _ = match first {
            Shape::Begin(place) => write!(out, "<g data-s=\"{place}\">"),
            Shape::End => writeln!(out, "</g>"),
            Shape::Line { paint, width, .. } if !paint.is_dashed() => {
                let _ = write!(
                    out,
                    "<path fill=\"none\" stroke=\"{}\"{} stroke-width=\"{width}\" d=\"",
                    paint.hex(),
                    paint.opacity()
                );
                like.iter()
                    .for_each(|line| line.points().iter().for_each(|points| out.push_str(&path(points))));
                writeln!(out, "\"/>")
            }
            Shape::Area { points, paint } => {
                writeln!(out, "<path fill=\"{}\"{} d=\"{}z\"/>", paint.hex(), paint.opacity(), path(points))
            }
            Shape::Text { paint, size, h, .. } if like.len() > 1 => {
                let (fill, opacity, anchor) = (paint.hex(), paint.opacity(), h.anchor());
                let _ = writeln!(out, "<g fill=\"{fill}\"{opacity} font-size=\"{size}\"{anchor}>");
                like.iter().for_each(|text| text.write_words(out));
                writeln!(out, "</g>")
            }
            _ => {
                first.write_svg(out);
                Ok(())
            }
        };
    }
}

/// A path with relative coordinates, which takes half of the bytes of absolute ones.
fn path(points: &[(i32, i32)]) -> String {
    let mut out = String::with_capacity(points.len() * 5);
    let mut from: Option<(i32, i32)> = None;
    for &(x, y) in points {
        let _ = match from {
            None => write!(out, "M{x} {y}l"),
            Some((left, top)) => {
                let (dx, dy) = (x - left, y - top);
                // A sign separates numbers too.
                let gap = if dx < 0 || out.ends_with('l') { "" } else { " " };
                write!(out, "{gap}{dx}{}{dy}", if dy < 0 { "" } else { " " })
            }
        };
        from = Some((x, y));
    }
    out
}

/// A backend of plotters that records shapes.
pub(super) struct Canvas {
    pub(super) size: (u32, u32),
    pub(super) shapes: Rc<RefCell<Vec<Shape>>>,
}

type Done = Result<(), DrawingErrorKind<Infallible>>;

impl Canvas {
    fn keep(&self, colour: BackendColor, shape: impl FnOnce(Paint) -> Shape) -> Done {
        if colour.alpha > 0.0 {
            self.shapes.borrow_mut().push(shape(colour.into()));
        }
        Ok(())
    }
}

impl DrawingBackend for Canvas {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        self.size
    }

    fn ensure_prepared(&mut self) -> Done {
        Ok(())
    }

    fn present(&mut self) -> Done {
        Ok(())
    }

    fn draw_pixel(&mut self, (x, y): BackendCoord, colour: BackendColor) -> Done {
        self.keep(colour, |paint| Shape::Box { from: (x, y), to: (x + 1, y + 1), paint })
    }

    fn draw_line<S: BackendStyle>(&mut self, from: BackendCoord, to: BackendCoord, style: &S) -> Done {
        self.draw_path([from, to], style)
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        from: BackendCoord,
        to: BackendCoord,
        style: &S,
        is_filled: bool,
    ) -> Done {
        if is_filled {
            return self.keep(style.color(), |paint| Shape::Box { from, to, paint });
        }
        self.draw_path([from, (to.0, from.1), to, (from.0, to.1), from], style)
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> Done {
        let points: Vec<_> = path.into_iter().collect();
        let width = style.stroke_width();
        self.keep(style.color(), |paint| Shape::Line { points, paint, width })
    }

    fn draw_circle<S: BackendStyle>(
        &mut self,
        centre: BackendCoord,
        radius: u32,
        style: &S,
        _is_filled: bool,
    ) -> Done {
        self.keep(style.color(), |paint| Shape::Dot { centre, radius, paint })
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> Done {
        let points: Vec<_> = path.into_iter().collect();
        self.keep(style.color(), |paint| Shape::Area { points, paint })
    }

    fn draw_text<S: BackendTextStyle>(&mut self, text: &str, style: &S, at: BackendCoord) -> Done {
        let anchor = style.anchor();
        let h = match anchor.h_pos {
            HPos::Left => Align::Start,
            HPos::Center => Align::Middle,
            HPos::Right => Align::End,
        };
        let v = match anchor.v_pos {
            VPos::Top => Align::Start,
            VPos::Center => Align::Middle,
            VPos::Bottom => Align::End,
        };
        let (text, size) = (text.to_owned(), style.size());
        self.keep(style.color(), |paint| Shape::Text { text, at, size, h, v, paint })
    }
}
