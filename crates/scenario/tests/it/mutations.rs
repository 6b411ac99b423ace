//! The corpus of the fuzzer and the examples, cut and changed: nothing panics, every refusal has a reason,
//! and every text that loads survives its canonical text.

use std::path::Path;

use apportion_core::random::Stream;
use apportion_scenario::{Place, load};
use apportion_testing::properties::cases;
use proptest::prelude::*;

/// Texts with the content of the files they refer to.
fn corpus() -> Vec<(String, Vec<u8>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for folder in ["scenarios", "fuzz/corpus/load"] {
        files.extend(std::fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path()));
    }
    // Gateways have a folder of their own.
    files.retain(|path| path.is_file());
    files.sort();
    let read = |path: &std::path::PathBuf| {
        let bytes = std::fs::read(path).unwrap();
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        let file = bytes.get(end + 1..).unwrap_or_default().to_vec();
        (String::from_utf8(bytes[..end].to_vec()).unwrap(), file)
    };
    files.iter().map(read).collect()
}

/// Whether it loads. Panics if the loader breaks its contract.
fn try_load(text: &str, file: &[u8]) -> bool {
    let read = |_: &Path| Ok(file.to_vec());
    match load(text, Path::new("m.toml"), &[], &read) {
        Ok(suite) => {
            let again = load(&suite.canonical, Path::new("m.toml"), &[], &read)
                .unwrap_or_else(|problems| panic!("{problems:?}\n{}\nfrom\n{text}", suite.canonical));
            assert_eq!(again.hash, suite.hash, "{}\nfrom\n{text}", suite.canonical);
            true
        }
        Err(problems) => {
            let lines = u32::try_from(text.lines().count()).unwrap().max(1) + 1;
            assert!(!problems.is_empty(), "refused without a reason:\n{text}");
            for problem in problems {
                let Place::Line(line) = problem.place else { panic!("{problem}") };
                assert!((1..=lines).contains(&line) && !problem.message.is_empty(), "{problem}");
            }
            false
        }
    }
}

#[test]
fn the_corpus_holds_files_that_load_and_files_that_do_not() {
    let loaded = corpus().iter().filter(|(text, file)| try_load(text, file)).count();
    // All except odd.toml.
    assert_eq!(loaded, corpus().len() - 1);
}

#[test]
fn cut_files_do_not_panic() {
    for (text, file) in corpus() {
        let cuts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        for at in cuts.iter().step_by(cuts.len() / 40 + 1) {
            try_load(&text[..*at], &file);
            try_load(&text, &file[..file.len().min(*at)]);
        }
    }
}

/// Replacements for a piece of a line, which are valid elsewhere.
const PIECES: [&str; 24] = [
    "0",
    "-1",
    "99999999999999999999",
    "\"\"",
    "\"i\"",
    "[]",
    "{}",
    "true",
    "\"1ms * i\"",
    "\"10kbps\"",
    "nan",
    "=",
    "\"",
    "[\"fifo\", \"drr\"]",
    "\"1ms..9ms step 1ms\"",
    "1e400",
    "\"l{i}\"",
    "2026-01-01",
    ".",
    "[[",
    "kind",
    "\"red\"",
    "'\u{e9}'",
    "\n",
];

#[test]
fn changed_files_do_not_panic() {
    let mut stream = Stream::new(1, "mutations");
    let mut below = |n: usize| stream.below(n.max(1) as u64) as usize;
    let (mut loaded, mut refused) = (0, 0);
    for (text, file) in corpus() {
        for _ in 0..150 {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            for _ in 0..=below(2) {
                let (one, other) = (below(lines.len()), below(lines.len()));
                match below(5) {
                    0 => lines.swap(one, other),
                    1 => _ = lines.remove(one),
                    2 => lines.insert(one, lines[other].clone()),
                    _ => {
                        // Changes the text between two blanks.
                        let words: Vec<String> = lines[one].split(' ').map(str::to_owned).collect();
                        let word = below(words.len());
                        let piece = PIECES[below(PIECES.len())];
                        let change = |(at, old): (usize, &String)| {
                            if at == word { piece.to_owned() } else { old.clone() }
                        };
                        lines[one] = words.iter().enumerate().map(change).collect::<Vec<_>>().join(" ");
                    }
                }
            }
            if try_load(&lines.join("\n"), &file) { loaded += 1 } else { refused += 1 }
        }
    }
    // Both sides must be large enough, or the test proves nothing.
    assert!(loaded > 200 && refused > 200, "{loaded} loaded, {refused} refused");
}

proptest! {
    #![proptest_config(cases(300))]
    #[test]
    fn no_text_panics(text in "([a-z.=\"\\[\\]{}0-9 \n]|seed|stop|link|flow|topology|kind|queue|\"1s\"|\\PC){0,60}") {
        try_load(&text, &[]);
    }
}
