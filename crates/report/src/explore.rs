//! Interaction of figures in pages: values, zoom, legends that hide, contents, files, and links to rows of tables.
//!
//! Classic scripts without a build step, in one scope. A figure without data stays an image, and a page without a script stays
//! whole.

use crate::figure::inks;

/// The style of what the scripts add.
pub(crate) const STYLE: &str = include_str!("explore/explore.css");

/// In the order in which they need each other.
const PARTS: [&str; 9] = [
    include_str!("explore/figure.js"),
    include_str!("explore/paint.js"),
    include_str!("explore/rows.js"),
    include_str!("explore/readout.js"),
    include_str!("explore/zoom.js"),
    include_str!("explore/legend.js"),
    include_str!("explore/save.js"),
    include_str!("explore/contents.js"),
    include_str!("explore/start.js"),
];

/// The script of a page whose figures hold their data.
pub(crate) fn script() -> String {
    let parts: String = PARTS.into_iter().chain([include_str!("explore/page.js")]).map(squeezed).collect();
    format!("(() => {{\n{}\n{parts}}})();\n", inks())
}

/// Without indentation, empty lines and comment lines. No string may span lines.
fn squeezed(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
    lines.flat_map(|line| [line, "\n"]).collect()
}
