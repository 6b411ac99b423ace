//! Events of a gateway's interfaces: written by the thread that attaches them, read by the others.

use std::sync::{Mutex, PoisonError};

/// Events of an interface since the start, and whether it lets frames pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceEvents {
    /// Whether it is absent.
    pub is_gone: bool,
    /// Whether it is present and down, or without a carrier.
    pub is_down: bool,
    /// Number of times that it was found deleted.
    pub gone: u64,
    /// Number of times that it was attached again.
    pub back: u64,
    /// Changes of its MTU.
    pub mtu: u64,
    /// Number of times that offloads that merge packets were found turned on.
    pub offloads: u64,
    /// Number of times that it was renamed.
    pub renamed: u64,
}

/// The events of both interfaces, inside and outside, for other threads to read.
#[derive(Debug, Default)]
pub(crate) struct Events(Mutex<[InterfaceEvents; 2]>);

impl Events {
    /// The current events.
    pub fn read(&self) -> [InterfaceEvents; 2] {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the events of an interface.
    pub fn note(&self, port: usize, change: impl FnOnce(&mut InterfaceEvents)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner)[port]);
    }
}
