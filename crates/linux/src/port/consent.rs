//! Kinds of super-packets that a device takes, as far as it has shown.
//!
//! No query answers it for sure: a driver has features for each version of IP and for tags, and limits of its
//! own, and any program may turn its segmentation off. A packet socket that bypasses the queue of the device
//! (PACKET_QDISC_BYPASS, packet(7)) gets no super-packet cut in software: if the device does not take one,
//! the call fails with ENOBUFS, as for a full device. A refused super-packet is therefore sent again, frame
//! by frame. If the device takes the frames, it refuses that kind of super-packet, and none is tried for a
//! while.

use std::io;
use std::ops::Range;

use super::errors::Sent;
use super::merge::{Kind, Merged, Message, Plan};

/// Batches without super-packets of a kind after the first refusal, and at most. Chosen: a trial costs a copy
/// of 64 KB, at first at most one in 64 batches, and in the end one in 65536, some seconds apart at the rates
/// at which merging matters.
const PAUSE: u32 = 64;
const LONGEST_PAUSE: u32 = 1 << 16;
/// Batches after which the MTU is read again. Chosen: two short system calls in this many longer ones.
const LOOK: u32 = 128;
/// Bytes of Ethernet, and of a customer's tag, which the kernel does not count either (packet(7)).
const ETHERNET: usize = 14;
const TAG: usize = 4;

/// The progress of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Frames that are done with.
    pub done: usize,
    /// Number of these that the device sent.
    pub sent: usize,
    /// The state of the frame that follows.
    pub end: End,
}

/// The state of the frame that follows those done with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// No frame follows in the batch.
    All,
    /// The device takes no more for now.
    Full,
    /// This many frames, beginning with it, were refused as a super-packet of this kind.
    Refused(Kind, usize),
}

/// The progress of a batch of this plan, of which the device sent this many frames; notes the kinds that it
/// took.
pub fn progress(plan: &Plan, sent: Sent, frames: usize, consent: &mut Consent) -> Progress {
    let done = plan.messages[..sent.done].iter().map(|message| message.count).sum();
    // Otherwise some were refused, and it is unknown which.
    if done == frames {
        for merged in plan.messages[..sent.done].iter().filter_map(|message| message.merged) {
            consent.accepted(merged.kind);
        }
    }
    let end = match plan.messages.get(sent.done) {
        None => End::All,
        Some(Message { count, merged: Some(Merged { kind, .. }) }) if sent.is_refused => {
            End::Refused(*kind, *count)
        }
        Some(_) => End::Full,
    };
    Progress { done, sent: frames, end }
}

/// Sends `count` frames by calls of `send_batch`, which sends some of the first frames of a range, with
/// super-packets if it may. Returns how many are done with.
///
/// # Errors
/// The error of a batch.
pub fn send_batches(
    count: usize,
    consent: &mut Consent,
    mut send_batch: impl FnMut(&mut Consent, Range<usize>, bool) -> io::Result<Progress>,
) -> io::Result<usize> {
    let mut done = 0;
    while done < count {
        let batch = send_batch(consent, done..count, true)?;
        done += batch.done;
        match batch.end {
            End::All => (),
            End::Full => break,
            End::Refused(kind, frames) => {
                let alone = send_batch(consent, done..done + frames, false)?;
                done += alone.done;
                // Otherwise the device is full, or down.
                if alone.sent > 0 {
                    consent.refused(kind);
                }
                if alone.end != End::All {
                    break;
                }
            }
        }
    }
    Ok(done)
}

/// The known properties of a port's device.
#[derive(Clone, Copy, Debug)]
pub struct Consent {
    pauses: [Pause; Kind::COUNT],
    /// MTU: the longest IP packet; zero if unknown.
    mtu: usize,
    /// Batches until the MTU is read again.
    look: u32,
}

#[derive(Clone, Copy, Debug)]
struct Pause {
    /// Batches left in the present pause.
    left: u32,
    /// Length of the next pause.
    next: u32,
}

impl Default for Consent {
    /// A device that has shown nothing yet, with an unknown MTU.
    fn default() -> Self {
        Self { pauses: [Pause { left: 0, next: PAUSE }; Kind::COUNT], mtu: 0, look: 0 }
    }
}

impl Consent {
    /// Counts the beginning of a batch.
    pub fn begin(&mut self) {
        self.look = self.look.saturating_sub(1);
        for pause in &mut self.pauses {
            pause.left = pause.left.saturating_sub(1);
        }
    }

    /// Whether to read the [MTU](Self::set_mtu) before the next batch.
    #[must_use]
    pub const fn is_mtu_due(&self) -> bool {
        self.look == 0
    }

    /// Sets the longest IP packet of the device; if it is unknown, nothing is merged. The kernel does not
    /// compare super-packets with the MTU, and their segments must not be longer than frames that could be
    /// sent alone.
    pub fn set_mtu(&mut self, mtu: Option<usize>) {
        (self.mtu, self.look) = (mtu.unwrap_or(0), LOOK);
    }

    /// Whether this frame may be part of a super-packet of this kind.
    #[must_use]
    pub fn allows(&self, kind: Kind, frame: &[u8]) -> bool {
        self.pauses[kind.index()].left == 0 && self.is_within_mtu(frame)
    }

    /// Whether this frame is known to fit the device's MTU.
    #[must_use]
    pub fn is_within_mtu(&self, frame: &[u8]) -> bool {
        let has_tag = frame.get(12..14) == Some(&[0x81, 0]);
        self.mtu > 0 && frame.len() <= self.mtu + ETHERNET + if has_tag { TAG } else { 0 }
    }

    /// Notes that a super-packet was sent.
    pub const fn accepted(&mut self, kind: Kind) {
        self.pauses[kind.index()].next = PAUSE;
    }

    /// Notes that a super-packet was refused, and its frames were sent.
    pub fn refused(&mut self, kind: Kind) {
        let Pause { left, next } = &mut self.pauses[kind.index()];
        *left = *next;
        *next = (2 * *next).min(LONGEST_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::segment::{NEEDS_CHECKSUM, VNET_HEADER, VnetHeader, add, sum};
    use crate::port::{PortCounts, send_all};

    /// A device with faults.
    #[derive(Default)]
    struct Device {
        /// The error for each super-packet.
        refuses: Option<i32>,
        /// The error for all messages.
        is_down: Option<i32>,
        /// Frames until the device is full.
        room: usize,
        /// The first payload byte of each frame sent.
        took: Vec<u8>,
        /// Number of system calls.
        calls: usize,
    }

    impl Device {
        /// Like sendmmsg(2): returns an error only if the first message fails.
        fn send(&mut self, messages: &[Message], frames: &[Vec<u8>]) -> io::Result<usize> {
            self.calls += 1;
            if let Some(error) = self.is_down {
                return Err(io::Error::from_raw_os_error(error));
            }
            let mut next = 0;
            for (at, message) in messages.iter().enumerate() {
                let error = match self.refuses.filter(|_| message.count > 1) {
                    None if message.count > self.room => Some(libc::ENOBUFS),
                    refuses => refuses,
                };
                if let Some(error) = error {
                    return if at == 0 { Err(io::Error::from_raw_os_error(error)) } else { Ok(at) };
                }
                self.room -= message.count;
                self.took.extend(frames[next..next + message.count].iter().map(|frame| frame[54]));
                next += message.count;
            }
            Ok(messages.len())
        }
    }

    /// Segments of a connection, each of which begins with its number.
    fn frames(count: u8) -> Vec<Vec<u8>> {
        let segment = |number: u8| {
            let mut frame =
                [&[0; 12][..], &[8, 0, 0x45, 0, 0x02, 0x28, 0, number, 0x40, 0, 64, 6, 0, 0]].concat();
            frame.extend([10, 0, 0, 1, 10, 0, 0, 2, 0, 9, 0, 9]);
            frame.extend((512 * u32::from(number)).to_be_bytes());
            frame.extend([0, 0, 0, 7, 0x50, 0x10, 1, 0, 0, 0, 0, 0]);
            frame.extend([number; 512]);
            let checksum = !sum(&frame[14..34]);
            frame[24..26].copy_from_slice(&checksum.to_be_bytes());
            let pseudo_header = add(sum(&frame[26..34]), 6 + 532);
            frame[50..52].copy_from_slice(&pseudo_header.to_be_bytes());
            frame
        };
        (0..count).map(segment).collect()
    }

    const UNFINISHED: VnetHeader = VnetHeader {
        flags: NEEDS_CHECKSUM,
        gso_type: 0,
        header_length: 0,
        gso_size: 0,
        checksum_start: 34,
        checksum_offset: 16,
    };

    /// Sends by the rules of a port. Returns how many frames are done with.
    fn send(device: &mut Device, consent: &mut Consent, counts: &mut PortCounts, all: &[Vec<u8>]) -> usize {
        let (header, mut plan): ([u8; VNET_HEADER], _) = (UNFINISHED.bytes(), Plan::default());
        send_batches(all.len(), consent, |consent, range, merges| {
            consent.begin();
            let frames = &all[range];
            let parts = frames.iter().map(|frame| (&header, &frame[..]));
            plan.make(8, parts, |kind, frame| merges && consent.allows(kind, frame));
            let before = counts.sent;
            let frames_of = |message: usize| plan.messages[message].count;
            let sent = send_all(plan.messages.len(), frames_of, counts, |done| {
                let passed = (0..done).map(frames_of).sum::<usize>();
                device.send(&plan.messages[done..], &frames[passed..])
            })?;
            Ok(progress(&plan, sent, (counts.sent - before) as usize, consent))
        })
        .unwrap()
    }

    fn consent() -> Consent {
        let mut consent = Consent::default();
        consent.set_mtu(Some(1_500));
        consent
    }

    #[test]
    fn a_device_that_refuses_super_packets_gets_every_frame_once_and_is_not_asked_often() {
        for error in [libc::ENOBUFS, libc::EINVAL, libc::EMSGSIZE, libc::EOPNOTSUPP, libc::EIO] {
            let mut device = Device { refuses: Some(error), room: usize::MAX, ..Device::default() };
            let (mut consent, mut counts, all) = (consent(), PortCounts::default(), frames(100));
            for _ in 0..1_000 {
                assert_eq!(send(&mut device, &mut consent, &mut counts, &all), 100);
            }
            let expected: Vec<u8> = (0..1_000).flat_map(|_| 0..100).collect();
            assert!(device.took == expected, "{error}");
            assert_eq!((counts.sent, counts.merged, counts.unsent), (100_000, 0, 0), "{error}");
            // 13,000 times a batch of eight frames, plus refused ones sent again, at most twice.
            let pauses = (13_000 / PAUSE).ilog2() as usize;
            assert!(device.calls <= 13_000 + 4 * pauses, "{error}: {}", device.calls);
        }
    }

    #[test]
    fn a_device_that_is_full_is_no_device_that_refuses() {
        let mut device = Device { room: 70, ..Device::default() };
        let (mut consent, mut counts, all) = (consent(), PortCounts::default(), frames(100));
        // 64 frames as one; as many of the other 36 as there is room for.
        let done = send(&mut device, &mut consent, &mut counts, &all);
        assert_eq!((done, counts.sent, counts.merged), (70, 70, 1));
        for _ in 0..10 {
            // The frames wait, and none is counted as lost.
            assert_eq!(send(&mut device, &mut consent, &mut counts, &all[done..]), 0);
        }
        device.room = usize::MAX;
        let before = device.calls;
        let mut left = done;
        while left < 100 {
            left += send(&mut device, &mut consent, &mut counts, &all[left..]);
        }
        assert!(device.took == (0..100).collect::<Vec<_>>());
        assert_eq!((counts.sent, counts.unsent), (100, 0));
        assert!(device.calls <= before + 4, "{}", device.calls - before);
    }

    #[test]
    fn a_device_that_is_down_is_asked_twice_a_batch_and_each_frame_counts_once() {
        for error in [libc::ENETDOWN, libc::ENXIO, libc::ENODEV] {
            let mut device = Device { is_down: Some(error), room: usize::MAX, ..Device::default() };
            let (mut consent, mut counts, all) = (consent(), PortCounts::default(), frames(100));
            for batch in 1..=10 {
                assert_eq!(send(&mut device, &mut consent, &mut counts, &all), 100);
                assert_eq!((counts.sent, counts.unsent, counts.merged), (0, 100 * batch, 0));
            }
            // This shows nothing about super-packets: they are sent as such once the device is up.
            let calls = std::mem::take(&mut device.calls);
            device.is_down = None;
            assert_eq!(send(&mut device, &mut consent, &mut counts, &all), 100);
            assert_eq!((counts.sent, counts.unsent, counts.merged), (100, 1_000, 2));
            assert_eq!((calls, device.calls), (20, 1), "{error}");
        }
    }

    #[test]
    fn a_device_that_takes_them_again_gets_them_again() {
        let mut device = Device { refuses: Some(libc::ENOBUFS), room: usize::MAX, ..Device::default() };
        let (mut consent, mut counts, all) = (consent(), PortCounts::default(), frames(10));
        send(&mut device, &mut consent, &mut counts, &all);
        device.refuses = None;
        for _ in 0..PAUSE {
            send(&mut device, &mut consent, &mut counts, &all);
        }
        assert!(counts.merged > 0 && counts.merged < 40, "{counts:?}");
    }

    #[test]
    fn what_is_longer_than_the_mtu_is_not_merged() {
        let (mut counts, all) = (PortCounts::default(), frames(10));
        // A packet of 552 bytes; an unknown MTU.
        for (mtu, merged) in [(Some(551), 0), (Some(552), 1), (None, 0)] {
            let mut device = Device { room: usize::MAX, ..Device::default() };
            let mut consent = Consent::default();
            assert!(consent.is_mtu_due());
            consent.set_mtu(mtu);
            counts = PortCounts::default();
            send(&mut device, &mut consent, &mut counts, &all);
            assert_eq!((counts.sent, counts.merged), (10, merged), "{mtu:?}");
            (0..LOOK).for_each(|_| consent.begin());
            assert!(consent.is_mtu_due());
        }
        assert_eq!(counts.unsent, 0);
    }
}
