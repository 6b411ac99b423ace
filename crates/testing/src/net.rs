//! Scenarios for tests, a line for each node.
//!
//! ```text
//! stop = 12s, measure_from = 2s
//! link wire: a -> b, rate = 100Mbit, delay = 1ms, queue = { kind = fifo, limit = 50p }
//! flow x: a -> b, source = { kind = cbr, rate = 5Mbit }
//! change 4s: flow.x.rate = 1Mbit
//! [defaults.flow] jitter = 0s
//! ```
//!
//! Entries are TOML separated by commas; words need quotes only if they have spaces. A comma at the end of a
//! line continues it. The default seed is 1. TOML itself is read unchanged.

/// Converts a text to a scenario in TOML.
#[must_use]
pub fn net(text: &str) -> String {
    let mut toml = if text.contains("seed =") { String::new() } else { "seed = 1\n".to_owned() };
    for line in whole_lines(text) {
        let (kind, node) = line.split_once(' ').unwrap_or((&line, ""));
        toml += &match (kind, node.split_once(": ")) {
            ("link" | "flow", Some((name, more))) => {
                let (ends, more) = more.split_once(", ").unwrap_or((more, ""));
                let (from, to) = ends.split_once(" -> ").expect("NAME: FROM -> TO");
                format!("[{kind}.{name}]\nfrom = \"{from}\"\nto = \"{to}\"\n{}", entries(more))
            }
            ("change", Some((at, change))) => {
                let (set, to) = change.split_once(" = ").expect("AT: WHAT = TO");
                format!("[[change]]\nat = \"{at}\"\nset = \"{set}\"\nto = {}", entries(to))
            }
            _ if line.starts_with('[') => match line.split_once("] ") {
                Some((header, more)) => format!("{header}]\n{}", entries(more)),
                None => line,
            },
            _ => entries(&line),
        };
        toml.push('\n');
    }
    toml
}

/// Non-empty lines of a text without comments, each joined with its continuations.
fn whole_lines(text: &str) -> Vec<String> {
    let (mut lines, mut goes_on) = (Vec::<String>::new(), false);
    for line in text.lines() {
        let quotes = |at: usize| line[..at].matches('"').count();
        let comment = line.match_indices('#').map(|(at, _)| at).find(|&at| quotes(at).is_multiple_of(2));
        let line = line[..comment.unwrap_or(line.len())].trim();
        match lines.last_mut().filter(|_| goes_on) {
            _ if line.is_empty() => continue,
            Some(last) => *last += &format!(" {line}"),
            None => lines.push(line.to_owned()),
        }
        let last = lines.last().map_or("", |last| last);
        let opened = last.matches(['[', '{']).count() > last.matches([']', '}']).count();
        goes_on = opened || last.ends_with(',');
    }
    lines
}

/// Entries, one per line: words that are neither keys nor numbers get quotes.
fn entries(text: &str) -> String {
    let (mut toml, mut depth, mut rest) = (String::new(), 0, text);
    let is_word = |c: char| c.is_alphanumeric() || "._%+-/".contains(c);
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => 2 + rest[1..].find('"').expect("a string ends"),
            _ if is_word(first) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        rest = after;
        depth += match first {
            '{' | '[' => 1,
            '}' | ']' => -1,
            _ => 0,
        };
        let is_plain = token.parse::<f64>().is_ok() || matches!(token, "true" | "false");
        if first == ',' && depth == 0 {
            toml.push('\n');
            rest = rest.trim_start();
        } else if is_word(first) && !is_plain && !rest.trim_start().starts_with('=') {
            toml += &format!("\"{token}\"");
        } else {
            toml += token;
        }
    }
    toml
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_get_quotes_and_toml_is_read_as_it_is() {
        let toml = net(r#"
            seed = 7, stop = 1s # a run
            link wire: a -> b, queue = { kind = red, w_q = 0.02, ecn = true },
                loss = 2%, count = 3
            [defaults.flow] path = [wire, w2], start = { between = ["0s", 1s] }, note = "a, b # c"
            flow x: l{i} -> r
            [flow.y]
            path = [
                "wire",
            ]
            change 4ms: link.wire.rate = 1Mbit
        "#);
        let expected = r#"seed = 7
stop = "1s"
[link.wire]
from = "a"
to = "b"
queue = { kind = "red", w_q = 0.02, ecn = true }
loss = "2%"
count = 3
[defaults.flow]
path = ["wire", "w2"]
start = { between = ["0s", "1s"] }
note = "a, b # c"
[flow.x]
from = "l{i}"
to = "r"

[flow.y]
path = [ "wire", ]
[[change]]
at = "4ms"
set = "link.wire.rate"
to = "1Mbit"
"#;
        assert_eq!(toml, expected);
    }
}
