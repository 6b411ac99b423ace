//! Congestion controls other than Reno's and CUBIC's, of which a connection has at most one.

use apportion_scenario::tcp::{Algorithm, TcpParams};

use crate::tcp::dctcp::Dctcp;
use crate::tcp::ledbat::Ledbat;
use crate::tcp::vegas::Vegas;

/// What the congestion control of a connection remembers.
#[derive(Clone, Debug)]
pub(super) enum Control {
    Dctcp(Dctcp),
    Vegas(Vegas),
    Ledbat(Ledbat),
}

impl Control {
    /// At the start of a connection.
    pub(super) fn new(params: &TcpParams) -> Option<Box<Self>> {
        let control = match params.algorithm {
            Algorithm::Dctcp => Self::Dctcp(Dctcp::default()),
            Algorithm::Vegas => Self::Vegas(Vegas::default()),
            Algorithm::Ledbat => Self::Ledbat(Ledbat::default()),
            _ => return None,
        };
        Some(Box::new(control))
    }
}
