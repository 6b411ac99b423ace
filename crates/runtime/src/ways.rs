//! The links that the connections of a run cross.
//!
//! Without [groups of links](apportion_scenario::model::LinkGroup) on its path and [paths of equal
//! cost](apportion_scenario::model::Path::equal), a flow has one way, which all its connections take.
//! Otherwise each connection chooses, and the flow has all the different ways.

use std::collections::BTreeMap;
use std::sync::Arc;

use apportion_scenario::model::{LinkId, Scenario};

use crate::connections::Numbers;

/// The links that some connections of a flow cross.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Way {
    /// The index of the flow in the scenario.
    pub flow: u32,
    /// The links that its packets pass, in order.
    pub path: Arc<[LinkId]>,
    /// The links that acknowledgements pass, in order.
    pub back: Arc<[LinkId]>,
}

/// The ways of all connections.
#[derive(Clone, Debug, Default)]
pub struct Ways {
    /// The different ways, in the order of flows; each flow has at least one.
    pub all: Vec<Way>,
    /// The way of each connection, in the scenario's order.
    pub of_connection: Vec<u32>,
}

impl Ways {
    /// The ways of `scenario` with these connections, in a run with `seed`.
    #[must_use]
    pub fn new(scenario: &Scenario, numbers: &Numbers, seed: u64) -> Self {
        let mut ways = Self::default();
        for (number, flow) in (0..).zip(&scenario.flows) {
            let first = ways.all.len() as u32;
            ways.all.push(Way {
                flow: number,
                path: Arc::clone(&flow.path.first),
                back: Arc::clone(&flow.back.first),
            });
            let members = numbers.members(number as usize);
            let chooses = scenario.chooses(flow, &flow.path) || scenario.chooses(flow, &flow.back);
            if members.is_empty() || !chooses {
                ways.of_connection.extend(members.map(|_| first));
                continue;
            }
            ways.all.truncate(first as usize);
            let mut known = BTreeMap::new();
            for member in 0..members.len() as u32 {
                let [path, back] =
                    [&flow.path, &flow.back].map(|path| scenario.way(flow, path, member, seed));
                let way = *known.entry((Arc::clone(&path), Arc::clone(&back))).or_insert_with(|| {
                    ways.all.push(Way { flow: number, path, back });
                    ways.all.len() as u32 - 1
                });
                ways.of_connection.push(way);
            }
        }
        ways
    }
}
