//! The progress of a run: a bar on a terminal, a line for every tenth otherwise.

use std::io::IsTerminal as _;

use apportion::Progress;
use indicatif::{ProgressBar, ProgressStyle};

use crate::output;

/// Shows how many runs are done.
pub enum Bar {
    Drawn(ProgressBar),
    Lines,
    Silent,
}

impl Bar {
    /// Shows nothing if `silent`.
    pub fn new(silent: bool) -> Self {
        if silent {
            return Self::Silent;
        }
        if !std::io::stderr().is_terminal() {
            return Self::Lines;
        }
        let bar = ProgressBar::no_length();
        if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} runs, {eta} left") {
            bar.set_style(style);
        }
        bar.tick();
        Self::Drawn(bar)
    }

    /// One more run is done.
    pub fn show(&self, Progress { done, reused, total }: Progress) {
        match self {
            Self::Lines if reused > 0 && done == reused => {
                output::note(&format!("{reused} of {total} runs are from the cache"));
            }
            Self::Drawn(bar) => {
                bar.set_length(total as u64);
                bar.set_position(done as u64);
            }
            Self::Lines if done * 10 / total > (done - 1) * 10 / total => {
                output::note(&format!("{done}/{total} runs done"));
            }
            Self::Lines | Self::Silent => (),
        }
    }

    /// Removes the bar.
    pub fn clear(&self) {
        if let Self::Drawn(bar) = self {
            bar.finish_and_clear();
        }
    }
}
