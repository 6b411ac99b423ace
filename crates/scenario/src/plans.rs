//! Plans of customers: a file with a tree of sites, access points and customers, their addresses and their rates, as internet
//! service providers keep it. The classes of a queue `htb` are made from it, and a gateway finds the customer of a packet by its inside
//! address.
//!
//! ```csv
//! name,   parent, addresses,                    down,     up,      down_min, up_min
//! site,   ,       ,                             1Gbit,    200Mbit, ,
//! mast,   site,   ,                             300Mbit,  60Mbit,  ,
//! smith,  mast,   192.0.2.10 2001:db8:10::/48,  100Mbit,  20Mbit,  10Mbit,   2Mbit
//! others, site,   ,                             5Mbit,    1Mbit,   ,
//! ```
//!
//! `down` and `up` are ceilings, by default those of the parent; `down_min` and `up_min` are rates that are
//! assured while all want more. The rest of a parent's assured rate is assured to children without such a
//! value, in proportion to their ceilings. `others` takes flows without a customer.
//!
//! Cost: O(nodes) for a file, besides sorting names.

mod differences;
mod warnings;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use apportion_core::packet::MAX_CUSTOMERS;
use apportion_core::param::CLASS_KEY;
use apportion_core::units::Rate;

use crate::direction::Direction;
use crate::files::Files;
use crate::gateway::classifier::Prefix;
use crate::problem::{Place, Problems, did_you_mean};
use crate::text::{Item, Table, Value, join};

pub(crate) use differences::PlanChange;
pub(crate) use warnings::Lowered;

/// The key that names the file, and in a queue the direction whose rates its classes use.
pub(crate) const KEY: &str = "plans";

/// The node that takes flows without a customer.
const OTHERS: &str = "others";

const COLUMNS: [&str; 7] = ["name", "parent", "addresses", "down", "up", "down_min", "up_min"];

/// Rates of a node in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Rates {
    /// The rate assured while all want more.
    assured: Rate,
    ceiling: Rate,
}

/// Rates of a node in one direction, as written in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Terms {
    ceiling: Option<Rate>,
    least: Option<Rate>,
}

/// A site, an access point, or a customer.
#[derive(Clone, Debug, PartialEq)]
struct Node {
    name: String,
    parent: Option<usize>,
    prefixes: Vec<Prefix>,
    /// Written rates by [`Direction`].
    terms: [Terms; 2],
    /// Rates by [`Direction`].
    rates: [Rates; 2],
}

/// The tree of a file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plans {
    nodes: Vec<Node>,
}

/// A line of the file, its cells by [`COLUMNS`]; none for empty cells.
struct Row {
    line: u64,
    cells: [Option<String>; COLUMNS.len()],
}

impl Row {
    fn cell(&self, column: &str) -> Option<&str> {
        let at = COLUMNS.iter().position(|known| *known == column)?;
        self.cells[at].as_deref()
    }

    fn rate(&self, column: &str) -> Result<Option<Rate>, String> {
        let Some(text) = self.cell(column) else { return Ok(None) };
        match text.parse::<Rate>() {
            Ok(rate) if rate > Rate::ZERO => Ok(Some(rate)),
            Ok(_) => Err(self.wrong(column, "a rate is above 0; write for example 10Mbit")),
            Err(why) => Err(self.wrong(column, &why.to_string())),
        }
    }

    fn wrong(&self, column: &str, why: &str) -> String {
        format!("line {}, {column}: {why}", self.line)
    }
}

/// The lines of the file.
fn rows(text: &str) -> Result<Vec<Row>, Vec<String>> {
    let text = &*unpadded(text);
    let mut reader =
        csv::ReaderBuilder::new().trim(csv::Trim::All).comment(Some(b'#')).from_reader(text.as_bytes());
    let fail = |why: &csv::Error| {
        let line = why.position().map_or(1, csv::Position::line);
        vec![format!("line {line}: it has not as many cells as the first line, or is not CSV ({why})")]
    };
    let header = reader.headers().map_err(|why| fail(&why))?.clone();
    let mut places = [None; COLUMNS.len()];
    for (at, column) in header.iter().enumerate() {
        if header.len() == 1 && column.contains([';', '\t']) {
            let message = "line 1: the cells are not separated by commas; write name,parent,addresses,down,up, and save \
                           a table of an office program as CSV with commas";
            return Err(vec![message.to_owned()]);
        }
        let Some(known) = COLUMNS.iter().position(|known| *known == column) else {
            let guess = did_you_mean(column, COLUMNS);
            return Err(vec![format!(
                "line 1: there is no column `{column}`{guess}; known: {}",
                COLUMNS.join(", ")
            )]);
        };
        places[known] = Some(at);
    }
    if let Some(missing) = ["name", "down", "up"].into_iter().find(|name| {
        COLUMNS.iter().position(|known| known == name).is_none_or(|known| places[known].is_none())
    }) {
        return Err(vec![format!(
            "line 1: a column `{missing}` is missing; the first line names the columns"
        )]);
    }
    let mut rows = Vec::new();
    let mut lines = Lines { text, at: 0, line: 1 };
    for record in reader.records() {
        let record = record.map_err(|why| fail(&why))?;
        let cell = |at: Option<usize>| record.get(at?).filter(|text| !text.is_empty()).map(ToOwned::to_owned);
        let line = record.position().map_or(0, |position| lines.of_record(position.byte()));
        rows.push(Row { line, cells: places.map(cell) });
    }
    Ok(rows)
}

/// The text without blanks before cells, because a quote after a blank would not begin a cell.
fn unpadded(text: &str) -> String {
    let (mut is_start, mut is_quoted) = (true, false);
    let is_kept = |c: &char| {
        let is_padding = *c == ' ' && is_start && !is_quoted;
        is_quoted = *c != '\n' && is_quoted ^ (*c == '"');
        is_start = is_padding || matches!(c, ',' | '\n');
        !is_padding
    };
    text.chars().filter(is_kept).collect()
}

/// Counts lines up to records, which come in the order of the text.
struct Lines<'a> {
    text: &'a str,
    at: usize,
    line: u64,
}

impl Lines<'_> {
    /// The line of the record that begins at this offset, after any comments and empty lines there.
    fn of_record(&mut self, offset: u64) -> u64 {
        let to = usize::try_from(offset).unwrap_or(usize::MAX).min(self.text.len());
        self.line +=
            self.text.as_bytes()[self.at.min(to)..to].iter().filter(|byte| **byte == b'\n').count() as u64;
        self.at = to;
        let is_skipped = |line: &&str| line.trim().is_empty() || line.starts_with('#');
        let rest = self.text.get(to..).unwrap_or_default();
        self.line + rest.lines().take_while(is_skipped).count() as u64
    }
}

impl Plans {
    /// Reads a file.
    ///
    /// # Errors
    /// All problems of the file.
    pub(crate) fn read(text: &str) -> Result<Self, Vec<String>> {
        let rows = rows(text)?;
        if rows.is_empty() || rows.len() > MAX_CUSTOMERS {
            return Err(vec![format!("it has {} nodes; 1 to {MAX_CUSTOMERS} are supported", rows.len())]);
        }
        let mut wrong = Vec::new();
        let mut by_name: BTreeMap<&str, usize> = BTreeMap::new();
        for (at, row) in rows.iter().enumerate() {
            let name = row.cell("name").unwrap_or_default();
            if name.is_empty() || name.contains('.') || name.contains(char::is_control) {
                let why = format!(
                    "`{}` cannot name a class; write a name without points or line breaks",
                    name.escape_debug()
                );
                wrong.push(row.wrong("name", &why));
            }
            if let Some(first) = by_name.insert(name, at) {
                wrong.push(row.wrong("name", &format!("line {} is `{name}` already", rows[first].line)));
            }
        }
        let nodes: Vec<Option<Node>> = rows.iter().map(|row| node(row, &by_name, &mut wrong)).collect();
        let Some(nodes) = nodes.into_iter().collect::<Option<Vec<Node>>>().filter(|_| wrong.is_empty())
        else {
            return Err(wrong);
        };
        let mut plans = Self { nodes };
        plans.check_addresses(&rows, &mut wrong);
        if let Err(message) = plans.assure(&rows) {
            wrong.extend(message);
        }
        if wrong.is_empty() { Ok(plans) } else { Err(wrong) }
    }

    fn is_parent(&self) -> Vec<bool> {
        let mut is_parent = vec![false; self.nodes.len()];
        self.nodes.iter().filter_map(|node| node.parent).for_each(|parent| is_parent[parent] = true);
        is_parent
    }

    fn check_addresses(&self, rows: &[Row], wrong: &mut Vec<String>) {
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        for ((at, node), is_parent) in self.nodes.iter().enumerate().zip(self.is_parent()) {
            let mut refuse = |why: String| wrong.push(rows[at].wrong("addresses", &why));
            if is_parent && !node.prefixes.is_empty() {
                refuse(format!(
                    "`{}` is the parent of others, and only nodes without children have packets",
                    node.name
                ));
            }
            for prefix in &node.prefixes {
                if let Some(first) = seen.insert(prefix.to_string(), at) {
                    refuse(format!("{prefix} belongs to `{}` already", self.nodes[first].name));
                }
            }
        }
    }

    /// Decides the assured rate of each node, from the roots down.
    fn assure(&mut self, rows: &[Row]) -> Result<(), Vec<String>> {
        let mut children = vec![Vec::new(); self.nodes.len()];
        let mut order: Vec<usize> = Vec::new();
        for (at, node) in self.nodes.iter().enumerate() {
            match node.parent {
                Some(parent) => children[parent].push(at),
                None => order.push(at),
            }
        }
        let mut next = 0;
        while let Some(&at) = order.get(next) {
            order.extend(&children[at]);
            next += 1;
        }
        if order.len() < self.nodes.len() {
            let mut is_reached = vec![false; self.nodes.len()];
            order.iter().for_each(|&at| is_reached[at] = true);
            let circle = is_reached.iter().position(|reached| !reached);
            let circle = circle.map_or("", |at| self.nodes[at].name.as_str());
            return Err(vec![format!(
                "no node without a parent is above `{circle}`; its parents go in a circle"
            )]);
        }
        let mut wrong = Vec::new();
        for way in Direction::BOTH {
            for (at, node) in self.nodes.iter_mut().enumerate().filter(|(_, node)| node.parent.is_none()) {
                let rates = &mut node.rates[way as usize];
                if rates.ceiling == Rate::ZERO {
                    wrong
                        .push(rows[at].wrong(way.name(), "missing: a node without a parent needs its rates"));
                }
                rates.assured = rates.ceiling;
                let column = least_column(way);
                if rows[at].cell(column).is_some() {
                    wrong.push(
                        rows[at].wrong(column, "a node without a parent is assured its rate; leave it empty"),
                    );
                }
            }
            if !wrong.is_empty() {
                continue;
            }
            for &parent in &order {
                if let Err(why) = self.divide(parent, &children[parent], way, rows) {
                    wrong.push(why);
                }
            }
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }

    /// Divides the assured rate of a node among its children.
    fn divide(
        &mut self,
        parent: usize,
        children: &[usize],
        way: Direction,
        rows: &[Row],
    ) -> Result<(), String> {
        let above = self.nodes[parent].rates[way as usize];
        let column = least_column(way);
        let mut left = u128::from(above.assured.as_bit());
        let mut wanted = 0_u128;
        let mut open = Vec::new();
        for &at in children {
            let rates = &mut self.nodes[at].rates[way as usize];
            let ceiling = if rates.ceiling == Rate::ZERO { above.ceiling } else { rates.ceiling };
            rates.ceiling = ceiling.min(above.ceiling);
            match rows[at].rate(column)? {
                Some(least) if least > rates.ceiling => {
                    return Err(
                        rows[at].wrong(column, &format!("it is more than the ceiling, {}", rates.ceiling))
                    );
                }
                Some(least) => {
                    rates.assured = least;
                    let least = u128::from(least.as_bit());
                    left = left.checked_sub(least).ok_or_else(|| {
                        let name = &self.nodes[parent].name;
                        rows[at].wrong(column, &format!(
                            "up to this line the children of `{name}` are assured more than it is, {}; lower what they are assured, \
                             or raise that of `{name}`",
                            above.assured
                        ))
                    })?;
                }
                None => {
                    wanted += u128::from(rates.ceiling.as_bit());
                    open.push(at);
                }
            }
        }
        for at in open {
            let rates = &mut self.nodes[at].rates[way as usize];
            let ceiling = u128::from(rates.ceiling.as_bit());
            let part = if wanted <= left { ceiling } else { ceiling * left / wanted };
            // Below the ceiling, so it fits. HTB needs a rate above zero.
            rates.assured = Rate::from_bit(part.max(1) as u64);
        }
        Ok(())
    }

    /// The customers: the nodes without children, with their addresses.
    pub(crate) fn customers(&self) -> impl Iterator<Item = (&str, &[Prefix])> {
        let leaves = self.nodes.iter().zip(self.is_parent()).filter(|(_, is_parent)| !is_parent);
        leaves.map(|(node, _)| (node.name.as_str(), node.prefixes.as_slice()))
    }

    /// The classes of HTB for one direction, as a table that is written at `place`.
    fn classes(&self, way: Direction, place: Place) -> Item {
        let item = |value| Item { value, place };
        let text = |text: &str| Item::text(text, place);
        let class = |(node, is_parent): (&Node, bool)| {
            let Rates { assured, ceiling } = node.rates[way as usize];
            let parent = node.parent.map(|parent| ("parent".to_owned(), text(&self.nodes[parent].name)));
            let mut entries: Vec<_> = parent.into_iter().collect();
            entries.push(("rate".to_owned(), text(&assured.to_string())));
            entries.push(("ceil".to_owned(), text(&ceiling.to_string())));
            if node.name == OTHERS && !is_parent {
                entries.push(("others".to_owned(), item(Value::Flag(true))));
            }
            (node.name.clone(), item(Value::Table(Table { entries })))
        };
        item(Value::Table(Table { entries: self.nodes.iter().zip(self.is_parent()).map(class).collect() }))
    }
}

/// The column of a node's assured rate.
const fn least_column(way: Direction) -> &'static str {
    match way {
        Direction::Up => "up_min",
        Direction::Down => "down_min",
    }
}

/// A node without decided rates; `None` only if something was refused.
fn node(row: &Row, by_name: &BTreeMap<&str, usize>, wrong: &mut Vec<String>) -> Option<Node> {
    let before = wrong.len();
    let parent = row.cell("parent").and_then(|name| {
        let parent = by_name.get(name).copied();
        if parent.is_none() {
            let guess = did_you_mean(name, by_name.keys().copied().take(1_000));
            wrong.push(row.wrong("parent", &format!("there is no node `{name}`{guess}")));
        }
        parent
    });
    let mut prefixes = Vec::new();
    let addresses = row.cell("addresses").unwrap_or_default();
    let between = |c: char| c.is_whitespace() || matches!(c, ',' | ';');
    for text in addresses.split(between).filter(|text| !text.is_empty()) {
        match Prefix::read(text, "addresses") {
            Ok(prefix) => prefixes.push(prefix),
            Err(why) => wrong.push(row.wrong("addresses", &why.message)),
        }
    }
    let terms = Direction::BOTH.map(|way| {
        let ceiling = row.rate(way.name()).unwrap_or_else(|why| {
            wrong.push(why);
            None
        });
        // An invalid rate is refused where the rate of the parent is divided.
        Terms { ceiling, least: row.rate(least_column(way)).unwrap_or_default() }
    });
    let rates =
        terms.map(|terms| Rates { assured: Rate::ZERO, ceiling: terms.ceiling.unwrap_or(Rate::ZERO) });
    let name = row.cell("name").unwrap_or_default().to_owned();
    (wrong.len() == before).then_some(Node { name, parent, prefixes, terms, rates })
}

/// The plans in the file that the root of a scenario or gateway names, if it names one. `None` only if
/// something was refused.
pub(crate) fn of(root: &Table, files: &Files<'_>, problems: &mut Problems) -> Option<Option<Plans>> {
    // Maximum of problems of a file that are listed.
    const MOST: usize = 20;
    let Some(item) = root.get(KEY) else { return Some(None) };
    let read = || {
        let Some(file) = item.as_text() else {
            return Err(vec![format!(
                "`{item}` is {}, not a file; write for example \"plans.csv\"",
                item.what()
            )]);
        };
        let text = files.text(Path::new(file)).map_err(|why| vec![why.to_string()])?;
        Plans::read(&text).map_err(|wrong| wrong.into_iter().map(|why| format!("{file}: {why}")).collect())
    };
    let refuse =
        |wrong: Vec<String>| wrong.into_iter().take(MOST).for_each(|why| problems.add(item.place, KEY, why));
    read().map(Some).map_err(refuse).ok()
}

/// `root` with classes in place of the key `plans` of its queues.
pub(crate) fn expanded<'a>(
    root: &'a Table,
    plans: Option<&Plans>,
    problems: &mut Problems,
) -> Cow<'a, Table> {
    if !root.entries.iter().any(|(_, item)| has_queue(item)) {
        return Cow::Borrowed(root);
    }
    let mut expanded = root.clone();
    for (key, item) in &mut expanded.entries {
        walk(item, key, plans, problems);
    }
    Cow::Owned(expanded)
}

/// Whether any queue has plans.
fn has_queue(item: &Item) -> bool {
    match &item.value {
        Value::List(items) => items.iter().any(has_queue),
        Value::Table(table) => is_queue(table) || table.entries.iter().any(|(_, item)| has_queue(item)),
        _ => false,
    }
}

fn is_queue(table: &Table) -> bool {
    table.get("kind").is_some() && table.get(KEY).is_some()
}

/// Expands the queues in an item.
fn walk(item: &mut Item, path: &str, plans: Option<&Plans>, problems: &mut Problems) {
    match &mut item.value {
        Value::List(items) => items.iter_mut().for_each(|item| walk(item, path, plans, problems)),
        Value::Table(table) => {
            if is_queue(table) {
                expand(table, path, plans, problems);
            }
            for (key, item) in &mut table.entries {
                walk(item, &join(path, key), plans, problems);
            }
        }
        _ => (),
    }
}

/// Gives a queue its classes.
fn expand(queue: &mut Table, path: &str, plans: Option<&Plans>, problems: &mut Problems) {
    let Some(at) = queue.entries.iter().position(|(key, _)| key == KEY) else { return };
    let (_, item) = queue.entries.remove(at);
    let way = Direction::BOTH.into_iter().find(|way| item.as_text() == Some(way.name()));
    let mut refuse = |message: &str| problems.add(item.place, join(path, KEY), message);
    let is_htb = queue.get("kind").and_then(Item::as_text) == Some("htb");
    match (way, plans) {
        (None, _) => refuse("it is the direction whose rates the classes have; write \"up\" or \"down\""),
        _ if !is_htb => refuse("plans make classes of HTB; write kind = \"htb\""),
        _ if queue.get(CLASS_KEY).is_some() => {
            refuse("the queue has classes of its own; leave `class` or `plans` out");
        }
        (Some(_), None) => {
            refuse("there are no plans; write for example plans = \"plans.csv\" at the top of the file");
        }
        (Some(way), Some(plans)) => {
            queue.entries.push((CLASS_KEY.to_owned(), plans.classes(way, item.place)));
        }
    }
}

/// The queue of a direction of a gateway, if its classes come from plans, and the direction whose rates they
/// have.
pub(crate) fn queue_of(root: &Table, way: Direction) -> Option<(&Item, Direction)> {
    let queue = root.get(way.name())?.as_table()?.get("queue")?;
    let plans = queue.as_table().filter(|table| is_queue(table))?.get(KEY)?.as_text()?;
    Some((queue, Direction::BOTH.into_iter().find(|way| way.name() == plans)?))
}

/// A queue without the key `plans`, and the value of that key.
pub(crate) fn taken_out(queue: &Item) -> (Cow<'_, Item>, Option<&Item>) {
    let Some(table) = queue.as_table().filter(|table| is_queue(table)) else {
        return (Cow::Borrowed(queue), None);
    };
    let entries = table.entries.iter().filter(|(key, _)| key != KEY).cloned().collect();
    let rest = Item { value: Value::Table(Table { entries }), place: queue.place };
    (Cow::Owned(rest), table.get(KEY))
}
