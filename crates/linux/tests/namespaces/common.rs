//! A user namespace for a test, a pair of devices, and the frames that cross it.

use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use apportion_core::units::{Bytes, Span};
use apportion_linux::namespace::{Namespace, silence_ipv6};
use apportion_linux::netlink::{Netlink, VethEnd};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, socket};

pub use apportion_testing::processes::part;

pub const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
pub const MTU: Bytes = Bytes::new(1500);

/// Two namespaces, `a` with the device `a0` and `b` with `b0`: equal hardware addresses, no ARP, no packets
/// of the kernel's own; `a` is 10.0.0.1 and fd00::1, `b` is 10.0.0.2 and fd00::2.
pub struct Pair {
    pub a: Namespace,
    pub b: Namespace,
}

pub fn pair() -> Pair {
    let pair = bare_pair();
    for (namespace, name, last) in [(&pair.a, "a0", 1), (&pair.b, "b0", 2)] {
        namespace
            .run(|| {
                silence_ipv6(name).unwrap();
                let mut netlink = Netlink::open().unwrap();
                let loopback = netlink.index_of("lo").unwrap();
                netlink.set_up(loopback).unwrap();
                let index = netlink.index_of(name).unwrap();
                netlink.set_no_arp(index).unwrap();
                netlink.set_up(index).unwrap();
                netlink.add_address(index, IpAddr::from([10, 0, 0, last]), 24).unwrap();
                netlink.add_address(index, v6(last.into()), 64).unwrap();
            })
            .unwrap();
    }
    for (namespace, name, last) in [(&pair.a, "a0", 1), (&pair.b, "b0", 2)] {
        let wait = || {
            let mut netlink = Netlink::open().unwrap();
            netlink.wait_until_running(name, Span::from_secs(5)).unwrap();
            netlink.wait_until_local(v6(last), Span::from_secs(5)).unwrap();
        };
        namespace.run(wait).unwrap();
    }
    pair
}

/// Like [`pair`], with both devices down and without addresses.
pub fn bare_pair() -> Pair {
    let (a, b) = (Namespace::create().unwrap(), Namespace::create().unwrap());
    let end = |name, namespace| VethEnd { name, mac: MAC, mtu: MTU, namespace };
    Netlink::open().unwrap().add_veth(&end("a0", a.as_fd()), &end("b0", b.as_fd())).unwrap();
    Pair { a, b }
}

/// The address fd00::`last`.
pub fn v6(last: u16) -> IpAddr {
    IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, last])
}

/// A capture of every frame of a namespace from now on.
pub struct Capture {
    socket: OwnedFd,
}

impl Capture {
    pub fn of(namespace: &Namespace) -> Self {
        let open = || {
            let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
            socket(AddressFamily::Packet, SockType::Raw, flags, SockProtocol::EthAll).unwrap()
        };
        Self { socket: namespace.run(open).unwrap() }
    }

    /// The first 2 KiB of the next frame, and its length; none if none comes within `milliseconds`.
    pub fn next(&self, milliseconds: u16) -> Option<(Vec<u8>, usize)> {
        let mut watched = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        if poll(&mut watched, PollTimeout::from(milliseconds)).unwrap() == 0 {
            return None;
        }
        let mut frame = vec![0; 2048];
        let length = recv(self.socket.as_raw_fd(), &mut frame, MsgFlags::MSG_TRUNC).unwrap();
        frame.truncate(length);
        Some((frame, length))
    }
}

/// Waits.
pub fn pause(milliseconds: u16) {
    poll(&mut [], PollTimeout::from(milliseconds)).unwrap();
}
