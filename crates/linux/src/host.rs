//! An emulated host: a network namespace with one interface, whose other end is a port for the engine.
//!
//! Hosts need no ARP and neighbour discovery: all interfaces have the same hardware address, so a frame is
//! valid at every host, and no address has to be learned or rewritten. The end for the engine has no address,
//! and its namespace forwards nothing.
//!
//! Segmentation offload is off at both ends: with it the kernel would send super-packets of 64 kB, which make
//! every queue and share wrong. Checksums stay unfinished and are passed on as they are.

use std::net::IpAddr;
use std::os::fd::AsFd as _;

use apportion_core::units::{Bytes, Span};

use crate::namespace::{Namespace, NamespaceError, SysctlError, silence_ipv6};
use crate::netlink::{Netlink, NetlinkError, Route, Table, VethEnd};

/// The name of a host's interface.
pub const INTERFACE: &str = "eth0";
/// The hardware address of every interface; locally administered (IEEE 802 section 8.4).
const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// Maximum wait for devices and addresses, which the kernel brings up asynchronously, within some
/// milliseconds. Chosen: three times the 30 s of a machine that created and removed many namespaces under
/// load.
const PATIENCE: Span = Span::from_secs(90);

#[derive(Debug)]
pub struct Host {
    /// The namespace of its programs.
    pub namespace: Namespace,
    /// The index of the other end of its interface, in the namespace in which the host was created.
    pub port: u32,
}

/// Why a host cannot be created.
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
    /// Creates a host with these addresses. Its interface has its other end here, called `name`, and is the
    /// default route. `mtu` is the longest IP packet.
    ///
    /// # Errors
    /// Without the rights over network namespaces, or if an interface is called `name`.
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
        // Frames are lost silently until both ends run.
        outside.wait_until_running(name, PATIENCE)?;
        namespace.run(|| await_inside(addresses))??;
        Ok(Self { namespace, port })
    }
}

/// Waits, inside, until the host can send.
fn await_inside(addresses: &[IpAddr]) -> Result<(), Cause> {
    let mut inside = Netlink::open()?;
    inside.wait_until_running(INTERFACE, PATIENCE)?;
    addresses.iter().try_for_each(|address| Ok(inside.wait_until_local(*address, PATIENCE)?))
}

/// Sets the host up, inside.
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
