//! How far a run has come: a bar on a terminal, a line for every tenth otherwise.

use std::io::IsTerminal as _;
use std::sync::{Mutex, PoisonError};

use indicatif::{ProgressBar, ProgressStyle};

use crate::output;

/// Shows how many of a number of runs are done.
pub struct Progress {
    kind: Kind,
    total: usize,
    done: Mutex<usize>,
}

enum Kind {
    Bar(ProgressBar),
    Lines,
    Silent,
}

impl Progress {
    /// For `total` runs; `quiet` shows nothing.
    pub fn new(total: usize, quiet: bool) -> Self {
        let kind = if quiet {
            Kind::Silent
        } else if std::io::stderr().is_terminal() {
            let bar = ProgressBar::new(total as u64);
            if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} runs, {eta} left") {
                bar.set_style(style);
            }
            bar.tick();
            Kind::Bar(bar)
        } else {
            Kind::Lines
        };
        Self { kind, total, done: Mutex::new(0) }
    }

    /// One more is done.
    pub fn step(&self) {
        // Held until the line is out, or a thread could be overtaken between counting and writing.
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        *done += 1;
        match &self.kind {
            Kind::Bar(bar) => bar.inc(1),
            Kind::Lines if *done * 10 / self.total > (*done - 1) * 10 / self.total => {
                output::note(&format!("{done}/{} runs done", self.total));
            }
            Kind::Lines | Kind::Silent => (),
        }
    }

    /// Clears the bar.
    pub fn finish(&self) {
        if let Kind::Bar(bar) = &self.kind {
            bar.finish_and_clear();
        }
    }
}
