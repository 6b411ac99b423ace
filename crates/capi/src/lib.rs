//! The queue disciplines of Apportion for programs in C and in languages that call C.
//!
//! `include/apportion.h` is made from this crate by cbindgen; `docs/c-interface.md` explains it and has an
//! example. A queue is created from the text that a scenario has for the queue of a link, and is driven by
//! the caller, who owns the clock, the packets and the link.
//!
//! Rules at the border:
//! - Time and randomness are arguments: nanoseconds of the caller's clock, which never go back, and a seed.
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
//! | [`packet`] | a packet as C has it and as disciplines see it |
//! | [`queue`] | creation, enqueue, dequeue, wake-ups, statistics, destruction |
//! | [`settings`] | changes while packets wait |
//! | [`status`] | what calls return |

#![expect(unsafe_code, reason = "pointers come from C; each use of one says why it is sound")]
#![warn(missing_docs)]

pub mod packet;
pub mod queue;
pub mod settings;
pub mod status;

pub use packet::Packet;
pub use queue::{Config, Events, Queue};
pub use status::Status;
