//! What each congestion control is, for people.

/// A congestion control that `algorithm` may name.
#[derive(Debug)]
pub struct AlgorithmEntry {
    /// The name scenario files use.
    pub name: &'static str,
    /// What it is, in one sentence.
    pub summary: &'static str,
    /// Where it is specified.
    pub source: &'static str,
}

/// Every congestion control, in the order of [`Algorithm`](super::Algorithm).
pub const ALGORITHMS: &[AlgorithmEntry] = &[
    AlgorithmEntry {
        name: "tahoe",
        summary: "Fast retransmit after duplicate ACKs, then slow start from one segment.",
        source: "Jacobson, Congestion avoidance and control (SIGCOMM 1988); RFC 5681 section 3.1 without fast recovery",
    },
    AlgorithmEntry {
        name: "reno",
        summary: "Fast retransmit and fast recovery, which ends with the first new ACK: one loss a round trip.",
        source: "RFC 5681 section 3.2",
    },
    AlgorithmEntry {
        name: "newreno",
        summary: "Reno whose fast recovery goes on until everything sent before the loss is acknowledged.",
        source: "RFC 6582",
    },
    AlgorithmEntry {
        name: "sack",
        summary: "Reno with selective acknowledgments: many losses are repaired in one round trip.",
        source: "RFC 2018, 6675 (`sack_recovery` selects RFC 6675 or ns-2's Sack1)",
    },
    AlgorithmEntry {
        name: "cubic",
        summary: "The window grows as a cubic function of the time since the last loss, over selective acknowledgments.",
        source: "RFC 9438",
    },
    AlgorithmEntry {
        name: "bbr",
        summary: "Paces by the bottleneck's rate and the round-trip time that it measures, whatever is lost.",
        source: "Cardwell et al., BBR: congestion-based congestion control (ACM Queue 14(5), 2016); draft-cardwell-iccrg-bbr-congestion-control-00",
    },
    AlgorithmEntry {
        name: "bbr3",
        summary: "BBR that keeps in the network what it loses less than 2 % of, and leaves room for others between its probes.",
        source: "draft-ietf-ccwg-bbr-05",
    },
    AlgorithmEntry {
        name: "dctcp",
        summary: "Cuts the window in proportion to the share of bytes that were marked; for queues that mark from a low threshold on.",
        source: "RFC 8257; Alizadeh et al., Data center TCP (SIGCOMM 2010)",
    },
    AlgorithmEntry {
        name: "vegas",
        summary: "Keeps 2 to 4 packets of its own in the queue, which it infers from the round-trip time; halves its window for a loss.",
        source: "Brakmo and Peterson, TCP Vegas: end to end congestion avoidance on a global Internet (IEEE JSAC 13(8), 1995)",
    },
    AlgorithmEntry {
        name: "ledbat",
        summary: "Background traffic: the window follows the one-way delay, so that alone it queues for 100 ms and yields to others.",
        source: "RFC 6817",
    },
    AlgorithmEntry {
        name: "prague",
        summary: "DCTCP for the Internet: paced ECT(1) packets for queues such as `dualpi2`, and rates that short round trips do not raise.",
        source: "draft-briscoe-iccrg-prague-congestion-control; RFC 9331; RFC 9768",
    },
];

#[cfg(test)]
mod tests {
    use super::ALGORITHMS;
    use crate::tcp::{PARAMS, TcpParams};

    #[test]
    fn the_table_has_every_algorithm_that_can_be_selected() {
        let names: Vec<_> = ALGORITHMS.iter().map(|entry| entry.name).collect();
        let words = PARAMS.iter().find(|entry| entry.name == "algorithm").map(|entry| entry.unit);
        assert_eq!(Some(names.join(" ").as_str()), words.map(str::trim_end));
        for name in names {
            let mut params = TcpParams::profile("rfc").expect("a profile");
            assert_eq!(params.set("algorithm", name), Ok(()));
        }
    }
}
