//! Differences between two files of plans, in the terms of the files.
//!
//! Rates that follow from others are left out: a mast that gets faster gives each of its customers more, and
//! one line reports it.

use std::collections::BTreeMap;

use super::{Direction, Node, Plans, Rates, least_column};

/// A cell that differs, or a node that came or went.
pub(crate) struct PlanChange {
    /// The path, for example `smith.down`, or `smith` for a whole node.
    pub path: String,
    /// The old value; none if it is new.
    pub from: Option<String>,
    /// The new value; none if it is gone.
    pub to: Option<String>,
}

impl Plans {
    /// The differences of `new`, in the order of its nodes, removed ones last. Cost: O(n log n) for n nodes.
    pub(crate) fn differences(&self, new: &Self) -> Vec<PlanChange> {
        let mut before: BTreeMap<&str, &Node> =
            self.nodes.iter().map(|node| (node.name.as_str(), node)).collect();
        let mut changes = Vec::new();
        for node in &new.nodes {
            match before.remove(node.name.as_str()) {
                Some(old) => self.compare(old, (new, node), &mut changes),
                None => {
                    changes.push(PlanChange {
                        path: node.name.clone(),
                        from: None,
                        to: Some(new.line_of(node)),
                    });
                }
            }
        }
        let gone = self.nodes.iter().filter(|node| before.contains_key(node.name.as_str()));
        changes.extend(gone.map(|node| PlanChange {
            path: node.name.clone(),
            from: Some(self.line_of(node)),
            to: None,
        }));
        let order = |plans: &Self| plans.nodes.iter().map(|node| node.name.clone()).collect::<Vec<_>>();
        if changes.is_empty() && order(self) != order(new) {
            // Classes follow this order, so the queue differs.
            let [from, to] = ["one", "another"].map(|order| Some(order.to_owned()));
            changes.push(PlanChange { path: "order of the lines".to_owned(), from, to });
        }
        changes
    }

    /// The assured rate and the ceiling of each node, a line for each.
    pub(crate) fn rates_text(&self) -> String {
        let of = |node: &Node, way: Direction| {
            let Rates { assured, ceiling } = node.rates[way as usize];
            format!("{} {assured} to {ceiling}", way.name())
        };
        let [up, down] = Direction::BOTH;
        self.nodes
            .iter()
            .map(|node| format!("{}: {}, {}\n", node.name, of(node, down), of(node, up)))
            .collect()
    }

    fn compare(&self, old: &Node, (plans, new): (&Self, &Node), changes: &mut Vec<PlanChange>) {
        for ((column, from), (_, to)) in self.cells(old).into_iter().zip(plans.cells(new)) {
            if from != to {
                changes.push(PlanChange { path: format!("{}.{column}", new.name), from, to });
            }
        }
    }

    /// The cells of a node after its name.
    fn cells(&self, node: &Node) -> [(&'static str, Option<String>); 6] {
        let parent = node.parent.map(|parent| self.nodes[parent].name.clone());
        let addresses: Vec<String> = node.prefixes.iter().map(ToString::to_string).collect();
        let ceiling = |way| node.terms[way as usize].ceiling.map(|rate| rate.to_string());
        let least = |way| node.terms[way as usize].least.map(|rate| rate.to_string());
        let [up, down] = Direction::BOTH;
        [
            ("parent", parent),
            ("addresses", (!addresses.is_empty()).then(|| addresses.join(" "))),
            (down.name(), ceiling(down)),
            (up.name(), ceiling(up)),
            (least_column(down), least(down)),
            (least_column(up), least(up)),
        ]
    }

    /// Every node with its cells, a line each: equal for equivalent files.
    pub(crate) fn text(&self) -> String {
        self.nodes.iter().map(|node| format!("{}: {}\n", node.name, self.line_of(node))).collect()
    }

    /// A whole node in one line.
    fn line_of(&self, node: &Node) -> String {
        let cells = self.cells(node).into_iter();
        let cells: Vec<_> = cells.filter_map(|(column, cell)| Some(format!("{column} {}", cell?))).collect();
        cells.join(", ")
    }
}
