//! A scenario and the outcome of running it: what every world is given and what it gives back.
//!
//! | module | holds |
//! |---|---|
//! | [`model`] | a checked scenario: typed, every name resolved |
//! | [`outcome`] | what one run of it measured |
//! | [`tcp`] | TCP profiles and their parameters |

pub mod model;
pub mod outcome;
pub mod tcp;

mod expression;
mod problem;
mod text;
