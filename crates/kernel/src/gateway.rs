//! A gateway whose packets the kernel moves: it hands the frames of each interface to the other one, whose HTB and tc program divide
//! them. This process sets that up, keeps it up and takes it away.
//!
//! | module | holds |
//! |---|---|
//! | `directions` | how the kernel carries out a configuration, or why it cannot |
//! | `run` | a gateway from its start to its end: signals, commands, metrics |
//! | [`statistics`] | what is counted |
//!
//! A direction has its queue at the interface that it leaves by. If the process is killed, frames still pass: programs go with it, HTB
//! and the redirection stay. The next gateway of the same interfaces begins anew.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use apportion_linux::netlink::{Netlink, NetlinkError};
use apportion_live::gateway::bypass::{self, BypassError};
use apportion_live::gateway::claim::{self, Claim};
use apportion_live::gateway::control::ControlError;
use apportion_live::gateway::interfaces::{self, Interface};
use apportion_scenario::gateway::{Direction, GatewayConfig};
use nix::errno::Errno;

use crate::htb::MAJOR;
use crate::program::{BpfError, Core, PrefixClasses};

mod directions;
mod run;
pub mod statistics;

pub use directions::{DirectionPlan, Program, plan};
pub use run::run;
use statistics::Earlier;

/// Why it did not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// The configuration or the interfaces are wrong, or the kernel cannot do what is asked: one problem a line.
    #[error("{0}")]
    Config(String),
    /// A queue cannot be set up.
    #[error("{interface}: {error}")]
    Queue {
        /// At its egress.
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
    /// Interfaces cannot be looked at.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    /// Commands cannot be taken.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// Signals and clients cannot be waited for.
    #[error("cannot wait for signals: {0}")]
    Wait(Errno),
    /// Rights that it does not need cannot be dropped.
    #[error("cannot drop capabilities: {0}")]
    Capabilities(io::Error),
}

/// What stands at the egress of an interface.
struct Installed {
    device: u32,
    /// It is attached as long as it is here.
    program: Attached,
    /// No other gateway has the interface.
    claim: Claim,
}

enum Attached {
    None,
    Core(Box<Core>),
    Prefixes { _classes: Box<PrefixClasses> },
}

/// A gateway that is set up, until it is dropped.
pub struct KernelGateway {
    config: GatewayConfig,
    plans: [DirectionPlan; 2],
    netlink: Netlink,
    /// The folder of the locks of interfaces.
    locks: PathBuf,
    /// Of the directions up and down; none while their interface is away.
    installed: [Option<Installed>; 2],
    /// Counted by queues that are gone.
    earlier: [Earlier; 2],
    fail_open: bool,
    /// Interfaces that could not be set up again, each of which the log has once.
    reported: BTreeSet<String>,
}

impl KernelGateway {
    /// Sets everything up between the interfaces of `config`, after what an earlier one left has been taken away. Locks of interfaces
    /// are files in `locks`. With `fail_open` frames are handed over undivided when it is dropped.
    ///
    /// # Errors
    /// What is wrong with the interfaces, as that another gateway has them, or the kernel's error; nothing is left behind then.
    pub fn start(
        config: GatewayConfig,
        plans: [DirectionPlan; 2],
        locks: &Path,
        fail_open: bool,
    ) -> Result<Self, GatewayError> {
        let wrong = |problems: Vec<String>| GatewayError::Config(problems.join("\n"));
        let found = interfaces::look(&config).map_err(wrong)?;
        let problems = unfit(&found);
        if !problems.is_empty() {
            return Err(wrong(problems));
        }
        let [inside, outside] = claim::take_both(locks, &found).map_err(wrong)?;
        bypass::set(&config, false)?;
        let netlink = Netlink::open()?;
        let mut gateway = Self {
            config,
            plans,
            netlink,
            locks: locks.to_owned(),
            installed: [None, None],
            earlier: Default::default(),
            fail_open: false,
            reported: BTreeSet::new(),
        };
        // Each direction has its queue where it leaves.
        gateway.install(Direction::Up, outside)?;
        gateway.install(Direction::Down, inside)?;
        bypass::set(&gateway.config, true)?;
        gateway.fail_open = fail_open;
        Ok(gateway)
    }

    /// What it runs by.
    #[must_use]
    pub const fn config(&self) -> &GatewayConfig {
        &self.config
    }

    /// Interfaces that frames cannot leave by as they should, one problem each.
    pub fn obstacles(&self) -> impl Iterator<Item = String> {
        Direction::BOTH
            .into_iter()
            .filter(|direction| self.installed[*direction as usize].is_none())
            .map(|direction| format!("{}: `{}` is not set up", direction.name(), self.interface(direction)))
    }

    /// The interface that a direction leaves by.
    fn interface(&self, direction: Direction) -> &str {
        match direction {
            Direction::Up => &self.config.outside,
            Direction::Down => &self.config.inside,
        }
    }

    /// Puts queue and program of a direction at its interface, which `claim` is of.
    fn install(&mut self, direction: Direction, claim: Claim) -> Result<(), GatewayError> {
        let interface = self.interface(direction).to_owned();
        let failed = |error| GatewayError::Queue { interface: interface.clone(), error };
        let device = self.netlink.index_of(&interface).map_err(failed)?;
        let plan = &self.plans[direction as usize];
        self.netlink.delete_queue(device, MAJOR).map_err(failed)?;
        plan.tree.install(&mut self.netlink, device).map_err(failed)?;
        let program = match attach(plan, &interface) {
            Ok(program) => program,
            Err(error) => {
                // The first error says more than a second one would.
                let _ = self.netlink.delete_queue(device, MAJOR);
                return Err(error.into());
            }
        };
        self.installed[direction as usize] = Some(Installed { device, program, claim });
        Ok(())
    }

    /// Puts other plans in the place of those that differ: in place where only numbers of the same classes differ, anew
    /// otherwise, when what waits in that direction is lost.
    ///
    /// # Errors
    /// Which direction could not be set up; its frames pass undivided, and [`mend`](Self::mend) tries again.
    pub fn apply(&mut self, config: GatewayConfig, plans: [DirectionPlan; 2]) -> Result<(), String> {
        self.config = config;
        let before = std::mem::replace(&mut self.plans, plans);
        let mut problems = Vec::new();
        for (direction, before) in Direction::BOTH.into_iter().zip(before) {
            if before == self.plans[direction as usize] {
                continue;
            }
            if let Err(error) = self.replace(direction, &before) {
                self.installed[direction as usize] = None;
                problems.push(format!(
                    "{}: {error}; its frames pass undivided, and it is tried again each second\n",
                    direction.name()
                ));
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(problems.concat()) }
    }

    /// Changes a direction that was carried out by the plan `before`.
    fn replace(&mut self, direction: Direction, before: &DirectionPlan) -> Result<(), GatewayError> {
        let at = direction as usize;
        let Some(mut installed) = self.installed[at].take() else {
            // The interface is away; when it is back it has the new plan.
            return Ok(());
        };
        let (interface, plan) = (self.interface(direction).to_owned(), &self.plans[at]);
        if !plan.tree.has_the_classes_of(&before.tree) {
            self.keep_counts(direction, installed.device, before);
            return self.install(direction, installed.claim);
        }
        let failed = |error| GatewayError::Queue { interface: interface.clone(), error };
        plan.tree.change(&before.tree, &mut self.netlink, installed.device).map_err(failed)?;
        match (&mut installed.program, &plan.program) {
            (Attached::Core(core), Program::Core(settings)) => core.set(settings)?,
            _ if plan.program == before.program => (),
            // The new one is attached before the old one goes.
            _ => installed.program = attach(plan, &interface)?,
        }
        self.installed[at] = Some(installed);
        Ok(())
    }

    /// Sets up again what is gone with its interface. Called once a second.
    pub fn mend(&mut self) {
        for direction in Direction::BOTH {
            let interface = self.interface(direction).to_owned();
            let now = self.netlink.index_of(&interface).ok();
            let stands = self.installed[direction as usize].as_ref().map(|installed| installed.device);
            if now == stands && now.is_some() {
                continue;
            }
            self.installed[direction as usize] = None;
            match self.install_again(direction) {
                Ok(()) => {
                    self.reported.remove(&interface);
                    tracing::info!(interface, "the interface is set up again");
                }
                Err(why) if self.reported.insert(interface.clone()) => {
                    tracing::warn!(interface, why, "the interface is not set up; trying again each second");
                }
                Err(_) => (),
            }
        }
    }

    fn install_again(&mut self, direction: Direction) -> Result<(), String> {
        let interface = self.interface(direction).to_owned();
        let found = Interface::look(&mut self.netlink, &interface)?;
        let claim = Claim::take(&self.locks, &found)?;
        self.install(direction, claim).map_err(|error| error.to_string())?;
        bypass::set(&self.config, true).map(drop).map_err(|error| error.to_string())
    }
}

/// Why frames of these interfaces cannot be handed over, one problem each.
#[must_use]
pub fn unfit(interfaces: &[Interface; 2]) -> Vec<String> {
    let merging = interfaces.iter().filter(|interface| interface.offloads.lro);
    let problem = |interface: &Interface| {
        let name = &interface.name;
        format!(
            "interface `{name}`: LRO is on, and what it merged cannot be cut again; turn it off: `ethtool -K {name} lro off`"
        )
    };
    merging.map(problem).collect()
}

impl Drop for KernelGateway {
    fn drop(&mut self) {
        if !self.fail_open {
            let _ = bypass::set(&self.config, false);
        }
        for installed in self.installed.iter().flatten() {
            let _ = self.netlink.delete_queue(installed.device, MAJOR);
        }
        if self.fail_open {
            tracing::warn!("the gateway fails open: frames pass undivided");
        }
    }
}

fn attach(plan: &DirectionPlan, interface: &str) -> Result<Attached, BpfError> {
    match &plan.program {
        Program::None => Ok(Attached::None),
        Program::Core(settings) => {
            let mut core = Core::load(settings)?;
            core.attach(interface)?;
            Ok(Attached::Core(Box::new(core)))
        }
        Program::Prefixes { end, of } => {
            let mut classes = PrefixClasses::load(*end, plan.tree.others())?;
            for (prefix, class) in of {
                classes.set(prefix.first(), prefix.length(), *class)?;
            }
            classes.attach(interface)?;
            Ok(Attached::Prefixes { _classes: Box::new(classes) })
        }
    }
}
