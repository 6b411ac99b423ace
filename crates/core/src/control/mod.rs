//! Control: what acts by the clock rather than by a packet's own arrival.
//!
//! | file | control | source |
//! |---|---|---|
//! | [`token_bucket`] | shaper: a sustained rate, a burst, optionally a peak rate | – |
//! | [`low_pass`] | control block: low-pass filter | Goel, Steere, Pu, Walpole 1998 |
//! | [`pid`] | control block: proportional, integral and derivative control | Franklin, Powell 1994 |
//! | [`dead_time`] | control blocks: a delay, and a predictor of what is still on its way | Smith 1957 |
//!
//! Control blocks work on signals: plain numbers, one for each sample, in whatever unit their gains are made
//! for. A loop is blocks in a row; the caller that closes it knows the units.

pub mod dead_time;
pub mod low_pass;
pub mod pid;
pub mod token_bucket;
