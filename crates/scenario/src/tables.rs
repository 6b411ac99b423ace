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
        "Interval of time series; if absent 1, 2 or 5 times a power of ten: at most 600 intervals.",
    ),
    optional(
        "topology",
        of(Kind::Variants(TOPOLOGIES)),
        "A predefined network; tables under `link` extend and change it.",
    ),
    optional(
        "routing",
        of(Kind::Choice(ROUTING)),
        "Paths of flows without `path`, by least delay, then fewest links. Of several, with `ecmp` a hash selects one \
         for each connection and direction; with `single` all take the first by names. `ecmp` if absent.",
    ),
    optional("sweep", of(Kind::Table(SWEEP)), "How swept lists vary."),
    optional("defaults", of(Kind::Table(DEFAULTS)), "Default values for all links and flows."),
    optional("link", of(Kind::Map(LINK)), "Links by name. Their ends define the nodes."),
    optional("flow", of(Kind::Map(FLOW)), "Flows, or groups of similar flows, by name."),
    optional(
        "customer",
        of(Kind::Map(CUSTOMER)),
        "Customers by name; needed for weights other than 1. Flows name theirs under `customer`.",
    ),
    optional(
        "agreement",
        of(Kind::Map(AGREEMENT)),
        "Who pays whom for access, by name. Queues `rcs` divide links by that, and so do entitlements.",
    ),
    optional(
        "plans",
        TEXT,
        "File of customers with rates; a queue `{ kind = \"htb\", plans = \"down\" }` has its classes.",
    ),
    optional("change", of(Kind::Tables(CHANGE)), "Timed changes during the run."),
];

/// An agreement of two nodes that a link joins.
pub(crate) const AGREEMENT: &[Param] = &[
    required(
        "payer",
        TEXT,
        "Node that pays. A node with one neighbour and no agreement pays that neighbour.",
    ),
    required("provider", TEXT, "Node that is paid, next to it."),
    default("weight", NUMBER.within(Range::AboveZero), "1", "Weight among those who pay this provider."),
];

/// Default values of links and of flows.
pub(crate) const DEFAULTS: &[Param] = &[
    optional(
        "link",
        of(Kind::Table(DEFAULT_LINK)),
        "For links; in a topology for keys that `topology` does not set. Rates and delays come from the topology, \
         except for graph edges without.",
    ),
    optional("flow", of(Kind::Table(DEFAULT_FLOW)), "For flows; a formula uses the `i` of each flow."),
    optional(
        Preset::KEY,
        of(Kind::Choice(&Preset::NAMES)),
        "For queues, markers and exchanges without `preset`: `paper` takes unset parameters from their papers, without \
         later mechanisms.",
    ),
];

/// A new link, or changes to a link of the topology.
pub(crate) const LINK: &[Param] = &concat::<16>(&[
    &[
        optional("from", TEXT, "Node where packets enter. Required outside of topologies."),
        optional("to", TEXT, "Node where packets leave. Required outside of topologies."),
        optional(
            "count",
            of(Kind::Count).within(Range::UpTo(MAX_LINKS)),
            "Number of equal links `x.1`, `x.2`, ..., each with this rate and its own queue. A hash assigns \
             connections. If absent, one link `x`.",
        ),
        optional("lost", of(Kind::Tables(LOST)), "Packets to lose, by ordinal."),
        optional(
            "back",
            of(Kind::TableOrFalse(BACK)),
            "The reverse direction, link `x.back`: `lost` and the keys below. Default: the same rate, delay and \
             exchange, no jitter, a FIFO of 1000 packets. `false` for a one-way link. In a topology it follows changes \
             of rate, delay and exchange unless the topology sets them.",
        ),
    ],
    &SHARED_LINK,
]);

/// Keys of a link that may also have a default.
const SHARED_LINK: [Param; 11] = [
    optional(
        "rate",
        LINK_RATE,
        "Rate of the transmitter, or a recorded link. Required outside of topologies.",
    ),
    optional("delay", DELAY, "Propagation delay of the wire. Required outside of topologies."),
    optional(
        "jitter",
        JITTER,
        "Longest random time beyond `delay`: uniform, without overtaking; or a table; none if absent.",
    ),
    optional(
        "aggregate",
        of(Kind::TableOrFalse(Aggregate::PARAMS)),
        "Sends several packets per medium access, as Wi-Fi does; one at a time if absent or `false`.",
    ),
    optional("queue", QUEUE, "Queue discipline in front of the transmitter; \"fifo\" if absent."),
    optional("loss", LINK_LOSS, "Probability of loss on the wire, or bursts (Gilbert-Elliott); 0 if absent."),
    optional(
        "tickets",
        TICKETS,
        "Tickets per second that the far router issues to the link, in its currency; labels pass unchanged if absent.",
    ),
    optional(
        "ack_tickets",
        TICKETS,
        "Receiver-based alternative to `tickets`: tickets per second that the near router issues, on acknowledgements; \
         needs the reverse direction.",
    ),
    optional("exchange", EXCHANGE, "Ticket exchange: parameters of the exchange `currency`."),
    optional(
        "watch",
        SWITCH,
        "Whether results show its queue over time; true for bottlenecks of a topology if absent.",
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
        "File of opportunities to send 1504 bytes, in mahimahi's format: a time in ms per line, repeated with the last \
         as period; or a table (`columns`). `#` starts a comment. Queues take their defaults from the mean rate; \
         entitlements use means of 100 ms, or of the time of 96 kB if longer.",
    ),
    optional(
        "columns",
        TEXT,
        "Units of columns, such as `s Mbit` or `ms kbit`; `-` skips one. Blanks, commas or semicolons separate numbers; \
         a first line of names is skipped. A rate holds until the next line, the last as long as the one before; times \
         count from the first line. With a size (`ms B`) a line has what came since the last line, or in a length (`B \
         +ms`). A time alone is an opportunity.",
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
        "Ordinals of its packets on this link, from 1, over all its `connections` together.",
    ),
];

/// A customer.
pub(crate) const CUSTOMER: &[Param] = &[default("weight", NUMBER, "1", "Weight among customers.")];

/// A flow or a group of similar flows.
pub(crate) const FLOW: &[Param] = &concat::<26>(&[
    &[
        optional(
            "count",
            of(Kind::Count).within(Range::UpTo(MAX_FLOWS)),
            "Number of flows in a group: `x.1` with `i` = 1, `x.2`, ...; if absent, one flow `x` with `i` = 1.",
        ),
        required("from", TEXT, "Node of the source; `{i}` is the number in the group."),
        required("to", TEXT, "Node of the sink."),
        optional(
            "path",
            of(Kind::Texts),
            "Nodes or links that packets pass; end nodes may be omitted. If absent, as `routing` says. Of parallel \
             links the one of least delay, then first name.",
        ),
        optional("return_path", of(Kind::Texts), "The same for acknowledgements."),
        optional(
            "customer",
            TEXT,
            "Its customer, such as \"home{i}\", for queues that divide among customers first. If any flow has one, all \
             others form one more of weight 1. It selects the class of `prio`, `htb` and `hfsc`.",
        ),
        TARGET,
        TARGET_DELAY,
        optional(
            "stream",
            TEXT,
            "Name of its random streams; its own name if absent. With its old name a renamed flow or group keeps its \
             draws.",
        ),
    ],
    &SHARED_FLOW,
]);

/// What a real-rate flow asks for its queue.
pub(crate) const TARGET: Param = optional(
    "target",
    SIZE,
    "Bytes that a `ramp` queue should hold of a `real_rate` flow; its parameter if absent.",
);
/// The target of a real-rate flow in time.
pub(crate) const TARGET_DELAY: Param =
    optional("target_delay", SPAN, "The same in time at the flow's own rate.");

/// Values of `class`, for queues that distinguish classes.
pub(crate) const CLASSES: &[&str] = &["greedy", "real_rate"];

/// Keys of a flow that may also have a default.
const SHARED_FLOW: [Param; 17] = [
    optional(
        "connections",
        of(Kind::Count).within(Range::UpTo(MAX_CONNECTIONS)),
        "Number of connections, each with its own transport, start and source; queues, markers and `lost` see one flow. \
         1 if absent.",
    ),
    optional(
        "tcp",
        of(Kind::Defined("tcp", "\"rfc\"")),
        "TCP: a profile, a congestion control of profile `linux`, or a table of `profile` and parameters. If absent, \
         `linux`, or UDP for sources with a rate. `false` undoes a default.",
    ),
    optional(
        "quic",
        of(Kind::Defined("quic", "\"cubic\"")),
        "QUIC in place of `tcp`: a congestion control (`apportion explain quic`), or a table of `algorithm` and \
         parameters. Simulator only; not for `web` and `probe`. `false` undoes a default.",
    ),
    optional(
        "transport",
        of(Part::Stack.kind()),
        "Transport stack of another project in place of `tcp`: a name, or a table of `kind` and parameters. Simulator \
         only. Not with `mark`, `tickets` and `ack_tickets`, whose defaults do not apply to it. `false` undoes a default.",
    ),
    optional(
        "protocol",
        of(Kind::Choice(&["tcp", "udp"])),
        "Protocol field, for queues that read it; the actual transport if absent (UDP for QUIC). Datagrams with \"tcp\" \
         are spoofed.",
    ),
    optional(
        "ecn",
        of(Kind::Choice(&["not_ect", "ect0", "ect1"])),
        "ECN field of its datagrams; `not_ect` if absent. A source that sets another and ignores marks is a flood. TCP \
         and QUIC have their own `ecn`.",
    ),
    default("source", of(Kind::Variants(SOURCES)), "greedy", "Traffic source."),
    default(
        "class",
        of(Kind::Choice(CLASSES)),
        "greedy",
        "Traffic class: `real_rate` for a flow that cannot use more than its rate, such as video; else `greedy`.",
    ),
    default("weight", NUMBER, "1", "Weight for disciplines that divide by weights."),
    optional(
        "rtt",
        SPAN,
        "Round-trip time, for queues that divide buffers by it; if absent, delays both ways at the start, and \
         transmission times of a full packet and its acknowledgement.",
    ),
    default(
        "guarantee",
        of(Kind::Rate).within(Range::FromZero),
        "0bit",
        "Guaranteed rate. Guarantees of flows on a link, silent ones included, may add up to its rate.",
    ),
    optional(
        "tickets",
        TICKETS,
        "Tickets per second issued to its source, in its node's currency: once for all `connections`, and for each flow \
         that a source opens.",
    ),
    optional(
        "ack_tickets",
        TICKETS,
        "Receiver-based alternative to `tickets`: issued to its sink, likewise. TCP and QUIC only.",
    ),
    optional(
        "mark",
        MARK,
        "Marker at the source: a name, or a table with parameters. If absent, `tickets` for a flow with `tickets` or \
         `ack_tickets`, else none.",
    ),
    optional(
        "jitter",
        DELAY,
        "Longest random time of its hosts per packet or acknowledgement, in order. Simulator only. If absent, its \
         transmission time over the slowest link of the path.",
    ),
    default("start", of(Kind::OrTable(&Kind::Time, START)).within(Range::FromZero), "0s", "Start time."),
    optional(
        "stop",
        TIME,
        "Time when its source stops writing or starting short flows; the end if absent. What is written is still sent, \
         such as a file.",
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
        "Parameter: link.NAME.rate, .delay, .loss, .queue, .tickets or .ack_tickets; flow.NAME.rate, .class, .weight, \
         .guarantee, .tickets or .ack_tickets, of a flow or group.",
    ),
    required("to", of(Kind::Any), "New value, written as for that key; a rate may be zero."),
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
