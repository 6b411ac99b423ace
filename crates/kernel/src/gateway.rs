//! A gateway in the kernel: the kernel hands the frames of each interface to the other one, whose HTB and tc
//! program divide them. This process sets them up, repairs them and removes them.
//!
//! | module | holds |
//! |---|---|
//! | `directions` | how the kernel implements a configuration, or why it cannot |
//! | `run` | a gateway from start to end: signals, commands, metrics |
//! | [`statistics`] | counters |
//! | `earlier` | counters of queues and programs that were removed |
//!
//! The queue of a direction is at its egress interface. If the process is killed, frames still pass: its
//! programs are detached with it, while HTB and the redirection stay. The next gateway on the same interfaces
//! starts anew, and [`bypass`](apportion_live::gateway::bypass) removes the remains.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use apportion_linux::files::Disk;
use apportion_linux::netlink::{Netlink, NetlinkError};
use apportion_live::gateway::bypass::{BypassError, FailOpen};
use apportion_live::gateway::control::ControlError;
use apportion_live::gateway::interface_lock::{self, InterfaceLock};
use apportion_live::gateway::interfaces::{self, Interface};
use apportion_live::gateway::offloads::{PrepareError, Prepared, RestoreAtEnd};
use apportion_scenario::gateway::{Direction, GatewayConfig};
use nix::errno::Errno;
use nix::net::if_::if_indextoname;

use crate::htb::MAJOR;
use crate::program::{self, BpfError, Core, Hierarchy, PrefixClasses, Tickets};
use crate::tickets::TicketSettings;

mod directions;
mod earlier;
mod run;
pub mod statistics;

pub use directions::{DirectionPlan, HierarchyPlan, Program, plan};
use earlier::Earlier;
pub use run::run;

/// The reason why a gateway did not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// The configuration or the interfaces are wrong, or the kernel cannot implement the configuration: one
    /// problem per line.
    #[error("{0}")]
    Config(String),
    /// A queue cannot be set up.
    #[error("{interface}: {error}")]
    Queue {
        /// The egress interface.
        interface: String,
        /// The kernel's error.
        error: NetlinkError,
    },
    /// A tc program cannot be set up.
    #[error(transparent)]
    Program(#[from] BpfError),
    /// Frames cannot be handed over.
    #[error("cannot hand frames over: {0}")]
    Redirect(#[from] BypassError),
    /// The interfaces cannot be read.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    /// The endpoints for clients cannot be opened.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// Signals and clients cannot be waited for.
    #[error("cannot wait for signals: {0}")]
    Wait(Errno),
    /// Unneeded capabilities cannot be dropped.
    #[error("cannot drop capabilities: {0}")]
    Capabilities(io::Error),
}

/// An interface that is set up: its egress queue and program, and the destination of the frames that it
/// receives.
struct End {
    device: u32,
    /// Attached while this value lives; none while the device has no queue of this gateway.
    program: Option<Attached>,
    /// The device to which received frames are redirected; none while it is absent.
    redirected: Option<u32>,
    /// Offloads that the driver does not turn off.
    stay_on: Vec<&'static str>,
}

enum Attached {
    None,
    Core(Box<Core>),
    /// The names of customers by number; all others have an empty name.
    Hierarchy {
        core: Box<Hierarchy>,
        names: Vec<String>,
    },
    Tickets(Box<Tickets>),
    Prefixes(Box<PrefixClasses>),
}

/// A gateway that is set up, until it is dropped.
pub struct KernelGateway {
    config: GatewayConfig,
    plans: [DirectionPlan; 2],
    netlink: Netlink,
    /// The folder of the locks of interfaces.
    locks: PathBuf,
    /// The egress interfaces of the directions up and down; none while an interface is absent.
    ends: [Option<End>; 2],
    /// Counters of queues that were removed.
    earlier: [Earlier; 2],
    /// The obstacle to setting up each direction, which is logged once.
    obstacles: [Option<String>; 2],
    prepared: Arc<Prepared>,
    // Dropped in this order, after the interfaces are left, so that the next gateway cannot take them before.
    _restore: RestoreAtEnd,
    bypass: FailOpen,
    /// Locks that keep other gateways off the interfaces of the directions.
    interface_locks: [Option<InterfaceLock>; 2],
}

impl KernelGateway {
    /// Sets up a gateway between the interfaces of `config`, after removing the remains of an earlier one.
    /// Locks of interfaces are files in `locks`; `state` records the offloads that are turned off meanwhile.
    /// With `fail_open`, frames are handed over undivided once the gateway is dropped, or if it does not
    /// start.
    ///
    /// # Errors
    /// A problem of the interfaces, for example that another gateway holds one of them, or the kernel's
    /// error. On an error nothing is left behind except a bypass that existed before.
    pub fn start(
        config: GatewayConfig,
        plans: [DirectionPlan; 2],
        locks: &Path,
        state: PathBuf,
        fail_open: bool,
    ) -> Result<Self, GatewayError> {
        let wrong = |problems: Vec<String>| GatewayError::Config(problems.join("\n"));
        let found = interfaces::look(&config).map_err(wrong)?;
        let [of_inside, of_outside] = interface_lock::take_both(locks, &found).map_err(wrong)?;
        interfaces::warn(&found);
        let prepared = Arc::new(Prepared::new(Disk, state));
        let mut gateway = Self {
            bypass: FailOpen::take_over(&config, fail_open)?,
            _restore: RestoreAtEnd(Arc::clone(&prepared)),
            prepared,
            config,
            plans,
            netlink: Netlink::open()?,
            locks: locks.to_owned(),
            ends: [None, None],
            earlier: Default::default(),
            obstacles: Default::default(),
            interface_locks: [Some(of_outside), Some(of_inside)],
        };
        let [inside, outside] = found;
        // Frames in the direction up leave by the outside interface.
        for (direction, interface) in [(Direction::Up, outside), (Direction::Down, inside)] {
            program::detach_left(&interface.name);
            gateway.enter(direction, &interface)?;
            gateway.install(direction)?;
        }
        gateway.redirect()?;
        gateway.bypass.started(fail_open);
        Ok(gateway)
    }

    /// Returns the configuration in effect.
    #[must_use]
    pub const fn config(&self) -> &GatewayConfig {
        &self.config
    }

    /// Returns the obstacles that keep frames from crossing as configured, one problem each.
    pub fn obstacles(&mut self) -> Vec<String> {
        let are_up = self.are_up();
        let of = |direction: Direction| {
            let (leaves, comes) = (&self.ends[direction as usize], &self.ends[1 - direction as usize]);
            let what = if leaves.as_ref().is_none_or(|end| end.program.is_none()) {
                "is not set up"
            } else if !are_up[direction as usize] {
                "is down"
            } else if comes.as_ref().is_none_or(|end| end.redirected.is_none()) {
                "is not handed what the other interface receives"
            } else {
                return None;
            };
            Some(format!("{}: `{}` {what}", direction.name(), self.interface(direction)))
        };
        Direction::BOTH.into_iter().filter_map(of).collect()
    }

    /// Whether the egress interface of each direction exists, is up, and has a carrier.
    fn are_up(&mut self) -> [bool; 2] {
        let netlink = &mut self.netlink;
        self.ends.each_ref().map(|end| {
            end.as_ref()
                .is_some_and(|end| netlink.device_at(end.device).is_ok_and(|device| device.is_running))
        })
    }

    /// Returns the name of the egress interface of a direction.
    fn interface(&self, direction: Direction) -> &str {
        match direction {
            Direction::Up => &self.config.outside,
            Direction::Down => &self.config.inside,
        }
    }

    /// Takes the egress interface of a direction, which is locked, without a queue so far.
    fn enter(&mut self, direction: Direction, interface: &Interface) -> Result<(), GatewayError> {
        let stay_on = self.turn_off_merging(interface)?;
        let device = interface.index;
        self.ends[direction as usize] = Some(End { device, program: None, redirected: None, stay_on });
        Ok(())
    }

    /// Turns off the offloads that merge packets, since limits of queues count packets as they were sent.
    /// Returns the offloads that stay on.
    fn turn_off_merging(&mut self, interface: &Interface) -> Result<Vec<&'static str>, GatewayError> {
        match self.prepared.turn_off(&mut self.netlink, interface) {
            Ok(stay_on) => Ok(stay_on),
            // A full disk must not take the link down: super-packets are charged by their segments.
            Err(error @ PrepareError::State { .. }) => {
                tracing::warn!(interface = interface.name, %error, "offloads stay on");
                Ok(interface.to_turn_off())
            }
            Err(PrepareError::Netlink(error)) => Err(error.into()),
        }
    }

    /// Installs queue and program of a direction at its egress interface, if that exists.
    fn install(&mut self, direction: Direction) -> Result<(), GatewayError> {
        let interface = self.interface(direction).to_owned();
        let Some(end) = &mut self.ends[direction as usize] else { return Ok(()) };
        let plan = &self.plans[direction as usize];
        let failed = |error| GatewayError::Queue { interface: interface.clone(), error };
        // The program ends before the classes that it selects are replaced.
        end.end_program(&mut self.earlier[direction as usize]);
        self.netlink.delete_queue(end.device, MAJOR).map_err(failed)?;
        plan.tree.install(&mut self.netlink, end.device).map_err(failed)?;
        match attach(plan, end.device) {
            Ok(program) => end.program = Some(program),
            Err(error) => {
                // The first error is more informative than a second one.
                let _ = self.netlink.delete_queue(end.device, MAJOR);
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// Redirects the frames that each interface receives to the other one, if both exist.
    fn redirect(&mut self) -> Result<(), GatewayError> {
        let devices = self.ends.each_ref().map(|end| end.as_ref().map(|end| end.device));
        let mut result = Ok(());
        for (end, wanted) in self.ends.iter_mut().zip([devices[1], devices[0]]) {
            let Some(end) = end else { continue };
            // Both are tried, and the first error is returned.
            result = result.and(end.redirect(wanted, &mut self.netlink));
        }
        Ok(result?)
    }

    /// Replaces the plans of the directions that differ: in place if only numbers of the same classes differ;
    /// otherwise the queue is set up anew, which loses the backlog of the direction and lets its frames pass
    /// undivided meanwhile.
    ///
    /// # Errors
    /// The directions that could not be set up: their frames pass undivided, and [`mend`](Self::mend) tries
    /// again.
    pub fn apply(
        &mut self,
        config: GatewayConfig,
        plans: [DirectionPlan; 2],
    ) -> Result<(), Vec<(Direction, GatewayError)>> {
        self.config = config;
        let before = std::mem::replace(&mut self.plans, plans);
        let mut problems = Vec::new();
        for (direction, before) in Direction::BOTH.into_iter().zip(before) {
            let at = direction as usize;
            if before == self.plans[at] {
                continue;
            }
            if let Err(error) = self.replace(direction, &before) {
                problems.push((direction, error));
                if let Some(device) = self.ends[at].as_ref().map(|end| end.device) {
                    self.keep_counts(direction, device, &before);
                }
                if let Some(end) = &mut self.ends[at] {
                    end.end_program(&mut self.earlier[at]);
                    // A change applied in part would mix two configurations.
                    let _ = self.netlink.delete_queue(end.device, MAJOR);
                }
            }
            if let Program::Hierarchy(plan) = &self.plans[at].program {
                self.earlier[at].programs.keep(&plan.names);
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    /// Replaces the plan `before` of a direction.
    fn replace(&mut self, direction: Direction, before: &DirectionPlan) -> Result<(), GatewayError> {
        let at = direction as usize;
        let (interface, plan) = (self.interface(direction).to_owned(), &self.plans[at]);
        let Some(End { device, program: Some(program), .. }) = &mut self.ends[at] else {
            // The queue is not set up; it gets the new plan when it is.
            return Ok(());
        };
        if !plan.tree.has_the_classes_of(&before.tree) {
            let device = *device;
            self.keep_counts(direction, device, before);
            return self.install(direction);
        }
        let failed = |error| GatewayError::Queue { interface: interface.clone(), error };
        plan.tree.change(&before.tree, &mut self.netlink, *device).map_err(failed)?;
        match (&mut *program, &plan.program) {
            (Attached::Core(core), Program::Core(settings)) => core.set(settings)?,
            (Attached::Hierarchy { core, .. }, Program::Hierarchy(new)) if has_the_customers(new, before) => {
                core.set(&new.settings)?;
            }
            (Attached::Tickets(queue), Program::Tickets(new)) if exchanges_as(new, before) => {
                queue.set(new)?;
            }
            _ if plan.program == before.program => (),
            // Classes of addresses: the new program is attached before the old one is detached.
            (Attached::Prefixes(_), Program::Prefixes { .. }) => {
                let new = attach(plan, *device)?;
                self.earlier[at].end_program(std::mem::replace(program, new));
            }
            // Two cores in sequence would remove labels or exchange tickets twice.
            _ => {
                self.earlier[at].end_program(std::mem::replace(program, Attached::None));
                *program = attach(plan, *device)?;
            }
        }
        Ok(())
    }

    /// Repairs what was lost with an interface, or removed from it. Called once per second.
    pub fn mend(&mut self) {
        for direction in Direction::BOTH {
            let result = self.mend_end(direction).map_err(|error| error.to_string());
            let interface = self.interface(direction).to_owned();
            let obstacle = &mut self.obstacles[direction as usize];
            match result {
                Ok(is_new) => {
                    *obstacle = None;
                    if is_new {
                        tracing::info!(interface, "the interface is set up again");
                    }
                }
                Err(why) if obstacle.as_ref() != Some(&why) => {
                    tracing::warn!(interface, why, "the interface is not set up; trying again each second");
                    *obstacle = Some(why);
                }
                Err(_) => (),
            }
        }
        if let Err(error) = self.redirect() {
            tracing::warn!(%error, "frames cannot be handed over; trying again each second");
        }
    }

    /// Repairs a direction. Returns whether something was set up again.
    fn mend_end(&mut self, direction: Direction) -> Result<bool, GatewayError> {
        let at = direction as usize;
        let interface = self.interface(direction).to_owned();
        let wrong = |error: &dyn std::fmt::Display| GatewayError::Config(error.to_string());
        let found = match self.netlink.device(&interface) {
            Ok(device) => Some(device.index),
            // An interface that was only renamed continues.
            Err(error) if error.is_no_device() => self.ends[at]
                .as_ref()
                .map(|end| end.device)
                .filter(|device| self.netlink.device_at(*device).is_ok()),
            Err(error) => return Err(error.into()),
        };
        let is_there = self.ends[at].as_ref().is_some_and(|end| Some(end.device) == found);
        if !is_there {
            // Another device has the name, or none.
            if let Some(mut end) = self.ends[at].take() {
                end.end_program(&mut self.earlier[at]);
                self.earlier[at].end_queue();
                end.leave(&mut self.netlink);
            }
            self.interface_locks[at] = None;
            let found = Interface::look(&mut self.netlink, &interface).map_err(|error| wrong(&error))?;
            self.interface_locks[at] =
                Some(InterfaceLock::try_take(&self.locks, &found).map_err(|error| wrong(&error))?);
            self.enter(direction, &found)?;
        }
        let stands = self.mend_queue(direction)?;
        if let Ok(found) = Interface::look(&mut self.netlink, &interface)
            && is_there
        {
            self.keep_merging_off(direction, &found)?;
        }
        Ok(!stands)
    }

    /// Sets up the queue of a direction if it is missing, and the classes that another program removed.
    /// Returns whether everything was in place.
    fn mend_queue(&mut self, direction: Direction) -> Result<bool, GatewayError> {
        let at = direction as usize;
        let Some(End { device, program: Some(_), .. }) = self.ends[at] else {
            self.install(direction)?;
            return Ok(false);
        };
        let found = self.netlink.class_statistics(device, MAJOR)?;
        self.note(direction, &found);
        let tree = &self.plans[at].tree;
        let missing = tree.missing(&found);
        if missing.is_empty() {
            return Ok(true);
        }
        if tree.is_all(&missing) || tree.restore(&missing, &mut self.netlink, device).is_err() {
            self.earlier[at].end_queue();
            self.install(direction)?;
        }
        let (interface, classes) = (self.interface(direction), missing.len());
        tracing::warn!(interface, classes, "classes of the queue had been taken away");
        Ok(false)
    }

    /// Turns merging off again, since another program may have turned offloads on.
    fn keep_merging_off(&mut self, direction: Direction, found: &Interface) -> Result<(), GatewayError> {
        let Some(end) = &self.ends[direction as usize] else { return Ok(()) };
        if found.to_turn_off().iter().all(|offload| end.stay_on.contains(offload)) {
            return Ok(());
        }
        let stay_on = self.turn_off_merging(found)?;
        if let Some(end) = &mut self.ends[direction as usize] {
            end.stay_on = stay_on;
        }
        Ok(())
    }
}

impl End {
    /// Redirects the frames that the device receives to the device `wanted`, or stops the redirection if that
    /// is absent. Also restores promiscuous mode, without which a device receives only part of the frames.
    fn redirect(&mut self, wanted: Option<u32>, netlink: &mut Netlink) -> Result<(), NetlinkError> {
        let stands = netlink.is_redirecting(self.device)? && netlink.device_at(self.device)?.is_promiscuous;
        if self.redirected == wanted && stands == wanted.is_some() {
            return Ok(());
        }
        self.redirected = None;
        match wanted {
            Some(to) => netlink.redirect(self.device, to)?,
            None => drop(netlink.stop_redirecting(self.device)?),
        }
        self.redirected = wanted;
        Ok(())
    }

    /// Detaches the program, after adding its counters to `earlier`.
    fn end_program(&mut self, earlier: &mut Earlier) {
        if let Some(program) = self.program.take() {
            earlier.end_program(program);
        }
    }

    /// Removes queue, program and redirection from the device, if it still exists.
    fn leave(self, netlink: &mut Netlink) {
        let device = self.device;
        for result in [netlink.stop_redirecting(device), netlink.delete_queue(device, MAJOR)] {
            if let Err(error) = result {
                tracing::warn!(device, %error, "something stays at an interface");
            }
        }
    }
}

impl Drop for KernelGateway {
    fn drop(&mut self) {
        for end in self.ends.iter_mut().filter_map(Option::take) {
            end.leave(&mut self.netlink);
        }
    }
}

fn has_the_customers(new: &HierarchyPlan, before: &DirectionPlan) -> bool {
    matches!(&before.program, Program::Hierarchy(old) if new.has_the_customers_of(old))
}

fn exchanges_as(new: &TicketSettings, before: &DirectionPlan) -> bool {
    matches!(&before.program, Program::Tickets(old) if new.exchanges() == old.exchanges())
}

/// Attaches the program of a plan to a device, by its present name.
fn attach(plan: &DirectionPlan, device: u32) -> Result<Attached, BpfError> {
    let name = if_indextoname(device).map(|name| name.to_string_lossy().into_owned());
    let interface =
        &*name.map_err(|errno| BpfError::Device { device: device.to_string(), cause: errno.to_string() })?;
    match &plan.program {
        Program::None => Ok(Attached::None),
        Program::Core(settings) => {
            let mut core = Core::load(settings)?;
            core.attach(interface)?;
            Ok(Attached::Core(Box::new(core)))
        }
        Program::Hierarchy(plan) => {
            let mut core = Hierarchy::load(&plan.settings, plan.end)?;
            for (prefix, customer) in &plan.of {
                core.set_prefix(prefix.first(), prefix.length(), *customer)?;
            }
            core.attach(interface)?;
            Ok(Attached::Hierarchy { core: Box::new(core), names: plan.names.clone() })
        }
        Program::Tickets(settings) => {
            let mut queue = Tickets::load(settings)?;
            queue.attach(interface)?;
            Ok(Attached::Tickets(Box::new(queue)))
        }
        Program::Prefixes { end, of } => {
            let mut classes = PrefixClasses::load(*end, plan.tree.others())?;
            for (prefix, class) in of {
                classes.set(prefix.first(), prefix.length(), *class)?;
            }
            classes.attach(interface)?;
            Ok(Attached::Prefixes(Box::new(classes)))
        }
    }
}
