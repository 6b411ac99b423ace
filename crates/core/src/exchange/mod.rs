//! Exchanges: on the way from one router to the next, they rewrite labels for whoever reads them there.
//!
//! | file | exchange | source |
//! |---|---|---|
//! | [`currency`] | tickets of one currency against those of the next | Zhang et al. 2002 |
//!
//! An exchange belongs to a link, not to its queue: it sees packets arrive in front of the queue, dropped ones
//! too, and rewrites those that leave it.

pub mod currency;
