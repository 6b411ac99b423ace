//! A ring: frames that enter by memory shared with the kernel. It needs no system call for a batch, and for
//! each frame neither a kernel buffer, nor a control message, nor the lock of the socket.
//!
//! Source: packet(7), `PACKET_RX_RING`, `PACKET_COPY_THRESH`.
//!
//! A slot holds a frame of the MTU. A longer frame, mostly a super-packet, is cut at the slot's end, and is
//! whole in the queue of the socket, in the same order, from where a system call reads it. The memory is
//! committed at once and not paged out. When all slots are full the kernel drops arriving frames and counts
//! them.
//!
//! A frame is copied from its slot to a buffer, where it may wait: slots are filled in turn, so one that is
//! held for long would stop all frames after it.

use std::io;
use std::os::fd::OwnedFd;

use apportion_core::units::Bytes;

use super::segment::VNET_HEADER;
use super::slots::Slots;
use super::socket::set_option;
use super::tag::{self, Tag};

/// The size of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingSize {
    /// The longest frame that a slot holds; longer ones cost a system call.
    pub longest: Bytes,
    /// Memory of all slots, rounded to blocks of 64 KiB.
    pub memory: Bytes,
}

impl RingSize {
    /// The ring of a gateway's port with frames of at most this length. Chosen: 16 MiB, some 10,000 frames
    /// with an MTU of 1500: 20 ms at half a million a second.
    #[must_use]
    pub const fn of(longest: Bytes) -> Self {
        Self { longest, memory: Bytes::new(16 << 20) }
    }
}

/// Slots that the kernel fills.
pub(super) struct Ring {
    slots: Slots,
    size: RingSize,
    /// The next slot at the last check of whether the kernel has stopped.
    looked_at: Option<usize>,
}

/// A frame in its slot.
pub(super) struct Slot<'a> {
    /// Whether it is longer than the slot, and whole in the queue of the socket.
    pub is_queued: bool,
    /// The header before the frame.
    pub header: &'a [u8; VNET_HEADER],
    /// The bytes of the frame, or the first of them.
    pub frame: &'a [u8],
    pub length: usize,
    /// The tag that the kernel took out of it.
    pub tag: Option<Tag>,
}

impl Ring {
    /// Gives an unbound socket a ring; the socket has PACKET_VNET_HDR.
    ///
    /// # Errors
    /// If the system is short of memory, or has no such rings.
    pub fn new(socket: &OwnedFd, size: RingSize) -> io::Result<Self> {
        set_option(socket, libc::SOL_PACKET, libc::PACKET_COPY_THRESH, &1_i32)?;
        let [longest, memory] = [size.longest, size.memory].map(|bytes| bytes.get() as usize);
        let slots = Slots::new(socket, libc::PACKET_RX_RING, longest, memory)?;
        Ok(Self { slots, size, looked_at: None })
    }

    /// Whether the kernel has stopped: since the last check frames were `missed`, no slot was read, and none
    /// is filled. The kernel takes a slot for a frame before it finds that the header before frames cannot
    /// express its kind (a datagram of a virtual machine that is to be fragmented, SCTP). It drops that
    /// frame, and then waits for this slot for ever (`tpacket_rcv`, seen with Linux 6.18).
    pub fn has_stopped(&mut self, missed: u64) -> bool {
        let before = self.looked_at.replace(self.slots.next());
        missed > 0 && before == self.looked_at && self.first().is_none()
    }

    /// Recreates the ring for a socket whose ring has stopped.
    ///
    /// # Errors
    /// As for [`new`](Self::new); the socket is without a ring then.
    pub fn again(self, socket: &OwnedFd) -> io::Result<Self> {
        let Self { slots, size, .. } = self;
        drop(slots);
        Slots::give_up(socket, libc::PACKET_RX_RING)?;
        Self::new(socket, size)
    }

    /// The frame in the next slot, if the kernel has filled it.
    pub fn first(&self) -> Option<Slot<'_>> {
        let (status, of, bytes) = self.slots.read(libc::TP_STATUS_USER)?;
        let (before, rest) = bytes.split_at_checked(usize::from(of.tp_mac)).unwrap_or((bytes, &[]));
        Some(Slot {
            is_queued: status & libc::TP_STATUS_COPY != 0,
            header: before.last_chunk().unwrap_or(&[0; VNET_HEADER]),
            frame: rest.get(..of.tp_snaplen as usize).unwrap_or(rest),
            length: of.tp_len as usize,
            tag: tag::tag(status, of.tp_vlan_tpid, of.tp_vlan_tci),
        })
    }

    /// Number of slots in a row, from the next one, whose frames are in the queue of the socket; at most
    /// `most`.
    pub fn queued(&self, most: usize) -> usize {
        let both = libc::TP_STATUS_USER | libc::TP_STATUS_COPY;
        let is_queued = |after: &usize| self.slots.status(*after) & both == both;
        (0..most.min(self.slots.count())).take_while(is_queued).count()
    }

    /// Gives `count` slots back to the kernel, whose frames were read.
    pub fn release(&mut self, count: usize) {
        for _ in 0..count {
            self.slots.set_status(0, libc::TP_STATUS_KERNEL);
            self.slots.advance(1);
        }
    }
}
