//! What tests of several crates of this workspace share.
//!
//! | module | for |
//! |---|---|
//! | `child` | child processes: they end with the test, and waits for them have an end |
//! | `lateness` | whether the machine is too busy for tests that judge rates and times |
//! | [`net`] | scenarios of a few lines |
//! | `processes` | tests that each run in a process of their own |
//! | [`properties`] | property tests: how many cases they draw |
//! | [`skip`] | tests that are skipped: what is missing, and the package that brings it |
//!
//! The feature `namespaces` brings `child`, `lateness` and `processes`, which need Linux.

#![forbid(unsafe_code)]

#[cfg(feature = "namespaces")]
pub mod child;
#[cfg(feature = "namespaces")]
pub mod lateness;
pub mod net;
#[cfg(feature = "namespaces")]
pub mod processes;
pub mod properties;
pub mod skip;
