//! Events, in bounded memory.

use std::collections::VecDeque;

use apportion_core::units::{Span, Time};
use apportion_scenario::gateway::Direction;
use serde_json::{Value, json};

use crate::gateway::guarantees::Exceeded;
use crate::gateway::snapshot::Snapshot;

/// Maximum of events, the latest. Chosen: four of each kind and minute of an hour fit.
const MAX_EVENTS: usize = 2_048;
/// Maximum bytes of the description of an event. Chosen: a reload that changes a dozen keys.
const MAX_TEXT: usize = 1_024;
/// Events of a kind and description within this time are one event with a count. Chosen: the width of a mark
/// on the time axis.
const TOGETHER: Span = Span::from_secs(10);

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gateway) enum Kind {
    /// A reload was applied.
    Reload,
    /// A reload was refused.
    ReloadRefused,
    /// A change from the page was applied.
    Change,
    /// A change from the page was confirmed and refused.
    ChangeRefused,
    /// An interface was found down.
    Down,
    /// An interface was found deleted.
    Gone,
    /// An interface was attached again.
    Back,
    /// A guarantee was refused to a flow that earned it.
    GuaranteeRefused,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Reload => "reload",
            Self::ReloadRefused => "reload refused",
            Self::Change => "change",
            Self::ChangeRefused => "change refused",
            Self::Down => "interface down",
            Self::Gone => "interface gone",
            Self::Back => "interface back",
            Self::GuaranteeRefused => "guarantee refused",
        }
    }
}

/// Ends a text that was cut.
const MORE: &str = "\n…";

#[derive(Debug)]
struct Event {
    at: Time,
    kind: Kind,
    what: String,
    count: u64,
}

/// The latest events.
#[derive(Debug, Default)]
pub(super) struct Events(VecDeque<Event>);

impl Events {
    /// Adds an event at `now` that happened `count` times.
    pub fn add(&mut self, now: Time, kind: Kind, mut what: String, count: u64) {
        if what.len() > MAX_TEXT {
            let most = (0..=MAX_TEXT - MORE.len()).rev().find(|&at| what.is_char_boundary(at)).unwrap_or(0);
            // Cuts at a line, if the text has more than one.
            let whole = what[..most].rfind('\n').unwrap_or(most);
            what.truncate(whole);
            what.push_str(MORE);
        }
        let recent = self.0.iter_mut().rev().take_while(|event| now.since(event.at) < TOGETHER);
        if let Some(same) = recent.into_iter().find(|event| event.kind == kind && event.what == what) {
            same.count += count;
            return;
        }
        if self.0.len() >= MAX_EVENTS {
            self.0.pop_front();
        }
        self.0.push_back(Event { at: now, kind, what, count });
    }

    /// The latest events, at most `most`, the oldest first.
    pub fn json(&self, most: usize) -> Value {
        let event = |Event { at, kind, what, count }: &Event| json!({ "at": at.as_secs_f64(), "kind": kind.name(), "what": what, "count": count });
        Value::Array(self.0.iter().skip(self.0.len().saturating_sub(most)).map(event).collect())
    }
}

/// Events between two snapshots, with their counts.
pub(super) fn changes(before: &Snapshot, after: &Snapshot) -> Vec<(Kind, String, u64)> {
    let mut found = Vec::new();
    let mut add = |kind, what: String, counts: [u64; 2]| {
        let new = counts[1].saturating_sub(counts[0]);
        if new > 0 {
            found.push((kind, what, new));
        }
    };
    for (port, name) in [&after.config.inside, &after.config.outside].into_iter().enumerate() {
        let both = [before, after];
        add(Kind::Down, name.clone(), both.map(|it| it.ports[port].down));
        add(Kind::Gone, name.clone(), both.map(|it| it.events[port].gone));
        add(Kind::Back, name.clone(), both.map(|it| it.events[port].back));
    }
    for direction in Direction::BOTH {
        for limit in Exceeded::ALL {
            let refused =
                |it: &Snapshot| it.directions[direction as usize].guarantees.refused[limit as usize];
            let what = format!("{}: limit of {}", direction.name(), limit.name());
            add(Kind::GuaranteeRefused, what, [refused(before), refused(after)]);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_bounded_and_those_that_repeat_are_counted() {
        let mut events = Events::default();
        for second in 0..100_000 {
            events.add(Time::from_secs(second), Kind::Down, "eth0".to_owned(), 2);
            events.add(Time::from_secs(second), Kind::Reload, "\u{e4}".repeat(5_000), 1);
        }
        assert_eq!(events.0.len(), MAX_EVENTS);
        let last = &events.0[MAX_EVENTS - 2];
        assert_eq!((last.kind, last.at, last.count), (Kind::Down, Time::from_secs(99_990), 20));
        assert!(events.0.iter().all(|event| event.what.len() <= MAX_TEXT));
    }
}
