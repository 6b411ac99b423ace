//! Packets for counts of instructions and of memory. `instructions NAME FLOWS PACKETS` runs PACKETS packets
//! of FLOWS flows through the queue of that name, once it has settled; `.ci/instructions` runs it under
//! Valgrind, twice, and takes the difference. `instructions NAME FLOWS heap` ends when each flow has had its
//! packets, with the same number of waiting packets for any number of flows, and frees nothing, so that
//! Valgrind finds the memory in use.

mod common;

use std::hint::black_box;

use apportion_core::Queue;
use apportion_core::packet::{CustomerId, Customers, HostPair};
use apportion_core::system::catalog::Selection;
use apportion_core::system::{DisciplineParams, LinkContext, LinkQueue};
use apportion_core::units::{Rate, Span, Time};
use common::{
    CORE_STATELESS, Discard, RealRates, SETTLED, Small, StandingBacklog, TwiceTheLoad, build, host, packets,
};

/// Settings that let two packets of each flow wait, in disciplines with the parameter.
const ROOM: [(&str, &str); 6] = [
    ("limit", "4000000p"),
    ("memory_limit", "4000MB"),
    ("max_th", "900000p"),
    ("out_max_th", "900000p"),
    ("w_m", "1000000p"),
    ("bpr", "3000B"),
];

/// The settings that a name adds to a discipline. Each of 1000 flows sends 800 Mb/s.
const VARIANTS: [(&str, &str, &str); 2] =
    [(" maxrate", "maxrate", "700Mbit"), (" hashed", "classify", "hashed")];

/// A queue with a packet in and a packet out: a scheduler, policy or system, and joined to it by `+` a policy
/// and `isolate`.
fn standing(name: &str, flows: u32) -> LinkQueue<Small> {
    let variant = VARIANTS.iter().find(|(suffix, ..)| name.ends_with(suffix));
    let plain = variant.map_or(name, |(suffix, ..)| name.trim_end_matches(suffix));
    let mut words = plain.split('+');
    let kind = words.next().expect("a name");
    let (mut drop, mut is_isolated) = (None, false);
    for word in words {
        match word {
            "isolate" => is_isolated = true,
            policy => drop = Some(policy),
        }
    }
    let mut selection = Selection::new(kind, drop, None).expect("a name of a queue");
    let mut set = |key: &str, value: &str| selection.set(key, value).expect("valid");
    if let Some((_, key, value)) = variant {
        set(key, value);
    }
    if is_isolated {
        set("isolate", "source");
    }
    let known: Vec<&str> = selection.keys().collect();
    for (key, value) in ROOM.iter().filter(|(key, _)| known.contains(key)) {
        selection.set(key, value).expect("valid");
    }
    let hosts: Vec<HostPair> = if is_isolated { (0..flows).map(host).collect() } else { Vec::new() };
    let setup = LinkContext { hosts: &hosts, ..LinkContext::new(Rate::from_mbit(1_000), 1, "bench") };
    DisciplineParams::from_args(&selection).expect("valid").build(&setup)
}

/// A discipline with a class for each flow, ten of them below each of a level above, over a link of 1 Gb/s. Two packets of each wait.
struct Classed {
    queue: LinkQueue<Small>,
    now: Time,
}

impl Classed {
    /// A queue with `flows` flows, half of which may exceed their assured rates.
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

/// The number of packets that wait when the heap is measured: two of each of a hundred thousand flows.
const WAITING: u32 = 200_000;

/// The number of packets that pass through a load.
#[derive(Clone, Copy)]
enum Passes {
    /// This number after it has settled.
    Settled(u32),
    /// Enough to visit each flow.
    Heap,
}

impl Passes {
    /// Passes packets: `settled` before the counted ones, or `seen`, and does not drop the load. Always
    /// inlined, so that the number of callers does not change the counts.
    #[inline(always)]
    fn through<L>(self, mut load: L, settled: u32, seen: u32, pass: impl Fn(&mut L)) {
        let passes = match self {
            Self::Settled(count) => settled + count,
            Self::Heap => seen,
        };
        (0..passes).for_each(|_| pass(&mut load));
        std::mem::forget(load);
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let [name, flows, passes] = words.as_slice() else { return };
    let flows: u32 = flows.parse().expect("a number of flows");
    let passes = match passes.as_str() {
        "heap" => Passes::Heap,
        count => Passes::Settled(count.parse().expect("a number of packets")),
    };
    if let Some(case) = CORE_STATELESS.iter().find(|case| case.name == name) {
        return passes.through(case.load(flows), SETTLED, 2 * flows, TwiceTheLoad::arrive);
    }
    if name == "ramp real-rate" {
        return passes.through(RealRates::new(flows), SETTLED, 2 * flows, RealRates::pass);
    }
    if ["prio", "htb", "hfsc"].contains(&name.as_str()) {
        return passes.through(Classed::new(name, flows), SETTLED, 0, Classed::pass);
    }
    if name == "drr+lqd full" {
        // Two packets in and one out, so that one is pushed out.
        let limit = format!("{}p", 2 * flows);
        let load = TwiceTheLoad::new(build("drr", None, &[("limit", &limit)]), packets(flows));
        return passes.through(load, 8 * flows, 8 * flows, TwiceTheLoad::arrive);
    }
    let waiting = match passes {
        Passes::Settled(_) => 2 * flows,
        Passes::Heap => WAITING,
    };
    let load = StandingBacklog::new(standing(name, flows), packets(flows), waiting);
    // Each flow gets its turn before the count starts.
    passes.through(load, 2 * flows, 0, StandingBacklog::pass);
}
