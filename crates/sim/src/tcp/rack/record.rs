//! The record of outstanding segments, and the detection of lost ones: RACK (RFC 8985 section 6).
//!
//! Deviations: the reordering window does not grow with spurious retransmissions (section 6.2 step 4 grows it
//! with each round of DSACKs), timestamps do not determine which transmission of a segment is acknowledged
//! (step 2), and the minimum round-trip time is that of the whole connection. Cost: 24 bytes for each
//! outstanding segment; O(log segments) to find one; every transmission is visited a constant number of times
//! until it is delivered or lost, except while segments are late and not yet lost: then with each ACK.

use std::collections::{BTreeSet, VecDeque};

use apportion_core::units::{Span, Time};

/// An outstanding segment. It begins where the previous one ends.
#[derive(Clone, Copy, Debug)]
struct Sent {
    end: u64,
    /// The time of its last transmission.
    at: Time,
    sacked: bool,
    /// Whether its last transmission is lost.
    lost: bool,
    /// Whether it was sent more than once.
    again: bool,
}

impl Sent {
    /// Whether it is neither delivered nor lost.
    const fn is_open(&self) -> bool {
        !(self.sacked || self.lost)
    }
}

/// The content of an ACK, summed over its SACK blocks and its cumulative part.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delivery {
    /// Segments newly known to have arrived.
    pub segments: u32,
    /// Number of these segments below the cumulative acknowledgment.
    pub cumulative: u32,
    /// The transmission time of the first segment that was acknowledged cumulatively and sent only once.
    first_sent: Option<Time>,
    /// The transmission time of the last such segment.
    pub last_sent: Option<Time>,
    /// The transmission time of the first segment that was selectively acknowledged and sent only once.
    first_sacked: Option<Time>,
    /// Whether any cumulatively acknowledged segment was sent more than once: the others may have arrived
    /// long ago.
    resent: bool,
    /// RACK.fack before the ACK: segments that one ACK reports have arrived in no order that it tells.
    fack: u64,
}

impl Delivery {
    /// The transmission time of the segment that gives a sample of the round-trip time (RFC 6298 section 3):
    /// no segment that was sent more than once does.
    #[must_use]
    pub fn timed(&self) -> Option<Time> {
        self.first_sent.filter(|_| !self.resent).or(self.first_sacked)
    }
}

/// The state before an ACK.
#[derive(Clone, Copy, Debug)]
pub struct Prior {
    /// Segments in flight.
    pub in_flight: u32,
    /// The segment sent last among those delivered.
    pub latest: Option<(Time, u64)>,
}

impl Prior {
    /// The state before the first ACK.
    pub const NONE: Self = Self { in_flight: 0, latest: None };
}

/// The outstanding segments of a sender. State as in RFC 8985 section 5.2.
#[derive(Clone, Debug)]
pub struct Record {
    /// Segments in order of sequence, from SND.UNA to SND.NXT.
    sent: VecDeque<Sent>,
    /// Ends and times of retransmissions, in order of time.
    again: VecDeque<(u64, Time)>,
    /// Ends of lost segments that have not been sent again.
    lost: BTreeSet<u64>,
    /// The offset up to which first transmissions are known to be delivered or lost.
    judged: u64,
    sacked: u32,
    /// RACK.xmit_ts and RACK.end_seq: the segment sent last among those delivered.
    latest: Option<(Time, u64)>,
    /// RACK.rtt: the round-trip time of the segment delivered last.
    rtt: Span,
    min_rtt: Option<Span>,
    /// RACK.fack: the highest offset delivered.
    fack: u64,
    /// RACK.reordering_seen: the largest distance in bytes by which a segment arrived late; 0 if none did.
    reordering: u64,
}

impl Record {
    /// A record without segments.
    pub const EMPTY: Self = Self {
        sent: VecDeque::new(),
        again: VecDeque::new(),
        lost: BTreeSet::new(),
        judged: 0,
        sacked: 0,
        latest: None,
        rtt: Span::ZERO,
        min_rtt: None,
        fack: 0,
        reordering: 0,
    };

    /// A delivery by an ACK of which nothing is recorded yet.
    #[must_use]
    pub fn delivery(&self) -> Delivery {
        Delivery { fack: self.fack, ..Delivery::default() }
    }

    /// Segments in flight: sent, not delivered and not lost.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.outstanding() - self.sacked - self.lost.len() as u32
    }

    /// Segments above the cumulative acknowledgment.
    #[must_use]
    pub fn outstanding(&self) -> u32 {
        self.sent.len() as u32
    }

    /// Whether a segment above the first missing one has arrived.
    #[must_use]
    pub const fn has_sacked(&self) -> bool {
        self.sacked > 0
    }

    /// Whether a lost segment waits to be sent again.
    #[must_use]
    pub fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// Whether `delivery` reports a segment by SACK that was sent before the last transmission of the first
    /// outstanding one.
    #[must_use]
    pub fn reports_older(&self, delivery: &Delivery) -> bool {
        self.sent.front().zip(delivery.first_sacked).is_some_and(|(first, sacked)| sacked < first.at)
    }

    /// The transmission time of the segment sent last among those delivered, and its end.
    #[must_use]
    pub const fn latest(&self) -> Option<(Time, u64)> {
        self.latest
    }

    /// The state before an arriving ACK.
    #[must_use]
    pub fn prior(&self) -> Prior {
        Prior { in_flight: self.in_flight(), latest: self.latest }
    }

    /// The largest distance in bytes by which a segment arrived late, or 0.
    #[must_use]
    pub const fn reordering(&self) -> u64 {
        self.reordering
    }

    /// The minimum round-trip time so far.
    #[must_use]
    pub const fn min_rtt(&self) -> Option<Span> {
        self.min_rtt
    }

    /// The number of segments that SACK reports, and of retransmissions in flight.
    #[must_use]
    pub fn marked(&self) -> (u32, u32) {
        let again = self.sent.iter().filter(|segment| segment.again && segment.is_open()).count();
        (self.sacked, again as u32)
    }

    /// The ends of lost segments that wait to be sent again.
    pub fn lost(&self) -> impl Iterator<Item = u64> {
        self.lost.iter().copied()
    }

    /// The range of the first segment that waits to be sent again, if `una` is the first outstanding offset.
    #[must_use]
    pub fn first_lost(&self, una: u64) -> Option<(u64, u64)> {
        self.lost.first().map(|&end| self.bounds(una, self.find(end - 1)))
    }

    /// The range of the last segment sent.
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

    /// Notes that SACK reports `from..to` for the first time. Counts the segments that it covers in full.
    pub fn sack(&mut self, now: Time, una: u64, from: u64, to: u64, delivery: &mut Delivery) {
        let first = self.find(from);
        let (mut at, start) = (first, self.bounds(una, first).0);
        if start < from {
            at += 1;
        }
        let mut start = start.max(from);
        while let Some(&segment) = self.sent.get(at).filter(|segment| segment.end <= to) {
            if !segment.sacked {
                self.sent[at].sacked = true;
                self.sacked += 1;
                if !segment.again {
                    delivery.first_sacked.get_or_insert(segment.at);
                }
                self.deliver(now, start, segment, delivery);
            }
            start = segment.end;
            at += 1;
        }
    }

    /// Notes that everything from `una` to `ack` has arrived.
    pub fn acknowledge(&mut self, now: Time, una: u64, ack: u64, delivery: &mut Delivery) {
        let mut start = una;
        while let Some(&segment) = self.sent.front().filter(|segment| segment.end <= ack) {
            self.sent.pop_front();
            delivery.cumulative += 1;
            let from = start;
            start = segment.end;
            if segment.sacked {
                self.sacked -= 1;
                continue;
            }
            if !segment.again {
                delivery.first_sent.get_or_insert(segment.at);
                delivery.last_sent = Some(segment.at);
            }
            delivery.resent |= segment.again;
            self.deliver(now, from, segment, delivery);
        }
    }

    /// RFC 8985 section 6.2 steps 1 to 3, for one arriving segment that begins at `start`.
    fn deliver(&mut self, now: Time, start: u64, segment: Sent, delivery: &mut Delivery) {
        delivery.segments += 1;
        if segment.lost {
            self.lost.remove(&segment.end);
        }
        // Step 3: it arrived later than one above it, and its retransmission is not the cause.
        if segment.end < delivery.fack && !segment.again {
            self.note_late(start, delivery);
        }
        self.fack = self.fack.max(segment.end);
        let rtt = now.since(segment.at);
        // Step 2: too early for the retransmission, so the ACK is for an earlier transmission.
        if segment.again && self.min_rtt.is_some_and(|min| rtt < min) {
            return;
        }
        if !segment.again {
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |min| min.min(rtt)));
        }
        self.rtt = rtt;
        if self.latest.is_none_or(|latest| latest < (segment.at, segment.end)) {
            self.latest = Some((segment.at, segment.end));
        }
    }

    /// Notes that the ACK of `delivery` shows a first transmission that arrived late, of the segment at `start`.
    pub fn note_late(&mut self, start: u64, delivery: &Delivery) {
        self.reordering = self.reordering.max(delivery.fack.saturating_sub(start));
    }

    /// Marks segments that RACK presumes lost (RFC 8985 section 6.2 steps 4 and 5). Returns the number of
    /// these transmissions, the number of retransmissions among them, and the time of the next check if
    /// nothing arrives: the time at which late segments are lost.
    pub fn detect(&mut self, now: Time, window: Span) -> Losses {
        let mut losses = Losses::default();
        let Some(latest) = self.latest else { return losses };
        let patience = self.rtt + window;
        let mut waits = false;
        let mut index = self.find(self.judged);
        while let Some(segment) = self.sent.get_mut(index) {
            // Retransmissions are judged in the order of their times.
            if segment.is_open() && !segment.again {
                if latest <= (segment.at, segment.end) {
                    break;
                }
                waits = segment.at + patience > now;
                if waits {
                    break;
                }
                segment.lost = true;
                self.lost.insert(segment.end);
                losses.segments += 1;
            }
            self.judged = segment.end;
            index += 1;
        }
        while let Some(&(end, at)) = self.again.front() {
            if let Some(index) = self.sent_again(end, at) {
                if latest <= (at, end) {
                    break;
                }
                if at + patience > now {
                    waits = true;
                    break;
                }
                self.sent[index].lost = true;
                self.lost.insert(end);
                losses.segments += 1;
                losses.again += 1;
            }
            self.again.pop_front();
        }
        losses.next = waits.then(|| self.last_late(latest)).flatten().map(|at| at + patience);
        losses
    }

    /// The index of the segment that ends at `end`, if its last transmission was a retransmission at `at` and
    /// is neither delivered nor lost.
    fn sent_again(&self, end: u64, at: Time) -> Option<usize> {
        let index = self.find(end - 1);
        let segment = self.sent.get(index)?;
        (segment.end == end && segment.at == at && segment.is_open()).then_some(index)
    }

    /// The time of the last transmission that is neither delivered nor lost, while `latest`, made after it,
    /// is delivered.
    fn last_late(&self, latest: (Time, u64)) -> Option<Time> {
        let first = self.sent.range(self.find(self.judged)..);
        let first = first.filter(|segment| segment.is_open() && !segment.again);
        let first = first.map(|segment| (segment.at, segment.end)).take_while(|&sent| sent < latest).last();
        let again = self.again.iter().map(|&(end, at)| (at, end)).take_while(|&sent| sent < latest);
        let again = again.filter(|&(at, end)| self.sent_again(end, at).is_some()).last();
        first.max(again).map(|(at, _)| at)
    }

    /// RFC 8985 section 6.2 step 4: the tolerated delay of a segment, within recovery or outside.
    #[must_use]
    pub fn reordering_window(&self, recovers: bool, dupack_threshold: u32, srtt: Span) -> Span {
        if self.reordering == 0 && (recovers || self.sacked >= dupack_threshold) {
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

    /// Notes that nothing was lost: segments that were sent once and presumed lost may still arrive.
    pub fn forget_losses(&mut self) {
        for segment in self.sent.iter_mut().filter(|segment| segment.lost && !segment.again) {
            segment.lost = false;
            self.lost.remove(&segment.end);
        }
        self.judged = 0;
    }

    /// The index of the segment that contains `offset`.
    #[inline]
    fn find(&self, offset: u64) -> usize {
        // While nothing is missing it is the first.
        if self.sent.front().is_some_and(|first| first.end > offset) {
            return 0;
        }
        self.sent.partition_point(|segment| segment.end <= offset)
    }

    fn bounds(&self, una: u64, index: usize) -> (u64, u64) {
        let start =
            index.checked_sub(1).and_then(|before| self.sent.get(before)).map_or(una, |before| before.end);
        (start.max(una), self.sent.get(index).map_or(start, |segment| segment.end))
    }
}

/// The result of a check for losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Transmissions newly presumed lost.
    pub segments: u32,
    /// Number of these transmissions that were retransmissions.
    pub again: u32,
    /// The time at which a segment that is late by now is lost.
    pub next: Option<Time>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    /// A record of segments of 100 bytes sent at these milliseconds.
    fn sent(times: &[u64]) -> Record {
        let mut record = Record::EMPTY;
        for (&time, end) in times.iter().zip((100..).step_by(100)) {
            record.send_new(at(time), end);
        }
        record
    }

    #[test]
    fn all_that_is_late_is_lost_at_once() {
        let mut record = sent(&[0, 5, 10, 12]);
        record.sack(at(50), 0, 200, 300, &mut Delivery::default());
        // The third took 40 ms. With 20 ms of grace the first is late at 60 ms and the second at 65; the
        // fourth was sent later than the arrived one.
        let window = Span::from_millis(20);
        let losses = record.detect(at(50), window);
        assert_eq!(losses, Losses { segments: 0, again: 0, next: Some(at(65)) });
        assert_eq!(record.detect(at(65), window), Losses { segments: 2, again: 0, next: None });
        // The first again, and new data: the late one is then the retransmission.
        record.send_again(at(70), 100);
        record.send_new(at(71), 500);
        record.sack(at(111), 0, 400, 500, &mut Delivery::default());
        let losses = record.detect(at(111), window);
        assert_eq!((losses.segments, losses.next), (1, Some(at(130))), "the fourth is lost");
        assert_eq!(record.detect(at(130), window), Losses { segments: 1, again: 1, next: None });
    }

    #[test]
    fn the_segment_delivered_last_gives_the_round_trip_time() {
        let mut record = sent(&[0, 5, 10, 12]);
        record.sack(at(50), 0, 300, 400, &mut record.delivery());
        record.acknowledge(at(60), 0, 100, &mut record.delivery());
        // The first took 60 ms, though the fourth was sent after it.
        assert_eq!(record.detect(at(60), Span::from_millis(20)).next, Some(at(90)));
    }

    #[test]
    fn segments_that_one_ack_reports_are_not_reordered() {
        let mut record = sent(&[0, 1, 2, 3]);
        let mut delivery = record.delivery();
        record.sack(at(50), 0, 300, 400, &mut delivery);
        record.sack(at(50), 0, 100, 200, &mut delivery);
        assert_eq!(record.reordering(), 0);
        record.sack(at(51), 0, 200, 300, &mut record.delivery());
        assert_eq!(record.reordering(), 200, "a second ACK reports one below the highest");
    }
}
