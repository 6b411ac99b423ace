//! A host of our own: a network namespace with one interface, whose other end is a port for the engine.
//!
//! Hosts do without ARP and neighbour discovery: interfaces that do not use it all have one hardware address,
//! so a frame fits whichever host it is handed to, and nothing has to be learned or rewritten. The end for the
//! engine has no address and its namespace forwards nothing.
//!
//! Segmentation offload is off at both ends: with it the kernel sends super-packets of 64 kB, which makes every
//! queue and share wrong. Checksums stay unfinished: they are passed on as they are.

use std::net::IpAddr;
use std::os::fd::AsFd as _;

use apportion_core::units::{Bytes, Span};

use crate::namespace::{Namespace, NamespaceError, SysctlError, silence_ipv6};
use crate::netlink::{Netlink, NetlinkError, Route, Table, VethEnd};

/// What hosts call their interface.
pub const INTERFACE: &str = "eth0";
/// Of every interface; a locally administered address (IEEE 802 section 8.4).
const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// The kernel takes up devices and addresses in its own time, some milliseconds. Chosen: three times the 30 s that a machine took which
/// made and removed many namespaces under load.
const PATIENCE: Span = Span::from_secs(90);

#[derive(Debug)]
pub struct Host {
    /// Where its programs run.
    pub namespace: Namespace,
    /// The index of the other end of its interface, in the namespace in which the host was made.
    pub port: u32,
}

/// Why there is no such host.
#[derive(Debug, thiserror::Error)]
#[error("cannot make the host `{host}`: {cause}")]
pub struct HostError {
    host: String,
    cause: Cause,
}

#[derive(Debug, thiserror::Error)]
enum Cause {
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    #[error(transparent)]
    Sysctl(#[from] SysctlError),
}

impl Host {
    /// A host with these addresses, whose interface comes out here as `name` and is its way to everywhere.
    /// `mtu` is of its IP packets.
    ///
    /// # Errors
    /// Without the rights over network namespaces, or if there is an interface `name`.
    pub fn create(name: &str, addresses: &[IpAddr], mtu: Bytes) -> Result<Self, HostError> {
        Self::make(name, addresses, mtu).map_err(|cause| HostError { host: name.to_owned(), cause })
    }

    fn make(name: &str, addresses: &[IpAddr], mtu: Bytes) -> Result<Self, Cause> {
        let (here, namespace) = (Namespace::current()?, Namespace::create()?);
        let mut outside = Netlink::open()?;
        let end = |name, namespace| VethEnd { name, mac: MAC, mtu, namespace };
        outside.add_veth(&end(INTERFACE, namespace.as_fd()), &end(name, here.as_fd()))?;
        namespace.run(|| inside(addresses))??;
        silence_ipv6(name)?;
        outside.turn_off_segmentation(name)?;
        let port = outside.index_of(name)?;
        outside.set_no_arp(port)?;
        outside.set_up(port)?;
        // Before both ends run, frames are lost silently.
        outside.wait_until_running(name, PATIENCE)?;
        namespace.run(|| await_inside(addresses))??;
        Ok(Self { namespace, port })
    }
}

/// Waits until the host can send, from inside.
fn await_inside(addresses: &[IpAddr]) -> Result<(), Cause> {
    let mut inside = Netlink::open()?;
    inside.wait_until_running(INTERFACE, PATIENCE)?;
    addresses.iter().try_for_each(|address| Ok(inside.wait_until_local(*address, PATIENCE)?))
}

/// Sets up what the host has, from inside.
fn inside(addresses: &[IpAddr]) -> Result<(), Cause> {
    let mut inside = Netlink::open()?;
    let loopback = inside.index_of("lo")?;
    inside.set_up(loopback)?;
    silence_ipv6(INTERFACE)?;
    inside.turn_off_segmentation(INTERFACE)?;
    let device = inside.index_of(INTERFACE)?;
    inside.set_no_arp(device)?;
    inside.set_up(device)?;
    for &address in addresses {
        let whole = if address.is_ipv4() { 32 } else { 128 };
        inside.add_address(device, address, whole)?;
        let destination = if address.is_ipv4() { IpAddr::from([0; 4]) } else { IpAddr::from([0; 16]) };
        inside.add_route(&Route { destination, length: 0, device, gateway: None, table: Table::Main })?;
    }
    Ok(())
}
