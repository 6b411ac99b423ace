//! Counters and backlogs of the classes of a queue discipline.
//!
//! Source: gen_stats.h and rtnetlink.h of the kernel's interface; `tc -s class show` prints the same numbers.

use netlink_packet_core::NlasIterator;

/// `TCA_STATS2`; within it `TCA_STATS_BASIC`, `TCA_STATS_QUEUE` and `TCA_STATS_PKT64`.
const STATS: u16 = 7;
const BASIC: u16 = 1;
const QUEUE: u16 = 3;
const PACKETS: u16 = 8;
/// Bytes of `struct tcmsg`.
const HEADER: usize = 20;

/// Counters of a class since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassStatistics {
    /// The number of its queue discipline.
    pub major: u16,
    /// The number of the class within it.
    pub minor: u16,
    /// Bytes of frames sent.
    pub bytes: u64,
    /// Frames sent; a super-packet counts as its segments.
    pub packets: u64,
    /// Frames dropped because the queue was full. The kernel counts them in 32 bits.
    pub drops: u64,
    /// Bytes that wait.
    pub backlog_bytes: u32,
    /// Frames that wait.
    pub backlog_packets: u32,
}

impl ClassStatistics {
    /// Parses a message about a class: a header, attributes.
    pub(super) fn read(payload: &[u8]) -> Result<Self, &'static str> {
        let handle = payload.get(8..HEADER).and_then(|rest| rest.first_chunk().copied());
        let handle = handle.map(u32::from_ne_bytes).ok_or("a class is cut short")?;
        let mut statistics = Self { major: (handle >> 16) as u16, minor: handle as u16, ..Self::default() };
        let attributes = payload.get(HEADER..).unwrap_or_default();
        let Some(all) = NlasIterator::new(&attributes).map_while(Result::ok).find(|one| one.kind() == STATS)
        else {
            return Ok(statistics);
        };
        for counters in NlasIterator::new(&all.value()).map_while(Result::ok) {
            statistics.take(counters.kind(), counters.value());
        }
        Ok(statistics)
    }

    /// struct gnet_stats_basic, struct gnet_stats_queue, or a number of 64 bits.
    fn take(&mut self, kind: u16, value: &[u8]) {
        let word = |at: usize| value.get(4 * at..)?.first_chunk().copied().map(u32::from_ne_bytes);
        let double = || value.first_chunk().copied().map(u64::from_ne_bytes);
        match kind {
            BASIC => {
                self.bytes = double().unwrap_or(0);
                // PKT64 holds them as well if they need more bits, and comes later.
                self.packets = word(2).unwrap_or(0).into();
            }
            QUEUE => {
                let [packets, bytes, drops] = [0, 1, 2].map(|at| word(at).unwrap_or(0));
                (self.backlog_packets, self.backlog_bytes, self.drops) = (packets, bytes, drops.into());
            }
            PACKETS => self.packets = double().unwrap_or(self.packets),
            _ => (),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let length = 4 + value.len() as u16;
        let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    /// A class 8400:3 with these counters.
    fn class(counters: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 8];
        bytes.extend(0x8400_0003_u32.to_ne_bytes());
        bytes.extend([0; 8]);
        bytes.extend(attribute(1, b"htb\0"));
        bytes.extend(attribute(STATS, counters));
        bytes
    }

    #[test]
    fn counters_of_a_class_are_read() {
        let basic = [&5_000_000_000_u64.to_ne_bytes()[..], &7_u32.to_ne_bytes(), &[0; 4]].concat();
        let queue = [2_u32, 3_000, 4, 0, 9].map(u32::to_ne_bytes).concat();
        let counters = [attribute(BASIC, &basic), attribute(QUEUE, &queue)].concat();
        let expected = ClassStatistics {
            major: 0x8400,
            minor: 3,
            bytes: 5_000_000_000,
            packets: 7,
            drops: 4,
            backlog_bytes: 3_000,
            backlog_packets: 2,
        };
        assert_eq!(ClassStatistics::read(&class(&counters)), Ok(expected));
        let many = [counters, attribute(PACKETS, &5_000_000_007_u64.to_ne_bytes())].concat();
        let expected = ClassStatistics { packets: 5_000_000_007, ..expected };
        assert_eq!(ClassStatistics::read(&class(&many)), Ok(expected));
    }

    #[test]
    fn a_class_that_is_cut_short_is_refused_and_lacking_counters_are_0() {
        assert!(ClassStatistics::read(&[0; 19]).is_err());
        let without = ClassStatistics { major: 0x8400, minor: 3, ..ClassStatistics::default() };
        assert_eq!(ClassStatistics::read(&class(&[])), Ok(without));
        assert_eq!(ClassStatistics::read(&class(&attribute(QUEUE, &[1, 0]))), Ok(without));
    }
}
