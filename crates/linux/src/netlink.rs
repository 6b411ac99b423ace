//! Devices, addresses and routes of a network namespace, by rtnetlink.
//!
//! Source: netlink(7), rtnetlink(7), veth(4). There is one request at a time, each asks for an
//! acknowledgement, and each wait has a limit. Addresses are IPv4 or IPv6; the kernel checks prefixes, and
//! errors quote its message. A [`Netlink`] stays in the namespace of the thread that opened it. Cost: two
//! system calls a request.

pub mod htb;
mod monitor;
mod offload;
mod redirect;
mod socket;
pub mod statistics;

pub use monitor::DeviceMonitor;
pub use offload::Offloads;
use socket::{Found, Socket};

use std::fmt;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

use apportion_core::units::{Bytes, Span};
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::address::{
    AddressAttribute, AddressFlags, AddressHeader, AddressHeaderFlags, AddressMessage, AddressScope,
};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkHeader, LinkInfo, LinkLayerType, LinkMessage,
};
use netlink_packet_route::route::{
    RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use nix::errno::Errno;
use nix::poll::{PollTimeout, poll};

/// Why an rtnetlink request failed.
#[derive(Debug, thiserror::Error)]
pub enum NetlinkError {
    /// A netlink socket cannot be opened.
    #[error("cannot open a netlink socket: {0}; a sandbox that forbids AF_NETLINK must allow it")]
    Open(Errno),
    /// A request could not be sent, or its answer could not be read.
    #[error("cannot {doing}: the netlink socket failed with {errno}")]
    Socket {
        /// The request.
        doing: String,
        /// The error of the system call.
        errno: Errno,
    },
    /// The kernel answered with an error.
    #[error("cannot {doing}: {errno}{}{}", also(.message), also(remedy(*.errno)))]
    Refused {
        /// The request.
        doing: String,
        /// The error of the acknowledgement.
        errno: Errno,
        /// The kernel's message; empty if there is none.
        message: String,
    },
    /// The answer is malformed.
    #[error("cannot {doing}: the kernel's answer is not understood ({what})")]
    Malformed {
        /// The request.
        doing: String,
        /// Problem of the answer.
        what: &'static str,
    },
    /// A name is not valid for a device.
    #[error("`{0}` cannot name a network device: 1 to 15 bytes without `/`, `:` and white space")]
    Name(String),
    /// A device does not run yet.
    #[error("`{device}` is not running after {limit}; both ends of a veth must be set up")]
    NotRunning {
        device: String,
        /// Time that the call waited.
        limit: Span,
    },
    /// An address is not in use yet.
    #[error("{address} is not in use after {limit}; its device must be up")]
    NotInUse {
        address: IpAddr,
        /// Time that the call waited.
        limit: Span,
    },
    /// An offload cannot be turned off.
    #[error("{offload} of `{device}` stays on; the device's driver cannot turn it off")]
    StaysOn { offload: &'static str, device: String },
}

impl NetlinkError {
    /// Whether the kernel reports that there is no such device.
    #[must_use]
    pub const fn is_no_device(&self) -> bool {
        matches!(self, Self::Refused { errno: Errno::ENODEV, .. })
    }
}

/// A colon and `text`, unless it is empty.
fn also(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {text}") }
}

/// A remedy for an error of the kernel.
const fn remedy(errno: Errno) -> &'static str {
    match errno {
        Errno::EPERM | Errno::EACCES => {
            "this needs CAP_NET_ADMIN in the namespace: be root or enter a user namespace"
        }
        Errno::ENODEV => "name a device of this network namespace",
        Errno::EEXIST => "there is one already; take another name or remove the old one",
        Errno::EOPNOTSUPP | Errno::EAFNOSUPPORT => {
            "the kernel was built without this, or its module is not loaded (`modprobe veth`)"
        }
        Errno::ENETUNREACH | Errno::ENETDOWN => "set the device up, and add a route to the gateway first",
        _ => "",
    }
}

/// One end of a pair of virtual Ethernet devices.
#[derive(Clone, Copy, Debug)]
pub struct VethEnd<'a> {
    /// The name within `namespace`.
    pub name: &'a str,
    /// The hardware address. Both ends may have the same one.
    pub mac: [u8; 6],
    /// The largest IP packet, without the Ethernet header. IPv6 needs 1280 B or more.
    pub mtu: Bytes,
    /// The network namespace in which the end is created.
    pub namespace: BorrowedFd<'a>,
}

/// A routing table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// The table `main`.
    Main,
    /// The table `local`, which is searched first and holds the namespace's own addresses.
    Local,
}

/// A route to `destination`/`length`, out of `device`, through `gateway` if there is one.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// The first address of the destinations; bits after the prefix are zero.
    pub destination: IpAddr,
    /// The length of the prefix in bits; 0 is the default route.
    pub length: u8,
    /// The index of the device.
    pub device: u32,
    /// The next router; without one the destinations are on the link.
    pub gateway: Option<IpAddr>,
    /// The table of the route.
    pub table: Table,
}

/// The state of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// Index in the namespace.
    pub index: u32,
    /// Whether it is administratively up.
    pub is_up: bool,
    /// Whether packets pass: it is up, has a carrier (both ends of a veth are up), and its queue is active.
    pub is_running: bool,
    /// Whether ARP and neighbour discovery are off.
    pub no_arp: bool,
    /// Whether it was set to receive frames to the addresses of other hosts too.
    pub is_promiscuous: bool,
    /// The longest IP packet; 0 if the kernel does not report it.
    pub mtu: Bytes,
    /// Maximum of segments of a super-packet; 0 if the kernel does not report it.
    pub gso_max_segs: u32,
    /// Whether it is the loopback device.
    pub is_loopback: bool,
    /// Whether its frames have Ethernet headers, unlike those of tunnels.
    pub is_ethernet: bool,
    /// The index of the bridge, bond or other device that it is part of.
    pub master: Option<u32>,
}

/// An rtnetlink socket of one network namespace.
#[derive(Debug)]
pub struct Netlink {
    socket: Socket,
}

impl Netlink {
    /// Opens a socket in the network namespace of the calling thread.
    ///
    /// # Errors
    /// [`NetlinkError::Open`] without netlink.
    pub fn open() -> Result<Self, NetlinkError> {
        Ok(Self { socket: Socket::open().map_err(NetlinkError::Open)? })
    }

    /// Creates a pair of devices with one queue in each direction, each end in its namespace, both down.
    ///
    /// # Errors
    /// A bad name, or the kernel's error; there is no device then.
    pub fn add_veth(&mut self, end: &VethEnd<'_>, peer: &VethEnd<'_>) -> Result<(), NetlinkError> {
        let mut message = end_message(end)?;
        message.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(end_message(peer)?))),
        ]));
        self.create(
            RouteNetlinkMessage::NewLink(message),
            format_args!("make the veth pair `{}` and `{}`", end.name, peer.name),
        )
    }

    /// The device called `name`.
    ///
    /// # Errors
    /// A bad name, or [`Errno::ENODEV`] in [`NetlinkError::Refused`] if there is none.
    pub fn device(&mut self, name: &str) -> Result<Device, NetlinkError> {
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(checked(name)?));
        self.find(message, format_args!("find the device `{name}`"))
    }

    /// The device with this index, which stays the same when the device is renamed.
    ///
    /// # Errors
    /// As for [`Self::device`].
    pub fn device_at(&mut self, index: u32) -> Result<Device, NetlinkError> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        self.find(message, format_args!("find device {index}"))
    }

    fn find(&mut self, message: LinkMessage, doing: fmt::Arguments<'_>) -> Result<Device, NetlinkError> {
        let none = || NetlinkError::Malformed { doing: doing.to_string(), what: "it holds no device" };
        let request = RouteNetlinkMessage::GetLink(message);
        let Some(Found::Device(link)) = self.socket.request(request, 0, doing)? else {
            return Err(none());
        };
        let has = |flag| link.header.flags.contains(flag);
        Ok(Device {
            index: link.header.index,
            is_up: has(LinkFlags::Up),
            // The loopback device has no operational state.
            is_running: has(LinkFlags::Up) && (link.is_operational || has(LinkFlags::Loopback)),
            no_arp: has(LinkFlags::Noarp),
            is_promiscuous: has(LinkFlags::Promisc),
            mtu: Bytes::new(link.mtu.into()),
            gso_max_segs: link.gso_max_segs,
            is_loopback: has(LinkFlags::Loopback),
            is_ethernet: link.header.link_layer_type == LinkLayerType::Ether,
            master: (link.master != 0).then_some(link.master),
        })
    }

    /// The index of the device called `name`.
    ///
    /// # Errors
    /// As for [`Self::device`].
    pub fn index_of(&mut self, name: &str) -> Result<u32, NetlinkError> {
        Ok(self.device(name)?.index)
    }

    /// Sets a device up.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn set_up(&mut self, index: u32) -> Result<(), NetlinkError> {
        self.set_flag(index, LinkFlags::Up, true, format_args!("set device {index} up"))
    }

    /// Sets a device down.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn set_down(&mut self, index: u32) -> Result<(), NetlinkError> {
        self.set_flag(index, LinkFlags::Up, false, format_args!("set device {index} down"))
    }

    /// Sets whether a device receives frames to the addresses of other hosts too.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn set_promiscuous(&mut self, index: u32, on: bool) -> Result<(), NetlinkError> {
        let doing = format_args!("set device {index} promiscuous");
        self.set_flag(index, LinkFlags::Promisc, on, doing)
    }

    /// Deletes a device; deleting one end of a veth deletes both.
    ///
    /// # Errors
    /// The kernel's error, `EOPNOTSUPP` for a device of hardware.
    pub fn delete(&mut self, index: u32) -> Result<(), NetlinkError> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        let doing = format_args!("delete device {index}");
        self.socket.request(RouteNetlinkMessage::DelLink(message), 0, doing).map(drop)
    }

    /// Waits until the device called `name` runs. The end of a veth that was set up first runs a moment after
    /// the other one was set up, asynchronously; frames sent before are lost silently.
    ///
    /// # Errors
    /// [`NetlinkError::NotRunning`] after `limit`, or the kernel's error.
    pub fn wait_until_running(&mut self, name: &str, limit: Span) -> Result<(), NetlinkError> {
        let is_running = |netlink: &mut Self| Ok(netlink.device(name)?.is_running);
        if self.waited(limit, is_running)? {
            return Ok(());
        }
        Err(NetlinkError::NotRunning { device: name.to_owned(), limit })
    }

    /// Waits until `address` is in use as an address of this namespace. The kernel takes an IPv6 address into
    /// use asynchronously, once its device is up, even without duplicate address detection; packets that come
    /// before are lost silently. An IPv4 address is in use at once.
    ///
    /// # Errors
    /// [`NetlinkError::NotInUse`] after `limit`, or the kernel's error.
    pub fn wait_until_local(&mut self, address: IpAddr, limit: Span) -> Result<(), NetlinkError> {
        let is_local = |netlink: &mut Self| netlink.is_local(address);
        if self.waited(limit, is_local)? { Ok(()) } else { Err(NetlinkError::NotInUse { address, limit }) }
    }

    fn is_local(&mut self, address: IpAddr) -> Result<bool, NetlinkError> {
        let mut message = RouteMessage::default();
        message.header.address_family = family(address);
        message.header.destination_prefix_length = if address.is_ipv4() { 32 } else { 128 };
        message.attributes.push(RouteAttribute::Destination(address.into()));
        let request = RouteNetlinkMessage::GetRoute(message);
        match self.socket.request(request, 0, format_args!("find the route to {address}")) {
            Ok(found) => Ok(matches!(found, Some(Found::Route(route)) if route.kind == RouteType::Local)),
            Err(NetlinkError::Refused { errno: Errno::ENETUNREACH | Errno::EHOSTUNREACH, .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Polls each millisecond until `is_done` or `limit` has passed; at least once.
    fn waited(
        &mut self,
        limit: Span,
        mut is_done: impl FnMut(&mut Self) -> Result<bool, NetlinkError>,
    ) -> Result<bool, NetlinkError> {
        for _ in 0..=limit.as_nanos() / Span::from_millis(1).as_nanos() {
            if is_done(self)? {
                return Ok(true);
            }
            // A wait that is interrupted is only shorter.
            let _ = poll(&mut [], PollTimeout::from(1u8));
        }
        Ok(false)
    }

    /// Turns ARP and neighbour discovery off on a device: every frame goes to the device's own hardware
    /// address, so the other end needs the same one. Call it before the device is up: the kernel then joins
    /// no IPv6 groups for neighbour discovery, and sends no reports about them.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn set_no_arp(&mut self, index: u32) -> Result<(), NetlinkError> {
        self.set_flag(index, LinkFlags::Noarp, true, format_args!("do without ARP on device {index}"))
    }

    /// Sets the MTU of a device, the longest IP packet.
    ///
    /// # Errors
    /// The kernel's error: a veth takes 68 to 65535 B.
    pub fn set_mtu(&mut self, index: u32, mtu: Bytes) -> Result<(), NetlinkError> {
        self.set(
            index,
            LinkAttribute::Mtu(mtu_of(mtu)),
            format_args!("set the MTU of device {index} to {mtu}"),
        )
    }

    /// Adds an address to a device, without duplicate address detection of IPv6. [`Self::wait_until_local`]
    /// waits until it is in use.
    ///
    /// # Errors
    /// The kernel's error, `EEXIST` if the device has the address.
    pub fn add_address(&mut self, index: u32, address: IpAddr, length: u8) -> Result<(), NetlinkError> {
        let mut message = AddressMessage::default();
        message.header = AddressHeader {
            family: family(address),
            prefix_len: length,
            flags: AddressHeaderFlags::Nodad,
            scope: AddressScope::Universe,
            index,
        };
        message.attributes.extend([
            AddressAttribute::Local(address),
            AddressAttribute::Address(address),
            AddressAttribute::Flags(AddressFlags::Nodad),
        ]);
        self.create(
            RouteNetlinkMessage::NewAddress(message),
            format_args!("give device {index} the address {address}/{length}"),
        )
    }

    /// Adds a route.
    ///
    /// # Errors
    /// The kernel's error: the device is down, the gateway is not on a link, or bits after the prefix are
    /// set.
    pub fn add_route(&mut self, route: &Route) -> Result<(), NetlinkError> {
        let mut message = route_message(route.destination, route.length, route.device);
        message.header.scope = if route.gateway.is_some() { RouteScope::Universe } else { RouteScope::Link };
        message.header.table = match route.table {
            Table::Main => RouteHeader::RT_TABLE_MAIN,
            Table::Local => libc::RT_TABLE_LOCAL,
        };
        message.header.kind = RouteType::Unicast;
        message.attributes.extend(route.gateway.map(|gateway| RouteAttribute::Gateway(gateway.into())));
        self.create(
            RouteNetlinkMessage::NewRoute(message),
            format_args!(
                "add the route to {}/{} by device {}",
                route.destination, route.length, route.device
            ),
        )
    }

    /// Makes every address of `destination`/`length` an address of this namespace ("AnyIP"); `loopback` is
    /// the index of `lo`. Length 0 covers all addresses, so routes to other hosts must be in [`Table::Local`]
    /// as well: the longest prefix wins there, and [`Table::Main`] is no longer searched.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn add_local_route(
        &mut self,
        destination: IpAddr,
        length: u8,
        loopback: u32,
    ) -> Result<(), NetlinkError> {
        let mut message = route_message(destination, length, loopback);
        message.header.scope = RouteScope::Host;
        message.header.table = libc::RT_TABLE_LOCAL;
        message.header.kind = RouteType::Local;
        self.create(
            RouteNetlinkMessage::NewRoute(message),
            format_args!("take {destination}/{length} for addresses of this namespace"),
        )
    }

    fn set_flag(
        &mut self,
        index: u32,
        flag: LinkFlags,
        on: bool,
        doing: fmt::Arguments<'_>,
    ) -> Result<(), NetlinkError> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.header.flags = if on { flag } else { LinkFlags::empty() };
        message.header.change_mask = flag;
        self.socket.request(RouteNetlinkMessage::SetLink(message), 0, doing).map(drop)
    }

    fn set(
        &mut self,
        index: u32,
        attribute: LinkAttribute,
        doing: fmt::Arguments<'_>,
    ) -> Result<(), NetlinkError> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.attributes.push(attribute);
        self.socket.request(RouteNetlinkMessage::SetLink(message), 0, doing).map(drop)
    }

    fn create(
        &mut self,
        message: RouteNetlinkMessage,
        doing: fmt::Arguments<'_>,
    ) -> Result<(), NetlinkError> {
        self.socket.request(message, NLM_F_CREATE | NLM_F_EXCL, doing).map(drop)
    }
}

fn end_message(end: &VethEnd<'_>) -> Result<LinkMessage, NetlinkError> {
    let mut message = LinkMessage::default();
    message.header = LinkHeader::default();
    message.attributes.extend([
        LinkAttribute::IfName(checked(end.name)?),
        LinkAttribute::Address(end.mac.to_vec()),
        LinkAttribute::Mtu(mtu_of(end.mtu)),
        LinkAttribute::NumTxQueues(1),
        LinkAttribute::NumRxQueues(1),
        LinkAttribute::NetNsFd(end.namespace.as_raw_fd()),
    ]);
    Ok(message)
}

fn route_message(destination: IpAddr, length: u8, device: u32) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header.address_family = family(destination);
    message.header.destination_prefix_length = length;
    message.header.protocol = RouteProtocol::Static;
    if length > 0 {
        message.attributes.push(RouteAttribute::Destination(destination.into()));
    }
    message.attributes.push(RouteAttribute::Oif(device));
    message
}

const fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}

/// The MTU for the kernel. A value that is too large saturates, and the kernel refuses it.
fn mtu_of(mtu: Bytes) -> u32 {
    u32::try_from(mtu.get()).unwrap_or(u32::MAX)
}

/// Checks that `name` is a valid device name: netdevice(7) has room for 15 bytes and a zero.
fn checked(name: &str) -> Result<String, NetlinkError> {
    let bad = |byte: u8| byte == b'/' || byte == b':' || byte == 0 || byte.is_ascii_whitespace();
    if name.is_empty() || name.len() >= libc::IFNAMSIZ || matches!(name, "." | "..") || name.bytes().any(bad)
    {
        return Err(NetlinkError::Name(name.to_owned()));
    }
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_has_a_name_of_1_to_15_bytes() {
        for good in ["e", "lo", "veth-0123456789"] {
            assert_eq!(checked(good).unwrap(), good);
        }
        for bad in ["", ".", "..", "veth-01234567890", "a b", "a/b", "a:b", "a\0b", "a\n"] {
            assert!(matches!(checked(bad), Err(NetlinkError::Name(name)) if name == bad));
        }
    }

    #[test]
    fn a_refusal_names_the_place_the_reason_and_the_fix() {
        let refused = |errno, message: &str| {
            NetlinkError::Refused { doing: "set device 7 up".into(), errno, message: message.into() }
                .to_string()
        };
        assert_eq!(
            refused(Errno::EPERM, ""),
            "cannot set device 7 up: EPERM: Operation not permitted: this needs CAP_NET_ADMIN in the \
             namespace: be root or enter a user namespace"
        );
        assert_eq!(
            refused(Errno::EINVAL, "Invalid MTU"),
            "cannot set device 7 up: EINVAL: Invalid argument: Invalid MTU"
        );
    }

    #[test]
    fn a_device_that_is_not_there_is_named() {
        let error = Netlink::open().unwrap().device("no-such-device").unwrap_err();
        assert!(matches!(error, NetlinkError::Refused { errno: Errno::ENODEV, .. }), "{error}");
        assert!(error.to_string().contains("find the device `no-such-device`"), "{error}");
    }

    #[test]
    fn loopback_is_found() {
        assert_eq!(Netlink::open().unwrap().index_of("lo").unwrap(), 1);
    }
}
