//! Interrupts: the first asks runs to stop, the second ends the program.

use std::thread;

use anyhow::Context as _;
use apportion::Cancel;

/// Returns the token that an interrupt cancels from now on. Starts a thread.
pub fn listen() -> anyhow::Result<Cancel> {
    Ok(Interrupt::listen()?.cancel)
}

/// An interrupt, delivered to the thread that waits for it.
pub struct Interrupt {
    pub cancel: Cancel,
}

impl Interrupt {
    /// Listens from now on. Starts a thread.
    pub fn listen() -> anyhow::Result<Self> {
        let cancel = Cancel::new();
        let (token, listener) = (cancel.clone(), thread::current());
        ctrlc::set_handler(move || {
            if token.is_cancelled() {
                std::process::exit(1);
            }
            token.cancel();
            listener.unpark();
        })
        .context("cannot listen for interrupts")?;
        Ok(Self { cancel })
    }
}
