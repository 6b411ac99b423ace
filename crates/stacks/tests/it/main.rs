//! Stacks of other projects in simulated time.

#![allow(clippy::unwrap_used, reason = "in tests a panic is the message")]

mod common;
mod quinn;
mod smoltcp;
