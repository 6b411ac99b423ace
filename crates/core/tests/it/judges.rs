//! The assertions of other projects' tests, restated for the disciplines here.
//!
//! A judge is a suite of tests that others wrote. Each of its cases is in one table with its name there, and
//! the judge's assertions hold, or something else does for a reason that the table gives, or there is nothing
//! here that the case could be about. Only behaviour is restated: no test is a copy or a translation.
//!
//! `cargo test -p apportion-core --test it judges:: -- --nocapture` prints the tables.

mod bench;
mod ns3;
mod tc;

use bench::{Shown, refused};

/// The result of a case here.
enum Verdict {
    /// The judge's assertions hold.
    Agrees(Check),
    /// The check holds in place of the judge's assertions, for this reason.
    Differs(&'static str, Check),
    /// There is no such mechanism or parameter here.
    NotApplicable(&'static str),
}

/// The assertions about a discipline.
enum Check {
    /// Asserts its behaviour.
    Does(fn()),
    /// A table is accepted and its parameters have these values.
    Shows(Shown),
    /// A table is refused, with a message about this key.
    Refuses(&'static str, &'static str),
}

impl Check {
    fn run(&self) {
        match self {
            Self::Does(check) => check(),
            Self::Shows(shown) => shown.check(),
            Self::Refuses(table, key) => assert_eq!(refused(table), *key, "{table}"),
        }
    }
}

/// A case, with its name in the judge's suite.
struct Case(&'static str, Verdict);

fn agrees(name: &'static str, check: fn()) -> Case {
    Case(name, Verdict::Agrees(Check::Does(check)))
}

fn differs(name: &'static str, why: &'static str, check: fn()) -> Case {
    Case(name, Verdict::Differs(why, Check::Does(check)))
}

const fn none(name: &'static str, why: &'static str) -> Case {
    Case(name, Verdict::NotApplicable(why))
}

/// Runs all cases, and returns how many agree, differ and are not applicable.
#[expect(clippy::print_stdout, reason = "the test also prints its table")]
fn judge(cases: &[Case]) -> [usize; 3] {
    let mut counts = [0; 3];
    for Case(name, verdict) in cases {
        let (place, word, why) = match verdict {
            Verdict::Agrees(_) => (0, "agrees", ""),
            Verdict::Differs(why, _) => (1, "differs", *why),
            Verdict::NotApplicable(why) => (2, "not applicable", *why),
        };
        println!("{name}: {word}{}{why}", if why.is_empty() { "" } else { ": " });
        if let Verdict::Agrees(check) | Verdict::Differs(_, check) = verdict {
            check.run();
        }
        counts[place] += 1;
    }
    counts
}

// `docs/trust.md` has these numbers: cases that agree, that differ, and that are not applicable.

#[test]
fn the_traffic_control_tests_of_ns3() {
    assert_eq!(judge(&ns3::cases()), [62, 7, 59]);
}

#[test]
fn tc_testing_of_the_kernel() {
    assert_eq!(judge(&tc::cases()), [67, 18, 91]);
}
