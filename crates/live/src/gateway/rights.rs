//! Capabilities that a gateway no longer needs once its ports are open; and word to systemd.
//!
//! Source: capabilities(7), capget(2), `PR_SET_NO_NEW_PRIVS` of prctl(2), sd_notify(3). CAP_NET_ADMIN stays, for
//! offloads that are given back at the end; a reload needs none. Capabilities belong to a thread: they are
//! dropped before the second one starts.
#![expect(unsafe_code, reason = "nix has no capset(2)")]

use std::env;
use std::fs::File;
use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use nix::sys::prctl::set_no_new_privs;

/// linux/capability.h: two words for each of three sets.
const VERSION_3: u32 = 0x2008_0522;
const CAP_NET_ADMIN: u32 = 12;

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

/// Drops all capabilities of this thread but CAP_NET_ADMIN, if it has that, for good: no program that it
/// executes gets others.
///
/// # Errors
/// What the system says.
pub fn drop_capabilities() -> io::Result<()> {
    set_no_new_privs()?;
    let mut header = Header { version: VERSION_3, pid: 0 };
    let mut sets = [Sets::default(); 2];
    // SAFETY: the kernel writes two `Sets` for this version, and reads the header.
    check(unsafe { libc::syscall(libc::SYS_capget, &raw mut header, sets.as_mut_ptr()) })?;
    let kept = sets[0].permitted & 1 << CAP_NET_ADMIN;
    let sets = [Sets { effective: kept, permitted: kept, inheritable: 0 }, Sets::default()];
    // SAFETY: the kernel reads a header and two `Sets`.
    check(unsafe { libc::syscall(libc::SYS_capset, &raw mut header, sets.as_ptr()) })
}

/// What is to be done for the file to be read again with the rights that are left; none if it can be.
/// Root without CAP_DAC_OVERRIDE is held to the permissions of files and folders (capabilities(7)).
#[must_use]
pub fn to_read_again(path: &Path) -> Option<String> {
    let error = File::open(path).err()?;
    Some(format!(
        "reloads will fail: {} cannot be read with the rights that are left: {error}; let its owner be who runs the \
         gateway, or everybody read it and enter its folders (`chmod o+r` of the file, `chmod o+x` of the \
         folders)",
        path.display()
    ))
}

fn check(result: libc::c_long) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Tells systemd, if it started this and asked for it. Where that fails there is nobody to tell.
pub fn notify(state: &str) {
    let Some(path) = env::var_os("NOTIFY_SOCKET") else { return };
    // A name that begins with `@` is an abstract one, which containers have no more.
    let _ = UnixDatagram::unbound().and_then(|socket| socket.send_to(state.as_bytes(), path));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_read_again_is_told_with_the_mend() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.toml");
        let told = to_read_again(&path).unwrap();
        assert!(told.starts_with("reloads will fail: ") && told.contains("chmod o+r"), "{told}");
        std::fs::write(&path, "").unwrap();
        assert_eq!(to_read_again(&path), None);
    }
}
