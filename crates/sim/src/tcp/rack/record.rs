//! What is outstanding, segment by segment, and which of it is lost: RACK (RFC 8985 section 6).
//!
//! Deviations: the reordering window does not grow with spurious retransmissions (section 6.2 step 4 grows it
//! with each round of DSACKs), and the smallest round-trip time is that of the whole connection. Cost: 24 bytes
//! for each outstanding segment; O(log segments) to find one; every transmission is looked at a constant number
//! of times until it is delivered or lost.

use std::collections::{BTreeSet, VecDeque};

use apportion_core::units::{Span, Time};

/// An outstanding segment. It begins where the one before it ends.
#[derive(Clone, Copy, Debug)]
struct Sent {
    end: u64,
    /// When it was last sent.
    at: Time,
    sacked: bool,
    /// Its last transmission is lost.
    lost: bool,
    /// It was sent more than once.
    again: bool,
}

/// What an ACK reports, summed over its SACK blocks and its cumulative part.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delivery {
    /// Segments that are known to have arrived for the first time.
    pub segments: u32,
    /// Those of them below the cumulative acknowledgment.
    pub cumulative: u32,
    /// When the first segment was sent that was acknowledged cumulatively and sent only once.
    first_sent: Option<Time>,
    /// When the last of those was sent.
    pub last_sent: Option<Time>,
    /// When the first segment was sent that was selectively acknowledged and sent only once.
    first_sacked: Option<Time>,
    /// Some of what is acknowledged cumulatively was sent more than once: the rest may have arrived long ago.
    resent: bool,
}

impl Delivery {
    /// When the segment was sent that yields a sample of the round-trip time (RFC 6298 section 3): no segment
    /// that was sent more than once does.
    #[must_use]
    pub fn timed(&self) -> Option<Time> {
        self.first_sent.filter(|_| !self.resent).or(self.first_sacked)
    }
}

/// The outstanding segments of a sender. State as in RFC 8985 section 5.2.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// In order of sequence, from SND.UNA to SND.NXT.
    sent: VecDeque<Sent>,
    /// Ends and times of what was sent again, in order of time.
    again: VecDeque<(u64, Time)>,
    /// Ends of lost segments that have not been sent again.
    lost: BTreeSet<u64>,
    /// First transmissions that end at or below this offset are known to be delivered or lost.
    judged: u64,
    sacked: u32,
    /// RACK.xmit_ts and RACK.end_seq: the segment sent last of those delivered.
    latest: Option<(Time, u64)>,
    /// RACK.rtt: its round-trip time.
    rtt: Span,
    min_rtt: Option<Span>,
    /// RACK.fack: the highest offset delivered.
    fack: u64,
    reordering_seen: bool,
}

impl Record {
    /// Segments in the network: sent, not delivered and not lost.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.outstanding() - self.sacked - self.lost.len() as u32
    }

    /// Segments above the cumulative acknowledgment.
    #[must_use]
    pub fn outstanding(&self) -> u32 {
        self.sent.len() as u32
    }

    /// Whether a segment above the first that is missing has arrived.
    #[must_use]
    pub const fn has_sacked(&self) -> bool {
        self.sacked > 0
    }

    /// Whether a lost segment waits to be sent again.
    #[must_use]
    pub fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// The shortest round-trip time so far.
    #[must_use]
    pub const fn min_rtt(&self) -> Option<Span> {
        self.min_rtt
    }

    /// The first segment that waits to be sent again, from and up to, if `una` is the first offset outstanding.
    #[must_use]
    pub fn first_lost(&self, una: u64) -> Option<(u64, u64)> {
        self.lost.first().map(|&end| self.bounds(una, self.find(end - 1)))
    }

    /// The last segment sent, from and up to.
    #[must_use]
    pub fn last(&self, una: u64) -> Option<(u64, u64)> {
        self.sent.len().checked_sub(1).map(|last| self.bounds(una, last))
    }

    /// Notes that new data up to `end` were sent.
    pub fn send_new(&mut self, now: Time, end: u64) {
        self.sent.push_back(Sent { end, at: now, sacked: false, lost: false, again: false });
    }

    /// Notes that the segment that ends at `end` was sent again.
    pub fn send_again(&mut self, now: Time, end: u64) {
        let at = self.find(end - 1);
        let Some(segment) = self.sent.get_mut(at) else { return };
        let end = segment.end;
        (segment.at, segment.lost, segment.again) = (now, false, true);
        self.lost.remove(&end);
        self.again.push_back((end, now));
    }

    /// `from..to` is reported by SACK for the first time. Counts what it covers in full.
    pub fn sack(&mut self, now: Time, una: u64, from: u64, to: u64, delivery: &mut Delivery) {
        let first = self.find(from);
        let (mut at, start) = (first, self.bounds(una, first).0);
        if start < from {
            at += 1;
        }
        while let Some(&segment) = self.sent.get(at).filter(|segment| segment.end <= to) {
            if !segment.sacked {
                self.sent[at].sacked = true;
                self.sacked += 1;
                if !segment.again {
                    delivery.first_sacked.get_or_insert(segment.at);
                }
                self.deliver(now, segment, delivery);
            }
            at += 1;
        }
    }

    /// Everything below `ack` has arrived.
    pub fn acknowledge(&mut self, now: Time, ack: u64, delivery: &mut Delivery) {
        while let Some(&segment) = self.sent.front().filter(|segment| segment.end <= ack) {
            self.sent.pop_front();
            delivery.cumulative += 1;
            if segment.sacked {
                self.sacked -= 1;
                continue;
            }
            if !segment.again {
                delivery.first_sent.get_or_insert(segment.at);
                delivery.last_sent = Some(segment.at);
            }
            delivery.resent |= segment.again;
            self.deliver(now, segment, delivery);
        }
    }

    /// RFC 8985 section 6.2 steps 1 to 3, for one segment that arrives.
    fn deliver(&mut self, now: Time, segment: Sent, delivery: &mut Delivery) {
        delivery.segments += 1;
        if segment.lost {
            self.lost.remove(&segment.end);
        }
        // Step 3: it arrived later than one above it, and its retransmission is not the reason.
        self.reordering_seen |= segment.end < self.fack && !segment.again;
        self.fack = self.fack.max(segment.end);
        let rtt = now.since(segment.at);
        // Step 2: too early for the retransmission, so the ACK is for a transmission before it.
        if segment.again && self.min_rtt.is_some_and(|min| rtt < min) {
            return;
        }
        if !segment.again {
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |min| min.min(rtt)));
        }
        if self.latest.is_none_or(|latest| latest < (segment.at, segment.end)) {
            self.latest = Some((segment.at, segment.end));
            self.rtt = rtt;
        }
    }

    /// Marks what RACK takes for lost (RFC 8985 section 6.2 steps 4 and 5). Returns how many transmissions that
    /// are, how many of them were retransmissions, and when to look again if nothing arrives.
    pub fn detect(&mut self, now: Time, window: Span) -> Losses {
        let mut losses = Losses::default();
        let Some(latest) = self.latest else { return losses };
        let mut index = self.find(self.judged);
        while let Some(segment) = self.sent.get_mut(index) {
            // What was sent again is judged in the order in which that was done.
            let waits = !(segment.sacked || segment.lost || segment.again);
            if waits
                && (latest <= (segment.at, segment.end) || losses.later(segment.at + self.rtt + window, now))
            {
                break;
            }
            if waits {
                segment.lost = true;
                self.lost.insert(segment.end);
                losses.segments += 1;
            }
            self.judged = segment.end;
            index += 1;
        }
        while let Some(&(end, at)) = self.again.front() {
            let index = self.find(end - 1);
            let segment = self.sent.get_mut(index).filter(|segment| segment.end == end && segment.at == at);
            if let Some(segment) = segment.filter(|segment| !segment.sacked && !segment.lost) {
                if latest <= (at, end) || losses.later(at + self.rtt + window, now) {
                    break;
                }
                segment.lost = true;
                self.lost.insert(end);
                losses.segments += 1;
                losses.again += 1;
            }
            self.again.pop_front();
        }
        losses
    }

    /// RFC 8985 section 6.2 step 4: how long a segment may be late, if recovery is under way or not.
    #[must_use]
    pub fn reordering_window(&self, recovers: bool, dupack_threshold: u32, srtt: Span) -> Span {
        if !self.reordering_seen && (recovers || self.sacked >= dupack_threshold) {
            return Span::ZERO;
        }
        self.min_rtt.unwrap_or(srtt).div(4).min(srtt)
    }

    /// The timer of RTO expired: the first segment is lost, and each that was sent a round trip ago (RFC 8985
    /// section 6.3).
    pub fn time_out(&mut self, now: Time, window: Span) {
        let patience = self.rtt + window;
        for (index, segment) in self.sent.iter_mut().enumerate() {
            if !segment.sacked && (index == 0 || now >= segment.at + patience) {
                segment.lost = true;
                self.lost.insert(segment.end);
            }
        }
    }

    /// The index of the segment that holds `offset`.
    fn find(&self, offset: u64) -> usize {
        self.sent.partition_point(|segment| segment.end <= offset)
    }

    fn bounds(&self, una: u64, index: usize) -> (u64, u64) {
        let start =
            index.checked_sub(1).and_then(|before| self.sent.get(before)).map_or(una, |before| before.end);
        (start.max(una), self.sent.get(index).map_or(start, |segment| segment.end))
    }
}

/// What a look for losses found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Transmissions newly taken for lost.
    pub segments: u32,
    /// Those of them that were not the first of their segment.
    pub again: u32,
    /// When a segment that is late by now is lost.
    pub next: Option<Time>,
}

impl Losses {
    /// Whether a segment is not lost before `deadline`, which is still to come.
    fn later(&mut self, deadline: Time, now: Time) -> bool {
        let later = deadline > now;
        if later {
            self.next = Some(self.next.map_or(deadline, |next| next.min(deadline)));
        }
        later
    }
}
