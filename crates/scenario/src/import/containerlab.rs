//! Impairments of containerlab: commands `containerlab tools netem set`, and the output of
//! `tools netem show`, as a table or as JSON. It sets netem on the egress of an interface of a node, with
//! delay, jitter, loss, rate and corruption.

use std::collections::BTreeMap;

use serde_json::Value;

use super::file::File;
use super::link::{Link, Pair, scenario};
use super::netem;
use super::report::Report;
use super::words::commands;

/// Maximum of packets in its netem, by its source.
const LIMIT: &str = "10000";

/// The settings of an interface: options and values of netem.
type Impairments = Vec<(&'static str, String)>;

/// Whether the file has commands of containerlab, or its output.
pub(super) fn is_one(file: &File) -> bool {
    let text = &file.text;
    let has_command = || commands(text).iter().any(|command| options(&command.words).is_some());
    is_json(text) && text.contains("\"packet_loss\"") || text.contains("Packet Loss") || has_command()
}

fn is_json(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

/// A scenario with a link for each interface.
pub(super) fn import(files: &[File], report: &mut Report) -> Option<String> {
    // Links by name, with their line and order.
    let mut found: BTreeMap<String, (usize, Link)> = BTreeMap::new();
    for file in files {
        report.in_file(&file.name);
        for Set { line, name, text, impairments } in sets(&file.text, report) {
            let Some(link) = link(line, &text, &impairments, report) else { continue };
            let order = found.len();
            match found.get_mut(&name) {
                Some((_, before)) => {
                    report.note(
                        line,
                        format!("it takes the place of what {name} had before: the last one counts"),
                    );
                    *before = link;
                }
                None => drop(found.insert(name, (order, link))),
            }
        }
    }
    let mut links: Vec<(usize, String, Link)> =
        found.into_iter().map(|(name, (order, link))| (order, name, link)).collect();
    links.sort_by_key(|(order, ..)| *order);
    let pairs: Vec<Pair> =
        links.into_iter().map(|(_, name, link)| Pair::new(&name, Some(link), None)).collect();
    (!pairs.is_empty()).then(|| scenario(&pairs))
}

/// The settings of an interface.
struct Set {
    line: u32,
    name: String,
    text: String,
    impairments: Impairments,
}

fn sets(text: &str, report: &mut Report) -> Vec<Set> {
    if is_json(text) {
        shown_as_json(text, report)
    } else if text.lines().any(|line| cells(line).is_some_and(|cells| cells.contains(&"Delay"))) {
        shown_as_table(text, report)
    } else {
        set_by_commands(text, report)
    }
}

/// The link of an interface; none if a value is refused.
fn link(line: u32, text: &str, impairments: &Impairments, report: &mut Report) -> Option<Link> {
    let mut words = Vec::new();
    let get = |wanted: &str| {
        impairments.iter().rev().find(|(option, _)| *option == wanted).map(|(_, value)| value.clone())
    };
    // Jitter is given after the delay.
    let is_zero = |value: &String| value.trim_end_matches(['s', 'm', 'u', 'n', 'µ', '%']).parse() == Ok(0.0);
    if let Some(delay) = get("delay").filter(|delay| !is_zero(delay)) {
        words.extend(["delay".to_owned(), delay]);
        words.extend(get("jitter").filter(|jitter| !is_zero(jitter)));
    } else if get("jitter").is_some_and(|jitter| !is_zero(&jitter)) {
        report.refuse(line, "jitter wants a delay, as containerlab says too; write --delay");
        return None;
    }
    for option in ["loss", "rate", "corrupt"] {
        let Some(value) = get(option).filter(|value| !is_zero(value)) else { continue };
        words.extend([option.to_owned(), if option == "rate" { format!("{value}kbit") } else { value }]);
    }
    if words.iter().any(|word| word == "rate") {
        words.extend(["limit".to_owned(), LIMIT.to_owned()]);
    }
    let mut link = Link { sources: vec![format!("{}: {text}", report.place(line))], ..Link::default() };
    netem::read(&words, line, &mut link, report).then_some(link)
}

/// The options of a command `tools netem set`; none for another command.
fn options(words: &[String]) -> Option<&[String]> {
    let is_program =
        |word: &String| ["containerlab", "clab"].contains(&word.rsplit('/').next().unwrap_or_default());
    let rest = &words[words.iter().take(4).position(is_program)? + 1..];
    // Options of the program itself may come first.
    let at = rest.windows(2).position(|two| two[0] == "tools" && two[1] == "netem")?;
    Some(&rest[at + 2..])
}

fn set_by_commands(text: &str, report: &mut Report) -> Vec<Set> {
    let mut sets = Vec::new();
    for command in commands(text) {
        let line = command.line;
        match options(&command.words).and_then(<[String]>::split_first) {
            Some((verb, words)) if verb == "set" => match by_flags(words) {
                Ok((name, impairments)) => sets.push(Set { line, name, text: command.text(), impairments }),
                Err(why) => report.refuse(line, why),
            },
            Some((verb, _)) if verb == "show" => (),
            Some((verb, _)) if verb == "reset" => {
                report.note(line, "`reset`: what was set is taken as it was before");
            }
            _ => {
                let short: String = command.text().chars().take(60).collect();
                report.note(line, format!("`{short}` is no command `tools netem`: left out"));
            }
        }
    }
    sets
}

/// The interface and its settings.
fn by_flags(words: &[String]) -> Result<(String, Impairments), String> {
    let (mut node, mut interface, mut impairments) = (None, None, Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let (flag, joined) = match word.split_once('=') {
            Some((flag, value)) => (flag, Some(value.to_owned())),
            None => (word.as_str(), None),
        };
        let value = joined
            .or_else(|| words.next().cloned())
            .ok_or_else(|| format!("`{flag}` wants a value behind it"))?;
        match flag {
            "-n" | "--node" => node = Some(value),
            "-i" | "--interface" => interface = Some(value),
            "--delay" => impairments.push(("delay", value)),
            "--jitter" => impairments.push(("jitter", value)),
            "--loss" => impairments.push(("loss", value)),
            "--rate" => impairments.push(("rate", value)),
            "--corruption" => impairments.push(("corrupt", value)),
            _ => {
                let known = "-n, -i, --delay, --jitter, --loss, --rate and --corruption";
                return Err(format!("there is no `{flag}` of `tools netem set`; it has {known}"));
            }
        }
    }
    let [node, interface] = [(node, "node"), (interface, "interface")]
        .map(|(value, what)| value.ok_or_else(|| format!("no {what} is named; write --{what}")));
    Ok((format!("{}-{}", node?, interface?), impairments))
}

/// The cells of a line of a table.
fn cells(line: &str) -> Option<Vec<&str>> {
    let inside = line.trim().strip_prefix(['|', '│'])?.strip_suffix(['|', '│'])?;
    Some(inside.split(['|', '│']).map(str::trim).collect())
}

/// The option of netem for a column or a key.
fn option(column: &str) -> Option<&'static str> {
    let column = column.to_ascii_lowercase().replace('_', " ");
    Some(match column.split(" (").next().unwrap_or_default() {
        "delay" => "delay",
        "jitter" => "jitter",
        "packet loss" => "loss",
        "rate" => "rate",
        "corruption" => "corrupt",
        _ => return None,
    })
}

fn shown_as_table(text: &str, report: &mut Report) -> Vec<Set> {
    let mut columns: Vec<Option<&'static str>> = Vec::new();
    let mut sets = Vec::new();
    for (line, row) in (1..).zip(text.lines()) {
        let Some(cells) = cells(row) else { continue };
        if cells.first().is_some_and(|cell| *cell == "Interface") {
            columns = cells.iter().map(|cell| option(cell)).collect();
            continue;
        }
        if cells.len() != columns.len() {
            report.refuse(
                line,
                format!(
                    "it has {} cells and the head {}; import the table as it was printed",
                    cells.len(),
                    columns.len()
                ),
            );
            continue;
        }
        let of_cell = |(column, cell): (&Option<&'static str>, &&str)| Some(((*column)?, (*cell).to_owned()));
        let impairments: Impairments = columns
            .iter()
            .zip(&cells)
            .filter_map(of_cell)
            .filter(|(_, cell)| cell != "N/A" && !cell.is_empty())
            .collect();
        push(&mut sets, line, cells[0], impairments);
    }
    sets
}

/// Keeps an interface with settings.
fn push(sets: &mut Vec<Set>, line: u32, interface: &str, impairments: Impairments) {
    let is_set = |(_, value): &(&str, String)| value.bytes().any(|byte| (b'1'..=b'9').contains(&byte));
    if impairments.iter().any(is_set) {
        // An alias may follow in parentheses.
        let name = interface.split(" (").next().unwrap_or_default().to_owned();
        sets.push(Set { line, name, text: interface.to_owned(), impairments });
    }
}

fn shown_as_json(text: &str, report: &mut Report) -> Vec<Set> {
    let nodes = match serde_json::from_str::<BTreeMap<String, Vec<BTreeMap<String, Value>>>>(text) {
        Ok(nodes) => nodes,
        Err(why) => {
            report.refuse(
                u32::try_from(why.line()).unwrap_or(1),
                format!("not what `tools netem show -f json` prints: {why}"),
            );
            return Vec::new();
        }
    };
    let mut sets = Vec::new();
    for (node, interfaces) in &nodes {
        for interface in interfaces {
            let name = interface.get("interface").and_then(Value::as_str).unwrap_or("unnamed");
            let of_key = |(key, value): (&String, &Value)| {
                let value = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
                Some((option(key)?, value)).filter(|(_, value)| !value.is_empty() && value != "null")
            };
            let impairments = interface.iter().filter_map(of_key).collect();
            push(&mut sets, 1, &format!("{node}-{name}"), impairments);
        }
    }
    sets
}
