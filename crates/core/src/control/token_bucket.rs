//! Token bucket: a shaper that limits the output of any discipline to a sustained rate, with bursts of a
//! bounded size.
//!
//! The bucket of Turner, "New directions in communications", IEEE Communications 24(10), 1986: tokens come in
//! at `rate` up to `burst`, and a packet leaves when there are tokens for all of it. With `peak`, a second,
//! small bucket bounds how close the packets of a burst may follow each other.
//!
//! - Exact: a token is a bit-nanosecond per second (10^-9 bit), so a rate times a time is a whole number of
//!   tokens, and the remainder of every departure that is rounded up to a nanosecond is kept. The long-term
//!   rate has no error.
//! - A packet larger than the bucket waits for a full one and leaves it in debt, so the rate holds for such
//!   packets too.
//! - The next packet is taken from the discipline to learn its size, and held back: it counts in the backlog,
//!   but the discipline's limit and drops no longer apply to it, like a packet in transmission.
//!
//! Cost: O(1) per packet, no state per flow. Parameters: [`ENTRY`].

use crate::packet::Packet;
use crate::param::{Entry, EntryArgs, Param, ParamError, Role, Traits, require};
use crate::params;
use crate::queue::{Backlog, Queue, Sink};
use crate::units::{Bytes, Rate, Span, Time};

/// The token bucket in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "token_bucket",
    role: Role::Shaper,
    summary: "Token bucket: shapes to a sustained rate with bursts of a bounded size.",
    reference: "Turner 1986",
    cost: "O(1) per packet, no state per flow",
    params: TokenBucketParams::PARAMS,
    traits: Traits::NONE,
};

params! {
    /// Parameters of [`TokenBucket`].
    pub struct TokenBucketParams {
        /// Sustained rate.
        rate: Rate = Param::required().symbol("r"),
        /// What may leave at once after a pause.
        burst: Bytes = Param::of("1514B", "chosen: one Ethernet frame, the smoothest").symbol("b"),
        /// Rate within a burst.
        peak: Option<Rate> = Param::unset("off unless set").symbol("p"),
        /// What may leave at once at the peak rate.
        peak_burst: Bytes = Param::of("1514B", "chosen: one Ethernet frame").symbol("M"),
    }
    check: Self::check
}

impl TokenBucketParams {
    fn check(&self, args: &EntryArgs<'_>) -> Result<(), ParamError> {
        require(self.rate > Rate::ZERO, "rate", "nothing passes at rate 0")?;
        require(self.burst > Bytes::ZERO, "burst", "nothing passes an empty bucket")?;
        require(self.peak_burst > Bytes::ZERO, "peak_burst", "nothing passes an empty bucket")?;
        require(self.peak.is_none_or(|peak| peak > self.rate), "peak", "it must be above `rate`")?;
        let unset = "it has no effect: only a `peak` has such a bucket; set that, or leave it out";
        args.refuse_idle(&[("peak_burst", self.peak.is_none(), unset)])
    }
}

/// One bucket. Tokens are 10^-9 bit; all products below fit 128 bits since each factor fits 64.
#[derive(Clone, Debug)]
struct Bucket {
    rate: Rate,
    capacity: i128,
    /// Tokens at `updated`; negative after a packet larger than the bucket.
    level: i128,
    updated: Time,
}

fn tokens(size: Bytes) -> i128 {
    i128::from(size.get()) * 8_000_000_000
}

impl Bucket {
    fn full(rate: Rate, capacity: Bytes) -> Self {
        Self { rate, capacity: tokens(capacity), level: tokens(capacity), updated: Time::ZERO }
    }

    fn fill(&mut self, now: Time) {
        let per_nano = i128::from(self.rate.as_bit());
        let came = per_nano * i128::from(now.since(self.updated).as_nanos());
        // One nanosecond's worth may exceed the capacity: the rest of a departure that was rounded up.
        self.level = (self.level + came).min(self.capacity + per_nano);
        self.updated = now;
    }

    /// The level that a packet waits for.
    fn threshold(&self, size: Bytes) -> i128 {
        tokens(size).min(self.capacity)
    }

    /// The earliest time at which a packet of `size` may leave.
    fn ready(&self, size: Bytes) -> Time {
        let missing = self.threshold(size) - self.level;
        if missing <= 0 {
            return self.updated;
        }
        let rate = i128::from(self.rate.as_bit());
        if rate == 0 {
            return Time::MAX;
        }
        let wait = (missing + rate - 1) / rate;
        self.updated + Span::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX))
    }

    fn has(&self, size: Bytes) -> bool {
        self.level >= self.threshold(size)
    }

    fn take(&mut self, size: Bytes) {
        self.level -= tokens(size);
    }
}

/// A token bucket in front of the discipline `Q`.
#[derive(Clone, Debug)]
pub struct TokenBucket<P, Q> {
    inner: Q,
    /// The next packet, while it waits for tokens.
    held: Option<P>,
    sustained: Bucket,
    peak: Option<Bucket>,
}

impl<P: Packet, Q: Queue<P>> TokenBucket<P, Q> {
    /// Puts full buckets in front of `inner`.
    pub fn new(params: &TokenBucketParams, inner: Q) -> Self {
        Self {
            inner,
            held: None,
            sustained: Bucket::full(params.rate, params.burst),
            peak: params.peak.map(|peak| Bucket::full(peak, params.peak_burst)),
        }
    }

    /// Whether its buckets have these parameters.
    #[must_use]
    pub fn has_params(&self, params: &TokenBucketParams) -> bool {
        let is = |bucket: &Bucket, rate, burst| bucket.rate == rate && bucket.capacity == tokens(burst);
        is(&self.sustained, params.rate, params.burst)
            && match (&self.peak, params.peak) {
                (Some(bucket), Some(peak)) => is(bucket, peak, params.peak_burst),
                (bucket, peak) => bucket.is_none() && peak.is_none(),
            }
    }

    /// The discipline behind it, for reading.
    pub const fn inner(&self) -> &Q {
        &self.inner
    }

    /// The discipline behind it, for changes of its settings.
    pub const fn inner_mut(&mut self) -> &mut Q {
        &mut self.inner
    }

    /// Takes out the packet that waits for tokens, without paying for it.
    pub const fn take_held(&mut self) -> Option<P> {
        self.held.take()
    }

    /// The sustained rate.
    pub const fn rate(&self) -> Rate {
        self.sustained.rate
    }

    /// Sets the sustained rate from `now` on. Earlier tokens stay.
    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        self.sustained.fill(now);
        self.sustained.rate = rate;
    }

    fn buckets(&self) -> impl Iterator<Item = &Bucket> {
        core::iter::once(&self.sustained).chain(&self.peak)
    }

    fn buckets_mut(&mut self) -> impl Iterator<Item = &mut Bucket> {
        core::iter::once(&mut self.sustained).chain(&mut self.peak)
    }
}

impl<P: Packet, Q: Queue<P>> Queue<P> for TokenBucket<P, Q> {
    fn enqueue(&mut self, now: Time, packet: P, sink: &mut dyn Sink<P>) {
        self.inner.enqueue(now, packet, sink);
    }

    fn dequeue(&mut self, now: Time, sink: &mut dyn Sink<P>) -> Option<P> {
        let packet = match self.held.take() {
            Some(packet) => packet,
            None => self.inner.dequeue(now, sink)?,
        };
        let size = packet.size();
        self.buckets_mut().for_each(|bucket| bucket.fill(now));
        if !self.buckets().all(|bucket| bucket.has(size)) {
            self.held = Some(packet);
            return None;
        }
        self.buckets_mut().for_each(|bucket| bucket.take(size));
        Some(packet)
    }

    fn next_wakeup(&self) -> Option<Time> {
        match &self.held {
            Some(packet) => self.buckets().map(|bucket| bucket.ready(packet.size())).max(),
            None => self.inner.next_wakeup(),
        }
    }

    fn backlog(&self) -> Backlog {
        let mut backlog = self.inner.backlog();
        if let Some(packet) = &self.held {
            backlog.add(packet);
        }
        backlog
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aqm::tail::{TailDrop, TailDropParams};
    use crate::buffer::Buffer;
    use crate::limit::Limit;
    use crate::packet::SimplePacket;
    use crate::schedule::fifo::Fifo;
    use crate::testing::{Log, packet};
    use crate::units::Packets;

    type Shaped = TokenBucket<SimplePacket, Buffer<Fifo<SimplePacket>, TailDrop>>;

    fn shaper(rate: Rate, burst: u64, peak: Option<Rate>) -> Shaped {
        let params = TailDropParams { limit: Some(Limit::Packets(Packets::new(100)).into()) };
        let tail = TailDrop::new(&params, Rate::from_mbit(10));
        let (burst, peak_burst) = (Bytes::new(burst), Bytes::new(1_000));
        let params = TokenBucketParams { rate, burst, peak, peak_burst };
        TokenBucket::new(&params, Buffer::new(Fifo::new(), tail))
    }

    /// Offers packets of `size` without end, asks exactly at the announced wake-ups, and returns the time of
    /// the last departure.
    fn last_departure(shaped: &mut Shaped, size: u64, packets: u32) -> Time {
        let (mut now, mut log) = (Time::ZERO, Log::default());
        let mut left = 0;
        while left < packets {
            shaped.enqueue(now, packet(left, 0, size), &mut log);
            while shaped.dequeue(now, &mut log).is_none() {
                now = shaped.next_wakeup().expect("a packet is held");
            }
            left += 1;
        }
        now
    }

    #[test]
    fn the_long_run_rate_has_no_error() {
        // 1500 B at 7 Mbit/s take 1,714,285.714… ns: rounding each up would make the millionth 0.29 s late.
        // The first packet uses the burst; the rest must take exactly the time that 999,999 packets need.
        let rate = Rate::from_mbit(7);
        for burst in [1_500, 1_600] {
            let mut shaped = shaper(rate, burst, None);
            let sent = Bytes::new(1_500 * 1_000_000 - burst);
            assert_eq!(last_departure(&mut shaped, 1_500, 1_000_000), Time::ZERO + rate.time_for(sent));
        }
    }

    #[test]
    fn a_packet_larger_than_the_bucket_goes_into_debt_at_the_same_rate() {
        // 8 kbit/s are 1000 B/s. Bucket 1000 B, packets of 3000 B: the first leaves at once and owes 2000 B;
        // the second waits for a full bucket, 3000 B = 3 s; so does the third.
        let mut shaped = shaper(Rate::from_kbit(8), 1_000, None);
        assert_eq!(last_departure(&mut shaped, 3_000, 3), Time::from_secs(6));
    }

    #[test]
    fn a_burst_passes_at_once_or_at_the_peak_rate() {
        // Ten packets of 1000 B against a bucket of 10 kB.
        let at_once = last_departure(&mut shaper(Rate::from_kbit(8), 10_000, None), 1_000, 10);
        assert_eq!(at_once, Time::ZERO);
        // At a peak of 8 Mbit/s, 1000 B take 1 ms: the first passes, nine follow.
        let peak = Some(Rate::from_mbit(8));
        let spaced = last_departure(&mut shaper(Rate::from_kbit(8), 10_000, peak), 1_000, 10);
        assert_eq!(spaced, Time::from_millis(9));
    }

    #[test]
    fn calls_before_the_time_change_nothing_and_the_held_packet_is_counted() {
        let mut shaped = shaper(Rate::from_kbit(8), 1_000, None);
        let mut log = Log::default();
        for id in 0..2 {
            shaped.enqueue(Time::ZERO, packet(id, 0, 1_000), &mut log);
        }
        assert!(shaped.dequeue(Time::ZERO, &mut log).is_some());
        for ms in (0..1_000).step_by(7) {
            assert!(shaped.dequeue(Time::from_millis(ms), &mut log).is_none());
            assert_eq!(shaped.next_wakeup(), Some(Time::from_secs(1)));
            assert_eq!(shaped.backlog().packets.get(), 1);
        }
        assert_eq!(shaped.dequeue(Time::from_secs(1), &mut log).map(|packet| packet.id), Some(1));
        assert_eq!(shaped.next_wakeup(), None);
    }

    #[test]
    fn a_new_rate_counts_from_its_own_time() {
        let mut shaped = shaper(Rate::from_kbit(8), 1_000, None);
        let mut log = Log::default();
        for id in 0..2 {
            shaped.enqueue(Time::ZERO, packet(id, 0, 1_000), &mut log);
        }
        shaped.dequeue(Time::ZERO, &mut log);
        shaped.dequeue(Time::ZERO, &mut log);
        // Half of the 1000 B at 1000 B/s, the rest at 2000 B/s: 0.5 s + 0.25 s.
        shaped.set_rate(Time::from_millis(500), Rate::from_kbit(16));
        assert_eq!(shaped.next_wakeup(), Some(Time::from_millis(750)));
    }
}
