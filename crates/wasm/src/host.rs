//! The functions that the page provides. Elsewhere, a stand-in for tests provides them.

#[cfg(target_family = "wasm")]
mod page {
    #![expect(unsafe_code, reason = "imports of the page, all of which are safe")]

    mod imports {
        #[link(wasm_import_module = "env")]
        unsafe extern "C" {
            pub(crate) safe fn progress(part: f64);
            pub(crate) safe fn policy(rate: f64) -> u32;
            pub(crate) safe fn admit(
                handle: u32,
                now: f64,
                flow: u32,
                size: u32,
                packets: u32,
                bytes: f64,
                random: f64,
            ) -> u32;
        }
    }

    pub(crate) use imports::{admit, policy, progress};
}

#[cfg(not(target_family = "wasm"))]
mod page {
    pub(crate) const fn progress(_part: f64) {}

    pub(crate) const fn policy(_rate: f64) -> u32 {
        0
    }

    /// Drops above five packets, and marks above three.
    pub(crate) const fn admit(
        _handle: u32,
        _now: f64,
        _flow: u32,
        _size: u32,
        packets: u32,
        _bytes: f64,
        _random: f64,
    ) -> u32 {
        match packets {
            5.. => super::DROP,
            3.. => super::MARK,
            _ => 0,
        }
    }
}

pub(crate) use page::*;

/// The answer of `admit` for a packet to drop.
pub(crate) const DROP: u32 = 1;
/// The answer for a packet to mark.
pub(crate) const MARK: u32 = 2;
