//! An imported link, and the scenario or gateway configuration made from it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use apportion_core::units::{Rate, Span};

use super::cake::Cake;
use super::file::comment_text;
use super::report::Report;
use super::units::{percent_text, variable};
use crate::gateway::interface;
use crate::text::{join, quoted};

/// The rate of a link if none is set. Chosen: that of most interfaces.
const UNSHAPED: Rate = Rate::from_bit(1_000_000_000);
/// The interface towards the inside, which no file here names.
pub(super) const INSIDE: &str = "lan0";

/// A delay that varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Jitter {
    pub max: Span,
    pub is_normal: bool,
    pub reorder: bool,
}

/// Losses, in per cent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Loss {
    #[default]
    None,
    Random(f64),
    /// Gilbert and Elliott: probabilities from good to bad and from bad to good, and of passing in bad and in
    /// good.
    Bursts {
        p: f64,
        r: f64,
        h: f64,
        k: f64,
    },
}

/// A queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Queue {
    #[default]
    Default,
    /// A queue as TOML.
    Text(String),
    Cake(Box<Cake>),
}

/// One direction of a link.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Link {
    /// Source lines, as comments.
    pub sources: Vec<String>,
    pub rate: Option<Rate>,
    pub delay: Span,
    pub jitter: Option<Jitter>,
    pub loss: Loss,
    pub queue: Queue,
    /// Overhead of the link layer per IP packet, in bytes.
    pub overhead: Option<u64>,
}

/// A link with both directions, as far as they are known.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    pub device: String,
    pub there: Option<Link>,
    pub back: Option<Link>,
}

impl Pair {
    /// A link between two nodes named after it.
    pub fn new(device: &str, there: Option<Link>, back: Option<Link>) -> Self {
        Self { device: device.to_owned(), there, back }
    }
}

/// Names for these devices in scenarios, all different.
fn names(pairs: &[Pair]) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let free = |pair: &Pair| {
        let name = Some(plain(&pair.device)).filter(|name| !name.is_empty());
        let name = name.unwrap_or_else(|| "link".to_owned());
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let mut candidates = std::iter::once(name.clone()).chain(numbered);
        let own = candidates.find(|name| !taken.contains(name)).unwrap_or(name);
        taken.insert(own.clone());
        own
    };
    pairs.iter().map(free).collect()
}

/// A name without characters that names of scenarios and commands cannot have.
fn plain(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let name: String = name.chars().map(|c| if is_plain(c) { c } else { '-' }).collect();
    name.trim_matches('-').to_owned()
}

impl Link {
    /// The entries of a scenario's table, besides its ends.
    fn entries(&self) -> String {
        let rate = self.rate.unwrap_or(UNSHAPED);
        let mut out = format!("rate = {}", quoted(&rate.to_string()));
        out += if self.rate.is_none() { " # none is set; write that of the interface\n" } else { "\n" };
        let _ = writeln!(out, "delay = {}", quoted(&self.delay.to_string()));
        if let Some(Jitter { max, is_normal, reorder }) = self.jitter {
            let distribution = if is_normal { "normal" } else { "uniform" };
            let _ = writeln!(
                out,
                "jitter = {{ max = \"{max}\", distribution = \"{distribution}\", reorder = {reorder} }}"
            );
        }
        match self.loss {
            Loss::None => (),
            Loss::Random(percent) => out += &format!("loss = {}\n", percent_text(percent)),
            Loss::Bursts { p, r, h, k } => {
                let [p, r, h, k] = [p, r, h, k].map(percent_text);
                let _ = writeln!(out, "loss = {{ p = {p}, r = {r}, h = {h}, k = {k} }}");
            }
        }
        match &self.queue {
            Queue::Default => (),
            Queue::Text(text) => out += &format!("queue = {text}\n"),
            Queue::Cake(cake) => out += &format!("queue = {}\n", cake.of_scenario(rate)),
        }
        out
    }

    fn comments(&self) -> String {
        self.sources.iter().map(|source| format!("# {}\n", comment_text(source))).collect()
    }
}

/// A scenario with these links, and a TCP flow over each direction that is shaped.
pub(super) fn scenario(pairs: &[Pair]) -> String {
    let mut out = "# One TCP flow crosses each direction below that is shaped; write your own in their place.\n\
                   # Linux counts the 14 bytes of an Ethernet header in rates; packets of scenarios have none.\n\
                   seed = 1\nstop = \"20s\"\nmeasure_from = \"5s\"\n"
        .to_owned();
    let names = names(pairs);
    for (Pair { there, back, .. }, name) in pairs.iter().zip(&names) {
        let [near, far] = ends(name);
        let forth = there.clone().unwrap_or_default();
        let _ = writeln!(out, "\n{}[{}]", forth.comments(), join("link", name));
        let _ = writeln!(out, "from = {}\nto = {}", quoted(&near), quoted(&far));
        out += &forth.entries();
        out += "watch = true\n";
        match back {
            Some(back) => {
                let _ = writeln!(out, "\n{}[{}]", back.comments(), join(&join("link", name), "back"));
                out += &back.entries();
                out += "watch = true\n";
            }
            None => {
                let _ = writeln!(
                    out,
                    "back = {{ rate = \"{}\", delay = \"0s\" }} # nothing shapes packets back",
                    forth.rate.unwrap_or(UNSHAPED).max(UNSHAPED)
                );
            }
        }
    }
    for (Pair { there, back, .. }, name) in pairs.iter().zip(&names) {
        let [near, far] = ends(name);
        if there.is_some() {
            out += &flow(name, &near, &far);
        }
        if back.is_some() {
            out += &flow(&format!("{name}-back"), &far, &near);
        }
    }
    out
}

/// The end nodes of a link.
fn ends(name: &str) -> [String; 2] {
    [format!("{name}-near"), format!("{name}-far")]
}

fn flow(name: &str, from: &str, to: &str) -> String {
    format!("\n[{}]\nfrom = {}\nto = {}\n", join("flow", name), quoted(from), quoted(to))
}

/// The configuration of a gateway with these directions; `line` names the interface, and notes on unsupported
/// settings refer to it.
pub(super) fn gateway(
    outside: &str,
    up: &Link,
    down: &Link,
    line: u32,
    report: &mut Report,
) -> Option<String> {
    let named = variable(outside).map_or_else(|| interface(outside), Err);
    let outside = report.or_refuse(line, named)?;
    let inside = if outside == INSIDE { "lan1" } else { INSIDE };
    report.note(line, format!("which interface is inside is said nowhere: {inside} stands for it"));
    if outside.contains("ppp") {
        report.note(line, format!(
            "{outside} has no frames of Ethernet, between two of which a gateway stands: write the device below it, and what PPPoE adds as `overhead`"
        ));
    }
    let mut out = format!(
        "inside = \"{inside}\" # write the interface towards the hosts\noutside = {}\nmetrics = \"127.0.0.1:9617\"\n",
        quoted(&outside)
    );
    for (way, link) in [("up", up), ("down", down)] {
        let _ = writeln!(out, "\n{}[{way}]", link.comments());
        out += &link.direction(line, report);
    }
    Some(out)
}

impl Link {
    /// The entries of `[up]` or `[down]` of a gateway.
    fn direction(&self, line: u32, report: &mut Report) -> String {
        let rate = self.rate.unwrap_or(UNSHAPED);
        let mut out = format!("rate = {}", quoted(&rate.to_string()));
        out += if self.rate.is_none() {
            " # none is set; write a little less than the link carries\n"
        } else {
            "\n"
        };
        if let Some(overhead) = self.overhead {
            let _ = writeln!(out, "overhead = \"{overhead}B\"");
        }
        match &self.queue {
            Queue::Default => (),
            Queue::Text(text) => out += &format!("queue = {text}\n"),
            Queue::Cake(cake) => out += &format!("queue = {}\n", cake.of_gateway(rate)),
        }
        if self.delay > Span::ZERO {
            let _ = writeln!(out, "delay = \"{}\"", self.delay);
        }
        match self.loss {
            Loss::None => (),
            Loss::Random(percent) => out += &format!("loss = {}\n", percent_text(percent)),
            Loss::Bursts { .. } => {
                report.note(line, "losses in bursts: a gateway loses packets at random alone");
            }
        }
        if self.jitter.is_some() {
            report.note(line, "jitter: a gateway delays all packets by the same time");
        }
        out
    }
}
