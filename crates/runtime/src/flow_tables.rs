//! The parameters of flows that disciplines need, by id; and disciplines built with them.

use std::collections::BTreeMap;

use apportion_core::FlowSetting;
use apportion_core::fairness::Right;
use apportion_core::mark::currency_exchange::CurrencyExchange;
use apportion_core::packet::{CustomerId, Customers, HostPair};
use apportion_core::packet::{FillTarget, FlowClass, FlowId, LabelKind, Packet};
use apportion_core::random::Stream;
use apportion_core::schedule::rcs::Rights;
use apportion_core::system::{DisciplineParams, LinkContext, LinkQueue};
use apportion_core::units::{Bytes, Rate, Span, Weight};

use apportion_scenario::agreements::LinkRights;
use apportion_scenario::model::{Flow, Link, LinkId, Scenario, Setting};

use crate::connections::Numbers;

/// The parameters of flows, by id.
#[derive(Clone, Debug)]
pub struct FlowTables {
    /// Weights; empty if all are one, so that links need no table.
    weights: Vec<Weight>,
    /// For each link, the first id of each flow that may cross it, either way; empty if all weights are one throughout.
    crossing: Vec<Vec<u32>>,
    /// Round-trip times without queueing; zero where unknown.
    rtts: Vec<Span>,
    /// Classes; empty if all flows are greedy.
    classes: Vec<FlowClass>,
    /// Targets; empty if no flow has its own.
    targets: Vec<Option<FillTarget>>,
    /// Guarantees; empty if no flow has one.
    guarantees: Vec<Rate>,
    /// Customers; empty if no flow names one.
    customers: Vec<CustomerId>,
    /// Weights by number of the customer.
    customer_weights: Vec<Weight>,
    customer_names: Vec<String>,
    /// The hosts at the ends of flows, for each link that isolates hosts at some time, by its name.
    hosts: BTreeMap<String, Vec<HostPair>>,
    /// The rights of flows by agreements, for each link that divides by them at some time.
    rights: BTreeMap<LinkId, (Vec<Right>, Vec<Option<u32>>)>,
    seed: u64,
}

impl FlowTables {
    /// The parameters at the start of a scenario.
    #[must_use]
    pub fn new(scenario: &Scenario, numbers: &Numbers, seed: u64) -> Self {
        let unless_all =
            |all: Vec<FlowClass>, usual| if all.iter().all(|of| *of == usual) { Vec::new() } else { all };
        let weights = numbers.by_id(scenario, |flow| flow.weight);
        let guarantees = numbers.by_id(scenario, |flow| flow.guarantee);
        let targets = numbers.by_id(scenario, |flow| flow.target);
        let weights = if weights.iter().all(|&weight| weight == Weight::ONE) { Vec::new() } else { weights };
        let changes_weight = scenario.changes.iter().any(|of| matches!(of.to, Setting::FlowWeight(..)));
        Self {
            crossing: if weights.is_empty() && !changes_weight {
                Vec::new()
            } else {
                crossing(scenario, numbers)
            },
            weights,
            rtts: numbers.by_id(scenario, |flow| scenario.base_rtt(flow).unwrap_or_default()),
            classes: unless_all(numbers.by_id(scenario, |flow| flow.class), FlowClass::Greedy),
            targets: if targets.iter().all(Option::is_none) { Vec::new() } else { targets },
            guarantees: if guarantees.iter().all(|&rate| rate == Rate::ZERO) {
                Vec::new()
            } else {
                guarantees
            },
            customers: if scenario.customers.is_empty() {
                Vec::new()
            } else {
                numbers.by_id(scenario, |flow| scenario.customer_of(flow))
            },
            customer_weights: scenario.customer_weights(),
            customer_names: scenario.customer_names(),
            hosts: hosts(scenario, numbers),
            rights: rights(scenario, numbers),
            seed,
        }
    }

    /// The discipline of a link of `scenario` at `rate`, empty, with these parameters.
    ///
    /// # Panics
    /// If the scenario has no such link.
    #[must_use]
    pub fn discipline<P: Packet>(
        &self,
        scenario: &Scenario,
        link: LinkId,
        params: &DisciplineParams,
        rate: Rate,
    ) -> LinkQueue<P> {
        let name = format!("link.{}.queue", scenario.links[link.index()].name);
        params.build(&LinkContext {
            link_rate: rate,
            weights: &self.weights,
            smallest_weight: self.smallest_weight(link),
            rtts: &self.rtts,
            guarantees: &self.guarantees,
            classes: &self.classes,
            targets: &self.targets,
            customers: Customers {
                of_flows: &self.customers,
                weights: &self.customer_weights,
                names: &self.customer_names,
            },
            rights: self
                .rights
                .get(&link)
                .map_or_else(Rights::default, |(vertices, of_flows)| Rights { vertices, of_flows }),
            hosts: self.hosts.get(&scenario.links[link.index()].name).map_or(&[], Vec::as_slice),
            layer2: Bytes::ZERO,
            seed: self.seed,
            name: &name,
        })
    }

    /// The smallest weight of the flows that may cross this link; none if none do or all weights are one.
    fn smallest_weight(&self, link: LinkId) -> Option<Weight> {
        let ids = self.crossing.get(link.index())?;
        ids.iter().filter_map(|&id| self.weights.get(id as usize).copied()).reduce(Weight::min)
    }

    /// Applies a change of a scenario to the flow with this id, for disciplines that are built later. Returns
    /// the setting for those that exist; `None` if disciplines do not know the parameter.
    pub fn change(&mut self, id: FlowId, to: &Setting) -> Option<FlowSetting> {
        let (count, index) = (self.rtts.len(), id.index());
        let setting = match *to {
            Setting::FlowWeight(_, weight) => {
                self.weights.resize(count, Weight::ONE);
                self.weights[index] = weight;
                FlowSetting::Weight(weight)
            }
            Setting::FlowGuarantee(_, guarantee) => {
                self.guarantees.resize(count, Rate::ZERO);
                self.guarantees[index] = guarantee;
                FlowSetting::Guarantee(guarantee, self.rtts[index])
            }
            Setting::FlowClass(_, class) => {
                self.classes.resize(count, FlowClass::Greedy);
                self.classes[index] = class;
                FlowSetting::Class(class)
            }
            _ => return None,
        };
        Some(setting)
    }
}

/// The first id of each flow, for each link that its data or acknowledgements may cross.
fn crossing(scenario: &Scenario, numbers: &Numbers) -> Vec<Vec<u32>> {
    let mut crossing = vec![Vec::new(); scenario.links.len()];
    for (index, flow) in scenario.flows.iter().enumerate() {
        let id = numbers.ids(index).start;
        for link in [&flow.path, &flow.back].into_iter().flat_map(|path| scenario.crossed(flow, path)) {
            crossing[link.index()].push(id);
        }
    }
    crossing
}

/// The nodes at the ends of each flow, for each link that isolates hosts at some time. Over a link of its return path,
/// packets of a flow come from its sink.
fn hosts(scenario: &Scenario, numbers: &Numbers) -> BTreeMap<String, Vec<HostPair>> {
    let isolates = |(id, link): &(LinkId, &Link)| {
        let change = |to: &Setting| matches!(to, Setting::LinkQueue(at, queue) if at == id && queue.isolate().is_some());
        link.queue.isolate().is_some() || scenario.changes.iter().any(|of| change(&of.to))
    };
    let links = (0..).map(LinkId).zip(&scenario.links);
    let pair = |flow: &Flow, link: LinkId| {
        let [first, last] =
            [flow.path.first(), flow.path.last()].map(|id| id.map(|id| &scenario.links[id.index()]));
        let (source, sink) = (first.map_or(0, |link| link.from.0), last.map_or(0, |link| link.to.0));
        let crosses = |way| scenario.may_cross(flow, way, link);
        let returns = crosses(&flow.back) && !crosses(&flow.path);
        let (source, destination) = if returns { (sink, source) } else { (source, sink) };
        HostPair { source, destination }
    };
    let table =
        |(id, link): (LinkId, &Link)| (link.name.clone(), numbers.by_id(scenario, |flow| pair(flow, id)));
    links.filter(isolates).map(table).collect()
}

/// The vertices of each link that divides by agreements, and the vertex of each flow.
fn rights(scenario: &Scenario, numbers: &Numbers) -> BTreeMap<LinkId, (Vec<Right>, Vec<Option<u32>>)> {
    let by_id = |LinkRights { vertices, of_flows }: LinkRights| {
        let mut vertex_of: Vec<Option<u32>> = Vec::new();
        for (flow, vertex) in of_flows {
            let ids = numbers.ids(flow);
            let (start, end) = (ids.start as usize, ids.end as usize);
            vertex_of.resize(vertex_of.len().max(end), None);
            vertex_of[start..end].fill(vertex);
        }
        (vertices, vertex_of)
    };
    scenario.rights().into_iter().map(|(link, rights)| (link, by_id(rights))).collect()
}

/// The exchanges of tickets on a link: one for data if the link is issued tickets, directly or by its
/// acknowledgements; one for acknowledgements if its other direction is.
#[must_use]
pub fn exchanges(scenario: &Scenario, link: &Link, seed: u64) -> Vec<(LabelKind, CurrencyExchange)> {
    let stream = |purpose: &str| Stream::new(seed, &format!("link.{}.{purpose}", link.name));
    let mut exchanges = Vec::new();
    if link.tickets.is_some() || link.ack_tickets.is_some() {
        let of_data =
            CurrencyExchange::new(&link.exchange, LabelKind::Tickets, link.tickets, stream("exchange"));
        exchanges.push((LabelKind::Tickets, of_data));
    }
    let other_way = link.other_way.map(|id| &scenario.links[id.index()]);
    if let Some(tickets) = other_way.and_then(|link| link.ack_tickets) {
        let of_acks = CurrencyExchange::new(
            &link.exchange,
            LabelKind::AckTickets,
            Some(tickets),
            stream("ack_exchange"),
        );
        exchanges.push((LabelKind::AckTickets, of_acks));
    }
    exchanges
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::connections::connections;

    #[test]
    fn over_its_return_path_a_flow_comes_from_its_sink() {
        let text = r#"
            seed = 1
            stop = "1s"
            [link.x]
            from = "a"
            to = "b"
            rate = "1Mbit"
            delay = "1ms"
            queue = { kind = "drr", isolate = "both" }
            back = { queue = { kind = "drr", isolate = "source" } }
            [link.y]
            from = "b"
            to = "c"
            rate = "1Mbit"
            delay = "1ms"
            [flow.f]
            from = "a"
            to = "c"
            tcp = "rfc"
            [flow.g]
            from = "c"
            to = "b"
            tcp = "rfc"
            [[change]]
            at = "500ms"
            set = "link.y.queue"
            to = { kind = "drr", isolate = "source" }
        "#;
        let suite = apportion_scenario::load(text, Path::new("x.toml"), &[], &|path| std::fs::read(path));
        let scenario = &suite.unwrap_or_else(|problems| panic!("{problems:?}")).points[0].scenario;
        let tables = FlowTables::new(scenario, &connections(scenario, 1).1, 1);
        let pairs = |link: &str| {
            let of = |hosts: &HostPair| (hosts.source, hosts.destination);
            tables.hosts[link].iter().map(of).collect::<Vec<_>>()
        };
        // Nodes a, b, c. Flow g goes from c to b by y.back, and its acknowledgements by y.
        assert_eq!(tables.hosts.keys().collect::<Vec<_>>(), ["x", "x.back", "y"]);
        assert_eq!((pairs("x")[0], pairs("x.back")[0]), ((0, 2), (2, 0)));
        assert_eq!(pairs("y"), [(0, 2), (1, 2)]);
    }

    #[test]
    fn the_smallest_weight_of_a_link_is_of_the_flows_that_may_cross_it() {
        let text = r#"
            seed = 1
            stop = "1s"
            [link.x]
            from = "a"
            to = "b"
            rate = "10Mbit"
            delay = "1ms"
            [link.y]
            from = "c"
            to = "d"
            rate = "10Mbit"
            delay = "1ms"
            [flow.f]
            from = "a"
            to = "b"
            weight = 3
            tcp = "rfc"
            [flow.g]
            count = 2
            from = "c"
            to = "d"
            weight = "0.1 * i"
            [[change]]
            at = "500ms"
            set = "flow.f.weight"
            to = 2
        "#;
        let suite = apportion_scenario::load(text, Path::new("x.toml"), &[], &|path| std::fs::read(path));
        let scenario = &suite.unwrap_or_else(|problems| panic!("{problems:?}")).points[0].scenario;
        let mut tables = FlowTables::new(scenario, &connections(scenario, 1).1, 1);
        let of = |tables: &FlowTables, name: &str| {
            let link = scenario.links.iter().position(|link| link.name == name).unwrap();
            tables.smallest_weight(LinkId(link as u32)).map(Weight::get)
        };
        // Acknowledgements of f cross x.back; the datagrams of g have none.
        let all = |tables: &FlowTables| ["x", "x.back", "y"].map(|link| of(tables, link));
        assert_eq!(all(&tables), [Some(3.0), Some(3.0), Some(0.1)]);
        let _ = tables.change(FlowId(0), &scenario.changes[0].to);
        assert_eq!(all(&tables), [Some(2.0), Some(2.0), Some(0.1)]);
    }
}
