//! `apportion list`: names for scenarios, example scenarios and experiments, a line each.

use std::fmt::Write as _;

use apportion::Catalog;
use apportion::catalogue::{self, Section, table};

use crate::arguments::What;

/// Lists names, a line each.
pub fn list(catalog: &Catalog, what: Option<What>) -> anyhow::Result<String> {
    let mut lists: Vec<(What, &str, Vec<Vec<String>>)> = Vec::new();
    for list in catalogue::list(catalog) {
        let row = |name: catalogue::Name| {
            let role = Some(name.role.to_owned()).filter(|role| !role.is_empty());
            [Some(name.name), role, Some(name.summary)].into_iter().flatten().collect()
        };
        lists.push((What::from(list.section), list.title, list.entries.into_iter().map(row).collect()));
    }
    let examples = apportion::examples().map(|(name, text)| vec![name.to_owned(), title(text)]).collect();
    lists.push((What::Scenarios, "Example scenarios", examples));
    if what.is_none_or(|what| what == What::Experiments) {
        let all = apportion::experiments()?;
        let rows = all.into_iter().map(|one| vec![one.id, one.source, one.summary]).collect();
        lists.push((What::Experiments, "Experiments", rows));
    }
    let mut out = String::new();
    for (section, title, rows) in lists {
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

/// Title of a scenario.
fn title(text: &str) -> String {
    let value = text.lines().find_map(|line| line.strip_prefix("title = "));
    value.unwrap_or_default().trim_matches('"').to_owned()
}

impl From<Section> for What {
    fn from(section: Section) -> Self {
        match section {
            Section::Disciplines => Self::Disciplines,
            Section::Markers => Self::Markers,
            Section::Tcp => Self::Tcp,
            Section::Sources => Self::Sources,
            Section::Topologies => Self::Topologies,
        }
    }
}
