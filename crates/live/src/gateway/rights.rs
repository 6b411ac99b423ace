//! Capabilities that a gateway no longer needs once its ports are open; and word to systemd.
//!
//! Source: capabilities(7), capget(2), `PR_SET_NO_NEW_PRIVS` of prctl(2), sd_notify(3). CAP_NET_ADMIN stays, for
//! offloads that are given back at the end; a reload needs none. Capabilities belong to a thread: they are
//! dropped before the second one starts.

use std::env;
use std::fs::File;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

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
