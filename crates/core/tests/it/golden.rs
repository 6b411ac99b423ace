//! Golden traces: short, readable, and with a mark for every branch that they must go through.

use std::collections::BTreeSet;

use apportion_core::aqm::detection::DetectionParams;
use apportion_core::aqm::red::{ENTRY, Red, RedParams};
use apportion_core::buffer::Buffer;
use apportion_core::label::Label;
use apportion_core::limit::{Limit, Threshold};
use apportion_core::param::EntryArgs;
use apportion_core::random::Stream;
use apportion_core::schedule::fifo::Fifo;
use apportion_core::units::{MeanPackets, Packets, Rate, Ratio, Span, Time};
use apportion_core::{DropReason, Ecn, LabelKind, Packet as _, Queue};

use crate::common::{Log, SimplePacket, build, packet};

/// RED with thresholds 3 and 6, gentle up to 12, 16 packets, weight 0.1, on a link of a packet per
/// millisecond.
struct RedTrace {
    queue: Buffer<Fifo<SimplePacket>, Red>,
    now: Time,
    id: u32,
    marks: BTreeSet<&'static str>,
    text: String,
}

impl RedTrace {
    fn new() -> Self {
        let packets = |n| Limit::Packets(Packets::new(n));
        let defaults = RedParams::from_args(&EntryArgs::defaults(&ENTRY)).expect("the defaults");
        let detection = DetectionParams {
            min_th: Threshold::Packets(MeanPackets::new(3)),
            max_th: Threshold::Packets(MeanPackets::new(6)),
            w_q: Ratio::clamped(0.1),
            gentle: true,
            ..defaults.detection
        };
        let params = RedParams { limit: Some(packets(16).into()), detection, ecn: true, ..defaults };
        let red = Red::new(&params, Rate::from_mbit(4), Stream::new(7, "golden"));
        let queue = Buffer::new(Fifo::new(), red);
        Self { queue, now: Time::ZERO, id: 0, marks: BTreeSet::new(), text: String::new() }
    }

    /// A packet arrives. Records losses and marks, and the first time that a branch is taken.
    fn arrive(&mut self, idle: bool) {
        let q = self.queue.backlog().packets.get();
        let before = self.queue.policy_mut().avg();
        // Every fourth packet can be marked.
        let ecn = if self.id.is_multiple_of(4) { Ecn::Ect0 } else { Ecn::NotEct };
        let mut log = Log::default();
        self.queue.enqueue(self.now, SimplePacket { ecn, ..packet(self.id, 0, 500) }, &mut log);
        let avg = self.queue.policy_mut().avg();
        let fate = match (log.dropped.first(), log.marked.first()) {
            (Some((_, _, reason)), _) => reason.name(),
            (_, Some(_)) => "marked",
            _ => "joins",
        };
        let mark = match log.dropped.first().map(|dropped| dropped.2) {
            Some(DropReason::Forced) => "forced",
            Some(DropReason::Overflow) => "overflow",
            Some(_) if avg < 6.0 => "ramp drop",
            Some(_) => "gentle drop",
            None if !log.marked.is_empty() => "mark",
            None if idle && avg < before * 0.8 => "idle decay",
            None if avg < 3.0 => "below min",
            None if avg < 6.0 => "spared on the ramp",
            None => "spared in the gentle part",
        };
        if self.marks.insert(mark) || fate != "joins" {
            let (now, id) = (self.now.to_string(), self.id);
            self.text += &format!("{now:>5}  packet {id:>3}  q {q:>2}  avg {avg:>6.3}  {fate:<8}  {mark}\n");
        }
        self.id += 1;
    }

    fn serve(&mut self) -> bool {
        self.now += Span::from_millis(1);
        self.queue.dequeue(self.now, &mut Log::default()).is_some()
    }
}

#[test]
fn red_from_below_its_minimum_to_overflow_and_back_to_idle() {
    let mut trace = RedTrace::new();
    // Load 1, then 1.5 up the ramp, then bursts with nothing served until the buffer is full, then load 2.
    for _ in 0..3 {
        trace.arrive(false);
        trace.serve();
    }
    for i in 0..24 {
        trace.arrive(false);
        trace.arrive(false);
        trace.serve();
        if i % 2 == 0 {
            trace.serve();
        }
    }
    for _ in 0..14 {
        trace.arrive(false);
    }
    for _ in 0..6 {
        trace.serve();
        trace.arrive(false);
        trace.arrive(false);
    }
    while trace.serve() {}
    trace.now += Span::from_millis(9);
    trace.arrive(true);

    let branches = [
        "below min",
        "spared on the ramp",
        "ramp drop",
        "mark",
        "spared in the gentle part",
        "gentle drop",
        "forced",
        "overflow",
        "idle decay",
    ];
    assert_eq!(trace.marks, branches.into(), "{}", trace.text);
    assert!(trace.text.lines().count() <= 60);
    insta::assert_snapshot!(trace.text);
}

#[test]
fn pie_lets_a_burst_pass_then_drops_and_decays() {
    // A link of a packet per millisecond, with two arrivals each for 600 ms, then one every other for 600 ms.
    let mut queue = build("pie", &["limit=1000p", "ecn=true"], &[]);
    let mut text = String::new();
    let mut counts = [0, 0, 0];
    for ms in 0..1_200u32 {
        let now = Time::from_millis(u64::from(ms));
        let mut log = Log::default();
        let arrivals = if ms < 600 { 2 } else { ms % 2 };
        for i in 0..arrivals {
            let ecn = if i == 0 { Ecn::Ect0 } else { Ecn::NotEct };
            queue.enqueue(now, SimplePacket { ecn, ..packet(2 * ms + i, 0, 1_000) }, &mut log);
        }
        queue.dequeue(now, &mut log);
        let seen = [arrivals as usize, log.marked.len(), log.dropped.len()];
        counts.iter_mut().zip(seen).for_each(|(count, seen)| *count += seen);
        if ms % 30 == 29 {
            let mut drop_prob = 0.0;
            queue.statistics(&mut |name, value| {
                drop_prob = if name == "drop_prob" { value } else { drop_prob }
            });
            let [arrived, marked, dropped] = std::mem::take(&mut counts);
            let waiting = queue.backlog().packets.get();
            text += &format!(
                "{:>7}  {arrived:>2} arrived, {marked:>2} marked, {dropped:>2} dropped, {waiting:>3} wait, p = {drop_prob:.6}\n",
                now.to_string()
            );
        }
    }
    assert!(text.lines().count() <= 60);
    insta::assert_snapshot!(text);
}

#[test]
fn dualpi2_marks_what_is_l4s_and_reaches_overload() {
    // A link of a packet per millisecond, with one classic packet each and an L4S packet every other
    // millisecond, for 900 ms; then an L4S packet every other millisecond alone.
    let mut queue = build("dualpi2", &["limit=1000p"], &[]);
    let mut text = String::new();
    let mut counts = [0; 4];
    for ms in 0..1_500u32 {
        let now = Time::from_millis(u64::from(ms));
        let mut log = Log::default();
        if ms < 900 {
            queue.enqueue(now, packet(2 * ms, 0, 1_000), &mut log);
        }
        if ms % 2 == 0 {
            queue.enqueue(now, SimplePacket { ecn: Ecn::Ect1, ..packet(2 * ms + 1, 1, 1_000) }, &mut log);
        }
        let sent = queue.dequeue(now, &mut log);
        let l_dropped = log.dropped.iter().filter(|dropped| dropped.1 % 2 == 1).count();
        let is_l = sent.is_some_and(|sent| sent.id % 2 == 1);
        let seen = [usize::from(is_l), log.marked.len(), l_dropped, log.dropped.len() - l_dropped];
        counts.iter_mut().zip(seen).for_each(|(count, seen)| *count += seen);
        if ms % 30 == 29 {
            let mut drop_prob = 0.0;
            queue.statistics(&mut |_, value| drop_prob = value);
            let [sent, marked, l_dropped, dropped] = std::mem::take(&mut counts);
            let waiting = queue.backlog().packets.get();
            text += &format!(
                "{:>7}  L4S: {sent:>2} sent, {marked:>2} marked, {l_dropped:>2} dropped; classic: {dropped:>2} dropped; \
                 {waiting:>3} wait, p_C = {drop_prob:.6}\n",
                now.to_string()
            );
        }
    }
    assert!(text.lines().count() <= 60);
    insta::assert_snapshot!(text);
}

/// A link of a packet per millisecond. An L4S flow and an ECT(0) flow send six packets in ten milliseconds
/// each, and between 300 and 600 ms an ECT(1) flood sends two in each. Each packet has the tickets of 1,000 a
/// second at the rate of its flow.
fn l4s_transcript(kind: &str, pairs: &[&str]) -> String {
    const NAMES: [&str; 3] = ["L4S", "ECT(0)", "flood"];
    let mut queue = build(kind, pairs, &[]);
    let (mut text, mut id) = (String::new(), 0);
    let (mut log, mut sent) = (Log::default(), [0; 3]);
    for ms in 0..900u64 {
        let now = Time::from_millis(ms);
        let flood = if (300..600).contains(&ms) { 2 } else { 0 };
        let responsive = u32::from(ms * 6 / 10 != (ms + 1) * 6 / 10);
        for (flow, count, tickets) in [(0, responsive, 1.667), (1, responsive, 1.667), (2, flood, 0.5)] {
            for _ in 0..count {
                let ecn = if flow == 1 { Ecn::Ect0 } else { Ecn::Ect1 };
                let mut arrival = SimplePacket { ecn, ..packet(3 * id + flow, flow, 1_000) };
                arrival.set_label(LabelKind::Tickets, Label::new(1_000.0 * tickets));
                queue.enqueue(now, arrival, &mut log);
                id += 1;
            }
        }
        if let Some(packet) = queue.dequeue(now, &mut log) {
            sent[packet.flow.index()] += 1;
        }
        if ms % 50 == 49 {
            text += &format!("{:>5}", now.to_string());
            let Log { marked, dropped, .. } = std::mem::take(&mut log);
            for (flow, sent) in std::mem::take(&mut sent).into_iter().enumerate() {
                let is_of = |id: u32| id as usize % 3 == flow;
                let marked = marked.iter().filter(|(_, id)| is_of(*id)).count();
                let dropped = dropped.iter().filter(|(_, id, _)| is_of(*id)).count();
                let name = NAMES[flow];
                text += &format!("  {name} {sent:>2} sent {marked:>3} marked {dropped:>3} dropped;");
            }
            text += &format!(" {:>3} wait\n", queue.backlog().packets.get());
        }
    }
    text
}

#[test]
fn csfq_marks_the_excess_of_l4s_and_drops_that_of_a_flood() {
    insta::assert_snapshot!(l4s_transcript("csfq", &["l4s=true", "limit=100p"]));
}

#[test]
fn pfd_marks_l4s_in_place_of_early_drops_and_pushes_a_flood_out() {
    insta::assert_snapshot!(l4s_transcript(
        "fifo",
        &["drop=pfd", "l4s=true", "limit=100p", "p=0.1", "thresh=0.65"]
    ));
}

#[test]
fn pfd_marks_l4s_by_its_own_delay_where_flows_have_queues() {
    insta::assert_snapshot!(l4s_transcript(
        "stfq",
        &["drop=pfd", "l4s=true", "limit=100p", "p=0.1", "thresh=0.65"]
    ));
}

#[test]
fn tred_marks_l4s_by_the_tickets_and_drops_a_flood() {
    insta::assert_snapshot!(l4s_transcript(
        "tred",
        &["l4s=true", "limit=110p", "w_q=0.02", "min_th=5p", "max_th=90p"]
    ));
}

#[test]
fn codel_enters_speeds_up_leaves_and_relapses() {
    // A link of a packet per millisecond. 400 packets at once, only a trickle for a while, then 300 again.
    let mut queue = build("codel", &["limit=1000p"], &[]);
    let mut text = String::new();
    let mut now = Time::ZERO;
    let mut below = true;
    for ms in 0..1_200u32 {
        let mut log = Log::default();
        let burst = match ms {
            0 => 400,
            500 => 300,
            _ => 0,
        };
        for id in 0..burst {
            queue.enqueue(now, packet(10_000 * u32::from(ms >= 500) + id, 0, 1_000), &mut log);
        }
        now += Span::from_millis(1);
        let sent = queue.dequeue(now, &mut log);
        for (at, id, reason) in log.dropped {
            let waiting = queue.backlog().packets.get();
            text += &format!("{:>6}  drops {id:>5} ({})  {waiting:>3} wait\n", at.to_string(), reason.name());
            below = false;
        }
        if sent.is_none() && !below {
            text += &format!("{:>6}  empty\n", now.to_string());
            below = true;
        }
    }
    assert_eq!(text.matches("empty").count(), 2);
    assert!(text.lines().count() <= 60);
    insta::assert_snapshot!(text);
}

#[test]
fn cobalt_takes_back_what_it_signalled_and_counts_overflows() {
    // A link of a packet per millisecond and a buffer of 300: 150 packets at once, a trickle, 150 again while
    // the ramp runs backwards, and two arrivals a millisecond from 1 s on.
    let mut queue = build("cobalt", &["limit=300p"], &[]);
    let mut text = String::new();
    let (mut now, mut prob) = (Time::ZERO, 0.0);
    for ms in 0..1_800u32 {
        let mut log = Log::default();
        let burst = match ms {
            0 | 400 => 150,
            1_000.. => 2,
            _ => u32::from(ms % 2 == 0),
        };
        for id in 0..burst {
            queue.enqueue(now, packet(1_000 * ms + id, 0, 1_000), &mut log);
        }
        now += Span::from_millis(1);
        queue.dequeue(now, &mut log);
        for (at, id, reason) in log.dropped.iter().filter(|_| ms < 1_000) {
            let waiting = queue.backlog().packets.get();
            text += &format!("{:>6}  drops {id:>6} ({})  {waiting:>3} wait\n", at.to_string(), reason.name());
        }
        let before = prob;
        queue.statistics(&mut |name, value| prob = if name == "drop_prob" { value } else { prob });
        if ms % 100 == 99 && (before > 0.0 || ms > 1_000) {
            text += &format!(
                "{:>6}  drop_prob {prob:.4}  {:>3} wait\n",
                now.to_string(),
                queue.backlog().packets.get()
            );
        }
    }
    assert!(text.lines().count() <= 60);
    insta::assert_snapshot!(text);
}
