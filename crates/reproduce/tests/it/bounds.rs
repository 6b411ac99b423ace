//! Verdicts: claims that hold, fail, are undecided, refuted or only recorded, and the requirements on a
//! claim.

use apportion_reproduce::table::{headline, json_lines, tables};
use apportion_reproduce::{Claim, Files, Plan, Problems, Scope, Tally, Verdict, expect, judge};

use crate::simulated;

/// A Poisson source of 1 Mb/s over a link with room: its throughput varies between seeds by about 2 %.
const SCENARIO: &str = r#"
seed = 5
stop = "20s"
defaults.flow.jitter = "0s"     # numbers are computed
[link.wide]
from = "a"
to = "b"
rate = "10Mbit"
delay = "5ms"
[flow.p]
from = "a"
to = "b"
source = { kind = "poisson", rate = "1Mbit", packet = "1000B" }
[flow.c]
from = "a"
to = "b"
source = { kind = "cbr", rate = "2Mbit", packet = "500B" }
"#;

const HEAD: &str = r#"
title = "Toy"
paper = "A. Author"
[[experiment]]
id = "toy/one"
source = "nowhere"
summary = "two flows"
[experiment.run.main]
scenario = "x.toml"
ablate."slow CBR" = { "flow.c.source.rate" = "1Mbit" }
ablate.silence = { "flow.c.start" = "19s" }
"#;

fn plan(metrics: &str, scope: Scope<'_>) -> Result<Plan, Problems> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.toml"), SCENARIO).unwrap();
    let text = HEAD.to_owned() + metrics;
    let paper = expect::parse(&folder.path().join("expect.toml"), Files::Disk, &text)?;
    Plan::new(vec![paper], &[], scope)
}

fn claims(metrics: &str, scope: Scope<'_>, seeds: u64) -> Vec<Claim> {
    let plan = plan(metrics, scope).unwrap_or_else(|error| panic!("{error}"));
    let results = simulated::results(&plan, seeds);
    judge(&plan, &results)
}

fn metric(name: &str, rest: &str, of: &str) -> String {
    format!(
        "[[experiment.metric]]\nname = \"{name}\"\nunit = \"Mb/s\"\nkind = \"published-number\"\n{rest}\n\
         measure = {{ kind = \"throughput\", of = [{of}] }}\n"
    )
}

/// Verdict on the Poisson flow with a bound `at` half widths of its interval below its mean.
fn verdict_at(op: &str, mean: f64, half: f64, at: f64) -> Claim {
    let rest = format!("op = \"{op}\"\nvalue = {}", mean - at * half);
    claims(&metric("m", &rest, "\"p\""), Scope::Usual, 5).remove(0)
}

#[test]
fn the_interval_decides_and_a_near_bound_is_a_knife_edge() {
    let probe = claims(&metric("m", "op = \"record\"", "\"p\""), Scope::Usual, 5).remove(0);
    let (mean, half) = (probe.elements[0].measured, probe.elements[0].ci95.unwrap());
    assert!(half > 0.001 * mean, "{mean} ± {half}");
    for (at, verdict, edge) in [
        (2.5, Verdict::Holds, false),
        (1.5, Verdict::Holds, true),
        (0.5, Verdict::Undecided, true),
        (-0.5, Verdict::Undecided, true),
        (-1.5, Verdict::Fails, true),
        (-2.5, Verdict::Fails, false),
    ] {
        let claim = verdict_at("ge", mean, half, at);
        assert_eq!((claim.verdict, claim.knife_edge()), (verdict, edge), "{at}");
        // The other side of the same bound.
        let opposite = match verdict {
            Verdict::Holds => Verdict::Fails,
            Verdict::Fails => Verdict::Holds,
            other => other,
        };
        assert_eq!(verdict_at("lt", mean, half, at).verdict, opposite, "{at}");
    }
    // A band has two bounds; the nearer counts.
    let band = |tol: f64| {
        let rest = format!("op = \"approx\"\nvalue = {mean}\ntol_abs = {}", tol * half);
        claims(&metric("m", &rest, "\"p\""), Scope::Usual, 5).remove(0)
    };
    assert_eq!((band(3.0).verdict, band(3.0).knife_edge()), (Verdict::Holds, false));
    assert_eq!((band(1.5).verdict, band(1.5).knife_edge()), (Verdict::Holds, true));
    assert_eq!(band(0.5).verdict, Verdict::Undecided);
    // A single run has no interval: its number decides.
    let one = claims(&metric("m", &format!("op = \"ge\"\nvalue = {}", mean / 2.0), "\"p\""), Scope::Usual, 1);
    assert_eq!((one[0].verdict, one[0].knife_edge()), (Verdict::Holds, false));
    assert!(headline(&one).contains("a single run"), "{}", headline(&one));
}

#[test]
fn the_worst_number_decides_on_a_claim_of_several() {
    // The CBR flow has 2 Mb/s in each seed; the Poisson flow is within the noise of its mean.
    let of = |value: f64| {
        claims(&metric("m", &format!("op = \"ge\"\nvalue = {value}"), "\"p\", \"c\""), Scope::Usual, 5)
            .remove(0)
    };
    let mean = of(0.5).elements[0].measured;
    assert_eq!(of(0.5).verdict, Verdict::Holds);
    assert_eq!(of(mean).verdict, Verdict::Undecided);
    assert_eq!(of(1.5).verdict, Verdict::Fails);
}

#[test]
fn what_is_recorded_does_not_hold_and_shows_how_far_it_is_off() {
    let recorded = metric("with", "op = \"record\"\nvalue = 4", "\"c\"")
        + &metric("without", "op = \"record\"", "\"c\"")
        + &metric("claim", "op = \"ge\"\nvalue = 1", "\"c\"");
    let claims = claims(&recorded, Scope::Usual, 2);
    assert_eq!(claims.iter().map(|claim| claim.verdict).collect::<Vec<_>>()[..2], [Verdict::Recorded; 2]);
    let tally = Tally::of(&claims);
    assert_eq!((tally.hold, tally.claims(), tally.recorded), (1, 1, 2));
    assert_eq!(headline(&claims), "1 of 1 claims hold. 2 more numbers are recorded without a bound.");
    let rows: Vec<serde_json::Value> =
        json_lines(&claims).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&rows[0]["verdict"], rows[0].get("holds")), (&"recorded".into(), None));
    assert!((rows[0]["deviation"].as_f64().unwrap() + 0.5).abs() < 0.01, "{}", rows[0]);
    assert!(rows[1]["published"].is_null() && rows[1]["deviation"].is_null(), "{}", rows[1]);
    // A bound has no deviation.
    assert!(rows[2]["deviation"].is_null(), "{}", rows[2]);
    let text = tables(&claims);
    let with = text.lines().find(|line| line.starts_with("  with ")).unwrap();
    assert!(with.contains("-50.0 %") && with.ends_with("recorded"), "{text}");
    assert!(!claims.iter().any(Claim::fails_run));
}

#[test]
fn a_refuted_claim_is_expected_to_fail_and_reported_if_it_holds() {
    let refuted = |value: f64| {
        let mark = "refuted = { reason = \"why\", searched = \"where\" }";
        claims(&metric("m", &format!("op = \"ge\"\nvalue = {value}\n{mark}"), "\"c\""), Scope::Usual, 2)
    };
    let fails = refuted(3.0);
    assert_eq!((fails[0].verdict, fails[0].fails_run()), (Verdict::Refuted, false));
    assert_eq!(headline(&fails), "0 of 1 claims hold; 1 refuted.");
    let holds = refuted(1.0);
    assert_eq!((holds[0].verdict, holds[0].fails_run()), (Verdict::Holds, true));
    assert_eq!(holds[0].verdict_in_words(), "HOLDS, MARKED REFUTED");
    assert!(headline(&holds).contains("1 that hold are marked as refuted"), "{}", headline(&holds));
}

#[test]
fn each_control_runs_by_itself_and_breaks_what_the_claim_names() {
    let metrics = metric("both", "op = \"ge\"\nvalue = 1.5\nbreaks = [\"slow CBR\", \"silence\"]", "\"c\"")
        + &metric("one", "op = \"ge\"\nvalue = 0.5\nbreaks = [\"silence\"]", "\"c\"");
    assert!(claims(&metrics, Scope::Usual, 2).iter().all(|claim| claim.verdict == Verdict::Holds));
    let claims = claims(&metrics, Scope::Ablated, 2);
    let found: Vec<_> = claims
        .iter()
        .map(|claim| {
            let control = claim.control.as_deref().unwrap_or_default();
            (control, claim.metric.name.as_str(), claim.must_fail(), claim.verdict)
        })
        .collect();
    let expected = [
        ("silence", "both", true, Verdict::Fails),
        ("silence", "one", true, Verdict::Fails),
        ("slow CBR", "both", true, Verdict::Fails),
        ("slow CBR", "one", false, Verdict::Holds),
    ];
    assert_eq!(found, expected);
    assert!(!claims.iter().any(Claim::fails_run));
    let text = tables(&claims);
    assert!(text.contains("toy/one, silence\n") && text.contains("toy/one, slow CBR\n"), "{text}");
    let end = "With a mechanism switched off, 3 of 3 claims that must fail do. 1 of the 1 others hold.";
    assert_eq!(headline(&claims), end);
}

#[test]
fn what_cannot_fail_is_refused_as_a_claim() {
    let error = |rest: &str| {
        let head = "[[experiment.metric]]\nname = \"m\"\nunit = \"1\"\nkind = \"derived\"\n";
        let Problems(lines) = plan(&format!("{head}{rest}\n"), Scope::Usual).unwrap_err();
        assert_eq!(lines.len(), 1, "{lines:?}");
        lines[0].split_once("metric m").unwrap().1.to_owned()
    };
    let throughput = "measure = { kind = \"throughput\", of = [\"c\"] }";
    let constants = r#"op = "le"
value = 1
measure = { kind = "quotient", of = [
    { kind = "constant", value = 1 }, { kind = "reduced", as = "sum", of = { kind = "entitlement", of = ["c"] } },
] }"#;
    assert_eq!(
        error(constants),
        ": measure: constants and entitlements are the same whatever runs do; write op = \"record\""
    );
    assert_eq!(
        error(&format!("op = \"record\"\nbreaks = [\"silence\"]\n{throughput}")),
        ": breaks: a recorded number has no bound and cannot fail; choose another `op`, or leave it out"
    );
    assert_eq!(
        error(&format!("op = \"le\"\n{throughput}")),
        ": value: missing; write the number to compare with, or op = \"record\""
    );
    assert_eq!(
        error(&format!("op = \"ge\"\nvalue = 1\nbreaks = [\"silense\"]\n{throughput}")),
        ": breaks: no run has a control `silense` (did you mean `silence`?); write for example \
         ablate.\"silense\" = { ... } in a run"
    );
    let refuted = "refuted = { reason = \"r\", searched = \"s\" }";
    assert_eq!(
        error(&format!("op = \"ge\"\nvalue = 3\nbreaks = [\"silence\"]\n{refuted}\n{throughput}")),
        ": breaks: a refuted claim fails with the mechanism on too; leave it out"
    );
    // Both parts of a refutation are needed.
    let head =
        "[[experiment.metric]]\nname = \"m\"\nunit = \"1\"\nkind = \"derived\"\nop = \"ge\"\nvalue = 3\n";
    let Problems(lines) =
        plan(&format!("{head}refuted = {{ reason = \"r\" }}\n{throughput}\n"), Scope::Usual).unwrap_err();
    assert!(lines[0].contains("metric[1].refuted.searched: missing"), "{lines:?}");
}
