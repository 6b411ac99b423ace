//! Interrupts: the first asks runs to stop, the second ends the program.

use anyhow::Context as _;
use apportion::Cancel;

/// The token that an interrupt cancels from now on. Starts a thread.
pub fn listen() -> anyhow::Result<Cancel> {
    let cancel = Cancel::new();
    let token = cancel.clone();
    ctrlc::set_handler(move || {
        if token.is_cancelled() {
            std::process::exit(1);
        }
        token.cancel();
    })
    .context("cannot listen for interrupts")?;
    Ok(cancel)
}
