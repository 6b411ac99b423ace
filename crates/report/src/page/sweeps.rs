//! The figures of a sweep in the report.

use std::fmt::Write;

use crate::figure::{Drawing, Panel};
use crate::html::escape;
use crate::panels::{Point, SweepPanels, sweep_panels};
use crate::run_results::RunResults;

/// Maximum bytes of figures. Chosen: leaves more than half of the page to details of points.
const BUDGET: usize = 500_000;

/// A figure for each quantity, and group or link, over the parameters of the sweep; empty without a sweep.
pub(super) fn section(run: &RunResults) -> String {
    let points = run.points.iter();
    let points: Vec<Point<'_>> =
        points.map(|point| Point { settings: &point.settings, metrics: &point.summary().metrics }).collect();
    let SweepPanels { panels, left_out, are_heat_maps } = sweep_panels(&points, None);
    if panels.is_empty() {
        return String::new();
    }
    let mut cards = String::new();
    let mut drawn = 0;
    for panel in &panels {
        let card = card(panel);
        if cards.len() + card.len() > BUDGET {
            break;
        }
        cards.push_str(&card);
        drawn += 1;
    }
    let marks = match (are_heat_maps, run.seeds.len()) {
        (true, _) => ".",
        (false, 0 | 1) => ". Dashed: 1.",
        (false, _) => {
            "; thin lines: 95 % intervals, with a triangle where they go on beyond the figure. Dashed: 1."
        }
    };
    let mut out = format!(
        "<h2 id=\"sweep\">Over the parameters</h2>\n\
         <p class=\"note\">Means over seeds{marks} Each quantity has one scale.</p>\n\
         <div class=\"plots\">\n{cards}</div>\n"
    );
    if drawn < panels.len() || left_out > 0 {
        let _ = writeln!(
            out,
            "<p class=\"note\">{drawn} of {} figures are shown{}; the tables <code>flows</code> and <code>links</code> hold \
             all points.</p>",
            panels.len(),
            if left_out > 0 {
                format!(", without {left_out} combinations of parameters")
            } else {
                String::new()
            }
        );
    }
    out
}

/// A panel of the page.
pub(crate) fn card(panel: &Panel) -> String {
    let note = if panel.note.is_empty() { String::new() } else { format!("<br/>{}", escape(&panel.note)) };
    let keys: String = panel
        .legend
        .iter()
        .map(|(key, name)| format!("<li><span class=\"k{key}\"></span>{}</li>\n", escape(name)))
        .collect();
    let keys = if keys.is_empty() { keys } else { format!("<ul class=\"legend\">\n{keys}</ul>\n") };
    let title = escape(&panel.title);
    format!(
        "<figure class=\"card{}\" role=\"img\" aria-label=\"{title}\"><figcaption><b>{title}</b>{note}</figcaption>\n{keys}{}</figure>\n",
        width_class(&panel.drawing),
        framed(&panel.drawing)
    )
}

/// The class of a card that holds this drawing.
const fn width_class(drawing: &Drawing) -> &'static str {
    if drawing.is_wide() { " wide" } else { "" }
}

/// The drawing; a wide one scrolls if there is no room for it.
fn framed(drawing: &Drawing) -> String {
    if drawing.is_wide() {
        format!("<div class=\"scroll\" style=\"--natural:{}px\">{}</div>\n", drawing.width(), drawing.html())
    } else {
        drawing.html()
    }
}
