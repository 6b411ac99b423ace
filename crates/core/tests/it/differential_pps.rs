//! Probabilistic packet scheduling against slow transcripts of its paper: TRED, the ends of flows, and links.

use std::collections::VecDeque;

use apportion_core::label::Label;
use apportion_core::mark::currency_exchange::{CurrencyExchange, ExchangeParams};
use apportion_core::mark::ticket::{TicketMarker, TicketMarkerParams};
use apportion_core::mark::{Marker, MarkerSetup};
use apportion_core::param::Role;
use apportion_core::random::Stream;
use apportion_core::system::catalog::Selection;
use apportion_core::units::{Span, TicketRate, Time};
use apportion_core::{DropReason, LabelKind, Packet, Queue};
use apportion_testing::properties::cases;
use proptest::prelude::*;

use crate::common::{Log, SimplePacket, packet, read, setup};
use crate::reference::red::Outcome;
use crate::reference::tickets::{Link as SlowLink, Policing, Source as SlowSource};
use crate::reference::tred::{Params as SlowTredParams, Stage, Tred as SlowTred};

#[derive(Clone, Copy, Debug)]
enum Op {
    /// A packet arrives, with at most one tag.
    In(Option<u32>),
    /// The oldest packet is sent.
    Out,
    /// The oldest packet is dropped.
    Drop,
    /// A packet passes in the other direction.
    Back(Option<u32>),
    Advance(u64),
    Issue(f64),
}

/// All tags, with a bias to tags at each other's filter bounds; and none.
fn tag() -> impl Strategy<Value = Option<u32>> {
    prop_oneof![
        2 => (0u32..=255).prop_map(Some),
        4 => prop::sample::select(vec![20, 30, 40, 60, 80]).prop_map(Some),
        1 => (0u32..=2).prop_map(Some),
        1 => Just(None),
    ]
}

/// Bursts and pauses, and queues that are long for a while.
fn ops() -> impl Strategy<Value = Vec<Op>> {
    let one = prop_oneof![
        4 => tag().prop_map(|tag| vec![Op::In(tag)]),
        3 => Just(vec![Op::Out]),
        1 => Just(vec![Op::Drop]),
        2 => tag().prop_map(|tag| vec![Op::Back(tag)]),
        2 => (0u64..50_000_000).prop_map(|ns| vec![Op::Advance(ns)]),
        1 => (0u64..3_000_000_000).prop_map(|ns| vec![Op::Advance(ns)]),
        1 => (0.0..3_000.0).prop_map(|rate| vec![Op::Issue(rate)]),
        1 => Just(vec![Op::Issue(0.0)]),
        2 => prop::collection::vec(tag(), 1..20).prop_map(|tags| tags.into_iter().map(Op::In).collect()),
        2 => (1usize..40, tag(), 0u64..2_000_000).prop_map(|(n, tag, ns)| {
            [Op::In(tag), Op::Out, Op::Back(tag), Op::Advance(ns)].repeat(n)
        }),
        1 => (1usize..30, 0u64..2_000_000).prop_map(|(n, ns)| [Op::Out, Op::Advance(ns)].repeat(n)),
    ];
    prop::collection::vec(one, 1..150).prop_map(|all| all.concat())
}

fn tagged(id: u32, kind: LabelKind, tag: Option<u32>) -> SimplePacket {
    let mut packet = packet(id, 0, 500);
    if let Some(tag) = tag {
        packet.set_label(kind, Label::new(f64::from(tag)));
    }
    packet
}

/// The tag on a packet; a label holds all of 0 to 255 exactly.
fn tag_of(packet: &SimplePacket, kind: LabelKind) -> Option<u32> {
    packet.label(kind).map(|label| label.value() as u32)
}

fn reason(outcome: Outcome) -> Option<DropReason> {
    match outcome {
        Outcome::Enqueue => None,
        Outcome::Early => Some(DropReason::Early),
        Outcome::Forced => Some(DropReason::Forced),
        Outcome::Overflow => Some(DropReason::Overflow),
    }
}

/// Thresholds and a `max_p` for which count × p_b is hardly ever 1 exactly, where rounding would decide.
fn tred_params() -> SlowTredParams {
    SlowTredParams {
        limit: 25,
        min_thresh: 5.0,
        max_thresh: 18.0,
        max_p: 0.3,
        w_q: 0.3,
        wait: true,
        packets_per_second: 10e6 / 8.0 / 500.0,
        win_length: 5.0,
        n: 3,
        stage: Stage::Before,
        k: 2.0,
        half: 500_000_000,
        rank: 1,
    }
}

/// AvgRate or InTktRate in ms, the window and the bound of policing.
#[derive(Clone, Debug)]
struct Windows {
    rate: u64,
    policing: u64,
    bound: f64,
}

fn windows() -> impl Strategy<Value = Windows> {
    let bound = prop::sample::select(vec![1.0, 1.25, 2.0, 10.0]);
    (50u64..8_000, 50u64..8_000, bound).prop_map(|(rate, policing, bound)| Windows { rate, policing, bound })
}

impl Windows {
    fn select(&self, role: Role, kind: &str) -> Selection {
        let mut selection = Selection::of(role, kind).unwrap();
        selection.set("preset", "paper").unwrap();
        selection.set("window", &format!("{}ms", self.rate)).unwrap();
        selection.set("policing_window", &format!("{}ms", self.policing)).unwrap();
        selection.set("policing_bound", &self.bound.to_string()).unwrap();
        selection
    }

    fn seconds(&self) -> f64 {
        self.rate as f64 / 1e3
    }

    fn policing(&self, rate: Option<f64>, now: Time) -> Policing {
        Policing::new(self.policing as f64 / 1e3, self.bound, rate, now.as_nanos())
    }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn tred_is_the_paper_s(
        ops in ops(),
        stage in prop::sample::select(vec![Stage::Before, Stage::After, Stage::None]),
        n in 0i32..6,
        k in prop::sample::select(vec![0.0, 1.1, 1.5, 2.0, 4.0]),
        (w_q, interval, window) in (1u32..=100, 10u64..3_000, 50u64..8_000),
        (wait, rank) in (any::<bool>(), prop_oneof![3 => Just(1usize), 1 => 2usize..=4]),
    ) {
        let params = SlowTredParams {
            w_q: f64::from(w_q) / 100.0,
            wait,
            win_length: window as f64 / 1e3,
            n,
            stage,
            k,
            half: interval * 500_000,
            rank,
            ..tred_params()
        };
        let stage = match stage {
            Stage::Before => "before",
            Stage::After => "after",
            Stage::None => "none",
        };
        let keys = format!(
            "preset=paper limit=25p min_th=5p max_th=18p max_p=0.3 w_q={} wait={wait} mean_pktsize=500B window={window}ms n={n} \
             stage={stage} k={k} min_tkt_window={interval}ms min_tkt_rank={rank}",
            params.w_q
        );
        let keys: Vec<&str> = keys.split_whitespace().collect();
        let mut ours = read("tred", &keys).unwrap().build::<SimplePacket>(&setup(&[]));
        let mut slow = SlowTred::new(params);
        let mut random = Stream::new(1, "link");
        let (mut now, mut log) = (Time::ZERO, Log::default());
        for (id, op) in (0..).zip(ops) {
            match op {
                Op::In(tag) => {
                    let outcome = slow.arrive(now.as_nanos(), id, tag, || random.uniform());
                    ours.enqueue(now, tagged(id, LabelKind::Tickets, tag), &mut log);
                    prop_assert_eq!(log.dropped.pop(), reason(outcome).map(|reason| (now, id, reason)));
                }
                Op::Out => {
                    let expected = slow.leave(now.as_nanos());
                    prop_assert_eq!(ours.dequeue(now, &mut log).map(|packet| packet.id), expected);
                }
                Op::Advance(ns) => now += Span::from_nanos(ns),
                Op::Drop | Op::Back(_) | Op::Issue(_) => {}
            }
        }
    }

    #[test]
    fn the_ends_of_flows_are_the_paper_s(
        ops in ops(),
        windows in windows(),
        rate in prop::option::of(1.0..3_000.0),
        start in 0u64..2_000_000_000,
        (at_sink, acknowledged, decay) in (any::<bool>(), any::<bool>(), any::<bool>()),
    ) {
        let start = Time::from_nanos(start);
        let mut selection = windows.select(Role::Marker, "tickets");
        selection.set("decay", &decay.to_string()).unwrap();
        let params = TicketMarkerParams::from_args(&selection.kind_args()).unwrap();
        let tickets = rate.and_then(TicketRate::new);
        let setup = MarkerSetup { tickets, acknowledged, start, random: Stream::new(1, "flow") };
        let (mut ours, kind) = match at_sink {
            true => (TicketMarker::at_sink(&params, setup), LabelKind::AckTickets),
            false => (TicketMarker::new(&params, setup), LabelKind::Tickets),
        };
        let policing = windows.policing(rate, start);
        let counts_sent = at_sink || !acknowledged;
        let mut slow = SlowSource::new(windows.seconds(), counts_sent, decay, policing, start.as_nanos());
        let mut now = start;
        for op in ops {
            match op {
                Op::In(_) => {
                    let mut packet = packet(0, 0, 500);
                    ours.mark(now, &mut packet);
                    prop_assert_eq!(tag_of(&packet, kind), Some(slow.send(now.as_nanos())), "at {}", now);
                }
                Op::Back(tag) => {
                    // One packet each, and sometimes two.
                    let packets = if tag.is_some_and(|tag| tag % 3 == 0) { 2.0 } else { 1.0 };
                    let label = tag.map(|tag| Label::new(f64::from(tag)));
                    Marker::<SimplePacket>::acknowledged(&mut ours, now, packets, label);
                    slow.ack(now.as_nanos(), packets, tag);
                }
                Op::Issue(rate) if tickets.is_some() => {
                    Marker::<SimplePacket>::issue(&mut ours, now, TicketRate::new(rate).unwrap());
                    slow.issue(now.as_nanos(), rate);
                }
                Op::Advance(ns) => now += Span::from_nanos(ns),
                Op::Issue(_) | Op::Out | Op::Drop => {}
            }
        }
    }

    #[test]
    fn a_link_is_the_paper_s_in_both_directions(
        ops in ops(),
        windows in windows(),
        rates in (prop::option::of(1.0..3_000.0), 1.0..3_000.0),
    ) {
        // Without a rate for data, the tickets on acknowledgements of the other direction are that rate.
        let (rate, ack_rate) = rates;
        let params = ExchangeParams::from_args(&windows.select(Role::Exchange, "currency").kind_args()).unwrap();
        let kinds = [LabelKind::Tickets, LabelKind::AckTickets];
        let rates = [rate, Some(ack_rate)];
        let mut ours = [0, 1].map(|way| {
            let tickets = rates[way].and_then(TicketRate::new);
            CurrencyExchange::new(&params, kinds[way], tickets, Stream::new(1, "link"))
        });
        let mut slow =
            rates.map(|rate| SlowLink::new(windows.seconds(), windows.policing(rate, Time::ZERO)));
        let (mut now, mut queue) = (Time::ZERO, VecDeque::new());
        for op in ops {
            let at = now.as_nanos();
            match op {
                Op::In(tag) => {
                    let packet = tagged(0, LabelKind::Tickets, tag);
                    let arriving = ours[0].arrive(now, &packet).map(TicketRate::get);
                    let expected = tag.map(|tag| slow[0].arrive(at, tag));
                    prop_assert_eq!(arriving.is_some(), expected.is_some());
                    queue.push_back((packet, tag));
                }
                Op::Out => {
                    if let Some((mut packet, tag)) = queue.pop_front() {
                        ours[0].exchange(now, &mut packet);
                        let expected = tag.map(|tag| slow[0].relabel(at, tag));
                        prop_assert_eq!(tag_of(&packet, LabelKind::Tickets), expected, "at {}", now);
                    }
                }
                Op::Drop => drop(queue.pop_front()),
                Op::Back(tag) => {
                    let mut packet = tagged(0, LabelKind::AckTickets, tag);
                    let arriving = ours[1].arrive(now, &packet);
                    ours[1].exchange(now, &mut packet);
                    let Some(tag) = tag else { continue };
                    let expected = slow[1].arrive(at, tag);
                    prop_assert_eq!(tag_of(&packet, LabelKind::AckTickets), Some(slow[1].relabel(at, tag)));
                    if rate.is_none() {
                        ours[0].issue(now, arriving.unwrap());
                        slow[0].policing.issue(at, expected);
                    }
                }
                Op::Issue(rate) => {
                    ours[1].issue(now, TicketRate::new(rate).unwrap());
                    slow[1].policing.issue(at, rate);
                }
                Op::Advance(ns) => now += Span::from_nanos(ns),
            }
        }
    }
}

#[test]
fn the_transcript_of_tred_is_put_through_every_branch() {
    // The settings of the differential test, two arrivals of three tags for each departure for a while.
    let mut random = Stream::new(1, "branches");
    for stage in [Stage::Before, Stage::After, Stage::None] {
        let mut slow = SlowTred::new(SlowTredParams { stage, ..tred_params() });
        let mut counts = [0; 4];
        for i in 0..6_000_u64 {
            let tag = [Some(20), Some(30), Some(80), None][random.below(4) as usize];
            let outcome = slow.arrive(1_000_000 * i, 0, tag, || random.uniform());
            counts[outcome as usize] += 1;
            // Half of the time departures exceed arrivals.
            for _ in 0..=random.below(if i % 400 < 200 { 1 } else { 3 }) {
                if random.chance(0.8) {
                    slow.leave(1_000_000 * i);
                }
            }
        }
        assert!(counts[..3].iter().all(|&count| count > 0) && slow.filtered > 0, "{stage:?}: {counts:?}");
    }
}
