//! Every key of a scenario file, as data: names, units, defaults and documentation are defined here only.
//!
//! Keys of queue disciplines are in [`apportion_core::system::catalog`], those of TCP and QUIC in [`crate::tcp`] and [`crate::quic`].

use apportion_core::param::{Kind, Param, Preset, Range, concat};

use crate::ecmp::ROUTING;
use crate::key::{DELAY, NUMBER, SIZE, SPAN, SWITCH, TEXT, TICKETS, TIME, default, of, optional, required};
use crate::model::{Aggregate, GilbertElliott, Jitter};
use crate::selection::Part;

mod sources;
mod topologies;

pub(crate) use sources::SOURCES;
pub(crate) use topologies::{ACCESS, TOPOLOGIES};

/// Maximum number of flows in a scenario (chosen: what a simulator can hold in memory).
pub(crate) const MAX_FLOWS: u64 = 1_000_000;
/// Maximum number of connections in a flow: the dynamic ports of its host, 49152 to 65535 (RFC 6335 section
/// 6), since each connection to one port of another host takes one.
pub(crate) const MAX_CONNECTIONS: u64 = 16_384;
/// Maximum number of one-way links in a scenario (chosen for the same reason).
pub(crate) const MAX_LINKS: u64 = 100_000;

/// The rate of a link's transmitter.
pub(crate) const LINK_RATE: Param = of(Kind::OrTable(&Kind::Rate, RATE_TABLE)).within(Range::AboveZero);
/// The loss of a link's wire.
pub(crate) const LINK_LOSS: Param =
    of(Kind::OrTable(&Kind::Ratio, GilbertElliott::PARAMS)).within(Range::FromZero);
const JITTER: Param = of(Kind::OrTable(&Kind::Span, Jitter::PARAMS)).within(Range::FromZero);
pub(crate) const QUEUE: Param = of(Part::Queue.kind());
pub(crate) const MARK: Param = of(Part::Marker.kind());
pub(crate) const EXCHANGE: Param = of(Part::Exchange.kind());

/// These keys, all optional and without a default.
const fn all_optional<const N: usize>(mut keys: [Param; N]) -> [Param; N] {
    let mut at = 0;
    while at < N {
        (keys[at].default, keys[at].source) = (None, "");
        at += 1;
    }
    keys
}

/// How swept lists vary.
pub(crate) const SWEEP: &[Param] = &[optional(
    "zip",
    of(Kind::TextLists),
    "Lists of keys, by their paths or the ends of them, such as `rate`: of a list all have as many values, which vary together.",
)];

/// The whole file.
pub(crate) const ROOT: &[Param] = &[
    optional("title", TEXT, "Title in reports; the file's name if absent."),
    required(
        "seed",
        of(Kind::Count).within(Range::FromZero),
        "Seed of all random streams: same seed, same result.",
    ),
    required("stop", of(Kind::Time).within(Range::AboveZero), "End of the run."),
    default("measure_from", TIME, "0s", "Start of the measurement; everything before it is warm-up."),
    optional(
        "sample",
        SPAN,
        "Interval of time series; if absent, 1, 2 or 5 times a power of ten, for at most 600 intervals.",
    ),
    optional(
        "topology",
        of(Kind::Variants(TOPOLOGIES)),
        "A predefined network; tables under `link` extend and change it.",
    ),
    optional(
        "routing",
        of(Kind::Choice(ROUTING)),
        "Which paths flows take that name none: those of least delay, and of these the ones of fewest links. Where several are \
         left, with `ecmp` each node on the way has its connections take one of its next hops, by a hash of the connection and \
         the seed, there and back each for itself; with `single` all take the path of the first names. `ecmp` if absent.",
    ),
    optional("sweep", of(Kind::Table(SWEEP)), "How swept lists vary."),
    optional("defaults", of(Kind::Table(DEFAULTS)), "Default values for all links and flows."),
    optional("link", of(Kind::Map(LINK)), "Links by name. Their ends define the nodes."),
    optional("flow", of(Kind::Map(FLOW)), "Flows, or groups of similar flows, by name."),
    optional(
        "customer",
        of(Kind::Map(CUSTOMER)),
        "Customers by name; needed only for weights other than 1. Flows name theirs under `customer`.",
    ),
    optional(
        "plans",
        TEXT,
        "File of customers with rates, from which a queue `{ kind = \"htb\", plans = \"down\" }` has its classes.",
    ),
    optional("change", of(Kind::Tables(CHANGE)), "Timed changes during the run."),
];

/// Default values of links and of flows.
pub(crate) const DEFAULTS: &[Param] = &[
    optional(
        "link",
        of(Kind::Table(DEFAULT_LINK)),
        "For links. Those of a predefined topology use it for what their tables in `topology` do not \
         set; their rates and delays come from the topology, except for edges of a graph that have none.",
    ),
    optional("flow", of(Kind::Table(DEFAULT_FLOW)), "For flows; a formula uses the `i` of each flow."),
    optional(
        Preset::KEY,
        of(Kind::Choice(&Preset::NAMES)),
        "For queues, markers and exchanges whose tables have no `preset`: `paper` gives parameters that are not set \
         what their papers have, without mechanisms that were added later.",
    ),
];

/// A new link, or changes to a link of the topology.
pub(crate) const LINK: &[Param] = &concat::<16>(&[
    &[
        optional("from", TEXT, "Node where packets enter. Required unless the topology defines the link."),
        optional("to", TEXT, "Node where packets leave. Required unless the topology defines the link."),
        optional(
            "count",
            of(Kind::Count).within(Range::UpTo(MAX_LINKS)),
            "Makes a group of so many equal links between the two nodes: `x.1`, `x.2`, ..., each with this rate and a queue of its \
             own, and `x.1.back`, `x.2.back`, ... for the other direction. Each connection takes one of them by a hash. 1 if absent: \
             one link `x`.",
        ),
        optional("lost", of(Kind::Tables(LOST)), "Packets to lose, by ordinal."),
        optional(
            "back",
            of(Kind::TableOrFalse(BACK)),
            "Settings of the reverse direction, the link `x.back`, which leads from `to` to `from`. Unless set here it has the same \
             rate, delay and exchange, no jitter, and a FIFO queue of 1000 packets. `false` for a one-way link. Of a link of the \
             topology it follows changes of rate, delay and exchange, unless the topology sets them apart, and of nothing else.",
        ),
    ],
    &SHARED_LINK,
]);

/// Keys of a link that may also have a default.
const SHARED_LINK: [Param; 11] = [
    optional(
        "rate",
        LINK_RATE,
        "Rate of the transmitter, or the trace of a recorded link. Required unless the topology defines the link.",
    ),
    optional("delay", DELAY, "Propagation delay of the wire. Required unless the topology defines the link."),
    optional(
        "jitter",
        JITTER,
        "The longest time that packets take beyond `delay`, by chance and uniformly, without overtaking; or a table; none if absent.",
    ),
    optional(
        "aggregate",
        of(Kind::TableOrFalse(Aggregate::PARAMS)),
        "How the transmitter sends several packets each time it gets the medium, as Wi-Fi does; one packet at a time if absent or `false`.",
    ),
    optional("queue", QUEUE, "Queue discipline in front of the transmitter; \"fifo\" if absent."),
    optional(
        "loss",
        LINK_LOSS,
        "Probability that a packet is lost on the wire, or the Gilbert-Elliott model of bursts; 0 if absent.",
    ),
    optional(
        "tickets",
        TICKETS,
        "Tickets per second that the router at the far end issues to the link, in that router's \
         currency; if absent, labels pass unchanged.",
    ),
    optional(
        "ack_tickets",
        TICKETS,
        "Receiver-based alternative to `tickets`: tickets per second that the router at the near end \
         issues, on acknowledgements; needs the reverse direction.",
    ),
    optional("exchange", EXCHANGE, "Ticket exchange: parameters of the exchange `currency`."),
    optional(
        "watch",
        SWITCH,
        "Whether results show its queue over time; if absent, true only for the bottlenecks of a topology.",
    ),
    optional("pcap", SWITCH, "Whether to write its packets to a capture file; false if absent."),
];

/// The reverse direction of a link.
pub(crate) const BACK: &[Param] = &concat::<12>(&[
    &[optional("lost", of(Kind::Tables(LOST)), "Packets to lose, by ordinal.")],
    DEFAULT_BACK,
]);

/// Keys of a reverse direction that may also have a default.
pub(crate) const DEFAULT_BACK: &[Param] = &[
    optional("rate", LINK_RATE, "Rate of the transmitter, or the trace of a recorded link."),
    optional("delay", DELAY, "Propagation delay of the wire."),
    optional("jitter", JITTER, "The longest time that packets take beyond `delay`; or a table."),
    optional(
        "aggregate",
        of(Kind::TableOrFalse(Aggregate::PARAMS)),
        "How the transmitter sends several packets each time it gets the medium.",
    ),
    optional("queue", QUEUE, "Queue discipline in front of the transmitter."),
    optional("loss", LINK_LOSS, "Probability that a packet is lost on the wire, or the model of bursts."),
    optional("tickets", TICKETS, "Tickets per second that the router at the far end issues to it."),
    optional("ack_tickets", TICKETS, "Tickets per second that the router at the near end issues to it."),
    optional("exchange", EXCHANGE, "Ticket exchange."),
    optional("watch", SWITCH, "Whether results show its queue over time."),
    optional("pcap", SWITCH, "Whether to write its packets to a capture file."),
];

/// A transmitter that a recorded link drives.
pub(crate) const RATE_TABLE: &[Param] = &[
    required(
        "trace",
        TEXT,
        "A file of delivery opportunities of 1504 bytes in mahimahi's format: one time in ms a line, repeated with the last as the \
         period; or a table, as `columns` says. What follows `#` is skipped. Defaults of queues go by the mean. What flows are due goes by the mean of each \
         100 ms, or of the time that a buffer of 96 kB takes if that is longer.",
    ),
    optional(
        "columns",
        TEXT,
        "The units of the file's columns, such as `s Mbit`, `ms kbit` or `s`, with `-` for columns that are not used: numbers with blanks, \
         commas or semicolons between them, perhaps below a line of names. A rate lasts until the time of the next line, the last as long as the one before it, and \
         times count from the first line. With a unit of size, as in `ms B`, a line says what came since the line before, or in a length, `B +ms`. With a time alone \
         each line is an opportunity.",
    ),
];
/// Defaults of all links.
pub(crate) const DEFAULT_LINK: &[Param] = &concat::<12>(&[
    &[optional("back", of(Kind::Table(DEFAULT_BACK)), "Settings of the reverse directions.")],
    &SHARED_LINK,
]);

/// Listed losses of one flow.
pub(crate) const LOST: &[Param] = &[
    required("flow", TEXT, "The flow, such as \"bulk.3\"."),
    required(
        "packets",
        of(Kind::Ordinals),
        "Ordinals of its packets on this link, counting from 1 over all its `connections` together.",
    ),
];

/// A customer.
pub(crate) const CUSTOMER: &[Param] =
    &[default("weight", NUMBER, "1", "Weight where bandwidth is divided among customers.")];

/// A flow or a group of similar flows.
pub(crate) const FLOW: &[Param] = &concat::<25>(&[
    &[
        optional(
            "count",
            of(Kind::Count).within(Range::UpTo(MAX_FLOWS)),
            "Makes a group of so many flows: `x.1`, `x.2`, ... with `i` = 1, 2, ...; if absent, one flow \
             `x` with `i` = 1.",
        ),
        required("from", TEXT, "Node of the source; `{i}` in names is the number of the group member."),
        required("to", TEXT, "Node of the sink."),
        optional(
            "path",
            of(Kind::Texts),
            "Nodes or links that its packets pass; the end nodes may be omitted. If absent, the path of \
             least delay; ties go to the fewest links, then as `routing` says. Of parallel links between two nodes of this list \
             packets take the one of least delay, then of the first name.",
        ),
        optional("return_path", of(Kind::Texts), "The same for acknowledgements."),
        optional(
            "customer",
            TEXT,
            "Its customer, such as \"home{i}\", for queues that divide bandwidth among customers first \
             and then among the flows of each. If any flow has one, all flows without one form one more \
             customer of weight 1. The classes of `prio`, `htb` and `hfsc` have names of customers.",
        ),
        TARGET,
        TARGET_DELAY,
        optional(
            "stream",
            TEXT,
            "Name of its random streams, of a group `x.1`, `x.2`, ...; its own name if absent. A renamed flow \
             keeps its draws with `stream` set to its old name.",
        ),
    ],
    &SHARED_FLOW,
]);

/// What a real-rate flow asks for its queue.
pub(crate) const TARGET: Param =
    optional("target", SIZE, "What a `ramp` queue should hold of a `real_rate` flow, if not its parameter.");
/// The target of a real-rate flow in time.
pub(crate) const TARGET_DELAY: Param =
    optional("target_delay", SPAN, "The same in time at the flow's own rate.");

/// Values of `class`, for queues that distinguish classes.
pub(crate) const CLASSES: &[&str] = &["greedy", "real_rate"];

/// Keys of a flow that may also have a default.
const SHARED_FLOW: [Param; 16] = [
    optional(
        "connections",
        of(Kind::Count).within(Range::UpTo(MAX_CONNECTIONS)),
        "Number of connections in the flow, each with its own TCP or QUIC, random start and source; queues, markers \
         and `lost` see one flow. 1 if absent.",
    ),
    optional(
        "tcp",
        of(Kind::Defined("tcp", "\"rfc\"")),
        "TCP: a profile, a congestion control of the profile `linux`, or a table with `profile` and parameters. If absent, `linux` for `greedy`, `file`, `short_flows`, `web`, `probe` and `dash`, and UDP for sources with a rate. `false` takes a default back.",
    ),
    optional(
        "quic",
        of(Kind::Defined("quic", "\"cubic\"")),
        "QUIC in place of `tcp`: a congestion control that `apportion explain quic` lists, or a table with `algorithm` and parameters. Simulator only; not for `web` and `probe`. `false` takes a default back.",
    ),
    optional(
        "protocol",
        of(Kind::Choice(&["tcp", "udp"])),
        "Protocol field of its packets, for queues that read it; if absent, the actual transport, which is UDP for QUIC. Datagrams \
         with \"tcp\" are spoofed.",
    ),
    optional(
        "ecn",
        of(Kind::Choice(&["not_ect", "ect0", "ect1"])),
        "ECN field of its datagrams; `not_ect` if absent. A source that says more than that and does not answer to marks is a \
         flood that asks for them. TCP and QUIC have a parameter `ecn` of their own.",
    ),
    default("source", of(Kind::Variants(SOURCES)), "greedy", "Traffic source."),
    default(
        "class",
        of(Kind::Choice(CLASSES)),
        "greedy",
        "Traffic class, for queues that distinguish classes: `real_rate` for a flow such as video, which has no \
         use for more than its rate; `greedy` for a flow that uses all it gets.",
    ),
    default("weight", NUMBER, "1", "Weight where bandwidth is divided by weights."),
    optional(
        "rtt",
        SPAN,
        "Round-trip time, for queues that divide buffer space by it; if absent, the delays of the links both \
         ways at the start and the transmission times of a full packet and its acknowledgement.",
    ),
    default(
        "guarantee",
        of(Kind::Rate).within(Range::FromZero),
        "0bit",
        "Guaranteed rate, whether the flow sends or not. The guarantees of the flows that cross a link may add up \
         to at most its rate, at the start and when a change raises one.",
    ),
    optional(
        "tickets",
        TICKETS,
        "Tickets per second issued to its source, in the currency of the source's node; of a group to that of each \
         member, once for all its `connections`, and to each flow that a source opens.",
    ),
    optional(
        "ack_tickets",
        TICKETS,
        "Receiver-based alternative to `tickets`: tickets per second issued to its sink; of a group to that of each \
         member, once for all its `connections`, and to each flow that a source opens. TCP and QUIC only.",
    ),
    optional(
        "mark",
        MARK,
        "Marker of its packets at the source: a name, or a table with parameters. If absent, `tickets` \
         for a flow with `tickets` or `ack_tickets`, else none.",
    ),
    optional(
        "jitter",
        DELAY,
        "Longest time that its hosts take for a packet or acknowledgement, drawn uniformly for each, in order. \
         Simulator only. If absent, its transmission time over the slowest link of the path.",
    ),
    default("start", of(Kind::OrTable(&Kind::Time, START)).within(Range::FromZero), "0s", "Start time."),
    optional(
        "stop",
        TIME,
        "Time when its source stops writing, or starting short flows; the end of the run if absent. What is written is \
         still sent: a file is written as a whole at its start.",
    ),
];

/// Defaults of all flows.
pub(crate) const DEFAULT_FLOW: &[Param] = &all_optional(SHARED_FLOW);

/// A random start.
pub(crate) const START: &[Param] = &[required(
    "between",
    of(Kind::Texts),
    "Start time drawn uniformly between two times, such as [\"0s\", \"1s\"], for each connection.",
)];

/// A timed change.
pub(crate) const CHANGE: &[Param] = &[
    required("at", TIME, "Time of the change."),
    required(
        "set",
        TEXT,
        "Parameter to change: link.NAME.rate, .delay, .loss, .queue, .tickets or .ack_tickets; \
         flow.NAME.rate, .class, .weight, .guarantee, .tickets or .ack_tickets, for a flow or a group.",
    ),
    required("to", of(Kind::Any), "The new value, written as for that key; a rate may be zero."),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway;

    fn visit(keys: &'static [Param], seen: &mut dyn FnMut(&'static Param)) {
        for key in keys {
            seen(key);
            match key.kind {
                Kind::Table(keys)
                | Kind::TableOrFalse(keys)
                | Kind::OrTable(_, keys)
                | Kind::Map(keys)
                | Kind::Tables(keys) => visit(keys, seen),
                Kind::Variants(variants) => variants.iter().for_each(|variant| visit(variant.params, seen)),
                _ => (),
            }
        }
    }

    #[test]
    fn every_default_is_a_value_of_its_key() {
        let mut defaults = 0;
        let mut check = |key: &'static Param| {
            let Some(text) = key.default else { return };
            defaults += 1;
            match key.kind {
                Kind::Variants(all) => assert!(all.iter().any(|one| one.name == text), "{}", key.name),
                Kind::Defined("queue", _) => assert_eq!(text, "fifo"),
                Kind::OrTable(..) => assert_eq!(text, "0s"),
                Kind::SwitchOrTexts => assert_eq!(text, "false"),
                _ => assert!(key.parse(text).is_ok(), "{}", key.name),
            }
        };
        visit(ROOT, &mut check);
        visit(gateway::KEYS, &mut check);
        assert!(defaults > 20, "{defaults}");
    }

    #[test]
    fn every_key_is_documented_in_sentences() {
        let mut check = |key: &'static Param| assert!(key.doc.ends_with('.'), "{}", key.name);
        visit(ROOT, &mut check);
        visit(gateway::KEYS, &mut check);
    }
}
