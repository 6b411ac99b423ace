//! Flows by addresses and ports: keys of flow tables, and names of flows in messages between routers.
//!
//! The five-tuple of RFC 6437 section 1 and many others. Cost: O(1), no allocation.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use apportion_runtime::sffc::message::FlowKey;
use apportion_scenario::gateway::classifier::Headers;

use super::protocol::{TCP, UDP};
use super::word;

/// The identity of a flow: protocol, addresses, and ports if the packet shows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowTuple {
    protocol: u8,
    addresses: Addresses,
    ports: Option<(u16, u16)>,
}

/// Source and destination, of one IP version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Addresses {
    Ipv4(Ipv4Addr, Ipv4Addr),
    Ipv6(Ipv6Addr, Ipv6Addr),
}

impl FlowTuple {
    /// The flow of packets with these headers; none if the addresses are of different IP versions, which no
    /// frame shows.
    #[must_use]
    pub fn new(headers: &Headers) -> Option<Self> {
        let addresses = match (headers.source, headers.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => Addresses::Ipv4(source, destination),
            (IpAddr::V6(source), IpAddr::V6(destination)) => Addresses::Ipv6(source, destination),
            _ => return None,
        };
        Some(Self { protocol: headers.protocol, addresses, ports: headers.ports })
    }

    /// The protocol number.
    #[must_use]
    pub const fn protocol(&self) -> u8 {
        self.protocol
    }

    /// The source address.
    #[must_use]
    pub const fn source(&self) -> IpAddr {
        match self.addresses {
            Addresses::Ipv4(source, _) => IpAddr::V4(source),
            Addresses::Ipv6(source, _) => IpAddr::V6(source),
        }
    }

    /// The destination address.
    #[must_use]
    pub const fn destination(&self) -> IpAddr {
        match self.addresses {
            Addresses::Ipv4(_, destination) => IpAddr::V4(destination),
            Addresses::Ipv6(_, destination) => IpAddr::V6(destination),
        }
    }

    /// Source and destination port; none if the packets show none.
    #[must_use]
    pub const fn ports(&self) -> Option<(u16, u16)> {
        self.ports
    }

    /// The flow in the opposite direction.
    #[must_use]
    pub fn reversed(&self) -> Self {
        let addresses = match self.addresses {
            Addresses::Ipv4(source, destination) => Addresses::Ipv4(destination, source),
            Addresses::Ipv6(source, destination) => Addresses::Ipv6(destination, source),
        };
        let ports = self.ports.map(|(source, destination)| (destination, source));
        Self { addresses, ports, ..*self }
    }

    /// The flow's name in messages between routers: protocol (1 byte), source and destination (4 bytes each
    /// for IPv4, 16 each for IPv6), then source and destination port (2 bytes each, big-endian), if the flow
    /// has ports. The length, 9 or 13 bytes for IPv4 and 33 or 37 for IPv6, tells them apart. No name exceeds
    /// the maximum of a key.
    #[must_use]
    pub fn key(&self) -> Option<FlowKey> {
        let mut key = [0; 37];
        key[0] = self.protocol;
        let mut end = 1;
        let mut put = |bytes: &[u8]| {
            key[end..end + bytes.len()].copy_from_slice(bytes);
            end += bytes.len();
        };
        match self.addresses {
            Addresses::Ipv4(source, destination) => {
                put(&source.octets());
                put(&destination.octets());
            }
            Addresses::Ipv6(source, destination) => {
                put(&source.octets());
                put(&destination.octets());
            }
        }
        if let Some((source, destination)) = self.ports {
            put(&source.to_be_bytes());
            put(&destination.to_be_bytes());
        }
        FlowKey::from_bytes(&key[..end])
    }

    /// The flow with this name; none if no flow has it.
    #[must_use]
    pub fn from_key(key: &FlowKey) -> Option<Self> {
        let (&protocol, rest) = key.as_bytes().split_first()?;
        let (addresses, ports) = match rest.len() {
            8 | 12 => {
                let (source, rest) = rest.split_first_chunk::<4>()?;
                let (destination, rest) = rest.split_first_chunk::<4>()?;
                (Addresses::Ipv4((*source).into(), (*destination).into()), rest)
            }
            32 | 36 => {
                let (source, rest) = rest.split_first_chunk::<16>()?;
                let (destination, rest) = rest.split_first_chunk::<16>()?;
                (Addresses::Ipv6((*source).into(), (*destination).into()), rest)
            }
            _ => return None,
        };
        Some(Self { protocol, addresses, ports: word(ports, 0).zip(word(ports, 2)) })
    }
}

/// Formats as `tcp 100.64.0.2:40000 > 100.64.0.1:80`.
impl fmt::Display for FlowTuple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // ICMP of both IP versions has one name.
        match self.protocol {
            TCP => f.write_str("tcp ")?,
            UDP => f.write_str("udp ")?,
            1 | 58 => f.write_str("icmp ")?,
            other => write!(f, "protocol {other} ")?,
        }
        match self.ports {
            Some((from, to)) => {
                let [source, destination] =
                    [(self.source(), from), (self.destination(), to)].map(SocketAddr::from);
                write!(f, "{source} > {destination}")
            }
            None => write!(f, "{} > {}", self.source(), self.destination()),
        }
    }
}
