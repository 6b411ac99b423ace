//! The retransmission timeout, after Jacobson and Karn.
//!
//! RFC 6298 sections 2, 3 and 5. ns-2 measures in whole ticks of a coarse clock with the scaled integers of
//! Jacobson 1988, appendix A; an exact measurement is the same arithmetic with a tick of one nanosecond.

use apportion_core::units::{Span, Time};
use apportion_scenario::tcp::TcpParams;

/// The deviation with a sample for every ACK: it would forget a slow round trip before the next one (RFC 7323
/// appendix G), so the maximum of each round trip counts.
#[derive(Clone, Copy, Debug, Default)]
struct Recent {
    /// Mean deviation in ticks, times 4.
    mdev: u64,
    /// The maximum of this round trip.
    most: u64,
    end: Time,
}

/// Smoothed RTT, its deviation and the backed-off timeout of one connection.
#[derive(Clone, Copy, Debug)]
pub struct Rtt {
    /// Smoothed RTT in ticks, times 8. Zero: no sample, or forgotten.
    srtt: u64,
    /// Mean deviation in ticks, times 4; with a sample for every ACK, the maximum of about a round trip.
    rttvar: u64,
    recent: Recent,
    /// The timeout before backoff, at least `min_rto`.
    base: Span,
    backoff: u32,
    /// The timeout with backoff, cached: each ACK reads it, and few change it.
    timeout: Span,
    /// The phase of the host's clock at the start of the run.
    phase: Span,
}

impl Rtt {
    /// The state without samples.
    #[must_use]
    pub fn new(params: &TcpParams) -> Self {
        let (srtt, rttvar, recent, base) = (0, 0, Recent::default(), params.initial_rto);
        let mut rtt = Self { srtt, rttvar, recent, base, backoff: 1, timeout: Span::ZERO, phase: Span::ZERO };
        rtt.set_timeout(params);
        rtt
    }

    /// Shifts the ticks of the host's clock; hosts have different phases.
    pub fn set_phase(&mut self, phase: Span) {
        self.phase = phase;
    }

    /// The timeout for a segment sent now.
    #[must_use]
    #[inline]
    pub const fn timeout(&self) -> Span {
        self.timeout
    }

    /// Must follow each change of `base` or of backoff.
    fn set_timeout(&mut self, params: &TcpParams) {
        // A coarse clock cannot measure less than two of its ticks.
        self.timeout = (self.base * u64::from(self.backoff)).max(params.tick * 2).min(params.max_rto);
    }

    /// The smoothed RTT, if there is one.
    #[must_use]
    pub fn srtt(&self, params: &TcpParams) -> Option<Span> {
        (self.srtt > 0).then(|| (tick(params) * self.srtt).div(8))
    }

    /// The present factor of exponential backoff.
    #[must_use]
    pub const fn backoff(&self) -> u32 {
        self.backoff
    }

    /// Whether there has been a sample, forgotten or not.
    #[must_use]
    pub const fn is_backed_off(&self) -> bool {
        self.backoff > 1
    }

    /// Takes the measurement of a segment sent at `sent` and acknowledged `now`, and ends backoff.
    pub fn sample(&mut self, params: &TcpParams, sent: Time, now: Time) {
        let tick = tick(params).as_nanos();
        let into_tick = (sent.as_nanos() + self.phase.as_nanos()) % tick;
        let ticks = ((now.since(sent).as_nanos() + into_tick) / tick).max(1);
        if params.timestamps {
            self.sample_often(params, ticks, now);
        } else if self.srtt == 0 {
            // RFC 6298 (2.2): SRTT = R, RTTVAR = R/2.
            self.srtt = ticks << 3;
            self.rttvar = ticks << 1;
        } else {
            // RFC 6298 (2.3): gains 1/8 and 1/4; the deviation uses the SRTT from before this sample.
            let smoothed = self.srtt >> 3;
            self.rttvar = self.rttvar - (self.rttvar >> 2) + ticks.abs_diff(smoothed);
            self.srtt = (self.srtt + ticks - smoothed).max(1);
            self.rttvar = self.rttvar.max(1);
        }
        self.backoff = 1;
        // RFC 6298 (2.3), (2.4): RTO = SRTT + max(G, 4 RTTVAR), at least min_rto.
        let rto = Span::from_nanos(tick * (self.rttvar + (self.srtt >> 3)));
        self.base = rto.max(params.min_rto);
        self.set_timeout(params);
    }

    /// Takes one of many samples of a round trip, of `ticks`.
    fn sample_often(&mut self, params: &TcpParams, ticks: u64, now: Time) {
        let floor = params.min_variance.as_nanos() / tick(params).as_nanos();
        let recent = &mut self.recent;
        if self.srtt == 0 {
            self.srtt = ticks << 3;
            recent.mdev = ticks << 1;
            self.rttvar = recent.mdev.max(floor);
            *recent = Recent { most: self.rttvar, end: now + tick(params) * ticks, ..*recent };
            return;
        }
        let smoothed = self.srtt >> 3;
        let (error, falls) = (ticks.abs_diff(smoothed), ticks < smoothed);
        self.srtt = (self.srtt + ticks - smoothed).max(1);
        let old = recent.mdev >> 2;
        // A shorter round trip is no reason to wait longer (Ludwig and Sklower, "The Eifel retransmission
        // timer", CCR 30(3), 2000): the deviation then grows an eighth as fast.
        let grows = error.saturating_sub(old);
        recent.mdev = recent.mdev + if falls { grows >> 3 } else { grows } - old.saturating_sub(error);
        recent.most = recent.most.max(recent.mdev);
        self.rttvar = self.rttvar.max(recent.most);
        if now >= recent.end {
            self.rttvar -= (self.rttvar - recent.most) >> 2;
            *recent = Recent { most: floor, end: now + (tick(params) * self.srtt).div(8), ..*recent };
        }
    }

    /// Doubles the timeout (RFC 6298 (5.5)).
    pub fn back_off(&mut self, params: &TcpParams) {
        if params.max_backoff.is_none_or(|most| self.backoff < most) && self.timeout < params.max_rto {
            self.backoff = self.backoff.saturating_mul(2);
            self.set_timeout(params);
        }
        if params.forget_srtt && self.backoff > 8 {
            // The path may have changed: the next sample starts anew (RFC 6298 section 5, last paragraph).
            self.srtt = 0;
        }
    }

    /// The path answers again: the timeout returns to that of the last sample.
    #[inline]
    pub fn end_backoff(&mut self, params: &TcpParams) {
        if self.backoff > 1 {
            self.backoff = 1;
            self.set_timeout(params);
        }
    }

    /// The handshake lost its SYN: without a sample, data starts with 3 s (RFC 6298 (5.7)).
    pub fn syn_was_lost(&mut self, params: &TcpParams) {
        self.backoff = 1;
        self.base = self.base.max(Span::from_secs(3));
        self.set_timeout(params);
    }
}

fn tick(params: &TcpParams) -> Span {
    params.tick.max(Span::from_nanos(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(profile: &str) -> TcpParams {
        TcpParams::profile(profile).unwrap()
    }

    #[test]
    fn exact_measurement_is_rfc_6298() {
        let mut params = params("rfc");
        params.min_rto = Span::ZERO;
        let mut rtt = Rtt::new(&params);
        assert_eq!(rtt.timeout(), Span::from_secs(1));
        rtt.sample(&params, Time::ZERO, Time::from_millis(100));
        // SRTT 100, RTTVAR 50: RTO = 100 + 4·50 = 300 ms.
        assert_eq!(rtt.timeout(), Span::from_millis(300));
        rtt.sample(&params, Time::ZERO, Time::from_millis(180));
        // RTTVAR = 3/4·50 + 1/4·80 = 57.5; SRTT = 100 + 80/8 = 110; RTO = 110 + 230 = 340 ms.
        assert_eq!(rtt.timeout(), Span::from_millis(340));
        assert_eq!(rtt.srtt(&params), Some(Span::from_millis(110)));
    }

    #[test]
    fn the_timeout_is_at_least_min_rto_and_backs_off_up_to_the_cap() {
        let params = params("rfc");
        let mut rtt = Rtt::new(&params);
        rtt.sample(&params, Time::ZERO, Time::from_millis(100));
        let timeouts: Vec<_> = (0..8)
            .map(|_| {
                let timeout = rtt.timeout().as_nanos() / 1_000_000_000;
                rtt.back_off(&params);
                timeout
            })
            .collect();
        assert_eq!(timeouts, [1, 2, 4, 8, 16, 32, 60, 60]);
        rtt.sample(&params, Time::ZERO, Time::from_millis(100));
        assert_eq!(rtt.timeout(), Span::from_secs(1));
    }

    #[test]
    fn coarse_ticks_count_the_borders_that_a_round_trip_crosses() {
        let params = params("ns2-2000");
        let mut rtt = Rtt::new(&params);
        assert_eq!(rtt.timeout(), Span::from_secs(6));
        // Sent 80 ms into a tick of 100 ms, 70 ms long: one border. SRTT 1, RTTVAR 1/2 tick: RTO = 1 + 2
        // ticks.
        rtt.sample(&params, Time::from_millis(180), Time::from_millis(250));
        assert_eq!(rtt.timeout(), Span::from_millis(300));
        // Shifted by 20 ms: the same flight starts a tick and crosses none, which still counts as one.
        // Deviation 4·var = 2 - 2/4 + 0 = 2 in integers: unchanged.
        rtt.set_phase(Span::from_millis(20));
        rtt.sample(&params, Time::from_millis(180), Time::from_millis(250));
        assert_eq!(rtt.timeout(), Span::from_millis(300));
    }

    #[test]
    fn ns2_backs_off_up_to_64_and_forgets_the_rtt_above_8() {
        let params = params("ns2-2000");
        let mut rtt = Rtt::new(&params);
        rtt.sample(&params, Time::ZERO, Time::from_millis(50));
        for _ in 0..3 {
            rtt.back_off(&params);
        }
        assert!(rtt.srtt(&params).is_some());
        rtt.back_off(&params);
        assert!(rtt.srtt(&params).is_none());
        (0..9).for_each(|_| rtt.back_off(&params));
        // 0.3 s × 64 = 19.2 s.
        assert_eq!(rtt.timeout(), Span::from_millis(19_200));
    }
}
