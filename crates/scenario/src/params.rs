//! Parameters by name: listing, setting, reading and checking those of TCP and QUIC.

use apportion_core::congestion::{Algorithm, Registered};
use apportion_core::param::{ByName, ParamError};
use apportion_core::units::{Bytes, Packets, Span};

use crate::packet_size::MAX_PACKET;
use crate::problem::unknown_key;
use crate::tcp::DelayedAck;

/// The parameters of a transport.
pub(crate) trait Params: ByName + Clone + 'static {
    /// The transport's name in messages.
    const TRANSPORT: &'static str;

    /// Why no connection can run with these values, if so.
    fn check(&self) -> Result<(), ParamError>;

    /// The congestion control.
    fn algorithm(&mut self) -> &mut Algorithm;

    /// Sets the parameter called `name` from `text`, or changes nothing and returns what is wrong with
    /// either.
    fn set_by_name(&mut self, name: &str, text: &str) -> Result<(), ParamError> {
        self.change(name, text, |changed| {
            changed.put(name, text).unwrap_or_else(|| {
                let noun = format!("{} parameter", Self::TRANSPORT);
                let known = Self::PARAMS.iter().map(|entry| entry.name);
                Err(ParamError::new(name, unknown_key(&noun, name, known)))
            })
        })
    }

    /// Sets the congestion control to a registered one, or changes nothing and returns why it cannot be set.
    fn set_registered(&mut self, control: &Registered) -> Result<(), ParamError> {
        self.change("algorithm", control.entry().name, |changed| {
            *changed.algorithm() = Algorithm::Registered(control.clone());
            Ok(())
        })
    }

    /// Makes a change, unless no connection can run with it; `text` was written under `name`.
    fn change(
        &mut self,
        name: &str,
        text: &str,
        change: impl FnOnce(&mut Self) -> Result<(), ParamError>,
    ) -> Result<(), ParamError> {
        let mut changed = self.clone();
        change(&mut changed)?;
        changed.check().map_err(|why| ParamError::new(name, format!("`{text}`: {}", why.message)))?;
        *self = changed;
        Ok(())
    }
}

/// RFC 7323 section 2.3: a shift of at most 14 over a field of 16 bits. QUIC's could be larger; chosen: as
/// for TCP.
pub(crate) const MAX_WINDOW: Bytes = Bytes::new(1 << 30);

/// Whether the sum of the parts is at most one packet.
pub(crate) fn fit_a_packet(parts: &[Bytes]) -> bool {
    let take = |left: Bytes, &part: &Bytes| (part <= left).then(|| left - part);
    parts.iter().try_fold(MAX_PACKET, take).is_some()
}

/// Checks sizes of full packets and the receiver's window, for every transport.
pub(crate) fn check_sizes(segment: Bytes, header: Bytes, window: Bytes) -> Result<(), ParamError> {
    let (key, why) = if segment == Bytes::ZERO || !fit_a_packet(&[segment, header]) {
        ("segment", "a packet carries at least 1 byte; with its headers it has at most 65535")
    } else if window < segment {
        ("window", "the window must hold at least one full packet")
    } else if window > MAX_WINDOW {
        ("window", "the window is at most 2^30 bytes (RFC 7323 section 2.3)")
    } else {
        return Ok(());
    };
    Err(ParamError::new(key, why))
}

/// The initial congestion window in full packets of `segment`, for a transport with windows of at least
/// `least`.
pub(crate) fn check_initial_window(
    window: Packets,
    least: Packets,
    segment: Bytes,
) -> Result<(), ParamError> {
    let why = if window < least {
        format!("the initial window is at least {least}")
    } else if window.get().saturating_mul(segment.get()) > MAX_WINDOW.get() {
        "no receiver has a window of more than 2^30 bytes (RFC 7323 section 2.3)".to_owned()
    } else {
        return Ok(());
    };
    Err(ParamError::new("initial_window", why))
}

/// Checks when a receiver acknowledges.
pub(crate) fn check_delayed_ack(delayed: Option<DelayedAck>) -> Result<(), ParamError> {
    match delayed {
        Some(ack) if ack.every == 0 || ack.timeout == Span::ZERO => {
            let why = "a delayed ACK waits for at least one packet and more than no time";
            Err(ParamError::new("delayed_ack", why))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::Params;

    /// Sets each parameter of `original` to a different value; `others` has one for each.
    pub(crate) fn check_each_alone<P: Params>(original: &P, others: &[(&str, &str)]) {
        assert_eq!(others.len(), P::PARAMS.len());
        for (name, text) in others {
            let mut changed = original.clone();
            assert_ne!(changed.get(name).as_deref(), Some(*text), "{name}: choose another value");
            changed.set_by_name(name, text).unwrap();
            assert_eq!(changed.get(name).as_deref(), Some(*text));
            for other in P::PARAMS.iter().map(|entry| entry.name).filter(|other| other != name) {
                assert_eq!(changed.get(other), original.get(other), "{name} moved {other}");
            }
        }
    }
}
