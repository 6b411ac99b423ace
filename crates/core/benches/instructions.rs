//! Packets for a count of instructions: `instructions NAME FLOWS PACKETS` runs so many through the queue of that name, with
//! so many flows, once it has settled. `.ci/instructions` runs it under Valgrind, twice, and takes the difference.

mod common;

use common::{CORE_STATELESS, RealRates, SETTLED, StandingBacklog, TwiceTheLoad, build, packets};

/// A name, `kind`, `drop` and the other keys. Two packets of each flow wait.
type Case = (&'static str, &'static str, Option<&'static str>, &'static [(&'static str, &'static str)]);

/// Queues that a packet enters and another one leaves.
const STANDING: [Case; 19] = [
    ("fifo", "fifo", None, &[("limit", "1000000p")]),
    ("fifo+tred", "tred", None, &[("limit", "1000000p"), ("min_th", "10p"), ("max_th", "900000p")]),
    ("fifo+codel", "codel", None, &[("limit", "1000000p")]),
    ("fifo+pie", "pie", None, &[("limit", "1000000p")]),
    ("fifo+cobalt", "cobalt", None, &[("limit", "1000000p")]),
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
    ("afq", "afq", None, &[("limit", "1000000p"), ("bpr", "3000B")]),
    (
        "fq_codel hashed",
        "fq_codel",
        None,
        &[("limit", "1000000p"), ("memory_limit", "4000MB"), ("classify", "hashed")],
    ),
];

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
