//! Super-packets, cut into segments and merged from them, checked against etherparse.

#![allow(clippy::unwrap_used, reason = "in tests a panic is the message")]

#[path = "../../../live/tests/common/mod.rs"]
mod frames;
#[path = "../common/segments.rs"]
mod laws;
mod merge;
mod segment;
