//! The system calls of a [`Machine`], behind the traits of `apportion-linux`.

use std::io::{self, Write};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use apportion_core::units::{Span, Time};
use apportion_linux::devices::Devices;
use apportion_linux::files::Files;
use apportion_linux::frame_io::{FrameIo, Socket};
use apportion_linux::netlink::{Device, NetlinkError, Offloads};
use apportion_linux::pool::{HEAD, Pool};
use apportion_linux::port::{BATCH, PortCounts, PortError, Received, RingSize, count_received, send_all};
use nix::errno::Errno;

use super::machine::{Fault, Machine, SimDevice};
use crate::gateway::log::{Lost, Output, write_to};

/// The machine, shared by all its users.
#[derive(Clone, Debug)]
pub(super) struct System(Arc<Mutex<Machine>>);

impl System {
    pub fn new(machine: Machine) -> Self {
        Self(Arc::new(Mutex::new(machine)))
    }

    pub fn machine(&self) -> MutexGuard<'_, Machine> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A packet socket.
#[derive(Debug)]
pub(super) struct SimSocket {
    index: u32,
    hardware: [u8; 6],
    /// Whether the socket has reported that its device is gone, which it does once.
    has_said: bool,
}

impl Socket for SimSocket {
    fn hardware(&self) -> [u8; 6] {
        self.hardware
    }
    fn has_ring(&self) -> bool {
        true
    }
}

/// The ports of a gateway.
#[derive(Debug)]
pub(super) struct SimIo {
    system: System,
    sockets: [Option<SimSocket>; 2],
    is_watched: [bool; 2],
    counts: [PortCounts; 2],
}

impl SimIo {
    pub fn new(system: System, sockets: [SimSocket; 2]) -> Self {
        Self { system, sockets: sockets.map(Some), is_watched: [true; 2], counts: Default::default() }
    }
}

impl FrameIo for SimIo {
    type Socket = SimSocket;

    fn now(&self) -> Time {
        self.system.machine().now
    }

    fn port_count(&self) -> usize {
        2
    }

    fn receive(&mut self, port: u32, pool: &mut Pool, frames: &mut Vec<Received>) -> io::Result<bool> {
        let counts = &mut self.counts[port as usize];
        let Some(socket) = &mut self.sockets[port as usize] else { return Ok(false) };
        let mut machine = self.system.machine();
        counts.missed += machine.take_missed(socket.index);
        if machine.by_index(socket.index).is_none() && !socket.has_said {
            socket.has_said = true;
            return count_received(Err(Errno::ENETDOWN.into()), counts).map(|_| false);
        }
        for _ in 0..BATCH {
            if !machine.has_frames(socket.index) {
                break;
            }
            let Some(buffer) = pool.take(port as u16) else { break };
            let Some(frame) = machine.read(socket.index) else { break };
            let bytes = pool.bytes_mut(buffer);
            bytes[..HEAD].fill(0);
            bytes[HEAD..HEAD + frame.len()].copy_from_slice(&frame);
            frames.push(Received { buffer, start: HEAD as u8, length: frame.len() as u16 });
            counts.received += 1;
        }
        Ok(machine.has_frames(socket.index))
    }

    fn send(&mut self, port: u32, pool: &mut Pool, frames: &[Received]) -> io::Result<usize> {
        let Some(socket) = &self.sockets[port as usize] else {
            self.give_up(port, frames.len() as u64);
            return Ok(frames.len());
        };
        let mut machine = self.system.machine();
        let sent = send_all(
            frames.len(),
            |_| 1,
            &mut self.counts[port as usize],
            |done| {
                let mut left = frames[done..].iter().map(|frame| {
                    let start = usize::from(frame.start);
                    pool.bytes(frame.buffer)[start..start + usize::from(frame.length)].to_vec()
                });
                machine.send(socket.index, &mut left)
            },
        )?;
        Ok(sent.done)
    }

    fn give_up(&mut self, port: u32, frames: u64) {
        self.counts[port as usize].unsent += frames;
    }

    fn room(&self, port: u32, pool: &Pool) -> usize {
        self.sockets[port as usize].as_ref().map_or(usize::MAX, |_| pool.room(port as u16) as usize)
    }

    fn counts(&mut self, port: u32) -> PortCounts {
        self.counts[port as usize]
    }

    fn replace(&mut self, port: u32, socket: Option<SimSocket>, _pool: &mut Pool) -> Result<(), Errno> {
        self.sockets[port as usize] = socket;
        self.is_watched[port as usize] = true;
        Ok(())
    }

    fn watch(&mut self, port: u32, watched: bool) -> Result<(), Errno> {
        self.is_watched[port as usize] = watched;
        Ok(())
    }

    fn wait(
        &mut self,
        span: Option<Span>,
        _wake: Option<BorrowedFd<'_>>,
        ready: &mut Vec<u32>,
    ) -> Result<bool, Errno> {
        let mut machine = self.system.machine();
        let until = span.map_or(Time::MAX, |span| machine.now + span);
        let is_woken = machine.wait(until);
        for (port, (socket, is_watched)) in (0..).zip(self.sockets.iter().zip(self.is_watched)) {
            let Some(socket) = socket.as_ref().filter(|_| is_watched) else { continue };
            let has_gone = machine.by_index(socket.index).is_none() && !socket.has_said;
            if has_gone || machine.has_frames(socket.index) {
                ready.push(port);
            }
        }
        Ok(is_woken)
    }
}

impl System {
    fn find(&self, doing: &str, is_it: impl Fn(&SimDevice) -> bool) -> Result<u32, NetlinkError> {
        let machine = self.machine();
        let refused =
            |errno| NetlinkError::Refused { doing: doing.to_owned(), errno, message: String::new() };
        if machine.has(Fault::Netlink, None) {
            return Err(refused(Errno::EBUSY));
        }
        let found = machine.devices.iter().find(|device| is_it(device));
        found.map(|found| found.device.index).ok_or_else(|| refused(Errno::ENODEV))
    }

    fn change<T>(&self, name: &str, change: impl FnOnce(&mut SimDevice) -> T) -> Result<T, NetlinkError> {
        let index = self.find("find a device", |device| device.name == name)?;
        let mut machine = self.machine();
        machine.by_index(index).map(change).ok_or(NetlinkError::Open(Errno::EIO))
    }
}

impl Devices for System {
    type Socket = SimSocket;

    fn device(&mut self, name: &str) -> Result<Device, NetlinkError> {
        self.change(name, |found| found.device)
    }

    fn device_at(&mut self, index: u32) -> Result<Device, NetlinkError> {
        self.find("find a device", |device| device.device.index == index)?;
        let found = self.machine().by_index(index).map(|found| found.device);
        found.ok_or(NetlinkError::Open(Errno::EIO))
    }

    fn offloads(&mut self, name: &str) -> Result<Offloads, NetlinkError> {
        self.change(name, |found| found.offloads)
    }

    fn turn_off_merging(&mut self, name: &str) -> Result<Offloads, NetlinkError> {
        self.change(name, |found| {
            (found.offloads.gro, found.offloads.lro) = (false, false);
            found.offloads
        })
    }

    fn restore(&mut self, name: &str, before: &Offloads, segments: u32) -> Result<(), NetlinkError> {
        self.change(name, |found| {
            let on = &mut found.offloads;
            for (is_on, was_on) in [
                (&mut on.tso, before.tso),
                (&mut on.gso, before.gso),
                (&mut on.gro, before.gro),
                (&mut on.lro, before.lro),
            ] {
                *is_on |= was_on;
            }
            if segments > 0 {
                found.device.gso_max_segs = segments;
            }
        })
    }

    fn open_port(&mut self, index: u32, _ring: RingSize) -> Result<SimSocket, PortError> {
        let mut machine = self.machine();
        let fail = |errno: Errno| PortError { interface: index, step: "open", source: errno.into() };
        if machine.has(Fault::Sockets, None) {
            return Err(fail(Errno::EMFILE));
        }
        let device = machine.by_index(index).ok_or_else(|| fail(Errno::ENODEV))?;
        Ok(SimSocket { index, hardware: [2, 0, 0, 0, 0, device.port as u8], has_said: false })
    }
}

impl Files for System {
    fn read(&self, path: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
        let machine = self.machine();
        if machine.has(Fault::DiskUnreadable, None) {
            return Err(Errno::EIO.into());
        }
        Ok(machine.files.get(path).map(|bytes| bytes.iter().copied().take(most as usize).collect()))
    }

    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut machine = self.machine();
        if machine.has(Fault::DiskFull, None) {
            return Err(Errno::ENOSPC.into());
        }
        machine.files.insert(path.to_owned(), bytes.to_vec());
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.machine().files.remove(path);
        Ok(())
    }
}

/// The log of the gateway.
#[derive(Clone, Debug)]
pub(super) struct SimLog {
    pub system: System,
    pub lost: Arc<Lost>,
}

impl Write for SimLog {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let lost = Arc::clone(&self.lost);
        let text = format!("{} {}", self.system.machine().now, String::from_utf8_lossy(line).trim_end());
        self.system.machine().note(text);
        write_to(&mut SimOutput(&self.system), line, false, &lost);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct SimOutput<'a>(&'a System);

impl Output for SimOutput<'_> {
    fn has_room(&self) -> bool {
        let mut machine = self.0.machine();
        let is_full = machine.has(Fault::Log, None) && machine.below(4) == 0;
        machine.lines.1 += u64::from(is_full);
        !is_full
    }
}

impl Write for SimOutput<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut machine = self.0.machine();
        if machine.has(Fault::Log, None) {
            machine.lines.1 += 1;
            return Err([Errno::ENOSPC, Errno::EPIPE, Errno::EIO][machine.below(3) as usize].into());
        }
        machine.lines.0 += 1;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
