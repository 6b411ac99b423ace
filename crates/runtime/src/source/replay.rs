//! The sizes and times of a packet capture, once, from its first packet on.
//!
//! A change of rate stretches or shrinks the gaps, so that the capture has that mean rate: its bits over the
//! offset of its last packet. Rate zero pauses the capture, which continues at the next positive rate. A
//! capture with all packets at one instant has no rate and is not stretched.
//!
//! Cost: O(1) a packet; the capture is shared.

use std::sync::Arc;

use apportion_core::units::{Bytes, Rate, Span, Time};

use super::timing::{Carry, Cursor, Write};

/// Packets as captured.
#[derive(Clone, Debug)]
pub struct Replay {
    packets: Arc<[(Span, Bytes)]>,
    /// The index of the next packet.
    next: usize,
    /// The offset of the last packet that was played.
    offset: Span,
    speed: Speed,
    carry: Carry,
    cursor: Cursor,
}

#[derive(Clone, Copy, Debug)]
enum Speed {
    AsCaptured,
    Held,
    /// Gaps take this many times as long.
    Stretched(f64),
}

impl Replay {
    pub(super) fn new(packets: Arc<[(Span, Bytes)]>, cursor: Cursor) -> Self {
        let speed = Speed::AsCaptured;
        Self { packets, next: 0, offset: Span::ZERO, speed, carry: Carry::default(), cursor }
    }

    pub(super) fn next_write(&mut self) -> Option<Write> {
        while self.packets.get(self.next)?.1 == Bytes::ZERO {
            self.next += 1;
        }
        let &(offset, size) = self.packets.get(self.next)?;
        let gap = offset.saturating_sub(self.offset);
        let gap = match self.speed {
            Speed::AsCaptured => gap,
            Speed::Held => return None,
            Speed::Stretched(factor) => self.carry.whole(gap.as_nanos() as f64 * factor),
        };
        // The first packet is at the start, whatever its own time.
        let at = self.cursor.step(gap)?;
        (self.next, self.offset) = (self.next + 1, offset);
        Some(Write { at, size })
    }

    pub(super) fn set_rate(&mut self, now: Time, rate: Rate) {
        let bits: u128 = self.packets.iter().map(|&(_, size)| u128::from(size.get()) * 8).sum();
        let length = self.packets.last().map_or(0.0, |&(offset, _)| offset.as_secs_f64());
        self.speed = match rate {
            Rate::ZERO => Speed::Held,
            _ if length > 0.0 => Speed::Stretched(bits as f64 / length / rate.as_bit() as f64),
            _ => Speed::AsCaptured,
        };
        self.cursor.changed(now);
    }
}

#[cfg(test)]
mod tests {
    use apportion_scenario::model::Source;

    use super::super::testing::{generator, millis};
    use super::*;

    /// 4 packets of 1000 B in 16 ms: 2 Mb/s.
    fn capture() -> Source {
        let at = |millis| (Span::from_millis(millis), Bytes::new(1_000));
        Source::Replay { packets: Arc::new([at(0), at(1), at(10), at(16)]) }
    }

    #[test]
    fn packets_come_as_captured_and_once() {
        let start = Time::from_millis(100);
        let stream = apportion_core::random::Stream::new(1, "source");
        let sizes: Arc<[(Span, Bytes)]> = Arc::new([
            (Span::ZERO, Bytes::new(40)),
            (Span::from_nanos(7), Bytes::ZERO),
            (Span::from_nanos(9), Bytes::new(1_500)),
        ]);
        let source = Source::Replay { packets: sizes };
        let writes: Vec<_> =
            super::super::Generator::new(&source, start, Time::from_secs(1), stream).unwrap().collect();
        let write = |ns, size| Write { at: start + Span::from_nanos(ns), size: Bytes::new(size) };
        assert_eq!(writes, [write(0, 40), write(9, 1_500)]);
        assert_eq!(millis(generator(&capture(), 1, 1)), [0.0, 1.0, 10.0, 16.0]);
    }

    #[test]
    fn it_ends_at_the_stop() {
        let stream = apportion_core::random::Stream::new(1, "source");
        let all =
            super::super::Generator::new(&capture(), Time::ZERO, Time::from_millis(10), stream).unwrap();
        assert_eq!(millis(all), [0.0, 1.0]);
    }

    #[test]
    fn a_rate_stretches_the_gaps_and_zero_holds_the_capture() {
        // 500 kb/s is a quarter of 2 Mb/s: gaps of 1, 9 and 6 ms become 4, 36 and 24 ms.
        let mut replay = generator(&capture(), 1, 1);
        replay.set_rate(Time::ZERO, Rate::from_kbit(500));
        assert_eq!(millis(replay.by_ref().take(3)), [0.0, 4.0, 40.0]);
        replay.set_rate(Time::from_millis(40), Rate::ZERO);
        assert_eq!(replay.next(), None);
        replay.set_rate(Time::from_millis(500), Rate::from_mbit(2));
        assert_eq!(millis(replay), [500.0]);
    }
}
