//! `ShapedDevices.csv` of LibreQoS: a device a line, and one or more devices per circuit, the unit that is
//! shaped.

use std::collections::BTreeMap;
use std::net::IpAddr;

use apportion_core::units::Rate;

use super::report::Report;
use crate::gateway::classifier::Prefix;

/// A circuit: a customer with a plan.
pub(super) struct Circuit {
    pub line: u32,
    pub id: String,
    pub name: String,
    /// Names of its node, the node's id first; empty if it has none.
    pub parents: Vec<String>,
    pub prefixes: Vec<Prefix>,
    /// Minimums by direction, up first.
    pub least: [Option<Rate>; 2],
    pub most: [Rate; 2],
}

/// Columns that are read. LibreQoS compares only letters and digits, in any case.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Column {
    Circuit,
    Name,
    Parent,
    ParentId,
    Ipv4,
    Ipv6,
    LeastDown,
    LeastUp,
    MostDown,
    MostUp,
    Queue,
}

const COLUMNS: [(&str, Column); 15] = [
    ("circuitid", Column::Circuit),
    ("circuitname", Column::Name),
    ("parentnode", Column::Parent),
    ("parentnodeid", Column::ParentId),
    ("ipv4", Column::Ipv4),
    ("ipv6", Column::Ipv6),
    ("downloadminmbps", Column::LeastDown),
    ("downloadmin", Column::LeastDown),
    ("uploadminmbps", Column::LeastUp),
    ("uploadmin", Column::LeastUp),
    ("downloadmaxmbps", Column::MostDown),
    ("downloadmax", Column::MostDown),
    ("uploadmaxmbps", Column::MostUp),
    ("uploadmax", Column::MostUp),
    ("sqm", Column::Queue),
];
/// The columns of lines of older versions; the example file of LibreQoS has such lines below a longer head.
const OLD: [Option<Column>; 13] = [
    Some(Column::Circuit),
    Some(Column::Name),
    None,
    None,
    Some(Column::Parent),
    None,
    Some(Column::Ipv4),
    Some(Column::Ipv6),
    Some(Column::LeastDown),
    Some(Column::LeastUp),
    Some(Column::MostDown),
    Some(Column::MostUp),
    None,
];
/// Columns without a meaning for shaping.
const SILENT: [&str; 8] =
    ["deviceid", "devicename", "anchornodeid", "id", "mac", "comment", "radiususername", "username"];

/// The letters and digits of a name.
pub(super) fn plain(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// A line of the file.
struct Row<'a> {
    line: u32,
    record: &'a csv::StringRecord,
    places: &'a BTreeMap<Column, usize>,
}

impl Row<'_> {
    fn get(&self, column: Column) -> &str {
        self.places.get(&column).and_then(|at| self.record.get(*at)).unwrap_or_default()
    }

    /// A rate in Mb/s; none if the cell is empty or 0.
    fn rate(&self, column: Column, what: &str) -> Result<Option<Rate>, String> {
        let text = self.get(column);
        if text.is_empty() {
            return Ok(None);
        }
        let mbps = text.parse::<f64>().ok().filter(|mbps| (0.0..=1e6).contains(mbps));
        let mbps = mbps.ok_or_else(|| {
            format!("{what}: `{text}` is not a number of Mb/s up to 1000000; write for example 100")
        })?;
        let bit = (mbps * 1e6).round() as u64;
        Ok((bit > 0).then(|| Rate::from_bit(bit)))
    }
}

/// The circuits, in the order of their first lines.
pub(super) fn read(text: &str, report: &mut Report) -> Vec<Circuit> {
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .comment(Some(b'#'))
        .flexible(true)
        .from_reader(text.trim_start_matches('\u{feff}').as_bytes());
    let headers = match reader.headers() {
        Ok(headers) => headers.clone(),
        Err(why) => {
            report.refuse(1, format!("not CSV: {why}"));
            return Vec::new();
        }
    };
    let Some(places) = places(&headers, report) else { return Vec::new() };
    let at_old = |column: &Column| OLD.iter().position(|old| *old == Some(*column));
    let old = COLUMNS.iter().filter_map(|(_, column)| Some((*column, at_old(column)?))).collect();
    let mut circuits: Vec<Circuit> = Vec::new();
    let mut by_id: BTreeMap<String, usize> = BTreeMap::new();
    let mut owners: BTreeMap<String, usize> = BTreeMap::new();
    let mut old_line = None;
    for record in reader.records() {
        let record = match record {
            Ok(record) => record,
            Err(why) => {
                let line = why.position().map_or(1, csv::Position::line);
                report.refuse(line as u32, format!("not CSV: {why}"));
                continue;
            }
        };
        let line = record.position().map_or(1, csv::Position::line) as u32;
        let is_old = record.len() == OLD.len() && headers.len() > OLD.len();
        if is_old {
            old_line.get_or_insert(line);
        }
        let row = Row { line, record: &record, places: if is_old { &old } else { &places } };
        let id = row.get(Column::Circuit).to_owned();
        if id.is_empty() {
            report.refuse(line, "Circuit ID: it is empty; circuits are told apart by it");
            continue;
        }
        let at = match by_id.get(&id) {
            Some(at) => {
                compare(&row, &circuits[*at], report);
                *at
            }
            None => {
                let Some(circuit) = circuit(&row, &id, report) else { continue };
                circuits.push(circuit);
                by_id.insert(id, circuits.len() - 1);
                circuits.len() - 1
            }
        };
        addresses(&row, at, &mut circuits, &mut owners, report);
    }
    if let Some(line) = old_line {
        report.note(
            line,
            format!(
                "lines of {} cells below a head of {}: read as those of older versions",
                OLD.len(),
                headers.len()
            ),
        );
    }
    circuits
}

/// The indices of the columns; none if one is missing.
fn places(headers: &csv::StringRecord, report: &mut Report) -> Option<BTreeMap<Column, usize>> {
    let mut places = BTreeMap::new();
    for (at, header) in headers.iter().enumerate() {
        let name = plain(header);
        match COLUMNS.iter().find(|(known, _)| *known == name) {
            Some((_, column)) => drop(places.insert(*column, at)),
            None if SILENT.contains(&name.as_str()) || name.is_empty() => (),
            None => report.note(1, format!("the column `{header}`: there is no word for it here")),
        }
    }
    let needed = [
        (Column::Circuit, "Circuit ID"),
        (Column::MostDown, "Download Max Mbps"),
        (Column::MostUp, "Upload Max Mbps"),
    ];
    if headers.len() == 1 {
        report.refuse(1, "the cells are not separated by commas; save the table as CSV with commas");
        return None;
    }
    let missing = needed.iter().find(|(column, _)| !places.contains_key(column));
    if let Some((_, name)) = missing {
        report.refuse(
            1,
            format!("a column `{name}` is missing; the first line of ShapedDevices.csv names the columns"),
        );
        return None;
    }
    Some(places)
}

fn circuit(row: &Row<'_>, id: &str, report: &mut Report) -> Option<Circuit> {
    let line = row.line;
    let mut most = |column, what: &str| {
        let rate = report.or_refuse(line, row.rate(column, what))?;
        if rate.is_none() {
            report.refuse(
                line,
                format!("{what}: it is empty or 0; write what the circuit has at most, such as 100"),
            );
        }
        rate
    };
    let [up, down] = [most(Column::MostUp, "Upload Max Mbps"), most(Column::MostDown, "Download Max Mbps")];
    let least_up = report.or_refuse(line, row.rate(Column::LeastUp, "Upload Min Mbps"))?;
    let least_down = report.or_refuse(line, row.rate(Column::LeastDown, "Download Min Mbps"))?;
    let [most, mut least] = [[up?, down?].map(Some), [least_up, least_down]];
    for (own, most) in least.iter_mut().zip(most) {
        if *own > most {
            report.note(
                line,
                format!("circuit {id}: its minimum is above its maximum, which is taken in its place"),
            );
            *own = most;
        }
    }
    let queue = row.get(Column::Queue);
    if !queue.is_empty() {
        report.note(line, format!("circuit {id}: sqm {queue}: all customers have the same queue, fq_codel"));
    }
    let parents = [Column::ParentId, Column::Parent].map(|column| row.get(column).to_owned());
    let parents =
        parents.into_iter().filter(|name| !name.is_empty() && !name.eq_ignore_ascii_case("none")).collect();
    let name = row.get(Column::Name).to_owned();
    let most = most.map(Option::unwrap_or_default);
    Some(Circuit { line, id: id.to_owned(), name, parents, prefixes: Vec::new(), least, most })
}

/// Notes differences between the devices of a circuit.
fn compare(row: &Row<'_>, circuit: &Circuit, report: &mut Report) {
    let rates = [
        (Column::MostUp, Some(circuit.most[0])),
        (Column::MostDown, Some(circuit.most[1])),
        (Column::LeastUp, circuit.least[0]),
        (Column::LeastDown, circuit.least[1]),
    ];
    let differs = rates
        .iter()
        .any(|(column, own)| row.rate(*column, "").is_ok_and(|rate| rate.is_some() && rate != *own));
    let parent = row.get(Column::Parent);
    let moves =
        !parent.is_empty() && !circuit.parents.is_empty() && !circuit.parents.iter().any(|own| own == parent);
    if differs || moves {
        let (id, line) = (&circuit.id, circuit.line);
        report
            .note(row.line, format!("circuit {id}: rates or parent other than on line {line}, which counts"));
    }
}

/// Adds the addresses of a line to its circuit.
fn addresses(
    row: &Row<'_>,
    at: usize,
    circuits: &mut [Circuit],
    owners: &mut BTreeMap<String, usize>,
    report: &mut Report,
) {
    let between = |c: char| c.is_whitespace() || matches!(c, ',' | ';' | '[' | ']' | '\'');
    let cells = [Column::Ipv4, Column::Ipv6].map(|column| row.get(column));
    for text in cells.iter().flat_map(|cell| cell.split(between)).filter(|text| !text.is_empty()) {
        let Some(prefix) = prefix(text) else {
            report.note(row.line, format!("`{text}` is no address and no prefix: left out"));
            continue;
        };
        match owners.insert(prefix.to_string(), at) {
            Some(first) if first != at => {
                owners.insert(prefix.to_string(), first);
                let (own, other) = (&circuits[at].id, &circuits[first].id);
                report.note(
                    row.line,
                    format!("{prefix} belongs to circuit {other} already: left out of {own}"),
                );
            }
            Some(_) => (),
            None => circuits[at].prefixes.push(prefix),
        }
    }
}

/// An address, or a prefix without the bits that follow its length.
fn prefix(text: &str) -> Option<Prefix> {
    let Some((address, length)) = text.split_once('/') else { return Prefix::read(text, "").ok() };
    let (address, length) = (address.parse::<IpAddr>().ok()?, length.parse::<u8>().ok()?);
    let first = match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32_u32.checked_sub(u32::from(length))?).unwrap_or(0);
            IpAddr::from((u32::from(address) & mask).to_be_bytes())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128_u32.checked_sub(u32::from(length))?).unwrap_or(0);
            IpAddr::from((u128::from(address) & mask).to_be_bytes())
        }
    };
    Prefix::new("", first, length).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_lose_the_bits_behind_their_length() {
        let read = |text: &str| prefix(text).map(|prefix| prefix.to_string());
        assert_eq!(read("100.64.0.5/24").as_deref(), Some("100.64.0.0/24"));
        assert_eq!(read("2001:db8::5/32").as_deref(), Some("2001:db8::/32"));
        assert_eq!(read("192.0.2.1").as_deref(), Some("192.0.2.1"));
        assert!(read("0.0.0.0/0").is_some() && read("::/128").is_some());
        assert!(["1.2.3.4/33", "::/129", "x", "1.2.3.4/", "/8"].iter().all(|text| read(text).is_none()));
    }
}
