//! The runs of the chosen experiments, each once, and their results.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use apportion_runtime::outcome::Outcome;
use apportion_scenario::model::Scenario;
use apportion_scenario::{Suite, did_you_mean, load, replication_seed};

use crate::expect::{Experiment, Paper, RunSpec};
use crate::figure::Figure;
use crate::problems::Problems;
use crate::runs::{Fault, Points, RunOutcomes, Runs, Sweep, attributes_of, flows_of, run_of};
use crate::variant::{Used, Variant, change};

/// The chosen papers and their distinct runs.
#[derive(Debug)]
pub struct Plan {
    /// Papers with at least one chosen experiment.
    pub papers: Vec<PlannedPaper>,
    /// Whether mechanisms are switched off.
    pub ablated: bool,
    /// Whether a table of variants was requested.
    pub varied: bool,
    runs: Vec<DistinctRun>,
}

/// A run of a plan: a scenario of a single point, which its seeds replicate.
#[derive(Debug)]
pub struct DistinctRun {
    /// File of the scenario.
    pub path: PathBuf,
    /// The scenario with the settings of the experiment.
    pub suite: Suite,
}

impl DistinctRun {
    /// Scenario to run.
    #[must_use]
    pub fn scenario(&self) -> &Scenario {
        &self.suite.points[0].scenario
    }
}

/// A paper with its chosen experiments.
#[derive(Debug)]
pub struct PlannedPaper {
    pub paper: Paper,
    /// Experiments in the order of the file.
    pub experiments: Vec<PlannedExperiment>,
    /// Variants in the order of the file; none if mechanisms are switched off.
    pub variants: Vec<PlannedVariant>,
}

/// A variant with its chosen experiments.
#[derive(Debug)]
pub struct PlannedVariant {
    /// The variant as in the file.
    pub variant: Variant,
    /// Experiments in the order of the file.
    pub experiments: Vec<PlannedExperiment>,
}

/// The mode: experiments alone, with variants, or ablated.
#[derive(Clone, Copy, Debug)]
pub enum Scope<'a> {
    /// The variants that belong to every run.
    Usual,
    /// Also the variants with these names, or all if there are no names.
    Variants(&'a [String]),
    /// No variants; each experiment once per control.
    Ablated,
}

/// An experiment with its runs.
#[derive(Debug)]
pub struct PlannedExperiment {
    /// The experiment as in the file.
    pub experiment: Experiment,
    /// Control of the run: a mechanism is switched off.
    pub control: Option<String>,
    /// Labels of the numbers of each metric.
    pub labels: Vec<Vec<String>>,
    runs: BTreeMap<String, PlannedRun>,
}

/// A run, or one per point of its sweep.
#[derive(Debug)]
struct PlannedRun {
    /// Indices of the plan's scenarios.
    scenarios: Vec<usize>,
    sweep: Option<Sweep>,
}

impl PlannedRun {
    fn of<'a, T>(&'a self, find: impl Fn(usize) -> Option<&'a T>) -> Option<Points<'a, T>> {
        let all = self.scenarios.iter().map(|at| find(*at)).collect::<Option<_>>()?;
        Some(Points { all, sweep: self.sweep.as_ref() })
    }
}

/// Outcomes of all runs of a plan.
#[derive(Debug)]
pub struct Results {
    /// Runs in the order of the plan's scenarios.
    runs: Vec<RunOutcomes>,
    /// Replications of each run.
    pub seeds: usize,
}

impl Results {
    pub fn outcomes(&self) -> impl Iterator<Item = &Outcome> {
        self.runs.iter().flat_map(|run| &run.outcomes)
    }
}

impl Plan {
    /// Chooses experiments by id or paper, all if none is wanted, and checks them. If mechanisms are switched
    /// off, chooses those with controls.
    ///
    /// # Errors
    /// All problems, with file and key.
    pub fn new(papers: Vec<Paper>, wanted: &[String], scope: Scope<'_>) -> Result<Self, Problems> {
        let ablate = matches!(scope, Scope::Ablated);
        check_wanted(&papers, wanted)?;
        scope.check(&papers, wanted)?;
        let chosen = |paper: &Paper, experiment: &Experiment| {
            let named = wanted.iter().any(|name| *name == experiment.id || *name == paper.key);
            (wanted.is_empty() || named) && (!ablate || !experiment.controls().is_empty())
        };
        let mut problems = Vec::new();
        let mut planner = Planner::default();
        let mut planned = Vec::new();
        for paper in papers {
            let mine: Vec<&Experiment> =
                paper.content.experiments.iter().filter(|e| chosen(&paper, e)).collect();
            let mut experiments = Vec::new();
            for experiment in &mine {
                for modification in modifications(experiment, ablate) {
                    experiments.extend(planner.experiment(&paper, experiment, modification, &mut problems));
                }
            }
            let mut variants = Vec::new();
            for variant in paper.content.variants.iter().filter(|variant| scope.has(variant)) {
                variants.extend(planner.variant(&paper, &mine, variant, &mut problems));
            }
            if !experiments.is_empty() {
                planned.push(PlannedPaper { paper, experiments, variants });
            }
        }
        problems.dedup();
        if problems.is_empty() && planned.is_empty() {
            problems.push(
                "no mechanism can be switched off: no chosen run has `ablate`; leave --ablate out".to_owned(),
            );
        }
        if !problems.is_empty() {
            return Err(Problems(problems));
        }
        let varied = matches!(scope, Scope::Variants(_));
        Ok(Self { papers: planned, ablated: ablate, varied, runs: planner.distinct })
    }

    #[must_use]
    pub fn runs(&self) -> &[DistinctRun] {
        &self.runs
    }

    /// The scenarios of the distinct runs.
    pub fn scenarios(&self) -> impl Iterator<Item = &Scenario> {
        self.runs.iter().map(DistinctRun::scenario)
    }

    /// Replications of each run with their seeds, run by run.
    pub fn replications(&self, seeds: u64) -> impl Iterator<Item = (&Scenario, u64)> {
        let seeds_of = move |scenario: &Scenario| {
            (0..seeds).map(|k| replication_seed(scenario.seed, k)).collect::<Vec<_>>()
        };
        self.scenarios()
            .flat_map(move |scenario| seeds_of(scenario).into_iter().map(move |seed| (scenario, seed)))
    }

    /// Results from the outcomes of all [replications](Self::replications), in the same order.
    #[must_use]
    pub fn results(&self, seeds: u64, outcomes: Vec<Outcome>) -> Results {
        let mut outcomes = outcomes.into_iter();
        let measured = |scenario: &Scenario| RunOutcomes {
            outcomes: outcomes.by_ref().take(seeds as usize).collect(),
            scenario: scenario.clone(),
        };
        Results { runs: self.scenarios().map(measured).collect(), seeds: seeds as usize }
    }
}

impl PlannedExperiment {
    /// Id of the experiment, with its control.
    #[must_use]
    pub fn title(&self) -> String {
        title(&self.experiment.id, self.control.as_deref())
    }

    /// Runs of the experiment by name.
    #[must_use]
    pub fn runs<'a>(&'a self, results: &'a Results) -> Runs<'a, RunOutcomes> {
        let run = |(name, run): (&'a String, &'a PlannedRun)| {
            Some((name.as_str(), run.of(|at| results.runs.get(at))?))
        };
        self.runs.iter().filter_map(run).collect()
    }
}

impl Scope<'_> {
    fn has(self, variant: &Variant) -> bool {
        match self {
            Self::Usual => variant.beside,
            Self::Variants(names) => variant.beside || names.is_empty() || names.contains(&variant.name),
            Self::Ablated => false,
        }
    }

    /// Checks that the names are variants of the papers with a chosen experiment.
    fn check(self, papers: &[Paper], wanted: &[String]) -> Result<(), Problems> {
        let Self::Variants(names) = self else { return Ok(()) };
        let is_wanted = |paper: &&Paper| {
            wanted.is_empty() || wanted.iter().any(|name| name.split('/').next() == Some(&paper.key))
        };
        let variants: Vec<&str> = papers
            .iter()
            .filter(is_wanted)
            .flat_map(|paper| &paper.content.variants)
            .map(|variant| variant.name.as_str())
            .collect();
        if variants.is_empty() {
            return Err(Problems(vec!["no paper of these has variants; leave --variants out".to_owned()]));
        }
        let unknown = names.iter().filter(|name| !variants.contains(&name.as_str()));
        let problem = |name: &String| {
            let guess = did_you_mean(name, variants.iter().copied());
            let known = variants.join(", ");
            format!(
                "no variant is called `{name}`{guess}; write experiments before --variants; variants are {known}"
            )
        };
        let problems: Vec<String> = unknown.map(problem).collect();
        if problems.is_empty() { Ok(()) } else { Err(Problems(problems)) }
    }
}

fn check_wanted(papers: &[Paper], wanted: &[String]) -> Result<(), Problems> {
    let ids = || papers.iter().flat_map(|paper| &paper.content.experiments).map(|e| e.id.as_str());
    let keys = || papers.iter().map(|paper| paper.key.as_str());
    let unknown = wanted.iter().filter(|name| ids().chain(keys()).all(|known| known != name.as_str()));
    let problems: Vec<String> = unknown
        .map(|name| {
            let guess = did_you_mean(name, ids().chain(keys()));
            let known: Vec<&str> = keys().collect();
            format!(
                "no experiment or paper is called `{name}`{guess}; papers are {}, and `apportion list experiments` \
                 prints their experiments",
                known.join(", ")
            )
        })
        .collect();
    if problems.is_empty() { Ok(()) } else { Err(Problems(problems)) }
}

/// The id of an experiment, with its control.
pub(crate) fn title(id: &str, control: Option<&str>) -> String {
    control.map_or_else(|| id.to_owned(), |control| format!("{id}, {control}"))
}

/// Collects runs; runs with the same canonical text are one.
#[derive(Default)]
struct Planner {
    distinct: Vec<DistinctRun>,
    /// Parts of the planned variant that apply to a run.
    used: Used,
}

/// Differences between runs and the file.
#[derive(Clone, Copy)]
enum Modification<'a> {
    Nothing,
    /// The control of this name.
    Control(&'a str),
    Variant(&'a Variant),
}

impl<'a> Modification<'a> {
    fn control(self) -> Option<&'a str> {
        match self {
            Self::Control(name) => Some(name),
            Self::Nothing | Self::Variant(_) => None,
        }
    }
}

fn modifications(experiment: &Experiment, ablate: bool) -> Vec<Modification<'_>> {
    match ablate {
        true => experiment.controls().into_iter().map(Modification::Control).collect(),
        false => vec![Modification::Nothing],
    }
}

impl Planner {
    /// Plans a variant; `None` if none of its experiments was chosen.
    fn variant(
        &mut self,
        paper: &Paper,
        chosen: &[&Experiment],
        variant: &Variant,
        problems: &mut Vec<String>,
    ) -> Option<PlannedVariant> {
        self.used.clear();
        let before = problems.len();
        let covered = |experiment: &&Experiment| variant.covers(&experiment.id, &paper.content);
        let mut experiments = Vec::new();
        for experiment in chosen.iter().copied().filter(covered) {
            experiments.extend(self.experiment(paper, experiment, Modification::Variant(variant), problems));
        }
        // Parts of a variant may apply only to experiments that were not chosen.
        if problems.len() == before
            && experiments.len() == paper.content.experiments.iter().filter(covered).count()
        {
            let place = format!("{}:{}: variant {}", paper.path.display(), variant.line, variant.name);
            let unused = variant.unused(&self.used);
            problems.extend(unused.into_iter().map(|(key, message)| format!("{place}: {key}: {message}")));
        }
        (!experiments.is_empty()).then(|| PlannedVariant { variant: variant.clone(), experiments })
    }

    fn experiment(
        &mut self,
        paper: &Paper,
        experiment: &Experiment,
        modification: Modification<'_>,
        problems: &mut Vec<String>,
    ) -> Option<PlannedExperiment> {
        let mut bad = false;
        let mut runs = BTreeMap::new();
        let place = match modification {
            Modification::Variant(variant) => format!("{}: variant {}", experiment.id, variant.name),
            Modification::Control(name) => format!("{}: control {name}", experiment.id),
            Modification::Nothing => experiment.id.clone(),
        };
        for (name, spec) in &experiment.runs {
            match self.points(paper, experiment, spec, modification) {
                Ok(run) => {
                    runs.insert(name.clone(), run);
                }
                Err(messages) => {
                    bad = true;
                    for message in messages {
                        // Experiments share scenarios: report a problem once.
                        if problems.iter().all(|said: &String| !said.ends_with(&message)) {
                            let file = paper.path.display();
                            problems.push(format!("{file}:{}: {place}: run {name}: {message}", spec.line));
                        }
                    }
                }
            }
        }
        if bad {
            return None;
        }
        let scenario = |at: usize| self.distinct.get(at).map(DistinctRun::scenario);
        let by_name: Runs<'_, Scenario> =
            runs.iter().filter_map(|(name, run)| Some((name.as_str(), run.of(scenario)?))).collect();
        let before = problems.len();
        let labels = labels(paper, experiment, &place, &by_name, problems);
        let control = modification.control().map(str::to_owned);
        (problems.len() == before).then(|| PlannedExperiment {
            experiment: experiment.clone(),
            control,
            labels,
            runs,
        })
    }

    /// A run at all points of its sweep.
    fn points(
        &mut self,
        paper: &Paper,
        experiment: &Experiment,
        spec: &RunSpec,
        modification: Modification<'_>,
    ) -> Result<PlannedRun, Vec<String>> {
        let Some(name) = &spec.sweep else {
            let one = self.run(paper, experiment, spec, Vec::new(), modification)?;
            return Ok(PlannedRun { scenarios: vec![one], sweep: None });
        };
        let sweeps = &paper.content.sweeps;
        let sweep = sweeps.get(name).ok_or_else(|| {
            let guess = did_you_mean(name, sweeps.keys().map(String::as_str));
            vec![format!("sweep: the file has no [sweep.{name}]{guess}")]
        })?;
        let point = |k| self.run(paper, experiment, spec, sweep.overrides(k), modification);
        let scenarios = (0..sweep.at.len()).map(point).collect::<Result<_, _>>()?;
        Ok(PlannedRun { scenarios, sweep: Some(sweep.clone()) })
    }

    /// Index of a run's scenario, with the overrides of a point of its sweep.
    fn run(
        &mut self,
        paper: &Paper,
        experiment: &Experiment,
        spec: &RunSpec,
        point: Vec<(String, String)>,
        modification: Modification<'_>,
    ) -> Result<usize, Vec<String>> {
        let mut file = spec.scenario.display().to_string();
        let mut overrides = spec.overrides(modification.control(), point);
        if let Modification::Variant(variant) = modification {
            let (other, more) = variant.overrides(&experiment.id, &file, &mut self.used);
            file = other;
            overrides.extend(more);
        }
        let path = paper.path.parent().map_or_else(|| PathBuf::from(&file), |folder| folder.join(&file));
        let text = paper.files.read_text(&path).map_err(|error| {
            vec![format!(
                "scenario: cannot read `{}`: {error}; paths start at the folder of the file",
                path.display()
            )]
        })?;
        let load = |text: &str, overrides: &[(String, String)]| {
            load(text, &path, overrides, &|path| paper.files.read(path))
                .map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        let mut suite = load(&text, &overrides)?;
        if let Modification::Variant(variant) = modification {
            let spread = variant.spread(&suite.canonical, &mut self.used);
            for (param, overrides) in &spread {
                // A setting that is invalid on its own changes something.
                let is_same = |alone: Suite| model(&alone) == model(&suite);
                if !self.used.contains(&change(param))
                    && !load(&suite.canonical, overrides).is_ok_and(is_same)
                {
                    self.used.insert(change(param));
                }
            }
            if !spread.is_empty() {
                let all: Vec<_> = spread.into_iter().flat_map(|(_, overrides)| overrides).collect();
                suite = load(&suite.canonical, &all)?;
            }
        }
        let is_same = |run: &DistinctRun| run.suite.canonical == suite.canonical;
        if let Some(at) = self.distinct.iter().position(is_same) {
            return Ok(at);
        }
        if let [_] = suite.points[..] {
            self.distinct.push(DistinctRun { path, suite });
            return Ok(self.distinct.len() - 1);
        }
        Err(vec![refusal_of_sweep(&path, &suite)])
    }
}

fn refusal_of_sweep(path: &Path, suite: &Suite) -> String {
    let settings = suite.points.first().map_or(&[][..], |point| &point.settings);
    let swept: Vec<&str> = settings.iter().map(|(path, _)| path.as_str()).collect();
    format!(
        "scenario: `{}` sweeps {}; write one value here, and the others in `set` of further runs or in a [sweep.NAME]",
        path.display(),
        swept.join(" and ")
    )
}

/// The simulated model of a suite, without names: the canonical text contains the name of a TCP profile in
/// addition to its parameters.
fn model(suite: &Suite) -> Vec<String> {
    suite.points.iter().map(|point| format!("{:?}", point.scenario)).collect()
}

/// Labels of the numbers of each metric. Problems with metrics, columns and figures go to `problems`.
fn labels(
    paper: &Paper,
    experiment: &Experiment,
    place: &str,
    runs: &Runs<'_, Scenario>,
    problems: &mut Vec<String>,
) -> Vec<Vec<String>> {
    let mut add = |line: u32, what: &str, (key, message): Fault| {
        problems.push(format!("{}:{line}: {place}: {what}.{key}: {message}", paper.path.display()));
    };
    let mut labels = Vec::new();
    for metric in &experiment.metrics {
        let numbers = metric.measure.labels(runs).and_then(|found| match metric.published().len().max(1) {
            _ if found.is_empty() => {
                Err(("of", "it has no numbers; name flows, or write numbers".to_owned()))
            }
            published if !found.len().is_multiple_of(published) => Err((
                "of",
                format!("{} numbers for {} published ones", found.len(), metric.published().len()),
            )),
            _ => Ok(found),
        });
        match numbers {
            Ok(found) => labels.push(found),
            Err(fault) => add(metric.line, &format!("metric {}: measure", metric.name), fault),
        }
    }
    for column in paper.content.columns.iter().filter(|column| column.place().0 == experiment.id) {
        if let Some(Err(fault)) = column.measure.as_ref().map(|measure| measure.labels(runs)) {
            add(column.line, &format!("column {}: measure", column.title), fault);
        }
    }
    for (at, figure) in (1..).zip(&experiment.figures) {
        if let Err(fault) = check_figure(figure, paper, experiment, runs) {
            add(experiment.line, &format!("figure[{at}]"), fault);
        }
    }
    labels
}

fn check_figure(
    figure: &Figure,
    paper: &Paper,
    experiment: &Experiment,
    runs: &Runs<'_, Scenario>,
) -> Result<(), Fault> {
    match figure {
        Figure::Shares { series, on, .. } => {
            for one in series {
                let scenario = run_of(runs, &one.run)?;
                attributes_of(scenario, &flows_of(scenario, &one.of)?, *on)?;
            }
        }
        Figure::OverTime { run, of, .. } => {
            flows_of(run_of(runs, run)?, of)?;
        }
        Figure::OverSweep(figure) => figure.check(runs)?,
        Figure::Bars(figure) => figure.check(runs)?,
        Figure::Course(figure) => figure.check(runs)?,
        Figure::AccumulatedDifference(figure) => figure.check(runs)?,
        Figure::RunningMean(figure) => {
            for one in &figure.series {
                flows_of(run_of(runs, &one.run)?, &one.of)?;
            }
        }
        Figure::Table { rows, columns, .. } => {
            for column in columns {
                let id = column.experiment.as_ref().unwrap_or(&experiment.id);
                let owner = paper.content.experiments.iter().find(|e| e.id == *id).ok_or_else(|| {
                    let guess = did_you_mean(id, paper.content.experiments.iter().map(|e| e.id.as_str()));
                    ("columns", format!("the file has no experiment `{id}`{guess}"))
                })?;
                for name in [Some(&column.metric), column.foot.as_ref()].into_iter().flatten() {
                    let metric =
                        owner.metrics.iter().find(|metric| metric.name == *name).ok_or_else(|| {
                            let guess = did_you_mean(name, owner.metrics.iter().map(|m| m.name.as_str()));
                            ("columns", format!("{id} has no metric `{name}`{guess}"))
                        })?;
                    let values = metric.published().len();
                    if *name == column.metric && values != rows.len() {
                        return Err(("rows", format!("{} for the {values} values of `{name}`", rows.len())));
                    }
                }
            }
        }
    }
    Ok(())
}
