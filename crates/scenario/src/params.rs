//! Parameters by name: how those of TCP and QUIC are listed, set, read and checked.

use apportion_core::congestion::{Algorithm, Registered};
use apportion_core::units::{Bytes, Packets, Span};

use crate::packet_size::MAX_PACKET;
use crate::tcp::{DelayedAck, TcpParams};

/// One parameter of `P` that a scenario may set by name.
#[derive(Debug)]
pub struct ParamEntry<P = TcpParams> {
    /// The name, equal to the field.
    pub name: &'static str,
    /// What it decides.
    pub doc: &'static str,
    /// What its value looks like: a unit kind or the words it may be.
    pub unit: &'static str,
    /// Where the rule comes from.
    pub source: &'static str,
    pub(crate) get: fn(&P) -> String,
    pub(crate) set: fn(&mut P, &str) -> Result<(), String>,
}

/// The parameters of a transport.
pub(crate) trait Params: Clone + 'static {
    /// Its name in messages.
    const TRANSPORT: &'static str;
    /// Every parameter, in the order of the fields.
    const ENTRIES: &'static [ParamEntry<Self>];

    /// Why no connection can run with these values, if so.
    fn check(&self) -> Result<(), String>;

    /// The congestion control.
    fn algorithm(&mut self) -> &mut Algorithm;

    /// Sets the parameter called `name` from `text`, or changes nothing and says what is wrong with either.
    fn set_by_name(&mut self, name: &str, text: &str) -> Result<(), String> {
        let Some(entry) = Self::ENTRIES.iter().find(|entry| entry.name == name) else {
            let known: Vec<_> = Self::ENTRIES.iter().map(|entry| entry.name).collect();
            let transport = Self::TRANSPORT;
            return Err(format!("unknown {transport} parameter `{name}` (known: {})", known.join(", ")));
        };
        self.change(text, |changed| (entry.set)(changed, text))
    }

    /// Sets the congestion control to one that a program has registered, or changes nothing and says why it cannot be.
    fn set_registered(&mut self, control: &Registered) -> Result<(), String> {
        self.change(control.entry().name, |changed| {
            *changed.algorithm() = Algorithm::Registered(control.clone());
            Ok(())
        })
    }

    /// Makes a change, unless no connection can run with it; `text` is what was written.
    fn change(
        &mut self,
        text: &str,
        change: impl FnOnce(&mut Self) -> Result<(), String>,
    ) -> Result<(), String> {
        let mut changed = self.clone();
        change(&mut changed)?;
        changed.check().map_err(|why| format!("`{text}`: {why}"))?;
        *self = changed;
        Ok(())
    }

    /// The value of the parameter called `name`, as [`set_by_name`](Self::set_by_name) reads it; `None` if there is none.
    fn get_by_name(&self, name: &str) -> Option<String> {
        Self::ENTRIES.iter().find(|entry| entry.name == name).map(|entry| (entry.get)(self))
    }
}

/// The table of parameters of a type: field, type, what it decides, source.
macro_rules! params {
    ($transport:literal, $params:ty: $($name:ident: $type:ty, $doc:literal, $source:literal;)*) => {
        /// Every parameter, in the order of the fields.
        pub const PARAMS: &[$crate::params::ParamEntry<$params>] = &[$($crate::params::ParamEntry {
            name: stringify!($name),
            doc: $doc,
            unit: <$type as $crate::tcp::text::Text>::UNIT,
            source: $source,
            get: |params| $crate::tcp::text::Text::write(&params.$name),
            set: |params, text| {
                params.$name = <$type as $crate::tcp::text::Text>::read(text)?;
                Ok(())
            },
        }),*];

        impl $crate::params::Params for $params {
            const TRANSPORT: &'static str = $transport;
            const ENTRIES: &'static [$crate::params::ParamEntry<Self>] = PARAMS;

            fn check(&self) -> Result<(), String> {
                self.check()
            }

            fn algorithm(&mut self) -> &mut Algorithm {
                &mut self.algorithm
            }
        }

        impl $params {
            /// Sets the parameter called `name` from `text`, or says what is wrong with either.
            pub fn set(&mut self, name: &str, text: &str) -> Result<(), String> {
                $crate::params::Params::set_by_name(self, name, text)
            }

            /// The value of the parameter called `name`, as [`set`](Self::set) reads it; `None` if there is none.
            #[must_use]
            pub fn get(&self, name: &str) -> Option<String> {
                $crate::params::Params::get_by_name(self, name)
            }
        }
    };
}
pub(crate) use params;

/// RFC 7323 section 2.3: a shift of at most 14 over a field of 16 bits. QUIC's could be larger; chosen: as TCP's.
pub(crate) const MAX_WINDOW: Bytes = Bytes::new(1 << 30);

/// Whether the parts are at most one packet together.
pub(crate) fn fit_a_packet(parts: &[Bytes]) -> bool {
    let take = |left: Bytes, &part: &Bytes| (part <= left).then(|| left - part);
    parts.iter().try_fold(MAX_PACKET, take).is_some()
}

/// Sizes of full packets and the receiver's window: what holds for every transport.
pub(crate) fn check_sizes(segment: Bytes, header: Bytes, window: Bytes) -> Result<(), String> {
    let why = if segment == Bytes::ZERO || !fit_a_packet(&[segment, header]) {
        "a packet carries at least 1 byte; with its headers it has at most 65535"
    } else if window < segment {
        "the window must hold at least one full packet"
    } else if window > MAX_WINDOW {
        "the window is at most 2^30 bytes (RFC 7323 section 2.3)"
    } else {
        return Ok(());
    };
    Err(why.to_owned())
}

/// The congestion window of a start in full packets of `segment`, for a transport whose windows are at least `least`.
pub(crate) fn check_initial_window(window: Packets, least: Packets, segment: Bytes) -> Result<(), String> {
    if window < least {
        Err(format!("the initial window is at least {least}"))
    } else if window.get().saturating_mul(segment.get()) > MAX_WINDOW.get() {
        Err("no receiver has a window of more than 2^30 bytes (RFC 7323 section 2.3)".to_owned())
    } else {
        Ok(())
    }
}

/// When a receiver acknowledges.
pub(crate) fn check_delayed_ack(delayed: Option<DelayedAck>) -> Result<(), String> {
    match delayed {
        Some(ack) if ack.every == 0 || ack.timeout == Span::ZERO => {
            Err("a delayed ACK waits for at least one packet and more than no time".to_owned())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::Params;

    /// Sets each parameter of `original` to a value unlike it: `others` has one for each.
    pub(crate) fn check_each_alone<P: Params>(original: &P, others: &[(&str, &str)]) {
        assert_eq!(others.len(), P::ENTRIES.len());
        for (name, text) in others {
            let mut changed = original.clone();
            assert_ne!(changed.get_by_name(name).as_deref(), Some(*text), "{name}: choose another value");
            changed.set_by_name(name, text).unwrap();
            assert_eq!(changed.get_by_name(name).as_deref(), Some(*text));
            for other in P::ENTRIES.iter().map(|entry| entry.name).filter(|other| other != name) {
                assert_eq!(changed.get_by_name(other), original.get_by_name(other), "{name} moved {other}");
            }
        }
    }
}
