//! Two hosts with gateways between them.

use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use apportion_core::units::{Bytes, Span};
use apportion_linux::host::Host;
use apportion_linux::namespace::{Namespace, silence_ipv6};
use apportion_linux::netlink::{Netlink, VethEnd};
use apportion_linux::pool::Pool;
use apportion_linux::port::{Port, Received, RingSize};
use apportion_live::gateway::Gateway;
use apportion_live::gateway::snapshot::{Reloads, Snapshot};
use apportion_runtime::histogram::Histogram;
use apportion_scenario::gateway::GatewayConfig;

pub use apportion_testing::processes::{enter, judge_by_time};

pub const MTU: Bytes = Bytes::new(1500);
/// Bytes in front of a frame in its buffer.
pub const HEAD: usize = 16;

/// A host at 10.0.0.`last` and fd00::`last`, whose link's other end is called `name`.
pub fn host(name: &str, last: u8) -> Host {
    let addresses = [[10, 0, 0, last].into(), [0xfd00, 0, 0, 0, 0, 0, 0, last.into()].into()];
    Host::create(name, &addresses, MTU).unwrap()
}

/// A wire between gateways, from `m1` to `m2`.
pub fn wire_between() {
    let here = Namespace::current().unwrap();
    let end =
        |name| VethEnd { name, mac: [2, 0, 0, 0, 0, 1], mtu: Bytes::new(1500), namespace: here.as_fd() };
    let mut netlink = Netlink::open().unwrap();
    netlink.add_veth(&end("m1"), &end("m2")).unwrap();
    for name in ["m1", "m2"] {
        silence_ipv6(name).unwrap();
        let index = netlink.index_of(name).unwrap();
        netlink.set_no_arp(index).unwrap();
        netlink.set_up(index).unwrap();
    }
    for name in ["m1", "m2"] {
        netlink.wait_until_running(name, Span::from_secs(5)).unwrap();
    }
}

pub fn config(text: &str) -> GatewayConfig {
    GatewayConfig::load(text, Path::new("x.toml")).unwrap_or_else(|problems| panic!("{problems:?}\n{text}"))
}

pub fn open(text: &str) -> Gateway {
    open_config(config(text))
}

pub fn open_config(config: GatewayConfig) -> Gateway {
    let mut netlink = Netlink::open().unwrap();
    let ports = [&config.inside, &config.outside].map(|name| {
        let index = netlink.index_of(name).unwrap();
        let port = Port::open_with_ring(index, RingSize::of(Bytes::new(1_522))).unwrap();
        assert!(port.has_ring());
        port
    });
    Gateway::new(config, ports, MTU).unwrap()
}

pub fn snapshot(gateway: &mut Gateway) -> Snapshot {
    let config = Arc::new(gateway.config().clone());
    gateway.snapshot(config, &Histogram::default())
}

/// The metrics of a gateway.
pub fn metrics(gateway: &mut Gateway) -> String {
    snapshot(gateway).prometheus(&Reloads::default(), Span::ZERO)
}

/// A gateway that runs in a thread until it is stopped, with `between` called every 20 ms.
pub struct Running {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Gateway>,
}

pub fn start(mut gateway: Gateway, mut between: impl FnMut(&mut Gateway) + Send + 'static) -> Running {
    let stop = Arc::new(AtomicBool::new(false));
    let text = Arc::clone(&stop);
    let thread = std::thread::spawn(move || {
        while !text.load(Ordering::Relaxed) {
            let next = gateway.now() + Span::from_millis(20);
            gateway.run_until(next, None).unwrap();
            between(&mut gateway);
        }
        gateway
    });
    Running { stop, thread }
}

impl Running {
    pub fn stop(self) -> Gateway {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// Frames in and out of a host; for a thread inside of it.
pub struct Wire {
    port: Port,
    pool: Pool,
    waiting: Vec<Received>,
}

impl Wire {
    /// Opens the wire of a host's interface; the calling thread is inside.
    pub fn open() -> Self {
        let index = Netlink::open().unwrap().index_of(apportion_linux::host::INTERFACE).unwrap();
        Self { port: Port::open(index).unwrap(), pool: Pool::new(1_024, 1_522), waiting: Vec::new() }
    }

    pub fn send(&mut self, frame: &[u8]) {
        let buffer = self.pool.take(0).unwrap();
        self.pool.bytes_mut(buffer)[..HEAD].fill(0);
        self.pool.bytes_mut(buffer)[HEAD..HEAD + frame.len()].copy_from_slice(frame);
        let one = Received { buffer, start: HEAD as u8, length: frame.len() as u16 };
        self.port.send(&mut self.pool, &[one]).unwrap();
        self.pool.give_back(buffer);
    }

    /// The next frame; none if none comes within this time.
    pub fn next(&mut self, milliseconds: u32) -> Option<Vec<u8>> {
        for _ in 0..=milliseconds {
            if self.waiting.is_empty() {
                self.port.receive(0, &mut self.pool, &mut self.waiting).unwrap();
            }
            if !self.waiting.is_empty() {
                let Received { buffer, start, length } = self.waiting.remove(0);
                let start = usize::from(start);
                let frame = self.pool.bytes(buffer)[start..start + usize::from(length)].to_vec();
                self.pool.give_back(buffer);
                return Some(frame);
            }
            pause(1);
        }
        None
    }
}

/// Waits.
pub fn pause(milliseconds: u16) {
    nix::poll::poll(&mut [], nix::poll::PollTimeout::from(milliseconds)).unwrap();
}

/// A frame of UDP in IPv4 from 10.0.0.1 to 10.0.0.2, atomic, with `payload`.
pub fn udp(ports: (u16, u16), payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    etherparse::PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 1])
        .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
        .udp(ports.0, ports.1)
        .write(&mut frame, payload)
        .unwrap();
    frame
}
