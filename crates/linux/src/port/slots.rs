//! Slots of memory that a socket shares with the kernel; both sides go through them in turn.
//!
//! Source: packet(7), Documentation/networking/packet_mmap.rst of Linux, which describes slots and their
//! status. This is the second version of the interface, in which a frame can be read as soon as it arrives.
//! The third version hands over blocks, and a block that is not full only when a timer of a millisecond or
//! more ends, which a gateway would add to each packet on an idle link.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use super::socket::set_option;

/// Bytes of contiguous pages that are requested at once. Chosen: 39 slots for an MTU of 1500, which waste a
/// part of one.
const BLOCK: usize = 1 << 16;
/// `TPACKET_V2` of linux/if_packet.h.
const VERSION: libc::c_int = 1;
/// Maximum bytes of a slot before the frame: its header, an address, the header before a frame, and
/// alignment.
const BEFORE: usize = 80;
/// Alignment of slots: cache lines.
const LINE: usize = 64;

/// The slots, and the index of the next one.
pub(super) struct Slots {
    memory: NonNull<u8>,
    blocks: usize,
    /// Bytes of a slot.
    each: usize,
    next: usize,
}

impl Slots {
    /// Slots for frames of `longest` bytes, of this much memory, for frames that enter or leave
    /// (`PACKET_RX_RING`, `PACKET_TX_RING`) by a socket that has PACKET_VNET_HDR and no other slots.
    ///
    /// # Errors
    /// If the system has no such memory; the socket is an ordinary one then.
    pub fn new(socket: &OwnedFd, option: libc::c_int, longest: usize, memory: usize) -> io::Result<Self> {
        let each = (BEFORE + longest).next_multiple_of(LINE).min(BLOCK);
        let blocks = memory.div_ceil(BLOCK).max(1);
        set_option(socket, libc::SOL_PACKET, libc::PACKET_VERSION, &VERSION)?;
        let number = |count: usize| u32::try_from(count).map_err(|_| io::ErrorKind::OutOfMemory);
        let request = libc::tpacket_req {
            tp_block_size: number(BLOCK)?,
            tp_block_nr: number(blocks)?,
            tp_frame_size: number(each)?,
            tp_frame_nr: number(blocks * (BLOCK / each))?,
        };
        set_option(socket, libc::SOL_PACKET, option, &request)?;
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_POPULATE);
        // SAFETY: a new mapping, at a place that the kernel chooses.
        let memory =
            unsafe { libc::mmap(ptr::null_mut(), blocks * BLOCK, protection, flags, socket.as_raw_fd(), 0) };
        if memory == libc::MAP_FAILED {
            let error = io::Error::last_os_error();
            Self::give_up(socket, option)?;
            return Err(error);
        }
        let memory = NonNull::new(memory.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { memory, blocks, each, next: 0 })
    }

    /// Removes the slots of a socket, which are not mapped any more. Frames that wait at the socket are lost.
    ///
    /// # Errors
    /// The error of the system.
    pub fn give_up(socket: &OwnedFd, option: libc::c_int) -> io::Result<()> {
        let none = libc::tpacket_req { tp_block_size: 0, tp_block_nr: 0, tp_frame_size: 0, tp_frame_nr: 0 };
        set_option(socket, libc::SOL_PACKET, option, &none)
    }

    /// The index of the next slot.
    pub const fn next(&self) -> usize {
        self.next
    }

    /// The number of slots.
    pub const fn count(&self) -> usize {
        self.blocks * (BLOCK / self.each)
    }

    /// The address of the slot `after` places after the next one.
    const fn place(&self, after: usize) -> *mut u8 {
        let (number, in_block) = ((self.next + after) % self.count(), BLOCK / self.each);
        self.memory.as_ptr().wrapping_add(number / in_block * BLOCK + number % in_block * self.each)
    }

    /// The status of a slot, its first field.
    fn atomic(&self, after: usize) -> &AtomicU32 {
        // SAFETY: the slot is in this mapping, aligned to a cache line, and both sides access its status
        // atomically.
        unsafe { AtomicU32::from_ptr(self.place(after).cast()) }
    }

    /// The status of a slot. Earlier writes of the kernel are visible.
    pub fn status(&self, after: usize) -> u32 {
        self.atomic(after).load(Ordering::Acquire)
    }

    /// Sets the status of a slot, after all earlier writes.
    pub fn set_status(&mut self, after: usize, status: u32) {
        self.atomic(after).store(status, Ordering::Release);
    }

    /// The status, the header and all bytes of the next slot, if its status has this bit, which makes it the
    /// process's.
    pub fn read(&self, bit: u32) -> Option<(u32, libc::tpacket2_hdr, &[u8])> {
        let status = self.status(0);
        if status & bit == 0 {
            return None;
        }
        let place = self.place(0);
        // SAFETY: such a slot begins with this header of integers, which the kernel wrote before the status.
        let header: libc::tpacket2_hdr = unsafe { ptr::read(place.cast()) };
        // SAFETY: the slot is in this mapping; the kernel leaves it alone until its status changes, which
        // takes `&mut self`.
        Some((status, header, unsafe { std::slice::from_raw_parts(place, self.each) }))
    }

    /// The header of the slot `after` places after the next one, and the bytes that follow, to be written, if
    /// its status is `status`, which makes it the process's.
    pub fn write(&mut self, after: usize, status: u32) -> Option<(&mut libc::tpacket2_hdr, &mut [u8])> {
        if self.status(after) != status {
            return None;
        }
        let (place, header) = (self.place(after), size_of::<libc::tpacket2_hdr>());
        // SAFETY: the slot is in this mapping, aligned, and every bit pattern is a valid header; the kernel
        // leaves it alone until its status changes, which takes `&mut self` again.
        let of = unsafe { &mut *place.cast::<libc::tpacket2_hdr>() };
        // SAFETY: as above, for the bytes after the header.
        let rest = unsafe { std::slice::from_raw_parts_mut(place.wrapping_add(header), self.each - header) };
        Some((of, rest))
    }

    /// Advances by `count` slots.
    pub const fn advance(&mut self, count: usize) {
        self.next = (self.next + count) % self.count();
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`, which is no longer referenced.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.blocks * BLOCK) };
    }
}
