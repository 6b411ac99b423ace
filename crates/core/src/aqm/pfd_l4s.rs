//! Marks of [`pfd`](super::pfd) in place of its early drops, for L4S packets; see [`l4s`](super::l4s).
//!
//! *Whose, and how often.* An arrival above thresh names the flow that holds most for its threshold, as ever. If the last packet
//! that came of it is of L4S, the flow owes a mark with probability p_L, else it loses a packet with p:
//!
//! ```text
//! p_L = min(1, 2 sqrt(p))               (1)
//! ```
//!
//! from one random number, so that the flow of each kind is named as often. The mark goes onto the packet that is served next, as
//! the drop would have hit it. A flow owes at most as many marks as packets of it wait: from there on, and where p is a
//! quarter or more, marks say no more, and it loses packets with p too. Beyond the limit it loses them for certain: a flood that is ECT(1) and does not
//! answer has no more of the buffer than another.
//!
//! *How long.* With (1) alone a scalable flow waits as long as others do: up to thresh. Where the scheduler keeps flows apart, an L4S
//! packet behind which another of its flow waits is also marked by what it has waited itself ([`Ramp`], 0.8 to 1.2 ms). Its flow then takes what the
//! scheduler gives it and holds next to nothing. In a FIFO the wait is that of all, and this part is off: it would mark all packets of a flow
//! whose share others' queues take.
//!
//! Memory: 8 bytes per flow.

use alloc::vec::Vec;

use super::l4s::{Ramp, is_overload, marking};
use super::push_out::Departure;
use crate::packet::FlowId;
use crate::queue::Backlog;
use crate::random::Stream;

/// What flows owe.
#[derive(Clone, Debug, Default)]
pub(crate) struct Marks {
    flows: Vec<Flow>,
    /// That of the last early signal, in [0, 1).
    drawn: f64,
    marks: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    /// Marks.
    owed: u32,
    /// Whether its last arrival was of L4S.
    is_l4s: bool,
}

impl Marks {
    /// A packet of `flow` has come.
    pub fn arrived(&mut self, flow: FlowId, is_l4s: bool) {
        if flow.slot() >= self.flows.len() {
            self.flows.resize(flow.slot() + 1, Flow::default());
        }
        self.flows[flow.slot()].is_l4s = is_l4s;
    }

    /// Whether an arrival above thresh is a signal to some flow, with probability `p` if it is to be dropped.
    pub fn is_due(&mut self, p: f64, random: &mut Stream) -> bool {
        self.drawn = random.uniform();
        self.drawn < marking(p)
    }

    /// Whether `flow`, which holds `held` and which the signal names, loses a packet; else it may owe a mark more.
    pub fn is_dropped(&mut self, p: f64, flow: FlowId, held: Backlog) -> bool {
        let is_drop = self.drawn < p;
        let Some(flow) = self.flows.get_mut(flow.slot()).filter(|flow| flow.is_l4s) else { return is_drop };
        let is_full = u64::from(flow.owed) >= held.packets.get();
        if is_full || is_drop && is_overload(p) {
            return is_drop;
        }
        flow.owed += 1;
        self.marks += 1;
        false
    }

    /// Whether a packet of L4S that leaves is marked.
    pub fn marks(&mut self, leaving: Departure, random: &mut Stream) -> bool {
        let Some(flow) = self.flows.get_mut(leaving.flow.slot()) else {
            return false;
        };
        let owes = flow.owed > 0;
        // None is owed for packets that were pushed out.
        flow.owed = if leaving.held.is_empty() { 0 } else { flow.owed.saturating_sub(1) };
        let is_late = leaving.is_apart && !leaving.held.is_empty();
        owes || is_late && random.chance(Ramp::DEFAULT.at(leaving.sojourn))
    }

    /// How often an early signal was a mark.
    pub fn count(&self) -> u64 {
        self.marks
    }
}

#[cfg(test)]
mod tests {
    use super::super::pfd::{ENTRY, Pfd, PfdParams};
    use super::*;
    use crate::buffer::Buffer;
    use crate::packet::{Ecn, SimplePacket};
    use crate::param::EntryArgs;
    use crate::queue::Queue;
    use crate::schedule::Scheduler;
    use crate::schedule::fifo::Fifo;
    use crate::schedule::start_time_fq::StartTimeFq;
    use crate::testing::{Log, packet};
    use crate::units::{Bytes, Packets, Rate, Ratio, Span, Time, Weight};

    fn held(packets: u64) -> Backlog {
        Backlog { packets: Packets::new(packets), bytes: Bytes::new(1_000 * packets) }
    }

    fn leaving() -> Departure {
        Departure { flow: FlowId(0), sojourn: Span::ZERO, held: held(9), is_apart: false }
    }

    /// Of 20,000 arrivals above thresh that name a flow with many packets: marks that it owes, packets that it loses.
    fn signals(is_l4s: bool, p: f64) -> (f64, f64) {
        let (mut marks, mut random) = (Marks::default(), Stream::new(1, "pfd"));
        marks.arrived(FlowId(0), is_l4s);
        let dropped = (0..20_000)
            .filter(|_| marks.is_due(p, &mut random) && marks.is_dropped(p, FlowId(0), held(1 << 20)));
        let dropped = dropped.count() as f64 / 20_000.0;
        (marks.count() as f64 / 20_000.0, dropped)
    }

    #[test]
    fn a_flow_of_l4s_owes_a_mark_by_twice_the_root_where_others_lose_a_packet() {
        let near = |share: f64, p: f64| {
            let band = 4.0 * (p * (1.0 - p) / 20_000.0_f64).sqrt();
            assert!((share - p).abs() <= band, "{share} against {p} ± {band}");
        };
        for p in [0.0, 0.02, 0.1, 0.25, 0.5, 1.0] {
            let (marks, dropped) = signals(false, p);
            assert_eq!(marks, 0.0);
            near(dropped, p);
            let (marks, dropped) = signals(true, p);
            near(dropped, if p < 0.25 { 0.0 } else { p });
            near(marks, if p < 0.25 { 2.0 * p.sqrt() } else { 1.0 - p });
        }
    }

    #[test]
    fn a_mark_goes_onto_the_next_packet_of_l4s_and_no_more_are_owed_than_wait() {
        let (mut marks, mut random) = (Marks::default(), Stream::new(1, "pfd"));
        marks.arrived(FlowId(0), true);
        // Below p = 0.2: it would be dropped, if it were of another kind.
        let mut signal = |marks: &mut Marks| {
            while !(marks.is_due(0.2, &mut random) && marks.drawn < 0.2) {}
            marks.is_dropped(0.2, FlowId(0), held(2))
        };
        assert_eq!([(); 4].map(|()| signal(&mut marks)), [false, false, true, true]);
        let mut random = Stream::new(1, "pfd");
        assert_eq!([(); 3].map(|()| marks.marks(leaving(), &mut random)), [true, true, false]);
    }

    #[test]
    fn a_queue_that_empties_owes_nothing() {
        let (mut marks, mut random) = (Marks::default(), Stream::new(1, "pfd"));
        marks.arrived(FlowId(0), true);
        for _ in 0..2 {
            while !marks.is_due(0.02, &mut random) {}
            assert!(!marks.is_dropped(0.02, FlowId(0), held(5)));
        }
        // The others were pushed out.
        assert!(marks.marks(Departure { held: Backlog::EMPTY, ..leaving() }, &mut random));
        assert!(!marks.marks(leaving(), &mut random));
    }

    /// In front of a link of a packet of 1000 B per millisecond: 100 packets, thresh at 50.
    fn pfd<S: Scheduler<SimplePacket>>(scheduler: S, p: f64) -> Buffer<S, Pfd> {
        let mut params = PfdParams::from_args(&EntryArgs::defaults(&ENTRY)).unwrap();
        params.limit = "100p".parse().ok();
        (params.p, params.thresh, params.l4s) = (Ratio::clamped(p), Ratio::clamped(0.5), true);
        Buffer::new(scheduler, Pfd::new(&params, Rate::from_mbit(8), &[], Stream::new(1, "pfd")))
    }

    /// Packets of flow 0 with `ecn`, and a packet of another every fourth, that come at once: those marked, and dropped.
    fn fill<S: Scheduler<SimplePacket>>(scheduler: S, p: f64, count: u32, ecn: Ecn) -> (usize, usize) {
        let (mut queue, mut log) = (pfd(scheduler, p), Log::default());
        for id in 0..count {
            let flow = u32::from(id % 4 == 3);
            let ecn = if flow == 0 { ecn } else { Ecn::NotEct };
            queue.enqueue(Time::ZERO, SimplePacket { ecn, ..packet(id, flow, 1_000) }, &mut log);
        }
        for ms in 0..u64::from(count) {
            queue.dequeue(Time::from_millis(ms), &mut log);
        }
        assert!(log.marked.iter().all(|(_, id)| id % 4 != 3));
        (log.marked.len(), log.dropped.len())
    }

    #[test]
    fn above_thresh_the_longest_is_marked_if_it_is_of_l4s_and_beyond_the_limit_dropped() {
        // 80 packets are 30 above thresh, and p_L 0.89: 27 in the mean, 4σ = 7.
        let (marked, dropped) = fill(Fifo::new(), 0.2, 80, Ecn::Ect1);
        assert!((20..=30).contains(&marked) && dropped == 0, "{marked} {dropped}");
        let (marked, dropped) = fill(Fifo::new(), 0.2, 80, Ecn::Ect0);
        assert!(marked == 0 && (1..=14).contains(&dropped), "{marked} {dropped}");
        // A flood of L4S fills the buffer, and all beyond it is lost.
        let (_, dropped) = fill(Fifo::new(), 0.2, 400, Ecn::Ect1);
        assert!(dropped >= 300, "{dropped}");
    }

    #[test]
    fn where_flows_are_kept_apart_what_has_waited_for_its_own_flow_is_marked() {
        // No early signals. The first of 20 has not waited, the next waited for a millisecond and so is marked half of the time, and
        // behind the last none waits. A millisecond is half-way up the ramp.
        let (marked, _) = fill(StartTimeFq::new(Weight::ONE), 0.0, 20, Ecn::Ect1);
        assert!((12..=13).contains(&marked), "{marked}");
        assert_eq!(fill(StartTimeFq::new(Weight::ONE), 0.0, 20, Ecn::Ect0).0, 0);
        // One queue makes a packet wait for all others, and says nothing of its flow.
        assert_eq!(fill(Fifo::new(), 0.0, 20, Ecn::Ect1).0, 0);
    }
}
