//! Numbers of results in the units of rows and pages.

use apportion_core::queue::DropReason;
use apportion_core::units::{Bytes, Span};
use apportion_runtime::outcome::{Distribution, Drops};

/// Rounds to six decimals: a bit per second of a Mb/s, a nanosecond of a millisecond.
pub(crate) fn round6(x: f64) -> f64 {
    (x * 1e6).round() / 1e6
}

/// The mean rate at which `bytes` passed within `span`; zero if `span` is zero.
#[must_use]
pub fn mbps(bytes: Bytes, span: Span) -> f64 {
    if span == Span::ZERO { 0.0 } else { bytes.bits() as f64 / span.as_secs_f64() / 1e6 }
}

pub(crate) fn ms(span: Span) -> f64 {
    span.as_secs_f64() * 1e3
}

/// Times in seconds, ascending.
pub(crate) fn sorted_times(times: impl Iterator<Item = Span>) -> Vec<f64> {
    let mut times: Vec<f64> = times.map(Span::as_secs_f64).collect();
    times.sort_by(f64::total_cmp);
    times
}

pub(crate) fn drops(of: &Drops, reason: DropReason) -> u64 {
    of.get(&reason).copied().unwrap_or(0)
}

pub(crate) fn mean_ms(of: &Distribution) -> Option<f64> {
    (of.count > 0).then(|| ms(of.mean))
}

pub(crate) fn quantile_ms(of: &Distribution, share: f64) -> Option<f64> {
    of.quantile(share).map(ms)
}
