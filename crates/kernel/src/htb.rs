//! The common queue of HTB trees: a class with the rate of the link, classes below it, and FIFOs in the
//! leaves.
//!
//! Source: tc-htb(8).

use std::collections::BTreeSet;

use apportion_core::limit::Limit;
use apportion_core::units::{Bytes, Rate, Span};
use apportion_linux::netlink::htb::HtbClass;
pub use apportion_linux::netlink::htb::MAJOR;
use apportion_linux::netlink::statistics::ClassStatistics;
use apportion_linux::netlink::{Netlink, NetlinkError};

/// The number of the root class, with the rate of the link.
pub(crate) const WHOLE: u16 = u16::MAX;
/// Minimum and maximum quantum in bytes: below an Ethernet frame a leaf may go into debt, above 200 kB the
/// kernel warns.
pub(crate) const TURNS: (f64, f64) = (1_514.0, 200_000.0);
/// The burst of a class: two frames, plus what its rate sends in a tick of 1 ms.
const BURST: Bytes = Bytes::new(2 * 1_514);
const TICK: Span = Span::from_millis(1);

/// The classes of a tree and the queues of its leaves.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HtbTree {
    /// The classes, parents first.
    pub classes: Vec<HtbClass>,
    /// Leaves whose FIFO does not have the default length of the device.
    pub queues: Vec<(u16, Limit)>,
    /// The default class of packets; 0: they are sent at once.
    pub default: u16,
}

impl HtbTree {
    /// Installs the tree as the queue of a device. On an error, the kernel's default queue is restored.
    ///
    /// # Errors
    /// The kernel's error: `EEXIST` if the device has a configured queue.
    pub fn install(&self, netlink: &mut Netlink, device: u32) -> Result<(), NetlinkError> {
        netlink.add_htb(device, MAJOR, self.default)?;
        let added = self.add(&|_| true, netlink, device);
        if added.is_err() {
            // The first error is more informative than a second one.
            let _ = netlink.delete_queue(device, MAJOR);
        }
        added
    }

    /// Returns the classes that are not among `found` at a device.
    pub fn missing(&self, found: &[ClassStatistics]) -> BTreeSet<u16> {
        let found: BTreeSet<u16> = found.iter().map(|class| class.minor).collect();
        self.classes.iter().map(|class| class.minor).filter(|minor| !found.contains(minor)).collect()
    }

    /// Adds the missing classes to a device that has the others, with the queues of their leaves; the others
    /// are not changed.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn restore(
        &self,
        missing: &BTreeSet<u16>,
        netlink: &mut Netlink,
        device: u32,
    ) -> Result<(), NetlinkError> {
        self.add(&|minor| missing.contains(&minor), netlink, device)
    }

    /// Changes the queue of a device from `before`, which has the same classes, to this tree.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn change(&self, before: &Self, netlink: &mut Netlink, device: u32) -> Result<(), NetlinkError> {
        for (class, _) in self.classes.iter().zip(&before.classes).filter(|(now, before)| now != before) {
            netlink.change_htb_class(device, MAJOR, class)?;
        }
        for ((class, limit), _) in
            self.queues.iter().zip(&before.queues).filter(|(now, before)| now != before)
        {
            netlink.change_fifo(device, MAJOR, *class, *limit)?;
        }
        Ok(())
    }

    fn add(
        &self,
        is_wanted: &dyn Fn(u16) -> bool,
        netlink: &mut Netlink,
        device: u32,
    ) -> Result<(), NetlinkError> {
        let mut classes = self.classes.iter().filter(|class| is_wanted(class.minor));
        classes.try_for_each(|class| netlink.add_htb_class(device, MAJOR, class))?;
        let mut queues = self.queues.iter().filter(|(class, _)| is_wanted(*class));
        queues.try_for_each(|(class, limit)| netlink.add_fifo(device, MAJOR, *class, *limit))
    }
}

/// Returns a class as a value of `skb->priority`.
pub(crate) fn handle(minor: u16) -> u32 {
    u32::from(MAJOR) << 16 | u32::from(minor)
}

/// Returns the burst of a class of this rate.
pub(crate) fn burst(rate: Rate) -> Bytes {
    rate.bytes_in(TICK) + BURST
}

/// Returns the root class of a link of `rate`.
pub(crate) fn whole(rate: Rate) -> HtbClass {
    HtbClass {
        minor: WHOLE,
        parent: 0,
        rate,
        ceil: rate,
        burst: burst(rate),
        cburst: burst(rate),
        quantum: Bytes::new(TURNS.1 as u64),
        prio: 0,
    }
}
