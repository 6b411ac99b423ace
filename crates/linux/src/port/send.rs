//! Sends frames: super-packets and few frames by sendmmsg(2), many frames by slots shared with the kernel.

use std::io;
use std::os::fd::AsRawFd as _;

use super::consent::{Consent, Progress, progress, send_batches};
use super::errors::send_all;
use super::merge::{Merged, Plan};
use super::segment::VNET_HEADER;
use super::send_ring::{LEAST, SendRing};
use super::socket::{check, mtu};
use super::{BATCH, Port, Received, point, range, vector};
use crate::pool::Pool;

/// A message of a plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// First frame of the message.
    frame: usize,
    /// Number of messages in a row, from this one, that can leave by slots.
    run: usize,
}

impl Port {
    /// Sends frames in order, from their buffers. Returns how many are done with: sent, or counted as refused
    /// by the device. The caller retries the others soon, because the device takes no more for now.
    ///
    /// # Errors
    /// If the socket fails for good. An interface that is down is no such failure.
    pub fn send(&mut self, pool: &mut Pool, frames: &[Received]) -> io::Result<usize> {
        let mut consent = self.consent;
        let done = send_batches(frames.len(), &mut consent, |consent, range, merges| {
            self.send_batch(pool, &frames[range], merges, consent)
        });
        self.consent = consent;
        done
    }

    /// Sends the first of these frames by as many system calls as needed, mostly one.
    fn send_batch(
        &mut self,
        pool: &mut Pool,
        frames: &[Received],
        merges: bool,
        consent: &mut Consent,
    ) -> io::Result<Progress> {
        self.plan_batch(pool, frames, merges, consent);
        self.plan_steps(pool, frames, consent);
        let Self { socket, messages, vectors, plan, steps, counts, send_ring, .. } = self;
        let count = plan.messages.len();
        let frames_of = |message: usize| plan.messages[message].count;
        let before = counts.sent;
        let sent = send_all(count, frames_of, counts, |done| {
            let Step { frame, run } = steps[done];
            let mut end = done + run;
            if run < LEAST {
                let next = steps[done..].iter().position(|step| step.run >= LEAST);
                end = next.map_or(count, |after| done + after);
            } else if let Some(ring) = send_ring {
                let sent = ring.send(frames[frame..][..run].iter().filter_map(|frame| parts(pool, frame)))?;
                if sent > 0 {
                    return Ok(sent);
                }
            }
            point_at(plan, done..end, &frames[frame..], pool, (&mut *messages, &mut *vectors));
            let left = &mut messages[..end - done];
            // SAFETY: each message points at vectors, headers of the plan and buffers, of these lengths, which live through
            // the call; the kernel only reads.
            let sent = check(unsafe {
                libc::sendmmsg(
                    socket.as_raw_fd(),
                    left.as_mut_ptr(),
                    left.len() as libc::c_uint,
                    libc::MSG_DONTWAIT as _,
                )
            });
            sent.map(|sent| sent as usize)
        })?;
        let taken = counts.sent - before;
        Ok(progress(plan, sent, taken as usize, consent))
    }

    /// Plans the messages of the first of these frames.
    fn plan_batch(&mut self, pool: &Pool, frames: &[Received], merges: bool, consent: &mut Consent) {
        if consent.is_mtu_due() {
            consent.set_mtu(mtu(&self.socket, self.interface).ok());
        }
        consent.begin();
        let parts = frames.iter().map_while(|frame| parts(pool, frame));
        self.plan.make(BATCH, parts, |kind, frame| merges && consent.allows(kind, frame));
    }

    /// Finds the frames of each message, and whether it can leave by a slot. The kernel does not compare
    /// frames in slots with the MTU.
    fn plan_steps(&mut self, pool: &Pool, frames: &[Received], consent: &Consent) {
        self.steps.clear();
        let mut next = 0;
        for message in &self.plan.messages {
            let is_slot = self.send_ring.as_ref().is_some_and(|ring| {
                let frame = parts(pool, &frames[next]);
                message.merged.is_none()
                    && frame.is_some_and(|(_, frame)| ring.holds(frame.len()) && consent.is_within_mtu(frame))
            });
            self.steps.push(Step { frame: next, run: usize::from(is_slot) });
            next += message.count;
        }
        let mut run = 0;
        for step in self.steps.iter_mut().rev() {
            run = if step.run > 0 { run + 1 } else { 0 };
            step.run = run;
        }
    }

    /// Whether frames leave by memory shared with the kernel.
    #[must_use]
    pub const fn has_send_ring(&self) -> bool {
        self.send_ring.is_some()
    }

    pub(super) fn open_send_ring(&mut self, size: super::RingSize) {
        self.send_ring = SendRing::new(self.interface, size).ok();
    }
}

/// The header before a frame, and its bytes.
fn parts<'a>(pool: &'a Pool, frame: &Received) -> Option<(&'a [u8; VNET_HEADER], &'a [u8])> {
    let bytes = pool.bytes(frame.buffer);
    Some((bytes.first_chunk()?, bytes.get(range(frame))?))
}

/// Points the first messages at the frames and headers of their plan; `frames` are the first of these
/// messages.
fn point_at(
    plan: &Plan,
    planned: std::ops::Range<usize>,
    frames: &[Received],
    pool: &mut Pool,
    (messages, vectors): (&mut [libc::mmsghdr], &mut Vec<libc::iovec>),
) {
    vectors.clear();
    let mut frames = frames.iter();
    let planned = &plan.messages[planned];
    for message in planned {
        let Some(Merged { payload, headers, .. }) = message.merged else {
            for frame in frames.by_ref().take(1) {
                let ranges = [0..VNET_HEADER, range(frame)];
                vectors.extend(ranges.map(|range| vector(pool, frame.buffer, &range)));
            }
            continue;
        };
        let headers = plan.headers[headers].bytes();
        // The kernel only reads.
        let iov_base = headers.as_ptr().cast_mut().cast();
        vectors.push(libc::iovec { iov_base, iov_len: headers.len() });
        for frame in frames.by_ref().take(message.count) {
            let range = range(frame);
            vectors.push(vector(pool, frame.buffer, &(range.start + payload..range.end)));
        }
    }
    let each = planned.iter().map(|message| message.count + 1);
    point(messages, vectors.as_mut_ptr(), each, None);
}
