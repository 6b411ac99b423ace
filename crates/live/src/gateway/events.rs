//! What happened to the interfaces of a gateway: written by the thread that moves packets, read by the others.

use std::sync::{Mutex, PoisonError};

/// What happened to an interface since the start, and whether frames can pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceEvents {
    /// Whether it is not there.
    pub is_gone: bool,
    /// Whether it is there and down, or without a carrier.
    pub is_down: bool,
    /// Times that it was found deleted.
    pub gone: u64,
    /// Times that it was attached again.
    pub back: u64,
    /// Changes of its MTU.
    pub mtu: u64,
    /// Times that offloads which merge packets had been turned on.
    pub offloads: u64,
    /// Times that it got another name.
    pub renamed: u64,
}

/// The events of both interfaces, inside and outside, for other threads to read.
#[derive(Debug, Default)]
pub(crate) struct Events(Mutex<[InterfaceEvents; 2]>);

impl Events {
    /// As of now.
    pub fn read(&self) -> [InterfaceEvents; 2] {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes those of an interface.
    pub fn note(&self, port: usize, change: impl FnOnce(&mut InterfaceEvents)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner)[port]);
    }
}
