//! Every key of a gateway's configuration, as data. What scenarios have as well is called as it is there.

use apportion_core::packet::FlowId;

use super::Direction;
use crate::keys::{Key, Kind, Need, Range, Unit};
use crate::tables::{CLASSES, CUSTOMER, DELAY, EXCHANGE, LOSS, MARK, NUMBER, QUEUE, RATE, TICKETS, key};

use Need::{Default, Optional, Required};

const SPAN: Kind = Kind::Amount(Unit::Span, Range::AboveZero);

/// The whole file.
pub(super) const ROOT: &[Key] = &[
    key("title", Kind::Text, Optional, "What metrics call the gateway; the file's name if absent."),
    key(
        "seed",
        Kind::Amount(Unit::Count, Range::FromZero),
        Default("1"),
        "All random streams derive from it.",
    ),
    key("inside", Kind::Form("\"eth1\""), Required, "The network interface towards the inside."),
    key("outside", Kind::Form("\"eth0\""), Required, "The network interface towards the outside."),
    key(
        "metrics",
        Kind::Form("\"127.0.0.1:9617\""),
        Optional,
        "Where metrics are served: a loopback address and a port. Nowhere if absent.",
    ),
    key(
        "address",
        Kind::Form("\"192.0.2.1\""),
        Optional,
        "Who this gateway is for other gateways. Required where a queue sends reports, as `sffc` does.",
    ),
    key(
        "report_key",
        Kind::Form("\"00112233445566778899aabbccddeeff\""),
        Optional,
        "Authenticates reports: 16 to 64 random bytes in hexadecimal, the same in all gateways. Reports are \
         not authenticated if absent.",
    ),
    key("flow_idle", SPAN, Default("60s"), "A flow that was silent so long is forgotten."),
    key(
        "flows",
        Kind::Amount(Unit::Count, Range::UpTo(FlowId::SLOTS as u64)),
        Default("65536"),
        "Most flows that are kept apart.",
    ),
    key(Direction::Up.name(), Kind::Table(DIRECTION), Required, "From the inside to the outside."),
    key(Direction::Down.name(), Kind::Table(DIRECTION), Required, "From the outside to the inside."),
    key(
        "rule",
        Kind::Tables(RULE),
        Optional,
        "Which flows are given what. The first rule that a flow matches decides.",
    ),
    key(
        "customer",
        Kind::Map(CUSTOMER),
        Optional,
        "Customers by name, for those that weigh more or less than 1. Rules say whose flows are.",
    ),
];

/// What happens in one direction.
pub(super) const DIRECTION: &[Key] = &[
    key("rate", RATE, Required, "Of the transmitter: a little less than the link behind it carries."),
    key(
        "overhead",
        Kind::Amount(Unit::Bytes, Range::FromZero),
        Default("14B"),
        "Charged to each IP packet beside itself: what layer 2 carries with it. Ethernet's header if absent.",
    ),
    key("queue", QUEUE, Optional, "Discipline in front of the transmitter; \"fifo\" if absent."),
    key("delay", DELAY, Default("0s"), "Added behind the transmitter, as by a long wire."),
    key("loss", LOSS, Default("0"), "Each packet is lost behind the transmitter with this probability."),
    key(
        "labels",
        Kind::Table(LABELS),
        Optional,
        "What becomes of labels, which gateways write on packets; none are believed and none leave if absent.",
    ),
    key(
        "tickets",
        TICKETS,
        Optional,
        "Tickets per second that the router behind issues to this direction, in that router's currency; \
         labels pass as they are if absent.",
    ),
    key(
        "ack_tickets",
        TICKETS,
        Optional,
        "Receiver-based: tickets per second that the router before issues to this direction, which return \
         on acknowledgements in the other one. Instead of `tickets`; labels are read and written in both \
         directions.",
    ),
    key("exchange", EXCHANGE, Optional, "How tickets are exchanged: parameters of the exchange `currency`."),
];

/// What becomes of labels.
pub(super) const LABELS: &[Key] = &[
    key("reads", Kind::Flag, Default("false"), "Whether labels of arriving packets are believed."),
    key("writes", Kind::Flag, Default("false"), "Whether labels stay on departing packets."),
];

/// Names of [`Grouping`](super::Grouping)s.
pub(super) const GROUPINGS: [&str; 2] = ["each", "one"];

/// Which flows, and what they are given.
pub(super) const RULE: &[Key] = &[
    key("name", Kind::Text, Optional, "What metrics call it; \"rule 3\" for the third if absent."),
    key(
        "direction",
        Kind::Word(&[Direction::Up.name(), Direction::Down.name()]),
        Optional,
        "Where it holds; in both directions if absent.",
    ),
    key(
        "protocol",
        Kind::Form("\"udp\""),
        Optional,
        "What is inside: `tcp`, `udp`, `icmp`, `icmpv6` or the protocol's number. This condition and each \
         of the next five holds for everything if absent.",
    ),
    key(
        "from",
        Kind::Form("\"192.168.1.0/24\""),
        Optional,
        "Where packets are from: an address or a prefix.",
    ),
    key("to", Kind::Form("\"2001:db8::/32\""), Optional, "Where they go, likewise."),
    key(
        "from_port",
        Kind::Form("\"5004-5005\""),
        Optional,
        "Their source port, or the first and last of a range. Packets that show no port do not match.",
    ),
    key("to_port", Kind::Form("443"), Optional, "Their destination port, likewise."),
    key(
        "dscp",
        Kind::Form("\"ef\""),
        Optional,
        "Their differentiated services codepoint: 0 to 63, or a name: `cs0` to `cs7`, `af11` to `af43`, \
         `ef`, `va`, `le`.",
    ),
    key(
        "class",
        Kind::Word(CLASSES),
        Default("greedy"),
        "Where queues keep classes apart: `real_rate` for flows that need what the world outside makes them \
         send and have no use for more, as video does; `greedy` for those that take whatever they get.",
    ),
    key("weight", NUMBER, Default("1"), "Of each flow, where bandwidth is divided by weights."),
    key(
        "guarantee",
        Kind::Amount(Unit::Rate, Range::FromZero),
        Default("0bit"),
        "The rate that each flow is guaranteed, whether it sends or not. One flow of each rule must fit \
         into the rate of the direction.",
    ),
    key(
        "tickets",
        TICKETS,
        Optional,
        "Tickets per second that each flow is issued. For directions whose queue goes by tickets or whose \
         packets leave with labels.",
    ),
    key(
        "ack_tickets",
        TICKETS,
        Optional,
        "Receiver-based: tickets per second that the sink of each flow is issued, which return on its \
         acknowledgements, in the other direction. Instead of `tickets`. Nearer to the source, mark = \
         \"tickets\" takes them on.",
    ),
    key(
        "mark",
        MARK,
        Optional,
        "What marks packets: a marker, or a table with parameters; `tickets` if absent where flows or their \
         sinks are issued some, else nothing. Without either, `tickets` marks what acknowledgements bring.",
    ),
    key("rtt", SPAN, Optional, "The round-trip time of each flow, where buffer space is divided by that."),
    key(
        "customer",
        Kind::Text,
        Optional,
        "Whose flows they are, where customers are divided by first and their flows after that. All flows \
         without one are one more customer of weight 1.",
    ),
    key(
        "flows",
        Kind::Word(&GROUPINGS),
        Default("each"),
        "What is a flow: packets with the same addresses, protocol and ports (`each`), or all that match (`one`).",
    ),
];

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
                (Kind::Flag, Default(text)) => assert!(["true", "false"].contains(&text), "{}", key.name),
                (_, Default(_)) => panic!("{} has a default that nothing reads", key.name),
                _ => (),
            }
        }
    }
}
