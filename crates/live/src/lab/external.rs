//! Queues of links that something outside the engine carries out, for example the kernel.
//!
//! The packets stay here, and a [`StandIn`] of each enters the external queue: whether and when it comes out
//! again decides on the packet. Everything around the queue is therefore the same as with a discipline of the
//! engine: labels and marks, the transmitter, delay and losses of the wire, and measurements. The external
//! queue enforces the rate of the link by itself, and behind it the transmitter takes the time of each
//! packet.
//!
//! Cost: O(log n) with n packets outside, plus the cost of the queue.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::os::fd::BorrowedFd;

use apportion_core::label::Label;
use apportion_core::limit::Limit;
use apportion_core::packet::{FlowId, LabelKind};
use apportion_core::param::ParamError;
use apportion_core::queue::{Backlog, DropReason, Queue, Sink};
use apportion_core::system::Discipline;
use apportion_core::units::{Bytes, Rate, Time};
use apportion_core::{FlowSetting, Packet as _};
use apportion_runtime::connections::Numbers;
use apportion_scenario::model::{LinkId, Scenario};

use crate::packet::Packet;

/// The properties of a packet that an external queue sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StandIn {
    /// Number of the packet, unique among those that wait there.
    pub number: u32,
    pub flow: FlowId,
    /// The size that it is charged.
    pub size: Bytes,
    /// Label of the packet, if it has one of the kind that the queue reads.
    pub label: Option<Label>,
}

/// A stand-in that came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Returned {
    /// The number of its packet.
    pub number: u32,
    /// Present label.
    pub label: Option<Label>,
}

/// A queue of one link.
pub trait ExternalQueue: Debug + Send {
    /// Queues a packet.
    ///
    /// # Errors
    /// The reason of its drop.
    fn send(&mut self, packet: StandIn) -> Result<(), DropReason>;

    /// The kind of labels that the queue reads and changes.
    fn kind(&self) -> LabelKind;

    /// The next packet that has come out; none if there is none.
    fn receive(&mut self) -> Option<Returned>;

    /// Readable while packets have come out.
    fn exit(&self) -> BorrowedFd<'_>;

    /// The size of the buffer, of each queue if there are several.
    fn limit(&self) -> Option<Limit>;

    /// Sets the rate of the link, above zero.
    fn set_rate(&mut self, rate: Rate);

    /// Changes a setting of a flow. Returns whether the queue [supports](FlowSetting) it.
    fn set_flow(&mut self, flow: FlowId, setting: FlowSetting) -> bool;

    /// Reports named counters and gauges, with the names that the link's discipline uses.
    fn statistics(&self, show: &mut dyn FnMut(&'static str, f64));
}

/// The state of the queues of a run.
pub trait Health: Debug {
    /// Packets lost so far without a decision, which makes a run invalid.
    fn lost(&mut self) -> u64;

    /// Why one of the queues no longer works, if so.
    fn failure(&self) -> Option<String>;
}

/// The queues of a run. They end with its namespace.
#[derive(Debug)]
pub struct ExternalQueues {
    pub queues: BTreeMap<LinkId, Box<dyn ExternalQueue>>,
    /// Their state.
    pub health: Box<dyn Health>,
}

/// Carries out queues.
pub trait QueueBackend: Debug {
    /// Checks that the backend can carry out its queues of a scenario, without setting anything up.
    ///
    /// # Errors
    /// The first queue that it cannot carry out: the path of its key in the scenario, why, and how to mend
    /// it.
    fn check(&self, scenario: &Scenario) -> Result<(), ParamError>;

    /// Sets the queues up, in the network namespace of the calling thread.
    ///
    /// # Errors
    /// The path of the queue that failed, and why.
    fn open(&self, scenario: &Scenario, numbers: &Numbers) -> Result<ExternalQueues, ParamError>;
}

/// The discipline of a link whose queue is outside.
#[derive(Debug)]
pub(super) struct External {
    queue: Box<dyn ExternalQueue>,
    /// The packets with a stand-in outside, by number.
    held: BTreeMap<u32, Packet>,
    backlog: Backlog,
    next: u32,
}

impl External {
    pub fn new(queue: Box<dyn ExternalQueue>) -> Self {
        Self { queue, held: BTreeMap::new(), backlog: Backlog::EMPTY, next: 0 }
    }

    /// A number that no waiting packet has. Numbers wrap at 2^32.
    fn number(&mut self) -> u32 {
        while self.held.contains_key(&self.next) {
            self.next = self.next.wrapping_add(1);
        }
        self.next
    }

    fn release(&mut self, number: u32) -> Option<Packet> {
        let packet = self.held.remove(&number)?;
        self.backlog.remove(&packet);
        Some(packet)
    }
}

impl Queue<Packet> for External {
    fn enqueue(&mut self, now: Time, packet: Packet, sink: &mut dyn Sink<Packet>) {
        let number = self.number();
        let label = packet.label(self.queue.kind());
        let stand_in = StandIn { number, flow: packet.flow(), size: packet.size(), label };
        match self.queue.send(stand_in) {
            Ok(()) => {
                self.next = number.wrapping_add(1);
                self.backlog.add(&packet);
                self.held.insert(number, packet);
            }
            Err(reason) => sink.dropped(now, packet, reason),
        }
    }

    fn dequeue(&mut self, _now: Time, _sink: &mut dyn Sink<Packet>) -> Option<Packet> {
        loop {
            let Returned { number, label } = self.queue.receive()?;
            // A stand-in without a packet here is not ours.
            let Some(mut packet) = self.release(number) else { continue };
            let kind = self.queue.kind();
            if packet.label(kind) != label {
                match label {
                    Some(label) => packet.set_label(kind, label),
                    None => packet.clear_label(kind),
                }
            }
            return Some(packet);
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }
}

impl Discipline<Packet> for External {
    fn drain(&mut self, _now: Time) -> Option<Packet> {
        let (&number, _) = self.held.first_key_value()?;
        self.release(number)
    }

    fn limit(&self) -> Option<Limit> {
        self.queue.limit()
    }

    /// The limit follows the rate of the link; nothing else sets it.
    fn set_limit(&mut self, _limit: Limit) {}

    fn set_link_rate(&mut self, rate: Rate) {
        self.queue.set_rate(rate);
    }

    fn set_flow(&mut self, flow: FlowId, setting: FlowSetting) -> bool {
        self.queue.set_flow(flow, setting)
    }

    fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        self.queue.statistics(show);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::os::fd::{AsFd as _, OwnedFd};

    use super::*;
    use crate::packet::Description;
    use apportion_core::packet::{Ecn, Protocol};
    use apportion_linux::pool::Pool;

    /// A queue that takes two packets, and returns the later one first, with half of its label, then an
    /// unknown number.
    #[derive(Debug)]
    struct Reversing(Vec<Returned>, OwnedFd, LabelKind);

    impl ExternalQueue for Reversing {
        fn send(&mut self, packet: StandIn) -> Result<(), DropReason> {
            if self.0.len() == 3 {
                return Err(DropReason::Overflow);
            }
            let label = packet.label.map(|label| Label::new(label.value() / 2.0));
            if self.0.len() == 1 {
                self.0.push(Returned { number: packet.number + 7, label });
            }
            self.0.push(Returned { number: packet.number, label });
            Ok(())
        }
        fn kind(&self) -> LabelKind {
            self.2
        }
        fn receive(&mut self) -> Option<Returned> {
            self.0.pop()
        }
        fn exit(&self) -> BorrowedFd<'_> {
            self.1.as_fd()
        }
        fn limit(&self) -> Option<Limit> {
            None
        }
        fn set_rate(&mut self, _: Rate) {}
        fn set_flow(&mut self, _: FlowId, _: FlowSetting) -> bool {
            false
        }
        fn statistics(&self, _: &mut dyn FnMut(&'static str, f64)) {}
    }

    #[derive(Default)]
    struct Dropped(VecDeque<(FlowId, DropReason)>);

    impl Sink<Packet> for Dropped {
        fn dropped(&mut self, _: Time, packet: Packet, reason: DropReason) {
            self.0.push_back((packet.flow(), reason));
        }
        fn marked(&mut self, _: Time, _: &Packet) {}
    }

    #[test]
    fn packets_leave_as_their_stand_ins_do() {
        packets_leave(LabelKind::Rate);
        packets_leave(LabelKind::Tickets);
    }

    /// Labels of this kind pass through the queue.
    fn packets_leave(kind: LabelKind) {
        let mut pool = Pool::new(8, 64);
        let buffer = pool.take(0).unwrap();
        let label = Label::new(4e6);
        let packet = |flow: u32| {
            let description = Description {
                flow: FlowId(flow),
                size: Bytes::new(100 * u64::from(flow)),
                protocol: Protocol::Udp,
                ecn: Ecn::NotEct,
                label: (flow == 2).then_some((kind, label)),
                account: flow,
                counts: true,
                ip: None,
                acknowledgement: 0,
            };
            Packet::new((buffer, 0, 0), &description, 0, Time::ZERO)
        };
        let file = std::fs::File::open("/dev/null").unwrap();
        let mut external = External::new(Box::new(Reversing(Vec::new(), file.into(), kind)));
        let mut dropped = Dropped::default();
        for flow in [1, 2, 3] {
            external.enqueue(Time::ZERO, packet(flow), &mut dropped);
        }
        assert_eq!(dropped.0, [(FlowId(3), DropReason::Overflow)]);
        assert_eq!(external.backlog().bytes, Bytes::new(300));
        let later = external.dequeue(Time::ZERO, &mut dropped).unwrap();
        assert_eq!((later.flow(), external.backlog().bytes), (FlowId(2), Bytes::new(100)));
        assert_eq!(later.label(kind), Some(Label::new(2e6)));
        let earlier = external.dequeue(Time::ZERO, &mut dropped).unwrap();
        assert_eq!((earlier.flow(), earlier.label(kind)), (FlowId(1), None));
        assert!(external.backlog().is_empty() && external.dequeue(Time::ZERO, &mut dropped).is_none());
    }
}
