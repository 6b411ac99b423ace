//! Estimates of a link from the headers of connections alone.

use std::collections::VecDeque;
use std::path::Path;

use super::*;

fn config(up: &str) -> GatewayConfig {
    let text = format!("inside = \"a\"\noutside = \"b\"\ndown.rate = \"10Mbit\"\n[up]\n{up}\n");
    GatewayConfig::load(&text, Path::new("x.toml")).unwrap_or_else(|problems| panic!("{problems:?}"))
}

const AUTO: &str = "rate = \"auto\"\nrate_max = \"25Mbit\"";

fn at(ms: u64) -> Time {
    Time::from_millis(ms)
}

fn tuple(port: u16) -> FlowTuple {
    FlowTuple::new(&apportion_scenario::gateway::classifier::Headers {
        protocol: 6,
        source: "192.0.2.1".parse().unwrap(),
        destination: "198.51.100.1".parse().unwrap(),
        ports: Some((port, 443)),
        dscp: 0,
    })
    .unwrap()
}

fn data(sequence: u32) -> Segment {
    Segment { flags: ACK, sequence, acknowledges: Some(1), payload: Bytes::new(1_000) }
}

fn ack(number: u32) -> Segment {
    Segment { flags: ACK, sequence: 1, acknowledges: Some(number), payload: Bytes::ZERO }
}

const ACK: u8 = 1 << 4;

#[test]
fn a_link_is_behind_the_shaper_of_what_goes_to_its_side() {
    let behind = |direction, link| {
        let auto = AutoRate { least: Rate::from_mbit(1), threshold: Span::from_millis(15), link };
        following(auto, direction, Rate::from_mbit(25)).bottleneck
    };
    assert_eq!(behind(Direction::Up, Side::Outside), Bottleneck::Behind);
    assert_eq!(behind(Direction::Down, Side::Outside), Bottleneck::Before);
    assert_eq!(behind(Direction::Down, Side::Inside), Bottleneck::Behind);
    assert_eq!(behind(Direction::Up, Side::Inside), Bottleneck::Before);
}

/// Times to the answers of these events, in milliseconds.
fn took(sampler: &mut Sampler, events: &[(u64, Result<Segment, Segment>)]) -> Vec<u64> {
    let answers = events.iter().filter_map(|(ms, event)| match event {
        Ok(sent) => sampler.departed(at(*ms), *sent, None),
        Err(answer) => sampler.answered(at(*ms), *answer, None),
    });
    answers.map(|span| span.as_nanos() / 1_000_000).collect()
}

#[test]
fn many_segments_are_waited_for_at_the_same_time() {
    let events = [
        (0, Ok(data(0))),
        (10, Ok(data(1_000))),
        // Too soon after the segment before.
        (12, Ok(data(2_000))),
        (30, Ok(data(3_000))),
        (40, Err(ack(1_000))),
        (60, Err(ack(2_000))),
        (62, Err(ack(3_000))),
        (95, Err(ack(4_000))),
    ];
    assert_eq!(took(&mut Sampler::default(), &events), [40, 50, 65]);
}

#[test]
fn what_is_sent_again_and_what_waits_for_it_measures_nothing() {
    let events = [
        (0, Ok(data(0))),
        (10, Ok(data(1_000))),
        (20, Ok(data(2_000))),
        (40, Err(ack(1_000))),
        // The second was lost.
        (60, Err(ack(1_000))),
        (65, Ok(data(1_000))),
        (105, Err(ack(3_000))),
        (110, Ok(data(3_000))),
        (150, Err(ack(4_000))),
    ];
    assert_eq!(took(&mut Sampler::default(), &events), [40, 40]);
}

#[test]
fn no_answer_for_a_second_is_an_answer_too() {
    let events = [(0, Ok(data(0))), (500, Ok(data(1_000))), (1_100, Ok(data(2_000)))];
    assert_eq!(took(&mut Sampler::default(), &events), [1_100]);
    // An acknowledgement of a segment that never left does not count.
    assert_eq!(took(&mut Sampler::default(), &[(0, Ok(data(0))), (1, Err(ack(9_000)))]), [0; 0]);
}

#[test]
fn timestamps_are_answered_by_their_echo_alone() {
    let stamps = |value, echo| Some(Timestamps { value, echo: Some(echo) });
    let mut sampler = Sampler::default();
    // Acknowledgements of a download, and its data.
    assert_eq!(sampler.departed(at(0), ack(1), stamps(100, 1)), None);
    assert_eq!(sampler.departed(at(20), ack(1_001), stamps(120, 1)), None);
    assert_eq!(sampler.answered(at(50), data(1_001), stamps(7, 100)), Some(Span::from_millis(50)));
    // The segment with this value did not depart, or departed too soon after another.
    assert_eq!(sampler.answered(at(75), data(2_001), stamps(8, 121)), None);
    assert_eq!(sampler.answered(at(80), data(3_001), stamps(8, 120)), Some(Span::from_millis(60)));
}

#[test]
fn a_queue_behind_the_gateway_lowers_the_rate_of_the_direction_that_fills_it() {
    let mut autorates = Autorates::after(None, &config(AUTO), Time::ZERO).unwrap();
    assert!(autorates.watches(Direction::Up) && !autorates.watches(Direction::Down));
    assert_eq!(autorates.rate(Direction::Up), Rate::from_mbit(25));
    // 25 Mb/s to a link of 10 Mb/s with 20 ms: a departure at t is answered after 20 ms + 1.5 t.
    let mut answers: Vec<(u64, u32)> = Vec::new();
    let mut changes = Vec::new();
    for ms in 0..300_u64 {
        let number = 3_000 * ms as u32;
        autorates.departed(at(ms), Direction::Up, Bytes::new(3_125), Some((tuple(1), data(number), None)));
        answers.push((ms + 20 + ms * 3 / 2, number + 1_000));
        for (_, number) in answers.extract_if(.., |(due, _)| *due <= ms).collect::<Vec<_>>() {
            let back = tuple(1).reversed();
            autorates.arrived(at(ms), Direction::Down, Bytes::new(60), Some((back, ack(number), None)));
        }
        changes.extend(autorates.review(at(ms))[0]);
    }
    let first = changes[0].as_mbit_f64();
    assert!((4.0..10.5).contains(&first), "{changes:?}");
    let findings = autorates.findings(Direction::Up).unwrap();
    assert!(findings.capacity.is_some_and(|rate| (9.0..11.0).contains(&rate.as_mbit_f64())), "{findings:?}");
    assert_eq!(autorates.findings(Direction::Down), None);
    // A reload keeps the estimates, within the new bounds, and a fixed rate ends them.
    let before = autorates.rate(Direction::Up);
    let autorates = Autorates::after(Some(autorates), &config(AUTO), at(300)).unwrap();
    assert_eq!(autorates.rate(Direction::Up), before);
    let higher = config("rate = \"auto\"\nrate_max = \"25Mbit\"\nrate_min = \"20Mbit\"");
    let autorates = Autorates::after(Some(autorates), &higher, at(300)).unwrap();
    assert_eq!(autorates.rate(Direction::Up), Rate::from_mbit(20));
    assert!(Autorates::after(Some(autorates), &config("rate = \"5Mbit\""), at(300)).is_none());
}

#[test]
fn a_flood_of_connections_takes_no_more_memory() {
    let mut autorates = Autorates::after(None, &config(AUTO), Time::ZERO).unwrap();
    for port in 0..60_000 {
        let segment = Some((tuple(port), data(0), None));
        autorates.departed(at(u64::from(port) / 10), Direction::Up, Bytes::new(100), segment);
    }
    assert!(autorates.outside.samplers.len() <= MOST && autorates.inside.samplers.is_empty());
}

/// The tuple of forged flow `n`.
fn forged(n: u64) -> FlowTuple {
    FlowTuple::new(&apportion_scenario::gateway::classifier::Headers {
        protocol: 6,
        source: std::net::Ipv4Addr::from(0x0a00_0000 + (n >> 16) as u32).into(),
        destination: "198.51.100.2".parse().unwrap(),
        ports: Some((n as u16, 443)),
        dscp: 0,
    })
    .unwrap()
}

/// Number of answers that count, of a connection that sends every 20 ms from 10 s to 20 s and is answered
/// after 40 ms, beside a flood of new tuples from `begin` on, in tuples per second, without answers.
fn answers_beside(flood: u64, begin: u64) -> u64 {
    let mut autorates = Autorates::after(None, &config(AUTO), Time::ZERO).unwrap();
    let (mut tuples, mut number, mut due) = (0, 0_u32, VecDeque::new());
    for ms in 0..20_000_u64 {
        while tuples < ms.saturating_sub(begin * 1_000) * flood / 1_000 {
            let segment = Some((forged(tuples), data(0), None));
            autorates.departed(at(ms), Direction::Up, Bytes::new(60), segment);
            tuples += 1;
        }
        if ms >= 10_000 && ms % 20 == 0 {
            let segment = Some((tuple(1), data(number), None));
            autorates.departed(at(ms), Direction::Up, Bytes::new(1_040), segment);
            number += 1_000;
            due.push_back((ms + 40, number));
        }
        while let Some(&(_, number)) = due.front().filter(|(due, _)| *due <= ms) {
            due.pop_front();
            let back = Some((tuple(1).reversed(), ack(number), None));
            autorates.arrived(at(ms), Direction::Down, Bytes::new(60), back);
        }
        autorates.review(at(ms));
    }
    autorates.findings(Direction::Up).unwrap().answers
}

#[test]
fn a_flood_of_tuples_without_answers_takes_no_place_from_a_connection() {
    let alone = answers_beside(0, 0);
    assert!(alone > 490, "{alone}");
    // Where the flood fills the table in more than a round trip, connections that begin later are measured as
    // well.
    for (flood, begin) in [(100, 0), (10_000, 0), (50_000, 11)] {
        assert_eq!(answers_beside(flood, begin), alone, "{flood} a second, from {begin} s on");
    }
}
