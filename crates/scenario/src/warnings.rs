//! What of a scenario probably does not mean what its author expects: not wrong, so not refused.

use std::collections::{BTreeMap, BTreeSet};

use apportion_core::label::Label;
use apportion_core::mark::MarkerParams;
use apportion_core::packet::{FlowClass, LabelKind};
use apportion_core::param::Heeds;
use apportion_core::system::DisciplineKind;
use apportion_core::system::classes::{ByteLimit, Classes};
use apportion_core::units::{Bytes, Rate, Span, TicketRate, Weight};

use crate::model::{Flow, Link, LinkId, Scenario, Setting, Start, Transport};

/// Least time to measure. Chosen: two or three cycles of a TCP window on common paths.
const LEAST_TIME: Span = Span::from_secs(10);
/// Least number of round trips to measure. Chosen: some cycles of a TCP window.
const LEAST_ROUNDS: u64 = 100;
/// Least time over which the opportunities of a recorded link are compared with its mean. Chosen: above what a default buffer evens out.
const LEAST_WINDOW: Span = Span::from_secs(1);
/// Most such times. Chosen: some milliseconds of work.
const MOST_WINDOWS: u64 = 1_000;
/// Part of the opportunities beyond the mean that is worth a warning. Chosen: the tolerance of shares.
const BEYOND: f64 = 0.05;
/// Flows that are named for one reason. Chosen: what one reads.
const MOST_NAMED: usize = 3;

impl Scenario {
    /// What of it does nothing, or measures too little, one line each; empty if there is nothing to say.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut all = Vec::from_iter(self.short_measurement());
        all.extend(self.after_the_end());
        all.extend(self.unheeded());
        for (id, link) in (0..).map(LinkId).zip(&self.links) {
            if matches!(link.queue.kind, DisciplineKind::Ramp(_)) {
                all.extend(self.idle_ramp(id, link));
            }
            all.extend(self.too_small(id, link));
            all.extend(self.beyond_the_mean(link));
            all.extend(self.full_tags(id, link));
            all.extend(self.undone_division(id, link));
            all.extend(no_classes(link));
            all.extend(assured_too_much(link));
            all.extend(squeezed(link));
            // With a shaper or a change the part of a customer is not what the rate says.
            if link.queue.divides_among_customers() && link.queue.shaper.is_none() && self.changes.is_empty()
            {
                all.extend(self.idle_guarantees(link, &self.flows_over(id)));
            }
        }
        all
    }

    /// The flows whose packets cross the link.
    fn flows_over(&self, link: LinkId) -> Vec<usize> {
        let flows = self.flows.iter().enumerate();
        flows.filter(|(_, flow)| self.may_cross(flow, &flow.path, link)).map(|(at, _)| at).collect()
    }

    fn short_measurement(&self) -> Option<String> {
        let measured = Span::from_nanos(self.stop.as_nanos().saturating_sub(self.measure_from.as_nanos()));
        let seconds = measured.as_secs_f64();
        if measured < LEAST_TIME {
            return Some(format!(
                "only {seconds} s are measured, of which chance and slow start decide much; write a later `stop`, for \
                 10 s or more"
            ));
        }
        // Nothing else waits for an answer.
        let answered = self.flows.iter().filter(|flow| flow.transport.is_acknowledged());
        let of = |flow| Some((self.path_rtt(flow)?, flow));
        let (rtt, flow) = answered.filter_map(of).max_by_key(|(rtt, _)| *rtt)?;
        let rounds = measured.as_nanos() / rtt.as_nanos().max(1);
        (rounds < LEAST_ROUNDS).then(|| {
            format!(
                "the measured {seconds} s are only {rounds} round trips of flow `{}`, {:.0} ms each; write a later \
                 `stop`, for 100 or more",
                flow.name,
                1e3 * rtt.as_secs_f64()
            )
        })
    }

    /// Flows and changes that the run does not reach.
    fn after_the_end(&self) -> Vec<String> {
        let begins = |start| match start {
            Start::At(at) | Start::Between(at, _) => at,
        };
        let late = self.flows.iter().filter(|flow| begins(flow.start) >= self.stop);
        let never = |flow: &Flow| {
            format!(
                "flow `{}` never starts: the run ends at {}; write an earlier `start`, or a later `stop`",
                flow.name, self.stop
            )
        };
        let mut all: Vec<String> = late.take(MOST_NAMED).map(never).collect();
        if let Some(change) = self.changes.iter().find(|change| change.at >= self.stop) {
            all.push(format!(
                "the change at {} never happens: the run ends at {}; write an earlier `at`, or a later `stop`",
                change.at, self.stop
            ));
        }
        all
    }

    /// A `ramp` that has no flow to reserve for.
    fn idle_ramp(&self, id: LinkId, link: &Link) -> Option<String> {
        // Acknowledgements have the class of their flow.
        let flows = self.flows.iter().enumerate();
        let crosses =
            |flow: &Flow| [&flow.path, &flow.back].into_iter().any(|way| self.may_cross(flow, way, id));
        let flows = flows.filter(|(_, flow)| crosses(flow));
        let flows: Vec<usize> = flows.map(|(at, _)| at).collect();
        let is_real_rate = |&at: &usize| {
            let becomes = |setting: &Setting| matches!(setting, Setting::FlowClass(flow, FlowClass::RealRate) if *flow == at);
            self.flows[at].class == FlowClass::RealRate
                || self.changes.iter().any(|change| becomes(&change.to))
        };
        let has_none = !flows.is_empty() && !flows.iter().any(is_real_rate);
        has_none.then(|| {
            format!(
                "the queue `ramp` of link `{}` reserves nothing, since no flow over it has class = \"real_rate\"",
                link.name
            )
        })
    }

    /// What flows have, or are given by a change, that no queue on their paths heeds, one line for each key.
    fn unheeded(&self) -> Vec<String> {
        let keys = [
            ("weight", Heeds::Weight, "divides by weights, as \"drr\" does"),
            ("guarantee", Heeds::Guarantee, "keeps guarantees, as \"csfq\" does"),
            ("class", Heeds::Class, "knows classes, as \"ramp\" does"),
        ];
        let are_alike = self.flows.windows(2).all(|pair| pair[0].weight == pair[1].weight);
        let changed = self.changes.iter().filter_map(|change| match change.to {
            Setting::FlowWeight(flow, _) => Some(flow),
            _ => None,
        });
        let changed: BTreeSet<usize> = changed.collect();
        let has = |kind: Heeds, at: usize, flow: &Flow| match kind {
            Heeds::Weight => flow.weight != Weight::ONE && !are_alike || changed.contains(&at),
            Heeds::Guarantee => flow.guarantee > Rate::ZERO,
            Heeds::Class => flow.class == FlowClass::RealRate,
            // Customers are rows of reports too.
            Heeds::Customer | Heeds::Rtt | Heeds::Hosts | Heeds::Target => false,
        };
        let later = self.changes.iter().filter_map(|change| match &change.to {
            Setting::LinkQueue(id, queue) => Some((*id, queue.as_ref())),
            _ => None,
        });
        let first = (0..).map(LinkId).zip(self.links.iter().map(|link| &link.queue));
        let queues: Vec<_> = first.chain(later).collect();
        let lines = keys.into_iter().filter_map(|(key, kind, does)| {
            let heeding: Vec<LinkId> =
                queues.iter().filter(|(_, queue)| queue.may_heed(kind)).map(|(id, _)| *id).collect();
            // Acknowledgements have the class of their flow.
            let is_heeded = |flow: &Flow| {
                let back = (kind == Heeds::Class).then_some(&flow.back);
                let mut ways = std::iter::once(&flow.path).chain(back);
                ways.any(|way| heeding.iter().any(|id| self.may_cross(flow, way, *id)))
            };
            let mut idle =
                (0..).zip(&self.flows).filter(|(at, flow)| has(kind, *at, flow) && !is_heeded(flow));
            let (_, first) = idle.next()?;
            let others = match idle.count() {
                0 => String::new(),
                others => format!(" and of {others} more"),
            };
            Some(format!(
                "`{key}` of flow `{}`{others} changes what it is due and not what it gets: no queue on its path {does}; write such a \
                 queue, or leave it out",
                first.name
            ))
        });
        lines.collect()
    }

    /// A buffer of the link, at the start or after a change, that has no room for a packet that it is sent.
    fn too_small(&self, id: LinkId, link: &Link) -> Option<String> {
        let later = self.changes.iter().filter_map(|change| match &change.to {
            Setting::LinkQueue(of, queue) if *of == id => Some(queue.as_ref()),
            _ => None,
        });
        std::iter::once(&link.queue).chain(later).find_map(|queue| {
            let leaves = queue.classes().map(|classes| classes.leaves).unwrap_or_default();
            queue.byte_limits(link.rate).into_iter().find_map(|ByteLimit { key, size, class }| {
                let is_for = |flow: &&Flow| {
                    class.is_none_or(|(name, others)| match flow.customer.as_deref() {
                        Some(customer) if leaves.contains(&customer) => customer == name,
                        _ => others,
                    })
                };
                let sent = self.flows.iter().filter(is_for).flat_map(|flow| {
                    let data = self.may_cross(flow, &flow.path, id).then(|| flow.transport.packet());
                    let acks = flow.transport.ack().filter(|_| self.may_cross(flow, &flow.back, id));
                    [data, acks].into_iter().flatten().map(move |packet| (packet, flow))
                });
                let (packet, flow) = sent.max_by_key(|(packet, _)| *packet).filter(|(packet, _)| *packet > size)?;
                let path = class.map_or_else(|| key.to_owned(), |(name, _)| format!("class.{name}.{key}"));
                Some(format!(
                    "the queue of link `{}` holds {size} (`{path}`), less than a full packet of flow `{}`, {packet}: it drops \
                     every one; write {key} = \"{packet}\" or more",
                    link.name, flow.name
                ))
            })
        })
    }

    /// A queue that divides the rate set for its link, the mean of a recorded link that is often faster.
    fn beyond_the_mean(&self, link: &Link) -> Option<String> {
        let trace = link.trace.as_ref().filter(|_| link.queue.divides_set_rate())?;
        let measured = self.stop.since(self.measure_from);
        let window = LEAST_WINDOW.max(Span::from_nanos(measured.as_nanos() / MOST_WINDOWS));
        let until = |window_end| trace.bytes_until(window_end).get() as f64;
        let (mut all, mut beyond) = (0.0, 0.0);
        for at in 0..measured.as_nanos() / window.as_nanos() {
            let from = self.measure_from + window * at;
            let opportunities = until(from + window) - until(from);
            all += opportunities;
            beyond += f64::max(opportunities - link.rate.as_bit() as f64 / 8.0 * window.as_secs_f64(), 0.0);
        }
        (beyond > all * BEYOND).then(|| {
            format!(
                "the queue of link `{}` divides the mean of the recorded rate, {:.3} Mb/s, also while the link is faster, and drops \
                 the rest: up to {:.0} % of the opportunities, which are beyond the mean of their second, may stay unused; write \
                 a queue that asks for no rate, such as \"fq_codel\"",
                link.name,
                link.rate.as_bit() as f64 / 1e6,
                beyond / all * 100.0
            )
        })
    }

    /// A fair scheduler whose policy drops what arrives, and a flow that does not answer to drops.
    fn undone_division(&self, id: LinkId, link: &Link) -> Option<String> {
        let [scheduler, policy] = link.queue.undone_division()?;
        let is_deaf = |at: &usize| matches!(self.flows[*at].transport, Transport::Udp { .. });
        let flow = self.flows_over(id).into_iter().find(is_deaf)?;
        Some(format!(
            "`{scheduler}` of link `{}` divides what `{policy}` lets into the buffer: if flow `{}`, which does not answer to drops, sends \
             more than its share, it has more; write drop = \"lqd\", or another that keeps shares",
            link.name, self.flows[flow].name
        ))
    }

    /// Tags too narrow for the tickets of a full packet where all of a link goes to packets with equally many.
    fn full_tags(&self, id: LinkId, link: &Link) -> Option<String> {
        if link.queue.label_required() != Some(LabelKind::Tickets) {
            return None;
        }
        let flows: Vec<&Flow> = self.flows_over(id).into_iter().map(|at| &self.flows[at]).collect();
        let tickets: f64 = flows.iter().filter_map(|flow| flow.tickets).map(TicketRate::get).sum();
        let carried = |packet: Bytes| tickets * packet.bits() as f64 / link.rate.as_bit() as f64;
        let with_tags = flows.iter().filter_map(|flow| match flow.mark.as_deref() {
            Some(MarkerParams::Tickets(params)) if flow.tickets.is_some() => Some((*flow, &params.writer)),
            _ => None,
        });
        let (flow, writer) = with_tags
            .max_by_key(|(flow, _)| flow.transport.packet())
            .filter(|(flow, writer)| carried(flow.transport.packet()) > writer.format().max())?;
        let packet = flow.transport.packet();
        Some(format!(
            "packets of {packet} of flow `{}` would carry {:.0} tickets at link `{}`, and its tags hold {:.0} (`mark.bits` = {}), so \
             it gets less than its tickets; write mark = {{ bits = {} }}, or issue fewer tickets to all",
            flow.name,
            carried(packet),
            link.name,
            writer.format().max(),
            writer.bits,
            Label::BITS
        ))
    }

    /// Guarantees in a queue `hcsfq` that are within what the customer has anyway, all of which goes to the flow.
    fn idle_guarantees(&self, link: &Link, flows: &[usize]) -> Vec<String> {
        let mut customers: BTreeMap<Option<&str>, Vec<&Flow>> = BTreeMap::new();
        for flow in flows.iter().map(|&at| &self.flows[at]) {
            customers.entry(flow.customer.as_deref()).or_default().push(flow);
        }
        let weights: BTreeMap<&str, f64> =
            self.customers.iter().map(|customer| (customer.name.as_str(), customer.weight.get())).collect();
        let weight = |name: &Option<&str>| name.and_then(|name| weights.get(name)).copied().unwrap_or(1.0);
        let total: f64 = customers.keys().map(weight).sum();
        let idle = customers.iter().filter_map(|(name, members)| {
            let [flow] = members.as_slice() else { return None };
            let part = link.rate.as_bit() as f64 * weight(name) / total;
            let is_one = !flow.source.opens_connections();
            let is_within = flow.guarantee > Rate::ZERO && flow.guarantee.as_bit() as f64 <= part;
            (is_one && is_within).then(|| {
                format!(
                    "the guarantee of flow `{}` does nothing on link `{}`: the flow is the only one of its customer, whose \
                     part is {:.3} Mb/s at least",
                    flow.name,
                    link.name,
                    part / 1e6
                )
            })
        });
        idle.collect()
    }
}

/// A queue of classes that has none.
fn no_classes(link: &Link) -> Option<String> {
    // A table without classes has one without a name.
    let has_none = link.queue.classes().is_some_and(|classes| classes.leaves == [""]);
    has_none.then(|| {
        format!(
            "the queue of link `{}` divides among classes and has none, so it is a FIFO; write for example class = {{ calls = {{ .. }} }}, \
             and customer = \"calls\" for its flows",
            link.name
        )
    })
}

/// Classes that are assured more together than the link has.
fn assured_too_much(link: &Link) -> Option<String> {
    let sum =
        |rates: &mut dyn Iterator<Item = Rate>| rates.fold(0, |sum, rate| sum + u128::from(rate.as_bit()));
    let (assured, key) = match &link.queue.kind {
        DisciplineKind::Htb(params) => {
            let named = params.class.all().iter().filter(|class| !class.name.is_empty());
            let mut roots = named.filter(|class| class.parent.is_none()).map(|class| class.params.rate);
            (sum(&mut roots), "rate")
        }
        DisciplineKind::Hfsc(params) => {
            let mut curves = params.class.all().iter().filter_map(|class| class.params.rt_m2);
            (sum(&mut curves), "rt_m2")
        }
        _ => return None,
    };
    (link.queue.shaper.is_none() && assured > u128::from(link.rate.as_bit())).then(|| {
        format!(
            "the classes of link `{}` are assured {} Mbit/s together, and it has {}; lower `{key}`, or some get less",
            link.name,
            assured as f64 / 1e6,
            link.rate.as_bit() as f64 / 1e6
        )
    })
}

/// Classes whose children have more than they have.
fn squeezed(link: &Link) -> Vec<String> {
    match &link.queue.kind {
        DisciplineKind::Htb(params) => above_parent(link, &params.class, "rate", |class, _| Some(class.rate)),
        DisciplineKind::Hfsc(params) => above_parent(link, &params.class, "ls_m2", |class, is_leaf| {
            class.ls_m2.or(class.rt_m2.filter(|_| is_leaf))
        }),
        _ => Vec::new(),
    }
}

/// Parents whose children have more of `key` together than they have; `rate` says what a class has, by whether it is a leaf.
fn above_parent<T>(
    link: &Link,
    classes: &Classes<T>,
    key: &str,
    rate: impl Fn(&T, bool) -> Option<Rate>,
) -> Vec<String> {
    let rates: Vec<Option<Rate>> =
        classes.all().iter().map(|class| rate(&class.params, class.is_leaf)).collect();
    let mut below = vec![0_u128; rates.len()];
    for (class, rate) in classes.all().iter().zip(&rates) {
        if let (Some(parent), Some(rate)) = (class.parent, rate) {
            below[parent] += u128::from(rate.as_bit());
        }
    }
    let all = classes.all().iter().zip(rates).zip(below);
    let above = all.filter_map(|((class, own), below)| {
        let own = u128::from(own?.as_bit());
        (below > own).then(|| {
            format!(
                "the classes below class `{}` of link `{}` have {} Mbit/s by `{key}` together, and it has {}; lower theirs, or \
                 raise its, or some get less",
                class.name,
                link.name,
                below as f64 / 1e6,
                own as f64 / 1e6
            )
        })
    });
    above.collect()
}
