//! Lines of a shell as words: quotes, comments, continuations, several commands on a line, and variables with
//! plain values. Conditions, loops and functions are not supported: their lines are read one after the other.

use std::collections::BTreeMap;

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Command {
    /// The line that it begins on.
    pub line: u32,
    pub words: Vec<String>,
}

impl Command {
    /// The command on one line.
    pub fn text(&self) -> String {
        self.words.join(" ")
    }
}

/// Maximum of bytes that variables add to a file. Chosen: more than scripts have, so that one that doubles a
/// variable again and again ends.
const MOST_EXPANDED: usize = 1 << 20;

/// The commands of a text.
pub(super) fn commands(text: &str) -> Vec<Command> {
    let mut reader = Reader { rest: text, line: 1, ..Reader::default() };
    while reader.step() {}
    reader.end_command();
    reader.done
}

#[derive(Default)]
struct Reader<'a> {
    rest: &'a str,
    line: u32,
    variables: BTreeMap<String, String>,
    expanded: usize,
    /// The present word, if one has begun.
    word: Option<String>,
    /// The line where the command began.
    begun: u32,
    words: Vec<String>,
    /// Whether the next word is the target of a redirection.
    is_redirected: bool,
    done: Vec<Command>,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        self.line += u32::from(c == '\n');
        Some(c)
    }

    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    /// Reads the next piece; false at the end of the text.
    fn step(&mut self) -> bool {
        let line = self.line;
        let Some(c) = self.next() else { return false };
        if !c.is_whitespace() && self.word.is_none() && self.words.is_empty() {
            self.begun = line;
        }
        match c {
            '#' if self.word.is_none() => {
                let end = self.rest.find('\n').unwrap_or(self.rest.len());
                self.rest = &self.rest[end..];
            }
            '\n' | ';' | '&' | '|' | '(' | ')' => self.end_command(),
            '>' | '<' => {
                // A number before it is the redirected descriptor.
                self.word = self.word.take().filter(|word| !word.bytes().all(|byte| byte.is_ascii_digit()));
                self.end_word();
                self.rest = self.rest.trim_start_matches(['>', '<', '&']);
                self.is_redirected = true;
            }
            c if c.is_whitespace() => self.end_word(),
            '\\' => match self.next() {
                Some('\n') | None => (),
                Some('\r') if self.rest.starts_with('\n') => drop(self.next()),
                Some(c) => self.push(c),
            },
            '\'' => {
                self.word.get_or_insert_default();
                while let Some(c) = self.next().filter(|c| *c != '\'') {
                    self.push(c);
                }
            }
            '"' => self.double_quoted(),
            '$' => {
                let value = self.variable();
                // Unquoted values are divided at blanks.
                let mut parts = value.split_whitespace().peekable();
                while let Some(part) = parts.next() {
                    self.word.get_or_insert_default().push_str(part);
                    if parts.peek().is_some() {
                        self.end_word();
                    }
                }
            }
            c => self.push(c),
        }
        true
    }

    fn double_quoted(&mut self) {
        self.word.get_or_insert_default();
        while let Some(c) = self.next().filter(|c| *c != '"') {
            match c {
                '$' => {
                    let value = self.variable();
                    self.word.get_or_insert_default().push_str(&value);
                }
                '\\' => match self.next() {
                    Some(c @ ('"' | '\\' | '$')) => self.push(c),
                    Some('\n') | None => (),
                    Some(c) => self.word.get_or_insert_default().extend(['\\', c]),
                },
                c => self.push(c),
            }
        }
    }

    /// The value of the variable named after `$`, or the text as written if there is none.
    fn variable(&mut self) -> String {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let (name, default, length) = if let Some(inside) = self.rest.strip_prefix('{') {
            let Some(end) = inside.find(['}', '\n']).filter(|end| inside[*end..].starts_with('}')) else {
                return "$".to_owned();
            };
            let (name, default) = match inside[..end].split_once(":-") {
                Some((name, default)) => (name, Some(default)),
                None => (&inside[..end], None),
            };
            (name, default, end + 2)
        } else {
            let end = self.rest.find(|c| !is_name(c)).unwrap_or(self.rest.len());
            (&self.rest[..end], None, end)
        };
        let value = self.variables.get(name).map(String::as_str).or(default);
        let value = value.filter(|value| self.expanded + value.len() <= MOST_EXPANDED);
        let value = value.map_or_else(|| format!("${}", &self.rest[..length]), ToOwned::to_owned);
        self.expanded += value.len();
        self.rest = &self.rest[length..];
        value
    }

    fn end_word(&mut self) {
        if let Some(word) = self.word.take() {
            if self.is_redirected {
                self.is_redirected = false;
            } else {
                self.words.push(word);
            }
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        self.is_redirected = false;
        let words = std::mem::take(&mut self.words);
        let declared = ["export", "local", "readonly", "declare"];
        let skipped = usize::from(words.first().is_some_and(|word| declared.contains(&word.as_str())));
        let mut rest = words.len();
        for (at, word) in words.iter().enumerate().skip(skipped) {
            let Some((name, value)) = word.split_once('=').filter(|(name, _)| is_variable(name)) else {
                rest = at;
                break;
            };
            self.variables.insert(name.to_owned(), value.to_owned());
        }
        if rest < words.len() {
            let words = words[if rest == skipped { 0 } else { rest }..].to_vec();
            self.done.push(Command { line: self.begun, words });
        }
    }
}

fn is_variable(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(u32, String)> {
        commands(text).iter().map(|command| (command.line, command.words.join("|"))).collect()
    }

    #[test]
    fn lines_of_a_shell_are_read_as_it_reads_them() {
        let text = "#!/bin/sh\nDEV=eth0 RATE=\"10 mbit\"\nexport OPTS='delay 10ms  loss 1%'\n\
                    sudo tc qdisc \\\n  add dev $DEV  netem ${OPTS} # slow\n\
                    echo \"$RATE #1\" 2>/dev/null >&2; true && tc -s 'a b'\\ c ${X:-y} $Z${UNSET}\n";
        assert_eq!(
            read(text),
            [
                (4, "sudo|tc|qdisc|add|dev|eth0|netem|delay|10ms|loss|1%".to_owned()),
                (6, "echo|10 mbit #1".to_owned()),
                (6, "true".to_owned()),
                (6, "tc|-s|a b c|y|$Z${UNSET}".to_owned()),
            ]
        );
    }

    #[test]
    fn a_variable_that_doubles_ends() {
        let text = "A=aaaaaaaaaaaaaaaa\n".to_owned() + &"A=$A$A\n".repeat(80) + "tc $A\n";
        let longest: usize = commands(&text).iter().map(|command| command.text().len()).sum();
        assert!(longest <= 2 * MOST_EXPANDED, "{longest}");
    }

    #[test]
    fn what_is_left_open_ends_with_the_text() {
        for text in ["'", "\"", "\\", "${", "${a", "$", "a >", "\"\\", "a\\\r\nb"] {
            commands(text);
        }
        assert_eq!(read("a \\\r\nb"), [(1, "a|b".to_owned())]);
    }
}
