//! The disciplines of a league: those of the catalogue with meaningful combinations, or those that are named.

use std::collections::BTreeSet;

use apportion_core::packet::LabelKind;
use apportion_core::param::{Entry, GoesBy, Role};
use apportion_core::system::{Catalog, DisciplineParams};
use apportion_report::league::{Counted, Entrant};
use apportion_scenario::{did_you_mean, queue};

use super::error::LeagueError;

/// Instructions per packet, as counted by `.ci/instructions`.
const COUNTED: &str = include_str!(env!("APPORTION_INSTRUCTIONS"));

/// The load under which disciplines were counted that behave differently at the edge, in the core, or for
/// some flows: the name of the discipline, and the name of its rows.
const LOADS: [(&str, &str); 4] =
    [("csfq", "csfq edge"), ("mcsfq", "csfq edge"), ("hcsfq", "hcsfq core"), ("ramp", "ramp real-rate")];

/// The key that divides among hosts before a queue.
const ISOLATE: &str = "isolate";

/// The key that lets a discipline mark packets instead of dropping them.
const ECN: &str = "ecn";

/// A discipline of a league.
#[derive(Clone, Debug)]
pub(super) struct Discipline {
    /// The name, such as `stfq+pfd`.
    pub name: String,
    /// The queue as in a scenario.
    pub queue: String,
    /// The same queue with marking enabled, if it can mark and does not by default.
    marking: Option<String>,
    /// The name of its files.
    pub file: String,
    pub params: DisciplineParams,
    /// The catalogue entries of its parts.
    pub entries: Vec<&'static Entry>,
}

/// Returns the named disciplines, or all if none are named.
pub(super) fn all(catalog: &Catalog, names: &[String]) -> Result<Vec<Discipline>, LeagueError> {
    let wanted = if names.is_empty() { of_catalog(catalog) } else { names.to_vec() };
    let mut all: Vec<Discipline> = Vec::new();
    let mut files = BTreeSet::new();
    for name in wanted {
        let mut discipline = read(catalog, name.trim())?;
        // The plain name comes first: `tail` is `fifo`, and `drr` has `lqd` by default.
        let is_twice = all.iter().any(|other| match names.is_empty() {
            true => other.params == discipline.params,
            false => other.name == discipline.name,
        });
        if is_twice {
            continue;
        }
        while !files.insert(discipline.file.clone()) {
            discipline.file.push('-');
        }
        all.push(discipline);
    }
    Ok(all)
}

/// Returns the names of all meaningful combinations in a catalogue: each scheduler, policy and system by
/// itself; each scheduler of flows with each policy that divides a buffer among them; and some that divide
/// among hosts first.
fn of_catalog(catalog: &Catalog) -> Vec<String> {
    let of = |role: Role| catalog.disciplines().filter(move |entry| entry.role == role);
    let plain = of(Role::Scheduler).chain(of(Role::Policy)).chain(of(Role::System));
    let mut names: Vec<String> = plain.map(|entry| entry.name.to_owned()).collect();
    let divides = |entry: &Entry| entry.param("thresholds").is_some();
    for scheduler in of(Role::Scheduler) {
        let own = catalog.select(scheduler.name, None, None).ok().and_then(|selection| selection.drop);
        if own.is_some_and(divides) {
            names.extend(
                of(Role::Policy)
                    .filter(|policy| divides(policy))
                    .map(|policy| format!("{}+{}", scheduler.name, policy.name)),
            );
        }
    }
    // Chosen: the common ones, one for each way to keep a buffer short.
    let of_hosts = ["drr", "stfq+pfd", "fq_codel", "fq_pie"];
    names.extend(of_hosts.map(|name| format!("{name}+{ISOLATE}")));
    names
}

/// Parses a name.
fn read(catalog: &Catalog, name: &str) -> Result<Discipline, LeagueError> {
    let refuse = |cause: String| LeagueError::Discipline { name: name.to_owned(), cause };
    let (queue, words) = if name.starts_with('{') { of_table(name) } else { of_words(name) };
    let known = || catalog.all().map(|entry| entry.name);
    let mut entries = Vec::new();
    for word in &words {
        let entry = catalog.find(word).ok_or_else(|| {
            let guess = did_you_mean(word, known());
            refuse(format!("there is no `{word}`{guess}; `apportion list disciplines` prints the names"))
        })?;
        entries.push(entry);
    }
    let params = queue::from_text_with(catalog, &queue).map_err(|error| refuse(error.to_string()))?;
    if let Some(first) = entries.first().filter(|first| first.role == Role::Scheduler)
        && let Some(policy) = catalog.select(first.name, None, None).ok().and_then(|selection| selection.drop)
        && !entries.iter().any(|entry| entry.role == Role::Policy)
    {
        entries.insert(1, policy);
    }
    let keep = |c: char| if c.is_ascii_alphanumeric() || "_+".contains(c) { c } else { '-' };
    let file = name.chars().map(keep).collect::<String>().trim_matches('-').to_owned();
    let marking = marking(catalog, &queue, &entries);
    Ok(Discipline { name: name.to_owned(), queue, marking, file, params, entries })
}

/// Returns the table with marking enabled, if one of its parts has the key, the default is off, and the table
/// does not set it.
fn marking(catalog: &Catalog, queue: &str, entries: &[&Entry]) -> Option<String> {
    let is_off = |entry: &&Entry| entry.param(ECN).is_some_and(|param| param.default == Some("false"));
    if !entries.iter().any(is_off) {
        return None;
    }
    // A table that sets the key would then have it twice, which is refused.
    let marking = format!("{}, {ECN} = true }}", queue.trim_end().strip_suffix('}')?.trim_end());
    queue::from_text_with(catalog, &marking).is_ok().then_some(marking)
}

/// Returns the table of a name such as `drr+pfd+isolate`, and its parts.
fn of_words(name: &str) -> (String, Vec<String>) {
    let words: Vec<String> = name.split('+').map(|word| word.trim().to_owned()).collect();
    let mut table = String::new();
    for (at, word) in words.iter().enumerate() {
        table.push_str(&match word.as_str() {
            _ if at == 0 => format!("kind = \"{word}\""),
            ISOLATE => format!(", {ISOLATE} = \"source\""),
            _ => format!(", drop = \"{word}\""),
        });
    }
    (format!("{{ {table} }}"), words)
}

/// Returns a table as it was written, and the parts that it names.
fn of_table(text: &str) -> (String, Vec<String>) {
    let table = format!("queue = {text}").parse::<toml::Table>().unwrap_or_default();
    let queue = table.get("queue");
    let word = |key: &str| queue.and_then(|queue| queue.get(key)?.as_str().map(str::to_owned));
    let isolate = word(ISOLATE).map(|_| ISOLATE.to_owned());
    (text.to_owned(), [word("kind"), word("drop"), word("shaper"), isolate].into_iter().flatten().collect())
}

impl Discipline {
    /// Returns the description of the discipline in the league.
    pub fn entrant(&self) -> Entrant {
        let join = |of: fn(&Entry) -> &'static str, between: &str| {
            self.entries.iter().map(|entry| of(entry)).collect::<Vec<_>>().join(between)
        };
        Entrant {
            name: self.name.clone(),
            queue: self.queue.clone(),
            marking: self.marking.clone(),
            summary: join(|entry| entry.summary, " "),
            cost: join(|entry| entry.cost, "; "),
            needs: self.needs(),
            counted: self.counted(),
        }
    }

    /// Returns what the discipline needs to know about flows.
    fn needs(&self) -> String {
        let mut needs: Vec<String> = Vec::new();
        match self.params.label_required() {
            Some(LabelKind::Tickets | LabelKind::AckTickets) => needs.push("tickets on packets".to_owned()),
            Some(LabelKind::Rate | LabelKind::Value) => needs.push("which router is the edge".to_owned()),
            None => (),
        }
        if self.params.knows_classes() && !self.params.is_custom() {
            needs.push("which flows are real-rate".to_owned());
        }
        if self.goes_by(GoesBy::Colours) {
            needs.push("colours on packets".to_owned());
        }
        if self.params.divides_among_customers() {
            needs.push("customers of flows".to_owned());
        }
        let required = self.entries.iter().flat_map(|entry| entry.params).filter(|param| param.is_required());
        needs.extend(required.map(|param| format!("`{}`", param.name)));
        needs.join(", ")
    }

    /// Returns the table of the queue, with marking enabled if flows respond to marks.
    pub fn queue_where(&self, has_marks: bool) -> &str {
        self.marking.as_deref().filter(|_| has_marks).unwrap_or(&self.queue)
    }

    /// Whether a part of the discipline uses this information.
    pub fn goes_by(&self, what: GoesBy) -> bool {
        self.entries.iter().any(|entry| entry.traits.goes_by == Some(what))
    }

    /// Whether its routers keep no per-flow state, according to its cost in the catalogue.
    pub fn is_stateless(&self) -> bool {
        self.entries
            .iter()
            .all(|entry| entry.cost.contains("no state") || entry.cost.contains("none per flow"))
    }

    /// Returns the counted instructions of the discipline.
    fn counted(&self) -> Counted {
        let names: Vec<&str> = self.entries.iter().map(|entry| entry.name).collect();
        // A policy alone is used with a FIFO; the policy of a FIFO is not named.
        let joined = names.join("+");
        let load = LOADS.iter().find(|(name, _)| *name == joined).map(|(_, load)| (*load).to_owned());
        let mut called = vec![format!("fifo+{joined}"), joined.replace("fifo+tail", "fifo"), joined];
        called.extend(load);
        let count = |what: &str| {
            COUNTED.lines().find_map(|line| {
                let (row, count) = line.rsplit_once(char::is_whitespace)?;
                let name = row.trim_end().strip_suffix(what)?.strip_suffix(", ")?;
                called.iter().any(|called| called == name).then(|| count.parse().ok())?
            })
        };
        Counted { few: count("1000 flows"), many: count("100000 flows"), bytes: count("bytes a flow") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Discipline {
        read(&Catalog::default(), name).unwrap()
    }

    #[test]
    fn what_can_mark_and_does_not_by_default_does_so_for_flows_that_heed_marks() {
        assert_eq!(named("pie").queue_where(true), "{ kind = \"pie\", ecn = true }");
        assert_eq!(named("drr+red").queue_where(true), "{ kind = \"drr\", drop = \"red\", ecn = true }");
        for (name, has_marks) in
            [("pie", false), ("fq_codel", true), ("fifo", true), ("{ kind = \"pie\", ecn = false }", true)]
        {
            let discipline = named(name);
            assert_eq!(discipline.queue_where(has_marks), discipline.queue, "{name}");
        }
    }

    #[test]
    fn what_was_counted_is_found_by_the_parts_of_a_discipline() {
        let counted = |name: &str| named(name).counted();
        for name in ["drr", "wf2q_plus", "stfq+pfd", "tred", "csfq"] {
            assert!(counted(name).many.is_some(), "{name}");
        }
        // The policy of a scheduler may be omitted, and a policy alone is used with a FIFO.
        assert_eq!(counted("drr"), counted("drr+lqd"));
        assert!(counted("pie").few.is_some() && counted("pie").few != counted("fifo").few);
        assert!(counted("fq_codel").bytes.is_some_and(|bytes| bytes > 0));
        assert_eq!(counted("{ kind = \"htb\", class = { a = { rate = \"1Mbit\" } } }").many, None);
    }
}
