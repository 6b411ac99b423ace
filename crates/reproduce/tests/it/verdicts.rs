//! From a paper's file to verdicts, with small scenarios.

use apportion_reproduce::table::{json_lines, tables};
use apportion_reproduce::{Claim, Files, Plan, Problems, Scope, Verdict, expect, judge, variant_table};
use tempfile::TempDir;

use crate::simulated;

/// Two UDP flows of 1 and 2 Mb/s over a link of 10 Mb/s, which drops nothing, and a flow over a link of
/// 1 Mb/s that asks for 2.
const SCENARIO: &str = r#"
seed = 3
stop = "10s"
sample = "1s"
defaults.flow.jitter = "0s"     # numbers are computed
[link.wide]
from = "a"
to = "b"
rate = "10Mbit"
delay = "5ms"
[link.narrow]
from = "a"
to = "c"
rate = "1Mbit"
delay = "5ms"
queue = { kind = "fifo", limit = "10p" }
[flow.u]
count = 2
from = "a"
to = "b"
weight = "i"
source = { kind = "cbr", rate = "1Mbit * i", packet = "500B" }
[flow.greedy]
from = "a"
to = "c"
source = { kind = "cbr", rate = "2Mbit", packet = "500B" }
[[change]]
at = "5s"
set = "flow.u.2.rate"
to = "1Mbit"
"#;

const HEAD: &str = r#"
title = "Toy"
paper = "A. Author"
[[experiment]]
id = "toy/one"
source = "nowhere"
summary = "three flows"
[experiment.run.main]
scenario = "x.toml"
ablate."wide link" = { "link.narrow.rate" = "5Mbit" }
[experiment.run.steady]
scenario = "x.toml"
set = { change = [] }
"#;

fn metric(name: &str, rest: &str) -> String {
    format!("[[experiment.metric]]\nname = \"{name}\"\nunit = \"1\"\nkind = \"derived\"\n{rest}\n")
}

struct Toy {
    folder: TempDir,
    text: String,
}

impl Toy {
    fn new(metrics: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("x.toml"), SCENARIO).unwrap();
        let metrics: String = metrics.iter().map(|(name, rest)| metric(name, rest)).collect();
        Self { folder, text: HEAD.to_owned() + &metrics }
    }

    fn plan(&self, ablate: bool) -> Result<Plan, Problems> {
        let paper = expect::parse(&self.folder.path().join("expect.toml"), Files::Disk, &self.text)?;
        Plan::new(vec![paper], &[], if ablate { Scope::Ablated } else { Scope::Usual })
    }

    fn claims(&self, ablate: bool) -> Vec<Claim> {
        let plan = self.plan(ablate).unwrap();
        let results = simulated::results(&plan, 2);
        judge(&plan, &results)
    }

    /// Appends variants to the file.
    fn with(mut self, variants: &str) -> Self {
        self.text.push_str(variants);
        self
    }

    /// The only message, without the folder.
    fn error(&self) -> String {
        let Problems(lines) = self.plan(false).unwrap_err();
        assert_eq!(lines.len(), 1, "{lines:?}");
        without_line(&lines[0].replace(&format!("{}/", self.folder.path().display()), ""))
    }
}

fn measured(claim: &Claim) -> Vec<f64> {
    claim.elements.iter().map(|element| element.measured).collect()
}

fn close(measured: &[f64], expected: &[f64]) -> bool {
    measured.len() == expected.len() && measured.iter().zip(expected).all(|(a, b)| (a - b).abs() < 0.02)
}

/// Message without its line number, which has its own test.
fn without_line(message: &str) -> String {
    let (before, after) = message.split_once("expect.toml:").unwrap();
    format!("{before}expect.toml{}", after.trim_start_matches(|c: char| c.is_ascii_digit()))
}

#[test]
fn measures_give_what_the_sources_send() {
    let claims = Toy::new(&[
        ("all", r#"op = "record"
value = [1, 2, 3]
measure = { kind = "throughput", of = ["u", "greedy"] }"#),
        ("window", r#"op = "record"
value = [1, 2]
measure = { kind = "throughput", of = ["u"], from = "1s", to = "5s" }"#),
        ("change", r#"op = "record"
value = 1
measure = { kind = "relative_change", of = ["u.2"], before = ["1s", "5s"], after = ["6s", "10s"] }"#),
        ("ratio", r#"op = "record"
value = 1
measure = { kind = "quotient", of = [
    { kind = "throughput", of = ["u"], as = "sum", run = "steady" }, { kind = "throughput", of = ["greedy"] },
] }"#),
        ("slope", r#"op = "record"
value = 1
measure = { kind = "fit", of = ["u"], on = "weight", give = "slope", run = "steady" }"#),
        ("settled", r#"op = "record"
value = 1
measure = { kind = "settling", of = ["u.2"], targets = [1], after = "3s", window = "1s", within = 0.1, hold = "3s" }"#),
        ("rtt", r#"op = "record"
value = 1
measure = { kind = "fit", of = ["u"], on = "rtt", give = "slope", run = "steady" }"#),
        ("spread", r#"op = "record"
value = [1, 2]
measure = { kind = "list", of = [
    { kind = "throughput", of = ["u"], as = "sigma", run = "steady" },
    { kind = "utilisation", link = "narrow" },
] }"#),
        // Every second packet of the faster flow waits 0.4 ms for one of the other.
        ("waits", r#"op = "record"
value = [5.6, 5.8]
measure = { kind = "list", of = [
    { kind = "delay", of = ["u.2"], run = "steady" }, { kind = "delay", of = ["u.2"], share = 1.0, run = "steady" },
] }"#),
        ("wrong", r#"op = "record"
value = 1
measure = { kind = "reduced", as = "max", of = { kind = "relative_error", of = [
    { kind = "throughput", of = ["u"], run = "steady" }, { kind = "constant", value = [2, 1.6] },
] } }"#),
    ])
    .claims(false);
    let expected: [&[f64]; 10] = [
        // The second flow sends 2 Mb/s for half of the time, the third gets its link.
        &[1.0, 1.5, 1.0],
        &[1.0, 2.0],
        &[0.5],
        // 1 + 2 over 1.
        &[3.0],
        // (1 · 1 + 2 · 2) / (1 + 4).
        &[1.0],
        // From 5 s on, 2 s after 3 s, it is at 1 Mb/s.
        &[2.0],
        // There and back 10 ms for both: 10 (1 + 2) / (100 + 100).
        &[0.15],
        // 1 and 2 lie 0.5 from their mean.
        &[0.5, 1.0],
        &[5.6, 5.8],
        // |1 / 2 - 1| and |2 / 1.6 - 1|.
        &[0.5],
    ];
    for (claim, expected) in claims.iter().zip(expected) {
        assert!(close(&measured(claim), expected), "{}: {:?}", claim.metric.name, measured(claim));
    }
    // The ideal is known, also in the run that changes; not for a settling time.
    let ideal = |k: usize| claims[k].elements[0].ideal;
    let of_all: Vec<_> = claims[0].elements.iter().map(|element| element.ideal).collect();
    assert_eq!(of_all, [Some(1.0), Some(1.5), Some(1.0)]);
    assert_eq!((ideal(2), ideal(4), ideal(5)), (Some(0.5), Some(1.0), None));
}

#[test]
fn each_comparison_holds_on_its_side_only() {
    // The greedy flow gets 1 Mb/s.
    let greedy = r#"measure = { kind = "throughput", of = ["greedy"] }"#;
    let cases = [
        ("op = \"approx\"\nvalue = 1.1\ntol_rel = 0.1", true),
        ("op = \"approx\"\nvalue = 1.1\ntol_rel = 0.05", false),
        ("op = \"approx\"\nvalue = 1.1\ntol_abs = 0.05", false),
        ("op = \"ge\"\nvalue = 0.9", true),
        ("op = \"ge\"\nvalue = 1.1", false),
        ("op = \"ge\"\nvalue = 1.1\ntol_abs = 0.2", true),
        ("op = \"le\"\nvalue = 1.1", true),
        ("op = \"le\"\nvalue = 0.9", false),
        ("op = \"le\"\nvalue = 0.9\ntol_abs = 0.2", true),
        ("op = \"gt\"\nvalue = 0.9", true),
        ("op = \"gt\"\nvalue = 1.1", false),
        ("op = \"lt\"\nvalue = 1.1", true),
        ("op = \"lt\"\nvalue = 0.9", false),
    ];
    let metrics: Vec<(String, String)> = (0..)
        .zip(cases)
        .map(|(k, (comparison, _)): (usize, _)| (format!("m{k}"), format!("{comparison}\n{greedy}")))
        .collect();
    let metrics: Vec<(&str, &str)> =
        metrics.iter().map(|(name, rest)| (name.as_str(), rest.as_str())).collect();
    for (claim, (comparison, holds)) in Toy::new(&metrics).claims(false).iter().zip(cases) {
        assert_eq!(claim.verdict == Verdict::Holds, holds, "{comparison}: {:?}", measured(claim));
    }
}

#[test]
fn what_never_settles_is_null_and_does_not_hold() {
    let claims = Toy::new(&[
        ("never", r#"op = "le"
value = 5
refuted = { reason = "it never gets there", searched = "10 s" }
measure = { kind = "settling", of = ["u.2"], targets = [9], after = "3s", window = "1s", within = 0.1, hold = "3s" }"#),
    ])
    .claims(false);
    assert_eq!(
        json_lines(&claims),
        "{\"experiment\":\"toy/one\",\"metric\":\"never\",\"unit\":\"1\",\"published\":5.0,\"ideal\":null,\
         \"measured\":null,\"ci95\":null,\"deviation\":null,\"seeds\":2,\"op\":\"le\",\"verdict\":\"refuted\",\"knife_edge\":false,\
         \"refuted\":{\"reason\":\"it never gets there\",\"searched\":\"10 s\"}}\n"
    );
    assert!(!claims[0].fails_run());
}

#[test]
fn one_number_for_several_flows_is_compared_with_each_and_the_worst_is_shown() {
    let claims = Toy::new(&[(
        "each",
        r#"op = "approx"
value = 1
tol_rel = 0.1
measure = { kind = "throughput", of = ["u"], run = "steady" }"#,
    )])
    .claims(false);
    let row = serde_json::to_value(claims[0].row()).unwrap();
    assert!((row["measured"].as_f64().unwrap() - 2.0).abs() < 0.02, "{row}");
    assert_eq!(row["verdict"], "fails");
    assert!(claims[0].fails_run());
}

#[test]
fn a_claim_that_survives_its_ablation_fails_the_run() {
    let shares = |breaks: &str| {
        format!(
            "op = \"approx\"\nvalue = 1\ntol_rel = 0.1\n{breaks}measure = {{ kind = \"throughput\", of = [\"greedy\"] }}"
        )
    };
    let toy = Toy::new(&[
        ("needs it", &shares("breaks = [\"wide link\"]\n")),
        ("does not", &shares("")),
        (
            "survives",
            r#"op = "ge"
value = 0.5
breaks = ["wide link"]
measure = { kind = "throughput", of = ["u.1"] }"#,
        ),
    ]);
    assert!(toy.claims(false).iter().all(|claim| claim.verdict == Verdict::Holds));
    // On a link of 5 Mb/s the flow gets the 2 Mb/s it asks for.
    let claims = toy.claims(true);
    let condemned: Vec<bool> = claims.iter().map(Claim::fails_run).collect();
    assert_eq!(condemned, [false, false, true]);
    let row = serde_json::to_string(&claims[0].row()).unwrap();
    let end = r#""verdict":"fails","knife_edge":false,"control":"wide link","must_fail":true}"#;
    assert!(row.ends_with(end), "{row}");
}

#[test]
fn runs_that_are_the_same_are_executed_once() {
    let mut toy =
        Toy::new(&[("m", "op = \"record\"\nvalue = 1\nmeasure = { kind = \"throughput\", of = [\"u.1\"] }")]);
    assert_eq!(toy.plan(false).unwrap().runs().len(), 2);
    let again = HEAD.replace("toy/one", "toy/two").replace("title = \"Toy\"\npaper = \"A. Author\"\n", "");
    toy.text += &(again
        + &metric("m", "op = \"record\"\nvalue = 1\nmeasure = { kind = \"timeouts\" , as = \"sum\" }"));
    assert_eq!(toy.plan(false).unwrap().runs().len(), 2);
    // With a mechanism switched off one run is replaced, and there are still two.
    assert_eq!(toy.plan(true).unwrap().runs().len(), 2);
}

#[test]
fn every_error_names_its_place_and_the_fix() {
    let one = |rest: &str| Toy::new(&[("m", rest)]).error();
    let measure = |measure: &str| one(&format!("op = \"record\"\nvalue = 1\nmeasure = {measure}"));
    let at = "expect.toml: toy/one: metric m";
    assert_eq!(
        measure(r#"{ kind = "throughput", of = ["gredy"] }"#),
        format!(
            "{at}: measure.of: there is no flow or group `gredy` (did you mean `greedy`?); there are greedy, u"
        )
    );
    assert_eq!(
        measure(r#"{ kind = "utilisation", link = "narow" }"#),
        format!(
            "{at}: measure.link: there is no link `narow` (did you mean `narrow`?); there are narrow, wide"
        )
    );
    assert_eq!(
        measure(r#"{ kind = "timeouts", run = "mian", as = "sum" }"#),
        format!("{at}: measure.run: there is no run `mian` (did you mean `main`?); there are main, steady")
    );
    assert_eq!(
        measure(r#"{ kind = "throughput", of = ["u.1"], from = "5s", to = "11s" }"#),
        format!("{at}: measure.to: the run ends at 10s")
    );
    assert_eq!(
        measure(r#"{ kind = "fit", of = ["u"], on = "tickets", give = "r2" }"#),
        format!("{at}: measure.on: flow `u.1` has no tickets a second; give it some, or choose another `on`")
    );
    assert_eq!(
        one("op = \"record\"\nvalue = [1, 2]\nmeasure = { kind = \"timeouts\", as = \"sum\" }"),
        format!("{at}: measure.of: 1 numbers for 2 published ones")
    );
    assert_eq!(
        one("op = \"approx\"\nvalue = 1\nmeasure = { kind = \"timeouts\", as = \"sum\" }"),
        format!("{at}: write either `tol_rel` or `tol_abs`, for example tol_rel = 0.1")
    );
    assert_eq!(
        one("op = \"le\"\nvalue = inf\nmeasure = { kind = \"timeouts\", as = \"sum\" }"),
        format!("{at}: value: not a number that can be compared with")
    );
    assert_eq!(
        one("op = \"le\"\nvalue = 1\ntol_abs = -1\nmeasure = { kind = \"timeouts\", as = \"sum\" }"),
        format!("{at}: tol_abs: write a number from 0, for example 0.1")
    );
    assert_eq!(
        measure(r#"{ kind = "list", of = [] }"#),
        format!("{at}: measure.of: it has no numbers; name flows, or write numbers")
    );
    let message = measure(r#"{ kind = "throughput", of = ["u.1"], form = "5s" }"#);
    assert!(
        message.starts_with(
            "expect.toml: experiment[1].metric[1].measure.form: unknown key (did you mean `from`?)"
        ),
        "{message}"
    );
    let message = measure(r#"{ kind = "throughput", of = ["u.1"], from = "5" }"#);
    assert!(message.contains("measure.from: ") && message.contains("write for example \"30s\""), "{message}");
}

#[test]
fn a_sweep_is_refused() {
    let mut toy =
        Toy::new(&[("m", "op = \"record\"\nvalue = 1\nmeasure = { kind = \"timeouts\", as = \"sum\" }")]);
    toy.text = toy.text.replace("set = { change = [] }", "set = { seed = [1, 2] }");
    let message = toy.error();
    assert!(message.contains("run steady: scenario: `x.toml` sweeps seed"), "{message}");
}

const ALL: (&str, &str) = (
    "all",
    r#"op = "approx"
tol_rel = 0.1
value = [1, 2, 1]
measure = { kind = "throughput", of = ["u", "greedy"], run = "steady" }"#,
);

/// The narrow link at twice the rate, and UDP flows with packets of half the size.
const VARIANTS: &str = r#"
[[column]]
title = "rms"
of = "toy/one:all"
give = "rms_published"
[[column]]
title = "rms of ideal"
of = "toy/one:all"
give = "rms_ideal"
[[column]]
title = "worst"
of = "toy/one"
measure = { kind = "throughput", of = ["greedy"], run = "steady" }
give = "worst_ideal"
[[variant]]
name = "wide"
about = "all of it fits"
beside = true
set = { "x.toml" = { "link.narrow.rate" = "4Mbit" } }
[[variant]]
name = "half"
about = "half the rate"
params = { "cbr.rate" = "500kbit" }
"#;

#[test]
fn a_variant_is_measured_and_has_no_verdict() {
    let toy = Toy::new(&[ALL]).with(VARIANTS);
    let claims = toy.claims(false);
    // Without the variant, greedy gets 1 Mb/s of the narrow link; with it, its full sending rate.
    assert!(close(&measured(&claims[0]), &[1.0, 2.0, 1.0]), "{:?}", measured(&claims[0]));
    let (name, wide) = &claims[0].variants[0];
    assert!(name == "wide" && close(&measured(wide), &[1.0, 2.0, 2.0]), "{:?}", measured(wide));
    assert_eq!((claims[0].verdict, claims[0].variants.len()), (Verdict::Holds, 1));
    let line: serde_json::Value = serde_json::from_str(&json_lines(&claims)).unwrap();
    assert_eq!(line["beside"]["wide"].as_array().unwrap().len(), 3);
    assert!(tables(&claims).contains("  wide"), "{}", tables(&claims));
    assert!(toy.claims(true)[0].variants.is_empty());
}

#[test]
fn the_table_of_variants_has_the_worked_errors() {
    let toy = Toy::new(&[ALL]).with(VARIANTS);
    let paper = expect::parse(&toy.folder.path().join("expect.toml"), Files::Disk, &toy.text).unwrap();
    let plan = Plan::new(vec![paper], &[], Scope::Variants(&[])).unwrap();
    let results = simulated::results(&plan, 2);
    let table = variant_table::tables(&plan, &results).remove(0);
    let values: Vec<f64> = table
        .json_lines()
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .filter_map(|line| line["column"].is_string().then(|| line["measured"].as_f64().unwrap()))
        .collect();
    // Unchanged: 1, 2, 1 as published and as entitled. Wide: 1, 2, 2 of 1, 2, 1, √(1/3) = 0.577, as entitled.
    // Half: 0.5, 0.5, 0.5 of 1, 2, 1, √((0.25 + 0.5625 + 0.25) / 3) = 0.595, as entitled.
    let expected = [0.0, 0.0, 0.0, 1.0 / 3.0_f64.sqrt(), 0.0, 0.0, (1.0625_f64 / 3.0).sqrt(), 0.0, 0.0];
    assert!(close(&values, &expected), "{values:?}");
    let markdown = table.markdown();
    for row in ["| (as they are)", "| wide ", "| half "] {
        assert!(markdown.contains(row), "{markdown}");
    }
    assert!(markdown.contains("| 1 of 1") && markdown.contains("| 0 of 1"), "{markdown}");
}

#[test]
fn a_profile_with_the_parameters_of_another_is_refused() {
    let tcp = "[flow.t]\nfrom = \"a\"\nto = \"b\"\ntcp = \"rfc\"\nsource = \"greedy\"\n";
    let toy = |params: &str| {
        let toy = Toy::new(&[ALL]).with(&format!(
            "[[variant]]\nname = \"v\"\nabout = \"a\"\nbeside = true\nreplace = {{ \"x.toml\" = \"y.toml\" }}\n\
             params = {{ {params} }}\n"
        ));
        std::fs::write(
            toy.folder.path().join("y.toml"),
            SCENARIO.replace("[[change]]", &format!("{tcp}[[change]]")),
        )
        .unwrap();
        toy
    };
    assert_eq!(
        toy("\"tcp.profile\" = \"reno-1999\"").error(),
        "expect.toml: variant v: params.tcp.profile: it changes nothing in the scenarios of its runs (they name \
         each parameter of it); correct it or leave it out"
    );
    assert!(toy("\"tcp.window\" = \"3p\"").plan(false).is_ok());
}

#[test]
fn what_a_variant_gets_wrong_is_named() {
    let error = |variant: &str| {
        let head = "[[variant]]\nname = \"v\"\nabout = \"a\"\nbeside = true\n";
        Toy::new(&[ALL]).with(&format!("{head}{variant}")).error()
    };
    for (variant, expected) in [
        (
            "params = { \"tred.n\" = 1 }",
            "expect.toml: variant v: params.tred.n: no scenario of its runs has a `tred`; \
          correct it or leave it out",
        ),
        (
            "params = { \"cbr.packet\" = \"500B\" }",
            "expect.toml: variant v: params.cbr.packet: it changes nothing in the scenarios of its runs; \
          correct it or leave it out",
        ),
        (
            "set = { \"y.toml\" = { seed = 1 } }",
            "expect.toml: variant v: set.y.toml: is no scenario file or \
          experiment of its runs; correct it or leave it out",
        ),
        (
            "replace = { \"y.toml\" = \"x.toml\" }",
            "expect.toml: variant v: replace.y.toml: is no scenario file of \
          its runs; correct it or leave it out",
        ),
        (
            "experiments = [\"toy/on\"]",
            "expect.toml: variant v: experiments: the file has no experiment `toy/on` \
          (did you mean `toy/one`?)",
        ),
        (
            "params = { n = 1 }",
            "expect.toml: variant v: params.n: its owner is missing; write for example \"tred.n\"",
        ),
    ] {
        assert_eq!(error(variant), expected);
    }
    let loader = error("set = { \"link.narrow.speed\" = 1 }");
    assert!(loader.starts_with("expect.toml: toy/one: variant v: run main: x.toml:"), "{loader}");
    let replaced = error("replace = { \"x.toml\" = \"z.toml\" }");
    assert!(replaced.contains("variant v") && replaced.contains("cannot read"), "{replaced}");
}

#[test]
fn all_typos_of_a_file_are_reported_at_once_with_line_key_and_suggestion() {
    let text = r#"
title = "Toy"
papper = "x"
[[experiment]]
id = "toy/one"
source = "Fig. 1"
sumary = "x"
[experiment.run.main]
scenario = "x.toml"
set = { seed = 2026-01-01 }
[[experiment.metric]]
name = "m"
unit = 1
kind = "derrived"
op = "aprox"
value = [1, "two"]
tol_rel = "small"
measure = { kind = "throuput", of = ["u"] }
[[experiment.metric]]
name = "n"
unit = "1"
kind = "derived"
op = "record"
value = 1
measure = { kind = "mean", of = [{ kind = "throughput", form = "3s", from = "3 parsecs", as = "sums" }, { of = [] }] }
[[experiment.figure]]
kind = "table"
title = "Table"
rows = "one"
columns = []
"#;
    let Problems(lines) = expect::parse(std::path::Path::new("expect.toml"), Files::Disk, text).unwrap_err();
    let expected = [
        "1: paper: missing",
        "3: papper: unknown key (did you mean `paper`?)",
        "4: experiment[1].summary: missing",
        "7: experiment[1].sumary: unknown key (did you mean `summary`?)",
        "10: experiment[1].run.main.set.seed: `2026-01-01` is a date",
        "13: experiment[1].metric[1].unit: `1` is an integer, not a string",
        "14: experiment[1].metric[1].kind: `derrived` is not known here (did you mean `derived`?)",
        "15: experiment[1].metric[1].op: `aprox` is not known here (did you mean `approx`?)",
        "16: experiment[1].metric[1].value[2]: `two` is a string, not a number",
        "17: experiment[1].metric[1].tol_rel: `small` is a string, not a number",
        "18: experiment[1].metric[1].measure.kind: `throuput` is not known here (did you mean `throughput`?)",
        "25: experiment[1].metric[2].measure.of[1].as: `sums` is not known here (did you mean `sum`?)",
        "25: experiment[1].metric[2].measure.of[1].form: unknown key (did you mean `from`?)",
        "25: experiment[1].metric[2].measure.of[1].from: ",
        "25: experiment[1].metric[2].measure.of[2].kind: missing; write for example kind = ",
        "26: experiment[1].figure[1].head: missing",
        "29: experiment[1].figure[1].rows: `one` is a string, not a list",
    ];
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.starts_with(&format!("expect.toml:{expected}")), "{line}\nnot {expected}");
    }
    assert_eq!(lines.len(), expected.len(), "{lines:#?}");
}

#[test]
fn errors_of_meaning_have_a_line_too() {
    let toy =
        Toy::new(&[("m", "op = \"record\"\nvalue = 1\nmeasure = { kind = \"timeouts\", run = \"mian\" }")]);
    let header = 1 + toy.text.lines().position(|line| line == "[[experiment.metric]]").unwrap();
    let Problems(lines) = toy.plan(false).unwrap_err();
    assert!(
        lines[0].contains(&format!("expect.toml:{header}: toy/one: metric m: measure.run: ")),
        "{lines:?}"
    );
}
