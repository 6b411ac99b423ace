//! Problems of a scenario: place, key, cause and remedy.

use std::collections::BTreeSet;
use std::fmt;

use apportion_core::param;

/// A place where a value was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A line of the scenario file, counting from 1.
    Line(u32),
    /// A `--set`, or a text that is not a file.
    Override,
}

/// One problem of a scenario.
///
/// Prints as `scenarios/x.toml:12: link.bottleneck.rate: what is wrong; how to mend it`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The scenario file by the user's name.
    pub file: String,
    /// The place in it.
    pub place: Place,
    /// The key, for example `link.bottleneck.rate`; empty if there is no key to name.
    pub path: String,
    /// The problem, and how to mend it.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Place::Line(line) => write!(f, "{}:{line}: ", self.file)?,
            Place::Override => write!(f, "{}: --set: ", self.file)?,
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

/// All problems of a text that is not a file, for example an option of a command. Prints as one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextError {
    /// The text, if it is printed too.
    text: Option<String>,
    /// Problems with keys; without a path, problems with the whole.
    pub problems: Vec<Problem>,
}

impl TextError {
    /// The text does not have the right form at all.
    pub(crate) fn whole(message: impl Into<String>) -> Self {
        let mut problems = Problems::default();
        problems.add(Place::Override, "", message);
        Self::keys(None, problems)
    }

    pub(crate) fn keys(text: Option<&str>, problems: Problems) -> Self {
        Self { text: text.map(str::to_owned), problems: problems.into_vec("") }
    }
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(text) = &self.text {
            write!(f, "`{text}`: ")?;
        }
        for (at, Problem { path, message, .. }) in self.problems.iter().enumerate() {
            let (and, colon) = (if at > 0 { "; " } else { "" }, if path.is_empty() { "" } else { ": " });
            write!(f, "{and}{path}{colon}{message}")?;
        }
        Ok(())
    }
}

impl std::error::Error for TextError {}

/// Maximum characters of one message. Chosen: above all lists of known names, and below the length of lines
/// in wrong files.
const LONGEST: usize = 4_000;

/// The message, cut in the middle if it repeats too much of a file.
fn shortened(message: String) -> String {
    if message.chars().count() <= LONGEST {
        return message;
    }
    let half = LONGEST / 2;
    let begin: String = message.chars().take(half).collect();
    let end = message.char_indices().rev().nth(half - 1).map_or(0, |(at, _)| at);
    format!("{begin} [..] {}", &message[end..])
}

/// Maximum of listed problems (chosen: a few screens).
const MOST: usize = 200;

/// Collects all errors, so that the user sees them at once. The points of a sweep share most of their keys, so
/// each error is reported once.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    found: BTreeSet<(Place, String, String)>,
    notes: BTreeSet<(Place, String, String)>,
    settled: BTreeSet<String>,
}

impl Problems {
    /// Notes that the value of `path`, written at `place`, is wrong.
    pub(crate) fn add(&mut self, place: Place, path: impl Into<String>, message: impl Into<String>) {
        let path = path.into();
        if self.found.len() < MOST && !self.settled.contains(&path) {
            self.found.insert((place, path, shortened(message.into())));
        }
    }

    /// Like [`add`](Problems::add), if later errors of the same key would only be consequences.
    pub(crate) fn add_final(&mut self, place: Place, path: String, message: impl Into<String>) {
        self.add(place, path.clone(), message);
        self.settled.insert(path);
    }

    /// Notes that a part of the value of `path`, written at `place`, is not used: no problem, but reported.
    pub(crate) fn note(&mut self, place: Place, path: impl Into<String>, message: impl Into<String>) {
        if self.notes.len() < MOST {
            self.notes.insert((place, path.into(), shortened(message.into())));
        }
    }

    /// The notes since the last call, in the order of the file.
    pub(crate) fn take_notes(&mut self) -> impl Iterator<Item = String> {
        std::mem::take(&mut self.notes).into_iter().map(|(_, path, message)| format!("{path}: {message}"))
    }

    /// Whether there are no problems; notes do not count.
    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// All problems in the order of the file.
    pub(crate) fn into_vec(self, file: &str) -> Vec<Problem> {
        let problem = |(place, path, message)| Problem { file: file.to_owned(), place, path, message };
        self.found.into_iter().map(problem).collect()
    }
}

/// Renamed names, or parts of them, with their replacements: `drr+rnd` is `drr+random_drop`. Old names are
/// not accepted; [`renamed`] and [`did_you_mean`] suggest the new ones.
const RENAMED: &[(&str, &str)] = &[
    ("rnd", "random_drop"),
    ("stochastic_fq", "sfq"),
    ("-beyond", "-extensions"),
    ("-unseen", "-stress"),
    ("resume", "cache"),
    ("exceptions", "notifications"),
    ("perturb", "phase-check"),
    ("phases", "phase_sensitivity"),
];

/// The candidate that `name` has been renamed to.
#[must_use]
pub fn renamed<'a>(name: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let mut new =
        RENAMED.iter().filter(|(old, _)| name.contains(old)).map(|(old, new)| name.replace(old, new));
    new.find_map(|new| candidates.iter().copied().find(|candidate| *candidate == new))
}

/// ` (it is called `x`)` if `name` has been renamed to a candidate, ` (did you mean `x`?)` for the candidate closest to it; empty if none
/// is close.
#[must_use]
pub fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    let candidates: Vec<_> = candidates.into_iter().collect();
    if let Some(new) = renamed(name, &candidates) {
        return format!(" (it is called `{new}`)");
    }
    match nearest(name, &mut candidates.into_iter()) {
        Some(candidate) => format!(" (did you mean `{candidate}`?)"),
        None => String::new(),
    }
}

/// The message about an unknown key, called `noun`, with the `known` ones.
pub fn unknown_key<'a>(noun: &str, name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    param::unknown_key(noun, &did_you_mean(name, known.clone()), known)
}

/// The message about a table that declares nothing by itself, and whose name is close to one of `known`,
/// which was probably meant.
pub(crate) fn misnamed<'a>(
    noun: &str,
    name: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> Option<String> {
    // Maximum of listed names. Chosen: what a person reads.
    const MOST_LISTED: usize = 20;
    let nearest = nearest(name, &mut known.clone())?;
    let listed: Vec<_> = known.take(MOST_LISTED).collect();
    Some(format!(
        "there is no {noun} `{name}` (did you mean `{noun}.{nearest}`?); known here: {}; a new one needs `from` and `to`",
        listed.join(", ")
    ))
}

/// The message about a word that is none of `known`.
pub(crate) fn unknown_word<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    let guess = did_you_mean(name, known.clone());
    format!("`{name}` is not known here{guess}; known: {}", known.collect::<Vec<_>>().join(", "))
}

/// The message about a table without the key `kind`, with the `known` ones.
pub(crate) fn missing_kind(known: &[&str]) -> String {
    format!("missing; write for example kind = \"{}\" (known: {})", known[0], known.join(", "))
}

fn nearest<'a>(name: &str, candidates: &mut dyn Iterator<Item = &'a str>) -> Option<&'a str> {
    // Chosen: longer names are no typing errors, and the time and memory of their distance grow with the
    // square of their length.
    const LONGEST: usize = 200;
    if name.len() > LONGEST {
        return None;
    }
    // Chosen: one error in short names, a third of the letters in long ones.
    let allowed = (name.chars().count() / 3).max(1);
    candidates
        .filter(|candidate| candidate.len() <= LONGEST)
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_names_file_line_key_and_mend() {
        let mut problems = Problems::default();
        problems.add(Place::Line(12), "link.bottleneck.rate", "`10kbps` is not a rate");
        problems.add(Place::Line(12), "link.bottleneck.rate", "`10kbps` is not a rate");
        problems.add(Place::Override, "stop", "missing");
        problems.add(Place::Line(3), "", "not TOML");
        let lines: Vec<_> = problems.into_vec("x.toml").iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "x.toml:3: not TOML",
                "x.toml:12: link.bottleneck.rate: `10kbps` is not a rate",
                "x.toml: --set: stop: missing"
            ]
        );
    }

    #[test]
    fn a_name_that_was_replaced_leads_to_the_one_in_its_place() {
        assert_eq!(did_you_mean("stochastic_fq", ["sfq", "stfq"]), " (it is called `sfq`)");
        assert_eq!(did_you_mean("drr+rnd", ["drr+random_drop"]), " (it is called `drr+random_drop`)");
        assert_eq!(did_you_mean("stochastic_fq", ["delay"]), "");
    }

    #[test]
    fn only_near_names_are_suggested() {
        assert_eq!(did_you_mean("rat", ["delay", "rate"]), " (did you mean `rate`?)");
        assert_eq!(did_you_mean("colour", ["delay", "rate"]), "");
        let long = "k".repeat(1_000_000);
        assert_eq!(did_you_mean(&long, ["delay", "rate", &long]), "");
        assert_eq!(did_you_mean("rat", [long.as_str(), "rate"]), " (did you mean `rate`?)");
    }

    #[test]
    fn a_message_that_repeats_a_long_line_loses_its_middle() {
        let short = shortened(format!("`{}` is no rate", "ä".repeat(1_000_000)));
        assert!(short.starts_with("`ää") && short.ends_with("ä` is no rate"), "{short}");
        assert_eq!(short.chars().count(), LONGEST + " [..] ".len());
        assert_eq!(shortened("brief".to_owned()), "brief");
    }
}
