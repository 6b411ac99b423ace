//! Every key of a gateway's configuration, as data. Keys that scenarios also have use the same names.

use apportion_core::packet::FlowId;
use apportion_core::param::{Kind, Param, Range, concat};

use super::{Direction, Side};
use crate::key::{DELAY, LOSS, NUMBER, RATE, SPAN, SWITCH, TEXT, TICKETS, default, of, optional, required};
use crate::tables::{CLASSES, CUSTOMER, EXCHANGE, MARK, QUEUE, TARGET, TARGET_DELAY};

/// The whole file.
pub(crate) const ROOT: &[Param] = &[
    optional("title", TEXT, "Name in metrics and of the socket; the file's name if absent."),
    default("seed", of(Kind::Count).within(Range::FromZero), "1", "Seed of all random streams."),
    required("inside", of(Kind::Form("\"eth1\"")), "Interface towards the hosts or customers."),
    required("outside", of(Kind::Form("\"eth0\"")), "Interface towards the Internet."),
    optional(
        "metrics",
        of(Kind::Form("\"127.0.0.1:9617\"")),
        "Loopback address and port of metrics and page; none if absent.",
    ),
    optional(
        "notifications",
        of(Kind::Form("\"/run/apportion/notifications.sock\"")),
        "Unix socket where applications read notifications of `ramp`; none if absent.",
    ),
    default(
        "control",
        SWITCH,
        "false",
        "Whether the page may change weights, rates and queues, with the token.",
    ),
    optional(
        "control_token",
        of(Kind::Form("\"/etc/apportion/control-token\"")),
        "File with the token: 16 to 256 letters, digits and `-._~+/=`; other users must not be able to read it. Required with \
         `control`.",
    ),
    optional(
        "address",
        of(Kind::Form("\"192.0.2.1\"")),
        "Address of this gateway in reports. Required if a queue sends them.",
    ),
    optional(
        "report_key",
        of(Kind::Form("\"00112233445566778899aabbccddeeff\"")),
        "Key of reports: 16 to 64 random bytes in hexadecimal, the same in all gateways. Required with reports, unless \
         `insecure` is set.",
    ),
    default(
        "insecure",
        SWITCH,
        "false",
        "Whether queues report without a key. Every host on the link can then forge reports.",
    ),
    default("flow_idle", SPAN, "60s", "Idle time after which a flow is forgotten."),
    default(
        "flows",
        of(Kind::Count).within(Range::UpTo(FlowId::SLOTS as u64)),
        "65536",
        "Maximum number of flows in each direction.",
    ),
    required(Direction::Up.name(), of(Kind::Table(DIRECTION)), "From inside to outside."),
    required(Direction::Down.name(), of(Kind::Table(DIRECTION)), "From outside to inside."),
    optional(
        "plans",
        TEXT,
        "File of customers with addresses and rates, for a queue `{ kind = \"htb\", plans = \"up\" }`.",
    ),
    optional("rule", of(Kind::Tables(RULE)), "Rules for flows; the first match applies."),
    optional("customer", of(Kind::Map(CUSTOMER)), "Customers with weights other than 1."),
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
        "Rate of the transmitter, a little below the link's; or `\"auto\"`, which follows the link.",
    ),
    optional(FASTEST, RATE, "Highest and first rate with `\"auto\"`; required there."),
    optional(SLOWEST, RATE, "Lowest rate with `\"auto\"`; a twentieth of the highest if absent."),
    default(
        THRESHOLD,
        SPAN,
        "15ms",
        "Queueing delay of the link above which `\"auto\"` lowers the rate; at least the transmission time of \
         three full packets.",
    ),
    default(
        LINK,
        of(Kind::Choice(&[Side::Outside.name(), Side::Inside.name()])),
        Side::Outside.name(),
        "Side of the link that `\"auto\"` follows: `inside` at a provider.",
    ),
    default(
        "overhead",
        of(Kind::Bytes).within(Range::FromZero),
        "14B",
        "Charged for each IP packet in addition to its size. Default: Ethernet's header.",
    ),
    optional("queue", QUEUE, "Queue discipline; `fifo` if absent."),
    default("delay", DELAY, "0s", "Delay added behind the transmitter."),
    default("loss", LOSS, "0", "Probability that a packet is lost behind the transmitter."),
    optional(
        "labels",
        of(Kind::Table(LABELS)),
        "Treatment of labels. If absent, labels are ignored on arrival and removed.",
    ),
    optional(
        "tickets",
        TICKETS,
        "Tickets per second that the next router issues to this direction. If absent, labels that are read and \
         written pass unchanged.",
    ),
    optional(
        "ack_tickets",
        TICKETS,
        "Receiver-based: tickets per second that the previous router issues. They return on acknowledgements; both \
         directions must read and write labels.",
    ),
    optional("exchange", EXCHANGE, "Parameters of the exchange `currency`."),
];

/// Treatment of labels in one direction.
pub(super) const LABELS: &[Param] = &[
    default(
        "reads",
        of(Kind::SwitchOrTexts),
        "false",
        "Whether labels of arriving packets are trusted: all, none, or those of a list: `[\"192.0.2.0/24\"]`.",
    ),
    default("writes", SWITCH, "false", "Whether labels stay on departing packets."),
];

/// Conditions of a rule.
const CONDITIONS: [Param; 7] = [
    optional(
        "direction",
        of(Kind::Choice(&[Direction::Up.name(), Direction::Down.name()])),
        "Direction; both if absent.",
    ),
    optional("protocol", of(Kind::Form("\"udp\"")), "`tcp`, `udp`, `icmp`, `icmpv6` or a number."),
    optional("from", of(Kind::Form("\"192.168.1.0/24\"")), "Source address or prefix."),
    optional("to", of(Kind::Form("\"2001:db8::/32\"")), "Destination address or prefix."),
    optional(
        "from_port",
        of(Kind::Form("\"5004-5005\"")),
        "Source port or range. Packets without ports do not match.",
    ),
    optional("to_port", of(Kind::Form("443")), "Destination port or range."),
    optional(
        "dscp",
        of(Kind::Form("\"ef\"")),
        "DSCP: 0 to 63, also as `0x2e`, or `cs0` to `cs7`, `af11` to `af43`, `ef`, `va`, `voice-admit`, `le`, `df`, `be`.",
    ),
];

/// Keys that select real-rate flows where no other parameters of flows are set.
pub(super) const REAL_RATE: &[Param] = &concat::<9>(&[&CONDITIONS, &[TARGET, TARGET_DELAY]]);

/// Conditions of a rule, and the parameters that it assigns to flows.
pub(super) const RULE: &[Param] = &concat::<22>(&[
    &concat::<8>(&[
        &[optional("name", TEXT, "Name in metrics; \"rule 3\" for the third if absent.")],
        &CONDITIONS,
    ]),
    &[
        default(
            "class",
            of(Kind::Choice(CLASSES)),
            "greedy",
            "For `ramp` and `cake`: `real_rate` for flows such as video, which cannot use more than their rate.",
        ),
        TARGET,
        TARGET_DELAY,
        default("weight", NUMBER, "1", "Weight of each flow."),
        default(
            "guarantee",
            of(Kind::Rate).within(Range::FromZero),
            "0bit",
            "Guaranteed rate of each flow that sends at least half of it for a second.",
        ),
        optional(
            "guarantee_limit",
            RATE,
            "Maximum sum of the rule's guarantees; the rate of the direction if absent.",
        ),
        optional(
            "guarantee_limit_per_host",
            RATE,
            "The same for one inside host; four times `guarantee` if absent. Refused where `flows` is an address.",
        ),
        optional("tickets", TICKETS, "Tickets per second issued to each flow."),
        optional(
            "ack_tickets",
            TICKETS,
            "Receiver-based: tickets issued to each flow's receiver. They return on its acknowledgements; a rule with \
             `mark = \"tickets\"` nearer to the sender writes them on data.",
        ),
        optional(
            "mark",
            MARK,
            "Marker: a name or a table. If absent, `tickets` for rules with `tickets` or `ack_tickets`, else none.",
        ),
        optional(
            "label_limit",
            RATE,
            "Maximum rate of labelled packets of the rule (of each address where `flows` is one). Packets above it lose \
             their label. No limit if absent.",
        ),
        optional(
            "rtt",
            SPAN,
            "Round-trip time of each flow, for `thresholds = \"rtt\"`; measured if absent.",
        ),
        optional("customer", TEXT, "Customer or class of the flows."),
        optional(
            "flows",
            of(Kind::Form("\"address/32\"")),
            "What counts as one flow: `each` tuple (default), `one`, or each inside address or network.",
        ),
    ],
]);
