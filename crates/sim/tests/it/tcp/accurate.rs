//! Accurate ECN (RFC 9768), which Prague requires.

use std::sync::Arc;

use apportion_core::Ecn;
use apportion_core::random::Stream;
use apportion_core::units::{Rate, Span, Time};
use apportion_sim::tcp::accurate::Marks;
use apportion_sim::tcp::{Flags, Receiver, Segment};

use super::params;
use super::pipe::{Fate, Outbox, Pipe};

const RATE: Rate = Rate::from_mbit(50);
const DELAY: Span = Span::from_millis(50);
const OFFER: Flags = Flags::ACE;

fn prague(changes: &[(&str, &str)]) -> Pipe {
    let changes = [&[("algorithm", "prague"), ("window", "300kB")], changes].concat();
    Pipe::new(params("linux", &changes), 1, RATE, DELAY)
}

/// Returns the ECN fields of the data segments that a pipe carries, except for marks, where they change.
fn kinds(pipe: &mut Pipe) -> Vec<Ecn> {
    pipe.start(u64::MAX);
    pipe.run(Time::from_secs(3));
    let data = pipe.carried().filter(|(segment, ecn)| segment.payload > 0 && *ecn != Ecn::Ce);
    let mut kinds: Vec<Ecn> = data.map(|(_, ecn)| ecn).collect();
    kinds.dedup();
    kinds
}

#[test]
fn both_ends_count_from_five_after_a_handshake_that_agrees_on_it() {
    let mut pipe = prague(&[]);
    assert_eq!(kinds(&mut pipe), [Ecn::Ect1]);
    let flags = |(_, segment): &(Time, Segment)| segment.flags;
    // Section 3.1.1 and table 2: all three bits, and that the SYN was not ECN-capable.
    assert_eq!(flags(&pipe.sent[0]), Flags::SYN | OFFER);
    assert_eq!(flags(&pipe.acks[0]), Flags::SYN | Flags::ACK | Flags::CWR);
    assert!(pipe.sent[1..].iter().all(|sent| flags(sent).ace() == 5));
    assert!(pipe.acks[1..].iter().all(|ack| flags(ack).ace() == 5));
}

#[test]
fn the_field_is_the_count_of_marks_and_each_second_mark_is_acknowledged() {
    let mut pipe = prague(&[("quick_acks", "0")]);
    let marked = |n: usize| (300..305).contains(&n) || n == 311 || (320..322).contains(&n) || n == 331;
    pipe.fate = Box::new(move |n, _| if marked(n) { Fate::Mark } else { Fate::Pass });
    pipe.start(u64::MAX);
    pipe.run(Time::from_secs(2));
    for (_, ack) in &pipe.acks[1..] {
        let segments = (ack.ack - 2) as usize / 1_448;
        let marks = (1..=segments).filter(|&n| marked(n)).count();
        assert_eq!(usize::from(ack.flags.ace()), (5 + marks) % 8, "{segments} segments");
    }
    // Section 3.2.2.5.1: the first of a run at once, and then every second one.
    for n in [300, 302, 304, 311, 320, 331] {
        assert!(pipe.acks.iter().any(|(_, ack)| ack.ack == 2 + 1_448 * n), "segment {n}");
    }
}

#[test]
fn a_peer_without_it_gets_what_rfc_3168_has() {
    for (changes, kind, answer) in [
        (&[("algorithm", "cubic"), ("ecn", "true")][..], Ecn::Ect0, Flags::ECE),
        (&[("algorithm", "dctcp")], Ecn::Ect0, Flags::ECE),
        (&[("algorithm", "cubic")], Ecn::NotEct, Flags::NONE),
    ] {
        let mut pipe = prague(&[]);
        let peer = params("linux", &[changes, &[("window", "300kB")]].concat());
        pipe.receiver = Receiver::new(Arc::new(peer), 1);
        pipe.fate = Box::new(|n, _| if n == 500 { Fate::Mark } else { Fate::Pass });
        assert_eq!(kinds(&mut pipe), [kind], "{changes:?}");
        assert_eq!(pipe.acks[0].1.flags, Flags::SYN | Flags::ACK | answer);
        let reductions = u64::from(kind == Ecn::Ect0);
        assert_eq!(pipe.sender.stats().ecn_reductions, reductions, "{changes:?}");
        // RFC 3168 section 6.1.2: one reduction, signalled once.
        let said = pipe.sent[1..].iter().filter(|(_, segment)| segment.flags.has(Flags::CWR)).count();
        assert_eq!(said as u64, reductions);
    }
}

#[test]
fn a_syn_that_is_lost_asks_once_more_and_then_for_nothing() {
    let mut pipe = prague(&[]).losing(&[0, 1]);
    pipe.start(u64::MAX);
    pipe.run(Time::from_secs(4));
    let syns: Vec<_> = pipe.sent[..3].iter().map(|(_, syn)| syn.flags).collect();
    assert_eq!(syns, [Flags::SYN | OFFER, Flags::SYN | OFFER, Flags::SYN]);
    assert_eq!(pipe.acks[0].1.flags, Flags::SYN | Flags::ACK);
}

/// The flags of the SYN/ACKs with which a receiver answers SYNs with these flags.
fn answers(requests: &[(Flags, Ecn)]) -> Vec<Flags> {
    let mut receiver = Receiver::new(Arc::new(params("linux", &[("algorithm", "prague")])), 1);
    let answer = |&(request, ecn): &(Flags, Ecn)| {
        let mut out = Outbox::default();
        let syn = Segment { seq: 1, flags: Flags::SYN | request, ..Segment::default() };
        receiver.on_segment(Time::ZERO, &syn, ecn, &mut out);
        out.take()[0].0.flags
    };
    requests.iter().map(answer).collect()
}

#[test]
fn the_first_syn_decides_and_the_last_one_is_reported() {
    let (yes, none) = (Flags::SYN | Flags::ACK, Flags::NONE);
    // Section 3.1.5: a later SYN that requests nothing is answered by a SYN/ACK that grants it.
    let requests = [(OFFER, Ecn::Ect0), (none, Ecn::NotEct), (OFFER, Ecn::Ect1)];
    let reports = [Flags::AE, Flags::CWR, Flags::CWR | Flags::ECE].map(|report| yes | report);
    assert_eq!(answers(&requests), reports);
    // And without a first request, nothing is granted.
    let requests = [(none, Ecn::NotEct), (OFFER, Ecn::NotEct), (Flags::CWR | Flags::ECE, Ecn::NotEct)];
    assert_eq!(answers(&requests), [yes; 3]);
}

#[test]
fn two_lost_answers_do_not_end_it() {
    let mut pipe = prague(&[]);
    pipe.ack_fate = Box::new(|n, _| if n < 2 { Fate::Lose } else { Fate::Pass });
    pipe.start(u64::MAX);
    pipe.run(Time::from_secs(4));
    let flags = |(_, segment): &(Time, Segment)| segment.flags;
    assert_eq!(flags(&pipe.sent[2]), Flags::SYN);
    assert_eq!(flags(&pipe.acks[2]), Flags::SYN | Flags::ACK | Flags::CWR);
    // Section 3.1.4.1: a client is still allowed to send ECN-capable packets.
    let mut data = pipe.carried().filter(|(segment, _)| segment.payload > 0);
    assert!(data.all(|(_, ecn)| ecn == Ecn::Ect1) && pipe.receiver.delivered() > 0);
}

#[test]
fn a_peer_whose_flags_are_cleared_gets_no_capable_packets() {
    for (ack, asked_none, kind, marks) in [
        (Some(Flags::ACK | Flags::CWR), false, Ecn::Ect1, 1),
        (None, false, Ecn::Ect1, 1),
        (Some(Flags::ACK | Flags::CWR), true, Ecn::NotEct, 0),
        (Some(Flags::ACK | Flags::AE | Flags::CWR), false, Ecn::Ect1, 1),
        (Some(Flags::ACK), false, Ecn::NotEct, 0),
    ] {
        let mut pipe = prague(&[]);
        pipe.start(0);
        pipe.run(Time::from_millis(500));
        pipe.sender.confirm(ack, asked_none);
        let counted = pipe.sender.info().marked;
        let is_marked = ack.is_some_and(|ack| ack.has(Flags::AE));
        assert_eq!(counted, u32::from(is_marked));
        if is_marked {
            // The peer counts its SYN/ACK too.
            let mark = Segment { seq: 2, flags: Flags::ACK, ..Segment::default() };
            pipe.receiver.on_segment(pipe.now, &mark, Ecn::Ce, &mut Outbox::default());
        }
        pipe.fate = Box::new(|n, _| if n == 9 { Fate::Mark } else { Fate::Pass });
        pipe.with_sender(|sender, now, out| sender.supply(now, 50_000, out));
        pipe.run(Time::from_secs(2));
        let data = pipe.carried().filter(|(segment, ecn)| segment.payload > 0 && *ecn != Ecn::Ce);
        assert!(data.map(|(_, ecn)| ecn).all(|ecn| ecn == kind), "{ack:?} {asked_none}");
        assert_eq!(pipe.sender.info().marked - counted, marks, "{ack:?} {asked_none}");
    }
}

/// The ratio of the marked share of segments as a receiver of `algorithm` reports it, over a path that loses
/// half of its ACKs, to the actual one.
fn seen(algorithm: &str, share: f64) -> f64 {
    let params =
        Arc::new(params("linux", &[("algorithm", algorithm), ("syn", "false"), ("quick_acks", "0")]));
    let mut receiver = Receiver::new(params, 1);
    let mut random = Stream::new(5, "accurate");
    let (mut marked, mut seen, mut acked, mut marks) = (0, 0, 1, Marks::default());
    for n in 0..50_000u32 {
        let is_marked = random.chance(share);
        marked += u32::from(is_marked);
        let segment = Segment { seq: 1 + 1_448 * n, payload: 1_448, flags: Flags::ACK, ..Segment::default() };
        let mut outbox = Outbox::default();
        let ecn = if is_marked { Ecn::Ce } else { Ecn::Ect1 };
        receiver.on_segment(Time::from_millis(n.into()), &segment, ecn, &mut outbox);
        for (ack, ..) in outbox.take() {
            if random.chance(0.5) {
                continue;
            }
            let segments = (ack.ack - acked) / 1_448;
            acked = ack.ack;
            seen += match algorithm {
                "prague" => marks.decode(ack.flags, segments, share),
                _ if ack.flags.has(Flags::ECE) => segments,
                _ => 0,
            };
        }
    }
    f64::from(seen) / f64::from(marked)
}

#[test]
fn half_of_the_acks_lost_change_what_an_echo_says_and_not_what_a_count_says() {
    for share in [0.02, 0.1, 0.3] {
        let (count, echo) = (seen("prague", share), seen("dctcp", share));
        assert!((count - 1.0).abs() < 0.02, "{share}: {count}");
        assert!((echo - 1.0).abs() > 0.1, "{share}: {echo}");
    }
}
