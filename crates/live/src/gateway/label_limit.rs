//! The limit on the rate of labelled packets of a rule, or of each network if the rule makes each network one
//! flow.
//!
//! A core believes labels, so a sender that writes small rates on the packets of a large flow takes the
//! shares of others. The limit bounds that without state per flow: labels count as long as all labelled
//! packets of the rule or network together keep to a rate, for example that of the customer's contract. A
//! packet above it loses its label and is treated as one that came without: a queue with the role `any`
//! measures its flow as an edge does, a `core` drops it. The label is not replaced by the rate of all these
//! packets, because that is no flow's rate, and many small flows would pay for one large one.
//!
//! Source: the virtual scheduling algorithm of ITU-T I.371 (the generic cell rate algorithm), with packets in
//! place of cells. Cost: O(1) per labelled packet.

use apportion_core::units::{Bytes, Rate, Span, Time};

/// Maximum time by which packets may be ahead of the rate. Chosen: `k` of CSFQ, the time over which an edge
/// measures rates.
const AHEAD: Span = Span::from_millis(100);

/// The meter of packets with trusted labels.
#[derive(Clone, Copy, Debug, Default)]
pub struct Labelled {
    /// Time at which all packets so far would have been sent at the rate.
    due: Time,
}

impl Labelled {
    /// Whether a packet keeps to this rate. If so, it counts.
    pub fn admits(&mut self, rate: Rate, now: Time, size: Bytes) -> bool {
        if self.due.since(now) > AHEAD {
            return false;
        }
        self.due = self.due.max(now) + rate.time_for(size);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_keeps_to_the_rate_passes_and_what_exceeds_it_is_cut_to_the_rate() {
        // 1000 B a millisecond are 8 Mb/s.
        let admitted = |mbit| {
            let (mut labelled, rate) = (Labelled::default(), Rate::from_mbit(mbit));
            let admits = |ms: &u64| labelled.admits(rate, Time::from_millis(*ms), Bytes::new(1_000));
            (0..10_000).filter(admits).count()
        };
        assert_eq!([8, 9].map(admitted), [10_000, 10_000]);
        // A packet takes 4 ms of 2 Mb/s. The last one comes at 9,999 ms, and may be 100 ms ahead.
        assert_eq!(admitted(2), (9_999 + 100) / 4 + 1);
    }
}
