//! CAKE, "common applications kept enhanced": flows take turns as in FQ-CoDel, their hosts share the link
//! first, each queue has its own COBALT, and real-rate flows go first up to a part of the link.
//!
//! Høiland-Jørgensen, Täht, Morton, "Piece of CAKE: a comprehensive queue management solution for home
//! gateways", LANMAN 2018 (arXiv 1804.07617), and the options as described in tc-cake(8).
//!
//! - A set-associative hash selects queues: a flow takes any idle queue of its set of `ways`, and shares one
//!   only if all are busy. A flow that shares a queue keeps it as long as packets of other flows wait there,
//!   because its own may wait too; its packets thus stay in order.
//! - A turn of a flow is `quantum` divided by the number of busy flows of its source, or of its destination
//!   if that has more.
//! - New flows go before old ones for one turn, as in RFC 8290 section 4.2.
//! - Beyond `limit` packets are dropped from the head of the longest queue, whose COBALT is informed.
//! - `bandwidth` is a shaper in deficit mode: a packet is sent when the previous one has been paid for,
//!   including the overhead of the link layer. Without it, the link's own rate shapes.
//! - Real-rate flows have a tin of their own, which goes first for a quarter of the departures: `balance.rs`.
//! - Below 50 Mb/s a turn is shorter, and below 3.6 Mb/s COBALT's times are longer, each by the rate of the
//!   tin.
//!
//! Readings:
//! - A flow is busy from its first packet until a turn finds its queue empty.
//! - Old flows are sorted by the round in which they can send, within a round by the time at which they were
//!   deferred, and rounds in which none can send are skipped. A round robin over flows would visit all flows
//!   of a host with a thousand flows a thousand times for each of their packets. The length of a turn is the
//!   one at the end of the last turn.
//!
//! Deviations:
//! - Packets of scenarios have no DSCP: by default the class of a flow replaces it. Waiting packets may be
//!   overtaken when the tin of a flow changes.
//! - The ACK filter keeps ACKs that Linux may drop: ACKs with SACK blocks, and duplicates of the arriving
//!   ACK. There is no NAT lookup, no washing of marks, and no splitting of large segments.
//! - The shaper catches up with at most 1 ms of late calls.
//! - Tins are served by departures, not by clocks at parts of the rate: a link may be slower than configured.
//!   Linux gives best effort everything that voice wants beyond its quarter, and the last three of eight tins
//!   the whole link.
//! - Without `bandwidth` the rate of the link replaces it, where Linux has turns of 1514 B and no priorities.
//! - Flows have no weights.
//!
//! Cost: O(1) per packet, up to 64 packets visited for an ACK with `ack_filter`, O(log queues) for a drop for
//! lack of room; 160 bytes per queue of each tin in use, 9 per flow and 16 per host. Parameters: [`ENTRY`].

use alloc::vec::Vec;

use super::context::LinkContext;
use super::discipline::Discipline;
use super::flow_queueing::SIZE;
use crate::aqm::cobalt::CobaltControl;
use crate::aqm::per_queue::dequeue;
use crate::flow_setting::FlowSetting;
use crate::limit::{BufferSize, Limit, LinkLimit};
use crate::packet::{FlowClass, FlowId, HostPair, LabelKind, Packet, Protocol};
use crate::param::{self, Entry, GoesBy, Heeds, Param, ParamError, Role, Traits, require};
use crate::queue::{Backlog, DropReason, Queue, Sink};
use crate::random::Stream;
use crate::units::{Bytes, Rate, Time};
use crate::{choice, params};

mod balance;
mod clock;
mod rounds;
#[cfg(test)]
mod tests;
mod tin;
mod tins;

use balance::{forgive, pay, pick};
use clock::{Clock, LinkLayer};
use tin::{Pace, Store, Tin};
use tins::Share;

pub use clock::Framing;
pub use tin::Hosts;
pub use tins::Tins;

/// CAKE in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "cake",
    role: Role::System,
    summary: "CAKE: a shaper, fair among hosts and then flows, sparse flows first, COBALT on every queue.",
    reference: "Høiland-Jørgensen, Täht, Morton 2018",
    cost: "O(1) per packet, O(log queues) per packet pushed out, 160 bytes per queue",
    params: CakeParams::PARAMS,
    traits: Traits {
        heeds: &[Heeds::Class, Heeds::Hosts],
        shares: param::Shares::Given,
        limits: "There are no weights. Packets of scenarios have no DSCP: tins by DSCP are for gateways. With \
            `hosts = \"triple\"` entitlements are those of `isolate = \"both\"`, from which CAKE deviates (1.0 \
            each where 0.75, 0.75 and 1.5 are due). `ack_filter` keeps ACKs with SACK blocks, and ignores \
            QUIC. On a link of varying rate it left 7 % unused: set `increment = 0`.",
        ..Traits::NONE
    },
};

choice! {
    /// Whether to drop ACKs that a later one of the same queue makes redundant.
    pub enum AckFilter {
        /// None.
        None = "none",
        /// One for each arriving ACK while two other redundant ones wait.
        Conservative = "conservative",
        /// One for each arriving ACK.
        Aggressive = "aggressive",
    }
}

impl AckFilter {
    /// The number of redundant ACKs that must wait before the first is dropped; none if none may be
    /// (tc-cake(8): ack-filter and ack-filter-aggressive).
    const fn least(self) -> Option<usize> {
        match self {
            Self::None => None,
            Self::Conservative => Some(2),
            Self::Aggressive => Some(1),
        }
    }
}

/// The maximum number of queues of a tin. Chosen: 10 MB of state.
const MAX_FLOWS: u32 = 1 << 16;

/// The longest and the shortest turn (tc-cake(8): 1514 B, an Ethernet frame, and 300 B in its example).
const TURNS: [Bytes; 2] = [Bytes::new(1_514), Bytes::new(300)];

params! {
    /// Parameters of [`Cake`].
    pub struct CakeParams {
        limit: Option<BufferSize> = SIZE.not_in_paper(),
        /// Rate to which it shapes; if not set, that of the link.
        bandwidth: Option<Rate> = Param::unset("tc-cake(8): unlimited").symbol("bandwidth"),
        /// What the link layer adds to an IP packet; if not set, what the size of a packet includes already.
        overhead: Option<Bytes> = Param::unset("tc-cake(8): raw").symbol("overhead"),
        /// The least that a packet takes, `overhead` included.
        mpu: Bytes = Param::of("0B", "tc-cake(8)").symbol("mpu"),
        /// How the link layer frames packets: not, in ATM cells of 53 bytes for 48, or as PTM with 65 for 64.
        framing: Framing = Param::of("none", "tc-cake(8): noatm").symbol("atm, ptm"),
        /// Hosts among which it divides first: sources and destinations, one of them, or none.
        hosts: Hosts = Param::of("triple", "tc-cake(8): triple-isolate"),
        /// Which tins there are, each with priority up to a part of the link: one for real-rate flows and one for others, one for all, or
        /// those of tc-cake(8) by DSCP.
        tins: Tins = Param::of("class", "chosen: the two of tc-cake(8) that classes of flows can tell apart"),
        /// Bytes that a flow sends in a turn if its hosts have no other flow; flows of one host share a turn. If not set, what the tin
        /// sends in 1/4096 s, but at least 300B and at most 1514B.
        quantum: Option<Bytes> = Param::unset("tc-cake(8), `quantum` of its example: 762 B at 25 Mb/s").symbol("quantum"),
        /// Whether ACKs of TCP are dropped that a later one of the same connection makes superfluous, for links that are slow this way and fast
        /// the other.
        ack_filter: AckFilter = Param::of("none", "tc-cake(8): no-ack-filter").symbol("ack-filter"),
        /// Queues of a tin.
        flows: u32 = Param::of("1024", "Høiland-Jørgensen, Täht, Morton 2018"),
        /// Queues among which a flow finds an idle one; 1: a plain hash.
        ways: u32 = Param::of("8", "Høiland-Jørgensen, Täht, Morton 2018"),
        /// The control loop of each queue.
        ..control: CobaltControl,
    }
    check: |params: &Self, _| params.check()
}

impl CakeParams {
    fn check(&self) -> Result<(), ParamError> {
        let message = "it must be above zero; leave it out for none";
        require(self.bandwidth != Some(Rate::ZERO), "bandwidth", message)?;
        let fits = |bytes: Bytes| (1..=1 << 32).contains(&bytes.get());
        require(self.quantum.is_none_or(fits), "quantum", "it must lie between 1B and 4GB")?;
        let fits = |bytes: Bytes| bytes.get() <= 1 << 16;
        require(self.overhead.is_none_or(fits), "overhead", "it must be at most 65536B")?;
        require(fits(self.mpu), "mpu", "it must be at most 65536B")?;
        require((1..=MAX_FLOWS).contains(&self.flows), "flows", "it must lie between 1 and 65536")?;
        require((1..=self.flows).contains(&self.ways), "ways", "it must lie between 1 and `flows`")
    }

    /// The conversion of packet sizes that include `layer2`.
    fn link_layer(&self, layer2: Bytes) -> LinkLayer {
        let [less, overhead] = self.overhead.map_or([Bytes::ZERO; 2], |overhead| [layer2, overhead]);
        LinkLayer { less, overhead, mpu: self.mpu, framing: self.framing }
    }

    /// The charge for an IP packet if packet sizes include `layer2`.
    pub(super) fn charge(&self, ip: Bytes, layer2: Bytes) -> Bytes {
        self.link_layer(layer2).size(ip + layer2)
    }

    /// Whether its tins depend on the DSCP of packets.
    pub(super) const fn goes_by_dscp(&self) -> bool {
        self.tins.go_by_dscp()
    }

    /// The property of packets, absent from hosts, that its decisions depend on.
    pub(super) fn goes_by(&self) -> Option<GoesBy> {
        match (self.goes_by_dscp(), self.ack_filter) {
            (true, _) => Some(GoesBy::Dscp),
            (_, AckFilter::None) => None,
            _ => Some(GoesBy::Tcp),
        }
    }

    /// The rate at which packets leave on a link of this rate.
    fn rate(&self, link_rate: Rate) -> Rate {
        self.bandwidth.map_or(link_rate, |bandwidth| bandwidth.min(link_rate))
    }

    /// The pace of a tin with `rate`.
    fn pace(&self, rate: Rate) -> Pace {
        let [most, least] = TURNS;
        let quantum = self.quantum.unwrap_or(Bytes::new(rate.as_bit() / 8 / 4_096).clamp(least, most));
        Pace { quantum, control: self.control.of_tin(rate) }
    }

    /// Whether it charges packets more than their size.
    pub(super) fn frames(&self) -> bool {
        let adds = self.overhead.is_some_and(|overhead| overhead > Bytes::ZERO) || self.mpu > Bytes::ZERO;
        adds || self.framing != Framing::None
    }
}

/// The tins, the shaper and the packets.
#[derive(Clone, Debug)]
pub struct Cake<P> {
    pub(super) params: CakeParams,
    link_layer: LinkLayer,
    limit: LinkLimit,
    tins: Vec<Tin>,
    store: Store<P>,
    random: Stream,
    /// The hosts of flows, by slot.
    hosts: Vec<HostPair>,
    is_real_rate: Vec<bool>,
    /// The time at which the shaper releases the next packet.
    shaper: Clock,
    /// The number of ACKs dropped by the filter.
    ack_drops: u64,
    /// Whether the last request was refused.
    is_held_back: bool,
}

impl<P: Packet> Cake<P> {
    /// A queue without packets.
    #[must_use]
    pub fn new(params: &CakeParams, link: &LinkContext<'_>) -> Self {
        let mut random = link.stream();
        let salt = random.below(u64::MAX);
        let rate = params.rate(link.link_rate);
        let tin = |share: Share| {
            let pace = params.pace(share.rate(rate));
            Tin::new([params.flows, params.ways], params.hosts, salt, share, pace)
        };
        Self {
            params: params.clone(),
            link_layer: params.link_layer(link.layer2),
            limit: LinkLimit::new(params.limit, rate),
            tins: params.tins.shares().map(tin).collect(),
            store: Store::new(),
            random,
            hosts: Vec::new(),
            is_real_rate: Vec::new(),
            shaper: Clock::default(),
            ack_drops: 0,
            is_held_back: false,
        }
    }

    /// Whether it never holds packets back.
    pub(super) const fn is_unlimited(&self) -> bool {
        self.params.bandwidth.is_none()
    }

    fn tin_of(&self, packet: &P) -> usize {
        let is_real_rate = self.is_real_rate.get(packet.flow().slot()).is_some_and(|it| *it);
        self.params.tins.tin_of(is_real_rate, packet.dscp())
    }

    /// Drops a packet of the longest queue. Returns whether there was one.
    fn cut(&mut self, now: Time, sink: &mut dyn Sink<P>) -> bool {
        let longest = self.tins.iter_mut().map(Tin::longest).enumerate().max_by_key(|(_, bytes)| *bytes);
        let cut = longest.and_then(|(tin, _)| self.tins[tin].cut(now, &mut self.store, &mut self.random));
        let Some(packet) = cut else { return false };
        sink.dropped(now, packet, DropReason::PushOut);
        true
    }
}

/// Sets the entry of a flow, which is created if needed.
fn set<T: Clone + Default>(of_flows: &mut Vec<T>, flow: FlowId, value: T) {
    if flow.slot() >= of_flows.len() {
        of_flows.resize(flow.slot() + 1, T::default());
    }
    of_flows[flow.slot()] = value;
}

impl<P: Packet> Queue<P> for Cake<P> {
    fn enqueue(&mut self, now: Time, packet: P, sink: &mut dyn Sink<P>) {
        let tin = self.tin_of(&packet);
        if self.backlog().is_empty() {
            self.shaper.start(now);
            forgive(&mut self.tins);
        }
        let hosts = self.hosts.get(packet.flow().slot()).copied().unwrap_or_default();
        if let Some(least) = self.params.ack_filter.least()
            && packet.protocol() == Protocol::Tcp
        {
            let supersedes =
                |older: &P| older.label(LabelKind::AckTickets).is_none() && sink.supersedes(&packet, older);
            if let Some(older) = self.tins[tin].filter(&mut self.store, &packet, least, supersedes) {
                self.ack_drops += 1;
                sink.dropped(now, older, DropReason::Policy);
            }
        }
        self.tins[tin].enqueue(now, &mut self.store, packet, hosts);
        // Terminates: each cut removes a packet.
        while self.limit.get().is_exceeded_by(self.backlog()) && self.cut(now, sink) {}
    }

    fn dequeue(&mut self, now: Time, sink: &mut dyn Sink<P>) -> Option<P> {
        self.is_held_back = !self.is_unlimited() && !self.shaper.is_due(now) && !self.backlog().is_empty();
        if self.is_held_back {
            return None;
        }
        let tin = pick(&self.tins);
        let random = &mut self.random;
        let (packet, size) =
            self.tins[tin].next(&mut self.store, self.link_layer, |control, state, queue| {
                dequeue(control, state, now, queue, random, sink)
            })?;
        if let Some(bandwidth) = self.params.bandwidth {
            self.shaper.pay(now, size, bandwidth.as_bit());
        }
        pay(&mut self.tins, tin, size);
        Some(packet)
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.is_held_back.then(|| self.shaper.due())
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.store.backlog
    }
}

impl<P: Packet> Discipline<P> for Cake<P> {
    fn drain(&mut self, _now: Time) -> Option<P> {
        use crate::aqm::per_queue::Source as _;
        let tin = pick(&self.tins);
        self.tins[tin]
            .next(&mut self.store, self.link_layer, |_, _, queue| queue.pop())
            .map(|(packet, _)| packet)
    }

    fn take(&mut self, _now: Time, flow: FlowId) -> Option<P> {
        self.tins.iter_mut().find_map(|tin| tin.take(&mut self.store, flow))
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit.get())
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit.set(limit);
    }

    fn set_link_rate(&mut self, rate: Rate) {
        let rate = self.params.rate(rate);
        self.limit.set_link_rate(rate);
        for tin in &mut self.tins {
            tin.set_pace(self.params.pace(tin.share.rate(rate)));
        }
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
        if self.params.ack_filter != AckFilter::None {
            show("ack_drops", self.ack_drops as f64);
        }
    }

    fn allows_deferred_dequeue(&self) -> bool {
        self.params.bandwidth.is_none()
    }
}
