//! The queue of one link, in the kernel.

use std::fmt;
use std::os::fd::BorrowedFd;

use apportion_core::limit::Limit;
use apportion_core::packet::FlowId;
use apportion_core::queue::DropReason;
use apportion_core::units::{Bytes, Rate, Weight};
use apportion_linux::netlink::Netlink;
use apportion_linux::port::pair::{QueuePair, Sent};
use apportion_live::lab::outside::{OutsideQueue, Returned, StandIn};

use super::Failure;
use super::plan::LinkPlan;
use super::stand_in;
use crate::program::Core;
use crate::settings::Counts;

/// HTB behind a pair of devices, with the program of a core where the link is one.
pub struct KernelQueue {
    plan: LinkPlan,
    pair: QueuePair,
    netlink: Netlink,
    core: Option<(Core, Counts)>,
    /// Frames are written here, and read.
    frames: [Vec<u8>; 2],
    failure: Failure,
}

impl fmt::Debug for KernelQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KernelQueue").field("plan", &self.plan).finish_non_exhaustive()
    }
}

impl KernelQueue {
    /// Puts the queue of `plan` at the entrance of `pair`, the device `name`. Packets have at most `longest` bytes.
    pub fn install(
        plan: LinkPlan,
        pair: QueuePair,
        name: &str,
        longest: Bytes,
        failure: Failure,
    ) -> Result<Self, String> {
        let mut netlink = Netlink::open().map_err(|error| error.to_string())?;
        plan.tree.install(&mut netlink, pair.device).map_err(|error| error.to_string())?;
        let attached = plan.core.as_ref().map(|settings| {
            let mut core = Core::load(settings)?;
            core.attach(name)?;
            Ok((core, Counts::default()))
        });
        let core = attached.transpose().map_err(|error: crate::program::BpfError| error.to_string())?;
        let frame = vec![0; usize::try_from(longest.get()).unwrap_or(0).max(stand_in::HEADERS)];
        Ok(Self { plan, pair, netlink, core, frames: [frame.clone(), frame], failure })
    }

    /// Keeps the first thing that went wrong, which ends the run.
    fn fail(&self, what: &str, why: &dyn fmt::Display) {
        self.failure.get_or_init(|| format!("a queue of the kernel {what}: {why}"));
    }

    /// Why the kernel dropped a packet: which of the counters of the program has grown, or else the FIFO was full.
    fn reason(&mut self) -> DropReason {
        let Some((core, before)) = &mut self.core else { return DropReason::Overflow };
        let Ok(now) = core.counts() else { return DropReason::Overflow };
        let before = std::mem::replace(before, now);
        if now.early > before.early {
            DropReason::Early
        } else if now.unlabelled > before.unlabelled {
            DropReason::Policy
        } else {
            DropReason::Overflow
        }
    }

    /// Puts another plan with the same classes in the place of this one.
    fn replace(&mut self, plan: Result<LinkPlan, String>) {
        let changed = plan.and_then(|plan| {
            let device = self.pair.device;
            plan.tree
                .change(&self.plan.tree, &mut self.netlink, device)
                .map_err(|error| error.to_string())?;
            if let (Some((core, _)), Some(settings)) = (&mut self.core, &plan.core) {
                core.set(settings).map_err(|error| error.to_string())?;
            }
            Ok(plan)
        });
        match changed {
            Ok(plan) => self.plan = plan,
            Err(why) => self.fail("cannot be changed", &why),
        }
    }
}

impl OutsideQueue for KernelQueue {
    fn send(&mut self, packet: StandIn) -> Result<(), DropReason> {
        let class = self.plan.classes.get(packet.flow.index()).copied().flatten();
        let Some(class) = class else { return Err(DropReason::Policy) };
        let frame = stand_in::write(&mut self.frames[0], &packet);
        match self.pair.send(frame, class) {
            Ok(Sent::Taken) => Ok(()),
            Ok(Sent::Dropped) => Err(self.reason()),
            Err(errno) => {
                self.fail("takes no packets", &errno);
                Err(DropReason::Overflow)
            }
        }
    }

    fn receive(&mut self) -> Option<Returned> {
        loop {
            match self.pair.receive(&mut self.frames[1]) {
                Ok(frame) => match stand_in::read(frame?) {
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

    fn set_weight(&mut self, flow: FlowId, weight: Weight) -> bool {
        let Some(plan) = self.plan.with_weight(flow, weight) else { return false };
        self.replace(plan);
        true
    }

    fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        let Some(Ok(state)) = self.core.as_ref().map(|(core, _)| core.state()) else { return };
        if let Some(alpha) = state.alpha {
            show("alpha", alpha);
        }
        show("arrival_rate", state.arrival_rate);
        show("accepted_rate", state.accepted_rate);
        show("guaranteed_rate", state.guaranteed_rate);
        show("congested_periods", state.congested_periods as f64);
    }
}
