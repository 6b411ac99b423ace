//! Keys of predefined networks. They are lists and not structs of `params!`, because a network is expanded
//! into links as it is read, and no struct would hold their values.

use apportion_core::param::{Kind, Param, Range, Variant};

use super::{DEFAULT_BACK, LINK_LOSS, LINK_RATE, MAX_LINKS, QUEUE};
use crate::key::{DELAY, LOSS, RATE, SWITCH, TEXT, default, of, optional, required};

/// A link of a predefined topology.
const TOPOLOGY_LINK: &[Param] = &[
    required(
        "rate",
        LINK_RATE,
        "Rate of the transmitter, or the trace of a recorded link, in both directions.",
    ),
    required("delay", DELAY, "Propagation delay of the wire, in both directions."),
    optional("queue", QUEUE, "Queue discipline in front of the transmitter; \"fifo\" if absent."),
    optional("loss", LINK_LOSS, "Probability of loss on the wire, or bursts (Gilbert-Elliott); 0 if absent."),
    optional("back", of(Kind::Table(DEFAULT_BACK)), "Settings of the reverse direction."),
];
/// Access links between hosts and routers, which should not be bottlenecks.
pub(crate) const ACCESS: &[Param] = &[
    default("rate", RATE, "100Mbit", "Rate of the transmitter, in both directions."),
    default(
        "delay",
        DELAY,
        "1ms",
        "Propagation delay of the wire, in both directions; may be a formula of `i`.",
    ),
    optional(
        "queue",
        QUEUE,
        "Queue discipline in front of the transmitter, in both directions; a FIFO of 1000 packets if \
         absent.",
    ),
];
const PAIRS: Param =
    required("pairs", of(Kind::Count).within(Range::UpTo(MAX_LINKS / 4)), "Number of hosts on each side.");
const HOPS: Param =
    required("hops", of(Kind::Count).within(Range::UpTo(MAX_LINKS / 6)), "Number of links between routers.");
const HOP_LINK: Param = required("link", of(Kind::Table(TOPOLOGY_LINK)), "Settings of `hop1`, `hop2`, ...");
const ACCESS_LINKS: Param = optional("access", of(Kind::Table(ACCESS)), "Access links of the hosts.");

/// Predefined networks.
pub(crate) const TOPOLOGIES: &[Variant] = &[
    Variant {
        name: "dumbbell",
        doc: "Hosts l1, l2, ... - router left - link `bottleneck` - router right - hosts r1, r2, ...; access links \
              `l1-left`, `right-r1`, ...",
        params: &[
            PAIRS,
            required("bottleneck", of(Kind::Table(TOPOLOGY_LINK)), "The bottleneck link."),
            ACCESS_LINKS,
        ],
    },
    Variant {
        name: "chain",
        doc: "Routers n1, n2, ..., linked by `hop1`, `hop2`, ...; a host h1, h2, ... at each.",
        params: &[HOPS, HOP_LINK, ACCESS_LINKS],
    },
    Variant {
        name: "parking_lot",
        doc: "Routers n1, n2, ..., linked by `hop1`, `hop2`, ...; hosts src at the first and dst at the last for flows \
             over all hops; for cross traffic over hop k, hosts in{k} before and out{k} after it.",
        params: &[HOPS, HOP_LINK, ACCESS_LINKS],
    },
    Variant {
        name: "gfc",
        doc: "Generic fairness configuration: routers R1 - R4, linked by `R1-R2` (15.6 Mb/s), `R2-R3` (36 Mb/s) and \
             `R3-R4` (22.8 Mb/s), 10 ms each; at each router hosts short1 - short4 and long1 - long4, by delay of \
             access link.",
        params: &[
            optional("queue", QUEUE, "Queue discipline of the three links; \"fifo\" if absent."),
            default("short", DELAY, "2.5ms", "Delay of short access links."),
            default("long", DELAY, "18.5ms", "Delay of long access links."),
            default("access", RATE, "100Mbit", "Rate of access links."),
        ],
    },
    Variant {
        name: "satellite",
        doc: "Hosts l1, l2, ... - gateway - link `satellite` - terminal - hosts r1, r2, ...; data flows right, \
             acknowledgements return over the narrow `satellite.back`.",
        params: &[
            PAIRS,
            required("satellite", of(Kind::Table(TOPOLOGY_LINK)), "The link over the satellite."),
            ACCESS_LINKS,
        ],
    },
    Variant {
        name: "fat_tree",
        doc: "Data centre of `k`-port switches (Al-Fares et al., SIGCOMM 2008): `k` pods of k/2 edge and k/2 aggregation \
             switches, k^2/4 core switches: edge1, ..., agg1, ..., core1, ...; hosts h1, ..., k/2 per edge switch. \
             Links `h1-edge1`, `edge1-agg1`, `agg1-core1` lead up, `.back` down. A hash selects among equal paths, \
             k^2/4 between pods.",
        params: &[
            required("k", of(Kind::Count).within(Range::UpTo(MAX_K)), "Ports of a switch, even."),
            FABRIC,
            FABRIC_ACCESS_LINKS,
        ],
    },
    Variant {
        name: "leaf_spine",
        doc: "Data centre of two layers: leaves leaf1, ..., each linked to every spine spine1, ...; hosts h1, ..., the \
             first at leaf1. Links `h1-leaf1`, `leaf1-spine1` lead up, `.back` down. A hash selects among equal paths, \
             one per spine.",
        params: &[
            required("leaves", SWITCHES, "Number of leaves."),
            required("spines", SWITCHES, "Number of spines."),
            required("hosts", SWITCHES, "Number of hosts at each leaf."),
            FABRIC,
            FABRIC_ACCESS_LINKS,
        ],
    },
    Variant {
        name: "gml",
        doc: "Graph Modelling Language, as in the Internet Topology Zoo and Shadow. Labels, else ids, name nodes. An \
             edge becomes link `a-b`, from source to target, and `a-b.back` unless the graph is directed; `link` fills \
             in what it lacks.",
        params: &[required("file", TEXT, "The GML file, in UTF-8 or ISO 8859-1."), EDGES],
    },
    Variant {
        name: "graphml",
        doc: "GraphML, read as GML: the `attr.name` of `key` elements names attributes.",
        params: &[required("file", TEXT, "The GraphML file."), EDGES],
    },
];

const EDGES: Param =
    optional("link", of(Kind::Table(GRAPH_LINK)), "Values for edges that lack an attribute.");

/// The largest even `k` whose fat tree is within the maximum of links: 3/2 k^3 directions.
const MAX_K: u64 = 40;
const SWITCHES: Param = of(Kind::Count).within(Range::UpTo(MAX_LINKS / 4));
const FABRIC: Param = required("link", of(Kind::Table(FABRIC_LINK)), "All links, in both directions.");
const FABRIC_ACCESS_LINKS: Param =
    optional("access", of(Kind::Table(FABRIC_ACCESS)), "Access links, where they differ.");
/// Links of a data centre, which are equal in both directions.
const FABRIC_LINK: &[Param] = &[
    required("rate", RATE, "Rate of the transmitter."),
    required("delay", DELAY, "Propagation delay of the wire."),
    optional("queue", QUEUE, "Queue discipline in front of the transmitter; \"fifo\" if absent."),
    optional("loss", LOSS, "Probability that a packet is lost on the wire; 0 if absent."),
    optional("watch", SWITCH, "Whether results show the queues over time; false if absent."),
];
/// Access links of fabrics.
const FABRIC_ACCESS: &[Param] = &[
    optional(
        "rate",
        RATE,
        "Rate of the transmitter, in both directions; may be a formula of the host's number `i`.",
    ),
    optional("delay", DELAY, "Propagation delay of the wire, in both directions; may be a formula of `i`."),
    optional("queue", QUEUE, "Queue discipline in front of the transmitter, in both directions."),
];

/// Defaults for edges of a graph.
const GRAPH_LINK: &[Param] = &[
    optional("rate", RATE, "Rate of edges without a `rate`."),
    optional("delay", DELAY, "Delay of edges without a `delay`."),
    optional("queue", QUEUE, "Queue discipline of both directions; \"fifo\" if absent."),
    optional("loss", LOSS, "Loss probability of edges without a `loss`; 0 if absent."),
    optional("watch", SWITCH, "Whether results show the queues over time; false if absent."),
];
