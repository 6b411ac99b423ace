//! Keys of predefined networks.

use super::{DEFAULT_BACK, DELAY, LINK_LOSS, LINK_RATE, LOSS, MAX_LINKS, QUEUE, RATE, key};
use crate::keys::Need::{Default, Optional, Required};
use crate::keys::{Key, Kind, Range, Unit, Variant};

/// A link of a predefined topology.
const TOPOLOGY_LINK: &[Key] = &[
    key(
        "rate",
        LINK_RATE,
        Required,
        "Rate of the transmitter, or the trace of a recorded link, in both directions.",
    ),
    key("delay", DELAY, Required, "Propagation delay of the wire, in both directions."),
    key("queue", QUEUE, Optional, "Queue discipline in front of the transmitter; \"fifo\" if absent."),
    key(
        "loss",
        LINK_LOSS,
        Optional,
        "Probability that a packet is lost on the wire, or the Gilbert-Elliott model of bursts; 0 if absent.",
    ),
    key("back", Kind::Table(DEFAULT_BACK), Optional, "Settings of the reverse direction."),
];
/// Access links between hosts and routers, which should not be bottlenecks.
const ACCESS: &[Key] = &[
    key("rate", RATE, Default("100Mbit"), "Rate of the transmitter, in both directions."),
    key(
        "delay",
        DELAY,
        Default("1ms"),
        "Propagation delay of the wire, in both directions; may be a formula of `i`.",
    ),
    key(
        "queue",
        QUEUE,
        Optional,
        "Queue discipline in front of the transmitter, in both directions; a FIFO of 1000 packets if \
         absent.",
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
const HOP_LINK: Key = key("link", Kind::Table(TOPOLOGY_LINK), Required, "Settings of `hop1`, `hop2`, ...");
const ACCESS_LINKS: Key = key("access", Kind::Table(ACCESS), Optional, "Access links of the hosts.");

/// Predefined networks.
pub(crate) const TOPOLOGIES: &[Variant] = &[
    Variant {
        name: "dumbbell",
        doc: "Hosts l1, l2, ... - router left - link `bottleneck` - router right - hosts r1, r2, ...; access links \
              `l1-left`, `right-r1`, ...",
        keys: &[
            PAIRS,
            key("bottleneck", Kind::Table(TOPOLOGY_LINK), Required, "The bottleneck link."),
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
            key("queue", QUEUE, Optional, "Queue discipline of the three links; \"fifo\" if absent."),
            key("short", DELAY, Default("2.5ms"), "Delay of short access links."),
            key("long", DELAY, Default("18.5ms"), "Delay of long access links."),
            key("access", RATE, Default("100Mbit"), "Rate of access links."),
        ],
    },
    Variant {
        name: "satellite",
        doc: "Hosts l1, l2, ... - gateway - link `satellite` - terminal - hosts r1, r2, ...; data flows \
              from left to right, acknowledgements return over the narrow `satellite.back`.",
        keys: &[
            PAIRS,
            key("satellite", Kind::Table(TOPOLOGY_LINK), Required, "The link over the satellite."),
            ACCESS_LINKS,
        ],
    },
    Variant {
        name: "gml",
        doc: "A graph in the Graph Modelling Language: nodes are named by their label, else their id; \
              edges become links `a-b`, with rate, delay and loss from the edge's attributes of those \
              names, else from `link`.",
        keys: &[
            key("file", Kind::Text, Required, "The GML file."),
            key("link", Kind::Table(GML_LINK), Optional, "Values for edges that lack an attribute."),
        ],
    },
];

/// Defaults for edges of a graph.
const GML_LINK: &[Key] = &[
    key("rate", RATE, Optional, "Rate of edges without a `rate`."),
    key("delay", DELAY, Optional, "Delay of edges without a `delay`."),
    key("queue", QUEUE, Optional, "Queue discipline of both directions; \"fifo\" if absent."),
    key("loss", LOSS, Optional, "Loss probability of edges without a `loss`; 0 if absent."),
    key("watch", Kind::Flag, Optional, "Whether results show the queues over time; false if absent."),
];
