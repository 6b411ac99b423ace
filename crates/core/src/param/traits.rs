//! What holds of an entry of the catalogue, for those who choose by that instead of by names.

use super::Entry;
use crate::flow_setting::Heeds;
use crate::packet::LabelKind;

/// What holds of a discipline with any values of its parameters. Of an entry that is no discipline nothing does.
#[derive(Clone, Copy, Debug)]
pub struct Traits {
    /// What it heeds of flows with some values of its parameters, also where that is heeded by what stands inside it.
    pub heeds: &'static [Heeds],
    /// The kind of label that it writes on packets.
    pub writes: Option<LabelKind>,
    /// The kind of label that it goes by.
    pub reads: Option<LabelKind>,
    /// What it goes by that flows have and hosts do not: it cannot divide among hosts.
    pub goes_by: Option<GoesBy>,
    /// Where it can stand inside another.
    pub inside: Inside,
    /// What it does about the shares of flows.
    pub shares: Shares,
    /// What its classes are, if flows are given any.
    pub classes: Option<&'static Entry>,
    /// Whether it divides the rate set for its link, and leaves the rest unused while the link is faster.
    pub divides_set_rate: bool,
}

impl Traits {
    /// None of them.
    pub const NONE: Self = Self {
        heeds: &[],
        writes: None,
        reads: None,
        goes_by: None,
        inside: Inside::Nowhere,
        shares: Shares::Ignored,
        classes: None,
        divides_set_rate: false,
    };
}

/// What a discipline goes by that packets or flows have and hosts do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GoesBy {
    /// Colours.
    Colours,
    /// Tickets.
    Tickets,
    /// Customers.
    Customers,
    /// Classes.
    Classes,
    /// Which flows are real-rate, and what they need.
    RealRate,
    /// What routers report.
    Reports,
    /// Ranks, of which hosts with several flows have several.
    Ranks,
    /// A few packets of each flow in the buffer, too few for the flows of a host.
    Allowance,
    /// The DSCP.
    Dscp,
    /// TCP headers.
    Tcp,
}

impl GoesBy {
    /// What that is, for people.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Colours => "the colours of packets",
            Self::Tickets => "the tickets on packets",
            Self::Customers => "the customers of flows",
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

/// What a discipline does about the shares of flows of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shares {
    /// Nothing: a flow that sends more has more.
    Ignored,
    /// It divides nothing, but keeps what a scheduler divides: it drops from flows that hold too much of the buffer, or from each by
    /// what its own queue does.
    Kept,
    /// It divides roughly: a flow that sends more has little more, but may cost the others packets within their shares.
    Approximate,
    /// It gives each flow its fair share, and all packets within that, also beside one that sends more.
    Given,
}

/// Where a discipline can stand inside another, which has the name of it as a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Inside {
    /// Nowhere.
    Nowhere,
    /// It can divide a whole queue behind something that drops. Only the discipline of a whole queue is asked for labels.
    Queue,
    /// It can divide also a part of a queue: it needs no labels, customers, guarantees or classes, which what divides the whole does
    /// not pass on.
    Part,
}
