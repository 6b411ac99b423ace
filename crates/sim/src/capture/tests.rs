use std::process::Command;

use apportion_testing::{child, skip};
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use pcap_file::pcap::PcapReader;

use super::*;

const FIN: u16 = 0x01;
const SYN: u16 = 0x02;
const AE: u16 = 0x100;
const ACK: u16 = 0x10;
const ECE: u16 = 0x40;
const CWR: u16 = 0x80;

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
        flags: SYN | ECE | CWR | AE,
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
        direction: Direction::Forward,
        ecn,
        size: Bytes::new(size),
        transport: Transport::Tcp(fields),
    };
    let back = |packet| Captured { direction: Direction::Reverse, ..packet };
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
                assert_eq!((tcp.sequence_number(), tcp.acknowledgment_number()), (fields.seq, fields.ack));
                assert_eq!((tcp.window_size(), tcp.payload().len()), (fields.window, fields.payload.into()));
                assert_eq!(u16::from_be_bytes([tcp.slice()[12] & 1, tcp.slice()[13]]), fields.flags);
                let checksum = tcp.calc_checksum_ipv4(ip.source(), ip.destination());
                assert_eq!(Ok(tcp.checksum()), checksum);
                let read: Result<Vec<_>, _> = tcp.options_iterator().collect();
                assert_eq!(read.unwrap(), options(&fields));
                // Only headers are captured.
                assert_eq!(bytes.len(), 20 + tcp.header_len());
            }
            (Transport::Udp, Some(TransportSlice::Udp(udp))) => {
                let payload = packet.size.get().clamp(28, 65_535) - 28;
                assert_eq!(udp.payload().len() as u64, payload);
                let header = udp.to_header();
                let checksum = header.calc_checksum_ipv4_raw(ip.source(), ip.destination(), udp.payload());
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
    let (source, sink) = end_points(0, Direction::Forward);
    assert_eq!((source, sink), (([10, 0, 0, 1], 49_152), ([10, 128, 0, 1], 50_000)));
    assert_eq!(end_points(0, Direction::Reverse), (sink, source));
    // 70,000 + 1 = 1 · 65,536 + 17 · 256 + 113.
    assert_eq!(end_points(70_000, Direction::Forward).0, ([10, 1, 17, 113], 49_152));
    // 2^23 - 1 wraps to host 0; 2^23 has its address from connection 0 and the next port.
    assert_eq!(end_points((1 << 23) - 1, Direction::Forward).0, ([10, 0, 0, 0], 49_152));
    assert_eq!(end_points(1 << 23, Direction::Forward).0, ([10, 0, 0, 1], 49_153));
    assert_eq!(end_points(u32::MAX, Direction::Forward).0.1, 49_663);
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
    // The buffer takes the first packets; the error of the full file shows when the capture is finished.
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

/// The output of `tshark` for the file with these `bytes`; `None` if it is not installed, which is permitted
/// only on machines that do not claim to be complete (`CI=true`).
fn tshark(bytes: &[u8], arguments: &[&str]) -> Option<String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("link.pcap");
    std::fs::write(&path, bytes).unwrap();
    let may_be_skipped = std::env::var("CI").as_deref() != Ok("true");
    assert!(may_be_skipped || skip::is_in_path("tshark"), "CI must have tshark");
    if !skip::unless_found(&["tshark"]) {
        return None;
    }
    let output = child::output(Command::new("tshark").arg("-r").arg(&path).args(arguments));
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
        "0.000000000;52;52;10.0.0.8;10.128.0.8;0;49152;;4294965835;0;0;0x01c2;1000;1460;7;2,1,1,4,1,3;;",
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
    // Without payload tshark cannot check: here the payload of each packet is filled with zeros.
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

    let findings = ["-Y", "_ws.malformed || _ws.expert.severity >= 0x600000 || tcp.analysis.lost_segment"];
    assert_eq!(tshark(&file(&packets()), &findings).unwrap(), "");
    // With the first data segment left out, the next one reveals the gap, and its acknowledgement an unseen
    // segment.
    let mut gap = packets();
    gap.remove(2);
    assert_eq!(tshark(&file(&gap), &findings).unwrap().lines().count(), 2);
}
