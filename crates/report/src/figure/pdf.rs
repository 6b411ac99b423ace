//! Drawings as PDF: one page of the drawing's size, with its font, so that text is text in any program.
//!
//! The font is Roboto Regular (Google, 2015, Apache License 2.0), the glyphs of Windows code page 1252 without hints.

use std::collections::BTreeSet;

use pdf_writer::types::{FontFlags, LineCapStyle, LineJoinStyle};
use pdf_writer::{Content, Finish, Name, Pdf, Rect, Ref, Str};

use super::canvas::SCALE;
use super::drawing::{Align, DASHES, Drawing, Paint, Shape, baseline};

const FONT: &[u8] = include_bytes!("roboto-latin.ttf");
/// The name of a subset of a font begins with six arbitrary letters (ISO 32000-1, 9.6.4).
const FONT_NAME: Name<'_> = Name(b"APPRTN+Roboto-Regular");
/// Advance widths of the characters from 32 to 255, in thousandths of the size; 0 for codes without a
/// character.
#[rustfmt::skip]
const WIDTHS: [u16; 224] = [
    248, 258, 320, 616, 562, 732, 622, 175, 342, 348, 431, 567, 197, 276, 264, 413, 562, 562, 562, 562, 562, 562, 562, 562, 562, 562, 242, 211,
    508, 549, 523, 473, 898, 652, 623, 651, 656, 568, 553, 681, 713, 272, 552, 627, 539, 873, 713, 688, 631, 688, 616, 594, 597, 648, 637, 887,
    627, 601, 599, 265, 411, 265, 418, 451, 309, 544, 562, 523, 564, 530, 348, 562, 551, 243, 239, 507, 243, 877, 552, 570, 562, 568, 339, 516,
    327, 551, 484, 751, 496, 473, 496, 338, 244, 338, 680, 0, 562, 0, 199, 341, 345, 669, 552, 570, 471, 958, 594, 300, 954, 0, 599, 0, 0, 200,
    200, 354, 357, 337, 656, 781, 472, 625, 516, 300, 908, 0, 496, 601, 248, 244, 547, 582, 713, 525, 240, 613, 418, 786, 447, 469, 554, 276,
    786, 458, 374, 535, 367, 367, 313, 567, 489, 261, 248, 367, 455, 469, 732, 776, 778, 474, 652, 652, 652, 652, 652, 652, 935, 651, 568, 568,
    568, 568, 272, 272, 272, 272, 671, 713, 688, 688, 688, 688, 688, 534, 688, 648, 648, 648, 648, 601, 591, 595, 544, 544, 544, 544, 544, 544,
    845, 523, 530, 530, 530, 530, 248, 248, 248, 248, 586, 552, 570, 570, 570, 570, 570, 571, 567, 551, 551, 551, 551, 473, 576, 473,
];
/// The characters from 128 to 159 of Windows code page 1252; a space for codes without one.
const UPPER: &str = "€ ‚ƒ„…†‡ˆ‰Š‹Œ Ž  ‘’“”•–—˜™š›œ žŸ";
/// Distance of the inner points of four Bézier curves from their ends, which form a circle of radius 1.
const CURVE: f32 = 0.552_285;
/// A CSS pixel is 1/96 inch, a point 1/72.
const POINTS: f32 = 0.75 / SCALE as f32;

impl Drawing {
    /// The drawing as a PDF document of one page, at its natural size: 96 CSS pixels to the inch. Characters outside Windows
    /// code page 1252 become question marks.
    #[must_use]
    pub fn pdf(&self) -> Vec<u8> {
        let [catalog, pages, page, contents, font, descriptor, file] = [1, 2, 3, 4, 5, 6, 7].map(Ref::new);
        let (width, height) = (self.size.0 as f32 * POINTS, self.size.1 as f32 * POINTS);
        let alphas: Vec<u8> = self
            .shapes
            .iter()
            .filter_map(|s| s.paint().map(percent))
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        let state = |place: usize| Ref::new(8 + place as i32);

        let mut pdf = Pdf::new();
        pdf.catalog(catalog).pages(pages);
        pdf.pages(pages).kids([page]).count(1);
        let mut sheet = pdf.page(page);
        sheet.media_box(Rect::new(0.0, 0.0, width, height)).parent(pages).contents(contents);
        let mut resources = sheet.resources();
        resources.fonts().pair(Name(b"F"), font);
        let mut states = resources.ext_g_states();
        for (place, alpha) in alphas.iter().enumerate() {
            states.pair(Name(state_name(*alpha).as_bytes()), state(place));
        }
        states.finish();
        resources.finish();
        sheet.finish();
        for (place, alpha) in alphas.iter().enumerate() {
            let alpha = f32::from(*alpha) / 100.0;
            pdf.ext_graphics(state(place)).stroking_alpha(alpha).non_stroking_alpha(alpha);
        }
        write_font(&mut pdf, font, descriptor, file);

        let mut content = Content::new();
        // From drawn pixels with y downwards.
        content.transform([POINTS, 0.0, 0.0, -POINTS, 0.0, height]);
        content.set_line_cap(LineCapStyle::ButtCap).set_line_join(LineJoinStyle::RoundJoin);
        self.shapes.iter().for_each(|shape| shape.write_pdf(&mut content));
        pdf.stream(contents, &content.finish());
        pdf.finish()
    }
}

fn write_font(pdf: &mut Pdf, font: Ref, descriptor: Ref, file: Ref) {
    let mut dict = pdf.indirect(font).dict();
    dict.pair(Name(b"Type"), Name(b"Font"));
    dict.pair(Name(b"Subtype"), Name(b"TrueType"));
    dict.pair(Name(b"BaseFont"), FONT_NAME);
    dict.pair(Name(b"FirstChar"), 32);
    dict.pair(Name(b"LastChar"), 255);
    dict.insert(Name(b"Widths")).array().items(WIDTHS.map(i32::from));
    dict.pair(Name(b"FontDescriptor"), descriptor);
    dict.pair(Name(b"Encoding"), Name(b"WinAnsiEncoding"));
    dict.finish();
    // The values of the tables `head`, `hhea` and `OS/2` of the font, in thousandths of the size.
    pdf.font_descriptor(descriptor)
        .name(FONT_NAME)
        .flags(FontFlags::NON_SYMBOLIC)
        .bbox(Rect::new(-34.0, -242.0, 918.0, 947.0))
        .italic_angle(0.0)
        .ascent(928.0)
        .descent(-244.0)
        .cap_height(711.0)
        .stem_v(88.0)
        .font_file2(file);
    pdf.stream(file, FONT).pair(Name(b"Length1"), FONT.len() as i32);
}

/// Opacity of a colour, in percent.
fn percent(paint: Paint) -> u8 {
    (paint.alpha * 100.0).round().clamp(0.0, 100.0) as u8
}

fn state_name(alpha: u8) -> String {
    format!("A{alpha}")
}

impl Shape {
    fn write_pdf(&self, out: &mut Content) {
        let Some(paint) = self.paint() else { return };
        let (r, g, b) = paint.rgb;
        let [r, g, b] = [r, g, b].map(|part| f32::from(part) / 255.0);
        out.set_parameters(Name(state_name(percent(paint)).as_bytes()));
        match self {
            Self::Line { points, width, .. } => {
                let dashes = if paint.is_dashed() { DASHES.as_slice() } else { &[] };
                out.set_stroke_rgb(r, g, b).set_line_width(*width as f32);
                out.set_dash_pattern(dashes.iter().copied(), 0.0);
                path(points, out);
                out.stroke();
            }
            Self::Area { points, .. } => {
                out.set_fill_rgb(r, g, b);
                path(points, out);
                out.fill_nonzero();
            }
            Self::Box { from, to, .. } => {
                let size = ((to.0 - from.0) as f32, (to.1 - from.1) as f32);
                out.set_fill_rgb(r, g, b).rect(from.0 as f32, from.1 as f32, size.0, size.1).fill_nonzero();
            }
            Self::Dot { centre, radius, .. } => {
                let (x, y, k) = (centre.0 as f32, centre.1 as f32, *radius as f32);
                let c = CURVE * k;
                out.set_fill_rgb(r, g, b).move_to(x + k, y);
                out.cubic_to(x + k, y + c, x + c, y + k, x, y + k);
                out.cubic_to(x - c, y + k, x - k, y + c, x - k, y);
                out.cubic_to(x - k, y - c, x - c, y - k, x, y - k);
                out.cubic_to(x + c, y - k, x + k, y - c, x + k, y);
                out.fill_nonzero();
            }
            Self::Text { text, at, size, h, v, .. } => {
                let bytes: Vec<u8> = text.chars().map(encode).collect();
                let left = match h {
                    Align::Start => 0.0,
                    Align::Middle => -0.5,
                    Align::End => -1.0,
                } * width(&bytes, *size as f32);
                let y = at.1 as f32 + (baseline(*v) * size) as f32;
                out.set_fill_rgb(r, g, b).begin_text().set_font(Name(b"F"), *size as f32);
                out.set_text_matrix([1.0, 0.0, 0.0, -1.0, at.0 as f32 + left, y]);
                out.show(Str(&bytes)).end_text();
            }
            Self::Begin(_) | Self::End => {}
        }
    }
}

fn path(points: &[(i32, i32)], out: &mut Content) {
    for (i, &(x, y)) in points.iter().enumerate() {
        let (x, y) = (x as f32, y as f32);
        let _ = if i == 0 { out.move_to(x, y) } else { out.line_to(x, y) };
    }
}

/// A character in Windows code page 1252.
fn encode(c: char) -> u8 {
    match u32::from(c) {
        code @ (0x20..=0x7e | 0xa0..=0xff) => code as u8,
        _ => UPPER.chars().position(|upper| upper == c).map_or(b'?', |at| 128 + at as u8),
    }
}

/// The width of text in this size.
fn width(bytes: &[u8], size: f32) -> f32 {
    let thousandths: u32 = bytes.iter().map(|byte| u32::from(WIDTHS[usize::from(byte.max(&32) - 32)])).sum();
    thousandths as f32 * size / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::{Bar, bars};

    #[test]
    fn characters_have_their_place_in_the_code_page() {
        assert_eq!(
            "Aµ±×–…€Ÿ".chars().map(encode).collect::<Vec<_>>(),
            [65, 181, 177, 215, 150, 133, 128, 159]
        );
        assert_eq!("жλ\n".chars().map(encode).collect::<Vec<_>>(), [b'?'; 3]);
        assert_eq!(UPPER.chars().count(), 32);
    }

    #[test]
    fn text_is_text_in_a_font_that_the_document_holds() {
        let bar = Bar {
            label: "tcp (1)".into(),
            key: 0,
            value: 1.0,
            whisker: None,
            entitlement: Some(2.0),
            note: "1.00".into(),
        };
        let drawing = bars(&[bar], 2.0);
        let pdf = drawing.pdf();
        let has = |part: &[u8]| pdf.windows(part.len()).any(|window| window == part);
        assert!(pdf.starts_with(b"%PDF-") && pdf.ends_with(b"%%EOF"));
        // Parentheses delimit strings and are escaped, or balanced.
        assert!(has(b"(tcp (1)) Tj") || has(b"(tcp \\(1\\)) Tj"), "the label");
        assert!(has(b"/FontFile2") && has(FONT));
        // 320 CSS pixels are 240 points.
        assert!(has(b"/MediaBox [0 0 240 "));
        assert_eq!(pdf, drawing.pdf());
    }
}
