//! Keys of predefined networks. They are lists and not structs of `params!`, since a network is expanded into links as it is read: nothing
//! would hold their values.

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
const ACCESS: &[Param] = &[
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
        name: "gml",
        doc: "A graph in the Graph Modelling Language, such as those of the Internet Topology Zoo and of Shadow. Nodes are named by \
              their label, else their id; of several with the same label all but the first have their id added: `BBN (1)`. \
              Edges become links `a-b`, parallel ones `a-b-2`, ..., alike in both directions unless the graph is directed. \
              A link has what its edge says: `rate`, `bandwidth`, `LinkSpeedRaw` in bit/s, `LinkSpeed` with \
              `LinkSpeedUnits`, or a `LinkLabel` such as `1 Gbps`; `delay` or `latency`; `loss` or `packet_loss`; `jitter`. Else it \
              has what `link` says, else what `defaults` say. Where these give no delay it is that of light in fibre \
              (2/3 of its speed in vacuum) over the great circle between the `Latitude` and `Longitude` of its nodes; where \
              they give no rate it is the smaller of `host_bandwidth_up` and `host_bandwidth_down` at its two ends. Tables \
              under `link` change links by name. Warnings name the attributes that are not used.",
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

/// Defaults for edges of a graph.
const GRAPH_LINK: &[Param] = &[
    optional("rate", RATE, "Rate of edges without a `rate`."),
    optional("delay", DELAY, "Delay of edges without a `delay`."),
    optional("queue", QUEUE, "Queue discipline of both directions; \"fifo\" if absent."),
    optional("loss", LOSS, "Loss probability of edges without a `loss`; 0 if absent."),
    optional("watch", SWITCH, "Whether results show the queues over time; false if absent."),
];
