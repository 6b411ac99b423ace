//! QUIC: loss detection by transcripts of RFC 9002, and what a connection carries against what theory and TCP say.

#![allow(clippy::unwrap_used, reason = "in tests a panic is the message")]

mod acknowledgments;
#[path = "../common/mod.rs"]
mod common;
mod detection;
mod goodput;
mod transcript;
