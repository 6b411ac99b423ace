//! The state of a TCP connection in the kernel: TCP_INFO of tcp(7).
//!
//! The kernel only ever appends to `struct tcp_info` (linux/tcp.h). An older kernel fills less, and a newer
//! one as much as there is room for.
//!
//! It has no count of fast retransmits. Cost: one system call, which takes the lock of the socket; about
//! 1 µs.

use std::io;
use std::os::fd::BorrowedFd;

use apportion_core::units::Span;

use super::option;

/// `struct tcp_info` of Linux 6.7.
const LENGTH: usize = 248;
/// Offsets of fields: 8 bytes, then numbers of 4 up to `tcpi_total_retrans`, the 24th.
const RTT: usize = 68;
const SND_CWND: usize = 80;
const TOTAL_RETRANS: usize = 100;
/// After it 4 numbers of 8, 6 of 4, 4 of 8, 2 of 4, 2 of 8, 6 of 4: 104 + 32 + 24 + 32 + 8 + 16 + 24. Two
/// bytes long.
const TOTAL_RTO: usize = 240;

/// The state of a TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpInfo {
    bytes: [u8; LENGTH],
    /// Number of bytes that the kernel filled.
    length: usize,
}

/// The present state of the connection of `socket`.
///
/// # Errors
/// The error of the system call; never for a TCP socket.
pub fn tcp_info(socket: BorrowedFd<'_>) -> io::Result<TcpInfo> {
    let mut bytes = [0; LENGTH];
    let length = option::read(socket, libc::TCP_INFO, &mut bytes)?;
    Ok(TcpInfo { bytes, length })
}

impl TcpInfo {
    /// Congestion window, in segments.
    #[must_use]
    pub fn window(&self) -> u32 {
        self.number(SND_CWND)
    }

    /// Smoothed round-trip time, as the kernel estimates it; none before the first measurement.
    #[must_use]
    pub fn srtt(&self) -> Option<Span> {
        let micros = self.number(RTT);
        (micros > 0).then(|| Span::from_micros(micros.into()))
    }

    /// Segments retransmitted so far.
    #[must_use]
    pub fn retransmits(&self) -> u32 {
        self.number(TOTAL_RETRANS)
    }

    /// Retransmission timeouts so far, including those of SYNs; none before Linux 6.7.
    #[must_use]
    pub fn timeouts(&self) -> Option<u16> {
        let end = TOTAL_RTO + size_of::<u16>();
        (self.length >= end).then(|| u16::from_ne_bytes([self.bytes[TOTAL_RTO], self.bytes[TOTAL_RTO + 1]]))
    }

    fn number(&self, at: usize) -> u32 {
        self.bytes[at..].first_chunk().copied().map_or(0, u32::from_ne_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_env = "gnu")]
    fn fields_lie_where_the_c_library_puts_them() {
        use std::mem::offset_of;
        assert_eq!(offset_of!(libc::tcp_info, tcpi_rtt), RTT);
        assert_eq!(offset_of!(libc::tcp_info, tcpi_snd_cwnd), SND_CWND);
        assert_eq!(offset_of!(libc::tcp_info, tcpi_total_retrans), TOTAL_RETRANS);
    }

    #[test]
    fn a_shorter_answer_says_nothing_of_what_came_later() {
        // Linux 5.15 fills 232 bytes.
        let mut bytes = [0; LENGTH];
        bytes[TOTAL_RTO..][..2].copy_from_slice(&7_u16.to_ne_bytes());
        assert_eq!(TcpInfo { bytes, length: 232 }.timeouts(), None);
        assert_eq!(TcpInfo { bytes, length: 248 }.timeouts(), Some(7));
    }
}
