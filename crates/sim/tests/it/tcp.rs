//! TCP over a pipe: the behaviour of whole connections, profile by profile.

mod accurate;
mod forced;
mod linux;
mod pipe;

use std::sync::Arc;

use apportion_core::Ecn;
use apportion_core::random::Stream;
use apportion_core::units::{Bytes, Rate, Span, Time};
use apportion_scenario::tcp::TcpParams;
use apportion_sim::tcp::{Flags, Receiver, Segment, SegmentSink, Sender};
use apportion_testing::properties::cases;
use proptest::prelude::*;

use pipe::{Fate, Pipe};

const RATE: Rate = Rate::from_mbit(10);
const DELAY: Span = Span::from_millis(50);

fn params(profile: &str, changes: &[(&str, &str)]) -> TcpParams {
    let mut params = TcpParams::profile(profile).unwrap();
    for (name, value) in changes {
        params.set(name, value).unwrap();
    }
    params
}

fn pipe(profile: &str, changes: &[(&str, &str)]) -> Pipe {
    Pipe::new(params(profile, changes), 1, RATE, DELAY)
}

/// Returns the distinct values of the congestion window, in order.
fn windows(pipe: &Pipe) -> Vec<f64> {
    let mut windows: Vec<f64> = pipe.trace.iter().map(|snapshot| snapshot.cwnd).collect();
    windows.dedup();
    windows
}

/// Returns how often the window decreased.
fn cuts(pipe: &Pipe) -> usize {
    windows(pipe).windows(2).filter(|pair| pair[1] < pair[0]).count()
}

/// Returns the milliseconds at which a sequence number was sent.
fn times_of(pipe: &Pipe, seq: u32) -> Vec<u64> {
    let sent = pipe.sent.iter().filter(|(_, segment)| segment.seq == seq && segment.payload > 0);
    sent.map(|(at, _)| at.as_nanos() / 1_000_000).collect()
}

#[test]
fn without_loss_the_window_doubles_up_to_the_threshold_and_then_grows_by_one() {
    let mut pipe = pipe("ns2-2000", &[("initial_ssthresh", "8p"), ("window", "64p")]);
    pipe.start(u64::MAX);
    // One sample per round trip of 100.8 ms plus serialisation.
    let mut seen = Vec::new();
    for round in 0..8 {
        pipe.run(Time::from_millis(50 + 108 * round));
        seen.push(pipe.sender.cwnd());
    }
    assert_eq!(seen[..4], [1.0, 2.0, 4.0, 8.0]);
    for pair in seen[3..].windows(2) {
        // floor(cwnd) ACKs, each worth at least 1/(cwnd + 1) and at most 1/cwnd.
        let least = pair[0].floor() / (pair[0] + 1.0);
        assert!((least..=1.0).contains(&(pair[1] - pair[0])), "{seen:?}");
    }
    assert_eq!(pipe.sender.stats().retransmits, 0);
}

#[test]
fn one_loss_halves_the_window_once() {
    for profile in ["ns2-235", "ns2-2000", "ns2-full", "reno-1999", "rfc"] {
        for algorithm in ["reno", "newreno", "sack"] {
            let mut pipe = pipe(profile, &[("algorithm", algorithm), ("window", "40p")]).losing(&[120]);
            pipe.start(u64::MAX);
            pipe.run(Time::from_secs(5));
            let stats = pipe.sender.stats();
            assert_eq!((stats.fast_retransmits, stats.timeouts), (1, 0), "{profile} {algorithm}");
            // The receive window holds new data back, so RFC 6675 uses its rescue retransmission.
            let rescue = u64::from(algorithm == "sack" && !profile.starts_with("ns2"));
            assert!((1..=1 + rescue).contains(&stats.retransmits), "{profile} {algorithm}");
            let mut thresholds: Vec<f64> = pipe.trace.iter().map(|snapshot| snapshot.ssthresh).collect();
            thresholds.dedup();
            assert_eq!(thresholds.len(), 2, "{profile} {algorithm}: {thresholds:?}");
            assert!((19.0..=21.0).contains(&thresholds[1]), "half of 40: {thresholds:?}");
        }
    }
}

#[test]
fn two_losses_in_a_window_time_reno_out_and_newreno_and_sack_recover() {
    // Ordinals 120 and 123 are in one window of 40: timeouts, and round trips until both are repaired.
    for (algorithm, timeouts, most_rtts) in [("reno", 1, 99.0), ("newreno", 0, 2.2), ("sack", 0, 2.2)] {
        for profile in ["ns2-2000", "rfc"] {
            let changes = [("algorithm", algorithm), ("window", "40p"), ("delayed_ack", "off")];
            let mut pipe = pipe(profile, &changes).losing(&[120, 123]);
            pipe.start(u64::MAX);
            pipe.run(Time::from_secs(5));
            assert_eq!(pipe.sender.stats().timeouts, timeouts, "{profile} {algorithm}");
            let first = times_of(&pipe, pipe.sent[120].1.seq)[1];
            let second = times_of(&pipe, pipe.sent[123].1.seq)[1];
            let rtts = (second - first) as f64 / 101.0 + 1.0;
            assert!(rtts <= most_rtts, "{profile} {algorithm}: {rtts} round trips");
            if algorithm == "newreno" {
                assert!(rtts > 1.9, "NewReno repairs one hole a round trip: {rtts}");
            }
        }
    }
}

#[test]
fn timeouts_double_up_to_the_cap() {
    let mut pipe = pipe("rfc", &[("max_rto", "10s"), ("initial_window", "1p")]);
    pipe.fate = Box::new(|n, _| if n >= 1 { Fate::Lose } else { Fate::Pass });
    pipe.start(u64::MAX);
    pipe.run(Time::from_secs(40));
    let sent = times_of(&pipe, 2);
    let gaps: Vec<u64> = sent.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(gaps, [1_000, 2_000, 4_000, 8_000, 10_000, 10_000]);
}

#[test]
fn a_lost_syn_costs_the_initial_timeout_and_the_larger_initial_window() {
    for (profile, wait) in [("ns2-235", 3_000), ("reno-1999", 3_000), ("rfc", 1_000)] {
        let mut pipe = pipe(profile, &[]).losing(&[0]);
        pipe.start(u64::MAX);
        pipe.run(Time::from_secs(8));
        assert_eq!(pipe.sent[1].0, Time::from_millis(wait), "{profile}");
        // RFC 5681 section 3.1: one segment, then two.
        let burst = pipe.sent[2..].iter().take_while(|(at, _)| *at == pipe.sent[2].0).count();
        assert_eq!(burst, 1, "{profile}");
    }
}

#[test]
fn after_a_lost_syn_the_timeout_is_three_seconds() {
    // RFC 6298 (5.7): the handshake gave no sample, so data starts with 3 s instead of 1 s.
    let mut pipe = pipe("rfc", &[]).losing(&[0, 2]);
    pipe.start(u64::MAX);
    pipe.run(Time::from_secs(8));
    let sent = times_of(&pipe, 2);
    assert_eq!(sent[1] - sent[0], 3_000);
}

#[test]
fn an_application_that_is_slow_sets_the_rate() {
    for profile in ["ns2-235", "rfc"] {
        let mut pipe = pipe(profile, &[]);
        pipe.start(0);
        let segment = pipe.params.segment.get();
        for tick in 0..400_u64 {
            pipe.run(Time::from_millis(10 * tick));
            pipe.with_sender(|sender, now, out| sender.supply(now, segment, out));
            let handed = (tick + 1) * segment;
            assert!(pipe.receiver.delivered() <= handed);
        }
        pipe.run(Time::from_secs(6));
        assert_eq!(pipe.receiver.delivered(), 400 * segment, "{profile}");
    }
}

#[test]
fn a_timer_with_nothing_outstanding_collapses_the_window_but_not_the_threshold_in_ns2() {
    let mut pipe = pipe("ns2-235", &[]);
    pipe.start(10_000);
    pipe.run(Time::from_secs(2));
    let stats = *pipe.sender.stats();
    assert_eq!((stats.timeouts, pipe.sender.cwnd(), pipe.sender.ssthresh()), (0, 1.0, 20.0));
    assert!(stats.idle_timeouts >= 1);
    // No backoff: the next lost packet waits for the plain timeout.
    assert_eq!(pipe.sender.rto(), pipe.sender.rto().min(Span::from_millis(400)));
}

#[test]
fn a_sender_that_was_idle_starts_over_by_the_rfc() {
    for (idle, window) in [("restart", 3.0), ("keep", 17.0)] {
        let mut pipe = pipe("rfc", &[("delayed_ack", "off"), ("idle", idle)]);
        pipe.start(14 * 1_460);
        pipe.run(Time::from_secs(10));
        assert_eq!(pipe.sender.cwnd(), 17.0, "3 and 14 ACKs of slow start");
        pipe.with_sender(|sender, now, out| sender.supply(now, 100 * 1_460, out));
        let burst = pipe.sent.iter().filter(|(at, _)| *at == Time::from_secs(10)).count();
        assert_eq!(burst as f64, window, "{idle}");
    }
}

#[test]
fn reno_keeps_the_square_root_law() {
    // Mathis et al. 1997: W = sqrt(3/(2p)) segments per round trip without delayed ACKs; p = 1 %: 12.25.
    let mut pipe = Pipe::new(
        params("rfc", &[("algorithm", "newreno"), ("delayed_ack", "off"), ("min_rto", "200ms")]),
        1,
        Rate::from_mbit(1_000),
        DELAY,
    );
    let mut stream = Stream::new(11, "loss");
    pipe.fate = Box::new(move |_, _| if stream.chance(0.01) { Fate::Lose } else { Fate::Pass });
    pipe.start(u64::MAX);
    pipe.run(Time::from_secs(1_000));
    let segments = pipe.receiver.delivered() as f64 / 1_460.0;
    let per_round = segments / 10_000.0;
    assert!((per_round / 12.247 - 1.0).abs() < 0.15, "{per_round} segments per round trip");
}

#[test]
fn a_retransmitted_segment_is_never_timed() {
    // Ordinal 5 is lost and retransmitted; a sample over both would be above 200 ms on this path of 101 ms.
    let mut pipe = pipe("rfc", &[("delayed_ack", "off"), ("min_rto", "200ms")]).losing(&[5, 6, 7, 8]);
    pipe.start(u64::MAX);
    pipe.run(Time::from_secs(3));
    assert!(pipe.sender.stats().retransmits >= 4);
    assert!(pipe.sender.srtt().unwrap() < Span::from_millis(150), "{:?}", pipe.sender.srtt());
}

#[test]
fn delayed_acks_come_for_every_second_segment_or_after_the_timeout() {
    let mut pipe = pipe("reno-1999", &[]);
    pipe.start(u64::MAX);
    pipe.run(Time::from_millis(600));
    // Window 1: the first data arrives at 102.4 + 51.2 ms and waits for the BSD timer at 200 ms.
    assert_eq!(pipe.acks[1].0, Time::from_millis(200));
    // Then two segments, one ACK.
    assert_eq!(pipe.acks[2].1.ack, pipe.acks[1].1.ack + 2 * 1_460);
    let mut plain = self::pipe("reno-1999", &[("delayed_ack", "2 200ms")]);
    plain.start(u64::MAX);
    plain.run(Time::from_millis(600));
    let arrival = plain.sent[1].0 + DELAY + RATE.time_for(Bytes::new(1_500));
    assert_eq!(plain.acks[1].0, arrival + Span::from_millis(200));
}

#[test]
fn what_arrives_out_of_order_is_acknowledged_at_once_with_the_newest_block_first() {
    let mut pipe = pipe("rfc", &[("algorithm", "sack")]).losing(&[31, 33]);
    pipe.start(u64::MAX);
    pipe.run(Time::from_secs(2));
    let lost = [pipe.sent[31].1, pipe.sent[33].1].map(|segment| segment.seq);
    let gap = |from: u32, to: u32| (from + 1_460, to);
    let (_, with_two) = pipe.acks.iter().find(|(_, ack)| ack.sack.as_slice().len() == 2).unwrap();
    // RFC 2018 section 4: first the block of the segment that caused this ACK.
    let newest = (lost[1] + 1_460, lost[1] + 2 * 1_460);
    assert_eq!(with_two.sack.as_slice(), [newest, gap(lost[0], lost[1])]);
}

#[test]
fn window_scale_lets_more_than_64_kilobytes_fly() {
    for (scale, most) in [("true", 400_000), ("false", 65_535)] {
        let mut pipe = Pipe::new(
            params("rfc", &[("window", "400kB"), ("window_scale", scale)]),
            1,
            Rate::from_mbit(100),
            DELAY,
        );
        pipe.start(u64::MAX);
        let mut flight = 0;
        for step in 0..300 {
            pipe.run(Time::from_millis(10 * step));
            flight = flight.max(pipe.sender.flight());
        }
        assert!(flight <= most && flight + 1_460 > most, "{flight} of {most}");
    }
}

#[test]
fn a_shut_window_is_probed_and_opens_again() {
    let mut pipe = pipe("rfc", &[("window", "20kB")]);
    pipe.receiver.set_reading(false, &mut Nowhere);
    pipe.start(100_000);
    pipe.run(Time::from_secs(10));
    // Whole segments first, then the probes fill the rest of the buffer.
    assert_eq!(pipe.receiver.delivered(), 20_000);
    assert!(pipe.sender.stats().window_probes >= 2);
    let cwnd = pipe.sender.cwnd();
    // The window update itself is lost: a probe must detect it.
    pipe.receiver.set_reading(true, &mut Nowhere);
    pipe.run(Time::from_secs(100));
    assert_eq!(pipe.receiver.delivered(), 100_000);
    assert!(cwnd > 1.0, "probing is no congestion: {cwnd}");
}

#[test]
fn linux_probes_a_shut_window_without_data() {
    let mut pipe = pipe("linux", &[("window", "20kB")]);
    pipe.receiver.set_reading(false, &mut Nowhere);
    pipe.start(100_000);
    pipe.run(Time::from_secs(10));
    let probes = pipe.sender.stats().window_probes;
    let sent: Vec<_> = pipe.sent.iter().map(|(_, segment)| (segment.seq, segment.payload)).collect();
    // The first fills the buffer; the others repeat the number of its last byte.
    let full = 2 + 20_000;
    assert!(probes >= 3, "{probes}");
    assert!(sent[sent.len() - 2..].iter().all(|&probe| probe == (full - 1, 0)), "{sent:?}");
    assert_eq!((pipe.receiver.delivered(), pipe.sender.stats().retransmits), (20_000, 0));
    // The window update itself is lost: a probe must detect it.
    pipe.receiver.set_reading(true, &mut Nowhere);
    pipe.run(Time::from_secs(100));
    assert_eq!(pipe.receiver.delivered(), 100_000);
}

/// Loses everything.
struct Nowhere;

impl SegmentSink for Nowhere {
    fn send(&mut self, _segment: Segment, _size: Bytes, _ecn: Ecn) {}
}

#[test]
fn marks_halve_once_per_window_and_are_echoed_until_cwr() {
    let mut pipe = pipe("rfc", &[("ecn", "true"), ("delayed_ack", "off"), ("window", "60p")]);
    // Ten marks in one window.
    pipe.fate = Box::new(|n, _| if (100..110).contains(&n) { Fate::Mark } else { Fate::Pass });
    pipe.start(u64::MAX);
    pipe.run(Time::from_secs(3));
    let stats = pipe.sender.stats();
    assert_eq!((stats.ecn_reductions, stats.retransmits), (1, 0));
    assert_eq!(cuts(&pipe), 1);
    let echoes = pipe.acks.iter().skip(1).filter(|(_, ack)| ack.flags.has(Flags::ECE)).count();
    let cwr = pipe.sent.iter().skip(1).filter(|(_, segment)| segment.flags.has(Flags::CWR)).count();
    // From the first mark until CWR has crossed: a whole window of ACKs, and one CWR.
    assert!(echoes > 10, "{echoes}");
    assert_eq!(cwr, 1);
    assert!(!pipe.acks.last().unwrap().1.flags.has(Flags::ECE));
}

#[test]
fn without_ecn_nothing_is_capable_and_nothing_is_marked() {
    let mut pipe = pipe("rfc", &[("delayed_ack", "off"), ("window", "60p")]);
    pipe.fate = Box::new(|n, _| if n > 20 { Fate::Mark } else { Fate::Pass });
    pipe.start(u64::MAX);
    pipe.run(Time::from_secs(3));
    assert_eq!(cuts(&pipe), 0);
}

#[test]
fn a_transfer_ends_with_a_fin_even_if_the_fin_is_lost() {
    for lost in [vec![], vec![1 + 9], vec![0, 3]] {
        let mut pipe = pipe("rfc", &[("segment", "1000B")]).losing(&lost);
        pipe.start(9_500);
        pipe.with_sender(Sender::close);
        pipe.run(Time::from_secs(20));
        assert!(pipe.sender.is_done() && pipe.receiver.is_finished(), "{lost:?}");
        assert_eq!((pipe.receiver.delivered(), pipe.sender.stats().bytes_acked), (9_500, 9_500));
        assert_eq!(pipe.sender.next_timer(), None);
    }
}

#[test]
fn the_sequence_space_wraps_without_notice() {
    let run = |isn| {
        let mut pipe =
            Pipe::new(params("rfc", &[("algorithm", "sack")]), isn, RATE, DELAY).losing(&[30, 33, 70]);
        pipe.start(300_000);
        pipe.with_sender(Sender::close);
        pipe.run(Time::from_secs(20));
        assert_eq!(pipe.receiver.delivered(), 300_000);
        pipe.trace
    };
    assert_eq!(run(1), run(u32::MAX - 50_000));
}

#[test]
fn limited_transmit_saves_a_small_window_from_its_timeout() {
    // Window of 3 segments, one lost: two duplicate ACKs, and RFC 3042's two new segments trigger the third.
    for (on, timeouts) in [("true", 0), ("false", 1)] {
        let changes = [("limited_transmit", on), ("delayed_ack", "off"), ("initial_ssthresh", "2p")];
        let mut pipe = pipe("rfc", &changes).losing(&[1]);
        pipe.start(u64::MAX);
        pipe.run(Time::from_millis(2_000));
        assert_eq!(pipe.sender.stats().timeouts, timeouts, "{on}");
    }
}

#[test]
fn cubic_cuts_to_seven_tenths_and_comes_back() {
    let mut pipe = Pipe::new(
        params("rfc", &[("algorithm", "cubic"), ("delayed_ack", "off"), ("initial_ssthresh", "50p")]),
        1,
        Rate::from_mbit(1_000),
        DELAY,
    )
    .losing(&[600]);
    pipe.start(u64::MAX);
    pipe.run(Time::from_secs(20));
    let windows = windows(&pipe);
    let cut = windows.windows(2).position(|pair| pair[1] < pair[0]).unwrap();
    let (before, after) = (windows[cut], windows[cut + 1]);
    // RFC 9438 section 4.6: ssthresh = 0.7 FlightSize, which is the whole window here.
    assert!((after / before - 0.7).abs() < 0.02, "{before} to {after}");
    assert!(pipe.sender.cwnd() > before);
}

#[test]
fn spurious_calls_change_nothing() {
    let mut pipe = pipe("ns2-235", &[]);
    pipe.start(u64::MAX);
    pipe.run(Time::from_millis(500));
    let (sent, stats, timer) = (pipe.sent.len(), *pipe.sender.stats(), pipe.sender.next_timer());
    pipe.with_sender(|sender, now, out| {
        sender.on_timer(now, out);
        sender.start(now, out);
        // An ACK of data that were never sent (RFC 9293 section 3.10.7.4).
        let ack = Segment { ack: 1_000_000_000, flags: Flags::ACK, ..Segment::default() };
        sender.on_segment(now, &ack, out);
    });
    assert_eq!((sent, stats, timer), (pipe.sent.len(), *pipe.sender.stats(), pipe.sender.next_timer()));
}

#[test]
fn a_connection_fits_its_memory_budget() {
    let size = size_of::<Sender>() + size_of::<Receiver>();
    // Eight cache lines. With holes, a scoreboard and a reassembly list are added, 16 bytes per range; the
    // state of CUBIC and RACK is separate, with 24 bytes for each outstanding segment.
    assert!(size <= 512, "{size}");
}

#[test]
fn the_first_data_segment_is_repaired_by_three_duplicates() {
    // Four segments in the initial window, the first lost: the window of the SYN-ACK, which is never scaled,
    // must not make the first duplicate look like a window update.
    for scale in ["true", "false"] {
        let changes = [("segment", "1000B"), ("limited_transmit", "false"), ("window_scale", scale)];
        let mut pipe = pipe("rfc", &changes).losing(&[1]);
        pipe.start(u64::MAX);
        pipe.run(Time::from_millis(900));
        assert_eq!(pipe.sender.stats().fast_retransmits, 1);
    }
}

#[test]
fn a_finished_recovery_leaves_no_reports_behind() {
    let mut pipe = pipe("rfc", &[("algorithm", "sack")]).losing(&[31, 33]);
    pipe.start(u64::MAX);
    pipe.run(Time::from_secs(2));
    assert_eq!(pipe.sender.stats().fast_retransmits, 1);
    assert!(format!("{:?}", pipe.sender).contains("Scoreboard { ranges: [] }"));
}

#[test]
fn duplicate_acks_let_new_segments_out_during_fast_recovery() {
    let mut pipe = pipe("reno-1999", &[("delayed_ack", "off"), ("initial_ssthresh", "20p")]).losing(&[200]);
    pipe.start(u64::MAX);
    pipe.run(Time::from_secs(4));
    let again = pipe.sent.iter().rposition(|(_, s)| s.seq == pipe.sent[200].1.seq).unwrap();
    let (noticed, flight) = (pipe.sent[again].0, (again - 200) as f64);
    let until = noticed + Span::from_millis(101);
    let released = pipe.sent.iter().filter(|(at, _)| (noticed..until).contains(at)).count() - 1;
    // All segments of the flight except the lost one return as duplicates: F/2 + (F - 1) segments may be in
    // flight, F are already.
    assert!((released as f64 - (flight / 2.0 - 1.0)).abs() <= 1.0, "{released} of {flight}");
}

#[test]
fn ns2_did_the_same_when_it_lost_the_same_packets() {
    // ns2.txt is ns-2.35's own record (validation/forced-loss/check): timeouts, packets, time:cwnd of every
    // reduction.
    let cases = forced::read_cases(include_str!("../../../../validation/forced-loss/cases.txt")).unwrap();
    let mut compared = 0;
    for line in include_str!("tcp/ns2.txt").lines() {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap();
        let case = cases.iter().find(|case| case.name == name).unwrap();
        let ours = forced::simulate(case).unwrap();
        let numbers: [u64; 2] = [words.next(), words.next()].map(|word| word.unwrap().parse().unwrap());
        assert_eq!([ours.timeouts, ours.sent.len() as u64], numbers, "{name}: timeouts, packets");
        let theirs: Vec<(f64, f64)> = words
            .map(|pair| pair.split_once(':').unwrap())
            .map(|(at, cwnd)| (at.parse().unwrap(), cwnd.parse().unwrap()))
            .collect();
        assert_eq!(ours.events.len(), theirs.len(), "{name}: reductions");
        for (our, their) in ours.events.iter().zip(&theirs) {
            // ns-2 prints 5 and 3 digits.
            assert!(
                (our.0 - their.0).abs() < 2e-5 && (our.1 - their.1).abs() < 1e-3,
                "{name}: {our:?} {their:?}"
            );
        }
        compared += 1;
    }
    assert_eq!(compared, 218);
}

/// Draws the action of a hostile network on one packet.
fn fate(stream: &mut Stream) -> Fate {
    match stream.below(100) {
        0..=7 => Fate::Lose,
        8..=13 => Fate::Late(Span::from_millis(5 + stream.below(120))),
        14..=17 => Fate::Twice,
        18..=20 => Fate::Mark,
        _ => Fate::Pass,
    }
}

/// Keeps the last segment.
#[derive(Default)]
struct Last(Segment);

impl SegmentSink for Last {
    fn send(&mut self, segment: Segment, _size: Bytes, _ecn: Ecn) {
        self.0 = segment;
    }
}

#[test]
fn what_an_earlier_connection_left_means_nothing_to_the_next_one() {
    const OLD: u32 = u32::MAX - 5_000;
    let params = Arc::new(params("linux", &[]));
    let isn = OLD.wrapping_add(1 << 29);
    let (mut receiver, mut sent) = (Receiver::new(Arc::clone(&params), isn), Last::default());
    let segment = |seq: u32, payload: u16, flags| Segment { seq, payload, flags, ..Segment::default() };
    for old in [segment(OLD, 0, Flags::SYN), segment(OLD.wrapping_add(1), 1_448, Flags::ACK)] {
        receiver.on_segment(Time::ZERO, &old, Ecn::NotEct, &mut sent);
        assert_eq!((receiver.delivered(), sent.0), (0, Segment::default()));
    }
    receiver.on_segment(Time::ZERO, &segment(isn, 0, Flags::SYN), Ecn::NotEct, &mut sent);
    assert_eq!((sent.0.ack, sent.0.flags.has(Flags::SYN)), (isn.wrapping_add(1), true));
    let mut sender = Sender::new(params, isn);
    sender.start(Time::ZERO, &mut sent);
    sender.supply(Time::ZERO, 5_000, &mut sent);
    let old = Segment { ack: OLD.wrapping_add(1), ..segment(0, 0, Flags::SYN | Flags::ACK) };
    let before = sender.stats().segments;
    sender.on_segment(Time::ZERO, &old, &mut sent);
    assert_eq!(sender.stats().segments, before);
}

proptest! {
    #![proptest_config(cases(256))]

    /// RFC 2018 section 4: the first block contains the segment received last, the others were reported most
    /// recently before.
    #[test]
    fn blocks_are_what_came_early_the_most_recent_first(order in Just((1..40_u32).collect::<Vec<_>>()).prop_shuffle()) {
        let params = params("ns2-2000", &[("algorithm", "sack"), ("delayed_ack", "off"), ("window", "100p"), ("segment", "10B")]);
        let mut receiver = Receiver::new(Arc::new(params), 0);
        let (mut early, mut ack) = (Vec::<(u32, u32)>::new(), Last::default());
        for k in order {
            let segment = Segment { seq: 10 * k, payload: 10, flags: Flags::ACK, ..Segment::default() };
            receiver.on_segment(Time::ZERO, &segment, Ecn::NotEct, &mut ack);
            let mut merged = (10 * k, 10 * k + 10);
            for &(from, to) in &early {
                if to == 10 * k { merged.0 = from; }
                if from == 10 * k + 10 { merged.1 = to; }
            }
            early.retain(|&(from, to)| to < merged.0 || from > merged.1);
            early.insert(0, merged);
            prop_assert_eq!(ack.0.sack.as_slice(), &early[..early.len().min(3)]);
        }
        let first = Segment { payload: 10, flags: Flags::ACK, ..Segment::default() };
        receiver.on_segment(Time::ZERO, &first, Ecn::NotEct, &mut ack);
        prop_assert_eq!((ack.0.ack, ack.0.sack.as_slice()), (400, &[][..]));
    }
}

proptest! {
    #![proptest_config(cases(96))]
    #[test]
    fn no_network_makes_a_byte_disappear_or_a_window_burst(
        seed in 0..u64::MAX,
        isn in any::<u32>(),
        bytes in 1..120_000_u64,
        profile in prop::sample::select(vec!["rfc", "reno-1999", "ns2-235", "ns2-2000", "ns2-full"]),
        algorithm in prop::sample::select(vec!["tahoe", "reno", "newreno", "sack", "cubic"]),
        window in prop::sample::select(vec!["3p", "20p", "200p"]),
        ecn in any::<bool>(),
        delack in any::<bool>(),
    ) {
        let ecn = ecn.to_string();
        let delack = if delack { "2 100ms" } else { "off" };
        let params = params(profile, &[
            ("algorithm", algorithm), ("window", window), ("ecn", &ecn), ("delayed_ack", delack),
            ("max_rto", "5s"),
        ]);
        let mut pipe = Pipe::new(params, isn, RATE, DELAY);
        let mut stream = Stream::new(seed, "data");
        pipe.fate = Box::new(move |_, _| fate(&mut stream));
        let mut stream = Stream::new(seed, "acks");
        pipe.ack_fate = Box::new(move |_, _| fate(&mut stream));
        pipe.start(bytes);
        pipe.with_sender(Sender::close);
        let most = pipe.params.window_bytes() + 2;
        let mut at = Time::ZERO;
        while !pipe.sender.is_done() {
            at += Span::from_millis(100);
            prop_assert!(at < Time::from_secs(3_000), "no end: {} bytes", pipe.receiver.delivered());
            pipe.run(at);
            prop_assert!(pipe.sender.flight() <= most);
            prop_assert!(pipe.sender.cwnd() >= 1.0 && pipe.sender.ssthresh() >= 2.0);
        }
        prop_assert_eq!(pipe.receiver.delivered(), bytes);
        prop_assert_eq!(pipe.sender.stats().bytes_acked, bytes);
    }
}
