//! The state of a run that the page shows: its replications so far, one of which is followed at a time.

use std::collections::VecDeque;

use apportion_scenario::Point;
use apportion_scenario::entitlement::Due;
use apportion_scenario::model::Scenario;
use serde_json::{Value, json};

use super::course::{Course, Sample, Stand};

/// The maximum number of replications that are kept, the last ones. Chosen: a list that can still be read.
/// Each takes at most 2.4 MB, plus 24 bytes for each flow and 8 for each of its links.
const MAX_COURSES: usize = 16;

/// The state of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// The run has not begun.
    #[default]
    Waiting,
    Running,
    Ended,
    /// The run was cancelled, or failed.
    Cut,
}

impl State {
    const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Ended => "ended",
            Self::Cut => "cut",
        }
    }
}

/// The displayed run.
#[derive(Debug, Default)]
pub(super) struct Board {
    /// Number of runs so far.
    run: u64,
    title: String,
    state: State,
    done: usize,
    total: usize,
    courses: VecDeque<Course>,
    /// The number of the last course, over all runs.
    number: u64,
}

impl Board {
    /// Starts a run of `total` replications, which replaces the previous one.
    pub fn begin(&mut self, title: &str, total: usize) {
        let (run, number) = (self.run + 1, self.number);
        *self =
            Self { run, title: title.to_owned(), state: State::Running, total, number, ..Self::default() };
    }

    /// Ends the run.
    pub fn end(&mut self, is_complete: bool) {
        self.state = if is_complete { State::Ended } else { State::Cut };
        self.courses
            .iter_mut()
            .filter(|course| course.stand == Stand::Running)
            .for_each(|course| course.stop(Stand::Cut));
    }

    /// Counts a finished replication, whether it was followed or not.
    pub const fn step(&mut self) {
        self.done += 1;
    }

    /// Follows a replication that begins, with the entitlements of its flows, unless another one is followed.
    /// Returns its number.
    pub fn follow(&mut self, point: &Point, seed: u64, due: Option<Due>) -> Option<u64> {
        if self.courses.back().is_some_and(|course| course.stand == Stand::Running) {
            return None;
        }
        self.number += 1;
        if self.courses.len() == MAX_COURSES {
            self.courses.pop_front();
        }
        self.courses.push_back(Course::new(self.number, point, seed, due));
        Some(self.number)
    }

    /// Adds a sample of the replication with this number.
    pub fn add(&mut self, number: u64, scenario: &Scenario, sample: Sample) {
        if let Some(course) = self.course(number) {
            course.add(scenario, sample);
        }
    }

    /// Ends the replication with this number, in the state `stand`.
    pub fn stop_following(&mut self, number: u64, stand: Stand) {
        if let Some(course) = self.course(number) {
            course.stop(stand);
        }
    }

    fn course(&mut self, number: u64) -> Option<&mut Course> {
        self.courses.iter_mut().rev().find(|course| course.number == number)
    }

    /// Returns the data that the page requests by `course=`, the number of a replication (default: the last
    /// one), and `link=`, the index of a displayed link (default: the first).
    pub fn json(&self, query: &str) -> Value {
        let asked = |name: &str| {
            let mut fields = query.split('&').filter_map(|field| field.split_once('='));
            fields.find(|(key, _)| *key == name).and_then(|(_, value)| value.parse::<u64>().ok())
        };
        let by_number =
            asked("course").and_then(|number| self.courses.iter().find(|course| course.number == number));
        let link = asked("link").and_then(|link| usize::try_from(link).ok()).unwrap_or(0);
        let listed = |course: &Course| json!({ "number": course.number, "point": course.point, "seed": course.seed.to_string(), "state": course.stand.name() });
        json!({
            "title": self.title,
            "run": self.run,
            "state": self.state.name(),
            "replications_done": self.done,
            "replications": self.total,
            "courses": self.courses.iter().map(listed).collect::<Vec<_>>(),
            "course": by_number.or(self.courses.back()).map(|course| course.json(link)),
        })
    }
}
