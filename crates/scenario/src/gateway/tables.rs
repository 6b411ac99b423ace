//! Every key of a gateway's configuration, as data. Keys that scenarios also have use the same names.

use apportion_core::packet::FlowId;
use apportion_core::param::{Kind, Param, Range, concat};

use super::{Direction, Side};
use crate::key::{DELAY, LOSS, NUMBER, RATE, SPAN, SWITCH, TEXT, TICKETS, default, of, optional, required};
use crate::tables::{CLASSES, CUSTOMER, EXCHANGE, MARK, QUEUE, TARGET, TARGET_DELAY};

/// The whole file.
pub(crate) const ROOT: &[Param] = &[
    optional("title", TEXT, "Title in metrics; the file's name if absent."),
    default("seed", of(Kind::Count).within(Range::FromZero), "1", "Seed of all random streams."),
    required("inside", of(Kind::Form("\"eth1\"")), "The network interface towards the inside."),
    required("outside", of(Kind::Form("\"eth0\"")), "The network interface towards the outside."),
    optional(
        "metrics",
        of(Kind::Form("\"127.0.0.1:9617\"")),
        "Loopback address and port that serve metrics; metrics are not served if absent.",
    ),
    optional(
        "notifications",
        of(Kind::Form("\"/run/apportion/notifications.sock\"")),
        "Unix socket that applications read overload notifications of `ramp` from; none if absent.",
    ),
    default(
        "control",
        SWITCH,
        "false",
        "Whether the page at `metrics` may change weights, rates and queues, with the token.",
    ),
    optional(
        "control_token",
        of(Kind::Form("\"/etc/apportion/control-token\"")),
        "File with the token: 16 to 256 letters, digits and `-._~+/=`, which other users cannot read. Required if `control` \
         is set.",
    ),
    optional(
        "address",
        of(Kind::Form("\"192.0.2.1\"")),
        "Address that identifies this gateway to others. Required if a queue sends reports.",
    ),
    optional(
        "report_key",
        of(Kind::Form("\"00112233445566778899aabbccddeeff\"")),
        "Key that authenticates reports: 16 to 64 random bytes in hexadecimal, the same in all gateways. \
         Required with reports, unless `insecure` is set.",
    ),
    default(
        "insecure",
        SWITCH,
        "false",
        "Whether queues report without a key: every host on the link can then forge reports.",
    ),
    default("flow_idle", SPAN, "60s", "Idle time after which a flow is forgotten."),
    default(
        "flows",
        of(Kind::Count).within(Range::UpTo(FlowId::SLOTS as u64)),
        "65536",
        "Maximum number of flows in each direction.",
    ),
    required(
        Direction::Up.name(),
        of(Kind::Table(DIRECTION)),
        "Direction from the inside to the \
                                                                 outside.",
    ),
    required(
        Direction::Down.name(),
        of(Kind::Table(DIRECTION)),
        "Direction from the outside to the \
                                                                   inside.",
    ),
    optional(
        "plans",
        TEXT,
        "File of customers with addresses and rates: the classes of a queue `{ kind = \"htb\", plans = \"up\" }`.",
    ),
    optional("rule", of(Kind::Tables(RULE)), "Rules for flows; the first that matches applies."),
    optional("customer", of(Kind::Map(CUSTOMER)), "Customers by name; needed only for weights other than 1."),
];

/// The word for a rate that follows the link, and the keys of one.
pub(super) const AUTO: &str = "auto";
pub(super) const FASTEST: &str = "rate_max";
pub(super) const SLOWEST: &str = "rate_min";
pub(super) const THRESHOLD: &str = "rate_delay";
pub(super) const LINK: &str = "rate_link";

/// Keys of one direction.
pub(super) const DIRECTION: &[Param] = &[
    required(
        "rate",
        of(Kind::Form("\"10Mbit\"")),
        "Rate of the transmitter: a little below that of the link; or `\"auto\"`, which follows the link by delays of TCP.",
    ),
    optional(FASTEST, RATE, "Highest and first rate with `\"auto\"`; required there."),
    optional(SLOWEST, RATE, "Lowest rate with `\"auto\"`; a twentieth of the highest if absent."),
    default(
        THRESHOLD,
        SPAN,
        "15ms",
        "Queueing delay of the link above which `\"auto\"` lowers the rate. Three full packets may wait in any case.",
    ),
    default(
        LINK,
        of(Kind::Choice(&[Side::Outside.name(), Side::Inside.name()])),
        Side::Outside.name(),
        "Where the link is that `\"auto\"` follows: `outside`, as at a home, or `inside`, as at a provider.",
    ),
    default(
        "overhead",
        of(Kind::Bytes).within(Range::FromZero),
        "14B",
        "Layer 2 overhead charged for each IP packet in addition to its size. Ethernet's header if absent.",
    ),
    optional("queue", QUEUE, "Queue discipline in front of the transmitter; \"fifo\" if absent."),
    default("delay", DELAY, "0s", "Delay added behind the transmitter, as by a long wire."),
    default("loss", LOSS, "0", "Probability that a packet is lost behind the transmitter."),
    optional(
        "labels",
        of(Kind::Table(LABELS)),
        "Treatment of labels on packets. If absent, labels are ignored on arrival and packets depart without.",
    ),
    optional(
        "tickets",
        TICKETS,
        "Tickets per second that the next router issues to this direction, in its currency; if absent, labels pass \
         unchanged.",
    ),
    optional(
        "ack_tickets",
        TICKETS,
        "The same, receiver-based: tickets per second that the previous router issues. They return on \
         acknowledgements in the other direction; both directions must read and write labels.",
    ),
    optional("exchange", EXCHANGE, "Ticket exchange: parameters of the exchange `currency`."),
];

/// Treatment of labels in one direction.
pub(super) const LABELS: &[Param] = &[
    default(
        "reads",
        of(Kind::SwitchOrTexts),
        "false",
        "Whether labels of arriving packets are trusted: of all, of none, or of these addresses and prefixes: \
         `[\"192.0.2.0/24\"]`.",
    ),
    default("writes", SWITCH, "false", "Whether labels stay on departing packets."),
];

/// Conditions of a rule.
const CONDITIONS: [Param; 7] = [
    optional(
        "direction",
        of(Kind::Choice(&[Direction::Up.name(), Direction::Down.name()])),
        "Direction in which the rule applies; both if absent.",
    ),
    optional(
        "protocol",
        of(Kind::Form("\"udp\"")),
        "Protocol: `tcp`, `udp`, `icmp`, `icmpv6` or a number. If this condition or one of the next five \
         is absent, it matches every packet.",
    ),
    optional("from", of(Kind::Form("\"192.168.1.0/24\"")), "Source of the packets: an address or a prefix."),
    optional(
        "to",
        of(Kind::Form("\"2001:db8::/32\"")),
        "Destination of the packets: an address or a prefix.",
    ),
    optional(
        "from_port",
        of(Kind::Form("\"5004-5005\"")),
        "Source port, or the first and last port of a range. Packets that show no port do not match.",
    ),
    optional("to_port", of(Kind::Form("443")), "Destination port, or the first and last port of a range."),
    optional(
        "dscp",
        of(Kind::Form("\"ef\"")),
        "Differentiated services codepoint: 0 to 63, also as `0x2e`, or a name in any case: `cs0` to `cs7`, `af11` to `af43`, `ef`, \
         `va` or `voice-admit`, `le`, `df` or `be`.",
    ),
];

/// What selects real-rate flows where nothing else is said of flows.
pub(super) const REAL_RATE: &[Param] = &concat::<9>(&[&CONDITIONS, &[TARGET, TARGET_DELAY]]);

/// Conditions of a rule, and the parameters that it assigns to flows.
pub(super) const RULE: &[Param] = &concat::<22>(&[
    &concat::<8>(&[
        &[optional("name", TEXT, "Name in metrics; \"rule 3\" for the third rule if absent.")],
        &CONDITIONS,
    ]),
    &[
        default(
            "class",
            of(Kind::Choice(CLASSES)),
            "greedy",
            "Traffic class, for `ramp` and `cake`: `real_rate` for flows such as video, which have no use for more than \
             their rate; `greedy` for flows that use all they get.",
        ),
        TARGET,
        TARGET_DELAY,
        default("weight", NUMBER, "1", "Weight of each flow where bandwidth is divided by weights."),
        default(
            "guarantee",
            of(Kind::Rate).within(Range::FromZero),
            "0bit",
            "Guaranteed rate of each flow that earned it by sending at least half of it for a second.",
        ),
        optional(
            "guarantee_limit",
            RATE,
            "Maximum sum of the guarantees of this rule; the rate of the direction if absent.",
        ),
        optional(
            "guarantee_limit_per_host",
            RATE,
            "The same for one inside host: a source up, a destination down. Four times `guarantee` if absent. Not where an \
             address or network is one flow.",
        ),
        optional(
            "tickets",
            TICKETS,
            "Tickets per second issued to each flow, where the queue uses tickets or packets depart with labels.",
        ),
        optional(
            "ack_tickets",
            TICKETS,
            "The same, receiver-based: issued to the sink of each flow. They return on its acknowledgements in the other \
             direction; nearer to the source, a rule with mark = \"tickets\" writes them on the flow's data.",
        ),
        optional(
            "mark",
            MARK,
            "Marker: a name, or a table with parameters. If absent, `tickets` for rules with `tickets` or \
             `ack_tickets`, else none. Without either, `tickets` marks data with the tickets of acknowledgements.",
        ),
        optional(
            "label_limit",
            RATE,
            "Maximum rate of packets of this rule whose labels are trusted, or of those of each address or network that is one \
             flow. Packets above it lose their label. No limit if absent.",
        ),
        optional(
            "rtt",
            SPAN,
            "Round-trip time of each flow, for queues that divide buffer space by it; measured if absent.",
        ),
        optional(
            "customer",
            TEXT,
            "Customer or class of the flows, for queues that divide among those first.",
        ),
        optional(
            "flows",
            of(Kind::Form("\"address/32\"")),
            "What counts as one flow: `each` tuple of addresses, protocol and ports (default), `one`, or each inside \
             address or network.",
        ),
    ],
]);
