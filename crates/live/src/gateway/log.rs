//! Where a gateway writes its log: standard error, as long as that takes something.
//!
//! A log must not cost the link. The reader of a pipe may stop reading, and a writer waits when the pipe is full: first for
//! commands, then, as soon as the other thread has something to say, for packets. A disk may be full, a terminal closed, a
//! reader gone. A line that cannot be written at once is lost instead and counted; the next one that can be written is
//! preceded by a line that says how many were.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Lines that were lost since the start.
static LOST: AtomicU64 = AtomicU64::new(0);
/// Those of them that no line of the log has reported.
static UNREPORTED: AtomicU64 = AtomicU64::new(0);

/// Lines of the log that could not be written since the start.
pub(crate) fn lines_lost() -> u64 {
    LOST.load(Ordering::Relaxed)
}

/// Writes a line at a time to standard error.
#[derive(Clone, Copy, Debug)]
pub struct Log {
    /// Whether lines are JSON.
    pub json: bool,
}

/// Whether a line can be written without a wait: poll(2) says so of a pipe that has room for 4096 bytes (pipe(7)).
fn has_room(out: &impl AsFd) -> bool {
    let mut polled = [PollFd::new(out.as_fd(), PollFlags::POLLOUT)];
    // A reader that has gone away causes no wait.
    poll(&mut polled, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
}

/// The line that says how many were lost; empty for none.
fn lost_note(lost: u64, json: bool) -> String {
    match (lost, json) {
        (0, _) => String::new(),
        (_, true) => {
            format!("{{\"level\":\"WARN\",\"message\":\"lines of the log were lost\",\"lost\":{lost}}}\n")
        }
        (_, false) => format!("WARN lines of the log were lost lost={lost}\n"),
    }
}

fn write_to(out: &mut (impl AsFd + Write), line: &[u8], json: bool) {
    let unreported = UNREPORTED.swap(0, Ordering::Relaxed);
    let lines = [lost_note(unreported, json).as_bytes(), line].concat();
    if !has_room(out) || out.write_all(&lines).is_err() {
        LOST.fetch_add(1, Ordering::Relaxed);
        UNREPORTED.fetch_add(unreported + 1, Ordering::Relaxed);
    }
}

impl Write for Log {
    /// Never fails, as a subscriber would report an error to the same place, and panic if it cannot.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        // Locked, so that the other thread does not fill the room that was found.
        write_to(&mut io::stderr().lock(), line, self.json);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One test, as the counters are those of the process.
    #[test]
    fn a_line_that_cannot_be_written_is_lost_and_counted() {
        let (reader, mut writer) = io::pipe().unwrap();
        let line = [b'x'; 1_000];
        // A pipe of 64 kB takes fewer.
        (0..100).for_each(|_| write_to(&mut writer, &line, false));
        let lost = lines_lost();
        assert!((30..60).contains(&lost), "{lost}");
        let mut read = vec![0; 1_000 * (100 - lost as usize)];
        io::Read::read_exact(&mut &reader, &mut read).unwrap();
        write_to(&mut writer, b"last\n", true);
        drop(writer);
        let mut rest = String::new();
        io::Read::read_to_string(&mut &reader, &mut rest).unwrap();
        let (first, last) = rest.split_once('\n').unwrap();
        let first: serde_json::Value = serde_json::from_str(first).unwrap();
        assert_eq!((first["lost"].as_u64(), last), (Some(lost), "last\n"));
        assert_eq!(lost_note(3, false), "WARN lines of the log were lost lost=3\n");

        let mut full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        write_to(&mut full, b"no space\n", false);
        let (reader, mut gone) = io::pipe().unwrap();
        drop(reader);
        write_to(&mut gone, b"no reader\n", false);
        assert_eq!((lines_lost(), UNREPORTED.load(Ordering::Relaxed)), (lost + 2, 2));
    }
}
