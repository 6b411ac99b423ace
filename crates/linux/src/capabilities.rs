//! Drops capabilities that a process no longer needs.
//!
//! Source: capabilities(7), capget(2), `PR_SET_NO_NEW_PRIVS` of prctl(2). Capabilities belong to a thread, and a thread
//! starts with those of the one that started it.
#![expect(unsafe_code, reason = "nix has no capset(2)")]

use std::io;

use nix::sys::prctl::set_no_new_privs;

/// `_LINUX_CAPABILITY_VERSION_3` of linux/capability.h: two words for each of three sets.
const VERSION_3: u32 = 0x2008_0522;

/// A capability that a thread can keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// CAP_NET_ADMIN: settings of devices.
    NetAdmin = 12,
    /// CAP_NET_RAW: packet sockets.
    NetRaw = 13,
    /// CAP_PERFMON: programs in the kernel that compute with addresses of packets.
    Perfmon = 38,
    /// CAP_BPF: programs in the kernel and their maps.
    Bpf = 39,
}

impl Capability {
    /// The capability's name in manual pages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NetAdmin => "CAP_NET_ADMIN",
            Self::NetRaw => "CAP_NET_RAW",
            Self::Perfmon => "CAP_PERFMON",
            Self::Bpf => "CAP_BPF",
        }
    }
}

/// The capabilities of `wanted` that are not effective in this thread, by proc_pid_status(5).
///
/// # Errors
/// If `/proc` cannot be read, or has no such line.
pub fn missing_capabilities(wanted: &[Capability]) -> io::Result<Vec<Capability>> {
    missing(&std::fs::read_to_string("/proc/thread-self/status")?, wanted)
}

fn missing(status: &str, wanted: &[Capability]) -> io::Result<Vec<Capability>> {
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let mask = mask.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no CapEff"))?;
    Ok(wanted.iter().copied().filter(|capability| mask & (1 << *capability as u32) == 0).collect())
}

#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Sets {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Drops all capabilities of this thread except those of `kept` that it has, for good: no program that it
/// executes gets others.
///
/// # Errors
/// The error of the system call.
pub fn keep_capabilities(kept: &[Capability]) -> io::Result<()> {
    set_no_new_privs()?;
    let mut header = Header { version: VERSION_3, pid: 0 };
    let mut sets = [Sets::default(); 2];
    // SAFETY: the kernel writes two `Sets` for this version, and reads the header.
    check(unsafe { libc::syscall(libc::SYS_capget, &raw mut header, sets.as_mut_ptr()) })?;
    let kept = kept.iter().fold(0_u64, |mask, capability| mask | 1 << *capability as u32);
    let words = [kept as u32, (kept >> 32) as u32];
    let sets = [0, 1].map(|at| {
        let kept = sets[at].permitted & words[at];
        Sets { effective: kept, permitted: kept, inheritable: 0 }
    });
    // SAFETY: the kernel reads a header and two `Sets`.
    check(unsafe { libc::syscall(libc::SYS_capset, &raw mut header, sets.as_ptr()) })
}

fn check(result: libc::c_long) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_that_are_missing_are_found() {
        let wanted = [Capability::NetAdmin, Capability::NetRaw, Capability::Bpf];
        let of = |mask: &str| missing(&format!("Name:\tx\nCapPrm:\t0\nCapEff:\t{mask}\n"), &wanted).unwrap();
        assert_eq!(of("0000000000000000"), wanted);
        assert_eq!(of("000001ffffffffff"), []);
        assert_eq!(of("0000000000001000"), [Capability::NetRaw, Capability::Bpf]);
        assert!(missing("CapEff:\tx\n", &wanted).is_err() && missing("", &wanted).is_err());
        assert!(missing_capabilities(&wanted).is_ok());
    }
}
