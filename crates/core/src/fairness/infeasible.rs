//! The reasons why an allocation does not exist.

use core::fmt;

/// The reason why there is no allocation.
#[derive(Clone, Debug, PartialEq)]
pub enum Infeasible {
    /// The guarantees on this link exceed its capacity.
    Oversubscribed {
        /// The link.
        link: usize,
        /// The sum of the guarantees.
        guaranteed: f64,
        /// The capacity of the link.
        capacity: f64,
    },
    /// This flow has unlimited demand and crosses no link.
    Unbounded {
        /// The flow.
        flow: usize,
    },
    /// This flow crosses a link that does not exist.
    UnknownLink {
        /// The flow.
        flow: usize,
        /// The link.
        link: usize,
    },
    /// The capacity of this link is negative or not finite.
    BadCapacity {
        /// The link.
        link: usize,
    },
    /// In the tree of this link a weight is not above zero, a parent comes after its child, or a leaf has
    /// children or two flows.
    BadTree {
        /// The link.
        link: usize,
    },
    /// A number of this flow is negative or not finite.
    BadNumber {
        /// The flow.
        flow: usize,
    },
    /// The tickets issued to this link are negative or not finite.
    BadIssue {
        /// The link.
        link: usize,
    },
    /// Flows of customers are limited at several links, whose divisions do not converge.
    SeveralBottlenecks,
    /// This flow belongs to a customer that does not exist.
    UnknownCustomer {
        /// The flow.
        flow: usize,
    },
    /// Links exchange tickets in a cycle whose rates do not converge.
    Unsettled,
    /// Links weigh the flows so differently that no share of this one could be determined.
    Ambiguous {
        /// The flow.
        flow: usize,
    },
}

impl fmt::Display for Infeasible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Oversubscribed { link, guaranteed, capacity } => {
                write!(f, "link {link} carries {capacity} but {guaranteed} is guaranteed on it")
            }
            Self::Unbounded { flow } => write!(f, "flow {flow} wants without end and crosses no link"),
            Self::UnknownLink { flow, link } => {
                write!(f, "flow {flow} crosses link {link}, which does not exist")
            }
            Self::BadCapacity { link } => write!(f, "the capacity of link {link} is negative or not finite"),
            Self::BadTree { link } => write!(
                f,
                "the tree of link {link} has a weight that is not above zero, a parent after its child, or a leaf with \
                 children or two flows"
            ),
            Self::BadNumber { flow } => write!(f, "flow {flow} has a number that is negative or not finite"),
            Self::BadIssue { link } => {
                write!(f, "the tickets issued to link {link} are negative or not finite")
            }
            Self::SeveralBottlenecks => {
                write!(f, "flows of customers are held back at several links, whose divisions do not settle")
            }
            Self::UnknownCustomer { flow } => {
                write!(f, "flow {flow} belongs to a customer that does not exist")
            }
            Self::Unsettled => write!(f, "links exchange tickets in a cycle whose rates do not settle"),
            Self::Ambiguous { flow } => {
                write!(f, "links weigh the flows so differently that no share of flow {flow} can be settled")
            }
        }
    }
}
impl core::error::Error for Infeasible {}

/// Whether `x` can be an amount: finite and not negative.
pub(super) fn is_amount(x: f64) -> bool {
    x.is_finite() && x >= 0.0
}
