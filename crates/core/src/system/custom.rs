//! External disciplines, in place of those of the catalogue.
//!
//! A backend has packets of its own type, and disciplines are generic over it. An external author implements
//! [`Queue`] and [`Discipline`] for one type, [`SimplePacket`]. [`Custom`] is the adapter: it holds the
//! packets of the backend, passes a [`SimplePacket`] for each to the discipline, and copies marks, colours
//! and labels to the packet of the backend when it leaves.
//!
//! The packets of the backend are therefore safe from a faulty discipline. If the discipline loses,
//! duplicates or invents a packet, or asks to be woken in the past, [`Custom`] takes it out of service: all
//! queued packets and all later arrivals are dropped with [`DropReason::Policy`], [`Fault`] gives the reason,
//! and the statistic `contract_broken_at` the time, in seconds. Debug and release builds behave alike.
//!
//! Cost: O(log n) with n packets queued and a virtual call per packet, in addition to the discipline's own.
//! Disciplines of the catalogue bypass this adapter.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::fmt;

use super::context::LinkContext;
use super::discipline::Discipline;
use crate::flow_setting::FlowSetting;
use crate::limit::Limit;
use crate::packet::{FlowId, Packet, SimplePacket};
use crate::param::{Args, Entry, EntryArgs, ParamError};
use crate::queue::{Backlog, DropReason, Overload, Queue, Sink};
use crate::units::{Rate, Time};

/// An external discipline.
type Boxed = Box<dyn Discipline<SimplePacket> + Send>;
type Build = dyn Fn(&LinkContext<'_>) -> Boxed + Send + Sync;
type Read = dyn Fn(&EntryArgs<'_>) -> Result<Arc<Build>, ParamError> + Send + Sync;

/// A registered discipline: its entry, and the functions that read its parameters and build it.
#[derive(Clone)]
pub(super) struct Registration {
    pub entry: &'static Entry,
    read: Arc<Read>,
}

impl Registration {
    pub fn new<T, Q>(
        entry: &'static Entry,
        read: impl Fn(&EntryArgs<'_>) -> Result<T, ParamError> + Send + Sync + 'static,
        build: impl Fn(&T, &LinkContext<'_>) -> Q + Send + Sync + 'static,
    ) -> Self
    where
        T: Send + Sync + 'static,
        Q: Discipline<SimplePacket> + Send + 'static,
    {
        let build = Arc::new(build);
        let read = move |args: &EntryArgs<'_>| {
            let (params, build) = (read(args)?, Arc::clone(&build));
            let built = move |link: &LinkContext<'_>| -> Boxed { Box::new(build(&params, link)) };
            Ok(Arc::new(built) as Arc<Build>)
        };
        Self { entry, read: Arc::new(read) }
    }

    /// Reads and checks the parameters.
    pub fn read(&self, args: &Args) -> Result<CustomParams, ParamError> {
        let build = (self.read)(&args.of(self.entry))?;
        Ok(CustomParams { entry: self.entry, args: args.clone(), build })
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Registration").field(&self.entry.name).finish()
    }
}

/// Checked parameters of a registered discipline. Two are equal if the entry and all values are.
#[derive(Clone)]
pub struct CustomParams {
    entry: &'static Entry,
    args: Args,
    build: Arc<Build>,
}

impl CustomParams {
    /// The entry of the discipline.
    #[must_use]
    pub const fn entry(&self) -> &'static Entry {
        self.entry
    }
}

impl PartialEq for CustomParams {
    fn eq(&self, other: &Self) -> bool {
        self.entry.name == other.entry.name && self.args.of(self.entry) == other.args.of(other.entry)
    }
}

impl fmt::Debug for CustomParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CustomParams").field("name", &self.entry.name).field("args", &self.args).finish()
    }
}

/// A breach of the contract of [`Queue`] by a discipline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The name of the discipline.
    pub name: &'static str,
    /// The time of the breach.
    pub at: Time,
    /// The kind of breach.
    pub what: FaultKind,
}

/// The kinds of breaches of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The discipline delivered, dropped or marked a packet that it does not hold: an invented one, or one
    /// released before.
    NotHeld {
        /// The number of the packet.
        id: u32,
    },
    /// The backlog that the discipline reports differs from the packets that it holds: it lost packets, or
    /// miscounts.
    Backlog {
        /// The backlog that it reports.
        claimed: Backlog,
        /// The packets that it was given and has not released.
        held: Backlog,
    },
    /// The discipline delivered nothing and asked to be called again at a time that is not in the future.
    WakeupInPast {
        /// The time that it asked for.
        at: Time,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, at, .. } = self;
        write!(f, "the discipline `{name}` broke its contract at {at} and drops everything since: ")?;
        match self.what {
            FaultKind::NotHeld { id } => write!(f, "it gave up packet {id}, which it does not hold"),
            FaultKind::Backlog { claimed, held } => write!(
                f,
                "it says it holds {} of {}, and should hold {} of {}",
                claimed.packets, claimed.bytes, held.packets, held.bytes
            ),
            FaultKind::WakeupInPast { at } => {
                write!(f, "it asked to be called again at {at}, which is not later")
            }
        }
    }
}

/// The packets of the backend that a discipline holds.
#[derive(Debug)]
struct Held<P> {
    /// Packets by the number by which the discipline knows them.
    packets: BTreeMap<u32, P>,
    backlog: Backlog,
    next: u32,
    /// The first breach in the present call.
    wrong: Option<FaultKind>,
}

impl<P: Packet> Held<P> {
    const fn new() -> Self {
        Self { packets: BTreeMap::new(), backlog: Backlog::EMPTY, next: 0, wrong: None }
    }

    /// Stores `packet`, and returns the packet that the discipline sees.
    fn keep(&mut self, packet: P) -> SimplePacket {
        // Numbers wrap around after 2^32 packets, when earlier packets may still wait.
        while self.packets.contains_key(&self.next) {
            self.next = self.next.wrapping_add(1);
        }
        let seen = SimplePacket::standing_for(&packet, self.next);
        self.next = self.next.wrapping_add(1);
        self.backlog.add(&packet);
        self.packets.insert(seen.id, packet);
        seen
    }

    /// Removes and returns the packet with this number.
    fn remove(&mut self, id: u32) -> Option<P> {
        let packet = self.packets.remove(&id)?;
        self.backlog.remove(&packet);
        Some(packet)
    }

    /// Removes and returns the packet of the backend that the discipline releases as `seen`.
    fn take(&mut self, seen: &SimplePacket) -> Option<P> {
        self.write_back(seen);
        self.remove(seen.id)
    }

    /// Copies the discipline's changes of `seen` to the packet of the backend.
    fn write_back(&mut self, seen: &SimplePacket) -> Option<&P> {
        let Some(packet) = self.packets.get_mut(&seen.id) else {
            self.wrong.get_or_insert(FaultKind::NotHeld { id: seen.id });
            return None;
        };
        seen.write_onto(packet);
        Some(packet)
    }

    /// Removes and returns the packet that has waited longest.
    fn oldest(&mut self) -> Option<P> {
        // Numbers at or after the next one predate the wrap-around.
        let first = self.packets.range(self.next..).next().or_else(|| self.packets.iter().next());
        let id = *first?.0;
        self.remove(id)
    }
}

/// An external discipline, adapted to packets of the backend.
pub struct Custom<P> {
    params: CustomParams,
    inner: Boxed,
    held: Held<P>,
    fault: Option<Fault>,
}

impl<P: Packet> Custom<P> {
    /// An empty discipline for this link.
    #[must_use]
    pub fn new(params: &CustomParams, link: &LinkContext<'_>) -> Self {
        Self { params: params.clone(), inner: (params.build)(link), held: Held::new(), fault: None }
    }

    /// Takes the discipline out of service if the call that ends breached the contract.
    fn check(&mut self, now: Time, sink: &mut dyn Sink<P>) {
        let (claimed, held) = (self.inner.backlog(), self.held.backlog);
        let miscounts = (claimed != held).then_some(FaultKind::Backlog { claimed, held });
        let Some(what) = self.held.wrong.take().or(miscounts) else { return };
        self.fault = Some(Fault { name: self.params.entry.name, at: now, what });
        while let Some(packet) = self.held.oldest() {
            sink.dropped(now, packet, DropReason::Policy);
        }
    }
}

impl<P: Packet> Discipline<P> for Custom<P> {
    /// Returns packets in the discipline's order; packets that it does not return come last, in order of
    /// arrival.
    fn drain(&mut self, now: Time) -> Option<P> {
        let seen = if self.fault.is_none() { self.inner.drain(now) } else { None };
        seen.and_then(|seen| self.held.take(&seen)).or_else(|| self.held.oldest())
    }
    fn limit(&self) -> Option<Limit> {
        self.inner.limit()
    }
    fn set_limit(&mut self, limit: Limit) {
        self.inner.set_limit(limit);
    }
    fn set_link_rate(&mut self, rate: Rate) {
        self.inner.set_link_rate(rate);
    }
    fn set_flow(&mut self, flow: FlowId, setting: FlowSetting) -> bool {
        self.inner.set_flow(flow, setting)
    }
    fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        self.inner.statistics(show);
        if let Some(fault) = &self.fault {
            show("contract_broken_at", fault.at.as_secs_f64());
        }
    }
    fn flow_statistics(&self, show: &mut dyn FnMut(FlowId, &'static str, f64)) {
        self.inner.flow_statistics(show);
    }
    fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }
}

impl<P: Packet> Queue<P> for Custom<P> {
    fn enqueue(&mut self, now: Time, packet: P, sink: &mut dyn Sink<P>) {
        if self.fault.is_some() {
            return sink.dropped(now, packet, DropReason::Policy);
        }
        let seen = self.held.keep(packet);
        self.inner.enqueue(now, seen, &mut Bridge { held: &mut self.held, sink });
        self.check(now, sink);
    }

    fn dequeue(&mut self, now: Time, sink: &mut dyn Sink<P>) -> Option<P> {
        if self.fault.is_some() {
            return None;
        }
        let seen = self.inner.dequeue(now, &mut Bridge { held: &mut self.held, sink });
        let packet = seen.and_then(|seen| self.held.take(&seen));
        let refused = seen.is_none() && !self.held.backlog.is_empty();
        if let Some(at) = self.inner.next_wakeup().filter(|at| refused && *at <= now) {
            self.held.wrong.get_or_insert(FaultKind::WakeupInPast { at });
        }
        self.check(now, sink);
        packet
    }

    fn is_transparent(&self) -> bool {
        self.fault.is_none() && self.inner.is_transparent()
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.inner.next_wakeup().filter(|_| self.fault.is_none())
    }

    fn backlog(&self) -> Backlog {
        self.held.backlog
    }
}

impl<P: fmt::Debug> fmt::Debug for Custom<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { params, held, fault, .. } = self;
        let mut out = f.debug_struct("Custom");
        out.field("params", params).field("held", held).field("fault", fault).finish_non_exhaustive()
    }
}

/// Translates the discipline's reports about the packets that it sees to the packets of the backend.
struct Bridge<'a, P> {
    held: &'a mut Held<P>,
    sink: &'a mut dyn Sink<P>,
}

impl<P: Packet> Sink<SimplePacket> for Bridge<'_, P> {
    fn dropped(&mut self, now: Time, seen: SimplePacket, reason: DropReason) {
        if let Some(packet) = self.held.take(&seen) {
            self.sink.dropped(now, packet, reason);
        }
    }
    fn marked(&mut self, now: Time, seen: &SimplePacket) {
        if let Some(packet) = self.held.write_back(seen) {
            self.sink.marked(now, packet);
        }
    }
    fn overload(&mut self, now: Time, overload: Overload) {
        self.sink.overload(now, overload);
    }
}

#[cfg(test)]
mod tests;
