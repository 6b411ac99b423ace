//! Two ports with a link in each direction between them; flows are distinguished by addresses and ports.
//!
//! Frames that are not IP are one more flow, number 0.

use std::collections::VecDeque;

use apportion_core::FlowSetting;
use apportion_core::packet::{FillTarget, FlowClass, FlowId};
use apportion_core::units::{Bytes, Span, Time};
use apportion_linux::clock::Clock;
use apportion_linux::frame_io::Ports;
use apportion_linux::pool::Pool;
use apportion_linux::port::Port;
use apportion_runtime::histogram::Histogram;
use apportion_scenario::direction::Direction;
use apportion_scenario::gateway::classifier::{Headers, RuleSet};

use crate::engine::{Arrival, Disposition, Engine, EngineError, Hop, World};
use crate::flow_table::FlowTable;
use crate::frame::FlowTuple;
use crate::host_proxy::ListenerGate;
use crate::link::{Link, SharedState};
use crate::packet::{Description, Packet};

/// The Ethernet header: addresses and type, without VLAN tags.
pub const ETHERNET: Bytes = Bytes::new(14);
/// The longest frame in bytes: 1500 with an Ethernet header and two VLAN tags.
pub(crate) const LONGEST: usize = 1_522;
/// Maximum of frames in flight, half of them in each direction. Chosen: 96 MB, 0.4 s of full frames at 1
/// Gbit/s each way; the system commits pages when they are first used.
const MAX_FRAMES: u32 = 1 << 16;
/// Maximum of flows that the table distinguishes. A flow keeps its number, and with it its counts, until
/// there are more.
const MAX_FLOWS: usize = 1 << 16;
const IDLE: Span = Span::MAX;

/// Numbers flows by addresses and ports.
#[derive(Debug)]
pub struct Bridge {
    flows: FlowTable<FlowTuple>,
    /// Flows that got a number, new or reused.
    seen: u64,
    /// Bytes charged to each IP packet in addition to its own, by direction.
    overhead: [Bytes; 2],
    /// Delays from arrival to departure, by direction.
    delays: [Histogram; 2],
    /// Sees frames that go up; default: none.
    listener_gate: Option<ListenerGate>,
    /// Real-rate flows by direction.
    real_rate: [RealRate; 2],
    /// Settings that links must learn of the flow that came last.
    settings: VecDeque<(u32, FlowId, FlowSetting)>,
}

/// The real-rate flows of one direction; none by default.
#[derive(Clone, Debug, Default)]
pub struct RealRate {
    /// Rules that the flows match.
    pub rules: RuleSet,
    /// Targets of their queues, by the number of the rule; none: the discipline's own target.
    pub targets: Vec<Option<FillTarget>>,
}

impl Bridge {
    /// An engine between `near` and `far` whose time begins now. Each IP packet is charged its own size plus
    /// `overhead`: [`ETHERNET`] to count what layer 2 carries.
    ///
    /// # Errors
    /// If the ports cannot be polled.
    pub fn between(
        [near, far]: [Port; 2],
        [up, down]: [Link; 2],
        overhead: Bytes,
    ) -> Result<Engine<Self>, EngineError> {
        let routes = vec![Hop::Link(0), Hop::Port(1), Hop::Link(1), Hop::Port(0)];
        let shared = SharedState::new(Pool::new(MAX_FRAMES, LONGEST), MAX_FLOWS + 1);
        let flows = FlowTable::new(FlowId(1), MAX_FLOWS, IDLE);
        let delays = [Histogram::default(), Histogram::default()];
        let world = Self {
            flows,
            seen: 0,
            overhead: [overhead; 2],
            delays,
            listener_gate: None,
            real_rate: Default::default(),
            settings: VecDeque::new(),
        };
        let io = Ports::new(Clock::start(), vec![near, far]).map_err(EngineError::Wait)?;
        Engine::new(io, vec![up, down], routes, shared, world)
    }

    /// Shows the gate each frame that goes up, so that the gate opens a listener for its destination before
    /// the frame arrives.
    pub fn set_listener_gate(&mut self, gate: ListenerGate) {
        self.listener_gate = Some(gate);
    }

    /// Sets which flows of this direction are real-rate; applies to flows that begin from now on.
    pub fn set_real_rate(&mut self, direction: Direction, real_rate: RealRate) {
        self.real_rate[direction as usize] = real_rate;
    }

    /// Sets the class of a flow; another flow may have had its number, with another class.
    fn give_class(&mut self, port: u32, flow: FlowId, headers: Option<&Headers>) {
        let RealRate { rules, targets } = &self.real_rate[usize::from(port != Direction::Up as u32)];
        if targets.is_empty() {
            return;
        }
        let rule = headers.and_then(|headers| rules.first(headers));
        let class = if rule.is_some() { FlowClass::RealRate } else { FlowClass::Greedy };
        let target = rule.and_then(|rule| targets.get(rule).copied().flatten());
        for setting in [FlowSetting::Class(class), FlowSetting::Target(target)] {
            self.settings.push_back((port, flow, setting));
        }
    }

    /// The gate that sees frames that go up.
    #[must_use]
    pub const fn listener_gate(&self) -> Option<&ListenerGate> {
        self.listener_gate.as_ref()
    }

    /// Charges `overhead` to each IP packet in this direction from now on.
    pub const fn set_overhead(&mut self, direction: Direction, overhead: Bytes) {
        self.overhead[direction as usize] = overhead;
    }

    /// Delays of packets in this direction, from arrival to departure.
    #[must_use]
    pub const fn delays(&self, direction: Direction) -> &Histogram {
        &self.delays[direction as usize]
    }

    /// Number of flows so far. Beyond 65,536, new flows get the numbers of silent ones.
    #[must_use]
    pub const fn seen(&self) -> u64 {
        self.seen
    }

    /// Flows that have a number.
    #[must_use]
    pub const fn flows(&self) -> &FlowTable<FlowTuple> {
        &self.flows
    }
}

impl World for Bridge {
    fn classify(&mut self, now: Time, arrival: Arrival<'_>) -> Disposition {
        let (port, parsed) = (arrival.port, arrival.parsed);
        if port == Direction::Up as u32
            && let Some(gate) = &mut self.listener_gate
        {
            gate.see(now, parsed);
        }
        let flow = parsed.flow().map_or(FlowId(0), |tuple| {
            let numbered = self.flows.number(now, tuple);
            if numbered.is_new {
                self.seen += 1;
                self.give_class(port, numbered.flow, parsed.headers.as_ref());
            }
            numbered.flow
        });
        let carried = Bytes::new((arrival.frame.len() as u64).saturating_sub(ETHERNET.get()));
        let description = Description {
            flow,
            size: carried + self.overhead[usize::from(port != Direction::Up as u32)],
            protocol: parsed.protocol,
            ecn: parsed.ecn,
            label: None,
            account: flow.0,
            counts: true,
            ip: parsed.ip(),
            acknowledgement: 0,
        };
        Disposition::Forward(arrival.packet(now, &description, 2 * port))
    }

    fn poll_flow_update(&mut self) -> Option<(u32, FlowId, FlowSetting)> {
        self.settings.pop_front()
    }

    fn egress(&mut self, now: Time, port: u32, packet: &Packet, _frame: &mut [u8]) {
        // Packets that leave by port 1 went up.
        self.delays[1 - port as usize].record(now.since(packet.arrived));
    }
}
