use std::vec::Vec;

use super::*;
use crate::aqm::sffc::FlowReport;
use crate::packet::Protocol::{self, Tcp, Udp};
use crate::packet::SimplePacket;
use crate::param::Inside;
use crate::system::catalog::{Catalog, Selection};
use crate::system::{DisciplineParams, LinkQueue};
use crate::testing::{Log, packet};
use crate::units::Bytes;
use crate::units::Span;

fn params(pairs: &[(&str, &str)]) -> DisciplineParams {
    let mut selection = Selection::new("sffc", None, None).unwrap();
    for (key, value) in [("discipline", "stfq")].iter().chain(pairs) {
        selection.set(key, value).unwrap();
    }
    DisciplineParams::from_args(&selection).unwrap()
}

fn queue(params: &DisciplineParams) -> LinkQueue<SimplePacket> {
    params.build(&LinkContext::new(Rate::from_mbit(8), 1, "link"))
}

#[test]
fn what_is_let_pass_is_divided_by_the_discipline() {
    let mut queue = queue(&params(&[]));
    let mut log = Log::default();
    for id in 0..40 {
        let flow = u32::from(id >= 30);
        queue.enqueue(Time::ZERO, SimplePacket { protocol: Tcp, ..packet(id, flow, 1_000) }, &mut log);
    }
    let served: Vec<_> =
        (0..20).filter_map(|_| queue.dequeue(Time::ZERO, &mut log)).map(|packet| packet.flow.0).collect();
    assert_eq!(served.iter().filter(|&&flow| flow == 1).count(), 10, "{served:?}");
}

#[test]
fn each_discipline_has_the_size_of_the_queue_and_hides_behind_it() {
    for name in Catalog::inside(Inside::Queue).map(|entry| entry.name) {
        let params = params(&[("discipline", name), ("limit", "7p")]);
        assert_eq!(matches!(params.kind, DisciplineKind::SffcFronted(_)), name != "fifo", "{name}");
        let mut queue = queue(&params);
        let mut log = Log::default();
        (0..20).for_each(|id| queue.enqueue(Time::ZERO, packet(id, id % 2, 1_000), &mut log));
        assert!((1..=7).contains(&queue.backlog().packets.get()), "{name}: {:?}", queue.backlog());
        assert_eq!(log.dropped.len() as u64 + queue.backlog().packets.get(), 20, "{name}");
    }
}

#[test]
fn another_scheduler_that_is_named_stays() {
    let mut selection = Selection::new("drr", Some("sffc"), None).unwrap();
    selection.set("discipline", "fq_codel").unwrap();
    let params = DisciplineParams::from_args(&selection).unwrap();
    assert!(matches!(params.kind, DisciplineKind::Buffered(_)), "{params:?}");
}

/// A source of packets of 1000 bytes: from the losses of the last round trip it sets its rate for the next 10
/// ms.
type Source = fn(&mut f64, u32);

/// Halves its rate on losses.
fn responsive(rate: &mut f64, lost: u32) {
    *rate = if lost > 0 { (*rate / 2.0).max(0.1) } else { *rate + 0.05 };
}

/// Sends 4 Mb/s.
fn constant(rate: &mut f64, _lost: u32) {
    *rate = 5.0;
}

/// Sends 0.4 Mb/s.
fn slow(rate: &mut f64, _lost: u32) {
    *rate = 0.5;
}

/// A link of 8 Mb/s, ten packets in 10 ms, and flows with a round trip of 50 ms.
struct Bench {
    queue: LinkQueue<SimplePacket>,
    flows: Vec<(Protocol, Source)>,
    /// The rate of each flow, the part of a packet that it is owed, and its losses in this round trip.
    states: Vec<(f64, f64, u32)>,
    ticks: u64,
    reports: Vec<FlowReport>,
    /// Packets dropped by the discarder, and by the discipline.
    dropped: [u64; 2],
}

impl Bench {
    fn new(pairs: &[(&str, &str)], flows: &[(Protocol, Source)]) -> Self {
        Self {
            queue: queue(&params(pairs)),
            flows: flows.to_vec(),
            states: flows.iter().map(|_| (1.0, 0.0, 0)).collect(),
            ticks: 0,
            reports: Vec::new(),
            dropped: [0; 2],
        }
    }

    fn now(&self) -> Time {
        Time::ZERO + Span::from_millis(10) * self.ticks
    }

    fn tick(&mut self) {
        self.ticks += 1;
        let (now, mut log) = (self.now(), Log::default());
        for (flow, (rate, owed, lost)) in (0..).zip(&mut self.states) {
            let (protocol, source) = self.flows[flow as usize];
            if self.ticks.is_multiple_of(5) {
                source(rate, core::mem::take(lost));
            }
            *owed += *rate;
            for _ in 0..*owed as u32 {
                let arriving = SimplePacket { protocol, ..packet(flow, flow, 1_000) };
                self.queue.enqueue(now, arriving, &mut log);
            }
            *owed -= owed.floor();
        }
        for &(_, flow, reason) in &log.dropped {
            self.dropped[usize::from(reason != DropReason::Policy)] += 1;
            self.states[flow as usize].2 += 1;
        }
        for _ in 0..10 {
            self.queue.dequeue(now, &mut log);
        }
        let sffc = self.queue.reporter_mut().unwrap();
        sffc.advance(now);
        self.reports.extend(sffc.take_reports());
    }

    fn run(&mut self, seconds: u64) {
        (0..100 * seconds).for_each(|_| self.tick());
    }

    fn is_adaptive(&self, flow: u32) -> bool {
        let mut found = None;
        self.queue.flow_statistics(&mut |id, name, value| {
            if (id.0, name) == (flow, "adaptive") {
                found = Some(value > 0.0);
            }
        });
        found.unwrap()
    }

    fn report(&mut self, flow: u32, departed: u64) {
        let report = FlowReport {
            flow: FlowId(flow),
            arrived: Bytes::new(25_000),
            departed: Bytes::new(departed),
            interval: Span::from_millis(50),
        };
        self.queue.reporter_mut().unwrap().on_report(report);
    }
}

#[test]
fn who_says_tcp_and_ignores_losses_is_found_out() {
    let mut bench = Bench::new(&[], &[(Tcp, constant), (Tcp, responsive), (Tcp, responsive)]);
    bench.run(6);
    assert_eq!([0, 1, 2].map(|flow| bench.is_adaptive(flow)), [false, true, true]);
    bench.run(60);
    assert!(bench.is_adaptive(1) && bench.is_adaptive(2));
    // Behind a discipline without shares, the protocol decides.
    let mut bench = Bench::new(&[("discipline", "red")], &[(Tcp, constant), (Tcp, responsive)]);
    bench.run(6);
    assert!(bench.is_adaptive(0));
}

#[test]
fn who_answers_to_losses_is_adaptive_whatever_it_carries() {
    let mut bench = Bench::new(&[], &[(Udp, constant), (Udp, responsive), (Tcp, responsive)]);
    bench.run(20);
    assert_eq!([0, 1, 2].map(|flow| bench.is_adaptive(flow)), [false, true, true]);
}

#[test]
fn only_who_ignores_losses_is_reported_and_what_the_discipline_loses_of_it() {
    let mut bench = Bench::new(&[], &[(Udp, constant), (Udp, responsive), (Tcp, responsive)]);
    bench.run(3);
    assert_eq!(bench.reports, []);
    bench.run(10);
    assert!(bench.reports.len() > 50 && bench.reports.iter().all(|report| report.flow == FlowId(0)));
    // A third of the link is 16,667 bytes in an interval, of the 25,000 that it sends.
    let departed = |report: &FlowReport| report.departed.get() as f64 / report.arrived.get() as f64;
    let mean = bench.reports.iter().map(departed).sum::<f64>() / bench.reports.len() as f64;
    assert!((0.55..0.8).contains(&mean), "{mean}");
}

#[test]
fn a_flow_of_which_nothing_is_known_may_be_lost_further_on() {
    // The link has room for the flow: it loses nothing here.
    let mut bench = Bench::new(&[], &[(Tcp, constant)]);
    bench.run(1);
    assert!(bench.is_adaptive(0) && bench.queue.reporter().unwrap().carries(FlowId(0)));
    bench.report(0, 10_000);
    bench.run(1);
    assert!(!bench.is_adaptive(0));
    // The reported rate is enforced, and passed on to the upstream routers.
    for _ in 0..20 {
        bench.report(0, 10_000);
        (0..5).for_each(|_| bench.tick());
    }
    assert!(bench.states[0].2 >= 2, "{} of 5 packets lost in 10 ms", bench.states[0].2);
    assert!(bench.reports.last().is_some_and(|report| report.departed < Bytes::new(15_000)));
    // Without reports its declaration counts again, 20 s later, unless there was a verdict meanwhile.
    let mut bench = Bench::new(&[], &[(Tcp, constant)]);
    bench.run(1);
    bench.report(0, 24_000);
    bench.run(19);
    assert!(!bench.is_adaptive(0));
    bench.run(2);
    assert!(bench.is_adaptive(0));
}

#[test]
fn reports_do_not_touch_a_flow_that_answers() {
    let mut bench = Bench::new(&[], &[(Udp, constant), (Udp, responsive), (Tcp, responsive)]);
    bench.run(20);
    assert!(!bench.queue.reporter().unwrap().carries(FlowId(1)));
    bench.report(1, 1_000);
    bench.run(1);
    assert!(bench.is_adaptive(1));
}

#[test]
fn more_flows_than_packets_are_held_to_what_is_fair_in_front_of_the_queue() {
    let mut flows: Vec<(Protocol, Source)> = std::vec![(Udp, slow as Source); 60];
    flows.push((Tcp, responsive));
    let dropped = |limit| {
        let mut bench = Bench::new(&[("limit", limit)], &flows);
        bench.run(5);
        bench.dropped
    };
    // 30 packets arrive for ten that leave.
    let [by_discarder, by_discipline] = dropped("60p");
    assert!(by_discarder > 5 * by_discipline, "{by_discarder} {by_discipline}");
    let [by_discarder, by_discipline] = dropped("61p");
    assert!(by_discarder == 0 && by_discipline > 5_000, "{by_discarder} {by_discipline}");
}

#[test]
fn a_buffer_without_a_size_of_its_own_is_50_ms_of_its_link() {
    // 50 ms of 8 Mbit/s are 50 kB, of 40 Mbit/s 250 kB.
    for discipline in ["stfq", "lqd", "fifo"] {
        let mut queue = queue(&params(&[("discipline", discipline)]));
        let fill = |queue: &mut LinkQueue<SimplePacket>| {
            for id in 0..1_000 {
                let packet = SimplePacket { protocol: Tcp, ..packet(id, id % 2, 1_000) };
                queue.enqueue(Time::ZERO, packet, &mut Log::default());
            }
            queue.backlog().bytes
        };
        assert_eq!(fill(&mut queue), Bytes::new(64_000), "{discipline}");
        queue.set_link_rate(Rate::from_mbit(40));
        assert_eq!(fill(&mut queue), Bytes::new(250_000), "{discipline}");
        queue.set_limit("7p".parse().unwrap());
        queue.set_link_rate(Rate::from_mbit(80));
        for _ in 0..500 {
            queue.dequeue(Time::ZERO, &mut Log::default());
        }
        assert_eq!(fill(&mut queue), Bytes::new(7_000), "{discipline}");
    }
}
