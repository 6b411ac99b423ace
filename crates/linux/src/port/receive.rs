//! Reads frames: from the queue of the socket by recvmmsg(2), or from slots shared with the kernel.

use std::io;
use std::ptr;

use std::os::fd::AsRawFd as _;

use super::errors::{count_received, receive_queued};
use super::ring::{Ring, Slot};
use super::segment::{LONGEST_SUPER_PACKET, Segments, VNET_HEADER, VnetHeader};
use super::socket::{check, take_error};
use super::tag::{TAG, put_tag_back, tag_of_message};
use super::{BATCH, GSO_TYPE, Port, PortCounts, Received, point, vector};
use crate::pool::{BufferId, HEAD, Pool};

/// Numbers of frames asked for and read.
struct Read {
    asked: usize,
    got: usize,
}

/// A super-packet in its slot of the overflow, as a buffer would hold it.
struct SuperPacket {
    slot: usize,
    start: usize,
    end: usize,
    is_cut_off: bool,
}

impl Port {
    /// Reads waiting frames into `frames`, at most [`BATCH`] or the segments of as many super-packets, in
    /// buffers that `owner` takes. Returns whether more may wait.
    ///
    /// # Errors
    /// If the socket fails for good. An interface that is down is no such failure.
    pub fn receive(&mut self, owner: u16, pool: &mut Pool, frames: &mut Vec<Received>) -> io::Result<bool> {
        let Some(mut ring) = self.ring.take() else {
            let read = self.receive_messages(BATCH, owner, pool, frames);
            let asked = read.as_ref().map_or(1, |read| read.asked);
            let got = count_received(read.map(|read| read.got), &mut self.counts)?;
            return Ok(got == asked);
        };
        let count = self.receive_from(&mut ring, owner, pool, frames);
        self.ring = Some(ring);
        if count.as_ref().is_ok_and(|count| *count == 0) {
            // The socket may be readable because of an error, which stays until it is read.
            count_received(take_error(&self.socket).map(|()| 0), &mut self.counts)?;
        }
        count.map(|count| count == BATCH)
    }

    /// Reads frames from the slots of the ring. Returns how many; [`BATCH`] also if no buffer is free.
    fn receive_from(
        &mut self,
        ring: &mut Ring,
        owner: u16,
        pool: &mut Pool,
        frames: &mut Vec<Received>,
    ) -> io::Result<usize> {
        let mut count = 0;
        while count < BATCH {
            let Some(slot) = ring.first() else { break };
            if slot.is_queued {
                let done = self.receive_queued(ring.queued(BATCH - count), owner, pool, frames)?;
                if done == 0 {
                    return Ok(BATCH);
                }
                ring.release(done);
                count += done;
                continue;
            }
            let Some(buffer) = self.spare.pop().or_else(|| pool.take(owner)) else { return Ok(BATCH) };
            let before = frames.len();
            if slot.header[GSO_TYPE] == 0 {
                frames.extend(self.copy_frame(&slot, buffer, pool));
            } else {
                self.copy_super_packet(&slot, buffer, owner, pool, frames);
            }
            self.counts.received += (frames.len() - before) as u64;
            if frames.len() == before {
                pool.give_back(buffer);
            }
            ring.release(1);
            count += 1;
        }
        Ok(count)
    }

    /// Reads `count` frames that slots announce in the queue of the socket. Returns how many are done with:
    /// none without a free buffer, or if the socket fails.
    fn receive_queued(
        &mut self,
        count: usize,
        owner: u16,
        pool: &mut Pool,
        frames: &mut Vec<Received>,
    ) -> io::Result<usize> {
        let mut counts = PortCounts::default();
        let done = receive_queued(count, &mut counts, |most| {
            let read = self.receive_messages(most, owner, pool, frames)?;
            Ok((read.asked > 0).then_some(read.got))
        });
        self.counts += counts;
        done
    }

    /// Copies the frame of a slot to this buffer; none if it is too long, which is counted.
    fn copy_frame(&mut self, slot: &Slot<'_>, buffer: BufferId, pool: &mut Pool) -> Option<Received> {
        let Slot { header, frame, length, tag, .. } = *slot;
        if is_too_long(length, pool) {
            self.counts.oversize += 1;
            return None;
        }
        if length > frame.len() {
            // The socket had no room for the whole frame.
            self.counts.missed += 1;
            return None;
        }
        let bytes = pool.bytes_mut(buffer);
        bytes[..VNET_HEADER].copy_from_slice(header);
        bytes[HEAD..HEAD + length].copy_from_slice(frame);
        let start = put_tag_back(tag, length, bytes);
        Some(Received { buffer, start: start as u8, length: (HEAD + length - start) as u16 })
    }

    /// Cuts the super-packet of a slot.
    fn copy_super_packet(
        &mut self,
        slot: &Slot<'_>,
        buffer: BufferId,
        owner: u16,
        pool: &mut Pool,
        frames: &mut Vec<Received>,
    ) {
        let Slot { header, frame, length, tag, .. } = *slot;
        if length > frame.len() {
            // The socket had no room for the whole super-packet.
            self.counts.missed += 1;
            return;
        }
        self.prepare_overflow(pool);
        let bytes = &mut self.overflow[..slot_length(pool)];
        bytes[..VNET_HEADER].copy_from_slice(header);
        let Some(to) = bytes.get_mut(HEAD..HEAD + length) else {
            self.counts.super_packets += 1;
            return;
        };
        to.copy_from_slice(frame);
        let start = put_tag_back(tag, length, bytes);
        let found = SuperPacket { slot: 0, start, end: HEAD + length, is_cut_off: false };
        self.segment(&found, buffer, owner, pool, frames);
    }

    /// Reads `most` frames from the queue of the socket, or as many as there are buffers for.
    ///
    /// # Errors
    /// The error of the socket, which is not counted.
    fn receive_messages(
        &mut self,
        most: usize,
        owner: u16,
        pool: &mut Pool,
        frames: &mut Vec<Received>,
    ) -> io::Result<Read> {
        while self.spare.len() < most {
            let Some(buffer) = pool.take(owner) else { break };
            self.spare.push(buffer);
        }
        let count = self.spare.len().min(most);
        if count == 0 {
            // Every buffer is in use: the kernel's buffer fills, and the kernel counts lost frames.
            return Ok(Read { asked: 0, got: 0 });
        }
        self.prepare_buffers(count, pool);
        let each = std::iter::repeat_n(3, count);
        point(&mut self.messages, self.vectors.as_mut_ptr(), each, Some(self.control.as_mut_ptr()));
        // SAFETY: each message points at vectors, a control block, a buffer and a slot of the overflow, of
        // these lengths, which live through the call and are not referenced meanwhile.
        let got = check(unsafe {
            libc::recvmmsg(
                self.socket.as_raw_fd(),
                self.messages.as_mut_ptr(),
                count as libc::c_uint,
                libc::MSG_DONTWAIT as _,
                ptr::null_mut(),
            )
        });
        let got = got? as usize;
        let mut kept = 0;
        for at in 0..got {
            let (buffer, before) = (self.spare[at], frames.len());
            if pool.bytes(buffer)[GSO_TYPE] == 0 {
                frames.extend(self.parse_frame(at, buffer, pool));
            } else {
                self.put_together(at, buffer, owner, pool, frames);
            }
            let came = frames.len() - before;
            self.counts.received += came as u64;
            if came == 0 {
                // The buffer is free for another frame.
                self.spare[kept] = buffer;
                kept += 1;
            }
        }
        self.spare.drain(kept..got);
        if pool.is_scarce() {
            self.spare.drain(..).for_each(|buffer| pool.give_back(buffer));
        }
        Ok(Read { asked: count, got })
    }

    fn prepare_overflow(&mut self, pool: &Pool) {
        let length = BATCH * slot_length(pool);
        if self.overflow.len() != length {
            // The system zeroes it on touch.
            self.overflow = vec![0; length];
        }
    }

    /// Points the vectors at the first spare buffers, and after each at its slot of the overflow, at the
    /// offset after the buffer's length.
    fn prepare_buffers(&mut self, count: usize, pool: &mut Pool) {
        let (end, slot) = (HEAD + pool.longest(), slot_length(pool));
        self.prepare_overflow(pool);
        let overflow = self.overflow.as_mut_ptr();
        self.vectors.clear();
        for (at, buffer) in self.spare[..count].iter().enumerate() {
            let [header, frame] = [0..VNET_HEADER, HEAD..end].map(|range| vector(pool, *buffer, &range));
            let rest = overflow.wrapping_add(at * slot + end).cast();
            self.vectors.extend([header, frame, libc::iovec { iov_base: rest, iov_len: slot - end }]);
        }
    }

    /// The frame of message `at`; none if it is too long, which is counted.
    fn parse_frame(&mut self, at: usize, buffer: BufferId, pool: &mut Pool) -> Option<Received> {
        let message = &self.messages[at];
        let length = (message.msg_len as usize).checked_sub(VNET_HEADER)?;
        // A truncated frame is longer as well.
        if is_too_long(length, pool) {
            self.counts.oversize += 1;
            return None;
        }
        let start = put_tag_back(tag_of_message(&message.msg_hdr), length, pool.bytes_mut(buffer));
        Some(Received { buffer, start: start as u8, length: (HEAD + length - start) as u16 })
    }

    /// Cuts the super-packet of message `at`, which begins in `buffer`.
    fn put_together(
        &mut self,
        at: usize,
        buffer: BufferId,
        owner: u16,
        pool: &mut Pool,
        frames: &mut Vec<Received>,
    ) {
        let (message, slot) = (&self.messages[at], slot_length(pool));
        let bytes = &mut self.overflow[at * slot..][..slot];
        let beginning = pool.bytes(buffer);
        bytes[..beginning.len()].copy_from_slice(beginning);
        let length = (message.msg_len as usize).saturating_sub(VNET_HEADER);
        let start = put_tag_back(tag_of_message(&message.msg_hdr), length, bytes);
        let is_cut_off = message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0;
        let found = SuperPacket { slot: at, start, end: HEAD + length, is_cut_off };
        self.segment(&found, buffer, owner, pool, frames);
    }

    /// Cuts a super-packet into `frames`, the first of which goes into `buffer`. There are none if it cannot
    /// be cut, which is counted.
    fn segment(
        &mut self,
        found: &SuperPacket,
        buffer: BufferId,
        owner: u16,
        pool: &mut Pool,
        frames: &mut Vec<Received>,
    ) {
        let SuperPacket { slot, start, end, is_cut_off } = *found;
        let bytes = &self.overflow[slot * slot_length(pool)..][..slot_length(pool)];
        let longest = HEAD + pool.longest() - start;
        let header = bytes.first_chunk().map(VnetHeader::read).unwrap_or_default();
        let frame = bytes.get(start..end).filter(|_| !is_cut_off).unwrap_or_default();
        let Ok(mut segments) = Segments::new(&header, frame, longest) else {
            self.counts.super_packets += 1;
            return;
        };
        self.counts.segmented += 1;
        let header = segments.header().bytes();
        let mut buffer = Some(buffer);
        while segments.remaining() > 0 {
            let Some(buffer) = buffer.take().or_else(|| pool.take(owner)) else {
                self.counts.missed += segments.remaining() as u64;
                return;
            };
            let bytes = pool.bytes_mut(buffer);
            bytes[..VNET_HEADER].copy_from_slice(&header);
            // The segment fits: none is longer than `longest`.
            let length = segments.write_next(&mut bytes[start..]).unwrap_or_default();
            frames.push(Received { buffer, start: start as u8, length: length as u16 });
        }
    }
}

/// Whether a frame of this length does not fit a buffer, or is too long for its length field once a tag is
/// put back.
fn is_too_long(length: usize, pool: &Pool) -> bool {
    length > pool.longest() || length + TAG > usize::from(u16::MAX)
}

/// Bytes of the overflow for each message: a buffer for the longest super-packet.
fn slot_length(pool: &Pool) -> usize {
    HEAD + pool.longest().max(LONGEST_SUPER_PACKET)
}
