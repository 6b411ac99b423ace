//! Measures and figures over the course of a run, on flows with known answers.

use apportion_reproduce::page::page;
use apportion_reproduce::{Files, Plan, Problems, Scope, expect, judge};

use crate::simulated;

/// A call that steps from 0.4 to 1.2 Mb/s in front of an interface with the RAMP of the paper, and a TCP flow on a small queue.
const SCENARIO: &str = r#"
seed = 1
stop = "20s"
sample = "10ms"
defaults.flow.jitter = "0s"     # numbers are computed
[link.interface]
from = "a"
to = "b"
rate = "10Mbit"
delay = "1ms"
queue = { kind = "ramp", preset = "paper" }
watch = true
[link.narrow]
from = "c"
to = "d"
rate = "2Mbit"
delay = "20ms"
queue = { kind = "fifo", limit = "10p" }
[flow.call]
from = "a"
to = "b"
class = "real_rate"
source = { kind = "cbr", rate = "400kbit", packet = "500B" }
[flow.bulk]
from = "c"
to = "d"
tcp = "reno-1999"
[[change]]
at = "10s"
set = "flow.call.rate"
to = "1.2Mbit"
"#;

const HEAD: &str = r#"
title = "Toy"
paper = "A. Author"
[[experiment]]
id = "toy/one"
source = "nowhere"
summary = "a step"
[experiment.run.main]
scenario = "x.toml"
[experiment.run.half]
scenario = "x.toml"
set = { "flow.call.source.rate" = "200kbit" }
"#;

fn metric(name: &str, measure: &str) -> String {
    format!(
        "[[experiment.metric]]\nname = \"{name}\"\nunit = \"\"\nkind = \"derived\"\nop = \"record\"\nvalue = 1\n\
         measure = {measure}\n"
    )
}

fn plan(more: &str) -> Result<Plan, Problems> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.toml"), SCENARIO).unwrap();
    let paper = expect::parse(&folder.path().join("expect.toml"), Files::Disk, &format!("{HEAD}{more}"))?;
    Plan::new(vec![paper], &[], Scope::Usual)
}

/// Values of the measures, and the page.
fn measured(more: &str, measures: &[&str]) -> (Vec<f64>, String) {
    let metrics: String =
        measures.iter().enumerate().map(|(k, measure)| metric(&format!("m{k}"), measure)).collect();
    let plan = plan(&format!("{metrics}{more}")).unwrap();
    let results = simulated::results(&plan, 2);
    let claims = judge(&plan, &results);
    let html = page(&plan.papers[0], &results, &claims.iter().collect::<Vec<_>>(), None, "command");
    (claims.iter().map(|claim| claim.elements[0].measured).collect(), html)
}

const ALLOCATION: &str = r#"{ show = "allocation", of = "call", link = "interface" }"#;
const TIMES: &str = r#"{ before = "4s", at = "10s", until = "20s" }"#;

#[test]
fn levels_are_means_extremes_and_errors() {
    let level = |course: &str, rest: &str| format!("{{ kind = \"level\", course = {course}, {rest} }}");
    let (found, _) = measured(
        "",
        &[
            &level(r#"{ show = "throughput", of = "call" }"#, r#"give = "mean", from = "5s", to = "10s""#),
            &level(ALLOCATION, r#"give = "mean", from = "15s""#),
            &level(ALLOCATION, r#"give = "error", from = "15s", target = 1.2"#),
            &level(r#"{ show = "fill", of = "call", link = "interface" }"#, r#"give = "mean", from = "15s""#),
            &level(r#"{ show = "window", of = "bulk" }"#, r#"give = "min", from = "0s", to = "100ms""#),
            &level(r#"{ show = "srtt", of = "bulk" }"#, r#"give = "max", from = "5s""#),
        ],
    );
    // 0.4 and 1.2 Mb/s, whose allocation varies little; 16 KiB.
    assert!((found[0] - 0.4).abs() < 0.004 && (found[1] - 1.2).abs() < 0.03, "{found:?}");
    assert!(found[2] < 0.05 && (found[3] / 16_384.0 - 1.0).abs() < 0.2, "{found:?}");
    // The window begins with one segment. The longest round trip: 11 packets of 1500 B at 2 Mb/s are 66 ms,
    // wires 40 ms.
    assert!(found[4] == 1.0 && found[5] > 80.0 && found[5] < 112.0, "{found:?}");
}

#[test]
fn an_answer_to_a_step_is_that_of_the_fluid_model() {
    let step = |give: &str| {
        format!("{{ kind = \"step\", course = {ALLOCATION}, times = {TIMES}, give = \"{give}\" }}")
    };
    let figure = format!(
        "[[experiment.figure]]\nkind = \"course\"\ntitle = \"Fig. 6\"\nfrom = \"9s\"\nto = \"13s\"\n\
         series = [{{ label = \"allocation\", course = {ALLOCATION} }}]\nstep = {TIMES}\n\
         levels = [{{ at = 1.2, from = \"10s\" }}]\n"
    );
    let numbers = [&step("response"), &step("settling"), &step("overshoot"), &step("reach")];
    let (found, html) = measured(&figure, &numbers.map(String::as_str));
    // The theory assumes continuous arrivals, gain KB to percent, no dead time: 290 ms, 1500 ms, 17 % of the
    // step. Packets arrive every 10 ms at 400 kb/s and every 3.3 ms after.
    assert!((found[0] / 290.0 - 1.0).abs() < 0.15, "{found:?}");
    assert!((found[1] / 1_500.0 - 1.0).abs() < 0.2, "{found:?}");
    assert!((found[2] - 0.17).abs() < 0.06, "{found:?}");
    // A tenth of the step takes a few samples more.
    assert!(found[3] > found[0] + 10.0 && found[3] < found[0] + 150.0, "{found:?}");
    assert!(html.contains("Fig. 6") && html.contains("target; marks of the step"), "{html}");
    assert!(html.contains("First curve, first seed: response "));
}

#[test]
fn saw_teeth_are_counted_and_measured() {
    let teeth = |give: &str| {
        format!(
            "{{ kind = \"saw_tooth\", course = {{ show = \"window\", of = \"bulk\" }}, from = \"5s\", give = \"{give}\" }}"
        )
    };
    let (found, _) = measured("", &[&teeth("rate"), &teeth("peak")]);
    // The path holds 7.7 packets (40 ms of wires and 6 ms a packet), the queue 10, the transmitter 1: the
    // queue overflows at 18 to 19. With delayed acknowledgements the window grows by a segment in two
    // round-trip times of 46 to 106 ms: 9 segments take 1.4 s.
    assert!((17.0..20.5).contains(&found[1]), "{found:?}");
    assert!((0.5..1.0).contains(&found[0]), "{found:?}");
}

#[test]
fn cuts_follow_each_other_after_a_tooth_and_not_before() {
    let cuts = |give: &str, within: &str| {
        format!("{{ kind = \"cuts\", of = [\"bulk\"], give = \"{give}\", within = \"{within}\" }}")
    };
    let (found, _) = measured("", &[&cuts("again", "900ms"), &cuts("again", "2s")]);
    // A tooth takes 1 to 2 s, see above; only the last one has no successor.
    assert!(found[0] == 0.0 && found[1] > 0.5, "{found:?}");
}

#[test]
fn what_two_runs_delivered_differs_by_a_share() {
    let figure = "[[experiment.figure]]\nkind = \"accumulated_difference\"\ntitle = \"Fig. 4\"\nof = [\"call\"]\n\
                  alone = \"main\"\nseries = [{ label = \"at half the rate\", run = \"half\" }]\n";
    let measure =
        r#"{ kind = "accumulated_error", of = ["call"], runs = ["main", "half"], from = "5s", to = "10s" }"#;
    let (found, html) = measured(figure, &[measure]);
    // 0.4 against 0.2 Mb/s, once the backlog is in equilibrium.
    assert!((found[0] - 0.5).abs() < 0.01, "{found:?}");
    assert!(
        html.contains("Fig. 4")
            && html.contains("Bytes delivered since the start by `main` minus those of each run, MB")
    );
}

#[test]
fn a_measure_without_a_time_series_is_named_with_the_fix() {
    let fault = |measure: &str| plan(&metric("m", measure)).unwrap_err().0.remove(0);
    let level = |course: &str| fault(&format!("{{ kind = \"level\", course = {course}, give = \"mean\" }}"));
    for (course, message) in [
        (r#"{ show = "fill", of = "call" }"#, "link: missing; name the link"),
        (
            r#"{ show = "fill", of = "call", link = "narrow" }"#,
            "link: `narrow` is not watched; write watch = true",
        ),
        (r#"{ show = "window", of = "call" }"#, "of: `call` is not TCP or QUIC of one connection"),
        (
            r#"{ show = "window", of = "bulk", link = "narrow" }"#,
            "link: only `allocation` and `fill` have a link; leave it out",
        ),
        (
            r#"{ show = "window", of = "balk" }"#,
            "of: there is no flow or group `balk` (did you mean `bulk`?)",
        ),
    ] {
        assert!(level(course).contains(message), "{}", level(course));
    }
    let step = |times: &str| {
        fault(&format!("{{ kind = \"step\", course = {ALLOCATION}, times = {times}, give = \"response\" }}"))
    };
    for (times, message) in [
        (r#"{ before = "4s", at = "10s", until = "21s" }"#, "until: the run ends at 20s"),
        (r#"{ before = "10s", at = "10s", until = "20s" }"#, "before: no sample of 10ms lies between"),
        (
            r#"{ before = "4s", at = "10s", until = "12s", hold = "3s" }"#,
            "hold: must be at least the sample of 10ms",
        ),
        (r#"{ before = "4s", at = "10s", until = "12s", within = 0 }"#, "within: a share between 0 and 1"),
    ] {
        assert!(step(times).contains(message), "{}", step(times));
    }
    let error = fault(&format!("{{ kind = \"level\", course = {ALLOCATION}, give = \"error\" }}"));
    assert!(error.contains("target: `error` needs a target above zero"), "{error}");
    let runs = fault(r#"{ kind = "accumulated_error", of = ["call"], runs = ["main", "hall"] }"#);
    assert!(runs.contains("runs: there is no run `hall` (did you mean `half`?)"), "{runs}");
    let mixed = format!(
        "[[experiment.figure]]\nkind = \"course\"\ntitle = \"x\"\nseries = [{{ label = \"a\", course = {ALLOCATION} }}, \
         {{ label = \"b\", course = {{ show = \"throughput\", of = \"call\" }} }}]\n"
    );
    let mixed = plan(&(metric("m", r#"{ kind = "constant", value = 1 }"#) + &mixed)).unwrap_err().0.remove(0);
    assert!(mixed.contains("series: `b` shows something else; make two figures"), "{mixed}");
}
