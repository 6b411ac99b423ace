//! Standard output and standard error: only this module writes to them.

use std::borrow::Cow;
use std::io::{self, Write as _};

/// Whether a terminal obeys this character rather than printing it, or it reorders or hides others. Names in files of other people can have
/// them.
pub fn is_unprintable(c: char) -> bool {
    let hides = matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    c.is_control() || hides
}

/// The text with the escapes of JSON for these characters, except line ends and tabs. In JSON, only strings can have them.
fn printable(text: &str) -> Cow<'_, str> {
    let is_escaped = |c: char| is_unprintable(c) && c != '\n' && c != '\t';
    if !text.contains(is_escaped) {
        return text.into();
    }
    let escaped = |c: char| if is_escaped(c) { format!("\\u{:04X}", u32::from(c)) } else { c.to_string() };
    text.chars().map(escaped).collect()
}

/// Writes to standard output.
///
/// # Errors
/// The output cannot be written; see [`is_broken_pipe`].
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(printable(text).as_bytes())?;
    out.flush()
}

/// Writes a line to standard error. If that fails, there is nowhere to report it.
pub fn note(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", printable(line));
}

/// Writes each line of a message as an error.
pub fn error(message: &str) {
    message.lines().for_each(|line| note(&format!("error: {line}")));
}

/// Whether the reader of the output closed the pipe, as `head` does: that is no error.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_escaped() {
        assert_eq!(printable("a\tb\n"), "a\tb\n");
        assert_eq!(
            printable("\u{1b}]0;x\u{7}\u{9b}m\u{202e}é\r\n"),
            "\\u001B]0;x\\u0007\\u009Bm\\u202Eé\\u000D\n"
        );
        let name = "\u{1b}\u{85}\u{202e}\u{7f}";
        let json = serde_json::to_string(name).unwrap();
        assert_eq!(serde_json::from_str::<String>(&printable(&json)).unwrap(), name);
    }
}
