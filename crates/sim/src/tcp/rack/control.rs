//! Congestion controls other than Reno's and CUBIC's, of which a connection has at most one.

use apportion_scenario::tcp::{Algorithm, TcpParams};

use crate::tcp::dctcp::Dctcp;

/// What the congestion control of a connection remembers.
#[derive(Clone, Debug)]
pub(super) enum Control {
    Dctcp(Dctcp),
}

impl Control {
    /// At the start of a connection.
    pub(super) fn new(params: &TcpParams) -> Option<Box<Self>> {
        let control = match params.algorithm {
            Algorithm::Dctcp => Self::Dctcp(Dctcp::default()),
            _ => return None,
        };
        Some(Box::new(control))
    }
}
