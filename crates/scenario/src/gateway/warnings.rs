//! Warnings about settings of a gateway that are allowed, but probably not intended.

use std::collections::BTreeSet;

use apportion_core::aqm::csfq::RouterRole;
use apportion_core::mark::MarkerParams;
use apportion_core::packet::{FlowClass, LabelKind};
use apportion_core::param::Heeds;
use apportion_core::system::classes::ByteLimit;
use apportion_core::system::{DisciplineKind, DisciplineParams};
use apportion_core::units::{Bytes, TicketRate, Weight};

use super::{Direction, GatewayConfig, RuleConfig, Treatment};
use crate::plans::{Lowered, Plans};
use crate::warnings::{FlowKey, Given, MOST_NAMED, Standing, and_more, carried, full_tags, unheeded};

/// The largest packet of Ethernet, without its header.
const MTU: Bytes = Bytes::new(1_500);

impl GatewayConfig {
    /// Warnings, one line each, with the key and the mend; none if there are none.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut all = self.unheeded();
        for way in Direction::BOTH {
            all.extend(self.too_small(way));
            all.extend(self.of_queue(way));
            all.extend(self.full_tags(way));
            all.extend(self.full_exchange(way));
        }
        all.extend(self.idle_customers());
        all.extend(self.idle_keys());
        let Some(plans) = &self.nodes else { return all };
        let planned = Direction::BOTH.into_iter().zip(self.classes_of);
        let planned: Vec<_> = planned.filter_map(|(way, of)| Some((way, of?))).collect();
        let totals = planned.iter().filter_map(|(way, of)| self.above_rate(plans, *way, *of));
        let lowered = planned.iter().filter_map(|(_, of)| lowered(plans, *of));
        all.extend(totals.chain(lowered).chain(self.without_packets(plans)));
        all
    }

    fn rules_for(&self, way: Direction) -> impl Iterator<Item = &RuleConfig> {
        self.rules.iter().filter(move |rule| rule.is_for(way))
    }

    /// Keys of rules that queues do not use, one line for each key with the directions in which it has no
    /// effect.
    fn unheeded(&self) -> Vec<String> {
        let name_in = |key: FlowKey, rule: &RuleConfig| key.name_in(&given(rule));
        let queues = Direction::BOTH.map(|way| &self.direction(way).queue.params);
        let mut all = Vec::new();
        for key in FlowKey::ALL {
            if self.rules.iter().all(|rule| name_in(key, rule).is_none()) {
                continue;
            }
            let counts = queues.map(|queue| key.may_count(queue));
            let ignored = |rule: &RuleConfig| {
                Direction::BOTH
                    .map(|way| rule.is_for(way) && name_in(key, rule).is_some() && !counts[way as usize])
            };
            for (ways, place) in [
                ([true, false], "in direction `up`"),
                ([false, true], "in direction `down`"),
                ([true, true], "in either direction"),
            ] {
                let mut rules = self.rules.iter().filter(|rule| ignored(rule) == ways);
                let Some((first, name)) = rules.next().and_then(|rule| Some((rule, name_in(key, rule)?)))
                else {
                    continue;
                };
                let by_dscp = queues.iter().zip(ways).any(|(queue, ignores)| ignores && queue.goes_by_dscp());
                let knows = by_dscp && key == FlowKey::Class;
                let mut mend = if knows { "tins = \"class\" for `cake`" } else { "such a queue" }.to_owned();
                if first.direction.is_none()
                    && let Some(other) = Direction::BOTH.into_iter().find(|way| !ways[*way as usize])
                {
                    mend += &format!(", direction = \"{}\"", other.name());
                }
                all.push(key.unheeded(name, &named(first), rules.count(), place, &mend));
            }
        }
        all
    }

    /// Warnings about the queue of a direction by itself, and with the flows over it, some of which are
    /// unresponsive.
    fn of_queue(&self, way: Direction) -> Vec<String> {
        let direction = self.direction(way);
        let standing = Standing {
            place: format!("direction `{}`", way.name()),
            queue: &direction.queue.params,
            rate: direction.rate,
        };
        let mut all = Vec::from_iter(standing.undone_division("a flow that does not answer to drops"));
        let weighed = self.rules_for(way).find(|rule| rule.gives.weight != Weight::ONE);
        all.extend(weighed.and_then(|rule| standing.equal_in_front(&named(rule))));
        all.extend(self.full_labels(way, &standing));
        // Classes of plans have warnings of their own, in the terms of the file.
        if self.classes_of[way as usize].is_none() {
            all.extend(standing.of_classes());
            all.extend(self.idle_classes(way, standing.queue));
        }
        all.extend(self.idle_ramp(way, standing.queue));
        all.extend(standing.idle_rates());
        all
    }

    /// A `ramp` without a flow to reserve for.
    fn idle_ramp(&self, way: Direction, queue: &DisciplineParams) -> Option<String> {
        let is_real_rate = |rule: &RuleConfig| rule.gives.class == FlowClass::RealRate;
        let is_idle = matches!(&queue.kind, DisciplineKind::Ramp(ramp) if !ramp.recognise)
            && !self.rules_for(way).any(is_real_rate);
        is_idle.then(|| {
            format!(
                "the queue `ramp` of direction `{}` reserves nothing, since no rule for it has class = \"real_rate\"",
                way.name()
            )
        })
    }

    /// Classes that no rule refers to.
    fn idle_classes(&self, way: Direction, queue: &DisciplineParams) -> Option<String> {
        let classes = queue.classes()?;
        let has = |class: &str| self.rules_for(way).any(|rule| rule.gives.customer.as_deref() == Some(class));
        let own = classes.leaves.into_iter().filter(|leaf| !leaf.is_empty() && classes.others != Some(*leaf));
        let idle: Vec<&str> = own.filter(|leaf| !has(leaf)).collect();
        let named: Vec<_> = idle.iter().take(MOST_NAMED).map(|leaf| format!("`{leaf}`")).collect();
        Some(format!(
            "no rule for direction `{}` leads to class {}{} of its queue; write customer = \"{}\" in one, or leave the class out",
            way.name(),
            named.join(", "),
            and_more(idle.len()),
            idle.first()?
        ))
    }

    /// Weights of customers if neither queue divides among customers.
    fn idle_customers(&self) -> Option<String> {
        let queues = Direction::BOTH.map(|way| &self.direction(way).queue.params);
        let divides = |queue: &&DisciplineParams| queue.has_classes() || queue.may_heed(Heeds::Customer);
        if queues.iter().any(divides) {
            return None;
        }
        let alike = self.customers.windows(2).all(|pair| pair[0].weight == pair[1].weight);
        let mut weighed = self.customers.iter().filter(|customer| customer.weight != Weight::ONE && !alike);
        let first = format!("customer `{}`", weighed.next()?.name);
        let does = "in either direction shares bandwidth among customers, as \"hcsfq\" does";
        Some(unheeded("weight", &first, weighed.count(), does, "such a queue"))
    }

    /// Keys of the gateway that neither queue uses.
    fn idle_keys(&self) -> impl Iterator<Item = String> {
        let any = |is: fn(&DisciplineParams) -> bool| {
            Direction::BOTH.into_iter().any(|way| is(&self.direction(way).queue.params))
        };
        let notified = any(|queue| matches!(queue.kind, DisciplineKind::Ramp(_)));
        let reported = any(|queue| queue.report_interval().is_some());
        let keys = [
            ("notifications", self.notifications.is_some() && !notified, "\"ramp\", which notifies"),
            ("address", self.address.is_some() && !reported, "\"sffc\", which reports"),
        ];
        keys.into_iter().filter(|(_, is_idle, _)| *is_idle).map(|(key, _, queue)| {
            format!("`{key}` has no effect: neither direction has a queue such as {queue}; leave it out")
        })
    }

    /// Labels too narrow for a flow at the full rate of the direction.
    fn full_labels(&self, way: Direction, standing: &Standing<'_>) -> Option<String> {
        let (role, _) = standing.queue.rate_labels()?;
        let written = standing.queue.rate_label_params()?;
        // Hosts have no weights, and a core reads labels of others.
        if standing.queue.isolate().is_some() || role == RouterRole::Core {
            return None;
        }
        let of_rules =
            self.rules_for(way).map(|rule| (rule.gives.weight, format!("a flow of {}", named(rule))));
        let all = of_rules.chain([(Weight::ONE, "a flow that no rule matches".to_owned())]);
        let (weight, flow) = all.min_by(|one, other| one.0.get().total_cmp(&other.0.get()))?;
        standing.full_labels(&flow, standing.rate.as_bit() as f64 / weight.get(), written)
    }

    /// Tags too narrow for the tickets of a full packet, with one flow of each rule that issues tickets.
    fn full_tags(&self, way: Direction) -> Option<String> {
        let direction = self.direction(way);
        let queue = &direction.queue.params;
        if queue.label_required() != Some(LabelKind::Tickets) {
            return None;
        }
        let total = self.rules_for(way).filter_map(|rule| rule.gives.tickets).map(TicketRate::get).sum();
        let packet = MTU + direction.overhead;
        let tickets = carried(total, packet, queue.capacity(direction.rate));
        let place = format!("in direction `{}`", way.name());
        self.rules_for(way).filter(|rule| rule.gives.tickets.is_some()).find_map(|rule| {
            let MarkerParams::Tickets(mark) = &rule.gives.mark.as_ref()?.params else { return None };
            full_tags(&named(rule), (packet, tickets), &place, ("its tags", "mark", ""), &mark.writer)
        })
    }

    /// Tags too narrow for the tickets issued to a direction, if all of its rate goes to packets with equal
    /// tickets.
    fn full_exchange(&self, way: Direction) -> Option<String> {
        let direction = self.direction(way);
        let exchange = &direction.exchange.as_ref()?.params.writer;
        let packet = MTU + direction.overhead;
        let tickets =
            carried(direction.tickets?.get(), packet, direction.queue.params.capacity(direction.rate));
        let whom = format!("direction `{}`", way.name());
        full_tags(&whom, (packet, tickets), "at the next router", ("its tags", "exchange", ""), exchange)
    }

    /// A buffer in the direction `way` that has no room for a full packet of Ethernet.
    fn too_small(&self, way: Direction) -> Option<String> {
        let direction = self.direction(way);
        let packet = MTU + direction.overhead;
        let limits = direction.queue.params.byte_limits(direction.least_rate());
        let ByteLimit { key, size, .. } = limits.into_iter().find(|limit| limit.size < packet)?;
        Some(format!(
            "{}.queue.{key}: {size} is less than a full packet of Ethernet, {packet} with the overhead: it drops every one; write \
             \"{packet}\" or more",
            way.name()
        ))
    }

    /// Plans that assure more than the rate of the direction `way`, whose classes have the rates of `of`.
    fn above_rate(&self, plans: &Plans, way: Direction, of: Direction) -> Option<String> {
        let (direction, total) = (self.direction(way), plans.total(of));
        let rate = direction.least_rate();
        let key = if direction.auto.is_some() { "rate_min" } else { "rate" };
        (total > rate).then(|| {
            format!(
                "{}.{key}: {rate} is less than the plans without a parent have together, {total}, so that what plans assure is not \
                 kept while all want more; raise it, or lower `{}` of these plans",
                way.name(),
                of.name()
            )
        })
    }

    /// Customers of plans without packets: they have no addresses, and no rule names them.
    fn without_packets(&self, plans: &Plans) -> Option<String> {
        let customers = self.rules.iter().filter_map(|rule| rule.gives.customer.as_deref());
        let customers: BTreeSet<&str> = customers.collect();
        let lacking: Vec<_> = plans.without_addresses().filter(|name| !customers.contains(name)).collect();
        let named: Vec<_> = lacking.iter().take(MOST_NAMED).map(|name| format!("`{name}`")).collect();
        (!lacking.is_empty()).then(|| {
            format!(
                "plans: no packet belongs to {}{}, without addresses and without a rule that names it as `customer`; write its addresses, or \
                 leave it out",
                named.join(", "),
                and_more(lacking.len())
            )
        })
    }
}

/// The parameters of flows that match a rule, as queues see them.
fn given(rule: &RuleConfig) -> Given<'_> {
    let Treatment { weight, guarantee, class, target, rtt, ref mark, .. } = rule.gives;
    Given { weight, guarantee, class, target, rtt, mark: mark.as_ref().map(|mark| &mark.params) }
}

/// A rule in text.
fn named(rule: &RuleConfig) -> String {
    format!("rule `{}`", rule.name)
}

/// Plans whose minimum is below their share.
fn lowered(plans: &Plans, of: Direction) -> Option<String> {
    let all = plans.lowered(of);
    let named: Vec<_> = all
        .iter()
        .take(MOST_NAMED)
        .map(|Lowered { name, least, without }| format!("`{name}` ({least} in place of {without})"))
        .collect();
    let more = and_more(all.len());
    (!all.is_empty()).then(|| {
        format!(
            "plans: {0}_min is below the part in proportion to `{0}`, and lowers what is assured to {1}{more}; leave it empty where the \
             part is to count, or raise it",
            of.name(),
            named.join(", ")
        )
    })
}
