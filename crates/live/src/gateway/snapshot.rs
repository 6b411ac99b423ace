//! The measurements of a gateway at one time, for another thread to read: as Prometheus text and as JSON.

use std::collections::BTreeMap;
use std::sync::Arc;

use apportion_core::packet::FlowId;
use apportion_core::queue::{Backlog, DropReason};
use apportion_core::system::ramp::FlowShare;
use apportion_core::units::{Rate, Span, Time};
use apportion_linux::frame_io::FrameIo;
use apportion_linux::port::PortCounts;
use apportion_runtime::histogram::Histogram;
use apportion_runtime::outcome::Distribution;
use apportion_runtime::probe::Counters;
use apportion_runtime::sffc::FlowRule;
use apportion_scenario::gateway::{COUNTED_APART, Direction, GatewayConfig};
use serde_json::{Value, json};

use super::Gateway;
use super::accounts::Account;
use super::autorate::Findings;
use super::events::InterfaceEvents;
use super::guarantees::{self, Exceeded};
use super::log;
use super::metrics::{COUNTER, GAUGE, Kind, Metrics};
use super::notifications::NotificationCounts;
pub use super::reloads::{Reloads, Results};
use super::traffic::Traffic;
use crate::frame::FlowTuple;
use crate::notifications::FlowPackets;

/// Measurements of a gateway at one time.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The running configuration.
    pub config: Arc<GatewayConfig>,
    /// Time since the start.
    pub now: Time,
    /// Directions up and down.
    pub directions: [DirectionSnapshot; 2],
    /// Counts of the interfaces inside and outside.
    pub ports: [PortCounts; 2],
    /// Malformed frames, by reason.
    pub malformed: Vec<(&'static str, u64)>,
    /// Lateness of packets in the last minute or two.
    pub lateness: Distribution,
    /// Packets sent since the start, and the sum of their lateness.
    pub late: (u64, Span),
    /// Frames in flight.
    pub frames: u64,
    /// Messages between gateways, by outcome; empty if no queue reports.
    pub reports: Vec<(&'static str, f64)>,
    /// Limits that routers before this gateway would have to set to flows.
    pub flow_rules: Vec<(FlowTuple, FlowRule)>,
    /// Events of the interfaces inside and outside.
    pub events: [InterfaceEvents; 2],
    /// Counts of applications that read overload notifications.
    pub notifications: NotificationCounts,
    /// Number of times that the threads that serve the gateway were restarted.
    pub thread_restarts: u64,
}

/// Maximum of real-rate flows of a direction with series of their own, those with the largest requirement
/// first. Chosen: a screen of lines.
const MAX_REAL_RATE: usize = 32;

#[derive(Clone, Debug)]
pub struct RealRateFlow {
    /// The number of the flow's rule, if one matches.
    rule: Option<usize>,
    packets: FlowPackets,
    share: FlowShare,
}

#[derive(Clone, Debug)]
pub struct DirectionSnapshot {
    /// Rate of the transmitter.
    pub rate: Rate,
    /// Backlog of the queue.
    pub backlog: Backlog,
    /// Packets that did not fit into the queue of a reload; drops include them.
    pub left_out: u64,
    /// Counters by rule and customer, of accounts with packets.
    pub accounts: Vec<(Account, Counters)>,
    /// Flows that have numbers.
    pub flows: usize,
    /// Flows that are real-rate at the queue.
    pub real_rate_flows: usize,
    /// The real-rate flows with the largest requirements.
    pub real_rate: Vec<RealRateFlow>,
    /// Sum of the given guarantees.
    pub guaranteed: Rate,
    /// Number of flows with a measured round-trip time, and the mean.
    pub measured_rtts: (usize, Span),
    /// Flows that have a guarantee.
    pub holders: usize,
    /// Counts of refused and ended guarantees.
    pub guarantees: guarantees::Counts,
    /// Labels removed unused, because their sender is not trusted.
    pub ignored: u64,
    /// Trusted labels removed because they exceeded the limit of their rule.
    pub over_limit: u64,
    /// Packets without room for their label.
    pub unlabelled: u64,
    /// Packets of flows that are not established, and frames without a flow, dropped because of overload.
    pub shed: u64,
    /// Traffic of the last complete period.
    pub traffic: Arc<Traffic>,
    /// Measurements behind the rate, if it follows the link.
    pub autorate: Option<Findings>,
}

impl<I: FrameIo> Gateway<I> {
    /// Takes a snapshot. `config` is the running configuration.
    pub fn snapshot(&mut self, config: Arc<GatewayConfig>, lateness: &Histogram) -> Snapshot {
        let ports =
            [0, 1].map(|port| self.engine.port_counts(port).map_or_else(PortCounts::default, |it| it.0));
        let (now, mut reports, mut flow_rules) = (self.engine.now(), Vec::new(), Vec::new());
        if let Some(own) = self.engine.world.reports_mut() {
            own.statistics(&mut |name, value| reports.push((name, value)));
            flow_rules.extend(own.rules(now));
        }
        Snapshot {
            config,
            reports,
            flow_rules,
            now,
            directions: Direction::BOTH.map(|direction| self.direction_snapshot(direction)),
            ports,
            malformed: self.engine.malformed().map(|(reason, count)| (reason.name(), count)).collect(),
            lateness: lateness.distribution(),
            late: Default::default(),
            frames: self.engine.shared.pool.used().into(),
            events: Default::default(),
            notifications: NotificationCounts::default(),
            thread_restarts: 0,
        }
    }

    fn direction_snapshot(&self, direction: Direction) -> DirectionSnapshot {
        let (world, shared) = (&self.engine.world, &self.engine.shared);
        let state = world.direction(direction);
        let counted = |(account, number): (&Account, u32)| {
            let counts = shared.flows.get(number as usize)?;
            (counts.sent.packets.get() > 0).then(|| (account.clone(), *counts))
        };
        let link = self.engine.link(direction as usize);
        let mut shares = Vec::new();
        if let Some(link) = link {
            link.state.queue().latest_shares(&mut |flow, share| shares.push((flow, share)));
        }
        let real_rate_flows = shares.len();
        let rank = |(flow, share): &(FlowId, FlowShare)| (std::cmp::Reverse(share.requirement), *flow);
        if shares.len() > MAX_REAL_RATE {
            // Sorting all flows would take longer than packets may wait.
            shares.select_nth_unstable_by_key(MAX_REAL_RATE, rank);
            shares.truncate(MAX_REAL_RATE);
        }
        shares.sort_unstable_by_key(rank);
        let named = |(flow, share)| {
            let (rule, packets) = state.flows.packets(flow);
            RealRateFlow { rule, packets, share }
        };
        DirectionSnapshot {
            real_rate_flows,
            real_rate: shares.into_iter().map(named).collect(),
            rate: link.map_or(Rate::ZERO, |link| link.state.rate()),
            backlog: link.map_or(Backlog::EMPTY, |link| link.state.backlog()),
            left_out: self.left_out[direction as usize],
            accounts: world.accounts().all(direction).filter_map(counted).collect(),
            flows: state.flows.count(),
            guaranteed: state.flows.guarantees().reserved(),
            measured_rtts: state.flows.measured_rtts(),
            holders: state.flows.guarantees().holders(),
            guarantees: state.flows.guarantees().counts(),
            ignored: state.ignored,
            over_limit: state.over_limit,
            unlabelled: state.unlabelled,
            shed: state.shed,
            traffic: Arc::clone(&state.traffic),
            autorate: world.findings(direction),
        }
    }
}

type OfAccount = fn(&Counters) -> u64;
const OF_ACCOUNTS: [(&str, &str, OfAccount); 6] = [
    ("received_packets_total", "Packets that came in.", |it| it.sent.packets.get()),
    ("received_bytes_total", "What came in, overhead included.", |it| it.sent.bytes.get()),
    (
        "sent_packets_total",
        "Packets handed to the interface; what it then refused is in port_unsent_frames_total.",
        |it| it.delivered.packets.get(),
    ),
    ("sent_bytes_total", "What left, overhead included.", |it| it.delivered.bytes.get()),
    ("marked_packets_total", "Packets that were marked by ECN.", |it| it.marked),
    ("lost_packets_total", "Packets lost on the wire, as `loss` asks for.", |it| it.lost),
];

type OfDirection = fn(&DirectionSnapshot) -> f64;
const OF_DIRECTIONS: [(&str, Kind, &str, OfDirection); 17] = [
    ("backlog_packets", GAUGE, "Packets that wait.", |it| it.backlog.packets.get() as f64),
    ("backlog_bytes", GAUGE, "What waits, overhead included.", |it| it.backlog.bytes.get() as f64),
    ("rate_bytes_per_second", GAUGE, "Rate of the transmitter.", |it| bytes(it.rate)),
    ("guaranteed_bytes_per_second", GAUGE, "Sum of the guarantees that were given.", |it| {
        bytes(it.guaranteed)
    }),
    ("flows", GAUGE, "Flows that have numbers, silent ones included.", |it| it.flows as f64),
    ("real_rate_flows", GAUGE, "Flows that are real-rate at the queue.", |it| it.real_rate_flows as f64),
    ("measured_rtt_flows", GAUGE, "Flows whose round-trip time is measured, silent ones included.", |it| {
        it.measured_rtts.0 as f64
    }),
    ("measured_rtt_seconds", GAUGE, "Mean of their round-trip times; 0 if there is none.", |it| {
        it.measured_rtts.1.as_secs_f64()
    }),
    ("guarantee_holders", GAUGE, "Flows that have a guarantee.", |it| it.holders as f64),
    (
        "guarantees_withdrawn_total",
        COUNTER,
        "Guarantees that were taken back, as the rate fell or the rules changed.",
        |it| it.guarantees.withdrawn as f64,
    ),
    (
        "guarantees_unused_total",
        COUNTER,
        "Guarantees that were taken back, as their flows did not use them.",
        |it| it.guarantees.unused as f64,
    ),
    ("reload_dropped_packets_total", COUNTER, "Packets that did not fit into the queue of a reload.", |it| {
        it.left_out as f64
    }),
    ("labels_ignored_total", COUNTER, "Labels taken off as packets came in, and not used.", |it| {
        it.ignored as f64
    }),
    (
        "labels_over_limit_total",
        COUNTER,
        "Trusted labels taken off, as they exceeded the limit of their rule.",
        |it| it.over_limit as f64,
    ),
    // The name until 0.1; it goes with the release after this one.
    ("labels_disbelieved_total", COUNTER, "Old name of labels_ignored_total.", |it| it.ignored as f64),
    ("unlabelled_packets_total", COUNTER, "Packets without room for their label.", |it| it.unlabelled as f64),
    (
        "shed_packets_total",
        COUNTER,
        "Packets of flows that are not established and frames of none, dropped because more came in than can be moved.",
        |it| it.shed as f64,
    ),
];

type OfAutorate = fn(&Findings) -> f64;
/// Metrics of each direction whose rate follows the link.
const OF_AUTORATE: [(&str, Kind, &str, OfAutorate); 6] = [
    ("autorate_delay_seconds", GAUGE, "Queueing delay of the link that the rate follows.", |it| {
        it.delay.as_secs_f64()
    }),
    (
        "autorate_link_bytes_per_second",
        GAUGE,
        "What the link passed when it had a queue last; 0 before.",
        |it| it.capacity.map_or(0.0, bytes),
    ),
    ("autorate_answers_total", COUNTER, "Answers of TCP that the rate went by.", |it| it.answers as f64),
    ("autorate_lowered_total", COUNTER, "How often the rate was lowered.", |it| it.lowered as f64),
    ("autorate_raised_total", COUNTER, "How often the rate was raised.", |it| it.raised as f64),
    (
        "autorate_longer_paths_total",
        COUNTER,
        "How often a delay was found to be of the path, since it stayed although the rate was lowered.",
        |it| it.foreign as f64,
    ),
];

type OfRealRate = fn(&FlowShare) -> f64;
/// Metrics of each real-rate flow that is listed.
const OF_REAL_RATE: [(&str, Kind, &str, OfRealRate); 3] = [
    ("real_rate_requirement_bytes_per_second", GAUGE, "What the flow seems to need.", |it| {
        bytes(it.requirement)
    }),
    ("real_rate_allocation_bytes_per_second", GAUGE, "What the flow has.", |it| bytes(it.allocation)),
    ("real_rate_notifications_total", COUNTER, "Overload notifications about the flow.", |it| {
        it.notifications as f64
    }),
];

/// The metric of refused guarantees, by limit.
const REFUSED: (&str, &str) = (
    "guarantees_refused_total",
    "Flows that earned a guarantee and were refused it, by the limit that it exceeds.",
);

type OfPort = fn(&PortCounts) -> u64;
const OF_PORTS: [(&str, &str, OfPort); 9] = [
    ("port_received_frames_total", "Frames that came in.", |it| it.received),
    ("port_sent_frames_total", "Frames that went out.", |it| it.sent),
    ("port_sent_super_packets_total", "Super-packets that went out, of segments among the frames.", |it| {
        it.merged
    }),
    ("port_oversize_frames_total", "Frames longer than a buffer, dropped.", |it| it.oversize),
    ("port_segmented_super_packets_total", "Super-packets that were cut into segments.", |it| it.segmented),
    ("port_super_packets_total", "Super-packets that could not be cut, dropped.", |it| it.super_packets),
    ("port_missed_frames_total", "Frames lost for want of time or of a free buffer.", |it| it.missed),
    ("port_unsent_frames_total", "Frames that the device refused.", |it| it.unsent),
    ("port_down_total", "Times that the interface was found down.", |it| it.down),
];

/// The metric of the last turn's age, which is also its key in JSON, and its description.
const TURN_AGE: (&str, &str) =
    ("turn_age_seconds", "Time since the thread that moves packets was last seen to have made a turn.");

type OfInterface = fn(&InterfaceEvents) -> bool;
/// States of interfaces: the metric, the key of JSON, and the description.
const OF_INTERFACES: [(&str, &str, &str, OfInterface); 2] = [
    ("interface_attached", "attached", "Whether the interface is there.", |it| !it.is_gone),
    ("interface_up", "up", "Whether the interface is there, up, and has a carrier.", |it| {
        !it.is_gone && !it.is_down
    }),
];

fn bytes(rate: Rate) -> f64 {
    rate.as_bit() as f64 / 8.0
}

/// Events of interfaces by name, for the label `event`.
type OfEvents = fn(&InterfaceEvents) -> u64;
const OF_EVENTS: [(&str, OfEvents); 5] = [
    ("gone", |it| it.gone),
    ("back", |it| it.back),
    ("mtu", |it| it.mtu),
    ("offloads", |it| it.offloads),
    ("renamed", |it| it.renamed),
];

impl Snapshot {
    /// Why frames cannot pass, one reason a line; empty if they can.
    #[must_use]
    pub fn obstacles(&self) -> String {
        let names = [&self.config.inside, &self.config.outside];
        let obstacle = |(name, events): (&String, &InterfaceEvents)| match events {
            InterfaceEvents { is_gone: true, .. } => format!("the interface {name} has gone\n"),
            InterfaceEvents { is_down: true, .. } => format!("the interface {name} is down\n"),
            _ => String::new(),
        };
        names.into_iter().zip(&self.events).map(obstacle).collect()
    }

    /// The counts of both ports and the names of their interfaces.
    fn interfaces(&self) -> [(&str, &PortCounts); 2] {
        [(&self.config.inside, &self.ports[0]), (&self.config.outside, &self.ports[1])]
    }

    fn directions(&self) -> impl Iterator<Item = (&'static str, &DirectionSnapshot)> {
        Direction::BOTH.into_iter().map(Direction::name).zip(&self.directions)
    }

    /// The real-rate flows with series of their own, and their labels.
    fn real_rate(&self) -> impl Iterator<Item = ([(&'static str, String); 3], &FlowShare)> {
        let of = move |name: &'static str, flow: &RealRateFlow| {
            let rule = flow.rule.and_then(|rule| self.config.rules.get(rule)).map(|rule| rule.name.clone());
            [
                ("direction", name.to_owned()),
                ("rule", rule.unwrap_or_else(|| COUNTED_APART[0].to_owned())),
                ("flow", flow.packets.text()),
            ]
        };
        self.directions().flat_map(move |(name, direction)| {
            direction.real_rate.iter().map(move |flow| (of(name, flow), &flow.share))
        })
    }

    /// The metrics in the text format of Prometheus. `silence` is how long the thread that moves packets has
    /// published no newer snapshot.
    #[must_use]
    pub fn prometheus(&self, reloads: &Reloads, silence: Span) -> String {
        let mut metrics = Metrics::default();
        let title = vec![("title", self.config.title.as_str()), ("version", env!("CARGO_PKG_VERSION"))];
        metrics.gauge("info", "The gateway.", [(title, 1.0)]);
        let accounts = || {
            let accounts = self.directions().flat_map(|(name, direction)| {
                direction.accounts.iter().map(move |(account, counts)| (name, account, counts))
            });
            accounts.map(|(direction, account, counts)| {
                let customer = Some(("customer", &*account.customer)).filter(|(_, name)| !name.is_empty());
                let labels = [("direction", direction), ("rule", &*account.rule)];
                (labels.into_iter().chain(customer).collect::<Vec<_>>(), counts)
            })
        };
        for (name, help, of) in OF_ACCOUNTS {
            metrics.counter(name, help, accounts().map(|(labels, counts)| (labels, of(counts) as f64)));
        }
        let dropped = accounts().flat_map(|(labels, counts)| {
            DropReason::ALL.map(|reason| {
                let labels = [labels.as_slice(), &[("reason", reason.name())]].concat();
                (labels, counts.dropped[reason as usize] as f64)
            })
        });
        metrics.counter("dropped_packets_total", "Packets that the discipline dropped.", dropped);
        for (name, kind, help, of) in OF_DIRECTIONS {
            let samples =
                self.directions().map(|(name, direction)| (vec![("direction", name)], of(direction)));
            metrics.add(name, kind, help, samples);
        }
        for (name, kind, help, of) in OF_AUTORATE {
            let autorates = self.directions().filter_map(|(name, it)| Some((name, it.autorate.as_ref()?)));
            metrics.add(name, kind, help, autorates.map(|(name, it)| (vec![("direction", name)], of(it))));
        }
        let flows: Vec<[(&str, String); 3]> = self.real_rate().map(|(labels, _)| labels).collect();
        for (name, kind, help, of) in OF_REAL_RATE {
            let labels =
                flows.iter().map(|labels| labels.iter().map(|(name, value)| (*name, &**value)).collect());
            let samples = labels.zip(self.real_rate()).map(|(labels, (_, share))| (labels, of(share)));
            metrics.add(name, kind, help, samples);
        }
        let refused = self.directions().flat_map(|(name, direction)| {
            Exceeded::ALL.map(|limit| {
                let labels = vec![("direction", name), ("limit", limit.name())];
                (labels, direction.guarantees.refused[limit as usize] as f64)
            })
        });
        metrics.counter(REFUSED.0, REFUSED.1, refused);
        for (name, help, of) in OF_PORTS {
            let samples =
                self.interfaces().map(|(name, counts)| (vec![("interface", name)], of(counts) as f64));
            metrics.counter(name, help, samples);
        }
        let events = || self.interfaces().into_iter().map(|(name, _)| name).zip(&self.events);
        for (name, _, help, of) in OF_INTERFACES {
            let samples =
                events().map(|(interface, it)| (vec![("interface", interface)], f64::from(u8::from(of(it)))));
            metrics.gauge(name, help, samples);
        }
        let happened = events().flat_map(|(name, it)| {
            OF_EVENTS.map(|(event, of)| (vec![("interface", name), ("event", event)], of(it) as f64))
        });
        metrics.counter("interface_events_total", "What happened to the interface.", happened);
        metrics.gauge(TURN_AGE.0, TURN_AGE.1, [(Vec::new(), silence.as_secs_f64())]);
        self.add_totals(reloads, &mut metrics);
        // Encoding fails only for a metric without a name or samples.
        metrics.text()
    }

    /// Adds the metrics of the gateway as a whole.
    fn add_totals(&self, reloads: &Reloads, metrics: &mut Metrics) {
        let malformed =
            self.malformed.iter().map(|(reason, count)| (vec![("reason", *reason)], *count as f64));
        metrics.counter("malformed_frames_total", "Malformed frames, dropped.", malformed);
        let reports = self.reports.iter().map(|(what, count)| (vec![("what", *what)], *count));
        metrics.counter("reports_total", "Messages between gateways, by outcome.", reports);
        metrics.summary(
            "lateness_seconds",
            "How much later than due packets were sent; quantiles of the last minute or two.",
            self.lateness.named().map(|(share, late)| (share, late.as_secs_f64())),
            (self.late.0, self.late.1.as_secs_f64()),
        );
        let of_all = |value| [(Vec::new(), value)];
        metrics.gauge(
            "frames_in_use",
            "Buffers that hold a frame or wait for one.",
            of_all(self.frames as f64),
        );
        let uptime = self.now.since(Time::ZERO).as_secs_f64();
        metrics.gauge("uptime_seconds", "Time since the start.", of_all(uptime));
        let lost = log::lines_lost() as f64;
        metrics.counter("log_lines_lost_total", "Lines of the log that could not be written.", of_all(lost));
        let help = "Overload notifications that a reader lost.";
        metrics.counter("notifications_lost_total", help, of_all(self.notifications.lost as f64));
        let help = "Readers of overload notifications that are connected.";
        metrics.gauge("notification_readers", help, of_all(self.notifications.readers as f64));
        let restarts = self.thread_restarts as f64;
        let help = "Times that a thread which serves the gateway was started again.";
        metrics.counter("thread_restarts_total", help, of_all(restarts));
        reloads.add_to(metrics);
    }

    /// The metrics as JSON.
    #[must_use]
    pub fn json(&self, reloads: &Reloads, silence: Span) -> Value {
        let counted = |counts: &Counters| {
            let dropped =
                DropReason::ALL.map(|it| (it.name().to_owned(), json!(counts.dropped[it as usize])));
            let mut of: serde_json::Map<_, _> =
                OF_ACCOUNTS.iter().map(|(name, _, of)| (plain(name), json!(of(counts)))).collect();
            of.insert("dropped_packets".to_owned(), Value::Object(dropped.into_iter().collect()));
            Value::Object(of)
        };
        let together = |direction: &DirectionSnapshot, name: fn(&Account) -> &str| {
            let mut all: BTreeMap<String, Counters> = BTreeMap::new();
            for (account, counts) in &direction.accounts {
                *all.entry(name(account).to_owned()).or_default() += *counts;
            }
            all.remove("");
            Value::Object(all.into_iter().map(|(name, counts)| (name, counted(&counts))).collect())
        };
        let direction = |(name, direction): (&str, &DirectionSnapshot)| {
            let mut of: serde_json::Map<_, _> =
                OF_DIRECTIONS.iter().map(|(name, _, _, of)| (plain(name), number(of(direction)))).collect();
            let refused = Exceeded::ALL
                .map(|limit| (limit.name().to_owned(), json!(direction.guarantees.refused[limit as usize])));
            of.insert(plain(REFUSED.0), Value::Object(refused.into_iter().collect()));
            of.insert("rules".to_owned(), together(direction, |account| &account.rule));
            of.insert("customers".to_owned(), together(direction, |account| &account.customer));
            if let Some(findings) = &direction.autorate {
                of.extend(OF_AUTORATE.map(|(name, _, _, of)| (plain(name), number(of(findings)))));
            }
            (name.to_owned(), Value::Object(of))
        };
        let real_rate = self.real_rate().map(|(labels, share)| {
            let labels = labels.into_iter().map(|(name, value)| (name.to_owned(), json!(value)));
            let values = OF_REAL_RATE.map(|(name, _, _, of)| (plain(name), number(of(share))));
            Value::Object(labels.chain(values).collect())
        });
        let port = |((interface, counts), events): ((&str, &PortCounts), &InterfaceEvents)| {
            let mut of: serde_json::Map<_, _> =
                OF_PORTS.iter().map(|(name, _, of)| (plain(name), json!(of(counts)))).collect();
            of.extend(OF_INTERFACES.map(|(_, key, _, is)| (key.to_owned(), json!(is(events)))));
            let happened = OF_EVENTS.map(|(event, of)| (event.to_owned(), json!(of(events))));
            of.insert("events".to_owned(), Value::Object(happened.into_iter().collect()));
            (interface.to_owned(), Value::Object(of))
        };
        let lateness = self.lateness.named();
        let lateness = lateness.map(|(share, value)| (share.to_string(), json!(value.as_secs_f64())));
        json!({
            "title": self.config.title,
            "version": env!("CARGO_PKG_VERSION"),
            "uptime_seconds": self.now.since(Time::ZERO).as_secs_f64(),
            (TURN_AGE.0): silence.as_secs_f64(),
            "directions": Value::Object(self.directions().map(direction).collect()),
            "real_rate": real_rate.collect::<Vec<_>>(),
            "notifications_lost": self.notifications.lost,
            "notification_readers": self.notifications.readers,
            "interfaces": Value::Object(self.interfaces().into_iter().zip(&self.events).map(port).collect()),
            "malformed_frames": Value::Object(
                self.malformed.iter().map(|(reason, count)| ((*reason).to_owned(), json!(count))).collect()
            ),
            "reports": Value::Object(
                self.reports.iter().map(|(what, count)| ((*what).to_owned(), number(*count))).collect()
            ),
            "flow_rules": self.flow_rules.iter().map(of_rule).collect::<Vec<_>>(),
            "lateness_seconds": Value::Object(lateness.collect()),
            "frames_in_use": self.frames,
            "log_lines_lost": log::lines_lost(),
            "thread_restarts": self.thread_restarts,
            "changes": { "applied": reloads.from_page.applied, "refused": reloads.from_page.refused },
            "reloads": reloads.json(),
        })
    }
}

/// A flow rule as JSON.
fn of_rule((flow, rule): &(FlowTuple, FlowRule)) -> Value {
    json!({
        "protocol": flow.protocol(),
        "source": flow.source(),
        "destination": flow.destination(),
        "ports": flow.ports(),
        "bits_per_second": rule.rate.as_bit(),
        "seconds_left": rule.left.as_secs_f64(),
    })
}

/// A number as JSON, an integer if it is whole.
fn number(value: f64) -> Value {
    if value.fract() == 0.0 { json!(value as u64) } else { json!(value) }
}

/// A name without the suffixes that only Prometheus needs.
fn plain(name: &str) -> String {
    name.trim_start_matches("port_").trim_end_matches("_total").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_in_the_documentation() {
        let page = include_str!("../../../../docs/gateway.md");
        let names = OF_ACCOUNTS.map(|(name, ..)| name).into_iter();
        let names = names.chain(OF_DIRECTIONS.map(|(name, ..)| name)).chain(OF_PORTS.map(|(name, ..)| name));
        let names = names
            .chain([REFUSED.0, TURN_AGE.0])
            .chain(OF_INTERFACES.map(|(name, ..)| name))
            .chain(OF_REAL_RATE.map(|(name, ..)| name));
        let names = names.chain(OF_AUTORATE.map(|(name, ..)| name));
        for name in names {
            assert!(page.contains(&format!("`{name}`")), "{name}");
        }
    }

    #[test]
    fn json_says_whole_numbers_as_such() {
        assert_eq!([0.0, 2.0, 0.5].map(|value| number(value).to_string()), ["0", "2", "0.5"]);
    }
}
