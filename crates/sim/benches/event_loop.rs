//! The event loop on a small and on a wide dumbbell, and the event queue alone.
//!
//! A dumbbell's throughput is in packet hops: transmissions over all links.

use std::hint::black_box;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use apportion_core::units::{Span, Time};
use apportion_scenario::model::Scenario;
use apportion_sim::events::{Event, Events};
use apportion_sim::{Detail, Simulation};
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

/// `flows` Reno flows of 1999 over a bottleneck with RED.
fn dumbbell(flows: u32, rate: &str, stop: &str) -> Scenario {
    let text = format!(
        r#"
        seed = 1
        stop = "{stop}"
        [topology]
        kind = "dumbbell"
        pairs = {flows}
        bottleneck = {{ rate = "{rate}", delay = "20ms", queue = {{ kind = "red", limit = "110p" }} }}
        access = {{ rate = "100Mbit", delay = "1ms + 0.1ms * i" }}
        [flow.reno]
        count = {flows}
        from = "l{{i}}"
        to = "r{{i}}"
        tcp = "ns2-235"
        start = {{ between = ["0s", "500ms"] }}
    "#
    );
    let suite = apportion_scenario::load(&text, Path::new("bench.toml"), &[], &|path| std::fs::read(path))
        .expect("valid");
    suite.points.into_iter().next().expect("a point").scenario
}

fn dumbbells(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("dumbbell");
    group.sample_size(10);
    for (flows, rate, stop) in [(30, "10Mbit", "10s"), (1_000, "100Mbit", "2s")] {
        let scenario = dumbbell(flows, rate, stop);
        let world = || Simulation::new(&scenario, 1, Detail::Counts, &mut |_| None).expect("small");
        let mut once = world();
        once.run(&AtomicBool::new(false));
        group.throughput(Throughput::Elements(once.packet_hops()));
        group.bench_function(BenchmarkId::from_parameter(flows), |bencher| {
            bencher.iter_batched(
                world,
                |mut simulation| {
                    simulation.run(&AtomicBool::new(false));
                    simulation
                },
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

/// One event out and another one in, with `pending` events waiting: events of links, which are near and go to
/// the calendar, and of connections, which go to the timing wheels.
fn queue(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("events");
    let horizon = Span::from_millis(50);
    for pending in [100, 10_000] {
        for kind in ["link", "timer"] {
            let event = |index| if kind == "link" { Event::Arrival(index) } else { Event::Timer(index) };
            let mut events = Events::new(pending as usize, horizon, f64::from(pending) / 0.05);
            let mut spread = 1u64;
            let mut gap = move || {
                // A linear congruential generator (Knuth's MMIX) is as random as this needs and costs next to
                // nothing.
                spread =
                    spread.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                Span::from_nanos((spread >> 33) % horizon.as_nanos())
            };
            for index in 0..pending {
                events.schedule(Time::ZERO, Time::ZERO + gap(), event(index));
            }
            group.bench_function(BenchmarkId::new(kind, pending), |bencher| {
                bencher.iter(|| {
                    if let Some((now, event)) = events.pop(Time::MAX) {
                        events.schedule(now, now + gap(), black_box(event));
                    }
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, dumbbells, queue);
criterion_main!(benches);
