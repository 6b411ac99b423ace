//! The page in the browser that shows a run.

use apportion::{Watch, WatchError};

use crate::arguments::Page;
use crate::interrupt::Interrupt;
use crate::output;

impl Page {
    /// Takes the address of the page, if one is wanted, before anything else is done.
    ///
    /// # Errors
    /// If other machines could reach it, or it cannot be had.
    pub fn bind(self) -> Result<Option<Watch>, WatchError> {
        self.watch.map(|address| Watch::bind(address.unwrap_or(Watch::ADDRESS))).transpose()
    }
}

/// Shows the page from now on, and says where.
///
/// # Errors
/// If its thread cannot be started.
pub fn serve(page: &mut Option<Watch>) -> Result<(), WatchError> {
    if let Some(page) = page {
        page.serve()?;
        output::note(&format!("watch it at {}", page.url()));
    }
    Ok(())
}

/// Keeps the page until an interrupt; one that ended the run ends it as well.
pub fn keep(page: Option<&Watch>, interrupt: &Interrupt) {
    if let Some(page) = page.filter(|_| !interrupt.is_over()) {
        output::note(&format!("the run has ended; its page stays at {} until Ctrl-C", page.url()));
        interrupt.wait();
    }
}
