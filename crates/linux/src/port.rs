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

#![expect(
    unsafe_code,
    reason = "recvmmsg(2), sendmmsg(2) and packet(7) options with buffers that are reused, and memory shared with the kernel"
)]

use std::io;
use std::mem::zeroed;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use nix::sys::socket::{LinkAddr, getsockname};

use crate::pool::{BufferId, Pool};
use consent::{Consent, Progress, progress, send_batches};
use merge::{Merged, Plan};
use ring::Ring;
use segment::{NEEDS_CHECKSUM, VNET_HEADER};
use socket::{bind, check, mtu, newly_missed, set_option};

mod consent;
mod errors;
pub mod merge;
mod receive;
mod ring;
pub mod segment;
mod socket;
mod tag;

pub use errors::{Sent, count_received, send_all};
pub use ring::RingSize;

/// Maximum of frames in a system call. Chosen: above 64 nothing is gained, measured from 1 to 256.
pub const BATCH: usize = 64;
/// Asked for; without privilege the system gives what net.core.rmem_max says.
const RECEIVE_BUFFER: libc::c_int = 16 << 20;
/// Likewise, of net.core.wmem_max.
const SEND_BUFFER: libc::c_int = 4 << 20;
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
}

// SAFETY: the pointers in `messages` and `vectors` lead to what the port itself holds and to buffers; they are set before
// each call and followed until the next use of the port at most. That of `ring` is to a mapping of the process.
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

    /// Opens the interface as [`open`](Self::open) does, for frames that come in by memory shared with the kernel, which spares most of what receiving
    /// one by one costs. Where the system refuses that, it is a port [without](Self::has_ring).
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_with_ring(interface: u32, size: RingSize) -> Result<Self, PortError> {
        Self::open_with(interface, Some(size))
    }

    /// Whether frames come in by memory shared with the kernel.
    #[must_use]
    pub const fn has_ring(&self) -> bool {
        self.ring.is_some()
    }

    fn open_with(interface: u32, size: Option<RingSize>) -> Result<Self, PortError> {
        let fail = |step| move |source| PortError { interface, step, source };
        // SAFETY: no pointers.
        let socket = check(unsafe {
            libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC, 0)
        })
        // SAFETY: the socket is new, and nothing else owns it.
        .map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })
        .map_err(fail("socket"))?;
        for (level, option, step) in [
            (libc::SOL_PACKET, libc::PACKET_VNET_HDR, "PACKET_VNET_HDR"),
            (libc::SOL_PACKET, libc::PACKET_AUXDATA, "PACKET_AUXDATA"),
            // What this socket sends must not come back to it.
            (libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, "PACKET_IGNORE_OUTGOING"),
            // Our disciplines queue; the interface's own must not queue again.
            (libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, "PACKET_QDISC_BYPASS"),
        ] {
            set_option(&socket, level, option, &1_i32).map_err(fail(step))?;
        }
        if set_option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &RECEIVE_BUFFER).is_err() {
            set_option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF, &RECEIVE_BUFFER)
                .map_err(fail("SO_RCVBUF"))?;
        }
        // Frames count until the device has sent them; a batch must fit.
        if set_option(&socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &SEND_BUFFER).is_err() {
            set_option(&socket, libc::SOL_SOCKET, libc::SO_SNDBUF, &SEND_BUFFER)
                .map_err(fail("SO_SNDBUF"))?;
        }
        // Before frames come.
        let ring = size.and_then(|size| Ring::new(&socket, size).ok());
        bind(&socket, interface).map_err(fail("bind"))?;
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
        })
    }

    /// Buffers for frames, those that `owner` could take counted.
    #[must_use]
    pub fn room(&self, owner: u16, pool: &Pool) -> usize {
        self.spare.len() + pool.room(owner) as usize
    }

    /// Sends frames, in order, from where they are. How many are done with: sent, or counted as refused by the
    /// device. The others are to be tried again soon, because the device takes no more for now.
    ///
    /// # Errors
    /// If the socket fails for good. That its interface is down is no such failure.
    pub fn send(&mut self, pool: &mut Pool, frames: &[Received]) -> io::Result<usize> {
        let mut consent = self.consent;
        let done = send_batches(frames.len(), &mut consent, |consent, range, merges| {
            self.send_batch(pool, &frames[range], merges, consent)
        });
        self.consent = consent;
        done
    }

    /// Sends the first of these frames by as many system calls as that takes, mostly one.
    fn send_batch(
        &mut self,
        pool: &mut Pool,
        frames: &[Received],
        merges: bool,
        consent: &mut Consent,
    ) -> io::Result<Progress> {
        self.plan_batch(pool, frames, merges, consent);
        self.point_at_plan(pool, frames);
        let (socket, messages, plan) = (self.socket.as_raw_fd(), &mut self.messages, &self.plan);
        let count = plan.messages.len();
        let frames_of = |message: usize| plan.messages[message].count;
        let before = self.counts.sent;
        let sent = send_all(count, frames_of, &mut self.counts, |done| {
            let left = &mut messages[done..count];
            // SAFETY: as in `receive`; the kernel only reads.
            let sent = check(unsafe {
                libc::sendmmsg(socket, left.as_mut_ptr(), left.len() as libc::c_uint, libc::MSG_DONTWAIT as _)
            });
            sent.map(|sent| sent as usize)
        })?;
        let taken = self.counts.sent - before;
        Ok(progress(plan, sent, taken as usize, consent))
    }

    /// Plans the messages of the first of these frames.
    fn plan_batch(&mut self, pool: &Pool, frames: &[Received], merges: bool, consent: &mut Consent) {
        if consent.is_mtu_due() {
            consent.set_mtu(mtu(&self.socket, self.interface).ok());
        }
        consent.begin();
        let parts = frames.iter().map_while(|frame| {
            let (header, _) = pool.bytes(frame.buffer).split_first_chunk()?;
            Some((header, &pool.bytes(frame.buffer)[range(frame)]))
        });
        self.plan.make(BATCH, parts, |kind, frame| merges && consent.allows(kind, frame));
    }

    /// Points the vectors and messages at what was planned.
    fn point_at_plan(&mut self, pool: &mut Pool, frames: &[Received]) {
        self.vectors.clear();
        let mut frames = frames.iter();
        for message in &self.plan.messages {
            let Some(Merged { payload, headers, .. }) = message.merged else {
                for frame in frames.by_ref().take(1) {
                    let ranges = [0..VNET_HEADER, range(frame)];
                    self.vectors.extend(ranges.map(|range| vector(pool, frame.buffer, &range)));
                }
                continue;
            };
            let headers = self.plan.headers[headers].bytes();
            // The kernel only reads.
            let iov_base = headers.as_ptr().cast_mut().cast();
            self.vectors.push(libc::iovec { iov_base, iov_len: headers.len() });
            for frame in frames.by_ref().take(message.count) {
                let range = range(frame);
                self.vectors.push(vector(pool, frame.buffer, &(range.start + payload..range.end)));
            }
        }
        let each = self.plan.messages.iter().map(|message| message.count + 1);
        point(&mut self.messages, self.vectors.as_mut_ptr(), each, None);
    }

    /// Gives the buffers back that it holds for frames to come.
    pub fn close(mut self, pool: &mut Pool) {
        self.spare.drain(..).for_each(|buffer| pool.give_back(buffer));
    }

    /// Its counters so far.
    pub fn counts(&mut self) -> PortCounts {
        self.counts.missed += newly_missed(&self.socket);
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
