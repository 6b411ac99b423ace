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
    optional(
        "loss",
        LINK_LOSS,
        "Probability that a packet is lost on the wire, or the Gilbert-Elliott model of bursts; 0 if absent.",
    ),
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
        doc: "Routers n1, n2, ... in a row, linked by `hop1`, `hop2`, ...; a host h1, h2, ... at each of them.",
        params: &[HOPS, HOP_LINK, ACCESS_LINKS],
    },
    Variant {
        name: "parking_lot",
        doc: "Routers n1, n2, ... in a row, linked by `hop1`, `hop2`, ...; hosts src at the first and dst at the \
              last for flows over all hops; for cross traffic over hop k alone, hosts in{k} before it and out{k} \
              after it.",
        params: &[HOPS, HOP_LINK, ACCESS_LINKS],
    },
    Variant {
        name: "gfc",
        doc: "Generic fairness configuration: routers R1 - R4 in a row, linked by `R1-R2` (15.6 Mb/s), `R2-R3` \
              (36 Mb/s) and `R3-R4` (22.8 Mb/s), 10 ms each; hosts short1 - short4 with short and long1 - long4 with \
              long access links at each router.",
        params: &[
            optional("queue", QUEUE, "Queue discipline of the three links; \"fifo\" if absent."),
            default("short", DELAY, "2.5ms", "Delay of short access links."),
            default("long", DELAY, "18.5ms", "Delay of long access links."),
            default("access", RATE, "100Mbit", "Rate of access links."),
        ],
    },
    Variant {
        name: "satellite",
        doc: "Hosts l1, l2, ... - gateway - link `satellite` - terminal - hosts r1, r2, ...; data flows \
              from left to right, acknowledgements return over the narrow `satellite.back`.",
        params: &[
            PAIRS,
            required("satellite", of(Kind::Table(TOPOLOGY_LINK)), "The link over the satellite."),
            ACCESS_LINKS,
        ],
    },
    Variant {
        name: "fat_tree",
        doc: "A data centre of switches with `k` ports (Al-Fares et al., SIGCOMM 2008): `k` pods of k/2 edge and k/2 aggregation \
              switches, and k^2/4 core switches, all numbered from 1: edge1, edge2, ..., agg1, ..., core1, ...; hosts h1, h2, ..., \
              h{k^3/4}, k/2 at each edge switch. Links `h1-edge1`, `edge1-agg1`, `agg1-core1` lead up, `.back` down. Between pods \
              there are k^2/4 paths of equal cost, which flows take by a hash.",
        params: &[
            required("k", of(Kind::Count).within(Range::UpTo(MAX_K)), "Ports of a switch, even."),
            FABRIC,
            FABRIC_ACCESS_LINKS,
        ],
    },
    Variant {
        name: "leaf_spine",
        doc: "A data centre of two layers: leaves leaf1, leaf2, ..., each with a link to every spine spine1, spine2, ...; hosts h1, \
              h2, ..., the first of them at leaf1. Links `h1-leaf1` and `leaf1-spine1` lead up, `.back` down. Between leaves there \
              are as many paths of equal cost as spines, which flows take by a hash.",
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
        doc: "A graph in the Graph Modelling Language, such as those of the Internet Topology Zoo and of Shadow: nodes are named \
              by their label, else their id; an edge becomes a link `a-b`, which leads from its source to its target, and \
              `a-b.back` unless the graph is directed, with what the edge says, else what `link` says.",
        params: &[required("file", TEXT, "The GML file, in UTF-8 or ISO 8859-1."), EDGES],
    },
    Variant {
        name: "graphml",
        doc: "A graph in GraphML, read as one in GML is: the `attr.name` of its `key` elements are the names of attributes.",
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
    optional("access", of(Kind::Table(FABRIC_ACCESS)), "Access links of the hosts, where they differ.");
/// Links of a data centre, which are equal in both directions.
const FABRIC_LINK: &[Param] = &[
    required("rate", RATE, "Rate of the transmitter."),
    required("delay", DELAY, "Propagation delay of the wire."),
    optional("queue", QUEUE, "Queue discipline in front of the transmitter; \"fifo\" if absent."),
    optional("loss", LOSS, "Probability that a packet is lost on the wire; 0 if absent."),
    optional("watch", SWITCH, "Whether results show the queues over time; false if absent."),
];
/// Their access links.
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
