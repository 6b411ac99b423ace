//! Queues of links that something outside of the engine carries out, such as the kernel.
//!
//! The packets stay here, and a [`StandIn`] of each goes into the external queue: whether and when it comes out again decides about the packet. So
//! everything around the queue is the same as with a discipline of ours: labels and marks, the transmitter, delay and losses of
//! the wire, and what is measured. The external queue holds the rate of the link by itself, and behind it the transmitter takes the time of
//! each packet.
//!
//! Cost: O(log n) with n packets outside, besides what the queue takes.

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

/// What an external queue sees of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StandIn {
    /// Its number, of no other packet that waits there.
    pub number: u32,
    pub flow: FlowId,
    /// What it is charged.
    pub size: Bytes,
    /// Its label of the kind that the queue reads, if it has one.
    pub label: Option<Label>,
}

/// A stand-in that came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Returned {
    /// Of its packet.
    pub number: u32,
    /// Its label now.
    pub label: Option<Label>,
}

/// A queue of one link.
pub trait ExternalQueue: Debug + Send {
    /// Takes a packet in.
    ///
    /// # Errors
    /// The reason for which it is dropped.
    fn send(&mut self, packet: StandIn) -> Result<(), DropReason>;

    /// The kind of the labels that it reads and changes.
    fn kind(&self) -> LabelKind;

    /// The next that has come out; none if none has.
    fn receive(&mut self) -> Option<Returned>;

    /// Readable while some have come out.
    fn exit(&self) -> BorrowedFd<'_>;

    /// The size of its buffer, of each queue where it has several.
    fn limit(&self) -> Option<Limit>;

    /// The rate of the link from now on, above zero.
    fn set_rate(&mut self, rate: Rate);

    /// Changes what it knows of a flow. Whether it was [heeded](FlowSetting).
    fn set_flow(&mut self, flow: FlowId, setting: FlowSetting) -> bool;

    /// Reports named counters and gauges, by the names that the discipline of the link has for them.
    fn statistics(&self, show: &mut dyn FnMut(&'static str, f64));
}

/// How the queues of a run are.
pub trait Health: Debug {
    /// Packets that they have lost so far without a decision, which makes a run not valid.
    fn lost(&mut self) -> u64;

    /// Why one of them does not work any more, if one does not.
    fn failure(&self) -> Option<String>;
}

/// The queues of a run. They end with its namespace.
#[derive(Debug)]
pub struct ExternalQueues {
    pub queues: BTreeMap<LinkId, Box<dyn ExternalQueue>>,
    /// How they are.
    pub health: Box<dyn Health>,
}

/// What carries queues out.
pub trait QueueBackend: Debug {
    /// Checks that it can carry out the queues that it is to, without setting anything up.
    ///
    /// # Errors
    /// The first that it cannot: the path of the key in the scenario, and why, with the mend.
    fn check(&self, scenario: &Scenario) -> Result<(), ParamError>;

    /// Sets them up, in the network namespace of the calling thread.
    ///
    /// # Errors
    /// The path of the queue that failed, and why.
    fn open(&self, scenario: &Scenario, numbers: &Numbers) -> Result<ExternalQueues, ParamError>;
}

/// The discipline of a link whose queue is outside.
#[derive(Debug)]
pub(super) struct External {
    queue: Box<dyn ExternalQueue>,
    /// The packets whose stand-ins are there, by number.
    held: BTreeMap<u32, Packet>,
    backlog: Backlog,
    next: u32,
}

impl External {
    pub fn new(queue: Box<dyn ExternalQueue>) -> Self {
        Self { queue, held: BTreeMap::new(), backlog: Backlog::EMPTY, next: 0 }
    }

    /// A number that no packet has. They come around after 2^32.
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
            // What has no packet here is none of ours.
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

    /// It follows the rate of the link, and nothing else sets it.
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

    /// Takes two packets, gives the later one first with half of its label, and between them one that nothing stands for.
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

    /// Labels of this kind go through the queue.
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
