//! The frame around a figure, and elements that several figures share.

use std::fmt::Write as _;

use apportion_report::figure::{COLOURS, Drawing, Level, Panel, compose};
use apportion_report::html::{escape, table};

use crate::figure;
use crate::value::Length;

/// Bins of a curve. Chosen: a point for every four pixels; finer curves show the noise of single packets.
pub(super) const BINS: usize = 100;

/// A dashed line in a figure from `begin` to `end`.
pub(super) fn level(level: &figure::Level, begin: f64, end: f64) -> Level {
    let at = |time: Option<Length>| time.map(|time| time.0.as_secs_f64());
    Level { at: level.at, span: Some((at(level.from).unwrap_or(begin), at(level.to).unwrap_or(end))) }
}

/// A figure of the page.
pub(super) struct Card {
    pub(super) title: String,
    pub(super) caption: String,
    /// Names of the keys, in order.
    pub(super) names: Vec<String>,
    /// Meaning of dashed lines; none if there are none.
    pub(super) dashed: Option<&'static str>,
    pub(super) drawing: Drawing,
    /// Numbers drawn, for the folded table below the figure.
    pub(super) numbers: Option<(Vec<String>, Vec<Vec<String>>)>,
}

impl Card {
    pub(super) fn html(&self) -> String {
        let Self { title, caption, drawing, numbers, .. } = self;
        let numbers = numbers.as_ref().map_or_else(String::new, |(heads, rows)| {
            format!("<details><summary>Numbers</summary><div>{}</div></details>", table(heads, rows))
        });
        format!(
            "<section class=\"card{2}\"><h3>{0}</h3>\n{legend}<figure role=\"img\" aria-label=\"{0}\">\
             <figcaption>{1}</figcaption>\n{svg}</figure>{numbers}</section>\n",
            escape(title),
            escape(caption),
            if drawing.is_wide() { " wide" } else { "" },
            legend = self.legend(),
            svg = drawing.svg(),
        )
    }

    fn legend(&self) -> String {
        let mut out = String::from("<ul class=\"legend\">\n");
        for (key, name) in self.names.iter().enumerate() {
            let _ = writeln!(out, "<li><span class=\"k{}\"></span>{}</li>", key.min(COLOURS), escape(name));
        }
        if let Some(dashed) = self.dashed {
            let _ = writeln!(out, "<li><span class=\"level\"></span>{}</li>", escape(dashed));
        }
        out + "</ul>\n"
    }

    /// The figure alone, with title, caption and keys.
    pub(super) fn alone(self) -> Drawing {
        let dashed = self.dashed.map_or_else(String::new, |dashed| format!(" Dashed: {dashed}."));
        compose(&[Panel {
            title: self.title,
            note: self.caption + &dashed,
            legend: self.names.into_iter().enumerate().map(|(key, name)| (key.min(COLOURS), name)).collect(),
            drawing: self.drawing,
        }])
    }
}
