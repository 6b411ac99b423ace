//! A gateway's configuration as TOML, from one list of its keys, which also [compares](super::difference)
//! two.

use std::fmt::Write as _;

use apportion_core::packet::FillTarget;
use apportion_core::units::Rate;

use super::tables::{AUTO, FASTEST, LINK, SLOWEST, THRESHOLD};
use super::{Direction, DirectionConfig, GatewayConfig, ReportKey, RuleConfig, Setting, forms};
use crate::flows;
use crate::tables::CLASSES;
use crate::text::{join, quoted};

/// A table as it is written.
pub(super) struct Section {
    /// The header, for example `[up]`; empty for the file itself.
    header: String,
    pub path: String,
    pub entries: Vec<Entry>,
}

pub(super) struct Entry {
    pub setting: Setting,
    pub key: &'static str,
    pub text: String,
}

/// A whole configuration.
pub(super) fn text_of(sections: &[Section]) -> String {
    let mut out = String::new();
    for section in sections {
        if !section.header.is_empty() {
            let _ = writeln!(out, "\n{}", section.header);
        }
        for Entry { key, text, .. } in &section.entries {
            let _ = writeln!(out, "{key} = {text}");
        }
    }
    out
}

impl Section {
    fn new(header: &str, path: &str) -> Self {
        Self { header: header.to_owned(), path: path.to_owned(), entries: Vec::new() }
    }

    fn add(&mut self, setting: Setting, key: &'static str, text: impl Into<String>) {
        self.entries.push(Entry { setting, key, text: text.into() });
    }

    fn add_if<T>(&mut self, setting: Setting, key: &'static str, value: Option<T>, text: fn(T) -> String) {
        if let Some(value) = value {
            self.add(setting, key, text(value));
        }
    }

    /// The whole table in one line.
    pub fn inline(&self) -> String {
        let parts: Vec<_> =
            self.entries.iter().map(|entry| format!("{} = {}", entry.key, entry.text)).collect();
        format!("{{ {} }}", parts.join(", "))
    }
}

impl GatewayConfig {
    /// The configuration as it was understood: defaults filled in, values written in one way. It loads back
    /// to the same configuration, if the file of plans that it names is the same. It contains the
    /// `report_key`, if there is one.
    #[must_use]
    pub fn canonical(&self) -> String {
        text_of(&self.sections())
    }

    pub(super) fn sections(&self) -> Vec<Section> {
        let mut file = Section::new("", "");
        file.add(Setting::Title, "title", quoted(&self.title));
        file.add(Setting::Seed, "seed", self.seed.to_string());
        file.add(Setting::Inside, "inside", quoted(&self.inside));
        file.add(Setting::Outside, "outside", quoted(&self.outside));
        file.add_if(Setting::Metrics, "metrics", self.metrics, |metrics| quoted(&metrics.to_string()));
        let notifications = self.notifications.as_deref();
        file.add_if(Setting::Notifications, "notifications", notifications, |path| {
            quoted(&path.to_string_lossy())
        });
        file.add(Setting::Control, "control", self.control.to_string());
        let token = self.control_token.as_deref();
        file.add_if(Setting::ControlToken, "control_token", token, |path| quoted(&path.to_string_lossy()));
        file.add_if(Setting::Address, "address", self.address, |address| quoted(&address.to_string()));
        file.add_if(Setting::ReportKey, "report_key", self.report_key.as_ref(), key_text);
        file.add(Setting::Insecure, "insecure", self.insecure.to_string());
        file.add(Setting::FlowIdle, "flow_idle", quoted(&self.flow_idle.to_string()));
        file.add(Setting::Flows, "flows", self.flows.to_string());
        file.add_if(Setting::Plans, "plans", self.plans.as_deref(), quoted);
        let mut all = vec![file];
        all.extend(Direction::BOTH.map(|way| direction(way, self.direction(way))));
        all.extend(self.rules.iter().map(rule));
        let weighed = if self.weighs_customers() { &self.customers[..] } else { &[] };
        all.extend(weighed.iter().map(|customer| {
            let path = join("customer", &customer.name);
            let mut section = Section::new(&format!("[{path}]"), &path);
            section.add(Setting::Customers, "weight", number(customer.weight.get()));
            section
        }));
        all
    }
}

fn direction(way: Direction, config: &DirectionConfig) -> Section {
    let mut section = Section::new(&format!("[{}]", way.name()), way.name());
    let labels = &config.labels;
    match &config.auto {
        None => section.add(Setting::Rate(way), "rate", quoted(&config.rate.to_string())),
        Some(auto) => {
            section.add(Setting::Rate(way), "rate", quoted(AUTO));
            section.add(Setting::Rate(way), FASTEST, quoted(&config.rate.to_string()));
            section.add(Setting::Rate(way), SLOWEST, quoted(&auto.least.to_string()));
            section.add(Setting::Rate(way), THRESHOLD, quoted(&auto.threshold.to_string()));
            section.add(Setting::Rate(way), LINK, quoted(auto.link.name()));
        }
    }
    section.add(Setting::Overhead(way), "overhead", quoted(&config.overhead.to_string()));
    section.add(Setting::Queue(way), "queue", &*config.queue.text);
    section.add(Setting::Delay(way), "delay", quoted(&config.delay.to_string()));
    section.add(Setting::Loss(way), "loss", number(config.loss.get()));
    let labels = format!("{{ reads = {}, writes = {} }}", labels.reads, labels.writes);
    section.add(Setting::Labels(way), "labels", labels);
    section.add_if(Setting::Tickets(way), "tickets", config.tickets, |tickets| number(tickets.get()));
    section
        .add_if(Setting::AckTickets(way), "ack_tickets", config.ack_tickets, |tickets| number(tickets.get()));
    section.add_if(Setting::Exchange(way), "exchange", config.exchange.as_ref(), |part| part.text.clone());
    section
}

fn rule(rule: &RuleConfig) -> Section {
    const ALL: Setting = Setting::Rules;
    let mut section = Section::new("[[rule]]", &join("rule", &rule.name));
    let (when, gives) = (&rule.when, &rule.gives);
    section.add(ALL, "name", quoted(&rule.name));
    section.add_if(ALL, "direction", rule.direction, |direction| quoted(direction.name()));
    section.add_if(ALL, "protocol", when.protocol, forms::protocol_text);
    section.add_if(ALL, "from", when.from, |prefix| quoted(&prefix.to_string()));
    section.add_if(ALL, "to", when.to, |prefix| quoted(&prefix.to_string()));
    section.add_if(ALL, "from_port", when.from_port.as_ref(), forms::ports_text);
    section.add_if(ALL, "to_port", when.to_port.as_ref(), forms::ports_text);
    section.add_if(ALL, "dscp", when.dscp, |dscp| dscp.to_string());
    let class = CLASSES.iter().find(|name| flows::class(name) == gives.class);
    section.add_if(ALL, "class", class, |class| quoted(class));
    match gives.target {
        Some(FillTarget::Size(size)) => section.add(ALL, "target", quoted(&size.to_string())),
        Some(FillTarget::Delay(delay)) => section.add(ALL, "target_delay", quoted(&delay.to_string())),
        None => (),
    }
    section.add(ALL, "weight", number(gives.weight.get()));
    section.add(ALL, "guarantee", quoted(&gives.guarantee.to_string()));
    let rate = |rate: Rate| quoted(&rate.to_string());
    section.add_if(ALL, "guarantee_limit", gives.guarantee_limit, rate);
    section.add_if(ALL, "guarantee_limit_per_host", gives.guarantee_limit_per_host, rate);
    section.add_if(ALL, "label_limit", gives.label_limit, rate);
    section.add_if(ALL, "tickets", gives.tickets, |tickets| number(tickets.get()));
    section.add_if(ALL, "ack_tickets", gives.ack_tickets, |tickets| number(tickets.get()));
    section.add_if(ALL, "mark", gives.mark.as_ref(), |part| part.text.clone());
    section.add_if(ALL, "rtt", gives.rtt, |rtt| quoted(&rtt.to_string()));
    section.add_if(ALL, "customer", gives.customer.as_deref(), quoted);
    section.add(ALL, "flows", forms::grouping_text(gives.flows));
    section
}

pub(super) fn number(value: f64) -> String {
    format!("{value:?}")
}

fn key_text(key: &ReportKey) -> String {
    quoted(&key.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::tables::{DIRECTION, ROOT, RULE};
    use super::*;
    use crate::tables::CUSTOMER;
    use apportion_core::param::{Kind, Param};

    /// A key that is not written here is lost in the canonical text, and no reload would notice its changes.
    #[test]
    fn every_key_is_written() {
        let everything = include_str!("../../../../fuzz/corpus/gateway_config/everything.toml");
        let receivers = "inside = \"a\"\noutside = \"b\"\n[down]\nrate = \"1Mbit\"\nlabels = { reads = true, writes = true }\n\
                         [up]\nrate = \"1Mbit\"\nack_tickets = 5\nlabels = { reads = true, writes = true }\n";
        let follows = include_str!("../../../../fuzz/corpus/gateway_config/auto.toml");
        let provider = include_str!("../../../../scenarios/gateway/provider.toml");
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/gateway/provider.toml");
        let load = |text: &str| GatewayConfig::load(text, &folder).unwrap();
        let sections: Vec<Section> = [everything, receivers, follows, provider]
            .map(load)
            .iter()
            .flat_map(GatewayConfig::sections)
            .collect();
        for (start, keys) in [("", ROOT), ("[up]", DIRECTION), ("[[rule]]", RULE), ("[customer", CUSTOMER)] {
            let is_own =
                |it: &&Section| it.header.is_empty() == start.is_empty() && it.header.starts_with(start);
            let own: Vec<&Section> = sections.iter().filter(is_own).collect();
            let is_written =
                |key: &Param| own.iter().any(|it| it.entries.iter().any(|entry| entry.key == key.name));
            // Keys of the file that are tables are sections of their own.
            let is_section = |key: &Param| {
                start.is_empty() && matches!(key.kind, Kind::Table(_) | Kind::Tables(_) | Kind::Map(_))
            };
            for key in keys.iter().filter(|key| !is_section(key)) {
                assert!(is_written(key), "{start} {}", key.name);
            }
        }
    }
}
