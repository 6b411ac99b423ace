//! A tree of HTB's classes, as the discipline `htb` has it: assured rates, ceilings, and a FIFO in each leaf.
//!
//! Source: tc-htb(8). Above the classes stands one more, of the rate of the link. Turns are in proportion to assured rates, as those of
//! [`htb`](apportion_core::system::htb) are, but none is shorter than an Ethernet frame or longer than 200 kB. Packets find
//! their leaf by `skb->priority`; what names none is sent at once, undivided, so that a link lives on without the program that
//! names leaves.
//!
//! Cost: one class for each, one queue for each leaf; two system calls each when it is set up.

use std::collections::{BTreeMap, BTreeSet};

use apportion_core::limit::{Limit, LinkLimit};
use apportion_core::system::classes::Class;
use apportion_core::system::htb::{HtbClass as Wanted, HtbParams};
use apportion_core::units::{Bytes, Rate};
use apportion_linux::netlink::htb::HtbClass;
use apportion_linux::netlink::statistics::ClassStatistics;
use apportion_linux::netlink::{Netlink, NetlinkError};

use crate::htb::{HtbTree, TURNS, WHOLE, handle, whole};

/// The number that sends at once what no leaf is named for.
const NONE: u16 = 0;
/// Classes above each other that HTB takes besides that of the link.
const DEEPEST: usize = 7;
/// Classes besides that of the link: numbers from 1 on, below its own.
const MOST: usize = WHOLE as usize - 1;

/// What the queues of a tree may hold together. Chosen: 100 ms of 1,000 customers of 100 Mb/s fit; with what the kernel keeps
/// besides each packet it is some 2 GB of full packets, and more of small ones.
const MOST_BYTES: Bytes = Bytes::new(1_250_000_000);

/// Classes and the queues of their leaves.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassTree {
    tree: HtbTree,
    leaves: BTreeMap<String, u16>,
    others: Option<u16>,
}

impl ClassTree {
    /// A FIFO of size `limit` in front of a link of `rate`, for all.
    #[must_use]
    pub fn fifo(rate: Rate, limit: Limit) -> Self {
        let only = HtbClass { minor: 1, parent: 0, ..whole(rate) };
        Self {
            tree: HtbTree { classes: vec![only], queues: vec![(1, limit)], default: 1 },
            leaves: BTreeMap::new(),
            others: Some(1),
        }
    }

    /// The classes of `params` below a link of `rate`.
    ///
    /// # Errors
    /// What HTB of the kernel does not have: the key and what to write.
    pub fn new(params: &HtbParams, rate: Rate) -> Result<Self, String> {
        let all = params.class.all();
        if params.discipline != "fifo" {
            return Err(format!(
                "`discipline` must be \"fifo\": the kernel's leaves hold a FIFO here, not `{}`",
                params.discipline
            ));
        }
        if all.len() > MOST {
            return Err(format!("{} classes are too many; HTB takes {MOST}", all.len()));
        }
        if let Some(deep) = all.iter().find(|class| class.height >= DEEPEST) {
            return Err(format!(
                "more than {DEEPEST} classes stand above each other from `{}` on; leave some out",
                deep.name
            ));
        }
        let least = all.iter().map(|class| class.params.rate.as_bit()).min().unwrap_or(1).max(1);
        let minors = 1..=u16::MAX;
        let numbered: Vec<(u16, &Class<Wanted>)> = minors.zip(all).collect();
        let classes = numbered.iter().map(|(minor, class)| {
            let parent = class.parent.and_then(|at| numbered.get(at)).map(|(minor, _)| *minor);
            translated(*minor, parent, &class.params, rate, least)
        });
        let leaves = || numbered.iter().filter(|(_, class)| class.is_leaf);
        // What waits in a leaf leaves at the ceiling of its class at most.
        let limit = |class: &Class<Wanted>| {
            let of_all =
                || LinkLimit::new(params.limit, most(class.parent.is_some(), &class.params).min(rate)).get();
            class.queue.limit.map_or_else(of_all, |size| size.at(rate))
        };
        let queues: Vec<_> = leaves().map(|(minor, class)| (*minor, limit(class))).collect();
        let total = queues.iter().fold(Bytes::ZERO, |sum, (_, limit)| sum + bytes_of(*limit));
        if total > MOST_BYTES {
            return Err(format!(
                "its {} queues may hold {total} together, more than {MOST_BYTES}, and the kernel bounds each of them only; write \
                 a smaller `limit`, such as limit = \"{}kB\"",
                queues.len(),
                (MOST_BYTES.get() / queues.len() as u64 / 1_000).min(1_000),
            ));
        }
        let tree =
            HtbTree { classes: std::iter::once(whole(rate)).chain(classes).collect(), queues, default: NONE };
        Ok(Self {
            tree,
            leaves: leaves().map(|(minor, class)| (class.name.clone(), *minor)).collect(),
            others: leaves().find(|(_, class)| class.queue.others).map(|(minor, _)| *minor),
        })
    }

    /// The class of the leaf called `name`, as `skb->priority` names it.
    #[must_use]
    pub fn class_of(&self, name: &str) -> Option<u32> {
        self.leaves.get(name).copied().map(handle)
    }

    /// The class of those that have no leaf of their own, if they are not dropped.
    #[must_use]
    pub fn others(&self) -> Option<u32> {
        self.others.map(handle)
    }

    /// The number and the name of each leaf; a FIFO for all has none.
    pub fn leaves(&self) -> impl Iterator<Item = (u16, &str)> {
        let all = self.leaves.is_empty().then_some(1).map(|minor| (minor, ""));
        self.leaves.iter().map(|(name, minor)| (*minor, name.as_str())).chain(all)
    }

    /// Whether only numbers differ: the same leaves below the same classes, with FIFOs that count the same.
    #[must_use]
    pub fn has_the_classes_of(&self, other: &Self) -> bool {
        let shape = |tree: &HtbTree| -> Vec<(u16, u16)> {
            tree.classes.iter().map(|class| (class.minor, class.parent)).collect()
        };
        let queues = |tree: &HtbTree| -> Vec<(u16, bool)> {
            tree.queues.iter().map(|(minor, limit)| (*minor, matches!(limit, Limit::Bytes(_)))).collect()
        };
        self.leaves == other.leaves
            && self.others == other.others
            && shape(&self.tree) == shape(&other.tree)
            && queues(&self.tree) == queues(&other.tree)
    }

    /// Gives the queue of a device that has the classes of `before` these numbers; what waits stays, apart from what a FIFO
    /// that gets smaller does not hold.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn change(&self, before: &Self, netlink: &mut Netlink, device: u32) -> Result<(), NetlinkError> {
        self.tree.change(&before.tree, netlink, device)
    }

    /// The numbers of its classes that are not among those `found` at a device: somebody may have taken some away, or all.
    #[must_use]
    pub fn missing(&self, found: &[ClassStatistics]) -> BTreeSet<u16> {
        self.tree.missing(found)
    }

    /// Whether it has no other classes than these.
    #[must_use]
    pub fn is_all(&self, classes: &BTreeSet<u16>) -> bool {
        self.tree.classes.iter().all(|class| classes.contains(&class.minor))
    }

    /// Adds these of its classes to a device that has the others, with the queues of leaves. What waits in the others stays.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn restore(
        &self,
        missing: &BTreeSet<u16>,
        netlink: &mut Netlink,
        device: u32,
    ) -> Result<(), NetlinkError> {
        self.tree.restore(missing, netlink, device)
    }

    /// Makes it the queue of a device. If anything fails, the device is left with the queue of the kernel.
    ///
    /// # Errors
    /// The kernel's error: `EEXIST` if the device has a queue that somebody set.
    pub fn install(&self, netlink: &mut Netlink, device: u32) -> Result<(), NetlinkError> {
        self.tree.install(netlink, device)
    }
}

/// The most that a class gets. One without a parent has none to borrow from.
fn most(has_parent: bool, wanted: &Wanted) -> Rate {
    if has_parent { wanted.ceil } else { wanted.rate }
}

/// What a queue of this size holds, in full packets of Ethernet.
fn bytes_of(limit: Limit) -> Bytes {
    match limit {
        Limit::Bytes(bytes) => bytes,
        Limit::Packets(packets) => Bytes::new(packets.get().saturating_mul(1_514)),
    }
}

/// The class `minor` as the kernel has it. Without classes in the file the one for all is as fast as the link.
fn translated(minor: u16, parent: Option<u16>, wanted: &Wanted, link: Rate, least: u64) -> HtbClass {
    let (shortest, longest) = TURNS;
    let turn = (wanted.rate.as_bit() as f64 / least as f64 * shortest).clamp(shortest, longest);
    HtbClass {
        minor,
        parent: parent.unwrap_or(WHOLE),
        rate: wanted.rate.min(link),
        ceil: most(parent.is_some(), wanted).min(link),
        burst: wanted.burst,
        cburst: wanted.cburst,
        quantum: wanted.quantum.unwrap_or(Bytes::new(turn as u64)),
        prio: u8::try_from(wanted.prio).unwrap_or(7),
    }
}
