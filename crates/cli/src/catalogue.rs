//! `apportion list` and `apportion explain`: the catalogues as text.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::anyhow;
use apportion_core::param::{Entry, Kind, Role};
use apportion_core::system::catalog::{self, Selection};
use apportion_scenario::describe::{Described, sources, topologies};
use apportion_scenario::did_you_mean;
use apportion_scenario::tcp::{ALGORITHMS, AlgorithmEntry, PARAMS, PROFILES, TcpParams};

use crate::arguments::What;
use crate::reproduce::PAPERS;

/// Names with a line each.
pub fn list(what: Option<What>) -> anyhow::Result<String> {
    let mut out = String::new();
    let experiments = match what {
        Some(What::Experiments) => Some(experiments()?),
        // Away from a checkout there is nothing to list.
        None => experiments().ok(),
        Some(_) => None,
    };
    let experiments = experiments.map(|rows| (What::Experiments, "Experiments", rows));
    for (section, title, rows) in sections().into_iter().chain(experiments) {
        if what.is_some_and(|what| what != section) {
            continue;
        }
        if what.is_none() {
            let _ = writeln!(out, "{}{title}", if out.is_empty() { "" } else { "\n" });
        }
        let indent = if what.is_none() { "  " } else { "" };
        for line in table(&rows).lines() {
            let _ = writeln!(out, "{indent}{line}");
        }
    }
    Ok(out)
}

/// Experiments of the papers in the current folder, with a line each.
fn experiments() -> anyhow::Result<Vec<Vec<String>>> {
    let (papers, _) = apportion_reproduce::find(Path::new(PAPERS), &[])?;
    let experiments = papers.into_iter().flat_map(|paper| paper.content.experiments);
    Ok(experiments.map(|one| vec![one.id, one.source, one.summary]).collect())
}

fn sections() -> [(What, &'static str, Vec<Vec<String>>); 6] {
    let row = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect();
    let entries = |all: Vec<&Entry>| {
        all.iter().map(|entry| row(&[entry.name, role(entry.role), entry.summary])).collect()
    };
    let described = |all: Vec<Described>| all.iter().map(|one| row(&[one.name, one.doc])).collect();
    [
        (What::Disciplines, "Disciplines", entries(catalog::disciplines().collect())),
        (
            What::Markers,
            "Markers and exchanges",
            entries(catalog::all().filter(|entry| marks(entry)).collect()),
        ),
        (What::Tcp, "TCP profiles", PROFILES.iter().map(|entry| row(&[entry.name, entry.summary])).collect()),
        (
            What::Tcp,
            "TCP algorithms",
            ALGORITHMS.iter().map(|entry| row(&[entry.name, entry.summary])).collect(),
        ),
        (What::Sources, "Sources", described(sources())),
        (What::Topologies, "Topologies", described(topologies())),
    ]
}

const fn marks(entry: &Entry) -> bool {
    matches!(entry.role, Role::Marker | Role::Exchange)
}

const fn role(role: Role) -> &'static str {
    match role {
        Role::Scheduler => "scheduler",
        Role::Policy => "buffer policy",
        Role::System => "system",
        Role::Shaper => "shaper",
        Role::Marker => "marker",
        Role::Exchange => "exchange",
    }
}

/// Everything called `name`, with parameters.
pub fn explain(name: &str) -> anyhow::Result<String> {
    let mut parts: Vec<String> = catalog::all().filter(|entry| entry.name == name).map(discipline).collect();
    parts.extend(PROFILES.iter().filter(|entry| entry.name == name).map(|entry| {
        let heading = format!("{name}: TCP profile\n{}\nSource: {}\n", entry.summary, entry.source);
        heading + &tcp_parameters(entry.name)
    }));
    parts.extend(ALGORITHMS.iter().filter(|entry| entry.name == name).map(algorithm));
    parts.extend(sources().iter().filter(|one| one.name == name).map(|one| keys(one, "source")));
    parts.extend(topologies().iter().filter(|one| one.name == name).map(|one| keys(one, "topology")));
    if parts.is_empty() {
        let names: Vec<String> =
            sections().into_iter().flat_map(|(_, _, rows)| rows).map(|row| row[0].clone()).collect();
        let guess = did_you_mean(name, names.iter().map(String::as_str));
        return Err(anyhow!(
            "nothing is called `{name}`{guess}; `apportion list` prints all names, docs/scenario.md has the keys of \
             scenarios, and `apportion reproduce` runs experiments"
        ));
    }
    Ok(parts.join("\n"))
}

fn discipline(entry: &Entry) -> String {
    let mut out = format!("{}: {}\n{}\n", entry.name, role(entry.role), entry.summary);
    if entry.reference != "–" {
        let _ = writeln!(out, "Paper: {}", entry.reference);
    }
    let _ = writeln!(out, "Cost: {}", entry.cost);
    let key = match entry.role {
        Role::Scheduler | Role::System => "queue = { kind",
        Role::Policy => &format!("queue = {{ kind = \"{}\", drop", scheduler_for(entry)),
        Role::Shaper => "queue = { kind = \"fifo\", shaper",
        Role::Marker => "mark = { kind",
        Role::Exchange => "exchange = { kind",
    };
    let _ = writeln!(out, "Use: {key} = \"{}\" }}", entry.name);
    let policy = Selection::new(entry.name, None, None).ok().and_then(|selection| selection.drop);
    if let (Role::Scheduler, Some(policy)) = (entry.role, policy) {
        let _ = writeln!(
            out,
            "Buffer policy: {} unless `drop` names another; its parameters are set beside.",
            policy.name
        );
    }
    if entry.params.is_empty() {
        return out + "\nIt has no parameters of its own.\n";
    }
    let mut rows = vec![["parameter", "symbol", "value", "default", "from"].map(str::to_owned).to_vec()];
    for param in entry.params {
        rows.push(vec![
            param.name.to_owned(),
            param.symbol.to_owned(),
            value_of(param.kind),
            param.default.unwrap_or("-").to_owned(),
            param.source.to_owned(),
        ]);
    }
    let _ = write!(out, "\n{}\n", table(&rows));
    let docs: Vec<Vec<String>> =
        entry.params.iter().map(|param| vec![param.name.to_owned(), param.doc.to_owned()]).collect();
    out + &table(&docs)
}

/// A scheduler to show `policy` with: for one that divides the buffer among flows, the first whose own policy
/// does so too, else the first there is.
fn scheduler_for(policy: &Entry) -> &'static str {
    let divides = |entry: &Entry| entry.param("thresholds").is_some();
    let has_queues = |entry: &Entry| {
        let own = Selection::new(entry.name, None, None).ok().and_then(|selection| selection.drop);
        own.is_some_and(divides)
    };
    let mut schedulers = catalog::disciplines().filter(|entry| entry.role == Role::Scheduler);
    schedulers.find(|entry| has_queues(entry) == divides(policy)).map_or("fifo", |entry| entry.name)
}

fn value_of(kind: Kind) -> String {
    match kind {
        Kind::Limit => "packets or bytes".to_owned(),
        Kind::Packets => "packets".to_owned(),
        Kind::Bytes => "size".to_owned(),
        Kind::Span => "time".to_owned(),
        Kind::Rate => "rate".to_owned(),
        Kind::Ratio => "share".to_owned(),
        Kind::Number => "number".to_owned(),
        Kind::Count => "whole number".to_owned(),
        Kind::Switch => "true or false".to_owned(),
        Kind::Choice(words) => words.join(", "),
    }
}

fn tcp_parameters(profile: &str) -> String {
    let params = TcpParams::profile(profile);
    let value = |name: &str| params.as_ref().and_then(|params| params.get(name)).unwrap_or_default();
    let mut rows =
        vec![["parameter", "here", "what it decides", "value", "from"].map(str::to_owned).to_vec()];
    rows.extend(PARAMS.iter().map(|entry| {
        let kind = entry.unit.trim_end().to_owned();
        vec![entry.name.to_owned(), value(entry.name), entry.doc.to_owned(), kind, entry.source.to_owned()]
    }));
    format!(
        "Use: tcp = \"{profile}\", or tcp = {{ profile = \"{profile}\", PARAMETER = VALUE }}\n\n{}",
        table(&rows)
    )
}

fn algorithm(entry: &AlgorithmEntry) -> String {
    let AlgorithmEntry { name, summary, source } = entry;
    format!(
        "{name}: TCP algorithm\n{summary}\nSource: {source}\n\
         Use: tcp = {{ profile = \"rfc\", algorithm = \"{name}\" }}, or with another profile\n"
    )
}

fn keys(one: &Described, key: &str) -> String {
    let required = one.keys.iter().filter(|key| key.default == "required");
    let required: String = required.map(|key| format!(", {} = {}", key.name, key.example)).collect();
    let mut out =
        format!("{0}: {key}\n{1}\nUse: {key} = {{ kind = \"{0}\"{required} }}\n", one.name, one.doc);
    if !one.keys.is_empty() {
        let mut rows = vec![["key", "for example", "default", ""].map(str::to_owned).to_vec()];
        rows.extend(one.keys.iter().map(|key| {
            let default = if key.default.is_empty() { "-" } else { key.default };
            vec![key.name.to_owned(), key.example.clone(), default.to_owned(), key.doc.to_owned()]
        }));
        let _ = write!(out, "\n{}", table(&rows));
    }
    out
}

/// Columns padded to their widest cell.
fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |at: usize| {
        rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let cells: Vec<_> = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}")).collect();
        let _ = writeln!(out, "{}", cells.join("  ").trim_end());
    }
    out
}
