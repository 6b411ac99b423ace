//! Every key of a gateway's configuration, as data. Keys that scenarios also have use the same names.

use apportion_core::packet::FlowId;

use super::{Direction, Side};
use crate::keys::{Key, Kind, Need, Range, Unit};
use crate::tables::{
    CLASSES, CUSTOMER, DELAY, EXCHANGE, LOSS, MARK, NUMBER, QUEUE, RATE, TARGET, TARGET_DELAY, TICKETS, both,
    key,
};

use Need::{Default, Optional, Required};

const SPAN: Kind = Kind::Amount(Unit::Span, Range::AboveZero);

/// The whole file.
pub(super) const ROOT: &[Key] = &[
    key("title", Kind::Text, Optional, "Title in metrics; the file's name if absent."),
    key("seed", Kind::Amount(Unit::Count, Range::FromZero), Default("1"), "Seed of all random streams."),
    key("inside", Kind::Form("\"eth1\""), Required, "The network interface towards the inside."),
    key("outside", Kind::Form("\"eth0\""), Required, "The network interface towards the outside."),
    key(
        "metrics",
        Kind::Form("\"127.0.0.1:9617\""),
        Optional,
        "Loopback address and port that serve metrics; metrics are not served if absent.",
    ),
    key(
        "exceptions",
        Kind::Form("\"/run/apportion/exceptions.sock\""),
        Optional,
        "Unix socket that applications read overload notifications of `ramp` from; none if absent.",
    ),
    key(
        "control",
        Kind::Flag,
        Default("false"),
        "Whether the page at `metrics` may change weights, rates and queues, for those that have the token.",
    ),
    key(
        "control_token",
        Kind::Form("\"/etc/apportion/control-token\""),
        Optional,
        "File with the token that changes need: 16 to 256 letters, digits and `-._~+/=`, which no other users can read. Required \
         if `control` is set.",
    ),
    key(
        "address",
        Kind::Form("\"192.0.2.1\""),
        Optional,
        "Address that identifies this gateway to others. Required if a queue sends reports, as `sffc` \
         does.",
    ),
    key(
        "report_key",
        Kind::Form("\"00112233445566778899aabbccddeeff\""),
        Optional,
        "Key that authenticates reports: 16 to 64 random bytes in hexadecimal, the same in all gateways. \
         Required if a queue sends reports, unless `insecure` is set.",
    ),
    key(
        "insecure",
        Kind::Flag,
        Default("false"),
        "Whether queues report without a key: every host on the link can then forge reports.",
    ),
    key("flow_idle", SPAN, Default("60s"), "Idle time after which a flow is forgotten."),
    key(
        "flows",
        Kind::Amount(Unit::Count, Range::UpTo(FlowId::SLOTS as u64)),
        Default("65536"),
        "Maximum number of flows in each direction.",
    ),
    key(
        Direction::Up.name(),
        Kind::Table(DIRECTION),
        Required,
        "Direction from the inside to the \
                                                                 outside.",
    ),
    key(
        Direction::Down.name(),
        Kind::Table(DIRECTION),
        Required,
        "Direction from the outside to the \
                                                                   inside.",
    ),
    key(
        "plans",
        Kind::Text,
        Optional,
        "File of customers with addresses and rates, from which a queue `{ kind = \"htb\", plans = \"up\" }` has its classes.",
    ),
    key(
        "rule",
        Kind::Tables(RULE),
        Optional,
        "Rules that assign weights, guarantees, tickets and customers to flows. The first rule that a \
         flow matches applies.",
    ),
    key(
        "customer",
        Kind::Map(CUSTOMER),
        Optional,
        "Customers by name; needed only for weights other than 1. Rules name theirs under `customer`.",
    ),
];

/// The word for a rate that follows the link, and the keys of one.
pub(super) const AUTO: &str = "auto";
pub(super) const FASTEST: &str = "rate_max";
pub(super) const SLOWEST: &str = "rate_min";
pub(super) const THRESHOLD: &str = "rate_delay";
pub(super) const LINK: &str = "rate_link";

/// Keys of one direction.
pub(super) const DIRECTION: &[Key] = &[
    key(
        "rate",
        Kind::Form("\"10Mbit\""),
        Required,
        "Rate of the transmitter: a little below that of the link; or `\"auto\"`: a rate that follows the link, from how long \
         answers of TCP take.",
    ),
    key(
        FASTEST,
        RATE,
        Optional,
        "Highest rate where it follows the link, with which it begins; required there.",
    ),
    key(
        SLOWEST,
        RATE,
        Optional,
        "Lowest rate where it follows the link; a twentieth of the highest if absent.",
    ),
    key(
        THRESHOLD,
        Kind::Amount(Unit::Span, Range::AboveZero),
        Default("15ms"),
        "Queueing delay of the link above which a rate that follows it falls. Three full packets may wait in any case.",
    ),
    key(
        LINK,
        Kind::Word(&[Side::Outside.name(), Side::Inside.name()]),
        Default(Side::Outside.name()),
        "Where the link is that the rate follows: `outside`, as the uplink and the downlink of a home, or `inside`, as those of \
         a provider's customers.",
    ),
    key(
        "overhead",
        Kind::Amount(Unit::Bytes, Range::FromZero),
        Default("14B"),
        "Layer 2 overhead that is charged for each IP packet in addition to its own size. Ethernet's \
         header if absent.",
    ),
    key("queue", QUEUE, Optional, "Queue discipline in front of the transmitter; \"fifo\" if absent."),
    key("delay", DELAY, Default("0s"), "Delay added behind the transmitter, as by a long wire."),
    key("loss", LOSS, Default("0"), "Probability that a packet is lost behind the transmitter."),
    key(
        "labels",
        Kind::Table(LABELS),
        Optional,
        "Treatment of the labels that gateways write on packets. If absent, labels of arriving packets \
         are ignored and packets depart without labels.",
    ),
    key(
        "tickets",
        TICKETS,
        Optional,
        "Tickets per second that the next router issues to this direction, in that router's currency; if \
         absent, labels pass unchanged.",
    ),
    key(
        "ack_tickets",
        TICKETS,
        Optional,
        "Receiver-based alternative to `tickets`: tickets per second that the previous router issues to \
         this direction. They return on acknowledgements in the other direction; both directions must \
         read and write labels.",
    ),
    key("exchange", EXCHANGE, Optional, "Ticket exchange: parameters of the exchange `currency`."),
];

/// Treatment of labels in one direction.
pub(super) const LABELS: &[Key] = &[
    key(
        "reads",
        Kind::FlagOrForms,
        Default("false"),
        "Whether labels of arriving packets are trusted: of all, of none, or of those from these addresses and \
         prefixes, such as `[\"192.0.2.0/24\"]`.",
    ),
    key("writes", Kind::Flag, Default("false"), "Whether labels stay on departing packets."),
];

/// Conditions of a rule.
const CONDITIONS: [Key; 7] = [
    key(
        "direction",
        Kind::Word(&[Direction::Up.name(), Direction::Down.name()]),
        Optional,
        "Direction in which the rule applies; both if absent.",
    ),
    key(
        "protocol",
        Kind::Form("\"udp\""),
        Optional,
        "Protocol: `tcp`, `udp`, `icmp`, `icmpv6` or a number. If this condition or one of the next five \
         is absent, it matches every packet.",
    ),
    key("from", Kind::Form("\"192.168.1.0/24\""), Optional, "Source of the packets: an address or a prefix."),
    key(
        "to",
        Kind::Form("\"2001:db8::/32\""),
        Optional,
        "Destination of the packets: an address or a prefix.",
    ),
    key(
        "from_port",
        Kind::Form("\"5004-5005\""),
        Optional,
        "Source port, or the first and last port of a range. Packets that show no port do not match.",
    ),
    key("to_port", Kind::Form("443"), Optional, "Destination port, or the first and last port of a range."),
    key(
        "dscp",
        Kind::Form("\"ef\""),
        Optional,
        "Differentiated services codepoint: 0 to 63, or a name: `cs0` to `cs7`, `af11` to `af43`, `ef`, \
         `va`, `le`.",
    ),
];

/// What selects real-rate flows where nothing else is said of flows.
pub(super) const REAL_RATE: &[Key] = &both::<9>(&CONDITIONS, &[TARGET, TARGET_DELAY]);

/// Conditions of a rule, and the parameters that it assigns to flows.
pub(super) const RULE: &[Key] = &both::<22>(
    &both::<8>(
        &[key("name", Kind::Text, Optional, "Name in metrics; \"rule 3\" for the third rule if absent.")],
        &CONDITIONS,
    ),
    &[
        key(
            "class",
            Kind::Word(CLASSES),
            Default("greedy"),
            "Traffic class, for queues that distinguish classes: `real_rate` for flows such as video, whose \
             rate is set by external events and that have no use for more; `greedy` for flows that use all \
             the bandwidth they get.",
        ),
        TARGET,
        TARGET_DELAY,
        key("weight", NUMBER, Default("1"), "Weight of each flow where bandwidth is divided by weights."),
        key(
            "guarantee",
            Kind::Amount(Unit::Rate, Range::FromZero),
            Default("0bit"),
            "Guaranteed rate of each flow that has earned it by sending at least half of it for a second. One flow \
             of each rule must fit into the rate of the direction.",
        ),
        key(
            "guarantee_limit",
            RATE,
            Optional,
            "Maximum sum of the guarantees that flows of this rule have at the same time; the rate of the \
             direction if absent.",
        ),
        key(
            "guarantee_limit_per_host",
            RATE,
            Optional,
            "The same for the flows of one inside host: of one source up, of one destination down. Four times \
             `guarantee` if absent. Not where an address or a network is one flow, since that has one guarantee.",
        ),
        key(
            "tickets",
            TICKETS,
            Optional,
            "Tickets per second issued to each flow. For directions whose queue uses tickets or whose \
             packets depart with labels.",
        ),
        key(
            "ack_tickets",
            TICKETS,
            Optional,
            "Receiver-based alternative to `tickets`: tickets per second issued to the sink of each flow. \
             They return on its acknowledgements in the other direction; nearer to the source, a rule with \
             mark = \"tickets\" writes them on the flow's data.",
        ),
        key(
            "mark",
            MARK,
            Optional,
            "Marker: a name, or a table with parameters. If absent, `tickets` for rules with `tickets` or \
             `ack_tickets`, else none. Without either key, `tickets` marks data with the tickets that \
             acknowledgements carry.",
        ),
        key(
            "label_limit",
            RATE,
            Optional,
            "Maximum rate of all packets of this rule whose labels are trusted; if the rule makes one flow of each address or \
             network, of those of each. Packets above it lose their label, as if they had come without one. No limit if \
             absent.",
        ),
        key(
            "rtt",
            SPAN,
            Optional,
            "Round-trip time of each flow, for queues that divide buffer space by it; measured if absent.",
        ),
        key(
            "customer",
            Kind::Text,
            Optional,
            "Customer of the flows, for queues that divide bandwidth among customers first and then among \
             the flows of each. All flows without one form one more customer of weight 1.",
        ),
        key(
            "flows",
            Kind::Form("\"address/32\""),
            Optional,
            "What counts as one flow: packets with the same addresses, protocol and ports (`each`, also if absent), \
             all packets that match (`one`), or those whose inside addresses begin with the same bits: 32 of IPv4 and \
             64 of IPv6 (`address/32`), or others (`address/24/56`).",
        ),
    ],
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Amount;
    use crate::problem::Place;
    use crate::text::Item;

    #[test]
    fn every_default_is_a_value_of_its_key_and_every_key_is_documented_in_sentences() {
        for key in ROOT.iter().chain(DIRECTION).chain(LABELS).chain(RULE) {
            assert!(key.doc.ends_with('.'), "{}", key.name);
            match (key.kind, key.need) {
                (Kind::Amount(unit, range), Default(text)) => {
                    let read = Amount::read(&Item::text(text, Place::Line(1)), unit, range, false);
                    assert!(read.is_ok(), "{}: {read:?}", key.name);
                }
                (Kind::Word(words), Default(text)) => assert!(words.contains(&text), "{}", key.name),
                (Kind::Flag | Kind::FlagOrForms, Default(text)) => {
                    assert!(["true", "false"].contains(&text), "{}", key.name);
                }
                (_, Default(_)) => panic!("{} has a default that nothing reads", key.name),
                _ => (),
            }
        }
    }
}
