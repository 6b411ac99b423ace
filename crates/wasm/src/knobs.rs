//! The values of a scenario's text that are worth changing by a slider or a list, with their places.

use apportion::Catalog;
use serde::Serialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Most knobs that are returned. Chosen: more than a page shows.
const MOST: usize = 200;

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A rate, such as `10Mbit`.
    Rate,
    /// A time, such as `20ms`.
    Time,
    /// The size of a buffer, such as `100p`.
    Size,
    /// A number of flows or hosts.
    Count,
    /// A discipline, or a list of them.
    Queue,
    /// A TCP profile, or a list of them.
    Tcp,
}

/// A value in the text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Knob {
    /// The path of its key, with the numbers of elements of lists: `link.l.queue[0].limit`.
    pub path: String,
    /// What it is.
    pub kind: Kind,
    /// The value as it is written; none for a key that is absent.
    pub value: Option<String>,
    /// The offset of the first byte that a new value replaces.
    pub from: usize,
    /// The offset after the last.
    pub to: usize,
    /// What replaces them, with `%` for the new value as it is written.
    pub template: String,
}

/// Returns the knobs of a scenario, in the order of the text; none for a text that is not TOML.
#[must_use]
pub fn knobs(catalog: &Catalog, text: &str) -> Vec<Knob> {
    let mut found = Finder { catalog, text, knobs: Vec::new() };
    if let Ok(table) = DeTable::parse(text) {
        found.table("", table.get_ref());
    }
    let mut knobs = found.knobs;
    knobs.sort_by_key(|knob| knob.from);
    knobs.truncate(MOST);
    knobs
}

struct Finder<'a> {
    catalog: &'a Catalog,
    text: &'a str,
    knobs: Vec<Knob>,
}

impl Finder<'_> {
    fn table(&mut self, path: &str, table: &DeTable<'_>) {
        for (key, value) in table {
            let path =
                if path.is_empty() { key.get_ref().to_string() } else { format!("{path}.{}", key.get_ref()) };
            self.value(&path, key.get_ref(), value);
        }
    }

    fn value(&mut self, path: &str, key: &str, value: &Spanned<DeValue<'_>>) {
        // A flow and a link may have any name.
        let is_name = matches!(path.rsplit_once('.'), Some(("flow" | "link", _)));
        match (key, value.get_ref()) {
            (_, DeValue::Table(table)) if is_name => self.table(path, table),
            ("queue", _) => {
                self.add(path, Kind::Queue, value);
                self.limits(path, value);
            }
            ("tcp", _) => self.add(path, Kind::Tcp, value),
            (_, DeValue::Table(table)) => self.table(path, table),
            ("rate", DeValue::String(text)) if is_plain(text) => self.add(path, Kind::Rate, value),
            ("delay" | "rtt" | "stop" | "measure_from", DeValue::String(text)) if is_plain(text) => {
                self.add(path, Kind::Time, value);
            }
            ("count" | "pairs", DeValue::Integer(_)) => self.add(path, Kind::Count, value),
            _ => {}
        }
    }

    /// The buffer sizes of a discipline, by its name or as a table, or of a list of them.
    fn limits(&mut self, path: &str, value: &Spanned<DeValue<'_>>) {
        match value.get_ref() {
            DeValue::Array(items) => {
                let each = items.iter().enumerate();
                each.for_each(|(at, item)| self.limits(&format!("{path}[{at}]"), item));
            }
            DeValue::String(name) if self.has_limit(name) => {
                let template = format!("{{ kind = \"{name}\", limit = % }}");
                self.push(&format!("{path}.limit"), Kind::Size, None, value, template);
            }
            DeValue::Table(table) => {
                let limit = table.iter().find(|(name, _)| name.get_ref() == "limit").map(|(_, limit)| limit);
                if let Some(limit) = limit.filter(|limit| limit.get_ref().is_str()) {
                    self.add(&format!("{path}.limit"), Kind::Size, limit);
                }
            }
            _ => {}
        }
    }

    fn has_limit(&self, discipline: &str) -> bool {
        let takes = |name: &str| {
            let entry = self.catalog.all().find(|entry| entry.name == name);
            entry.is_some_and(|entry| entry.param("limit").is_some())
        };
        let policy = self.catalog.select(discipline, None, None).ok().and_then(|selection| selection.drop);
        takes(discipline) || policy.is_some_and(|policy| takes(policy.name))
    }

    fn add(&mut self, path: &str, kind: Kind, value: &Spanned<DeValue<'_>>) {
        let text = self.text.get(value.span()).map(str::to_owned);
        self.push(path, kind, text, value, "%".to_owned());
    }

    fn push(
        &mut self,
        path: &str,
        kind: Kind,
        value: Option<String>,
        at: &Spanned<DeValue<'_>>,
        template: String,
    ) {
        let span = at.span();
        self.knobs.push(Knob {
            path: path.to_owned(),
            kind,
            value,
            from: span.start,
            to: span.end,
            template,
        });
    }
}

/// Whether a text is a quantity, which a slider can move, and no expression such as `2ms * i`.
fn is_plain(text: &str) -> bool {
    !text.contains(['*', '{', ' '])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<(String, Kind, Option<String>)> {
        let all = knobs(&Catalog::default(), text);
        all.into_iter().map(|knob| (knob.path, knob.kind, knob.value)).collect()
    }

    #[test]
    fn values_of_the_quickstart_can_be_changed() {
        let (_, text) = apportion::examples().find(|(name, _)| *name == "quickstart").unwrap();
        let all = of(text);
        let has = |path: &str, kind, value: &str| all.contains(&(path.into(), kind, Some(value.into())));
        assert!(has("topology.bottleneck.rate", Kind::Rate, "\"10Mbit\""), "{all:?}");
        assert!(has("topology.bottleneck.delay", Kind::Time, "\"10ms\""), "{all:?}");
        let queue = all.iter().find(|(path, ..)| path == "topology.bottleneck.queue").unwrap();
        assert!(
            queue.2.as_deref().is_some_and(|list| list.starts_with('[') && list.ends_with(']')),
            "{queue:?}"
        );
        assert!(has("topology.bottleneck.queue[3].limit", Kind::Size, "\"100p\""), "{all:?}");
        assert!(has("flow.bulk.count", Kind::Count, "10"), "{all:?}");
        assert!(has("flow.udp.source.rate", Kind::Rate, "\"5Mbit\""), "{all:?}");
        assert!(!all.iter().any(|(path, ..)| path == "topology.access.delay"), "an expression: {all:?}");
    }

    #[test]
    fn a_new_value_gives_a_scenario_with_it() {
        let text = "seed = 1\nstop = \"2s\"\nlink.l = { from = \"ä\", to = \"b\", rate = '2Mbit', delay = \"5ms\", queue = \"fifo\" }\n\
                    flow.x = { from = \"ä\", to = \"b\", tcp = \"rfc\", count = 2 }\n";
        let all = knobs(&Catalog::default(), text);
        let values = [
            (Kind::Rate, "\"5Mbit\""),
            (Kind::Time, "\"9s\""),
            (Kind::Queue, "\"codel\""),
            (Kind::Size, "\"7p\""),
            (Kind::Tcp, "\"linux\""),
            (Kind::Count, "3"),
        ];
        for (kind, value) in values {
            let knob = all.iter().find(|knob| knob.kind == kind).unwrap();
            let new = [&text[..knob.from], &knob.template.replace('%', value), &text[knob.to..]].concat();
            let scenario = apportion::Scenario::from_text(&new).unwrap();
            let shown = if kind == Kind::Count { "x.3" } else { value };
            let flows = scenario.points()[0].scenario.flows.iter().map(|flow| flow.name.clone());
            let canonical = scenario.canonical().to_owned() + &flows.collect::<String>();
            assert!(canonical.contains(shown), "{kind:?}: {canonical}");
        }
    }

    #[test]
    fn names_of_flows_and_links_are_no_keys() {
        let text =
            "[flow.tcp]\ncount = 2\n[link.queue]\nrate = \"2Mbit\"\n[flow.x]\ntcp = { profile = \"rfc\" }\n";
        let paths = of(text).into_iter().map(|(path, ..)| path);
        assert_eq!(paths.collect::<Vec<_>>(), ["flow.tcp.count", "link.queue.rate", "flow.x.tcp"]);
    }

    #[test]
    fn a_text_that_is_not_toml_has_none() {
        assert_eq!(of("[link"), []);
        assert_eq!(of("rate = 5"), []);
    }
}
