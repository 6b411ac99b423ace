//! TRED with a ticket exchange in the kernel compared with this project's Rust: the same packets, times and
//! random numbers.

use apportion_core::aqm::tred::{Tred, TredParams};
use apportion_core::aqm::{Admission, BufferPolicy};
use apportion_core::label::Label;
use apportion_core::mark::currency_exchange::{CurrencyExchange, ExchangeParams};
use apportion_core::packet::{FlowId, LabelKind, Packet as _, SimplePacket};
use apportion_core::param::Role;
use apportion_core::queue::{Backlog, DropReason, Sink};
use apportion_core::random::Stream;
use apportion_core::schedule::fifo::Fifo;
use apportion_core::system::any::PolicyParams;
use apportion_core::system::catalog::Selection;
use apportion_core::units::{Bytes, Packets, Rate, TicketRate, Time};
use apportion_kernel::program::{Object, Tickets, program};
use apportion_kernel::tickets::TicketSettings;
use apportion_live::{frame, wire_label};
use apportion_testing::properties::cases;
use proptest::prelude::*;

use crate::common::sequences::{self, RATE, at_once, draw, policy, sending_times, times, words};
use crate::common::{frame_v4, frame_v6, is_possible, run, run_with_four};

/// The bound stated in docs/kernel.md for the deviation of the average queue and of ExpectTkt.
const STATED: f64 = 1e-6;
/// The sizes of the paper in bytes, which both measure alike.
const SIZES: [(&str, &str); 3] = [("limit", "165kB"), ("min_th", "7500B"), ("max_th", "82500B")];

fn params(set: &[(&str, &str)]) -> TredParams {
    match policy("tred", &SIZES, set) {
        PolicyParams::Tred(params) => params,
        other => panic!("{other:?}"),
    }
}

/// A packet of a sequence.
#[derive(Clone, Copy, Debug)]
struct Sent {
    micros: u64,
    size: usize,
    tickets: Option<Label>,
}

/// The fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Early,
    Forced,
    Overflow,
    Passed(Option<Label>),
}

struct Nothing;

impl Sink<SimplePacket> for Nothing {
    fn dropped(&mut self, _: Time, _: SimplePacket, _: DropReason) {}
    fn marked(&mut self, _: Time, _: &SimplePacket) {}
}

/// The queue of `crates/core` before the virtual queue, with an exchange after it.
struct Reference {
    queue: Tred,
    /// The exchange, with the issue rate that it gets once it writes tickets.
    exchange: Option<(CurrencyExchange, Option<TicketRate>)>,
    /// The time at which the link becomes idle, and the time until which idleness was noted, in microseconds.
    empty: u64,
    noted: u64,
}

impl Reference {
    fn new(params: &TredParams, exchange: Option<(&ExchangeParams, f64)>) -> Self {
        let exchange = exchange.map(|(params, issued)| {
            let exchange = CurrencyExchange::new(params, LabelKind::Tickets, None, Stream::new(6, "tags"));
            (exchange, TicketRate::new(issued))
        });
        Self { queue: Tred::new(params, RATE, Stream::new(5, "drops")), exchange, empty: 0, noted: 0 }
    }

    fn admit(&mut self, sent: &Sent) -> Fate {
        let now = Time::from_nanos(sent.micros * 1_000);
        let mut packet = SimplePacket::new(0, FlowId(0), Bytes::new(sent.size as u64));
        if let Some(tickets) = sent.tickets {
            packet.set_label(LabelKind::Tickets, tickets);
        }
        if self.empty <= sent.micros {
            let asked = Time::from_nanos(self.empty.max(self.noted) * 1_000);
            assert!(self.queue.dequeue(asked, &mut Fifo::<SimplePacket>::new(), &mut Nothing).is_none());
            self.noted = sent.micros;
        }
        let wait = self.empty.saturating_sub(sent.micros);
        // Whether more than one full packet waits.
        let packets = if wait > 1_500 { 2 } else { u64::from(wait > 0) };
        let backlog = Backlog { packets: Packets::new(packets), bytes: Bytes::new(wait) };
        if let Some((exchange, _)) = &mut self.exchange {
            exchange.arrive(now, &packet);
        }
        match self.queue.admit(now, &mut packet, backlog) {
            Admission::Drop(DropReason::Early) => Fate::Early,
            Admission::Drop(DropReason::Forced) => Fate::Forced,
            Admission::Drop(DropReason::Overflow) => Fate::Overflow,
            Admission::Accept => {
                self.empty = sent.micros + wait + sent.size as u64;
                if let Some((exchange, issued)) = &mut self.exchange {
                    // A loaded program starts with its first packet.
                    if let Some(issued) = issued.take_if(|_| sent.tickets.is_some()) {
                        exchange.issue(now, issued);
                    }
                    exchange.exchange(now, &mut packet);
                }
                Fate::Passed(packet.label(LabelKind::Tickets))
            }
            other => panic!("{other:?}"),
        }
    }

    fn average(&self) -> f64 {
        let mut average = 0.0;
        BufferPolicy::<SimplePacket>::statistics(&self.queue, &mut |name, value| {
            if name == "avg" {
                average = value;
            }
        });
        average
    }
}

/// Builds the frame of a packet.
fn labelled(sent: &Sent) -> (Vec<u8>, Option<frame::IpHeader>) {
    sequences::labelled(sent.size, 9, sent.tickets.map(|tickets| (LabelKind::Tickets, tickets)))
}

/// The queue in the kernel, with the next random numbers of the reference.
struct Kernel {
    program: Tickets,
    drops: Stream,
    tags: Stream,
    next: [u32; 2],
    is_stochastic: bool,
}

impl Kernel {
    fn new(params: &TredParams, exchange: Option<(&ExchangeParams, f64)>) -> Self {
        let settings = TicketSettings::new(params, RATE).unwrap();
        let is_stochastic = exchange.is_some_and(|(params, _)| format!("{params:?}").contains("Stochastic"));
        let settings = match exchange {
            Some((params, issued)) => {
                settings.with_exchange(params, TicketRate::new(issued).unwrap()).unwrap()
            }
            None => settings,
        };
        let (mut drops, mut tags) = (Stream::new(5, "drops"), Stream::new(6, "tags"));
        let next = [draw(&mut drops), draw(&mut tags)];
        Self { program: Tickets::load_with(&settings, true).unwrap(), drops, tags, next, is_stochastic }
    }

    fn admit(&mut self, sent: &Sent) -> Fate {
        let (bytes, ip) = labelled(sent);
        let before = self.program.counts().unwrap();
        let [low, high] = words(sent.micros * 1_000);
        let cb = [low, high, self.next[0], self.next[1]];
        let (verdict, out) = run_with_four(self.program.program().unwrap(), &bytes, cb);
        let after = self.program.counts().unwrap();
        // The reference draws only for these packets.
        if after.judged > before.judged {
            self.next[0] = draw(&mut self.drops);
        }
        match verdict {
            0 => {
                let label = wire_label::read(&out, ip);
                if label.is_some() && self.is_stochastic {
                    self.next[1] = draw(&mut self.tags);
                }
                Fate::Passed(label.map(|(kind, label)| {
                    assert_eq!(kind, LabelKind::Tickets);
                    label
                }))
            }
            2 if after.all.overflow > before.all.overflow => Fate::Overflow,
            2 if after.forced > before.forced => Fate::Forced,
            2 if after.all.early > before.all.early => Fate::Early,
            other => panic!("verdict {other}"),
        }
    }
}

/// The result of running a sequence in both.
#[derive(Debug, Default)]
struct Compared {
    /// The fates in the kernel.
    fates: Vec<Fate>,
    /// Packets dropped in only one, or for another reason.
    different: usize,
    /// The number of labels passed by both that differ, and the maximum difference in codes.
    labels: usize,
    codes: u32,
    /// The maximum deviations of the average queue, relative to 1500 B, and of ExpectTkt, relative to itself.
    average: f64,
    expected: f64,
}

/// Runs a sequence in both.
fn both(params: &TredParams, exchange: Option<(&ExchangeParams, f64)>, sequence: &[Sent]) -> Compared {
    let (mut kernel, mut reference) = (Kernel::new(params, exchange), Reference::new(params, exchange));
    let mut compared = Compared::default();
    for sent in sequence {
        let (ours, theirs) = (kernel.admit(sent), reference.admit(sent));
        match (ours, theirs) {
            (Fate::Passed(Some(ours)), Fate::Passed(Some(theirs))) => {
                compared.labels += usize::from(ours != theirs);
                compared.codes = compared.codes.max(ours.code().abs_diff(theirs.code()));
            }
            _ => compared.different += usize::from(ours != theirs),
        }
        let state = kernel.program.state().unwrap();
        let average = state.average.as_nanos() as f64 / 1e3 - reference.average();
        compared.average = compared.average.max(average.abs() / 1_500.0);
        match (state.expected, reference.queue.expect_tkt()) {
            (Some(ours), Some(theirs)) => {
                compared.expected = compared.expected.max((ours / theirs - 1.0).abs());
            }
            (ours, theirs) => assert_eq!(ours, theirs),
        }
        compared.fates.push(ours);
    }
    compared
}

/// Generates flows at these rates, with these tickets on each packet of 1000 B, for `seconds`.
fn flows(of: &[(u64, Option<f64>)], seconds: u64) -> Vec<Sent> {
    let mut sequence = Vec::new();
    for (flow, (rate, tickets)) in of.iter().enumerate() {
        let times = sending_times(flow, *rate, seconds);
        sequence.extend(times.map(|micros| Sent { micros, size: 1_000, tickets: tickets.map(Label::new) }));
    }
    sequence.sort_by_key(|sent| sent.micros);
    sequence
}

/// Flows with more and fewer tickets, and one without, at twice the rate of the link.
const LOADED: [(u64, Option<f64>); 5] = [
    (1_000_000, Some(80.0)),
    (2_000_000, Some(200.0)),
    (6_000_000, Some(30.0)),
    (6_000_000, Some(60.0)),
    (1_000_000, None),
];

#[test]
fn fates_and_averages_are_those_of_the_queue() {
    if !is_possible() {
        return;
    }
    let loaded = flows(&LOADED, 5);
    // A link that is idle, then loaded, then idle.
    let mut idle = flows(&[(1_000_000, Some(80.0)), (2_000_000, Some(40.0))], 2);
    idle.extend(loaded[..4_000].iter().map(|sent| Sent { micros: sent.micros + 3_000_000, ..*sent }));
    idle.extend(
        flows(&[(500_000, Some(3.0))], 3)
            .iter()
            .map(|sent| Sent { micros: sent.micros + 9_000_000, ..*sent }),
    );
    let paper: &[_] =
        &[("n", "3"), ("per", "packet"), ("expect", "mean"), ("keep", "0%"), ("relabel", "false")];
    let sets: [&[(&str, &str)]; 7] = [
        &[],
        paper,
        &[("wait", "false"), ("gentle", "true"), ("n", "1")],
        &[("stage", "after"), ("window", "500ms")],
        &[("stage", "none"), ("expect", "mean"), ("k", "0")],
        &[("factor", "false"), ("w_q", "0.02")],
        &[("max_p", "0.5"), ("min_tkt_window", "20ms"), ("keep", "50%")],
    ];
    for set in sets {
        for (name, sequence) in [("loaded", &loaded), ("idle", &idle)] {
            let compared = both(&params(set), None, sequence);
            let of = |fate: Fate| compared.fates.iter().filter(|own| **own == fate).count();
            let Compared { fates, different, labels, codes, average, expected } = &compared;
            println!(
                "{name} {set:?}: {} packets, {} early, {} forced, {} by the queue; {different} differ, {labels} labels by {codes} codes \
                 at most; average {average:.1e}, ExpectTkt {expected:.1e}",
                fates.len(),
                of(Fate::Early),
                of(Fate::Forced),
                of(Fate::Overflow),
            );
            assert!(*average < STATED && *expected < STATED, "{average} {expected}");
            // A label at the midpoint between two codes may be rounded to either.
            assert!(
                *different == 0 && *codes <= 1 && labels * 1_000 <= fates.len(),
                "{different} {labels} {codes}"
            );
            assert!(of(Fate::Early) + of(Fate::Forced) > 500 || name == "idle", "{name}");
        }
    }
}

fn exchange_params(set: &[(&str, &str)]) -> ExchangeParams {
    let mut selection = Selection::of(Role::Exchange, "currency").unwrap();
    for (key, value) in set {
        selection.set(key, value).unwrap();
    }
    ExchangeParams::from_args(&selection.kind_args()).unwrap()
}

#[test]
fn tickets_are_exchanged_as_by_the_exchange_behind_the_queue() {
    if !is_possible() {
        return;
    }
    let mut sequence = flows(&LOADED, 5);
    let later = sequence.clone().into_iter().map(|sent| Sent { micros: sent.micros + 9_000_000, ..sent });
    sequence.extend(later);
    let sets: [(&[(&str, &str)], f64); 6] = [
        (&[], 30_000.0),
        (&[("bits", "17"), ("policing_window", "500ms")], 3_000_000.0),
        (&[("bits", "12"), ("rounding", "down"), ("window", "1s")], 500_000.0),
        (&[("rounding", "stochastic")], 2_500.0),
        (&[("policing_bound", "1"), ("issue_window", "0s")], 40_000.0),
        (&[("bits", "4")], 500_000.0),
    ];
    for (set, issued) in sets {
        let exchange = exchange_params(set);
        let compared = both(&params(&[]), Some((&exchange, issued)), &sequence);
        let Compared { fates, different, labels, codes, .. } = &compared;
        println!(
            "{set:?}, {issued} tickets a second: of {} packets {different} differ, {labels} labels by {codes} codes at most",
            fates.len()
        );
        // A difference of half a ticket may change the rounding.
        assert!(
            *different == 0 && *codes <= 1 && labels * 500 <= fates.len(),
            "{different} {labels} {codes}"
        );
    }
}

fn any_sequence() -> impl Strategy<Value = Vec<Sent>> {
    // Gaps from 0 to beyond the windows; tickets of all sizes, and none.
    let gap = prop_oneof![
        6 => 0_u64..1_200,
        1 => Just(0_u64),
        1 => 1_200_u64..200_000,
        1 => 200_000_u64..9_000_000,
    ];
    let tickets = prop_oneof![
        1 => Just(None),
        1 => Just(Some(0.0)),
        8 => (1.0..400.0_f64).prop_map(Some),
        1 => (1.0..1e8_f64).prop_map(Some),
    ];
    prop::collection::vec((gap, 60_usize..1_514, tickets), 1..400).prop_map(|sent| {
        let mut micros = 1;
        let place = |(gap, size, tickets): (u64, usize, Option<f64>)| {
            micros += gap;
            Sent { micros, size, tickets: tickets.map(|tickets| Label::new(tickets.round())) }
        };
        sent.into_iter().map(place).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 60, ..cases(24) })]
    #[test]
    fn any_sequence_has_the_same_fates(sequence in any_sequence(), set in 0_usize..7, issued in 100.0..1e6_f64) {
        if !is_possible() {
            return Ok(());
        }
        // An average that follows the queue at once, so that a few packets cover the whole curve.
        let keys = [
            ("w_q", "0.2"), ("max_p", "0.05"), ("wait", "false"), ("gentle", "true"), ("per", "packet"), ("n", "2"), ("keep", "0%"),
        ];
        let exchange = exchange_params(&[("bits", "17")]);
        let compared = both(&params(&keys[..set]), Some((&exchange, issued)), &sequence);
        // Sequences diverge if a draw lies within the error of p.
        prop_assert!(compared.different <= 1 + sequence.len() / 100, "{} of {}", compared.different, sequence.len());
        prop_assert!(compared.average < 1e-4 && compared.expected < 1e-4, "{compared:?}");
        prop_assert!(compared.codes <= 4, "{} codes", compared.codes);
    }
}

#[test]
fn what_is_decided_meanwhile_is_counted_by_the_next() {
    if !is_possible() {
        return;
    }
    let sequence = flows(&LOADED, 6);
    let (params, exchange) =
        (params(&[("stage", "none"), ("window", "500ms")]), exchange_params(&[("window", "1s")]));
    let exchange = Some((&exchange, 30_000.0));
    let (mut kernel, mut reference) = (Kernel::new(&params, exchange), Reference::new(&params, exchange));
    let mut sums = [[0.0; 2]; 3];
    for (i, sent) in sequence.iter().enumerate() {
        // For every third packet another processor holds the state.
        kernel.program.hold(i % 3 == 1).unwrap();
        let fates = [kernel.admit(sent), reference.admit(sent)];
        kernel.program.hold(false).unwrap();
        if sent.micros < 2_000_000 {
            continue;
        }
        let state = kernel.program.state().unwrap();
        let pairs = [
            fates.map(|fate| if let Fate::Passed(_) = fate { 1.0 } else { 0.0 }),
            [state.expected.unwrap(), reference.queue.expect_tkt().unwrap()],
            fates.map(|fate| if let Fate::Passed(Some(label)) = fate { label.value() } else { 0.0 }),
        ];
        sums.iter_mut().flatten().zip(pairs.into_iter().flatten()).for_each(|(sum, own)| *sum += own);
    }
    let ratios = sums.map(|[ours, theirs]| ours / theirs - 1.0);
    let counts = kernel.program.counts().unwrap();
    println!("what passes, ExpectTkt and tickets deviate by {ratios:.4?}; {counts:?}");
    assert_eq!(counts.all.meanwhile, (sequence.len() as u64 + 1) / 3);
    // If packets were left out, a third of each would be missing. The average queue lags since it has a third
    // fewer samples.
    assert!(ratios.iter().all(|ratio| ratio.abs() < 0.06), "{ratios:?}");
}

/// The indices of the words of the map `state` to which packets add, and to which the contributions in
/// `missed_count`, `missed_tickets`, `missed_bytes`, `missed_passed`, `missed_arrived` and `missed_written`
/// are merged.
const SUMS: [usize; 6] = [2, 7, 8, 3, 18, 20];
const LEFT: [usize; 6] = [12, 13, 14, 15, 22, 23];

/// Three packets of the same instant, in which no window decays; for the second one another processor holds
/// the state. Each sum includes all three afterwards.
#[test]
fn each_sum_that_is_left_is_taken_up_by_the_next() {
    if !is_possible() {
        return;
    }
    const TICKETS: u64 = 80;
    let sent = Sent { micros: 1_000_000, size: 1_000, tickets: Some(Label::new(TICKETS as f64)) };
    let exchange = exchange_params(&[]);
    let mean = [("expect", "mean"), ("k", "0")];
    // After the first packet there is room, or none.
    let small = [("limit", "1500B"), ("min_th", "500B"), ("max_th", "1kB")];
    for (set, sizes) in [(&mean[..0], &SIZES), (&mean, &SIZES), (&mean[..0], &small), (&mean, &small)] {
        let params = params(&[set, sizes].concat());
        let mut kernel = Kernel::new(&params, Some((&exchange, 30_000.0)));
        kernel.admit(&sent);
        let before = kernel.program.words().unwrap();
        kernel.program.hold(true).unwrap();
        let second = kernel.admit(&sent);
        kernel.program.hold(false).unwrap();
        let between = kernel.program.words().unwrap();
        let third = kernel.admit(&sent);
        let after = kernel.program.words().unwrap();
        let is_full = sizes == &small;
        assert!(
            [second, third].iter().all(|fate| (*fate == Fate::Overflow) == is_full),
            "{second:?} {third:?}"
        );
        // The contribution of a packet with this fate: itself, tickets in Q20, bytes in Q16, bits, and
        // tickets that arrived and left in Q20. With a share, a drop counts no bytes.
        let adds = |fate| {
            let (passes, written) = match fate {
                Fate::Passed(label) => (1, label.unwrap().value() as u64),
                _ => (0, 0),
            };
            let bytes = if set.is_empty() { passes } else { 1 };
            [1, TICKETS << 20, (bytes * 1_000) << 16, passes * 8_000, TICKETS << 20, written << 20]
        };
        let (left, own) = (LEFT.map(|at| between[at]), adds(third));
        println!("{set:?} {sizes:?}: {second:?}, {third:?}; left {left:?}");
        for (i, (left, expected)) in left.into_iter().zip(adds(second)).enumerate() {
            let at = SUMS[i];
            assert_eq!(between[at], before[at], "{i}: nothing but what is left has changed");
            assert_eq!(after[LEFT[i]], 0, "{i}: it is taken up");
            // A label at the share is rounded.
            let is_near = left.abs_diff(expected) <= if i == 1 { expected >> 10 } else { 0 };
            assert!(is_near, "{i}: {left}, not {expected}");
            // The queue is in nanoseconds; a drop restarts the count.
            let (sum, more) = match i {
                0 if third == Fate::Overflow => (after[at], 0),
                3 => ((after[at] - before[at]) / 125, left + own[i]),
                _ => (after[at] - before[at], left + own[i]),
            };
            assert!(sum.abs_diff(more) <= if i == 1 { more >> 10 } else { 0 }, "{i}: {sum}, not {more}");
        }
    }
}

#[test]
fn frames_without_tickets_are_judged_as_by_red_and_others_pass() {
    if !is_possible() {
        return;
    }
    let settings = TicketSettings::new(&params(&[]), RATE).unwrap();
    let mut queue = Tickets::load(&settings).unwrap();
    let run = |queue: &mut Tickets, bytes: &[u8]| run(queue.program().unwrap(), bytes, [0; 3], 1);
    let mut arp = frame_v4(0x4000, 17, 0);
    arp[12..14].copy_from_slice(&[8, 6]);
    let (mut rate, mut v6) = (frame_v4(0x4000, 17, 1), frame_v6(2));
    for (bytes, kind) in [(&mut rate, LabelKind::Rate), (&mut v6, LabelKind::Tickets)] {
        let ip = frame::parse(bytes).unwrap().ip();
        assert!(wire_label::write(bytes, ip, kind, Label::new(70.0)));
    }
    // No queue has built up: each passes unchanged.
    for bytes in [frame_v4(0x4000, 17, 0), frame_v4(0x2000, 17, 2), frame_v6(0), arp, rate, v6] {
        let (verdict, out, _) = run(&mut queue, &bytes);
        assert_eq!((verdict, &out[..bytes.len()]), (0, &bytes[..]));
    }
    let counts = queue.counts().unwrap();
    assert_eq!((counts.all.packets, counts.all.unlabelled, counts.all.no_ip), (5, 4, 1));
    assert_eq!((counts.labelled, counts.tickets, counts.all.relabelled), (1, 70, 0));
}

#[test]
fn processors_decide_at_the_same_time() {
    if !is_possible() {
        return;
    }
    const REPEAT: u32 = 500_000;
    let settings = TicketSettings::new(&params(&[]), Rate::from_mbit(100_000)).unwrap();
    let exchange = settings.with_exchange(&exchange_params(&[]), TicketRate::new(1e6).unwrap()).unwrap();
    let mut queue = Tickets::load(&exchange).unwrap();
    let (bytes, _) = labelled(&Sent { micros: 0, size: 74, tickets: Some(Label::new(80.0)) });
    at_once(queue.program().unwrap(), &vec![bytes.clone(); 4], REPEAT);
    let counts = queue.counts().unwrap();
    println!("{counts:?}");
    let dropped = counts.all.early + counts.all.overflow + counts.forced;
    assert_eq!(
        (counts.all.packets, counts.labelled, dropped),
        (u64::from(4 * REPEAT), u64::from(4 * REPEAT), 0)
    );
    // No lock is left: the next packet is not decided while another processor holds the state.
    run(queue.program().unwrap(), &bytes, [0; 3], 1);
    assert_eq!(queue.counts().unwrap().all.meanwhile, counts.all.meanwhile);
}

/// Run by `cargo test -p apportion-kernel --features bpf --test it tred:: -- --ignored --show-output`.
#[test]
#[ignore = "a measurement: its figures depend on the machine"]
fn what_a_packet_costs() {
    if !is_possible() {
        return;
    }
    const REPEAT: u32 = 1_000_000;
    let mut check = Object::Check.load(false).unwrap();
    let empty = program(&mut check, "empty").unwrap();
    let (bytes, _) = labelled(&Sent { micros: 0, size: 74, tickets: Some(Label::new(80.0)) });
    let settings = TicketSettings::new(&params(&[]), Rate::from_mbit(100_000)).unwrap();
    let exchange =
        settings.clone().with_exchange(&exchange_params(&[]), TicketRate::new(1e6).unwrap()).unwrap();
    let [mut alone, mut both] = [&settings, &exchange].map(|settings| Tickets::load(settings).unwrap());
    let [empty, alone, both] =
        times([empty, alone.program().unwrap(), both.program().unwrap()], &bytes, REPEAT);
    println!("a packet: {alone} ns by TRED, {both} ns with an exchange, {empty} ns by the empty program");
}
