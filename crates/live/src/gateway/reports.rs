//! Reports between gateways: connects the [`Router`] of a gateway to its flows and links.
//!
//! The link up leaves by the port outside, and the link down by the port inside. A direction and its link
//! therefore have the other number than the port by which their packets leave. Messages go through the queue
//! of the link that they leave by, as flow 0.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::net::IpAddr;

use apportion_core::packet::FlowId;
use apportion_core::random::Stream;
use apportion_core::units::{Span, Time};
use apportion_runtime::routers::{Links as _, manager_params};
use apportion_runtime::sffc::{FlowReport, FlowRule, Handled};
use apportion_scenario::gateway::{Direction, GatewayConfig, ReportKey};

use super::world::DirectionState;
use crate::engine::{ControlFrame, LinkStates};
use crate::frame::{FlowTuple, Parsed};
use crate::router::frames::{self, Hardware};
use crate::router::{Router, RouterContext};

/// Interval of checks of a queue that does not report. Chosen: rare compared with intervals of 50 ms.
const CHECK_INTERVAL: Span = Span::from_secs(1);

/// A gateway that reports.
#[derive(Debug)]
pub struct Reports {
    router: Router,
    setup: Setup,
    /// The hardware address that sent the last frame of each flow, by direction and flow.
    senders: [Vec<Hardware>; 2],
    /// Time at which the next interval ends or the router's timer expires.
    due: Time,
}

/// The settings of the router; other settings need a new router.
#[derive(Debug, PartialEq)]
struct Setup {
    address: IpAddr,
    key: Option<ReportKey>,
    /// The shortest and the longest interval of its queues.
    intervals: (Span, Span),
}

impl Setup {
    /// The settings by `config`; none if no queue reports.
    fn new(config: &GatewayConfig) -> Option<Self> {
        let interval = |direction| config.direction(direction).queue.params.report_interval();
        let intervals = Direction::BOTH.into_iter().filter_map(interval);
        let intervals = (intervals.clone().min()?, intervals.max()?);
        Some(Self { address: config.address?, key: config.report_key.clone(), intervals })
    }
}

impl Reports {
    /// `old`, or a new one if `config` needs another router; `hardware` are the addresses of the interfaces. None if no queue reports.
    #[must_use]
    pub fn after(old: Option<Self>, config: &GatewayConfig, hardware: [Hardware; 2]) -> Option<Self> {
        let setup = Setup::new(config)?;
        if let Some(old) = old
            && old.setup == setup
        {
            return Some(old);
        }
        let params = manager_params(setup.intervals.0, setup.intervals.1);
        // A hash with a random key of the system is a secret seed, and does not reveal the key.
        let random = Stream::new(RandomState::new().hash_one(0_u8), "router");
        let key = setup.key.as_ref().map(ReportKey::as_bytes);
        let router = Router::new(setup.address, hardware, &params, key, random);
        Some(Self { router, setup, senders: [Vec::new(), Vec::new()], due: Time::ZERO })
    }

    /// Whether a frame is a message between routers.
    #[must_use]
    pub fn is_message(frame: &[u8], parsed: &Parsed) -> bool {
        frames::read(frame, parsed).is_some()
    }

    /// Notes the sender of a flow's frame in this direction.
    pub fn note(&mut self, direction: usize, flow: FlowId, frame: &[u8]) {
        let Some(from) = frame.get(6..).and_then(<[u8]>::first_chunk) else { return };
        let senders = &mut self.senders[direction];
        if senders.len() <= flow.index() {
            senders.resize(flow.index() + 1, Hardware::default());
        }
        senders[flow.index()] = *from;
    }

    /// Handles a message that entered by `port`. Returns whether to forward it.
    pub fn on_control(
        &mut self,
        now: Time,
        port: u32,
        control: &ControlFrame<'_>,
        directions: &[DirectionState; 2],
        links: &mut LinkStates<'_>,
    ) -> bool {
        let mut view = View { directions, senders: &self.senders, links };
        let ControlFrame { frame, parsed, is_unfinished, .. } = control;
        let handled = self.router.on_frame(now, port, frame, parsed, *is_unfinished, &mut view);
        self.due = self.router.next_timer().map_or(self.due, |timer| timer.min(self.due));
        handled == Handled::Pass
    }

    /// Time to call [`on_timer`](Self::on_timer).
    #[must_use]
    pub const fn next_timer(&self) -> Time {
        self.due
    }

    /// Handles the events due at that time.
    pub fn on_timer(&mut self, now: Time, directions: &[DirectionState; 2], links: &mut LinkStates<'_>) {
        self.due = now + CHECK_INTERVAL;
        for port in [0, 1] {
            let Some(reporter) = links.reporter_mut(across(port)) else { continue };
            reporter.advance(now);
            self.due = self.due.min(reporter.interval_ends());
            let reports = reporter.take_reports();
            if !reports.is_empty() {
                let mut view = View { directions, senders: &self.senders, links };
                self.router.report(now, port, &reports, &mut view);
            }
        }
        if self.router.next_timer().is_some_and(|timer| timer <= now) {
            let mut view = View { directions, senders: &self.senders, links };
            self.router.on_timer(now, &mut view);
        }
        self.due = self.router.next_timer().map_or(self.due, |timer| timer.min(self.due));
    }

    /// The next frame to send, and the direction in which it leaves.
    pub fn transmit(&mut self) -> Option<(u32, Vec<u8>)> {
        self.router.transmit().map(|(port, frame)| (across(port), frame))
    }

    /// The limits that routers before this gateway would have to set to flows, with the flows.
    pub fn rules(&mut self, now: Time) -> impl Iterator<Item = (FlowTuple, FlowRule)> {
        self.router.rules(now)
    }

    /// Reports counters of messages sent, received and refused.
    pub fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        self.router.statistics(show);
    }
}

/// The direction, and link, of packets that leave by `port`; or the port of a direction.
const fn across(port: u32) -> u32 {
    1 - (port & 1)
}

/// The flows and links of the gateway, for the router.
struct View<'a, 'l> {
    directions: &'a [DirectionState; 2],
    senders: &'a [Vec<Hardware>; 2],
    links: &'a mut LinkStates<'l>,
}

impl RouterContext for View<'_, '_> {
    fn tuple(&self, port: u32, flow: FlowId) -> Option<FlowTuple> {
        self.directions[across(port) as usize].flows.tuple(flow)
    }
    fn flow(&self, port: u32, tuple: &FlowTuple) -> Option<FlowId> {
        self.directions[across(port) as usize].flows.number(tuple)
    }
    fn sender(&self, port: u32, flow: FlowId) -> Option<Hardware> {
        self.senders[across(port) as usize].get(flow.index()).copied()
    }
    fn carries(&self, port: u32, flow: FlowId) -> bool {
        self.links.reporter(across(port)).is_some_and(|reporter| reporter.carries(flow))
    }
    fn on_report(&mut self, port: u32, report: FlowReport) {
        if let Some(reporter) = self.links.reporter_mut(across(port)) {
            reporter.on_report(report);
        }
    }
}
