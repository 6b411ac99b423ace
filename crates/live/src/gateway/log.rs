//! Writes the log of a gateway to standard error without blocking or failing.
//!
//! A log must not cost the link. The reader of a pipe may stop reading, and a writer blocks when the pipe is
//! full: first the thread of commands, then, as soon as the other thread logs too, the thread of packets. A
//! disk may be full, a terminal closed, a reader gone. A line that cannot be written at once is therefore
//! lost and counted; a line with the number of lost ones precedes the next line that can be written.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Lost lines of this process's log.
static LOST: Lost = Lost::new();

/// Lines of a log that could not be written.
#[derive(Debug)]
pub(crate) struct Lost {
    /// All of them, since the start.
    all: AtomicU64,
    /// Losses that no line of the log has reported.
    unreported: AtomicU64,
}

impl Lost {
    /// No lines.
    pub const fn new() -> Self {
        Self { all: AtomicU64::new(0), unreported: AtomicU64::new(0) }
    }

    /// Number since the start.
    pub fn lines(&self) -> u64 {
        self.all.load(Ordering::Relaxed)
    }
}

/// Lines of the log that could not be written since the start.
pub(crate) fn lines_lost() -> u64 {
    LOST.lines()
}

/// The destination of a log.
pub(crate) trait Output: Write {
    /// Whether a line can be written without blocking.
    fn has_room(&self) -> bool;
}

impl<T: AsFd + Write> Output for T {
    fn has_room(&self) -> bool {
        // poll(2) reports a pipe as writable if it has room for 4096 bytes (pipe(7)).
        let mut polled = [PollFd::new(self.as_fd(), PollFlags::POLLOUT)];
        // If the reader has gone, writing does not block.
        poll(&mut polled, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
    }
}

/// Writes one line at a time to standard error.
#[derive(Clone, Copy, Debug)]
pub struct Log {
    /// Whether lines are JSON.
    pub json: bool,
}

/// The line that reports lost lines; empty for none.
fn lost_note(lost: u64, json: bool) -> String {
    match (lost, json) {
        (0, _) => String::new(),
        (_, true) => {
            format!("{{\"level\":\"WARN\",\"message\":\"lines of the log were lost\",\"lost\":{lost}}}\n")
        }
        (_, false) => format!("WARN lines of the log were lost lost={lost}\n"),
    }
}

/// Writes a line, or counts it as lost.
pub(crate) fn write_to(out: &mut impl Output, line: &[u8], json: bool, lost: &Lost) {
    let unreported = lost.unreported.swap(0, Ordering::Relaxed);
    let lines = [lost_note(unreported, json).as_bytes(), line].concat();
    if !out.has_room() || out.write_all(&lines).is_err() {
        lost.all.fetch_add(1, Ordering::Relaxed);
        lost.unreported.fetch_add(unreported + 1, Ordering::Relaxed);
    }
}

impl Write for Log {
    /// Never fails: a subscriber would report an error to the same place, and panic if it cannot.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        // Locked, so that the other thread does not fill the room in between.
        write_to(&mut io::stderr().lock(), line, self.json, &LOST);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The log lines of `work` on this thread.
#[cfg(test)]
pub(crate) fn logged(work: impl FnOnce()) -> String {
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend(line);
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let lines = Lines::default();
    let log = lines.clone();
    let subscriber =
        tracing_subscriber::fmt().with_ansi(false).without_time().with_writer(move || log.clone());
    tracing::subscriber::with_default(subscriber.with_target(false).finish(), work);
    let lines = lines.0.lock().unwrap();
    String::from_utf8_lossy(&lines).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_cannot_be_written_is_lost_and_counted() {
        let all = Lost::new();
        let (reader, mut writer) = io::pipe().unwrap();
        let line = [b'x'; 1_000];
        // A pipe of 64 kB takes fewer.
        (0..100).for_each(|_| write_to(&mut writer, &line, false, &all));
        let lost = all.lines();
        assert!((30..60).contains(&lost), "{lost}");
        let mut read = vec![0; 1_000 * (100 - lost as usize)];
        io::Read::read_exact(&mut &reader, &mut read).unwrap();
        write_to(&mut writer, b"last\n", true, &all);
        drop(writer);
        let mut rest = String::new();
        io::Read::read_to_string(&mut &reader, &mut rest).unwrap();
        let (first, last) = rest.split_once('\n').unwrap();
        let first: serde_json::Value = serde_json::from_str(first).unwrap();
        assert_eq!((first["lost"].as_u64(), last), (Some(lost), "last\n"));
        assert_eq!(lost_note(3, false), "WARN lines of the log were lost lost=3\n");

        let mut full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        write_to(&mut full, b"no space\n", false, &all);
        let (reader, mut gone) = io::pipe().unwrap();
        drop(reader);
        write_to(&mut gone, b"no reader\n", false, &all);
        assert_eq!((all.lines(), all.unreported.load(Ordering::Relaxed)), (lost + 2, 2));
    }
}
