//! Every key of a scenario file, as data: the one home of names, units, defaults and their documentation.
//!
//! Keys of queue disciplines are in [`apportion_core::catalog`], those of TCP in [`crate::tcp`].

use crate::keys::{Key, Kind, Need, Range, Unit, Variant};
use crate::selection::Part;

use Need::{Default, Optional, Required};

/// Most flows of a scenario (chosen: what a simulator still holds in memory).
pub(crate) const MAX_FLOWS: u64 = 1_000_000;
/// Most connections of a flow: the dynamic ports of its host, 49152 to 65535 (RFC 6335 section 6), of which
/// each connection to one port of another host takes one.
pub(crate) const MAX_CONNECTIONS: u64 = 16_384;
/// Most one-way links of a scenario (chosen: likewise).
pub(crate) const MAX_LINKS: u64 = 100_000;

const TIME: Kind = Kind::Amount(Unit::Time, Range::FromZero);
pub(crate) const RATE: Kind = Kind::Amount(Unit::Rate, Range::AboveZero);
pub(crate) const DELAY: Kind = Kind::Amount(Unit::Span, Range::FromZero);
pub(crate) const LOSS: Kind = Kind::Amount(Unit::Ratio, Range::FromZero);
pub(crate) const NUMBER: Kind = Kind::Amount(Unit::Number, Range::AboveZero);
pub(crate) const TICKETS: Kind = Kind::Amount(Unit::Number, Range::FromZero);
pub(crate) const QUEUE: Kind = Kind::Part(Part::Queue);
pub(crate) const MARK: Kind = Kind::Part(Part::Marker);
pub(crate) const EXCHANGE: Kind = Kind::Part(Part::Exchange);
const SIZE: Kind = Kind::Amount(Unit::Bytes, Range::AboveZero);

pub(crate) const fn key(name: &'static str, kind: Kind, need: Need, doc: &'static str) -> Key {
    Key { name, kind, need, doc }
}

/// `first`, then `second`, which have `N` keys together.
const fn both<const N: usize>(first: &[Key], second: &[Key]) -> [Key; N] {
    assert!(first.len() + second.len() == N, "a key would be left out");
    let mut keys = [first[0]; N];
    let mut at = 0;
    while at < N {
        keys[at] = if at < first.len() { first[at] } else { second[at - first.len()] };
        at += 1;
    }
    keys
}

/// The same keys, where absent means that nothing is set.
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
    key("title", Kind::Text, Optional, "What reports call the scenario; the file's name if absent."),
    key(
        "seed",
        Kind::Amount(Unit::Count, Range::FromZero),
        Required,
        "All random streams derive from it: same seed, same result.",
    ),
    key("stop", Kind::Amount(Unit::Time, Range::AboveZero), Required, "When the run ends."),
    key("measure_from", TIME, Default("0s"), "Results count from here; what comes before is warm-up."),
    key(
        "sample",
        Kind::Amount(Unit::Span, Range::AboveZero),
        Optional,
        "Interval of time series; if absent, 1, 2 or 5 times a power of ten that gives at most 600 of them.",
    ),
    key(
        "topology",
        Kind::Variants(TOPOLOGIES),
        Optional,
        "A ready network; `link` adds to it and changes it.",
    ),
    key(
        "defaults",
        Kind::Table(DEFAULTS),
        Optional,
        "What all links and flows take that they do not set themselves.",
    ),
    key("link", Kind::Map(LINK), Optional, "Links by name. Nodes are implied by the links between them."),
    key("flow", Kind::Map(FLOW), Optional, "Flows, or groups of like flows, by name."),
    key(
        "customer",
        Kind::Map(CUSTOMER),
        Optional,
        "Customers by name, for those that weigh more or less than 1. Flows say whose they are.",
    ),
    key("change", Kind::Tables(CHANGE), Optional, "Changes while the scenario runs."),
];

/// What belongs to one link or flow, and what all of them may share.
pub(crate) const DEFAULTS: &[Key] = &[
    key(
        "link",
        Kind::Table(DEFAULT_LINK),
        Optional,
        "For links. Those of a ready topology take from it what their tables in `topology` do not set; their rates \
         and delays are the topology's, except for edges of a graph that have none.",
    ),
    key("flow", Kind::Table(DEFAULT_FLOW), Optional, "For flows; formulas count each flow's own `i`."),
];

/// A link of its own, or changes to a link of the topology.
pub(crate) const LINK: &[Key] = &both::<13>(
    &[
        key(
            "from",
            Kind::Text,
            Optional,
            "Node where packets enter. Required unless the topology has the link.",
        ),
        key(
            "to",
            Kind::Text,
            Optional,
            "Node where packets leave. Required unless the topology has the link.",
        ),
        key("lost", Kind::Tables(LOST), Optional, "Packets to lose by their ordinals."),
        key(
            "back",
            Kind::TableOrFalse(BACK),
            Optional,
            "Changes to the other direction, the link `x.back`, which has the same rate, delay and exchange and a \
             FIFO queue of 1000 packets unless set here; `false` for a link with one direction.",
        ),
    ],
    &SHARED_LINK,
);

/// What links may have in common.
const SHARED_LINK: [Key; 9] = [
    key("rate", RATE, Optional, "Of the transmitter. Required unless the topology has the link."),
    key("delay", DELAY, Optional, "Of the wire. Required unless the topology has the link."),
    key("queue", QUEUE, Optional, "Discipline in front of the transmitter; \"fifo\" if absent."),
    key("loss", LOSS, Optional, "Each packet is lost on the wire with this probability; 0 if absent."),
    key(
        "tickets",
        TICKETS,
        Optional,
        "Tickets per second that the router at its end issues to it, in that router's currency; labels pass as \
         they are if absent.",
    ),
    key(
        "ack_tickets",
        TICKETS,
        Optional,
        "Receiver-based: tickets per second that the router at its beginning issues to it, which return on \
         acknowledgements. Instead of `tickets`; the link needs its other direction.",
    ),
    key("exchange", EXCHANGE, Optional, "How it exchanges tickets: parameters of the exchange `currency`."),
    key(
        "watch",
        Kind::Flag,
        Optional,
        "Whether results show its queue over time; true if absent for a topology's bottlenecks only.",
    ),
    key("pcap", Kind::Flag, Optional, "Whether to write what it carries to a capture file; false if absent."),
];

/// The other direction of a link.
pub(crate) const BACK: &[Key] = &both::<10>(
    &[key("lost", Kind::Tables(LOST), Optional, "Packets to lose by their ordinals.")],
    DEFAULT_BACK,
);

/// What links may have in common in the other direction.
pub(crate) const DEFAULT_BACK: &[Key] = &[
    key("rate", RATE, Optional, "Of the transmitter."),
    key("delay", DELAY, Optional, "Of the wire."),
    key("queue", QUEUE, Optional, "Discipline in front of the transmitter."),
    key("loss", LOSS, Optional, "Each packet is lost on the wire with this probability."),
    key("tickets", TICKETS, Optional, "Tickets per second that the router at its end issues to it."),
    key(
        "ack_tickets",
        TICKETS,
        Optional,
        "Tickets per second that the router at its beginning issues to it.",
    ),
    key("exchange", EXCHANGE, Optional, "How it exchanges tickets."),
    key("watch", Kind::Flag, Optional, "Whether results show its queue over time."),
    key("pcap", Kind::Flag, Optional, "Whether to write what it carries to a capture file."),
];

/// For all links.
pub(crate) const DEFAULT_LINK: &[Key] = &both::<10>(
    &[key("back", Kind::Table(DEFAULT_BACK), Optional, "Changes to other directions.")],
    &SHARED_LINK,
);

/// Listed losses of one flow.
pub(crate) const LOST: &[Key] = &[
    key("flow", Kind::Text, Required, "The flow, such as \"bulk.3\"."),
    key(
        "packets",
        Kind::Ordinals,
        Required,
        "Its packets over this link, counting from 1; those of all its `connections` together.",
    ),
];

/// A customer.
pub(crate) const CUSTOMER: &[Key] =
    &[key("weight", NUMBER, Default("1"), "Its weight where bandwidth is divided among customers.")];

/// A flow or a group of like flows.
pub(crate) const FLOW: &[Key] = &both::<19>(
    &[
        key(
            "count",
            Kind::Amount(Unit::Count, Range::UpTo(MAX_FLOWS)),
            Optional,
            "Makes a group: members `x.1`, `x.2`, ... for `i` = 1, 2, ...; without it one flow named `x`, for \
             which `i` is 1.",
        ),
        key(
            "from",
            Kind::Pattern,
            Required,
            "Node of the source; `{i}` in names stands for the member's number.",
        ),
        key("to", Kind::Pattern, Required, "Node of the sink."),
        key(
            "path",
            Kind::Names,
            Optional,
            "Nodes, or links, that its packets pass; if absent the path of least delay, then fewest links, then \
             first names. Nodes at the ends may be left out.",
        ),
        key("return_path", Kind::Names, Optional, "Likewise for acknowledgements."),
        key(
            "customer",
            Kind::Pattern,
            Optional,
            "Whose it is, where customers are divided by first and their flows after that, such as \"home{i}\". All \
             flows without one are one more customer of weight 1, if any flow has one.",
        ),
    ],
    &SHARED_FLOW,
);

/// What a flow can be to queues that keep classes apart.
pub(crate) const CLASSES: &[&str] = &["greedy", "real_rate"];

/// What flows may have in common.
const SHARED_FLOW: [Key; 13] = [
    key(
        "connections",
        Kind::Amount(Unit::Count, Range::UpTo(MAX_CONNECTIONS)),
        Optional,
        "Connections that it consists of, each with its own TCP, random start and copy of the source, whose \
         rate is that of each one; queues, markers and `lost` see one flow. 1 if absent.",
    ),
    key("tcp", Kind::Tcp, Optional, "TCP profile, or a table with `profile` and parameters; if absent, UDP."),
    key(
        "protocol",
        Kind::Word(&["tcp", "udp"]),
        Optional,
        "What its packets say they carry, where a queue asks; if absent, what does carry them. TCP that says \"udp\" \
         is like QUIC, and datagrams that say \"tcp\" are a lie.",
    ),
    key("source", Kind::Variants(SOURCES), Default("greedy"), "What it has to send."),
    key(
        "class",
        Kind::Word(CLASSES),
        Default("greedy"),
        "Where queues keep classes apart: `real_rate` if it needs what the world outside makes it send and has no use \
         for more, as video does; `greedy` if it takes whatever it gets.",
    ),
    key("weight", NUMBER, Default("1"), "Its weight where bandwidth is divided by weights."),
    key(
        "rtt",
        Kind::Amount(Unit::Span, Range::AboveZero),
        Optional,
        "Its round-trip time where buffer space is divided by that; if absent, the delays of the links there and \
         back at the start and what a full packet and its acknowledgement take on them.",
    ),
    key(
        "guarantee",
        Kind::Amount(Unit::Rate, Range::FromZero),
        Default("0bit"),
        "The rate it is guaranteed, whether it sends or not. On each link the guarantees of the flows that cross it add up \
         to its rate at most, at the start and when a change raises one; the link may slow down later.",
    ),
    key(
        "tickets",
        TICKETS,
        Optional,
        "Tickets per second that its source is issued, in the currency of the node it sends from.",
    ),
    key(
        "ack_tickets",
        TICKETS,
        Optional,
        "Receiver-based: tickets per second that its sink is issued. Instead of `tickets`; TCP only.",
    ),
    key(
        "mark",
        MARK,
        Optional,
        "What marks its packets at the source: a marker, or a table with parameters; `tickets` if absent where it \
         is issued some, else nothing.",
    ),
    key("start", Kind::TimeOrTable(START), Default("0s"), "When it starts."),
    key("stop", TIME, Optional, "When its source falls silent; the end of the run if absent."),
];

/// For all flows.
pub(crate) const DEFAULT_FLOW: &[Key] = &optional(SHARED_FLOW);

/// A random start.
pub(crate) const START: &[Key] = &[key(
    "between",
    Kind::Names,
    Required,
    "Uniformly at random between two times, such as [\"0s\", \"1s\"]; each connection draws its own.",
)];

/// A timed change.
pub(crate) const CHANGE: &[Key] = &[
    key("at", TIME, Required, "When."),
    key(
        "set",
        Kind::Text,
        Required,
        "What: link.NAME.rate, .delay, .loss, .queue, .tickets or .ack_tickets; flow.NAME.rate, .class, \
         .weight, .guarantee, .tickets or .ack_tickets, for a flow or a group.",
    ),
    key("to", Kind::Any, Required, "The new value, as the key takes it; a rate may be zero."),
];

const PACKET: Key =
    key("packet", SIZE, Default("1000B"), "Of one datagram on the wire; over TCP, of one write.");
const BIT_RATE: Key = key("rate", RATE, Required, "Of the bytes written; over UDP, on the wire.");
const SHAPE: Kind = Kind::Word(&["constant", "exponential", "pareto"]);
const ALPHA: Key = key(
    "alpha",
    Kind::Amount(Unit::Number, Range::AboveOne),
    Default("1.5"),
    "Shape parameter of the Pareto distribution.",
);

/// What flows send.
pub(crate) const SOURCES: &[Variant] = &[
    Variant { name: "greedy", doc: "Always has more to send. TCP only.", keys: &[] },
    Variant {
        name: "file",
        doc: "One file, then silence. TCP only.",
        keys: &[key("size", SIZE, Required, "Of the file.")],
    },
    Variant {
        name: "cbr",
        doc: "One packet after another at a constant rate.",
        keys: &[
            BIT_RATE,
            PACKET,
            key("jitter", LOSS, Default("0"), "Each gap varies by up to this share of itself, up or down."),
        ],
    },
    Variant {
        name: "poisson",
        doc: "Packets at the instants of a Poisson process.",
        keys: &[BIT_RATE, PACKET],
    },
    Variant {
        name: "on_off",
        doc: "Constant rate during on periods, silence during off periods.",
        keys: &[
            key("rate", RATE, Required, "During on periods."),
            PACKET,
            key("on", Kind::Amount(Unit::Span, Range::AboveZero), Required, "Mean length of on periods."),
            key("off", Kind::Amount(Unit::Span, Range::AboveZero), Required, "Mean length of off periods."),
            key("shape", SHAPE, Default("exponential"), "Distribution of both lengths."),
            ALPHA,
        ],
    },
    Variant {
        name: "short_flows",
        doc: "A Poisson process of short connections, each with one file. TCP only.",
        keys: &[
            key("per_second", NUMBER, Required, "Mean number of new connections a second."),
            key("mean_size", SIZE, Required, "Mean size of a file."),
            key("shape", SHAPE, Default("pareto"), "Distribution of sizes."),
            ALPHA,
        ],
    },
    Variant {
        name: "video",
        doc: "One frame after another at its display time, from `file` or else synthetic MPEG of rate `mean`.",
        keys: &[
            key("fps", NUMBER, Default("25"), "Frames a second."),
            key("file", Kind::Text, Optional, "Frame sizes in bytes, one a line; repeated when used up."),
            key("mean", RATE, Optional, "Mean rate of a synthetic group of pictures IBBPBBPBBPBB."),
            key(
                "adaptive",
                Kind::Flag,
                Default("false"),
                "Whether frames shrink when a queue says that it cannot carry them, and grow again after that.",
            ),
            key(
                "least",
                Kind::Amount(Unit::Ratio, Range::AboveZero),
                Default("0.1"),
                "Of an adaptive video, what frames do not shrink below, as a share of their full size.",
            ),
            PACKET,
        ],
    },
    Variant {
        name: "replay",
        doc: "The times and sizes of a packet capture. UDP only.",
        keys: &[key("file", Kind::Text, Required, "A pcap file.")],
    },
];

/// A link of a ready topology.
const TOPOLOGY_LINK: &[Key] = &[
    key("rate", RATE, Required, "Of the transmitter, in both directions."),
    key("delay", DELAY, Required, "Of the wire, in both directions."),
    key("queue", QUEUE, Optional, "Discipline in front of the transmitter; \"fifo\" if absent."),
    key("loss", LOSS, Optional, "Each packet is lost on the wire with this probability; 0 if absent."),
    key("back", Kind::Table(DEFAULT_BACK), Optional, "Changes to the other direction."),
];
/// The links between hosts and routers, which are not meant to be bottlenecks.
const ACCESS: &[Key] = &[
    key("rate", RATE, Default("100Mbit"), "Of the transmitter, in both directions."),
    key("delay", DELAY, Default("1ms"), "Of the wire, in both directions; may be a formula of `i`."),
    key(
        "queue",
        QUEUE,
        Optional,
        "Discipline in front of the transmitter, in both directions; a FIFO of 1000 packets if absent.",
    ),
];
const PAIRS: Key = key(
    "pairs",
    Kind::Amount(Unit::Count, Range::UpTo(MAX_LINKS / 4)),
    Required,
    "Number of hosts on each side.",
);
const HOPS: Key = key(
    "hops",
    Kind::Amount(Unit::Count, Range::UpTo(MAX_LINKS / 6)),
    Required,
    "Number of links between routers.",
);
const HOP_LINK: Key = key("link", Kind::Table(TOPOLOGY_LINK), Required, "Each of `hop1`, `hop2`, ...");
const ACCESS_LINKS: Key = key("access", Kind::Table(ACCESS), Optional, "Links of hosts.");

/// Ready networks.
pub(crate) const TOPOLOGIES: &[Variant] = &[
    Variant {
        name: "dumbbell",
        doc: "Hosts l1, l2, ... - router left - link `bottleneck` - router right - hosts r1, r2, ...; access links \
              `l1-left`, `right-r1`, ...",
        keys: &[
            PAIRS,
            key("bottleneck", Kind::Table(TOPOLOGY_LINK), Required, "The link in the middle."),
            ACCESS_LINKS,
        ],
    },
    Variant {
        name: "chain",
        doc: "Routers n1, n2, ... in a row, linked by `hop1`, `hop2`, ...; a host h1, h2, ... at each of them.",
        keys: &[HOPS, HOP_LINK, ACCESS_LINKS],
    },
    Variant {
        name: "parking_lot",
        doc: "Routers n1, n2, ... in a row, linked by `hop1`, `hop2`, ...; hosts src at the first and dst at the \
              last for flows over all hops; for cross traffic over hop k alone, hosts in{k} before it and out{k} \
              after it.",
        keys: &[HOPS, HOP_LINK, ACCESS_LINKS],
    },
    Variant {
        name: "gfc",
        doc: "Generic fairness configuration: routers R1 - R4 in a row, linked by `R1-R2` (15.6 Mb/s), `R2-R3` \
              (36 Mb/s) and `R3-R4` (22.8 Mb/s), 10 ms each; hosts short1 - short4 with short and long1 - long4 with \
              long access links at each router.",
        keys: &[
            key("queue", QUEUE, Optional, "Discipline of the three links; \"fifo\" if absent."),
            key("short", DELAY, Default("2.5ms"), "Delay of short access links."),
            key("long", DELAY, Default("18.5ms"), "Delay of long access links."),
            key("access", RATE, Default("100Mbit"), "Rate of access links."),
        ],
    },
    Variant {
        name: "satellite",
        doc: "Hosts l1, l2, ... - gateway - link `satellite` - terminal - hosts r1, r2, ...; data flows down from \
              the left, acknowledgements return over the narrow `satellite.back`.",
        keys: &[
            PAIRS,
            key("satellite", Kind::Table(TOPOLOGY_LINK), Required, "The link over the satellite."),
            ACCESS_LINKS,
        ],
    },
    Variant {
        name: "gml",
        doc: "A graph in the Graph Modelling Language: nodes by label or else id, edges as links `a-b`, with rate, \
              delay and loss from the edge's attributes of those names or else from `link`.",
        keys: &[
            key("file", Kind::Text, Required, "The GML file."),
            key("link", Kind::Table(GML_LINK), Optional, "What edges do not say themselves."),
        ],
    },
];

/// Defaults for edges of a graph.
const GML_LINK: &[Key] = &[
    key("rate", RATE, Optional, "Of edges without a `rate`."),
    key("delay", DELAY, Optional, "Of edges without a `delay`."),
    key("queue", QUEUE, Optional, "Discipline of both directions; \"fifo\" if absent."),
    key("loss", LOSS, Optional, "Of edges without a `loss`; 0 if absent."),
    key("watch", Kind::Flag, Optional, "Whether results show the queues over time; false if absent."),
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
                | Kind::TimeOrTable(keys)
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
                Kind::TimeOrTable(_) => assert_eq!(text, "0s"),
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
