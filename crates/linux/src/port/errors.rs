//! The meaning of an error of a packet socket: the end of the port, the loss of a frame, or a wait.
//!
//! Source: send(2), recv(2), packet(7), netdevice(7). Ports of other machines, such as those of tests, follow
//! the same rules.

use std::io;

use super::PortCounts;

/// Errors of a socket in succession after which it is left alone for now. Chosen: one may be of an earlier
/// event, and one of the next event.
const FAILURES: usize = 2;

/// The number of frames that were read, by `result`; none after a temporary error, which is counted.
///
/// # Errors
/// If the socket has failed for good.
pub fn count_received(result: io::Result<usize>, counts: &mut PortCounts) -> io::Result<usize> {
    match result {
        Err(error) if is_fatal(&error) => Err(error),
        Err(error) => {
            count_error(&error, counts);
            Ok(0)
        }
        got => got,
    }
}

/// Reads `count` frames in the queue of a socket, which slots announce in the same order. `read` gets the
/// number of wanted frames and returns the number read, or none without a free buffer. Returns the number of
/// slots that are done with: their frames were read, or are counted as lost.
///
/// A slot must not be done with before its frame: the next such slot would take a frame left in the queue for
/// its own, and so would each one after it.
///
/// # Errors
/// If the socket has failed for good.
pub fn receive_queued(
    count: usize,
    counts: &mut PortCounts,
    mut read: impl FnMut(usize) -> io::Result<Option<usize>>,
) -> io::Result<usize> {
    let (mut gone, mut failures) = (0, 0);
    while gone < count {
        let error = match read(count - gone) {
            Ok(got) => return Ok(gone + got.unwrap_or_default()),
            Err(error) => error,
        };
        let number = error.raw_os_error();
        count_received(Err(error), counts)?;
        match number {
            // The queue is empty, so the frames are lost.
            Some(libc::EAGAIN) => {
                counts.missed += (count - gone) as u64;
                return Ok(count);
            }
            // The first frame was taken out of the queue and could not be described.
            Some(libc::EINVAL) => gone += 1,
            // The error is of an earlier event, or lasts: then the frames are read the next time.
            _ if failures == FAILURES => return Ok(gone),
            _ => failures += 1,
        }
    }
    Ok(count)
}

/// The progress of [`send_all`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Messages done with: sent, or counted as refused by the device.
    pub done: usize,
    /// Whether the next message holds several frames and was refused: its frames are then sent one by one,
    /// which shows whether the device is full. Otherwise the device takes no more for now.
    pub is_refused: bool,
}

/// Sends `count` messages by calls of `sendmmsg`, which gets the number of messages done with and returns how
/// many of the others it sent. `frames` returns the number of frames in a message.
///
/// # Errors
/// If the socket has failed for good.
pub fn send_all(
    count: usize,
    frames: impl Fn(usize) -> usize,
    counts: &mut PortCounts,
    mut sendmmsg: impl FnMut(usize) -> io::Result<usize>,
) -> io::Result<Sent> {
    let (mut done, mut refused) = (0, None);
    while done < count {
        let is_merged = frames(done) > 1;
        match sendmmsg(done) {
            Ok(sent) => {
                for message in done..done + sent {
                    counts.sent += frames(message) as u64;
                    counts.merged += u64::from(frames(message) > 1);
                }
                done += sent;
                // The error was of an earlier event.
                if let Some(error) = refused.take() {
                    count_error(&error, counts);
                }
            }
            Err(error) if is_fatal(&error) => return Err(error),
            Err(error) => match error.raw_os_error() {
                Some(libc::EINTR) => (),
                // The device is full as well, or takes no such message.
                Some(libc::ENOBUFS) if is_merged => return Ok(Sent { done, is_refused: true }),
                // The buffer of the socket, or the device, is full.
                Some(libc::EAGAIN | libc::ENOBUFS) => break,
                // The error may be of an earlier event, which the frame has no part in.
                _ if refused.is_none() => refused = Some(error),
                // The interface is down or has gone, for all messages: each would be refused twice more.
                _ if is_down(&error) => {
                    counts.unsent += (done..count).map(&frames).sum::<usize>() as u64;
                    done = count;
                }
                _ if is_merged => return Ok(Sent { done, is_refused: true }),
                _ => {
                    // The first message left was refused; the others may pass.
                    refused = None;
                    done += 1;
                    counts.unsent += 1;
                }
            },
        }
    }
    Ok(Sent { done, is_refused: false })
}

/// Whether the socket has failed for good. Other errors are temporary: a device that is down, a frame that it
/// does not send.
fn is_fatal(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EBADF | libc::ENOTSOCK | libc::EFAULT))
}

/// Whether the error reports that the interface is down or has gone.
fn is_down(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV))
}

/// Counts an error of the socket, which may be of this call or of an earlier event.
fn count_error(error: &io::Error, counts: &mut PortCounts) {
    match error.raw_os_error() {
        // A super-packet of a kind that the header before a frame cannot express; it is lost.
        Some(libc::EINVAL) => counts.super_packets += 1,
        _ if is_down(error) => counts.down += 1,
        // No frame waits, or the system is short of memory.
        _ => (),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// A socket with slots that announce the frames in its queue, and its next errors.
    struct Socket {
        slots: VecDeque<u32>,
        queue: VecDeque<u32>,
        errors: VecDeque<i32>,
    }

    impl Socket {
        fn new(frames: u32, errors: &[i32]) -> Self {
            let [slots, queue] = [(); 2].map(|()| (0..frames).collect());
            Self { slots, queue, errors: errors.iter().copied().collect() }
        }

        /// Like recvmmsg(2): returns an error if the first message fails; an error of a frame takes the frame
        /// out.
        fn read(&mut self, most: usize, got: &mut Vec<u32>) -> io::Result<Option<usize>> {
            if let Some(error) = self.errors.pop_front() {
                if error == libc::EINVAL {
                    self.queue.pop_front();
                }
                return Err(io::Error::from_raw_os_error(error));
            }
            if self.queue.is_empty() {
                return Err(io::Error::from_raw_os_error(libc::EAGAIN));
            }
            let count = most.min(self.queue.len());
            got.extend(self.queue.drain(..count));
            Ok(Some(count))
        }

        /// Goes through the slots, `most` at a time, as a port does. Returns the frames in order of arrival.
        fn receive(&mut self, most: usize, counts: &mut PortCounts) -> Vec<u32> {
            let mut got = Vec::new();
            // One round for each slot, and some for errors.
            for _ in 0..200 {
                let count = most.min(self.slots.len());
                let done = receive_queued(count, counts, |most| self.read(most, &mut got)).unwrap();
                self.slots.drain(..done);
                // Frames left in the queue belong to slots that are left.
                assert!(self.queue.is_empty() || self.queue.front() == self.slots.front());
            }
            assert!(self.slots.is_empty());
            got
        }
    }

    #[test]
    fn no_frame_of_a_queue_is_lost_or_taken_for_another_one_by_errors_of_the_socket() {
        for errors in
            [&[][..], &[libc::ENETDOWN; 1], &[libc::ENETDOWN; 2], &[libc::ENOBUFS; 9], &[libc::EINTR; 50]]
        {
            for most in [1, 7, 64] {
                let (mut socket, mut counts) = (Socket::new(100, errors), PortCounts::default());
                assert!(socket.receive(most, &mut counts).into_iter().eq(0..100), "{errors:?}, {most}");
                assert_eq!((counts.missed, counts.super_packets), (0, 0));
                let down = errors.iter().filter(|error| **error == libc::ENETDOWN).count() as u64;
                assert_eq!(counts.down, down);
            }
        }
    }

    #[test]
    fn frames_that_cannot_be_described_and_those_that_are_gone_count_once() {
        for most in [1, 7, 64] {
            let (mut socket, mut counts) = (Socket::new(100, &[libc::EINVAL; 3]), PortCounts::default());
            assert!(socket.receive(most, &mut counts).into_iter().eq(3..100), "{most}");
            assert_eq!((counts.missed, counts.super_packets), (0, 3), "{most}");
            let mut socket = Socket::new(100, &[]);
            socket.queue.truncate(40);
            counts = PortCounts::default();
            assert!(socket.receive(most, &mut counts).into_iter().eq(0..40), "{most}");
            assert_eq!((counts.missed, counts.super_packets), (60, 0), "{most}");
        }
    }

    #[test]
    fn a_socket_that_failed_for_good_is_an_error_and_one_without_buffers_is_none() {
        let (mut counts, fatal) = (PortCounts::default(), io::Error::from_raw_os_error(libc::EBADF));
        let mut fatal = Some(fatal);
        let read = |_| fatal.take().map_or(Ok(Some(1)), Err);
        assert_eq!(receive_queued(3, &mut counts, read).unwrap_err().raw_os_error(), Some(libc::EBADF));
        assert_eq!(receive_queued(3, &mut counts, |_| Ok(None)).unwrap(), 0);
        assert_eq!(counts, PortCounts::default());
    }
}
