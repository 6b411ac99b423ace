//! Requests and their answers, both JSON objects.

use std::collections::BTreeMap;

use apportion::catalogue::{Section, list, schema};
use apportion::rows::{CompletionRow, FlowRow, LinkRow, MediaRow, Row, SeriesRow, StatisticRow};
use apportion::statistics::mean;
use apportion::{Catalog, Results, Run, Scenario, ScenarioBuilder, ScenarioError};
use apportion_report::playground::LONGEST;
use serde::{Deserialize, Serialize};

use crate::host;
use crate::knobs::{Knob, knobs};
use crate::own_policy;

#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
enum Request {
    /// What scenarios can name, the examples, and the schema of scenarios.
    Catalog,
    /// Whether a scenario is right, what it costs, and what can be changed in it.
    Check(Text),
    /// The results of a scenario.
    Run {
        #[serde(flatten)]
        text: Text,
        /// The replications of each point. Default: 1.
        seeds: Option<u64>,
        /// Whether replications have perturbed copies. Default: as in [`Run::phase_check`].
        phase_check: Option<bool>,
        /// Whether the answer has the tables. Default: no.
        #[serde(default)]
        tables: bool,
    },
}

#[derive(Debug, Deserialize)]
struct Text {
    text: String,
    /// The name of the scenario in messages and, without a title, of its report. Default: `scenario`.
    name: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Answer {
    Catalog(Box<Names>),
    Check(Checked),
    Run(Box<Ran>),
    Refused(Refused),
}

#[derive(Debug, Serialize)]
struct Names {
    ok: bool,
    version: &'static str,
    examples: Vec<Example>,
    disciplines: Vec<Named>,
    tcp: Vec<Named>,
    schema: serde_json::Value,
}

#[derive(Debug, Serialize)]
struct Example {
    name: &'static str,
    title: String,
    text: &'static str,
}

#[derive(Debug, Serialize)]
struct Named {
    name: String,
    role: &'static str,
    summary: String,
}

#[derive(Debug, Serialize)]
struct Checked {
    ok: bool,
    title: String,
    points: Vec<String>,
    flows: Vec<String>,
    /// Transmissions of packets, writes of sources and samples over all points, of one replication each.
    hops: f64,
    /// Memory in bytes.
    bytes: f64,
    knobs: Vec<Knob>,
}

#[derive(Debug, Serialize)]
struct Ran {
    ok: bool,
    html: String,
    summary: String,
    warnings: Vec<String>,
    shares: Vec<Share>,
    /// Comma-separated values by the name of the table.
    tables: BTreeMap<&'static str, String>,
}

/// The share of a flow at a point: means over the seeds.
#[derive(Debug, Default, Serialize)]
struct Share {
    point: String,
    flow: String,
    group: String,
    throughput_mbps: f64,
    entitlement_mbps: Option<f64>,
    delay_p95_ms: Option<f64>,
    drops: f64,
}

#[derive(Debug, Serialize)]
struct Refused {
    ok: bool,
    problems: Vec<Problem>,
}

#[derive(Debug, Serialize)]
struct Problem {
    /// The line, from 1; none for a problem with the whole.
    line: Option<u32>,
    /// The key; empty if there is none to name.
    path: String,
    message: String,
}

/// Answers a request. What is wrong with it, or with its scenario, is an answer too.
#[must_use]
pub fn answer(request: &[u8]) -> String {
    let answer =
        serde_json::from_slice(request).map_err(|error| Refused::whole(error.to_string())).and_then(answered);
    serde_json::to_string(&answer.unwrap_or_else(Answer::Refused)).unwrap_or_default()
}

fn answered(request: Request) -> Result<Answer, Refused> {
    let catalog = own_policy::catalog();
    match request {
        Request::Catalog => Ok(Answer::Catalog(Box::new(Names::of(&catalog)))),
        Request::Check(text) => Ok(Answer::Check(Checked::of(&catalog, &text)?)),
        Request::Run { text, seeds, phase_check, tables } => {
            let scenario = text.load(&catalog)?;
            let mut run = Run::new(&scenario).seeds(seeds.unwrap_or(1)).jobs(1);
            if let Some(checks) = phase_check {
                run = run.phase_check(checks);
            }
            Ok(Answer::Run(Box::new(Ran::of(run, tables)?)))
        }
    }
}

impl Text {
    fn load(&self, catalog: &Catalog) -> Result<Scenario, Refused> {
        if self.text.len() > LONGEST {
            let kb = self.text.len().div_ceil(1_000);
            return Err(Refused::whole(format!(
                "the scenario has {kb} kB, and at most 200 kB are read here: shorten it, or run it with the command"
            )));
        }
        let mut builder = ScenarioBuilder::from_text(&self.text).catalog(catalog);
        if let Some(name) = &self.name {
            builder = builder.origin(name);
        }
        builder.load().map_err(Refused::of)
    }
}

impl Names {
    fn of(catalog: &Catalog) -> Self {
        let title = |text: &str| {
            let value = text.lines().find_map(|line| line.strip_prefix("title = "));
            value.unwrap_or_default().trim_matches('"').to_owned()
        };
        let named = |section| -> Vec<Named> {
            let lists = list(catalog).into_iter().filter(|list| list.section == section);
            let names = lists.flat_map(|list| list.entries);
            names.map(|one| Named { name: one.name, role: one.role, summary: one.summary }).collect()
        };
        Self {
            ok: true,
            version: env!("CARGO_PKG_VERSION"),
            examples: apportion::examples()
                .map(|(name, text)| Example { name, title: title(text), text })
                .collect(),
            disciplines: named(Section::Disciplines),
            tcp: named(Section::Tcp),
            schema: schema(catalog),
        }
    }
}

impl Checked {
    fn of(catalog: &Catalog, text: &Text) -> Result<Self, Refused> {
        let scenario = text.load(catalog)?;
        let estimate = Run::new(&scenario).jobs(1).simulations().estimate();
        let first = scenario.points().first();
        let flows = first.into_iter().flat_map(|point| &point.scenario.flows);
        Ok(Self {
            ok: true,
            title: scenario.title().to_owned(),
            points: scenario.points().iter().map(|point| point.label.clone()).collect(),
            flows: flows.map(|flow| flow.name.clone()).collect(),
            hops: estimate.hops + estimate.writes + estimate.samples,
            bytes: estimate.memory,
            knobs: knobs(catalog, &text.text),
        })
    }
}

impl Ran {
    fn of(run: Run<'_>, with_tables: bool) -> Result<Self, Refused> {
        let run = run.progress(|progress| host::progress(progress.part()));
        let results = run.simulate().map_err(|error| Refused::whole(error.to_string()))?;
        let mut tables = BTreeMap::new();
        if with_tables {
            let mut add = |name, csv| drop(tables.insert(name, csv));
            add(FlowRow::TABLE, results.csv::<FlowRow>());
            add(LinkRow::TABLE, results.csv::<LinkRow>());
            add(CompletionRow::TABLE, results.csv::<CompletionRow>());
            add(MediaRow::TABLE, results.csv::<MediaRow>());
            add(StatisticRow::TABLE, results.csv::<StatisticRow>());
            add(SeriesRow::TABLE, results.csv::<SeriesRow>());
        }
        Ok(Self {
            ok: true,
            html: results.report(),
            summary: results.summary(),
            warnings: results.warnings().to_vec(),
            shares: shares(&results),
            tables,
        })
    }
}

/// The shares in the order of points, then of the scenario's flows.
fn shares(results: &Results) -> Vec<Share> {
    let mut all: Vec<Share> = Vec::new();
    let mut places: BTreeMap<(String, String), Vec<FlowRow>> = BTreeMap::new();
    for row in results.flows() {
        let rows = places.entry((row.point.clone(), row.flow.clone())).or_default();
        if rows.is_empty() {
            all.push(Share { point: row.point.clone(), flow: row.flow.clone(), ..Share::default() });
        }
        rows.push(row);
    }
    for share in &mut all {
        let Some(rows) = places.remove(&(share.point.clone(), share.flow.clone())) else { continue };
        let mean_of =
            |value: fn(&FlowRow) -> Option<f64>| mean(&rows.iter().filter_map(value).collect::<Vec<_>>());
        share.group = rows[0].group.clone();
        share.throughput_mbps = mean_of(|row| Some(row.throughput_mbps)).unwrap_or_default();
        share.entitlement_mbps = mean_of(|row| row.entitlement_mbps);
        share.delay_p95_ms = mean_of(|row| row.delay_p95_ms);
        share.drops = mean_of(|row| Some(row.drops() as f64)).unwrap_or_default();
    }
    all
}

impl Refused {
    fn whole(message: String) -> Self {
        Self { ok: false, problems: vec![Problem { line: None, path: String::new(), message }] }
    }

    fn of(error: ScenarioError) -> Self {
        let ScenarioError::Problems(problems) = error else { return Self::whole(error.to_string()) };
        let problem = |problem: apportion::Problem| Problem {
            line: match problem.place {
                apportion::Place::Line(line) => Some(line),
                apportion::Place::Override => None,
            },
            path: problem.path,
            message: problem.message,
        };
        Self { ok: false, problems: problems.into_iter().map(problem).collect() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn ask(request: &Value) -> Value {
        serde_json::from_str(&answer(request.to_string().as_bytes())).unwrap()
    }

    const SCENARIO: &str = "seed = 1\nstop = \"2s\"\n\
        link.l = { from = \"a\", to = \"b\", rate = \"2Mbit\", delay = \"5ms\", queue = [\"fifo\", \"drr\"] }\n\
        flow.x = { from = \"a\", to = \"b\", tcp = \"rfc\" }\n";

    #[test]
    fn a_run_has_what_the_library_gives() {
        let ran =
            ask(&json!({ "op": "run", "text": SCENARIO, "seeds": 2, "phase_check": false, "tables": true }));
        let scenario = Scenario::from_text(SCENARIO).unwrap();
        let results = Run::new(&scenario).seeds(2).phase_check(false).simulate().unwrap();
        assert_eq!(ran["html"], results.report());
        assert_eq!(ran["tables"]["flows"], results.csv::<FlowRow>());
        let shares = ran["shares"].as_array().unwrap();
        assert_eq!(shares.len(), 2, "means over seeds");
        let rates: Vec<f64> = results.flows().take(2).map(|row| row.throughput_mbps).collect();
        assert_eq!(shares[0]["throughput_mbps"], mean(&rates).unwrap());
    }

    #[test]
    fn a_scenario_is_checked_with_its_cost_and_its_knobs() {
        let checked = ask(&json!({ "op": "check", "text": SCENARIO }));
        assert_eq!((&checked["ok"], &checked["points"]), (&json!(true), &json!(["queue=fifo", "queue=drr"])));
        assert!(checked["hops"].as_f64().unwrap() > 100.0 && checked["knobs"].as_array().unwrap().len() > 3);
    }

    #[test]
    fn what_is_wrong_is_an_answer() {
        let wrong = ask(&json!({ "op": "check", "text": SCENARIO.replace("2Mbit", "2") }));
        assert_eq!((&wrong["ok"], &wrong["problems"][0]["line"]), (&json!(false), &json!(3)), "{wrong}");
        let long = ask(&json!({ "op": "run", "text": "#".repeat(LONGEST + 1) }));
        assert!(
            long["problems"][0]["message"].as_str().unwrap().starts_with("the scenario has 201 kB"),
            "{long}"
        );
        for request in ["", "{", "[]", "{\"op\": \"x\"}", "{\"op\": \"run\"}", "\u{feff}"] {
            assert!(answer(request.as_bytes()).starts_with("{\"ok\":false"), "{request}");
        }
        assert!(answer(b"\xff").starts_with("{\"ok\":false"));
    }

    #[test]
    fn the_catalogue_has_all_examples() {
        let names = ask(&json!({ "op": "catalog" }));
        assert_eq!(names["examples"].as_array().unwrap().len(), apportion::examples().count());
        assert!(names["disciplines"].as_array().unwrap().iter().any(|one| one["name"] == "own"));
        assert!(names["schema"]["$defs"]["queue"].is_object());
    }
}
