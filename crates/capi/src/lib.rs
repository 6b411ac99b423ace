//! The queue disciplines of Apportion for programs in C and in languages that call C.
//!
//! cbindgen generates `include/apportion.h` from this crate; `docs/c-interface.md` explains the header with
//! an example. A queue is created from the same text that a scenario gives for the queue of a link. The
//! caller drives it and owns the clock, the packets and the link.
//!
//! Rules at the border:
//! - Time and randomness are arguments: nanoseconds of the caller's clock, which must not go back, and a
//!   seed.
//! - The queue keeps copies of [`Packet`], 24 bytes each, and never looks behind [`Packet::handle`].
//! - A null pointer, a value out of range, a time that goes back and a call from inside a callback of the
//!   same queue are refused with a [`Status`] and change nothing.
//! - A queue may move between threads; two calls for the same queue must not overlap. Calls for different
//!   queues are independent.
//! - No panic leaves a function. A queue that panicked answers every later call with
//!   [`Status::ErrorPanicked`] and can only be destroyed.
//!
//! | module | holds |
//! |---|---|
//! | [`packet`] | packets as C passes them and as disciplines see them |
//! | [`queue`] | creation, enqueue, dequeue, wake-ups, statistics, destruction |
//! | [`settings`] | changes while packets wait |
//! | `simulation`, `stack` | transport stacks of the caller in the simulator; with the feature `simulator` |
//! | [`status`] | return values of calls |

#![expect(unsafe_code, reason = "pointers come from C; each use of one says why it is sound")]
#![warn(missing_docs)]

pub mod packet;
pub mod queue;
pub mod settings;
#[cfg(feature = "simulator")]
pub mod simulation;
#[cfg(feature = "simulator")]
pub mod stack;
pub mod status;

pub use packet::Packet;
pub use queue::{Config, Events, Queue};
pub use status::Status;
