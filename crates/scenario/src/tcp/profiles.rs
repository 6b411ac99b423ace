//! The values of the profiles. Each is listed by its differences from another one.

use apportion_core::units::{Bytes, Packets, Span};

use super::{
    Algorithm, CubicForm, DelayedAck, Halving, Idle, Inflate, InitialSsthresh, InitialWindow, RecoveryExit,
    SackRecovery, TcpParams, Window,
};

pub(super) fn linux() -> TcpParams {
    TcpParams {
        algorithm: Algorithm::Cubic,
        sack_recovery: SackRecovery::Rack,
        // The timestamp option takes 12 bytes of each segment.
        segment: Bytes::new(1_448),
        header: Bytes::new(52),
        ack: Bytes::new(52),
        // Half of the 6 MB that tcp_rmem allows: the other half is for the kernel's own records.
        window: Window::Bytes(Bytes::new(3_145_728)),
        initial_window: InitialWindow::Packets(Packets::new(10)),
        delayed_ack: Some(DelayedAck { every: 2, timeout: Span::from_millis(40), aligned: false }),
        quick_acks: 16,
        min_rto: Span::from_millis(200),
        min_variance: Span::from_millis(200),
        max_rto: Span::from_secs(120),
        timestamps: true,
        linear_syns: 4,
        halving: Halving::Window,
        truncate_ssthresh: true,
        abc_limit: None,
        cubic: CubicForm::Linux,
        hystart: true,
        exit: RecoveryExit::Ssthresh,
        idle: Idle::Decay,
        ..rfc()
    }
}

pub(super) fn rfc() -> TcpParams {
    TcpParams {
        algorithm: Algorithm::NewReno,
        sack_recovery: SackRecovery::Rfc6675,
        segment: Bytes::new(1_460),
        header: Bytes::new(40),
        ack: Bytes::new(40),
        sack_option: Bytes::new(4),
        window: Window::Bytes(Bytes::new(4_000_000)),
        send_buffer: None,
        window_scale: true,
        initial_window: InitialWindow::Rfc5681,
        initial_ssthresh: InitialSsthresh::Unlimited,
        dupack_threshold: 3,
        limited_transmit: true,
        delayed_ack: Some(DelayedAck { every: 2, timeout: Span::from_millis(200), aligned: false }),
        quick_acks: 0,
        ack_gap_fill: true,
        delay_repeat: false,
        tick: Span::ZERO,
        min_rto: Span::from_secs(1),
        min_variance: Span::ZERO,
        max_rto: Span::from_secs(60),
        initial_rto: Span::from_secs(1),
        max_backoff: None,
        forget_srtt: false,
        stale_rto: false,
        ack_ends_backoff: false,
        timestamps: false,
        syn: true,
        linear_syns: 0,
        fin: true,
        nagle: true,
        ecn: false,
        bug_fix: true,
        fast_again: false,
        inflate: Inflate::Recovery,
        recovery_burst: None,
        halving: Halving::Flight,
        truncate_ssthresh: false,
        truncate_cwnd: false,
        byte_counting: true,
        abc_limit: Some(1),
        cubic: CubicForm::Rfc9438,
        hystart: false,
        pacing: false,
        exit: RecoveryExit::Flight,
        idle: Idle::Restart,
    }
}

pub(super) fn reno_1999() -> TcpParams {
    TcpParams {
        algorithm: Algorithm::Reno,
        window: Window::Bytes(Bytes::new(65_535)),
        window_scale: false,
        initial_window: InitialWindow::Packets(Packets::new(1)),
        limited_transmit: false,
        delayed_ack: Some(DelayedAck { every: 2, timeout: Span::from_millis(200), aligned: true }),
        // RFC 2988 (2.1): 3 s; RFC 6298 lowered it to 1 s in 2011.
        initial_rto: Span::from_secs(3),
        byte_counting: false,
        exit: RecoveryExit::Ssthresh,
        ..rfc()
    }
}

pub(super) fn ns2_235() -> TcpParams {
    TcpParams {
        algorithm: Algorithm::Reno,
        sack_recovery: SackRecovery::Pipe,
        segment: Bytes::new(1_000),
        sack_option: Bytes::ZERO,
        window: Window::Packets(Packets::new(20)),
        initial_window: InitialWindow::Packets(Packets::new(2)),
        initial_ssthresh: InitialSsthresh::Window,
        delayed_ack: None,
        delay_repeat: true,
        tick: Span::from_millis(10),
        min_rto: Span::from_millis(200),
        initial_rto: Span::from_secs(3),
        forget_srtt: true,
        fin: false,
        nagle: false,
        recovery_burst: Some(2),
        halving: Halving::Window,
        truncate_ssthresh: true,
        byte_counting: false,
        exit: RecoveryExit::Grow,
        idle: Idle::Timeout,
        ..rfc()
    }
}

pub(super) fn ns2_2000() -> TcpParams {
    TcpParams {
        header: Bytes::ZERO,
        initial_window: InitialWindow::Packets(Packets::new(1)),
        limited_transmit: false,
        ack_gap_fill: false,
        tick: Span::from_millis(100),
        min_rto: Span::ZERO,
        max_rto: Span::from_secs(64),
        initial_rto: Span::from_secs(6),
        max_backoff: Some(64),
        stale_rto: true,
        syn: false,
        inflate: Inflate::Always,
        truncate_cwnd: true,
        ..ns2_235()
    }
}

pub(super) fn ns2_full() -> TcpParams {
    TcpParams {
        // Whatever other senders did then, FullTcp always had headers and a handshake.
        header: Bytes::new(40),
        syn: true,
        delayed_ack: Some(DelayedAck { every: 2, timeout: Span::from_millis(100), aligned: true }),
        ack_gap_fill: true,
        delay_repeat: false,
        ack_ends_backoff: true,
        fast_again: true,
        inflate: Inflate::Cwnd,
        idle: Idle::Restart,
        ..ns2_2000()
    }
}
