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

/// Sends `count` frames by calls of `sendmmsg`, which takes how many are done with and returns how many of the others it
/// sent. How many are done with in the end: sent, or counted as refused by the device. It takes no more of the others for now.
///
/// # Errors
/// If the socket has failed for good.
pub fn send_all(
    count: usize,
    counts: &mut PortCounts,
    mut sendmmsg: impl FnMut(usize) -> io::Result<usize>,
) -> io::Result<usize> {
    let (mut done, mut refused) = (0, None);
    while done < count {
        match sendmmsg(done) {
            Ok(sent) => {
                done += sent;
                counts.sent += sent as u64;
                // It was of what had happened before.
                if let Some(error) = refused.take() {
                    count_error(&error, counts);
                }
            }
            Err(error) if is_fatal(&error) => return Err(error),
            Err(error) => match error.raw_os_error() {
                Some(libc::EINTR) => (),
                // The buffer of the socket, or the device, is full.
                Some(libc::EAGAIN | libc::ENOBUFS) => break,
                // It may be of what had happened before, on which the frame has no part.
                _ if refused.is_none() => refused = Some(error),
                _ => {
                    // The first of those left was refused; the others may do better.
                    refused = None;
                    done += 1;
                    counts.unsent += 1;
                }
            },
        }
    }
    Ok(done)
}

/// Whether the socket has failed for good. All else is temporary: a device that is down, a frame that it does not send.
fn is_fatal(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EBADF | libc::ENOTSOCK | libc::EFAULT))
}

/// Counts an error of the socket, which may be of this call or of an earlier event.
fn count_error(error: &io::Error, counts: &mut PortCounts) {
    match error.raw_os_error() {
        // A super-packet of a kind that the header before a frame has no word for; it is gone.
        Some(libc::EINVAL) => counts.super_packets += 1,
        Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV) => counts.down += 1,
        // Nothing waits, or the system is short of memory.
        _ => (),
    }
}
