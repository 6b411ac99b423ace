//! Made-up runs with plausible numbers, for tests and for viewing the report. Deterministic, without
//! simulation.
#![allow(dead_code, reason = "each test and example uses a part of it")]

use std::collections::BTreeMap;

use apportion_core::queue::DropReason;
use apportion_core::units::{Bytes, Packets, Rate, Span, Time};
use apportion_report::{FlowInfo, PointResults, RunResults};
use apportion_runtime::due::{Dues, Event, FlowDue};
use apportion_runtime::outcome::{
    Allocation, Completion, Count, Distribution, FlowOutcome, LinkOutcome, Outcome, TcpSample,
};

/// A made-up flow.
#[derive(Clone)]
pub struct Made {
    pub name: String,
    pub group: String,
    pub entitlement_kbit: Option<u64>,
    pub got_kbit: u64,
    /// Relative size of its swings.
    pub swing: f64,
    pub delay_ms: f64,
    pub short: bool,
}

/// A made-up discipline, with the effects on its queue.
pub struct Discipline {
    pub label: &'static str,
    pub queue: f64,
    pub swing: f64,
    pub drops: &'static [(DropReason, u64)],
    pub marks: u64,
}

const SAMPLES: u64 = 600;
const SECONDS: u64 = 60;
const WARM_UP: u64 = 10;

/// A small deterministic wobble in -1..1.
fn wobble(seed: u64, stream: u64, k: u64) -> f64 {
    let mut x = seed
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
        .wrapping_add(stream.wrapping_mul(0xD1B5_4A32_D192_ED03))
        .wrapping_add(k.wrapping_mul(0x8CB9_2BA7_2F3D_8DD7));
    x ^= x >> 32;
    x = x.wrapping_mul(0xD6E8_FEB8_6659_FD93);
    x ^= x >> 29;
    (x % 20_001) as f64 / 10_000.0 - 1.0
}

fn distribution(low: f64, typical: f64, count: u64) -> Distribution {
    let at = |share: f64| low + (typical - low) * (-(1.0 - share * 0.9995).ln()) / std::f64::consts::LN_2;
    Distribution {
        count,
        mean: Span::from_secs_f64(typical * 1.2 / 1e3),
        quantiles: Distribution::SHARES.iter().map(|&s| (s, Span::from_secs_f64(at(s) / 1e3))).collect(),
    }
}

fn flow(made: &Made, seed: u64, stream: u64) -> FlowOutcome {
    let measured = SECONDS - WARM_UP;
    let rate = made.got_kbit as f64 * 1e3 * (1.0 + 0.03 * wobble(seed, stream, 0));
    let bytes = (rate * measured as f64 / 8.0) as u64;
    let series = (0..SAMPLES).map(|k| {
        let phase = (k as f64 / 55.0 + stream as f64 * 0.37 + seed as f64 * 0.11).fract();
        let tooth = 1.0 + made.swing * (phase - 0.5) + 0.15 * made.swing * wobble(seed, stream, k + 1);
        let ramp = (k as f64 / 20.0).min(1.0);
        Bytes::new((rate * 0.1 / 8.0 * tooth * ramp).max(0.0) as u64)
    });
    let completion = |k: u64| Completion {
        start: Time::from_millis(10_000 + 400 * k),
        took: Span::from_secs_f64(
            0.05 + 0.01 * made.delay_ms * (1.2 + wobble(seed, stream, 900 + k)) * ((k % 7) + 1) as f64,
        ),
        size: Bytes::new(4_000 * (1 + k % 7).pow(3)),
    };
    FlowOutcome {
        name: made.name.clone(),
        group: made.group.clone(),
        sent: Count { packets: Packets::new(bytes / 990), bytes: Bytes::new(bytes + bytes / 100) },
        delivered: Count { packets: Packets::new(bytes / 1_000), bytes: Bytes::new(bytes) },
        goodput: Some(Bytes::new(bytes * 96 / 100)),
        dropped: BTreeMap::from([(DropReason::Overflow, bytes / 100_000)]),
        lost: 0,
        marked: 0,
        full_tags: 0,
        overloads: 0,
        skipped: 0,
        failures: None,
        retransmits: Some(bytes / 98_000),
        timeouts: Some(u64::from(made.delay_ms > 80.0) * 3),
        fast_retransmits: Some(bytes / 300_000),
        delay: distribution(12.0 + stream as f64, 13.0 + stream as f64 + made.delay_ms, bytes / 1_000),
        is_probe: false,
        media: None,
        completions: if made.short { (0..100).map(completion).collect() } else { Vec::new() },
        earlier: Vec::new(),
        series: series.collect(),
        tcp: (0..SAMPLES).map(|k| tcp(k + stream)).collect(),
    }
}

fn tcp(k: u64) -> TcpSample {
    let srtt = Span::from_millis(20 + k % 10);
    TcpSample { window: 5.0 + (k % 40) as f64 / 8.0, srtt: (k > 0).then_some(srtt) }
}

fn link(discipline: &Discipline, seed: u64, sent: u64) -> LinkOutcome {
    let packets = |k: u64| {
        let phase = (k as f64 / 24.0).fract();
        let q = discipline.queue * (1.0 + discipline.swing * (phase - 0.6 + 0.3 * wobble(seed, 77, k)));
        (q * (k as f64 / 12.0).min(1.0)).max(0.0) as u64
    };
    let typical = discipline.queue * 0.8;
    LinkOutcome {
        name: "bottleneck".into(),
        watched: true,
        rate: Rate::from_mbit(10),
        sent: Count { packets: Packets::new(sent / 1_000), bytes: Bytes::new(sent) },
        dropped: discipline.drops.iter().map(|&(r, n)| (r, n + seed % 5)).collect(),
        lost: 0,
        marked: discipline.marks,
        utilisation: sent as f64 * 8.0 / (10e6 * (SECONDS - WARM_UP) as f64),
        queue_mean: discipline.queue,
        queue_delay: distribution(0.0, typical, sent / 1_000),
        backlog: (0..SAMPLES).map(packets).collect(),
        series: vec![Bytes::new(125_000); SAMPLES as usize],
        allocations: vec![Allocation {
            flow: 0,
            measured: Bytes::new(125_000 * (SECONDS - WARM_UP)),
            series: vec![Bytes::new(12_500); SAMPLES as usize],
            fill: vec![Bytes::new(16_384); SAMPLES as usize],
        }],
        statistics: vec![("avg".into(), discipline.queue)],
        flow_statistics: Vec::new(),
        fault: None,
    }
}

/// One point with these flows, replicated over `seeds`.
pub fn point(discipline: &Discipline, flows: &[Made], seeds: &[u64]) -> PointResults {
    let outcome = |&seed: &u64| {
        let flows: Vec<_> = flows.iter().enumerate().map(|(i, f)| flow(f, seed, i as u64)).collect();
        let sent = flows.iter().map(|f| f.delivered.bytes.get()).sum();
        Outcome {
            seed,
            measured: Span::from_secs(SECONDS - WARM_UP),
            flows,
            links: vec![
                link(discipline, seed, sent),
                LinkOutcome {
                    name: "bottleneck.back".into(),
                    rate: Rate::from_mbit(10),
                    ..LinkOutcome::default()
                },
            ],
            packet_hops: 0,
            events: 0,
            timekeeping: None,
        }
    };
    let info = |f: &Made| FlowInfo {
        name: f.name.clone(),
        group: f.group.clone(),
        customer: None,
        entitlement: f.entitlement_kbit.map(Rate::from_kbit),
    };
    let mut record = PointResults::new(
        discipline.label.into(),
        if discipline.label.is_empty() {
            Vec::new()
        } else {
            discipline
                .label
                .split_once('=')
                .map(|(k, v)| (format!("bottleneck.{k}"), v.into()))
                .into_iter()
                .collect()
        },
        Time::from_secs(WARM_UP),
        Span::from_millis(100),
        flows.iter().map(info).collect(),
    );
    record.outcomes = seeds.iter().map(outcome).collect();
    record
}

pub fn run(title: &str, seeds: &[u64], points: Vec<PointResults>) -> RunResults {
    RunResults {
        title: title.into(),
        scenario:
            "title = \"Who protects whom\"\nseed = 7\nstop = \"60s\"\n\n[topology]\nkind = \"dumbbell\"\n"
                .into(),
        hash: "9f2c41d07ab35e66".into(),
        versions: BTreeMap::from([("apportion".into(), "0.1.0".into())]),
        seeds: seeds.to_vec(),
        complete: true,
        warnings: Vec::new(),
        points,
    }
}

pub const FIFO: Discipline = Discipline {
    label: "queue=fifo",
    queue: 104.0,
    swing: 0.15,
    drops: &[(DropReason::Overflow, 9_120)],
    marks: 0,
};
pub const RED: Discipline = Discipline {
    label: "queue=red",
    queue: 34.0,
    swing: 0.9,
    drops: &[(DropReason::Early, 6_800), (DropReason::Forced, 2_210)],
    marks: 0,
};
pub const DRR: Discipline = Discipline {
    label: "queue=drr",
    queue: 96.0,
    swing: 0.2,
    drops: &[(DropReason::PushOut, 44_500)],
    marks: 0,
};
pub const FQ_CODEL: Discipline = Discipline {
    label: "queue=fq_codel",
    queue: 11.0,
    swing: 1.1,
    drops: &[(DropReason::Early, 44_100), (DropReason::Overflow, 380)],
    marks: 12,
};

/// Ten TCP flows of mixed round-trip times and one UDP flow.
pub fn ten_and_one(udp_kbit: u64, bias: f64, swing: f64, delay_ms: f64) -> Vec<Made> {
    let left = 9_950 - udp_kbit;
    let weight = |i: u64| (1.0 / i as f64).powf(bias);
    let total: f64 = (1..=10).map(weight).sum();
    let mut flows: Vec<Made> = (1..=10)
        .map(|i| Made {
            name: format!("tcp.{i}"),
            group: "tcp".into(),
            entitlement_kbit: Some(909),
            got_kbit: (left as f64 * weight(i) / total) as u64,
            swing,
            delay_ms,
            short: false,
        })
        .collect();
    flows.sort_by(|a, b| a.name.cmp(&b.name));
    flows.push(Made {
        name: "udp".into(),
        group: "udp".into(),
        entitlement_kbit: Some(909),
        got_kbit: udp_kbit,
        swing: 0.05,
        delay_ms,
        short: false,
    });
    flows
}

/// Adds entitlements: twice as much from 30 s on, at an event, and none for the first flow from 40 to 45 s.
pub fn with_dues(mut run: RunResults) -> RunResults {
    for point in &mut run.points {
        let due = |flow: usize, info: &FlowInfo| {
            let rate = info.entitlement.unwrap_or_default().as_bit();
            let at = |k: u64| match k {
                400..450 if flow == 0 => 0,
                0..300 => rate,
                _ => 2 * rate,
            };
            FlowDue {
                measured: Rate::from_bit(rate),
                series: (0..SAMPLES).map(|k| Rate::from_bit(at(k))).collect(),
            }
        };
        let flows = point.flows.iter().enumerate().map(|(flow, info)| due(flow, info)).collect();
        let event = Event { at: Time::from_secs(30), what: "link bottleneck: 20 Mb/s".into() };
        let dues = Dues { flows, events: vec![event] };
        point.dues = vec![Some(dues); point.outcomes.len()];
    }
    run
}

/// The run most people see first.
pub fn quickstart(seeds: &[u64]) -> RunResults {
    run(
        "Who protects whom",
        seeds,
        vec![
            point(&FIFO, &ten_and_one(7_900, 0.9, 0.8, 86.0), seeds),
            point(&RED, &ten_and_one(7_450, 0.6, 1.0, 28.0), seeds),
            point(&DRR, &ten_and_one(912, 0.02, 0.5, 75.0), seeds),
            point(&FQ_CODEL, &ten_and_one(910, 0.04, 0.6, 6.0), seeds),
        ],
    )
}

/// One point: a group of weighted flows, and short transfers without an entitlement.
pub fn weighted(seeds: &[u64]) -> RunResults {
    let mut flows: Vec<Made> = (1..=5)
        .map(|i| Made {
            name: format!("bulk.{i}"),
            group: "bulk".into(),
            entitlement_kbit: Some(600 * i),
            got_kbit: 590 * i + 30,
            swing: 0.4,
            delay_ms: 9.0,
            short: false,
        })
        .collect();
    flows.push(Made {
        name: "web".into(),
        group: "web".into(),
        entitlement_kbit: None,
        got_kbit: 700,
        swing: 1.6,
        delay_ms: 9.0,
        short: true,
    });
    let discipline = Discipline { label: "", ..FQ_CODEL };
    run("Weights and short transfers", seeds, vec![point(&discipline, &flows, seeds)])
}

/// Thirty flows with weights 1 to 30 under two disciplines.
pub fn thirty(seeds: &[u64]) -> RunResults {
    let flows = |power: f64| -> Vec<Made> {
        let total: f64 = (1..=30).map(|i| f64::from(i).powf(power)).sum();
        let made = |i: u32| Made {
            name: format!("bulk.{i}"),
            group: "bulk".into(),
            entitlement_kbit: Some(u64::from(i) * 10_000 / 465),
            got_kbit: (9_900.0 * f64::from(i).powf(power) / total) as u64,
            swing: 0.5,
            delay_ms: 20.0,
            short: false,
        };
        (1..=30).map(made).collect()
    };
    run("Thirty weights", seeds, vec![point(&FIFO, &flows(0.0), seeds), point(&DRR, &flows(0.97), seeds)])
}

/// A sweep of many points of two flows.
pub fn long_sweep(points: usize) -> RunResults {
    let flows = [ten_and_one(900, 0.0, 0.1, 5.0)[0].clone(), ten_and_one(900, 0.0, 0.1, 5.0)[10].clone()];
    let at = |i: usize| {
        let mut point = point(&DRR, &flows, &[7]);
        point.label = format!("rate={i}kbit");
        point.settings = vec![("bottleneck.rate".into(), format!("{i}kbit"))];
        point
    };
    run("A long sweep", &[7], (0..points).map(at).collect())
}

/// Twenty points of a hundred flows in nine groups.
pub fn large(seeds: &[u64]) -> RunResults {
    let labels: Vec<&'static str> = vec![
        "rate=1Mbit",
        "rate=2Mbit",
        "rate=3Mbit",
        "rate=4Mbit",
        "rate=5Mbit",
        "rate=6Mbit",
        "rate=7Mbit",
        "rate=8Mbit",
        "rate=9Mbit",
        "rate=10Mbit",
        "rate=11Mbit",
        "rate=12Mbit",
        "rate=13Mbit",
        "rate=14Mbit",
        "rate=15Mbit",
        "rate=16Mbit",
        "rate=17Mbit",
        "rate=18Mbit",
        "rate=19Mbit",
        "rate=20Mbit",
    ];
    let points = labels.into_iter().enumerate().map(|(p, label)| {
        let flows: Vec<Made> = (0..100)
            .map(|i| Made {
                name: format!("group{}.{}", i % 9, i / 9 + 1),
                group: format!("group{}", i % 9),
                entitlement_kbit: Some(100),
                got_kbit: 60 + 8 * (i % 9) + p as u64,
                swing: 0.7,
                delay_ms: 20.0,
                short: false,
            })
            .collect();
        point(&Discipline { label, ..FQ_CODEL }, &flows, seeds)
    });
    run("A sweep of the rate", seeds, points.collect())
}

/// One point of fourteen groups of one flow each, whose names have one or two digits.
pub fn numbered(seeds: &[u64]) -> RunResults {
    let made = |i: u32| Made {
        name: format!("flow{i}"),
        group: format!("flow{i}"),
        entitlement_kbit: Some(700),
        got_kbit: 700,
        swing: 0.5,
        delay_ms: 20.0,
        short: true,
    };
    let flows: Vec<Made> = (1..=14).map(made).collect();
    run("Fourteen groups", seeds, vec![point(&Discipline { label: "", ..FIFO }, &flows, seeds)])
}
