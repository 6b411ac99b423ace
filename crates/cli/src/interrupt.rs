//! Interrupts: the first asks runs to stop, the second ends the program.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;

/// Set by an interrupt: runs under way stop.
pub static CANCEL: AtomicBool = AtomicBool::new(false);

/// Starts to listen.
pub fn listen() -> anyhow::Result<()> {
    // A second interrupt ends the program at once.
    ctrlc::set_handler(|| {
        if CANCEL.swap(true, Ordering::Relaxed) {
            std::process::exit(1);
        }
    })
    .context("cannot listen for interrupts")
}
