//! Sizes of packets that no scenario can change.

use apportion_core::units::Bytes;

/// IPv4 (20, RFC 791) and UDP (8, RFC 768).
pub const UDP_HEADER: Bytes = Bytes::new(28);

/// The largest packet on any wire, as IPv4 allows (RFC 791 section 3.1).
pub const MAX_PACKET: Bytes = Bytes::new(65_535);
