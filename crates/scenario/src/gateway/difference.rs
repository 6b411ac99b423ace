//! Differences between two configurations of a gateway.
//!
//! Cost: O(n log n) for n tables, for example of customers.

use std::collections::BTreeMap;
use std::fmt;

use super::written::Section;
use super::{Direction, GatewayConfig};
use crate::plans::{self, PlanChange};
use crate::text::join;

/// Maximum characters of a value that a difference prints in full. Chosen: some lines of a terminal.
const LONGEST: usize = 400;
/// Characters printed around the difference in a longer value.
const AROUND: usize = 40;
/// Maximum of changes that are printed. Chosen: a screen of lines.
const MOST: usize = 40;

/// A setting that can differ between two configurations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Setting {
    /// The title.
    Title,
    /// The seed of all random streams.
    Seed,
    /// The interface towards the inside.
    Inside,
    /// The interface towards the outside.
    Outside,
    /// The address that serves metrics.
    Metrics,
    /// The socket for overload notifications.
    Notifications,
    /// Whether changes are accepted at the address of metrics.
    Control,
    /// The file with the token for changes.
    ControlToken,
    /// The address of the gateway for reports.
    Address,
    /// The key that authenticates reports.
    ReportKey,
    /// Whether reports are sent without a key.
    Insecure,
    /// The silence after which a flow is forgotten.
    FlowIdle,
    /// The maximum of flows.
    Flows,
    /// The rate of a transmitter, or how it follows the link.
    Rate(Direction),
    /// The bytes charged to each packet in addition.
    Overhead(Direction),
    /// A queue discipline.
    Queue(Direction),
    Delay(Direction),
    /// A share of random losses.
    Loss(Direction),
    /// The treatment of labels on packets.
    Labels(Direction),
    /// Tickets a second that senders issue.
    Tickets(Direction),
    /// Tickets a second that receivers issue.
    AckTickets(Direction),
    /// An exchange of currencies.
    Exchange(Direction),
    /// The rules, their order, and their content.
    Rules,
    /// The customers, and their settings.
    Customers,
    /// The file of plans, or its content: customers, their addresses, and classes of queues.
    Plans,
}

impl Setting {
    /// Whether it cannot change while the gateway runs.
    #[must_use]
    pub const fn is_pinned(self) -> bool {
        matches!(
            self,
            Self::Title | Self::Seed | Self::Inside | Self::Outside | Self::Notifications | Self::Flows
        )
    }
}

/// One difference. Prints as `up.rate: 18Mbit -> 20Mbit`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The setting; its value is in the new configuration.
    pub setting: Setting,
    /// The path of the key.
    pub path: String,
    /// The old value; none if the key is new.
    pub from: Option<String>,
    /// The new value; none if the key is gone.
    pub to: Option<String>,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = |text: &Option<String>| match text.as_deref() {
            None => "none".to_owned(),
            // The key is a secret.
            Some(_) if self.setting == Setting::ReportKey => "a key".to_owned(),
            Some(text) => {
                let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
                inner.unwrap_or(text).to_owned()
            }
        };
        let [from, to] = shortened([plain(&self.from), plain(&self.to)]);
        let to = if self.setting == Setting::ReportKey && from == to { "another key" } else { &to };
        write!(f, "{}: {from} -> {to}", self.path)
    }
}

/// Both texts, or the different parts of long ones.
fn shortened(both: [String; 2]) -> [String; 2] {
    let lengths = both.each_ref().map(|text| text.chars().count());
    let [from, to] = &both;
    if lengths.iter().all(|length| *length <= LONGEST) {
        return both;
    }
    let same = |(a, b): &(char, char)| a == b;
    let start = from.chars().zip(to.chars()).take_while(same).count();
    let most = lengths[0].min(lengths[1]) - start;
    let end = from.chars().rev().zip(to.chars().rev()).take(most).take_while(same).count();
    let (start, end) = (start.saturating_sub(AROUND), end.saturating_sub(AROUND));
    [(from, lengths[0]), (to, lengths[1])].map(|(text, length)| {
        let differing = length - start - end;
        let part: String = text.chars().skip(start).take(differing.min(LONGEST)).collect();
        let (before, after) =
            (if start > 0 { "…" } else { "" }, if end > 0 || differing > LONGEST { "…" } else { "" });
        format!("{before}{part}{after}")
    })
}

/// The changes of a reload, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// The changes; none if the configurations are the same.
    pub changes: Vec<Change>,
}

impl Difference {
    /// Whether this setting differs.
    #[must_use]
    pub fn has(&self, setting: Setting) -> bool {
        self.changes.iter().any(|change| change.setting == setting)
    }
}

/// Formats one change a line; if there are too many, with the number of the others.
impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.changes.iter().take(MOST).try_for_each(|change| writeln!(f, "{change}"))?;
        match self.changes.len().saturating_sub(MOST) {
            0 => Ok(()),
            more => writeln!(f, "and {more} more"),
        }
    }
}

/// A setting that cannot change while the gateway runs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}, which cannot change while the gateway runs; restart the gateway, or write the old value")]
pub struct Pinned(pub Change);

impl GatewayConfig {
    /// The changes from this configuration to `new`, for a running gateway.
    ///
    /// # Errors
    /// All settings that cannot change while the gateway runs.
    pub fn difference(&self, new: &Self) -> Result<Difference, Vec<Pinned>> {
        let (before, after) = (self.sections(), new.sections());
        let mut changes = Vec::new();
        let Paired { both, gone } = paired(&before, &after, |section| section.path.as_str());
        for (section, old) in after.iter().zip(both) {
            match old {
                Some(old) => compare(old, section, &mut changes),
                None => changes.extend(whole(section, false)),
            }
        }
        changes.extend(gone.into_iter().filter_map(|section| whole(section, true)));
        let names = |config: &Self| config.rules.iter().map(|rule| rule.name.clone()).collect::<Vec<_>>();
        let (from, to) = (names(self), names(new));
        if from != to {
            let listed = |names: Vec<String>| (!names.is_empty()).then(|| names.join(", "));
            let path = "rule".to_owned();
            changes.push(Change { setting: Setting::Rules, path, from: listed(from), to: listed(to) });
        }
        if let (Some(old), Some(new)) = (&self.nodes, &new.nodes) {
            changes.extend(old.differences(new).into_iter().map(|PlanChange { path, from, to }| Change {
                setting: Setting::Plans,
                path: format!("{}: {path}", plans::KEY),
                from,
                to,
            }));
        }
        let (pinned, changes): (Vec<_>, Vec<_>) =
            changes.into_iter().partition(|change| change.setting.is_pinned());
        if pinned.is_empty() {
            Ok(Difference { changes })
        } else {
            Err(pinned.into_iter().map(Pinned).collect())
        }
    }
}

/// A table that exists on one side only.
fn whole(section: &Section, gone: bool) -> Option<Change> {
    let setting = section.entries.first()?.setting;
    let text = Some(section.inline());
    let (from, to) = if gone { (text, None) } else { (None, text) };
    Some(Change { setting, path: section.path.clone(), from, to })
}

fn compare(old: &Section, new: &Section, changes: &mut Vec<Change>) {
    let find = |section: &Section, key: &str| {
        let found = section.entries.iter().find(|entry| entry.key == key);
        found.map(|entry| entry.text.clone())
    };
    let gone = old.entries.iter().filter(|entry| find(new, entry.key).is_none());
    for entry in new.entries.iter().chain(gone) {
        let (from, to) = (find(old, entry.key), find(new, entry.key));
        if from != to {
            changes.push(Change { setting: entry.setting, path: join(&new.path, entry.key), from, to });
        }
    }
}

/// The common elements of two lists.
struct Paired<'a, T> {
    /// Elements of the old list with the same name, one for each element of the new list.
    both: Vec<Option<&'a T>>,
    /// Elements of the old list that the new one lacks, in order.
    gone: Vec<&'a T>,
}

/// Pairs elements of the same name in both lists, in each of which names are unique. A reload of a gateway
/// with plans compares a table for each of up to 65,535 customers, on the thread that answers requests.
fn paired<'a, T, K: Ord>(old: &'a [T], new: &'a [T], name: impl Fn(&'a T) -> K) -> Paired<'a, T> {
    let mut by_name: BTreeMap<K, usize> = old.iter().map(&name).zip(0..).collect();
    let at: Vec<Option<usize>> = new.iter().map(|one| by_name.remove(&name(one))).collect();
    let mut gone: Vec<usize> = by_name.into_values().collect();
    gone.sort_unstable();
    Paired {
        both: at.into_iter().map(|at| old.get(at?)).collect(),
        gone: gone.into_iter().filter_map(|at| old.get(at)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::cmp::Ordering;

    use super::*;

    /// A name that counts how often it is compared.
    struct Counted<'a>(u32, &'a Cell<u64>);

    impl Ord for Counted<'_> {
        fn cmp(&self, other: &Self) -> Ordering {
            self.1.set(self.1.get() + 1);
            self.0.cmp(&other.0)
        }
    }

    impl PartialOrd for Counted<'_> {
        fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
            Some(self.cmp(other))
        }
    }

    impl PartialEq for Counted<'_> {
        fn eq(&self, other: &Self) -> bool {
            self.cmp(other) == Ordering::Equal
        }
    }

    impl Eq for Counted<'_> {}

    #[test]
    fn what_is_in_both_is_found_in_any_order() {
        let Paired { both, gone } = paired(&[5, 1, 4, 2], &[2, 3, 1], |name| *name);
        assert_eq!((both, gone), (vec![Some(&2), None, Some(&1)], vec![&5, &4]));
    }

    #[test]
    fn the_work_grows_with_the_tables_not_with_their_square() {
        let work = |tables: u32| {
            let (old, new): (Vec<u32>, Vec<u32>) = ((0..tables).collect(), (1..=tables).rev().collect());
            let count = Cell::new(0);
            let Paired { both, gone } = paired(&old, &new, |name| Counted(*name, &count));
            assert_eq!((both.iter().flatten().count(), gone), (tables as usize - 1, vec![&0]));
            count.get()
        };
        let (one, four) = (work(4_096), work(16_384));
        assert!(four < 5 * one, "{one} comparisons, {four} for four times as many tables");
    }
}
