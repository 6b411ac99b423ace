//! The SF-FC Manager: finds the upstream routers of a router's flows, and reports the losses of its links to
//! them.
//!
//! Tamura, Tobe, Tokuda, "SF-FC: a neighbor-state based flow control with soft fairness", NOSSDAV 2000,
//! section 3.2 and Fig. 3. One Manager per router. It does no I/O: the backend passes in received messages
//! and takes out messages to send.
//!
//! A router whose link overflowed looks up the upstream router of each flow. If it does not know it, the
//! router queries its neighbours, then sends a query towards the flow's source, which the first SF-FC router
//! on the way that carries the flow answers. Reports go to the router that answered.
//!
//! The paper trusts neighbours. Here one of them may lie:
//! - A router answers only about flows that leave by the port from whose side the query came. The asker
//!   becomes its next hop for them, no other router can be until the asker is silent for long enough, and
//!   only the asker's reports count.
//! - An answer contains a cookie, which a router that does not see the answer cannot guess; reports repeat
//!   it. Further queries renew it, and the previous one stays valid: reports may be in flight when it
//!   changes.
//! - Messages with a cookie are numbered, and only later ones are accepted: one that was overtaken is lost.
//! - Reports of a flow, and messages of a router and of all strangers, are bounded in rate.
//! - A report of more departures than arrivals, or of an interval that is zero or very long, is refused. The
//!   discarder that receives a report checks that it lowers a flow no further than an honest one could.
//! - Tables are bounded, and separate for each port, so that messages from one side cost the others nothing.
//!
//! With a shared key messages carry an authenticator ([`message`]). Routers with the key can still lie as
//! above.
//!
//! A flow whose upstream router does not answer gets a flow rule, for an operator to load into that router
//! ([`FlowRule`]).
//!
//! Readings of the paper: a report waits for an answer only while it is news, which is one interval of its
//! own. The times of queries, with and without answers, are chosen (see [`ManagerParams`]).
//!
//! Cost: nothing per packet. Per message O(flows in it × log flows). Memory: 160 bytes for a flow that is
//! reported and 80 for one that a next hop claims; at worst three times that with keys and trees.

use std::collections::{BTreeMap, VecDeque};

use apportion_core::packet::FlowId;
use apportion_core::random::Stream;
use apportion_core::units::{Bytes, Span, Time};

#[cfg(test)]
mod adversary_tests;
mod aged;
mod count;
pub mod message;
mod rules;
mod search;
mod side;
#[cfg(test)]
mod tests;

pub use apportion_core::aqm::sffc::FlowReport;
pub use message::{FlowKey, RouterId};
pub use rules::FlowRule;

use aged::Aged;
use count::{Counters, Refusal};
use message::{Answer, Key, Message, Query, Scope};
use rules::Rules;
use search::Upstream;
use side::Side;

/// One of this router's output links, numbered by the backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Port(pub u32);

/// The destination of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// To every router one hop away, and no further.
    Neighbours,
    /// Towards the source of the flow, until a Manager takes it.
    TowardsSource(FlowId),
    /// This router; routers on the way only forward it.
    Router(RouterId),
}

/// A message to send, without the headers that the backend adds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The destination.
    pub to: Destination,
    /// The payload, at most [`message::MAX_SIZE`] bytes.
    pub bytes: Vec<u8>,
}

/// The disposition of a received message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handled {
    /// The message ends here.
    Taken,
    /// The message is a query towards a source that means another router: forward it unchanged.
    Pass,
}

/// The router around a Manager.
pub trait Forwarding {
    /// The name of a flow among routers; none if the flow is unknown.
    fn key(&self, flow: FlowId) -> Option<FlowKey>;
    /// The flow of this name; none if none of its packets was seen lately.
    fn flow(&self, key: &FlowKey) -> Option<FlowId>;
    /// Whether `flow` leaves by `port` now, as a non-adaptive flow that was seen lately.
    fn carries(&self, port: Port, flow: FlowId) -> bool;
    /// Handles a valid report of the next hop about packets that left by `port`.
    fn on_report(&mut self, port: Port, report: FlowReport);
}

/// Parameters of a [`Manager`]. The routers of a network should have the same.
#[derive(Clone, Debug, PartialEq)]
pub struct ManagerParams {
    /// Timeout of the first two queries of a search; each further one waits twice as long.
    pub search_timeout: Span,
    /// Number of queries towards the source before a search ends.
    pub tries: u32,
    /// Pause after a search that found no router.
    pub pause: Span,
    /// Silence after which a router is no longer the next hop; an answer is valid as long.
    pub expiry: Span,
    /// Age at which a cookie is changed. Routers query again after half of it.
    pub renewal: Span,
    /// Reports of a flow at a shorter interval are refused.
    pub min_interval: Span,
    /// Reports over a longer interval are refused.
    pub longest_interval: Span,
    /// Messages a second that are accepted from a router that was answered.
    pub message_rate: u32,
    /// Queries a second that are accepted from all others on the side of a port.
    pub query_rate: u32,
    /// Burst of messages above either rate.
    pub burst: u32,
    /// Maximum of flows that are reported, and of flows that next hops claim on the side of each port.
    pub flows: usize,
    /// Maximum of next hops on the side of each port.
    pub neighbours: usize,
    /// Maximum of messages that wait to be sent.
    pub outbox: usize,
}

impl Default for ManagerParams {
    fn default() -> Self {
        Self {
            // Chosen: twice the way through 64 KB at 10 Mb/s (52 ms), the buffers of the paper.
            search_timeout: Span::from_millis(100),
            // Chosen: with the doubling the last query waits 0.4 s, longer than a satellite's round trip to a
            // neighbour.
            tries: 3,
            // Chosen: the validity of an answer, so a failed search costs no more than a successful one.
            pause: Span::from_secs(6),
            // Chosen: three renewals, so that two may be lost.
            expiry: Span::from_secs(6),
            // Chosen: longer than any search takes (0.8 s); one query a second and neighbour is little load.
            renewal: Span::from_secs(2),
            // Chosen: half of an interval of 50 ms, because delays vary; routers with shorter intervals set
            // it lower.
            min_interval: Span::from_millis(25),
            // Chosen: 200 such intervals; a longer count does not describe the present.
            longest_interval: Span::from_secs(10),
            // Chosen: 1,000 flows at 20 a message every 50 ms.
            message_rate: 1_000,
            // Chosen: the same; behind routers without SF-FC each flow needs a query of its own.
            query_rate: 1_000,
            // Chosen: the messages of two intervals at the full rate.
            burst: 100,
            // Chosen: 2 MB a table at worst.
            flows: 4_096,
            // Chosen: more than the routers of a usual shared network.
            neighbours: 64,
            // Chosen: 1.3 MB; a query to each source of a quarter of the flows.
            outbox: 1_024,
        }
    }
}

/// Numbers that no outsider can guess, even from earlier ones.
#[derive(Clone, Debug)]
struct Secret {
    key: Key,
    drawn: u64,
}

impl Secret {
    fn new(mut random: Stream) -> Self {
        let mut key = [0; 32];
        key.iter_mut().for_each(|byte| *byte = random.below(256) as u8);
        Self { key: Key::new(&key), drawn: 0 }
    }

    fn draw(&mut self) -> u64 {
        self.drawn += 1;
        let tag = self.key.authenticate(&self.drawn.to_be_bytes());
        tag[..8].iter().fold(0, |word, byte| word << 8 | u64::from(*byte))
    }
}

/// The Manager of a router.
#[derive(Clone, Debug)]
pub struct Manager {
    id: RouterId,
    params: ManagerParams,
    key: Option<Key>,
    secret: Secret,
    /// Number of the last message with a cookie.
    sequence: u64,
    /// The upstream routers of reported flows, with the times when they are forgotten.
    upstream: Aged<FlowId, Upstream>,
    /// Times at which searches take their next step.
    agenda: Aged<FlowId, ()>,
    /// The cuts of flows whose upstream router does not answer.
    rules: Rules,
    /// The next hops beyond each port.
    sides: BTreeMap<Port, Side>,
    outbox: VecDeque<Transmit>,
    counters: Counters,
}

impl Manager {
    /// The Manager of the router `id`. With `key`, which its neighbours must share, messages are
    /// authenticated. On real links `random` must come from a secret seed.
    #[must_use]
    pub fn new(id: RouterId, params: &ManagerParams, key: Option<&[u8]>, random: Stream) -> Self {
        Self {
            id,
            params: params.clone(),
            key: key.map(Key::new),
            secret: Secret::new(random),
            sequence: 0,
            upstream: Aged::default(),
            agenda: Aged::default(),
            rules: Rules::default(),
            sides: BTreeMap::new(),
            outbox: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// Handles a message from the side of `port`: to this router, to all neighbours, or a query on its way to
    /// a source.
    pub fn receive(&mut self, now: Time, port: Port, bytes: &[u8], router: &mut dyn Forwarding) -> Handled {
        let message = match Message::decode(bytes, self.key.as_ref()) {
            Ok(message) => message,
            Err(error) => {
                self.counters.undecoded(error);
                return Handled::Taken;
            }
        };
        if message.sender() == self.id {
            self.counters.refused(Refusal::Own);
            return Handled::Taken;
        }
        match message {
            Message::Query(query) => return self.query(now, port, &query, router),
            Message::Answer(answer) => self.answer(now, &answer, router),
            Message::Report(report) => match self.sides.get_mut(&port) {
                Some(side) => side.report(now, port, &report, &self.params, router, &mut self.counters),
                None => self.counters.refused(Refusal::Stranger),
            },
        }
        Handled::Taken
    }

    /// Answers a query about flows that leave by `port`.
    fn query(&mut self, now: Time, port: Port, query: &Query, router: &dyn Forwarding) -> Handled {
        let flow = |key: &FlowKey| Some((*key, router.flow(key)?));
        let mut carried: Vec<_> = query.flows.iter().filter_map(flow).collect();
        carried.retain(|(_, flow)| router.carries(port, *flow));
        if carried.is_empty() {
            return if query.scope == Scope::TowardsSource { Handled::Pass } else { Handled::Taken };
        }
        let side = self.sides.entry(port).or_default();
        match side.query(now, query, &carried, &self.params, &mut self.secret, &mut self.counters) {
            Ok((cookie, flows)) => {
                let answer = Answer { router: self.id, nonce: query.nonce, cookie, flows };
                self.send(Destination::Router(query.router), &Message::Answer(answer));
            }
            Err(refusal) => self.counters.refused(refusal),
        }
        Handled::Taken
    }

    /// The next message to send; none if all are sent.
    pub fn transmit(&mut self) -> Option<Transmit> {
        self.outbox.pop_front()
    }

    /// The limits that upstream routers without SF-FC would have to set to flows, at most 256.
    pub fn rules(&mut self, now: Time) -> impl Iterator<Item = FlowRule> {
        self.rules.in_force(now)
    }

    /// Reports counts of messages sent, of accepted reports of flows, and of refusals, by reason.
    pub fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        self.counters.show(show);
    }

    fn send(&mut self, to: Destination, message: &Message) {
        if self.outbox.len() >= self.params.outbox {
            self.counters.refused(Refusal::Outbox);
            return;
        }
        // Lists of flows are split before; a larger message would be refused everywhere.
        if let Some(bytes) = message.encode(self.key.as_ref()) {
            self.counters.sent(message);
            self.outbox.push_back(Transmit { to, bytes });
        }
    }

    fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }
}

/// Checks that a report may be true: packets arrived, not more departed, within a plausible interval.
fn check(arrived: Bytes, departed: Bytes) -> Result<(), Refusal> {
    // Chosen: no link carries 2^50 bytes in `longest_interval`; counts below it can be multiplied by bits and
    // sums.
    let most = Bytes::new(1 << 50);
    let plausible = Bytes::ZERO < arrived && arrived <= most && departed <= arrived;
    if plausible { Ok(()) } else { Err(Refusal::Inflated) }
}
