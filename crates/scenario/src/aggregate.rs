//! Aggregation: a transmitter that sends several packets each time it gets the medium, as Wi-Fi does.
//!
//! An abstraction of the A-MPDUs of 802.11n and later (IEEE 802.11-2016, section 9.7). Once it has the
//! medium, the transmitter takes packets from the queue for one aggregate, up to a number, a size and an
//! airtime. An aggregate takes a fixed time for access, in which no byte is sent, and the time of the packets
//! with their MAC headers at the rate of the link. All packets arrive together. So n packets of l bytes take
//!
//! T = overhead + 8 n (l + header) / rate,
//!
//! and a queue that never empties is served at n l / T: the form of the model of Høiland-Jørgensen et al., "Ending the Anomaly",
//! USENIX ATC 2017, for one station that has the medium alone.

use apportion_core::param::{Param, Range};
use apportion_core::params;
use apportion_core::units::{Bytes, Rate, Ratio, Span};

use crate::keys::Fields;
use crate::problem::Problems;

/// The largest A-MPDU: that of 802.11ac, 2^20 - 1 bytes.
pub(crate) const MAX_BYTES: Bytes = Bytes::new(1_048_575);
/// Maximum of bytes added to a packet. Chosen: the maximum of a packet.
const MAX_HEADER: Bytes = Bytes::new(65_535);
/// The highest probability that an aggregate is sent again. Chosen: ten times on average; beyond that no link
/// works.
const MAX_RETRY: f64 = 0.9;

params! {
    /// How a link aggregates.
    #[derive(Copy)]
    pub struct Aggregate {
        /// Most packets in an aggregate; 64 is the block acknowledgement window of 802.11n and ac.
        packets: u32 = Param::of("64", "the window of a block acknowledgement (9.3.1.9)").within(Range::UpTo(65_535)),
        /// Most bytes, with headers: 65535 in 802.11n, 1048575 in 802.11ac. A first packet always fits.
        bytes: Bytes = Param::of("65535B", "the longest A-MPDU of 802.11n").within(Range::AboveZero),
        /// Longest time of its bytes at the link's rate.
        airtime: Span = Param::of("4ms", "chosen; the standard allows 5.484 ms (aPPDUMaxTime)").within(Range::AboveZero),
        /// Time per aggregate: DIFS 34, half of 15 slots of 9, preamble 36 for one stream, SIFS 16, acknowledgement 32
        /// us.
        overhead: Span = Param::of("186us", "the mean backoff, and a block acknowledgement of 32 bytes at 24 Mb/s"),
        /// Bytes added per packet: delimiter 4, MAC header with QoS 26, LLC and SNAP 8, FCS 4.
        header: Bytes = Param::of("42B", "delimiter, MAC with QoS, LLC and SNAP, FCS"),
        /// Probability that an aggregate is sent again, each time; at most 90%.
        retry: Ratio = Param::of("0", "chosen").within(Range::FromZero),
    }
}

impl Aggregate {
    /// Reads the table under `aggregate`; `None` if it is refused.
    pub(crate) fn read(fields: &Fields<'_>, problems: &mut Problems) -> Option<Self> {
        let aggregate = fields.read(Self::from_args, 1, problems)?;
        let refused = [
            (
                "bytes",
                aggregate.bytes > MAX_BYTES,
                "no aggregate of 802.11ac has more than 1048575 bytes; write less",
            ),
            ("header", aggregate.header > MAX_HEADER, "a header has 65535 bytes at most; write less"),
            ("retry", aggregate.retry.get() > MAX_RETRY, "at most 90% are sent again; write less"),
        ];
        for (key, _, message) in refused.iter().filter(|(_, is_refused, _)| *is_refused) {
            fields.refuse(key, *message, problems);
        }
        refused.iter().all(|(_, is_refused, _)| !is_refused).then_some(aggregate)
    }

    /// The number of packets of `size` in one aggregate at `rate`.
    #[must_use]
    pub fn packets_of(&self, size: Bytes, rate: Rate) -> u64 {
        let each = (size + self.header).get().max(1);
        let by_time = rate.bytes_in(self.airtime).get() / each;
        u64::from(self.packets).min(self.bytes.get() / each).min(by_time).max(1)
    }

    /// The time of `packets` packets of `size` at `rate`, sent once.
    #[must_use]
    pub fn time(&self, packets: u64, size: Bytes, rate: Rate) -> Span {
        self.overhead + rate.time_for(Bytes::new(packets.saturating_mul((size + self.header).get())))
    }

    /// The rate that is left for packets of `size` in a queue that never empties: n l / T, less
    /// retransmissions.
    #[must_use]
    pub fn capacity(&self, size: Bytes, rate: Rate) -> Rate {
        let packets = self.packets_of(size, rate);
        let seconds = self.time(packets, size, rate).as_secs_f64() / (1.0 - self.retry.get());
        Rate::from_bit(((packets * size.bits()) as f64 / seconds) as u64)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// The scenario's links `x` and `x.back`, where `x` has these keys.
    fn load(link: &str) -> Result<[Option<Aggregate>; 2], Vec<String>> {
        let text = format!(
            "seed = 1\nstop = \"9s\"\ndefaults.link.aggregate = {{ packets = 8 }}\n\
             link.x = {{ from = \"a\", to = \"b\", rate = \"6Mbit\", delay = \"1ms\"{link} }}\n\
             flow.f = {{ from = \"a\", to = \"b\", tcp = \"rfc\" }}\n"
        );
        let suite = crate::load(&text, Path::new("x.toml"), &[], &|path| std::fs::read(path));
        let suite = suite.map_err(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        let links = &suite.points[0].scenario.links;
        Ok([links[0].aggregate, links[1].aggregate])
    }

    #[test]
    fn a_table_or_false_replaces_the_default_and_the_other_direction_has_its_own() {
        let packets = |link: &str| load(link).unwrap().map(|of| of.map(|of| of.packets));
        assert_eq!(packets(""), [Some(8), None]);
        assert_eq!(packets(", aggregate = { bytes = \"9kB\" }"), [Some(64), None]);
        assert_eq!(packets(", aggregate = false, back = { aggregate = {} }"), [None, Some(64)]);
    }

    #[test]
    fn what_no_link_can_do_is_refused_with_its_place() {
        for (table, message) in [
            (
                "packets = 0",
                "x.toml:4: link.x.aggregate.packets: `0`: a whole number must be between 1 and 65535",
            ),
            (
                "bytes = \"2MB\"",
                "x.toml:4: link.x.aggregate.bytes: no aggregate of 802.11ac has more than 1048575 bytes",
            ),
            ("header = \"70kB\"", "link.x.aggregate.header: a header has 65535 bytes at most"),
            ("retry = \"95%\"", "link.x.aggregate.retry: at most 90% are sent again"),
            ("airtime = \"0s\"", "link.x.aggregate.airtime: `0s`: "),
            ("packet = 5", "link.x.aggregate.packet: unknown key (did you mean `packets`?)"),
        ] {
            let problems = load(&format!(", aggregate = {{ {table} }}")).unwrap_err();
            assert!(problems.len() == 1 && problems[0].contains(message), "{message} in {problems:?}");
        }
    }

    #[test]
    fn each_limit_holds_and_one_packet_goes_in_any_case() {
        let all = Aggregate {
            packets: 64,
            bytes: Bytes::new(65_535),
            airtime: Span::from_millis(4),
            overhead: Span::from_micros(186),
            header: Bytes::new(42),
            retry: Ratio::ZERO,
        };
        let packets = |of: Aggregate, size, mbit| of.packets_of(Bytes::new(size), Rate::from_mbit(mbit));
        // 1542 bytes 42 times are 64,764; 4 ms at 65 Mb/s are 32,500 bytes; 200 bytes 64 times are 12,800.
        assert_eq!((packets(all, 1_500, 300), packets(all, 1_500, 65), packets(all, 158, 300)), (42, 21, 64));
        assert_eq!(packets(Aggregate { airtime: Span::from_micros(1), ..all }, 1_500, 6), 1);
        // 21 packets: 186 us and 259,056 bit at 65 Mb/s, 3985.5 us: 252,000 bit in 4171.5 us.
        let capacity = all.capacity(Bytes::new(1_500), Rate::from_mbit(65)).as_mbit_f64();
        assert!((capacity - 252_000.0 / (186.0 + 259_056.0 / 65.0)).abs() < 1e-3, "{capacity}");
        let again = Aggregate { retry: Ratio::clamped(0.25), ..all };
        let less = again.capacity(Bytes::new(1_500), Rate::from_mbit(65)).as_mbit_f64();
        assert!((less / capacity - 0.75).abs() < 1e-6);
    }
}
