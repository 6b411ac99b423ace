//! The provenance of results.

use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;

use apportion_report::Provenance;

use crate::sources::{BUILD, TARGET};

/// The commit of the build, with `+` if files were changed after it; empty outside of a repository.
pub(crate) const COMMIT: &str = env!("APPORTION_COMMIT");

/// A run that has begun.
pub(crate) struct Begun {
    /// None where the system has no clock.
    at: Option<Instant>,
    cpu_s: Option<f64>,
}

impl Begun {
    #[expect(clippy::disallowed_methods, reason = "how long a run takes is said of it, no more")]
    pub(crate) fn now() -> Self {
        let has_clock = !cfg!(all(target_family = "wasm", target_os = "unknown"));
        Self { at: has_clock.then(Instant::now), cpu_s: cpu_s() }
    }

    /// Returns the provenance of the run at its end, with `reused` simulations from the cache.
    pub(crate) fn end(&self, reused: usize) -> Provenance {
        Provenance {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: COMMIT.to_owned(),
            build: BUILD.to_owned(),
            target: format!("{TARGET} {}", env!("APPORTION_PROFILE")),
            host: host(),
            kernel: of_kernel("osrelease"),
            command: std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect(),
            reused: reused as u64,
            wall_s: self.at.map_or(0.0, |at| millis(at.elapsed().as_secs_f64())),
            cpu_s: self.cpu_s.zip(cpu_s()).map(|(before, now)| millis(now - before)),
        }
    }
}

/// Rounds seconds to three decimals.
fn millis(seconds: f64) -> f64 {
    (seconds * 1e3).round() / 1e3
}

/// Returns a setting of the kernel; empty if the kernel has none of this name.
fn of_kernel(name: &str) -> String {
    fs::read_to_string(format!("/proc/sys/kernel/{name}"))
        .map(|text| text.trim().to_owned())
        .unwrap_or_default()
}

/// Returns the name of this machine; empty if it is not known.
fn host() -> String {
    if cfg!(windows) { std::env::var("COMPUTERNAME").unwrap_or_default() } else { of_kernel("hostname") }
}

/// Returns the CPU time of this process so far on all cores.
#[cfg(unix)]
fn cpu_s() -> Option<f64> {
    use nix::sys::resource::{UsageWho, getrusage};
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Some(seconds(usage.user_time()) + seconds(usage.system_time()))
}

#[cfg(not(unix))]
const fn cpu_s() -> Option<f64> {
    None
}

/// Returns the versions of everything that results depend on; of the kernel only for runs in real time.
pub(crate) fn versions(in_real_time: bool) -> BTreeMap<String, String> {
    let own = ("apportion".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    let kernel = in_real_time.then(|| ("kernel".to_owned(), of_kernel("osrelease")));
    [own].into_iter().chain(kernel.filter(|(_, release)| !release.is_empty())).collect()
}
