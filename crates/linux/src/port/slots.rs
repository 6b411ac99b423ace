//! Slots of memory that a socket shares with the kernel, which both sides go through in turn.
//!
//! Source: packet(7), Documentation/networking/packet_mmap.rst of Linux, which describes slots and their status. Of its versions the second:
//! a frame is there to be read as soon as it came. The third hands over blocks, and a block that is not full when a timer of a
//! millisecond or more ends; a gateway would add that to each packet on an idle link.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use super::socket::set_option;

/// What is asked of the kernel at once, so many pages in a row. Chosen: 39 slots for an MTU of 1500, of which a part of one is lost.
const BLOCK: usize = 1 << 16;
/// `TPACKET_V2` of linux/if_packet.h.
const VERSION: libc::c_int = 1;
/// Bytes of a slot before the frame at most: its header, an address, the header before a frame, and what aligns it.
const BEFORE: usize = 80;
/// Slots begin at cache lines.
const LINE: usize = 64;

/// The slots, and which is next.
pub(super) struct Slots {
    memory: NonNull<u8>,
    blocks: usize,
    /// Bytes of a slot.
    each: usize,
    next: usize,
}

impl Slots {
    /// Slots for frames of so many bytes, of so much memory, for what comes in or goes out (`PACKET_RX_RING`, `PACKET_TX_RING`) by a socket that has
    /// PACKET_VNET_HDR and no others.
    ///
    /// # Errors
    /// If the system has no such memory; it is a socket as others are then.
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

    /// Has a socket without slots again, which are not mapped any more. What waits at the socket is lost.
    ///
    /// # Errors
    /// The error of the system.
    pub fn give_up(socket: &OwnedFd, option: libc::c_int) -> io::Result<()> {
        let none = libc::tpacket_req { tp_block_size: 0, tp_block_nr: 0, tp_frame_size: 0, tp_frame_nr: 0 };
        set_option(socket, libc::SOL_PACKET, option, &none)
    }

    /// The number of the next one.
    pub const fn next(&self) -> usize {
        self.next
    }

    /// How many there are.
    pub const fn count(&self) -> usize {
        self.blocks * (BLOCK / self.each)
    }

    /// Where the slot is that comes so many after the next one.
    const fn place(&self, after: usize) -> *mut u8 {
        let (number, in_block) = ((self.next + after) % self.count(), BLOCK / self.each);
        self.memory.as_ptr().wrapping_add(number / in_block * BLOCK + number % in_block * self.each)
    }

    /// Its status, which comes first in it.
    fn atomic(&self, after: usize) -> &AtomicU32 {
        // SAFETY: the slot is of this mapping, aligned to a cache line, and both sides access its status atomically.
        unsafe { AtomicU32::from_ptr(self.place(after).cast()) }
    }

    /// Its status. What the kernel wrote before it is seen.
    pub fn status(&self, after: usize) -> u32 {
        self.atomic(after).load(Ordering::Acquire)
    }

    /// Gives it this status, behind all that was written before.
    pub fn set_status(&mut self, after: usize, status: u32) {
        self.atomic(after).store(status, Ordering::Release);
    }

    /// The header and all bytes of the next slot, if its status has this bit, by which it is the process's; with the status.
    pub fn read(&self, bit: u32) -> Option<(u32, libc::tpacket2_hdr, &[u8])> {
        let status = self.status(0);
        if status & bit == 0 {
            return None;
        }
        let place = self.place(0);
        // SAFETY: such a slot begins with this header of integers, which the kernel wrote before the status.
        let header: libc::tpacket2_hdr = unsafe { ptr::read(place.cast()) };
        // SAFETY: the slot is of this mapping; the kernel leaves it alone until its status changes, which takes `&mut self`.
        Some((status, header, unsafe { std::slice::from_raw_parts(place, self.each) }))
    }

    /// The header and what follows it of the slot that comes so many after the next one, to be written, if its status is `status`, by which it is
    /// the process's.
    pub fn write(&mut self, after: usize, status: u32) -> Option<(&mut libc::tpacket2_hdr, &mut [u8])> {
        if self.status(after) != status {
            return None;
        }
        let (place, header) = (self.place(after), size_of::<libc::tpacket2_hdr>());
        // SAFETY: the slot is of this mapping, aligned, and every pattern of bits is such a header; the kernel leaves it alone until its
        // status changes, which takes `&mut self` again.
        let of = unsafe { &mut *place.cast::<libc::tpacket2_hdr>() };
        // SAFETY: the same of the bytes behind the header.
        let rest = unsafe { std::slice::from_raw_parts_mut(place.wrapping_add(header), self.each - header) };
        Some((of, rest))
    }

    /// Goes on by so many.
    pub const fn advance(&mut self, count: usize) {
        self.next = (self.next + count) % self.count();
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`, to which nothing refers any more.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.blocks * BLOCK) };
    }
}
