//! A wrapper that counts the packets entering and leaving a discipline and asserts that nothing is lost.
//!
//! After every call, in packets and in bytes: received = dropped + queued + delivered. It also checks that
//! `now` never decreases. This happens in debug builds; in release builds the wrapper costs nothing.

use crate::packet::Packet;
use crate::queue::{Backlog, DropReason, Overload, Queue, Sink};
use crate::units::Time;

/// A discipline `Q` with counts of packets received, dropped and delivered.
#[derive(Clone, Debug)]
pub struct Counted<Q> {
    inner: Q,
    received: Backlog,
    dropped: Backlog,
    delivered: Backlog,
    latest: Time,
}

impl<Q> Counted<Q> {
    /// Wraps an empty discipline.
    pub const fn new(inner: Q) -> Self {
        let none = Backlog::EMPTY;
        Self { inner, received: none, dropped: none, delivered: none, latest: Time::ZERO }
    }

    /// The wrapped discipline, for reading.
    pub const fn inner(&self) -> &Q {
        &self.inner
    }

    /// The wrapped discipline, for changes of its parameters. Do not take packets out through this reference.
    pub const fn inner_mut(&mut self) -> &mut Q {
        &mut self.inner
    }

    /// Calls a method of the discipline that is not part of [`Queue`]. The method may drop packets but not
    /// take any in or out. The discipline may be asked for a packet late after such a call.
    pub fn call<P: Packet, T>(
        &mut self,
        sink: &mut dyn Sink<P>,
        call: impl FnOnce(&mut Q, &mut dyn Sink<P>) -> T,
    ) -> T
    where
        Q: Queue<P>,
    {
        if !cfg!(debug_assertions) {
            return call(&mut self.inner, sink);
        }
        let result = call(&mut self.inner, &mut Tally { dropped: &mut self.dropped, sink });
        self.balance();
        result
    }

    fn advance(&mut self, now: Time) {
        assert!(now >= self.latest, "time went back from {} to {now}", self.latest);
        self.latest = now;
    }

    fn balance<P: Packet>(&self)
    where
        Q: Queue<P>,
    {
        let queued = self.inner.backlog();
        assert_eq!(
            self.received.packets,
            self.dropped.packets + queued.packets + self.delivered.packets,
            "packets were lost or invented"
        );
        assert_eq!(
            self.received.bytes,
            self.dropped.bytes + queued.bytes + self.delivered.bytes,
            "bytes were lost or invented"
        );
    }
}

impl<P: Packet, Q: Queue<P>> Queue<P> for Counted<Q> {
    #[inline]
    fn enqueue(&mut self, now: Time, packet: P, sink: &mut dyn Sink<P>) {
        if !cfg!(debug_assertions) {
            return self.inner.enqueue(now, packet, sink);
        }
        self.advance(now);
        self.received.add(&packet);
        self.inner.enqueue(now, packet, &mut Tally { dropped: &mut self.dropped, sink });
        self.balance();
    }

    #[inline]
    fn dequeue(&mut self, now: Time, sink: &mut dyn Sink<P>) -> Option<P> {
        if !cfg!(debug_assertions) {
            return self.inner.dequeue(now, sink);
        }
        self.advance(now);
        let packet = self.inner.dequeue(now, &mut Tally { dropped: &mut self.dropped, sink });
        if let Some(packet) = &packet {
            self.delivered.add(packet);
        }
        self.balance();
        packet
    }

    fn is_transparent(&self) -> bool {
        self.inner.is_transparent()
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.inner.next_wakeup()
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.inner.backlog()
    }
}

/// Counts drops on their way to the real sink.
struct Tally<'a, P> {
    dropped: &'a mut Backlog,
    sink: &'a mut dyn Sink<P>,
}

impl<P: Packet> Sink<P> for Tally<'_, P> {
    fn dropped(&mut self, now: Time, packet: P, reason: DropReason) {
        self.dropped.add(&packet);
        self.sink.dropped(now, packet, reason);
    }
    fn marked(&mut self, now: Time, packet: &P) {
        self.sink.marked(now, packet);
    }
    fn supersedes(&self, newer: &P, older: &P) -> bool {
        self.sink.supersedes(newer, older)
    }
    fn overload(&mut self, now: Time, overload: Overload) {
        self.sink.overload(now, overload);
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::packet::SimplePacket;
    use crate::testing::{Log, packet};
    use crate::units::Rate;

    /// A discipline that reports an overload with every packet.
    struct Overloaded;
    impl Queue<SimplePacket> for Overloaded {
        fn enqueue(&mut self, now: Time, packet: SimplePacket, sink: &mut dyn Sink<SimplePacket>) {
            let (flow, wanted, granted) = (packet.flow, Rate::from_mbit(7), Rate::from_mbit(5));
            sink.overload(now, Overload { flow, wanted, granted, is_over: false });
            sink.dropped(now, packet, DropReason::Policy);
        }
        fn dequeue(&mut self, _: Time, _: &mut dyn Sink<SimplePacket>) -> Option<SimplePacket> {
            None
        }
        fn backlog(&self) -> Backlog {
            Backlog::EMPTY
        }
    }

    #[test]
    fn overload_notifications_pass_through_the_wrapper() {
        let mut log = Log::default();
        Counted::new(Overloaded).enqueue(Time::from_secs(1), packet(1, 3, 100), &mut log);
        let overloads: Vec<_> = log.overloads.iter().map(|(at, overload)| (*at, overload.flow.0)).collect();
        assert_eq!(overloads, [(Time::from_secs(1), 3)]);
    }

    /// A discipline that loses every packet without a report.
    struct Leaky;
    impl Queue<SimplePacket> for Leaky {
        fn enqueue(&mut self, _: Time, _: SimplePacket, _: &mut dyn Sink<SimplePacket>) {}
        fn dequeue(&mut self, _: Time, _: &mut dyn Sink<SimplePacket>) -> Option<SimplePacket> {
            None
        }
        fn backlog(&self) -> Backlog {
            Backlog::EMPTY
        }
    }

    #[test]
    #[cfg_attr(not(debug_assertions), ignore = "the checks are debug assertions")]
    #[should_panic(expected = "packets were lost")]
    fn a_lost_packet_is_noticed() {
        Counted::new(Leaky).enqueue(Time::ZERO, packet(1, 0, 100), &mut Log::default());
    }

    #[test]
    #[cfg_attr(not(debug_assertions), ignore = "the checks are debug assertions")]
    #[should_panic(expected = "time went back")]
    fn time_that_goes_back_is_noticed() {
        let mut counted = Counted::new(Leaky);
        counted.dequeue(Time::from_secs(2), &mut Log::default());
        counted.dequeue(Time::from_secs(1), &mut Log::default());
    }
}
