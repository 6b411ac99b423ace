//! CAKE, "common applications kept enhanced": flows take turns as in FQ-CoDel, their hosts share the link first, each queue has
//! its own COBALT, and real-rate flows go first up to a part of the link.
//!
//! Høiland-Jørgensen, Täht, Morton, "Piece of CAKE: a comprehensive queue management solution for home gateways", LANMAN 2018
//! (arXiv 1804.07617), and what tc-cake(8) says of its options.
//!
//! - Queues are found by a set-associative hash: a flow takes any idle queue of its set of `ways`, and shares one only if all are
//!   busy. A flow that shares a queue goes on with it as long as packets of strangers wait there, its own perhaps, so that its
//!   packets stay in order.
//! - A turn of a flow is `quantum` divided by the number of busy flows of its source, or of its destination if that has more.
//! - New flows go before old ones for one turn, as in RFC 8290 section 4.2.
//! - A queue that is too full for `limit` loses packets from the head of the longest queue, whose COBALT is told.
//! - `bandwidth` is a shaper in deficit mode: a packet is sent at the time at which the one before it has been paid for, with what
//!   the link layer adds to it. Without it, the link's own rate shapes.
//! - The tin of real-rate flows has priority while it uses no more than a quarter of the link, by the clock of the shaper, and what
//!   the other tin leaves.
//!
//! Readings:
//! - A flow is busy from its first packet until a turn finds its queue empty.
//! - Old flows are sorted by the round in which they can send, in each by when they were put off, and rounds in which none can are
//!   skipped. A round robin that goes from flow to flow would visit all flows of a host with a thousand of them a thousand
//!   times for each packet of theirs. The length of a turn is that at the end of the last one.
//!
//! Deviations:
//! - A packet has no DSCP here: the class of its flow, which scenarios and rules of gateways give it, stands for that. So there are
//!   two tins, and none for bulk. What waits when the class of a flow changes may be overtaken.
//! - No ACK filter: what an acknowledgement acknowledges cannot be seen. No NAT, no washing of marks, no splitting of large
//!   segments.
//! - The shaper catches up with at most 1 ms of late calls.
//! - Flows have no weights.
//!
//! Cost: O(1) per packet, O(log queues) where one is dropped for lack of room; 160 bytes per queue of each tin in use, 9 per flow
//! and 16 per host. Parameters: [`ENTRY`].

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::context::LinkContext;
use super::discipline::Discipline;
use super::flow_queueing::{QUANTUM, SIZE};
use crate::aqm::cobalt::CobaltControl;
use crate::flow_setting::FlowSetting;
use crate::limit::{Limit, LinkLimit};
use crate::list::Pool;
use crate::packet::{FlowClass, FlowId, HostPair, Packet};
use crate::param::{Entry, Heeds, Param, ParamError, Role, Traits, require};
use crate::queue::{Backlog, DropReason, Queue, Sink};
use crate::random::Stream;
use crate::units::{Bytes, Rate, Time};
use crate::{choice, params};

mod clock;
mod rounds;
#[cfg(test)]
mod tests;
mod tin;

use clock::{Clock, Wire};
use tin::Tin;

pub use clock::Framing;
pub use tin::Hosts;

/// CAKE in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "cake",
    role: Role::System,
    summary: "CAKE: hosts share before flows, sparse flows first, COBALT on every queue, few collisions, a shaper.",
    reference: "Høiland-Jørgensen, Täht, Morton 2018",
    cost: "O(1) per packet, O(log queues) per packet pushed out, 160 bytes per queue",
    params: CakeParams::PARAMS,
    traits: Traits { heeds: &[Heeds::Class, Heeds::Hosts], ..Traits::NONE },
};

/// Most queues of a tin. Chosen: 10 MB of state.
const MAX_FLOWS: u32 = 1 << 16;

choice! {
    /// Which tins there are.
    pub enum Tins {
        /// One for real-rate flows, one for all others.
        Class = "class",
        /// One for all.
        One = "one",
    }
}

params! {
    /// Parameters of [`Cake`].
    pub struct CakeParams {
        limit: Option<Limit> = SIZE.not_in_paper(),
        /// Rate to which it shapes; if not set, that of the link.
        bandwidth: Option<Rate> = Param::unset("tc-cake(8): unlimited").symbol("bandwidth"),
        /// What the link layer adds to a packet.
        overhead: Bytes = Param::of("0B", "tc-cake(8): raw").symbol("overhead"),
        /// The least that a packet takes, `overhead` included.
        mpu: Bytes = Param::of("0B", "tc-cake(8)").symbol("mpu"),
        /// How the link layer frames packets: not, in ATM cells of 53 bytes for 48, or as PTM with 65 for 64.
        framing: Framing = Param::of("none", "tc-cake(8): noatm").symbol("atm, ptm"),
        /// Hosts among which it divides first: sources and destinations, one of them, or none.
        hosts: Hosts = Param::of("triple", "tc-cake(8): triple-isolate"),
        /// Whether real-rate flows have a tin of their own, with priority up to a quarter of the link.
        tins: Tins = Param::of("class", "chosen: the two of the paper's that classes of flows can tell apart"),
        quantum: Bytes = QUANTUM.doc(
            "Bytes that a flow sends in a turn if its hosts have no other flow; flows of one host share a turn.",
        ),
        /// Queues of a tin.
        flows: u32 = Param::of("1024", "Høiland-Jørgensen, Täht, Morton 2018"),
        /// Queues among which a flow finds an idle one; 1: a plain hash.
        ways: u32 = Param::of("8", "Høiland-Jørgensen, Täht, Morton 2018"),
        /// The control loop on each queue.
        ..control: CobaltControl,
    }
    check: |params: &Self, _| params.check()
}

impl CakeParams {
    fn check(&self) -> Result<(), ParamError> {
        let message = "it must be above zero; leave it out for none";
        require(self.bandwidth != Some(Rate::ZERO), "bandwidth", message)?;
        require((1..=1 << 32).contains(&self.quantum.get()), "quantum", "it must lie between 1B and 4GB")?;
        let fits = |bytes: Bytes| bytes.get() <= 1 << 16;
        require(fits(self.overhead), "overhead", "it must be at most 65536B")?;
        require(fits(self.mpu), "mpu", "it must be at most 65536B")?;
        require((1..=MAX_FLOWS).contains(&self.flows), "flows", "it must lie between 1 and 65536")?;
        require((1..=self.flows).contains(&self.ways), "ways", "it must lie between 1 and `flows`")
    }

    const fn wire(&self) -> Wire {
        Wire { overhead: self.overhead, mpu: self.mpu, framing: self.framing }
    }

    /// The rate at which packets leave behind a link of this rate.
    fn rate(&self, link_rate: Rate) -> Rate {
        self.bandwidth.map_or(link_rate, |bandwidth| bandwidth.min(link_rate))
    }

    /// What `bandwidth` leaves for packets of this size, in their own bytes, if it is set.
    pub(super) fn capacity(&self, packet: Bytes) -> Option<Rate> {
        let (size, wire) = (u128::from(packet.get()), u128::from(self.wire().size(packet).get()));
        let bit = u128::from(self.bandwidth?.as_bit()) * size / wire.max(1);
        Some(Rate::from_bit(u64::try_from(bit).unwrap_or(u64::MAX)))
    }
}

/// The tin of flows that are not real-rate, and of all if there is one.
const BEST_EFFORT: usize = 0;
/// The tin of real-rate flows.
const REAL_RATE: usize = 1;
/// The link is so many times what the tin of real-rate flows has priority for.
// tc-cake(8): 25% for "voice"
const PRIORITY_PART: u64 = 4;

/// The tins, the shaper and the packets.
#[derive(Clone, Debug)]
pub struct Cake<P> {
    pub(super) params: CakeParams,
    limit: LinkLimit,
    /// The control loop at the rate at which packets leave.
    control: CobaltControl,
    /// That rate.
    rate: Rate,
    tins: Box<[Tin; 2]>,
    packets: Pool<P>,
    random: Stream,
    /// What flows are, by slot.
    hosts: Vec<HostPair>,
    is_real_rate: Vec<bool>,
    /// When the shaper lets the next packet out.
    shaper: Clock,
    /// Until when the tin of real-rate flows has used what it has priority for.
    priority: Clock,
    /// Whether the last request was refused.
    is_held_back: bool,
}

impl<P: Packet> Cake<P> {
    /// No packets yet.
    #[must_use]
    pub fn new(params: &CakeParams, link: &LinkContext<'_>) -> Self {
        let mut random = link.stream();
        let salt = random.below(u64::MAX);
        let rate = params.rate(link.link_rate);
        Self {
            params: params.clone(),
            limit: LinkLimit::new(params.limit, rate),
            control: params.control.at(rate),
            rate,
            tins: Box::new(
                [(); 2].map(|()| Tin::new(params.quantum, [params.flows, params.ways], params.hosts, salt)),
            ),
            packets: Pool::new(),
            random,
            hosts: Vec::new(),
            is_real_rate: Vec::new(),
            shaper: Clock::default(),
            priority: Clock::default(),
            is_held_back: false,
        }
    }

    /// Whether it never holds packets back.
    pub(super) const fn is_unlimited(&self) -> bool {
        self.params.bandwidth.is_none()
    }

    fn tin_of(&self, flow: FlowId) -> usize {
        let is_real_rate = self.is_real_rate.get(flow.slot()).is_some_and(|it| *it);
        if is_real_rate && self.params.tins == Tins::Class { REAL_RATE } else { BEST_EFFORT }
    }

    /// The tin that is served next.
    fn pick(&self, now: Time) -> usize {
        let [best_effort, real_rate] = &*self.tins;
        let goes_first = !real_rate.backlog().is_empty()
            && (self.priority.is_due(now) || best_effort.backlog().is_empty());
        if goes_first { REAL_RATE } else { BEST_EFFORT }
    }

    /// Drops a packet of the longest queue. Whether there was one.
    fn cut(&mut self, now: Time, sink: &mut dyn Sink<P>) -> bool {
        let [best_effort, real_rate] = &mut *self.tins;
        let tin = if real_rate.longest() > best_effort.longest() { real_rate } else { best_effort };
        let Some(packet) = tin.cut(&self.control, now, &mut self.packets) else { return false };
        sink.dropped(now, packet, DropReason::PushOut);
        true
    }
}

/// Sets the entry of a flow, which is there from now on.
fn set<T: Clone + Default>(of_flows: &mut Vec<T>, flow: FlowId, value: T) {
    if flow.slot() >= of_flows.len() {
        of_flows.resize(flow.slot() + 1, T::default());
    }
    of_flows[flow.slot()] = value;
}

impl<P: Packet> Queue<P> for Cake<P> {
    fn enqueue(&mut self, now: Time, packet: P, sink: &mut dyn Sink<P>) {
        let tin = self.tin_of(packet.flow());
        if self.backlog().is_empty() {
            self.shaper.start(now);
        }
        if tin == REAL_RATE && self.tins[tin].backlog().is_empty() {
            self.priority.start(now);
        }
        let hosts = self.hosts.get(packet.flow().slot()).copied().unwrap_or_default();
        self.tins[tin].enqueue(&self.control, now, &mut self.packets, packet, hosts);
        // Terminates: each cut takes a packet.
        while self.limit.get().is_exceeded_by(self.backlog()) && self.cut(now, sink) {}
    }

    fn dequeue(&mut self, now: Time, sink: &mut dyn Sink<P>) -> Option<P> {
        self.is_held_back = !self.is_unlimited() && !self.shaper.is_due(now) && !self.backlog().is_empty();
        if self.is_held_back {
            return None;
        }
        let tin = self.pick(now);
        let (wire, control, random) = (self.params.wire(), &self.control, &mut self.random);
        let packet = self.tins[tin]
            .next(&mut self.packets, wire, |state, queue| state.dequeue(control, now, queue, random, sink))?;
        let size = wire.size(packet.size());
        if let Some(bandwidth) = self.params.bandwidth {
            self.shaper.pay(now, size, bandwidth.as_bit());
        }
        if tin == REAL_RATE {
            self.priority.pay(now, size, self.rate.as_bit() / PRIORITY_PART);
        }
        Some(packet)
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.is_held_back.then(|| self.shaper.due())
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        let [best_effort, real_rate] = &*self.tins;
        best_effort.backlog().plus(real_rate.backlog())
    }
}

impl<P: Packet> Discipline<P> for Cake<P> {
    fn drain(&mut self, now: Time) -> Option<P> {
        use crate::aqm::codel::Source as _;
        let tin = self.pick(now);
        self.tins[tin].next(&mut self.packets, self.params.wire(), |_, queue| queue.pop(now))
    }

    fn take(&mut self, _now: Time, flow: FlowId) -> Option<P> {
        self.tins.iter_mut().find_map(|tin| tin.take(&mut self.packets, flow))
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit.get())
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit.set(limit);
    }

    fn set_link_rate(&mut self, rate: Rate) {
        self.rate = self.params.rate(rate);
        self.limit.set_link_rate(self.rate);
        self.control = self.params.control.at(self.rate);
    }

    fn set_flow(&mut self, flow: FlowId, setting: FlowSetting) -> bool {
        match setting {
            FlowSetting::Class(class) => {
                set(&mut self.is_real_rate, flow, class == FlowClass::RealRate);
                self.params.tins == Tins::Class
            }
            FlowSetting::Hosts(hosts) => {
                set(&mut self.hosts, flow, hosts);
                self.params.hosts != Hosts::None
            }
            _ => false,
        }
    }

    fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        let sum = |of: fn(&Tin) -> u64| self.tins.iter().map(of).sum::<u64>() as f64;
        show("collisions", sum(Tin::collisions));
        show("busy_queues", sum(Tin::busy_queues));
    }

    fn allows_deferred_dequeue(&self) -> bool {
        self.params.bandwidth.is_none()
    }
}
