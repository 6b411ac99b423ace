//! QUIC without input or output: a sender and a receiver of one stream, packet by packet.
//!
//! RFC 9000 (packet numbers, acknowledgments, streams), RFC 9002 (loss detection and congestion control). As
//! in [`tcp`](crate::tcp): time is an argument, packets leave through a [`PacketSink`], and timers are a time
//! to call back at. The two transports share code: [congestion controls](crate::congestion) with HyStart and
//! pacing, and ranges.
//!
//! # Map
//!
//! | module | holds |
//! |---|---|
//! | [`packet`] | contents and sizes of packets, and the [`PacketSink`] that they leave by |
//! | [`sender`] | transmission, timers, the interface to the application |
//! | [`sent`] | packets by number: acknowledged, lost, or neither |
//! | [`stream`] | the parts of the stream that are to be sent |
//! | [`control`] | the congestion window, and the pacing rate |
//! | [`rtt`] | the round-trip time and the timeouts that follow from it |
//! | [`receiver`] | reassembly, ACK frames, delayed acknowledgments |
//!
//! # Simplifications
//!
//! - **Handshake.** One datagram of 1200 bytes and its headers each way (RFC 9000 section 14.1), then data:
//!   the time of a handshake of one round trip. It gives the first sample of the round-trip time; a lost
//!   datagram is sent again after the probe timeout. Certificates, and thus the limit for an unvalidated
//!   server, are left out, and so are 0-RTT, address validation, keys and migration.
//! - **One stream, one way.** Frames other than STREAM, ACK and PING have no packets of their own. Flow
//!   control credit (MAX_DATA) follows the data acknowledged in order. The last data end the stream, and
//!   closing a connection sends nothing.
//! - **Acknowledgments of acknowledgments.** A receiver learns that its acknowledgment arrived, so that it
//!   need not repeat it (RFC 9000 section 13.2.4), from a number in packets of data, for which no bytes are
//!   counted. A real one would send a PING, to be answered by an ACK frame, once a round trip.
//! - **ECN.** Paths need no validation (RFC 9000 section 13.4.2); packets that acknowledge are not
//!   ECN-capable.
//! - **Losses that prove needless** are counted, without effect: RFC 9002 undoes no reduction, and the
//!   thresholds stay.

pub mod control;
pub mod packet;
pub mod receiver;
pub mod rtt;
pub mod sender;
pub mod sent;
pub mod stream;

pub use packet::{Ack, Packet, PacketSink, Stream};
pub use receiver::Receiver;
pub use sender::{Sender, SenderStats};
