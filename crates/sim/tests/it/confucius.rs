//! Confucius: bursts of web traffic next to a video call.

use apportion_core::units::Span;
use apportion_runtime::outcome::Outcome;

use crate::common::{flow, run};

/// A call, a reader of web pages and bursts of ten transfers.
fn scenario(rate: u32, delay: u32, seed: u32, queue: &str) -> Outcome {
    let bursts: String = (0..6)
        .map(|n| {
            format!(
                "flow burst{n}: server -> home, count = 10, start = {}s,
                    source = {{ kind = file, size = 60kB }}\n",
                20 + 8 * n
            )
        })
        .collect();
    run(&format!(
        "
            seed = {seed}, stop = 70s, measure_from = 12s
            link line: server -> home, rate = {rate}Mbit, delay = {delay}ms, queue = {queue}
            flow call: server -> home, source = {{ kind = call, max = 2500kbit }}
            flow web: server -> home, start = 10s, source = {{ kind = web, objects = 20, think = 3s }}
            {bursts}
        "
    ))
}

/// The part of the call's packets that take longer than 100 ms.
fn stalled(outcome: &Outcome) -> f64 {
    flow(outcome, "call").delay.above(Span::from_millis(100)).unwrap()
}

/// The mean time of pages, and of the transfers of bursts, in s.
fn times(outcome: &Outcome) -> [f64; 2] {
    let mean = |times: Vec<f64>| times.iter().sum::<f64>() / times.len() as f64;
    let took = |is: &dyn Fn(&str) -> bool| {
        let flows = outcome.flows.iter().filter(|flow| is(&flow.name));
        mean(flows.flat_map(|flow| &flow.completions).map(|done| done.took.as_secs_f64()).collect())
    };
    [took(&|name| name == "web"), took(&|name| name.starts_with("burst"))]
}

#[test]
fn a_call_keeps_up_with_bursts_that_stall_it_in_fair_queues() {
    for delay in [10, 40] {
        let seen = |queue| {
            let outcome = scenario(10, delay, 1, queue);
            (stalled(&outcome), times(&outcome))
        };
        let (late, [web, burst]) = seen(r#""confucius""#);
        for fair in [r#""drr""#, r#""fq_codel""#, r#"{ kind = "confucius", lambda = 1 }"#] {
            let (fair_late, [fair_web, fair_burst]) = seen(fair);
            assert!(fair_late > 0.005 && late <= fair_late / 2.0, "{fair}: {late} {fair_late}");
            assert!(
                web <= fair_web * 1.2 && burst <= fair_burst * 1.4,
                "{fair}: {web} {fair_web} {burst} {fair_burst}"
            );
        }
    }
}
