//! Constructed ACKs of a path of 100 segments of 1250 bytes each 100 ms, 10 Mb/s, on which each ACK is for
//! one segment.

use apportion_core::units::{Bytes, Rate, Span, Time};

use super::{Bbr3, State};
use crate::congestion::delivery_rate::{RateSample, Transit};
use crate::congestion::path_model::{PathModel as _, SampledAck};

const PATH: u32 = 100;
const RTT: Span = Span::from_millis(100);

/// The ACK of segment `n`, which was sent with `in_flight` segments in flight; `lost` of them have been lost
/// since.
fn ack(n: u64, in_flight: u32, lost: u64) -> SampledAck {
    let sample = RateSample {
        prior_delivered: n.saturating_sub(u64::from(PATH)),
        delivered: u64::from(PATH),
        interval: RTT,
        is_app_limited: false,
        rtt: Some(RTT),
    };
    SampledAck {
        now: Time::from_millis(n),
        total: n,
        delivered: 1,
        lost: 0,
        total_lost: 0,
        prior_in_flight: in_flight,
        in_flight,
        sample: Some(sample),
        transit: Transit { in_flight, lost, is_app_limited: false },
        is_cwnd_limited: true,
    }
}

/// The path with its sender's window, and the number of the next segment.
struct Path {
    bbr: Bbr3,
    cwnd: f64,
    n: u64,
}

impl Path {
    /// A path past Startup and Drain.
    fn new() -> Self {
        let mut path = Self { bbr: Bbr3::new(10.0, Bytes::new(1_250)), cwnd: 10.0, n: 1 };
        // With enough in flight that it does not cruise at once.
        path.until(State::Down, 2 * PATH);
        path
    }

    fn ack(&mut self, in_flight: u32, lost: u64) {
        self.cwnd = self.bbr.on_ack(self.cwnd, ack(self.n, in_flight, lost));
        self.n += 1;
    }

    /// Continues with `in_flight` in flight until `state`; returns the number of ACKs.
    fn until(&mut self, state: State, in_flight: u32) -> u64 {
        let from = self.n;
        while self.bbr.state != state {
            self.ack(in_flight, 0);
            assert!(self.n - from < 10_000, "in {:?} and not in {state:?}", self.bbr.state);
        }
        self.n - from
    }

    fn lose(&mut self, in_flight: u32, lost: u64) {
        let transit = Transit { in_flight, lost, is_app_limited: false };
        self.bbr.lose(Time::from_millis(self.n), self.cwnd, self.n, transit, true);
    }
}

#[test]
fn startup_ends_after_three_round_trips_that_find_no_more() {
    let mut bbr = Bbr3::new(10.0, Bytes::new(1_250));
    let mut cwnd = 10.0;
    for n in 1..=500 {
        cwnd = bbr.on_ack(cwnd, ack(n, 2 * PATH, 0));
        // Rounds begin at 1, 101 and so on: the first finds the rate, the three after it no increase. Half of
        // the rate drains the rest.
        let expected = if n < 301 { State::Startup } else { State::Drain };
        assert_eq!(bbr.state, expected, "{n}");
        if n == 400 {
            // 0.5 · 0.99 of 10 Mb/s.
            assert_eq!(bbr.pacing_rate(None), Rate::from_kbit(4_950));
        }
    }
}

#[test]
fn startup_ends_with_six_losses_in_a_round_trip_of_which_a_fiftieth_is_lost() {
    let run = |events: u32, lost: u64| {
        let mut path = Path { bbr: Bbr3::new(10.0, Bytes::new(1_250)), cwnd: 10.0, n: 1 };
        (1..=50).for_each(|_| path.ack(2 * PATH, 0));
        path.bbr.time_out(path.cwnd);
        (0..events).for_each(|_| path.lose(2 * PATH, 1));
        // The rate still grows: only losses can end it.
        for n in 51..=200 {
            let mut next = ack(n, 2 * PATH, lost);
            next.sample.as_mut().unwrap().delivered = n;
            path.cwnd = path.bbr.on_ack(path.cwnd, next);
        }
        (path.bbr.full_bw_reached, path.bbr.inflight_longterm)
    };
    assert_eq!(run(5, 5), (false, f64::INFINITY));
    assert_eq!(run(6, 4), (false, f64::INFINITY));
    let (ended, bound) = run(6, 5);
    assert!(ended && (100.0..=200.0).contains(&bound), "{bound}");
}

#[test]
fn a_cycle_goes_down_cruises_refills_for_a_round_trip_and_goes_up() {
    let mut path = Path::new();
    // Without a bound of its own it cruises as soon as the BDP is not exceeded.
    assert!(path.until(State::Cruise, PATH) <= 2);
    let cruised = path.until(State::Refill, PATH);
    // 2 to 3 s, at one ACK a millisecond; or 62 or 63 round trips, which are longer.
    assert!((1_990..=3_001).contains(&cruised), "{cruised}");
    assert_eq!(path.until(State::Up, PATH), 100);
    // Up ends when the rate has not grown for three round trips.
    let up = path.until(State::Down, PATH);
    assert!((300..=400).contains(&up), "{up}");
}

#[test]
fn where_the_path_holds_few_segments_it_probes_as_often_as_reno() {
    // Ten segments each 100 ms: Reno's window grows by ten in ten round trips, a second, which is less than
    // the two.
    let mut path = Path { bbr: Bbr3::new(10.0, Bytes::new(1_250)), cwnd: 10.0, n: 1 };
    let mut refills = Vec::new();
    let mut was = State::Startup;
    // Up to the first probe of the round trip, after 5 s.
    for n in 1..490 {
        let mut next = ack(n, 10, 0);
        let sample = next.sample.as_mut().unwrap();
        (sample.prior_delivered, sample.delivered) = (n.saturating_sub(10), 10);
        next.now = Time::from_millis(10 * n);
        path.cwnd = path.bbr.on_ack(path.cwnd, next);
        if path.bbr.state == State::Refill && was != State::Refill {
            refills.push(n);
        }
        was = path.bbr.state;
    }
    assert_eq!(refills.len(), 3, "{refills:?}");
    // Up takes three to four rounds, Refill one, and the ten begin at 0 or 1.
    assert!(refills.windows(2).all(|pair| (120..=160).contains(&(pair[1] - pair[0]))), "{refills:?}");
}

#[test]
fn what_is_lost_in_a_probe_bounds_what_is_kept_in_the_network() {
    let mut path = Path::new();
    path.until(State::Up, PATH);
    // 4 of 200 in flight are lost: no more than 2 %. The fifth exceeds it: 2 % of 199 are 3.98, so that (3.98
    // - 4) / 0.98 could have been added to 199.
    path.lose(200, 4);
    assert_eq!((path.bbr.state, path.bbr.inflight_longterm), (State::Up, f64::INFINITY));
    path.lose(200, 5);
    assert_eq!(path.bbr.state, State::Down);
    let expected = 199.0 + (0.02 * 199.0 - 4.0) / 0.98;
    assert!((path.bbr.inflight_longterm - expected).abs() < 1e-9, "{}", path.bbr.inflight_longterm);
    // While it cruises a part of that is left to others.
    path.until(State::Cruise, 80);
    path.cwnd = 1_000.0;
    path.ack(80, 0);
    assert!((path.cwnd - 0.85 * expected).abs() < 1e-9, "{}", path.cwnd);
}

#[test]
fn a_probe_without_losses_raises_the_bound_faster_each_round_trip() {
    let mut path = Path::new();
    path.bbr.inflight_longterm = 150.0;
    path.until(State::Up, PATH);
    let mut bounds = Vec::new();
    for _ in 0..4 {
        let before = path.bbr.inflight_longterm;
        for _ in 0..PATH {
            path.cwnd = path.bbr.inflight_longterm;
            path.ack(PATH, 0);
        }
        bounds.push(path.bbr.inflight_longterm - before);
    }
    // The window has 150 to 160 segments: one more for each 150, then for each 76, 38, 19 that are delivered.
    assert!(bounds[0] <= 1.0 && bounds[3] >= 4.0 && bounds.is_sorted(), "{bounds:?}");
    assert_eq!(path.bbr.state, State::Up);
}

#[test]
fn losses_while_it_cruises_lower_the_short_term_bounds_until_the_next_probe() {
    let mut path = Path::new();
    path.until(State::Cruise, PATH);
    // A round ends with an ACK of data sent after its first loss; meanwhile only half arrives. Everything
    // arrived in the round before.
    for bound in [10, 7] {
        path.lose(PATH, 1);
        for n in path.n..=path.n + u64::from(PATH) {
            let mut next = ack(n, PATH, 1);
            next.sample.as_mut().unwrap().delivered = 50;
            path.cwnd = path.bbr.on_ack(path.cwnd, next);
        }
        path.n += u64::from(PATH) + 1;
        assert_eq!(path.bbr.bw(), Rate::from_mbit(bound));
    }
    // 0.7 of 10 Mb/s, minus the margin of 1 %.
    assert_eq!(path.bbr.pacing_rate(None), Rate::from_kbit(6_930));
    assert!(path.bbr.inflight_shortterm.is_finite());
    path.until(State::Refill, PATH);
    assert_eq!((path.bbr.bw(), path.bbr.inflight_shortterm), (Rate::from_mbit(10), f64::INFINITY));
    // In a probe losses lower nothing.
    path.until(State::Up, PATH);
    path.lose(PATH, 1);
    (0..150).for_each(|_| path.ack(PATH, 1));
    assert_eq!(path.bbr.bw(), Rate::from_mbit(10));
}

#[test]
fn each_five_seconds_the_window_falls_to_half_of_the_path_for_200_ms() {
    let mut path = Path::new();
    path.until(State::ProbeRtt, PATH);
    assert!((5_000..5_010).contains(&path.n), "{}", path.n);
    let (before, mut in_flight) = (path.n, PATH);
    while path.bbr.state == State::ProbeRtt {
        in_flight = in_flight.saturating_sub(1).max(50);
        path.ack(in_flight, 0);
        assert!(path.bbr.state != State::ProbeRtt || (path.cwnd - 50.0).abs() < 1e-9, "{}", path.cwnd);
    }
    // 50 ACKs until no more than that is in flight, then 200 ms.
    assert!((250..=252).contains(&(path.n - before)), "{}", path.n - before);
    assert!(path.bbr.state == State::Cruise && path.cwnd > 190.0, "{:?} {}", path.bbr.state, path.cwnd);
}

#[test]
fn a_sample_that_the_application_limited_counts_only_if_it_is_larger() {
    let with = |delivered: u64, is_app_limited: bool| {
        let mut path = Path::new();
        let mut next = ack(path.n, PATH, 0);
        let sample = next.sample.as_mut().unwrap();
        (sample.delivered, sample.is_app_limited) = (delivered, is_app_limited);
        path.bbr.max_bw_filter = [Rate::ZERO, Rate::from_mbit(10)];
        path.cwnd = path.bbr.on_ack(path.cwnd, next);
        path.bbr.max_bw_filter[0]
    };
    assert_eq!([with(50, true), with(50, false)], [Rate::ZERO, Rate::from_mbit(5)]);
    assert_eq!([with(120, true), with(120, false)], [Rate::from_mbit(12); 2]);
}

#[test]
fn acks_that_come_together_leave_room_for_what_they_hold_back() {
    let window = |each: u32| {
        let mut path = Path::new();
        path.until(State::Cruise, PATH);
        for n in path.n..path.n + 600 {
            let mut next = ack(n, PATH, 0);
            next.delivered = if n % u64::from(each) == 0 { each } else { 0 };
            path.cwnd = path.bbr.on_ack(path.cwnd, next);
        }
        path.cwnd
    };
    // Twice the BDP, and the size of the largest burst of arrivals.
    let (single, bursts) = (window(1), window(40));
    assert!((38.0..=42.0).contains(&(bursts - single)), "{single} {bursts}");
}
