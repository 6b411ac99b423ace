//! Capabilities that the threads of a gateway keep once its ports are open.
//!
//! Source: capabilities(7). The thread that moves packets keeps CAP_NET_ADMIN, to restore offloads at the
//! end. The thread that opens the ports of interfaces that come back keeps CAP_NET_RAW as well. The thread
//! that answers commands keeps none.

use std::fs::File;
use std::path::Path;

use apportion_linux::capabilities::{Capability, missing_capabilities};

/// Checks that this thread has the capabilities that a gateway needs to start. Where the system does not
/// report them, the first call that needs one fails.
///
/// # Errors
/// The missing capabilities, and how to grant them.
pub fn to_start() -> Result<(), String> {
    let missing = missing_capabilities(&[Capability::NetAdmin, Capability::NetRaw]).unwrap_or_default();
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = missing.into_iter().map(Capability::name).collect();
    Err(format!("a gateway needs CAP_NET_ADMIN and CAP_NET_RAW: use sudo (missing: {})", names.join(", ")))
}

/// The change needed to read the file again with the remaining rights; none if it can be read. Root without
/// CAP_DAC_OVERRIDE is subject to the permissions of files and folders (capabilities(7)).
#[must_use]
pub fn to_read_again(path: &Path) -> Option<String> {
    let error = File::open(path).err()?;
    Some(format!(
        "reloads will fail: {} cannot be read with the remaining rights: {error}; make the user of the gateway its owner, or let \
         others read the file (`chmod o+r`) and enter its folders (`chmod o+x`)",
        path.display()
    ))
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
