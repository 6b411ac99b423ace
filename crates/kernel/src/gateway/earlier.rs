//! What queues and programs counted that are gone, so that totals never decrease.
//!
//! A queue that is set up anew counts from 0 again, and so does a class that somebody took away. What each class has counted is noted whenever it
//! is read, which is once a second at least: if a class is gone, or has counted less since, what it had is added to what its name counted earlier. What it
//! counted between the last reading and its end is lost. A program is read when it is taken away, so that nothing of it is.

use std::collections::{BTreeMap, BTreeSet};

use apportion_linux::netlink::statistics::ClassStatistics;

use super::Attached;
use crate::tickets::TicketCounts;

/// By the names of classes.
pub(super) type ByName = BTreeMap<String, ClassStatistics>;

/// Where the counter of drops in the kernel begins anew.
const WRAP: u64 = 1 << 32;

/// What queues and programs of a direction counted.
#[derive(Clone, Debug, Default)]
pub(super) struct Earlier {
    /// By the names of classes of the plan: what those counted that are gone.
    classes: ByName,
    /// By classes that are not in the plan any more.
    pub(super) others: ClassStatistics,
    /// By those that are there, when they were last read.
    last: ByName,
    /// By programs that are gone.
    pub(super) programs: Counted,
}

impl Earlier {
    /// Takes what the classes at the device have counted, of those that are there.
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

    /// The queue is about to be taken away, with what waits there.
    pub(super) fn end_queue(&mut self) {
        for last in self.last.values_mut() {
            last.drops += u64::from(last.backlog_packets);
        }
        self.read(ByName::new());
    }

    /// Takes a program away, with what it has counted.
    pub(super) fn end_program(&mut self, program: Attached) {
        self.programs = Counted::of(&program).plus(&self.programs);
        drop(program);
    }

    /// The plan has classes of these names from now on.
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

    /// What all classes of a name have counted, and what waits in the one that is there.
    pub(super) fn totals(&self) -> ByName {
        let mut all = self.classes.clone();
        for (name, last) in &self.last {
            add(all.entry(name.clone()).or_default(), last);
        }
        all
    }
}

/// Whether a class that had counted `last` is the one that has counted `now`.
const fn goes_on(last: &ClassStatistics, now: &ClassStatistics) -> bool {
    // Drops alone begin anew in the kernel after 2^32.
    now.packets > last.packets || now.packets == last.packets && (now.packets > 0 || now.drops >= last.drops)
}

pub(super) fn add(sum: &mut ClassStatistics, counted: &ClassStatistics) {
    sum.bytes += counted.bytes;
    sum.packets += counted.packets;
    sum.drops += counted.drops;
    sum.backlog_bytes = sum.backlog_bytes.saturating_add(counted.backlog_bytes);
    sum.backlog_packets = sum.backlog_packets.saturating_add(counted.backlog_packets);
}

/// What programs counted.
#[derive(Clone, Debug, Default)]
pub(super) struct Counted {
    /// Of packets; `unlabelled` are those that were dropped.
    pub(super) packets: TicketCounts,
    /// Packets that were dropped as no class was for them.
    pub(super) unclassed: u64,
    /// By customers: packets, bytes, and packets dropped.
    pub(super) customers: BTreeMap<String, [u64; 3]>,
}

impl Counted {
    /// What a program has counted so far. What the kernel does not say is 0.
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

    /// There are customers of these names only from now on.
    pub(super) fn keep(&mut self, names: &[String]) {
        let names: BTreeSet<&String> = names.iter().collect();
        self.customers.retain(|name, _| names.contains(name));
    }

    /// Both.
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

    /// Packets, drops, and what waits.
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
        // One was taken away and set up again, the other goes on.
        earlier.read(of(&[("a", class(4, 0, 1)), ("b", class(9, 0, 0))]));
        assert_eq!((total(&earlier, "a"), total(&earlier, "b")), ((14, 2, 1), (9, 0, 0)));
        // Both are away, and are there again.
        earlier.read(ByName::new());
        assert_eq!((total(&earlier, "a"), total(&earlier, "b")), ((14, 2, 0), (9, 0, 0)));
        earlier.read(of(&[("a", class(100, 0, 0)), ("b", class(0, 1, 0))]));
        assert_eq!((total(&earlier, "a"), total(&earlier, "b")), ((114, 2, 0), (9, 1, 0)));
        // Nothing was sent, and fewer were dropped: another one.
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
