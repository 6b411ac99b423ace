//! Settings of a file of plans that are probably not intended.

use apportion_core::units::Rate;

use super::{Direction, OTHERS, Plans};

/// A node that is assured less by its minimum than without one.
pub(crate) struct Lowered<'a> {
    pub name: &'a str,
    /// The minimum.
    pub least: Rate,
    /// The rate in proportion to ceilings, from the rest that minimums leave.
    pub without: Rate,
}

impl Plans {
    /// The sum of the nodes without a parent.
    pub(crate) fn total(&self, way: Direction) -> Rate {
        let top = self.nodes.iter().filter(|node| node.parent.is_none());
        let sum = top.fold(0_u64, |sum, node| sum.saturating_add(node.rates[way as usize].ceiling.as_bit()));
        Rate::from_bit(sum)
    }

    /// The customers without addresses.
    pub(crate) fn without_addresses(&self) -> impl Iterator<Item = &str> {
        let lacking = self.customers().filter(|(name, prefixes)| *name != OTHERS && prefixes.is_empty());
        lacking.map(|(name, _)| name)
    }

    /// The nodes whose minimum lowers their assured rate. Cost: O(nodes).
    pub(crate) fn lowered(&self, way: Direction) -> Vec<Lowered<'_>> {
        let way = way as usize;
        let bits = |rate: Rate| u128::from(rate.as_bit());
        // For each parent: the rest that minimums leave, and the ceilings of children without one.
        let mut left: Vec<u128> = self.nodes.iter().map(|node| bits(node.rates[way].assured)).collect();
        let mut wanted = vec![0_u128; self.nodes.len()];
        for node in &self.nodes {
            let Some(parent) = node.parent else { continue };
            match node.terms[way].least {
                Some(least) => left[parent] = left[parent].saturating_sub(bits(least)),
                None => wanted[parent] += bits(node.rates[way].ceiling),
            }
        }
        let lowered = self.nodes.iter().filter_map(|node| {
            let (parent, least) = (node.parent?, node.terms[way].least?);
            let ceiling = bits(node.rates[way].ceiling);
            let (left, wanted) = (left[parent] + bits(least), wanted[parent] + ceiling);
            let part = if wanted <= left { ceiling } else { ceiling * left / wanted };
            // At most the ceiling, so it fits.
            let without = Rate::from_bit(part as u64);
            (least < without).then_some(Lowered { name: &node.name, least, without })
        });
        lowered.collect()
    }
}
