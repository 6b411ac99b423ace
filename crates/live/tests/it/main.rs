//! Frames, and what is written into them, against etherparse and the pages about them.

#![allow(clippy::unwrap_used, reason = "in tests a panic is the message")]

#[path = "../common/mod.rs"]
mod common;
mod frame;
#[path = "../common/laws.rs"]
mod laws;
mod messages;
mod wire_label;
