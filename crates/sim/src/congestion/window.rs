//! The window of a connection: its initial value, and its reductions by congestion signals.

use apportion_core::congestion::{CongestionControl, CongestionEvent, Window};
use apportion_scenario::tcp::{Halving, InitialSsthresh, InitialWindow, TcpParams};

/// The window and the threshold before the first transmission.
#[must_use]
pub fn first_window(params: &TcpParams) -> Window {
    let ssthresh = match params.initial_ssthresh {
        InitialSsthresh::Window => params.window_bytes() as f64 / params.segment.get() as f64,
        InitialSsthresh::Unlimited => f64::INFINITY,
        InitialSsthresh::Packets(n) => n.get() as f64,
    };
    Window { cwnd: initial_window(params), ssthresh }
}

/// The initial window of a connection, in segments.
#[must_use]
pub fn initial_window(params: &TcpParams) -> f64 {
    match params.initial_window {
        InitialWindow::Packets(n) => n.get() as f64,
        // RFC 5681 section 3.1: depends on the segment size in bytes.
        InitialWindow::Rfc5681 => match params.segment.get() {
            0..=1095 => 4.0,
            1096..=2190 => 3.0,
            _ => 2.0,
        },
    }
}

/// The basis of a control that halves: a window of `cwnd` segments within the `receive_window`, or the
/// `flight`.
#[must_use]
pub const fn basis(params: &TcpParams, cwnd: f64, receive_window: f64, flight: f64) -> f64 {
    match params.halving {
        Halving::Window => cwnd.min(receive_window),
        Halving::Flight => flight,
    }
}

/// Reduces window and threshold to `left` segments.
pub fn reduce(params: &TcpParams, window: &mut Window, left: f64) {
    set_threshold(params, window, left);
    // RFC 5681 section 3.2 step 3 without the three segments, which are counted separately. ns-2 lets cwnd
    // keep the fraction that its threshold loses, and never reduces it below one segment.
    window.cwnd = match params.halving {
        Halving::Flight => window.ssthresh,
        Halving::Window if params.truncate_cwnd => left.trunc().max(1.0),
        Halving::Window => left.max(1.0),
    };
}

/// Keeps the window, when a control has set it itself, or ignores a loss, and leaves recovery to the
/// transport.
pub const fn hold(window: &mut Window) {
    window.ssthresh = window.cwnd;
}

/// The retransmission timer expired with data outstanding: the window restarts from one segment.
pub fn time_out(
    params: &TcpParams,
    window: &mut Window,
    control: &mut dyn CongestionControl,
    event: &CongestionEvent,
) {
    let left = control.on_timeout(window, event);
    if !event.again {
        set_threshold(params, window, left);
    }
    window.cwnd = 1.0;
}

fn set_threshold(params: &TcpParams, window: &mut Window, left: f64) {
    // RFC 5681 equation (4): never below two segments.
    window.ssthresh = if params.truncate_ssthresh { left.trunc() } else { left }.max(2.0);
}

#[cfg(test)]
mod tests {
    use apportion_core::congestion::Response;
    use apportion_core::units::Time;

    use super::*;
    use crate::congestion::control::Control;

    fn at(profile: &str, cwnd: f64) -> (TcpParams, Window, Control) {
        let params = TcpParams::profile(profile).unwrap();
        let control = Control::new(&params);
        (params, Window { cwnd, ssthresh: 100.0 }, control)
    }

    fn event(params: &TcpParams, cwnd: f64, receive_window: f64, flight: f64) -> CongestionEvent {
        let basis = basis(params, cwnd, receive_window, flight);
        CongestionEvent {
            now: Time::ZERO,
            cwnd,
            basis,
            receive_window,
            in_flight: flight as u32,
            again: false,
        }
    }

    #[test]
    fn profiles_halve_what_they_say() {
        let halve = |profile, cwnd, receive_window, flight| {
            let (params, mut window, mut control) = at(profile, cwnd);
            let event = event(&params, cwnd, receive_window, flight);
            let Response::Reduce(left) = control.on_loss(&mut window, &event) else { panic!("no halving") };
            reduce(&params, &mut window, left);
            (window.ssthresh, window.cwnd)
        };
        // Window 15.6 under a cap of 13, 11 outstanding.
        for (profile, ssthresh, cwnd) in [("ns2-235", 6.0, 6.5), ("ns2-2000", 6.0, 6.0), ("rfc", 5.5, 5.5)] {
            assert_eq!(halve(profile, 15.6, 13.0, 11.0), (ssthresh, cwnd), "{profile}");
        }
        // The minimum is two segments for the threshold, and one for the window.
        assert_eq!(halve("ns2-2000", 3.0, 20.0, 3.0), (2.0, 1.0));
    }

    #[test]
    fn a_second_timeout_holds_the_threshold_only_by_the_rfc() {
        for (profile, second) in [("ns2-235", 2.0), ("rfc", 8.0)] {
            let (params, mut window, mut control) = at(profile, 16.0);
            time_out(&params, &mut window, &mut *control, &event(&params, 16.0, 20.0, 16.0));
            assert_eq!((window.cwnd, window.ssthresh), (1.0, 8.0));
            let again = params.halving == Halving::Flight;
            let second_event = CongestionEvent { again, ..event(&params, 1.0, 20.0, 1.0) };
            time_out(&params, &mut window, &mut *control, &second_event);
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
