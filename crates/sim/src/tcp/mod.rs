//! TCP without input or output: a sender and a receiver of one direction of data, byte by byte and header by
//! header.
//!
//! Time is an argument, segments leave through a [`SegmentSink`], and timers are a time to call back at
//! ([`Sender::next_timer`]). One engine obeys all of [`TcpParams`](apportion_scenario::tcp::TcpParams), so
//! ns-2's TCP and the RFCs' are the same code under different values. Sequence numbers are 64-bit offsets
//! from the initial sequence number inside, and wrap to 32 bits on the wire.
//!
//! # Map
//!
//! | module | holds |
//! |---|---|
//! | [`segment`] | the header fields, and the [`SegmentSink`] they leave by |
//! | [`sender`] | transmission, timers, the interface to the application |
//! | [`recovery`] | processing of ACKs: growth, duplicate ACKs, fast retransmit, fast recovery, ECN |
//! | [`accurate`] | feedback of marks to a Prague sender: Accurate ECN |
//! | [`rack`] | processing of ACKs with RACK-TLP: losses by time, tail loss probes |
//! | [`prr`] | proportional rate reduction |
//! | [`scoreboard`] | the peer's SACK reports, and the functions of RFC 6675 over them |
//! | [`rtt`] | the retransmission timeout, in ticks or exact |
//! | [`receiver`] | reassembly, ACKs, delayed ACKs, SACK blocks, the advertised window |
//! | [`seq`] | 32-bit sequence numbers and 64-bit offsets |
//!
//! # Scope
//!
//! One direction of data: the receiver never sends payload or a FIN of its own, and the sender does not
//! acknowledge the SYN-ACK by a segment of its own (its first data does). Not implemented: protection against
//! wrapped sequence numbers (RFC 7323 section 5), F-RTO, undoing of needless reductions without RACK, path
//! MTU discovery, urgent data, simultaneous open, RST. The caller adds ns-2's random `overhead_` between send
//! times.

pub mod accurate;
pub mod prr;
pub mod rack;
pub mod receiver;
pub mod recovery;
pub mod rtt;
pub mod scoreboard;
pub mod segment;
pub mod sender;
pub mod seq;

pub use receiver::Receiver;
pub use segment::{Flags, SackBlocks, Segment, SegmentSink};
pub use sender::{Sender, SenderStats};
