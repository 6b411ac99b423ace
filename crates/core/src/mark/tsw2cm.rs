//! TSW2CM, time sliding window two colour marker: the part of a flow's rate that exceeds its profile is red.
//!
//! Clark, Fang, "Explicit allocation of best-effort packet delivery service", IEEE/ACM ToN 6(4), 1998:
//! the probabilistic tagger, with red for OUT. It is [`TSW3CM`](super::tsw3cm) with both rates equal, for
//! queues with two drop precedences, such as RIO.
//!
//! Cost: as TSW3CM. Parameters: [`ENTRY`].

use super::tsw3cm::Tsw3cmParams;
use crate::param::{Entry, Role, Traits};

/// TSW2CM in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "tsw2cm",
    role: Role::Marker,
    summary: "Time sliding window marker: green within a rate, red beyond.",
    reference: "Clark, Fang 1998",
    cost: "O(1) per packet, state at the ends of flows only",
    // Without `pir`.
    params: &[Tsw3cmParams::PARAMS[0], Tsw3cmParams::PARAMS[2]],
    traits: Traits::NONE,
};

#[cfg(test)]
mod tests {
    use super::super::tsw3cm::tests::{count, marker};

    #[test]
    fn what_exceeds_the_rate_is_red_and_nothing_is_yellow() {
        // 4 Mb/s with a profile of 1: OUT with (4 - 1)/4. 20000 trials, 4 sigma = 4 sqrt(0.75·0.25·20000) =
        // 245.
        let [green, yellow, red] = count(&mut marker(1_000, 1_000), 20_000);
        assert_eq!((green + red, yellow), (20_000, 0));
        assert!(red.abs_diff(15_000) < 245, "{red}");
    }
}
