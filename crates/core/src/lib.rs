//! Queue disciplines that divide a link's bandwidth among the flows that share it.
//!
//! Pure: no clock, no entropy, no input or output, no threads. Time and randomness are arguments, packets are
//! any type that implements [`Packet`], and a [`Sink`] receives drops and marks. The same code therefore runs
//! in the simulator, in a laboratory of network namespaces and on live traffic.
//!
//! # Map
//!
//! | module | holds |
//! |---|---|
//! | [`queue`] | the contract: [`Queue`], [`Sink`], reasons for drops |
//! | [`packet`], [`units`], [`random`] | packets as disciplines see them; quantities; named random streams |
//! | [`limit`] | the size of a buffer |
//! | [`label`] | information about a flow that its packets carry to routers, in 17 bits |
//! | [`counted`] | a wrapper that proves conservation on every call |
//! | [`buffer`] | the combination of any buffer policy with any scheduler |
//! | [`aqm`] | buffer policies: the choice of packets to drop or mark |
//! | [`schedule`] | schedulers: the order of transmission |
//! | [`mark`] | markers that write labels at the edge; the currency exchange that rewrites them between routers |
//! | [`control`] | controls that act by the clock: shaper, blocks of control loops |
//! | [`estimate`] | estimators of rates and minima |
//! | [`fairness`] | Jain's index, weighted max-min with guarantees, shares by tickets |
//! | [`system`] | whole disciplines: every combination behind one type; FQ-CoDel, FQ-PIE, DualPI2, RAMP |
//! | [`congestion`] | the contract between a congestion control and its transport |
//! | [`stack`] | the contract between a transport stack from outside and its host |
//! | [`transmission`] | the transmission times of packets |
//! | [`delivery_trace`] | the opportunities of a recorded link |
//! | [`param`] | the vocabulary of parameters; [`system::catalog`] lists every discipline in it |
//! | `flow_setting` | the settings of a flow that disciplines use |
//! | `list`, `tree`, `longest`, `smallest` | queues threaded through a slice; sums and extremes of many keys |
//! | `family` | the macro for one type of several algorithms |

#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;
#[cfg(test)]
extern crate std;

#[macro_use]
mod family;

pub mod aqm;
pub mod buffer;
pub mod congestion;
pub mod control;
pub mod counted;
pub mod delivery_trace;
pub mod estimate;
pub mod fairness;
mod flow_setting;
pub mod label;
pub mod limit;
mod list;
mod longest;
pub mod mark;
pub mod packet;
pub mod param;
pub mod queue;
pub mod random;
pub mod schedule;
mod smallest;
pub mod stack;
pub mod system;
#[cfg(test)]
mod testing;
pub mod transmission;
mod tree;
pub mod units;

pub use flow_setting::FlowSetting;
pub use packet::{
    Colour, Ecn, FillTarget, FlowClass, FlowId, HostPair, LabelKind, Packet, Protocol, SimplePacket,
};
pub use queue::{Backlog, DropReason, Overload, Queue, Sink};
