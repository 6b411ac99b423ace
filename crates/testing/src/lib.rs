//! What tests of several crates of this workspace share.
//!
//! | module | for |
//! |---|---|
//! | [`properties`] | property tests: how many cases they draw |

#![forbid(unsafe_code)]

pub mod properties;
