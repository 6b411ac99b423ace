//! The driver's thread: timers, events of sockets, measurements.

use std::net::SocketAddr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::Ordering;

use apportion_core::units::{Bytes, Span, Time};
use apportion_linux::clock::{Clock, timespec};
use apportion_linux::machine::ThreadTime;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

use super::connection::{Driven, Token, Tools};
use super::sockets::Listener;
use super::{Command, Driver, DriverError, DriverOutcome, Failure, FlowTotals, Inbox, MAX_COMMANDS, Plan};
use crate::timer_heap::TimerHeap;

/// Maximum of sockets in one round.
const EVENTS: usize = 256;
/// Maximum of connections that are accepted before other sockets get their turn.
const ACCEPTS: usize = 64;

/// Plays all connections until the plan's stop.
pub(super) fn run(driver: Driver, clock: Clock, inbox: &Inbox) -> Result<DriverOutcome, DriverError> {
    // The default is 50 µs. This only improves precision, so a refusal does no harm.
    let _ = nix::sys::prctl::set_timerslack(1);
    let mut run = Run::new(driver, clock, inbox)?;
    while !run.turn(inbox)? {}
    Ok(run.finish())
}

struct Run {
    clock: Clock,
    plan: Plan,
    connections: Vec<Driven>,
    listeners: Vec<Listener>,
    /// Connections by flow.
    members: Vec<Vec<u32>>,
    flows: Vec<FlowTotals>,
    /// Goodput, retransmissions and timeouts by flow at the start of the measured part.
    baseline: Vec<Counts>,
    is_measuring: bool,
    /// CPU time of this thread when the measured part began.
    thread: Option<ThreadTime>,
    next_sample: Time,
    /// Times at which connections are next due.
    timers: TimerHeap,
    tools: Tools,
}

/// Counts of a flow since its start.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    goodput: u64,
    retransmits: u64,
    timeouts: u64,
}

impl Run {
    fn new(driver: Driver, clock: Clock, inbox: &Inbox) -> Result<Self, DriverError> {
        let Driver { plan, connections, listeners, .. } = driver;
        let refused = |error: Errno| DriverError::Start(error.into());
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(refused)?;
        let readable = |token: Token| EpollEvent::new(EpollFlags::EPOLLIN, token.into());
        epoll.add(&*inbox.bell, readable(Token::Bell)).map_err(refused)?;
        for (number, listener) in (0..).zip(&listeners) {
            epoll.add(&listener.socket, readable(Token::Listener(number))).map_err(refused)?;
        }
        let mut run = Self {
            clock,
            plan,
            timers: TimerHeap::new(connections.len()),
            connections,
            listeners,
            members: vec![Vec::new(); plan.flows],
            flows: vec![FlowTotals::default(); plan.flows],
            baseline: vec![Counts::default(); plan.flows],
            is_measuring: plan.measure_from == Time::ZERO,
            thread: ThreadTime::read(),
            next_sample: if plan.sample > Span::ZERO { Time::ZERO + plan.sample } else { Time::MAX },
            tools: Tools::new(epoll),
        };
        for (number, connection) in (0..).zip(&mut run.connections) {
            connection.register(number, &run.tools).map_err(refused)?;
            run.members[connection.flow as usize].push(number);
        }
        (0..run.connections.len() as u32).for_each(|number| run.schedule(number));
        Ok(run)
    }

    /// Plays one round. Returns whether it was the last.
    fn turn(&mut self, inbox: &Inbox) -> Result<bool, DriverError> {
        let now = self.clock.now().min(self.plan.stop);
        self.advance(now);
        self.measure(now);
        if now == self.plan.stop || inbox.is_over.load(Ordering::Relaxed) {
            return Ok(true);
        }
        self.wait()?;
        let mut events = [EpollEvent::empty(); EVENTS];
        let count = match self.tools.epoll.wait(&mut events, EpollTimeout::ZERO) {
            Ok(count) => count,
            Err(Errno::EINTR) => 0,
            Err(error) => return Err(DriverError::Wait(error)),
        };
        let now = self.clock.now().min(self.plan.stop);
        for event in &events[..count] {
            self.handle(now, Token::from(event.data()), event.events(), inbox);
        }
        Ok(false)
    }

    /// Sleeps until a timer is due or a socket is ready.
    fn wait(&mut self) -> Result<(), DriverError> {
        let until = self.timers.next().min(self.next_sample).min(self.plan.stop);
        let until = if self.is_measuring { until } else { until.min(self.plan.measure_from) };
        let timeout = timespec(self.clock.until(until));
        let mut polled = [PollFd::new(self.tools.epoll.0.as_fd(), PollFlags::POLLIN)];
        match ppoll(&mut polled, Some(timeout), None) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(DriverError::Wait(error)),
        }
    }

    fn schedule(&mut self, number: u32) {
        self.timers.set(number, self.connections[number as usize].next());
    }

    /// Handles what is due by `now`, in the order of due times.
    fn advance(&mut self, now: Time) {
        while let Some(number) = self.timers.take(now) {
            self.connections[number as usize].act(now, &mut self.tools);
            self.schedule(number);
        }
    }

    fn handle(&mut self, now: Time, token: Token, flags: EpollFlags, inbox: &Inbox) {
        match token {
            Token::Bell => self.listen(now, inbox),
            Token::Listener(number) => self.accept(now, number),
            Token::Source(number) => {
                if let Some(connection) = self.connections.get_mut(number as usize) {
                    connection.on_source(now, flags, &mut self.tools);
                    self.schedule(number);
                }
            }
            Token::Sink(number) => {
                let Some(connection) = self.connections.get_mut(number as usize) else { return };
                if let Some(completion) = connection.on_sink(now, &mut self.tools) {
                    self.flows[connection.flow as usize].completions.push(completion);
                }
                self.schedule(number);
            }
        }
    }

    fn accept(&mut self, now: Time, number: u32) {
        let Some(listener) = self.listeners.get(number as usize) else { return };
        for _ in 0..ACCEPTS {
            let (sink, from) = match listener.socket.accept() {
                Ok(accepted) => accepted,
                Err(error) => {
                    let error = Errno::from_raw(error.raw_os_error().unwrap_or(0));
                    // The source reports such a connection; without free descriptors the listener would
                    // report it for ever.
                    if matches!(error, Errno::EMFILE | Errno::ENFILE | Errno::ENOBUFS | Errno::ENOMEM) {
                        let flow = listener.expected.values().next().copied().unwrap_or(0);
                        let flow =
                            self.connections.get(flow as usize).map_or(0, |connection| connection.flow);
                        self.tools.failures.push(Failure { flow, at: now, what: "accept", error });
                        let _ = self.tools.epoll.delete(&listener.socket);
                    }
                    return;
                }
            };
            let from = SocketAddr::new(from.ip(), from.port());
            if let Some(&number) = listener.expected.get(&from)
                && let Some(connection) = self.connections.get_mut(number as usize)
            {
                connection.accept(now, OwnedFd::from(sink), &mut self.tools);
            }
        }
    }

    fn listen(&mut self, now: Time, inbox: &Inbox) {
        // The value only shows that there was a signal.
        let _ = inbox.bell.read();
        for _ in 0..MAX_COMMANDS {
            match inbox.commands.try_recv() {
                Ok(Command::SetRate(flow, rate)) => {
                    self.for_each_connection(flow, |connection| connection.set_rate(now, rate));
                }
                Ok(Command::Overload(flow, overload)) => {
                    self.for_each_connection(flow, |connection| connection.on_overload(now, &overload));
                }
                // `Running::send` sends no `Stop` here.
                Ok(Command::Stop) | Err(_) => return,
            }
        }
    }

    /// Calls `what` for each connection of a flow.
    fn for_each_connection(&mut self, flow: u32, mut what: impl FnMut(&mut Driven)) {
        let members = self.members.get(flow as usize).map_or(0, Vec::len);
        for member in 0..members {
            let number = self.members[flow as usize][member];
            what(&mut self.connections[number as usize]);
            self.schedule(number);
        }
    }

    /// Takes the samples and counts that are due by `now`.
    fn measure(&mut self, now: Time) {
        if !self.is_measuring && now >= self.plan.measure_from {
            self.is_measuring = true;
            self.thread = ThreadTime::read();
            self.baseline = self.counts();
            for flow in &mut self.flows {
                flow.earlier = std::mem::take(&mut flow.completions);
            }
        }
        while self.next_sample <= now {
            for (members, flow) in self.members.iter().zip(&mut self.flows) {
                if let [member] = members[..]
                    && self.connections[member as usize].is_tcp()
                {
                    flow.tcp.push(self.connections[member as usize].sample());
                }
            }
            self.next_sample += self.plan.sample;
        }
    }

    fn counts(&mut self) -> Vec<Counts> {
        let mut all = vec![Counts::default(); self.plan.flows];
        for connection in &mut self.connections {
            let (retransmits, timeouts) = connection.count(&mut self.tools);
            let flow = &mut all[connection.flow as usize];
            flow.goodput += connection.delivered;
            flow.retransmits += retransmits;
            flow.timeouts += timeouts;
        }
        all
    }

    fn finish(mut self) -> DriverOutcome {
        let ended = self.clock.now();
        let measured = ended.since(self.plan.measure_from);
        let thread = ThreadTime::read().zip(self.thread);
        let thread = thread.and_then(|(after, before)| after.since(&before, measured));
        let counts = self.counts();
        for ((flow, after), before) in self.flows.iter_mut().zip(counts).zip(&self.baseline) {
            flow.goodput = Bytes::new(after.goodput.saturating_sub(before.goodput));
            flow.retransmits = after.retransmits.saturating_sub(before.retransmits);
            flow.timeouts = after.timeouts.saturating_sub(before.timeouts);
        }
        self.connections.iter_mut().for_each(|connection| connection.abandon(&mut self.tools));
        let Tools { failures, unsent, lateness, knows_timeouts, .. } = self.tools;
        DriverOutcome { flows: self.flows, failures, unsent, lateness, thread, knows_timeouts, ended }
    }
}
