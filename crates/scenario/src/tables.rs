//! Every key of a scenario file, as data: names, units, defaults and documentation are defined here only.
//!
//! Keys of queue disciplines are in [`apportion_core::system::catalog`], those of TCP and QUIC in [`crate::tcp`] and [`crate::quic`].

use apportion_core::param::Preset;

use crate::keys::{Key, Kind, Need, Range, Unit};
use crate::selection::Part;

use Need::{Default, Optional, Required};

mod media;
mod sources;
mod topologies;

pub(crate) use sources::{SIZES, SOURCES};
pub(crate) use topologies::TOPOLOGIES;

/// Maximum number of flows in a scenario (chosen: what a simulator can hold in memory).
pub(crate) const MAX_FLOWS: u64 = 1_000_000;
/// Maximum number of connections in a flow: the dynamic ports of its host, 49152 to 65535 (RFC 6335 section
/// 6), since each connection to one port of another host takes one.
pub(crate) const MAX_CONNECTIONS: u64 = 16_384;
/// Maximum number of one-way links in a scenario (chosen for the same reason).
pub(crate) const MAX_LINKS: u64 = 100_000;

const TIME: Kind = Kind::Amount(Unit::Time, Range::FromZero);
pub(crate) const RATE: Kind = Kind::Amount(Unit::Rate, Range::AboveZero);
pub(crate) const DELAY: Kind = Kind::Amount(Unit::Span, Range::FromZero);
pub(crate) const LOSS: Kind = Kind::Amount(Unit::Ratio, Range::FromZero);
/// Of a link's transmitter.
pub(crate) const LINK_RATE: Kind = Kind::AmountOrTable(Unit::Rate, Range::AboveZero, RATE_TABLE);
/// Of a link's wire.
pub(crate) const LINK_LOSS: Kind = Kind::AmountOrTable(Unit::Ratio, Range::FromZero, GILBERT_ELLIOTT);
const JITTER: Kind = Kind::AmountOrTable(Unit::Span, Range::FromZero, JITTER_TABLE);
pub(crate) const NUMBER: Kind = Kind::Amount(Unit::Number, Range::AboveZero);
pub(crate) const TICKETS: Kind = Kind::Amount(Unit::Number, Range::FromZero);
pub(crate) const QUEUE: Kind = Kind::Part(Part::Queue);
pub(crate) const MARK: Kind = Kind::Part(Part::Marker);
pub(crate) const EXCHANGE: Kind = Kind::Part(Part::Exchange);
const SIZE: Kind = Kind::Amount(Unit::Bytes, Range::AboveZero);

pub(crate) const fn key(name: &'static str, kind: Kind, need: Need, doc: &'static str) -> Key {
    Key { name, kind, need, doc }
}

/// `first`, then `second`, `N` keys in total.
pub(crate) const fn both<const N: usize>(first: &[Key], second: &[Key]) -> [Key; N] {
    assert!(first.len() + second.len() == N, "a key would be left out");
    let mut keys = [first[0]; N];
    let mut at = 0;
    while at < N {
        keys[at] = if at < first.len() { first[at] } else { second[at - first.len()] };
        at += 1;
    }
    keys
}

/// The same keys, all optional and without a default.
const fn optional<const N: usize>(mut keys: [Key; N]) -> [Key; N] {
    let mut at = 0;
    while at < N {
        keys[at].need = Optional;
        at += 1;
    }
    keys
}

/// The whole file.
pub(crate) const ROOT: &[Key] = &[
    key("title", Kind::Text, Optional, "Title in reports; the file's name if absent."),
    key(
        "seed",
        Kind::Amount(Unit::Count, Range::FromZero),
        Required,
        "Seed of all random streams: same seed, same result.",
    ),
    key("stop", Kind::Amount(Unit::Time, Range::AboveZero), Required, "End of the run."),
    key("measure_from", TIME, Default("0s"), "Start of the measurement; everything before it is warm-up."),
    key(
        "sample",
        Kind::Amount(Unit::Span, Range::AboveZero),
        Optional,
        "Interval of time series; if absent, 1, 2 or 5 times a power of ten, for at most 600 intervals.",
    ),
    key(
        "topology",
        Kind::Variants(TOPOLOGIES),
        Optional,
        "A predefined network; tables under `link` extend and change it.",
    ),
    key("defaults", Kind::Table(DEFAULTS), Optional, "Default values for all links and flows."),
    key("link", Kind::Map(LINK), Optional, "Links by name. Their ends define the nodes."),
    key("flow", Kind::Map(FLOW), Optional, "Flows, or groups of similar flows, by name."),
    key(
        "customer",
        Kind::Map(CUSTOMER),
        Optional,
        "Customers by name; needed only for weights other than 1. Flows name theirs under `customer`.",
    ),
    key(
        "plans",
        Kind::Text,
        Optional,
        "File of customers with rates, from which a queue `{ kind = \"htb\", plans = \"down\" }` has its classes.",
    ),
    key("change", Kind::Tables(CHANGE), Optional, "Timed changes during the run."),
];

/// Default values of links and of flows.
pub(crate) const DEFAULTS: &[Key] = &[
    key(
        "link",
        Kind::Table(DEFAULT_LINK),
        Optional,
        "For links. Those of a predefined topology use it for what their tables in `topology` do not \
         set; their rates and delays come from the topology, except for edges of a graph that have none.",
    ),
    key("flow", Kind::Table(DEFAULT_FLOW), Optional, "For flows; a formula uses the `i` of each flow."),
    key(
        Preset::KEY,
        Kind::Word(&Preset::NAMES),
        Optional,
        "For queues, markers and exchanges whose tables have no `preset`: `paper` gives parameters that are not set \
         what their papers have, without mechanisms that were added later.",
    ),
];

/// A new link, or changes to a link of the topology.
pub(crate) const LINK: &[Key] = &both::<16>(
    &[
        key(
            "from",
            Kind::Text,
            Optional,
            "Node where packets enter. Required unless the topology defines the link.",
        ),
        key(
            "to",
            Kind::Text,
            Optional,
            "Node where packets leave. Required unless the topology defines the link.",
        ),
        key(
            "count",
            Kind::Amount(Unit::Count, Range::UpTo(MAX_LINKS)),
            Optional,
            "Makes a group of so many equal links between the two nodes: `x.1`, `x.2`, ..., each with this rate and a queue of its \
             own, and `x.1.back`, `x.2.back`, ... for the other direction. Each connection takes one of them by a hash. 1 if absent: \
             one link `x`.",
        ),
        key("lost", Kind::Tables(LOST), Optional, "Packets to lose, by ordinal."),
        key(
            "back",
            Kind::TableOrFalse(BACK),
            Optional,
            "Settings of the reverse direction, the link `x.back`. Unless set here it has the same rate, \
             delay and exchange, no jitter, and a FIFO queue of 1000 packets. `false` for a one-way link.",
        ),
    ],
    &SHARED_LINK,
);

/// Keys of a link that may also have a default.
const SHARED_LINK: [Key; 11] = [
    key(
        "rate",
        LINK_RATE,
        Optional,
        "Rate of the transmitter, or the trace of a recorded link. Required unless the topology defines the link.",
    ),
    key(
        "delay",
        DELAY,
        Optional,
        "Propagation delay of the wire. Required unless the topology defines the link.",
    ),
    key(
        "jitter",
        JITTER,
        Optional,
        "The longest time that packets take beyond `delay`, by chance and uniformly, without overtaking; or a table; none if absent.",
    ),
    key(
        "aggregate",
        Kind::TableOrFalse(AGGREGATE),
        Optional,
        "How the transmitter sends several packets each time it gets the medium, as Wi-Fi does; one packet at a time if absent or `false`.",
    ),
    key("queue", QUEUE, Optional, "Queue discipline in front of the transmitter; \"fifo\" if absent."),
    key(
        "loss",
        LINK_LOSS,
        Optional,
        "Probability that a packet is lost on the wire, or the Gilbert-Elliott model of bursts; 0 if absent.",
    ),
    key(
        "tickets",
        TICKETS,
        Optional,
        "Tickets per second that the router at the far end issues to the link, in that router's \
         currency; if absent, labels pass unchanged.",
    ),
    key(
        "ack_tickets",
        TICKETS,
        Optional,
        "Receiver-based alternative to `tickets`: tickets per second that the router at the near end \
         issues, on acknowledgements; needs the reverse direction.",
    ),
    key("exchange", EXCHANGE, Optional, "Ticket exchange: parameters of the exchange `currency`."),
    key(
        "watch",
        Kind::Flag,
        Optional,
        "Whether results show its queue over time; if absent, true only for the bottlenecks of a topology.",
    ),
    key("pcap", Kind::Flag, Optional, "Whether to write its packets to a capture file; false if absent."),
];

/// The reverse direction of a link.
pub(crate) const BACK: &[Key] =
    &both::<12>(&[key("lost", Kind::Tables(LOST), Optional, "Packets to lose, by ordinal.")], DEFAULT_BACK);

/// Keys of a reverse direction that may also have a default.
pub(crate) const DEFAULT_BACK: &[Key] = &[
    key("rate", LINK_RATE, Optional, "Rate of the transmitter, or the trace of a recorded link."),
    key("delay", DELAY, Optional, "Propagation delay of the wire."),
    key("jitter", JITTER, Optional, "The longest time that packets take beyond `delay`; or a table."),
    key(
        "aggregate",
        Kind::TableOrFalse(AGGREGATE),
        Optional,
        "How the transmitter sends several packets each time it gets the medium.",
    ),
    key("queue", QUEUE, Optional, "Queue discipline in front of the transmitter."),
    key(
        "loss",
        LINK_LOSS,
        Optional,
        "Probability that a packet is lost on the wire, or the model of bursts.",
    ),
    key("tickets", TICKETS, Optional, "Tickets per second that the router at the far end issues to it."),
    key("ack_tickets", TICKETS, Optional, "Tickets per second that the router at the near end issues to it."),
    key("exchange", EXCHANGE, Optional, "Ticket exchange."),
    key("watch", Kind::Flag, Optional, "Whether results show its queue over time."),
    key("pcap", Kind::Flag, Optional, "Whether to write its packets to a capture file."),
];

/// A transmitter that a recorded link drives.
pub(crate) const RATE_TABLE: &[Key] = &[key(
    "trace",
    Kind::Text,
    Required,
    "A file of delivery opportunities of 1504 bytes in mahimahi's format: one time in ms a line, repeated with the last as the \
     period. The mean is taken where one rate is needed: for defaults of queues and for what flows are due.",
)];
/// A delay that varies.
pub(crate) const JITTER_TABLE: &[Key] = &[
    key(
        "max",
        Kind::Amount(Unit::Span, Range::FromZero),
        Required,
        "The longest time beyond `delay`. Each packet draws its own.",
    ),
    key(
        "distribution",
        Kind::Word(&["uniform", "normal"]),
        Default("uniform"),
        "`uniform` between 0 and `max`; or `normal` around half of `max` with a sixth of it as the standard deviation, drawn again where it \
         is outside.",
    ),
    key(
        "reorder",
        Kind::Flag,
        Default("false"),
        "Whether packets may overtake others. If not, a packet arrives with the one before it at the earliest, as on a path \
         whose queues vary; then bursts gather behind one that takes long.",
    ),
];
/// A transmitter that aggregates.
pub(crate) const AGGREGATE: &[Key] = &[
    key(
        "packets",
        Kind::Amount(Unit::Count, Range::UpTo(65_535)),
        Default("64"),
        "Most packets in one aggregate; 64 are the window of a block acknowledgement of 802.11n and ac.",
    ),
    key(
        "bytes",
        SIZE,
        Default("65535B"),
        "Most bytes in one, with headers: 65535 in 802.11n, 1048575 in 802.11ac. A first packet is sent in any case.",
    ),
    key(
        "airtime",
        Kind::Amount(Unit::Span, Range::AboveZero),
        Default("4ms"),
        "The longest time of its bytes at the rate of the link.",
    ),
    key(
        "overhead",
        DELAY,
        Default("186us"),
        "What each costs besides: contention, preamble and block acknowledgement. The default has DIFS 34, half of 15 slots of 9, a preamble of 36 for one \
         stream, SIFS 16 and an acknowledgement of 32 us.",
    ),
    key(
        "header",
        Kind::Amount(Unit::Bytes, Range::FromZero),
        Default("42B"),
        "Added to each packet on the air: delimiter 4, MAC header with QoS 26, LLC and SNAP 8, FCS 4.",
    ),
    key(
        "retry",
        LOSS,
        Default("0"),
        "Probability that an aggregate has to be sent again as a whole, each time; at most 90%.",
    ),
];
/// The Gilbert-Elliott model, with the letters of Haßlinger and Hohlfeld (MMB 2008).
pub(crate) const GILBERT_ELLIOTT: &[Key] = &[
    key("p", LOSS, Required, "Probability that the wire turns from good to bad, for each packet."),
    key(
        "r",
        Kind::Amount(Unit::Ratio, Range::AboveZero),
        Required,
        "Probability that it turns from bad to good, for each packet.",
    ),
    key("h", LOSS, Default("0"), "Probability that a packet passes while the wire is bad."),
    key("k", LOSS, Default("1"), "Probability that a packet passes while the wire is good."),
];

/// Defaults of all links.
pub(crate) const DEFAULT_LINK: &[Key] = &both::<12>(
    &[key("back", Kind::Table(DEFAULT_BACK), Optional, "Settings of the reverse directions.")],
    &SHARED_LINK,
);

/// Listed losses of one flow.
pub(crate) const LOST: &[Key] = &[
    key("flow", Kind::Text, Required, "The flow, such as \"bulk.3\"."),
    key(
        "packets",
        Kind::Ordinals,
        Required,
        "Ordinals of its packets on this link, counting from 1 over all its `connections` together.",
    ),
];

/// A customer.
pub(crate) const CUSTOMER: &[Key] =
    &[key("weight", NUMBER, Default("1"), "Weight where bandwidth is divided among customers.")];

/// A flow or a group of similar flows.
pub(crate) const FLOW: &[Key] = &both::<25>(
    &[
        key(
            "count",
            Kind::Amount(Unit::Count, Range::UpTo(MAX_FLOWS)),
            Optional,
            "Makes a group of so many flows: `x.1`, `x.2`, ... with `i` = 1, 2, ...; if absent, one flow \
             `x` with `i` = 1.",
        ),
        key(
            "from",
            Kind::Pattern,
            Required,
            "Node of the source; `{i}` in names is the number of the group member.",
        ),
        key("to", Kind::Pattern, Required, "Node of the sink."),
        key(
            "path",
            Kind::Names,
            Optional,
            "Nodes or links that its packets pass; the end nodes may be omitted. If absent, the path of \
             least delay; ties go to the fewest links, then to the first names.",
        ),
        key("return_path", Kind::Names, Optional, "The same for acknowledgements."),
        key(
            "customer",
            Kind::Pattern,
            Optional,
            "Its customer, such as \"home{i}\", for queues that divide bandwidth among customers first \
             and then among the flows of each. If any flow has one, all flows without one form one more \
             customer of weight 1. The classes of `prio`, `htb` and `hfsc` have names of customers.",
        ),
        TARGET,
        TARGET_DELAY,
        key(
            "stream",
            Kind::Text,
            Optional,
            "Name of its random streams, of a group `x.1`, `x.2`, ...; its own name if absent. A renamed flow \
             keeps its draws with `stream` set to its old name.",
        ),
    ],
    &SHARED_FLOW,
);

/// What a real-rate flow asks for its queue.
pub(crate) const TARGET: Key = key(
    "target",
    SIZE,
    Optional,
    "What a `ramp` queue should hold of a `real_rate` flow, if not its parameter.",
);
/// The same in time.
pub(crate) const TARGET_DELAY: Key = key(
    "target_delay",
    Kind::Amount(Unit::Span, Range::AboveZero),
    Optional,
    "The same in time at the flow's own rate.",
);

/// Values of `class`, for queues that distinguish classes.
pub(crate) const CLASSES: &[&str] = &["greedy", "real_rate"];

/// Keys of a flow that may also have a default.
const SHARED_FLOW: [Key; 16] = [
    key(
        "connections",
        Kind::Amount(Unit::Count, Range::UpTo(MAX_CONNECTIONS)),
        Optional,
        "Number of connections in the flow, each with its own TCP or QUIC, random start and source; queues, markers \
         and `lost` see one flow. 1 if absent.",
    ),
    key(
        "tcp",
        Kind::Tcp,
        Optional,
        "TCP: a profile, a congestion control of the profile `linux`, or a table with `profile` and parameters. If absent, `linux` for `greedy`, `file`, `short_flows`, `web`, `probe` and `dash`, and UDP for sources with a rate. `false` takes a default back.",
    ),
    key(
        "quic",
        Kind::Quic,
        Optional,
        "QUIC in place of `tcp`: `cubic`, `newreno`, `bbr` or `bbr3`, or a table with `algorithm` and parameters. Simulator only; not for `web` and `probe`. `false` takes a default back.",
    ),
    key(
        "protocol",
        Kind::Word(&["tcp", "udp"]),
        Optional,
        "Protocol field of its packets, for queues that read it; if absent, the actual transport, which is UDP for QUIC. Datagrams \
         with \"tcp\" are spoofed.",
    ),
    key(
        "ecn",
        Kind::Word(&["not_ect", "ect0", "ect1"]),
        Optional,
        "ECN field of its datagrams; `not_ect` if absent. A source that says more than that and does not answer to marks is a \
         flood that asks for them. TCP and QUIC have a parameter `ecn` of their own.",
    ),
    key("source", Kind::Variants(SOURCES), Default("greedy"), "Traffic source."),
    key(
        "class",
        Kind::Word(CLASSES),
        Default("greedy"),
        "Traffic class, for queues that distinguish classes: `real_rate` for a flow such as video, which has no \
         use for more than its rate; `greedy` for a flow that uses all it gets.",
    ),
    key("weight", NUMBER, Default("1"), "Weight where bandwidth is divided by weights."),
    key(
        "rtt",
        Kind::Amount(Unit::Span, Range::AboveZero),
        Optional,
        "Round-trip time, for queues that divide buffer space by it; if absent, the delays of the links both \
         ways at the start and the transmission times of a full packet and its acknowledgement.",
    ),
    key(
        "guarantee",
        Kind::Amount(Unit::Rate, Range::FromZero),
        Default("0bit"),
        "Guaranteed rate, whether the flow sends or not. The guarantees of the flows that cross a link may add up \
         to at most its rate, at the start and when a change raises one.",
    ),
    key(
        "tickets",
        TICKETS,
        Optional,
        "Tickets per second issued to its source, in the currency of the source's node; of a group to that of each \
         member, once for all its `connections`, and to each flow that a source opens.",
    ),
    key(
        "ack_tickets",
        TICKETS,
        Optional,
        "Receiver-based alternative to `tickets`: tickets per second issued to its sink; of a group to that of each \
         member, once for all its `connections`, and to each flow that a source opens. TCP and QUIC only.",
    ),
    key(
        "mark",
        MARK,
        Optional,
        "Marker of its packets at the source: a name, or a table with parameters. If absent, `tickets` \
         for a flow with `tickets` or `ack_tickets`, else none.",
    ),
    key(
        "jitter",
        DELAY,
        Optional,
        "Longest time that its hosts take for a packet or acknowledgement, drawn uniformly for each, in order. \
         Simulator only. If absent, its transmission time over the slowest link of the path.",
    ),
    key("start", Kind::AmountOrTable(Unit::Time, Range::FromZero, START), Default("0s"), "Start time."),
    key(
        "stop",
        TIME,
        Optional,
        "Time when its source stops writing, or starting short flows; the end of the run if absent. What is written is \
         still sent: a file is written as a whole at its start.",
    ),
];

/// Defaults of all flows.
pub(crate) const DEFAULT_FLOW: &[Key] = &optional(SHARED_FLOW);

/// A random start.
pub(crate) const START: &[Key] = &[key(
    "between",
    Kind::Names,
    Required,
    "Start time drawn uniformly between two times, such as [\"0s\", \"1s\"], for each connection.",
)];

/// A timed change.
pub(crate) const CHANGE: &[Key] = &[
    key("at", TIME, Required, "Time of the change."),
    key(
        "set",
        Kind::Text,
        Required,
        "Parameter to change: link.NAME.rate, .delay, .loss, .queue, .tickets or .ack_tickets; \
         flow.NAME.rate, .class, .weight, .guarantee, .tickets or .ack_tickets, for a flow or a group.",
    ),
    key("to", Kind::Any, Required, "The new value, written as for that key; a rate may be zero."),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Amount;
    use crate::problem::Place;
    use crate::text::Item;

    fn visit(keys: &'static [Key], seen: &mut dyn FnMut(&'static Key)) {
        for key in keys {
            seen(key);
            match key.kind {
                Kind::Table(keys)
                | Kind::TableOrFalse(keys)
                | Kind::AmountOrTable(_, _, keys)
                | Kind::Map(keys)
                | Kind::Tables(keys) => visit(keys, seen),
                Kind::Variants(variants) => variants.iter().for_each(|variant| visit(variant.keys, seen)),
                _ => (),
            }
        }
    }

    #[test]
    fn every_default_is_a_value_of_its_key() {
        let mut defaults = 0;
        visit(ROOT, &mut |key| {
            let Default(text) = key.need else { return };
            defaults += 1;
            match key.kind {
                Kind::Amount(unit, range) => {
                    let read = Amount::read(&Item::text(text, Place::Line(1)), unit, range, false);
                    assert!(read.is_ok(), "{}: {read:?}", key.name);
                }
                Kind::Word(words) => assert!(words.contains(&text), "{}", key.name),
                Kind::Flag => assert!(["true", "false"].contains(&text), "{}", key.name),
                Kind::Variants(all) => assert!(all.iter().any(|one| one.name == text), "{}", key.name),
                Kind::Part(Part::Queue) => assert_eq!(text, "fifo"),
                Kind::AmountOrTable(..) => assert_eq!(text, "0s"),
                _ => panic!("{} has a default that nothing reads", key.name),
            }
        });
        assert!(defaults > 20, "{defaults}");
    }

    #[test]
    fn every_key_is_documented_in_sentences() {
        visit(ROOT, &mut |key| assert!(key.doc.ends_with('.'), "{}", key.name));
    }
}
