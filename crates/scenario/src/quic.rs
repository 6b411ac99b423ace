//! QUIC parameters of scenarios: data only. The simulator implements all of them.
//!
//! Unlike TCP it has no profiles: the recommendations of RFC 9000 and RFC 9002 are the defaults, and every
//! parameter can be set by [name](QuicParams::PARAMS). Constants with a single value in those RFCs, for
//! example the time threshold of 9/8, are not parameters.
//!
//! Headers on the wire, in bytes, of a packet with data:
//!
//! | bytes | what | where from |
//! |---|---|---|
//! | 20 | IPv4 header without options | RFC 791 section 3.1 |
//! | 8 | UDP header | RFC 768 |
//! | 13 | short header: flags 1, destination connection ID 8, packet number 4 | RFC 9000 section 17.3.1; the lengths are chosen |
//! | 12 | STREAM frame: type 1, stream ID 1, offset 8, length 2 | RFC 9000 section 19.8 |
//! | 16 | authentication tag | RFC 9001 section 5.3 |

use std::iter;

use apportion_core::param::{Param, ParamError};
use apportion_core::params;
use apportion_core::units::{Bytes, Packets, Span};

use crate::packet_size::UDP_HEADER;
use crate::params::{Params, check_delayed_ack, check_initial_window, check_sizes, fit_a_packet};
use crate::tcp::text::Text;
use crate::tcp::{
    ALGORITHMS, Algorithm, CubicForm, DelayedAck, Halving, InitialSsthresh, InitialWindow, TcpParams, Window,
};

params! {
    /// Everything that distinguishes one QUIC from another.
    pub struct QuicParams {
        /// How the window grows and what a loss takes.
        algorithm: Algorithm = Param::unset("RFC 9002 section 7; RFC 9438"),
        /// Bytes of the stream in a full packet.
        segment: Bytes = Param::unset("RFC 9000 section 14"),
        /// What headers add to a packet of data on the wire, those of IP and UDP included.
        header: Bytes = Param::unset("20 IP, 8 UDP, 13 short header, 12 STREAM frame, 16 tag: RFC 9000 sections 17.3.1, 19.8"),
        /// The wire size of a packet that acknowledges, without its ACK frame.
        ack: Bytes = Param::unset("20 IP, 8 UDP, 13 short header, 16 tag"),
        /// What the receiver lets the sender send beyond what arrived in order.
        window: Bytes = Param::unset("RFC 9000 section 4.1"),
        /// The congestion window after the handshake, in full packets.
        initial_window: Packets = Param::unset("RFC 9002 section 7.2"),
        /// Packets by which one may overtake another before that is lost: kPacketThreshold.
        packet_threshold: u32 = Param::unset("RFC 9002 section 6.1.1"),
        /// When the receiver acknowledges later than at once. Its time is max_ack_delay.
        delayed_ack: Option<DelayedAck> = Param::unset("RFC 9000 sections 13.2.2, 18.2"),
        /// Whether slow start ends when delay grows.
        hystart: bool = Param::unset("Ha and Rhee 2011"),
        /// Whether packets of data are ECN-capable.
        ecn: bool = Param::unset("RFC 9000 section 13.4, RFC 9002 section 7.1"),
    }
    text: Text
}

/// The default congestion control.
const DEFAULT: Algorithm = Algorithm::Cubic;

/// Headers of a packet that acknowledges: IPv4, UDP, the short header and the tag.
const ACK_HEADERS: Bytes = Bytes::new(20 + 8 + 13 + 16);
/// An ACK frame of one range, as most are: type 1, largest 4, delay 2, count 1, range 2 (RFC 9000 section 19.3).
const USUAL_ACK_FRAME: Bytes = Bytes::new(10);
/// Maximum of ranges in an ACK frame. Chosen, as implementations bound it (RFC 9000 section 13.2.3).
pub const MAX_RANGES: usize = 32;
/// The largest ACK frame: one range, two numbers of 4 bytes for each other, and three counts.
const LARGEST_ACK_FRAME: Bytes = Bytes::new(1 + 4 + 4 + 1 + 4 + (MAX_RANGES as u64 - 1) * 8 + 3 * 4);

impl Default for QuicParams {
    fn default() -> Self {
        Self {
            algorithm: DEFAULT,
            // 1500 bytes with headers, as path MTU discovery finds on an Ethernet (RFC 9000 section 14.3).
            segment: Bytes::new(1_431),
            header: Bytes::new(20 + 8 + 13 + 12 + 16),
            ack: ACK_HEADERS,
            // Chosen: the default of TCP, so that the two differ only in their algorithms.
            window: Bytes::new(3_145_728),
            initial_window: Packets::new(10),
            packet_threshold: 3,
            delayed_ack: Some(DelayedAck { every: 2, timeout: Span::from_millis(25), aligned: false }),
            hystart: false,
            ecn: false,
        }
    }
}

impl QuicParams {
    /// The default with the congestion control of this project called `name`.
    #[must_use]
    pub fn with_algorithm(name: &str) -> Option<Self> {
        let algorithm = Algorithm::named(name).filter(|algorithm| algorithm.entry().quic)?;
        Some(Self { algorithm, ..Self::default() })
    }

    /// Sets the parameter called `name` from `text`.
    ///
    /// # Errors
    /// What is wrong with either, or that no QUIC can run with it; then nothing changes.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), ParamError> {
        self.set_by_name(name, text)
    }

    /// Whether a QUIC can run with these values.
    ///
    /// # Errors
    /// The reason why no QUIC can run with the parameters, with one that has to change.
    pub fn check(&self) -> Result<(), ParamError> {
        if !self.algorithm.entry().quic {
            let why = format!("is for TCP; QUIC has {}", words().collect::<Vec<_>>().join(", "));
            return Err(ParamError::new("algorithm", why));
        }
        check_sizes(self.segment, self.header, self.window)?;
        // RFC 9002 section 7.2.
        check_initial_window(self.initial_window, MINIMUM_WINDOW, self.segment)?;
        check_delayed_ack(self.delayed_ack)?;
        let (key, why) = if self.header <= UDP_HEADER || self.ack <= UDP_HEADER {
            let key = if self.header <= UDP_HEADER { "header" } else { "ack" };
            (key, "headers are more than the 28 bytes of IP and UDP")
        } else if !fit_a_packet(&[self.ack, LARGEST_ACK_FRAME]) {
            ("ack", "a packet with the largest ACK frame has at most 65535 bytes")
        } else if self.packet_threshold < 3 {
            ("packet_threshold", "RFC 9002 section 6.1.1 allows no threshold below 3")
        } else if self.delayed_ack.is_some_and(|ack| ack.timeout >= MAX_ACK_DELAY) {
            ("delayed_ack", "max_ack_delay is below 2^14 ms (RFC 9000 section 18.2)")
        } else if self.delayed_ack.is_some_and(|ack| ack.aligned) {
            ("delayed_ack", "only TCP of BSD aligns its timer; leave `aligned` out")
        } else {
            return Ok(());
        };
        Err(ParamError::new(key, why))
    }

    /// The wire size of a full packet.
    #[must_use]
    pub fn packet(&self) -> Bytes {
        self.segment + self.header
    }

    /// The wire size of most packets that acknowledge.
    #[must_use]
    pub fn usual_ack(&self) -> Bytes {
        self.ack + USUAL_ACK_FRAME
    }

    /// The longest that the receiver holds an acknowledgment back.
    #[must_use]
    pub fn max_ack_delay(&self) -> Span {
        self.delayed_ack.map_or(Span::ZERO, |ack| ack.timeout)
    }

    /// The response of congestion controls that TCP has too: RFC 9002 section 7.3, in bytes and from the
    /// whole window.
    #[must_use]
    pub fn congestion(&self) -> TcpParams {
        TcpParams {
            algorithm: self.algorithm.clone(),
            segment: self.segment,
            header: self.header,
            window: Window::Bytes(self.window),
            initial_window: InitialWindow::Packets(self.initial_window),
            initial_ssthresh: InitialSsthresh::Unlimited,
            halving: Halving::Window,
            truncate_ssthresh: false,
            truncate_cwnd: false,
            byte_counting: true,
            abc_limit: None,
            cubic: CubicForm::Rfc9438,
            hystart: self.hystart,
            pacing: true,
            ..TcpParams::classical()
        }
    }
}

/// RFC 9002 section 7.2, kMinimumWindow.
pub const MINIMUM_WINDOW: Packets = Packets::new(2);
/// RFC 9000 section 18.2.
const MAX_ACK_DELAY: Span = Span::from_millis(1 << 14);

/// The names of this project's congestion controls for QUIC, the default first.
pub fn words() -> impl Iterator<Item = &'static str> {
    let default = DEFAULT.entry().name;
    let others = ALGORITHMS.iter().filter(|entry| entry.quic).map(|entry| entry.name);
    iter::once(default).chain(others.filter(move |name| *name != default))
}

impl Params for QuicParams {
    const TRANSPORT: &'static str = "QUIC";
    fn check(&self) -> Result<(), ParamError> {
        self.check()
    }

    fn algorithm(&mut self) -> &mut Algorithm {
        &mut self.algorithm
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::tests::check_each_alone;

    /// A value unlike the default for every parameter.
    const OTHER: &[(&str, &str)] = &[
        ("algorithm", "bbr"),
        ("segment", "1200B"),
        ("header", "89B"),
        ("ack", "77B"),
        ("window", "64kB"),
        ("initial_window", "32p"),
        ("packet_threshold", "10"),
        ("delayed_ack", "10 100ms"),
        ("hystart", "true"),
        ("ecn", "true"),
    ];

    #[test]
    fn every_parameter_is_set_and_read_back_and_changes_nothing_else() {
        check_each_alone(&QuicParams::default(), OTHER);
    }

    #[test]
    fn a_full_packet_is_one_of_an_ethernet_and_the_default_is_possible() {
        let params = QuicParams::default();
        assert_eq!((params.packet(), params.usual_ack()), (Bytes::new(1_500), Bytes::new(67)));
        assert_eq!(params.check(), Ok(()));
        assert_eq!(params.max_ack_delay(), Span::from_millis(25));
    }

    #[test]
    fn what_cannot_be_is_refused_with_a_reason_and_changes_nothing() {
        let has = format!("is for TCP; QUIC has {}", words().collect::<Vec<_>>().join(", "));
        let cases = [
            ("profile", "linux", "unknown QUIC parameter; known here: algorithm, "),
            ("algorithm", "vegas", &*has),
            ("segment", "0B", "at least 1 byte"),
            ("segment", "65500B", "at most 65535"),
            ("header", "28B", "more than the 28 bytes"),
            ("ack", "20B", "more than the 28 bytes"),
            ("ack", "65500B", "largest ACK frame"),
            ("window", "1000B", "at least one full packet"),
            ("window", "2000MB", "2^30"),
            ("initial_window", "1p", "at least 2p"),
            ("initial_window", "18446744073709551615p", "2^30"),
            ("packet_threshold", "2", "below 3"),
            ("delayed_ack", "0 25ms", "at least one packet"),
            ("delayed_ack", "2 17s", "2^14"),
            ("delayed_ack", "2 25ms aligned", "leave `aligned` out"),
        ];
        for (name, text, expected) in cases {
            let mut params = QuicParams::default();
            let ParamError { key, message } = params.set(name, text).unwrap_err();
            assert_eq!(key, name);
            assert!(message.contains(expected), "{name} = {text}: {message}");
            assert_eq!(params, QuicParams::default());
        }
    }
}
