//! Packets for a count of instructions: `instructions NAME FLOWS PACKETS` runs so many through the queue of that name, with
//! so many flows, once it has settled. `.ci/instructions` runs it under Valgrind, twice, and takes the difference.

mod common;

use std::hint::black_box;

use apportion_core::Queue;
use apportion_core::packet::{CustomerId, Customers};
use apportion_core::system::catalog::Selection;
use apportion_core::system::{Discipline, DisciplineParams, LinkContext};
use apportion_core::units::{Rate, Span, Time};
use common::{
    CORE_STATELESS, Discard, RealRates, SETTLED, Small, StandingBacklog, TwiceTheLoad, build, packets,
};

/// A name, `kind`, `drop` and the other keys. Two packets of each flow wait.
type Case = (&'static str, &'static str, Option<&'static str>, &'static [(&'static str, &'static str)]);

/// Queues that a packet enters and another one leaves.
const STANDING: [Case; 22] = [
    ("fifo", "fifo", None, &[("limit", "1000000p")]),
    ("fifo+tred", "tred", None, &[("limit", "1000000p"), ("min_th", "10p"), ("max_th", "900000p")]),
    ("fifo+codel", "codel", None, &[("limit", "1000000p")]),
    ("fifo+pie", "pie", None, &[("limit", "1000000p")]),
    ("fifo+cobalt", "cobalt", None, &[("limit", "1000000p")]),
    ("fq", "fq", None, &[("limit", "1000000p")]),
    // Of 1000 flows each brings 800 Mb/s.
    ("fq maxrate", "fq", None, &[("limit", "1000000p"), ("maxrate", "700Mbit")]),
    ("fq_codel", "fq_codel", None, &[("limit", "1000000p"), ("memory_limit", "4000MB")]),
    ("fq_pie", "fq_pie", None, &[("limit", "1000000p"), ("memory_limit", "4000MB")]),
    ("cake", "cake", None, &[("limit", "1000000p")]),
    ("dualpi2", "dualpi2", None, &[("limit", "1000000p")]),
    ("drr+tail", "drr", Some("tail"), &[("limit", "1000000p")]),
    ("drr+lqd", "drr", None, &[("limit", "4000000p")]),
    ("stfq+lqd", "stfq", None, &[("limit", "4000000p")]),
    ("stfq+pfd", "stfq", Some("pfd"), &[("limit", "4000000p")]),
    ("wf2q_plus+lqd", "wf2q_plus", None, &[("limit", "4000000p")]),
    ("stochastic_fq", "stochastic_fq", None, &[("limit", "1000000p")]),
    ("sp_pifo", "sp_pifo", None, &[("limit", "1000000p")]),
    ("aifo", "aifo", None, &[("limit", "1000000p")]),
    ("cebinae", "cebinae", None, &[("limit", "1000000p")]),
    ("afq", "afq", None, &[("limit", "1000000p"), ("bpr", "3000B")]),
    (
        "fq_codel hashed",
        "fq_codel",
        None,
        &[("limit", "1000000p"), ("memory_limit", "4000MB"), ("classify", "hashed")],
    ),
];

/// A discipline with a class for each flow, ten of them below each of a level above, over a link of 1 Gb/s. Two packets of each wait.
struct Classed {
    queue: Discipline<Small>,
    now: Time,
}

impl Classed {
    /// With so many flows, half of which may have more than they are assured.
    fn new(kind: &str, flows: u32) -> Self {
        let mut selection = Selection::new(kind, None, None).expect("known");
        let mut set = |class: &str, keys: &[(&str, String)]| {
            for (key, value) in keys {
                selection.set_of_class(class, key, value).expect("valid");
            }
        };
        let mbit = |mbit: u32| format!("{mbit}Mbit");
        for i in 0..flows {
            let parent = ("parent", format!("p{}", i / 10));
            let (class, rate) = (format!("c{i}"), 800_000 / flows);
            let ceil = format!("{}kbit", rate * if i % 2 == 0 { 1 } else { 9 });
            let rate = format!("{rate}kbit");
            match kind {
                "prio" => set(&class, &[("prio", i.to_string())]),
                "htb" => set(&class, &[parent, ("rate", rate), ("ceil", ceil)]),
                _ => set(&class, &[parent, ("rt_m2", rate), ("ls_m2", ceil)]),
            }
        }
        for i in 0..flows.div_ceil(10) {
            let class = format!("p{i}");
            match kind {
                "prio" => {}
                "htb" => set(
                    &class,
                    &[("parent", "all".to_owned()), ("rate", mbit(9_000 / flows)), ("ceil", mbit(1_000))],
                ),
                _ => set(&class, &[("ls_m2", mbit(10_000 / flows))]),
            }
        }
        if kind == "htb" {
            set("all", &[("rate", mbit(1_000))]);
        }
        let customers: Vec<CustomerId> = (1..=flows).map(CustomerId).collect();
        let customers = Customers { of_flows: &customers, ..Customers::default() };
        let setup = LinkContext { customers, ..LinkContext::new(Rate::from_mbit(1_000), 1, "bench") };
        let mut queue = DisciplineParams::from_args(&selection).expect("valid").build(&setup);
        let waiting = packets(flows).into_iter().take(2 * flows as usize);
        waiting.for_each(|packet| queue.enqueue(Time::ZERO, packet, &mut Discard));
        Self { queue, now: Time::ZERO }
    }

    /// A packet out, and another one of its flow in.
    fn pass(&mut self) {
        // 1000 bytes at 1 Gb/s.
        self.now += Span::from_nanos(8_000);
        if let Some(sent) = self.queue.dequeue(self.now, &mut Discard) {
            self.queue.enqueue(self.now, black_box(sent), &mut Discard);
        }
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let [name, flows, count] = words.as_slice() else { return };
    let flows: u32 = flows.parse().expect("a number of flows");
    let count: u32 = count.parse().expect("a number of packets");
    if let Some(case) = CORE_STATELESS.iter().find(|case| case.name == name) {
        let mut load = case.load(flows);
        (0..SETTLED + count).for_each(|_| load.arrive());
        return;
    }
    if name == "ramp real-rate" {
        let mut load = RealRates::new(flows);
        (0..SETTLED + count).for_each(|_| load.pass());
        return;
    }
    if ["prio", "htb", "hfsc"].contains(&name.as_str()) {
        let mut load = Classed::new(name, flows);
        (0..SETTLED + count).for_each(|_| load.pass());
        return;
    }
    if name == "drr+lqd full" {
        // Two packets in and one out, which pushes one out.
        let limit = format!("{}p", 2 * flows);
        let mut load = TwiceTheLoad::new(build("drr", None, &[("limit", &limit)]), packets(flows));
        (0..8 * flows + count).for_each(|_| load.arrive());
        return;
    }
    let (_, kind, drop, pairs) = STANDING.iter().find(|(of, ..)| of == name).expect("a name of a queue");
    let mut load = StandingBacklog::new(build(kind, *drop, pairs), packets(flows), 2 * flows);
    // Each flow gets its turn before anything is counted.
    (0..2 * flows + count).for_each(|_| load.pass());
}
