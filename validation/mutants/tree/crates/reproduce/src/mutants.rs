//! The experiments with a fault of their scheme put in on purpose: the claims must notice.

use apportion_core::mutant::Mutant;
use apportion_scenario::did_you_mean;
use serde_json::json;

use crate::expect::{Op, Paper};
use crate::judge::{Claim, Element, Verdict, judge};
use crate::plan::{Plan, Results, Scope};
use crate::problems::Problems;

/// The mutants of these names, or of the systems of these names, in the order of the table; all if there are no names.
///
/// # Errors
/// If a name is neither.
pub fn choose(names: &[String]) -> Result<Vec<Mutant>, Problems> {
    let is_named = |mutant: &Mutant, name: &str| mutant.name() == name || mutant.system() == name;
    let known = || Mutant::ALL.iter().flat_map(|mutant| [mutant.system(), mutant.name()]);
    let unknown = names.iter().filter(|name| !Mutant::ALL.iter().any(|mutant| is_named(mutant, name)));
    let problem = |name: &String| {
        let guess = did_you_mean(name, known());
        format!(
            "no mutant or system of mutants is called `{name}`{guess}; write experiments before --mutants"
        )
    };
    let problems: Vec<String> = unknown.map(problem).collect();
    if !problems.is_empty() {
        return Err(Problems(problems));
    }
    let is_chosen = |mutant: &&Mutant| names.is_empty() || names.iter().any(|name| is_named(mutant, name));
    Ok(Mutant::ALL.iter().filter(is_chosen).copied().collect())
}

pub type Simulate<'a, E> = dyn Fn(&Plan) -> Result<Option<Results>, E> + 'a;

/// The experiments of a system, the cheapest first.
#[derive(Debug)]
pub struct Trials {
    /// The system: `KEY` of papers `KEY`, `KEY-extensions` and the like.
    pub system: &'static str,
    trials: Vec<Trial>,
}

/// An experiment.
#[derive(Debug)]
struct Trial {
    plan: Plan,
    /// The claims that hold without a fault; none before they were asked for.
    sound: Option<Vec<Claim>>,
}

/// What became of a mutant.
#[derive(Clone, Debug)]
pub struct Fate {
    pub mutant: Mutant,
    /// The claim that holds without it and fails with it, with the measurements of both; none if it survived.
    pub killer: Option<Killer>,
    /// Claims that hold without it, as far as they were looked at.
    pub claims: usize,
}

/// A claim that fails with a mutant.
#[derive(Clone, Debug)]
pub struct Killer {
    /// As measured without a fault.
    pub sound: Claim,
    /// As measured with the mutant.
    pub mutated: Claim,
}

impl Trials {
    /// The experiments of papers `SYSTEM` and `SYSTEM-…` that have claims; of these the `wanted` ones, if any are.
    ///
    /// # Errors
    /// If experiments are wrong, or there are none.
    pub fn new(papers: &[Paper], wanted: &[String], system: &'static str) -> Result<Self, Problems> {
        let is_of_system = |key: &str| key.split('-').next() == Some(system);
        let mut trials = Vec::new();
        for paper in papers.iter().filter(|paper| is_of_system(&paper.key)) {
            for experiment in &paper.content.experiments {
                let is_wanted =
                    wanted.is_empty() || wanted.contains(&experiment.id) || wanted.contains(&paper.key);
                if is_wanted && experiment.metrics.iter().any(|metric| metric.op != Op::Record) {
                    let id = std::slice::from_ref(&experiment.id);
                    let plan = Plan::new(vec![paper.clone()], id, Scope::Alone)?;
                    trials.push((cost(&plan), Trial { plan, sound: None }));
                }
            }
        }
        if trials.is_empty() {
            return Err(Problems(vec![format!("no chosen experiment is about `{system}` and has claims")]));
        }
        trials.sort_by(|a, b| a.0.total_cmp(&b.0));
        Ok(Self { system, trials: trials.into_iter().map(|(_, trial)| trial).collect() })
    }

    /// Runs experiments with `mutant` until a claim fails that holds without it. `simulate` gives the results of a plan, anew at each
    /// call. `None` if it gives none.
    ///
    /// # Errors
    /// The first of `simulate`.
    pub fn of<E>(&mut self, mutant: Mutant, simulate: &Simulate<'_, E>) -> Result<Option<Fate>, E> {
        let mut fate = Fate { mutant, killer: None, claims: 0 };
        for trial in &mut self.trials {
            if trial.sound.is_none() {
                let Some(mut claims) = claims_of(&trial.plan, simulate)? else { return Ok(None) };
                claims.retain(|claim| claim.verdict == Verdict::Holds && claim.metric.refuted.is_none());
                trial.sound = Some(claims);
            }
            let sound = trial.sound.as_deref().unwrap_or_default();
            if sound.is_empty() {
                continue;
            }
            let active = mutant.activate();
            let mutated = claims_of(&trial.plan, simulate)?;
            drop(active);
            let Some(mutated) = mutated else { return Ok(None) };
            fate.claims += sound.len();
            let failed = |sound: &&Claim| {
                let same = mutated.iter().find(|claim| claim.same_claim(sound));
                same.filter(|claim| claim.verdict == Verdict::Fails)
            };
            let killer = sound.iter().find_map(|sound| Some((sound, failed(&sound)?)));
            if let Some((sound, mutated)) = killer {
                fate.killer = Some(Killer { sound: sound.clone(), mutated: mutated.clone() });
                break;
            }
        }
        Ok(Some(fate))
    }
}

/// An estimate of the time of a plan, in seconds.
fn cost(plan: &Plan) -> f64 {
    plan.scenarios().map(|scenario| scenario.estimate().seconds()).sum()
}

fn claims_of<E>(plan: &Plan, simulate: &Simulate<'_, E>) -> Result<Option<Vec<Claim>>, E> {
    Ok(simulate(plan)?.map(|results| judge(plan, &results)))
}

impl Killer {
    /// The first number that fails, without and with the mutant.
    fn elements(&self) -> Option<(&Element, &Element)> {
        let pairs = self.sound.elements.iter().zip(&self.mutated.elements);
        let mut failed = pairs.filter(|(_, mutated)| mutated.verdict == Verdict::Fails);
        failed.next()
    }

    /// Experiment, claim and numbers: `pfd/fig7 name: 0.98 ± 0.01 with it, 1.02 ± 0.01 without, expected ≥ 1`.
    #[must_use]
    pub fn text(&self) -> String {
        let claim = format!("{} {}", self.sound.experiment, self.sound.metric.name);
        let Some((sound, mutated)) = self.elements() else { return claim };
        let expected = self.sound.metric.expected(sound.published);
        format!("{claim}: {} with it, {} without, expected {expected}", mutated.shown(), sound.shown())
    }
}

impl Fate {
    /// A line of text.
    #[must_use]
    pub fn text(&self) -> String {
        let (name, fault) = (self.mutant.name(), self.mutant.fault());
        match &self.killer {
            Some(killer) => format!("killed    {name} ({fault})\n          by {}\n", killer.text()),
            None => {
                let test = match self.mutant.test() {
                    "" => "no unit test of apportion-core fails with it".to_owned(),
                    test => format!("unit test {test} fails with it"),
                };
                format!("SURVIVED  {name} ({fault})\n          all of {} claims; {test}\n", self.claims)
            }
        }
    }

    /// A line of JSON.
    #[must_use]
    pub fn json_line(&self) -> String {
        let killer = self.killer.as_ref();
        let row = json!({
            "mutant": self.mutant.name(),
            "system": self.mutant.system(),
            "fault": self.mutant.fault(),
            "killed": killer.is_some(),
            "experiment": killer.map(|killer| &killer.sound.experiment),
            "metric": killer.map(|killer| &killer.sound.metric.name),
            "claims": self.claims,
            "test": Some(self.mutant.test()).filter(|test| !test.is_empty()),
        });
        format!("{row}\n")
    }
}

/// How many of each system were killed by claims, in a line each.
#[must_use]
pub fn summary(fates: &[Fate]) -> String {
    let of_system = |fates: &[Fate]| {
        let killed = fates.iter().filter(|fate| fate.killer.is_some()).count();
        let system = fates.first().map_or("", |fate| fate.mutant.system());
        format!("{system}: {killed} of {} mutants killed by claims\n", fates.len())
    };
    fates.chunk_by(|a, b| a.mutant.system() == b.mutant.system()).map(of_system).collect()
}
