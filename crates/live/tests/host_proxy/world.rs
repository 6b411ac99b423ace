//! A command's namespace behind a link of 10 Mb/s and 20 ms each way, with a proxy to the host's network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;

use apportion_core::system::catalog::Selection;
use apportion_core::system::{DisciplineParams, LinkContext};
use apportion_core::units::{Bytes, Rate, Span, Time};
use apportion_linux::host::Host;
use apportion_linux::namespace::{Identity, Namespace};
use apportion_linux::netlink::Netlink;
use apportion_linux::port::Port;
use apportion_linux::socket_helper::Helper;
use apportion_live::bridge::{Bridge, ETHERNET};
use apportion_live::engine::{Engine, Stop};
use apportion_live::host_proxy::{Addresses, Counts, HostProxy, ListenerCounts};
use apportion_live::link::Link;
use apportion_live::pace::Pace;
use apportion_runtime::link::LinkParts;
use nix::sys::eventfd::EventFd;

use apportion_testing::processes::enter_as;

pub const RATE: Rate = Rate::from_mbit(10);
pub const DELAY: Span = Span::from_millis(20);
pub const GATEWAY: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 1);
pub const GATEWAY_6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
const NEAR: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(100, 64, 0, 2)), IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2))];
/// Longer than any test takes.
const LIMIT: Time = Time::from_secs(25);

/// A namespace that stands for the host's, with its loopback up. Call [`World::build`] once all services have
/// opened their sockets in it.
pub struct HostSide {
    helper: Helper,
}

pub fn host() -> HostSide {
    enter_as(Identity::Root);
    let mut netlink = Netlink::open().unwrap();
    let loopback = netlink.index_of("lo").unwrap();
    netlink.set_up(loopback).unwrap();
    HostSide { helper: Helper::fork().unwrap() }
}

/// A listening socket of the host's side, and its port.
pub fn listener(address: impl Into<IpAddr>) -> (TcpListener, u16) {
    let listener = TcpListener::bind((address.into(), 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// A datagram socket of the host's side, and its port.
pub fn datagrams(address: impl Into<IpAddr>) -> (UdpSocket, u16) {
    let socket = UdpSocket::bind((address.into(), 0)).unwrap();
    let port = socket.local_addr().unwrap().port();
    (socket, port)
}

pub struct World {
    near: Namespace,
    outside: HostProxy,
    engine: Engine<Bridge>,
}

/// Counters of the proxy and of its listeners.
pub type Done = (Counts, ListenerCounts);

impl HostSide {
    pub fn has_no_ipv6(&self) -> bool {
        !self.helper.has_ipv6()
    }

    pub fn build(self, nameserver: Option<SocketAddr>) -> World {
        // The engine has another namespace than the host, as in a shell.
        enter_as(Identity::Root);
        let near = Host::create("near", &NEAR, Bytes::new(1_500)).unwrap();
        let far = Host::create("far", &[], Bytes::new(1_500)).unwrap();
        let ports = [Port::open(near.port).unwrap(), Port::open(far.port).unwrap()];
        let mut engine = Bridge::between(ports, [link(0), link(1)], ETHERNET).unwrap();
        let gateway = [GATEWAY.into(), GATEWAY_6.into()];
        let addresses = Addresses { near: &NEAR, gateway: &gateway, nameserver };
        let (outside, listener_gate) = HostProxy::open(self.helper, &far.namespace, &addresses).unwrap();
        engine.world.set_listener_gate(listener_gate);
        for host in [&near, &far] {
            let wait = || Netlink::open().unwrap().wait_until_running("eth0", Span::from_secs(5)).unwrap();
            host.namespace.run(wait).unwrap();
        }
        World { near: near.namespace, outside, engine }
    }
}

impl World {
    /// Runs `command` behind the link, and returns its result.
    pub fn run<T: Send + 'static>(mut self, command: impl FnOnce() -> T + Send + 'static) -> (T, Done) {
        let wake = Arc::new(EventFd::new().unwrap());
        let waker = Waker(Arc::clone(&wake));
        let thread = self
            .near
            .spawn("command", move || {
                let _waker = waker;
                command()
            })
            .unwrap();
        let stop = self.engine.run(LIMIT, Some(std::os::fd::AsFd::as_fd(&*wake))).unwrap();
        assert_eq!(stop, Stop::Woken, "the command has not ended by {LIMIT:?}");
        let given = thread.join().unwrap();
        let doors = self.engine.world.listener_gate().unwrap().counts();
        (given, (self.outside.close(), doors))
    }
}

/// Wakes the engine at the end, also after a panic.
struct Waker(Arc<EventFd>);

impl Drop for Waker {
    fn drop(&mut self) {
        self.0.write(1).unwrap();
    }
}

fn link(number: u32) -> Link {
    let mut selection = Selection::new("fifo", None, None).unwrap();
    selection.set("limit", "200p").unwrap();
    let queue = DisciplineParams::from_args(&selection).unwrap().build(&LinkContext::new(RATE, 1, "test"));
    let parts = LinkParts { delay: DELAY, ..LinkParts::new(number, queue, RATE) };
    Link::new(parts, Pace::rate(RATE), None)
}
