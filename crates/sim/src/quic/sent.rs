//! Packets that were sent: which of them are acknowledged, and which are lost (RFC 9002 sections 6.1 and 7.6, appendix A).
//!
//! Packets that are lost stay known for some time, so that one that arrives late after all is not sent again (appendix A.1). Cost: 40
//! bytes for each outstanding packet and a share of a tree's node; O(log packets) for each that is acknowledged or lost.

use std::collections::BTreeMap;

use apportion_core::units::{Span, Time};

/// What is known of a packet (RFC 9002 appendix A.1.1). All of them elicit acknowledgments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// When it was sent.
    pub at: Time,
    /// Bytes that it counts in flight.
    pub size: u64,
    /// The bytes of the stream in it: from, and up to.
    pub data: (u64, u64),
}

/// A packet with its number.
pub type Numbered = (u64, Sent);

/// The packets of a connection after its handshake.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// Neither acknowledged nor lost.
    sent: BTreeMap<u64, Sent>,
    /// Lost.
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

    /// All packets before this one are acknowledged or lost.
    #[must_use]
    pub fn first_outstanding(&self) -> u64 {
        self.sent.first_key_value().map_or(self.next, |(&number, _)| number)
    }

    /// When the last packet was sent.
    #[must_use]
    pub const fn last_sent(&self) -> Option<Time> {
        self.last
    }

    /// When a packet that is late becomes lost, if none is acknowledged before.
    #[must_use]
    pub const fn loss_time(&self) -> Option<Time> {
        self.loss_time
    }

    /// Those in flight, the oldest first.
    pub fn outstanding(&self) -> impl Iterator<Item = &Sent> {
        self.sent.values()
    }

    /// Those of `range` that no acknowledgment named before and that are not lost.
    pub fn unacknowledged(&self, range: std::ops::Range<u64>) -> impl Iterator<Item = &Sent> {
        self.sent.range(range).map(|(_, sent)| sent)
    }

    /// A packet leaves. Returns its number.
    pub fn send(&mut self, sent: Sent) -> u64 {
        let number = self.next;
        self.next += 1;
        self.bytes_in_flight += sent.size;
        self.last = Some(sent.at);
        self.sent.insert(number, sent);
        number
    }

    /// Packets `range` are acknowledged. Adds those that are so for the first time to `acked`, and those that were taken for
    /// lost to `late`.
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

    /// Adds to `lost` what is lost by now (appendix A.10): more than `threshold` packets before one that is acknowledged, or sent
    /// `loss_delay` ago and before one.
    pub fn detect(&mut self, now: Time, threshold: u32, loss_delay: Span, lost: &mut Vec<Numbered>) {
        self.loss_time = None;
        let Some(largest) = self.largest_acked else { return };
        while let Some((&number, &sent)) = self.sent.range(..=largest).next() {
            let lost_at = sent.at + loss_delay;
            if lost_at > now && largest - number < u64::from(threshold) {
                // Those behind it were sent later.
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

    /// Forgets what was lost and sent before `time`.
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
