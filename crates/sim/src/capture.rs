//! Writes the packets of a link to a capture file that Wireshark, tcpdump and tcptrace read.
//!
//! Classic pcap with nanosecond timestamps (the run starts at the epoch) and link type RAW: each packet
//! begins with its IPv4 header. Headers are real, with checksums that are right for a payload of zeros; of
//! the payload nothing is captured, as with a snapshot length that ends behind the headers.
//!
//! - Addresses and ports follow from the connection's number alone and differ for every connection, also of
//!   one flow: connection c goes from 10.0.0.0/9 to 10.128.0.0/9, host 1 + c mod 2^23, from port
//!   49152 + ⌊c / 2^23⌋ to port 50000. What goes back has them swapped.
//! - Lengths in headers are those of the real headers with the payload, so that the sequence numbers of a TCP
//!   flow add up. The original length of a packet is its size in the simulation, or what its headers say if
//!   that is more: where a profile gives headers no size, or counts no options, a packet is longer in the
//!   capture than on the link.
//! - IPv4 and its lengths end at 65,535 bytes. What is larger is written as that.
//!
//! Cost: about 100 bytes of file a packet.

use std::fmt;
use std::io::{self, BufWriter, Write};
use std::time::Duration;

use apportion_core::units::{Bytes, Time};
use apportion_core::{Ecn, Packet as _};
use etherparse::err::ValueTooBigError;
use etherparse::{IpEcn, IpNumber, Ipv4Header, TcpHeader, TcpOptionElement, TcpOptionWriteError, UdpHeader};
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::{DataLink, Endianness, PcapError, TsResolution};

use crate::packet::{Body, Direction, Header, Packet};

/// The largest total length of an IPv4 packet (RFC 791 section 3.1).
const MAX_PACKET: usize = u16::MAX as usize;
/// The first dynamic port (RFC 6335 section 6).
const SOURCE_PORT: u16 = 49_152;
/// Chosen: a dynamic port too, so that no dissector takes the payload for its own, and above every source
/// port.
const SINK_PORT: u16 = 50_000;
/// The recommended default (RFC 1700).
const TIME_TO_LIVE: u8 = 64;
/// What payloads consist of, for checksums.
static ZEROS: [u8; MAX_PACKET] = [0; MAX_PACKET];

/// One packet on a link.
#[derive(Clone, Copy, Debug)]
pub struct Captured<'a> {
    /// When it is captured; ascending within a file.
    pub at: Time,
    /// The number of its connection, which determines addresses and ports.
    pub connection: u32,
    /// Which way it goes.
    pub direction: Direction,
    /// In the IP header.
    pub ecn: Ecn,
    /// On the link, with headers as the profile counts them.
    pub size: Bytes,
    /// What follows the IP header.
    pub transport: Transport<'a>,
}

/// The transport header of a packet.
#[derive(Clone, Copy, Debug)]
pub enum Transport<'a> {
    /// The payload is what the size leaves after 28 bytes of headers.
    Udp,
    /// A message between routers, under a protocol number for experiments (RFC 3692 section 2.1).
    Message,
    /// With these fields.
    Tcp(TcpFields<'a>),
}

/// The fields of a TCP header that vary.
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpFields<'a> {
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgment number.
    pub ack: u32,
    /// The advertised window as in the header, not yet scaled.
    pub window: u16,
    /// The number of payload bytes.
    pub payload: u16,
    /// The control bits as in the header, CWR to FIN (RFC 9293 section 3.1).
    pub flags: u8,
    /// The maximum segment size option.
    pub mss: Option<u16>,
    /// The window scale option.
    pub wscale: Option<u8>,
    /// The SACK-permitted option.
    pub sack_permitted: bool,
    /// The SACK option: from, and up to but without. Without blocks there is no option; of more than 4, which
    /// fill the header (RFC 2018 section 3), the first 4 are written.
    pub sack: &'a [(u32, u32)],
}

/// Why a capture could not be written.
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
    /// A packet exceeds what IPv4 can carry.
    #[error("a captured packet is too long: {0}")]
    Length(#[from] ValueTooBigError<usize>),
}

/// A capture file in the making.
#[derive(Debug)]
pub struct Capture<W: Write> {
    file: PcapWriter<BufWriter<W>>,
    /// The headers of one packet; kept to be used again.
    headers: Vec<u8>,
}

impl<W: Write> Capture<W> {
    /// Begins a file. Wrap no buffer round `writer`: there is one here.
    ///
    /// # Errors
    /// If the file's header cannot be written.
    pub fn new(writer: W) -> Result<Self, CaptureError> {
        let header = PcapHeader {
            snaplen: u32::from(u16::MAX),
            datalink: DataLink::RAW,
            ts_resolution: TsResolution::NanoSecond,
            // The same bytes on every machine.
            endianness: Endianness::Little,
            ..PcapHeader::default()
        };
        let file = PcapWriter::with_header(BufWriter::new(writer), header)?;
        Ok(Self { file, headers: Vec::new() })
    }

    /// Adds one packet.
    ///
    /// # Errors
    /// If it cannot be written, is later than a pcap file can say (136 years), or has options that do not fit.
    pub fn write(&mut self, packet: &Captured<'_>) -> Result<(), CaptureError> {
        self.headers.clear();
        let length = match packet.transport {
            Transport::Udp => udp(packet, &mut self.headers)?,
            Transport::Message => message(packet, &mut self.headers),
            Transport::Tcp(fields) => tcp(packet, &fields, &mut self.headers)?,
        };
        let size = u16::try_from(packet.size.get()).unwrap_or(u16::MAX);
        let at = Duration::from_nanos(packet.at.as_nanos());
        self.file.write_packet(&PcapPacket::new(at, size.max(length).into(), &self.headers))?;
        Ok(())
    }

    /// Ends the file and gives the writer back.
    ///
    /// # Errors
    /// If what is still in the buffer cannot be written.
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

impl LinkCapture {
    /// Begins a capture.
    ///
    /// # Errors
    /// If the file's header cannot be written.
    pub fn new(writer: Box<dyn Write + Send>) -> Result<Self, CaptureError> {
        Ok(Self { capture: Capture::new(writer)?, error: None })
    }

    /// Adds a packet whose transmission begins.
    pub fn packet(&mut self, at: Time, packet: &Packet, body: &Body) {
        if self.error.is_some() {
            return;
        }
        let transport = match &body.header {
            Header::Udp => Transport::Udp,
            Header::Message => Transport::Message,
            Header::Tcp(segment) => Transport::Tcp(TcpFields {
                seq: segment.seq,
                ack: segment.ack,
                window: segment.window,
                payload: segment.payload,
                flags: segment.flags.bits(),
                wscale: segment.wscale,
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
    /// The first that happened while it was written, or that of writing what is left.
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

/// Appends the headers of a datagram; returns its length on the network.
fn udp(packet: &Captured<'_>, headers: &mut Vec<u8>) -> Result<u16, CaptureError> {
    let size = usize::try_from(packet.size.get()).unwrap_or(MAX_PACKET).min(MAX_PACKET);
    let payload = &ZEROS[..size.saturating_sub(Ipv4Header::MIN_LEN + UdpHeader::LEN)];
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
    let bit = |number: u8| fields.flags & (1 << number) != 0;
    [tcp.fin, tcp.syn, tcp.rst, tcp.psh] = [bit(0), bit(1), bit(2), bit(3)];
    [tcp.ack, tcp.urg, tcp.ece, tcp.cwr] = [bit(4), bit(5), bit(6), bit(7)];
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
        Direction::Forth => (source, sink),
        Direction::Back => (sink, source),
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

/// Source and destination port. The nine bits of the connection's number that its address has no room for are
/// in the port of the source: 49152 to 49663.
fn ports(packet: &Captured<'_>) -> (u16, u16) {
    let source = SOURCE_PORT + (packet.connection >> 23) as u16;
    match packet.direction {
        Direction::Forth => (source, SINK_PORT),
        Direction::Back => (SINK_PORT, source),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use etherparse::{NetSlice, SlicedPacket, TransportSlice};
    use pcap_file::pcap::PcapReader;

    use super::*;

    const FIN: u8 = 0x01;
    const SYN: u8 = 0x02;
    const ACK: u8 = 0x10;
    const ECE: u8 = 0x40;
    const CWR: u8 = 0x80;

    /// Handshake, data with a wrap of sequence numbers, an acknowledgement with blocks, ECN, datagrams.
    fn packets() -> Vec<Captured<'static>> {
        const NONE: TcpFields<'_> = TcpFields {
            seq: 0,
            ack: 0,
            window: 1_000,
            payload: 0,
            flags: ACK,
            mss: None,
            wscale: None,
            sack_permitted: false,
            sack: &[],
        };
        let syn = TcpFields {
            seq: u32::MAX - 1_460,
            flags: SYN | ECE | CWR,
            mss: Some(1_460),
            wscale: Some(7),
            sack_permitted: true,
            ..NONE
        };
        let syn_ack = TcpFields { seq: 99, ack: u32::MAX - 1_459, flags: SYN | ACK | ECE, ..syn };
        let data = TcpFields { seq: u32::MAX - 1_459, ack: 100, payload: 1_460, ..NONE };
        let next = TcpFields { seq: 0, flags: ACK | CWR, ..data };
        let blocks: &[(u32, u32)] = &[(2_920, 4_380), (5_840, 7_300), (8_760, 10_220), (11_680, 13_140)];
        let ack = TcpFields { seq: 100, ack: 1_460, flags: ACK | ECE, window: 65_535, sack: blocks, ..NONE };
        let fin = TcpFields { seq: 1_460, ack: 100, flags: ACK | FIN, ..NONE };
        let forth = |at, ecn, size, fields| Captured {
            at: Time::from_nanos(at),
            connection: 7,
            direction: Direction::Forth,
            ecn,
            size: Bytes::new(size),
            transport: Transport::Tcp(fields),
        };
        let back = |packet| Captured { direction: Direction::Back, ..packet };
        let udp = |connection, size| Captured {
            connection,
            transport: Transport::Udp,
            ..forth(20_000_000_009, Ecn::Ect1, size, NONE)
        };
        vec![
            forth(0, Ecn::NotEct, 40, syn),
            back(forth(1, Ecn::NotEct, 52, syn_ack)),
            forth(1_000_000_001, Ecn::Ect0, 1_500, data),
            // A profile whose headers have no size.
            forth(1_000_000_002, Ecn::Ce, 1_460, next),
            back(forth(1_000_000_003, Ecn::NotEct, 40, ack)),
            // A profile that counts the link's header too.
            forth(1_000_000_004, Ecn::Ect0, 58, fin),
            udp(0, 1_000),
            udp((3 << 23) + 2, 10),
            udp(u32::MAX, 100_000),
            Captured { transport: Transport::Message, ..udp(7, 100) },
        ]
    }

    fn file(packets: &[Captured<'_>]) -> Vec<u8> {
        let mut capture = Capture::new(Vec::new()).unwrap();
        packets.iter().for_each(|packet| capture.write(packet).unwrap());
        capture.finish().unwrap()
    }

    /// Time, original length and captured bytes of each packet in a file of `packets`.
    fn written(packets: &[Captured<'_>]) -> Vec<(Duration, u32, Vec<u8>)> {
        let file = file(packets);
        let mut reader = PcapReader::new(file.as_slice()).unwrap();
        assert_eq!(reader.header().datalink, DataLink::RAW);
        std::iter::from_fn(|| {
            let packet = reader.next_packet()?.unwrap();
            Some((packet.timestamp, packet.orig_len, packet.data.into_owned()))
        })
        .collect()
    }

    #[test]
    fn what_is_written_reads_back() {
        let packets = packets();
        let written = written(&packets);
        assert_eq!(written.len(), packets.len());
        for (packet, (at, length, bytes)) in packets.iter().zip(&written) {
            assert_eq!(at.as_nanos(), u128::from(packet.at.as_nanos()));
            let mut whole = bytes.clone();
            whole.resize(*length as usize, 0);
            let parsed = SlicedPacket::from_ip(&whole).unwrap();
            let Some(NetSlice::Ipv4(ip)) = parsed.net else { panic!("no IPv4") };
            let ip = ip.header();
            assert_eq!(ip.header_checksum(), ip.to_header().calc_header_checksum());
            assert_eq!(ip.ecn().value(), [0, 2, 1, 3][packet.ecn as usize]);
            match (packet.transport, parsed.transport) {
                (Transport::Tcp(fields), Some(TransportSlice::Tcp(tcp))) => {
                    assert_eq!(
                        (tcp.sequence_number(), tcp.acknowledgment_number()),
                        (fields.seq, fields.ack)
                    );
                    assert_eq!(
                        (tcp.window_size(), tcp.payload().len()),
                        (fields.window, fields.payload.into())
                    );
                    assert_eq!(tcp.slice()[13], fields.flags);
                    let checksum = tcp.calc_checksum_ipv4(ip.source(), ip.destination());
                    assert_eq!(Ok(tcp.checksum()), checksum);
                    let read: Result<Vec<_>, _> = tcp.options_iterator().collect();
                    assert_eq!(read.unwrap(), options(&fields));
                    // Nothing but headers is captured.
                    assert_eq!(bytes.len(), 20 + tcp.header_len());
                }
                (Transport::Udp, Some(TransportSlice::Udp(udp))) => {
                    let payload = packet.size.get().clamp(28, 65_535) - 28;
                    assert_eq!(udp.payload().len() as u64, payload);
                    let header = udp.to_header();
                    let checksum =
                        header.calc_checksum_ipv4_raw(ip.source(), ip.destination(), udp.payload());
                    assert_eq!(Ok(udp.checksum()), checksum);
                    assert_eq!(bytes.len(), 28);
                }
                (Transport::Message, None) => {
                    assert_eq!((ip.protocol(), bytes.len()), (IpNumber(253), 20));
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn the_original_length_is_the_size_or_what_the_headers_say() {
        let lengths: Vec<u32> = written(&packets()).iter().map(|&(_, length, _)| length).collect();
        // SYN: 20 + 20 + options 4 + 4 + 4 = 52, more than 40. The second segment: 1460 + 40. The
        // acknowledgement: 40 + 2 + 34 = 76. The FIN's 58 is more than 40. Datagrams: 1000, at least 28, at
        // most 65,535. The message: 100.
        assert_eq!(lengths, [52, 52, 1_500, 1_500, 76, 58, 1_000, 28, 65_535, 100]);
    }

    #[test]
    fn addresses_and_ports_follow_from_the_connection() {
        let end_points = |connection, direction| {
            let packet = Captured { connection, direction, ..packets()[6] };
            let ip = ip(&packet, IpNumber::UDP, 8);
            let (from, to) = ports(&packet);
            ((ip.source, from), (ip.destination, to))
        };
        let (source, sink) = end_points(0, Direction::Forth);
        assert_eq!((source, sink), (([10, 0, 0, 1], 49_152), ([10, 128, 0, 1], 50_000)));
        assert_eq!(end_points(0, Direction::Back), (sink, source));
        // 70,000 + 1 = 1 · 65,536 + 17 · 256 + 113.
        assert_eq!(end_points(70_000, Direction::Forth).0, ([10, 1, 17, 113], 49_152));
        // 2^23 - 1 wraps to host 0; 2^23 has its address from connection 0 and the next port.
        assert_eq!(end_points((1 << 23) - 1, Direction::Forth).0, ([10, 0, 0, 0], 49_152));
        assert_eq!(end_points(1 << 23, Direction::Forth).0, ([10, 0, 0, 1], 49_153));
        assert_eq!(end_points(u32::MAX, Direction::Forth).0.1, 49_663);
    }

    #[test]
    fn errors_are_returned() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        // The buffer takes the first packets; the file is found full when it is finished.
        let mut capture = Capture::new(Full).unwrap();
        capture.write(&packets()[0]).unwrap();
        assert!(matches!(capture.finish(), Err(CaptureError::Finish(_))));
        let mut capture = Capture::new(Full).unwrap();
        let failed = (0..1_000).find_map(|_| capture.write(&packets()[0]).err());
        assert!(matches!(failed, Some(CaptureError::Write(_))), "{failed:?}");
        // 2^32 s do not fit the format.
        let late = Captured { at: Time::from_secs(1 << 32), ..packets()[0] };
        let mut capture = Capture::new(Vec::new()).unwrap();
        assert!(matches!(capture.write(&late), Err(CaptureError::Write(_))));
        // 12 bytes of options of a SYN and 36 of four blocks exceed 40.
        let blocks = [(0, 1); 4];
        let Transport::Tcp(syn) = packets()[0].transport else { panic!("no segment") };
        let transport = Transport::Tcp(TcpFields { sack: &blocks, ..syn });
        let wrong = Captured { transport, ..packets()[0] };
        assert!(matches!(capture.write(&wrong), Err(CaptureError::Options(_))));
    }

    /// What `tshark` says of the file with these `bytes`; `None` if it is not installed, which only a machine
    /// that does not claim to be complete (`CI=true`) may be.
    fn tshark(bytes: &[u8], arguments: &[&str]) -> Option<String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("link.pcap");
        std::fs::write(&path, bytes).unwrap();
        let output = match Command::new("tshark").arg("-r").arg(&path).args(arguments).output() {
            Ok(output) => output,
            Err(error) => {
                assert!(std::env::var("CI").as_deref() != Ok("true"), "CI must have tshark: {error}");
                println!(
                    "SKIPPED: tshark cannot be run here ({error}); the capture was not checked against it"
                );
                return None;
            }
        };
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{complaint}");
        assert!(!complaint.contains("cut short"), "{complaint}");
        Some(String::from_utf8(output.stdout).unwrap())
    }

    #[test]
    fn tshark_sees_the_fields_that_were_written() {
        let fields = "frame.time_epoch frame.len frame.cap_len ip.src ip.dst ip.dsfield.ecn tcp.srcport \
                      udp.dstport tcp.seq_raw tcp.ack_raw tcp.len tcp.flags tcp.window_size_value \
                      tcp.options.mss_val tcp.options.wscale.shift tcp.option_kind tcp.options.sack_le \
                      tcp.options.sack_re";
        let mut arguments =
            vec!["-o", "tcp.relative_sequence_numbers:FALSE", "-T", "fields", "-E", "separator=;"];
        fields.split_whitespace().for_each(|field| arguments.extend(["-e", field]));
        let Some(seen) = tshark(&file(&packets()), &arguments) else { return };
        let expected = [
            "0.000000000;52;52;10.0.0.8;10.128.0.8;0;49152;;4294965835;0;0;0x00c2;1000;1460;7;2,1,1,4,1,3;;",
            "0.000000001;52;52;10.128.0.8;10.0.0.8;0;50000;;99;4294965836;0;0x0052;1000;1460;7;2,1,1,4,1,3;;",
            "1.000000001;1500;40;10.0.0.8;10.128.0.8;2;49152;;4294965836;100;1460;0x0010;1000;;;;;",
            "1.000000002;1500;40;10.0.0.8;10.128.0.8;3;49152;;0;100;1460;0x0090;1000;;;;;",
            "1.000000003;76;76;10.128.0.8;10.0.0.8;0;50000;;100;1460;0;0x0050;65535;;;1,1,5;\
             2920,5840,8760,11680;4380,7300,10220,13140",
            "1.000000004;58;40;10.0.0.8;10.128.0.8;2;49152;;1460;100;0;0x0011;1000;;;;;",
            "20.000000009;1000;28;10.0.0.1;10.128.0.1;1;;50000;;;;;;;;;;",
            "20.000000009;28;28;10.0.0.3;10.128.0.3;1;;50000;;;;;;;;;;",
            "20.000000009;65535;28;10.0.0.0;10.128.0.0;1;;50000;;;;;;;;;;",
            "20.000000009;100;20;10.0.0.8;10.128.0.8;1;;;;;;;;;;;;",
        ];
        assert_eq!(seen.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn tshark_finds_nothing_malformed_and_every_checksum_right() {
        // Without payload tshark cannot check: here each packet is filled up with the zeros it stands for.
        let mut whole = PcapWriter::with_header(
            Vec::new(),
            PcapHeader {
                datalink: DataLink::RAW,
                ts_resolution: TsResolution::NanoSecond,
                ..PcapHeader::default()
            },
        )
        .unwrap();
        for (at, length, mut bytes) in written(&packets()) {
            bytes.resize(length as usize, 0);
            whole.write_packet(&PcapPacket::new(at, length, &bytes)).unwrap();
        }
        let check = ["ip", "tcp", "udp"].map(|protocol| format!("{protocol}.check_checksum:TRUE"));
        let mut arguments: Vec<&str> = check.iter().flat_map(|option| ["-o", option]).collect();
        arguments.extend(["-T", "fields", "-E", "separator=;"]);
        for field in ["ip.checksum.status", "tcp.checksum.status", "udp.checksum.status"] {
            arguments.extend(["-e", field]);
        }
        let Some(seen) = tshark(&whole.into_writer(), &arguments) else { return };
        // 1 is "good".
        let expected = [["1;1;"; 6].as_slice(), &["1;;1"; 3], &["1;;"]].concat();
        assert_eq!(seen.lines().collect::<Vec<_>>(), expected);

        let findings =
            ["-Y", "_ws.malformed || _ws.expert.severity >= 0x600000 || tcp.analysis.lost_segment"];
        assert_eq!(tshark(&file(&packets()), &findings).unwrap(), "");
        // And it would: with the first data segment left out, the next one reveals the gap, and its
        // acknowledgement a segment that was not seen.
        let mut gap = packets();
        gap.remove(2);
        assert_eq!(tshark(&file(&gap), &findings).unwrap().lines().count(), 2);
    }
}
