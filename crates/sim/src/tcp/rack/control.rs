//! What a connection has besides Reno's or CUBIC's window: another congestion control, pacing, or both.

use apportion_core::units::Time;
use apportion_scenario::tcp::{Algorithm, TcpParams};

use crate::tcp::congestion::initial_window;
use crate::tcp::dctcp::Dctcp;
use crate::tcp::ledbat::Ledbat;
use crate::tcp::model::Model;
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

impl Control {
    /// At the start of a connection.
    pub(super) fn new(params: &TcpParams) -> Option<Box<Self>> {
        let (window, wire) = (initial_window(params), params.segment + params.header);
        let law = match params.algorithm {
            Algorithm::Dctcp => Law::Dctcp(Dctcp::default()),
            Algorithm::Vegas => Law::Vegas(Vegas::default()),
            Algorithm::Ledbat => Law::Ledbat(Ledbat::default()),
            Algorithm::Prague => Law::Prague(Prague::default()),
            algorithm => match Model::new(algorithm, window, wire) {
                Some(model) => Law::Bbr(Box::new(model)),
                None if params.pacing => Law::Window,
                None => return None,
            },
        };
        let paces = params.pacing || params.algorithm.paces();
        Some(Box::new(Self { law, pacer: paces.then(Pacer::default) }))
    }

    /// When the pacer is to be called.
    pub(super) fn due(&self) -> Option<Time> {
        self.pacer.as_ref()?.due()
    }
}
