//! The bypass: while no gateway runs, the kernel forwards the frames of each interface to the other one,
//! without scheduling.
//!
//! With fail-open, a gateway turns the bypass on when it ends for any reason, unless it is killed;
//! `apportion gateway bypass` turns it on after that, and the next gateway of the same interfaces turns it
//! off.

use apportion_linux::netlink::htb::MAJOR;
use apportion_linux::netlink::{Netlink, NetlinkError};
use apportion_scenario::gateway::GatewayConfig;

/// Why the bypass cannot change.
#[derive(Debug, thiserror::Error)]
#[error("{interface}: {error}")]
pub struct BypassError {
    interface: String,
    error: NetlinkError,
}

/// Redirects the frames of both interfaces to the other one, or ends the redirection, and removes queues that
/// a killed gateway of the kernel backend left. Returns whether anything changed.
///
/// # Errors
/// If an interface is absent, without CAP_NET_ADMIN, or if the kernel cannot redirect. Then nothing is
/// redirected at the interfaces that exist.
pub fn set(config: &GatewayConfig, on: bool) -> Result<bool, BypassError> {
    let names = [&config.inside, &config.outside];
    let fail = |at: usize| move |error| BypassError { interface: names[at].clone(), error };
    let mut netlink = Netlink::open().map_err(fail(0))?;
    if on {
        let result = turn_on(&mut netlink, names).map_err(|(at, error)| fail(at)(error));
        if result.is_err() {
            let _ = turn_off(&mut netlink, names);
        }
        result.map(|()| true)
    } else {
        turn_off(&mut netlink, names).map_err(|(at, error)| fail(at)(error))
    }
}

/// An error at the interface of this index.
type At<T> = Result<T, (usize, NetlinkError)>;

fn turn_on(netlink: &mut Netlink, names: [&String; 2]) -> At<()> {
    let mut find = |at: usize| netlink.index_of(names[at]).map_err(|error| (at, error));
    let ends = [find(0)?, find(1)?];
    for at in 0..2 {
        netlink.delete_queue(ends[at], MAJOR).map_err(|error| (at, error))?;
        netlink.redirect(ends[at], ends[1 - at]).map_err(|error| (at, error))?;
    }
    Ok(())
}

/// At each interface by itself: an absent interface must not keep the other one redirected.
fn turn_off(netlink: &mut Netlink, names: [&String; 2]) -> At<bool> {
    let mut end = |name: &String| -> Result<bool, NetlinkError> {
        let device = netlink.index_of(name)?;
        // Both are tried, whatever the result of the first.
        let (queue, redirected) = (netlink.delete_queue(device, MAJOR), netlink.stop_redirecting(device)?);
        Ok(queue? || redirected)
    };
    let [first, second] = names.map(&mut end);
    let (first, second) = (first.map_err(|error| (0, error))?, second.map_err(|error| (1, error))?);
    Ok(first || second)
}

/// Whether frames of an interface are redirected.
fn is_on(config: &GatewayConfig) -> bool {
    let Ok(mut netlink) = Netlink::open() else { return false };
    [&config.inside, &config.outside]
        .into_iter()
        .any(|name| netlink.index_of(name).and_then(|device| netlink.is_redirecting(device)).unwrap_or(false))
}

/// Turns the bypass on when dropped, if it is wanted.
#[derive(Debug)]
pub struct FailOpen {
    config: GatewayConfig,
    /// Whether a gateway that ends leaves a bypass.
    is_wanted: bool,
}

impl FailOpen {
    /// Turns the bypass off, for a gateway that is about to take the interfaces. If the gateway fails to
    /// start, the bypass is turned on again.
    ///
    /// # Errors
    /// The bypass cannot be turned off: frames would cross twice.
    pub fn take_over(config: &GatewayConfig, fail_open: bool) -> Result<Self, BypassError> {
        // Read before the bypass is turned off: if that fails at one interface, the other one's is turned on
        // again.
        let was_on = is_on(config);
        let mut fail_open = Self { config: config.clone(), is_wanted: fail_open || was_on };
        if set(config, false)? {
            tracing::info!("the bypass is turned off");
            fail_open.is_wanted = true;
        }
        Ok(fail_open)
    }

    /// The gateway has started: from now on `fail_open` alone decides whether the bypass is on when it ends.
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
