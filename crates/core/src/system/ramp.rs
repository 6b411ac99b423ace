//! RAMP: a packet scheduler that gives each real-rate flow the bandwidth that it seems to need, and greedy flows
//! the rest.
//!
//! Li, Walpole, McNamee, Pu, Steere, "A rate-matching packet scheduler for real-rate applications", MMCN 2001. A
//! [monitor](requirement) samples how full the queue of a flow is, a controller turns that into a part of the link,
//! a dispatcher enforces it with a [reservation](reservations). A system rather than a scheduler with a policy:
//! it holds packets back, by what it sees of its queues.
//!
//! ```text
//! real-rate flow ── its queue ──┐ by budget, earliest deadline first
//!                               ├──> interface queue ──> link
//! greedy flows ──── one queue ──┘ what is left
//! ```
//!
//! Readings, where the paper leaves room:
//! - A real-rate flow never uses what others leave. If it did, its queue would stay empty, and the controller would
//!   take its allocation away.
//! - The greedy minimum is kept whether or not there is greedy traffic: allocations change by samples and greedy
//!   packets come at any time; and flows would be told of overloads that come and go with an acknowledgement.
//! - In overload all allocations are scaled down alike (the paper leaves the policy open). A flow that is silent
//!   does not count. An overload is over when there was none for `exception_interval`.
//! - All queues are sampled, then all allocations computed, then all applied. Samples are taken at whole multiples
//!   of `sample`, also when nobody calls in between: what happened since is caught up in its order.
//! - The dispatcher runs whenever something can be dispatched, not every 0.1 ms; credits come by periods all the
//!   same.
//! - A queue's `limit` is the discipline's own; the paper's flows are held by their socket buffers.
//!
//! Beyond the paper, off unless set: `period_control`, and what [`requirement`] lists.
//!
//! Cost: O(log flows) per packet, O(flows) per sample; 250 bytes per real-rate flow, 8 for each sample of control
//! delay. Parameters: [`ENTRY`].

pub mod requirement;
mod reservations;
#[cfg(test)]
mod tests;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use self::requirement::{Controller, Requirement, Tuning, Units};
use self::reservations::Reservations;
use crate::catalog::{Args, Entry, Kind, Param, ParamError, Role, require};
use crate::drop::Limit;
use crate::drop::tail::LIMIT;
use crate::list::{PacketQueue, Pool};
use crate::packet::{FlowClass, FlowId, Packet};
use crate::queue::{Backlog, DropReason, QosException, Queue, Sink};
use crate::schedule::{End, Queued};
use crate::units::{Bytes, Packets, Rate, Ratio, Span, Time};

/// RAMP in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "ramp",
    role: Role::System,
    summary: "RAMP: real-rate flows get what their queues say that they need, greedy flows the rest.",
    reference: "Li, Walpole, McNamee, Pu, Steere 2001",
    cost: "O(log flows) per packet, O(flows) per sample, 250 bytes per real-rate flow",
    params: &[
        Param {
            default: Some("1000p"),
            source: "chosen: above all that flows with sockets of 64 KB keep in a queue",
            doc: "Size of the queue of each real-rate flow, and of that of all greedy flows, for which the \
                  interface queue counts too.",
            ..LIMIT
        },
        Param::new(
            "target",
            "–",
            Kind::Bytes,
            "16KiB",
            "section 5",
            "What a real-rate flow's queue should hold.",
        ),
        Param {
            name: "target_delay",
            symbol: "–",
            kind: Kind::Span,
            default: None,
            source: "off unless set; planned in section 6.2",
            doc: "What a queue should hold, in time at the flow's own rate, instead of `target`.",
        },
        Param::new(
            "sample",
            "–",
            Kind::Span,
            "10ms",
            "section 4: 100 Hz",
            "Time between samples of the queues.",
        ),
        Param::new(
            "l",
            "L",
            Kind::Ratio,
            "0.5",
            "section 4",
            "Weight of the newest sample in the low-pass filter.",
        ),
        Param::new("p", "P", Kind::Number, "0.35", "section 4", "Gain of the filtered pressure."),
        Param::new("i", "I", Kind::Number, "0.005", "section 4", "Gain of its sum, per sample."),
        Param::new("d", "D", Kind::Number, "0.01", "section 4", "Gain of its change, per sample."),
        Param::new(
            "units",
            "–",
            Kind::Choice(&["percent", "bytes", "fraction"]),
            "percent",
            "sections 3.3 and 5, by their words",
            "What `p`, `i` and `d` turn into what: KB into percent of the link, bytes into bytes per sample, or parts \
             of the target into parts of the link.",
        ),
        Param::new(
            "gains",
            "–",
            Kind::Choice(&["printed", "designed"]),
            "printed",
            "section 4",
            "Whether `p`, `i`, `d` and `units` hold, or gains made for this loop at any rate of the link.",
        ),
        Param::new(
            "control_delay",
            "–",
            Kind::Span,
            "0ms",
            "the paper mentions none",
            "Time until an allocation takes effect, in whole samples.",
        ),
        Param::new(
            "predictor",
            "–",
            Kind::Switch,
            "false",
            "beyond the paper",
            "Whether the controller reckons with its orders that `control_delay` still holds back.",
        ),
        Param::new(
            "floor",
            "–",
            Kind::Ratio,
            "0.02",
            "chosen: a packet of 1500 B in 60 ms at 10 Mb/s",
            "Least allocation of a real-rate flow; less if there are too many for it.",
        ),
        Param::new(
            "anti_windup",
            "–",
            Kind::Switch,
            "true",
            "beyond the paper, which does not say how it avoids it",
            "Whether the sum of pressures stays within what an allocation can be.",
        ),
        Param::new("period", "–", Kind::Span, "0.1ms", "section 4", "Time between additions to the budgets."),
        Param::new(
            "period_control",
            "–",
            Kind::Switch,
            "false",
            "section 4: further work",
            "Whether the deadlines of a flow are as far apart as its allocation takes for a packet.",
        ),
        Param::new(
            "mtu",
            "–",
            Kind::Bytes,
            "1514B",
            "chosen: one Ethernet frame",
            "What the budget of a silent flow may save up, unless two periods are more.",
        ),
        Param::new(
            "greedy_minimum",
            "–",
            Kind::Ratio,
            "0.05",
            "chosen: section 3.1 gives none",
            "Part of the link that real-rate flows never get.",
        ),
        Param::new(
            "interface_queue",
            "–",
            Kind::Packets,
            "100p",
            "Linux 2.0: the length of an Ethernet device's queue",
            "Packets between dispatcher and link.",
        ),
        Param::new(
            "exception_interval",
            "–",
            Kind::Span,
            "1s",
            "chosen: an application has time to act",
            "Least time between exceptions in one overload, and without overload until it is over.",
        ),
    ],
};

/// Parameters of [`Ramp`]; [`ENTRY`] says what each does.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the catalogue entry is their only description")]
pub struct RampParams {
    pub limit: Limit,
    pub target: Bytes,
    pub target_delay: Option<Span>,
    pub sample: Span,
    pub l: Ratio,
    pub p: f64,
    pub i: f64,
    pub d: f64,
    pub units: Units,
    pub gains: Tuning,
    pub control_delay: Span,
    pub predictor: bool,
    pub floor: Ratio,
    pub anti_windup: bool,
    pub period: Span,
    pub period_control: bool,
    pub mtu: Bytes,
    pub greedy_minimum: Ratio,
    pub interface_queue: Packets,
    pub exception_interval: Span,
}

/// Most samples of control delay. Chosen: 8 KB per flow.
const LONGEST_DELAY: u64 = 1_000;

impl RampParams {
    /// From the catalogue's values.
    ///
    /// # Errors
    /// When one of them stops a flow or the loop for ever.
    pub fn from_args(args: &Args) -> Result<Self, ParamError> {
        let args = args.of(&ENTRY);
        let params = Self {
            limit: args.limit("limit"),
            target: args.bytes("target"),
            target_delay: args.span_if_set("target_delay"),
            sample: args.span("sample"),
            l: args.ratio("l"),
            p: args.number("p"),
            i: args.number("i"),
            d: args.number("d"),
            units: match args.choice("units") {
                "bytes" => Units::Bytes,
                "fraction" => Units::Fraction,
                _ => Units::Percent,
            },
            gains: if args.choice("gains") == "designed" { Tuning::Designed } else { Tuning::Printed },
            control_delay: args.span("control_delay"),
            predictor: args.switch("predictor"),
            floor: args.ratio("floor"),
            anti_windup: args.switch("anti_windup"),
            period: args.span("period"),
            period_control: args.switch("period_control"),
            mtu: args.bytes("mtu"),
            greedy_minimum: args.ratio("greedy_minimum"),
            interface_queue: args.packets("interface_queue"),
            exception_interval: args.span("exception_interval"),
        };
        params.check()?;
        Ok(params)
    }

    fn check(&self) -> Result<(), ParamError> {
        let takes_time = |span: Span| span > Span::ZERO;
        require(
            self.target > Bytes::ZERO,
            "target",
            "an empty queue tells nothing; write for example \"16KiB\"",
        )?;
        let in_time = self.target_delay.is_none_or(takes_time);
        require(in_time, "target_delay", "an empty queue tells nothing; write for example \"20ms\"")?;
        require(takes_time(self.sample), "sample", "samples take time; write for example \"10ms\"")?;
        require(
            self.l > Ratio::ZERO,
            "l",
            "with 0 the controller never sees a sample; write for example 0.5",
        )?;
        for (key, gain) in [("p", self.p), ("i", self.i), ("d", self.d)] {
            require((0.0..=1e6).contains(&gain), key, "a gain lies between 0 and 1000000")?;
        }
        let samples = self.control_delay.as_nanos() / self.sample.as_nanos();
        let is_whole = self.sample * samples == self.control_delay && samples <= LONGEST_DELAY;
        require(is_whole, "control_delay", "it must be a multiple of `sample`, at most 1000 times it")?;
        require(
            self.floor > Ratio::ZERO,
            "floor",
            "with nothing to begin with no flow ever starts; write for example \"2%\"",
        )?;
        require(takes_time(self.period), "period", "a period takes time; write for example \"0.1ms\"")?;
        require(self.mtu > Bytes::ZERO, "mtu", "a packet has at least 1B")?;
        let leaves_some = self.greedy_minimum < Ratio::ONE;
        require(leaves_some, "greedy_minimum", "real-rate flows need something; write for example \"5%\"")?;
        require(self.interface_queue > Packets::ZERO, "interface_queue", "nothing passes a queue of 0p")?;
        let interval = takes_time(self.exception_interval);
        require(
            interval,
            "exception_interval",
            "exceptions without a pause are a flood; write for example \"1s\"",
        )
    }
}

/// What stands in the table of classes for a flow that is greedy.
const GREEDY: u32 = u32::MAX;

/// What RAMP knows of a flow that is or was real-rate.
#[derive(Clone, Debug)]
struct Flow {
    id: FlowId,
    is_real_rate: bool,
    queue: PacketQueue,
    fill: Backlog,
    requirement: Requirement,
    /// The part of the link that it is to have now.
    wanted: f64,
    granted: Rate,
    /// Bits that its allocation amounted to until `Ramp::counted`.
    allocated: f64,
    /// Whether its application knows of an overload and not yet of its end.
    is_told: bool,
}

/// What a real-rate flow has and holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowShare {
    /// What the dispatcher gives it.
    pub allocation: Rate,
    /// What its controller asks for.
    pub requirement: Rate,
    /// What its queue holds, the interface queue not counted.
    pub fill: Bytes,
    /// What its allocation amounts to since the start: differences give its mean over any time.
    pub allocated: Bytes,
}

/// Monitor, controller and dispatcher.
#[derive(Clone, Debug)]
pub struct Ramp<P> {
    params: RampParams,
    link_rate: Rate,
    controller: Controller,
    /// By slot: the index of the flow, or [`GREEDY`].
    classes: Vec<u32>,
    flows: Vec<Flow>,
    reservations: Reservations,
    packets: Pool<P>,
    greedy: PacketQueue,
    interface: VecDeque<P>,
    in_greedy: Backlog,
    in_interface: Backlog,
    backlog: Backlog,
    next_sample: Time,
    /// The latest time seen, and up to which allocations are counted.
    clock: Time,
    counted: Time,
    overload: Overload,
    updates: u64,
    exceptions: u64,
}

/// Since when applications know of it, and when it was last there.
#[derive(Clone, Copy, Debug, Default)]
struct Overload {
    told: Option<Time>,
    seen: Time,
}

impl<P: Packet> Ramp<P> {
    /// Empty queues in front of a link of `link_rate`; every flow is greedy.
    #[must_use]
    pub fn new(params: &RampParams, link_rate: Rate) -> Self {
        Self {
            link_rate,
            controller: Controller::new(params, link_rate),
            classes: Vec::new(),
            flows: Vec::new(),
            reservations: Reservations::new(params.period, params.mtu, params.period_control),
            packets: Pool::new(),
            greedy: PacketQueue::EMPTY,
            interface: VecDeque::new(),
            in_greedy: Backlog::EMPTY,
            in_interface: Backlog::EMPTY,
            backlog: Backlog::EMPTY,
            next_sample: Time::ZERO + params.sample,
            clock: Time::ZERO,
            counted: Time::ZERO,
            overload: Overload::default(),
            updates: 0,
            exceptions: 0,
            params: params.clone(),
        }
    }

    /// The class of `flow` from its next packet on. What waits of it moves to its new queue.
    pub fn set_class(&mut self, flow: FlowId, class: FlowClass) {
        let index = self.index(flow);
        match (class, index) {
            (FlowClass::RealRate, None) => self.make_real_rate(flow),
            (FlowClass::Greedy, Some(index)) => {
                self.flows[index].is_real_rate = false;
                self.count();
                self.reservations.set_backlogged(index, false);
                self.reservations.set(index, Rate::ZERO);
                self.flows[index].granted = Rate::ZERO;
                while let Some(queued) = self.flows[index].queue.pop(&mut self.packets, End::Head) {
                    self.flows[index].fill.remove(&queued.packet);
                    self.in_greedy.add(&queued.packet);
                    self.greedy.push(&mut self.packets, queued);
                }
            }
            (FlowClass::RealRate, Some(_)) | (FlowClass::Greedy, None) => {}
        }
    }

    fn make_real_rate(&mut self, flow: FlowId) {
        let slot = flow.slot();
        if slot >= self.classes.len() {
            self.classes.resize(slot + 1, GREEDY);
        }
        if self.classes[slot] == GREEDY {
            self.classes[slot] = self.flows.len() as u32;
            self.reservations.add();
            self.flows.push(Flow {
                id: flow,
                is_real_rate: true,
                queue: PacketQueue::EMPTY,
                fill: Backlog::EMPTY,
                requirement: Requirement::new(&self.controller),
                wanted: 0.0,
                granted: Rate::ZERO,
                allocated: 0.0,
                is_told: false,
            });
        }
        let index = self.classes[slot] as usize;
        self.count();
        let floor = self.floor();
        let flow = &mut self.flows[index];
        flow.is_real_rate = true;
        flow.requirement = Requirement::new(&self.controller);
        flow.wanted = floor;
        flow.granted = part(self.link_rate, floor);
        self.reservations.set(index, part(self.link_rate, floor));
        // Each packet of the greedy queue once around, in its order.
        for _ in 0..self.in_greedy.packets.get() {
            let Some(queued) = self.greedy.pop(&mut self.packets, End::Head) else { break };
            if queued.packet.flow().slot() == slot {
                self.in_greedy.remove(&queued.packet);
                self.flows[index].fill.add(&queued.packet);
                self.flows[index].queue.push(&mut self.packets, queued);
            } else {
                self.greedy.push(&mut self.packets, queued);
            }
        }
        self.reservations.set_backlogged(index, !self.flows[index].queue.is_empty());
    }

    /// The index of a flow that is real-rate.
    fn index(&self, flow: FlowId) -> Option<usize> {
        let index = *self.classes.get(flow.slot())? as usize;
        self.flows.get(index).filter(|flow| flow.is_real_rate).map(|_| index)
    }

    /// What real-rate flows may have together, in parts of the link.
    fn available(&self) -> f64 {
        1.0 - self.params.greedy_minimum.get()
    }

    fn floor(&self) -> f64 {
        let flows = self.flows.iter().filter(|flow| flow.is_real_rate).count();
        self.controller.floor_among(flows, self.available())
    }

    /// Lets everything happen that is due by `now`, in its order.
    pub fn advance(&mut self, now: Time, sink: &mut dyn Sink<P>) {
        // Terminates: each pass takes a sample, of which there are so many until `now`, or lets a packet go whose
        // credit came, or finds the interface queue full.
        loop {
            let ready = self.reservations.ready().filter(|_| self.has_room());
            let is_sample = ready.is_none_or(|ready| self.next_sample <= ready);
            let due = if is_sample { self.next_sample } else { ready.unwrap_or(self.next_sample) };
            if due > now {
                break;
            }
            self.clock = due;
            self.reservations.advance(due);
            if is_sample {
                self.sample(sink);
                self.skip_idle_samples(now);
            }
            self.dispatch();
        }
        self.clock = now;
        self.reservations.advance(now);
    }

    /// The requirement monitor, the controller and what the overload policy makes of it.
    fn sample(&mut self, sink: &mut dyn Sink<P>) {
        self.count();
        let (floor, available) = (self.floor(), self.available());
        let mut total = 0.0;
        for flow in self.flows.iter_mut().filter(|flow| flow.is_real_rate) {
            let saturated = flow.granted < part(self.link_rate, flow.wanted);
            flow.wanted = flow.requirement.sample(&self.controller, flow.fill.bytes, floor, saturated);
            if flow.wanted > floor || !flow.fill.is_empty() {
                total += flow.wanted;
            }
        }
        let scale = if total > available { available / total } else { 1.0 };
        for (index, flow) in self.flows.iter_mut().enumerate().filter(|(_, flow)| flow.is_real_rate) {
            flow.granted = part(self.link_rate, flow.wanted * scale);
            self.reservations.set(index, flow.granted);
        }
        self.updates += 1;
        self.next_sample += self.params.sample;
        self.note_overload(scale < 1.0, sink);
    }

    /// Goes by the samples until `now` that would change nothing, so that a long silence costs little.
    fn skip_idle_samples(&mut self, now: Time) {
        let is_idle = |flow: &Flow| {
            !flow.is_real_rate || (flow.fill.is_empty() && flow.requirement.is_settled(&self.controller))
        };
        if self.overload.told.is_some() || self.next_sample > now || !self.flows.iter().all(is_idle) {
            return;
        }
        let samples = now.since(self.next_sample).as_nanos() / self.params.sample.as_nanos();
        self.next_sample += self.params.sample * samples;
        self.updates += samples;
    }

    /// Tells applications, not more often than they can use it.
    fn note_overload(&mut self, is_overloaded: bool, sink: &mut dyn Sink<P>) {
        let now = self.clock;
        let interval = self.params.exception_interval;
        if is_overloaded {
            self.overload.seen = now;
            if self.overload.told.is_none_or(|told| now.since(told) >= interval) {
                self.overload.told = Some(now);
                self.tell(false, sink);
            }
        } else if self.overload.told.is_some() && now.since(self.overload.seen) >= interval {
            self.overload.told = None;
            self.tell(true, sink);
        }
    }

    /// Tells of an overload those that have less than they want, or of its end those that were told.
    fn tell(&mut self, is_over: bool, sink: &mut dyn Sink<P>) {
        for flow in self.flows.iter_mut().filter(|flow| flow.is_real_rate) {
            let (wanted, granted) = (part(self.link_rate, flow.wanted), flow.granted);
            let is_short = granted < wanted && !flow.fill.is_empty();
            if if is_over { flow.is_told } else { is_short } {
                sink.exception(self.clock, QosException { flow: flow.id, wanted, granted, is_over });
                flow.is_told = !is_over;
                self.exceptions += 1;
            }
        }
    }

    /// The packet dispatcher: moves into the interface queue what may go while there is room.
    fn dispatch(&mut self) {
        while self.has_room() {
            let queued = match self.reservations.next() {
                Some(index) => self.take(index),
                None => self.take_greedy(),
            };
            let Some(Queued { packet, .. }) = queued else { return };
            self.in_interface.add(&packet);
            self.interface.push_back(packet);
        }
    }

    fn has_room(&self) -> bool {
        self.in_interface.packets < self.params.interface_queue
    }

    /// The next packet of a real-rate flow, paid for.
    fn take(&mut self, index: usize) -> Option<Queued<P>> {
        let flow = &mut self.flows[index];
        let queued = flow.queue.pop(&mut self.packets, End::Head)?;
        flow.fill.remove(&queued.packet);
        let is_empty = flow.queue.is_empty();
        self.reservations.charge(index, queued.packet.size(), !is_empty);
        Some(queued)
    }

    fn take_greedy(&mut self) -> Option<Queued<P>> {
        let queued = self.greedy.pop(&mut self.packets, End::Head)?;
        self.in_greedy.remove(&queued.packet);
        Some(queued)
    }

    /// Counts what the allocations amount to until now.
    fn count(&mut self) {
        let seconds = self.clock.since(self.counted).as_secs_f64();
        self.counted = self.clock;
        for flow in self.flows.iter_mut().filter(|flow| flow.is_real_rate) {
            flow.allocated += flow.granted.as_bit() as f64 * seconds;
        }
    }

    /// Each real-rate flow, as of the last call that had a time.
    pub fn shares(&self) -> impl Iterator<Item = (FlowId, FlowShare)> {
        let seconds = self.clock.since(self.counted).as_secs_f64();
        let link_rate = self.link_rate;
        self.flows.iter().filter(|flow| flow.is_real_rate).map(move |flow| {
            let bits = flow.allocated + flow.granted.as_bit() as f64 * seconds;
            let share = FlowShare {
                allocation: flow.granted,
                requirement: part(link_rate, flow.wanted),
                fill: flow.fill.bytes,
                allocated: Bytes::new((bits / 8.0) as u64),
            };
            (flow.id, share)
        })
    }

    pub(super) fn drain(&mut self) -> Option<P> {
        let packet = match self.interface.pop_front() {
            Some(packet) => {
                self.in_interface.remove(&packet);
                packet
            }
            None => {
                let held = self.flows.iter().position(|flow| !flow.queue.is_empty());
                held.and_then(|index| self.take(index)).or_else(|| self.take_greedy())?.packet
            }
        };
        self.backlog.remove(&packet);
        Some(packet)
    }

    pub(super) const fn set_limit(&mut self, limit: Limit) {
        self.params.limit = limit;
    }

    pub(super) fn set_link_rate(&mut self, rate: Rate) {
        self.count();
        self.link_rate = rate;
        self.controller = Controller::new(&self.params, rate);
        let scale = {
            let total: f64 = self.flows.iter().filter(|flow| flow.is_real_rate).map(|flow| flow.wanted).sum();
            (self.available() / total).min(1.0)
        };
        for (index, flow) in self.flows.iter_mut().enumerate().filter(|(_, flow)| flow.is_real_rate) {
            flow.granted = part(rate, flow.wanted * scale);
            self.reservations.set(index, flow.granted);
        }
    }

    pub(super) fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        let real_rate = || self.flows.iter().filter(|flow| flow.is_real_rate);
        show("real_rate_flows", real_rate().count() as f64);
        show("requirement", real_rate().map(|flow| flow.wanted).sum());
        show("allocation", real_rate().map(|flow| flow.granted.as_bit() as f64).sum::<f64>());
        show("updates", self.updates as f64);
        show("exceptions", self.exceptions as f64);
    }
}

/// A part of a rate, rounded down.
fn part(rate: Rate, part: f64) -> Rate {
    Rate::from_bit((rate.as_bit() as f64 * part) as u64)
}

impl<P: Packet> Queue<P> for Ramp<P> {
    fn enqueue(&mut self, now: Time, packet: P, sink: &mut dyn Sink<P>) {
        self.advance(now, sink);
        let queued = Queued { packet, arrived: now };
        let packet = &queued.packet;
        let index = self.index(packet.flow());
        let held = match index {
            Some(index) => self.flows[index].fill,
            None => Backlog {
                packets: self.in_greedy.packets + self.in_interface.packets,
                bytes: self.in_greedy.bytes + self.in_interface.bytes,
            },
        };
        if !self.params.limit.admits(packet, held) {
            return sink.dropped(now, queued.packet, DropReason::Overflow);
        }
        self.backlog.add(packet);
        match index {
            Some(index) => {
                let flow = &mut self.flows[index];
                let was_empty = flow.fill.is_empty();
                flow.fill.add(packet);
                flow.queue.push(&mut self.packets, queued);
                if was_empty {
                    self.reservations.set_backlogged(index, true);
                }
            }
            None => {
                self.in_greedy.add(packet);
                self.greedy.push(&mut self.packets, queued);
            }
        }
        self.dispatch();
    }

    fn dequeue(&mut self, now: Time, sink: &mut dyn Sink<P>) -> Option<P> {
        self.advance(now, sink);
        self.dispatch();
        let packet = self.interface.pop_front()?;
        self.in_interface.remove(&packet);
        self.backlog.remove(&packet);
        self.dispatch();
        Some(packet)
    }

    fn next_wakeup(&self) -> Option<Time> {
        if !self.interface.is_empty() || self.reservations.next().is_some() || !self.greedy.is_empty() {
            return Some(self.clock);
        }
        let is_held = !self.backlog.is_empty();
        is_held
            .then(|| self.reservations.ready().map_or(self.next_sample, |ready| ready.min(self.next_sample)))
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }
}
