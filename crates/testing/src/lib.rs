//! Helpers shared by the tests of several crates of this workspace.
//!
//! | module | for |
//! |---|---|
//! | `child` | child processes: they end with the test, and waits for them have a limit |
//! | `lateness` | whether the machine is too busy for tests that judge rates and times |
//! | [`net`] | scenarios of a few lines |
//! | `processes` | tests that each run in their own process |
//! | [`properties`] | property tests: their number of cases |
//! | [`skip`] | skipped tests: the missing program, and its package |
//!
//! The feature `namespaces` brings `child`, `lateness` and `processes`, which need Linux. Elsewhere `child` has less.

#![forbid(unsafe_code)]

#[cfg(all(feature = "namespaces", target_os = "linux"))]
pub mod child;
#[cfg(not(target_os = "linux"))]
#[path = "child_elsewhere.rs"]
pub mod child;
#[cfg(all(feature = "namespaces", target_os = "linux"))]
pub mod lateness;
pub mod net;
#[cfg(all(feature = "namespaces", target_os = "linux"))]
pub mod processes;
pub mod properties;
pub mod skip;
