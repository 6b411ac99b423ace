//! Counters of queues and programs that were removed, so that totals never decrease.
//!
//! A queue that is set up anew counts from 0 again, and so does a class that another program removed. The
//! counters of each class are noted at every reading, at least once per second: if a class is gone, or its
//! counters have decreased, the last values are added to the earlier counts of its name. Counts between the
//! last reading and the removal are lost. A program is read when it is removed, so that none of its counts
//! are lost.

use std::collections::{BTreeMap, BTreeSet};

use apportion_linux::netlink::statistics::ClassStatistics;

use super::Attached;
use crate::tickets::TicketCounts;

/// Counters by the names of classes.
pub(super) type ByName = BTreeMap<String, ClassStatistics>;

/// The value at which the kernel's drop counter wraps.
const WRAP: u64 = 1 << 32;

/// The counters of the queues and programs of a direction.
#[derive(Clone, Debug, Default)]
pub(super) struct Earlier {
    /// Earlier counts by the names of classes of the plan.
    classes: ByName,
    /// Earlier counts of classes that are no longer in the plan.
    pub(super) others: ClassStatistics,
    /// The last reading of the present classes.
    last: ByName,
    /// Earlier counts of programs.
    pub(super) programs: Counted,
}

impl Earlier {
    /// Records a reading of the classes that exist at the device.
    pub(super) fn read(&mut self, now: ByName) {
        for (name, last) in std::mem::replace(&mut self.last, now) {
            let lost = match self.last.get(&name) {
                Some(now) if goes_on(&last, now) => {
                    let drops = if now.drops < last.drops { WRAP } else { 0 };
                    ClassStatistics { drops, ..ClassStatistics::default() }
                }
                _ => ClassStatistics { backlog_packets: 0, backlog_bytes: 0, ..last },
            };
            add(self.classes.entry(name).or_default(), &lost);
        }
    }

    /// Records that the queue is about to be removed with its backlog.
    pub(super) fn end_queue(&mut self) {
        for last in self.last.values_mut() {
            last.drops += u64::from(last.backlog_packets);
        }
        self.read(ByName::new());
    }

    /// Removes a program and keeps its counts.
    pub(super) fn end_program(&mut self, program: Attached) {
        self.programs = Counted::of(&program).plus(&self.programs);
        drop(program);
    }

    /// Records that the plan has classes of these names from now on.
    pub(super) fn keep(&mut self, names: &BTreeSet<&str>) {
        let others = &mut self.others;
        self.classes.retain(|name, counted| {
            let stays = names.contains(&**name);
            if !stays {
                add(others, counted);
            }
            stays
        });
    }

    /// The counts of all classes by name, and the backlog of the present one.
    pub(super) fn totals(&self) -> ByName {
        let mut all = self.classes.clone();
        for (name, last) in &self.last {
            add(all.entry(name.clone()).or_default(), last);
        }
        all
    }
}

/// Whether the class that counted `last` is the same that counted `now`.
const fn goes_on(last: &ClassStatistics, now: &ClassStatistics) -> bool {
    // Only drops wrap in the kernel, at 2^32.
    now.packets > last.packets || now.packets == last.packets && (now.packets > 0 || now.drops >= last.drops)
}

pub(super) fn add(sum: &mut ClassStatistics, counted: &ClassStatistics) {
    sum.bytes += counted.bytes;
    sum.packets += counted.packets;
    sum.drops += counted.drops;
    sum.backlog_bytes = sum.backlog_bytes.saturating_add(counted.backlog_bytes);
    sum.backlog_packets = sum.backlog_packets.saturating_add(counted.backlog_packets);
}

/// The counters of programs.
#[derive(Clone, Debug, Default)]
pub(super) struct Counted {
    /// Packet counts; `unlabelled` are packets dropped for lack of a label.
    pub(super) packets: TicketCounts,
    /// Packets dropped because no class was assigned to them.
    pub(super) unclassed: u64,
    /// By customer: packets, bytes, and packets dropped.
    pub(super) customers: BTreeMap<String, [u64; 3]>,
}

impl Counted {
    /// Reads the counters of a program. Values that the kernel does not return are 0.
    pub(super) fn of(program: &Attached) -> Self {
        match program {
            Attached::None => Self::default(),
            Attached::Prefixes(classes) => {
                Self { unclassed: classes.dropped().unwrap_or_default(), ..Self::default() }
            }
            Attached::Core(core) => Self::of_packets(core.counts().map(TicketCounts::of_core)),
            Attached::Hierarchy { core, names } => {
                let counted = |(name, number): (&String, u32)| {
                    let own = core.customer(number).ok()?;
                    Some((name.clone(), [own.packets, own.bytes, own.dropped]))
                };
                let customers = names.iter().zip(0..).filter_map(counted).collect();
                Self { customers, ..Self::of_packets(core.counts().map(TicketCounts::of_core)) }
            }
            Attached::Tickets(queue) => {
                let mut counted = Self::of_packets(queue.counts());
                // TRED lets packets without tickets pass.
                counted.packets.all.unlabelled = 0;
                counted
            }
        }
    }

    fn of_packets<E>(packets: Result<TicketCounts, E>) -> Self {
        Self { packets: packets.unwrap_or_default(), ..Self::default() }
    }

    /// Keeps only the customers of these names.
    pub(super) fn keep(&mut self, names: &[String]) {
        let names: BTreeSet<&String> = names.iter().collect();
        self.customers.retain(|name, _| names.contains(name));
    }

    /// Adds both counters.
    pub(super) fn plus(mut self, other: &Self) -> Self {
        self.packets = self.packets.plus(&other.packets);
        self.unclassed += other.unclassed;
        for (name, counted) in &other.customers {
            let own = self.customers.entry(name.clone()).or_default();
            own.iter_mut().zip(counted).for_each(|(own, counted)| *own += counted);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(packets: u64, drops: u64, waits: u32) -> ClassStatistics {
        ClassStatistics {
            bytes: 100 * packets,
            packets,
            drops,
            backlog_packets: waits,
            backlog_bytes: 100 * waits,
            ..ClassStatistics::default()
        }
    }

    fn of(classes: &[(&str, ClassStatistics)]) -> ByName {
        classes.iter().map(|(name, class)| ((*name).to_owned(), *class)).collect()
    }

    /// Packets, drops, and backlog.
    fn total(earlier: &Earlier, name: &str) -> (u64, u64, u32) {
        let all = earlier.totals();
        assert_eq!(all[name].bytes, 100 * all[name].packets);
        (all[name].packets, all[name].drops, all[name].backlog_packets)
    }

    #[test]
    fn totals_never_decrease() {
        let mut earlier = Earlier::default();
        earlier.read(of(&[("a", class(10, 2, 3)), ("b", class(5, 0, 0))]));
        assert_eq!((total(&earlier, "a"), total(&earlier, "b")), ((10, 2, 3), (5, 0, 0)));
        // One class was removed and set up again, the other continues.
        earlier.read(of(&[("a", class(4, 0, 1)), ("b", class(9, 0, 0))]));
        assert_eq!((total(&earlier, "a"), total(&earlier, "b")), ((14, 2, 1), (9, 0, 0)));
        // Both are absent, and present again.
        earlier.read(ByName::new());
        assert_eq!((total(&earlier, "a"), total(&earlier, "b")), ((14, 2, 0), (9, 0, 0)));
        earlier.read(of(&[("a", class(100, 0, 0)), ("b", class(0, 1, 0))]));
        assert_eq!((total(&earlier, "a"), total(&earlier, "b")), ((114, 2, 0), (9, 1, 0)));
        // It sent nothing, and has fewer drops: another class.
        earlier.read(of(&[("a", class(100, 0, 0)), ("b", class(0, 0, 0))]));
        assert_eq!(total(&earlier, "b"), (9, 1, 0));
    }

    #[test]
    fn programs_are_added_up_and_customers_that_go_are_forgotten() {
        let of = |early, customers: &[(&str, u64)]| {
            let mut counted = Counted::default();
            counted.packets.all.early = early;
            let three = |(name, n): &(&str, u64)| ((*name).to_owned(), [*n, 100 * n, 0]);
            counted.customers = customers.iter().map(three).collect();
            counted
        };
        let mut both = of(3, &[("a", 4), ("b", 5)]).plus(&of(1, &[("a", 2)]));
        assert_eq!(
            (both.packets.all.early, both.customers["a"], both.customers["b"][0]),
            (4, [6, 600, 0], 5)
        );
        both.keep(&["a".to_owned()]);
        assert_eq!(both.customers.len(), 1);
    }

    #[test]
    fn the_kernel_s_counter_of_drops_may_begin_anew() {
        let mut earlier = Earlier::default();
        for (packets, drops) in [(10, WRAP - 1), (11, 3), (12, 7)] {
            earlier.read(of(&[("a", class(packets, drops, 0))]));
        }
        assert_eq!(total(&earlier, "a"), (12, WRAP + 7, 0));
    }

    #[test]
    fn what_waits_in_a_queue_that_ends_is_dropped_and_classes_that_go_are_others() {
        let mut earlier = Earlier::default();
        earlier.read(of(&[("a", class(10, 2, 3)), ("b", class(5, 1, 0))]));
        earlier.end_queue();
        earlier.keep(&BTreeSet::from(["a"]));
        assert_eq!(total(&earlier, "a"), (10, 5, 0));
        assert_eq!((earlier.others.packets, earlier.totals().len()), (5, 1));
    }
}
