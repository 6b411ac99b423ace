//! Frames that leave by memory shared with the kernel: many by one system call, of which the kernel reads nothing else.
//!
//! Source: packet(7), `PACKET_TX_RING`; Documentation/networking/packet_mmap.rst of Linux.
//!
//! It has a socket of its own, since a socket with such slots sends by them only: super-packets, frames longer than a slot, and those
//! for which no slot is free leave by the other one. Both hand frames over within the call, so their order stays.
//!
//! The header before each frame says that all of it is headers: the kernel copies that part, and would refer to the memory of a
//! slot for the rest. A slot is free again when the device has sent its frame.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::ptr;

use super::ring::RingSize;
use super::segment::{VNET_HEADER, VnetHeader};
use super::slots::Slots;
use super::socket::{bind, check, packet_socket, set_send_options};

/// What the slots take. Chosen: 312 slots with an MTU of 1500, as many as a device that tells of every hundredth of a millisecond what it has sent has
/// in hand at a million frames a second, and some batches.
const MEMORY: usize = 1 << 19;
/// Fewer frames leave by the other socket. Chosen: one by one that costs half a microsecond more, about as much as another system call.
pub(super) const LEAST: usize = 4;

/// A socket with slots that the kernel empties.
pub(super) struct SendRing {
    socket: OwnedFd,
    slots: Slots,
    longest: usize,
}

impl SendRing {
    /// Of the interface with this index.
    ///
    /// # Errors
    /// If the system has no such memory.
    pub fn new(interface: u32, size: RingSize) -> io::Result<Self> {
        let socket = packet_socket()?;
        set_send_options(&socket).map_err(|(_, error)| error)?;
        let longest = size.longest.get() as usize;
        let slots = Slots::new(&socket, libc::PACKET_TX_RING, longest, MEMORY)?;
        // It receives nothing.
        bind(&socket, interface, 0)?;
        Ok(Self { socket, slots, longest })
    }

    /// Whether a slot holds frames of this length.
    pub const fn holds(&self, length: usize) -> bool {
        length <= self.longest
    }

    /// Sends the first of these frames, which slots hold, with their headers; how many, none if no slot is free.
    ///
    /// # Errors
    /// That of the first frame.
    pub fn send<'a>(
        &mut self,
        frames: impl Iterator<Item = (&'a [u8; VNET_HEADER], &'a [u8])>,
    ) -> io::Result<usize> {
        let mut filled = 0;
        for (header, frame) in frames.take(self.slots.count()) {
            let Some((of, bytes)) = self.slots.write(filled, libc::TP_STATUS_AVAILABLE) else { break };
            let Some(bytes) = bytes.get_mut(..VNET_HEADER + frame.len()) else { break };
            let (before, to) = bytes.split_at_mut(VNET_HEADER);
            let header = VnetHeader { header_length: frame.len() as u16, ..VnetHeader::read(header) };
            before.copy_from_slice(&header.bytes());
            to.copy_from_slice(frame);
            of.tp_len = bytes.len() as u32;
            self.slots.set_status(filled, libc::TP_STATUS_SEND_REQUEST);
            filled += 1;
        }
        if filled == 0 {
            return Ok(0);
        }
        // SAFETY: it is given no bytes.
        let result = check(unsafe {
            libc::sendto(self.socket.as_raw_fd(), ptr::null(), 0, libc::MSG_DONTWAIT, ptr::null(), 0) as _
        });
        let is_taken = |after: &usize| {
            !matches!(self.slots.status(*after), libc::TP_STATUS_SEND_REQUEST | libc::TP_STATUS_WRONG_FORMAT)
        };
        let taken = (0..filled).take_while(is_taken).count();
        // The kernel goes on at the first that it did not take, and is not to find it.
        (taken..filled).for_each(|after| self.slots.set_status(after, libc::TP_STATUS_AVAILABLE));
        self.slots.advance(taken);
        if taken > 0 { Ok(taken) } else { result.and(Err(io::Error::from_raw_os_error(libc::EAGAIN))) }
    }
}
