//! The queue of one link in the kernel.

use std::fmt;
use std::os::fd::BorrowedFd;

use apportion_core::FlowSetting;
use apportion_core::limit::Limit;
use apportion_core::packet::{CustomerId, FlowId, LabelKind};
use apportion_core::queue::DropReason;
use apportion_core::units::{Bytes, Rate};
use apportion_linux::netlink::Netlink;
use apportion_linux::port::pair::{QueuePair, Sent};
use apportion_live::lab::external::{ExternalQueue, Returned, StandIn};

use super::Failure;
use super::plan::{LinkPlan, Program};
use super::stand_in;
use crate::gateway::GatewayError;
use crate::program::{BpfError, Core, End, Hierarchy, Tickets};
use crate::settings::LinkState;
use crate::tickets::TicketCounts;

/// A program that is attached.
enum Attached {
    None,
    Core(Box<Core>),
    Hierarchy(Box<Hierarchy>),
    Tickets(Box<Tickets>),
}

impl Attached {
    /// Loads the program of a plan, and attaches it to the egress of the device `name`.
    fn load(program: &Program, name: &str) -> Result<Self, BpfError> {
        Ok(match program {
            Program::None => Self::None,
            Program::Core(settings) => {
                let mut core = Core::load(settings)?;
                core.attach(name)?;
                Self::Core(Box::new(core))
            }
            Program::Hierarchy(settings) => {
                let mut core = Hierarchy::load(settings, End::Source)?;
                for (_, number) in settings.customers().iter().zip(0..) {
                    core.set_prefix(stand_in::source(CustomerId(number)).into(), 32, number)?;
                }
                core.attach(name)?;
                Self::Hierarchy(Box::new(core))
            }
            Program::Tickets(settings) => {
                let mut queue = Tickets::load(settings)?;
                queue.attach(name)?;
                Self::Tickets(Box::new(queue))
            }
        })
    }

    /// The counters of the program; none without a program, or if the kernel does not return them.
    fn counts(&self) -> Option<TicketCounts> {
        match self {
            Self::None => None,
            Self::Core(core) => core.counts().ok().map(TicketCounts::of_core),
            Self::Hierarchy(core) => core.counts().ok().map(TicketCounts::of_core),
            Self::Tickets(queue) => queue.counts().ok(),
        }
    }

    /// The estimate of the link, if the program is a core.
    fn state(&self) -> Option<LinkState> {
        match self {
            Self::Core(core) => core.state().ok(),
            Self::Hierarchy(core) => core.state().ok(),
            Self::None | Self::Tickets(_) => None,
        }
    }

    /// Sets the constants of another plan of the same queue.
    fn set(&mut self, program: &Program) -> Result<(), BpfError> {
        match (self, program) {
            (Self::Core(core), Program::Core(settings)) => core.set(settings),
            (Self::Hierarchy(core), Program::Hierarchy(settings)) => core.set(settings),
            (Self::Tickets(queue), Program::Tickets(settings)) => queue.set(settings),
            // The kind of a queue does not change.
            _ => Ok(()),
        }
    }
}

/// HTB between a pair of devices, with a program before it if the queue requires one.
pub struct KernelQueue {
    plan: LinkPlan,
    pair: QueuePair,
    netlink: Netlink,
    program: Attached,
    /// The counters of the program at its last drop.
    counts: TicketCounts,
    /// The buffers into which frames are written and read.
    frames: [Vec<u8>; 2],
    failure: Failure,
}

impl fmt::Debug for KernelQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KernelQueue").field("plan", &self.plan).finish_non_exhaustive()
    }
}

impl KernelQueue {
    /// Installs the queue of `plan` at the entrance of `pair`, the device `name`. Packets have at most
    /// `longest` bytes.
    pub fn install(
        plan: LinkPlan,
        pair: QueuePair,
        name: &str,
        longest: Bytes,
        failure: Failure,
    ) -> Result<Self, GatewayError> {
        let mut netlink = Netlink::open()?;
        plan.tree.install(&mut netlink, pair.device)?;
        let program = Attached::load(&plan.program, name)?;
        let frame = vec![0; usize::try_from(longest.get()).unwrap_or(0).max(stand_in::HEADERS)];
        let counts = TicketCounts::default();
        Ok(Self { plan, pair, netlink, program, counts, frames: [frame.clone(), frame], failure })
    }

    /// Records the first failure, which ends the run.
    fn fail(&self, what: &str, why: &dyn fmt::Display) {
        self.failure.get_or_init(|| format!("a queue of the kernel {what}: {why}"));
    }

    /// The reason for a drop in the kernel: the counter of the program that has increased, or otherwise a
    /// full FIFO.
    fn reason(&mut self) -> DropReason {
        let Some(now) = self.program.counts() else { return DropReason::Overflow };
        let before = std::mem::replace(&mut self.counts, now);
        let is_core = !matches!(self.program, Attached::Tickets(_));
        if now.all.early > before.all.early {
            DropReason::Early
        } else if now.forced > before.forced {
            DropReason::Forced
        } else if is_core && now.all.unlabelled > before.all.unlabelled {
            DropReason::Policy
        } else {
            DropReason::Overflow
        }
    }

    /// Replaces the plan by another one with the same classes.
    fn replace(&mut self, plan: Result<LinkPlan, String>) {
        let changed = plan.and_then(|plan| {
            let device = self.pair.device;
            plan.tree
                .change(&self.plan.tree, &mut self.netlink, device)
                .map_err(|error| error.to_string())?;
            self.program.set(&plan.program).map_err(|error| error.to_string())?;
            Ok(plan)
        });
        match changed {
            Ok(plan) => self.plan = plan,
            Err(why) => self.fail("cannot be changed", &why),
        }
    }
}

impl ExternalQueue for KernelQueue {
    fn send(&mut self, packet: StandIn) -> Result<(), DropReason> {
        let class = self.plan.classes.get(packet.flow.index()).copied().flatten();
        let Some(class) = class else { return Err(DropReason::Policy) };
        let customer = self.plan.customers.get(packet.flow.index()).copied().unwrap_or(CustomerId::OTHERS);
        let frame = stand_in::write(&mut self.frames[0], &packet, self.plan.kind(), customer);
        match self.pair.send(frame, class) {
            Ok(Sent::Taken) => Ok(()),
            Ok(Sent::Dropped) => Err(self.reason()),
            Err(errno) => {
                self.fail("takes no packets", &errno);
                Err(DropReason::Overflow)
            }
        }
    }

    fn kind(&self) -> LabelKind {
        self.plan.kind()
    }

    fn receive(&mut self) -> Option<Returned> {
        loop {
            match self.pair.receive(&mut self.frames[1]) {
                Ok(frame) => match stand_in::read(frame?, self.plan.kind()) {
                    None => (),
                    returned => return returned,
                },
                Err(errno) => {
                    self.fail("gives no packets", &errno);
                    return None;
                }
            }
        }
    }

    fn exit(&self) -> BorrowedFd<'_> {
        self.pair.exit()
    }

    fn limit(&self) -> Option<Limit> {
        self.plan.limit()
    }

    fn set_rate(&mut self, rate: Rate) {
        let plan = self.plan.at(rate);
        self.replace(plan);
    }

    fn set_flow(&mut self, flow: FlowId, setting: FlowSetting) -> bool {
        let FlowSetting::Weight(weight) = setting else { return false };
        let Some(plan) = self.plan.with_weight(flow, weight) else { return false };
        self.replace(plan);
        true
    }

    fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        if let (Attached::Tickets(queue), Program::Tickets(settings)) = (&self.program, &self.plan.program) {
            let (Ok(state), Ok(counts)) = (queue.state(), queue.counts()) else { return };
            show("avg", settings.measure(state.average));
            if counts.labelled > 0 {
                show("tickets_per_packet", counts.tickets as f64 / counts.labelled as f64);
                show("filtered", counts.filtered as f64 / counts.labelled as f64);
            }
        }
        let Some(state) = self.program.state() else { return };
        if let Some(alpha) = state.alpha {
            show("alpha", alpha);
        }
        show("arrival_rate", state.arrival_rate);
        show("accepted_rate", state.accepted_rate);
        show("guaranteed_rate", state.guaranteed_rate);
        show("congested_periods", state.congested_periods as f64);
        if let Program::Hierarchy(settings) = &self.plan.program {
            show("customers", settings.customers().len() as f64);
        }
    }
}
