//! Disciplines that are wrong in one way each: every one is found out, by the right law, with a short sequence.
#![allow(clippy::unwrap_used, reason = "a test that fails")]

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use apportion_core::units::{Bytes, Packets, Span, Time};
use apportion_core::{Backlog, DropReason, Ecn, Queue, SimplePacket, Sink};
use apportion_laws::{Law, Laws, Violation};

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Defect {
    #[default]
    None,
    /// Loses each third packet of a busy time.
    Loses,
    /// Delivers the second packet that waits, if there is one.
    Reorders,
    /// Gives nothing while a single packet waits.
    Idles,
    /// Delivers a packet once more if it was the only one.
    Duplicates,
    /// Counts bytes of one size for all.
    Miscounts,
    /// Refuses and names the present.
    WakesInPast,
    /// Refuses each packet until a time at which it refuses again.
    Breaks,
    /// Drops a packet after 10 that went through, and says that it is transparent.
    NotTransparent,
    /// Marks what is not ECN-capable.
    MarksAll,
    /// Holds one packet more than it may.
    Overfills,
    /// Behaves by what happened in other runs.
    Random,
}

#[derive(Debug, Default)]
struct Fifo {
    defect: Defect,
    queue: VecDeque<SimplePacket>,
    backlog: Backlog,
    seen: u64,
    wakeup: Option<Time>,
    last: Option<SimplePacket>,
}

const LIMIT: u64 = 4;

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
        if drops || self.backlog.packets >= Packets::new(LIMIT + excess) {
            return sink.dropped(now, packet, DropReason::Overflow);
        }
        if self.defect == Defect::MarksAll {
            packet.ecn = Ecn::Ce;
            sink.marked(now, &packet);
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
            Defect::Breaks => {
                self.wakeup = Some(now + Span::from_millis(1));
                return None;
            }
            _ => (),
        }
        let place = usize::from(self.defect == Defect::Reorders && self.queue.len() > 1);
        let packet = self.queue.remove(place)?;
        self.last = Some(packet);
        self.backlog.packets = Packets::new(self.queue.len() as u64);
        self.backlog.bytes = Bytes::new(self.queue.iter().map(|packet| packet.size.get()).sum());
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

fn violation(defect: Defect, laws: Laws) -> Option<Violation> {
    laws.verify(|_| Fifo { defect, ..Fifo::default() }).err().map(|violation| *violation)
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
