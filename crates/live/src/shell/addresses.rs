//! Addresses of the two ends of a shell's link.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::Command;

/// Maximum of shells around a shell: the kernel's limit on nested user namespaces.
pub const MAX_DEPTH: u8 = 31;

/// The addresses of both ends: IPv4 first, then IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    near: [IpAddr; 2],
    far: [IpAddr; 2],
}

impl Addresses {
    /// The addresses of a shell with `depth` others around it.
    #[must_use]
    pub fn at(depth: u8) -> Option<Self> {
        // 100.64.0.0/10 is for hosts behind a provider's address translator (RFC 6598); fd00::/8 is for
        // locally chosen prefixes (RFC 4193): 61 7070 6f72 is "appor".
        let both = |last: u8| -> [IpAddr; 2] {
            [
                Ipv4Addr::new(100, 64, depth, last).into(),
                Ipv6Addr::new(0xfd61, 0x7070, 0x6f72, depth.into(), 0, 0, 0, last.into()).into(),
            ]
        };
        (depth <= MAX_DEPTH).then(|| Self { near: both(2), far: both(1) })
    }

    /// The addresses of the command's end.
    pub(super) fn near(&self, has_ipv6: bool) -> &[IpAddr] {
        if has_ipv6 { &self.near } else { &self.near[..1] }
    }

    /// The addresses of the far end.
    pub(super) fn far(&self, has_ipv6: bool) -> &[IpAddr] {
        if has_ipv6 { &self.far } else { &self.far[..1] }
    }

    /// Whether this address is one of the command's.
    pub(super) fn is_near(&self, address: IpAddr) -> bool {
        self.near.contains(&address)
    }

    /// Puts the existing addresses into the environment of a command, with the number of shells around it.
    pub(super) fn set_environment(&self, command: &mut Command, depth: u8, has_ipv6: bool) {
        for (end, addresses) in [("NEAR", self.near), ("FAR", self.far)] {
            let [ipv4, ipv6] = addresses.map(|address| address.to_string());
            command.env(format!("APPORTION_{end}"), ipv4);
            let name = format!("APPORTION_{end}6");
            // A shell around this one may have set its own IPv6 addresses.
            if has_ipv6 {
                command.env(name, ipv6)
            } else {
                command.env_remove(name)
            };
        }
        command.env("APPORTION_DEPTH", (depth + 1).to_string());
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
        assert_eq!(Addresses::at(MAX_DEPTH + 1), None);
    }

    #[test]
    fn addresses_that_do_not_exist_are_not_exported() {
        let value = |has_ipv6: bool, name: &str| {
            let mut command = Command::new("true");
            Addresses::at(0).unwrap().set_environment(&mut command, 0, has_ipv6);
            let value = command.get_envs().find(|(key, _)| *key == name).unwrap().1;
            value.map(|value| value.to_str().unwrap().to_owned())
        };
        assert_eq!(value(false, "APPORTION_FAR").as_deref(), Some("100.64.0.1"));
        assert_eq!(value(true, "APPORTION_FAR6").as_deref(), Some("fd61:7070:6f72::1"));
        // Removed, so that an outer shell's addresses do not stay.
        assert_eq!((value(false, "APPORTION_NEAR6"), value(false, "APPORTION_FAR6")), (None, None));
    }
}
