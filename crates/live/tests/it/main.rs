//! Frames and edits of frames, checked against etherparse and the documents.

#![allow(clippy::unwrap_used, reason = "in tests a panic is the message")]

#[path = "../common/mod.rs"]
mod common;
mod frame;
#[path = "../common/laws.rs"]
mod laws;
mod messages;
mod wire_label;
