//! Frames that come in by memory shared with the kernel: no system call for a batch, and for each frame neither a buffer of the
//! kernel that waits, nor a control message, nor the lock of the socket.
//!
//! Source: packet(7), `PACKET_RX_RING`, `PACKET_COPY_THRESH`; Documentation/networking/packet_mmap.rst of Linux, which describes slots and
//! their status. Of its versions the second: a frame is there to be read as soon as it came. The third hands over blocks, and a block
//! that is not full when a timer of a millisecond or more ends; a gateway would add that to each packet on an idle link.
//!
//! A slot holds a frame of the MTU. What is longer, mostly a super-packet, is in its slot up to the slot's end, and whole in the
//! queue of the socket, in the same order, from where it is read by a system call. The memory is taken at once and not paged out. When
//! all slots are full the kernel drops what comes and counts it.
//!
//! A frame is copied from its slot to a buffer, where it may wait: slots are filled in turn, so that one of a frame that waits long
//! would stop all that come after it.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use apportion_core::units::Bytes;

use super::segment::VNET_HEADER;
use super::socket::set_option;
use super::tag::{self, Tag};

/// What is asked of the kernel at once, so many pages in a row. Chosen: 39 slots for an MTU of 1500, of which a part of one is lost.
const BLOCK: usize = 1 << 16;
/// `TPACKET_V2` of linux/if_packet.h.
const VERSION: libc::c_int = 1;
/// Bytes of a slot before the frame at most: its header, an address, the header before a frame, and what aligns it.
const BEFORE: usize = 80;
/// Slots begin at cache lines.
const LINE: usize = 64;

/// How large a ring is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingSize {
    /// The longest frame that a slot holds; longer ones cost a system call.
    pub longest: Bytes,
    /// What all slots take, rounded to blocks of 64 KiB.
    pub memory: Bytes,
}

impl RingSize {
    /// For a port of a gateway whose frames are this long at most. Chosen: 16 MiB, some 10,000 frames with an MTU of 1500: 20 ms of
    /// half a million a second.
    #[must_use]
    pub const fn of(longest: Bytes) -> Self {
        Self { longest, memory: Bytes::new(16 << 20) }
    }
}

/// Slots shared with the kernel, which are read in turn.
pub(super) struct Ring {
    memory: NonNull<u8>,
    blocks: usize,
    /// Bytes of a slot.
    slot: usize,
    /// The one that is read next.
    next: usize,
}

/// A frame in its slot.
pub(super) struct Slot<'a> {
    /// Whether it is longer than the slot, and whole in the queue of the socket.
    pub is_queued: bool,
    /// The header before the frame.
    pub header: &'a [u8; VNET_HEADER],
    /// Its bytes, or the first of them.
    pub frame: &'a [u8],
    /// Its length.
    pub length: usize,
    /// The tag that the kernel took out of it.
    pub tag: Option<Tag>,
}

impl Ring {
    /// Gives a socket that is not bound yet a ring; it has PACKET_VNET_HDR.
    ///
    /// # Errors
    /// If the system does not: it is short of memory, or has no such rings.
    pub fn new(socket: &OwnedFd, size: RingSize) -> io::Result<Self> {
        let slot = (BEFORE + size.longest.get() as usize).next_multiple_of(LINE).min(BLOCK);
        let blocks = (size.memory.get() as usize).div_ceil(BLOCK).max(1);
        set_option(socket, libc::SOL_PACKET, libc::PACKET_VERSION, &VERSION)?;
        set_option(socket, libc::SOL_PACKET, libc::PACKET_COPY_THRESH, &1_i32)?;
        let number = |count: usize| u32::try_from(count).map_err(|_| io::ErrorKind::OutOfMemory);
        let request = libc::tpacket_req {
            tp_block_size: number(BLOCK)?,
            tp_block_nr: number(blocks)?,
            tp_frame_size: number(slot)?,
            tp_frame_nr: number(blocks * (BLOCK / slot))?,
        };
        set_option(socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, at a place that the kernel chooses.
        let memory = unsafe {
            libc::mmap(
                ptr::null_mut(),
                blocks * BLOCK,
                protection,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                socket.as_raw_fd(),
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            let error = io::Error::last_os_error();
            // Without slots it is a socket as others are.
            let none =
                libc::tpacket_req { tp_block_size: 0, tp_block_nr: 0, tp_frame_size: 0, tp_frame_nr: 0 };
            set_option(socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &none)?;
            return Err(error);
        }
        let memory = NonNull::new(memory.cast()).ok_or_else(io::Error::last_os_error)?;
        Ok(Self { memory, blocks, slot, next: 0 })
    }

    const fn slots(&self) -> usize {
        self.blocks * (BLOCK / self.slot)
    }

    /// Where the slot is that comes so many after the next one.
    const fn slot(&self, after: usize) -> *mut u8 {
        let (number, in_block) = ((self.next + after) % self.slots(), BLOCK / self.slot);
        let start = number / in_block * BLOCK + number % in_block * self.slot;
        self.memory.as_ptr().wrapping_add(start)
    }

    /// Its status, which comes first in it.
    fn status(&self, after: usize) -> &AtomicU32 {
        // SAFETY: the slot is of this mapping, aligned to a cache line, and both sides access its status atomically.
        unsafe { AtomicU32::from_ptr(self.slot(after).cast()) }
    }

    /// The frame in the next slot, if the kernel has filled it.
    pub fn first(&self) -> Option<Slot<'_>> {
        let status = self.status(0).load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        let slot = self.slot(0);
        // SAFETY: a filled slot begins with this header of integers, which the kernel has written before the status.
        let of: libc::tpacket2_hdr = unsafe { ptr::read(slot.cast()) };
        // SAFETY: the slot is of this mapping; the kernel leaves it alone until it is released, which takes `&mut self`.
        let bytes = unsafe { std::slice::from_raw_parts(slot, self.slot) };
        let start = usize::from(of.tp_mac);
        let (before, rest) = bytes.split_at_checked(start).unwrap_or((bytes, &[]));
        Some(Slot {
            is_queued: status & libc::TP_STATUS_COPY != 0,
            header: before.last_chunk().unwrap_or(&[0; VNET_HEADER]),
            frame: rest.get(..of.tp_snaplen as usize).unwrap_or(rest),
            length: of.tp_len as usize,
            tag: tag::tag(status, of.tp_vlan_tpid, of.tp_vlan_tci),
        })
    }

    /// How many slots in a row, from the next one, hold frames that are in the queue of the socket; `most` at most.
    pub fn queued(&self, most: usize) -> usize {
        let both = libc::TP_STATUS_USER | libc::TP_STATUS_COPY;
        let is_queued = |after: &usize| self.status(*after).load(Ordering::Acquire) & both == both;
        (0..most.min(self.slots())).take_while(is_queued).count()
    }

    /// Gives so many slots back to the kernel, of frames that were read.
    pub fn release(&mut self, count: usize) {
        for _ in 0..count {
            self.status(0).store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.next = (self.next + 1) % self.slots();
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`, to which nothing refers any more.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.blocks * BLOCK) };
    }
}
