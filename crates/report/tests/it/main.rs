//! Stored runs, and their pages and figures.

#![allow(clippy::unwrap_used, reason = "in tests a panic is the message")]

mod columns;
mod explore;
mod figures;
mod headlines;
mod page;
mod plot;
mod store;
mod synthetic;
