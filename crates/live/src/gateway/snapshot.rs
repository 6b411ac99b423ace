//! What a gateway measures, as one value that another thread can read: for Prometheus and as JSON.
//!
//! Metrics are named as Prometheus asks for (prometheus.io/docs/practices/naming): base units, and `_total` for
//! what only grows. Source of the text format: prometheus.io/docs/instrumenting/exposition_formats, version
//! 0.0.4.

use std::fmt::Write as _;
use std::sync::Arc;

use apportion_core::queue::{Backlog, DropReason};
use apportion_core::units::{Rate, Time};
use apportion_linux::port::PortCounts;
use apportion_runtime::histogram::Histogram;
use apportion_runtime::outcome::Distribution;
use apportion_runtime::probe::Counters;
use apportion_scenario::gateway::{Direction, GatewayConfig};
use serde_json::{Value, json};

use super::Gateway;

/// What is measured at one time.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// What the gateway runs by.
    pub config: Arc<GatewayConfig>,
    /// Since its start.
    pub now: Time,
    /// Up and down.
    pub directions: [DirectionSnapshot; 2],
    /// Of the interfaces inside and outside.
    pub ports: [PortCounts; 2],
    /// Frames that were no frames, by reason.
    pub malformed: Vec<(&'static str, u64)>,
    /// How much later than due packets were sent, lately.
    pub lateness: Distribution,
    /// Frames under way.
    pub frames: u64,
    /// Messages between gateways, by what became of them; empty if no queue reports.
    pub reports: Vec<(&'static str, f64)>,
}

/// Of one direction.
#[derive(Clone, Debug)]
pub struct DirectionSnapshot {
    /// Of the transmitter.
    pub rate: Rate,
    /// What waits.
    pub backlog: Backlog,
    /// Packets that did not fit into the queue of a reload; they are among those that were dropped.
    pub left_out: u64,
    /// By rule: only those that saw a packet.
    pub rules: Vec<(Arc<str>, Counters)>,
    /// Flows that have numbers.
    pub flows: usize,
    /// Sum of the guarantees that were given.
    pub guaranteed: Rate,
    /// Guarantees that did not fit.
    pub refused: u64,
    /// Guarantees that were taken back, as the rate fell.
    pub withdrawn: u64,
    /// Labels that were not believed.
    pub ignored: u64,
    /// Packets that had no room for their label.
    pub unlabelled: u64,
}

/// What became of reloads.
#[derive(Clone, Debug, Default)]
pub struct Reloads {
    /// Done.
    pub applied: u64,
    /// Not done.
    pub refused: u64,
    /// What was said of the last one; none before the first.
    pub last: Option<Result<String, String>>,
}

impl Gateway {
    /// What is measured now. `config` is what the gateway runs by.
    pub fn snapshot(&mut self, config: Arc<GatewayConfig>, lateness: &Histogram) -> Snapshot {
        let ports =
            [0, 1].map(|port| self.engine.port_counts(port).map_or_else(PortCounts::default, |it| it.0));
        let mut reports = Vec::new();
        if let Some(own) = self.engine.world.reports() {
            own.statistics(&mut |name, value| reports.push((name, value)));
        }
        Snapshot {
            config,
            reports,
            now: self.engine.now(),
            directions: Direction::BOTH.map(|direction| self.direction_snapshot(direction)),
            ports,
            malformed: self.engine.malformed().map(|(reason, count)| (reason.name(), count)).collect(),
            lateness: lateness.distribution(),
            frames: self.engine.books.pool.used().into(),
        }
    }

    fn direction_snapshot(&self, direction: Direction) -> DirectionSnapshot {
        let (world, books) = (&self.engine.world, &self.engine.books);
        let state = world.direction(direction);
        let counted = |(name, account): (&Arc<str>, u32)| {
            let counts = books.flows.get(account as usize)?;
            (counts.sent.packets.get() > 0).then(|| (Arc::clone(name), *counts))
        };
        let link = self.engine.link(direction as usize);
        DirectionSnapshot {
            rate: link.map_or(Rate::ZERO, crate::link::Link::rate),
            backlog: link.map_or(Backlog::EMPTY, crate::link::Link::backlog),
            left_out: self.left_out[direction as usize],
            rules: world.accounts(direction).filter_map(counted).collect(),
            flows: state.flows.known(),
            guaranteed: state.flows.reserved(),
            refused: state.flows.refused(),
            withdrawn: state.flows.withdrawn(),
            ignored: state.ignored,
            unlabelled: state.unlabelled,
        }
    }
}

const PREFIX: &str = "apportion_gateway_";

/// Metrics as Prometheus reads them.
struct Text(String);

impl Text {
    /// Begins a metric.
    fn metric(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string cannot fail, here and below.
        let _ = write!(self.0, "# HELP {PREFIX}{name} {help}\n# TYPE {PREFIX}{name} {kind}\n");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        let _ = write!(self.0, "{PREFIX}{name}");
        for (at, (label, text)) in labels.iter().enumerate() {
            let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.0, "{}{label}=\"{text}\"", if at == 0 { "{" } else { "," });
        }
        let _ = writeln!(self.0, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }
}

type OfRule = fn(&Counters) -> u64;
const OF_RULES: [(&str, &str, OfRule); 6] = [
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
const OF_DIRECTIONS: [(&str, &str, &str, OfDirection); 10] = [
    ("backlog_packets", "gauge", "Packets that wait.", |it| it.backlog.packets.get() as f64),
    ("backlog_bytes", "gauge", "What waits, overhead included.", |it| it.backlog.bytes.get() as f64),
    ("rate_bytes_per_second", "gauge", "Rate of the transmitter.", |it| bytes(it.rate)),
    ("guaranteed_bytes_per_second", "gauge", "Sum of the guarantees that were given.", |it| {
        bytes(it.guaranteed)
    }),
    ("flows", "gauge", "Flows that have numbers, silent ones included.", |it| it.flows as f64),
    ("guarantees_refused_total", "counter", "Guarantees that did not fit.", |it| it.refused as f64),
    ("guarantees_withdrawn_total", "counter", "Guarantees that were taken back, as the rate fell.", |it| {
        it.withdrawn as f64
    }),
    (
        "reload_dropped_packets_total",
        "counter",
        "Packets that did not fit into the queue of a reload.",
        |it| it.left_out as f64,
    ),
    ("labels_disbelieved_total", "counter", "Labels that came in and were not believed.", |it| {
        it.ignored as f64
    }),
    ("unlabelled_packets_total", "counter", "Packets without room for their label.", |it| {
        it.unlabelled as f64
    }),
];

type OfPort = fn(&PortCounts) -> u64;
const OF_PORTS: [(&str, &str, OfPort); 7] = [
    ("port_received_frames_total", "Frames that came in.", |it| it.received),
    ("port_sent_frames_total", "Frames that went out.", |it| it.sent),
    ("port_oversize_frames_total", "Frames longer than a buffer, dropped.", |it| it.oversize),
    ("port_super_packets_total", "Super-packets of segmentation offload, dropped.", |it| it.super_packets),
    ("port_missed_frames_total", "Frames that the kernel lost before we fetched them.", |it| it.missed),
    ("port_unsent_frames_total", "Frames that the device refused.", |it| it.unsent),
    ("port_down_total", "Times that the interface was found down.", |it| it.down),
];

fn bytes(rate: Rate) -> f64 {
    rate.as_bit() as f64 / 8.0
}

impl Snapshot {
    /// The counts of both ports and the names of their interfaces.
    fn interfaces(&self) -> [(&str, &PortCounts); 2] {
        [(&self.config.inside, &self.ports[0]), (&self.config.outside, &self.ports[1])]
    }

    fn directions(&self) -> impl Iterator<Item = (&'static str, &DirectionSnapshot)> {
        Direction::BOTH.into_iter().map(Direction::name).zip(&self.directions)
    }

    /// For Prometheus.
    #[must_use]
    pub fn prometheus(&self, reloads: &Reloads) -> String {
        let mut text = Text(String::new());
        text.metric("info", "gauge", "The gateway.");
        text.sample("info", &[("title", &self.config.title), ("version", env!("CARGO_PKG_VERSION"))], 1);
        for (name, help, of) in OF_RULES {
            text.metric(name, "counter", help);
            for (direction, way) in self.directions() {
                for (rule, counts) in &way.rules {
                    text.sample(name, &[("direction", direction), ("rule", rule)], of(counts));
                }
            }
        }
        text.metric("dropped_packets_total", "counter", "Packets that the discipline dropped.");
        for (direction, way) in self.directions() {
            for (rule, counts) in &way.rules {
                for reason in DropReason::ALL {
                    let labels = [("direction", direction), ("rule", rule), ("reason", reason.name())];
                    text.sample("dropped_packets_total", &labels, counts.dropped[reason as usize]);
                }
            }
        }
        for (name, kind, help, of) in OF_DIRECTIONS {
            text.metric(name, kind, help);
            for (direction, way) in self.directions() {
                text.sample(name, &[("direction", direction)], of(way));
            }
        }
        for (name, help, of) in OF_PORTS {
            text.metric(name, "counter", help);
            for (interface, counts) in self.interfaces() {
                text.sample(name, &[("interface", interface)], of(counts));
            }
        }
        self.of_all(reloads, &mut text);
        text.0
    }

    fn of_all(&self, reloads: &Reloads, text: &mut Text) {
        text.metric("malformed_frames_total", "counter", "Frames that are none, dropped.");
        for (reason, count) in &self.malformed {
            text.sample("malformed_frames_total", &[("reason", reason)], count);
        }
        if !self.reports.is_empty() {
            text.metric("reports_total", "counter", "Messages between gateways, by what became of them.");
        }
        for (what, count) in &self.reports {
            text.sample("reports_total", &[("what", what)], count);
        }
        text.metric("lateness_seconds", "gauge", "How much later than due packets were sent, lately.");
        for (share, value) in &self.lateness.quantiles {
            text.sample("lateness_seconds", &[("quantile", &share.to_string())], value.as_secs_f64());
        }
        text.metric("frames_in_use", "gauge", "Buffers that hold a frame or wait for one.");
        text.sample("frames_in_use", &[], self.frames);
        text.metric("uptime_seconds", "gauge", "Since the start.");
        text.sample("uptime_seconds", &[], self.now.since(Time::ZERO).as_secs_f64());
        text.metric("reloads_total", "counter", "Reloads, by what became of them.");
        text.sample("reloads_total", &[("result", "applied")], reloads.applied);
        text.sample("reloads_total", &[("result", "refused")], reloads.refused);
        text.metric(
            "last_reload_successful",
            "gauge",
            "Whether the last reload was applied; 1 before the first.",
        );
        let is_refused = matches!(reloads.last, Some(Err(_)));
        text.sample("last_reload_successful", &[], u8::from(!is_refused));
    }

    /// The same as JSON.
    #[must_use]
    pub fn json(&self, reloads: &Reloads) -> Value {
        let rule = |(name, counts): &(Arc<str>, Counters)| {
            let dropped =
                DropReason::ALL.map(|it| (it.name().to_owned(), json!(counts.dropped[it as usize])));
            let mut of: serde_json::Map<_, _> =
                OF_RULES.iter().map(|(name, _, of)| (plain(name), json!(of(counts)))).collect();
            of.insert("dropped_packets".to_owned(), Value::Object(dropped.into_iter().collect()));
            (name.to_string(), Value::Object(of))
        };
        let way = |(direction, way): (&str, &DirectionSnapshot)| {
            let mut of: serde_json::Map<_, _> =
                OF_DIRECTIONS.iter().map(|(name, _, _, of)| (plain(name), number(of(way)))).collect();
            of.insert("rules".to_owned(), Value::Object(way.rules.iter().map(rule).collect()));
            (direction.to_owned(), Value::Object(of))
        };
        let port = |(interface, counts): (&str, &PortCounts)| {
            let of = OF_PORTS.iter().map(|(name, _, of)| (plain(name), json!(of(counts)))).collect();
            (interface.to_owned(), Value::Object(of))
        };
        let lateness = self.lateness.quantiles.iter();
        let lateness = lateness.map(|(share, value)| (share.to_string(), json!(value.as_secs_f64())));
        json!({
            "title": self.config.title,
            "version": env!("CARGO_PKG_VERSION"),
            "uptime_seconds": self.now.since(Time::ZERO).as_secs_f64(),
            "directions": Value::Object(self.directions().map(way).collect()),
            "interfaces": Value::Object(self.interfaces().into_iter().map(port).collect()),
            "malformed_frames": Value::Object(
                self.malformed.iter().map(|(reason, count)| ((*reason).to_owned(), json!(count))).collect()
            ),
            "reports": Value::Object(
                self.reports.iter().map(|(what, count)| ((*what).to_owned(), number(*count))).collect()
            ),
            "lateness_seconds": Value::Object(lateness.collect()),
            "frames_in_use": self.frames,
            "reloads": {
                "applied": reloads.applied,
                "refused": reloads.refused,
                "last": match &reloads.last {
                    None => Value::Null,
                    Some(Ok(told)) => json!({ "applied": told }),
                    Some(Err(told)) => json!({ "refused": told }),
                },
            },
        })
    }
}

/// As JSON, whole where it is.
fn number(value: f64) -> Value {
    if value.fract() == 0.0 { json!(value as u64) } else { json!(value) }
}

/// A name without what only Prometheus asks for.
fn plain(name: &str) -> String {
    name.trim_start_matches("port_").trim_end_matches("_total").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_in_the_documentation() {
        let page = include_str!("../../../../docs/gateway.md");
        let names = OF_RULES.map(|(name, ..)| name).into_iter();
        let names = names.chain(OF_DIRECTIONS.map(|(name, ..)| name)).chain(OF_PORTS.map(|(name, ..)| name));
        for name in names {
            assert!(page.contains(&format!("`{name}`")), "{name}");
        }
    }

    #[test]
    fn json_says_whole_numbers_as_such() {
        assert_eq!([0.0, 2.0, 0.5].map(|value| number(value).to_string()), ["0", "2", "0.5"]);
    }
}
