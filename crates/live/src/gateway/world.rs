//! Classifies the frames of a gateway: flow, label and account.
//!
//! The label of every frame that enters is removed, trusted or not, and written again when a frame that keeps
//! it leaves: a frame in a queue never carries an old label.

use std::sync::Arc;

use apportion_core::label::Label;
use apportion_core::packet::{Ecn, FlowId, LabelKind, Protocol};
use apportion_core::units::{Bytes, Rate, Span, Time};
use apportion_core::{FlowSetting, Packet as _};
use apportion_scenario::gateway::classifier::Headers;
use apportion_scenario::gateway::{Direction, GatewayConfig, Labels};

use super::accounts::Accounts;
use super::autorate::{Autorates, Findings, TcpSegment};
use super::classify::{Classifier, Found, Settings};
use super::non_flow_policer::NonFlowPolicer;
use super::reports::Reports;
use super::traffic::{self, Meter, Traffic};
use crate::bridge::ETHERNET;
use crate::engine::{Arrival, ControlFrame, Disposition, Hop, LinkStates, Outgoing, Place, World};
use crate::frame::{self, FlowTuple, Parsed, Segment, Timestamps};
use crate::packet::{Description, Packet};
use crate::router::frames::Hardware;
use crate::wire_label;

/// Both directions of a gateway.
#[derive(Debug)]
pub struct GatewayWorld {
    directions: [DirectionState; 2],
    accounts: Accounts,
    /// Updates of flows for links, which are applied before the current packet enters.
    settings: Settings,
    /// Present if a queue reports.
    reports: Option<Reports>,
    /// Present if a rate follows the link.
    autorates: Option<Box<Autorates>>,
    /// Delay that the links add to a round trip behind their transmitters.
    delay: Span,
    /// Time at which the current period of traffic began, and the number of earlier ones.
    period: (Time, u64),
}

/// One direction: from the port of its number to the other one, over the link of its number.
#[derive(Debug)]
pub struct DirectionState {
    pub flows: Classifier,
    labels: Labels,
    overhead: Bytes,
    /// Labels removed unused, because their sender is not trusted.
    pub ignored: u64,
    /// Trusted labels removed because they exceeded the limit of their rule.
    pub over_limit: u64,
    /// Packets sent without their label because the header has no room.
    pub unlabelled: u64,
    /// Packets of flows that are not established, and frames without a flow, dropped at arrival because of
    /// overload.
    pub shed: u64,
    /// Polices frames without a flow during overload.
    non_flow_policer: NonFlowPolicer,
    /// Delay that the link adds behind its transmitter.
    delay: Span,
    meter: Meter,
    /// Traffic of the last complete period.
    pub traffic: Arc<Traffic>,
}

impl GatewayWorld {
    /// A world without flows.
    #[must_use]
    pub fn new(config: &GatewayConfig) -> Self {
        let mut accounts = Accounts::default();
        let directions = Direction::BOTH.map(|direction| {
            let own = config.direction(direction);
            DirectionState {
                flows: Classifier::new(direction, config, &numbers(&mut accounts, config, direction)),
                labels: own.labels.clone(),
                overhead: own.overhead,
                ignored: 0,
                over_limit: 0,
                unlabelled: 0,
                shed: 0,
                non_flow_policer: NonFlowPolicer::default(),
                delay: own.delay,
                meter: Meter::default(),
                traffic: Arc::default(),
            }
        });
        let delay = delay_of_both(config);
        Self {
            directions,
            accounts,
            settings: Settings::new(),
            reports: None,
            autorates: Autorates::after(None, config, Time::ZERO),
            delay,
            period: (Time::ZERO, 0),
        }
    }

    #[must_use]
    pub const fn direction(&self, direction: Direction) -> &DirectionState {
        &self.directions[direction as usize]
    }

    pub const fn direction_mut(&mut self, direction: Direction) -> &mut DirectionState {
        &mut self.directions[direction as usize]
    }

    /// Classifiers of both directions, down first.
    #[cfg(test)]
    pub fn both_ways(&mut self) -> (&mut Classifier, &mut Classifier) {
        let [up, down] = &mut self.directions;
        (&mut down.flows, &mut up.flows)
    }

    /// Applies the labels, overhead and limits of `config`, and its rules if they differ. Updates for links
    /// are queued.
    pub fn change(&mut self, now: Time, config: &GatewayConfig, rules: bool) {
        self.delay = delay_of_both(config);
        self.autorates = Autorates::after(self.autorates.take(), config, now);
        for direction in Direction::BOTH {
            let own = config.direction(direction);
            let state = &mut self.directions[direction as usize];
            (state.labels, state.overhead) = (own.labels.clone(), own.overhead);
            state.delay = own.delay;
            state.flows.set_limits(own.rate, config.flow_idle, &mut self.settings);
            if rules {
                let numbers = numbers(&mut self.accounts, config, direction);
                state.flows.set_rules(now, config, &numbers, &mut self.accounts, &mut self.settings);
            }
            state.flows.set_isolation(now, config, &mut self.settings);
        }
    }

    /// Applies the report settings of `config`; `hardware` are the addresses of the interfaces.
    pub fn set_reports(&mut self, config: &GatewayConfig, hardware: [Hardware; 2]) {
        self.reports = Reports::after(self.reports.take(), config, hardware);
    }

    /// The reports, if a queue reports.
    pub const fn reports_mut(&mut self) -> Option<&mut Reports> {
        self.reports.as_mut()
    }

    /// The current rate of a direction, if a rate follows the link.
    #[must_use]
    pub fn rate(&self, direction: Direction) -> Option<Rate> {
        self.autorates.as_ref().map(|autorates| autorates.rate(direction))
    }

    /// The measurements behind the rate of a direction, if it follows the link.
    #[must_use]
    pub fn findings(&self, direction: Direction) -> Option<Findings> {
        self.autorates.as_ref()?.findings(direction)
    }

    /// Time to review the rates next.
    #[must_use]
    pub fn next_review(&self) -> Time {
        self.autorates.as_ref().map_or(Time::MAX, |autorates| autorates.next_review())
    }

    /// Reviews the rates, up and down. Returns those that change.
    pub fn review(&mut self, now: Time) -> [Option<Rate>; 2] {
        self.autorates.as_mut().map_or([None; 2], |autorates| autorates.review(now))
    }

    /// Does periodic work.
    pub fn tick(&mut self, now: Time) {
        for state in &mut self.directions {
            state.flows.release(now, &mut self.settings);
        }
        let (start, number) = self.period;
        let Some(span) = traffic::is_over(start, now) else { return };
        self.period = (now, number + 1);
        for (way, state) in self.directions.iter_mut().enumerate() {
            let DirectionState { flows, meter, traffic, .. } = state;
            let known = |flow| {
                let (packets, terms, of_rule) = flows.terms(flow);
                let other = match flow {
                    FlowId(0) => Accounts::no_flow(way),
                    _ => Accounts::unmatched(Direction::BOTH[way]),
                };
                (self.accounts.rule(of_rule.unwrap_or(other)), packets, terms)
            };
            let customers = (|flow| flows.customer(flow), |customer| flows.customer_name(customer));
            *traffic = Arc::new(meter.close(number, span, known, customers));
        }
    }

    /// The accounts.
    #[must_use]
    pub const fn accounts(&self) -> &Accounts {
        &self.accounts
    }
}

/// Delay that the links of both directions add behind their transmitters.
fn delay_of_both(config: &GatewayConfig) -> Span {
    let [up, down] = Direction::BOTH.map(|direction| config.direction(direction).delay);
    up + down
}

/// The accounts of the rules, by number of the rule.
fn numbers(accounts: &mut Accounts, config: &GatewayConfig, direction: Direction) -> Vec<u32> {
    config.rules.iter().map(|rule| accounts.of_rule(&rule.name, direction)).collect()
}

/// Measures the round trip of a connection by a segment that arrived. The first of these directions is that
/// of the segment's flow, which answers the other one. `delay` of the links is added.
fn follow_round_trip(
    now: Time,
    (tuple, segment, stamps): (&FlowTuple, Segment, Option<Timestamps>),
    [own, opposite]: [&mut Classifier; 2],
    delay: Span,
    settings: &mut Settings,
) {
    let back = tuple.reversed();
    if opposite.answered(now, &back, segment, stamps)
        && let Some(ahead) = opposite.shortest_half(now, &back)
        && let Some(behind) = own.shortest_half(now, tuple)
    {
        let halves = ahead + behind + delay;
        own.confirm_rtt(now, tuple, halves, settings);
        opposite.confirm_rtt(now, &back, halves, settings);
    }
}

/// The segment of a packet, if it is TCP.
fn segment_of(packet: &Packet, frame: &[u8]) -> Option<TcpSegment> {
    if packet.protocol() != Protocol::Tcp {
        return None;
    }
    let parsed = frame::parse(frame).ok()?;
    let (tuple, segment) = parsed.flow().zip(parsed.segment)?;
    Some((tuple, segment, frame::timestamps(frame, &parsed)))
}

impl World for GatewayWorld {
    fn classify(&mut self, now: Time, arrival: Arrival<'_>) -> Disposition {
        let parsed = arrival.parsed;
        let number = arrival.port as usize & 1;
        if self.reports.is_some() && Reports::is_message(arrival.frame, parsed) {
            let description = Description { ip: parsed.ip(), ..self.message(arrival.frame, number) };
            return Disposition::Forward(arrival.packet(now, &description, 2 * number as u32));
        }
        let state = &mut self.directions[number];
        let size = state.charged(arrival.frame);
        if let Some(autorates) = &mut self.autorates {
            let stamps = frame::timestamps(arrival.frame, parsed);
            let segment = parsed.flow().zip(parsed.segment).map(|(tuple, segment)| (tuple, segment, stamps));
            autorates.arrived(now, Direction::BOTH[number], size, segment);
        }
        // ARP belongs to no flow, and neither does neighbour discovery, its counterpart in IPv6.
        let tuple = parsed.flow().filter(|_| !parsed.is_neighbour_discovery(arrival.frame));
        if arrival.port_lags && !state.passes_while_port_lags(now, tuple.as_ref()) {
            state.shed += 1;
            return Disposition::Consume;
        }
        let (headers, label) = state.take_label(arrival.frame, parsed);
        let Noted { found, label, acknowledged } = match headers.as_ref().zip(tuple) {
            Some((headers, tuple)) => self.note_flow(now, &arrival, (headers, tuple), (size, label)),
            None => {
                let found = Found { flow: FlowId(0), account: Accounts::no_flow(number), is_first: false };
                Noted { found, label, acknowledged: None }
            }
        };
        if let Some(reports) = &mut self.reports {
            reports.note(number, found.flow, arrival.frame);
        }
        self.directions[number].flows.arrived(now, found.flow, size, &mut self.settings);
        let description = Description {
            flow: found.flow,
            size,
            protocol: parsed.protocol,
            ecn: parsed.ecn,
            label,
            account: found.account,
            counts: true,
            ip: parsed.ip(),
            acknowledgement: 0,
        };
        // The table of routes has two places for each direction.
        let dscp = headers.map_or(0, |headers| headers.dscp);
        let mut packet = arrival.packet(now, &description, 2 * number as u32).with_dscp(dscp);
        if let Some(marks) = acknowledged.and_then(|flow| self.directions[1 - number].flows.marks(flow)) {
            marks.mark_acknowledgement(now, &mut packet);
        }
        // A marker of its own rule overwrites that mark.
        if let Some(marks) = self.directions[number].flows.marks(found.flow) {
            let payload = parsed.segment.map_or(Bytes::ZERO, |segment| segment.payload);
            marks.mark(now, &mut packet, payload);
        }
        Disposition::Forward(packet)
    }

    fn poll_flow_update(&mut self) -> Option<(u32, FlowId, FlowSetting)> {
        self.settings.pop_front()
    }

    fn egress(&mut self, now: Time, port: u32, packet: &Packet, frame: &mut [u8]) {
        let uses_rtts = self.directions.iter().any(|state| state.flows.uses_rtts());
        let state = &mut self.directions[1 - (port as usize & 1)];
        if packet.counts() {
            let sojourn = now.since(packet.arrived).saturating_sub(state.delay);
            state.meter.sent(packet.flow(), packet.size(), sojourn);
        }
        let direction = Direction::BOTH[1 - (port as usize & 1)];
        let watches = self.autorates.as_ref().is_some_and(|autorates| autorates.watches(direction));
        let segment = (uses_rtts || watches).then(|| segment_of(packet, frame)).flatten();
        if let Some((tuple, segment, stamps)) = segment.filter(|_| uses_rtts) {
            state.flows.departed(now, packet.flow(), &tuple, segment, stamps);
        }
        if let Some(autorates) = &mut self.autorates {
            autorates.departed(now, direction, packet.size(), segment);
        }
        if state.labels.writes
            && let Some((kind, label)) = packet.any_label()
            && !wire_label::write(frame, packet.ip(), kind, label)
        {
            state.unlabelled += 1;
        }
    }

    fn on_control(&mut self, now: Time, control: ControlFrame<'_>, links: &mut LinkStates<'_>) -> bool {
        match (&mut self.reports, control.place) {
            (Some(reports), Place::Port(port)) => {
                reports.on_control(now, port, &control, &self.directions, links)
            }
            // A message of this gateway at the end of its link.
            _ => true,
        }
    }

    fn next_timer(&self) -> Time {
        self.reports.as_ref().map_or(Time::MAX, Reports::next_timer)
    }

    fn on_timer(&mut self, now: Time, links: &mut LinkStates<'_>) {
        if let Some(reports) = &mut self.reports {
            reports.on_timer(now, &self.directions, links);
        }
    }

    fn poll_transmit(&mut self, _routes: &mut Vec<Hop>) -> Option<Outgoing> {
        let (way, frame) = self.reports.as_mut()?.transmit()?;
        let description = self.message(&frame, way as usize);
        Some(Outgoing { frame, description, hop: 2 * way })
    }
}

/// A packet as both directions recorded it.
struct Noted {
    found: Found,
    /// The label, if it counts.
    label: Option<(LabelKind, Label)>,
    /// The flow of the other direction that the packet acknowledges, if that flow is marked.
    acknowledged: Option<FlowId>,
}

impl GatewayWorld {
    /// Records a packet of a flow in both directions.
    fn note_flow(
        &mut self,
        now: Time,
        arrival: &Arrival<'_>,
        (headers, tuple): (&Headers, FlowTuple),
        (size, mut label): (Bytes, Option<(LabelKind, Label)>),
    ) -> Noted {
        let (parsed, segment) = (arrival.parsed, arrival.parsed.segment);
        let [up, down] = &mut self.directions;
        let (state, opposite) = if arrival.port & 1 == 0 { (up, down) } else { (down, up) };
        let qualifies = segment.is_none_or(|segment| !segment.is_syn_or_reset());
        let found =
            state.flows.find(now, (tuple, qualifies), headers, &mut self.accounts, &mut self.settings);
        if found.is_first {
            state.flows.note_qualified(&tuple, &mut opposite.flows);
        }
        if let Some(segment) = segment
            && (state.flows.uses_rtts() || opposite.flows.uses_rtts())
        {
            let stamps = frame::timestamps(arrival.frame, parsed);
            let ways = [&mut state.flows, &mut opposite.flows];
            follow_round_trip(now, (&tuple, segment, stamps), ways, self.delay, &mut self.settings);
            state.flows.expire_rtt(now, found.flow, &mut self.settings);
        }
        if label.is_some() && !state.flows.admits_label(now, found.flow, size) {
            label = None;
            state.over_limit += 1;
        }
        let mut acknowledged = None;
        if let Some(segment) = segment
            && let Some(number) = segment.acknowledges
            && let Some((flow, bytes)) =
                opposite.flows.acknowledged(&tuple.reversed(), number, segment.is_syn_or_reset())
        {
            acknowledged = Some(flow);
            if let Some(marks) = opposite.flows.marks(flow) {
                marks.acknowledged(now, bytes, label);
            }
        }
        Noted { found, label, acknowledged }
    }

    /// The description of a message between gateways that goes in this direction.
    fn message(&self, frame: &[u8], way: usize) -> Description {
        Description {
            flow: FlowId(0),
            size: self.directions[way].charged(frame),
            protocol: Protocol::Control,
            ecn: Ecn::NotEct,
            label: None,
            account: Accounts::no_flow(way),
            counts: false,
            ip: None,
            acknowledgement: 0,
        }
    }
}

impl DirectionState {
    /// Whether a frame of this flow, or of none, passes during overload.
    fn passes_while_port_lags(&mut self, now: Time, flow: Option<&FlowTuple>) -> bool {
        match flow {
            Some(tuple) => self.flows.is_established(now, tuple),
            None => self.non_flow_policer.admits(now),
        }
    }

    /// Removes the label of a frame. Returns the headers without it, and the label if its sender is trusted.
    fn take_label(
        &mut self,
        frame: &mut [u8],
        parsed: &Parsed,
    ) -> (Option<Headers>, Option<(LabelKind, Label)>) {
        let headers = parsed.headers;
        let Some(label) = wire_label::read(frame, parsed.ip()) else { return (headers, None) };
        wire_label::clear(frame, parsed.ip());
        let is_trusted = headers.is_some_and(|headers| self.labels.reads.trusts(headers.source));
        self.ignored += u64::from(!is_trusted);
        // The codepoint was part of the label, and selects no class.
        (headers.map(|headers| Headers { dscp: 0, ..headers }), is_trusted.then_some(label))
    }

    /// The size that a frame is charged.
    fn charged(&self, frame: &[u8]) -> Bytes {
        Bytes::new((frame.len() as u64).saturating_sub(ETHERNET.get())) + self.overhead
    }
}
