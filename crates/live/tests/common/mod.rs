//! Frames and checksums by etherparse.
#![allow(dead_code, reason = "each program of tests uses some of it")]

use etherparse::{
    IpHeaders, Ipv4Header, Ipv6FlowLabel, Ipv6Header, NetSlice, PacketBuilder, SlicedPacket, TcpHeader,
    TransportSlice, VlanId, ip_number,
};

pub const SOURCE_4: [u8; 4] = [192, 0, 2, 77];
pub const DESTINATION_4: [u8; 4] = [198, 51, 100, 9];
pub const SOURCE_6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
pub const DESTINATION_6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];
/// Ports from a server to a home.
pub const PORTS: (u16, u16) = (5_004, 40_000);

/// An IPv4 header whose packet is atomic.
pub fn ipv4() -> Ipv4Header {
    let mut header = Ipv4Header::new(0, 64, ip_number::UDP, SOURCE_4, DESTINATION_4).unwrap();
    header.identification = 0xbeef;
    header.dont_fragment = true;
    header
}

pub fn ipv6() -> Ipv6Header {
    Ipv6Header {
        flow_label: Ipv6FlowLabel::try_new(0xa_bcde).unwrap(),
        hop_limit: 64,
        source: SOURCE_6,
        destination: DESTINATION_6,
        ..Ipv6Header::default()
    }
}

/// The header of an IP packet.
pub enum Ip {
    V4(Ipv4Header),
    V6(Ipv6Header),
}

impl From<Ipv4Header> for Ip {
    fn from(header: Ipv4Header) -> Self {
        Self::V4(header)
    }
}

impl From<Ipv6Header> for Ip {
    fn from(header: Ipv6Header) -> Self {
        Self::V6(header)
    }
}

/// The payload of an IP packet.
#[derive(Clone)]
pub enum Carried {
    Tcp(Box<TcpHeader>),
    Udp,
}

impl Carried {
    /// A segment with these flags.
    pub fn tcp(change: impl Fn(&mut TcpHeader)) -> Self {
        let mut header = TcpHeader::new(PORTS.0, PORTS.1, 1_000, 65_535);
        change(&mut header);
        Self::Tcp(Box::new(header))
    }
}

/// A frame with `tags` VLAN tags, at most two.
pub fn frame(tags: u8, ip: impl Into<Ip>, carried: &Carried, payload: &[u8]) -> Vec<u8> {
    let vlan = |id| VlanId::try_new(id).unwrap();
    let ethernet = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
    let ip = match ip.into() {
        Ip::V4(header) => IpHeaders::Ipv4(header, Default::default()),
        Ip::V6(header) => IpHeaders::Ipv6(header, Default::default()),
    };
    let ip = match tags {
        0 => ethernet.ip(ip),
        1 => ethernet.single_vlan(vlan(5)).ip(ip),
        _ => ethernet.double_vlan(vlan(9), vlan(5)).ip(ip),
    };
    let mut bytes = Vec::new();
    match carried {
        Carried::Tcp(header) => ip.tcp_header((**header).clone()).write_to_vec(&mut bytes, payload),
        Carried::Udp => ip.udp(PORTS.0, PORTS.1).write_to_vec(&mut bytes, payload),
    }
    .unwrap();
    bytes
}

/// Panics unless the checksums of the IPv4 header and of TCP or UDP are right.
pub fn assert_checksums(bytes: &[u8]) {
    let packet = SlicedPacket::from_ethernet(bytes).unwrap();
    let (written, right) = match (packet.net.unwrap(), packet.transport.unwrap()) {
        (NetSlice::Ipv4(ip), transport) => {
            let header = ip.header().to_header();
            assert_eq!(header.header_checksum, header.calc_header_checksum());
            match transport {
                TransportSlice::Tcp(tcp) => {
                    (tcp.checksum(), tcp.calc_checksum_ipv4(header.source, header.destination).unwrap())
                }
                TransportSlice::Udp(udp) => {
                    let right = udp.to_header().calc_checksum_ipv4(&header, udp.payload());
                    (udp.checksum(), right.unwrap())
                }
                other => panic!("{other:?}"),
            }
        }
        (NetSlice::Ipv6(ip), transport) => {
            let header = ip.header().to_header();
            match transport {
                TransportSlice::Tcp(tcp) => {
                    (tcp.checksum(), tcp.calc_checksum_ipv6(header.source, header.destination).unwrap())
                }
                TransportSlice::Udp(udp) => {
                    let right = udp.to_header().calc_checksum_ipv6(&header, udp.payload());
                    (udp.checksum(), right.unwrap())
                }
                other => panic!("{other:?}"),
            }
        }
        (other, _) => panic!("{other:?}"),
    };
    assert_eq!(written, right);
}
