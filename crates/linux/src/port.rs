//! A packet socket on one interface: frames in and out, in batches.
//!
//! Source: packet(7) with PACKET_VNET_HDR. A header before each frame says whether its checksum is
//! unfinished, which is passed on untouched, and whether it is a super-packet of segmentation offload.
//! Super-packets are cut into their segments, because as one packet they would make every queue and share
//! wrong. A VLAN tag that the kernel took out comes in auxiliary data and is put back.
//!
//! Consecutive segments of a TCP connection leave as one super-packet, if the device takes super-packets
//! ([`merge`]).
//!
//! Frames enter by memory shared with the kernel ([`RingSize`]), from which they are copied to buffers, or by
//! system calls into buffers, and leave from buffers without another copy. The part of a super-packet that
//! does not fit into its buffer goes to an area of the port, which takes memory only then. Cost: a system
//! call per batch of up to [`BATCH`] frames that leave, or enter without such memory, plus the kernel's work
//! for each frame; a copy of each super-packet.

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

/// Maximum of frames in a system call. Chosen: measured from 1 to 256, values above 64 gain nothing.
pub const BATCH: usize = 64;
/// Receive buffer in bytes; without privilege the system grants at most net.core.rmem_max.
const RECEIVE_BUFFER: libc::c_int = 16 << 20;
/// Offset in the header before a frame.
const GSO_TYPE: usize = 1;
/// Bytes of a control message with `struct tpacket_auxdata`, which has 20 bytes.
const CONTROL: usize = 48;

/// A received frame.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    /// The buffer that holds the frame.
    pub buffer: BufferId,
    /// Offset of the frame in the buffer.
    pub start: u8,
    /// Length in bytes.
    pub length: u16,
}

/// Counters of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounts {
    /// Frames received and handed on.
    pub received: u64,
    /// Frames sent, including each frame in super-packets.
    pub sent: u64,
    /// Super-packets sent, of consecutive segments merged for the device; `sent` includes their segments.
    pub merged: u64,
    /// Frames longer than a buffer, dropped.
    pub oversize: u64,
    /// Super-packets of segmentation offload that were cut into segments; `received` includes these.
    pub segmented: u64,
    /// Super-packets that could not be cut.
    pub super_packets: u64,
    /// Frames that the kernel lost because they were not read in time, and segments without a free buffer.
    pub missed: u64,
    /// Frames that the device refused.
    pub unsent: u64,
    /// Number of times that the device reported that it was down.
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
    /// The step that failed.
    pub step: &'static str,
    /// The error of the system call.
    pub source: io::Error,
}

fn hint(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            "; it needs CAP_NET_RAW: run it as root, or by the unit in docs/operator.md"
        }
        Some(libc::ENODEV | libc::ENXIO) => "; the interface has gone",
        _ => "",
    }
}

/// A packet socket with its batches.
pub struct Port {
    socket: OwnedFd,
    counts: PortCounts,
    /// Buffers for the next frames.
    spare: Vec<BufferId>,
    messages: Vec<libc::mmsghdr>,
    /// The vectors of all messages, one after the other.
    vectors: Vec<libc::iovec>,
    plan: Plan,
    consent: Consent,
    interface: u32,
    /// Areas for messages, in which super-packets are put together, as in a buffer.
    overflow: Vec<u8>,
    control: Vec<[u64; CONTROL / 8]>,
    /// The ring by which frames enter, if they do not enter by the queue of the socket.
    ring: Option<Ring>,
    /// Steps of the plan.
    steps: Vec<Step>,
    /// The ring by which many frames leave, if they do not leave by the socket.
    send_ring: Option<SendRing>,
}

// SAFETY: the pointers in `messages` and `vectors` lead to memory of the port and to buffers; they are set
// before each call and followed at most until the next use of the port. The pointers of the rings are to
// mappings of the process.
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
    /// The hardware address of the interface; zeros if it does not have six bytes, as a tunnel.
    #[must_use]
    pub fn hardware(&self) -> [u8; 6] {
        let name = getsockname::<LinkAddr>(self.socket.as_raw_fd());
        name.ok().and_then(|address| address.addr()).unwrap_or_default()
    }

    /// Opens the interface with this index, of the calling thread's network namespace, for all frames.
    ///
    /// # Errors
    /// If the system refuses; mostly for lack of CAP_NET_RAW.
    pub fn open(interface: u32) -> Result<Self, PortError> {
        Self::open_with(interface, None)
    }

    /// Opens the interface like [`open`](Self::open), with memory shared with the kernel for frames in both
    /// directions, which saves most of the cost of receiving frames one by one, and a part of that of
    /// sending. If the system refuses the memory, the port works [without](Self::has_ring).
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_with_ring(interface: u32, size: RingSize) -> Result<Self, PortError> {
        let mut port = Self::open_with(interface, Some(size))?;
        port.open_send_ring(size);
        Ok(port)
    }

    /// Whether frames enter by memory shared with the kernel.
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
            // Frames that this socket sends must not return to it.
            (libc::PACKET_IGNORE_OUTGOING, "PACKET_IGNORE_OUTGOING"),
        ] {
            set_option(&socket, libc::SOL_PACKET, option, &1_i32).map_err(fail(step))?;
        }
        if set_option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &RECEIVE_BUFFER).is_err() {
            set_option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF, &RECEIVE_BUFFER)
                .map_err(fail("SO_RCVBUF"))?;
        }
        // Set up the ring before frames arrive.
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

    /// Number of buffers that the port holds for frames, plus those that `owner` could take.
    #[must_use]
    pub fn room(&self, owner: u16, pool: &Pool) -> usize {
        self.spare.len() + pool.room(owner) as usize
    }

    /// Gives back the buffers that it holds for frames.
    pub fn close(mut self, pool: &mut Pool) {
        self.spare.drain(..).for_each(|buffer| pool.give_back(buffer));
    }

    /// The counters so far. If the kernel has stopped filling the ring, the ring is recreated, so call this
    /// some times a second.
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

/// Whether the checksum of the frame in this buffer is unfinished, for the device that sends it to compute:
/// the frame comes from a host of this machine.
#[must_use]
pub fn has_unfinished_checksum(buffer: &[u8]) -> bool {
    buffer.first().is_some_and(|flags| flags & NEEDS_CHECKSUM != 0)
}

/// Points each message at `each` vectors and at a control block. The pointers are derived from raw addresses,
/// not from references, which would invalidate earlier ones; they are valid until either vector is next
/// referenced.
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

/// The range of a frame in its buffer.
fn range(frame: &Received) -> Range<usize> {
    let start = usize::from(frame.start);
    start..start + usize::from(frame.length)
}

fn vector(pool: &mut Pool, buffer: BufferId, range: &Range<usize>) -> libc::iovec {
    libc::iovec { iov_base: pool.pointer(buffer, range).cast(), iov_len: range.len() }
}
