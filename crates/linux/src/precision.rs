//! Asks the system to let the calling thread run on time: real-time scheduling and locked memory, as far as they are
//! permitted. Nothing depends on either.
//!
//! - SCHED_RR at the lowest priority (sched(7)) puts the thread ahead of all ordinary ones. It is asked for only while the
//!   kernel limits the share of real-time threads (`sched_rt_runtime_us`), so that a loop cannot take the machine. Threads
//!   and processes that the thread starts do not inherit it (SCHED_RESET_ON_FORK).
//! - Locked memory (mlockall(2)) is not swapped out. It is asked for only without a limit: with one, allocations fail that
//!   would exceed it.
//!
//! The rights count in the first user namespace alone, so ask before entering another.
#![expect(unsafe_code, reason = "nix has no sched_setscheduler(2) and no MCL_ONFAULT")]

use std::fs;

use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit, setrlimit};

/// What the calling thread has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Precision {
    /// Real-time scheduling.
    pub real_time: bool,
    /// Locked memory, of the whole process.
    pub locked: bool,
}

/// The lowest: any is ahead of ordinary threads, and the kernel's own real-time threads stay ahead of this one.
const PRIORITY: libc::c_int = 1;

impl Precision {
    /// Asks for both.
    pub fn ask() {
        raise(Resource::RLIMIT_RTPRIO);
        raise(Resource::RLIMIT_MEMLOCK);
        if is_throttled() {
            let parameters = libc::sched_param { sched_priority: PRIORITY };
            let policy = libc::SCHED_RR | libc::SCHED_RESET_ON_FORK;
            // SAFETY: the kernel reads the parameters of the calling thread. The C library of musl does not have this call.
            let _ = unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const parameters) };
        }
        if getrlimit(Resource::RLIMIT_MEMLOCK).is_ok_and(|(soft, _)| soft == RLIM_INFINITY) {
            // Pages are locked once they are used, so that large buffers take no more memory than without.
            // SAFETY: it changes no memory of ours.
            let _ = unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT) };
        }
    }

    /// What the calling thread has now.
    #[must_use]
    pub fn read() -> Self {
        // SAFETY: it takes a number.
        let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) };
        let policy = policy & !libc::c_long::from(libc::SCHED_RESET_ON_FORK);
        Self { real_time: policy == libc::c_long::from(libc::SCHED_RR), locked: locked_kib() > 0 }
    }
}

/// Raises a limit to what the process may have, or removes it if the process may do that.
fn raise(limit: Resource) {
    if setrlimit(limit, RLIM_INFINITY, RLIM_INFINITY).is_err()
        && let Ok((_, hard)) = getrlimit(limit)
    {
        let _ = setrlimit(limit, hard, hard);
    }
}

/// Whether the kernel leaves a part of each period to ordinary threads.
fn is_throttled() -> bool {
    let micros = |name: &str| -> Option<i64> {
        fs::read_to_string(format!("/proc/sys/kernel/sched_rt_{name}_us")).ok()?.trim().parse().ok()
    };
    // A runtime of -1 is without limit.
    micros("runtime").zip(micros("period")).is_some_and(|(runtime, period)| (1..period).contains(&runtime))
}

/// The locked memory of the process.
fn locked_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let locked = status.lines().find_map(|line| line.strip_prefix("VmLck:"));
    locked.and_then(|kib| kib.trim().strip_suffix(" kB")?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_granted_is_not_inherited() {
        // In a thread of its own: the others of this test program stay as they are.
        let granted = std::thread::spawn(|| {
            Precision::ask();
            let asked = Precision::read();
            let child = std::thread::spawn(Precision::read).join().unwrap();
            assert!(!child.real_time);
            asked
        });
        let granted = granted.join().unwrap();
        // SAFETY: it takes no arguments.
        let is_root = unsafe { libc::geteuid() } == 0;
        // Root may be without this right in a container.
        println!("root: {is_root}, {granted:?}");
    }
}
