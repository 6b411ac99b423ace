//! A league as one self-contained HTML page. A script sorts and filters tables; without it they are whole, in the order of the
//! catalogue.

use std::fmt::Write as _;

use apportion_core::param::Role;
use apportion_core::system::Catalog;

use super::columns::{self, COSTS, Column, Tradeoff};
use super::{Cell, Entrant, League, Situation};
use crate::html::escape;
use crate::page::{explorable, reproduce};
use crate::playground;
use crate::statistics::number;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = concat!(include_str!("filter.js"), include_str!("sort.js"));
/// The roles of which a discipline of a league has one, as the catalogue names them.
const FAMILIES: [(Role, &str); 3] =
    [(Role::Scheduler, "scheduler"), (Role::Policy, "buffer policy"), (Role::System, "system")];

impl League {
    /// The league as HTML.
    #[must_use]
    pub fn page(&self) -> String {
        let mut out = self.header();
        out.push_str(&self.filter());
        out.push_str(&self.across());
        out.push_str("<h2 id=\"situations\">Situation by situation</h2>\n");
        out.push_str(&legend());
        for situation in &self.situations {
            out.push_str(&self.section(situation));
        }
        out.push_str(&self.costs());
        out.push_str(&reproduce(&self.command, &self.commit, &self.versions, MEANING));
        explorable("A league of disciplines", STYLE, &out, SCRIPT)
    }

    fn header(&self) -> String {
        let seeds = if self.seeds == 1 { "1 seed".to_owned() } else { format!("{} seeds", self.seeds) };
        let commit = match self.commit.as_str() {
            "" => String::new(),
            commit => format!(" · commit {}", escape(commit)),
        };
        let mut out = format!(
            "<h1>A league of disciplines</h1>\n<p class=\"sub\">{} · {} · {seeds}{commit}</p>\n\
             <p>Each discipline runs in each situation with its default parameters and the same buffer; queues mark where they can and flows \
             react to marks. There is no total score, since what matters differs from situation to situation: sort a table by the column \
             that matters to you. {}</p>\n<ol class=\"situations\">\n",
            count(self.disciplines.len(), "discipline"),
            count(self.situations.len(), "situation"),
            self.about_reports(),
        );
        for situation in &self.situations {
            let _ = writeln!(
                out,
                "<li><a href=\"#{}\">{}</a> {}</li>",
                anchor(situation),
                escape(&situation.title),
                escape(&situation.about)
            );
        }
        out + "</ol>\n"
    }

    /// Controls that select rows, situations and quantities, hidden until the script runs.
    fn filter(&self) -> String {
        let select = |label: &str, name: &str, options: String| {
            format!(
                "<label>{label}<select name=\"{name}\"><option value=\"\">all</option>{options}</select></label>\n"
            )
        };
        let option = |value: &str, text: &str| {
            format!("<option value=\"{}\">{}</option>", escape(value), escape(text))
        };
        let situations = self.situations.iter().map(|of| option(&anchor(of), &of.title));
        format!(
            "<form class=\"filter\" hidden aria-label=\"Filter\">\n<label>Discipline<input name=\"discipline\" type=\"search\" \
             placeholder=\"codel, pfd\" autocomplete=\"off\"/></label>\n{}{}{}<button type=\"reset\">Show all</button>\n\
             <output aria-live=\"polite\"></output>\n</form>\n",
            select("Family", "family", FAMILIES.map(|(_, name)| option(name, name)).concat()),
            select("Situation", "situation", situations.collect()),
            select("Metric", "metric", columns::across().map(|(name, _)| option(name, name)).concat()),
        )
    }

    /// The sentence about the reports of cells.
    fn about_reports(&self) -> &'static str {
        let mut cells = self.situations.iter().flat_map(|situation| columns::played(&situation.cells));
        match cells.any(|played| played.report.is_some()) {
            true => {
                "Numbers in the first tables and names in the tables of situations link to the reports of cells, which say why."
            }
            false => "The command at the end also writes a report of each cell, which says why.",
        }
    }

    /// A table for each quantity: disciplines down, situations across.
    fn across(&self) -> String {
        let mut out = String::from(
            "<h2 id=\"across\">Over all situations</h2>\n<p class=\"note\">Means over seeds ± 95 % intervals. A cell with –: the \
             discipline cannot run there; it leads to the reason. ~: phases decide it.</p>\n",
        );
        for (at, (heading, column)) in columns::across().into_iter().enumerate() {
            let columns: Vec<Option<Column>> = self.situations.iter().map(column).collect();
            let head = self
                .situations
                .iter()
                .map(|of| format!("<a href=\"#{}\">{}</a>", anchor(of), escape(&of.name)));
            let rows = self.disciplines.iter().enumerate().map(|(d, entrant)| {
                let cells = self.situations.iter().zip(&columns).map(|(situation, column)| {
                    situation
                        .cells
                        .get(d)
                        .map_or_else(String::new, |cell| show(situation, cell, column.as_ref(), true))
                });
                (entrant, escape(&entrant.name), cells.collect::<String>())
            });
            let open = if at == 0 { " open" } else { "" };
            let _ = writeln!(
                out,
                "<details class=\"matrix\"{open}><summary>{heading}</summary><div>\n{}</div></details>",
                table(head, rows)
            );
        }
        out
    }

    fn section(&self, situation: &Situation) -> String {
        let columns = columns::of(situation);
        let link = situation.link.as_ref().map_or_else(String::new, |link| {
            format!(" Use and delay are those of the link <code>{}</code>.", escape(link))
        });
        let mut out = format!(
            "<section class=\"situation\">\n<h3 id=\"{}\">{}</h3>\n<p>{}{link}</p>\n",
            anchor(situation),
            escape(&situation.title),
            escape(&situation.about)
        );
        let all = columns::tradeoffs(self, situation);
        if !all.is_empty() {
            out.push_str(&self.front(&all));
        }
        let played =
            self.disciplines.iter().zip(&situation.cells).filter(|(_, cell)| cell.played().is_some());
        let rows = played.map(|(entrant, cell)| {
            let cells: String =
                columns.iter().map(|column| show(situation, cell, Some(column), false)).collect();
            (entrant, led(cell, &entrant.name), cells)
        });
        out.push_str(&table(columns.iter().map(|column| escape(&column.heading)), rows));
        out.push_str(&self.empty(situation));
        out.push_str(&self.scenario(situation));
        out + "</section>\n"
    }

    /// The plane of delay and worst share, and the disciplines on its front.
    fn front(&self, all: &[Tradeoff]) -> String {
        let front: Vec<&Tradeoff> = all.iter().filter(|one| one.is_on_front).collect();
        let drawing =
            self.plane(all).of("worst share", &["others".to_owned(), "on the front".to_owned()]).html();
        let names: String = front.iter().map(|one| self.of_front(one)).collect();
        let label = "Worst share over queue delay; the Pareto front is listed beside it";
        format!(
            "<div class=\"front\"><figure class=\"card\" role=\"img\" aria-label=\"{label}\"><figcaption><b>Worst share</b> over queue \
             delay</figcaption>\n{drawing}</figure>\n<div><h4>Pareto front</h4>\n<p class=\"note\">No discipline has both less delay and a better \
             worst share.</p>\n<ul>\n{names}</ul></div></div>\n"
        )
    }

    fn of_front(&self, one: &Tradeoff) -> String {
        let name = self.disciplines.get(one.at).map_or("", |entrant| entrant.name.as_str());
        format!("<li>{} <small>{} ms, {}</small></li>\n", escape(name), number(one.delay), one.share)
    }

    /// The disciplines that cannot run in a situation, grouped by reason.
    fn empty(&self, situation: &Situation) -> String {
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for (entrant, cell) in self.disciplines.iter().zip(&situation.cells) {
            let Some(reason) = cell.reason() else { continue };
            match reasons.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, names)) => names.push(&entrant.name),
                None => reasons.push((reason, vec![&entrant.name])),
            }
        }
        let total: usize = reasons.iter().map(|(_, names)| names.len()).sum();
        let lines: String = reasons
            .iter()
            .map(|(reason, names)| {
                format!("<dt>{}</dt><dd>{}</dd>\n", escape(&names.join(", ")), escape(reason))
            })
            .collect();
        match total {
            0 => String::new(),
            _ => format!(
                "<details id=\"{}\"><summary>{total} cannot run</summary><div><dl class=\"reasons\">\n{lines}</dl></div></details>\n",
                why(situation)
            ),
        }
    }

    /// The scenario of a situation, with the place of the discipline as a variable.
    fn scenario(&self, situation: &Situation) -> String {
        let Some(around) = &situation.scenario else { return String::new() };
        let mut played =
            self.disciplines.iter().zip(&situation.cells).filter(|(_, cell)| cell.played().is_some());
        let seeds =
            played.find(|(entrant, _)| is_standard(entrant)).map_or_else(String::new, |(entrant, _)| {
                playground::seeds(&around.with(entrant), usize::try_from(self.seeds).unwrap_or(usize::MAX))
            });
        let marks = if around.marks { " data-marks=\"1\"" } else { "" };
        // HTML ignores a newline at the start.
        format!(
            "<details><summary>Scenario</summary><div><pre{seeds}{marks}>\n{}<var>discipline</var>{}</pre></div></details>\n",
            escape(&around.before),
            escape(&around.after)
        )
    }

    /// The table of disciplines and their costs.
    fn costs(&self) -> String {
        let head = COSTS.map(|(heading, _)| heading.to_owned()).into_iter();
        let head = head.chain(["Cost", "Needs to know", "What it does"].map(str::to_owned));
        let rows = self.disciplines.iter().map(|entrant| {
            let count = |count: Option<u64>| match count {
                Some(count) => format!("<td>{count}</td>"),
                None => "<td></td>".to_owned(),
            };
            let counts: String = COSTS.iter().map(|(_, of)| count(of(&entrant.counted))).collect();
            let needs = if entrant.needs.is_empty() { "nothing" } else { &entrant.needs };
            let words = |text: &str| format!("<td class=\"words\">{}</td>", escape(text));
            (
                entrant,
                with_queue(entrant),
                counts + &words(&entrant.cost) + &words(needs) + &words(&entrant.summary),
            )
        });
        format!(
            "<h2 id=\"costs\">Cost</h2>\n<p class=\"note\">Instructions on x86-64 to enqueue and dequeue a packet, with 1,000 and with 100,000 \
             flows, and bytes of memory per additional flow at the same backlog, where they were counted: <code>csfq</code> at the edge, \
             <code>hcsfq</code> in the core, <code>ramp</code> with real-rate flows. The order of growth is that of the catalogue.</p>\n{}",
            table(head, rows)
        )
    }
}

const MEANING: &str = "<h2 id=\"meaning\">What the numbers mean</h2>
<dl>
<dt>Share</dt><dd>Throughput over the entitlement of the flow: its weighted max-min fair share, guarantees included (or its share by
tickets or customers). Worst and best are over single flows, without finite transfers; the share of a group is over all its flows together.
A share above 1 takes what others leave.</dd>
<dt>Jain</dt><dd>(Σx)² / (n Σx²) of the shares, without finite transfers: 1 if all are equal.</dd>
<dt>R²</dt><dd>1 - Σ(throughput - entitlement)² / Σ(entitlement - mean entitlement)², where entitlements differ: the part of their variance
that throughput follows. 1 if all flows get their entitlement, about 0 if all get the same, negative if they get that of others.</dd>
<dt>Used</dt><dd>Bits transmitted over bits possible at the watched link with the longest queue delay.</dd>
<dt>Queue p50, p95, p99</dt><dd>Percentiles of the sojourn time in the queue of that link.</dd>
<dt>p95 of a group</dt><dd>One-way delay over the path, mean over the flows of the group; for finite transfers the completion time.</dd>
<dt>Stalled</dt><dd>The part of a video's time in which it stalls.</dd>
<dt>To ear, MOS</dt><dd>Mouth-to-ear delay of a call, and its mean opinion score by the E-model, 4.4 at best.</dd>
<dt>RPM</dt><dd>Round trips per minute of a small request.</dd>
<dt>Lost</dt><dd>Packets dropped or lost anywhere over packets sent. A flood that is held to its share loses the rest.</dd>
<dt>±</dt><dd>95 % confidence interval of the mean over seeds (Student). A single seed has none.</dd>
<dt>~</dt><dd>The same replications with every delay moved by 1 µs differ by more than chance: phases decide, not the discipline.</dd>
</dl>
";

fn legend() -> String {
    "<ul class=\"legend\">\n<li><span class=\"k1\"></span>on the Pareto front of delay and worst share</li>\n\
     <li><span class=\"k0\"></span>others</li>\n</ul>\n"
        .to_owned()
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

fn anchor(situation: &Situation) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    format!("s-{}", situation.name.chars().map(keep).collect::<String>())
}

/// The id of the reasons why disciplines cannot run in a situation.
fn why(situation: &Situation) -> String {
    format!("why-{}", anchor(situation))
}

/// A text that links to the page of a cell, if it has one.
fn led(cell: &Cell, text: &str) -> String {
    let text = escape(text);
    match cell.played().and_then(|played| played.report.as_ref()) {
        Some(path) => format!("<a href=\"{}\">{text}</a>", escape(path)),
        None => text,
    }
}

/// A cell of a table. If each cell of a row has another page, its number links there.
fn show(situation: &Situation, cell: &Cell, column: Option<&Column>, is_led: bool) -> String {
    let Some(played) = cell.played() else {
        return format!(
            "<td class=\"empty\"><a href=\"#{}\" aria-label=\"cannot run\">–</a></td>",
            why(situation)
        );
    };
    let Some(estimate) = column.and_then(|column| column.of(played)) else { return "<td></td>".to_owned() };
    let text = estimate.to_string();
    let (mean, interval) =
        text.split_once(" ± ").map_or((text.as_str(), None), |(mean, half)| (mean, Some(half)));
    let interval = interval.map_or_else(String::new, |half| format!("<small>± {half}</small>"));
    let phases = if played.depends_on_phases { "~" } else { "" };
    let mean = if is_led { led(cell, mean) } else { mean.to_owned() };
    format!("<td>{phases}{mean}{interval}</td>")
}

/// The name of a discipline with its queue, for links to the playground.
fn with_queue(entrant: &Entrant) -> String {
    let name = escape(&entrant.name);
    if !is_standard(entrant) {
        return name;
    }
    let marking = entrant
        .marking
        .as_ref()
        .map_or_else(String::new, |queue| format!(" data-marking=\"{}\"", escape(queue)));
    format!("<span data-queue=\"{}\"{marking}>{name}</span>", escape(&entrant.queue))
}

/// Whether a discipline is one of this project, and not registered by a program.
fn is_standard(entrant: &Entrant) -> bool {
    apportion_scenario::queue::from_text(&entrant.queue).is_ok()
}

/// Family of a discipline, by the first of its parts; empty if the catalogue does not have it.
fn family(entrant: &Entrant) -> &'static str {
    let first = entrant.name.split('+').next().unwrap_or_default();
    let role = Catalog::default().find(first).map(|entry| entry.role);
    FAMILIES.iter().find(|(of, _)| Some(*of) == role).map_or("", |(_, name)| name)
}

/// A table with a row for each discipline. Heads, names and cells are HTML.
fn table<'a>(
    head: impl IntoIterator<Item = String>,
    rows: impl IntoIterator<Item = (&'a Entrant, String, String)>,
) -> String {
    let head: String = head.into_iter().map(|cell| format!("<th scope=\"col\">{cell}</th>")).collect();
    let rows: String = rows
        .into_iter()
        .map(|(entrant, name, cells)| {
            let family = family(entrant);
            format!("<tr data-family=\"{family}\"><th scope=\"row\">{name}</th>{cells}</tr>\n")
        })
        .collect();
    format!(
        "<div class=\"scroll\"><table class=\"sortable\">\n<thead><tr><th scope=\"col\">Discipline</th>{head}</tr></thead>\n<tbody>\n\
         {rows}</tbody>\n</table></div>\n"
    )
}
