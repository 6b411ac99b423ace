//! Experiments with a fault of their scheme put in on purpose.

use std::path::Path;

pub use apportion_core::mutant::Mutant;
pub use apportion_reproduce::mutants::{Fate, Killer, summary};
use apportion_reproduce::mutants::{Trials, choose};
use apportion_reproduce::{Plan, find};

use crate::cancel::Counter;
use crate::reproduce::{PAPERS, ReproduceError, Reproduction};

impl Reproduction<'_> {
    /// Runs the experiments with each [`Mutant`] of these names or systems, all if there are none, until a claim notices:
    /// one that holds without the mutant, with the same seeds, and fails with it. Of a system the experiments of its paper
    /// and of `PAPER-extensions` and the like, or those of them that are [named](Self::new). `each` is called with the fate of each
    /// mutant.
    ///
    /// A mutant is active in the whole process: nothing else may be simulated meanwhile.
    ///
    /// # Errors
    /// As of [`run`](Self::run), or if there is no mutant of a name. What is too large to be run once is refused.
    pub fn mutants(
        &self,
        names: &[String],
        each: &mut dyn FnMut(&Fate),
    ) -> Result<Vec<Fate>, ReproduceError> {
        let mutants = choose(names)?;
        self.plan_of_right_size()?;
        let (papers, wanted) = find(Path::new(PAPERS), &self.names)?;
        // Without a cache: its keys know nothing of mutants.
        let simulate = |plan: &Plan| -> Result<_, ReproduceError> {
            Ok(self.simulate(plan, None, &Counter::new(None, 0))?.0)
        };
        let mut fates = Vec::new();
        for of_system in mutants.chunk_by(|a, b| a.system() == b.system()) {
            let mut trials = Trials::new(&papers, &wanted, of_system[0].system())?;
            for mutant in of_system {
                let fate = trials.of(*mutant, &simulate)?.ok_or(ReproduceError::Cancelled)?;
                each(&fate);
                fates.push(fate);
            }
        }
        Ok(fates)
    }
}
