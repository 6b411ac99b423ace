//! A tree of HTB's classes, as the discipline `htb` has it: assured rates, ceilings, and a FIFO in each leaf.
//!
//! Source: tc-htb(8). Above the classes stands one more, of the rate of the link. Turns are in proportion to assured rates, as those of
//! [`htb`](apportion_core::system::htb) are, but none is shorter than an Ethernet frame or longer than 200 kB. Packets find
//! their leaf by `skb->priority`; what names none is sent at once, undivided, so that a link lives on without the program that
//! names leaves.
//!
//! Cost: one class for each, one queue for each leaf; two system calls each when it is set up.

use std::collections::BTreeMap;

use apportion_core::limit::{Limit, LinkLimit};
use apportion_core::system::classes::Class;
use apportion_core::system::htb::{HtbClass as Wanted, HtbParams};
use apportion_core::units::{Bytes, Rate, Span};
use apportion_linux::netlink::htb::HtbClass;
use apportion_linux::netlink::{Netlink, NetlinkError};

use crate::weights::{MAJOR, MOST};

/// The class of the whole link.
const WHOLE: u16 = u16::MAX;
/// The number that sends at once what no leaf is named for.
const NONE: u16 = 0;
/// Least and largest turn: below an Ethernet frame a leaf may owe, above 200 kB the kernel warns.
const TURNS: (f64, f64) = (1_514.0, 200_000.0);
/// Classes above each other that HTB takes besides that of the link.
const DEEPEST: usize = 7;
/// What the link may send at once besides a frame: what its rate sends in a tick of 1 ms.
const TICK: Span = Span::from_millis(1);
const FRAME: Bytes = Bytes::new(1_514);

/// Classes and the queues of their leaves.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassTree {
    /// Parents come first.
    classes: Vec<HtbClass>,
    queues: Vec<(u16, Limit)>,
    leaves: BTreeMap<String, u16>,
    others: Option<u16>,
    /// The class of what names none.
    default: u16,
}

impl ClassTree {
    /// A FIFO of size `limit` in front of a link of `rate`, for all.
    #[must_use]
    pub fn fifo(rate: Rate, limit: Limit) -> Self {
        let only = HtbClass { minor: 1, parent: 0, ..whole(rate) };
        Self {
            classes: vec![only],
            queues: vec![(1, limit)],
            leaves: BTreeMap::new(),
            others: Some(1),
            default: 1,
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
            let parent = class.parent.and_then(|at| numbered.get(at)).map_or(WHOLE, |(minor, _)| *minor);
            translated(*minor, parent, &class.params, rate, least)
        });
        let leaves = || numbered.iter().filter(|(_, class)| class.is_leaf);
        let limit = LinkLimit::new(params.limit, rate).get();
        Ok(Self {
            classes: std::iter::once(whole(rate)).chain(classes).collect(),
            queues: leaves().map(|(minor, class)| (*minor, class.limit.unwrap_or(limit))).collect(),
            leaves: leaves().map(|(minor, class)| (class.name.clone(), *minor)).collect(),
            others: leaves().find(|(_, class)| class.others).map(|(minor, _)| *minor),
            default: NONE,
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

    /// Leaves by name, each with the number of its class in tc(8).
    pub fn leaves(&self) -> impl Iterator<Item = (&str, u16)> {
        self.leaves.iter().map(|(name, minor)| (name.as_str(), *minor))
    }

    /// Makes it the queue of a device. If anything fails, the device is left with the queue of the kernel.
    ///
    /// # Errors
    /// The kernel's error: `EEXIST` if the device has a queue that somebody set.
    pub fn install(&self, netlink: &mut Netlink, device: u32) -> Result<(), NetlinkError> {
        netlink.add_htb(device, MAJOR, self.default)?;
        let added = self.add(netlink, device);
        if added.is_err() {
            // The first error says more than a second one would.
            let _ = netlink.delete_queue(device, MAJOR);
        }
        added
    }

    fn add(&self, netlink: &mut Netlink, device: u32) -> Result<(), NetlinkError> {
        self.classes.iter().try_for_each(|class| netlink.add_htb_class(device, MAJOR, class))?;
        self.queues.iter().try_for_each(|(class, limit)| netlink.add_fifo(device, MAJOR, *class, *limit))
    }
}

fn handle(minor: u16) -> u32 {
    u32::from(MAJOR) << 16 | u32::from(minor)
}

fn whole(rate: Rate) -> HtbClass {
    let burst = rate.bytes_in(TICK) + FRAME;
    HtbClass {
        minor: WHOLE,
        parent: 0,
        rate,
        ceil: rate,
        burst,
        cburst: burst,
        quantum: Bytes::new(TURNS.1 as u64),
        prio: 0,
    }
}

/// The class `minor` as the kernel has it. Without classes in the file the one for all is as fast as the link.
fn translated(minor: u16, parent: u16, wanted: &Wanted, link: Rate, least: u64) -> HtbClass {
    let (shortest, longest) = TURNS;
    let turn = (wanted.rate.as_bit() as f64 / least as f64 * shortest).clamp(shortest, longest);
    HtbClass {
        minor,
        parent,
        rate: wanted.rate.min(link),
        ceil: wanted.ceil.min(link),
        burst: wanted.burst,
        cburst: wanted.cburst,
        quantum: wanted.quantum.unwrap_or(Bytes::new(turn as u64)),
        prio: u8::try_from(wanted.prio).unwrap_or(7),
    }
}
