//! Simulations of planned runs.

use std::sync::atomic::AtomicBool;

use apportion_reproduce::{Plan, Results};
use apportion_sim::Job;
use apportion_sim::replicate::replicate;

/// Simulates a plan.
pub fn results(plan: &Plan, seeds: u64) -> Results {
    let job = |(scenario, seed)| Job::new(scenario, seed);
    let jobs: Vec<Job<'_>> = plan.replications(seeds).map(job).collect();
    let outcomes =
        replicate(&jobs, 1, &|_| (), &AtomicBool::new(false)).unwrap_or_else(|error| panic!("{error}"));
    plan.results(seeds, outcomes.into_iter().flatten().collect())
}
