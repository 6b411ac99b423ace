//! A tree of HTB classes for the discipline `htb`: assured rates, ceilings, and a FIFO in each leaf.
//!
//! Source: tc-htb(8). A root class with the rate of the link is added above the classes. Quanta are
//! proportional to assured rates, as in [`htb`](apportion_core::system::htb), but at least an Ethernet frame
//! and at most 200 kB. `skb->priority` selects the leaf of a packet; a packet without a leaf is sent at once,
//! undivided, so that the link keeps working without the program that sets the priority.
//!
//! Cost: one class per class and one queue per leaf; two system calls each during setup.

use std::collections::{BTreeMap, BTreeSet};

use apportion_core::limit::{Limit, LinkLimit};
use apportion_core::system::classes::Class;
use apportion_core::system::htb::{HtbClass as Wanted, HtbParams};
use apportion_core::units::{Bytes, Rate};
use apportion_linux::netlink::htb::HtbClass;
use apportion_linux::netlink::statistics::ClassStatistics;
use apportion_linux::netlink::{Netlink, NetlinkError};

use crate::htb::{HtbTree, TURNS, WHOLE, handle, whole};

/// The class number of packets without a leaf, which are sent at once.
const NONE: u16 = 0;
/// The maximum depth of the classes below the root that HTB supports.
const DEEPEST: usize = 7;
/// The maximum number of classes below the root: numbers from 1 to below the root's.
const MOST: usize = WHOLE as usize - 1;

/// The maximum total size of the queues of a tree. Chosen: it suffices for 100 ms of 1,000 customers of 100
/// Mb/s; including the kernel's memory per packet it is about 2 GB of full packets, and more of small ones.
const MOST_BYTES: Bytes = Bytes::new(1_250_000_000);

/// The classes of a tree and the queues of its leaves.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassTree {
    tree: HtbTree,
    leaves: BTreeMap<String, u16>,
    others: Option<u16>,
}

impl ClassTree {
    /// Creates a single FIFO of size `limit` for a link of `rate`.
    #[must_use]
    pub fn fifo(rate: Rate, limit: Limit) -> Self {
        let only = HtbClass { minor: 1, parent: 0, ..whole(rate) };
        Self {
            tree: HtbTree { classes: vec![only], queues: vec![(1, limit)], default: 1 },
            leaves: BTreeMap::new(),
            others: Some(1),
        }
    }

    /// Creates the classes of `params` for a link of `rate`.
    ///
    /// # Errors
    /// A feature that the kernel's HTB lacks: the key and a valid alternative.
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
        // A leaf sends its backlog at the ceiling of its class at most.
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

    /// Returns the class of the leaf called `name`, as a value of `skb->priority`.
    #[must_use]
    pub fn class_of(&self, name: &str) -> Option<u32> {
        self.leaves.get(name).copied().map(handle)
    }

    /// Returns the class of packets without a leaf of their own, unless they are dropped.
    #[must_use]
    pub fn others(&self) -> Option<u32> {
        self.others.map(handle)
    }

    /// Returns the number and the name of each leaf; none for a single FIFO.
    pub fn leaves(&self) -> impl Iterator<Item = (u16, &str)> {
        let all = self.leaves.is_empty().then_some(1).map(|minor| (minor, ""));
        self.leaves.iter().map(|(name, minor)| (*minor, name.as_str())).chain(all)
    }

    /// Whether two trees differ only in numbers: the same leaves below the same classes, with FIFOs in the
    /// same units.
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

    /// Changes the numbers of the queue of a device that has the classes of `before`; the backlog stays,
    /// except for the part that no longer fits a smaller FIFO.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn change(&self, before: &Self, netlink: &mut Netlink, device: u32) -> Result<(), NetlinkError> {
        self.tree.change(&before.tree, netlink, device)
    }

    /// Returns the numbers of the classes that are not among `found` at a device: another program may have
    /// removed some or all.
    #[must_use]
    pub fn missing(&self, found: &[ClassStatistics]) -> BTreeSet<u16> {
        self.tree.missing(found)
    }

    /// Whether the device has no other classes than these.
    #[must_use]
    pub fn is_all(&self, classes: &BTreeSet<u16>) -> bool {
        self.tree.classes.iter().all(|class| classes.contains(&class.minor))
    }

    /// Adds the missing classes to a device that has the others, with the queues of their leaves. The backlog
    /// of the others stays.
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

    /// Installs the tree as the queue of a device. On an error, the kernel's default queue is restored.
    ///
    /// # Errors
    /// The kernel's error: `EEXIST` if the device has a configured queue.
    pub fn install(&self, netlink: &mut Netlink, device: u32) -> Result<(), NetlinkError> {
        self.tree.install(netlink, device)
    }
}

/// The maximum rate of a class. A class without a parent cannot borrow.
fn most(has_parent: bool, wanted: &Wanted) -> Rate {
    if has_parent { wanted.ceil } else { wanted.rate }
}

/// The size of a queue in full Ethernet packets.
fn bytes_of(limit: Limit) -> Bytes {
    match limit {
        Limit::Bytes(bytes) => bytes,
        Limit::Packets(packets) => Bytes::new(packets.get().saturating_mul(1_514)),
    }
}

/// Translates a class into the kernel's class `minor`. Without classes in the file, the single class has the
/// rate of the link.
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
