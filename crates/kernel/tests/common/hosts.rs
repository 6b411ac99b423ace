//! Two hosts with a gateway between them, in the kernel or in user space.
#![allow(dead_code, reason = "each test uses a part")]

use std::net::IpAddr;
use std::os::fd::AsFd as _;
use std::path::Path;

use apportion_core::units::{Bytes, Span};
use apportion_kernel::gateway::{DirectionPlan, GatewayError, KernelGateway, plan};
use apportion_linux::host::{Host, INTERFACE};
use apportion_linux::namespace::Namespace;
use apportion_linux::netlink::{Netlink, Route, Table, VethEnd};
use apportion_linux::port::Port;
use apportion_live::gateway::Gateway;
use apportion_scenario::gateway::GatewayConfig;
use apportion_testing::skip;

pub const MTU: Bytes = Bytes::new(1_500);

pub fn config(text: &str, plans: &'static str) -> GatewayConfig {
    let catalog = apportion_core::system::Catalog::default();
    let read = |_: &Path| Ok(plans.as_bytes().to_vec());
    GatewayConfig::load_with(&catalog, text, Path::new("x.toml"), &read)
        .unwrap_or_else(|problems| panic!("{problems:?}\n{text}"))
}

pub fn start(config: &GatewayConfig) -> Result<KernelGateway, GatewayError> {
    start_by(config, plan(config).unwrap())
}

pub fn start_by(config: &GatewayConfig, plans: [DirectionPlan; 2]) -> Result<KernelGateway, GatewayError> {
    let folder = std::env::temp_dir();
    let state = folder.join(format!("apportion-{}.offloads.json", std::process::id()));
    KernelGateway::start(config.clone(), plans, &folder, state, false)
}

/// Creates a host with the addresses 10.0.0.`last`.
pub fn host(name: &str, last: &[u8]) -> Host {
    let address = |last: u8| IpAddr::from([10, 0, 0, last]);
    let (first, others) = last.split_first().unwrap();
    let host = Host::create(name, &[address(*first)], MTU).unwrap();
    let add = || {
        let mut netlink = Netlink::open().unwrap();
        let device = netlink.index_of(INTERFACE).unwrap();
        others.iter().for_each(|last| netlink.add_address(device, address(*last), 32).unwrap());
    };
    host.namespace.run(add).unwrap();
    host
}

/// The hosts of a gateway, in a namespace of their own: one inside, one outside.
pub struct Hosts {
    pub middle: Namespace,
    pub near: Host,
    pub far: Host,
}

/// Creates the hosts; the inside host has the addresses 10.0.0.`last`. None, with a message, if namespaces
/// cannot be created here.
pub fn hosts(last: &[u8]) -> Option<Hosts> {
    let middle = Namespace::create().map_err(skip::because).ok()?;
    let make = || (host("near", last), host("far", &[2]));
    let (near, far) = middle.run(make).unwrap();
    Some(Hosts { middle, near, far })
}

impl Hosts {
    /// Runs `work` while a gateway in the kernel is up; none, with a message, if the kernel has no HTB.
    pub fn by_kernel<T: Send>(&self, config: &GatewayConfig, work: impl FnOnce() -> T + Send) -> Option<T> {
        let run = || match start(config) {
            Err(error) if error.to_string().contains("ENOENT") => {
                skip::because(error);
                None
            }
            gateway => gateway.map(|_gateway| Some(work())).unwrap(),
        };
        self.middle.run(run).unwrap()
    }

    /// Runs `work` while a gateway in user space is up.
    pub fn by_user_space<T: Send>(&self, config: &GatewayConfig, work: impl FnOnce() -> T + Send) -> T {
        let run = || {
            let mut netlink = Netlink::open().unwrap();
            let ports = ["near", "far"].map(|name| Port::open(netlink.index_of(name).unwrap()).unwrap());
            let mut gateway = Gateway::new(config.clone(), ports, MTU).unwrap();
            std::thread::scope(|scope| {
                let works = scope.spawn(work);
                while !works.is_finished() {
                    let next = gateway.now() + Span::from_millis(20);
                    gateway.run_until(next, None).unwrap();
                }
                works.join().unwrap()
            })
        };
        self.middle.run(run).unwrap()
    }
}

/// Creates a host behind the inside host, which routes its packets. TCP of the sending machine learns by the
/// owner of its packets how many wait in a local queue, and limits itself (TCP small queues); a router
/// removes the owner, as a wire does.
pub fn behind(hosts: &Hosts, addresses: &[u8]) -> Namespace {
    let source = Namespace::create().unwrap();
    let end = |name, namespace| VethEnd { name, mac: [2, 0, 0, 0, 0, 1], mtu: MTU, namespace };
    Netlink::open()
        .unwrap()
        .add_veth(&end("up", source.as_fd()), &end("inner", hosts.near.namespace.as_fd()))
        .unwrap();
    let set_up = |name: &str, own: &[[u8; 4]], to: &[([u8; 4], u8)]| {
        let mut netlink = Netlink::open().unwrap();
        let device = netlink.index_of(name).unwrap();
        netlink.set_no_arp(device).unwrap();
        netlink.set_up(device).unwrap();
        own.iter().for_each(|own| netlink.add_address(device, IpAddr::from(*own), 32).unwrap());
        for (to, length) in to {
            let (destination, gateway) = (IpAddr::from(*to), None);
            let route = Route { destination, length: *length, device, gateway, table: Table::Main };
            netlink.add_route(&route).unwrap();
        }
    };
    let own: Vec<_> = addresses.iter().map(|last| [10, 0, 0, *last]).collect();
    source.run(|| set_up("up", &own, &[([0; 4], 0)])).unwrap();
    let route = || {
        let to: Vec<_> = own.iter().map(|own| (*own, 32)).collect();
        set_up("inner", &[[10, 0, 1, 1]], &to);
        for switch in ["ip_forward".to_owned(), format!("conf/{INTERFACE}/proxy_arp")] {
            std::fs::write(format!("/proc/sys/net/ipv4/{switch}"), "1").unwrap();
        }
        Netlink::open().unwrap().wait_until_running("inner", Span::from_secs(5)).unwrap();
    };
    hosts.near.namespace.run(route).unwrap();
    source
}
