//! Transfer of the samples of one replication to the board.

use std::mem;
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use apportion_core::units::Time;
use apportion_runtime::probe::Samples;
use apportion_scenario::Point;
use apportion_scenario::entitlement::Due;

use super::board::Board;
use super::course::{Sample, Stand};

/// The number of samples that wait for the board before the thread that takes them waits as well. Chosen: the
/// board is busy for milliseconds.
const PATIENCE: usize = 1_000;

/// Follows a replication.
#[derive(Debug)]
pub(crate) struct Follower<'a> {
    board: Arc<Mutex<Board>>,
    point: &'a Point,
    seed: u64,
    following: Mutex<Following>,
}

/// Whether the page shows the replication, which is known at its first sample.
#[derive(Debug)]
enum Following {
    /// The page may show it, with these entitlements.
    NotYet(Option<Due>),
    /// Followed under this number; these samples are not on the board yet.
    As(u64, Vec<Sample>),
    /// Another replication is shown, or this one has ended.
    Not,
}

impl<'a> Follower<'a> {
    pub(super) fn new(board: Arc<Mutex<Board>>, point: &'a Point, seed: u64) -> Self {
        // Computed here, because no packet moves yet.
        let due = entitlements(point, seed);
        Self { board, point, seed, following: Mutex::new(Following::NotYet(due)) }
    }

    /// Adds a sample at the end of its interval. The thread that moves packets in real time must not wait
    /// while the board is read: the sample then waits for the next one.
    pub fn sampled(&self, samples: &Samples<'_>) {
        let following = &mut *self.following.lock().unwrap_or_else(PoisonError::into_inner);
        if let Following::NotYet(due) = following {
            let number = self.board().follow(self.point, self.seed, due.take());
            *following = number.map_or(Following::Not, |number| Following::As(number, Vec::new()));
        }
        let Following::As(number, waiting) = following else { return };
        let flows = 0..self.point.scenario.flows.len();
        waiting.push(Sample {
            at: samples.at,
            delivered: flows.map(samples.delivered).collect(),
            links: samples.links.to_vec(),
        });
        let mut board = match self.board.try_lock() {
            Ok(board) => board,
            Err(TryLockError::WouldBlock) if waiting.len() < PATIENCE => return,
            Err(_) => self.board(),
        };
        waiting.drain(..).for_each(|sample| board.add(*number, &self.point.scenario, sample));
    }

    /// Ends the replication, in the state `stand`.
    pub fn end(&self, stand: Stand) {
        let mut following = self.following.lock().unwrap_or_else(PoisonError::into_inner);
        if let Following::As(number, waiting) = mem::replace(&mut *following, Following::Not) {
            let mut board = self.board();
            waiting.into_iter().for_each(|sample| board.add(number, &self.point.scenario, sample));
            board.stop_following(number, stand);
        }
    }

    fn board(&self) -> std::sync::MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The entitlements of the flows of a replication, as far as the scenario knows them: when transfers end is
/// known after the run only, and until then they have data to send.
fn entitlements(point: &Point, seed: u64) -> Option<Due> {
    let scenario = point.scenario.hashed(seed)?;
    scenario.due(&scenario.expected_activity(), Time::ZERO, scenario.stop)
}
