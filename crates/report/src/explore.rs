//! Interaction of figures in pages: values, zoom, legends that hide, contents, files, and links to rows of tables.
//!
//! Classic scripts without a build step, in one scope. A figure without data stays an image, and a page without a script stays
//! whole.

use crate::figure::inks;

/// The style of figures that scripts make interactive. It needs the variables `--card`, `--ink`, `--muted`, `--line` and
/// `--shade`.
pub const FIGURE_STYLE: &str = include_str!("explore/figure.css");
/// The style of what scripts add to pages of results.
const PAGE_STYLE: &str = include_str!("explore/page.css");

/// What all pages share, in the order in which the parts need each other.
const SHARED: [&str; 6] = [
    include_str!("explore/figure.js"),
    include_str!("explore/paint.js"),
    include_str!("explore/readout.js"),
    include_str!("explore/zoom.js"),
    include_str!("explore/legend.js"),
    include_str!("explore/start.js"),
];
/// What pages of results add.
const PAGE: [&str; 5] = [
    include_str!("explore/rows.js"),
    include_str!("explore/save.js"),
    include_str!("explore/contents.js"),
    include_str!("explore/playground.js"),
    include_str!("explore/page.js"),
];

/// The style of a page whose figures hold their data.
pub(crate) fn style() -> String {
    format!("{FIGURE_STYLE}{PAGE_STYLE}")
}

/// The script of a page whose figures hold their data.
pub(crate) fn script() -> String {
    let parts: String = SHARED.into_iter().chain(PAGE).map(squeezed).collect();
    format!("(() => {{\n{}\n{parts}}})();\n", inks())
}

/// The script of a page with figures of data that arrive: `explore.live` makes one. `inks` are the colours of
/// text, labels and grid as values of CSS.
#[must_use]
pub fn live_script([ink, muted, grid]: [&str; 3]) -> String {
    let parts: String = SHARED.into_iter().chain([include_str!("explore/live.js")]).map(squeezed).collect();
    format!(
        "const explore = (() => {{\nconst INKS = {{keys:[],ink:\"{ink}\",muted:\"{muted}\",grid:\"{grid}\",shade:\"none\",level:\"{ink}\"}};\n\
         {parts}return {{ live }};\n}})();\n"
    )
}

/// A script or a style sheet without indentation, empty lines and comment lines. No string in it may span lines.
#[must_use]
pub fn squeezed(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
    lines.flat_map(|line| [line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_readers_need_is_not_sent() {
        let text = "const a = {\n  // The first.\n  one: 1, // said\n\n  two: `//`,\n};\n";
        assert_eq!(squeezed(text), "const a = {\none: 1, // said\ntwo: `//`,\n};\n");
    }

    #[test]
    fn scripts_are_small_and_load_nothing() {
        let (page, live) = (script(), live_script(["black", "grey", "white"]));
        assert!(page.len() < 40_000 && live.len() < 32_000, "{} {}", page.len(), live.len());
        for text in [page, live] {
            assert!(!text.contains("</script") && !text.contains("http") && !text.contains("eval("));
            assert!(text.lines().all(|line| line.matches('`').count() % 2 == 0), "a string over lines");
        }
    }
}
