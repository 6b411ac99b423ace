//! The provenance of results.

use std::collections::BTreeMap;
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
        let [host, kernel] = system();
        Provenance {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: COMMIT.to_owned(),
            build: BUILD.to_owned(),
            target: format!("{TARGET} {}", env!("APPORTION_PROFILE")),
            host,
            kernel,
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

/// Returns the name of this machine and the release of its kernel; empty if they are not known.
#[cfg(unix)]
fn system() -> [String; 2] {
    let Ok(names) = nix::sys::utsname::uname() else { return Default::default() };
    [names.nodename(), names.release()].map(|name| name.to_string_lossy().into_owned())
}

#[cfg(not(unix))]
fn system() -> [String; 2] {
    [std::env::var("COMPUTERNAME").unwrap_or_default(), String::new()]
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
    let [_, kernel] = if in_real_time { system() } else { Default::default() };
    let kernel = (!kernel.is_empty()).then(|| ("kernel".to_owned(), kernel));
    [own].into_iter().chain(kernel).collect()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn the_machine_and_its_kernel_have_names() {
        assert!(system().iter().all(|name| !name.is_empty()), "{:?}", system());
    }
}
