//! The command as a process: its output, files and refusals.

#![allow(clippy::unwrap_used, reason = "in tests a panic is the message")]

mod action;
mod cache;
#[path = "../common/mod.rs"]
mod common;
mod documents;
mod flent;
mod import;
mod league;
mod messages;
mod plot;
mod reproduce;
mod results;
mod special_files;
mod top;
mod tutorials;
mod watch;
