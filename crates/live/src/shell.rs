//! A command behind an emulated link, for an ordinary user: two hosts, a [`Bridge`] between them, and
//! measurements.
//!
//! | host | is | holds |
//! |---|---|---|
//! | near | 100.64.N.2 | the command |
//! | far | 100.64.N.1 | the peer of the command |
//!
//! The process itself sits between the two: its network namespace has no address and forwards nothing, so a
//! packet crosses the link or is lost. N is the number of shells around this one, so that an inner shell's
//! addresses are not those of an outer one; the kernel nests at most 32 user namespaces. Addresses are from
//! space that is not routed on the Internet (RFC 6598; RFC 4193 for IPv6).
//!
//! The caller keeps their own user inside ([`Identity::Caller`]): files look as they do outside, and programs
//! that refuse to run as root work. The process still has all rights over its namespaces until it executes a
//! program (user_namespaces(7)), and it never does. The command is executed, so it has no rights over the
//! link and cannot change it.
//!
//! One thread moves packets, and watches the commands in between. When the process ends, for any reason, the
//! commands end too ([`Processes`]), and with the last of them the namespaces.

mod addresses;
mod flows;
mod log;
mod speed;
mod summary;

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::Command;

use apportion_core::queue::Overload;
use apportion_core::random::Stream;
use apportion_core::system::{DisciplineParams, LinkContext};
use apportion_core::units::{Bytes, Rate, Ratio, Span, Time};
use apportion_linux::clock::Clock;
use apportion_linux::command::{self, CommandError, End, Group, Running, Signals};
use apportion_linux::host::{Host, HostError};
use apportion_linux::namespace::{
    EnterError, Identity, Isolation, MountError, NamespaceError, Processes, ProcessesError,
    enter_user_namespace, make_mounts_private, set_sysctl, sysctl,
};
use apportion_linux::port::{Port, PortError};
use apportion_linux::socket_helper::{Helper, HelperError};
use apportion_scenario::direction::Direction;
use apportion_scenario::gateway::RuleConfig;
use apportion_scenario::gateway::classifier::RuleSet;
use apportion_scenario::model::Loss;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::prctl::set_timerslack;

use crate::bridge::{Bridge, ETHERNET, RealRate};
use crate::engine::{Engine, EngineError, Stop};
use crate::host_proxy::{
    self, HostProxy, HostProxyError, ListenerGate, ResolvConfError, bind_resolv_conf, host_nameserver,
};
use crate::link::Link;
use crate::notifications::{FlowPackets, Notice, Readers};
use crate::pace::Pace;
use crate::unix_socket::SocketFile;
use apportion_runtime::link::LinkParts;
use apportion_runtime::loss::RandomLoss;
use apportion_runtime::probe::LinkCounts;

pub use addresses::{Addresses, MAX_DEPTH};
use flows::FlowSeries;
use log::LogObserver;
pub use log::{Log, LogFile};
pub use speed::{Speed, StepsError};
pub use summary::{DirectionSummary, Summary};

/// Bytes of the largest IP packet.
const MTU: Bytes = Bytes::new(1_500);
/// Overhead of IP packets on a recorded link in bytes: the recorder sees a header before each packet (the
/// packet information of a TUN device), so that a full packet takes one opportunity.
const OF_TRACES: Bytes = Bytes::new(4);
/// Maximum time until the program at the far end listens; then the command starts in any case.
const LISTEN_LIMIT: Span = Span::from_secs(5);
/// Interval at which overload notifications are passed on. Chosen: half of the 200 ms that an application may
/// wait for one.
const NOTICES: Span = Span::from_millis(100);
/// Maximum of samples. Chosen: an hour at 0.1 s.
const MAX_SAMPLES: usize = 36_000;

/// One direction of the link.
#[derive(Clone, Debug)]
pub struct DirectionParams {
    /// Times at which packets can be sent.
    pub speed: Speed,
    /// Delay of the wire.
    pub delay: Span,
    /// Loss probability of each packet on the wire.
    pub loss: Ratio,
    /// The queue in front of the transmitter.
    pub queue: DisciplineParams,
}

/// Parameters of a shell.
#[derive(Debug)]
pub struct Shell {
    /// Direction from the command to the far end.
    pub up: DirectionParams,
    /// Direction from the far end to the command.
    pub down: DirectionParams,
    /// Real-rate flows; all others are greedy.
    pub real_rate: Vec<RuleConfig>,
    /// All random streams derive from it.
    pub seed: u64,
    /// Number of shells around this one.
    pub depth: u8,
    /// The command behind the link.
    pub command: Command,
    /// The process group that the command joins.
    pub group: Group,
    /// A program at the far end: starts first, and is killed at the end.
    pub far: Option<Command>,
    /// Time after which the command is killed.
    pub limit: Option<Span>,
    /// The interval of time series; default: no series.
    pub sample: Option<Span>,
    /// Packet logs, up and down.
    pub log: Option<[Log; 2]>,
    /// The socket from which applications read overload notifications.
    pub notifications: Option<NotificationSocket>,
    /// Access to the machine's network; without it the command reaches the far end only.
    pub outside: Option<HostAccess>,
}

/// A Unix socket from which applications read overload notifications of real-rate flows.
#[derive(Debug)]
pub struct NotificationSocket {
    readers: Readers,
    _file: SocketFile,
}

impl NotificationSocket {
    /// Opens the socket at this path, which is removed when this value is dropped.
    ///
    /// # Errors
    /// If the socket cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { readers: Readers::open(path, "shell")?, _file: SocketFile(path.to_owned()) })
    }
}

/// Access to the network in which the process is before [`enter`].
#[derive(Debug)]
pub struct HostAccess {
    helper: Helper,
    /// The machine's nameserver; if none, names are not resolved behind the link either.
    pub nameserver: Option<SocketAddr>,
}

impl HostAccess {
    /// Forks a helper in the current network namespace. Call it before [`enter`], with a single thread.
    ///
    /// # Errors
    /// If the process cannot be forked, or the machine's resolv.conf cannot be read.
    pub fn prepare() -> Result<Self, ShellError> {
        let nameserver = host_nameserver().map_err(ShellError::ResolvConf)?;
        Ok(Self { helper: Helper::fork()?, nameserver })
    }
}

/// Why a shell cannot run, or ended.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    /// A user namespace cannot be entered.
    #[error(transparent)]
    Enter(#[from] EnterError),
    /// The mounts cannot be made private.
    #[error(transparent)]
    Mounts(#[from] MountError),
    /// A process namespace cannot be created.
    #[error(transparent)]
    Processes(#[from] ProcessesError),
    /// A network namespace cannot be created or entered.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// A host cannot be set up.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A port of the engine cannot be opened.
    #[error(transparent)]
    Port(#[from] PortError),
    /// A command cannot be started or waited for.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// The helper process for access to the host's network cannot be started.
    #[error(transparent)]
    Helper(#[from] HelperError),
    /// The proxy to the host's network cannot be opened.
    #[error(transparent)]
    Outside(#[from] HostProxyError),
    /// The machine's resolv.conf cannot be read.
    #[error("cannot read /etc/resolv.conf: {0}; repair it, or leave --outside out")]
    ResolvConf(io::Error),
    /// The command's resolv.conf cannot be set up.
    #[error(transparent)]
    BindResolvConf(#[from] ResolvConfError),
    /// Packets can no longer be moved.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A descriptor to wait for commands cannot be opened.
    #[error("cannot wait for commands: {0}")]
    Wait(Errno),
    /// Shells are nested too deep.
    #[error("shells nest at most {MAX_DEPTH} deep, and {0} are around this one; start it in an outer shell")]
    Depth(u8),
    /// There are too many rules.
    #[error("real_rate: {0}")]
    RealRate(String),
    /// A log could not be written to its end.
    #[error("cannot write the log: {0}; is the disk full?")]
    Log(io::Error),
}

/// Moves the process, which must have a single thread, into network and mount namespaces of its own for good.
///
/// # Errors
/// If the system forbids it; names the setting to change.
pub fn enter() -> Result<(), ShellError> {
    enter_user_namespace(Isolation { identity: Identity::Caller, network: true, mounts: true })?;
    Ok(make_mounts_private()?)
}

impl Shell {
    /// Runs the command, and the program at the far end, until the command ends. Call it after [`enter`].
    ///
    /// # Errors
    /// If the system refuses a step. The command, if it runs, is killed then.
    pub fn run(mut self) -> Result<Summary, ShellError> {
        let addresses = Addresses::at(self.depth).ok_or(ShellError::Depth(self.depth))?;
        // Without IPv6 outside, connections to IPv6 addresses would be reset; without an IPv6 address inside, programs
        // use IPv4.
        let has_ipv6 = self.outside.as_ref().is_none_or(|outside| outside.helper.has_ipv6());
        let hosts = Hosts::create(&addresses, has_ipv6)?;
        let ports = [Port::open(hosts.near.port)?, Port::open(hosts.far.port)?];
        let signals = Signals::with_stops()?;
        let outside = self.open_host_proxy(&addresses, &hosts)?;
        // From here on no thread can be started; the proxy's thread has been started.
        let processes = Processes::enclose()?;
        let far = self.start_far(&addresses, &hosts, &signals)?;
        addresses.set_environment(&mut self.command, self.depth, hosts.has_ipv6);
        let mut course = Course::new(&mut self, ports)?;
        let outside = outside.map(|(outside, gate)| {
            course.engine.world.set_listener_gate(gate);
            outside
        });
        let command = std::mem::replace(&mut self.command, Command::new("true"));
        let near = command::start(command, &hosts.near.namespace, self.group)?;
        // Commands do not inherit this. A timer is late by 50 µs by default, which would count as our
        // lateness.
        let _ = set_timerslack(1);
        let (end, far) = course.run(&self, near, far, &signals)?;
        drop(processes);
        let outside = outside.map(HostProxy::close);
        Ok(Summary { outside, ..course.summary(&self, &addresses, end, far)? })
    }

    /// Opens the proxy to the host's network, if it is wanted, and sets the command's nameserver.
    fn open_host_proxy(
        &mut self,
        addresses: &Addresses,
        hosts: &Hosts,
    ) -> Result<Option<(HostProxy, ListenerGate)>, ShellError> {
        let Some(HostAccess { helper, nameserver }) = self.outside.take() else { return Ok(None) };
        let (near, gateway) = (addresses.near(hosts.has_ipv6), addresses.far(hosts.has_ipv6));
        let opened = HostProxy::open(
            helper,
            &hosts.far.namespace,
            &host_proxy::Addresses { near, gateway, nameserver },
        )?;
        bind_resolv_conf(gateway[0])?;
        Ok(Some(opened))
    }

    fn start_far(
        &mut self,
        addresses: &Addresses,
        hosts: &Hosts,
        signals: &Signals,
    ) -> Result<Option<Running>, ShellError> {
        let Some(mut command) = self.far.take() else { return Ok(None) };
        addresses.set_environment(&mut command, self.depth, hosts.has_ipv6);
        // In its own group: the terminal's keys are for the command.
        let far = command::start(command, &hosts.far.namespace, Group::Own)?;
        let clock = Clock::start();
        while clock.now() < Time::ZERO + LISTEN_LIMIT {
            let mut signalled = [PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
            // A wait that is interrupted is only shorter. Signals are for the command, which starts at once.
            let is_signalled = poll(&mut signalled, PollTimeout::from(2u8)).is_ok_and(|ready| ready > 0);
            let is_ready = hosts.far.namespace.run(listens)? || far.has_ended(Some(Span::ZERO), None)?;
            if is_signalled || is_ready {
                break;
            }
        }
        Ok(Some(far))
    }

    fn direction(&self, direction: Direction) -> &DirectionParams {
        match direction {
            Direction::Up => &self.up,
            Direction::Down => &self.down,
        }
    }

    /// The real-rate flows of a direction.
    fn real_rate(&self, direction: Direction) -> Result<RealRate, ShellError> {
        let own: Vec<&RuleConfig> = self.real_rate.iter().filter(|rule| rule.is_for(direction)).collect();
        let targets = own.iter().map(|rule| rule.gives.target).collect();
        let rules = RuleSet::new(own.into_iter().map(|rule| rule.when.clone()).enumerate().collect());
        let rules = rules.map_err(|error| ShellError::RealRate(error.message))?;
        Ok(RealRate { rules, targets })
    }

    fn link(&self, direction: Direction) -> Link {
        let DirectionParams { speed, delay, loss, queue } = self.direction(direction);
        let name = direction.name();
        let pace = speed.at_start();
        let queue = queue.build(&LinkContext::new(pace.mean(), self.seed, &format!("link.{name}.queue")));
        let loss_stream = Stream::new(self.seed, &format!("link.{name}.loss"));
        let parts = LinkParts {
            delay: *delay,
            loss: RandomLoss::new(Loss::Chance(*loss), loss_stream),
            watched: true,
            ..LinkParts::new(direction as u32, queue, pace.mean())
        };
        Link::new(parts, pace, None)
    }
}

/// Whether a program waits for packets in the namespace of the calling thread: a listening TCP socket or a
/// bound UDP socket (proc_pid_net(5): the fourth column, TCP_LISTEN and TCP_CLOSE of linux/tcp_states.h).
fn listens() -> bool {
    [("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")].iter().any(|(file, state)| {
        let table = fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap_or_default();
        table.lines().skip(1).any(|line| line.split_whitespace().nth(3) == Some(state))
    })
}

/// Both ends of the link.
struct Hosts {
    near: Host,
    far: Host,
    has_ipv6: bool,
}

impl Hosts {
    fn create(addresses: &Addresses, may_have_ipv6: bool) -> Result<Self, ShellError> {
        // A kernel without IPv6, or with IPv6 off, refuses IPv6 addresses.
        let has_ipv6 =
            may_have_ipv6 && sysctl("net/ipv6/conf/default/disable_ipv6").is_ok_and(|value| value == "0");
        let near = Host::create("near", addresses.near(has_ipv6), MTU)?;
        let far = Host::create("far", addresses.far(has_ipv6), MTU)?;
        for host in [&near, &far] {
            // Lets ping work without rights (icmp(7)); where this cannot be written, ping needs rights.
            let group = nix::unistd::getegid();
            let _ = host
                .namespace
                .run(|| set_sysctl("net/ipv4/ping_group_range", &format!("{group} {group}")))?;
        }
        Ok(Self { near, far, has_ipv6 })
    }
}

/// A run under way.
struct Course {
    engine: Engine<Bridge>,
    flows: FlowSeries,
    /// Changes of rate, the next one last.
    steps: Vec<(Time, Direction, Rate)>,
    /// Time at which the next sample interval ends; never if there are no samples.
    sample: Time,
    notifications: Option<NotificationSocket>,
}

impl Course {
    fn new(shell: &mut Shell, ports: [Port; 2]) -> Result<Self, ShellError> {
        let mut engine =
            Bridge::between(ports, [shell.link(Direction::Up), shell.link(Direction::Down)], ETHERNET)?;
        let mut steps = Vec::new();
        for direction in Direction::BOTH {
            let speed = &shell.direction(direction).speed;
            if matches!(speed, Speed::Trace(_)) {
                engine.world.set_overhead(direction, OF_TRACES);
            }
            engine.world.set_real_rate(direction, shell.real_rate(direction)?);
            steps.extend(speed.later_steps().map(|(at, rate)| (at, direction, rate)));
        }
        steps.sort_by_key(|(at, ..)| std::cmp::Reverse(*at));
        if let Some(logs) = shell.log.take() {
            let speeds = [&shell.up.speed, &shell.down.speed];
            engine.shared.observer = Some(Box::new(LogObserver::new(logs, speeds)));
        }
        let sample = shell.sample.map_or(Time::MAX, |span| Time::ZERO + span);
        let notifications = shell.notifications.take();
        Ok(Self { engine, flows: FlowSeries::default(), steps, sample, notifications })
    }

    /// Moves packets until the command has ended or its time is up. Returns how it ended, and how the program
    /// at the far end ended, if that ended first.
    fn run(
        &mut self,
        shell: &Shell,
        near: Running,
        mut far: Option<Running>,
        signals: &Signals,
    ) -> Result<(End, Option<End>), ShellError> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(ShellError::Wait)?;
        let watch = |fd| epoll.add(fd, EpollEvent::new(EpollFlags::EPOLLIN, 0)).map_err(ShellError::Wait);
        watch(near.as_fd())?;
        watch(signals.as_fd())?;
        if let Some(far) = &far {
            watch(far.as_fd())?;
        }
        // Wakes when a reader connects, to greet it at once.
        let listener = self.notifications.as_ref().and_then(|socket| socket.readers.interests().next());
        if let Some((listener, _)) = listener {
            watch(listener)?;
        }
        let limit = shell.limit.map_or(Time::MAX, |limit| self.engine.now() + limit);
        let mut far_end = None;
        loop {
            let step = self.steps.last().map_or(Time::MAX, |(at, ..)| *at);
            let notices = self.notifications.as_ref().map_or(Time::MAX, |_| self.engine.now() + NOTICES);
            let deadline = limit.min(step).min(self.sample).min(notices);
            let stop = self.engine.run(deadline, Some(epoll.0.as_fd()))?;
            self.pass_notices();
            if stop == Stop::Woken {
                near.forward(signals)?;
                if near.has_ended(Some(Span::ZERO), None)? {
                    return Ok((near.wait(None, None)?, far_end));
                }
                if far.as_ref().map_or(Ok(false), |far| far.has_ended(Some(Span::ZERO), None))?
                    && let Some(ended) = far.take()
                {
                    epoll.delete(ended.as_fd()).map_err(ShellError::Wait)?;
                    far_end = Some(ended.wait(None, None)?);
                }
                continue;
            }
            if deadline == limit {
                return Ok((near.wait(Some(Span::ZERO), None)?, far_end));
            }
            self.at_deadline(deadline, shell.sample);
        }
    }

    /// Sends overload notifications to the applications that read them.
    fn pass_notices(&mut self) {
        let Some(socket) = &mut self.notifications else { return };
        let flows = self.engine.world.flows();
        let notice = |(at, link, overload): (Time, u32, Overload)| {
            let direction = *Direction::BOTH.get(link as usize)?;
            let packets = FlowPackets::Tuple(*flows.key(overload.flow)?);
            Some(Notice { at, direction, rule: None, packets, overload })
        };
        let notices: Vec<Notice> = self.engine.shared.overloads.drain(..).filter_map(notice).collect();
        socket.readers.write(self.engine.now(), &notices);
    }

    /// Handles what is due at `now`: a change of rate, the end of a sample interval.
    fn at_deadline(&mut self, now: Time, sample: Option<Span>) {
        while let Some((_, direction, rate)) = self.steps.pop_if(|(at, ..)| *at <= now) {
            let pace = Pace::rate(rate);
            self.engine.change(direction as usize, |link, shared| link.set_pace(now, pace, shared));
        }
        if now == self.sample {
            for link in [0, 1] {
                self.engine.change(link, |link, shared| link.state.sample(now, shared));
            }
            self.flows.sample(&self.engine.world, &self.engine.shared);
            let is_last = self.flows.samples() == MAX_SAMPLES;
            self.sample = if is_last { Time::MAX } else { sample.map_or(Time::MAX, |span| now + span) };
        }
    }

    fn summary(
        mut self,
        shell: &Shell,
        addresses: &Addresses,
        end: End,
        far: Option<End>,
    ) -> Result<Summary, ShellError> {
        let now = self.engine.now();
        if let Some(observer) = self.engine.shared.observer.take() {
            observer.finish(now).map_err(ShellError::Log)?;
        }
        let directions =
            Direction::BOTH.map(|direction| self.direction(direction, shell.direction(direction), now));
        let [near, far_port] = [0, 1].map(|port| self.engine.port_counts(port).unwrap_or_default().0);
        Ok(Summary {
            end,
            far,
            lasted: now.since(Time::ZERO),
            directions,
            ports: [near, far_port],
            malformed: self.engine.malformed().map(|(_, count)| count).sum(),
            flows_seen: self.engine.world.seen(),
            flows: self.flows.outcomes(&self.engine.world, &self.engine.shared, addresses),
            lateness: self.engine.lateness().distribution(),
            outside: None,
            doors: self.engine.world.listener_gate().map(ListenerGate::counts),
        })
    }

    fn direction(&mut self, direction: Direction, params: &DirectionParams, now: Time) -> DirectionSummary {
        let delay = self.engine.world.delays(direction).distribution();
        let measured = now.since(Time::ZERO);
        let mut summary = DirectionSummary {
            delay,
            is_unlimited: params.speed.is_unlimited(),
            ..DirectionSummary::default()
        };
        self.engine.change(direction as usize, |link, shared| {
            summary.busy = link.busy();
            summary.link = link.state.outcome(now, &LinkCounts::default(), measured, &|_| None, shared);
        });
        summary.link.name = direction.name().to_owned();
        summary
    }
}
