//! Control: what acts by the clock or by messages rather than by a packet's own arrival.
//!
//! | file | control | source |
//! |---|---|---|
//! | [`token_bucket`] | shaper: a sustained rate, a burst, optionally a peak rate | – |
//! | [`sffc`] | the Manager of SF-FC: where flows come from, and reports to there | Tamura et al. 2000 |

pub mod sffc;
pub mod token_bucket;
