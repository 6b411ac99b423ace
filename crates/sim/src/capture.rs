//! Writes the packets of a link to a capture file that Wireshark, tcpdump and tcptrace read.
//!
//! Classic pcap with nanosecond timestamps (the run starts at the epoch) and link type RAW: each packet
//! begins with its IPv4 header. Headers are real, with checksums that are correct for a payload of zeros; the
//! payload is not captured, as with a snapshot length that ends behind the headers. Packets of stacks from
//! outside have their payload.
//!
//! - Addresses and ports follow from the connection's number alone and differ for every connection, also
//!   within one flow: connection c goes from 10.0.0.0/9 to 10.128.0.0/9, host 1 + c mod 2^23, from port 49152
//!   + ⌊c / 2^23⌋ to port 50000. Packets in the other direction have them swapped.
//! - Lengths in headers are those of the real headers with the payload, so that the sequence numbers of a TCP
//!   flow are consistent. The original length of a packet is its size in the simulation, or the length in its
//!   headers if that is more: if a profile gives headers no size, or does not count options, a packet is
//!   longer in the capture than on the link.
//! - IPv4 and its lengths end at 65,535 bytes. Larger packets are written with this length.
//!
//! Cost: about 100 bytes of file a packet.

use std::fmt;
use std::io::{self, BufWriter, Write};
use std::time::Duration;

use apportion_core::packet::Protocol;
use apportion_core::units::{Bytes, Time};
use apportion_core::{Ecn, Packet as _};
use etherparse::err::ValueTooBigError;
use etherparse::{IpEcn, IpNumber, Ipv4Header, TcpHeader, TcpOptionElement, TcpOptionWriteError, UdpHeader};
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::{DataLink, Endianness, PcapError, TsResolution};

use crate::packet::{Body, Direction, Header, Packet, REQUEST_PAYLOAD};
use crate::tcp::Flags;

/// The largest total length of an IPv4 packet (RFC 791 section 3.1).
const MAX_PACKET: usize = u16::MAX as usize;
/// The first dynamic port (RFC 6335 section 6).
const SOURCE_PORT: u16 = 49_152;
/// The destination port. Chosen: a dynamic port too, so that no dissector interprets the payload, and above
/// every source port.
const SINK_PORT: u16 = 50_000;
/// The recommended default TTL (RFC 1700).
const TIME_TO_LIVE: u8 = 64;
/// The content of payloads, for checksums.
static ZEROS: [u8; MAX_PACKET] = [0; MAX_PACKET];

/// One packet on a link.
#[derive(Clone, Copy, Debug)]
pub struct Captured<'a> {
    /// The time of the capture; ascending within a file.
    pub at: Time,
    /// The number of the connection, which determines addresses and ports.
    pub connection: u32,
    /// The direction of the packet.
    pub direction: Direction,
    /// The ECN field in the IP header.
    pub ecn: Ecn,
    /// The size on the link, with headers as the profile counts them.
    pub size: Bytes,
    /// The header behind the IP header.
    pub transport: Transport<'a>,
}

/// The transport header of a packet.
#[derive(Clone, Copy, Debug)]
pub enum Transport<'a> {
    /// UDP. The payload is the size minus 28 bytes of headers.
    Udp,
    /// UDP with this payload, which is captured.
    Payload(&'a [u8]),
    /// A packet of IPv4 with its header.
    Whole(&'a [u8]),
    /// A message between routers, under a protocol number for experiments (RFC 3692 section 2.1).
    Message,
    /// TCP with these fields.
    Tcp(TcpFields<'a>),
}

/// The fields of a TCP header that vary.
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpFields<'a> {
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgment number.
    pub ack: u32,
    /// The advertised window as in the header, without scaling.
    pub window: u16,
    /// The number of payload bytes.
    pub payload: u16,
    /// The control bits as in the header, AE to FIN (RFC 9293 section 3.1; AE: RFC 9768 section 3.1).
    pub flags: u16,
    /// The maximum segment size option.
    pub mss: Option<u16>,
    /// The window scale option.
    pub wscale: Option<u8>,
    /// The SACK-permitted option.
    pub sack_permitted: bool,
    /// The SACK option: each block with its end excluded. Without blocks there is no option; if there are
    /// more than 4, which fill the header (RFC 2018 section 3), the first 4 are written.
    pub sack: &'a [(u32, u32)],
}

/// The reason why a capture could not be written.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The file cannot be written, or the time does not fit it.
    #[error("cannot write a packet to the capture file: {0}")]
    Write(#[from] PcapError),
    /// The end of the file cannot be written.
    #[error("cannot finish the capture file: {0}")]
    Finish(#[from] io::Error),
    /// The options of a segment exceed 40 bytes.
    #[error("a captured segment has too many options: {0}")]
    Options(#[from] TcpOptionWriteError),
    /// A packet exceeds the maximum of IPv4.
    #[error("a captured packet is too long: {0}")]
    Length(#[from] ValueTooBigError<usize>),
}

/// A capture file that is being written.
#[derive(Debug)]
pub struct Capture<W: Write> {
    file: PcapWriter<BufWriter<W>>,
    /// A reused buffer for the headers of one packet.
    headers: Vec<u8>,
}

impl<W: Write> Capture<W> {
    /// Begins a file. `writer` needs no buffer: there is one here.
    ///
    /// # Errors
    /// If the file's header cannot be written.
    pub fn new(writer: W) -> Result<Self, CaptureError> {
        let header = PcapHeader {
            snaplen: u32::from(u16::MAX),
            datalink: DataLink::RAW,
            ts_resolution: TsResolution::NanoSecond,
            // Gives the same bytes on every machine.
            endianness: Endianness::Little,
            ..PcapHeader::default()
        };
        let file = PcapWriter::with_header(BufWriter::new(writer), header)?;
        Ok(Self { file, headers: Vec::new() })
    }

    /// Adds one packet.
    ///
    /// # Errors
    /// If it cannot be written, is later than the range of pcap (136 years), or has options that do not fit.
    pub fn write(&mut self, packet: &Captured<'_>) -> Result<(), CaptureError> {
        self.headers.clear();
        let length = match packet.transport {
            Transport::Udp => {
                let size = usize::try_from(packet.size.get()).unwrap_or(MAX_PACKET).min(MAX_PACKET);
                let payload = &ZEROS[..size.saturating_sub(Ipv4Header::MIN_LEN + UdpHeader::LEN)];
                udp(packet, payload, &mut self.headers)?
            }
            Transport::Payload(payload) => {
                let payload =
                    &payload[..payload.len().min(MAX_PACKET - Ipv4Header::MIN_LEN - UdpHeader::LEN)];
                let length = udp(packet, payload, &mut self.headers)?;
                self.headers.extend_from_slice(payload);
                length
            }
            Transport::Whole(bytes) => {
                let bytes = &bytes[..bytes.len().min(MAX_PACKET)];
                self.headers.extend_from_slice(bytes);
                bytes.len() as u16
            }
            Transport::Message => message(packet, &mut self.headers),
            Transport::Tcp(fields) => tcp(packet, &fields, &mut self.headers)?,
        };
        let size = u16::try_from(packet.size.get()).unwrap_or(u16::MAX);
        let at = Duration::from_nanos(packet.at.as_nanos());
        self.file.write_packet(&PcapPacket::new(at, size.max(length).into(), &self.headers))?;
        Ok(())
    }

    /// Ends the file and returns the writer.
    ///
    /// # Errors
    /// If the rest of the buffer cannot be written.
    pub fn finish(self) -> Result<W, CaptureError> {
        self.file.into_writer().into_inner().map_err(|error| error.into_error().into())
    }
}

/// The capture of one link of a simulation. An error ends the capture and is kept for
/// [`finish`](LinkCapture::finish).
pub struct LinkCapture {
    capture: Capture<Box<dyn Write + Send>>,
    error: Option<CaptureError>,
}

/// The header size of a request: IPv4 and TCP without options.
const HEADERS: u16 = 40;

impl LinkCapture {
    /// Begins a capture.
    ///
    /// # Errors
    /// If the file's header cannot be written.
    pub fn new(writer: Box<dyn Write + Send>) -> Result<Self, CaptureError> {
        Ok(Self { capture: Capture::new(writer)?, error: None })
    }

    /// Adds a packet whose transmission begins.
    /// `bytes` are those of a packet of a stack from outside.
    pub fn packet(&mut self, at: Time, packet: &Packet, body: &Body, bytes: &[u8]) {
        if self.error.is_some() {
            return;
        }
        let transport = match &body.header {
            Header::Udp | Header::Quic(_) | Header::Rtp(_) | Header::Rtcp(_) => Transport::Udp,
            Header::Stack if packet.protocol() == Protocol::Udp => Transport::Payload(bytes),
            Header::Stack => Transport::Whole(bytes),
            Header::SegmentRequest(_) if packet.protocol() == Protocol::Udp => Transport::Udp,
            // ACK and PSH. The sequence numbers of requests are not simulated.
            Header::SegmentRequest(_) => {
                Transport::Tcp(TcpFields { payload: REQUEST_PAYLOAD, flags: 0x18, ..TcpFields::default() })
            }
            Header::Message => Transport::Message,
            Header::Request => Transport::Tcp(TcpFields {
                flags: Flags::ACK.bits(),
                payload: (packet.size().get() as u16).saturating_sub(HEADERS),
                ..TcpFields::default()
            }),
            Header::Tcp(segment) => Transport::Tcp(TcpFields {
                seq: segment.seq,
                ack: segment.ack,
                window: segment.window,
                payload: segment.payload,
                flags: segment.flags.bits(),
                wscale: segment.extra.window_scale(),
                sack: segment.sack.as_slice(),
                ..TcpFields::default()
            }),
        };
        let (connection, direction) = (body.connection, packet.direction());
        let (ecn, size) = (packet.ecn(), packet.size());
        self.error = self.capture.write(&Captured { at, connection, direction, ecn, size, transport }).err();
    }

    /// Ends the capture.
    ///
    /// # Errors
    /// The first error while it was written, or the error of writing the rest.
    pub fn finish(self) -> Result<(), CaptureError> {
        match self.error {
            Some(error) => Err(error),
            None => self.capture.finish()?.flush().map_err(CaptureError::Finish),
        }
    }
}

impl fmt::Debug for LinkCapture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkCapture").field("error", &self.error).finish_non_exhaustive()
    }
}

/// Appends the headers of a datagram with this payload; returns its length on the network.
fn udp(packet: &Captured<'_>, payload: &[u8], headers: &mut Vec<u8>) -> Result<u16, CaptureError> {
    let ip = ip(packet, IpNumber::UDP, UdpHeader::LEN + payload.len());
    let (from, to) = ports(packet);
    let udp = UdpHeader::with_ipv4_checksum(from, to, &ip, payload)?;
    headers.extend_from_slice(&ip.to_bytes());
    headers.extend_from_slice(&udp.to_bytes());
    Ok(ip.total_len)
}

/// Appends the header of a message between routers; returns its length on the network.
fn message(packet: &Captured<'_>, headers: &mut Vec<u8>) -> u16 {
    let size = usize::try_from(packet.size.get()).unwrap_or(MAX_PACKET).min(MAX_PACKET);
    let number = IpNumber::EXPERIMENTAL_AND_TESTING_0;
    let ip = ip(packet, number, size.saturating_sub(Ipv4Header::MIN_LEN));
    headers.extend_from_slice(&ip.to_bytes());
    ip.total_len
}

/// Appends the headers of a segment; returns its length on the network.
fn tcp(packet: &Captured<'_>, fields: &TcpFields<'_>, headers: &mut Vec<u8>) -> Result<u16, CaptureError> {
    let (from, to) = ports(packet);
    let mut tcp = TcpHeader::new(from, to, fields.seq, fields.window);
    tcp.acknowledgment_number = fields.ack;
    let bit = |number: u16| fields.flags & (1 << number) != 0;
    [tcp.fin, tcp.syn, tcp.rst, tcp.psh] = [bit(0), bit(1), bit(2), bit(3)];
    [tcp.ack, tcp.urg, tcp.ece, tcp.cwr] = [bit(4), bit(5), bit(6), bit(7)];
    // RFC 9768: AE is the bit that was NS.
    tcp.ns = bit(8);
    tcp.set_options(&options(fields))?;
    let room = MAX_PACKET - Ipv4Header::MIN_LEN - tcp.header_len();
    let payload = &ZEROS[..usize::from(fields.payload).min(room)];
    let ip = ip(packet, IpNumber::TCP, tcp.header_len() + payload.len());
    tcp.checksum = tcp.calc_checksum_ipv4(&ip, payload)?;
    headers.extend_from_slice(&ip.to_bytes());
    headers.extend_from_slice(&tcp.to_bytes());
    Ok(ip.total_len)
}

/// The options of a segment, aligned to words by no-operations in front as is customary (RFC 7323 appendix
/// A).
fn options(fields: &TcpFields<'_>) -> Vec<TcpOptionElement> {
    use TcpOptionElement::{
        MaximumSegmentSize, Noop, SelectiveAcknowledgement, SelectiveAcknowledgementPermitted, WindowScale,
    };
    let mut options = Vec::new();
    options.extend(fields.mss.map(MaximumSegmentSize));
    if fields.sack_permitted {
        options.extend([Noop, Noop, SelectiveAcknowledgementPermitted]);
    }
    if let Some(shift) = fields.wscale {
        options.extend([Noop, WindowScale(shift)]);
    }
    if let [first, rest @ ..] = fields.sack {
        let rest = std::array::from_fn(|k| rest.get(k).copied());
        options.extend([Noop, Noop, SelectiveAcknowledgement(*first, rest)]);
    }
    options
}

/// The IP header in front of `length` bytes, which must fit.
fn ip(packet: &Captured<'_>, protocol: IpNumber, length: usize) -> Ipv4Header {
    let host = (packet.connection.wrapping_add(1)) & 0x007f_ffff;
    let source = (0x0a00_0000 | host).to_be_bytes();
    let sink = (0x0a80_0000 | host).to_be_bytes();
    let (source, destination) = match packet.direction {
        Direction::Forward => (source, sink),
        Direction::Reverse => (sink, source),
    };
    let mut ip = Ipv4Header {
        total_len: u16::try_from(Ipv4Header::MIN_LEN + length).unwrap_or(u16::MAX),
        ecn: match packet.ecn {
            Ecn::NotEct => IpEcn::NotEct,
            Ecn::Ect0 => IpEcn::Ect0,
            Ecn::Ect1 => IpEcn::Ect1,
            Ecn::Ce => IpEcn::CongestionExperienced,
        },
        // Never fragmented, so the identification means nothing and is zero (RFC 6864 section 4.1).
        dont_fragment: true,
        time_to_live: TIME_TO_LIVE,
        protocol,
        source,
        destination,
        ..Ipv4Header::default()
    };
    ip.header_checksum = ip.calc_header_checksum();
    ip
}

/// Source and destination port. The bits of the connection's number above those in its address are in the
/// source port: 49152 to 49663.
fn ports(packet: &Captured<'_>) -> (u16, u16) {
    let source = SOURCE_PORT + (packet.connection >> 23) as u16;
    match packet.direction {
        Direction::Forward => (source, SINK_PORT),
        Direction::Reverse => (SINK_PORT, source),
    }
}

#[cfg(test)]
mod tests;
