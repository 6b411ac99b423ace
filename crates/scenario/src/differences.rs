//! Differences between the texts of two scenarios, key by key.

use std::collections::BTreeMap;

use crate::problem::Problems;
use crate::text::{self, Item, Table, Value, join};

/// A key that two scenarios set to different values, or that one of them lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The path, for example `topology.bottleneck.queue[2].limit`.
    pub path: String,
    /// The value in the first scenario; none if it has no such key.
    pub from: Option<String>,
    /// The value in the second scenario; none if it has no such key.
    pub to: Option<String>,
}

/// The keys in which two [canonical](crate::Suite::canonical) texts differ, except titles: in the order of
/// the first, then keys that only the second has. Tables in lists are compared by their positions. A text
/// that is not TOML has no keys.
#[must_use]
pub fn differences(from: &str, to: &str) -> Vec<Difference> {
    let [from, to] = [from, to].map(|text| {
        let mut leaves = Vec::new();
        add_table(&text::parse(text, &mut Problems::default()), "", &mut leaves);
        leaves.retain(|(path, _)| path != "title");
        leaves
    });
    let [before, after]: [BTreeMap<&String, &String>; 2] =
        [&from, &to].map(|leaves| leaves.iter().map(|(path, value)| (path, value)).collect());
    let added = to.iter().filter(|(path, _)| !before.contains_key(path));
    let all = from.iter().chain(added).map(|(path, _)| Difference {
        path: path.clone(),
        from: before.get(path).map(|value| (*value).clone()),
        to: after.get(path).map(|value| (*value).clone()),
    });
    all.filter(|difference| difference.from != difference.to).collect()
}

fn add_table(table: &Table, path: &str, leaves: &mut Vec<(String, String)>) {
    for (key, item) in &table.entries {
        add(item, join(path, key), leaves);
    }
}

fn add(item: &Item, path: String, leaves: &mut Vec<(String, String)>) {
    match &item.value {
        Value::Table(table) => add_table(table, &path, leaves),
        Value::List(items) if items.iter().any(|item| item.as_table().is_some()) => {
            for (number, item) in (1..).zip(items) {
                add(item, format!("{path}[{number}]"), leaves);
            }
        }
        _ => leaves.push((path, item.plain())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ_by_value_or_are_in_one_alone() {
        let from = "title = \"a\"\nseed = 1\n[link.x]\nrate = \"5Mbit\"\nqueue = [\"fifo\", { kind = \"red\", limit = \"9p\" }]\nloss = [0.1, 0.2]\n";
        let to = "title = \"b\"\nseed = 1\n[link.x]\nrate = \"6Mbit\"\nqueue = [\"fifo\", { kind = \"red\", limit = \"8p\" }]\n[link.y]\nrate = \"1Mbit\"\n";
        let all: Vec<_> = differences(from, to)
            .into_iter()
            .map(|of| format!("{}: {} {}", of.path, of.from.unwrap_or_default(), of.to.unwrap_or_default()))
            .collect();
        assert_eq!(
            all,
            [
                "link.x.rate: 5Mbit 6Mbit",
                "link.x.queue[2].limit: 9p 8p",
                "link.x.loss: [0.1, 0.2] ",
                "link.y.rate:  1Mbit",
            ]
        );
        assert_eq!(differences(from, from), []);
        assert_eq!(differences("no toml", "seed = 1").len(), 1);
    }
}
