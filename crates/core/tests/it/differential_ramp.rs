//! RAMP against a slow transcript of its controller, and the laws of its dispatcher.

use apportion_core::counted::Counted;
use apportion_core::system::ramp::requirement::{Controller, Requirement};
use apportion_core::system::{DisciplineKind, LinkContext, LinkQueue};
use apportion_core::units::{Bytes, Rate, Span, Time};
use apportion_core::{FlowClass, FlowId, FlowSetting, Queue};
use apportion_testing::properties::cases;
use proptest::prelude::*;

use crate::common::{Log, SimplePacket, packet, read, setup};
use crate::reference::ramp::Controller as SlowController;

#[derive(Clone, Copy, Debug)]
enum Op {
    Enqueue(u32, u64),
    /// Time passes, and packets leave at the rate of the link.
    Advance(u64),
    /// A call that is not needed.
    Spurious(u64),
    Class(u32, bool),
}

fn ops(classes: bool) -> impl Strategy<Value = Vec<Op>> {
    let one = prop_oneof![
        6 => (0u32..4, 40u64..1_500).prop_map(|(flow, size)| vec![Op::Enqueue(flow, size)]),
        4 => (0u64..20_000_000).prop_map(|ns| vec![Op::Advance(ns)]),
        2 => (1usize..30, 100u64..1_500).prop_map(|(n, size)| vec![Op::Enqueue(0, size); n]),
        1 => (0u64..1_000_000_000).prop_map(|ns| vec![Op::Advance(ns)]),
        2 => (0u64..3_000_000).prop_map(|ns| vec![Op::Spurious(ns)]),
        1 => (0u32..4, any::<bool>()).prop_map(move |(flow, real)| {
            if classes { vec![Op::Class(flow, real)] } else { Vec::new() }
        }),
    ];
    prop::collection::vec(one, 1..100).prop_map(|all| all.concat())
}

fn build(pairs: &[&str]) -> Counted<LinkQueue<SimplePacket>> {
    // Flows 0 and 1 are real-rate, 2 and 3 greedy.
    let classes = [FlowClass::RealRate; 2];
    let setup = LinkContext { classes: &classes, ..setup(&[]) };
    Counted::new(read("ramp", pairs).expect("a valid table").build_simple(&setup))
}

/// A link of 10 Mb/s that asks when it is free and at the announced wake-ups.
struct Link {
    queue: Counted<LinkQueue<SimplePacket>>,
    now: Time,
    free: Time,
    sent: Vec<(Time, u32)>,
    log: Log,
}

impl Link {
    fn new(pairs: &[&str]) -> Self {
        let log = Log::default();
        Self { queue: build(pairs), now: Time::ZERO, free: Time::ZERO, sent: Vec::new(), log }
    }

    fn advance(&mut self, span: Span) {
        let end = self.now + span;
        loop {
            let at = if self.free > self.now { Some(self.free) } else { self.queue.next_wakeup() };
            let Some(at) = at.map(|at| at.max(self.now)).filter(|at| *at <= end) else { break };
            self.now = at;
            self.ask();
        }
        self.now = end;
    }

    fn ask(&mut self) {
        if self.free > self.now {
            return;
        }
        if let Some(sent) = self.queue.dequeue(self.now, &mut self.log) {
            self.sent.push((self.now, sent.id));
            self.free = self.now + Rate::from_mbit(10).time_for(sent.size);
        } else if !self.queue.backlog().is_empty() {
            let wakeup = self.queue.next_wakeup();
            assert!(wakeup.is_some_and(|at| at > self.now), "a way on is known");
        }
    }

    fn run(&mut self, ops: &[Op], spurious: bool) {
        for (id, op) in (0..).zip(ops) {
            match *op {
                Op::Enqueue(flow, size) => {
                    self.queue.enqueue(self.now, packet(id, flow, size), &mut self.log);
                    self.ask();
                }
                Op::Advance(ns) => self.advance(Span::from_nanos(ns)),
                Op::Spurious(ns) if spurious => {
                    // Reading changes nothing, and a link without packets may ask at any time.
                    let now = self.now;
                    self.queue.call(&mut self.log, |queue, sink| queue.shares(now, sink, &mut |_, _| {}));
                    self.advance(Span::from_nanos(ns));
                    self.ask();
                }
                Op::Spurious(ns) => self.advance(Span::from_nanos(ns)),
                Op::Class(flow, real) => {
                    let class = if real { FlowClass::RealRate } else { FlowClass::Greedy };
                    assert!(self.queue.inner_mut().set_flow(FlowId(flow), FlowSetting::Class(class)));
                    self.ask();
                }
            }
        }
    }
}

fn flow_of(ops: &[Op], id: u32) -> u32 {
    match ops[id as usize] {
        Op::Enqueue(flow, _) => flow,
        _ => unreachable!("only enqueued packets leave"),
    }
}

/// The departures and the drops, with the readings of `ops` and without.
fn with_and_without_looks(pairs: &[&str], ops: &[Op]) -> [(Vec<(Time, u32)>, Log); 2] {
    [true, false].map(|spurious| {
        let mut link = Link::new(pairs);
        link.run(ops, spurious);
        (link.sent, link.log)
    })
}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn the_controller_is_the_paper_s(
        fills in prop::collection::vec(0u64..40_000, 1..300),
        p in 0.01f64..1.0,
        i in 0.0001f64..0.02,
        d in 0.0f64..0.1,
        l in 0.05f64..1.0,
    ) {
        let pairs = [format!("p={p}"), format!("i={i}"), format!("d={d}"), format!("l={l}")];
        let mut pairs: Vec<&str> = pairs.iter().map(String::as_str).collect();
        pairs.extend(["preset=paper", "anti_windup=false"]);
        let DisciplineKind::Ramp(params) = read("ramp", &pairs).unwrap().kind else { panic!("ramp") };
        let controller = Controller::new(&params, Rate::from_mbit(10));
        let mut ours = Requirement::new(&controller);
        // A flow begins at the floor of 2 %.
        let mut slow = SlowController { l, p, i, d, target: 16.0, x: 0.0, sum: 2.0 / i };
        for fill in fills {
            let share = ours.sample(&controller, (Bytes::new(fill), Bytes::ZERO), None, 0.02, false);
            // The transcript has no bounds.
            let expected = (slow.sample(fill as f64 / 1_024.0) / 100.0).clamp(0.02, 1.0);
            prop_assert!((share - expected).abs() < 1e-9, "{} against {}", share, expected);
        }
    }

    #[test]
    fn reading_shares_and_dequeues_of_an_idle_link_change_nothing(ops in ops(false)) {
        for pairs in [&[][..], &["interface_queue=2p", "leftover=greedy"], &["preset=paper"]] {
            let [with, without] = with_and_without_looks(pairs, &ops);
            prop_assert_eq!(with, without);
        }
    }

    #[test]
    fn packets_keep_their_order_and_none_is_lost_whatever_the_class(ops in ops(true)) {
        let others = GREEDY.map(|greedy| format!("greedy={greedy}"));
        let others = others.iter().map(|greedy| vec![greedy.as_str(), "limit=40p"]);
        let listed = [vec!["limit=30p", "interface_queue=3p"], vec!["period_control=true", "floor=0.3"], vec!["preset=paper", "limit=30p"]];
        for pairs in listed.into_iter().chain(others) {
            let pairs = &pairs[..];
            let mut link = Link::new(pairs);
            link.run(&ops, true);
            // Long enough to drain the backlog: each flow gets the floor.
            link.advance(Span::from_secs(600));
            prop_assert!(link.queue.backlog().is_empty());
            for flow in 0..4 {
                let order: Vec<_> =
                    link.sent.iter().map(|sent| sent.1).filter(|&id| flow_of(&ops, id) == flow).collect();
                prop_assert!(order.is_sorted(), "order of flow {}", flow);
            }
            let offered = ops.iter().filter(|op| matches!(op, Op::Enqueue(..))).count();
            prop_assert_eq!(link.sent.len() + link.log.dropped.len(), offered);
        }
    }
}

#[test]
fn a_look_while_the_link_is_busy_leaves_deadlines_as_they_are() {
    use Op::{Advance, Enqueue, Spurious};
    // Flow 1 has credit for its last packet in the period of the reading, flow 0 for its own in a later one,
    // and both before the interface queue has room.
    let start = [Advance(650_000_000), Enqueue(0, 400)].into_iter();
    let ops = start.chain([Enqueue(0, 200); 6]).chain([1_360, 170, 40].map(|size| Enqueue(1, size)));
    let ops: Vec<_> = ops.chain([Advance(1_500_000), Spurious(1_000_000)]).collect();
    let [with, without] = with_and_without_looks(&["interface_queue=2p", "leftover=greedy"], &ops);
    assert_eq!(with, without);
    // The flow that had credit first leaves first, with and without a reading.
    let last: Vec<_> = without.0.iter().rev().take(2).rev().map(|sent| sent.1).collect();
    assert_eq!(last, [10, 7]);
}

#[test]
fn the_end_of_an_overload_is_told_though_nobody_sends_or_looks() {
    let burst = [Op::Enqueue(0, 1_500); 100].into_iter();
    let ops: Vec<_> = burst.chain([Op::Advance(1_200_000_000), Op::Spurious(0)]).collect();
    let [with, without] = with_and_without_looks(&[], &ops);
    assert_eq!(with, without);
    let told: Vec<_> = without.1.overloads.iter().map(|(at, told)| (*at, told.is_over)).collect();
    assert!(told.last().is_some_and(|(_, is_over)| *is_over), "{told:?}");
}

/// The disciplines that can divide among greedy flows.
const GREEDY: [&str; 18] = [
    "fifo",
    "drr",
    "rr",
    "stfq",
    "scfq",
    "wfq",
    "wf2q",
    "wf2q_plus",
    "fq_codel",
    "choke",
    "head",
    "lqd",
    "random_drop",
    "pfd",
    "red",
    "fred",
    "sred",
    "codel",
];

#[test]
fn a_flow_that_holds_nothing_changes_its_class_and_nothing_else() {
    for greedy in GREEDY {
        let [with, without] = [true, false].map(|changes| {
            let mut link = Link::new(&[&format!("greedy={greedy}"), "limit=60p"]);
            let mut ops = Vec::new();
            for step in 0..4_000 {
                ops.push(Op::Enqueue(2 + step % 5 / 4, 300 + u64::from(step) % 7 * 100));
                ops.push(Op::Advance(300_000));
                // The same number of steps without changes.
                let to = if changes { 9 + step % 40 } else { 9 };
                ops.push(Op::Class(to, step % 3 == 0));
            }
            link.run(&ops, false);
            (link.sent, link.log)
        });
        assert_eq!(with, without, "{greedy}");
    }
}

#[test]
fn the_limit_holds_while_classes_change() {
    for greedy in GREEDY {
        let mut queue = build(&[&format!("greedy={greedy}"), "limit=50p"]);
        let mut log = Log::default();
        for id in 0..6_000 {
            let now = Time::from_nanos(u64::from(id) * 100_000);
            // Flow 2 floods; 3 sends every fourth packet, and changes its class with each fifth of its own.
            let flow = if id % 4 == 3 { 3 } else { 2 };
            queue.enqueue(now, packet(id, flow, 1_000), &mut log);
            if id % 20 == 3 {
                let class = if id % 40 == 3 { FlowClass::RealRate } else { FlowClass::Greedy };
                queue.inner_mut().set_flow(FlowId(3), FlowSetting::Class(class));
            }
            if id % 8 == 0 {
                queue.dequeue(now, &mut log);
            }
            // Both classes may hold 50, and returned packets join with the next call.
            let held = queue.backlog().packets.get();
            assert!(held <= 100, "{greedy}: {held} packets after {id}");
        }
    }
}

#[test]
fn who_becomes_real_rate_takes_what_it_holds_and_no_more() {
    for greedy in GREEDY {
        let mut queue = build(&[&format!("greedy={greedy}"), "limit=50p"]);
        let mut log = Log::default();
        for id in 0..30 {
            queue.enqueue(Time::ZERO, packet(id, 2 + id % 3, 500), &mut log);
        }
        let lost = |flow: u32| log.dropped.iter().filter(|drop| 2 + drop.1 % 3 == flow).count() as u64;
        // The first packet is in the interface queue.
        let due = 10 - lost(3);
        assert!(queue.inner_mut().set_flow(FlowId(3), FlowSetting::Class(FlowClass::RealRate)));
        let mut fill = 0;
        queue.inner().latest_shares(&mut |flow, share| {
            if flow == FlowId(3) {
                fill = share.fill.get() / 500;
            }
        });
        assert_eq!(fill, due, "{greedy}");
        let sent: Vec<_> = std::iter::from_fn(|| queue.dequeue(Time::from_secs(1), &mut log)).collect();
        for flow in 2..5 {
            let order: Vec<_> = sent.iter().filter(|sent| sent.flow.0 == flow).map(|sent| sent.id).collect();
            assert!(order.is_sorted(), "{greedy}: {order:?}");
        }
    }
}

#[test]
fn other_disciplines_know_no_classes_and_show_no_shares() {
    let mut fifo: LinkQueue<SimplePacket> = read("fifo", &[]).unwrap().build_simple(&setup(&[]));
    assert!(!fifo.set_flow(FlowId(0), FlowSetting::Class(FlowClass::RealRate)));
    fifo.shares(Time::ZERO, &mut Log::default(), &mut |flow, share| panic!("{flow:?} {share:?}"));
}
