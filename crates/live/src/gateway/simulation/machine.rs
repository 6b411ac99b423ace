//! A machine with two interfaces and faults in frames, devices, files, the log, and the clock.
//!
//! A seed determines all events. A fault begins, lasts up to three seconds, and ends; several can overlap.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::PathBuf;

use apportion_core::random::Stream;
use apportion_core::units::{Bytes, Span, Time};
use apportion_linux::netlink::{Device, Offloads};
use nix::errno::Errno;

/// Maximum of frames in the socket of a device before the kernel drops some.
const SOCKET: usize = 256;
/// Mean time between bursts of frames.
const BURST: Span = Span::from_millis(10);
/// Mean time between faults.
const CALM: Span = Span::from_millis(1_500);
/// The longest fault in milliseconds.
const LONGEST: u64 = 3_000;
/// Maximum of lines of the history.
const HISTORY: usize = 40;
/// Precedes the number in frames of the simulation.
const MAGIC: [u8; 8] = *b"simulate";
/// Offset of the payload: behind Ethernet, IPv4 and UDP.
const PAYLOAD: usize = 14 + 20 + 8;
/// Flows of each direction.
const FLOWS: u64 = 24;

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fault {
    /// The interface is deleted, and created again at the end.
    Deleted,
    /// The interface is deleted and created again at once.
    MadeAnew,
    Renamed,
    Down,
    /// The device's MTU changes, for good.
    Mtu,
    /// Another program turns offloads on, for good.
    OffloadsOn,
    /// The device takes no frames for now.
    Full,
    /// The device refuses some frames.
    Refuses,
    /// Requests of netlink fail.
    Netlink,
    /// No socket can be opened.
    Sockets,
    /// Files cannot be written.
    DiskFull,
    /// Files cannot be read.
    DiskUnreadable,
    /// The log takes no lines.
    Log,
    /// Notifications of changes are lost.
    Unnotified,
    /// No thread runs for a while.
    Stalled,
    /// The gateway is killed.
    Killed,
    /// Another configuration is applied, which is no fault.
    Reloaded,
}

impl Fault {
    const ALL: [Self; 17] = [
        Self::Deleted,
        Self::MadeAnew,
        Self::Renamed,
        Self::Down,
        Self::Mtu,
        Self::OffloadsOn,
        Self::Full,
        Self::Refuses,
        Self::Netlink,
        Self::Sockets,
        Self::DiskFull,
        Self::DiskUnreadable,
        Self::Log,
        Self::Unnotified,
        Self::Stalled,
        Self::Killed,
        Self::Reloaded,
    ];

    /// Whether it may keep frames from passing.
    const fn concerns_link(self) -> bool {
        !matches!(
            self,
            Self::DiskFull
                | Self::DiskUnreadable
                | Self::Log
                | Self::Mtu
                | Self::OffloadsOn
                | Self::Renamed
                | Self::Reloaded
        )
    }
}

/// A device of this machine, up with a carrier unless it is down.
#[derive(Debug)]
pub(super) struct SimDevice {
    pub port: usize,
    pub name: String,
    pub device: Device,
    pub offloads: Offloads,
    /// Frames received and not read.
    waiting: VecDeque<Vec<u8>>,
    /// Frames dropped by the kernel.
    missed: u64,
}

/// The offloads of a new device.
pub(super) const INITIAL: Offloads =
    Offloads { tso: true, gso: true, gro: true, lro: false, tx_checksum: true, rx_checksum: true };
pub(super) const INITIAL_SEGMENTS: u32 = 65_535;
pub(super) const NAMES: [&str; 2] = ["inside0", "outside0"];

#[derive(Debug)]
pub(super) struct Machine {
    pub now: Time,
    /// Number of calls of `wait`.
    pub steps: u64,
    stream: Stream,
    pub devices: Vec<SimDevice>,
    next_index: u32,
    pub files: BTreeMap<PathBuf, Vec<u8>>,
    next_burst: Time,
    next_fault: Time,
    /// Active faults, by port, with their ends.
    active: Vec<(Fault, usize, Time)>,
    /// The last time of any fault, and of one that may keep frames from passing.
    pub wrong: Time,
    pub link_wrong: Time,
    /// For the driver: the monitor has a message, the gateway is killed, or gets another configuration.
    pub notified: bool,
    pub killed: bool,
    pub reloaded: bool,
    /// The wait of the gateway ends at once.
    pub woken: bool,
    /// The number of the last frame that was read.
    ordinal: u64,
    /// The last frame of each flow that was sent, by port.
    sent: BTreeMap<(usize, u16), u64>,
    /// Frames for the gateway, and frames that it sent, since the machine has been well for a second, by the
    /// port by which they entered.
    pub passed: [(u64, u64); 2],
    /// Lines that the log took and refused.
    pub lines: (u64, u64),
    /// Number of times that each fault began.
    pub count: BTreeMap<Fault, u64>,
    /// Faults that are switched off.
    without: Vec<Fault>,
    /// The latest faults, with their begin and end, and lines of the log.
    pub history: VecDeque<String>,
}

impl Machine {
    pub fn new(seed: u64, without: &[Fault]) -> Self {
        let mut machine = Self {
            now: Time::from_secs(1),
            steps: 0,
            stream: Stream::new(seed, "faults"),
            devices: Vec::new(),
            next_index: 2,
            files: BTreeMap::new(),
            next_burst: Time::from_secs(1),
            next_fault: Time::from_secs(3),
            active: Vec::new(),
            wrong: Time::ZERO,
            link_wrong: Time::ZERO,
            notified: false,
            killed: false,
            reloaded: false,
            woken: false,
            ordinal: 0,
            sent: BTreeMap::new(),
            passed: [(0, 0); 2],
            lines: (0, 0),
            count: BTreeMap::new(),
            without: without.to_vec(),
            history: VecDeque::new(),
        };
        (0..2).for_each(|port| machine.create(port));
        machine
    }

    /// Adds a line to the history.
    pub fn note(&mut self, line: String) {
        if self.history.len() == HISTORY {
            self.history.pop_front();
        }
        self.history.push_back(line);
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.stream.below(n)
    }

    fn create(&mut self, port: usize) {
        let device = Device {
            index: self.next_index,
            is_up: true,
            is_running: true,
            no_arp: false,
            is_promiscuous: false,
            mtu: Bytes::new(1_500),
            gso_max_segs: INITIAL_SEGMENTS,
            is_loopback: false,
            is_ethernet: true,
            master: None,
        };
        self.next_index += 1;
        let (name, waiting) = (NAMES[port].to_owned(), VecDeque::new());
        self.devices.push(SimDevice { port, name, device, offloads: INITIAL, waiting, missed: 0 });
        self.notify();
    }

    fn notify(&mut self) {
        if !self.has(Fault::Unnotified, None) {
            self.notified = true;
        }
        self.woken = true;
    }

    /// Whether this fault is active, at this port if one is given.
    pub fn has(&self, fault: Fault, port: Option<usize>) -> bool {
        self.active.iter().any(|(it, at, _)| *it == fault && port.is_none_or(|port| port == *at))
    }

    pub fn by_index(&mut self, index: u32) -> Option<&mut SimDevice> {
        self.devices.iter_mut().find(|it| it.device.index == index)
    }

    /// Whether there has been no fault for a second.
    pub fn is_well(&self) -> bool {
        self.active.is_empty() && self.now.since(self.wrong) > Span::from_secs(1)
    }

    /// Whether no fault has kept frames from passing for a second. A full disk does not.
    pub fn can_pass(&self) -> bool {
        let concerns_link = |(fault, _, _): &(Fault, usize, Time)| fault.concerns_link();
        !self.active.iter().any(concerns_link) && self.now.since(self.link_wrong) > Span::from_secs(1)
    }

    /// Waits until `until` or an earlier event. Returns whether the wait ends.
    pub fn wait(&mut self, until: Time) -> bool {
        self.steps += 1;
        let ends = self.active.iter().map(|(_, _, end)| *end).min().unwrap_or(Time::MAX);
        let event = self.next_burst.min(self.next_fault).min(ends);
        if event > until {
            self.now = self.now.max(until);
        } else {
            self.now = self.now.max(event);
            self.end_faults();
            if self.now >= self.next_fault {
                self.next_fault = self.now + self.random_span(CALM);
                self.begin_fault();
            }
            if self.now >= self.next_burst {
                self.next_burst = self.now + self.random_span(BURST);
                self.burst();
            }
        }
        if !self.can_pass() {
            self.passed = [(0, 0); 2];
        }
        std::mem::take(&mut self.woken) || self.below(16) == 0
    }

    /// A random span with this mean, at most twice as long.
    fn random_span(&mut self, mean: Span) -> Span {
        Span::from_nanos(1 + self.below(2 * mean.as_nanos()))
    }

    fn burst(&mut self) {
        let port = self.below(2) as usize;
        for _ in 0..1 + self.below(12) {
            let frame = self.frame(port);
            let copies = if self.below(50) == 0 { 2 } else { 1 };
            let Some(device) = self.devices.iter_mut().find(|it| it.port == port) else { return };
            if !device.device.is_up {
                return;
            }
            self.passed[port].0 += u64::from(is_numbered(&frame));
            for _ in 0..copies {
                if device.waiting.len() < SOCKET {
                    device.waiting.push_back(frame.clone());
                } else {
                    device.missed += 1;
                }
            }
        }
    }

    /// A frame of a random flow, or rarely a malformed one.
    fn frame(&mut self, port: usize) -> Vec<u8> {
        let length = PAYLOAD + MAGIC.len() + 8 + self.below(1_400) as usize;
        let mut frame = vec![0; length];
        if self.below(40) == 0 {
            let garbage = self.below(length as u64) as usize;
            frame.truncate(garbage);
            frame.fill_with(|| self.below(256) as u8);
            return frame;
        }
        let flow = self.below(FLOWS) as u16;
        let ip = (length - 14) as u16;
        frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1 - port as u8, 2, 0, 0, 0, 0, port as u8, 8, 0]);
        let source = [10, port as u8, 0, flow as u8];
        let destination = [10, 1 - port as u8, 0, 1];
        frame[14..26].copy_from_slice(&[0x45, 0, (ip >> 8) as u8, ip as u8, 0, 1, 0, 0, 64, 17, 0, 0]);
        frame[26..30].copy_from_slice(&source);
        frame[30..34].copy_from_slice(&destination);
        frame[34..36].copy_from_slice(&(1_000 + flow).to_be_bytes());
        frame[36..38].copy_from_slice(&9_u16.to_be_bytes());
        frame[38..40].copy_from_slice(&(ip - 20).to_be_bytes());
        frame[PAYLOAD..PAYLOAD + 8].copy_from_slice(&MAGIC);
        frame
    }

    /// The next frame that the device with this index received; none if there is none.
    pub fn read(&mut self, index: u32) -> Option<Vec<u8>> {
        let mut frame = self.by_index(index)?.waiting.pop_front()?;
        self.ordinal += 1;
        let ordinal = self.ordinal;
        if is_numbered(&frame) {
            frame[PAYLOAD + 8..PAYLOAD + 16].copy_from_slice(&ordinal.to_be_bytes());
        }
        Some(frame)
    }

    pub fn has_frames(&mut self, index: u32) -> bool {
        self.by_index(index).is_some_and(|device| !device.waiting.is_empty())
    }

    /// Frames that the kernel dropped at this device since the last call.
    pub fn take_missed(&mut self, index: u32) -> u64 {
        self.by_index(index).map_or(0, |device| std::mem::take(&mut device.missed))
    }

    /// Sends some of these frames, at least one, by the device with this index. Returns how many.
    pub fn send(&mut self, index: u32, frames: &mut dyn Iterator<Item = Vec<u8>>) -> io::Result<usize> {
        let Some(device) = self.by_index(index) else { return Err(Errno::ENXIO.into()) };
        let port = device.port;
        if !device.device.is_up {
            return Err(Errno::ENETDOWN.into());
        }
        if self.has(Fault::Full, Some(port)) {
            return Err([Errno::EAGAIN, Errno::ENOBUFS, Errno::EINTR][self.below(3) as usize].into());
        }
        if self.has(Fault::Refuses, Some(port)) && self.below(3) == 0 {
            return Err([Errno::EMSGSIZE, Errno::EIO, Errno::EPERM][self.below(3) as usize].into());
        }
        let most = 1 + self.below(64) as usize;
        let mut sent = 0;
        for frame in frames.take(most) {
            self.check_sent(port, &frame);
            sent += 1;
        }
        Ok(sent)
    }

    /// Checks the order of each flow, and that no frame leaves twice.
    fn check_sent(&mut self, port: usize, frame: &[u8]) {
        if !is_numbered(frame) {
            return;
        }
        let flow = u16::from_be_bytes([frame[34], frame[35]]);
        let number = u64::from_be_bytes(frame[PAYLOAD + 8..PAYLOAD + 16].try_into().unwrap_or_default());
        let before = self.sent.insert((port, flow), number).unwrap_or(0);
        assert!(number > before, "flow {flow} at port {port}: frame {number} after {before}");
        assert_eq!(frame[29], flow as u8 - 232, "the frame of another flow");
        self.passed[1 - port].1 += 1;
    }
}

/// Faults.
impl Machine {
    /// Notes that a gateway has started.
    pub fn start(&mut self) {
        self.link_wrong = self.now;
        self.passed = [(0, 0); 2];
    }

    /// Ends all faults.
    pub fn heal(&mut self) {
        self.active.iter_mut().for_each(|(_, _, end)| *end = Time::ZERO);
        self.end_faults();
    }

    fn begin_fault(&mut self) {
        let fault = Fault::ALL[self.below(Fault::ALL.len() as u64) as usize];
        let port = self.below(2) as usize;
        if self.without.contains(&fault) || self.has(Fault::Deleted, Some(port)) {
            return;
        }
        let span = Span::from_millis(1 + self.below(LONGEST));
        let present = self.devices.iter().position(|it| it.port == port && it.name == NAMES[port]);
        match (fault, present) {
            (
                Fault::Deleted
                | Fault::MadeAnew
                | Fault::Renamed
                | Fault::Down
                | Fault::Mtu
                | Fault::OffloadsOn,
                None,
            ) => return,
            (Fault::Deleted, Some(at)) => {
                self.devices.remove(at);
                self.notify();
            }
            (Fault::MadeAnew, Some(at)) => {
                self.devices.remove(at);
                self.create(port);
            }
            // Until the gateway has found it, it counts as absent.
            (Fault::Renamed, Some(_)) if !self.can_pass() => return,
            (Fault::Renamed, Some(at)) => {
                self.devices[at].name = format!("renamed{port}");
                self.notify();
            }
            (Fault::Down, Some(at)) => {
                (self.devices[at].device.is_up, self.devices[at].device.is_running) = (false, false);
                self.notify();
            }
            (Fault::Mtu, Some(at)) => {
                self.devices[at].device.mtu = Bytes::new(1_280 + self.below(300));
                self.notify();
            }
            (Fault::OffloadsOn, Some(at)) => {
                self.devices[at].offloads.gro = true;
                self.devices[at].offloads.tso |= self.below(2) == 0;
                self.notify();
            }
            (Fault::Stalled, _) => {
                let stalled = Span::from_millis(self.below(5_000));
                self.now += stalled;
            }
            (Fault::Killed, _) => self.killed = true,
            (Fault::Reloaded, _) => self.reloaded = true,
            _ => (),
        }
        self.woken |= self.killed || self.reloaded;
        let lasts = !matches!(
            fault,
            Fault::MadeAnew
                | Fault::Mtu
                | Fault::OffloadsOn
                | Fault::Stalled
                | Fault::Killed
                | Fault::Reloaded
        );
        *self.count.entry(fault).or_default() += 1;
        let end = if lasts { self.now + span } else { self.now };
        if lasts {
            self.active.push((fault, port, end));
        }
        self.note(format!("{} to {end}: {fault:?} at port {port}", self.now));
        self.note_wrong(fault);
    }

    fn note_wrong(&mut self, fault: Fault) {
        if fault != Fault::Reloaded {
            self.wrong = self.now;
        }
        if fault.concerns_link() {
            self.link_wrong = self.now;
        }
    }

    fn end_faults(&mut self) {
        while let Some(at) = self.active.iter().position(|(_, _, end)| *end <= self.now) {
            let (fault, port, _) = self.active.remove(at);
            self.note_wrong(fault);
            match fault {
                Fault::Deleted => self.create(port),
                Fault::Renamed | Fault::Down => {
                    let is_down = self.has(Fault::Down, Some(port));
                    let is_renamed = self.has(Fault::Renamed, Some(port));
                    if let Some(device) = self.devices.iter_mut().find(|it| it.port == port) {
                        (device.device.is_up, device.device.is_running) = (!is_down, !is_down);
                        if !is_renamed {
                            NAMES[port].clone_into(&mut device.name);
                        }
                    }
                    self.notify();
                }
                _ => (),
            }
        }
    }
}

fn is_numbered(frame: &[u8]) -> bool {
    frame.get(PAYLOAD..PAYLOAD + 16).is_some_and(|payload| payload.starts_with(&MAGIC))
}
