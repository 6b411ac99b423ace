//! Transports in scenario files.
//!
//! TCP is the name of a profile or of a congestion control, or a table with `profile` and parameters. Unset
//! parameters are those of the first profile, the default. QUIC is the name of a congestion control or a
//! table with parameters. `transport` names a stack from outside.

use std::sync::Arc;

use apportion_core::param::{ByName as _, ParamError};
use apportion_core::stack::StackParams;
use apportion_core::system::Catalog;

use crate::keys::Fields;
use crate::model::Transport;
use crate::params::Params;
use crate::problem::{Problems, did_you_mean};
use crate::quic::{self, QuicParams};
use crate::selection::Part;
use crate::tcp::{ALGORITHMS, Algorithm, LossRecovery, PROFILES, TcpParams};
use crate::text::{Item, Value, join, quoted};

/// The key that names the transport of a flow, if there is one: a flow's own key replaces a
/// default.
pub(crate) fn key(fields: &Fields<'_>) -> Option<&'static str> {
    let keys = KEYS.into_iter().filter(|key| carrier(fields, key).is_some());
    keys.min_by_key(|key| fields.is_lent(key))
}

/// The keys that name the transport of a flow.
pub(crate) const KEYS: [&str; 3] = ["tcp", "quic", "transport"];

/// The value of `key`; `false` takes a default back.
fn carrier<'a>(fields: &Fields<'a>, key: &str) -> Option<&'a Item> {
    fields.item(key).filter(|item| !item.is_false())
}

/// The transport of a flow that sets one of [`KEYS`], or whose source needs one; `Some(None)` if the value cannot
/// be read. Every error is added to `problems`.
pub(crate) fn of_flow(
    catalog: &Catalog,
    fields: &Fields<'_>,
    source: &str,
    problems: &mut Problems,
) -> Option<Option<Transport>> {
    for lent in [false, true] {
        let mut keys =
            KEYS.into_iter().filter(|key| carrier(fields, key).is_some() && fields.is_lent(key) == lent);
        if let (Some(first), Some(second)) = (keys.next(), keys.next()) {
            let message = format!("`{first}` says what carries the flow; leave one of the two out");
            fields.refuse(second, message, problems);
            return Some(None);
        }
    }
    let Some((key, item)) = key(fields).and_then(|key| Some((key, carrier(fields, key)?))) else {
        return is_needed_by(source).then(|| Some(Transport::Tcp(default())));
    };
    let path = fields.path_of(key);
    Some(match key {
        "quic" => read_quic(catalog, item, &path, problems).map(Transport::Quic),
        "transport" => read_stack(catalog, item, &path, problems).map(Transport::Stack),
        _ => read_tcp(catalog, item, &path, problems).map(Transport::Tcp),
    })
}

/// Reads a TCP; every error is added to `problems`.
pub(crate) fn read_tcp(
    catalog: &Catalog,
    item: &Item,
    path: &str,
    problems: &mut Problems,
) -> Option<Arc<TcpParams>> {
    checked(resolve(catalog, item), path, problems)
}

/// Reads a QUIC; every error is added to `problems`.
pub(crate) fn read_quic(
    catalog: &Catalog,
    item: &Item,
    path: &str,
    problems: &mut Problems,
) -> Option<Arc<QuicParams>> {
    checked(resolve_quic(catalog, item), path, problems)
}

/// Reads a transport stack; every error is added to `problems`.
pub(crate) fn read_stack(
    catalog: &Catalog,
    item: &Item,
    path: &str,
    problems: &mut Problems,
) -> Option<Arc<StackParams>> {
    Part::Stack.read(catalog, item, path, |selection| catalog.stack(selection), problems).map(Arc::new)
}

fn checked<P>(
    (params, errors): (Option<P>, Vec<Refused<'_>>),
    path: &str,
    problems: &mut Problems,
) -> Option<Arc<P>> {
    for (item, key, message) in &errors {
        problems.add(item.place, key.map_or_else(|| path.to_owned(), |key| join(path, key)), message);
    }
    params.filter(|_| errors.is_empty()).map(Arc::new)
}

/// An item that was refused, its key inside the table, and the reason.
type Refused<'a> = (&'a Item, Option<&'a str>, String);

fn resolve<'a>(catalog: &Catalog, item: &'a Item) -> (Option<TcpParams>, Vec<Refused<'a>>) {
    let (word, key, table) = match &item.value {
        Value::Table(table) => (table.get("profile"), Some("profile"), Some(table)),
        _ => (Some(item), None, None),
    };
    let Some(mut params) = named(catalog, word, table.is_none()) else {
        let item = word.unwrap_or(item);
        let name = item.plain();
        let names = || PROFILES.iter().map(|entry| entry.name).chain(algorithms(catalog, table.is_none()));
        let known = names().collect::<Vec<_>>().join(", ");
        let what = if table.is_some() { "TCP profile" } else { "TCP profile or congestion control" };
        let message = format!("`{name}` is not a {what}{}; known: {known}", did_you_mean(&name, names()));
        return (None, vec![(item, key, message)]);
    };
    let base = params.clone();
    let entries = || table.into_iter().flat_map(|table| &table.entries);
    let mut refused = set_all(catalog, &mut params, entries().filter(|(key, _)| key != "profile"));
    if refused.is_empty() {
        let idle = |key: &str| !params.uses(key) && params.get(key) != base.get(key);
        let idle = entries().filter(|(key, _)| idle(key));
        refused.extend(idle.map(|(key, item)| (item, Some(key.as_str()), params.why_unused().to_owned())));
    }
    if let Some(item) = table.and_then(|table| table.get("ecn")).filter(|item| item.is_false())
        && params.offers_ecn()
    {
        let algorithm = params.get("algorithm").unwrap_or_default();
        refused.push((
            item,
            Some("ecn"),
            format!("`{algorithm}` works by marks, so it has ECN; leave `ecn` out"),
        ));
    }
    params.ecn = params.offers_ecn();
    (Some(params), refused)
}

fn resolve_quic<'a>(catalog: &Catalog, item: &'a Item) -> (Option<QuicParams>, Vec<Refused<'a>>) {
    let mut params = QuicParams::default();
    let Value::Table(table) = &item.value else {
        let name = item.plain();
        if quic_algorithms(catalog).any(|known| known == name)
            && set_algorithm(catalog, &mut params, &name).is_ok()
        {
            return (Some(params), Vec::new());
        }
        let known: Vec<_> = quic_algorithms(catalog).collect();
        let guess = did_you_mean(&name, known.iter().copied());
        let known = known.join(", ");
        let message = format!(
            "`{name}` is not a congestion control of QUIC here{guess}; known: {known}, or a table of parameters"
        );
        return (None, vec![(item, None, message)]);
    };
    let refused = set_all(catalog, &mut params, table.entries.iter());
    (Some(params), refused)
}

/// Sets parameters by their keys. Returns those that were refused.
fn set_all<'a, P: Params>(
    catalog: &Catalog,
    params: &mut P,
    entries: impl Iterator<Item = &'a (String, Item)>,
) -> Vec<Refused<'a>> {
    let mut pending: Vec<_> = entries.collect();
    // Some parameters bound each other, so that one can be set only after another: repeat until nothing
    // changes.
    loop {
        let mut refused = Vec::new();
        let count = pending.len();
        for entry in std::mem::take(&mut pending) {
            let (key, item) = entry;
            if let Err(error) = set(catalog, params, key, item) {
                pending.push(entry);
                refused.push((item, Some(key.as_str()), error.message));
            }
        }
        if refused.is_empty() || refused.len() == count {
            return refused;
        }
    }
}

/// The parameter of TCP and QUIC that names a congestion control.
const ALGORITHM: &str = "algorithm";

/// The profile of flows that need TCP and name none.
pub(crate) const DEFAULT: &str = PROFILES[0].name;

/// Whether a source of this kind has no rate of its own, so that it needs a transport with acknowledgements.
pub(crate) fn is_needed_by(source: &str) -> bool {
    matches!(source, "greedy" | "file" | "short_flows" | "web" | "probe" | "dash")
}

pub(crate) fn default() -> Arc<TcpParams> {
    Arc::new(standard())
}

fn standard() -> TcpParams {
    TcpParams::profile(DEFAULT).expect("the table has a default")
}

/// The TCP that `word` names: a profile, the default with a congestion control if `may_be_algorithm`, or the
/// default without a word.
fn named(catalog: &Catalog, word: Option<&Item>, may_be_algorithm: bool) -> Option<TcpParams> {
    let Some(word) = word else { return Some(standard()) };
    let word = word.as_text()?;
    TcpParams::profile(word).or_else(|| {
        algorithms(catalog, may_be_algorithm).find(|name| *name == word)?;
        let mut params = standard();
        set_algorithm(catalog, &mut params, word).ok()?;
        Some(params)
    })
}

/// Congestion controls that a word may name in place of a profile.
pub(crate) fn algorithms(catalog: &Catalog, allowed: bool) -> impl Iterator<Item = &'static str> {
    let all = ALGORITHMS.iter().chain(catalog.controls());
    // The default TCP has RACK, which does not work with Tahoe.
    all.filter(move |entry| allowed && entry.recovery != LossRecovery::Tahoe).map(|entry| entry.name)
}

/// The congestion controls that QUIC supports.
pub(crate) fn quic_algorithms(catalog: &Catalog) -> impl Iterator<Item = &'static str> {
    let registered = catalog.controls().filter(|entry| entry.quic).map(|entry| entry.name);
    quic::words().chain(registered)
}

/// Sets the congestion control to the one called `name`.
fn set_algorithm<P: Params>(catalog: &Catalog, params: &mut P, name: &str) -> Result<(), ParamError> {
    if let Some(control) = catalog.control(name.trim()) {
        return params.set_registered(control);
    }
    params.set_by_name(ALGORITHM, name).map_err(|mut error| {
        if Algorithm::named(name.trim()).is_none() {
            catalog.controls().for_each(|entry| error.message += &format!(", {}", entry.name));
        }
        error
    })
}

fn set<P: Params>(catalog: &Catalog, params: &mut P, key: &str, item: &Item) -> Result<(), ParamError> {
    if matches!(item.value, Value::Table(_) | Value::List(_) | Value::Date(_)) {
        let message = format!("`{item}` is {}, not the value of a parameter", item.what());
        return Err(ParamError::new(key, message));
    }
    if key == ALGORITHM {
        return set_algorithm(catalog, params, &item.plain());
    }
    params.set_by_name(key, &item.plain())
}

/// The TCP as keys and TOML values, with every parameter; `None` if it is refused or swept.
pub(crate) fn canonical(catalog: Option<&Catalog>, item: &Item) -> Option<Vec<(String, String)>> {
    let (params, errors) = resolve(catalog.unwrap_or(&Catalog::default()), item);
    let params = params.filter(|_| errors.is_empty())?;
    let word = item.as_table().map_or(Some(item), |table| table.get("profile"));
    let profile = word.and_then(Item::as_text).filter(|word| TcpParams::profile(word).is_some());
    let mut all = vec![("profile".to_owned(), quoted(profile.unwrap_or(PROFILES[0].name)))];
    all.extend(written(&params));
    Some(all)
}

/// The QUIC as keys and TOML values, with every parameter.
pub(crate) fn canonical_quic(catalog: Option<&Catalog>, item: &Item) -> Option<Vec<(String, String)>> {
    let (params, errors) = resolve_quic(catalog.unwrap_or(&Catalog::default()), item);
    let params = params.filter(|_| errors.is_empty())?;
    Some(written(&params).collect())
}

/// Every parameter as a key and its TOML value.
fn written<P: Params>(params: &P) -> impl Iterator<Item = (String, String)> {
    P::PARAMS.iter().filter_map(|param| {
        let text = params.get(param.name)?;
        let bare = text.parse::<u64>().is_ok() || text == "true" || text == "false";
        Some((param.name.to_owned(), if bare { text } else { quoted(&text) }))
    })
}
