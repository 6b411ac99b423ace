//! The frame around a figure, and elements that several figures share.

use std::fmt::Write as _;

use apportion_report::figure::{COLOURS, Level};
use apportion_report::html::{escape, table};

use crate::figure;
use crate::value::Length;

/// Chosen: a point for every four pixels; finer curves show the noise of single packets.
pub(super) const BINS: usize = 100;

/// A dashed line in a figure from `begin` to `end`.
pub(super) fn level(level: &figure::Level, begin: f64, end: f64) -> Level {
    let at = |time: Option<Length>| time.map(|time| time.0.as_secs_f64());
    Level { at: level.at, span: Some((at(level.from).unwrap_or(begin), at(level.to).unwrap_or(end))) }
}

/// A figure of the page.
pub(super) struct Card<'a> {
    pub(super) title: &'a str,
    pub(super) caption: &'a str,
    pub(super) legend: String,
    pub(super) svg: String,
    /// Whether it has the full width of the page.
    pub(super) wide: bool,
    /// The drawn numbers, for the folded table below the figure.
    pub(super) numbers: Option<(Vec<String>, Vec<Vec<String>>)>,
}

impl Card<'_> {
    pub(super) fn html(&self) -> String {
        let Self { title, caption, legend, svg, wide, numbers } = self;
        let numbers = numbers.as_ref().map_or_else(String::new, |(heads, rows)| {
            format!("<details><summary>Numbers</summary><div>{}</div></details>", table(heads, rows))
        });
        format!(
            "<section class=\"card{2}\"><h3>{0}</h3>\n{legend}<figure role=\"img\" aria-label=\"{0}\">\
             <figcaption>{1}</figcaption>\n{svg}</figure>{numbers}</section>\n",
            escape(title),
            escape(caption),
            if *wide { " wide" } else { "" }
        )
    }
}

pub(super) fn card(title: &str, caption: &str, legend: &str, svg: &str) -> String {
    let (legend, svg) = (legend.to_owned(), svg.to_owned());
    Card { title, caption, legend, svg, wide: false, numbers: None }.html()
}

pub(super) fn legend(names: &[String], dashed: Option<&str>) -> String {
    let mut out = String::from("<ul class=\"legend\">\n");
    for (key, name) in names.iter().enumerate() {
        let _ = writeln!(out, "<li><span class=\"k{}\"></span>{}</li>", key.min(COLOURS), escape(name));
    }
    if let Some(dashed) = dashed {
        let _ = writeln!(out, "<li><span class=\"level\"></span>{}</li>", escape(dashed));
    }
    out + "</ul>\n"
}
