//! Nanoseconds for one enqueue and one dequeue of each discipline with a standing backlog of two packets per
//! flow, for early drops, for push-outs from full buffers, and for marking and exchanging tickets.
//!
//! Packets are 16 bytes and come from the flows in a scattered order, so that a hundred thousand flows do not
//! profit from adjacent memory.

mod common;

use std::hint::black_box;

use apportion_core::mark::currency_exchange::{CurrencyExchange, ExchangeParams};
use apportion_core::mark::{Marker, MarkerParams, MarkerSetup};
use apportion_core::param::Role;
use apportion_core::random::Stream;
use apportion_core::system::catalog::Selection;
use apportion_core::system::{DisciplineParams, LinkContext, LinkQueue};
use apportion_core::units::{Rate, Span, TicketRate, Time};
use apportion_core::{FlowId, LabelKind, Queue};
use common::{
    CORE_STATELESS, Discard, RealRates, SETTLED, Small, StandingBacklog, TwiceTheLoad, build, packets,
};
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, criterion_group, criterion_main};

/// A name, `kind`, `drop` and the other keys.
type Case<'a> = (&'a str, &'a str, Option<&'a str>, &'a [(&'a str, &'a str)]);

fn disciplines(criterion: &mut Criterion) {
    let cases: [Case<'_>; 14] = [
        ("fifo", "fifo", None, &[("limit", "1000000p")]),
        ("fifo+red", "red", None, &[("limit", "1000000p"), ("min_th", "10p"), ("max_th", "900000p")]),
        ("fifo+rio", "rio", None, &[("limit", "1000000p"), ("out_max_th", "900000p")]),
        ("fifo+fred", "fred", None, &[("limit", "1000000p"), ("min_th", "10p"), ("max_th", "900000p")]),
        ("fifo+sred", "sred", None, &[("limit", "1000000p")]),
        ("fifo+bred", "bred", None, &[("limit", "1000000p"), ("w_m", "1000000p")]),
        ("choke", "choke", None, &[("limit", "1000000p"), ("max_th", "900000p")]),
        ("fifo+tred", "tred", None, &[("limit", "1000000p"), ("min_th", "10p"), ("max_th", "900000p")]),
        ("fifo+codel", "codel", None, &[("limit", "1000000p")]),
        ("fifo+lqd", "lqd", None, &[("limit", "1000000p")]),
        ("drr+tail", "drr", Some("tail"), &[("limit", "1000000p")]),
        ("drr+codel", "drr", Some("codel"), &[("limit", "1000000p")]),
        (
            "fq_codel",
            "fq_codel",
            None,
            &[("limit", "1000000p"), ("memory_limit", "4000MB"), ("flows", "200000")],
        ),
        (
            "fq_codel hashed",
            "fq_codel",
            None,
            &[("limit", "1000000p"), ("memory_limit", "4000MB"), ("classify", "hashed")],
        ),
    ];
    for case in cases {
        measure(criterion, case, &[1, 1_000, 100_000]);
    }
    for (name, isolate) in [("fq_codel isolate=source", "source"), ("fq_codel isolate=both", "both")] {
        let limits = [("limit", "1000000p"), ("memory_limit", "4000MB")];
        let pairs = [limits[0], limits[1], ("isolate", isolate)];
        measure(criterion, (name, "fq_codel", None, &pairs), &[1_000]);
    }
    for (name, kind) in [
        ("rr+lqd", "rr"),
        ("drr+lqd", "drr"),
        ("stfq+lqd", "stfq"),
        ("scfq+lqd", "scfq"),
        ("wf2q_plus+lqd", "wf2q_plus"),
        ("wf2q+lqd", "wf2q"),
    ] {
        // The buffer never fills: otherwise this would measure push-out.
        let case = (name, kind, None, &[("limit", "4000000p")][..]);
        measure(criterion, case, &[10, 1_000, 100_000, 1_000_000]);
    }
}

fn measure(criterion: &mut Criterion, (name, kind, drop, pairs): Case<'_>, flows: &[u32]) {
    let mut group = criterion.benchmark_group(name);
    for &flows in flows {
        let mut load = StandingBacklog::new(build(kind, drop, pairs), packets(flows), 2 * flows.max(8));
        group.bench_function(BenchmarkId::from_parameter(flows), |bencher| bencher.iter(|| load.pass()));
    }
    group.finish();
}

/// RAMP with real-rate flows that keep two packets waiting at their allocations, a packet in and a packet
/// out; the queues are sampled as often as on a link of 1 Gb/s.
fn rate_matching(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ramp real-rate flows");
    for flows in [10, 100, 1_000_u32] {
        let mut load = RealRates::new(flows);
        // Time for the allocations to settle.
        (0..SETTLED).for_each(|_| load.pass());
        group.bench_function(BenchmarkId::from_parameter(flows), |bencher| {
            bencher.iter(|| load.pass());
        });
    }
    group.finish();
}

/// Probabilistic fair drop behind start-time fair queueing while nothing overflows, a packet in and a packet
/// out: below the threshold it only counts, above it each fiftieth arrival pushes out the head of the longest
/// queue. [`push_out`] measures the cost of overflow.
fn early_drop(criterion: &mut Criterion) {
    for (name, packets_per_flow) in [("stfq+pfd below thresh", 8.0), ("stfq+pfd above thresh, p = 0.02", 2.5)]
    {
        let mut group = criterion.benchmark_group(name);
        for flows in [10, 1_000, 100_000, 1_000_000_u32] {
            // Two packets per flow wait: 0.25 of 8, or 0.8 of 2.5, of a buffer with a threshold of 0.65.
            let limit = format!("{}p", (packets_per_flow * f64::from(flows)) as u64);
            let mut queue =
                build("stfq", Some("pfd"), &[("limit", &limit), ("p", "0.02"), ("thresh", "0.65")]);
            let packets = packets(flows);
            let waiting = 2 * u64::from(flows);
            let (mut now, mut i) = (Time::ZERO, 0_usize);
            let mut arrive = |queue: &mut LinkQueue<Small>, now| {
                queue.enqueue(now, packets[i & (packets.len() - 1)], &mut Discard);
                i = i.wrapping_add(1);
            };
            while queue.backlog().packets.get() < waiting {
                arrive(&mut queue, now);
            }
            group.bench_function(BenchmarkId::from_parameter(flows), |bencher| {
                bencher.iter(|| {
                    now += Span::from_nanos(10);
                    arrive(&mut queue, now);
                    // An arrival that causes a drop leaves the buffer as it was.
                    if queue.backlog().packets.get() > waiting {
                        black_box(queue.dequeue(now, &mut Discard));
                    }
                });
            });
        }
        group.finish();
    }
}

/// Nanoseconds for two arrivals and a departure at a full buffer of two packets per flow, with one packet
/// dropped.
fn push_out(criterion: &mut Criterion) {
    for (scheduler, drop, pairs) in [
        ("drr", "tail", &[][..]),
        ("drr", "lqd", &[]),
        ("drr", "lqd", &[("thresholds", "rtt"), ("victim", "difference")]),
        ("drr", "random_drop", &[]),
        ("drr", "pfd", &[]),
        ("drr", "pfd", &[("victim", "proportional")]),
        ("stfq", "pfd", &[]),
    ] {
        let settings: String = pairs.iter().map(|(_, value)| format!(" {value}")).collect();
        let mut group = criterion.benchmark_group(format!("overload: {scheduler}+{drop}{settings}"));
        for flows in [10, 1_000, 100_000, 1_000_000_u32] {
            let limit = format!("{}p", 2 * flows);
            let mut selection = Selection::new(scheduler, Some(drop), None).expect("known");
            for (key, value) in pairs.iter().chain(&[("limit", limit.as_str())]) {
                selection.set(key, value).expect("valid");
            }
            let rtts: Vec<Span> =
                (0..flows).map(|flow| Span::from_millis(u64::from(20 + flow % 180))).collect();
            let setup = LinkContext { rtts: &rtts, ..LinkContext::new(Rate::from_mbit(1_000), 1, "bench") };
            let mut queue: LinkQueue<Small> =
                DisciplineParams::from_args(&selection).expect("valid").build(&setup);
            let mut i = 0_u32;
            let mut arrive = |queue: &mut LinkQueue<Small>, now| {
                i = i.wrapping_add(1);
                let flow = FlowId((i.wrapping_mul(0x9e37_79b1) >> 7) % flows);
                queue.enqueue(now, Small { flow, size: 1_000, label: 0, id: i }, &mut Discard);
            };
            let mut now = Time::ZERO;
            for _ in 0..3 * flows {
                arrive(&mut queue, now);
            }
            group.bench_function(BenchmarkId::from_parameter(flows), |bencher| {
                bencher.iter(|| {
                    now += Span::from_nanos(10);
                    arrive(&mut queue, now);
                    arrive(&mut queue, now);
                    black_box(queue.dequeue(now, &mut Discard))
                });
            });
        }
        group.finish();
    }
}

/// The time for each arrival, with two arrivals for each departure, after `settled` arrivals.
fn at_twice_the_load(
    group: &mut BenchmarkGroup<'_, WallTime>,
    flows: u32,
    mut load: TwiceTheLoad,
    settled: u32,
) {
    (0..settled).for_each(|_| load.arrive());
    group.bench_function(BenchmarkId::from_parameter(flows), |bencher| bencher.iter(|| load.arrive()));
}

/// SF-FC with unresponsive flows that send twice what the link can carry, for each packet in: all flows are active
/// all the time, and the end of an interval of 50 ms, which divides the link, comes every 12,500 packets.
fn soft_fair(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("sffc non-adaptive flows");
    for flows in [10, 1_000, 10_000_u32] {
        // Some intervals, after which discard rates stand.
        let queue = build("sffc", None, &[("limit", "64kB")]);
        at_twice_the_load(&mut group, flows, TwiceTheLoad::new(queue, packets(flows)), 100_000);
    }
    group.finish();
}

/// Core-stateless fair queueing on a link with twice its load, for each arrival. `instructions.rs` counts its
/// instructions.
fn core_stateless(criterion: &mut Criterion) {
    for case in &CORE_STATELESS {
        let mut group = criterion.benchmark_group(case.name);
        for flows in [10, 1_000, 100_000, 1_000_000_u32] {
            at_twice_the_load(&mut group, flows, case.load(flows), SETTLED);
        }
        group.finish();
    }
}

/// Nanoseconds that tickets add to a discipline for each packet: the mark at its source with the previous
/// acknowledgement, and the exchange at a link.
fn tickets(criterion: &mut Criterion) {
    let packets = packets(1);
    let random = || Stream::new(1, "bench");
    let tickets = TicketRate::new(40e6);
    let (mut now, mut i) = (Time::ZERO, 0_usize);
    let mut next = || {
        now += Span::from_micros(1);
        i = i.wrapping_add(1);
        (now, packets[i & (packets.len() - 1)])
    };

    let selection = Selection::of(Role::Marker, "tickets").expect("known");
    let setup = MarkerSetup { tickets, acknowledged: true, start: Time::ZERO, random: random() };
    let mut marker = MarkerParams::from_args(&selection.kind_args()).expect("valid").build(setup);
    criterion.bench_function("tickets: mark", |bencher| {
        bencher.iter(|| {
            let (now, mut packet) = next();
            Marker::<Small>::acknowledged(&mut marker, now, 1.0, None);
            marker.mark(now, &mut packet);
            black_box(packet)
        });
    });

    let selection = Selection::of(Role::Exchange, "currency").expect("known");
    let params = ExchangeParams::from_args(&selection.kind_args()).expect("valid");
    let mut exchange = CurrencyExchange::new(&params, LabelKind::Tickets, tickets, random());
    criterion.bench_function("tickets: exchange", |bencher| {
        bencher.iter(|| {
            let (now, mut packet) = next();
            exchange.arrive(now, &packet);
            exchange.exchange(now, &mut packet);
            black_box(packet)
        });
    });
}

criterion_group!(
    benches,
    disciplines,
    rate_matching,
    core_stateless,
    soft_fair,
    early_drop,
    push_out,
    tickets
);
criterion_main!(benches);
