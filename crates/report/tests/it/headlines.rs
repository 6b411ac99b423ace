//! Sentences report differences that intervals support, and else that they are not distinguishable.

use apportion_report::{PointResults, summary};

use crate::synthetic::{DRR, Discipline, FIFO, Made, point, run};

const SEEDS: [u64; 4] = [1, 2, 3, 4];

fn flow(got_kbit: u64) -> Made {
    Made {
        name: "one".into(),
        group: "one".into(),
        entitlement_kbit: Some(1_000),
        got_kbit,
        swing: 0.1,
        delay_ms: 5.0,
        short: false,
    }
}

/// A point whose flow had these throughputs in its replications.
fn got(discipline: &Discipline, kbit: &[u64]) -> PointResults {
    let each = kbit.iter().zip(SEEDS).map(|(kbit, seed)| point(discipline, &[flow(*kbit)], &[seed]));
    let all: Vec<PointResults> = each.collect();
    let mut first = all[0].clone();
    first.outcomes = all.into_iter().flat_map(|point| point.outcomes).collect();
    first
}

/// The sentence about all points.
fn lead(points: &[PointResults], seeds: usize) -> String {
    let text = summary(&run("lead", &SEEDS[..seeds], points.to_vec()));
    let line = text.lines().find(|line| line.contains("orst-off flow")).map(str::to_owned);
    line.unwrap_or_else(|| panic!("{text}"))
}

#[test]
fn shares_are_compared_beyond_their_intervals_alone() {
    // Apart by far more than the 3 % by which replications differ.
    let apart = lead(&[got(&DRR, &[1_000; 4]), got(&FIFO, &[400; 4])], 4);
    assert!(
        apart.contains("of its entitlement with queue=drr, but 39 % with queue=fifo (4 seeds)."),
        "{apart}"
    );
    // Equal means, but values between 0.1 and 0.7 in single replications.
    let alike = lead(&[got(&DRR, &[1_000, 300, 1_000, 300]), got(&FIFO, &[100, 700, 100, 700])], 4);
    let told = "The worst-off flow's share of its entitlement is not distinguishable between points: ";
    assert!(alike.starts_with(told) && alike.contains(" ± ") && alike.contains("(4 seeds)."), "{alike}");
    // One replication has no interval, and says so.
    let one = lead(&[got(&DRR, &[1_000]), got(&FIFO, &[400])], 1);
    assert!(one.contains("but 39 % with queue=fifo (one seed)."), "{one}");
}

#[test]
fn completion_times_are_compared_with_enough_transfers_alone() {
    let web = |discipline: &Discipline, delay_ms: f64, count: usize| {
        let made = Made { delay_ms, short: true, ..flow(900) };
        let bulk = Made { name: "bulk".into(), group: "bulk".into(), ..flow(1_000) };
        let mut point = point(discipline, &[made, bulk], &SEEDS[..1]);
        point.outcomes[0].flows[0].completions.truncate(count);
        point
    };
    let of = |count: usize| lead(&[web(&DRR, 5.0, count), web(&FIFO, 50.0, count)], 1);
    let many = of(72);
    assert!(many.contains("95 % of 72 transfers of one complete within "), "{many}");
    assert!(
        many.contains(" s with queue=drr, but within ") && many.contains(" s with queue=fifo (one seed)."),
        "{many}"
    );
    let few = of(13);
    let told =
        "The time within which 95 % of 13 transfers of one complete is not distinguishable between points: ";
    assert!(few.contains(told), "{few}");
}

#[test]
fn the_sentence_about_transfers_is_of_the_group_with_most() {
    let both = |discipline: &Discipline, delay_ms: f64, count: usize| {
        let of =
            |name: &str| Made { name: name.into(), group: name.into(), delay_ms, short: true, ..flow(900) };
        let bulk = Made { name: "zip".into(), group: "zip".into(), ..flow(1_000) };
        let mut point = point(discipline, &[of("a"), of("web"), bulk], &SEEDS[..1]);
        point.outcomes[0].flows[0].completions.truncate(1);
        point.outcomes[0].flows[1].completions.truncate(count);
        point
    };
    let of = |count: usize| lead(&[both(&DRR, 5.0, count), both(&FIFO, 50.0, count)], 1);
    assert!(of(72).contains("95 % of 72 transfers of web complete within "), "{}", of(72));
    assert!(of(0).contains("The time within which 95 % of 1 transfer of a complete"), "{}", of(0));
}

#[test]
fn groups_are_compared_beyond_their_intervals_alone() {
    let two = |first: [u64; 4], second: [u64; 4]| {
        let flows = |at: usize| {
            let other = Made { name: "two".into(), group: "two".into(), ..flow(second[at]) };
            [flow(first[at]), other]
        };
        let all: Vec<PointResults> = (0..4).map(|at| point(&DRR, &flows(at), &[SEEDS[at]])).collect();
        let mut point = all[0].clone();
        point.outcomes = all.into_iter().flat_map(|point| point.outcomes).collect();
        summary(&run("groups", &SEEDS, vec![point]))
    };
    let apart = two([1_500; 4], [500; 4]);
    assert!(apart.contains("one got ") && apart.contains(", only "), "{apart}");
    let alike = two([2_500, 300, 2_500, 300], [100, 1_200, 100, 1_200]);
    assert!(alike.contains("The groups' shares of their entitlement are not distinguishable: "), "{alike}");
}
