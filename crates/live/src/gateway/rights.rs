//! Rights that a gateway keeps once its ports are open, and notifications to systemd.
//!
//! Source: capabilities(7), capget(2), `PR_SET_NO_NEW_PRIVS` of prctl(2), sd_notify(3). CAP_NET_ADMIN stays, for
//! offloads that are given back at the end; a reload needs none. Capabilities belong to a thread: they are
//! dropped before the second one starts.

use std::env;
use std::fs::File;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

/// What must change so that the file can be read again with the remaining rights; none if it can be read.
/// Root without CAP_DAC_OVERRIDE is held to the permissions of files and folders (capabilities(7)).
#[must_use]
pub fn to_read_again(path: &Path) -> Option<String> {
    let error = File::open(path).err()?;
    Some(format!(
        "reloads will fail: {} cannot be read with the remaining rights: {error}; make the user of the gateway its owner, or let \
         others read the file (`chmod o+r`) and enter its folders (`chmod o+x`)",
        path.display()
    ))
}

/// Notifies systemd, if it started this process with a notification socket. A failure is ignored.
pub fn notify(state: &str) {
    let Some(path) = env::var_os("NOTIFY_SOCKET") else { return };
    // A name that begins with `@` is an abstract one, which containers have no more.
    let _ = UnixDatagram::unbound().and_then(|socket| socket.send_to(state.as_bytes(), path));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_read_again_is_reported_with_the_fix() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.toml");
        let advice = to_read_again(&path).unwrap();
        assert!(advice.starts_with("reloads will fail: ") && advice.contains("chmod o+r"), "{advice}");
        std::fs::write(&path, "").unwrap();
        assert_eq!(to_read_again(&path), None);
    }
}
