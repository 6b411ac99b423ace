//! AFQ, approximate fair queueing: a calendar of FIFO queues, one for each future round, and a sketch instead
//! of state per flow.
//!
//! Sharma, Liu, Atreya, Krishnamurthy, "Approximating fair queueing on reconfigurable switches", NSDI 2018,
//! section 3. Bit-by-bit round robin whose rounds are counted in steps of `BpR` bytes for each flow. Each
//! flow has a bid number, the bytes that it has sent so far in rounds; a flow that falls behind the round in
//! service is moved up to it. A packet joins the queue of the round that contains its bid, and is dropped if
//! this round is beyond the last queue. The queue of the round in service has priority until it is empty, and
//! then becomes the last. A count-min sketch holds bid numbers: the bid is the smallest of the flow's cells,
//! and raises those that are below its new value.
//!
//! Readings:
//! - A packet's round is that of its first byte, so that a packet larger than `BpR` has a round as well.
//! - A dropped packet does not raise the bid.
//! - A round ends when the link asks and its queue is empty, not with its last packet: arrivals during its
//!   transmission still join.
//! - While nothing waits, a packet whose bid is too far ahead starts its round: there is nothing before it.
//!
//! Deviations:
//! - Flows can have weights: a byte counts for less in the bid of a flow with more weight. The smallest
//!   weight has `BpR` a round. Weights take 8 bytes for each flow up to the last one with a configured
//!   weight; flows without have no state.
//! - Besides the horizon, all queues together have a `limit`, which is divided by a dynamic threshold
//!   (Choudhury, Hahne, ToN 1998, with alpha 1): a bid may be ahead of the round in service by at most the
//!   free bytes. With a limit alone, at which arrivals are dropped, a flood fills the shared buffer and gets
//!   4.5 times its due in `scenarios/approximate-fairness.toml`.
//! - `bpr`, unless set, follows the limit, so that the horizon is as long as the buffer. A changed `bpr`
//!   applies from the next time that the queue is empty; otherwise packets of a flow might overtake each
//!   other.
//!
//! The horizon, `queues` × `bpr` for each flow, is critical: it is the buffer of that flow, and a coarse
//! `bpr` leaves flows in FIFO order within a round. With 32 queues one of the two is too small with many
//! flows or long round trips. With 1024 neither was too small in the tests: next to a flood the smallest
//! share of 10 to 100 TCP flows is all of its due, as with DRR, and of 1,000 flows over 200 Mb/s 0.73, where
//! DRR gives 0.70.
//!
//! Cost: O(`rows`) per packet, and up to `queues` steps from one packet to the next. Memory: 8 bytes for each cell of the
//! sketch, whatever the number of flows. Parameters: [`ENTRY`].

use alloc::vec;
use alloc::vec::Vec;

use super::charge::{BYTE, Charges, HORIZON};
use super::discipline::Discipline;
use super::hash::bucket;
use crate::flow_setting::FlowSetting;
use crate::limit::{BufferSize, Limit, LinkLimit};
use crate::list::{PacketQueue, Pool};
use crate::packet::{FlowId, Packet};
use crate::param::{Entry, Heeds, LIMIT, Param, ParamError, Role, Shares, Traits, require};
use crate::params;
use crate::queue::{Backlog, DropReason, Queue, Sink};
use crate::random::Stream;
use crate::schedule::{End, Queued};
use crate::units::{Bytes, Rate, Time, Weight};

/// AFQ in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "afq",
    role: Role::System,
    summary: "Approximate fair queueing: a FIFO for each round to come, bids of flows in a sketch.",
    reference: "Sharma, Liu, Atreya, Krishnamurthy 2018",
    cost: "O(1) per packet, no state per flow, 256 kB for the sketch",
    params: AfqParams::PARAMS,
    traits: Traits {
        heeds: &[Heeds::Weight],
        shares: Shares::Approximate,
        limits: "Flows that share all cells of the sketch share a bid. Beside a flood the least of 1,000 TCP \
            flows gets 0.73 of its due, with `queues = 32` only 0.16 (0.63 with `bpr = \"1500B\"`).",
        ..Traits::NONE
    },
};

/// A full packet of Ethernet, for a `limit` in packets and as the minimum of a `bpr` that follows it.
const FULL: u64 = 1_500;
/// The maximum number of rows. Chosen: two are enough, and cell numbers of more rows fit the stack.
const MAX_ROWS: u32 = 8;
/// The maximum number of cells. Chosen: 128 MB.
const MAX_CELLS: u64 = 1 << 24;

params! {
    /// Parameters of [`Afq`].
    pub struct AfqParams {
        limit: Option<BufferSize> = LIMIT,
        /// Rounds that packets can wait for.
        queues: u32 = Param::of(
            "1024",
            "chosen: memory has room for more than the tens of queues of a switch, and rounds are as short as a packet",
        )
        .symbol("nQ")
        .in_paper("32"),
        /// Bytes that the flow with the smallest weight sends in a round, others in proportion; if not set `limit` divided
        /// by `queues`, at least 1500B.
        bpr: Option<Bytes> = Param::unset("chosen: the paper fits it to its network").symbol("BpR"),
        /// Rows of the sketch: cells of which the least is a flow's bid.
        rows: u32 = Param::of("2", "chosen"),
        /// Cells in a row of the sketch.
        columns: u32 = Param::of("16384", "chosen: 256 kB in all"),
    }
    check: |params: &Self, _| params.check()
}

impl AfqParams {
    fn check(&self) -> Result<(), ParamError> {
        require((1..=65_536).contains(&self.queues), "queues", "it must lie between 1 and 65536")?;
        let fits = |bpr: Bytes| (1..=1 << 32).contains(&bpr.get());
        require(self.bpr.is_none_or(fits), "bpr", "a round must be at least 1B and at most 4GB")?;
        require((1..=MAX_ROWS).contains(&self.rows), "rows", "it must lie between 1 and 8")?;
        let cells = u64::from(self.rows) * u64::from(self.columns);
        let message = "there must be at least 1, and 16777216 in all rows at most";
        require((1..=MAX_CELLS).contains(&cells), "columns", message)
    }

    /// BpR with this limit, in the fixed point of bids.
    fn bytes_per_round(&self, limit: Limit) -> u64 {
        let all = match limit {
            Limit::Packets(limit) => limit.get().saturating_mul(FULL),
            Limit::Bytes(limit) => limit.get(),
        };
        let follows = (all / u64::from(self.queues)).clamp(FULL, 1 << 32);
        self.bpr.map_or(follows, Bytes::get) * BYTE
    }
}

/// A count-min sketch of bid numbers.
#[derive(Clone, Debug)]
struct Sketch {
    cells: Vec<u64>,
    salts: Vec<u64>,
    columns: u32,
}

/// The cells of a flow, one in each row.
type Cells = [usize; MAX_ROWS as usize];

impl Sketch {
    fn new(rows: u32, columns: u32, random: &mut Stream) -> Self {
        let salts = (0..rows).map(|_| random.below(u64::MAX)).collect();
        Self { cells: vec![0; rows as usize * columns as usize], salts, columns }
    }

    /// The cells of a flow, and the smallest of their values.
    fn read(&self, flow: FlowId) -> (Cells, u64) {
        let (mut cells, mut bid, mut row) = (Cells::default(), u64::MAX, 0);
        for (cell, &salt) in cells.iter_mut().zip(&self.salts) {
            *cell = row + bucket(flow, salt, self.columns);
            bid = bid.min(self.cells[*cell]);
            row += self.columns as usize;
        }
        (cells, bid)
    }

    /// Raises the cells of a flow to its bid.
    fn update(&mut self, cells: &Cells, bid: u64) {
        for &cell in &cells[..self.salts.len()] {
            self.cells[cell] = self.cells[cell].max(bid);
        }
    }
}

/// The calendar and the sketch.
#[derive(Clone, Debug)]
pub struct Afq<P> {
    params: AfqParams,
    limit: LinkLimit,
    charges: Charges,
    sketch: Sketch,
    packets: Pool<P>,
    queues: Vec<PacketQueue>,
    /// The queue of the round in service.
    current: usize,
    /// The paper's R × BpR: the bid at which the round in service starts.
    round: u64,
    bpr: u64,
    backlog: Backlog,
}

impl<P: Packet> Afq<P> {
    /// An empty calendar. A flow of weight `smallest` has BpR a round; `random` supplies the salts of the
    /// hashes.
    #[must_use]
    pub fn new(params: &AfqParams, link_rate: Rate, smallest: Weight, mut random: Stream) -> Self {
        let limit = LinkLimit::new(params.limit, link_rate);
        Self {
            bpr: params.bytes_per_round(limit.get()),
            limit,
            params: params.clone(),
            charges: Charges::new(smallest),
            sketch: Sketch::new(params.rows, params.columns, &mut random),
            packets: Pool::new(),
            queues: vec![PacketQueue::EMPTY; params.queues as usize],
            current: 0,
            round: 0,
            backlog: Backlog::EMPTY,
        }
    }

    /// The queue that is `rounds` rounds ahead.
    fn ahead(&self, rounds: usize) -> usize {
        let queue = self.current + rounds;
        if queue < self.queues.len() { queue } else { queue - self.queues.len() }
    }

    /// The maximum lead of a bid: the free part of the limit, in the fixed point of bids.
    fn free(&self) -> u64 {
        let free = match self.limit.get() {
            Limit::Packets(limit) => {
                limit.get().saturating_sub(self.backlog.packets.get()).saturating_mul(FULL)
            }
            Limit::Bytes(limit) => limit.get().saturating_sub(self.backlog.bytes.get()),
        };
        free.saturating_mul(BYTE)
    }

    fn serve(&mut self) -> Option<P> {
        if self.backlog.is_empty() {
            return None;
        }
        // Terminates: there is a backlog, so some queue is not empty.
        while self.queues[self.current].is_empty() {
            self.current = self.ahead(1);
            self.round += self.bpr;
        }
        if self.round >= HORIZON {
            self.rebase();
        }
        let queued = self.queues[self.current].pop(&mut self.packets, End::Head)?;
        self.backlog.remove(&queued.packet);
        Some(queued.packet)
    }

    /// Reduces all numbers. A bid behind the round in service carries no information.
    #[cold]
    fn rebase(&mut self) {
        let by = core::mem::take(&mut self.round);
        self.sketch.cells.iter_mut().for_each(|bid| *bid = bid.saturating_sub(by));
    }
}

impl<P: Packet> Queue<P> for Afq<P> {
    fn enqueue(&mut self, now: Time, packet: P, sink: &mut dyn Sink<P>) {
        if self.backlog.is_empty() {
            self.bpr = self.params.bytes_per_round(self.limit.get());
        }
        if !self.limit.get().admits(&packet, self.backlog) {
            return sink.dropped(now, packet, DropReason::Overflow);
        }
        let flow = packet.flow();
        let (cells, bid) = self.sketch.read(flow);
        let bid = bid.max(self.round);
        let ahead = bid - self.round;
        let mut rounds = ahead / self.bpr;
        if rounds >= self.queues.len() as u64 || ahead > self.free() {
            if !self.backlog.is_empty() {
                return sink.dropped(now, packet, DropReason::Forced);
            }
            (self.round, rounds) = (bid, 0);
        }
        self.sketch.update(&cells, bid + self.charges.of(flow, packet.size()));
        self.backlog.add(&packet);
        let queue = self.ahead(rounds as usize);
        self.queues[queue].push(&mut self.packets, Queued { packet, arrived: now });
    }

    fn dequeue(&mut self, _now: Time, _sink: &mut dyn Sink<P>) -> Option<P> {
        self.serve()
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }
}

impl<P: Packet> Discipline<P> for Afq<P> {
    fn drain(&mut self, _now: Time) -> Option<P> {
        self.serve()
    }
    // A packet taken out is not refunded to its flow.
    fn take(&mut self, _now: Time, flow: FlowId) -> Option<P> {
        let is_meant = |packet: &P| packet.flow().slot() == flow.slot();
        let rounds = 0..self.queues.len();
        let queued = rounds.into_iter().find_map(|rounds| {
            let queue = self.ahead(rounds);
            self.queues[queue].take_first(&mut self.packets, is_meant)
        })?;
        self.backlog.remove(&queued.packet);
        Some(queued.packet)
    }
    fn limit(&self) -> Option<Limit> {
        Some(self.limit.get())
    }
    fn set_limit(&mut self, limit: Limit) {
        self.limit.set(limit);
    }
    fn set_link_rate(&mut self, rate: Rate) {
        self.limit.set_link_rate(rate);
    }
    fn set_flow(&mut self, flow: FlowId, setting: FlowSetting) -> bool {
        let FlowSetting::Weight(weight) = setting else { return false };
        self.charges.set_weight(flow, weight);
        true
    }
    fn allows_deferred_dequeue(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::SimplePacket;
    use crate::param::EntryArgs;
    use crate::testing::{Log, packet};
    use crate::units::Packets;

    fn params(queues: u32, bpr: u64) -> AfqParams {
        let defaults = AfqParams::from_args(&EntryArgs::defaults(&ENTRY)).unwrap();
        AfqParams { queues, bpr: Some(Bytes::new(bpr)), ..defaults }
    }

    fn afq(params: &AfqParams) -> Afq<SimplePacket> {
        Afq::new(params, Rate::from_mbit(10), Weight::ONE, Stream::new(1, "afq"))
    }

    /// Sends packets of these flows and sizes, numbered from `first`. Returns the drops with their reasons.
    fn push(queue: &mut Afq<SimplePacket>, first: u32, packets: &[(u32, u64)]) -> Vec<(u32, DropReason)> {
        let mut log = Log::default();
        for (id, &(flow, size)) in (first..).zip(packets) {
            queue.enqueue(Time::ZERO, packet(id, flow, size), &mut log);
        }
        log.dropped.into_iter().map(|(_, id, reason)| (id, reason)).collect()
    }

    fn serve(queue: &mut Afq<SimplePacket>, n: usize) -> Vec<u32> {
        (0..n).map_while(|_| queue.serve()).map(|packet| packet.id).collect()
    }

    #[test]
    fn packets_leave_by_the_round_of_their_bid() {
        let mut queue = afq(&params(4, 1_000));
        // Flow 0: bids 0, 600, 1200, 1800 are rounds 0, 0, 1, 1; flow 1: bids 0, 1000 are rounds 0, 1.
        let dropped = push(&mut queue, 1, &[(0, 600), (0, 600), (0, 600), (0, 600), (1, 1_000), (1, 1_000)]);
        assert_eq!((dropped, serve(&mut queue, 9)), (vec![], vec![1, 2, 5, 3, 4, 6]));
    }

    #[test]
    fn while_nothing_waits_no_packet_is_too_far_ahead() {
        // One round of 1000 B, or one packet: the second packet of a flow arrives after the first has left.
        let one_packet =
            AfqParams { limit: Some(Limit::Packets(Packets::new(1)).into()), ..params(4, 1_000) };
        for params in [params(1, 1_000), one_packet] {
            let mut queue = afq(&params);
            for id in 0..50 {
                assert_eq!((push(&mut queue, id, &[(0, 1_500)]), serve(&mut queue, 2)), (vec![], vec![id]));
            }
        }
    }

    #[test]
    fn what_lies_beyond_the_last_queue_is_dropped_and_not_charged() {
        let mut queue = afq(&params(2, 1_000));
        // Bids 0, 900, 1800 lie in rounds 0, 0, 1; 2700 lies in round 2, which has no queue.
        assert_eq!(push(&mut queue, 1, &[(0, 900); 5]), [(4, DropReason::Forced), (5, DropReason::Forced)]);
        // Another flow has all its rounds.
        assert_eq!(push(&mut queue, 6, &[(1, 900); 3]), []);
        assert_eq!(serve(&mut queue, 5), [1, 2, 6, 7, 3]);
        // Round 1 is in service, and the bid of flow 0 is 2700: it has a place in round 2.
        assert_eq!(push(&mut queue, 9, &[(0, 900)]), []);
        assert_eq!(serve(&mut queue, 9), [8, 9]);
    }

    #[test]
    fn a_flow_leaves_as_much_of_the_buffer_free_as_it_holds() {
        let mut queue =
            afq(&AfqParams { limit: Some(Limit::Bytes(Bytes::new(10_000)).into()), ..params(32, 1_000) });
        // Before the sixth packet the bid is 5000, and 5000 bytes are free; before the seventh 6000 and 4000.
        assert_eq!(push(&mut queue, 1, &[(0, 1_000); 7]), [(7, DropReason::Forced)]);
        // Another flow has bids 0, 1000 and 2000 next to 4000, 3000 and 2000 free.
        assert_eq!(push(&mut queue, 8, &[(1, 1_000); 4]), [(11, DropReason::Forced)]);
    }

    #[test]
    fn a_flow_that_was_idle_starts_in_the_round_in_service() {
        let mut queue = afq(&params(8, 1_000));
        push(&mut queue, 1, &[(0, 1_000); 6]);
        assert_eq!(serve(&mut queue, 4), [1, 2, 3, 4]);
        // Round 3 is in service. Flow 1 has bids 3000 and 4000, as flow 0's fifth.
        push(&mut queue, 7, &[(1, 1_000); 2]);
        assert_eq!(serve(&mut queue, 9), [7, 5, 8, 6]);
    }

    #[test]
    fn a_byte_of_a_heavy_flow_raises_its_bid_by_less() {
        let mut queue = afq(&params(8, 1_000));
        assert!(queue.set_flow(FlowId(1), FlowSetting::Weight(Weight::new(4.0).unwrap())));
        push(&mut queue, 1, &[(0, 1_000); 2]);
        push(&mut queue, 11, &[(1, 1_000); 8]);
        // Four packets a round against one.
        assert_eq!(serve(&mut queue, 99), [1, 11, 12, 13, 14, 2, 15, 16, 17, 18]);
    }

    #[test]
    fn the_sketch_never_bids_too_little_and_too_much_only_where_all_cells_are_shared() {
        let mut sketch = Sketch::new(2, 64, &mut Stream::new(1, "sketch"));
        let mut exact = vec![0; 40];
        for step in 1..=4_000 {
            let flow = step as usize * 7 % 40;
            let (cells, bid) = sketch.read(FlowId(flow as u32));
            assert!(bid >= exact[flow]);
            exact[flow] = bid + step;
            sketch.update(&cells, exact[flow]);
        }
        // With one cell all flows are one.
        let mut one = Sketch::new(1, 1, &mut Stream::new(1, "sketch"));
        let (cells, _) = one.read(FlowId(0));
        one.update(&cells, 5);
        assert_eq!(one.read(FlowId(1)).1, 5);
    }

    #[test]
    fn bytes_per_round_follow_the_limit_once_the_queue_is_empty() {
        let mut queue = afq(&AfqParams { queues: 10, bpr: None, ..params(1, 1) });
        // 100 ms of 10 Mb/s are 125 kB.
        assert_eq!(queue.bpr, 12_500 * BYTE);
        push(&mut queue, 1, &[(0, 500)]);
        queue.set_limit(Limit::Packets(Packets::new(100)));
        push(&mut queue, 2, &[(0, 500)]);
        assert_eq!(queue.bpr, 12_500 * BYTE);
        assert_eq!(serve(&mut queue, 9), [1, 2]);
        push(&mut queue, 3, &[(0, 500)]);
        assert_eq!(queue.bpr, 15_000 * BYTE);
    }

    #[test]
    fn moving_all_numbers_down_changes_no_order() {
        let orders = [0, HORIZON - 3_000 * BYTE].map(|round| {
            let mut queue = afq(&params(16, 1_000));
            queue.round = round;
            let packets: Vec<_> =
                (0..60).map(|step| (step * step % 7, 300 + 50 * u64::from(step % 9))).collect();
            let mut order = Vec::new();
            for (first, packets) in (0..).step_by(6).zip(packets.chunks(6)) {
                push(&mut queue, first, packets);
                order.extend(serve(&mut queue, 4));
            }
            order.extend(serve(&mut queue, 99));
            assert!(queue.round < HORIZON);
            order
        });
        assert_eq!(orders[0], orders[1]);
    }
}
