//! L4S marks in place of the early drops of [`pfd`](super::pfd); see [`l4s`](super::l4s).
//!
//! *Which flow, and how often.* An arrival above thresh selects the flow that holds most for its threshold,
//! as without L4S. If the flow's last arrival was an L4S packet, the flow owes a mark with probability p_L,
//! otherwise it loses a packet with p:
//!
//! ```text
//! p_L = min(1, 2 sqrt(p))               (1)
//! ```
//!
//! Both use one random number, so that either kind is selected as often. The mark goes onto the packet that
//! is served next, which the drop would have hit. A flow owes at most as many marks as it has packets
//! waiting. Beyond that number, and if p is a quarter or more, marks carry no more information, and it loses
//! packets with p too. Beyond the limit it loses them with certainty: an unresponsive ECT(1) flood gets no
//! more of the buffer than another.
//!
//! *Delay.* With (1) alone a scalable flow waits as long as others: up to thresh. If the scheduler keeps
//! flows apart, an L4S packet with another of its flow behind it is also marked by its own sojourn time
//! ([`Ramp`], 0.8 to 1.2 ms). Its flow then gets its share from the scheduler and holds next to nothing. In a
//! FIFO the sojourn time is common to all flows, and this part is off: it would mark all packets of a flow
//! whose share is taken by the queues of others.
//!
//! Memory: 8 bytes per flow.

use alloc::vec::Vec;

use super::l4s::{Ramp, is_overload, marking};
use super::push_out::Departure;
use crate::packet::FlowId;
use crate::queue::Backlog;
use crate::random::Stream;

/// The marks that flows owe.
#[derive(Clone, Debug, Default)]
pub(crate) struct Marks {
    flows: Vec<Flow>,
    /// The random number of the last early signal, in [0, 1).
    drawn: f64,
    marks: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    /// The number of marks owed.
    owed: u32,
    /// Whether the last arrival was an L4S packet.
    is_l4s: bool,
}

impl Marks {
    /// Notes the arrival of a packet of `flow`.
    pub fn arrived(&mut self, flow: FlowId, is_l4s: bool) {
        if flow.slot() >= self.flows.len() {
            self.flows.resize(flow.slot() + 1, Flow::default());
        }
        self.flows[flow.slot()].is_l4s = is_l4s;
    }

    /// Whether an arrival above thresh is a signal to some flow, with probability `p` for a drop.
    pub fn is_due(&mut self, p: f64, random: &mut Stream) -> bool {
        self.drawn = random.uniform();
        self.drawn < marking(p)
    }

    /// Whether the selected `flow`, which holds `held`, loses a packet; otherwise it may owe one more mark.
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

    /// Whether a departing L4S packet is marked.
    pub fn marks(&mut self, leaving: Departure, random: &mut Stream) -> bool {
        let Some(flow) = self.flows.get_mut(leaving.flow.slot()) else {
            return false;
        };
        let owes = flow.owed > 0;
        // Packets that were pushed out owe nothing.
        flow.owed = if leaving.held.is_empty() { 0 } else { flow.owed.saturating_sub(1) };
        let is_late = leaving.is_apart && !leaving.held.is_empty();
        owes || is_late && random.chance(Ramp::DEFAULT.at(leaving.sojourn))
    }

    /// The number of early signals that were marks.
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

    /// Among 20,000 arrivals above thresh that select a flow with many packets: the marks that it owes, and
    /// the packets that it loses.
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
        // Below p = 0.2: a classic packet would be dropped.
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

    /// PFD for a link of a packet of 1000 B per millisecond: 100 packets, thresh at 50.
    fn pfd<S: Scheduler<SimplePacket>>(scheduler: S, p: f64) -> Buffer<S, Pfd> {
        let mut params = PfdParams::from_args(&EntryArgs::defaults(&ENTRY)).unwrap();
        params.limit = "100p".parse().ok();
        (params.p, params.thresh, params.l4s) = (Ratio::clamped(p), Some(Ratio::clamped(0.5)), true);
        Buffer::new(scheduler, Pfd::new(&params, Rate::from_mbit(8), &[], Stream::new(1, "pfd")))
    }

    /// Sends `count` packets of flow 0 with `ecn` at once, every fourth of another flow. Returns the numbers
    /// of marked and of dropped packets.
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
        // 80 packets are 30 above thresh, and p_L is 0.89: 27 on average, 4σ = 7.
        let (marked, dropped) = fill(Fifo::new(), 0.2, 80, Ecn::Ect1);
        assert!((20..=30).contains(&marked) && dropped == 0, "{marked} {dropped}");
        let (marked, dropped) = fill(Fifo::new(), 0.2, 80, Ecn::Ect0);
        assert!(marked == 0 && (1..=14).contains(&dropped), "{marked} {dropped}");
        // An L4S flood fills the buffer, and the rest of it is lost.
        let (_, dropped) = fill(Fifo::new(), 0.2, 400, Ecn::Ect1);
        assert!(dropped >= 300, "{dropped}");
    }

    #[test]
    fn where_flows_are_kept_apart_what_has_waited_for_its_own_flow_is_marked() {
        // There are no early signals. The first of 20 has not waited. The next ones waited for a millisecond,
        // half-way up the ramp, and are marked half of the time. No packet waits behind the last.
        let (marked, _) = fill(StartTimeFq::new(Weight::ONE), 0.0, 20, Ecn::Ect1);
        assert!((12..=13).contains(&marked), "{marked}");
        assert_eq!(fill(StartTimeFq::new(Weight::ONE), 0.0, 20, Ecn::Ect0).0, 0);
        // In one queue packets wait for all others, and the delay does not depend on their flow.
        assert_eq!(fill(Fifo::new(), 0.0, 20, Ecn::Ect1).0, 0);
    }
}
