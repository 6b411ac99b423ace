//! The browser page that shows a run.

use std::thread;

use anyhow::bail;
use apportion::{Scenario, Watch, WatchError};

use crate::arguments::Page;
use crate::interrupt::Interrupt;
use crate::output;

impl Page {
    /// Binds the address of the page, if one is wanted, before anything else is done.
    ///
    /// # Errors
    /// The scenario has nothing that the page shows, other machines could reach the address, or it is taken.
    pub fn bind(self, scenario: &Scenario) -> anyhow::Result<Option<Watch>> {
        let Some(address) = self.watch else { return Ok(None) };
        let mut links = scenario.points().iter().flat_map(|point| &point.scenario.links);
        if let Some(link) = links.clone().next().filter(|_| !links.any(|link| link.watched)) {
            bail!(
                "--watch shows the links with `watch = true`, and the scenario has none; add for example --set link.{}.watch=true",
                link.name
            );
        }
        Ok(Some(Watch::bind(address.unwrap_or(Watch::ADDRESS))?))
    }
}

/// Serves the page from now on, and prints its address.
///
/// # Errors
/// The thread of the page cannot be started.
pub fn serve(page: &mut Option<Watch>) -> Result<(), WatchError> {
    if let Some(page) = page {
        page.serve()?;
        output::note(&format!("watch it at {}", page.url()));
    }
    Ok(())
}

/// Keeps the page until an interrupt; an interrupt that ended the run ends the page too.
pub fn keep(page: Option<&Watch>, interrupt: &Interrupt) {
    if let Some(page) = page.filter(|_| !interrupt.cancel.is_cancelled()) {
        output::note(&format!("the run has ended; its page stays at {} until Ctrl-C", page.url()));
        while !interrupt.cancel.is_cancelled() {
            thread::park();
        }
    }
}
