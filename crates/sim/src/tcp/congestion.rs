//! The congestion window: slow start, congestion avoidance, and what a loss takes.
//!
//! RFC 5681 section 3.1; ns-2 where a profile says so. In segments, as real numbers, in every profile.

use apportion_core::units::{Span, Time};
use apportion_scenario::tcp::{Algorithm, Halving, InitialSsthresh, InitialWindow, TcpParams};

use super::cubic::{self, Cubic};

/// The congestion window and threshold of one connection.
#[derive(Clone, Debug)]
pub struct Congestion {
    /// The congestion window in segments, without what duplicate ACKs add.
    pub cwnd: f64,
    /// Slow start below, congestion avoidance from here on.
    pub ssthresh: f64,
    /// On the heap, and made when it is used: Reno and its relatives have none.
    cubic: Option<Box<Cubic>>,
}

/// What the window learns from an ACK of new data.
#[derive(Clone, Copy, Debug)]
pub struct Growth {
    /// When it came.
    pub now: Time,
    /// Segments it acknowledges.
    pub acked: f64,
    /// The RTT that CUBIC looks ahead by.
    pub srtt: Span,
    /// Whether the window, rather than the application or the receiver, limited what was sent.
    pub limited: bool,
}

impl Congestion {
    /// A window before anything was sent.
    #[must_use]
    pub fn new(params: &TcpParams) -> Self {
        let ssthresh = match params.initial_ssthresh {
            InitialSsthresh::Window => params.window_bytes() as f64 / params.segment.get() as f64,
            InitialSsthresh::Unlimited => f64::INFINITY,
            InitialSsthresh::Packets(n) => n.get() as f64,
        };
        Self { cwnd: initial_window(params), ssthresh, cubic: None }
    }

    /// Whether all that an ACK of new data says about growth is that it came.
    #[must_use]
    pub fn counts_acks(&self, params: &TcpParams) -> bool {
        !params.byte_counting && !self.grows_by_time(params)
    }

    /// Opens the window for an ACK of new data.
    pub fn grow(&mut self, params: &TcpParams, ack: Growth) {
        if self.grows_by_time(params) {
            self.cwnd = self.cubic.get_or_insert_default().grow(self.cwnd, params.cubic, ack);
        } else {
            self.grow_by(params, if params.byte_counting { ack.acked } else { 1.0 });
        }
    }

    /// As [`grow`](Self::grow), by slow start or Reno's avoidance, for an ACK that counts as one of `acked` segments.
    #[inline]
    pub fn grow_by(&mut self, params: &TcpParams, acked: f64) {
        // RFC 5681 section 3.1, equations (2) and (3). Counting bytes, avoidance adds one segment for each window
        // acknowledged, and slow start what is acknowledged, up to RFC 3465's limit L.
        self.cwnd = if self.cwnd >= self.ssthresh {
            self.cwnd + acked / self.cwnd
        } else if let Some(limit) = params.abc_limit {
            self.cwnd + acked.min(f64::from(limit))
        } else {
            // One ACK could carry slow start far beyond its end.
            (self.cwnd + acked).min(self.ssthresh.max(self.cwnd + 1.0))
        };
    }

    fn grows_by_time(&self, params: &TcpParams) -> bool {
        params.algorithm == Algorithm::Cubic && self.cwnd >= self.ssthresh
    }

    /// A loss found by duplicate ACKs, or a mark: the window and the threshold fall.
    ///
    /// `window` is what the receiver allows and `flight` what is outstanding, in segments.
    pub fn cut(&mut self, params: &TcpParams, window: f64, flight: f64) {
        let half = self.reduced(params, window, flight);
        self.set_threshold(params, half);
        // RFC 5681 section 3.2 step 3 without the three segments, which are counted apart. ns-2 lets cwnd
        // keep the fraction that its threshold loses, and never leaves less than a segment.
        self.cwnd = match params.halving {
            Halving::Flight => self.ssthresh,
            Halving::Window if params.truncate_cwnd => half.trunc().max(1.0),
            Halving::Window => half.max(1.0),
        };
    }

    /// The retransmission timer expired with data outstanding. `stands`: the threshold was lowered for the same
    /// data before, and stays.
    pub fn time_out(&mut self, params: &TcpParams, window: f64, flight: f64, stands: bool) {
        if !stands {
            let half = self.reduced(params, window, flight);
            self.set_threshold(params, half);
        }
        if let Some(cubic) = &mut self.cubic {
            cubic.forget();
        }
        self.cwnd = 1.0;
    }

    /// The connection was idle: starts over from `window` without forgetting the threshold.
    pub fn restart(&mut self, window: f64) {
        self.cwnd = self.cwnd.min(window);
        if let Some(cubic) = &mut self.cubic {
            cubic.forget();
        }
    }

    /// The connection was idle for so many timeouts: the window halves for each, down to `window`, and the
    /// threshold remembers it (RFC 2861 section 3).
    pub fn decay(&mut self, window: f64, timeouts: u64) {
        self.ssthresh = self.ssthresh.max(0.75 * self.cwnd);
        for _ in 0..timeouts.min(64) {
            self.cwnd = (self.cwnd / 2.0).max(window.min(self.cwnd));
        }
    }

    fn reduced(&mut self, params: &TcpParams, window: f64, flight: f64) -> f64 {
        let basis = match params.halving {
            Halving::Window => self.cwnd.min(window),
            Halving::Flight => flight,
        };
        if params.algorithm == Algorithm::Cubic {
            self.cubic.get_or_insert_default().reduce(self.cwnd, params.cubic);
            return basis * cubic::BETA;
        }
        basis / 2.0
    }

    fn set_threshold(&mut self, params: &TcpParams, half: f64) {
        // RFC 5681 equation (4): never below two segments.
        self.ssthresh = if params.truncate_ssthresh { half.trunc() } else { half }.max(2.0);
    }
}

/// The window a connection begins with, in segments.
#[must_use]
pub fn initial_window(params: &TcpParams) -> f64 {
    match params.initial_window {
        InitialWindow::Packets(n) => n.get() as f64,
        // RFC 5681 section 3.1: by the segment size in bytes.
        InitialWindow::Rfc5681 => match params.segment.get() {
            0..=1095 => 4.0,
            1096..=2190 => 3.0,
            _ => 2.0,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACK: Growth = Growth { now: Time::ZERO, acked: 2.0, srtt: Span::from_millis(100), limited: true };

    fn at(profile: &str, cwnd: f64, ssthresh: f64) -> (TcpParams, Congestion) {
        let params = TcpParams::profile(profile).unwrap();
        let congestion = Congestion { cwnd, ssthresh, ..Congestion::new(&params) };
        (params, congestion)
    }

    #[test]
    fn an_ack_of_two_segments_grows_by_acks_or_by_bytes() {
        for (profile, slow_start, avoidance) in [("ns2-235", 5.0, 10.1), ("rfc", 5.0, 10.2)] {
            let (params, mut window) = at(profile, 4.0, 10.0);
            window.grow(&params, ACK);
            assert_eq!(window.cwnd, slow_start, "{profile}");
            let (params, mut window) = at(profile, 10.0, 10.0);
            window.grow(&params, ACK);
            assert_eq!(window.cwnd, avoidance, "{profile}");
        }
    }

    #[test]
    fn profiles_halve_what_they_say() {
        // Window 15.6 under a cap of 13, 11 outstanding.
        for (profile, ssthresh, cwnd) in [("ns2-235", 6.0, 6.5), ("ns2-2000", 6.0, 6.0), ("rfc", 5.5, 5.5)] {
            let (params, mut window) = at(profile, 15.6, 100.0);
            window.cut(&params, 13.0, 11.0);
            assert_eq!((window.ssthresh, window.cwnd), (ssthresh, cwnd), "{profile}");
        }
        // No less than two segments of threshold, and one of window.
        let (params, mut window) = at("ns2-2000", 3.0, 100.0);
        window.cut(&params, 20.0, 3.0);
        assert_eq!((window.ssthresh, window.cwnd), (2.0, 1.0));
    }

    #[test]
    fn a_second_timeout_holds_the_threshold_only_by_the_rfc() {
        for (profile, second) in [("ns2-235", 2.0), ("rfc", 8.0)] {
            let (params, mut window) = at(profile, 16.0, 100.0);
            window.time_out(&params, 20.0, 16.0, false);
            assert_eq!((window.cwnd, window.ssthresh), (1.0, 8.0));
            window.time_out(&params, 20.0, 1.0, params.halving == Halving::Flight);
            assert_eq!((window.cwnd, window.ssthresh), (1.0, second), "{profile}");
        }
    }

    #[test]
    fn the_initial_window_follows_the_segment_size() {
        // RFC 5681 section 3.1: 4 segments up to 1095 bytes, 3 up to 2190, 2 above.
        let mut params = TcpParams::profile("rfc").unwrap();
        for (segment, window) in [("1095B", 4.0), ("1096B", 3.0), ("2190B", 3.0), ("2191B", 2.0)] {
            params.set("segment", segment).unwrap();
            assert_eq!(initial_window(&params), window, "{segment}");
        }
    }
}
