//! Congestion control: one file for each algorithm, and what several are made of.
//!
//! An algorithm is a [`CongestionControl`]; the [contract](apportion_core::congestion) says which hook is called when. TCP with RACK, TCP
//! with the classical recoveries and QUIC drive all of them alike, by a [`Control`].
//!
//! | module | holds |
//! |---|---|
//! | [`reno`] | slow start and the halving of RFC 5681: Tahoe, Reno, NewReno and SACK |
//! | [`cubic`] | the window of RFC 9438 |
//! | [`dctcp`] | the share of marks of RFC 8257 |
//! | [`prague`] | DCTCP whatever the round trip |
//! | [`vegas`] | a few packets of its own in the queue |
//! | [`ledbat`] | a queueing delay at its target |
//! | [`bbr`] | a model of the path |
//! | [`bbr3`] | such a model that heeds losses |
//! | [`path_model`] | what both of them learn from: an ACK with its sample |
//! | [`delivery_rate`] | samples of the delivery rate |
//! | [`pacing`] | segments at a rate |
//! | [`hystart`] | when slow start ends without a loss |

pub mod bbr;
pub mod bbr3;
pub mod cubic;
pub mod dctcp;
pub mod delivery_rate;
pub mod hystart;
pub mod ledbat;
pub mod pacing;
pub mod path_model;
pub mod prague;
pub mod reno;
pub mod vegas;

use std::ops::{Deref, DerefMut};

pub use apportion_core::congestion::{
    Ack, CongestionControl, CongestionEvent, Connection, Feedback, Phase, Response, Sent, Window,
};
#[cfg(test)]
use apportion_core::units::{Span, Time};
use apportion_scenario::tcp::{Algorithm, Halving, InitialSsthresh, InitialWindow, TcpParams};

use bbr::Bbr;
use bbr3::Bbr3;
use cubic::Cubic;
use dctcp::Dctcp;
use ledbat::Ledbat;
use path_model::ByModel;
use prague::Prague;
use reno::Reno;
use vegas::Vegas;

/// The hook of a sign of congestion.
pub type Sign = fn(&mut (dyn CongestionControl + 'static), &mut Window, &CongestionEvent) -> Response;

/// The congestion control of a connection, in the size of a pointer. Reno and CUBIC, which most have, are called without a table of
/// functions, and told of nothing but growth and congestion; all are a [`CongestionControl`] by reference.
#[derive(Debug)]
pub enum Control {
    /// Of Tahoe, Reno, NewReno and SACK, which differ in how they repair losses.
    Reno(Reno),
    /// One that remembers something.
    Boxed(Box<Boxed>),
}

/// A control on the heap.
#[derive(Debug)]
pub enum Boxed {
    /// CUBIC's.
    Cubic(Cubic),
    /// Any other.
    Other(Box<dyn CongestionControl>),
}

/// A connection has 512 bytes.
const _: () = assert!(size_of::<Control>() == 8);

impl Control {
    /// That of a connection that begins.
    #[must_use]
    pub fn new(params: &TcpParams) -> Self {
        let (initial_window, segment) = (initial_window(params), params.segment);
        let wire = segment + params.header;
        let other: Box<dyn CongestionControl> = match &params.algorithm {
            Algorithm::Tahoe | Algorithm::Reno | Algorithm::NewReno | Algorithm::Sack => {
                return Self::Reno(Reno);
            }
            Algorithm::Cubic => return Self::Boxed(Box::new(Boxed::Cubic(Cubic::new(params.cubic)))),
            Algorithm::Bbr => Box::new(ByModel::new(Bbr::new(initial_window, wire))),
            Algorithm::Bbr3 => Box::new(ByModel::new(Bbr3::new(initial_window, wire))),
            Algorithm::Dctcp => Box::<Dctcp>::default(),
            Algorithm::Vegas => Box::<Vegas>::default(),
            Algorithm::Ledbat => Box::<Ledbat>::default(),
            Algorithm::Prague => Box::<Prague>::default(),
            Algorithm::Registered(registered) => {
                registered.build(&Connection { initial_window, segment, wire })
            }
        };
        Self::Boxed(Box::new(Boxed::Other(other)))
    }

    /// Whether it is to be told of everything: what is sent, and what ACKs report.
    #[must_use]
    pub fn is_informed(&self) -> bool {
        matches!(self, Self::Boxed(boxed) if matches!(**boxed, Boxed::Other(_)))
    }

    /// As [`CongestionControl::on_ack`], for one that is not [informed](Self::is_informed): what it does not ask is not computed.
    #[inline(always)]
    pub fn on_ack_uninformed(&mut self, window: &mut Window, ack: &Ack) {
        match self {
            Self::Reno(reno) => reno.on_ack(window, ack),
            Self::Boxed(boxed) => {
                if let Boxed::Cubic(cubic) = &mut **boxed {
                    cubic.on_ack(window, ack);
                }
            }
        }
    }

    /// As [`CongestionControl::on_ack`].
    #[inline(always)]
    pub fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        match self {
            Self::Reno(reno) => reno.on_ack(window, ack),
            Self::Boxed(boxed) => match &mut **boxed {
                Boxed::Cubic(cubic) => cubic.on_ack(window, ack),
                Boxed::Other(other) => other.on_ack(window, ack),
            },
        }
    }
}

impl Deref for Control {
    type Target = dyn CongestionControl;
    fn deref(&self) -> &Self::Target {
        match self {
            Self::Reno(reno) => reno,
            Self::Boxed(boxed) => match &**boxed {
                Boxed::Cubic(cubic) => cubic,
                Boxed::Other(other) => &**other,
            },
        }
    }
}

impl DerefMut for Control {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Self::Reno(reno) => reno,
            Self::Boxed(boxed) => match &mut **boxed {
                Boxed::Cubic(cubic) => cubic,
                Boxed::Other(other) => &mut **other,
            },
        }
    }
}

/// The window and the threshold before anything was sent.
#[must_use]
pub fn first_window(params: &TcpParams) -> Window {
    let ssthresh = match params.initial_ssthresh {
        InitialSsthresh::Window => params.window_bytes() as f64 / params.segment.get() as f64,
        InitialSsthresh::Unlimited => f64::INFINITY,
        InitialSsthresh::Packets(n) => n.get() as f64,
    };
    Window { cwnd: initial_window(params), ssthresh }
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

/// What a control that halves takes half of: a window of `cwnd` segments within the `receive_window`, or the `flight`.
#[must_use]
pub const fn basis(params: &TcpParams, cwnd: f64, receive_window: f64, flight: f64) -> f64 {
    match params.halving {
        Halving::Window => cwnd.min(receive_window),
        Halving::Flight => flight,
    }
}

/// A control leaves so many segments: the window and the threshold fall.
pub fn reduce(params: &TcpParams, window: &mut Window, left: f64) {
    set_threshold(params, window, left);
    // RFC 5681 section 3.2 step 3 without the three segments, which are counted apart. ns-2 lets cwnd
    // keep the fraction that its threshold loses, and never leaves less than a segment.
    window.cwnd = match params.halving {
        Halving::Flight => window.ssthresh,
        Halving::Window if params.truncate_cwnd => left.trunc().max(1.0),
        Halving::Window => left.max(1.0),
    };
}

/// A control has set the window itself, or ignores a loss, and leaves recovery to the transport: that ends with the window as it is.
pub const fn hold(window: &mut Window) {
    window.ssthresh = window.cwnd;
}

/// The retransmission timer expired with data outstanding: the window starts over from one segment.
pub fn time_out(params: &TcpParams, window: &mut Window, control: &mut Control, event: &CongestionEvent) {
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

/// An ACK of one segment, for tests to vary.
#[cfg(test)]
const ACK: Ack = Ack {
    now: Time::ZERO,
    phase: Phase::Open,
    acked: 1.0,
    counted: 1.0,
    abc_limit: None,
    delivered: 1,
    lost: 0,
    prior_in_flight: 1,
    in_flight: 0,
    number: 1,
    last_sent: 1,
    latest: Some(1),
    rtt: None,
    srtt: Span::ZERO,
    min_rtt: Span::ZERO,
    slow_start: false,
    is_limited: true,
    may_grow: true,
};

#[cfg(test)]
mod tests {

    use super::*;

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
        // No less than two segments of threshold, and one of window.
        assert_eq!(halve("ns2-2000", 3.0, 20.0, 3.0), (2.0, 1.0));
    }

    #[test]
    fn a_second_timeout_holds_the_threshold_only_by_the_rfc() {
        for (profile, second) in [("ns2-235", 2.0), ("rfc", 8.0)] {
            let (params, mut window, mut control) = at(profile, 16.0);
            time_out(&params, &mut window, &mut control, &event(&params, 16.0, 20.0, 16.0));
            assert_eq!((window.cwnd, window.ssthresh), (1.0, 8.0));
            let again = params.halving == Halving::Flight;
            let second_event = CongestionEvent { again, ..event(&params, 1.0, 20.0, 1.0) };
            time_out(&params, &mut window, &mut control, &second_event);
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
