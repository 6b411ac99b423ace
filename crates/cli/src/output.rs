//! Standard output and standard error: only this module writes to them.

use std::io::{self, Write as _};

/// Writes to standard output.
///
/// # Errors
/// The output cannot be written; see [`is_broken_pipe`].
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Writes a line to standard error. If that fails, there is nowhere to report it.
pub fn note(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Writes each line of a message as an error.
pub fn error(message: &str) {
    message.lines().for_each(|line| note(&format!("error: {line}")));
}

/// Whether the reader of the output closed the pipe, as `head` does: that is no error.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
