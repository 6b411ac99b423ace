//! Probabilistic packet scheduling on whole networks: the ways in which an implementation can look right and
//! be wrong. The scenarios are those of its paper, in `papers/pps`.

use std::path::Path;

use apportion_runtime::outcome::Outcome;
use apportion_scenario::model::Scenario;

use crate::common::{link, run_with, throughput};

const FIG1: &str = include_str!("../../../../papers/pps/fig1.toml");
const MULTIHOP: &str = include_str!("../../../../papers/pps/multihop.toml");
const ONEHOP: &str = include_str!("../../../../papers/pps/onehop.toml");
const TABLE1_RECEIVER: &str = include_str!("../../../../papers/pps/table1-receiver.toml");

/// Replications per case: few, because the effects are large.
const SEEDS: u64 = 3;

fn scenario(text: &str, set: &[(&str, &str)]) -> Scenario {
    let set: Vec<_> = set.iter().map(|(path, value)| ((*path).to_owned(), (*value).to_owned())).collect();
    let suite = apportion_scenario::load(text, Path::new("pps.toml"), &set, &|path| std::fs::read(path));
    suite.unwrap_or_else(|problems| panic!("{problems:?}")).points.remove(0).scenario
}

fn outcomes(text: &str, set: &[(&str, &str)]) -> Vec<Outcome> {
    let scenario = scenario(text, set);
    (1..=SEEDS).map(|seed| run_with(&scenario, seed)).collect()
}

/// The mean of `of` over replications.
fn mean(outcomes: &[Outcome], of: impl Fn(&Outcome) -> f64) -> f64 {
    outcomes.iter().map(of).sum::<f64>() / outcomes.len() as f64
}

fn mbps(outcomes: &[Outcome], flow: &str) -> f64 {
    mean(outcomes, |outcome| throughput(outcome, flow) / 1e6)
}

fn statistic(outcomes: &[Outcome], of: &str, name: &str) -> f64 {
    mean(outcomes, |outcome| {
        let statistics = &link(outcome, of).statistics;
        statistics.iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("no {name}")).1
    })
}

/// The largest difference between two lists, as a share of the second.
fn worst(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a / b - 1.0).abs()).fold(0.0, f64::max)
}

/// Throughput over tickets, by least squares through the origin.
fn slope(outcomes: &[Outcome]) -> f64 {
    let of = |i: i32| (f64::from(100 * i), mbps(outcomes, &format!("tcp.{i}")));
    let (xy, xx) = (1..=30).map(of).fold((0.0, 0.0), |(xy, xx), (x, y)| (xy + x * y, xx + x * x));
    xy / xx
}

#[test]
fn shares_are_those_of_the_currencies_and_not_of_red() {
    let abc = |set: &[(&str, &str)]| {
        let outcomes = outcomes(FIG1, set);
        ["A", "B", "C"].map(|flow| mbps(&outcomes, flow))
    };
    assert!(worst(&abc(&[]), &[0.5, 0.25, 0.25]) < 0.1, "{:?}", abc(&[]));
    let red = abc(&[("defaults.link.queue.factor", "false")]);
    assert!(worst(&red, &[0.5, 0.25, 0.25]) > 0.2, "{red:?}: the same without tickets");
}

#[test]
fn the_scale_of_a_currency_inside_does_not_show_outside() {
    // S3 issues ten times as many of its tickets; the tickets that S5 issues to (S3, S5) stay. With wide
    // tags, because ten times as many tickets also round more finely.
    let wide = ("defaults.flow.mark", r#"{ kind = "tickets", bits = 17 }"#);
    let exchange = ("defaults.link.exchange.bits", "17");
    let abc = |a: &str, b: &str| {
        let outcomes = outcomes(FIG1, &[("flow.A.tickets", a), ("flow.B.tickets", b), wide, exchange]);
        ["A", "B", "C"].map(|flow| mbps(&outcomes, flow))
    };
    let (once, tenfold) = (abc("1000", "500"), abc("10000", "5000"));
    assert!(worst(&once, &tenfold) < 0.05, "{once:?} {tenfold:?}");
}

#[test]
fn what_a_queue_drops_does_not_move_the_rate_of_exchange() {
    // Datagrams at 0.25 Mb/s each from A and B overload (S3, S5) at 0.4 Mb/s by a quarter: 0.8 of the
    // arriving traffic leaves. Tickets of dropped packets count as arrived, so without policing 0.8 × 900 t/s
    // leave. Policing multiplies by T/x, which balances where x = 0.8 T · T/x: x = T √0.8 = 0.894 T. An
    // exchange rate that counted only departing tickets would give 900 in both cases.
    let tcp = FIG1.lines().find(|line| line.starts_with("tcp")).unwrap();
    let datagrams = FIG1.replace(tcp, r#"source = { kind = "cbr", rate = "0.25Mbit", packet = "500B" }"#);
    let fifo = r#"{ kind = "fifo", limit = "20p" }"#;
    for (bound, share) in [("1", 0.8), ("2", 0.8_f64.sqrt())] {
        // From 100 s to 200 s: the first packets get many tickets, since rates are not known yet.
        let until = |stop| {
            let set = [
                ("link.S3-S5.rate", "0.4Mbit"),
                ("link.S3-S5.queue", fifo),
                ("link.S3-S5.exchange.policing_bound", bound),
                ("stop", stop),
            ];
            statistic(&outcomes(&datagrams, &set), "S3-S5", "tickets_out")
        };
        let rate = (until("200s") - until("100s")) / 100.0;
        assert!((rate / 900.0 / share - 1.0).abs() < 0.02, "{rate} t/s with a bound of {bound}");
    }
}

#[test]
fn acknowledgements_that_cross_a_ticket_link_do_not_disturb_it() {
    // Thirty flows in the other direction fill the reverse direction with their data and this one with their
    // ACKs.
    let reverse = format!(
        "{ONEHOP}\n[flow.reverse]\ncount = 30\nfrom = \"r{{i}}\"\nto = \"l{{i}}\"\n\
         tcp = {{ profile = \"ns2-2000\", segment = \"500B\", window = \"20p\" }}\n\
         start = {{ between = [\"0s\", \"1s\"] }}\n"
    );
    // A short queue in the other direction: with a long one the largest flows would be limited by their
    // windows.
    let short =
        [("topology.bottleneck.back", r#"{ queue = { kind = "red", limit = "110p", max_th = "55p" } }"#)];
    let alone = slope(&outcomes(ONEHOP, &short));
    let crossed = outcomes(&reverse, &short);
    // ACKs of 40 B take part of the link: shares are of the rest, for data.
    let data: f64 = (1..=30).map(|i| mbps(&crossed, &format!("tcp.{i}"))).sum();
    let slope = slope(&crossed) * 4.65 / data;
    assert!((slope / alone - 1.0).abs() < 0.03, "{slope} against {alone}");
    // Without tickets both slopes would be equal too, for equal flows.
    let [first, last] = ["tcp.1", "tcp.30"].map(|flow| mbps(&crossed, flow));
    assert!((15.0..45.0).contains(&(last / first)), "{first} {last}");
    // An ACK carries no tickets: TRED counts only the packets of the flows with tickets.
    let crossed = statistic(&crossed, "bottleneck", "tickets_per_packet");
    let alone = statistic(&outcomes(ONEHOP, &short), "bottleneck", "tickets_per_packet");
    assert!((0.9..1.3).contains(&(crossed / alone)), "{crossed} {alone}");
}

#[test]
fn delayed_acknowledgements_do_not_change_what_receivers_are_due() {
    let delayed = r#"{ profile = "ns2-2000", segment = "500B", window = "20p", delayed_ack = "2 100ms" }"#;
    let flows = ["A", "B", "C", "D"];
    let each = outcomes(TABLE1_RECEIVER, &[]);
    let second = outcomes(TABLE1_RECEIVER, &[("defaults.flow.tcp", delayed)]);
    let shares = |outcomes: &[Outcome]| flows.map(|flow| mbps(outcomes, flow));
    assert!(worst(&shares(&second), &shares(&each)) < 0.15, "{:?} {:?}", shares(&second), shares(&each));
}

#[test]
fn the_filter_turns_away_rich_flows_only() {
    // Fig. 1 with B at 0.16 Mb/s: it carries 1.56 times the tickets of the others, below K = 2, and is 16 %
    // of the packets. The filter ignores packets of any flow with a tag far above the mean. Fig. 7: limited
    // flows carry six times and more, and are 18 % of the packets. K = 1.5 and K = 0 show the effect of the
    // filter.
    let cbr = ("flow.B.source", r#"{ kind = "cbr", rate = "0.16Mbit", packet = "500B" }"#);
    let limited = r#"{ kind = "cbr", rate = "0.03Mbit", packet = "500B" }"#;
    let unused = [("flow.A6-10.source", limited), ("flow.B6-10.source", limited)];
    let below = |k| statistic(&outcomes(FIG1, &[cbr, ("defaults.link.queue.k", k)]), "S5-S6", "filtered");
    let above = |k| {
        let set = [unused[0], unused[1], ("defaults.link.queue.k", k)];
        statistic(&outcomes(MULTIHOP, &set), "P3-P4", "filtered")
    };
    assert!(below("2") < 0.16 && below("1.5") > below("2") + 0.1, "{} {}", below("2"), below("1.5"));
    assert!((0.18..0.5).contains(&above("2")), "{}", above("2"));
    assert_eq!((below("0"), above("0")), (0.0, 0.0));
}

#[test]
fn a_stream_of_single_tickets_poisons_what_is_expected_unless_it_is_protected() {
    // Two packets a second with one ticket each keep the minimum at 1. Then the filter excludes all other
    // packets, nothing is dropped early, and the queue stays at its upper threshold; throughput alone looks
    // right.
    let stray = format!(
        "{ONEHOP}\n[flow.stray]\nfrom = \"l1\"\nto = \"r1\"\ntickets = 0\n\
         source = {{ kind = \"cbr\", rate = \"8kbit\", packet = \"500B\" }}\n"
    );
    let state = |text: &str, rank: &str| {
        let outcomes = outcomes(text, &[("topology.bottleneck.queue.min_tkt_rank", rank)]);
        let queue = mean(&outcomes, |outcome| link(outcome, "bottleneck").queue_mean);
        (statistic(&outcomes, "bottleneck", "filtered"), queue)
    };
    let (filtered, queue) = state(ONEHOP, "1");
    assert!(filtered < 0.4 && queue < 45.0, "{filtered} {queue}");
    let (filtered, queue) = state(&stray, "1");
    assert!(filtered > 0.9 && queue > 45.0, "{filtered} {queue}");
    let (filtered, queue) = state(&stray, "4");
    assert!(filtered < 0.4 && queue < 45.0, "{filtered} {queue}");
}
