//! A gateway whose packets the kernel moves: it hands the frames of each interface to the other one, whose HTB and tc program divide
//! them. This process sets that up, keeps it up and takes it away.
//!
//! A direction has its queue at the interface that it leaves by. If the process is killed, frames still pass: programs go with it, HTB
//! and the redirection stay. The next gateway of the same interfaces begins anew.

use std::collections::BTreeSet;
use std::os::fd::AsFd as _;
use std::path::Path;

use apportion_core::aqm::csfq::CsfqParams;
use apportion_core::limit::Limit;
use apportion_core::packet::CustomerId;
use apportion_core::system::any::PolicyParams;
use apportion_core::system::{BufferParams, Catalog, CoreParams};
use apportion_core::units::{Bytes, Ratio, Span};
use apportion_linux::netlink::{Netlink, NetlinkError};
use apportion_live::gateway::bypass::{self, BypassError};
use apportion_live::gateway::{claim, control, interfaces};
use apportion_scenario::gateway::classifier::Prefix;
use apportion_scenario::gateway::{Direction, DirectionConfig, GatewayConfig, RuleConfig, TrustedSources};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use sd_notify::NotifyState;

use crate::classes::ClassTree;
use crate::htb::MAJOR;
use crate::plan::Plan;
use crate::program::{BpfError, Core, End, PrefixClasses};
use crate::settings::CoreSettings;

/// What HTB charges for a frame besides its IP packet.
const ETHERNET: Bytes = Bytes::new(14);
/// How often it is looked whether the interfaces are still those that were set up.
const PERIOD: Span = Span::from_secs(1);

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
    /// Signals cannot be taken.
    #[error("cannot take signals: {0}")]
    Signals(Errno),
}

/// How the kernel carries a direction out.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectionPlan {
    /// The queue.
    pub tree: ClassTree,
    /// The program in front of it.
    pub program: Program,
}

/// A program in front of a queue.
#[derive(Clone, Debug, PartialEq)]
pub enum Program {
    /// None: all packets have one queue.
    None,
    /// The core of CSFQ.
    Core(Box<CoreSettings>),
    /// Classes of inside addresses.
    Prefixes {
        /// Where the inside address is.
        end: End,
        /// Each with its class.
        of: Vec<(Prefix, u32)>,
    },
}

/// How the kernel carries out both directions of `config`, up and down.
///
/// # Errors
/// All that it cannot, one problem each, with the key.
pub fn plan(config: &GatewayConfig) -> Result<[DirectionPlan; 2], Vec<String>> {
    let mut problems = Vec::new();
    for (rule, key) in config.rules.iter().filter_map(|rule| Some((rule, user_space_key(rule)?))) {
        problems.push(format!(
            "rule `{}`: the kernel backend has no `{key}`; leave it out, or use the user-space backend",
            rule.name
        ));
    }
    let mut planned = |direction: Direction, own: &DirectionConfig| {
        let place = direction.name();
        let found = unplanned(own).map(|message| format!("{place}.{message}"));
        problems.extend(found);
        let plan = direction_plan(config, own, direction).map_err(|why| format!("{place}.queue: {why}"));
        plan.map_err(|why| problems.push(why)).ok()
    };
    let plans = [planned(Direction::Up, &config.up), planned(Direction::Down, &config.down)];
    match plans {
        [Some(up), Some(down)] if problems.is_empty() => Ok([up, down]),
        _ => Err(problems),
    }
}

/// What rules give that needs a look at each packet in user space.
fn user_space_key(rule: &RuleConfig) -> Option<&'static str> {
    let gives = &rule.gives;
    let keys = [
        (gives.customer.is_some(), "customer"),
        (gives.guarantee.as_bit() > 0, "guarantee"),
        (gives.label_limit.is_some(), "label_limit"),
        (gives.tickets.is_some(), "tickets"),
        (gives.ack_tickets.is_some(), "ack_tickets"),
        (gives.mark.is_some(), "mark"),
    ];
    keys.into_iter().find(|(is_given, _)| *is_given).map(|(_, key)| key)
}

/// The parameters of CSFQ, where that is the queue.
fn csfq(own: &DirectionConfig) -> Option<&CsfqParams> {
    match &own.queue.params.core {
        CoreParams::Buffered(BufferParams { drop: PolicyParams::Csfq(params), .. }) => Some(params),
        _ => None,
    }
}

/// What a direction asks for that the kernel does not have, with the mend.
fn unplanned(own: &DirectionConfig) -> impl Iterator<Item = &'static str> {
    let core = csfq(own);
    let leaves_labels = core.is_some_and(|core| !core.egress);
    let labels = &own.labels;
    let checks = [
        (own.auto.is_some(), "rate: only the user-space backend follows the link; write a rate"),
        (own.overhead != ETHERNET, "overhead: must be \"14B\": HTB charges Ethernet frames"),
        (own.delay > Span::ZERO, "delay: the kernel backend adds none; leave it out"),
        (own.loss > Ratio::ZERO, "loss: the kernel backend loses none; leave it out"),
        (
            own.exchange.is_some(),
            "tickets: only the user-space backend exchanges them; leave `tickets` and `ack_tickets` out",
        ),
        (
            core.is_some() && labels.reads != TrustedSources::All,
            "labels: the core in the kernel trusts all labels; write { reads = true }",
        ),
        (
            leaves_labels && !labels.writes,
            "labels: write { reads = true, writes = true }, or egress = true for the queue, which takes labels off",
        ),
        (
            core.is_none() && (labels.reads.is_any() || labels.writes),
            "labels: in the kernel only a core of csfq or mcsfq reads and writes them; leave them out",
        ),
    ];
    checks.into_iter().filter(|(refused, _)| *refused).map(|(_, message)| message)
}

fn direction_plan(
    config: &GatewayConfig,
    own: &DirectionConfig,
    direction: Direction,
) -> Result<DirectionPlan, String> {
    match Plan::of(&own.queue.params, own.rate).map_err(|refusal| refusal.to_string())? {
        Plan::Fifo(limit) => {
            Ok(DirectionPlan { tree: ClassTree::fifo(own.rate, limit), program: Program::None })
        }
        Plan::Core(settings) => {
            // The program drops what its virtual queue does not hold: this one is for the difference of the two clocks.
            let limit = Limit::Bytes(settings.limit() + settings.limit());
            let tree = ClassTree::fifo(own.rate, limit);
            Ok(DirectionPlan { tree, program: Program::Core(settings) })
        }
        Plan::Classes(tree) => {
            let end = match direction {
                Direction::Up => End::Source,
                Direction::Down => End::Destination,
            };
            let of = prefixes(config, &tree);
            Ok(DirectionPlan { tree: *tree, program: Program::Prefixes { end, of } })
        }
        Plan::Weights => {
            Err("a gateway's flows are not known beforehand, so that `drr` has no leaves for them \
                              in the kernel; write queue = { kind = \"htb\", .. } with classes, or use the \
                              user-space backend"
                .to_owned())
        }
    }
}

/// The class of each prefix: that of its customer or of the others, or 0, whose packets are dropped.
fn prefixes(config: &GatewayConfig, tree: &ClassTree) -> Vec<(Prefix, u32)> {
    let names = config.customer_names();
    let class = |customer: CustomerId| {
        let own = names.get(customer.0 as usize).and_then(|name| tree.class_of(name));
        own.or(tree.others()).unwrap_or(0)
    };
    config.addresses.iter().map(|(prefix, customer)| (prefix, class(customer))).collect()
}

/// Runs the gateway of the configuration file at `path`, whose queues are of `catalog`, until SIGINT or SIGTERM stops it; SIGHUP reloads the
/// file. Locks are in `folder`, unless root's. Called with a single thread. With `fail_open` frames are handed over undivided
/// when it ends.
///
/// # Errors
/// Why it did not start, or ended.
pub fn run(path: &Path, folder: &Path, catalog: &Catalog, fail_open: bool) -> Result<(), GatewayError> {
    let signals = signals()?;
    let wrong = |problems: Vec<String>| {
        let lines = problems.iter().map(|problem| format!("{}: {problem}\n", path.display()));
        GatewayError::Config(lines.collect())
    };
    let config = control::load(path, catalog).map_err(GatewayError::Config)?;
    let plans = plan(&config).map_err(wrong)?;
    let found = interfaces::look(&config).map_err(wrong)?;
    let _claims = claim::take_both(&claim::folder(folder), &found).map_err(wrong)?;
    warn(&config);
    let mut gateway = KernelGateway::start(config, plans, fail_open)?;
    // It may run without systemd.
    let _ = sd_notify::notify(&[NotifyState::Ready]);
    tracing::info!(title = gateway.config.title, "the gateway is running, in the kernel");
    let why = loop {
        match next_signal(&signals)? {
            Some(Signal::SIGHUP) => gateway.reload(path, catalog),
            Some(signal) => break signal,
            None => gateway.mend(),
        }
        let _ = sd_notify::notify(&[NotifyState::Watchdog]);
    };
    let _ = sd_notify::notify(&[NotifyState::Stopping]);
    tracing::info!(why = why.as_str(), "the gateway stops; packets that wait are dropped");
    Ok(())
}

fn signals() -> Result<SignalFd, GatewayError> {
    let set: SigSet = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().collect();
    set.thread_block().map_err(GatewayError::Signals)?;
    SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC).map_err(GatewayError::Signals)
}

/// The next signal; none if none comes within [`PERIOD`].
fn next_signal(signals: &SignalFd) -> Result<Option<Signal>, GatewayError> {
    let timeout = PollTimeout::try_from(PERIOD.as_nanos() / 1_000_000).unwrap_or(PollTimeout::MAX);
    match poll(&mut [PollFd::new(signals.as_fd(), PollFlags::POLLIN)], timeout) {
        Ok(_) | Err(Errno::EINTR) => (),
        Err(error) => return Err(GatewayError::Signals(error)),
    }
    let info = signals.read_signal().map_err(GatewayError::Signals)?;
    Ok(info.and_then(|info| Signal::try_from(info.ssi_signo.cast_signed()).ok()))
}

/// Says which keys have no effect here.
fn warn(config: &GatewayConfig) {
    let keys = [("metrics", config.metrics.is_some()), ("exceptions", config.exceptions.is_some())];
    for (key, _) in keys.into_iter().filter(|(_, is_set)| *is_set) {
        tracing::warn!(
            key,
            "has no effect in the kernel backend; `tc -s class show dev INTERFACE` has counters"
        );
    }
}

/// What stands at the egress of an interface.
struct Installed {
    device: u32,
    /// It is attached as long as it is here.
    _program: Attached,
}

enum Attached {
    None,
    Core { _core: Box<Core> },
    Prefixes { _classes: Box<PrefixClasses> },
}

/// A gateway that is set up, until it is dropped.
pub struct KernelGateway {
    config: GatewayConfig,
    plans: [DirectionPlan; 2],
    netlink: Netlink,
    /// Of the directions up and down; none while their interface is away.
    installed: [Option<Installed>; 2],
    fail_open: bool,
    /// Interfaces that could not be set up again, each of which the log has once.
    reported: BTreeSet<String>,
}

impl KernelGateway {
    /// Sets everything up between the interfaces of `config`, after what an earlier one left has been taken away.
    ///
    /// # Errors
    /// The kernel's; nothing is left behind then.
    pub fn start(
        config: GatewayConfig,
        plans: [DirectionPlan; 2],
        fail_open: bool,
    ) -> Result<Self, GatewayError> {
        bypass::set(&config, false)?;
        let netlink = Netlink::open()?;
        let mut gateway = Self {
            config,
            plans,
            netlink,
            installed: [None, None],
            fail_open: false,
            reported: BTreeSet::new(),
        };
        for direction in Direction::BOTH {
            gateway.install(direction)?;
        }
        bypass::set(&gateway.config, true)?;
        gateway.fail_open = fail_open;
        Ok(gateway)
    }

    /// The interface that a direction leaves by.
    fn interface(&self, direction: Direction) -> &str {
        match direction {
            Direction::Up => &self.config.outside,
            Direction::Down => &self.config.inside,
        }
    }

    fn install(&mut self, direction: Direction) -> Result<(), GatewayError> {
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
        self.installed[direction as usize] = Some(Installed { device, _program: program });
        Ok(())
    }

    /// Reads the file again. What it changes is set up anew, and what waits there is lost; a file that is wrong changes nothing.
    fn reload(&mut self, path: &Path, catalog: &Catalog) {
        let read = || {
            let config = control::load(path, catalog)?;
            let plans = plan(&config).map_err(|problems| problems.join("\n"))?;
            if [&config.inside, &config.outside] != [&self.config.inside, &self.config.outside] {
                return Err("other interfaces need a restart".to_owned());
            }
            Ok((config, plans))
        };
        match read() {
            Ok((config, plans)) => self.apply(config, plans),
            Err(why) => tracing::error!(why = why.trim_end(), "the file is not applied"),
        }
    }

    /// Puts other plans in the place of those that differ.
    pub fn apply(&mut self, config: GatewayConfig, plans: [DirectionPlan; 2]) {
        self.config = config;
        let before = std::mem::replace(&mut self.plans, plans);
        for (direction, before) in Direction::BOTH.into_iter().zip(before) {
            if before == self.plans[direction as usize] {
                continue;
            }
            match self.install(direction) {
                Ok(()) => tracing::info!(direction = direction.name(), "set up anew"),
                Err(error) => {
                    self.installed[direction as usize] = None;
                    tracing::error!(direction = direction.name(), %error, "frames pass undivided; trying again");
                }
            }
        }
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
            let again = match now {
                None => Err(format!("there is no interface `{interface}`")),
                Some(_) => self
                    .install(direction)
                    .and_then(|()| Ok(bypass::set(&self.config, true).map(drop)?))
                    .map_err(|error| error.to_string()),
            };
            match again {
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
}

impl Drop for KernelGateway {
    fn drop(&mut self) {
        if !self.fail_open {
            let _ = bypass::set(&self.config, false);
        }
        for direction in Direction::BOTH {
            let interface = self.interface(direction).to_owned();
            if let Ok(device) = self.netlink.index_of(&interface) {
                let _ = self.netlink.delete_queue(device, MAJOR);
            }
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
            Ok(Attached::Core { _core: Box::new(core) })
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
