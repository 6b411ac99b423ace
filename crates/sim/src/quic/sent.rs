//! Sent packets: which of them are acknowledged, and which are lost (RFC 9002 sections 6.1 and 7.6, appendix
//! A).
//!
//! Lost packets stay known for some time, so that a late one is not sent again (appendix A.1). Cost: 40 bytes
//! for each outstanding packet and a share of a tree's node; O(log packets) for each that is acknowledged or
//! lost.

use std::collections::BTreeMap;

use apportion_core::units::{Span, Time};

/// The record of a packet (RFC 9002 appendix A.1.1). All packets elicit acknowledgments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The transmission time.
    pub at: Time,
    /// The bytes that count as in flight.
    pub size: u64,
    /// The range of the stream in it, its end excluded.
    pub data: (u64, u64),
}

/// A packet with its number.
pub type Numbered = (u64, Sent);

/// The packets of a connection after its handshake.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// Packets that are neither acknowledged nor lost.
    sent: BTreeMap<u64, Sent>,
    /// Lost packets.
    lost: BTreeMap<u64, Sent>,
    next: u64,
    bytes_in_flight: u64,
    largest_acked: Option<u64>,
    loss_time: Option<Time>,
    last: Option<Time>,
}

impl Record {
    /// The number of the next packet. Numbers never repeat.
    #[must_use]
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// Bytes in flight.
    #[must_use]
    pub const fn bytes_in_flight(&self) -> u64 {
        self.bytes_in_flight
    }

    /// Packets in flight.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.sent.len() as u32
    }

    /// The first packet that is neither acknowledged nor lost.
    #[must_use]
    pub fn first_outstanding(&self) -> u64 {
        self.sent.first_key_value().map_or(self.next, |(&number, _)| number)
    }

    /// The transmission time of the last packet.
    #[must_use]
    pub const fn last_sent(&self) -> Option<Time> {
        self.last
    }

    /// The time at which a late packet becomes lost, if none is acknowledged before.
    #[must_use]
    pub const fn loss_time(&self) -> Option<Time> {
        self.loss_time
    }

    /// The packets in flight, the oldest first.
    pub fn outstanding(&self) -> impl Iterator<Item = &Sent> {
        self.sent.values()
    }

    /// The packets of `range` that no acknowledgment has named and that are not lost.
    pub fn unacknowledged(&self, range: std::ops::Range<u64>) -> impl Iterator<Item = &Sent> {
        self.sent.range(range).map(|(_, sent)| sent)
    }

    /// Records a packet that leaves. Returns its number.
    pub fn send(&mut self, sent: Sent) -> u64 {
        let number = self.next;
        self.next += 1;
        self.bytes_in_flight += sent.size;
        self.last = Some(sent.at);
        self.sent.insert(number, sent);
        number
    }

    /// Notes that the packets `range` are acknowledged. Adds newly acknowledged ones to `acked`, and those
    /// that were presumed lost to `late`.
    pub fn acknowledge(
        &mut self,
        range: std::ops::Range<u64>,
        acked: &mut Vec<Numbered>,
        late: &mut Vec<Numbered>,
    ) {
        if range.is_empty() {
            return;
        }
        self.largest_acked = self.largest_acked.max(Some(range.end - 1));
        take(&mut self.sent, range.clone(), acked, &mut |sent| self.bytes_in_flight -= sent.size);
        if !self.lost.is_empty() {
            take(&mut self.lost, range, late, &mut |_| ());
        }
    }

    /// Adds packets to `lost` that are lost by now (appendix A.10): more than `threshold` packets before an
    /// acknowledged one, or sent `loss_delay` ago and before an acknowledged one.
    pub fn detect(&mut self, now: Time, threshold: u32, loss_delay: Span, lost: &mut Vec<Numbered>) {
        self.loss_time = None;
        let Some(largest) = self.largest_acked else { return };
        while let Some((&number, &sent)) = self.sent.range(..=largest).next() {
            let lost_at = sent.at + loss_delay;
            if lost_at > now && largest - number < u64::from(threshold) {
                // Packets behind it were sent later.
                self.loss_time = Some(lost_at);
                break;
            }
            self.sent.remove(&number);
            self.bytes_in_flight -= sent.size;
            self.lost.insert(number, sent);
            lost.push((number, sent));
        }
    }

    /// Section 7.6: whether two of `lost`, in order, sent after `since`, are more than `duration` apart and none between them
    /// is acknowledged.
    #[must_use]
    pub fn is_persistent(&self, lost: &[Numbered], duration: Span, since: Time) -> bool {
        let mut first: Option<Numbered> = None;
        let mut before = 0;
        for &(number, sent) in lost.iter().filter(|(_, sent)| sent.at > since) {
            let unbroken =
                first.is_some() && (before + 1..number).all(|between| self.lost.contains_key(&between));
            let from = first.filter(|_| unbroken).unwrap_or((number, sent));
            if sent.at.since(from.1.at) > duration {
                return true;
            }
            (first, before) = (Some(from), number);
        }
        false
    }

    /// Forgets lost packets that were sent before `time`.
    pub fn forget_lost(&mut self, time: Time) {
        while self.lost.first_key_value().is_some_and(|(_, sent)| sent.at < time) {
            self.lost.pop_first();
        }
    }
}

/// Moves `range` of `from` to `to`.
fn take(
    from: &mut BTreeMap<u64, Sent>,
    range: std::ops::Range<u64>,
    to: &mut Vec<Numbered>,
    each: &mut dyn FnMut(&Sent),
) {
    while let Some((&number, _)) = from.range(range.clone()).next()
        && let Some(sent) = from.remove(&number)
    {
        each(&sent);
        to.push((number, sent));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_takes_40_bytes() {
        assert_eq!(size_of::<Numbered>(), 40);
    }
}
