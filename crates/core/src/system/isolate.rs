//! Isolation of hosts: a discipline that divides among flows divides the link among hosts, and each host's
//! part is divided among its flows, with `both` among the hosts at their other ends first.
//!
//! Høiland-Jørgensen, Täht, Morton, "Piece of CAKE: a comprehensive queue management solution for home
//! gateways", LANMAN 2018, section III-B. A discipline that divides by flows gives more to a host that opens,
//! or forges, more flows. Here it sees hosts as its flows, so all its own rules (shares, marks, drops,
//! labels) apply to hosts.
//!
//! - The discipline holds a *token* for each packet, as a packet of the flow with the number of the host. The
//!   packets wait in queues of their flows. When the discipline serves a token, the host sends the next
//!   packet by deficit round robin among its backlogged flows; a turn is worth the largest packet times the
//!   weight of the flow. When it drops a token, the host's flow with the most bytes per weight loses a
//!   packet, from the end at which the token was. A flow with one packet keeps it while another flow has
//!   more; if none has, the flow whose turn is furthest loses it. A mark goes to the departing packet, or to
//!   the host's next one that is ECN-capable.
//! - With `both` the flows of a host are grouped by their other ends, its *peers*. These take turns worth the
//!   largest packet first, then the flows of the peer in turn; and the peer with the most bytes loses a
//!   packet of its longest flow. Two sources that send to one destination are its peers, so neither gains by
//!   more flows.
//! - With one flow per host each token stands for its own packet: then the discipline behaves as without
//!   isolation, except CHOKe, which drops from the middle of a queue.
//! - Hosts have equal weights, and so do peers. The weight of a flow divides the part of its host, with
//!   `both` the part of a peer.
//! - With `both`, a packet belongs to the end of its flow that has more peers with backlogged flows when it
//!   arrives (if equally many, to the source). Peers count, not flows: otherwise a host could keep its flood
//!   at a server with many flows of others, and get a second part by a single flow to another server.
//! - Packets of two hosts can wait at both, since the one with more peers changes while they wait. A peer
//!   that also has a part of its own takes one turn in 16, so that it gets no two parts by sending in bursts.
//! - Deviation: CAKE gives each flow the part 1/max(flows of the source, flows of the destination). A host
//!   with one flow to a server that another host floods then gets one part in as many as there are flows.
//! - Limit: hosts and servers that are connected in a chain (A and B send to S, and B to T as well) can be
//!   divided from either end. If more hosts send to S than B has peers, or hosts are destinations, B can get
//!   up to two parts.
//! - Sizes: a token is as large as the packet that arrives with it, but another packet may leave by it, or be
//!   dropped. While a host is backlogged, the bytes that it sent and paid for differ by at most its backlog.
//!   The difference between lost packets and lost tokens is balanced by the sizes of its next tokens, within
//!   the range of packet sizes seen, so that no host gains by mixing sizes. A limit in packets is kept
//!   exactly, a limit in bytes by the tokens.
//! - Limit: with `both`, hosts at one server pay with the tokens of both. A host that sends packets of 497 B
//!   against 114 B, and floods another server for 6 ms of every 125 ms, leaves the other 0.41 of the link
//!   instead of 0.47: its packets are dropped by tokens of the other, which then pays with large ones. In 600
//!   random attacks the other got at least 0.465.
//!
//! Cost: O(log flows of the host) per packet, besides the discipline's own, and O(log pairs of hosts) when a
//! flow becomes backlogged; at most 256 bytes per flow, 160 per host, 480 per pair of hosts (for the maximum
//! number with packets at the same time; with `source` and `destination` a host is its own peer) and 12 per
//! packet. Parameters: [`ENTRY`].

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use super::any::{BoxedDiscipline, DisciplineKind};
use super::context::LinkContext;
use super::custom::Fault;
use super::discipline::Discipline;
use crate::choice;
use crate::flow_setting::FlowSetting;
use crate::limit::Limit;
use crate::packet::{Customers, FlowId, LabelKind, Packet, SimplePacket};
use crate::param::{Args, Entry, Heeds, Param, ParamError, Role, Setting, Shares, Traits};
use crate::queue::{Backlog, DropReason, Queue, Sink};
use crate::units::{Rate, Time};

mod hosts;
mod longest;
mod pairs;
#[cfg(test)]
mod tests;

use hosts::Hosts;

/// The key in a queue's table.
pub(super) const KEY: &str = "isolate";

/// Isolation of hosts in the catalogue.
pub const ENTRY: Entry = Entry {
    name: KEY,
    role: Role::Isolation,
    summary: "Isolation of hosts: shares bandwidth among hosts, then each host's share among its flows.",
    reference: "Høiland-Jørgensen, Täht, Morton 2018",
    cost: "O(log flows of the host) per packet, at most 256 bytes per flow, 160 per host, 480 per pair of hosts",
    params: &[Param::unset("off unless set").field(
        KEY,
        Isolate::KIND,
        "Divides among hosts first, then the part of each host among its flows: hosts that are sources, \
         destinations, or both: a flow belongs to its end with more peers, and a host's part is divided \
         among its peers first.",
    )],
    traits: Traits {
        heeds: &[Heeds::Weight, Heeds::Hosts],
        limits: "Hosts have equal weights. Classes, guarantees, tickets, customers and round-trip times of flows \
            do not count, and weights only within a host. All hosts behind NAT are one host. With `both` a \
            host that sends to a shared server and to one of its own may get two parts: use `source` or \
            `destination`.",
        ..Traits::NONE
    },
};

choice! {
    /// The end of a flow that is its host.
    pub enum Isolate {
        /// The source.
        Source = "source",
        /// The destination.
        Destination = "destination",
        /// The end that has backlogged flows with more hosts; the source if both have equally many.
        Both = "both",
    }
}

impl Isolate {
    /// Reads the values of a queue's table; none if hosts are not isolated.
    pub(super) fn from_args(args: &Args) -> Option<Self> {
        Self::of(args.of(&ENTRY).value(KEY))
    }
}

/// Parameters of [`Isolated`].
#[derive(Clone, Debug, PartialEq)]
pub struct IsolatedParams {
    /// The end of a flow that is its host.
    pub isolate: Isolate,
    /// The discipline that divides among hosts.
    pub kind: Box<DisciplineKind>,
}

impl IsolatedParams {
    /// Hosts isolated by a discipline of this kind.
    ///
    /// # Errors
    /// When its decisions depend on a property of flows that hosts do not have, such as a `maxrate`, or when
    /// it does not divide among flows and so would not divide among hosts.
    pub fn new(isolate: Isolate, kind: DisciplineKind) -> Result<Self, ParamError> {
        let goes_by = |entry: &'static Entry| Some((entry.name, entry.traits.goes_by?));
        let of_packets = match &kind {
            DisciplineKind::Cake(cake) => cake.goes_by().map(|headers| ("cake", headers)),
            _ => None,
        };
        if let Some((name, goes_by)) = kind.entries().find_map(goes_by).or(of_packets) {
            let goes_by = goes_by.words();
            let message = format!(
                "`{name}` goes by {goes_by}, which hosts do not have; leave `{KEY}` out, or take another discipline, such as \
                 \"drr\""
            );
            return Err(ParamError::new(KEY, message));
        }
        if matches!(&kind, DisciplineKind::Fq(fq) if fq.maxrate.is_some()) {
            let message = format!(
                "it would be the rate of a host and all its flows with `{KEY}`; leave one of them out"
            );
            return Err(ParamError::new("maxrate", message));
        }
        if kind.shares() < Shares::Approximate {
            let names: Vec<_> = kind.entries().map(|entry| format!("`{}`", entry.name)).collect();
            let message = format!(
                "{} would not divide the link among hosts, since a flow that sends more has more there; leave `{KEY}` out, or \
                 take another discipline, such as \"drr\" or \"fq_codel\"",
                names.join(" with ")
            );
            return Err(ParamError::new(KEY, message));
        }
        Ok(Self { isolate, kind: Box::new(kind) })
    }
}

/// A discipline that sees hosts as its flows, and the packets of each host.
pub struct Isolated<P> {
    inner: BoxedDiscipline<SimplePacket>,
    hosts: Hosts<P>,
    /// The kind of label that the discipline writes on tokens.
    labels: Option<LabelKind>,
}

impl<P: Packet> Isolated<P> {
    /// An empty discipline for this link, which gets no settings of flows.
    #[must_use]
    pub fn new(params: &IsolatedParams, link: &LinkContext<'_>) -> Self {
        let of_hosts = LinkContext {
            weights: &[],
            smallest_weight: None,
            rtts: &[],
            guarantees: &[],
            classes: &[],
            targets: &[],
            customers: Customers::default(),
            hosts: &[],
            ..*link
        };
        Self {
            inner: params.kind.build_simple(&of_hosts),
            hosts: Hosts::new(params.isolate, link.smallest_weight()),
            labels: params.kind.entries().find_map(|entry| entry.traits.writes),
        }
    }

    /// Removes and returns the packet that leaves by `token`, with the label that the discipline wrote for
    /// it.
    fn exchange(&mut self, token: &SimplePacket) -> Option<P> {
        let mut packet = self.hosts.serve(token)?;
        if let Some(kind) = self.labels {
            match token.label(kind) {
                Some(label) => packet.set_label(kind, label),
                None => packet.clear_label(kind),
            }
        }
        Some(packet)
    }
}

impl<P: Packet> Queue<P> for Isolated<P> {
    fn enqueue(&mut self, now: Time, packet: P, sink: &mut dyn Sink<P>) {
        let token = self.hosts.admit(now, packet);
        self.inner.enqueue(now, token, &mut Bridge { hosts: &mut self.hosts, sink });
    }

    fn dequeue(&mut self, now: Time, sink: &mut dyn Sink<P>) -> Option<P> {
        let token = self.inner.dequeue(now, &mut Bridge { hosts: &mut self.hosts, sink })?;
        let mut packet = self.exchange(&token)?;
        if self.hosts.marks(&token, &packet) {
            packet.set_ce();
            sink.marked(now, &packet);
        }
        Some(packet)
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.inner.next_wakeup()
    }

    fn backlog(&self) -> Backlog {
        self.hosts.backlog()
    }
}

impl<P: Packet> Discipline<P> for Isolated<P> {
    fn drain(&mut self, now: Time) -> Option<P> {
        let token = self.inner.drain(now)?;
        self.exchange(&token)
    }
    fn limit(&self) -> Option<Limit> {
        self.inner.limit()
    }
    fn set_limit(&mut self, limit: Limit) {
        self.inner.set_limit(limit);
    }
    fn set_link_rate(&mut self, rate: Rate) {
        self.inner.set_link_rate(rate);
    }
    fn set_flow(&mut self, flow: FlowId, setting: FlowSetting) -> bool {
        match setting {
            FlowSetting::Weight(weight) => self.hosts.set_weight(flow, weight),
            FlowSetting::Hosts(hosts) => self.hosts.set_hosts(flow, hosts),
            _ => return false,
        }
        true
    }
    fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        self.inner.statistics(show);
    }
    fn fault(&self) -> Option<&Fault> {
        self.inner.fault()
    }
}

/// Drops a packet of the host for each token that the discipline drops. Marks stay on the tokens that it
/// serves.
struct Bridge<'a, P> {
    hosts: &'a mut Hosts<P>,
    sink: &'a mut dyn Sink<P>,
}

impl<P: Packet> Sink<SimplePacket> for Bridge<'_, P> {
    fn dropped(&mut self, now: Time, token: SimplePacket, reason: DropReason) {
        if let Some(packet) = self.hosts.drop_for(&token) {
            self.sink.dropped(now, packet, reason);
        }
    }
    fn marked(&mut self, _now: Time, _token: &SimplePacket) {}
}
