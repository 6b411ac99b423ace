//! The properties of an entry of the catalogue, for choices by property instead of by name.

use super::Entry;
use crate::flow_setting::Heeds;
use crate::packet::LabelKind;

/// Properties of a discipline that hold with any values of its parameters. Entries that are no discipline
/// have none.
#[derive(Clone, Copy, Debug)]
pub struct Traits {
    /// The flow settings that it, or a discipline inside it, heeds with some values of its parameters.
    pub heeds: &'static [Heeds],
    /// The kind of label that it writes on packets.
    pub writes: Option<LabelKind>,
    /// The kind of label that its decisions depend on.
    pub reads: Option<LabelKind>,
    /// The property of flows, absent from hosts, that its decisions depend on: it cannot divide among hosts.
    pub goes_by: Option<GoesBy>,
    /// Where it can stand inside another discipline.
    pub inside: Inside,
    /// How it treats the shares of flows.
    pub shares: Shares,
    /// The entry of its classes, if flows are assigned to classes.
    pub classes: Option<&'static Entry>,
    /// Whether it divides the rate that is set for its link, and leaves the excess unused while the link is
    /// faster.
    pub divides_set_rate: bool,
    /// What to know before it is chosen or configured, in sentences; shares and rates were measured. Empty if there is nothing.
    pub limits: &'static str,
}

impl Traits {
    /// No properties.
    pub const NONE: Self = Self {
        heeds: &[],
        writes: None,
        reads: None,
        goes_by: None,
        inside: Inside::Nowhere,
        shares: Shares::Ignored,
        classes: None,
        divides_set_rate: false,
        limits: "",
    };
}

/// A property of packets or flows, absent from hosts, that a discipline's decisions depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GoesBy {
    /// Colours.
    Colours,
    /// Tickets.
    Tickets,
    /// Customers.
    Customers,
    /// Agreements.
    Agreements,
    /// Classes.
    Classes,
    /// Which flows are real-rate, and the rates that they need.
    RealRate,
    /// Reports of routers.
    Reports,
    /// Ranks; a host with several flows has several.
    Ranks,
    /// A small allowance of buffered packets per flow, too small for the flows of a host.
    Allowance,
    /// The DSCP.
    Dscp,
    /// TCP headers.
    Tcp,
}

impl GoesBy {
    /// The description for users.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Colours => "the colours of packets",
            Self::Tickets => "the tickets on packets",
            Self::Customers => "the customers of flows",
            Self::Agreements => "the agreements of hosts",
            Self::Classes => "the classes of flows",
            Self::RealRate => "what real-rate flows need",
            Self::Reports => "what routers report of flows",
            Self::Ranks => "the ranks of single packets",
            Self::Allowance => "the few packets that it lets a flow have",
            Self::Dscp => "the DSCP of packets",
            Self::Tcp => "TCP headers",
        }
    }
}

/// How a discipline treats the shares of a link's flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shares {
    /// No protection: a flow that sends more gets more.
    Ignored,
    /// No division, but it preserves a scheduler's division: it drops from flows that hold too much of the
    /// buffer, or from each flow by the state of its own queue.
    Kept,
    /// An approximate division: a flow that sends more gets little more, but may cost the others packets
    /// within their shares.
    Approximate,
    /// Fair shares: each flow gets all packets within its share, also beside a flow that sends more.
    Given,
}

/// Where a discipline can stand inside another, whose parameter names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Inside {
    /// Nowhere.
    Nowhere,
    /// A whole queue behind a stage that drops. Only the discipline of a whole queue is asked for labels.
    Queue,
    /// Also a part of a queue: it needs no labels, customers, guarantees or classes, which the discipline of
    /// the whole queue does not pass on.
    Part,
}
