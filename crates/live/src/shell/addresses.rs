//! What the two ends of a shell's link are called.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::Command;

/// Shells around a shell at most: the kernel's limit on user namespaces inside of each other.
pub const MOST_DEPTH: u8 = 31;

/// The addresses of both ends: IPv4 first, then IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    near: [IpAddr; 2],
    far: [IpAddr; 2],
}

impl Addresses {
    /// Those of a shell with `depth` others around it.
    #[must_use]
    pub fn at(depth: u8) -> Option<Self> {
        // 100.64.0.0/10 is for hosts behind somebody else's translator (RFC 6598); fd00::/8 for whoever picks a
        // number (RFC 4193): 61 7070 6f72 is "appor".
        let both = |last: u8| -> [IpAddr; 2] {
            [
                Ipv4Addr::new(100, 64, depth, last).into(),
                Ipv6Addr::new(0xfd61, 0x7070, 0x6f72, depth.into(), 0, 0, 0, last.into()).into(),
            ]
        };
        (depth <= MOST_DEPTH).then(|| Self { near: both(2), far: both(1) })
    }

    /// Of the command's end.
    pub(super) fn near(&self, has_ipv6: bool) -> &[IpAddr] {
        if has_ipv6 { &self.near } else { &self.near[..1] }
    }

    /// Of the far end.
    pub(super) fn far(&self, has_ipv6: bool) -> &[IpAddr] {
        if has_ipv6 { &self.far } else { &self.far[..1] }
    }

    /// Whether this is one of the command's.
    pub(super) fn is_near(&self, address: IpAddr) -> bool {
        self.near.contains(&address)
    }

    /// Puts them into the environment of a command, with the number of shells that it is in.
    pub(super) fn tell(&self, command: &mut Command, depth: u8) {
        let [near, near6] = self.near.map(|address| address.to_string());
        let [far, far6] = self.far.map(|address| address.to_string());
        command
            .env("APPORTION_NEAR", near)
            .env("APPORTION_FAR", far)
            .env("APPORTION_NEAR6", near6)
            .env("APPORTION_FAR6", far6)
            .env("APPORTION_DEPTH", (depth + 1).to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shells_inside_of_each_other_have_addresses_of_their_own() {
        let (outer, inner) = (Addresses::at(0).unwrap(), Addresses::at(1).unwrap());
        assert_eq!(outer.far(false), [IpAddr::from([100, 64, 0, 1])]);
        assert_eq!(outer.near(true)[1].to_string(), "fd61:7070:6f72::2");
        assert_eq!(inner.near(true)[1].to_string(), "fd61:7070:6f72:1::2");
        assert!(outer.is_near(outer.near[0]) && !inner.is_near(outer.near[0]));
        assert_eq!(Addresses::at(MOST_DEPTH + 1), None);
    }
}
