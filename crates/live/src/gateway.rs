//! A gateway: a bump in the wire between two interfaces, configured by a [`GatewayConfig`].
//!
//! | file | holds |
//! |---|---|
//! | [`run`] | a gateway from start to end, as the command runs it |
//! | `world` | classifies frames for the engine |
//! | `classify` | flows and rules |
//! | `guarantees` | admission and renewal of guarantees |
//! | `label_limit` | limits on the labels of a rule's packets |
//! | `marks` | markers of flows |
//! | `reports` | messages between gateways |
//! | `reload` | changes the configuration without losing a packet |
//! | `reloads` | results of reloads, and of changes from the page |
//! | [`snapshot`] | measurements, for metrics and statistics |
//! | [`metrics`] | metrics in the format of Prometheus |
//! | [`control`] | the socket for commands and metrics, and signals |
//! | `page` | the dashboard for browsers |
//! | [`interfaces`] | properties of the interfaces, and checks that they fit |
//! | [`traffic`] | throughput by flow and second |
//! | `entitlement` | the entitlement of each flow by the rules |
//! | `history` | the last hour of throughputs, entitlements and events |
//! | `notifications` | overload notifications between the threads |
//! | `events` | events of the interfaces, between the threads |
//! | [`interface_lock`] | a lock for each interface |
//! | [`offloads`] | turns offloads off and restores them, also after a gateway that was killed |
//! | [`attachment`] | keeps ports attached while interfaces come and go |
//! | [`log`] | writes the log without blocking or failing |
//! | [`bypass`] | the kernel forwards in place of a gateway that does not run |
//! | [`capabilities`] | capabilities that the threads keep |
//! | `simulation` | a test of the whole gateway against a machine that fails |
//! | `supervision` | restarts threads, and serves systemd's watchdog |
//!
//! One thread moves packets and does nothing else; a second one answers commands and reads files; a third one
//! watches the interfaces. They share a snapshot, which is made ten times a second, and a queue of orders.

mod accounts;
pub mod attachment;
#[cfg(test)]
mod attacks;
mod autorate;
pub mod bypass;
pub mod capabilities;
mod classify;
pub mod control;
mod entitlement;
mod establishment;
mod events;
mod guarantees;
mod history;
mod hosts;
pub mod interface_lock;
pub mod interfaces;
mod label_limit;
pub mod log;
mod marks;
pub mod metrics;
mod non_flow_policer;
mod notifications;
pub mod offloads;
mod page;
mod reload;
mod reloads;
mod reports;
mod round_trip;
pub mod run;
#[cfg(test)]
mod simulation;
pub mod snapshot;
pub mod supervision;
pub mod traffic;
mod world;

use std::os::fd::BorrowedFd;

use apportion_core::mark::currency_exchange::CurrencyExchange;
use apportion_core::packet::LabelKind;
use apportion_core::random::Stream;
use apportion_core::units::{Bytes, Span, Time};
use apportion_linux::clock::Clock;
use apportion_linux::frame_io::{FrameIo, Ports, Socket};
use apportion_linux::pool::Pool;
use apportion_linux::port::Port;
use apportion_scenario::gateway::{Direction, DirectionConfig, GatewayConfig};
use apportion_scenario::model::Loss;

use self::accounts::MAX_ACCOUNTS;
use self::world::GatewayWorld;
use crate::bridge::{ETHERNET, LONGEST};
use crate::engine::{Engine, EngineError, Hop, Stop};
use crate::link::{Link, SharedState};
use crate::pace::Pace;
use crate::router::frames::Hardware;
use apportion_runtime::link::LinkParts;
use apportion_runtime::loss::RandomLoss;

/// Maximum of frames in flight, half of them in each direction. Chosen: 96 MB, 0.4 s of full frames at 1
/// Gbit/s each way; the system commits pages when they are first used.
const MAX_FRAMES: u32 = 1 << 16;
/// Memory for frames in bytes; the same where frames are longer.
const MEMORY: u64 = MAX_FRAMES as u64 * LONGEST as u64;
/// Bytes of two VLAN tags.
const TAGS: Bytes = Bytes::new(8);
/// Interval of periodic work. Chosen: the resolution that readers of metrics need.
pub(crate) const TICK: Span = Span::from_millis(100);

/// A gateway that moves packets.
#[derive(Debug)]
pub struct Gateway<I = Ports> {
    config: GatewayConfig,
    engine: Engine<GatewayWorld, I>,
    /// Addresses of its interfaces.
    hardware: [Hardware; 2],
    /// Packets that did not fit into the new queue of a reload, up and down.
    left_out: [u64; 2],
}

impl Gateway {
    /// A gateway between the open ports of the interfaces inside and outside, whose IP packets have at most
    /// `mtu` bytes.
    ///
    /// # Errors
    /// If the ports cannot be polled.
    pub fn new(config: GatewayConfig, ports: [Port; 2], mtu: Bytes) -> Result<Self, EngineError> {
        let hardware = ports.each_ref().map(Port::hardware);
        let io = Ports::new(Clock::start(), ports.into()).map_err(EngineError::Wait)?;
        Self::over(config, io, hardware, buffers(mtu))
    }
}

impl<I: FrameIo> Gateway<I> {
    /// A gateway between ports 0 and 1 of `io`, inside and outside, with these hardware addresses and
    /// buffers.
    ///
    /// # Errors
    /// If there are too many ports.
    pub fn over(
        config: GatewayConfig,
        io: I,
        hardware: [Hardware; 2],
        pool: Pool,
    ) -> Result<Self, EngineError> {
        let mut world = GatewayWorld::new(&config);
        world.set_reports(&config, hardware);
        let links = Direction::BOTH.map(|direction| link(&config, direction, &mut world));
        let routes = vec![Hop::Link(0), Hop::Port(1), Hop::Link(1), Hop::Port(0)];
        let shared = SharedState::new(pool, 2 * MAX_ACCOUNTS);
        let engine = Engine::new(io, links.into(), routes, shared, world)?;
        Ok(Self { config, engine, hardware, left_out: [0; 2] })
    }

    /// The configuration.
    #[must_use]
    pub const fn config(&self) -> &GatewayConfig {
        &self.config
    }

    /// The time on the engine's clock.
    #[must_use]
    pub fn now(&self) -> Time {
        self.engine.now()
    }

    /// Moves packets until `deadline` or until `wake` is readable, and does periodic work.
    ///
    /// # Errors
    /// If a socket fails for good. An interface that is down is no such failure.
    pub fn run_until(&mut self, deadline: Time, wake: Option<BorrowedFd<'_>>) -> Result<Stop, EngineError> {
        let stop = self.engine.run(deadline.min(self.engine.world.next_review()), wake)?;
        let now = self.engine.catch_up();
        self.engine.world.tick(now);
        self.set_autorates(now);
        self.engine.apply_flow_updates(now);
        Ok(stop)
    }

    /// Applies the estimated rates of links with autorate, if they changed.
    fn set_autorates(&mut self, now: Time) {
        for (way, rate) in self.engine.world.review(now).into_iter().enumerate() {
            if let Some(rate) = rate {
                self.engine.change(way, |link, shared| link.set_pace(now, Pace::rate(rate), shared));
            }
        }
    }

    /// Gives a port the socket of an interface that came back, or none because its interface has gone.
    ///
    /// # Errors
    /// If the socket cannot be polled.
    pub fn attach(&mut self, port: u32, socket: Option<I::Socket>) -> Result<(), EngineError> {
        let hardware = socket.as_ref().map(Socket::hardware);
        self.engine.replace_port(port, socket)?;
        if let Some((own, hardware)) = self.hardware.get_mut(port as usize).zip(hardware)
            && *own != hardware
        {
            *own = hardware;
            self.engine.world.set_reports(&self.config, self.hardware);
        }
        Ok(())
    }

    /// Packets that wait in both queues.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        let links = (0..2).filter_map(|number| self.engine.link(number));
        links.map(|link| link.state.backlog().packets.get()).sum()
    }
}

/// The longest frame from an interface with this MTU.
fn longest_frame(mtu: Bytes) -> Bytes {
    (mtu + ETHERNET + TAGS).max(Bytes::new(LONGEST as u64))
}

/// Buffers for both directions, for IP packets of at most `mtu`.
fn buffers(mtu: Bytes) -> Pool {
    let longest = longest_frame(mtu).get();
    let frames = (MEMORY / longest).min(MAX_FRAMES.into()) as u32;
    Pool::new(frames, longest as usize)
}

fn link(config: &GatewayConfig, direction: Direction, world: &mut GatewayWorld) -> Link {
    let own = config.direction(direction);
    let rate = world.rate(direction).unwrap_or(own.rate);
    let queue = world.direction_mut(direction).flows.discipline(config);
    let loss_stream = Stream::new(config.seed, &format!("{}.loss", direction.name()));
    let parts = LinkParts {
        delay: own.delay,
        loss: RandomLoss::new(Loss::Chance(own.loss), loss_stream),
        exchanges: exchanges(config, direction),
        ..LinkParts::new(direction as u32, queue, rate)
    };
    Link::new(parts, Pace::rate(rate), Some(1 - direction as u32))
}

/// The ticket exchanges of a direction: one for data if this direction is issued tickets, by the
/// configuration or by acknowledgements; one for acknowledgements if acknowledgements issue tickets to the
/// other direction.
fn exchanges(config: &GatewayConfig, direction: Direction) -> Vec<(LabelKind, CurrencyExchange)> {
    let [own, other] = [direction, direction.other()].map(|way| config.direction(way));
    let Some(exchange) = &own.exchange else { return Vec::new() };
    let make = |kind, tickets, purpose: &str| {
        let stream = Stream::new(config.seed, &format!("{}.{purpose}", direction.name()));
        (kind, CurrencyExchange::new(&exchange.params, kind, tickets, stream))
    };
    let is_issued = |way: &DirectionConfig| way.tickets.is_some() || way.ack_tickets.is_some();
    let data = is_issued(own).then(|| make(LabelKind::Tickets, own.tickets, "exchange"));
    let acks = other.ack_tickets.map(|tickets| make(LabelKind::AckTickets, Some(tickets), "ack_exchange"));
    data.into_iter().chain(acks).collect()
}
