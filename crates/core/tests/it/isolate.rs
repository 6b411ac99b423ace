//! Isolation of hosts: laws of all disciplines that see hosts as their flows, and the shares of hosts and
//! their flows.

use apportion_core::system::{LinkContext, LinkQueue};
use apportion_core::units::{Packets, Rate, Span, Time, Weight};
use apportion_core::{Ecn, FlowId, FlowSetting, HostPair, Queue as _};
use apportion_laws::{Laws, Op};
use apportion_testing::properties::cases;
use proptest::prelude::*;

use crate::common::{Log, SimplePacket, Whole, combinations, keys, packet, read};

/// The words of a queue and its keys, for all disciplines that can isolate hosts.
fn isolated(limit: u64, isolate: &str) -> Vec<(&'static str, Vec<String>)> {
    let table = |(kind, drop)| {
        let plain = keys(kind, drop, limit);
        let isolated = |isolate: &str| [&plain[..], &[format!("isolate={isolate}")]].concat();
        let accepts =
            |keys: &[String]| read(kind, &keys.iter().map(String::as_str).collect::<Vec<_>>()).is_ok();
        let is_accepted = accepts(&isolated("source"));
        is_accepted.then(|| (kind, if isolate.is_empty() { plain.clone() } else { isolated(isolate) }))
    };
    let all: Vec<_> = combinations().into_iter().filter_map(table).collect();
    assert!(all.len() > 50, "{}", all.len());
    all
}

fn pair(source: u32, destination: u32) -> HostPair {
    HostPair { source, destination }
}

fn build(kind: &str, keys: &[String], hosts: &[HostPair], weights: &[Weight]) -> LinkQueue<SimplePacket> {
    let pairs: Vec<&str> = keys.iter().map(String::as_str).collect();
    let params = read(kind, &pairs).unwrap_or_else(|error| panic!("{kind} {keys:?}: {error}"));
    params.build_simple(&LinkContext { hosts, weights, ..LinkContext::new(Rate::from_mbit(10), 1, "link") })
}

/// The hosts of flows 0 to 4 of the laws, chosen so that both ends of some flows have other flows.
const HOSTS: [HostPair; 5] = [
    HostPair { source: 0, destination: 0 },
    HostPair { source: 0, destination: 1 },
    HostPair { source: 1, destination: 0 },
    HostPair { source: 1, destination: 1 },
    HostPair { source: 2, destination: 1 },
];

#[test]
fn every_discipline_that_isolates_hosts_keeps_the_laws_of_all() {
    let weights = [1.0, 2.0].map(|weight| Weight::new(weight).expect("a weight"));
    for isolate in ["source", "both"] {
        for limit in [6, 20] {
            for (kind, keys) in isolated(limit, isolate) {
                let laws = Laws::default().cases(12).limit(Packets::new(limit));
                let tried = laws.verify_changes(|_| Whole(build(kind, &keys, &HOSTS, &weights)));
                tried.unwrap_or_else(|violation| panic!("{kind} {keys:?}: {violation}"));
                if limit == 6 {
                    let shaped =
                        [&keys[..], &["shaper=token_bucket".to_owned(), "rate=1Mbit".to_owned()]].concat();
                    let laws = laws.cases(8).holds_back();
                    let tried = laws.verify_changes(|_| Whole(build(kind, &shaped, &HOSTS, &weights)));
                    tried.unwrap_or_else(|violation| panic!("{kind} {shaped:?}: {violation}"));
                }
            }
        }
    }
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let enqueue = (0u32..5, 40u64..1_500, any::<bool>());
    let op = prop_oneof![
        4 => enqueue.prop_map(|(flow, size, capable)| Op::Enqueue { flow, size, capable }),
        3 => Just(Op::Dequeue),
        2 => (0u64..60_000_000).prop_map(Op::Advance),
    ];
    prop::collection::vec(op, 1..300)
}

/// The departures with their ECN fields, and the drops, in order.
fn run(mut queue: LinkQueue<SimplePacket>, ops: &[Op]) -> (Vec<(u32, Ecn)>, Log) {
    let (mut log, mut left, mut now) = (Log::default(), Vec::new(), Time::ZERO);
    for (id, op) in (0..).zip(ops) {
        match *op {
            Op::Advance(ns) => now += Span::from_nanos(ns),
            Op::Enqueue { flow, size, capable } => {
                let ecn = if capable { Ecn::Ect0 } else { Ecn::NotEct };
                queue.enqueue(now, SimplePacket { ecn, ..packet(id, flow, size) }, &mut log);
            }
            _ => left.extend(queue.dequeue(now, &mut log).map(|packet| (packet.id, packet.ecn))),
        }
    }
    // Marks are reported when packets leave.
    log.marked.clear();
    (left, log)
}

proptest! {
    #![proptest_config(cases(48))]

    #[test]
    fn with_one_flow_per_host_nothing_changes(ops in ops()) {
        let own: Vec<HostPair> = (0..5).map(|flow| pair(flow, flow)).collect();
        let plain = isolated(20, "");
        for isolate in ["source", "destination"] {
            for ((kind, plain), (_, keys)) in plain.iter().zip(isolated(20, isolate)) {
                // CHOKe and PPV drop a packet from the middle of a queue, whose token belongs to another packet of
                // the host; CAKE isolates hosts itself.
                if !["choke", "cake", "ppv"].contains(kind) {
                    let [without, with] = [plain, &keys].map(|keys| run(build(kind, keys, &own, &[]), &ops));
                    prop_assert_eq!(with, without, "{} {:?}", kind, keys);
                }
            }
        }
    }
}

/// The traffic on a link of 10 Mb/s, in steps of 0.8 ms, the time of a packet of 1000 B on the link.
struct Traffic<'a> {
    /// Flows that send one packet in each step.
    steady: &'a [u32],
    /// Flows that send one packet in turn, `each_step` of them in each step.
    in_turn: std::ops::Range<u32>,
    each_step: u32,
    steps: u64,
}

impl Traffic<'_> {
    /// Packets that left, by flow, in the second half of the time.
    fn served(&self, queue: &mut LinkQueue<SimplePacket>) -> Vec<u64> {
        let mut log = Log::default();
        let mut served = vec![0; 70_000];
        let mut turn = self.in_turn.clone().cycle();
        for step in 0..self.steps {
            let now = Time::from_nanos(800_000 * step);
            for flow in self.steady {
                queue.enqueue(now, packet(0, *flow, 1_000), &mut log);
            }
            for _ in 0..self.each_step {
                queue.enqueue(now, packet(0, turn.next().expect("a cycle"), 1_000), &mut log);
            }
            let sent = queue.dequeue(now, &mut log);
            if let Some(sent) = sent.filter(|_| step >= self.steps / 2) {
                served[sent.flow.index()] += 1;
            }
        }
        served
    }
}

fn strings(keys: &[&str]) -> Vec<String> {
    keys.iter().map(|key| (*key).to_owned()).collect()
}

/// The disciplines that divide evenly, with buffers that a flow fills, and the tolerance of shares: for
/// random decisions, four standard deviations of the packets in [`share_of_one`].
const FAIR: [(&str, &[&str], f64); 7] = [
    ("drr", &["limit=200p"], 0.01),
    ("rr", &["limit=200p"], 0.01),
    ("stfq", &["limit=200p", "drop=lqd"], 0.01),
    ("wf2q_plus", &["limit=200p"], 0.01),
    ("fq_codel", &["limit=200p"], 0.01),
    ("stfq", &["limit=200p", "drop=pfd"], 0.01),
    // The default queue is too short for the weights of the flows of one host.
    ("csfq", &["limit=200p", "preset=paper"], 0.05),
];

/// The share of flow 0, the only one of its host, against a host with flows 1 to `flows`.
fn share_of_one(kind: &str, keys: &[&str], flows: u32, isolate: Option<&str>) -> f64 {
    let mut keys = strings(keys);
    keys.extend(isolate.map(|isolate| format!("isolate={isolate}")));
    let hosts: Vec<HostPair> = (0..=flows).map(|flow| pair(u32::from(flow > 0), flow)).collect();
    let mut queue = build(kind, &keys, &hosts, &[]);
    let steps = if flows > 10_000 { 40_000 } else { 8_000 };
    let traffic = Traffic { steady: &[0], in_turn: 1..flows + 1, each_step: 3, steps };
    let served = traffic.served(&mut queue);
    served[0] as f64 / served.iter().sum::<u64>() as f64
}

#[test]
fn a_host_with_one_flow_has_as_much_as_one_with_thousands() {
    for (kind, keys, off) in FAIR {
        for flows in [1, 10, 1_000, 65_000] {
            for isolate in ["source", "both"] {
                let share = share_of_one(kind, keys, flows, Some(isolate));
                assert!((share - 0.5).abs() <= off, "{kind} {keys:?}, {flows} flows: {share}");
            }
        }
        // Without isolation the flow alone among ten or more gets less than a third.
        let share = share_of_one(kind, keys, 1_000, None);
        assert!(share < 0.33, "{kind}: {share}");
    }
}

#[test]
fn flows_of_a_host_share_its_part_by_their_weights() {
    // Host 1 has flows 1, 2 and 3 with weights 1, 2 and 5: of each 16 packets, 8 are of flow 0.
    let weights = [1.0, 1.0, 2.0, 5.0].map(|weight| Weight::new(weight).expect("a weight"));
    let hosts = [pair(0, 0), pair(1, 0), pair(1, 0), pair(1, 0)];
    for (kind, keys, off) in FAIR {
        let keys = [strings(keys), strings(&["isolate=source"])].concat();
        let mut queue = build(kind, &keys, &hosts, &weights);
        let traffic = Traffic { steady: &[0, 1, 2, 3], in_turn: 0..1, each_step: 0, steps: 16_000 };
        let served = traffic.served(&mut queue);
        let total: u64 = served.iter().sum();
        for (flow, share) in [8.0, 1.0, 2.0, 5.0].into_iter().enumerate() {
            let (share, had) = (share / 16.0, served[flow] as f64 / total as f64);
            assert!((had - share).abs() <= off, "{kind} {keys:?}, flow {flow}: {had}, not {share}");
        }
    }
}

#[test]
fn both_ends_count_and_that_with_more_flows_decides() {
    for forged in [false, true] {
        // Flow 0 is alone at both ends; 500 flows have one destination and as many sources, or the reverse.
        let other = |flow| if forged { pair(flow, 1) } else { pair(1, flow) };
        let hosts: Vec<HostPair> = [pair(0, 0)].into_iter().chain((1..=500).map(other)).collect();
        let share = |isolate: &str| {
            let mut queue = build("drr", &strings(&["limit=2000p", isolate]), &hosts, &[]);
            let traffic = Traffic { steady: &[0], in_turn: 1..501, each_step: 3, steps: 20_000 };
            let served = traffic.served(&mut queue);
            served[0] as f64 / served.iter().sum::<u64>() as f64
        };
        assert!((share("isolate=both") - 0.5).abs() < 0.01, "{forged}: {}", share("isolate=both"));
        let (seen, unseen) = if forged {
            ("isolate=destination", "isolate=source")
        } else {
            ("isolate=source", "isolate=destination")
        };
        assert!((share(seen) - 0.5).abs() < 0.01, "{forged}: {}", share(seen));
        assert!(share(unseen) < 0.05, "{forged}: {}", share(unseen));
    }
}

#[test]
fn no_host_gains_by_mixing_sizes() {
    // Host 1 floods with 40 B in flow 1 and sends 1500 B in each of 37 others, so that most of its packets in
    // turn are large while most tokens are small; or it has a flow of 1500 B against a flood of 40 B of 400
    // flows.
    for (floods, large) in [(1..2, 2..39), (2..402, 1..2)] {
        for (kind, keys, _) in FAIR.into_iter().filter(|(kind, ..)| *kind != "rr") {
            let hosts: Vec<HostPair> = (0..402).map(|flow| pair(u32::from(flow > 0), 0)).collect();
            let mut queue = build(kind, &[strings(keys), strings(&["isolate=source"])].concat(), &hosts, &[]);
            let (mut log, mut served, mut now) = (Log::default(), [0.0; 2], Time::ZERO);
            let (mut small, mut big) = (floods.clone().cycle(), large.clone().cycle());
            for step in 0..60_000 {
                queue.enqueue(now, packet(0, 0, 1_500), &mut log);
                for _ in 0..40 {
                    queue.enqueue(now, packet(0, small.next().expect("a cycle"), 40), &mut log);
                }
                queue.enqueue(now, packet(0, big.next().expect("a cycle"), 1_500), &mut log);
                let until = now + Span::from_nanos(1_200_000);
                while now < until {
                    let Some(sent) = queue.dequeue(now, &mut log) else { break };
                    now += Span::from_nanos(800 * sent.size.get());
                    if step >= 20_000 {
                        served[usize::from(sent.flow.0 > 0)] += sent.size.get() as f64;
                    }
                }
                now = now.max(until);
            }
            let share = served[0] / (served[0] + served[1]);
            // A burst of small packets overflows CSFQ's buffer, at the cost of the flood alone.
            let most = if kind == "csfq" { 0.6 } else { 0.52 };
            assert!((0.48..most).contains(&share), "{kind} {keys:?}, {floods:?}: {share}");
        }
    }
}

#[test]
fn other_hosts_count_from_the_next_packet_on() {
    let mut queue =
        build("drr", &strings(&["limit=200p", "isolate=both"]), &[pair(0, 0), pair(1, 1), pair(1, 1)], &[]);
    let traffic = Traffic { steady: &[0, 1, 2], in_turn: 0..1, each_step: 0, steps: 4_000 };
    let parts = |served: Vec<u64>| [0, 1, 2].map(|flow| (served[flow] as f64 / 100.0).round() / 20.0);
    assert_eq!(parts(traffic.served(&mut queue)), [0.5, 0.25, 0.25]);
    // While packets wait, flow 2 gets the number of a flow of another host.
    assert!(queue.set_flow(FlowId(2), FlowSetting::Hosts(pair(2, 2))));
    assert!(!queue.backlog().is_empty());
    assert_eq!(parts(traffic.served(&mut queue)), [0.35; 3]);
}

#[test]
fn isolation_refuses_what_goes_by_flows_or_divides_nothing() {
    for kind in ["fred", "ramp", "sffc", "nbq", "hcsfq", "tred", "rio", "prio", "htb", "hfsc", "sp_pifo"] {
        let error = read(kind, &["isolate=both"]).expect_err(kind);
        assert!(
            error
                .starts_with(&format!("`isolate`: `{}` goes by ", if kind == "nbq" { "sffc" } else { kind })),
            "{error}"
        );
        assert!(
            error.ends_with("leave `isolate` out, or take another discipline, such as \"drr\""),
            "{error}"
        );
    }
    for (kind, keys, named) in [
        ("codel", &["isolate=both"][..], "`fifo` with `codel`"),
        ("drr", &["drop=tail", "isolate=both"], "`drr` with `tail`"),
        ("dualpi2", &["isolate=both"], "`dualpi2`"),
    ] {
        let error = read(kind, keys).expect_err(kind);
        assert!(
            error.starts_with(&format!("`isolate`: {named} would not divide the link among hosts")),
            "{error}"
        );
    }
    let error = read("drr", &["isolate=host"]).expect_err("no word");
    assert_eq!(error, "`isolate`: `host` is not one of source, destination, both");
    assert!(
        !build("drr", &[], &[], &[]).set_flow(FlowId(0), FlowSetting::Hosts(pair(1, 1))),
        "drr knows no hosts"
    );
}
