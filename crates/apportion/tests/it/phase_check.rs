//! Perturbed copies of replications: the dependence of results on phases.

use apportion::rows::{FlowRow, LinkRow, PhaseSensitivityRow, SeriesRow};
use apportion::{Cancel, Results, Run, Scenario};

/// Two greedy flows at a FIFO, started at the same time. Without jitter nothing is random.
fn scenario(jitter: &str) -> Scenario {
    let text = r#"
        seed = 11
        stop = "20s"
        measure_from = "5s"
        topology = { kind = "dumbbell", pairs = 2, bottleneck = { rate = "3Mbit", delay = "12ms", queue = { kind = "fifo", limit = "13p" } }, access = { delay = "4ms" } }
        flow.x = { from = "l1", to = "r1", tcp = "rfc", jitter = "JITTER" }
        flow.y = { from = "l2", to = "r2", tcp = "rfc", jitter = "JITTER" }
    "#;
    Scenario::from_text(text.replace("JITTER", jitter)).unwrap()
}

fn tables(results: &Results) -> (Vec<FlowRow>, Vec<LinkRow>, Vec<SeriesRow>) {
    (results.flows().collect(), results.links().collect(), results.series().collect())
}

#[test]
fn locked_phases_are_found() {
    let results = Run::new(&scenario("0s")).seeds(10).simulate().unwrap();
    let rows: Vec<PhaseSensitivityRow> = results.phase_sensitivity().collect();
    assert_eq!(rows.len(), 4);
    // All seeds are alike, so a shift is certain.
    for row in rows.iter().filter(|row| !row.flow.is_empty()) {
        assert!(row.half_width == Some(0.0) && row.p == Some(0.0) && row.significant, "{row:?}");
        assert!(row.largest_shift.abs() > 0.05 * row.mean, "{row:?}");
    }
    assert!(results.summary().contains("Depends on phases: "), "{}", results.summary());
    assert!(results.report().contains("These numbers depend on phases."));
}

#[test]
fn what_chance_moves_as_far_is_not_called_a_dependence() {
    // The transmission time of a packet.
    let results = Run::new(&scenario("4ms")).seeds(8).simulate().unwrap();
    let rows: Vec<PhaseSensitivityRow> = results.phase_sensitivity().collect();
    assert!(rows.iter().all(|row| row.seeds == 8 && !row.significant), "{rows:?}");
    assert!(
        results
            .summary()
            .contains("4 differences looked at with delays moved by 1 µs, none beyond chance (8 seeds)"),
        "{}",
        results.summary()
    );
}

#[test]
fn twins_change_no_other_number_and_are_left_out_with_one_seed() {
    let scenario = scenario("1ms");
    let with = Run::new(&scenario).seeds(2).simulate().unwrap();
    let without = Run::new(&scenario).seeds(2).phase_check(false).simulate().unwrap();
    assert_eq!(tables(&with), tables(&without));
    assert_eq!(with.metrics(), without.metrics());
    assert_eq!((with.phase_sensitivity().count(), without.phase_sensitivity().count()), (4, 0));
    assert_eq!(Run::new(&scenario).simulate().unwrap().phase_sensitivity().count(), 0);
    // A single pair shows a shift and cannot judge it.
    let one = Run::new(&scenario).phase_check(true).simulate().unwrap();
    assert!(one.phase_sensitivity().all(|row| row.seeds == 1 && row.p.is_none() && !row.significant));
    let work = |run: Run<'_>| run.estimate().hops;
    assert_eq!(
        work(Run::new(&scenario).seeds(2)),
        2.0 * work(Run::new(&scenario).seeds(2).phase_check(false))
    );
}

#[test]
fn a_run_that_is_too_large_is_advised_to_leave_out_twins_only_if_it_has_them() {
    let text = r#"
        seed = 1
        stop = "300000s"
        link.x = { from = "a", to = "b", rate = "40Gbit", delay = "3ms" }
        flow.tcp = { from = "a", to = "b" }
    "#;
    let scenario = Scenario::from_text(text).unwrap();
    let refusal = |run: Run<'_>| run.simulate().unwrap_err().to_string();
    let copies = "reduce the rates, the time, the flows, the links with `watch`, the points or the seeds, leave out perturbed copies with --no-phase-check, or run it";
    assert!(refusal(Run::new(&scenario).seeds(3)).contains(copies));
    for without in [Run::new(&scenario), Run::new(&scenario).seeds(3).phase_check(false)] {
        let error = refusal(without);
        assert!(error.contains("the points or the seeds, or run it all the same with --force"), "{error}");
    }
}

#[test]
fn a_cancelled_run_compares_the_pairs_that_it_has() {
    let (scenario, cancel) = (scenario("1ms"), Cancel::new());
    let run = Run::new(&scenario).seeds(3).jobs(1).cancel(&cancel);
    // After the second replication, before its perturbed copy.
    let results = run
        .progress(|it| {
            if it.done == 3 {
                cancel.cancel();
            }
        })
        .simulate()
        .unwrap();
    assert!(!results.is_complete());
    assert_eq!(results.flows().count(), 2 * 2);
    assert!(
        results.phase_sensitivity().count() == 4 && results.phase_sensitivity().all(|row| row.seeds == 1)
    );
}
