//! What an error of a packet socket means: the end of the port, the loss of a frame, or a wait.
//!
//! Source: send(2), recv(2), packet(7), netdevice(7). A port that is not of this machine, such as one of a test, goes by the
//! same rules.

use std::io;

use super::PortCounts;

/// Frames that were read, of which `result` says how many; none after a temporary error, which is counted.
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

/// How far [`send_all`] came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Messages that are done with: sent, or counted as refused by the device.
    pub done: usize,
    /// Whether the next one holds several frames and was refused: they are to be sent one by one, which shows whether the device
    /// is full. Otherwise it takes no more for now.
    pub is_refused: bool,
}

/// Sends `count` messages by calls of `sendmmsg`, which takes how many are done with and returns how many of the others it
/// sent. `frames` says of a message how many frames it holds.
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
                // It was of what had happened before.
                if let Some(error) = refused.take() {
                    count_error(&error, counts);
                }
            }
            Err(error) if is_fatal(&error) => return Err(error),
            Err(error) => match error.raw_os_error() {
                Some(libc::EINTR) => (),
                // Full as well, or it takes no such message.
                Some(libc::ENOBUFS) if is_merged => return Ok(Sent { done, is_refused: true }),
                // The buffer of the socket, or the device, is full.
                Some(libc::EAGAIN | libc::ENOBUFS) => break,
                // It may be of what had happened before, on which the frame has no part.
                _ if refused.is_none() => refused = Some(error),
                // The interface is down or has gone, for all of them: each would be refused twice more.
                _ if is_down(&error) => {
                    counts.unsent += (done..count).map(&frames).sum::<usize>() as u64;
                    done = count;
                }
                _ if is_merged => return Ok(Sent { done, is_refused: true }),
                _ => {
                    // The first of those left was refused; the others may do better.
                    refused = None;
                    done += 1;
                    counts.unsent += 1;
                }
            },
        }
    }
    Ok(Sent { done, is_refused: false })
}

/// Whether the socket has failed for good. All else is temporary: a device that is down, a frame that it does not send.
fn is_fatal(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EBADF | libc::ENOTSOCK | libc::EFAULT))
}

/// Whether it says that the interface is down or has gone.
fn is_down(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV))
}

/// Counts an error of the socket, which may be of this call or of an earlier event.
fn count_error(error: &io::Error, counts: &mut PortCounts) {
    match error.raw_os_error() {
        // A super-packet of a kind that the header before a frame has no word for; it is gone.
        Some(libc::EINVAL) => counts.super_packets += 1,
        _ if is_down(error) => counts.down += 1,
        // Nothing waits, or the system is short of memory.
        _ => (),
    }
}
