//! The profile `linux`: time-based loss detection, proportional rate reduction, probes, quick ACKs, hybrid
//! slow start.

use apportion_core::Ecn;
use apportion_core::random::Stream;
use apportion_core::units::{Rate, Span, Time};
use apportion_sim::tcp::{Flags, Sender};

use super::pipe::{Fate, Pipe};
use super::{cuts, params};

const RATE: Rate = Rate::from_mbit(50);
const DELAY: Span = Span::from_millis(50);

fn pipe(changes: &[(&str, &str)]) -> Pipe {
    Pipe::new(params("linux", changes), 1, RATE, DELAY)
}

/// Returns the time at which `bytes` have arrived completely, in milliseconds.
fn transfer(mut pipe: Pipe, bytes: u64) -> u64 {
    pipe.start(bytes);
    pipe.with_sender(Sender::close);
    for ms in 1..100_000 {
        pipe.run(Time::from_millis(ms));
        if pipe.receiver.delivered() >= bytes {
            return ms;
        }
    }
    panic!("{bytes} bytes never arrived: {:?}", pipe.sender.stats());
}

/// Runs for ten seconds and returns the sender's timeouts and detected losses.
fn counts(pipe: &mut Pipe) -> (u64, u64) {
    pipe.start(u64::MAX);
    pipe.run(Time::from_secs(10));
    let stats = pipe.sender.stats();
    (stats.timeouts, stats.fast_retransmits)
}

#[test]
fn the_window_doubles_from_ten_segments_with_every_round_trip() {
    // Ten segments, doubling each round trip of 100 ms after the handshake: 15 kB are 11 segments and need
    // two round trips after the handshake, the last one only one way.
    for (bytes, least, most) in [(14_000, 150, 155), (15_000, 250, 256), (300_000, 550, 580)] {
        let took = transfer(pipe(&[]), bytes);
        assert!((least..=most).contains(&took), "{bytes} B: {took} ms");
    }
}

#[test]
fn one_loss_cuts_the_window_once_and_costs_no_timeout() {
    for algorithm in ["reno", "newreno", "sack", "cubic"] {
        let mut pipe = pipe(&[("algorithm", algorithm), ("window", "200kB")]).losing(&[500]);
        assert_eq!(counts(&mut pipe), (0, 1), "{algorithm}");
        assert_eq!(pipe.sender.stats().retransmits, 1, "{algorithm}");
    }
}

#[test]
fn every_loss_of_a_window_is_repaired_in_one_round_trip() {
    // Every other one of a hundred segments.
    let lost: Vec<usize> = (600..700).step_by(2).collect();
    let mut pipe = pipe(&[]).losing(&lost);
    assert_eq!(counts(&mut pipe), (0, 1));
    assert_eq!(pipe.sender.stats().retransmits, 50);
    let again =
        |n: usize| pipe.sent.iter().filter(|(_, s)| s.seq == pipe.sent[n].1.seq).map(|(at, _)| *at).nth(1);
    let (first, last) = (again(600).unwrap(), again(698).unwrap());
    assert!(last.since(first) <= Span::from_millis(130), "{first} to {last}");
}

#[test]
fn a_retransmission_that_is_lost_is_sent_again_without_a_timeout() {
    let mut seen = 0;
    let mut pipe = pipe(&[]);
    pipe.fate = Box::new(move |n, segment| {
        // The segment of ordinal 500 and its first two retransmissions.
        let is_it = segment.seq == 1 + 1 + 499 * 1_448;
        seen += u32::from(is_it);
        if n >= 500 && is_it && seen <= 3 { Fate::Lose } else { Fate::Pass }
    });
    let (timeouts, _) = counts(&mut pipe);
    assert_eq!(timeouts, 0);
    assert_eq!(pipe.sender.stats().retransmits, 3);
}

#[test]
fn the_last_segment_of_a_transfer_is_probed_for_before_the_timer_expires() {
    // 20 segments: if only the last were lost, no later segment would reveal the loss. Two round trips plus
    // the wait for a delayed ACK are less than the minimum timeout only if more than one segment is
    // outstanding; so the last two are lost.
    let mut pipe = pipe(&[]).losing(&[19, 20]);
    pipe.start(20 * 1_448);
    pipe.with_sender(Sender::close);
    pipe.run(Time::from_secs(10));
    let stats = *pipe.sender.stats();
    assert_eq!((stats.timeouts, stats.tail_loss_probes), (0, 1));
    assert!(pipe.sender.is_done());
}

#[test]
fn the_timer_repairs_a_window_that_is_lost_whole() {
    let mut pipe = pipe(&[]);
    // Everything sent between 1.0 and 1.6 s, including probes.
    let rest: Vec<usize> = (1_000..20_000).collect();
    pipe.fate = Box::new(move |n, _| if rest.binary_search(&n).is_ok() { Fate::Lose } else { Fate::Pass });
    pipe.start(u64::MAX);
    pipe.run(Time::from_secs(3));
    let timeouts = pipe.sender.stats().timeouts;
    assert!(timeouts >= 2, "{timeouts}");
    pipe.fate = Box::new(|_, _| Fate::Pass);
    let before = pipe.receiver.delivered();
    pipe.run(Time::from_secs(20));
    // At least half of 50 Mb/s over the last ten seconds.
    assert!(pipe.receiver.delivered() - before > 31_000_000, "{}", pipe.receiver.delivered() - before);
}

#[test]
fn a_late_packet_is_not_taken_for_lost_once_reordering_was_seen() {
    // One of a hundred segments arrives 10 ms late: after the first, the sender waits for a quarter of a
    // round trip.
    let mut pipe = pipe(&[("window", "500kB")]);
    pipe.fate = Box::new(|n, _| if n % 100 == 99 { Fate::Late(Span::from_millis(10)) } else { Fate::Pass });
    let (timeouts, losses) = counts(&mut pipe);
    assert_eq!(timeouts, 0);
    // Until reordering is detected on a segment that was sent once, some are retransmitted unnecessarily.
    let late = pipe.sent.len() as u64 / 100;
    assert!(late > 50 && losses <= 5, "{losses} of {late}");
}

#[test]
fn slow_start_ends_before_the_queue_overflows() {
    // The queue of the pipe is unlimited: without hybrid slow start the window grows to the receive window.
    let largest = |hystart: &str| {
        let mut pipe = pipe(&[("hystart", hystart)]);
        pipe.start(u64::MAX);
        pipe.run(Time::from_millis(1_500));
        pipe.trace.iter().map(|snapshot| snapshot.cwnd).fold(0.0, f64::max)
    };
    // 50 Mb/s over 100 ms are 417 segments of 1,500 bytes.
    assert!(largest("false") > 2_000.0);
    assert!((200.0..700.0).contains(&largest("true")), "{}", largest("true"));
}

#[test]
fn the_first_acks_are_quick_and_the_later_ones_are_for_two_segments() {
    let mut pipe = pipe(&[]);
    pipe.start(200 * 1_448);
    pipe.run(Time::from_secs(3));
    // The SYN-ACK, 16 for one segment each, one for each pair of the rest.
    let acks = pipe.acks.len();
    assert!((1 + 16 + 92..=1 + 16 + 92 + 2).contains(&acks), "{acks}");
}

#[test]
fn a_lost_syn_costs_a_second_and_not_the_initial_window() {
    let mut pipe = pipe(&[("ecn", "true")]).losing(&[0, 1]);
    pipe.start(u64::MAX);
    pipe.run(Time::from_secs(4));
    // Linear for the first four; the second SYN does not request ECN (RFC 3168 section 6.1.1.1).
    let syns: Vec<_> =
        pipe.sent[..3].iter().map(|(at, syn)| (at.as_nanos() / 1_000_000, syn.flags.bits())).collect();
    assert_eq!(syns, [(0, 0xC2), (1_000, 0x02), (2_000, 0x02)]);
    assert_eq!(
        pipe.sent.iter().filter(|(at, _)| *at == pipe.sent[3].0).count(),
        1,
        "two SYNs lost: one segment"
    );
    let mut pipe = Pipe::new(params("linux", &[]), 1, RATE, DELAY).losing(&[0]);
    pipe.start(u64::MAX);
    pipe.run(Time::from_secs(3));
    assert_eq!(pipe.sent.iter().filter(|(at, _)| *at == pipe.sent[2].0).count(), 10, "one SYN lost");
}

#[test]
fn marks_lower_the_window_once_per_window() {
    let mut pipe = pipe(&[("ecn", "true"), ("window", "300kB")]);
    pipe.fate = Box::new(|n, _| if (500..520).contains(&n) { Fate::Mark } else { Fate::Pass });
    let (timeouts, losses) = counts(&mut pipe);
    assert_eq!((timeouts, losses, pipe.sender.stats().ecn_reductions), (0, 0, 1));
}

#[test]
fn at_random_losses_nothing_stalls_and_everything_arrives() {
    // Loss of 0.1 to 10 %, with and without loss of ACKs.
    for (seed, loss, ack_loss) in [(1, 0.001, 0.0), (2, 0.01, 0.1), (3, 0.05, 0.0), (4, 0.1, 0.1)] {
        for algorithm in ["reno", "cubic"] {
            let mut pipe = pipe(&[("algorithm", algorithm)]);
            let (mut data, mut acks) = (Stream::new(seed, "data"), Stream::new(seed, "acks"));
            pipe.fate = Box::new(move |_, _| if data.chance(loss) { Fate::Lose } else { Fate::Pass });
            pipe.ack_fate = Box::new(move |_, _| if acks.chance(ack_loss) { Fate::Lose } else { Fate::Pass });
            let bytes = 500_000;
            let took = transfer(pipe, bytes);
            assert!(took < 40_000, "{algorithm} at {loss}: {took} ms");
        }
    }
}

#[test]
fn reno_over_rack_keeps_the_square_root_law() {
    // Mathis et al. 1997: W = sqrt(3/(2bp)) with b = 2 for delayed ACKs, if the window grows per ACK; Linux counts
    // segments, so b = 1: 12.25 segments at 1 %.
    let mut pipe = Pipe::new(
        params("linux", &[("algorithm", "reno")]),
        1,
        Rate::from_mbit(1_000),
        Span::from_millis(50),
    );
    let mut stream = Stream::new(11, "loss");
    pipe.fate = Box::new(move |_, _| if stream.chance(0.01) { Fate::Lose } else { Fate::Pass });
    pipe.start(u64::MAX);
    pipe.run(Time::from_secs(1_000));
    let per_round = pipe.receiver.delivered() as f64 / 1_448.0 / 10_000.0;
    assert!((11.0..13.5).contains(&per_round), "{per_round}");
    assert!(cuts(&pipe) > 0);
}

#[test]
fn parameters_that_are_not_used_change_nothing() {
    let of_rack = [
        ("limited_transmit", "false"),
        ("stale_rto", "true"),
        ("ack_ends_backoff", "true"),
        ("bug_fix", "false"),
        ("fast_again", "true"),
        ("inflate", "cwnd"),
        ("recovery_burst", "4"),
        ("truncate_cwnd", "true"),
        ("exit", "grow"),
    ];
    let sent = |profile: &str, change: &[(&str, &str)]| {
        let changes: Vec<_> = change.iter().copied().chain([("algorithm", "cubic")]).collect();
        let mut pipe = Pipe::new(params(profile, &changes), 1, RATE, DELAY);
        let mut data = Stream::new(5, "data");
        pipe.fate = Box::new(move |_, _| if data.chance(0.2) { Fate::Lose } else { Fate::Pass });
        pipe.start(u64::MAX);
        pipe.run(Time::from_secs(20));
        assert!(profile == "rfc" || pipe.sender.stats().timeouts > 0, "the losses are too light");
        pipe.sent
    };
    for (profile, changes) in [("linux", &of_rack[..]), ("rfc", &[("hystart", "true")])] {
        let (params, plain) = (params(profile, &[]), sent(profile, &[]));
        for change in changes {
            assert!(!params.uses(change.0), "{profile}: {}", change.0);
            assert!(sent(profile, &[*change]) == plain, "{profile}: {}", change.0);
        }
    }
}

#[test]
fn a_timeout_that_only_lost_acks_caused_is_undone() {
    // No ACK arrives between 1.0 and 1.8 s: the timer expires, and all data have arrived.
    for (timestamps, undone) in [("true", true), ("false", false)] {
        let mut pipe = pipe(&[("window", "200kB"), ("timestamps", timestamps)]);
        pipe.start(u64::MAX);
        pipe.run(Time::from_secs(1));
        let before = pipe.sender.cwnd();
        pipe.ack_fate = Box::new(|_, _| Fate::Lose);
        pipe.run(Time::from_millis(1_800));
        assert!(pipe.sender.stats().timeouts > 0 && pipe.sender.cwnd() < 3.0, "{}", pipe.sender.cwnd());
        pipe.ack_fate = Box::new(|_, _| Fate::Pass);
        pipe.run(Time::from_millis(2_700));
        assert_eq!(pipe.sender.cwnd() >= before, undone, "{timestamps}: {} of {before}", pipe.sender.cwnd());
    }
}

#[test]
fn each_ack_of_a_dctcp_receiver_is_for_marked_segments_or_for_others() {
    // RFC 8257 section 3.2: marks of five in a row, of single segments and of pairs, with ACKs of two
    // segments.
    let mut pipe = pipe(&[("algorithm", "dctcp"), ("quick_acks", "0")]);
    let marked = |n: usize| (300..305).contains(&n) || n == 311 || (320..322).contains(&n) || n == 331;
    pipe.fate = Box::new(move |n, _| if marked(n) { Fate::Mark } else { Fate::Pass });
    pipe.start(u64::MAX);
    pipe.run(Time::from_secs(2));
    // Whether the n-th packet, a segment after the SYN, was acknowledged with an echo.
    let (mut echoes, mut before) = (Vec::new(), 2);
    for (_, ack) in &pipe.acks[1..] {
        let echoed = ack.flags.has(Flags::ECE);
        echoes.resize(echoes.len() + (ack.ack.saturating_sub(before) / 1_448) as usize, echoed);
        before = before.max(ack.ack);
    }
    assert!(echoes.len() > 1_000);
    for (n, &echoed) in echoes.iter().enumerate() {
        assert_eq!(echoed, marked(n + 1), "segment {n}");
    }
    // A segment that changes the state is acknowledged at once, not with the next segment.
    for n in [300, 305, 311, 312, 320, 322, 331, 332] {
        assert!(pipe.acks.iter().any(|(_, ack)| ack.ack == 2 + 1_448 * n), "segment {n}");
    }
}

#[test]
fn a_mark_lowers_the_window_segment_by_segment_over_a_round_trip() {
    for algorithm in ["dctcp", "sack", "cubic"] {
        let mut pipe = pipe(&[("algorithm", algorithm), ("ecn", "true"), ("delayed_ack", "off")]);
        pipe.fate = Box::new(|n, _| if n == 50 { Fate::Mark } else { Fate::Pass });
        pipe.start(u64::MAX);
        pipe.run(Time::from_secs(1));
        let at = pipe.trace.windows(2).position(|pair| pair[1].ssthresh < pair[0].ssthresh).unwrap();
        let (window, begins) = (pipe.trace[at].cwnd, pipe.trace[at + 1]);
        let target = begins.ssthresh;
        assert!(window - target > 10.0, "{algorithm}: {window} to {target}");
        // Data sent before are delivered in a round trip: a segment for each ACK, target / window of which
        // are sent.
        let falls = pipe.trace[at + 1..].iter().take_while(|now| now.cwnd <= window).take(window as usize);
        for (delivered, now) in (1..).zip(falls) {
            let expected = window - f64::from(delivered) * (window - target) / window;
            assert!(
                (now.cwnd - expected).abs() <= 1.0,
                "{algorithm}, {delivered}: {} for {expected}",
                now.cwnd
            );
        }
        // Plus a few ms for the segments themselves.
        let ends = begins.at + DELAY * 2 + Span::from_millis(10);
        let ends = pipe.trace.iter().find(|now| now.at > ends).unwrap();
        assert!((ends.cwnd - target).abs() <= 1.0, "{algorithm}: {} for {target}", ends.cwnd);
    }
}

#[test]
fn all_packets_of_dctcp_are_ecn_capable_and_of_others_new_data_alone() {
    for (algorithm, all) in [("dctcp", true), ("cubic", false)] {
        let mut pipe = pipe(&[("algorithm", algorithm), ("ecn", "true")]).losing(&[0, 30]);
        pipe.start(300_000);
        pipe.run(Time::from_secs(10));
        let capable = |ecns: Vec<Ecn>| (ecns.iter().filter(|&&ecn| ecn == Ecn::Ect0).count(), ecns.len());
        let (data, sent) = capable(pipe.carried().map(|(_, ecn)| ecn).collect());
        let (acks, answers) = capable(pipe.answered().map(|(_, ecn)| ecn).collect());
        assert_eq!(pipe.sender.stats().timeouts, 1, "{algorithm}");
        assert!(sent > 200 && answers > 100);
        // The SYN was lost, so the next one does not request ECN, and nothing after it is ECN-capable.
        assert_eq!((data, acks), (0, 0), "{algorithm}");
        let mut pipe = super::linux::pipe(&[("algorithm", algorithm), ("ecn", "true")]).losing(&[30]);
        pipe.start(300_000);
        pipe.run(Time::from_secs(10));
        let (data, sent) = capable(pipe.carried().map(|(_, ecn)| ecn).collect());
        let (acks, answers) = capable(pipe.answered().map(|(_, ecn)| ecn).collect());
        assert_eq!(pipe.sender.stats().retransmits, 1, "{algorithm}");
        // Except for the SYN and retransmissions.
        assert_eq!((data, acks), if all { (sent, answers) } else { (sent - 2, 0) }, "{algorithm}");
    }
}
