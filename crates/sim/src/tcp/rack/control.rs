//! What a connection has besides Reno's or CUBIC's window: another congestion control, pacing, or both.

use apportion_core::units::{Rate, Span, Time};
use apportion_scenario::tcp::{Algorithm, TcpParams};

use crate::tcp::bbr::Bbr;
use crate::tcp::bbr3::{self, Bbr3};
use crate::tcp::congestion::initial_window;
use crate::tcp::dctcp::Dctcp;
use crate::tcp::delivery_rate::DeliveryRate;
use crate::tcp::ledbat::Ledbat;
use crate::tcp::pacing::Pacer;
use crate::tcp::prague::Prague;
use crate::tcp::vegas::Vegas;

#[derive(Clone, Debug)]
pub(super) struct Control {
    pub law: Law,
    pub pacer: Option<Pacer>,
}

/// What the congestion control of a connection remembers.
#[derive(Clone, Debug)]
pub(super) enum Law {
    /// Only the window.
    Window,
    Dctcp(Dctcp),
    Vegas(Vegas),
    Ledbat(Ledbat),
    Prague(Prague),
    /// It has a multiple of what the others remember.
    Bbr(Box<Model>),
}

/// BBR with what it measures by.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub path: Path,
    pub rate: DeliveryRate,
    /// Segments in the network before the ACK under way.
    pub prior_in_flight: u32,
    /// The segment sent last of those delivered before it.
    pub latest: Option<(Time, u64)>,
}

/// The versions of BBR.
#[derive(Clone, Debug)]
pub(super) enum Path {
    One(Bbr),
    Three(Bbr3),
}

impl Model {
    fn law(path: Path) -> Law {
        let rate = DeliveryRate::default();
        Law::Bbr(Box::new(Self { path, rate, prior_in_flight: 0, latest: None }))
    }
}

impl Path {
    pub(super) fn on_ack(&mut self, cwnd: f64, ack: bbr3::Ack) -> f64 {
        match self {
            Self::One(bbr) => bbr.on_ack(cwnd, ack.seen),
            Self::Three(bbr) => bbr.on_ack(cwnd, ack),
        }
    }

    pub(super) fn pacing_rate(&mut self, srtt: Option<Span>) -> Rate {
        match self {
            Self::One(bbr) => bbr.pacing_rate(srtt),
            Self::Three(bbr) => bbr.pacing_rate(srtt),
        }
    }

    pub(super) fn probes_rtt(&self) -> bool {
        match self {
            Self::One(bbr) => bbr.probes_rtt(),
            Self::Three(bbr) => bbr.probes_rtt(),
        }
    }

    pub(super) fn restart_from_idle(&mut self, now: Time, cwnd: f64, total: u64) -> f64 {
        match self {
            Self::One(bbr) => {
                bbr.restart_from_idle();
                cwnd
            }
            Self::Three(bbr) => bbr.restart_from_idle(now, cwnd, total),
        }
    }

    pub(super) fn enter_recovery(&mut self, cwnd: f64, in_flight: u32, total: u64) -> f64 {
        match self {
            Self::One(bbr) => bbr.enter_recovery(cwnd, in_flight, total),
            Self::Three(bbr) => {
                bbr.enter_recovery(cwnd);
                cwnd
            }
        }
    }

    pub(super) fn time_out(&mut self, cwnd: f64) {
        match self {
            Self::One(bbr) => bbr.time_out(cwnd),
            Self::Three(bbr) => bbr.time_out(cwnd),
        }
    }

    pub(super) fn leave_recovery(&mut self, cwnd: f64) -> f64 {
        match self {
            Self::One(bbr) => bbr.leave_recovery(cwnd),
            Self::Three(bbr) => bbr.leave_recovery(cwnd),
        }
    }
}

impl Control {
    /// At the start of a connection.
    pub(super) fn new(params: &TcpParams) -> Option<Box<Self>> {
        let (window, wire) = (initial_window(params), params.segment + params.header);
        let law = match params.algorithm {
            Algorithm::Dctcp => Law::Dctcp(Dctcp::default()),
            Algorithm::Vegas => Law::Vegas(Vegas::default()),
            Algorithm::Ledbat => Law::Ledbat(Ledbat::default()),
            Algorithm::Prague => Law::Prague(Prague::default()),
            Algorithm::Bbr => Model::law(Path::One(Bbr::new(window, wire))),
            Algorithm::Bbr3 => Model::law(Path::Three(Bbr3::new(window, wire))),
            _ if params.pacing => Law::Window,
            _ => return None,
        };
        let paces = params.pacing || params.algorithm.paces();
        Some(Box::new(Self { law, pacer: paces.then(Pacer::default) }))
    }

    /// When the pacer is to be called.
    pub(super) fn due(&self) -> Option<Time> {
        self.pacer.as_ref()?.due()
    }
}
