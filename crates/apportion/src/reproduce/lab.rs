//! Experiments of papers in the lab: over the TCP of this machine, in real time.

use apportion_live::lab;
use apportion_reproduce::{Plan, Results};
use apportion_runtime::outcome::Outcome;

use super::{ReproduceError, Reproduction};
use crate::cancel::Counter;
use crate::lab::until_valid;
use crate::size::MAX_SECONDS;

impl Reproduction<'_> {
    /// Runs the experiments in the lab, over the TCP of this machine and in real time, instead of in the
    /// simulator; call [`lab::enter`] first. A replication that is not valid is repeated up to `retries`
    /// times. [`jobs`](Self::jobs) has no effect then.
    ///
    /// Parameters of a TCP profile for which the kernel has no setting are as in the kernel.
    pub fn in_lab(mut self, retries: u64) -> Self {
        self.lab = Some(retries);
        self
    }

    /// Runs a plan in the lab, one run at a time, since each needs the whole machine.
    pub(super) fn in_real_time(
        &self,
        plan: &Plan,
        retries: u64,
        counter: &Counter<'_>,
    ) -> Result<Option<Results>, ReproduceError> {
        let seconds = self.real_time(plan);
        if seconds > MAX_SECONDS && !self.force {
            return Err(ReproduceError::TooLong { days: seconds / MAX_SECONDS });
        }
        for scenario in plan.scenarios() {
            lab::check(scenario).map_err(|cause| ReproduceError::Lab(Box::new(cause)))?;
        }
        let run = |(scenario, seed)| {
            let outcome = until_valid(scenario, seed, retries, &|| None, None, &self.cancel);
            counter.step(0.0);
            outcome.map_err(|cause| ReproduceError::Lab(Box::new(cause)))
        };
        let outcomes: Option<Vec<Outcome>> =
            plan.replications(self.seeds).map(run).collect::<Result<_, _>>()?;
        Ok(outcomes.map(|outcomes| plan.results(self.seeds, outcomes)))
    }
}
