//! Queue disciplines that divide a link's bandwidth among the flows that share it.
//!
//! Pure: no clock, no entropy, no input or output, no threads. Time and randomness are arguments, packets are
//! whatever implements [`Packet`], and what happens to them is reported to a [`Sink`]. The same code therefore runs in
//! the simulator, in a laboratory of network namespaces and on live traffic.
//!
//! # Map
//!
//! | module | holds |
//! |---|---|
//! | [`queue`] | the contract: [`Queue`], [`Sink`], reasons for drops |
//! | [`packet`], [`units`], [`random`] | what disciplines know of packets; quantities; named random streams |
//! | [`counted`] | a wrapper that proves conservation on every call |
//! | [`buffer`] | one buffer = any buffer policy × any scheduler |
//! | [`drop`] | buffer policies: who is dropped or marked |
//! | [`schedule`] | schedulers: who is served next |

#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod buffer;
pub mod counted;
pub mod drop;
pub mod packet;
pub mod queue;
pub mod random;
pub mod schedule;
pub mod system;
#[cfg(test)]
mod testing;
pub mod units;

pub use packet::{Ecn, FlowId, Packet};
pub use queue::{Backlog, DropReason, Queue, Sink};
