//! Progress of a run: a bar on a terminal; otherwise a line per tenth, and one per half minute in long runs.

use std::io::IsTerminal as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use apportion::Progress;
use indicatif::{ProgressBar, ProgressStyle};

use crate::output;

/// Time between two lines. Chosen: a day's log then has a few thousand lines.
const BETWEEN_LINES: Duration = Duration::from_secs(30);
/// Steps of a bar, from which it estimates the time left.
const STEPS: u64 = 1_000;

/// Display of progress.
pub enum Bar {
    Drawn(ProgressBar),
    Lines(Mutex<Line>),
    Silent,
}

/// State of the display in lines.
pub struct Line {
    at: Instant,
    done: usize,
}

impl Bar {
    /// Shows nothing if `silent`.
    pub fn new(silent: bool) -> Self {
        if silent {
            return Self::Silent;
        }
        if !std::io::stderr().is_terminal() {
            return Self::Lines(Mutex::new(Line { at: now(), done: 0 }));
        }
        let bar = ProgressBar::new(STEPS);
        if let Ok(style) = ProgressStyle::with_template("{bar:40} {msg}{percent} %, {eta} left") {
            bar.set_style(style);
        }
        bar.tick();
        Self::Drawn(bar)
    }

    /// Shows progress.
    pub fn show(&self, progress: Progress) {
        match self {
            Self::Drawn(bar) => {
                let Progress { done, total, .. } = progress;
                bar.set_message(format!("{done}/{total} runs, "));
                bar.set_position((progress.part() * STEPS as f64) as u64);
            }
            Self::Lines(line) => {
                let mut line = line.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(text) = line.next(progress, now()) {
                    output::note(&text);
                }
            }
            Self::Silent => (),
        }
    }

    /// Removes the bar.
    pub fn clear(&self) {
        if let Self::Drawn(bar) = self {
            bar.finish_and_clear();
        }
    }
}

impl Line {
    /// Line to print now, if any.
    fn next(&mut self, progress: Progress, now: Instant) -> Option<String> {
        let Progress { done, reused, total, .. } = progress;
        let tenth = |done: usize| (done * 10).checked_div(total);
        let text = if done == self.done {
            let is_due = now.duration_since(self.at) >= BETWEEN_LINES;
            is_due.then(|| format!("{done}/{total} runs done, {:.0} % of all", progress.part() * 100.0))
        } else if reused > 0 && done == reused {
            Some(format!("{reused} of {total} runs are from the cache"))
        } else {
            (tenth(done) > tenth(self.done)).then(|| format!("{done}/{total} runs done"))
        };
        self.done = done;
        if text.is_some() {
            self.at = now;
        }
        text
    }
}

/// The present time, to measure how long people wait.
#[expect(clippy::disallowed_methods, reason = "lines are for people who wait, by their clock")]
pub fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_has_a_line_every_half_minute() {
        let begin = now();
        let mut line = Line { at: begin, done: 0 };
        let mut next = |seconds, done, partly| {
            line.next(Progress { done, reused: 0, total: 2, partly }, begin + Duration::from_secs(seconds))
        };
        assert_eq!(next(29, 0, 0.25), None);
        assert_eq!(next(30, 0, 0.5).as_deref(), Some("0/2 runs done, 25 % of all"));
        assert_eq!(next(59, 0, 0.75), None);
        assert_eq!(next(60, 1, 0.0).as_deref(), Some("1/2 runs done"));
        assert_eq!(next(61, 2, 0.0).as_deref(), Some("2/2 runs done"));
    }
}
