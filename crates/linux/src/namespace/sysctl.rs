//! The settings under `/proc/sys/net`, which belong to the network namespace of the thread that writes them.
//!
//! Source: proc_sys_net(5), Documentation/networking/ip-sysctl. A process with CAP_NET_ADMIN in the user
//! namespace that owns the network namespace may write them without being root. Where `/proc/sys` is
//! read-only, as in most containers, they keep their values.

use std::fs;
use std::io;
use std::path::PathBuf;

/// Why a setting cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum SysctlError {
    /// The name is not a setting of the network.
    #[error("`{0}` is no setting of the network: it must look like `net/ipv4/ip_forward`")]
    Name(String),
    /// The file cannot be read or written.
    #[error("cannot {doing} /proc/sys/{name}: {error}{}", remedy(.error))]
    Io {
        /// `read`, or `write` and the value.
        doing: String,
        /// The setting.
        name: String,
        /// The error of the system call.
        error: io::Error,
    },
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::ReadOnlyFilesystem => {
            "; a container mounts it read-only: start it with its /proc/sys writable"
        }
        io::ErrorKind::PermissionDenied => {
            "; CAP_NET_ADMIN is needed in the user namespace that owns the network namespace"
        }
        io::ErrorKind::NotFound => "; the kernel has no such setting or there is no such device",
        _ => "",
    }
}

/// Writes the setting `name`, for example `net/ipv4/ip_forward`, in the namespace of the calling thread.
///
/// # Errors
/// A name that is not below `net/`, or the error of the file.
pub fn set_sysctl(name: &str, value: &str) -> Result<(), SysctlError> {
    fs::write(path(name)?, value).map_err(|error| SysctlError::Io {
        doing: format!("write `{value}` to"),
        name: name.to_owned(),
        error,
    })
}

/// Reads the setting `name` in the namespace of the calling thread, without the line's end.
///
/// # Errors
/// As for [`set_sysctl`].
pub fn sysctl(name: &str) -> Result<String, SysctlError> {
    match fs::read_to_string(path(name)?) {
        Ok(text) => Ok(text.trim_end().to_owned()),
        Err(error) => Err(SysctlError::Io { doing: "read".into(), name: name.to_owned(), error }),
    }
}

/// Keeps the kernel from sending IPv6 packets of its own on `device`, in the namespace of the calling thread:
/// no link-local address (and so no reports of groups), no router solicitations, no duplicate address
/// detection; router advertisements are ignored. Call it before the device is up.
///
/// # Errors
/// As for [`set_sysctl`]. A kernel without IPv6 sends none, which is no error.
pub fn silence_ipv6(device: &str) -> Result<(), SysctlError> {
    // `addr_gen_mode` 1 is "none": IN6_ADDR_GEN_MODE_NONE of linux/if_link.h.
    let quiet = [
        ("addr_gen_mode", "1"),
        ("accept_ra", "0"),
        ("autoconf", "0"),
        ("router_solicitations", "0"),
        ("accept_dad", "0"),
        ("dad_transmits", "0"),
    ];
    if !path("net/ipv6/conf")?.exists() {
        return Ok(());
    }
    quiet.iter().try_for_each(|(name, value)| set_sysctl(&format!("net/ipv6/conf/{device}/{name}"), value))
}

/// The file of a setting: below `net/`, never above it.
fn path(name: &str) -> Result<PathBuf, SysctlError> {
    let mut parts = name.split('/');
    let is_inside = parts.next() == Some("net")
        && parts.clone().next().is_some()
        && parts.all(|part| !matches!(part, "" | "." | ".."));
    if is_inside {
        Ok(PathBuf::from("/proc/sys").join(name))
    } else {
        Err(SysctlError::Name(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_networks_settings_have_a_path() {
        assert_eq!(path("net/ipv4/ip_forward").unwrap(), PathBuf::from("/proc/sys/net/ipv4/ip_forward"));
        for bad in
            ["", "net", "net/", "/net/ipv4", "kernel/panic", "net/../kernel/panic", "net//ipv4", "net/."]
        {
            assert!(matches!(path(bad), Err(SysctlError::Name(name)) if name == bad), "{bad}");
        }
    }
}
