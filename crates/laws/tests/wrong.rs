//! Disciplines that are wrong in one way each: each one is detected, by the right law, with a short sequence.
#![allow(clippy::unwrap_used, reason = "a test that fails")]

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use apportion_core::limit::Limit;
use apportion_core::system::Discipline;
use apportion_core::units::{Bytes, Packets, Span, Time};
use apportion_core::{Backlog, DropReason, Ecn, FlowId, FlowSetting, Queue, SimplePacket, Sink};
use apportion_laws::{Law, Laws, Violation};

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Defect {
    #[default]
    None,
    /// Loses every third packet of a busy period.
    Loses,
    /// Delivers the second waiting packet first, if there is one.
    Reorders,
    /// Refuses to send while a single packet waits.
    Idles,
    /// Delivers a packet twice if it was the only one.
    Duplicates,
    /// Counts the same number of bytes for every packet.
    Miscounts,
    /// Refuses a request and names the present time.
    WakesInPast,
    /// Refuses each packet until a time at which it refuses it again.
    Breaks,
    /// Drops a packet after 10 have passed, and claims to be transparent.
    NotTransparent,
    /// Marks packets that are not ECN-capable.
    MarksAll,
    /// Holds one packet more than its limit.
    Overfills,
    /// Behaves depending on previous runs.
    Random,
    /// Names a time 50 ms too late: the link idles.
    WakesLate,
    /// Delivers a packet that is larger by one byte.
    Resizes,
    /// Clears the ECN field of departing packets.
    Unmarks,
    /// Sets "congestion experienced" without reporting a mark.
    MarksInSilence,
    /// Loses the first waiting packet when a weight changes.
    LeaksAtWeight,
    /// Loses the packets that no longer fit when the limit is reduced.
    LosesAtLimit,
    /// Keeps the old limit.
    IgnoresLimit,
    /// Drains nothing.
    KeepsAtDrain,
}

#[derive(Debug)]
struct Fifo {
    defect: Defect,
    queue: VecDeque<SimplePacket>,
    backlog: Backlog,
    seen: u64,
    wakeup: Option<Time>,
    last: Option<SimplePacket>,
    limit: u64,
    left: Time,
}

const LIMIT: u64 = 4;

impl Fifo {
    fn new(defect: Defect) -> Self {
        let (queue, backlog, left) = (VecDeque::new(), Backlog::EMPTY, Time::ZERO);
        Self { defect, queue, backlog, seen: 0, wakeup: None, last: None, limit: LIMIT, left }
    }

    fn lose(&mut self) {
        if let Some(packet) = self.queue.pop_front() {
            self.backlog.remove(&packet);
        }
    }
}

impl Queue<SimplePacket> for Fifo {
    fn enqueue(&mut self, now: Time, mut packet: SimplePacket, sink: &mut dyn Sink<SimplePacket>) {
        static RUNS: AtomicU64 = AtomicU64::new(0);
        self.seen += 1;
        let excess = u64::from(self.defect == Defect::Overfills);
        let drops = match self.defect {
            Defect::NotTransparent => self.seen > 10,
            Defect::Random => RUNS.fetch_add(1, Ordering::Relaxed).is_multiple_of(7),
            _ => false,
        };
        if drops || self.backlog.packets >= Packets::new(self.limit + excess) {
            return sink.dropped(now, packet, DropReason::Overflow);
        }
        if self.defect == Defect::MarksAll {
            packet.ecn = Ecn::Ce;
            sink.marked(now, &packet);
        }
        if self.defect == Defect::MarksInSilence {
            packet.ecn = Ecn::Ce;
        }
        if self.defect == Defect::Loses && self.queue.len() == 2 {
            return;
        }
        self.backlog.add(&packet);
        if self.defect == Defect::Miscounts {
            self.backlog.bytes = Bytes::new(1_000 * self.backlog.packets.get());
        }
        self.queue.push_back(packet);
    }

    fn dequeue(&mut self, now: Time, _: &mut dyn Sink<SimplePacket>) -> Option<SimplePacket> {
        match self.defect {
            Defect::Duplicates if self.queue.is_empty() => return self.last.take(),
            Defect::Idles if self.queue.len() == 1 => return None,
            Defect::WakesInPast => {
                self.wakeup = Some(now);
                return None;
            }
            Defect::WakesLate if now < self.left + Span::from_millis(1) => {
                self.wakeup = Some(self.left + Span::from_millis(51));
                return None;
            }
            Defect::Breaks => {
                self.wakeup = Some(now + Span::from_millis(1));
                return None;
            }
            _ => (),
        }
        let place = usize::from(self.defect == Defect::Reorders && self.queue.len() > 1);
        let mut packet = self.queue.remove(place)?;
        self.left = now;
        self.last = Some(packet);
        self.backlog.packets = Packets::new(self.queue.len() as u64);
        self.backlog.bytes = Bytes::new(self.queue.iter().map(|packet| packet.size.get()).sum());
        match self.defect {
            Defect::Resizes => packet.size += Bytes::new(1),
            Defect::Unmarks => packet.ecn = Ecn::NotEct,
            _ => (),
        }
        Some(packet)
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.wakeup
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn is_transparent(&self) -> bool {
        matches!(self.defect, Defect::None | Defect::NotTransparent)
    }
}

impl Discipline<SimplePacket> for Fifo {
    fn drain(&mut self, _: Time) -> Option<SimplePacket> {
        if self.defect == Defect::KeepsAtDrain {
            return None;
        }
        let packet = self.queue.pop_front()?;
        self.backlog.remove(&packet);
        Some(packet)
    }

    fn set_limit(&mut self, limit: Limit) {
        let Limit::Packets(limit) = limit else { return };
        if self.defect != Defect::IgnoresLimit {
            self.limit = limit.get();
        }
        while self.defect == Defect::LosesAtLimit && self.backlog.packets > limit {
            self.lose();
        }
    }

    fn set_flow(&mut self, _: FlowId, _: FlowSetting) -> bool {
        if self.defect == Defect::LeaksAtWeight {
            self.lose();
        }
        false
    }
}

fn violation(defect: Defect, laws: Laws) -> Option<Violation> {
    laws.verify(|_| Fifo::new(defect)).err().map(|violation| *violation)
}

fn violation_by_change(defect: Defect) -> Option<Violation> {
    let laws = Laws::default().limit(Packets::new(LIMIT));
    laws.verify_changes(|_| Fifo::new(defect)).err().map(|violation| *violation)
}

#[test]
fn every_defect_is_found_by_its_law_with_a_short_sequence() {
    let laws = Laws::default().limit(Packets::new(LIMIT));
    assert_eq!(violation(Defect::None, laws), None);
    for (defect, laws, law, longest) in [
        (Defect::Loses, laws, Law::Conservation, 3),
        (Defect::Reorders, laws, Law::Order, 3),
        (Defect::Idles, laws, Law::WorkConservation, 2),
        (Defect::Duplicates, laws, Law::Conservation, 3),
        (Defect::Miscounts, laws, Law::Conservation, 1),
        (Defect::WakesInPast, laws.holds_back(), Law::WakeUp, 2),
        (Defect::Breaks, laws.holds_back(), Law::WakeUp, 2),
        (Defect::NotTransparent, laws, Law::Transparency, 11),
        (Defect::MarksAll, laws, Law::Marking, 1),
        (Defect::Overfills, laws, Law::Limit, 5),
        (Defect::WakesLate, laws.holds_back(), Law::WakeUp, 4),
        (Defect::Resizes, laws, Law::Conservation, 2),
        (Defect::Unmarks, laws, Law::Marking, 2),
        (Defect::MarksInSilence, laws, Law::Marking, 2),
    ] {
        let found = violation(defect, laws).unwrap_or_else(|| panic!("{defect:?} is not found"));
        assert_eq!(found.law, law, "{defect:?}: {found}");
        assert!(found.ops.len() <= longest, "{defect:?}: {found}");
        assert!(found.step <= found.ops.len(), "{defect:?}: {found}");
        // The same sequence in each run of the test.
        assert_eq!(Some(&found), violation(defect, laws).as_ref());
    }
    assert_eq!(violation(Defect::Random, laws).unwrap().law, Law::Determinism);
}

#[test]
fn what_goes_wrong_at_a_change_is_found() {
    assert_eq!(violation_by_change(Defect::None), None);
    for (defect, law, longest) in [
        (Defect::LeaksAtWeight, Law::Conservation, 2),
        (Defect::LosesAtLimit, Law::Conservation, 3),
        (Defect::IgnoresLimit, Law::Limit, 6),
        (Defect::KeepsAtDrain, Law::Conservation, 2),
    ] {
        let laws = Laws::default().limit(Packets::new(LIMIT));
        assert_eq!(violation(defect, laws), None, "{defect:?} needs no change");
        let found = violation_by_change(defect).unwrap_or_else(|| panic!("{defect:?} is not found"));
        assert_eq!(found.law, law, "{defect:?}: {found}");
        assert!(found.ops.len() <= longest, "{defect:?}: {found}");
    }
}

#[test]
fn a_limit_in_bytes_is_checked() {
    // Four packets, of any size.
    let found = violation(Defect::None, Laws::default().limit_bytes(Bytes::new(2_000))).unwrap();
    assert_eq!(found.law, Law::Limit, "{found}");
    assert_eq!(violation(Defect::None, Laws::default().limit_bytes(Bytes::new(6_000))), None);
}

#[test]
fn a_message_has_the_law_the_step_and_the_sequence() {
    let found = violation(Defect::Reorders, Laws::default()).unwrap().to_string();
    let expected = "\
the law of order within a flow is broken: packet 1 of flow 0 left before packet 0
    0: enqueue packet 0 of flow 0, 40B
    1: enqueue packet 1 of flow 0, 40B
    2: dequeue   <-- here
";
    let at_end = "\
the law of order within a flow is broken: packet 1 of flow 0 left before packet 0
    0: enqueue packet 0 of flow 0, 40B
    1: enqueue packet 1 of flow 0, 40B
    2: dequeue what waits   <-- here
";
    assert!([expected, at_end].contains(&found.as_str()), "{found}");
}

#[test]
fn a_fifo_is_not_fair_by_weights() {
    let fifo = |_: &apportion_core::system::LinkContext<'_>| Unbounded::default();
    let found = Laws::default().fair(Bytes::new(1_500)).verify(fifo).unwrap_err();
    assert_eq!(found.law, Law::Fairness);
    assert!(found.what.contains("while both were backlogged"), "{}", found.what);
}

/// A FIFO without a limit.
#[derive(Default)]
struct Unbounded(VecDeque<SimplePacket>, Backlog);

impl Queue<SimplePacket> for Unbounded {
    fn enqueue(&mut self, _: Time, packet: SimplePacket, _: &mut dyn Sink<SimplePacket>) {
        self.1.add(&packet);
        self.0.push_back(packet);
    }
    fn dequeue(&mut self, _: Time, _: &mut dyn Sink<SimplePacket>) -> Option<SimplePacket> {
        let packet = self.0.pop_front()?;
        self.1.remove(&packet);
        Some(packet)
    }
    fn backlog(&self) -> Backlog {
        self.1
    }
}
