//! Where a gateway writes its log: standard error, as long as that takes something.
//!
//! The reader of a pipe may stop reading, and a writer waits when the pipe is full: first for commands, then, as soon
//! as the other thread has something to say, for packets. A line for which there is no room is left out instead; the next
//! one that has room is preceded by a line that says how many were.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Lines that were dropped and not yet reported.
static LEFT_OUT: AtomicU64 = AtomicU64::new(0);

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

/// The line that says how many were left out; empty for none.
fn dropped_note(left_out: u64, json: bool) -> String {
    match (left_out, json) {
        (0, _) => String::new(),
        (_, true) => format!(
            "{{\"level\":\"WARN\",\"message\":\"lines of the log had no room\",\"left_out\":{left_out}}}\n"
        ),
        (_, false) => format!("WARN lines of the log had no room left_out={left_out}\n"),
    }
}

fn write_to(out: &mut (impl AsFd + Write), line: &[u8], json: bool) -> io::Result<()> {
    if !has_room(out) {
        LEFT_OUT.fetch_add(1, Ordering::Relaxed);
        return Ok(());
    }
    let note = dropped_note(LEFT_OUT.swap(0, Ordering::Relaxed), json);
    out.write_all(&[note.as_bytes(), line].concat())
}

impl Write for Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        // Locked, so that the other thread does not fill the room that was found.
        write_to(&mut io::stderr().lock(), line, self.json)?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_room_is_dropped_and_counted() {
        let (reader, mut writer) = io::pipe().unwrap();
        let line = [b'x'; 1_000];
        // A pipe of 64 kB takes fewer.
        (0..100).for_each(|_| write_to(&mut writer, &line, false).unwrap());
        let left_out = LEFT_OUT.load(Ordering::Relaxed);
        assert!((30..60).contains(&left_out), "{left_out}");
        let mut read = vec![0; 1_000 * (100 - left_out as usize)];
        io::Read::read_exact(&mut &reader, &mut read).unwrap();
        write_to(&mut writer, b"last\n", true).unwrap();
        drop(writer);
        let mut rest = String::new();
        io::Read::read_to_string(&mut &reader, &mut rest).unwrap();
        let (first, last) = rest.split_once('\n').unwrap();
        let first: serde_json::Value = serde_json::from_str(first).unwrap();
        assert_eq!((first["left_out"].as_u64(), last), (Some(left_out), "last\n"));
        assert_eq!(dropped_note(3, false), "WARN lines of the log had no room left_out=3\n");
    }
}
