//! Overload notifications of RAMP to applications (Li, Walpole, McNamee, Pu, Steere 2001, section 3.2.1): JSON lines over a
//! Unix socket.
//!
//! Readers only read: input from them stays unread in the socket's buffer. No call waits for a reader; one
//! that reads too slowly loses lines, and learns how many. Bounds: [`MAX_READERS`] readers with
//! [`MAX_WAITING`] bytes each beyond the buffer of their socket.

use std::io::{self, ErrorKind, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use apportion_core::queue::Overload;
use apportion_core::units::{Span, Time};
use apportion_scenario::direction::Direction;
use apportion_scenario::gateway::classifier::Prefix;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde_json::{Value, json};

use crate::frame::FlowTuple;
use crate::unix_socket;

/// Maximum of readers at once. Chosen: one for each of several applications.
const MAX_READERS: usize = 16;
/// Maximum of connections that are accepted before others get their turn.
const ACCEPTS: usize = 2 * MAX_READERS;
/// Maximum of bytes that wait for a reader. Chosen: some 250 lines.
const MAX_WAITING: usize = 64 << 10;
/// Pause of a listener that cannot accept, for example because no descriptors are free: it stays readable
/// meanwhile.
const REST: Span = Span::from_millis(100);

/// An overload notification of a queue.
#[derive(Clone, Debug)]
pub(crate) struct Notice {
    /// Time at which the queue issued it.
    pub at: Time,
    /// The name of the flow's rule, if it is known.
    pub direction: Direction,
    /// The name of the flow's rule, if one is known.
    pub rule: Option<String>,
    /// The packets of the flow.
    pub packets: FlowPackets,
    /// The notification.
    pub overload: Overload,
}

/// The packets of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlowPackets {
    /// Packets with these addresses and ports.
    Tuple(FlowTuple),
    /// Packets of an inside network.
    Network(Prefix),
    /// All packets that match the flow's rule.
    Rule,
}

impl FlowPackets {
    /// Text for people: `udp 192.0.2.1:5004 > 198.51.100.2:5004`, a network, or `all`.
    pub fn text(&self) -> String {
        match self {
            Self::Tuple(tuple) => tuple.to_string(),
            Self::Network(network) => network.to_string(),
            Self::Rule => "all".to_owned(),
        }
    }

    fn json(&self) -> Value {
        match self {
            Self::Tuple(tuple) => {
                let ports = tuple.ports();
                json!({
                    "protocol": tuple.protocol(),
                    "from": tuple.source().to_string(),
                    "from_port": ports.map(|ports| ports.0),
                    "to": tuple.destination().to_string(),
                    "to_port": ports.map(|ports| ports.1),
                })
            }
            Self::Network(network) => json!({ "network": network.to_string() }),
            Self::Rule => Value::Null,
        }
    }
}

impl Notice {
    fn line(&self) -> String {
        let line = json!({
            "at": self.at.as_secs_f64(),
            "direction": self.direction.name(),
            "rule": self.rule,
            "flow": self.packets.json(),
            "requirement_bps": self.overload.wanted.as_bit(),
            "allocation_bps": self.overload.granted.as_bit(),
            "is_over": self.overload.is_over,
        });
        format!("{line}\n")
    }
}

/// The readers of one socket.
#[derive(Debug)]
pub(crate) struct Readers {
    listener: UnixListener,
    readers: Vec<Reader>,
    /// The first line for each reader.
    greeting: String,
    /// No connections are accepted until this time.
    rests: Option<Time>,
    /// Whether the last attempt to accept failed.
    is_failing: bool,
}

/// One reader.
#[derive(Debug)]
struct Reader {
    stream: UnixStream,
    /// Bytes not sent yet.
    waiting: Vec<u8>,
    /// Lines lost since the last report of lost lines.
    lost: u64,
}

impl Readers {
    /// Opens a socket at `path`, which its owner and group can read; readers are greeted with `title`.
    ///
    /// # Errors
    /// If the socket cannot be opened.
    pub fn open(path: &Path, title: &str) -> io::Result<Self> {
        let listener = unix_socket::bind(path, 0o117)?;
        let greeting = json!({ "title": title, "version": env!("CARGO_PKG_VERSION") });
        Ok(Self {
            listener,
            readers: Vec::new(),
            greeting: format!("{greeting}\n"),
            rests: None,
            is_failing: false,
        })
    }

    /// Number of connected readers.
    pub const fn count(&self) -> usize {
        self.readers.len()
    }

    /// Descriptors to poll, with the events to wait for.
    pub fn interests(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        // poll(2) reports a reader that has gone in any case.
        let of_reader = |reader: &Reader| match reader.waiting.is_empty() {
            true => PollFlags::empty(),
            false => PollFlags::POLLOUT,
        };
        let readers = self.readers.iter().map(move |reader| (reader.stream.as_fd(), of_reader(reader)));
        let listener = self.rests.is_none().then(|| (self.listener.as_fd(), PollFlags::POLLIN));
        listener.into_iter().chain(readers)
    }

    /// Time at which the listener accepts again, if it pauses.
    pub const fn deadline(&self) -> Option<Time> {
        self.rests
    }

    /// Accepts readers, and sends them these notices. Returns the number of lines lost.
    pub fn write(&mut self, now: Time, notices: &[Notice]) -> u64 {
        self.accept(now);
        let lines: Vec<String> = match self.readers.is_empty() {
            true => Vec::new(),
            false => notices.iter().map(Notice::line).collect(),
        };
        let lost = self.readers.iter_mut().map(|reader| reader.take(&lines)).sum();
        self.readers.retain_mut(|reader| !reader.has_gone() && reader.write().is_ok());
        lost
    }

    /// Accepts waiting connections, and pauses after a failure.
    fn accept(&mut self, now: Time) {
        self.rests = self.rests.filter(|until| *until > now);
        if self.rests.is_some() {
            return;
        }
        let has_gone =
            |error: &io::Error| matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted);
        for _ in 0..ACCEPTS {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    self.is_failing = false;
                    self.add(stream);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if has_gone(&error) => (),
                Err(error) => {
                    if !self.is_failing {
                        tracing::warn!(%error, "readers of overload notifications cannot be accepted");
                    }
                    (self.rests, self.is_failing) = (Some(now + REST), true);
                    break;
                }
            }
        }
    }

    fn add(&mut self, stream: UnixStream) {
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        let mut reader = Reader { stream, waiting: Vec::new(), lost: 0 };
        if self.readers.len() == MAX_READERS {
            let refusal = json!({ "error": format!("{MAX_READERS} readers are connected; try again later") });
            reader.take(&[format!("{refusal}\n")]);
            let _ = reader.write();
            return;
        }
        reader.take(std::slice::from_ref(&self.greeting));
        self.readers.push(reader);
    }
}

impl Reader {
    /// Queues lines for the reader as far as there is room. Returns the number of lines lost.
    fn take(&mut self, lines: &[String]) -> u64 {
        let mut lost = 0;
        for line in lines {
            let told =
                if self.lost > 0 { format!("{}\n", json!({ "lost": self.lost })) } else { String::new() };
            if self.waiting.len() + told.len() + line.len() > MAX_WAITING {
                self.lost += 1;
                lost += 1;
                continue;
            }
            self.waiting.extend_from_slice(told.as_bytes());
            self.waiting.extend_from_slice(line.as_bytes());
            self.lost = 0;
        }
        lost
    }

    /// Sends as many bytes as the socket takes now.
    ///
    /// # Errors
    /// If the reader has gone.
    fn write(&mut self) -> io::Result<()> {
        while !self.waiting.is_empty() {
            match self.stream.write(&self.waiting) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => drop(self.waiting.drain(..written)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => (),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Whether the reader has closed its end.
    fn has_gone(&self) -> bool {
        let gone = PollFlags::POLLHUP | PollFlags::POLLERR;
        let mut watched = [PollFd::new(self.stream.as_fd(), PollFlags::empty())];
        let is_reported = poll(&mut watched, PollTimeout::ZERO).is_ok_and(|ready| ready > 0);
        is_reported && watched[0].revents().is_some_and(|events| events.intersects(gone))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Read as _};
    use std::os::fd::OwnedFd;

    use apportion_core::packet::FlowId;
    use apportion_core::units::Rate;
    use apportion_scenario::gateway::classifier::Headers;

    use super::*;
    use crate::gateway::log::logged;

    fn notice(packets: FlowPackets, rule: Option<&str>) -> Notice {
        let [wanted, granted] = [3, 2].map(Rate::from_mbit);
        let overload = Overload { flow: FlowId(7), wanted, granted, is_over: false };
        let rule = rule.map(ToOwned::to_owned);
        Notice { at: Time::from_millis(12_500), direction: Direction::Up, rule, packets, overload }
    }

    fn readers() -> (tempfile::TempDir, Readers) {
        let folder = tempfile::tempdir().unwrap();
        let readers = Readers::open(&folder.path().join("x"), "home").unwrap();
        (folder, readers)
    }

    fn connect(folder: &tempfile::TempDir) -> UnixStream {
        UnixStream::connect(folder.path().join("x")).unwrap()
    }

    #[test]
    fn a_reader_gets_each_notice_as_a_line() {
        let (folder, mut readers) = readers();
        let stream = connect(&folder);
        let headers = Headers {
            protocol: 17,
            source: "192.0.2.1".parse().unwrap(),
            destination: "192.0.2.2".parse().unwrap(),
            ports: Some((9, 5_004)),
            dscp: 0,
        };
        let tuple = FlowPackets::Tuple(FlowTuple::new(&headers).unwrap());
        let network = FlowPackets::Network(Prefix::new("x", "10.0.0.0".parse().unwrap(), 24).unwrap());
        let all =
            [notice(tuple, None), notice(network, Some("video")), notice(FlowPackets::Rule, Some("video"))];
        assert_eq!(readers.write(Time::ZERO, &all), 0);
        let lines = BufReader::new(stream).lines().take(4).map(|line| line.unwrap());
        let lines: Vec<Value> = lines.map(|line| serde_json::from_str(&line).unwrap()).collect();
        assert_eq!(lines[0]["title"], "home");
        let flow = json!({ "protocol": 17, "from": "192.0.2.1", "from_port": 9, "to": "192.0.2.2", "to_port": 5_004 });
        let expected = json!({
            "at": 12.5, "direction": "up", "rule": null, "flow": flow, "requirement_bps": 3_000_000,
            "allocation_bps": 2_000_000, "is_over": false
        });
        assert_eq!(lines[1], expected);
        assert_eq!(
            (&lines[2]["rule"], &lines[2]["flow"]),
            (&json!("video"), &json!({ "network": "10.0.0.0/24" }))
        );
        assert_eq!((&lines[3]["rule"], &lines[3]["flow"]), (&json!("video"), &Value::Null));
        assert_eq!(tuple.text(), "udp 192.0.2.1:9 > 192.0.2.2:5004");
    }

    #[test]
    fn a_slow_reader_loses_lines_is_told_how_many_and_delays_no_other() {
        let (folder, mut readers) = readers();
        let (slow, quick) = (connect(&folder), connect(&folder));
        quick.set_nonblocking(true).unwrap();
        let all = vec![notice(FlowPackets::Rule, Some("video")); 100];
        let (mut lost, mut got, mut sent) = (0, Vec::new(), 0);
        while lost == 0 {
            lost = readers.write(Time::ZERO, &all);
            let _ = (&quick).read_to_end(&mut got);
            sent += all.len() as u64;
            assert!(sent < 100_000, "its buffer has no bound");
        }
        readers.write(Time::ZERO, &[]);
        let _ = (&quick).read_to_end(&mut got);
        // The first line is the greeting.
        assert_eq!(got.iter().filter(|byte| **byte == b'\n').count() as u64, sent + 1);
        assert!(readers.readers.iter().all(|reader| reader.waiting.len() <= MAX_WAITING));
        // When the reader reads again, it learns of all lost lines.
        slow.set_nonblocking(true).unwrap();
        let mut read = |notices: &[Notice]| {
            assert_eq!(readers.write(Time::ZERO, notices), 0);
            let mut got = String::new();
            let _ = (&slow).read_to_string(&mut got);
            got
        };
        let mut lines = 0;
        loop {
            let got = read(&[]);
            lines += got.matches('\n').count() as u64;
            if got.is_empty() {
                break;
            }
        }
        assert_eq!(lines, sent - lost + 1);
        let told = read(&all[..1]);
        assert_eq!(told.lines().next(), Some(&*format!("{{\"lost\":{lost}}}")));
        assert_eq!(told.lines().count(), 2);
    }

    #[test]
    fn a_listener_that_cannot_accept_rests_and_logs_one_line() {
        // This socket does not listen and stays readable, like a listener without free descriptors.
        let (socket, mut other) = UnixStream::pair().unwrap();
        socket.set_nonblocking(true).unwrap();
        other.write_all(b"x").unwrap();
        let (folder, mut readers) = readers();
        let works = std::mem::replace(&mut readers.listener, OwnedFd::from(socket).into());
        let is_watched = |readers: &Readers| readers.interests().count() == 1;
        let at = |ms| Time::from_millis(ms);
        let log = logged(|| {
            assert!(is_watched(&readers));
            for round in 0..10 {
                readers.write(at(100 * round), &[]);
                assert!(!is_watched(&readers), "it would be readable at once");
                assert_eq!(readers.deadline(), Some(at(100 * round + 100)));
                readers.write(at(100 * round + 99), &[]);
                assert!(!is_watched(&readers));
            }
        });
        assert_eq!(log.lines().count(), 1, "{log}");
        assert!(log.contains("WARN readers of overload notifications cannot be accepted error="), "{log}");
        // When accepting works again, readers are served, and another failure is logged again.
        let broken = std::mem::replace(&mut readers.listener, works);
        let _reader = connect(&folder);
        readers.write(at(2_000), &[]);
        assert_eq!((readers.count(), readers.deadline()), (1, None));
        readers.listener = broken;
        let log = logged(|| assert_eq!(readers.write(at(3_000), &[]), 0));
        assert_eq!(log.lines().count(), 1, "{log}");
    }

    #[test]
    fn readers_that_have_gone_make_room_and_too_many_are_refused() {
        let (folder, mut readers) = readers();
        let all: Vec<UnixStream> = (0..MAX_READERS).map(|_| connect(&folder)).collect();
        readers.write(Time::ZERO, &[]);
        assert_eq!(readers.count(), MAX_READERS);
        let mut said = String::new();
        let mut more = connect(&folder);
        readers.write(Time::ZERO, &[]);
        more.read_to_string(&mut said).unwrap();
        assert!(said.contains("16 readers are connected; try again later"), "{said}");
        // A reader that only shuts down its sending side still reads.
        all[0].shutdown(std::net::Shutdown::Write).unwrap();
        readers.write(Time::ZERO, &[]);
        assert_eq!(readers.count(), MAX_READERS);
        drop(all);
        readers.write(Time::ZERO, &[]);
        assert_eq!(readers.count(), 0);
    }
}
