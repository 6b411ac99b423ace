//! Transport stacks of other projects, unmodified, as transports of Apportion's simulator.
//!
//! [`register`] adds all of them to a catalogue; a flow then names one in `transport`.
//!
//! | module | stack |
//! |---|---|
//! | [`quinn`] | quinn, QUIC in Rust: the published crate `quinn-proto` |
//! | [`smoltcp`] | smoltcp, TCP of embedded systems in Rust |
//! | `null_session` | a handshake without cryptography for quinn |

#![forbid(unsafe_code)]
#![warn(missing_docs)]

use apportion_core::system::Catalog;
use apportion_core::system::catalog::RegisterError;

mod null_session;
pub mod quinn;
pub mod smoltcp;

/// Registers every stack of this crate.
///
/// # Errors
/// When a name is taken.
pub fn register(catalog: &mut Catalog) -> Result<(), RegisterError> {
    catalog.register_stack(&quinn::ENTRY, quinn::Quinn::from_args)?;
    catalog.register_stack(&smoltcp::ENTRY, smoltcp::Smoltcp::from_args)
}
