//! Arguments of hooks as objects.

use apportion::apportion_core::congestion::{self, Phase};
use apportion::units::{Bytes, Span, Time};
use pyo3::prelude::*;

/// Variables that govern a connection's sending.
#[pyclass(module = "apportion._native")]
pub struct Window {
    #[pyo3(get, set)]
    pub cwnd: f64,
    #[pyo3(get, set)]
    pub ssthresh: f64,
}

impl Window {
    pub const fn inner(&self) -> congestion::Window {
        congestion::Window { cwnd: self.cwnd, ssthresh: self.ssthresh }
    }
}

#[pymethods]
impl Window {
    #[getter]
    const fn is_slow_start(&self) -> bool {
        self.inner().is_slow_start()
    }

    #[pyo3(signature = (counted, abc_limit=None))]
    fn grow_as_reno(&mut self, counted: f64, abc_limit: Option<u32>) {
        let mut window = self.inner();
        window.grow_as_reno(counted, abc_limit);
        self.cwnd = window.cwnd;
    }
}

/// Conversion from the contract to the units of Python: times in s, sizes in bytes, phases by name.
pub trait Shown<T> {
    fn shown(self) -> T;
}

impl<T: Copy> Shown<T> for T {
    fn shown(self) -> T {
        self
    }
}

impl Shown<f64> for Time {
    fn shown(self) -> f64 {
        self.as_secs_f64()
    }
}

impl Shown<f64> for Span {
    fn shown(self) -> f64 {
        self.as_secs_f64()
    }
}

impl Shown<Option<f64>> for Option<Span> {
    fn shown(self) -> Option<f64> {
        self.map(Span::as_secs_f64)
    }
}

impl Shown<u64> for Bytes {
    fn shown(self) -> u64 {
        self.get()
    }
}

impl Shown<&'static str> for Phase {
    fn shown(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Cwr => "cwr",
            Self::Recovery => "recovery",
            Self::Loss => "loss",
        }
    }
}

/// Declares classes with the fields of the contract's types of the same names.
macro_rules! shown {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty),* $(,)? })*) => {$(
        $(#[$doc])*
        #[pyclass(frozen, get_all, module = "apportion._native")]
        pub struct $name {
            $($field: $type,)*
        }

        impl From<&congestion::$name> for $name {
            fn from(of: &congestion::$name) -> Self {
                Self { $($field: of.$field.shown(),)* }
            }
        }
    )*};
}

shown! {
    /// A new connection.
    Connection { initial_window: f64, segment: u64, wire: u64 }
    /// A segment that is sent.
    Sent { now: f64, number: u64, in_flight: u32 }
    /// Feedback of an ACK.
    Feedback {
        now: f64, number: u64, last_sent: u64, bytes: u64, segments: u32, marked: u32, counts_marks: bool,
        one_way_delay: Option<f64>,
    }
    /// Effect of an ACK on the window.
    Ack {
        now: f64, phase: &'static str, acked: f64, counted: f64, abc_limit: Option<u32>, delivered: u32, lost: u32,
        prior_in_flight: u32, in_flight: u32, number: u64, last_sent: u64, latest: Option<u64>, rtt: Option<f64>, srtt: f64,
        min_rtt: f64, slow_start: bool, is_limited: bool, may_grow: bool,
    }
    /// A congestion event.
    CongestionEvent { now: f64, cwnd: f64, basis: f64, receive_window: f64, in_flight: u32, again: bool }
}
