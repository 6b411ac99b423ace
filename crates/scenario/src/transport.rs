//! TCP in scenario files: a profile's name, or a table with `profile` and parameters.

use std::sync::Arc;

use crate::problem::{Problems, did_you_mean};
use crate::tcp::{PARAMS, PROFILES, TcpParams};
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
    let example = "write for example \"rfc\"";
    let (profile, key, table) = match &item.value {
        Value::Table(table) => match table.get("profile") {
            Some(profile) => (profile, Some("profile"), Some(table)),
            None => return (None, vec![(item, Some("profile"), format!("missing; {example}"))]),
        },
        _ => (item, None, None),
    };
    let Some(mut params) = profile.as_text().and_then(TcpParams::profile) else {
        let name = profile.plain();
        let names = || PROFILES.iter().map(|entry| entry.name);
        let known = names().collect::<Vec<_>>().join(", ");
        let message =
            format!("`{name}` is not a TCP profile{}; known: {known}", did_you_mean(&name, names()));
        return (None, vec![(profile, key, message)]);
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
    let profile = item.as_table().map_or(Some(item), |table| table.get("profile"))?.as_text()?;
    let mut all = vec![("profile".to_owned(), quoted(profile))];
    for entry in PARAMS {
        let text = params.get(entry.name)?;
        let bare = text.parse::<u64>().is_ok() || text == "true" || text == "false";
        all.push((entry.name.to_owned(), if bare { text } else { quoted(&text) }));
    }
    Some(all)
}
