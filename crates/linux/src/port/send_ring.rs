//! A ring for sending: many frames leave by one system call, in memory shared with the kernel.
//!
//! Source: packet(7), `PACKET_TX_RING`; Documentation/networking/packet_mmap.rst of Linux.
//!
//! It has a socket of its own, because a socket with such slots sends only by them: super-packets, frames
//! longer than a slot, and frames without a free slot leave by the other socket. Both hand frames over within
//! the call, so their order stays.
//!
//! The header before each frame declares all of it as headers: the kernel copies that part, and would refer
//! to the memory of a slot for the rest. A slot is free again when the device has sent its frame.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::ptr;

use super::ring::RingSize;
use super::segment::{VNET_HEADER, VnetHeader};
use super::slots::Slots;
use super::socket::{bind, check, packet_socket, set_send_options};

/// Bytes of all slots. Chosen: 312 slots with an MTU of 1500, as many frames as a device holds that reports
/// sent frames each 0.01 ms at a million frames a second, and some batches.
const MEMORY: usize = 1 << 19;
/// Fewer frames leave by the other socket. Chosen: sending one by one costs half a microsecond more per
/// frame, about as much as another system call.
pub(super) const LEAST: usize = 4;

/// A socket with slots that the kernel empties.
pub(super) struct SendRing {
    socket: OwnedFd,
    slots: Slots,
    longest: usize,
}

impl SendRing {
    /// A ring at the interface with this index.
    ///
    /// # Errors
    /// If the system has no such memory.
    pub fn new(interface: u32, size: RingSize) -> io::Result<Self> {
        let socket = packet_socket()?;
        set_send_options(&socket).map_err(|(_, error)| error)?;
        let longest = size.longest.get() as usize;
        let slots = Slots::new(&socket, libc::PACKET_TX_RING, longest, MEMORY)?;
        // The socket receives nothing.
        bind(&socket, interface, 0)?;
        Ok(Self { socket, slots, longest })
    }

    /// Whether a slot holds frames of this length.
    pub const fn holds(&self, length: usize) -> bool {
        length <= self.longest
    }

    /// Sends the first of these frames, which fit slots, with their headers. Returns how many; none if no
    /// slot is free.
    ///
    /// # Errors
    /// The error of the first frame.
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
        // SAFETY: the call gets no bytes.
        let result = check(unsafe {
            libc::sendto(self.socket.as_raw_fd(), ptr::null(), 0, libc::MSG_DONTWAIT, ptr::null(), 0) as _
        });
        let is_taken = |after: &usize| {
            !matches!(self.slots.status(*after), libc::TP_STATUS_SEND_REQUEST | libc::TP_STATUS_WRONG_FORMAT)
        };
        let taken = (0..filled).take_while(is_taken).count();
        // The kernel continues at the first slot that it did not take, and must not find it.
        (taken..filled).for_each(|after| self.slots.set_status(after, libc::TP_STATUS_AVAILABLE));
        self.slots.advance(taken);
        if taken > 0 { Ok(taken) } else { result.and(Err(io::Error::from_raw_os_error(libc::EAGAIN))) }
    }
}
