//! Files that a scenario refers to: graphs, video traces, delivery traces and packet captures.
//!
//! A scenario is checked without a disk: the caller hands in a function that opens files. [`read_file`] is the one for
//! those of a disk.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, fs, io};

use apportion_core::delivery_trace::DeliveryTrace;
use apportion_core::units::{Bytes, Span};
use pcap_file::DataLink;
use pcap_file::pcap::PcapParser;

use crate::packet_size::{MAX_PACKET, UDP_HEADER};

/// Reads a whole file. Paths are as the scenario gives them, joined to its folder.
pub type ReadFile<'a> = &'a dyn Fn(&Path) -> io::Result<Vec<u8>>;

/// Longest file that is read as a whole, in bytes. Chosen: a capture of ten million packets with 80 bytes of each takes 1 GB.
const MAX_FILE: u64 = 1 << 30;

/// Reads a whole file of a disk, of 1 GiB at most.
///
/// # Errors
/// What the system said, that it is not a regular file, or that it is too long.
pub fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    read_up_to(path, MAX_FILE)
}

/// Reads a whole text file of `most` bytes at most.
///
/// # Errors
/// As [`read_file`], or that it is not text.
pub fn read_text_file(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read_up_to(path, most)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not text"))
}

/// Opens a file that is read piece by piece, of `most` bytes at most. One that grows meanwhile ends there.
///
/// # Errors
/// What the system said, that it is not a regular file (a pipe may never end, nor does `/dev/zero`), or that it is longer.
pub fn open_file(path: &Path, most: u64) -> io::Result<io::Take<fs::File>> {
    let refuse = |why: String| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    // Before it is opened: opening a pipe waits for a writer.
    let kind = fs::metadata(path)?.file_type();
    // Of a folder the system says so itself.
    if !kind.is_file() && !kind.is_dir() {
        return refuse("it is not a regular file".to_owned());
    }
    let file = fs::File::open(path)?;
    if file.metadata()?.len() > most {
        return refuse(too_long(most));
    }
    Ok(file.take(most))
}

fn read_up_to(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    // Some files, as those of /proc, do not say how long they are.
    let mut file = open_file(path, most + 1)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, too_long(most)));
    }
    Ok(bytes)
}

fn too_long(most: u64) -> String {
    format!("it is longer than {} MiB", most >> 20)
}

/// Longest graph, in bytes. Chosen: the most links that a scenario has, with 1 kB each.
const MAX_GRAPH: u64 = 100 << 20;

/// Most packets of a capture, and frames or opportunities of a trace (chosen: hours of video, a minute of a busy link).
const MAX_RECORDS: usize = 10_000_000;

/// Why a file is refused. Prints as `line 3: what is wrong`, without the line where it is the whole file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    /// Counting from 1; none of the file as a whole.
    pub line: Option<usize>,
    /// What is wrong, and what to write.
    pub message: String,
}

impl FileError {
    pub(crate) fn new(line: impl Into<Option<usize>>, message: impl Into<String>) -> Self {
        Self { line: line.into(), message: message.into() }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for FileError {}

/// Of a file, or why there is none.
type Content = Result<Arc<[u8]>, FileError>;

/// The folder of a scenario, and what was read from it.
pub(crate) struct Files<'a> {
    origin: PathBuf,
    folder: PathBuf,
    read: ReadFile<'a>,
    seen: RefCell<BTreeMap<PathBuf, Content>>,
}

impl<'a> Files<'a> {
    /// For the scenario or configuration `origin`.
    pub(crate) fn new(origin: &Path, read: ReadFile<'a>) -> Self {
        let folder = origin.parent().map(Path::to_path_buf).unwrap_or_default();
        Self { origin: origin.to_path_buf(), folder, read, seen: RefCell::default() }
    }

    /// The bytes of a file; each is read once, however many points of a sweep refer to it.
    pub(crate) fn bytes(&self, path: &Path) -> Content {
        let full = self.folder.join(path);
        let mut seen = self.seen.borrow_mut();
        let read = || match (self.read)(&full) {
            Ok(bytes) => Ok(Arc::from(bytes)),
            Err(error) => {
                let (full, origin) = (full.display(), self.origin.display());
                let message =
                    format!("cannot read `{full}`: {error}; paths start at the folder of `{origin}`");
                Err(FileError::new(None, message))
            }
        };
        seen.entry(path.to_path_buf()).or_insert_with(read).clone()
    }

    pub(crate) fn text(&self, path: &Path) -> Result<String, FileError> {
        let bytes = self.bytes(path)?;
        let refuse = |_| FileError::new(None, format!("`{}` is not text", path.display()));
        String::from_utf8(bytes.to_vec()).map_err(refuse)
    }

    /// The text of a graph, in UTF-8 or, as graphs of the Topology Zoo are, in ISO 8859-1, where each byte is a character.
    pub(crate) fn graph(&self, path: &Path) -> Result<String, FileError> {
        let bytes = self.bytes(path)?;
        if bytes.len() as u64 > MAX_GRAPH {
            return Err(FileError::new(None, format!("`{}`: {}", path.display(), too_long(MAX_GRAPH))));
        }
        let text = match std::str::from_utf8(&bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => bytes.iter().map(|byte| char::from(*byte)).collect(),
        };
        Ok(text.trim_start_matches('\u{feff}').to_owned())
    }

    /// What was read so far: path and hash of the content.
    pub(crate) fn hashes(&self) -> Vec<(String, u64)> {
        let seen = self.seen.borrow();
        let hash = |(path, read): (&PathBuf, &Content)| {
            let bytes = read.as_ref().ok()?;
            Some((path.display().to_string(), fnv1a(bytes)))
        };
        seen.iter().filter_map(hash).collect()
    }
}

/// FNV-1a, 64 bits.
fn fnv1a(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Frame sizes in bytes, one a line; empty lines and what follows `#` are skipped.
pub(crate) fn frames(text: &str) -> Result<Arc<[Bytes]>, FileError> {
    let mut frames = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or("").trim();
        if line.is_empty() {
            continue;
        }
        let size: u32 = match line.parse() {
            Ok(size) if size > 0 => size,
            _ => return Err(FileError::new(number, format!("`{line}` is not a number of bytes from 1"))),
        };
        if frames.len() >= MAX_RECORDS {
            return Err(FileError::new(None, format!("more than {MAX_RECORDS} frames")));
        }
        frames.push(Bytes::new(size.into()));
    }
    if frames.is_empty() { Err(FileError::new(None, "there are no frames in it")) } else { Ok(frames.into()) }
}

/// A recorded link in mahimahi's format: one time in whole milliseconds a line, not falling, the last above zero. Empty lines are
/// skipped.
///
/// # Errors
/// The first line that is not so, and what to write.
pub fn delivery_trace(text: &str) -> Result<DeliveryTrace, FileError> {
    let mut times: Vec<Span> = Vec::new();
    let text = text.trim_start_matches('\u{feff}');
    let lines = (1..).zip(text.lines().map(str::trim)).filter(|(_, line)| !line.is_empty());
    for (number, line) in lines {
        // 2^40 ms are 35 years, and in nanoseconds below 2^60.
        let Some(ms) = line.parse::<u64>().ok().filter(|ms| *ms < 1 << 40) else {
            let message = format!("`{line}` is not a time in milliseconds; write whole numbers such as 12");
            return Err(FileError::new(number, message));
        };
        let time = Span::from_millis(ms);
        if times.last().is_some_and(|last| time < *last) {
            return Err(FileError::new(number, format!("{ms} ms comes after a later time; sort the lines")));
        }
        if times.len() == MAX_RECORDS {
            let message = format!("there are more than {MAX_RECORDS} lines; cut the trace");
            return Err(FileError::new(number, message));
        }
        times.push(time);
    }
    if times.is_empty() {
        let message = "there is no line in it; write one time in milliseconds a line";
        return Err(FileError::new(None, message));
    }
    let message = "it ends at 0 ms, and would never come to an end; end it with its length";
    DeliveryTrace::new(times).ok_or_else(|| FileError::new(None, message))
}

/// Time since the first packet and size of each packet of a capture, from the network layer on, ascending in
/// time.
pub(crate) fn packets(capture: &[u8]) -> Result<Arc<[(Span, Bytes)]>, FileError> {
    let refuse = |message: String| FileError::new(None, message);
    let fail = |error: pcap_file::PcapError| refuse(format!("not a pcap file: {error}"));
    let (mut rest, parser) = PcapParser::new(capture).map_err(fail)?;
    let header = parser.header();
    // Lengths of link-layer headers, by the registry of link-layer types of tcpdump.org.
    let link_header = match header.datalink {
        DataLink::ETHERNET => 14,
        DataLink::LINUX_SLL => 16,
        DataLink::NULL | DataLink::LOOP => 4,
        DataLink::RAW | DataLink::IPV4 | DataLink::IPV6 => 0,
        other => {
            let message = format!("its link type {other:?} is not supported; capture on Ethernet or raw IP");
            return Err(refuse(message));
        }
    };
    let fraction = match header.ts_resolution {
        pcap_file::TsResolution::MicroSecond => 1_000,
        pcap_file::TsResolution::NanoSecond => 1,
    };
    let mut packets = Vec::new();
    while !rest.is_empty() {
        if packets.len() >= MAX_RECORDS {
            return Err(refuse(format!("more than {MAX_RECORDS} packets")));
        }
        // The raw form: the checked one refuses captures that kept only the head of each packet.
        let number = packets.len() + 1;
        let (next, packet) =
            parser.next_raw_packet(rest).map_err(|error| refuse(format!("packet {number}: {error}")))?;
        let size = Bytes::new(u64::from(packet.orig_len).saturating_sub(link_header));
        check_size(number, size).map_err(refuse)?;
        // Below 2^32 s and 2^32 x 1000 ns: far from 2^64 ns.
        let nanos = u64::from(packet.ts_sec) * 1_000_000_000 + u64::from(packet.ts_frac) * fraction;
        packets.push((nanos, size));
        rest = next;
    }
    packets.sort_by_key(|(nanos, _)| *nanos);
    let Some(&(first, _)) = packets.first() else {
        return Err(refuse("there are no packets in it".to_owned()));
    };
    Ok(packets.into_iter().map(|(nanos, size)| (Span::from_nanos(nanos - first), size)).collect())
}

/// Refuses what no datagram can stand for. One without payload is a packet like others.
fn check_size(number: usize, size: Bytes) -> Result<(), String> {
    if size < UDP_HEADER {
        return Err(format!(
            "packet {number} has {size} from the network layer on, and a datagram has {UDP_HEADER} of headers; take \
             the packet out, for example with `editcap in.pcap out.pcap {number}`"
        ));
    }
    if size > MAX_PACKET {
        return Err(format!(
            "packet {number} has {size}, and a packet at most {MAX_PACKET}; capture with offloads off, for example \
             `ethtool -K eth0 gro off lro off tso off`"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use apportion_testing::properties::cases;
    use proptest::prelude::*;

    use super::*;

    /// A little-endian microsecond capture of (seconds, microseconds, size on the wire), each cut to 4 bytes.
    fn capture(link_type: u32, records: &[(u32, u32, u32)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut word = |word: u32| bytes.extend(word.to_le_bytes());
        word(0xa1b2_c3d4);
        word(2 | (4 << 16));
        [0, 0, 4, link_type].into_iter().for_each(&mut word);
        for (seconds, micros, size) in records {
            [*seconds, *micros, 4, *size, 0x4500_0000].into_iter().for_each(&mut word);
        }
        bytes
    }

    #[test]
    fn a_capture_gives_offsets_and_sizes_without_ethernet_headers() {
        let bytes = capture(1, &[(7, 999_999, 1514), (8, 5, 64), (8, 1, 114)]);
        // 8.000001 - 7.999999 = 2 us; 8.000005 - 7.999999 = 6 us.
        let at = |us, size| (Span::from_micros(us), Bytes::new(size));
        assert_eq!(&*packets(&bytes).unwrap(), [at(0, 1500), at(2, 100), at(6, 50)]);
        assert_eq!(packets(&capture(101, &[(1, 0, 40)])).unwrap()[0], at(0, 40));
    }

    #[test]
    fn a_datagram_without_payload_is_a_packet_of_its_headers() {
        let sizes = packets(&capture(1, &[(1, 0, 42), (1, 5, 42)])).unwrap();
        assert_eq!(sizes.iter().map(|(_, size)| size.get()).collect::<Vec<_>>(), [28, 28]);
    }

    #[test]
    fn a_bad_capture_is_refused_with_the_reason() {
        let error = |bytes: &[u8]| packets(bytes).unwrap_err().to_string();
        assert!(error(b"hello").starts_with("not a pcap file"), "{}", error(b"hello"));
        assert!(error(&capture(1, &[])).contains("no packets"));
        // The second packet, whatever the order of times; 54 - 14 is an acknowledgement, 41 - 14 less than headers.
        assert_eq!(
            error(&capture(1, &[(9, 0, 54), (0, 0, 41)])),
            "packet 2 has 27B from the network layer on, and a datagram has 28B of headers; take the packet out, for \
             example with `editcap in.pcap out.pcap 2`"
        );
        assert!(error(&capture(1, &[(0, 0, 14)])).starts_with("packet 1 has 0B"));
        let large = error(&capture(101, &[(0, 0, 40), (0, 1, 65_536)]));
        assert!(large.starts_with("packet 2 has 65536B") && large.contains("ethtool"), "{large}");
        assert!(error(&capture(105, &[(0, 0, 14)])).contains("is not supported"));
        let whole = capture(1, &[(0, 0, 100)]);
        assert!(error(&whole[..whole.len() - 1]).starts_with("packet 1: "));
    }

    #[test]
    fn a_delivery_trace_has_one_time_a_line() {
        let error = |text| delivery_trace(text).unwrap_err().to_string();
        assert_eq!(
            error("1\n\nx\n"),
            "line 3: `x` is not a time in milliseconds; write whole numbers such as 12"
        );
        assert_eq!(delivery_trace("5\nx").unwrap_err().line, Some(2));
        assert!(error("-1").starts_with("line 1: `-1` is not a time"));
        assert!(error("2\n1").starts_with("line 2: 1 ms comes after a later time"));
        assert!(error("").contains("there is no line"));
        assert!(error("0\n0\n").contains("ends at 0 ms"));
        assert_eq!(delivery_trace("\u{feff}5\r\n\n 5\n8").unwrap().mean().as_bit(), 4_512_000);
    }

    #[test]
    fn a_trace_has_one_frame_a_line() {
        assert_eq!(&*frames("# sizes\n1200\n\n 300 # B\n").unwrap(), [Bytes::new(1200), Bytes::new(300)]);
        assert_eq!(frames("1\n-5\n"), Err(FileError::new(2, "`-5` is not a number of bytes from 1")));
        assert_eq!(frames("\n"), Err(FileError::new(None, "there are no frames in it")));
    }

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn no_bytes_panic(head in 0usize..60, tail in proptest::collection::vec(any::<u8>(), 0..80)) {
            let mut bytes = capture(1, &[(1, 2, 100), (2, 3, 200)]);
            bytes.truncate(head);
            bytes.extend(tail);
            let _ = packets(&bytes);
        }
    }
}
