//! TCP in scenario files: the name of a profile or of a congestion control, or a table with `profile` and
//! parameters. What is not said is as in the first profile, the default.

use std::sync::Arc;

use crate::problem::{Problems, did_you_mean};
use crate::tcp::{ALGORITHMS, PARAMS, PROFILES, TcpParams};
use crate::text::{Item, Value, join, quoted};

/// Reads a TCP; every error is added to `problems`.
pub(crate) fn read(item: &Item, path: &str, problems: &mut Problems) -> Option<Arc<TcpParams>> {
    let (params, errors) = resolve(item);
    for (item, key, message) in &errors {
        problems.add(item.place, key.map_or_else(|| path.to_owned(), |key| join(path, key)), message);
    }
    params.filter(|_| errors.is_empty()).map(Arc::new)
}

/// An item that was refused, its key inside the table, and why.
type Refused<'a> = (&'a Item, Option<&'a str>, String);

fn resolve(item: &Item) -> (Option<TcpParams>, Vec<Refused<'_>>) {
    let (word, key, table) = match &item.value {
        Value::Table(table) => (table.get("profile"), Some("profile"), Some(table)),
        _ => (Some(item), None, None),
    };
    let Some(mut params) = named(word, table.is_none()) else {
        let item = word.unwrap_or(item);
        let name = item.plain();
        let names = || PROFILES.iter().map(|entry| entry.name).chain(algorithms(table.is_none()));
        let known = names().collect::<Vec<_>>().join(", ");
        let what = if table.is_some() { "TCP profile" } else { "TCP profile or congestion control" };
        let message = format!("`{name}` is not a {what}{}; known: {known}", did_you_mean(&name, names()));
        return (None, vec![(item, key, message)]);
    };
    let entries = table.into_iter().flat_map(|table| &table.entries);
    let mut pending: Vec<_> = entries.filter(|(key, _)| key != "profile").collect();
    // Some parameters bound each other, so that one can be set only after another: go round until nothing
    // moves.
    loop {
        let mut refused = Vec::new();
        let count = pending.len();
        for entry in std::mem::take(&mut pending) {
            let (key, item) = entry;
            if let Err(message) = set(&mut params, key, item) {
                pending.push(entry);
                refused.push((item, Some(key.as_str()), message));
            }
        }
        if refused.is_empty() || refused.len() == count {
            return (Some(params), refused);
        }
    }
}

/// The profile of flows that need TCP and name none.
pub(crate) const DEFAULT: &str = PROFILES[0].name;

/// Whether a source of this kind has no rate of its own, so that only TCP can send it.
pub(crate) fn is_needed_by(source: &str) -> bool {
    matches!(source, "greedy" | "file" | "short_flows" | "web" | "probe" | "dash")
}

/// The default TCP.
pub(crate) fn default() -> Arc<TcpParams> {
    Arc::new(standard())
}

fn standard() -> TcpParams {
    TcpParams::profile(DEFAULT).expect("the table has a default")
}

/// The TCP that `word` names: a profile, the default with a congestion control if `may_be_algorithm`, or the
/// default without a word.
fn named(word: Option<&Item>, may_be_algorithm: bool) -> Option<TcpParams> {
    let Some(word) = word else { return Some(standard()) };
    let word = word.as_text()?;
    TcpParams::profile(word).or_else(|| {
        algorithms(may_be_algorithm).find(|name| *name == word)?;
        let mut params = standard();
        params.set("algorithm", word).ok()?;
        Some(params)
    })
}

/// Congestion controls that a word may name in place of a profile.
pub(crate) fn algorithms(allowed: bool) -> impl Iterator<Item = &'static str> {
    // Tahoe has no selective acknowledgments, which the default TCP relies on.
    ALGORITHMS.iter().map(|entry| entry.name).filter(move |name| allowed && *name != "tahoe")
}

fn set(params: &mut TcpParams, key: &str, item: &Item) -> Result<(), String> {
    if matches!(item.value, Value::Table(_) | Value::List(_) | Value::Date(_)) {
        return Err(format!("`{item}` is {}, not the value of a parameter", item.what()));
    }
    params.set(key, &item.plain()).map_err(|message| {
        let names = || PARAMS.iter().map(|entry| entry.name);
        let known = names().any(|name| name == key);
        if known { message } else { format!("{message}{}", did_you_mean(key, names())) }
    })
}

/// The TCP as keys and TOML values, with every parameter; `None` if it is refused or swept.
pub(crate) fn canonical(item: &Item) -> Option<Vec<(String, String)>> {
    let (params, errors) = resolve(item);
    let params = params.filter(|_| errors.is_empty())?;
    let word = item.as_table().map_or(Some(item), |table| table.get("profile"));
    let profile = word.and_then(Item::as_text).filter(|word| TcpParams::profile(word).is_some());
    let mut all = vec![("profile".to_owned(), quoted(profile.unwrap_or(PROFILES[0].name)))];
    for entry in PARAMS {
        let text = params.get(entry.name)?;
        let bare = text.parse::<u64>().is_ok() || text == "true" || text == "false";
        all.push((entry.name.to_owned(), if bare { text } else { quoted(&text) }));
    }
    Some(all)
}
