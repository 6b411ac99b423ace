//! A page in bounded memory.

use apportion_core::units::{Bytes, Time};
use apportion_runtime::probe::Samples;
use serde_json::Value;

use super::course::Sample;
use super::*;
use crate::Scenario;

fn scenario(flows: usize) -> Scenario {
    let text = format!(
        "seed = 1\nstop = \"60s\"\nlink.x = {{ from = \"a\", to = \"b\", rate = \"2Mbit\", delay = \"5ms\", watch = true }}\n\
         flow.udp = {{ from = \"a\", to = \"b\", count = {flows}, source = {{ kind = \"cbr\", rate = \"1kbit\" }} }}\n"
    );
    Scenario::from_text(&text).unwrap()
}

#[test]
fn of_many_flows_the_largest_are_shown_and_few_are_kept() {
    let scenario = scenario(5_000);
    let point = &scenario.points()[0];
    let mut board = Board::default();
    board.begin("many", 1);
    let number = board.follow(point, 1, None).unwrap();
    let mut delivered = vec![Bytes::ZERO; 5_000];
    for second in 0..60_usize {
        // Sixteen other flows in each interval, the first of which is the largest; all others have a byte.
        for (flow, bytes) in delivered.iter_mut().enumerate() {
            *bytes += Bytes::new(1);
            if flow / 16 == second {
                *bytes += Bytes::new(1_000 - flow as u64 % 16);
            }
        }
        let at = Time::from_secs(second as u64 + 1);
        board.add(number, &point.scenario, Sample { at, delivered: delivered.clone(), links: Vec::new() });
    }
    let link = &board.json("")["course"]["link"];
    let flows = link["flows"].as_array().unwrap();
    assert_eq!((flows.len(), &link["flow_count"]), (16, &5_000.into()));
    let kept = flows.iter().map(|flow| flow["place"].as_u64().unwrap());
    // Of the recently large flows, the largest in total: 24 intervals of them are kept.
    assert!(
        kept.clone().all(|place| place / 16 >= 60 - 24 && place % 16 == 0),
        "{:?}",
        kept.collect::<Vec<_>>()
    );
    let series = flows[0]["series"].as_array().unwrap();
    assert!(series.len() == 60 && series.iter().any(Value::is_null) && series.iter().any(Value::is_number));
}

#[test]
fn the_last_replications_are_kept_and_one_at_a_time_is_followed() {
    let scenario = scenario(1);
    let point = &scenario.points()[0];
    let watch = Watch::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    watch.begin("many", 100);
    let delivered = |_| Bytes::new(7);
    let sample = |at| Samples { at: Time::from_secs(at), flows: &[], links: &[], delivered: &delivered };
    for seed in 1..=40 {
        let (followed, other) = (watch.follower(point, seed), watch.follower(point, 1_000));
        followed.sampled(&sample(1));
        other.sampled(&sample(1));
        followed.sampled(&sample(2));
        // Reading the board delays nothing, and the sample appears with the next one.
        let reading = lock(&watch.board);
        followed.sampled(&sample(3));
        assert_eq!(reading.json("")["course"]["at_seconds"], 2.0);
        drop(reading);
        followed.end(Stand::Ended);
        other.sampled(&sample(2));
        other.end(Stand::Ended);
        assert_eq!(lock(&watch.board).json("")["course"]["at_seconds"], 3.0);
    }
    let all = lock(&watch.board).json("");
    let seeds: Vec<&str> =
        all["courses"].as_array().unwrap().iter().map(|course| course["seed"].as_str().unwrap()).collect();
    assert_eq!(seeds, (25..=40).map(|seed| seed.to_string()).collect::<Vec<_>>());
}
