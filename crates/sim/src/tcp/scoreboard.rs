//! The ranges that the receiver has reported by SACK, sorted, with the queries of RFC 6675.
//!
//! Cost: O(ranges) per ACK while data is missing, nothing otherwise. There are at most as many ranges as
//! losses in a window, and never more than [`MAX_RANGES`]: SACK is advice (RFC 2018 section 8), so the rest
//! may be ignored.

/// The maximum number of ranges. Chosen: no recovery could repair 1024 holes in one window before a timeout.
pub const MAX_RANGES: usize = 1024;

/// Ranges above the cumulative ACK that have arrived, as offsets, their ends excluded.
#[derive(Clone, Debug, Default)]
pub struct Scoreboard {
    /// Sorted, disjoint, not adjacent.
    ranges: Vec<(u64, u64)>,
}

/// Adds a range to at most `most` that are sorted, disjoint and not adjacent. Returns whether any of it is new.
pub(crate) fn merge(ranges: &mut Vec<(u64, u64)>, (from, to): (u64, u64), most: usize) -> bool {
    // Ranges that touch the new one: `first..last`.
    let first = ranges.partition_point(|&(_, end)| end < from);
    let last = ranges.partition_point(|&(start, _)| start <= to);
    if first == last {
        let fits = ranges.len() < most;
        if fits {
            ranges.insert(first, (from, to));
        }
        return fits;
    }
    let merged = (from.min(ranges[first].0), to.max(ranges[last - 1].1));
    let news = last - first > 1 || merged != ranges[first];
    ranges[first] = merged;
    ranges.drain(first + 1..last);
    news
}

impl Scoreboard {
    /// A scoreboard without reports.
    #[must_use]
    pub const fn new() -> Self {
        Self { ranges: Vec::new() }
    }

    /// Whether nothing above the cumulative ACK is known to have arrived.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Removes all ranges.
    pub fn clear(&mut self) {
        self.ranges.clear();
    }

    /// Records that `from..to` has arrived. Returns whether any of it is new.
    pub fn add(&mut self, from: u64, to: u64) -> bool {
        self.add_within(from, to, MAX_RANGES)
    }

    /// Adds a range as [`add`](Self::add) does, with at most `most` ranges.
    pub fn add_within(&mut self, from: u64, to: u64, most: usize) -> bool {
        from < to && merge(&mut self.ranges, (from, to), most)
    }

    /// Removes everything below the cumulative ACK.
    pub fn acknowledge(&mut self, una: u64) {
        if self.ranges.first().is_none_or(|&(start, _)| start >= una) {
            return;
        }
        let gone = self.ranges.partition_point(|&(_, end)| end <= una);
        self.ranges.drain(..gone);
        if let Some(first) = self.ranges.first_mut() {
            first.0 = first.0.max(una);
        }
    }

    /// The end of the highest range.
    #[must_use]
    pub fn highest(&self) -> Option<u64> {
        self.ranges.last().map(|&(_, end)| end)
    }

    /// The offset of the first unreported byte at or after `offset`.
    #[must_use]
    pub fn first_missing(&self, offset: u64) -> u64 {
        let at = self.ranges.partition_point(|&(_, end)| end <= offset);
        match self.ranges.get(at) {
            Some(&(start, end)) if start <= offset => end,
            _ => offset,
        }
    }

    /// The beginning of the first range after `offset`.
    #[must_use]
    pub fn next_range(&self, offset: u64) -> Option<u64> {
        let at = self.ranges.partition_point(|&(start, _)| start <= offset);
        self.ranges.get(at).map(|&(start, _)| start)
    }

    /// The parts of `from..to` that are not reported, in order.
    pub fn missing_in(&self, from: u64, to: u64) -> impl Iterator<Item = (u64, u64)> {
        let mut at = from;
        let reported = self.ranges.partition_point(|&(_, end)| end <= from);
        let reported = self.ranges[reported..].iter().copied().take_while(move |&(start, _)| start < to);
        reported.chain([(to, to)]).filter_map(move |(start, end)| {
            let hole = (at, start);
            at = at.max(end);
            (hole.0 < hole.1).then_some(hole)
        })
    }

    /// Bytes of `from..to` that are reported.
    #[must_use]
    pub fn sacked_in(&self, from: u64, to: u64) -> u64 {
        let overlap = |&(start, end): &(u64, u64)| end.min(to).saturating_sub(start.max(from));
        self.ranges.iter().map(overlap).sum()
    }

    /// The offset below which unreported bytes are lost (RFC 6675 section 4, IsLost): `dupthresh` ranges
    /// above them, or more than `dupthresh - 1` segments' worth of bytes. Zero if none are.
    #[must_use]
    pub fn lost_below(&self, segment: u64, dupthresh: u32) -> u64 {
        let (mut count, mut bytes) = (0, 0);
        for &(start, end) in self.ranges.iter().rev() {
            count += 1;
            bytes += end - start;
            if count >= dupthresh || bytes > u64::from(dupthresh - 1) * segment {
                return start;
            }
        }
        0
    }

    /// The estimate of bytes in the network (RFC 6675 section 4, SetPipe).
    ///
    /// `sent` is the end of all data ever sent; everything unreported below `high_rxt` has been sent again.
    #[must_use]
    pub fn pipe(&self, una: u64, sent: u64, high_rxt: u64, lost_below: u64) -> u64 {
        let missing = |from: u64, to: u64| to.saturating_sub(from) - self.sacked_in(from, to.max(from));
        missing(lost_below.max(una), sent) + missing(una, high_rxt)
    }
}

#[cfg(test)]
mod tests {
    use apportion_testing::properties::cases;
    use proptest::prelude::*;

    use super::*;

    fn board(ranges: &[(u64, u64)]) -> Scoreboard {
        let mut board = Scoreboard::new();
        for &(from, to) in ranges {
            board.add(from, to);
        }
        board
    }

    #[test]
    fn a_gap_is_lost_below_three_ranges_or_more_than_two_segments() {
        // Segments of 10 bytes. Two ranges of one segment each: not yet.
        assert_eq!(board(&[(20, 30), (40, 50)]).lost_below(10, 3), 0);
        // Three ranges: everything below the lowest of them is lost.
        assert_eq!(board(&[(20, 30), (40, 50), (60, 70)]).lost_below(10, 3), 20);
        // Two segments are not more than two; three are.
        assert_eq!(board(&[(20, 40)]).lost_below(10, 3), 0);
        assert_eq!(board(&[(20, 50)]).lost_below(10, 3), 20);
        // The gap between the ranges has only 20 bytes above it.
        assert_eq!(board(&[(20, 30), (40, 60)]).lost_below(10, 3), 20);
    }

    #[test]
    fn the_pipe_leaves_out_what_is_lost_and_counts_what_was_sent_again() {
        // una 10, sent up to 100; 20..50 and 60..70 have arrived: 10..20 and 50..60 and 70..100 are missing.
        let board = board(&[(20, 50), (60, 70)]);
        let lost = board.lost_below(10, 3);
        assert_eq!(lost, 20);
        // 50..60 and 70..100 in flight, 10..20 lost.
        assert_eq!(board.pipe(10, 100, 10, lost), 40);
        // 10..20 sent again.
        assert_eq!(board.pipe(10, 100, 20, lost), 50);
    }

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn ranges_are_the_union_of_what_was_added(
            added in proptest::collection::vec((0..60_u64, 1..12_u64), 1..30), una in 0..70_u64
        ) {
            let mut board = Scoreboard::new();
            let mut bytes = [false; 80];
            for (from, len) in added {
                let range = from as usize..(from + len) as usize;
                let news = bytes[range.clone()].contains(&false);
                prop_assert_eq!(board.add(from, from + len), news);
                bytes[range].fill(true);
            }
            board.acknowledge(una);
            bytes[..una as usize].fill(false);
            for offset in 0..70 {
                prop_assert_eq!(board.sacked_in(offset, offset + 1) == 1, bytes[offset as usize]);
                let missing = (offset as usize..80).find(|&at| !bytes[at]).map(|at| at as u64);
                prop_assert_eq!(Some(board.first_missing(offset)), missing);
            }
            for pair in board.ranges.windows(2) {
                prop_assert!(pair[0].1 < pair[1].0);
            }
        }
    }
}
