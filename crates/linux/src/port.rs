//! A packet socket on one interface: frames in and out, in batches.
//!
//! packet(7) with PACKET_VNET_HDR: a header before each frame says whether its checksum is still to be
//! finished, which is passed through untouched, and whether it is a super-packet of segmentation offload,
//! which is cut into its segments, because as one packet it would make every queue and share wrong. A VLAN
//! tag that the kernel took out comes in auxiliary data and is put back.
//!
//! Consecutive segments of a TCP connection leave as one super-packet, where the device takes such ([`merge`]).
//!
//! Frames come in by memory shared with the kernel ([`RingSize`]), from which they are copied to buffers, or by system calls into
//! buffers, and are written from those without a copy of ours. What of a super-packet does not fit into its buffer comes in an area of
//! the port's own, which takes memory only then. Cost: a system call per batch of up to [`BATCH`] frames that leave or come in without such memory,
//! and what the kernel takes for each; a copy of each super-packet.

#![expect(unsafe_code, reason = "recvmmsg(2), sendmmsg(2) and packet(7): reused buffers, shared memory")]

use std::io;
use std::mem::zeroed;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::ptr;

use nix::sys::socket::{LinkAddr, getsockname};

use crate::pool::{BufferId, Pool};
use consent::Consent;
use merge::Plan;
use ring::Ring;
use segment::NEEDS_CHECKSUM;
use send::Step;
use send_ring::SendRing;
use socket::{bind, newly_missed, packet_socket, set_option, set_send_options};

mod consent;
mod errors;
pub mod merge;
pub mod pair;
mod receive;
mod ring;
pub mod segment;
mod send;
mod send_ring;
mod slots;
mod socket;
mod tag;

pub use errors::{Sent, count_received, send_all};
pub use ring::RingSize;

/// Maximum of frames in a system call. Chosen: above 64 nothing is gained, measured from 1 to 256.
pub const BATCH: usize = 64;
/// Asked for; without privilege the system gives what net.core.rmem_max says.
const RECEIVE_BUFFER: libc::c_int = 16 << 20;
/// In the header before a frame.
const GSO_TYPE: usize = 1;
/// A control message with `struct tpacket_auxdata`, of 20 bytes.
const CONTROL: usize = 48;

/// A frame that came in.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    /// Where it is.
    pub buffer: BufferId,
    /// Where it begins in the buffer.
    pub start: u8,
    /// Its length in bytes.
    pub length: u16,
}

/// Counters of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounts {
    /// Frames that came in and were handed on.
    pub received: u64,
    /// Frames that went out, those in super-packets counted one by one.
    pub sent: u64,
    /// Super-packets that went out, of consecutive segments merged for the device, which are among `sent`.
    pub merged: u64,
    /// Came in longer than a buffer.
    pub oversize: u64,
    /// Super-packets of segmentation offload that were cut into segments, which are among `received`.
    pub segmented: u64,
    /// Super-packets that could not be cut.
    pub super_packets: u64,
    /// Lost by the kernel because they were not read in time, and segments for which no buffer was free.
    pub missed: u64,
    /// Refused by the device.
    pub unsent: u64,
    /// Times that the device said it was down.
    pub down: u64,
}

impl std::ops::AddAssign for PortCounts {
    fn add_assign(&mut self, other: Self) {
        self.received += other.received;
        self.sent += other.sent;
        self.merged += other.merged;
        self.oversize += other.oversize;
        self.segmented += other.segmented;
        self.super_packets += other.super_packets;
        self.missed += other.missed;
        self.unsent += other.unsent;
        self.down += other.down;
    }
}

/// Why an interface could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot open a packet socket on interface {interface}: {step}: {source}{}", hint(.source))]
pub struct PortError {
    /// The index of the interface.
    pub interface: u32,
    /// What was tried.
    pub step: &'static str,
    /// The error of the system call.
    pub source: io::Error,
}

fn hint(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            "; it needs CAP_NET_RAW: run it as root, or by the unit in docs/gateway.md"
        }
        Some(libc::ENODEV | libc::ENXIO) => "; the interface has gone",
        _ => "",
    }
}

/// A packet socket with its batches.
pub struct Port {
    socket: OwnedFd,
    counts: PortCounts,
    /// Buffers that the next frames are read into.
    spare: Vec<BufferId>,
    messages: Vec<libc::mmsghdr>,
    /// Of all messages, one after the other.
    vectors: Vec<libc::iovec>,
    plan: Plan,
    consent: Consent,
    interface: u32,
    /// For each message, as a buffer would hold it: where a super-packet is put together.
    overflow: Vec<u8>,
    control: Vec<[u64; CONTROL / 8]>,
    /// What frames come in by, if it is not the queue of the socket.
    ring: Option<Ring>,
    /// Of the plan.
    steps: Vec<Step>,
    /// What many frames leave by, if it is not the socket.
    send_ring: Option<SendRing>,
}

// SAFETY: the pointers in `messages` and `vectors` lead to what the port itself holds and to buffers; they are set before
// each call and followed until the next use of the port at most. Those of the rings are to mappings of the process.
unsafe impl Send for Port {}

impl std::fmt::Debug for Port {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Port")
            .field("socket", &self.socket)
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}

impl Port {
    /// The hardware address of the interface; zeros if it has none of six bytes, as a tunnel.
    #[must_use]
    pub fn hardware(&self) -> [u8; 6] {
        let name = getsockname::<LinkAddr>(self.socket.as_raw_fd());
        name.ok().and_then(|address| address.addr()).unwrap_or_default()
    }

    /// Opens the interface with this index, of the calling thread's network namespace, for all frames.
    ///
    /// # Errors
    /// If the system refuses; mostly for want of CAP_NET_RAW.
    pub fn open(interface: u32) -> Result<Self, PortError> {
        Self::open_with(interface, None)
    }

    /// Opens the interface as [`open`](Self::open) does, for frames that come in and leave by memory shared with the kernel, which spares most of what
    /// receiving one by one costs, and a part of what sending does. Where the system refuses that, it is a port [without](Self::has_ring).
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_with_ring(interface: u32, size: RingSize) -> Result<Self, PortError> {
        let mut port = Self::open_with(interface, Some(size))?;
        port.open_send_ring(size);
        Ok(port)
    }

    /// Whether frames come in by memory shared with the kernel.
    #[must_use]
    pub const fn has_ring(&self) -> bool {
        self.ring.is_some()
    }

    fn open_with(interface: u32, size: Option<RingSize>) -> Result<Self, PortError> {
        let fail = |step| move |source| PortError { interface, step, source };
        let socket = packet_socket().map_err(fail("socket"))?;
        set_send_options(&socket).map_err(|(step, source)| fail(step)(source))?;
        for (option, step) in [
            (libc::PACKET_AUXDATA, "PACKET_AUXDATA"),
            // What this socket sends must not come back to it.
            (libc::PACKET_IGNORE_OUTGOING, "PACKET_IGNORE_OUTGOING"),
        ] {
            set_option(&socket, libc::SOL_PACKET, option, &1_i32).map_err(fail(step))?;
        }
        if set_option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &RECEIVE_BUFFER).is_err() {
            set_option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF, &RECEIVE_BUFFER)
                .map_err(fail("SO_RCVBUF"))?;
        }
        // Before frames come.
        let ring = size.and_then(|size| Ring::new(&socket, size).ok());
        bind(&socket, interface, libc::ETH_P_ALL as u16).map_err(fail("bind"))?;
        let promiscuous = libc::packet_mreq {
            mr_ifindex: interface as libc::c_int,
            mr_type: libc::PACKET_MR_PROMISC as libc::c_ushort,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        set_option(&socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &promiscuous)
            .map_err(fail("PACKET_ADD_MEMBERSHIP"))?;
        // SAFETY: all zero is a valid value.
        let message = unsafe { zeroed::<libc::mmsghdr>() };
        Ok(Self {
            socket,
            counts: PortCounts::default(),
            spare: Vec::with_capacity(BATCH),
            messages: vec![message; BATCH],
            vectors: Vec::with_capacity(3 * BATCH),
            plan: Plan::default(),
            consent: Consent::default(),
            interface,
            overflow: Vec::new(),
            control: vec![[0; CONTROL / 8]; BATCH],
            ring,
            steps: Vec::with_capacity(BATCH),
            send_ring: None,
        })
    }

    /// Buffers for frames, those that `owner` could take counted.
    #[must_use]
    pub fn room(&self, owner: u16, pool: &Pool) -> usize {
        self.spare.len() + pool.room(owner) as usize
    }

    /// Gives the buffers back that it holds for frames to come.
    pub fn close(mut self, pool: &mut Pool) {
        self.spare.drain(..).for_each(|buffer| pool.give_back(buffer));
    }

    /// Its counters so far. Where the kernel has stopped to fill the ring, that is made anew, so call this some times a second.
    pub fn counts(&mut self) -> PortCounts {
        let missed = newly_missed(&self.socket);
        self.counts.missed += missed;
        if self.ring.as_mut().is_some_and(|ring| ring.has_stopped(missed)) {
            self.ring = self.ring.take().and_then(|ring| ring.again(&self.socket).ok());
        }
        self.counts
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Whether the checksum of the frame in this buffer is still to be made, by the device that sends it: it comes from a host
/// of this machine.
#[must_use]
pub fn has_unfinished_checksum(buffer: &[u8]) -> bool {
    buffer.first().is_some_and(|flags| flags & NEEDS_CHECKSUM != 0)
}

/// Points messages at so many of the vectors each, and at a control block each. The pointers come from where these lie and not
/// from references, which would end those made before; they hold until either is referred to again.
fn point(
    messages: &mut [libc::mmsghdr],
    mut vectors: *mut libc::iovec,
    vectors_each: impl Iterator<Item = usize>,
    control: Option<*mut [u64; CONTROL / 8]>,
) {
    for (at, (message, count)) in messages.iter_mut().zip(vectors_each).enumerate() {
        let header = &mut message.msg_hdr;
        header.msg_iov = vectors;
        header.msg_iovlen = count as _;
        header.msg_control = control.map_or(ptr::null_mut(), |blocks| blocks.wrapping_add(at).cast());
        header.msg_controllen = if control.is_some() { CONTROL as _ } else { 0 };
        vectors = vectors.wrapping_add(count);
    }
}

/// Where a frame is in its buffer.
fn range(frame: &Received) -> Range<usize> {
    let start = usize::from(frame.start);
    start..start + usize::from(frame.length)
}

fn vector(pool: &mut Pool, buffer: BufferId, range: &Range<usize>) -> libc::iovec {
    libc::iovec { iov_base: pool.pointer(buffer, range).cast(), iov_len: range.len() }
}
