//! Weighted flows by HTB: one leaf per flow, with an assured rate and a quantum in proportion to its weight.
//!
//! Source: tc-htb(8). A leaf with weight w, out of a sum W of weights, has `rate` = C w/W and may borrow up
//! to C; spare capacity is shared in turns of `quantum` bytes, w times the quantum of the minimum weight.
//! Each leaf holds its own FIFO, so that a flow cannot cause drops of another flow's packets.
//! `skb->priority`, which the program `flow_class` sets, selects the leaf of a packet.
//!
//! Cost: one class and one queue of the kernel per flow; two system calls each during setup.

use apportion_core::limit::Limit;
use apportion_core::units::{Bytes, Packets, Rate, Weight};
use apportion_linux::netlink::htb::HtbClass;
use apportion_linux::netlink::{Netlink, NetlinkError};

use crate::htb::{HtbTree, TURNS, WHOLE, burst, handle, whole};

/// The leaf of flows without a leaf of their own.
pub const OTHERS: u16 = u16::MAX - 1;
/// The maximum number of other leaves: numbers below these two.
pub const MOST: usize = OTHERS as usize - 1;
/// The minimum size of a FIFO in bytes: two Ethernet frames.
const LEAST: Bytes = Bytes::new(2 * 1_514);
/// The reason why a tree cannot be created or installed.
#[derive(Debug, thiserror::Error)]
pub enum WeightsError {
    /// Too many flows.
    #[error(
        "{0} flows have no leaves of HTB, which are at most {MOST}; take fewer, or whole customers as flows"
    )]
    TooMany(usize),
    /// A rate that cannot be divided among the flows.
    #[error(
        "a link of {rate} cannot be divided among {flows} flows, each of which needs 8 bit/s; take fewer or a faster link"
    )]
    TooSlow {
        /// The rate of the link.
        rate: Rate,
        /// Number of flows.
        flows: usize,
    },
    /// The kernel refuses.
    #[error(transparent)]
    Kernel(#[from] NetlinkError),
}

/// A link divided by weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Tree {
    flows: usize,
    /// The class of the link, the classes of the flows in order, and the class of the others.
    tree: HtbTree,
}

impl Tree {
    /// Creates a tree for a link of `rate` and flows of these weights; flow i has the class i + 1. Flows
    /// without a leaf share one of the minimum weight.
    ///
    /// # Errors
    /// More than [`MOST`] flows, or a rate that leaves one of them nothing.
    pub fn new(rate: Rate, weights: &[Weight]) -> Result<Self, WeightsError> {
        if weights.len() > MOST {
            return Err(WeightsError::TooMany(weights.len()));
        }
        let least = weights.iter().map(|weight| weight.get()).reduce(f64::min).unwrap_or(1.0);
        let all: f64 = weights.iter().map(|weight| weight.get()).sum::<f64>() + least;
        let (shortest, longest) = TURNS;
        let leaf = |minor: u16, weight: f64| {
            let own = Rate::from_bit((rate.as_bit() as f64 * weight / all) as u64);
            let quantum = Bytes::new((shortest * weight / least).min(longest) as u64);
            let burst = burst(own);
            HtbClass { minor, parent: WHOLE, rate: own, ceil: rate, burst, cburst: burst, quantum, prio: 0 }
        };
        let numbered = (1..OTHERS).zip(weights).map(|(minor, weight)| leaf(minor, weight.get()));
        let leaves: Vec<_> = numbered.chain([leaf(OTHERS, least)]).collect();
        if leaves.iter().any(|leaf| leaf.rate < Rate::from_bit(8)) {
            return Err(WeightsError::TooSlow { rate, flows: weights.len() });
        }
        let classes = std::iter::once(whole(rate)).chain(leaves).collect();
        Ok(Self { flows: weights.len(), tree: HtbTree { classes, queues: Vec::new(), default: OTHERS } })
    }

    /// Sets a FIFO in each leaf that holds its flow's part of `limit`, and at least two packets, so that the
    /// maximum delay is the same in all leaves. Default: the length of the device's queue.
    #[must_use]
    pub fn limited(mut self, limit: Limit) -> Self {
        let leaves = || self.tree.classes.iter().filter(|class| class.minor != WHOLE);
        let flows = leaves().filter(|class| class.minor != OTHERS);
        let all = flows.map(|class| class.rate.as_bit()).sum::<u64>().max(1) as f64;
        let part = |class: &HtbClass| {
            let of = |limit: u64| (limit as f64 * (class.rate.as_bit() as f64 / all).min(1.0)) as u64;
            let own = match limit {
                Limit::Bytes(bytes) => Limit::Bytes(Bytes::new(of(bytes.get())).max(LEAST)),
                Limit::Packets(packets) => Limit::Packets(Packets::new(of(packets.get()).max(2))),
            };
            (class.minor, own)
        };
        let queues = leaves().map(part).collect();
        self.tree.queues = queues;
        self
    }

    /// Changes the queue of a device from the tree `before`, which has the same flows, to this one; the
    /// backlog stays.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn change(&self, before: &Self, netlink: &mut Netlink, device: u32) -> Result<(), WeightsError> {
        Ok(self.tree.change(&before.tree, netlink, device)?)
    }

    /// Returns the class of flow `index`, as a value of `skb->priority`.
    #[must_use]
    pub fn class(&self, index: usize) -> Option<u32> {
        let minor = u16::try_from(index + 1).ok().filter(|_| index < self.flows)?;
        Some(handle(minor))
    }

    /// Installs the tree as the queue of a device. On an error, the kernel's default queue is restored.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn install(&self, netlink: &mut Netlink, device: u32) -> Result<(), WeightsError> {
        Ok(self.tree.install(netlink, device)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weights(of: impl IntoIterator<Item = f64>) -> Vec<Weight> {
        of.into_iter().map(|weight| Weight::new(weight).unwrap()).collect()
    }

    #[test]
    fn leaves_have_rates_and_turns_in_proportion() {
        let tree = Tree::new(Rate::from_mbit(8), &weights([1.0, 2.0, 4.0])).unwrap();
        // 1 + 2 + 4, and 1 for the others.
        let leaves = &tree.tree.classes[1..];
        let of = |index: usize| (leaves[index].rate.as_bit(), leaves[index].quantum.get());
        assert_eq!(
            [of(0), of(1), of(2), of(3)],
            [(1_000_000, 1_514), (2_000_000, 3_028), (4_000_000, 6_056), (1_000_000, 1_514)]
        );
        assert_eq!(
            [tree.class(0), tree.class(2), tree.class(3)],
            [Some(0x4170_0001), Some(0x4170_0003), None]
        );
    }

    #[test]
    fn leaves_hold_their_parts_of_a_limit() {
        let tree = |limit| Tree::new(Rate::from_mbit(8), &weights([1.0, 3.0])).unwrap().limited(limit);
        let packets = |of| Limit::Packets(Packets::new(of));
        assert_eq!(
            tree(packets(100)).tree.queues,
            [(1, packets(25)), (2, packets(75)), (OTHERS, packets(25))]
        );
        let bytes = |of| Limit::Bytes(Bytes::new(of));
        assert_eq!(
            tree(bytes(8_000)).tree.queues,
            [(1, bytes(3_028)), (2, bytes(6_000)), (OTHERS, bytes(3_028))]
        );
    }

    #[test]
    fn what_cannot_be_divided_is_refused() {
        let many = Tree::new(Rate::from_mbit(1), &vec![Weight::ONE; MOST + 1]).unwrap_err();
        assert!(many.to_string().contains("65534 flows"), "{many}");
        let slow = Tree::new(Rate::from_bit(1_000), &vec![Weight::ONE; 200]).unwrap_err();
        assert!(matches!(slow, WeightsError::TooSlow { flows: 200, .. }), "{slow}");
        assert!(Tree::new(Rate::from_mbit(1), &[]).unwrap().class(0).is_none());
    }
}
