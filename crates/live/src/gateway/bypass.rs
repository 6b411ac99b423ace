//! The bypass: while no gateway runs, the kernel hands the frames of each interface to the other one, undivided.
//!
//! A gateway that is asked to fail open ends with it, however it ends, unless it is killed; `apportion gateway bypass` turns it on after
//! that, and the next gateway of the same interfaces turns it off.

use apportion_linux::netlink::{Netlink, NetlinkError};
use apportion_scenario::gateway::GatewayConfig;

/// Why frames do not bypass a gateway.
#[derive(Debug, thiserror::Error)]
#[error("{interface}: {error}")]
pub struct BypassError {
    interface: String,
    error: NetlinkError,
}

/// Redirects the frames of both interfaces to the other one, or ends that. Whether it changed something.
///
/// # Errors
/// If an interface is not there, without CAP_NET_ADMIN, or if the kernel cannot redirect; nothing is redirected then.
pub fn set(config: &GatewayConfig, on: bool) -> Result<bool, BypassError> {
    let result = try_set(config, on);
    if on && result.is_err() {
        let _ = try_set(config, false);
    }
    result
}

fn try_set(config: &GatewayConfig, on: bool) -> Result<bool, BypassError> {
    let names = [&config.inside, &config.outside];
    let fail = |at: usize| move |error| BypassError { interface: names[at].clone(), error };
    let mut netlink = Netlink::open().map_err(fail(0))?;
    let mut find = |at: usize| netlink.index_of(names[at]).map_err(fail(at));
    let ends = [find(0)?, find(1)?];
    let mut changed = false;
    for at in 0..2 {
        changed |= if on {
            netlink.redirect(ends[at], ends[1 - at]).map(|()| true).map_err(fail(at))?
        } else {
            netlink.stop_redirecting(ends[at]).map_err(fail(at))?
        };
    }
    Ok(changed)
}

/// Turns the bypass on when it is dropped, if it is to be.
#[derive(Debug)]
pub(super) struct FailOpen {
    config: GatewayConfig,
    /// Whether a gateway that ends leaves a bypass.
    is_wanted: bool,
}

impl FailOpen {
    /// Turns the bypass off, for a gateway that is about to take the interfaces. If that fails to start, it is turned on again.
    ///
    /// # Errors
    /// If it cannot be turned off: frames would cross twice.
    pub fn take_over(config: &GatewayConfig, fail_open: bool) -> Result<Self, BypassError> {
        let was_on = set(config, false)?;
        if was_on {
            tracing::info!("the bypass is turned off");
        }
        Ok(Self { config: config.clone(), is_wanted: fail_open || was_on })
    }

    /// The gateway has started: `fail_open` alone says what is left when it ends.
    pub const fn started(&mut self, fail_open: bool) {
        self.is_wanted = fail_open;
    }
}

impl Drop for FailOpen {
    fn drop(&mut self) {
        if !self.is_wanted {
            return;
        }
        match set(&self.config, true) {
            Ok(_) => tracing::warn!("the gateway fails open: frames bypass it, undivided"),
            Err(error) => tracing::error!(%error, "frames cannot bypass the gateway"),
        }
    }
}
