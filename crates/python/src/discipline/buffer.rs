//! Buffer of a policy: a scheduler of the catalogue with its packets.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use apportion::apportion_core::packet::{FlowId, SimplePacket};
use apportion::apportion_core::param::EntryArgs;
use apportion::apportion_core::schedule::drr::{self, Drr, DrrParams};
use apportion::apportion_core::schedule::fifo::Fifo;
use apportion::apportion_core::schedule::round_robin::RoundRobin;
use apportion::apportion_core::schedule::scfq::Scfq;
use apportion::apportion_core::schedule::start_time_fq::StartTimeFq;
use apportion::apportion_core::schedule::wf2q_plus::Wf2qPlus;
use apportion::apportion_core::schedule::{End, Queued, Scheduler};
use apportion::apportion_core::system::LinkContext;
use apportion::apportion_core::{Backlog, FlowSetting};
use apportion::units::Time;
use pyo3::prelude::*;

use super::packet::{Mailbox, Packet};

/// Schedulers behind which a policy can stand.
pub const SCHEDULERS: [&str; 6] = ["fifo", "drr", "rr", "stfq", "scfq", "wf2q_plus"];

type AnyScheduler = Box<dyn Scheduler<SimplePacket> + Send>;

/// Packets behind a policy.
#[pyclass(frozen, module = "apportion._native")]
pub struct Buffer {
    state: Mutex<State>,
    mailbox: Py<Mailbox>,
}

struct State {
    scheduler: AnyScheduler,
    /// Backlog of each flow that has one.
    flows: BTreeMap<FlowId, Backlog>,
    /// The time of the call under way.
    now: Time,
}

impl State {
    fn forget(&mut self, queued: Option<Queued<SimplePacket>>) -> Option<Queued<SimplePacket>> {
        let queued = queued?;
        if let Some(backlog) = self.flows.get_mut(&queued.packet.flow) {
            backlog.remove(&queued.packet);
            if backlog.is_empty() {
                self.flows.remove(&queued.packet.flow);
            }
        }
        Some(queued)
    }
}

impl Buffer {
    /// Creates an empty buffer with this scheduler, one of [`SCHEDULERS`].
    pub fn new(scheduler: &str, link: &LinkContext<'_>, mailbox: Py<Mailbox>) -> Self {
        let smallest = link.smallest_weight();
        let scheduler: AnyScheduler = match scheduler {
            "drr" => match DrrParams::from_args(&EntryArgs::defaults(&drr::ENTRY)) {
                Ok(params) => Box::new(Drr::new(&params, smallest)),
                Err(error) => unreachable!("its defaults: {error}"),
            },
            "rr" => Box::new(RoundRobin::new(smallest)),
            "stfq" => Box::new(StartTimeFq::new(smallest)),
            "scfq" => Box::new(Scfq::new(smallest)),
            "wf2q_plus" => Box::new(Wf2qPlus::new(smallest)),
            _ => Box::new(Fifo::new()),
        };
        Self { state: Mutex::new(State { scheduler, flows: BTreeMap::new(), now: Time::ZERO }), mailbox }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set_now(&self, now: Time) {
        self.state().now = now;
    }

    pub fn push(&self, now: Time, packet: SimplePacket) {
        let mut state = self.state();
        state.flows.entry(packet.flow).or_default().add(&packet);
        state.scheduler.push(now, packet);
    }

    pub fn take(&self, now: Time) -> Option<Queued<SimplePacket>> {
        let mut state = self.state();
        let queued = state.scheduler.pop(now);
        state.forget(queued)
    }

    pub fn push_out(&self, now: Time, flow: FlowId, end: End) -> Option<SimplePacket> {
        let mut state = self.state();
        let queued = state.scheduler.push_out(now, flow, end);
        state.forget(queued).map(|queued| queued.packet)
    }

    pub fn set_flow(&self, flow: FlowId, setting: FlowSetting) -> bool {
        self.state().scheduler.set_flow(flow, setting)
    }
}

#[pymethods]
impl Buffer {
    /// Backlog in packets.
    #[getter]
    fn packets(&self) -> u64 {
        self.state().scheduler.backlog().packets.get()
    }

    /// Backlog in bytes.
    #[getter]
    fn bytes(&self) -> u64 {
        self.state().scheduler.backlog().bytes.get()
    }

    /// The flow that is served next; None if the buffer is empty.
    #[getter]
    fn next_flow(&self) -> Option<u32> {
        self.state().scheduler.next_flow().map(|flow| flow.0)
    }

    /// The flow with the most bytes, the lowest number among equals; None if the buffer is empty.
    #[getter]
    fn longest(&self) -> Option<u32> {
        let state = self.state();
        let longest =
            state.flows.iter().max_by_key(|(flow, backlog)| (backlog.bytes, std::cmp::Reverse(**flow)));
        longest.map(|(flow, _)| flow.0)
    }

    /// Backlog of a flow in packets.
    fn packets_of(&self, flow: u32) -> u64 {
        self.state().flows.get(&FlowId(flow)).map_or(0, |backlog| backlog.packets.get())
    }

    /// Backlog of a flow in bytes.
    fn bytes_of(&self, flow: u32) -> u64 {
        self.state().flows.get(&FlowId(flow)).map_or(0, |backlog| backlog.bytes.get())
    }

    /// Removes the next packet in the order of service, for `dequeue`; None if the buffer is empty.
    fn pop(&self, py: Python<'_>) -> Option<Packet> {
        let now = self.state().now;
        let queued = self.take(now)?;
        Some(Packet::new(queued.packet, queued.arrived, self.mailbox.clone_ref(py)))
    }

    fn __len__(&self) -> usize {
        usize::try_from(self.packets()).unwrap_or(usize::MAX)
    }
}
