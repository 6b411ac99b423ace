//! A shaper with a link behind it, in steps of a millisecond.

use apportion_testing::properties::cases;
use proptest::prelude::*;

use super::*;

const MS: Span = Span::from_millis(1);

/// A link whose rate changes, and its load.
#[derive(Clone, Debug)]
struct Trial {
    /// Rates one after another, each for a time in milliseconds.
    rates: Vec<(u64, Rate)>,
    rtt: Span,
    /// The largest random delay of an answer.
    noise: Span,
    /// The fraction of the rate that is offered.
    offered: f64,
    bounds: (Rate, Rate),
    /// Milliseconds between answers.
    every: u64,
    /// From this time on the path is longer by this span.
    detour: Option<(Time, Span)>,
    /// Two connections of eight answer late.
    lies: bool,
    /// A period without answers.
    silence: Option<(Time, Time)>,
}

/// The outcome of a trial.
#[derive(Debug)]
struct Outcome {
    /// 95th percentile of the link's queueing delay, in the second half of each rate.
    p95: Span,
    /// 95th percentile of the link's queueing delay over all the time.
    p95_of_all: Span,
    /// The used fraction of the link's rate, over all the time and in the second half of each rate.
    used: f64,
    used_later: f64,
    findings: Findings,
    rate: Rate,
}

const PARAMS: AutorateParams = AutorateParams {
    least: Rate::from_kbit(500),
    most: Rate::from_mbit(25),
    threshold: Span::from_millis(15),
    bottleneck: Bottleneck::Behind,
};

impl Trial {
    fn new(rates: &[(u64, u64)]) -> Self {
        Self {
            rates: rates.iter().map(|(s, mbit)| (s * 1_000, Rate::from_mbit(*mbit))).collect(),
            rtt: Span::from_millis(20),
            noise: Span::ZERO,
            offered: 1.0,
            bounds: (PARAMS.least, PARAMS.most),
            every: 5,
            detour: None,
            lies: false,
            silence: None,
        }
    }

    fn run(&self) -> Outcome {
        let params = AutorateParams { least: self.bounds.0, most: self.bounds.1, ..PARAMS };
        let mut auto = Autorate::new(Time::ZERO, params);
        let (mut now, mut waiting, mut chance) = (Time::ZERO, 0.0_f64, 1_u64);
        let mut under_way: VecDeque<(Time, Answer)> = VecDeque::new();
        let (mut delays, mut later) = (Vec::new(), Vec::new());
        let (mut passed, mut could, mut passed_later, mut could_later) = (0.0, 0.0, 0.0, 0.0);
        for (millis, link) in &self.rates {
            for ms in 0..*millis {
                now += MS;
                // A buffer of two seconds.
                let most = link.bytes_in(Span::from_secs(2)).get() as f64;
                let sent = auto.rate().bytes_in(MS).get() as f64 * self.offered;
                auto.moved(now, Bytes::new(sent as u64));
                let can = link.bytes_in(MS).get() as f64;
                let leaves = (waiting + sent).min(can);
                waiting = (waiting + sent - leaves).min(most);
                let delay = Span::from_secs_f64(waiting * 8.0 / link.as_bit() as f64);
                delays.push(delay);
                (passed, could) = (passed + leaves, could + can);
                if ms >= millis / 2 {
                    later.push(delay);
                    (passed_later, could_later) = (passed_later + leaves, could_later + can);
                }
                // A linear congruential generator (Knuth's constants).
                chance =
                    chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let is_silent = self.silence.is_some_and(|(from, to)| (from..to).contains(&now));
                if ms % self.every == 0 && !is_silent {
                    let noise = self.noise.as_nanos() * (chance >> 40) / (1 << 24);
                    // An answer that takes longer is given up.
                    let detour = self.detour.filter(|(from, _)| now >= *from).map_or(Span::ZERO, |it| it.1);
                    let connection = (ms / self.every % 8) as u32;
                    let seen = match connection {
                        0 | 1 if self.lies => Span::from_millis(400),
                        _ => delay,
                    };
                    let took = (self.rtt + detour + seen + Span::from_nanos(noise)).min(GIVE_UP);
                    let answer = Answer { connection, departed: now, took, shortest: self.rtt };
                    let at = under_way.partition_point(|(due, _)| *due <= now + took);
                    under_way.insert(at, (now + took, answer));
                }
                while under_way.front().is_some_and(|(due, _)| *due <= now) {
                    under_way.pop_front().into_iter().for_each(|(_, answer)| auto.answered(answer));
                }
                if auto.next_review() <= now {
                    auto.review(now, 0.1);
                }
            }
        }
        let p95 = |mut delays: Vec<Span>| {
            delays.sort_unstable();
            delays[delays.len() * 95 / 100]
        };
        Outcome {
            p95: p95(later),
            p95_of_all: p95(delays),
            used: passed / could,
            used_later: passed_later / could_later,
            findings: auto.findings(),
            rate: auto.rate(),
        }
    }
}

fn ms(n: u64) -> Span {
    Span::from_millis(n)
}

const SLOWER: [(u64, u64); 3] = [(20, 20), (20, 5), (20, 20)];

#[test]
fn it_follows_a_link_that_slows_down_and_recovers() {
    // Packets sent in the round trip after the change wait, however the rate is estimated.
    for (rtt, bound) in [(2, 30), (20, 30), (60, 30), (120, 80)] {
        let outcome = Trial { rtt: ms(rtt), ..Trial::new(&SLOWER) }.run();
        assert!(outcome.p95_of_all < ms(bound), "{rtt} ms: {outcome:?}");
        assert!(outcome.used > 0.9, "{rtt} ms: {outcome:?}");
    }
    // A fixed rate has either a queue or a low use.
    let fixed = |mbit| {
        let rate = Rate::from_mbit(mbit);
        Trial { bounds: (rate, rate), ..Trial::new(&SLOWER) }.run()
    };
    assert!(fixed(19).p95_of_all > ms(500));
    assert!(fixed(5).used < 0.6);
}

#[test]
fn a_rate_grows_only_where_it_is_used() {
    let outcome = Trial { offered: 0.5, ..Trial::new(&[(20, 100), (20, 10), (20, 100)]) }.run();
    // The rate had fallen to the half that the load fills.
    assert!(outcome.rate < Rate::from_mbit(25), "{outcome:?}");
    let busy = Trial::new(&[(20, 100), (20, 10), (20, 100)]).run();
    assert_eq!(busy.rate, Rate::from_mbit(25));
    let capacity = busy.findings.capacity.unwrap();
    assert!((9_500..10_500).contains(&(capacity.as_bit() / 1_000)), "{capacity}");
}

#[test]
fn the_lowest_rate_is_left_again_after_a_pause() {
    let mut auto = Autorate::new(Time::ZERO, PARAMS);
    let mut lowest = auto.rate();
    for at in 0..30_000_u64 {
        let now = Time::from_millis(at);
        // First no packets pass, then few are sent, then as many as possible.
        let (delay, load) = match at {
            ..6_000 => (ms(900), 1.0),
            6_000..20_000 => (ms(0), 0.1),
            _ => (ms(0), 1.0),
        };
        auto.moved(now, Bytes::new((auto.rate().bytes_in(MS).get() as f64 * load) as u64));
        let departed = Time::from_millis(at.saturating_sub(920));
        auto.answered(Answer { connection: at as u32 % 8, departed, took: ms(20) + delay, shortest: ms(20) });
        auto.review(now, 0.0);
        lowest = lowest.min(auto.rate());
    }
    assert_eq!(lowest, PARAMS.least);
    assert_eq!((auto.rate(), auto.findings().foreign), (PARAMS.most, 0));
}

#[test]
fn a_path_that_is_longer_from_then_on_is_no_queue() {
    let detour = Some((Time::from_secs(20), ms(40)));
    let outcome = Trial { detour, ..Trial::new(&[(60, 20)]) }.run();
    assert_eq!(outcome.findings.foreign, 1, "{outcome:?}");
    assert!(outcome.used_later > 0.95 && outcome.rate > Rate::from_mbit(17), "{outcome:?}");
    // A real queue never counts as foreign.
    assert_eq!(Trial::new(&SLOWER).run().findings.foreign, 0);
}

#[test]
fn hosts_that_answer_late_do_not_decide_where_they_are_few() {
    let outcome = Trial { lies: true, ..Trial::new(&SLOWER) }.run();
    assert!(outcome.p95 < ms(30) && outcome.used > 0.85, "{outcome:?}");
}

#[test]
fn the_other_direction_fills_the_link_where_this_one_is_idle() {
    let mut auto = Autorate::new(Time::ZERO, PARAMS);
    let mut review = |from: u64, load: f64, other: f64| {
        let mut lowered = 0;
        for at in from..from + 1_000 {
            let now = Time::from_millis(at);
            auto.moved(now, Bytes::new((PARAMS.most.bytes_in(MS).get() as f64 * load) as u64));
            let departed = Time::from_millis(at.saturating_sub(120));
            auto.answered(Answer { connection: 1, departed, took: ms(120), shortest: ms(20) });
            lowered += u64::from(auto.next_review() <= now && auto.review(now, other).is_some());
        }
        lowered
    };
    assert_eq!(review(0, 0.1, 0.9), 0);
    assert!(review(1_000, 0.1, 0.01) > 0, "a link that is slower than what passes at all");
}

#[test]
fn without_answers_the_rate_stays() {
    let mut auto = Autorate::new(Time::ZERO, PARAMS);
    for at in 0..10_000 {
        auto.moved(Time::from_millis(at), Bytes::new(3_000));
        assert_eq!(auto.review(Time::from_millis(at), 0.0), None);
    }
    assert_eq!((auto.rate(), auto.findings()), (PARAMS.most, Findings::default()));
}

#[test]
fn behind_the_queue_what_comes_in_is_what_the_link_passes() {
    // Senders take the rate that the shaper had a round trip ago, and a little more; the link is before the
    // shaper.
    let params = AutorateParams { bottleneck: Bottleneck::Before, ..PARAMS };
    let (mut auto, mut waiting) = (Autorate::new(Time::ZERO, params), 0.0_f64);
    let mut rates = VecDeque::from([PARAMS.most.bytes_in(MS).get() as f64; 40]);
    let (mut delays, mut passed) = (Vec::new(), 0.0);
    for at in 1..40_000 {
        let (now, link) = (Time::from_millis(at), if at < 20_000 { 20.0 } else { 6.0 });
        let can = link * 125.0;
        waiting = (waiting + 1.02 * rates.pop_front().unwrap()).min(can * 2_000.0);
        let comes = waiting.min(can);
        waiting -= comes;
        passed += f64::from(u8::from(at >= 30_000)) * comes / can / 10_000.0;
        auto.moved(now, Bytes::new(comes as u64));
        rates.push_back(auto.rate().bytes_in(MS).get() as f64);
        let delay = Span::from_secs_f64(waiting / can / 1_000.0);
        if at >= 30_000 {
            delays.push(delay);
        }
        // The answer to the packet that left before the queue that it met.
        let took = ms(40) + delay;
        let departed = Time::from_nanos(now.as_nanos().saturating_sub(took.as_nanos()));
        auto.answered(Answer {
            connection: at as u32 % 4,
            departed,
            took: took.min(GIVE_UP),
            shortest: ms(40),
        });
        if auto.next_review() <= now {
            auto.review(now, 0.1);
        }
    }
    delays.sort_unstable();
    let p95 = delays[delays.len() * 95 / 100];
    assert!(p95 < ms(40) && passed > 0.9, "{p95:?}, {passed}: {:?}", auto.findings());
}

/// One answer per review, with this `delay`, at a busy shaper; each a second after the one before.
fn lone_answers(auto: &mut Autorate, from: u64, seconds: u64, delay: Span) {
    for at in from * 1_000..(from + seconds) * 1_000 {
        let now = Time::from_millis(at);
        auto.moved(now, auto.rate().bytes_in(MS));
        if at % 1_000 == 999 {
            let took = ms(20) + delay;
            let departed = Time::from_nanos(now.as_nanos().saturating_sub(took.as_nanos()));
            auto.answered(Answer { connection: 0, departed, took, shortest: ms(20) });
        }
        auto.review(now, 0.1);
    }
}

#[test]
fn a_single_answer_lowers_the_rate_by_what_it_says() {
    let mut auto = Autorate::new(Time::ZERO, PARAMS);
    lone_answers(&mut auto, 0, 2, ms(30));
    let (rate, findings) = (auto.rate(), auto.findings());
    assert_eq!(findings.lowered, 1, "{findings:?}");
    assert!((Rate::from_mbit(15)..Rate::from_mbit(25)).contains(&rate), "{rate}: {findings:?}");
    assert!(findings.capacity.is_some_and(|capacity| capacity > Rate::from_mbit(20)), "{findings:?}");
    // A link with one sparse connection that is measured.
    let outcome = Trial { every: 1_000, ..Trial::new(&[(40, 20), (40, 10)]) }.run();
    assert!(outcome.used > 0.6 && outcome.rate > Rate::from_mbit(7), "{outcome:?}");
}

#[test]
fn answers_that_left_almost_together_do_not_tell_growth() {
    // Four packets within a millisecond, the last of which waited 5 ms longer at random.
    let mut auto = Autorate::new(Time::ZERO, PARAMS);
    for at in 0..200 {
        auto.moved(Time::from_millis(at), auto.rate().bytes_in(MS));
    }
    for (after, delay) in [(0, 30), (100, 30), (200, 35), (300, 35)] {
        let departed = Time::from_millis(150) + Span::from_micros(after);
        auto.answered(Answer { connection: 0, departed, took: ms(20 + delay), shortest: ms(20) });
    }
    auto.review(Time::from_millis(200), 0.1);
    assert_eq!(auto.findings().lowered, 1);
    assert!(auto.rate() > Rate::from_mbit(15), "{}: {:?}", auto.rate(), auto.findings());
}

#[test]
fn a_packet_that_waits_for_a_few_others_on_a_slow_link_is_no_queue_of_others() {
    // Three packets take 73 ms of 500 kb/s.
    let params = AutorateParams { most: PARAMS.least, ..PARAMS };
    let mut auto = Autorate::new(Time::ZERO, params);
    lone_answers(&mut auto, 0, 20, ms(25));
    assert_eq!(auto.findings().foreign, 0, "{:?}", auto.findings());
    // Delays above half of that are allowed.
    lone_answers(&mut auto, 20, 20, ms(60));
    assert_eq!(auto.findings().foreign, 1, "{:?}", auto.findings());
}

#[test]
fn what_counts_as_part_of_the_path_is_bounded_altogether() {
    let mut auto = Autorate::new(Time::ZERO, PARAMS);
    lone_answers(&mut auto, 0, 40, ms(150));
    assert_eq!(auto.findings().foreign, 1, "{:?}", auto.findings());
    // A queue of 350 ms counts, however it began.
    lone_answers(&mut auto, 40, 40, ms(350));
    assert_eq!((auto.findings().foreign, auto.rate()), (1, PARAMS.least), "{:?}", auto.findings());
    assert!(auto.foreign <= FOREIGN);
}

#[test]
fn it_works_at_rates_and_round_trips_far_from_those_of_a_home() {
    let slow = Trial {
        rates: [128, 64, 128].map(|kbit| (60_000, Rate::from_kbit(kbit))).to_vec(),
        rtt: ms(50),
        bounds: (Rate::from_kbit(16), Rate::from_kbit(256)),
        every: 100,
        ..Trial::new(&[])
    };
    let bounds = (Rate::from_mbit(1_000), Rate::from_mbit(10_000));
    let fast =
        Trial { rtt: ms(5), bounds, every: 1, ..Trial::new(&[(20, 9_000), (20, 2_000), (20, 10_000)]) };
    let satellite = Trial { rtt: ms(600), ..Trial::new(&[(60, 20), (60, 5), (60, 20)]) };
    // Three packets of 64 kb/s take 568 ms; packets sent within a round trip of 600 ms are seen only
    // afterwards.
    for (trial, bound) in [(slow, 600), (fast, 30), (satellite, 60)] {
        let outcome = trial.run();
        assert!(outcome.p95 < ms(bound) && outcome.used_later > 0.9, "{bound} ms: {outcome:?}");
    }
}

#[test]
fn answers_that_come_again_after_a_minute_are_followed() {
    // The link slows down while there are no answers.
    let silence = Some((Time::from_secs(20), Time::from_secs(70)));
    let outcome = Trial { silence, ..Trial::new(&[(20, 20), (130, 5)]) }.run();
    assert!(outcome.p95 < ms(30) && outcome.used_later > 0.9, "{outcome:?}");
    assert!(outcome.p95_of_all > ms(500), "without answers the rate stays: {outcome:?}");
}

#[test]
fn a_packet_that_was_given_up_long_after_it_left_says_nothing_of_growth() {
    let mut auto = Autorate::new(Time::ZERO, PARAMS);
    let now = Time::from_secs(10);
    for at in 0..10_000 {
        auto.moved(Time::from_millis(at), PARAMS.most.bytes_in(MS));
    }
    auto.review(now - ms(120), 0.1);
    // 25 Mb/s to a link of 20: the queue grows by a quarter of the time.
    for i in 0..20 {
        let took = ms(40) + Span::from_micros(i * 1_250);
        let departed = now - ms(160) + ms(i * 5);
        auto.answered(Answer { connection: 1, departed, took, shortest: ms(20) });
    }
    auto.answered(Answer { connection: 2, departed: now - ms(9_000), took: ms(9_000), shortest: ms(20) });
    auto.review(now, 0.1);
    let capacity = auto.findings().capacity.unwrap().as_mbit_f64();
    assert!((19.0..21.0).contains(&capacity), "{capacity}");
}

fn trials() -> impl Strategy<Value = Trial> {
    let rates = prop::collection::vec((15_000_u64..30_000, 1_500_u64..25_000), 2..6);
    (rates, 1_u64..150, 0_u64..8, 1_u64..30).prop_map(|(rates, rtt, noise, every)| Trial {
        rates: rates.into_iter().map(|(ms, kbit)| (ms, Rate::from_kbit(kbit))).collect(),
        rtt: ms(rtt),
        noise: ms(noise),
        every,
        ..Trial::new(&[])
    })
}

proptest! {
    #![proptest_config(cases(100))]

    /// The rate settles on any path, once the rate of the link has been constant for a while.
    #[test]
    fn it_finds_the_rate_of_any_link(trial in trials()) {
        let outcome = trial.run();
        let slowest = trial.rates.iter().map(|(_, rate)| *rate).min().unwrap();
        let bound = ms(30).max(slowest.time_for(FULL_SIZE) * (PACKETS + 2));
        prop_assert!(outcome.p95 < bound, "{outcome:?}");
        prop_assert!(outcome.used_later > 0.9, "{outcome:?}");
    }

    /// On any input the rate is within its bounds, and memory is bounded.
    #[test]
    fn nothing_leads_out_of_bounds(
        events in prop::collection::vec((0_u64..u64::MAX, 0_u64..u64::MAX, any::<u32>(), 0_u64..3_000), 1..600),
    ) {
        let mut auto = Autorate::new(Time::ZERO, PARAMS);
        let mut now = Time::ZERO;
        for (took, departed, connection, step) in events {
            now += Span::from_micros(step * 100);
            auto.moved(now, Bytes::new(took >> (connection % 64)));
            let departed = Time::from_nanos(departed >> (connection % 60));
            let shortest = Span::from_nanos(took >> 32);
            auto.answered(Answer { connection, departed, took: Span::from_nanos(took), shortest });
            auto.review(now, f64::from(connection));
            prop_assert!((PARAMS.least..=PARAMS.most).contains(&auto.rate()));
            prop_assert!(auto.answers.len() <= MOST && auto.moved.steps.len() <= STEPS);
        }
    }
}
