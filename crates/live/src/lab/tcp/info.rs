//! What the kernel says of a TCP connection: TCP_INFO of tcp(7).
//!
//! The kernel has added to the end of this structure for twenty years and never changed what it had. An older one
//! fills less, and a newer one as much as there is room for; [`Told::total_rto`] and the like know which.
//!
//! Fast retransmits are not in it. Cost: one system call, which takes the lock of the socket; about 1 µs.

use std::io;
use std::mem::offset_of;
use std::os::fd::BorrowedFd;

use apportion_core::units::Span;
use apportion_runtime::outcome::TcpSample;

use super::option;

/// As the kernel fills it up to Linux 6.7; names are the kernel's without `tcpi_`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct TcpInfo {
    /// Of RFC 9293, in the order of the kernel: 1 is established.
    pub state: u8,
    /// Congestion state: 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss.
    pub ca_state: u8,
    /// Timeouts in a row that have not been answered.
    pub retransmits: u8,
    /// Zero-window or keepalive probes without an answer.
    pub probes: u8,
    /// Doublings of the timeout.
    pub backoff: u8,
    /// Bits: 1 timestamps, 2 SACK, 4 window scaling, 8 ECN agreed, 16 ECN seen.
    pub options: u8,
    /// Two shifts of four bits: of the window received in the low, of our own in the high ones on little-endian machines.
    pub wscale: u8,
    /// Bits: whether the delivery rate is limited by the application, and why fast open failed.
    pub flags: u8,
    /// Timeout, in microseconds.
    pub rto: u32,
    /// Delay of acknowledgements, in microseconds.
    pub ato: u32,
    /// Payload of a segment that is sent, in bytes.
    pub snd_mss: u32,
    /// Payload of segments received, estimated, in bytes.
    pub rcv_mss: u32,
    /// Segments outstanding.
    pub unacked: u32,
    /// Segments acknowledged selectively.
    pub sacked: u32,
    /// Segments taken for lost.
    pub lost: u32,
    /// Segments sent again and outstanding.
    pub retrans: u32,
    /// Zero since Linux 4.15.
    pub fackets: u32,
    /// Milliseconds since data were sent.
    pub last_data_sent: u32,
    /// Not kept.
    pub last_ack_sent: u32,
    /// Milliseconds since data were received.
    pub last_data_recv: u32,
    /// Milliseconds since an acknowledgement was received.
    pub last_ack_recv: u32,
    /// Path MTU, in bytes.
    pub pmtu: u32,
    /// What the window may grow to, in bytes.
    pub rcv_ssthresh: u32,
    /// Smoothed round-trip time, in microseconds.
    pub rtt: u32,
    /// Its variation, in microseconds.
    pub rttvar: u32,
    /// Slow start threshold, in segments.
    pub snd_ssthresh: u32,
    /// Congestion window, in segments.
    pub snd_cwnd: u32,
    /// Segment size that we announced, in bytes.
    pub advmss: u32,
    /// Duplicate ACKs that are taken for a loss.
    pub reordering: u32,
    /// Round-trip time as the receiver estimates it, in microseconds.
    pub rcv_rtt: u32,
    /// What the application reads in a round trip, in bytes.
    pub rcv_space: u32,
    /// Segments sent again so far.
    pub total_retrans: u32,
    /// In bytes a second.
    pub pacing_rate: u64,
    /// In bytes a second.
    pub max_pacing_rate: u64,
    /// Acknowledged so far.
    pub bytes_acked: u64,
    /// Received in order so far, a FIN included.
    pub bytes_received: u64,
    /// Segments sent.
    pub segs_out: u32,
    /// Segments received.
    pub segs_in: u32,
    /// Waiting in the socket, never sent.
    pub notsent_bytes: u32,
    /// In microseconds.
    pub min_rtt: u32,
    /// Segments with data received.
    pub data_segs_in: u32,
    /// Segments with data sent.
    pub data_segs_out: u32,
    /// In bytes a second.
    pub delivery_rate: u64,
    /// Microseconds with data outstanding.
    pub busy_time: u64,
    /// Microseconds limited by the receive window.
    pub rwnd_limited: u64,
    /// Microseconds limited by the send buffer.
    pub sndbuf_limited: u64,
    /// Segments delivered.
    pub delivered: u32,
    /// Of which marked.
    pub delivered_ce: u32,
    /// Payload sent, again included.
    pub bytes_sent: u64,
    /// Payload sent again.
    pub bytes_retrans: u64,
    /// Duplicates that the receiver told of.
    pub dsack_dups: u32,
    /// Reorderings seen.
    pub reord_seen: u32,
    /// Segments received out of order.
    pub rcv_ooopack: u32,
    /// The peer's window, in bytes.
    pub snd_wnd: u32,
    /// Our window, in bytes.
    pub rcv_wnd: u32,
    /// Changes of the flow label.
    pub rehash: u32,
    /// Retransmission timeouts so far, those of SYNs included.
    pub total_rto: u16,
    /// Recoveries from timeouts that succeeded or failed.
    pub total_rto_recoveries: u16,
    /// Milliseconds spent in them.
    pub total_rto_time: u32,
}

/// An answer of the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// What it filled; zeros beyond.
    pub info: TcpInfo,
    /// Bytes of `info` that it filled.
    pub length: usize,
}

/// What the kernel says of the connection of `socket` now.
///
/// # Errors
/// What the system says; never for a socket of TCP.
pub fn tcp_info(socket: BorrowedFd<'_>) -> io::Result<Told> {
    let mut info = TcpInfo::default();
    let length = option::read(socket, libc::TCP_INFO, &mut info)?;
    Ok(Told { info, length })
}

impl Told {
    /// Retransmission timeouts so far, those of SYNs included; none if the kernel is older than Linux 6.7.
    #[must_use]
    pub fn total_rto(&self) -> Option<u64> {
        let end = offset_of!(TcpInfo, total_rto) + size_of::<u16>();
        (self.length >= end).then_some(self.info.total_rto.into())
    }

    /// As results have it.
    #[must_use]
    pub fn sample(&self) -> TcpSample {
        let srtt = (self.info.rtt > 0).then(|| Span::from_micros(self.info.rtt.into()));
        TcpSample { window: self.info.snd_cwnd.into(), srtt }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_lie_where_the_kernel_puts_them() {
        // 8 bytes, then 24 numbers of 4: total_retrans is the last of them, at 8 + 23 · 4.
        assert_eq!(offset_of!(TcpInfo, total_retrans), 100);
        // 4 numbers of 8, 6 of 4, 4 of 8, 2 of 4, 2 of 8, 6 of 4: 104 + 32 + 24 + 32 + 8 + 16 + 24.
        assert_eq!(offset_of!(TcpInfo, total_rto), 240);
        assert_eq!(size_of::<TcpInfo>(), 248);
    }

    #[test]
    fn a_shorter_answer_says_nothing_of_what_came_later() {
        // Linux 5.15 fills 232 bytes.
        assert_eq!(Told { length: 232, ..Told::default() }.total_rto(), None);
        assert_eq!(Told { length: 248, ..Told::default() }.total_rto(), Some(0));
    }
}
