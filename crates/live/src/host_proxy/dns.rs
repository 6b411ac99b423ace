//! Names inside: the host's nameserver, the `resolv.conf` of the command, and the answer if the host has no
//! nameserver.
//!
//! Source: resolv.conf(5); RFC 1035 section 4.1.1 for the header of a message. Only the first nameserver is
//! used. This module looks up no names.

use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::path::{Path, PathBuf};

use apportion_linux::namespace::{MountError, bind_over, in_own_folder};

/// The file that names the system's nameservers.
const RESOLV_CONF: &str = "/etc/resolv.conf";

/// The port of nameservers (RFC 1035 section 4.2).
pub const PORT: u16 = 53;
/// Bytes of the header of a message; a refusal needs no more.
const HEADER: usize = 12;

/// The first nameserver of a `resolv.conf`; an IPv6 address may name a device (`fe80::1%eth0`), whose index
/// comes from `index_of`.
#[must_use]
pub(crate) fn nameserver(resolv_conf: &str, index_of: impl Fn(&str) -> Option<u32>) -> Option<SocketAddr> {
    let mut lines = resolv_conf.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some("nameserver")).then(|| words.next()).flatten()
    });
    lines.find_map(|server| match server.split_once('%') {
        None => Some(SocketAddr::new(server.parse().ok()?, PORT)),
        Some((address, device)) => {
            let scope = device.parse().ok().or_else(|| index_of(device))?;
            Some(SocketAddrV6::new(address.parse().ok()?, PORT, 0, scope).into())
        }
    })
}

/// The host's first nameserver, from its `/etc/resolv.conf`; call it before another file is bound over that.
/// None without a nameserver or file.
///
/// # Errors
/// If the file exists and cannot be read.
pub fn host_nameserver() -> io::Result<Option<SocketAddr>> {
    let index_of = |device: &str| nix::net::if_::if_nametoindex(device).ok();
    match fs::read_to_string(RESOLV_CONF) {
        Ok(text) => Ok(nameserver(&text, index_of)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The host's `resolv.conf` for the command: with `gateway` as the nameserver, and the host's domains and
/// options.
#[must_use]
pub(crate) fn resolv_conf(of_host: &str, gateway: IpAddr) -> String {
    let keeps = |line: &&str| {
        matches!(line.split_whitespace().next(), Some("search" | "domain" | "options" | "sortlist"))
    };
    let mut text = format!("nameserver {gateway}\n");
    of_host.lines().filter(keeps).for_each(|line| text.extend([line, "\n"]));
    text
}

/// Why the command does not see its `resolv.conf`.
#[derive(Debug, thiserror::Error)]
pub enum ResolvConfError {
    /// The host's cannot be read.
    #[error("cannot read {RESOLV_CONF}: {0}")]
    Read(io::Error),
    /// The one for the command cannot be written.
    #[error("cannot write {}: {error}", .file.display())]
    Write {
        file: PathBuf,
        /// The error of the system call.
        error: io::Error,
    },
    /// The file cannot be mounted over the host's.
    #[error(transparent)]
    Bind(#[from] MountError),
}

/// Mounts `resolv_conf` over the host's file in the calling thread's mount namespace; if the host has none,
/// nothing is mounted. The mount namespace must be private
/// ([`apportion_linux::namespace::make_mounts_private`]). The file is never visible outside, and none is left
/// behind.
///
/// # Errors
/// If the host's file cannot be read, or the mount is forbidden.
pub fn bind_resolv_conf(gateway: IpAddr) -> Result<(), ResolvConfError> {
    let of_host = match fs::read_to_string(RESOLV_CONF) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(ResolvConfError::Read(error)),
    };
    // The mount over the host's keeps the file when the folder is gone.
    in_own_folder(&std::env::temp_dir(), |folder| {
        let file = folder.join("resolv.conf");
        fs::write(&file, resolv_conf(&of_host, gateway))
            .map_err(|error| ResolvConfError::Write { file: file.clone(), error })?;
        Ok(bind_over(&file, Path::new(RESOLV_CONF))?)
    })?
}

/// The answer to a query when there is no nameserver: the query as a response with RCODE 5 ("refused"). None
/// if it is no query.
pub(super) fn refusal(query: &[u8]) -> Option<Vec<u8>> {
    const RESPONSE: u8 = 1 << 7;
    const REFUSED: u8 = 5;
    if query.len() < HEADER || query[2] & RESPONSE != 0 {
        return None;
    }
    let mut answer = query.to_vec();
    // Keeps the operation and "recursion desired".
    answer[2] = query[2] & 0b0111_1001 | RESPONSE;
    answer[3] = REFUSED;
    Some(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_nameserver_counts() {
        let text = "# nameserver 192.0.2.9\n;nameserver 192.0.2.8\nsearch example.org\n\
                    nameserver\tbad\n  nameserver 127.0.0.53\nnameserver 192.0.2.1\n";
        assert_eq!(nameserver(text, |_| None), Some("127.0.0.53:53".parse().unwrap()));
        assert_eq!(nameserver("nameserver 2001:db8::1", |_| None), Some("[2001:db8::1]:53".parse().unwrap()));
        assert_eq!(nameserver("options edns0\n", |_| None), None);
    }

    #[test]
    fn a_nameserver_on_the_link_names_its_device() {
        let of = |device: &str| (device == "eth0").then_some(7);
        let expected = SocketAddrV6::new("fe80::1".parse().unwrap(), 53, 0, 7).into();
        assert_eq!(nameserver("nameserver fe80::1%eth0", of), Some(expected));
        assert_eq!(nameserver("nameserver fe80::1%7", of), Some(expected));
        assert_eq!(nameserver("nameserver fe80::1%eth1", of), None);
    }

    #[test]
    fn the_command_asks_the_gateway_in_the_hosts_domains() {
        let host = "nameserver 127.0.0.53\noptions edns0 trust-ad\nsearch example.org\n";
        let expected = "nameserver 100.64.0.1\noptions edns0 trust-ad\nsearch example.org\n";
        assert_eq!(resolv_conf(host, [100, 64, 0, 1].into()), expected);
    }

    #[test]
    fn a_refusal_answers_its_query() {
        // ID 0x1234, recursion desired, one question: ".", A, IN.
        let query = [0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1];
        let answer = refusal(&query).unwrap();
        assert_eq!((&answer[..4], &answer[4..]), (&[0x12, 0x34, 0x81, 5][..], &query[4..]));
        // Responses and messages without a header get no answer.
        assert_eq!(refusal(&answer), None);
        assert_eq!(refusal(&query[..11]), None);
    }
}
