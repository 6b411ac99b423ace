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
    /// What it goes by that flows have and hosts do not, in words: it cannot divide among hosts.
    pub goes_by: Option<&'static str>,
    /// Where it can stand inside another.
    pub inside: Inside,
    /// What it does about the shares of flows.
    pub shares: Shares,
    /// What its classes are, if flows are given any.
    pub classes: Option<&'static Entry>,
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
    };
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
