//! The catalogue of names for scenarios, as data and as text: disciplines, markers, TCP profiles and
//! algorithms, sources, topologies; and the experiments of papers.
//!
//! ```
//! use apportion::catalogue::{self, Section};
//!
//! let catalog = catalogue::standard();
//! let disciplines = catalogue::list(&catalog).into_iter().find(|list| list.section == Section::Disciplines).unwrap();
//! assert!(disciplines.entries.iter().any(|entry| entry.name == "fq_codel"));
//! println!("{}", catalogue::explain(&catalog, "fq_codel")?);
//! # Ok::<(), catalogue::UnknownName>(())
//! ```

use std::fmt::Write as _;

use apportion_core::param::{ByName as _, Entry, Kind, PARENT_KEY, Param, Preset, Role, Variant};
use apportion_core::system::Catalog;
use apportion_scenario::describe::{if_absent, sources, topologies};
use apportion_scenario::did_you_mean;
use apportion_scenario::quic::{self, QuicParams};
use apportion_scenario::tcp::{ALGORITHMS, ControlEntry, PROFILES, TcpParams};

pub use apportion_scenario::describe::{reference, schema};

/// A group of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// Values of `queue`: schedulers, buffer policies, whole systems, shapers and the isolation of hosts.
    Disciplines,
    /// Values of `mark` and `exchange`.
    Markers,
    /// Values of `tcp`, `quic` and `transport`: TCP profiles and algorithms, QUIC, stacks from outside.
    Tcp,
    /// Values of `source`.
    Sources,
    /// Values of `topology`.
    Topologies,
}

/// A titled list of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List {
    /// The section of the list; the lists of transports share one.
    pub section: Section,
    /// The title of the list, such as `Disciplines`.
    pub title: &'static str,
    /// The names, in the order of the catalogue.
    pub entries: Vec<Name>,
}

/// A name that scenarios can use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The name.
    pub name: String,
    /// The kind of the entry, such as `scheduler` or `buffer policy`; empty where the section implies it.
    pub role: &'static str,
    /// A description in one sentence.
    pub summary: String,
}

/// The catalogue of scenarios that set none: the entries of this project, and with the feature `stacks` the
/// transport stacks of other projects.
///
/// # Panics
/// If two entries have one name: a bug that every test finds.
#[must_use]
pub fn standard() -> Catalog {
    #[cfg_attr(not(feature = "stacks"), expect(unused_mut, reason = "nothing is registered"))]
    let mut catalog = Catalog::default();
    #[cfg(feature = "stacks")]
    apportion_stacks::register(&mut catalog).expect("each name is used once");
    catalog
}

/// Returns all names that scenarios with the queues of `catalog` can use.
#[must_use]
pub fn list(catalog: &Catalog) -> Vec<List> {
    let name =
        |name: &str, summary: &str| Name { name: name.to_owned(), role: "", summary: summary.to_owned() };
    let entry = |entry: &Entry| Name { role: role(entry.role), ..name(entry.name, entry.summary) };
    let described = |all: &[Variant]| all.iter().map(|one| name(one.name, one.doc)).collect();
    let list = |section, title, entries| List { section, title, entries };
    let marks = |entry: &&Entry| matches!(entry.role, Role::Marker | Role::Exchange);
    let others = |entry: &&Entry| !marks(entry) && entry.role != Role::Stack;
    let stacks: Vec<_> = catalog.stacks().map(entry).collect();
    let mut lists = vec![
        list(Section::Disciplines, "Disciplines", catalog.all().filter(others).map(entry).collect()),
        list(Section::Markers, "Markers and exchanges", catalog.all().filter(marks).map(entry).collect()),
        list(
            Section::Tcp,
            "TCP profiles",
            PROFILES.iter().map(|entry| name(entry.name, entry.summary)).collect(),
        ),
        list(
            Section::Tcp,
            "TCP algorithms",
            algorithms(catalog).map(|entry| name(entry.name, entry.summary)).collect(),
        ),
        list(Section::Tcp, "QUIC", vec![name(QUIC, QUIC_SUMMARY)]),
        list(Section::Sources, "Sources", described(sources())),
        list(Section::Topologies, "Topologies", described(topologies())),
    ];
    if !stacks.is_empty() {
        lists.push(list(Section::Tcp, "Transport stacks", stacks));
    }
    lists
}

const fn role(role: Role) -> &'static str {
    match role {
        Role::Scheduler => "scheduler",
        Role::Policy => "buffer policy",
        Role::System => "system",
        Role::Shaper => "shaper",
        Role::Isolation => "isolation",
        Role::Class => "class",
        Role::Marker => "marker",
        Role::Exchange => "exchange",
        Role::Stack => "transport stack",
    }
}

/// A name that is not in the catalogue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no explanation of `{name}`{guess}; `apportion list` prints the names, `apportion run` runs example \
     scenarios, `apportion reproduce` runs experiments, and docs/scenario.md has the keys of scenarios"
)]
pub struct UnknownName {
    name: String,
    guess: String,
}

/// Returns the description of everything called `name` as text: definition, source, usage and parameters.
///
/// # Errors
/// If nothing has this name, with the nearest existing one.
pub fn explain(catalog: &Catalog, name: &str) -> Result<String, UnknownName> {
    let mut parts: Vec<String> =
        catalog.all().filter(|entry| entry.name == name).map(|entry| discipline(catalog, entry)).collect();
    parts.extend(PROFILES.iter().filter(|entry| entry.name == name).map(|entry| {
        let heading = format!("{name}: TCP profile\n{}\nSource: {}\n", entry.summary, entry.source);
        heading + &tcp_parameters(entry.name)
    }));
    parts.extend(algorithms(catalog).filter(|entry| entry.name == name).map(algorithm));
    parts.extend((name == QUIC).then(quic));
    parts.extend(sources().iter().filter(|one| one.name == name).map(|one| keys(one, "source")));
    parts.extend(topologies().iter().filter(|one| one.name == name).map(|one| keys(one, "topology")));
    if parts.is_empty() {
        let lists = list(catalog);
        let names = lists.iter().flat_map(|list| &list.entries).map(|entry| entry.name.as_str());
        return Err(UnknownName { name: name.to_owned(), guess: did_you_mean(name, names) });
    }
    Ok(parts.join("\n"))
}

fn discipline(catalog: &Catalog, entry: &Entry) -> String {
    let mut out = format!("{}: {}\n{}\n", entry.name, role(entry.role), entry.summary);
    if entry.reference != "–" {
        let of = if entry.role == Role::Stack { "Source" } else { "Paper" };
        let _ = writeln!(out, "{of}: {}", entry.reference);
    }
    let _ = writeln!(out, "Cost: {}", entry.cost);
    if !entry.traits.limits.is_empty() {
        let _ = writeln!(out, "Limits: {}", entry.traits.limits);
    }
    let key = match entry.role {
        Role::Scheduler | Role::System => "queue = { kind",
        Role::Policy => &format!("queue = {{ kind = \"{}\", drop", scheduler_for(catalog, entry)),
        Role::Shaper => "queue = { kind = \"fifo\", shaper",
        Role::Isolation => "queue = { kind = \"drr\", isolate",
        Role::Class => "class",
        Role::Marker => "mark = { kind",
        Role::Exchange => "exchange = { kind",
        Role::Stack => "transport = { kind",
    };
    let required = entry.params.iter().filter(|param| param.is_required());
    let required: String =
        required.map(|param| format!(", {} = {}", param.name, param.kind.example())).collect();
    let value = if entry.role == Role::Isolation { "both" } else { entry.name };
    let _ = writeln!(out, "Use: {key} = \"{value}\"{required} }}");
    let policy = catalog.select(entry.name, None, None).ok().and_then(|selection| selection.drop);
    if let (Role::Scheduler, Some(policy)) = (entry.role, policy) {
        let _ = writeln!(
            out,
            "Buffer policy: {} unless `drop` names another; its parameters go into the same table.",
            policy.name
        );
    }
    if let Some(class) = entry.traits.classes {
        let known = class.params.iter().map(|param| param.name).filter(|name| *name != "others");
        let known = known.collect::<Vec<_>>().join(", ");
        let _ = writeln!(
            out,
            "Classes: class = {{ NAME = {{ .. }} }} with {}, {known}; flows belong to the class with the name of their customer, \
             others to the one with others = true.",
            PARENT_KEY
        );
    }
    if entry.params.is_empty() {
        return out + "\nIt has no parameters of its own.\n";
    }
    out += &parameters(entry);
    if let Some(class) = entry.traits.classes {
        out += "\nOf a class:\n";
        out += &parameters(class);
    }
    out
}

/// Formats the parameters of `entry` as a table with their descriptions.
fn parameters(entry: &Entry) -> String {
    // The paper's values have a column if one of them differs from the default.
    let values =
        |param: &Param| [Preset::Default, Preset::Paper].map(|preset| param.preset(preset).unwrap_or("-"));
    let differs = entry.params.iter().any(|param| values(param)[0] != values(param)[1]);
    let presets = if differs { 2 } else { 1 };
    let row = |head: [&str; 3], values: [&str; 2], source: &str| {
        [&head, &values[..presets], &[source]].concat().into_iter().map(str::to_owned).collect()
    };
    let mut rows: Vec<Vec<String>> =
        vec![row(["parameter", "symbol", "value"], ["default", "paper"], "from")];
    for param in entry.params {
        let kind = match param.kind {
            Kind::Discipline(place) => {
                Catalog::inside(place).map(|entry| entry.name).collect::<Vec<_>>().join(", ")
            }
            kind => kind.describe(),
        };
        rows.push(row([param.name, param.symbol, &kind], values(param), param.source));
    }
    let docs: Vec<Vec<String>> =
        entry.params.iter().map(|param| vec![param.name.to_owned(), param.doc.to_owned()]).collect();
    format!("\n{}\n{}", table(&rows), table(&docs))
}

/// Returns a scheduler for an example of `policy`: for a policy that divides the buffer among flows, the
/// first scheduler whose own policy does so too, otherwise the first one.
fn scheduler_for(catalog: &Catalog, policy: &Entry) -> &'static str {
    let divides = |entry: &Entry| entry.param("thresholds").is_some();
    let has_queues = |entry: &Entry| {
        let own = catalog.select(entry.name, None, None).ok().and_then(|selection| selection.drop);
        own.is_some_and(divides)
    };
    let mut schedulers = catalog.disciplines().filter(|entry| entry.role == Role::Scheduler);
    schedulers.find(|entry| has_queues(entry) == divides(policy)).map_or("fifo", |entry| entry.name)
}

fn tcp_parameters(profile: &str) -> String {
    let params = TcpParams::profile(profile);
    let value = |name: &str| match &params {
        Some(params) if params.uses(name) => params.get(name).unwrap_or_default(),
        _ => "no effect".to_owned(),
    };
    let mut rows = vec![["parameter", "here", "meaning", "value", "from"].map(str::to_owned).to_vec()];
    rows.extend(TcpParams::PARAMS.iter().map(|param| {
        let kind = param.kind.describe();
        vec![param.name.to_owned(), value(param.name), param.doc.to_owned(), kind, param.source.to_owned()]
    }));
    format!(
        "Use: tcp = \"{profile}\", or tcp = {{ profile = \"{profile}\", PARAMETER = VALUE }}\n\
         Here: the value in this profile, or \"no effect\" with its `sack_recovery`.\n\n{}",
        table(&rows)
    )
}

/// Returns the congestion controls of this project, and the registered ones.
fn algorithms(catalog: &Catalog) -> impl Iterator<Item = &'static ControlEntry> {
    ALGORITHMS.iter().chain(catalog.controls())
}

fn algorithm(entry: &ControlEntry) -> String {
    let ControlEntry { name, summary, reference, needs_rack, quic, .. } = entry;
    let (profile, others) = if *needs_rack {
        ("linux", "another profile with sack_recovery = \"rack\"")
    } else {
        ("rfc", "with another profile")
    };
    let quic = if *quic { format!("; or quic = \"{name}\"") } else { String::new() };
    format!(
        "{name}: TCP algorithm\n{summary}\nSource: {reference}\n\
         Use: tcp = {{ profile = \"{profile}\", algorithm = \"{name}\" }}, or {others}{quic}\n"
    )
}

/// The key `quic` of a flow, and the name of its entry.
const QUIC: &str = "quic";
const QUIC_SUMMARY: &str = "QUIC: packet numbers that never repeat, ACK frames with ranges, loss detection of RFC 9002, one stream; UDP for queues. Simulator \
                            only.";

fn quic() -> String {
    let params = QuicParams::default();
    let mut rows = vec![["parameter", "default", "meaning", "value", "from"].map(str::to_owned).to_vec()];
    rows.extend(QuicParams::PARAMS.iter().map(|param| {
        let value = params.get(param.name).unwrap_or_default();
        // TCP has too many algorithms to list here.
        let kind = if param.name == "algorithm" {
            quic::words().collect::<Vec<_>>().join(", ")
        } else {
            param.kind.describe()
        };
        vec![param.name.to_owned(), value, param.doc.to_owned(), kind, param.source.to_owned()]
    }));
    format!(
        "{QUIC}: transport\n{QUIC_SUMMARY}\nSource: RFC 9000, RFC 9002\n\
         Use: quic = \"cubic\", or quic = {{ PARAMETER = VALUE }}, in place of `tcp`\n\n{}",
        table(&rows)
    )
}

fn keys(one: &Variant, key: &str) -> String {
    // One of `file` and `mean`, or of `sizes` and `mean_size`, must be set, and all are optional.
    let either = [("video", "mean"), ("short_flows", "mean_size")];
    let must_be_set = |key: &&Param| key.is_required() || either.contains(&(one.name, key.name));
    let required = one.params.iter().filter(must_be_set);
    let required: String = required.map(|key| format!(", {} = {}", key.name, key.kind.example())).collect();
    let mut out =
        format!("{0}: {key}\n{1}\nUse: {key} = {{ kind = \"{0}\"{required} }}\n", one.name, one.doc);
    if !one.params.is_empty() {
        let mut rows = vec![["key", "for example", "default", ""].map(str::to_owned).to_vec()];
        rows.extend(one.params.iter().map(|key| {
            let default = match if_absent(key) {
                "" => "-",
                text => text,
            };
            vec![key.name.to_owned(), key.kind.example(), default.to_owned(), key.doc.to_owned()]
        }));
        let _ = write!(out, "\n{}", table(&rows));
    }
    out
}

/// Formats text in columns, each as wide as its widest cell.
#[must_use]
pub fn table(rows: &[Vec<String>]) -> String {
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
