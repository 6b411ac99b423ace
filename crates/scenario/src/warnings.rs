//! Warnings about settings of a scenario that probably do not do what the author expects: not wrong, so not
//! refused.

mod flow_keys;
mod labels;
mod queues;

use std::collections::{BTreeMap, BTreeSet};

use apportion_core::delivery_trace::DeliveryTrace;
use apportion_core::limit::Limit;
use apportion_core::packet::FlowClass;
use apportion_core::system::classes::ByteLimit;
use apportion_core::system::{Catalog, DisciplineKind, DisciplineParams};
use apportion_core::units::{Bytes, Rate, Span, Weight};

use crate::entitlement::mean_demand;
use crate::marking::default_exchange;
use crate::model::{Flow, Link, LinkId, Scenario, Setting, Source, Start, Transport};
pub(crate) use flow_keys::{FlowKey, Given, unheeded};
use labels::named;
pub(crate) use labels::{carried, full_tags};
pub(crate) use queues::{MOST_NAMED, Standing, and_more};

/// Least measured time. Chosen: two or three cycles of a TCP window on common paths.
const LEAST_TIME: Span = Span::from_secs(10);
/// Least number of measured round trips. Chosen: some cycles of a TCP window.
const LEAST_ROUNDS: u64 = 100;
/// Least window in which the opportunities of a recorded link are compared with its mean. Chosen: above the
/// variation that a default buffer smooths.
const LEAST_WINDOW: Span = Span::from_secs(1);
/// Maximum of such windows. Chosen: some milliseconds of work.
const MOST_WINDOWS: u64 = 1_000;
/// Packets that the share of a flow should have room for. Chosen: one in transmission, and one behind it.
const ROOM: f64 = 2.0;
/// Ratio of packet size over weight between flows that is worth a warning. Chosen: random order evens out
/// smaller ones.
const MOST_UNLIKE: f64 = 2.0;
/// Share of the opportunities beyond the mean that is worth a warning. Chosen: the tolerance of shares.
const BEYOND: f64 = 0.05;

impl Scenario {
    /// Settings that have no effect, or too short a measured part, one line each; empty if there are none.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut all = self.notes.clone();
        all.extend(self.short_measurement());
        all.extend(self.after_the_end());
        all.extend(self.unheeded());
        all.extend(self.idle_tickets());
        all.extend(self.idle_customers());
        all.extend(self.idle_agreements());
        all.extend(self.weights_alone());
        let packets =
            self.flows.iter().flat_map(|flow| [Some(flow.transport.packet()), flow.transport.ack()]);
        let largest = packets.flatten().max().unwrap_or(Bytes::ZERO);
        let exchange = default_exchange(&Catalog::default());
        for (id, link) in (0..).map(LinkId).zip(&self.links) {
            if matches!(&link.queue.kind, DisciplineKind::Ramp(ramp) if !ramp.recognise) {
                all.extend(self.idle_ramp(id, link));
            }
            all.extend(self.too_small(id, link, largest));
            all.extend(self.beyond_the_mean(link));
            all.extend(self.full_tags(id, link));
            all.extend(self.idle_exchange(id, link, &exchange));
            all.extend(self.of_queues(id, link));
            // With a shaper or a change the share of a customer does not follow from the rate.
            if link.queue.divides_among_customers() && link.queue.shaper.is_none() && self.changes.is_empty()
            {
                all.extend(self.idle_guarantees(link, &self.flows_over(id)));
            }
        }
        all
    }

    /// Warnings about its queues, at the start or after a change, by themselves and with the flows over them.
    fn of_queues(&self, id: LinkId, link: &Link) -> BTreeSet<String> {
        let rate = self.largest_rate(id, link);
        let mut all = BTreeSet::new();
        for queue in self.queues_of(id, link) {
            let standing = Standing { place: format!("link `{}`", link.name), queue, rate };
            all.extend(self.undone_division(id, &standing));
            all.extend(self.equal_in_front(id, &standing));
            all.extend(self.thin_part(id, link, &standing));
            all.extend(self.full_labels(id, link, &standing));
            all.extend(standing.of_classes());
            all.extend(standing.idle_rates());
        }
        all
    }

    /// The queues that a link has, one after another.
    fn queues_of<'a>(&'a self, id: LinkId, link: &'a Link) -> impl Iterator<Item = &'a DisciplineParams> {
        let later = self.changes.iter().filter_map(move |change| match &change.to {
            Setting::LinkQueue(of, queue) if *of == id => Some(queue.as_ref()),
            _ => None,
        });
        std::iter::once(&link.queue).chain(later)
    }

    /// The largest rate of a link; of a recorded one, over a [window](Self::opportunities).
    fn largest_rate(&self, id: LinkId, link: &Link) -> Rate {
        let recorded = link.trace.as_ref().map(|trace| {
            let (window, bytes) = self.opportunities(trace);
            Rate::from_bit((bytes.fold(0.0, f64::max) * 8.0 / window.as_secs_f64()) as u64)
        });
        let later = self.changes.iter().filter_map(|change| match change.to {
            Setting::LinkRate(of, rate) if of == id => Some(rate),
            _ => None,
        });
        later.chain(recorded).fold(link.rate, Rate::max)
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
        // Other flows do not wait for answers.
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

    /// Flows and changes after the end of the run.
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

    /// A `ramp` without a flow to reserve for.
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

    /// Whether `of` holds for any queue of a link, at the start or after a change; computed once for each
    /// link.
    fn memoized(&self, of: impl Fn(&DisciplineParams) -> bool) -> impl FnMut(LinkId) -> bool {
        let mut known: BTreeMap<LinkId, bool> = BTreeMap::new();
        move |id| {
            let mut queues = self.queues_of(id, &self.links[id.index()]);
            *known.entry(id).or_insert_with(|| queues.any(&of))
        }
    }

    /// Whether packets of a flow, including its acknowledgements, may cross a link for which `holds` is true.
    fn meets(&self, flow: &Flow, holds: &mut impl FnMut(LinkId) -> bool) -> bool {
        let mut hops = flow.path.iter().chain(flow.back.iter());
        hops.any(|hop| self.choices(flow, hop).iter().any(|id| holds(*id)))
    }

    /// A buffer of the link, at the start or after a change, without room for a packet that it gets;
    /// `largest` is the largest packet of all flows.
    fn too_small(&self, id: LinkId, link: &Link, largest: Bytes) -> Option<String> {
        self.queues_of(id, link).find_map(|queue| {
            let leaves = queue.classes().map(|classes| classes.leaves).unwrap_or_default();
            let mut limits = queue.byte_limits(link.rate).into_iter().filter(|limit| limit.size < largest);
            limits.find_map(|ByteLimit { key, size, class }| {
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

    /// A queue that divides the set rate of its link, if that is the mean of a recorded link that is often
    /// faster.
    fn beyond_the_mean(&self, link: &Link) -> Option<String> {
        let trace = link.trace.as_ref().filter(|_| link.queue.divides_set_rate())?;
        let (window, bytes) = self.opportunities(trace);
        let (mut all, mut beyond) = (0.0, 0.0);
        for opportunities in bytes {
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

    /// The bytes that a recorded link can deliver in each window of the measured part.
    fn opportunities(&self, trace: &DeliveryTrace) -> (Span, impl Iterator<Item = f64>) {
        let measured = self.stop.since(self.measure_from);
        let window = LEAST_WINDOW.max(Span::from_nanos(measured.as_nanos() / MOST_WINDOWS));
        let until = |window_end| trace.bytes_until(window_end).get() as f64;
        let windows = (0..measured.as_nanos() / window.as_nanos()).map(move |at| {
            let from = self.measure_from + window * at;
            until(from + window) - until(from)
        });
        (window, windows)
    }

    /// A fair scheduler with a policy that drops arriving packets, and an unresponsive flow that may send
    /// more than its share.
    fn undone_division(&self, id: LinkId, standing: &Standing<'_>) -> Option<String> {
        standing.queue.undone_division()?;
        let sum: f64 = self.flows_over(id).into_iter().map(|at| self.flows[at].weight.get()).sum();
        let share = |flow: &Flow| standing.rate.as_bit() as f64 * flow.weight.get() / sum;
        let flow =
            self.deaf_over(id).find(|flow| mean_demand(flow).is_none_or(|demand| demand > share(flow)))?;
        standing.undone_division(&format!("{}, which does not answer to drops,", named(flow)))
    }

    /// Equal shares in front of weights, and flows with different weights, one of which is unresponsive.
    fn equal_in_front(&self, id: LinkId, standing: &Standing<'_>) -> Option<String> {
        standing.queue.equal_in_front()?;
        let weights = || self.flows_over(id).into_iter().map(|at| self.flows[at].weight);
        let first = weights().next()?;
        let flow = self.deaf_over(id).find(|flow| flow.weight != Weight::ONE)?;
        weights().any(|weight| weight != first).then(|| standing.equal_in_front(&named(flow)))?
    }

    /// A buffer divided by weights in which the share of a flow has no room for one of its packets, which is
    /// dropped whenever the buffer is full, unless all weights are equal.
    fn thin_part(&self, id: LinkId, link: &Link, standing: &Standing<'_>) -> Option<String> {
        let limit =
            standing.queue.limit_at(link.rate).filter(|_| standing.queue.divides_buffer_by_weights())?;
        // In the unit of the limit.
        let packet = |flow: &Flow| match limit {
            Limit::Packets(_) => 1.0,
            Limit::Bytes(_) => flow.transport.packet().get() as f64,
        };
        let held = match limit {
            Limit::Packets(packets) => packets.get() as f64,
            Limit::Bytes(bytes) => bytes.get() as f64,
        };
        // Packet size over weight: the flow with the largest value loses the packet.
        let height = |flow: &Flow| packet(flow) / flow.weight.get();
        let least = self.flows.iter().map(height).fold(f64::INFINITY, f64::min);
        if self.flows.iter().all(|flow| height(flow) < MOST_UNLIKE * least) {
            return None;
        }
        let flows = || self.flows_over(id).into_iter().map(|at| &self.flows[at]);
        let sum: f64 = flows().map(|flow| flow.weight.get()).sum();
        let flow = flows().max_by(|a, b| height(a).total_cmp(&height(b)))?;
        let least = flows().map(height).fold(f64::INFINITY, f64::min);
        if height(flow) < MOST_UNLIKE * least {
            return None;
        }
        let thin = held / sum / height(flow);
        (thin < 1.0).then(|| {
            format!(
                "the buffer of {} has room for {thin:.2} packets of {} by its weight: when it is full, that flow may lose the only one it has; \
                 write limit = \"{}\" or more",
                standing.place,
                named(flow),
                match limit {
                    Limit::Packets(_) => format!("{:.0}p", (held * ROOM / thin).ceil()),
                    Limit::Bytes(_) => format!("{:.0}kB", (held * ROOM / thin / 1e3).ceil()),
                }
            )
        })
    }

    /// The unresponsive flows over a link.
    fn deaf_over(&self, id: LinkId) -> impl Iterator<Item = &Flow> {
        let flows = self.flows_over(id).into_iter().map(|at| &self.flows[at]);
        flows.filter(|flow| {
            matches!(flow.transport, Transport::Udp { .. }) && !matches!(flow.source, Source::Call(_))
        })
    }

    /// Guarantees in a queue `hcsfq` within the share of a customer that has only that flow.
    fn idle_guarantees(&self, link: &Link, flows: &[usize]) -> Vec<String> {
        let idle = self.parts_of_customers(flows).into_iter().filter_map(|(members, part)| {
            let [flow] = members.as_slice() else { return None };
            let part = link.rate.as_bit() as f64 * part;
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

    /// The flows of each customer among these, and its share of a link that `hcsfq` divides.
    fn parts_of_customers(&self, flows: &[usize]) -> Vec<(Vec<&Flow>, f64)> {
        let mut customers: BTreeMap<Option<&str>, Vec<&Flow>> = BTreeMap::new();
        for flow in flows.iter().map(|&at| &self.flows[at]) {
            customers.entry(flow.customer.as_deref()).or_default().push(flow);
        }
        let weights: BTreeMap<&str, f64> =
            self.customers.iter().map(|customer| (customer.name.as_str(), customer.weight.get())).collect();
        let weight = |name: &Option<&str>| name.and_then(|name| weights.get(name)).copied().unwrap_or(1.0);
        let total: f64 = customers.keys().map(weight).sum();
        customers.into_iter().map(|(name, members)| (members, weight(&name) / total)).collect()
    }
}
