//! Control: components that act by the clock rather than on the arrival of packets.
//!
//! | file | control | source |
//! |---|---|---|
//! | [`token_bucket`] | shaper: a sustained rate, a burst, optionally a peak rate | – |
//! | [`low_pass`] | control block: low-pass filter | Goel, Steere, Pu, Walpole 1998 |
//! | [`pid`] | control block: proportional, integral and derivative control | Franklin, Powell 1994 |
//! | [`dead_time`] | control blocks: a delay, and a predictor that compensates for it | Smith 1957 |
//!
//! Control blocks work on signals: plain numbers, one for each sample, in the unit for which their gains are
//! chosen. A loop is a chain of blocks; the caller that closes it knows the units.

pub mod dead_time;
pub mod low_pass;
pub mod pid;
pub mod token_bucket;
