//! Users who load web pages.

use apportion_core::units::Span;
use apportion_runtime::outcome::{Completion, FlowOutcome, Outcome};
use apportion_testing::net::net;

use crate::common::{flow, run, sweep};

const CONSTANT: &str = "main_size = { kind = \"constant\", size = \"1000B\" }, object_size = { kind = \"constant\", size = \"1000B\" }";

/// A network of 10 Mb/s in both directions and 10 ms each way; `more` adds flows and other text.
fn scenario(source: &str, more: &str) -> String {
    net(&format!(
        "
            seed = 3, stop = 60s
            link wire: server -> home, rate = 10Mbit, delay = 10ms, watch = true
            flow web: server -> home, jitter = 0s,
                tcp = {{ profile = ns2-235, syn = true, initial_window = 2p, segment = 1000B, header = 40B }},
                source = {{ kind = web, {source} }}
            {more}
        "
    ))
}

fn pages(outcome: &Outcome) -> &[Completion] {
    &flow(outcome, "web").completions
}

fn goodput(web: &FlowOutcome) -> u64 {
    web.goodput.unwrap().get()
}

#[test]
fn a_page_takes_as_long_as_computed_by_hand() {
    let source = format!("objects = 2, parallel = 2, request = \"250B\", think = \"5s\", {CONSTANT}");
    let outcome = run(&scenario(&source, ""));
    let all = pages(&outcome);
    // A request of 250 B takes 200 us, SYN, SYN-ACK and ACKs 32 us each, a segment of 1040 B 832 us, plus 10
    // ms each: the first main object needs 10.2 + 2 x 10.032 + 10.832 = 41.096 ms. Then its ACK is sent,
    // followed by requests for the two others. The first is answered after 10.232 ms over the open
    // connection; the SYN of the second one waits behind its segment, until 11.064 ms: 10.032 ms for it, and
    // 10.032 and 10.832 ms as before, are 41.96 ms.
    assert_eq!(all[0].took.as_nanos(), 41_096_000 + 41_960_000);
    // Later all connections are open: 21.032 ms, then 10.232 ms as above, and two segments in sequence.
    for page in &all[1..] {
        assert_eq!(page.took.as_nanos(), 21_032_000 + 10_232_000 + 2 * 832_000 + 10_000_000);
        assert_eq!(page.size.get(), 3_000);
    }
    assert!((5..25).contains(&all.len()), "{}", all.len());
    assert!(all.is_sorted_by_key(|page| page.start));
    assert_eq!(goodput(flow(&outcome, "web")), 3_000 * all.len() as u64);
}

#[test]
fn requests_wait_behind_what_goes_up_and_are_lost_with_it() {
    let source = format!("objects = 3, think = \"1s\", {CONSTANT}");
    let upload = |rate: &str| {
        format!(
            "[flow.up]\nfrom = \"home\"\nto = \"server\"\nsource = {{ kind = \"poisson\", rate = \"{rate}\", packet = \"1000B\" }}"
        )
    };
    let median = |outcome: &Outcome| {
        let mut took: Vec<Span> = pages(outcome).iter().map(|page| page.took).collect();
        took.sort_unstable();
        took[took.len() / 2]
    };
    let with_upload = |rate: &str| {
        let deep = "watch = true\nback = { queue = { kind = \"fifo\", limit = \"1000p\" } }";
        run(&scenario(&source, &upload(rate)).replace("watch = true", deep))
    };
    let alone = with_upload("1Mbit");
    // 1000 packets of 0.8 ms wait, twice for each page, and one of eleven arriving packets is dropped:
    // randomly, so that a request does not always come at the same moment.
    let behind = with_upload("11Mbit");
    assert!(median(&alone) < Span::from_millis(60), "{}", median(&alone));
    assert!(median(&behind) > Span::from_millis(1_600), "{}", median(&behind));
    assert!(pages(&behind).len() > 5);
}

#[test]
fn a_request_that_the_wire_loses_is_repeated() {
    let source = format!("objects = 1, think = \"500ms\", {CONSTANT}");
    let base = run(&scenario(&source, ""));
    let lossy = run(&scenario(&source, "").replace("watch = true", "watch = true\nback = { loss = 0.2 }"));
    let slow =
        |outcome: &Outcome| pages(outcome).iter().filter(|page| page.took > Span::from_secs(1)).count();
    assert_eq!(slow(&base), 0);
    let (slow, all) = (slow(&lossy), pages(&lossy).len());
    assert!(all > 20, "{all}");
    // Each page has two requests: 1 - 0.8² of the pages send a request twice; σ is the root of n · 0.36 ·
    // 0.64.
    let n = all as f64;
    assert!((slow as f64 - 0.36 * n).abs() < 4.0 * (0.2304 * n).sqrt(), "{slow} of {all}");
}

#[test]
fn users_who_come_and_go_leave_nothing_behind() {
    // 50 concurrent users on average, each of whom loads about a page per second.
    let source = format!(
        "objects = 4, parallel = 2, think = \"1s\", users_per_second = 10, life = \"5s\", {CONSTANT}"
    );
    let outcome = run(&scenario(&source, ""));
    let web = flow(&outcome, "web");
    let all = pages(&outcome);
    // 600 users who each load a page when they arrive, and 5 s / 1.08 s more: 600 x 5.6, σ about 5.6 x 35.
    assert!((all.len() as f64 - 3_380.0).abs() < 800.0, "{}", all.len());
    assert!(all.iter().all(|page| page.size.get() == 5_000));
    // The data belong to pages, except at most one page each of users who left while they loaded.
    let extra = goodput(web) - 5_000 * all.len() as u64;
    assert!(extra < 650 * 5_000, "{extra}");
    // No user is affected by the traffic of an earlier one.
    assert!(
        all.iter().all(|page| page.took < Span::from_millis(250)),
        "{:?}",
        all.iter().max_by_key(|page| page.took)
    );
    assert_eq!((web.retransmits, web.timeouts), (Some(0), Some(0)));
}

#[test]
fn users_who_leave_are_forgotten_with_what_is_on_its_way() {
    // Pages of 100 kB over 1 Mb/s take 0.8 s alone, and most users leave before.
    let source = "objects = 9, parallel = 3, think = \"1s\", users_per_second = 4, life = \"400ms\", \
                  main_size = { kind = \"constant\", size = \"10kB\" }, object_size = { kind = \"constant\", size = \"10kB\" }";
    let text = scenario(source, "").replace("10Mbit", "1Mbit");
    for tcp in ["\"linux\"", "\"rfc\"", "{ profile = \"ns2-235\", syn = false }"] {
        let begin = text.find("tcp = {").unwrap();
        let end = begin + text[begin..].find('\n').unwrap();
        let outcome = run(&format!("{}tcp = {tcp}{}", &text[..begin], &text[end..]));
        let web = flow(&outcome, "web");
        // Counted bytes were sent by this user and not by the previous one: no more arrives in order than the
        // link carries.
        assert!(goodput(web) <= web.delivered.bytes.get(), "{tcp}");
        assert!(goodput(web) > 2_000_000, "{tcp}: {}", goodput(web));
        assert!(pages(&outcome).iter().all(|page| page.took >= Span::from_millis(600)), "{tcp}");
    }
}

#[test]
fn the_same_seed_has_the_same_pages() {
    let text = scenario("users_per_second = 2, life = \"10s\", think = \"1s\"", "");
    let (one, other) = (run(&text), run(&text));
    assert!(pages(&one).len() > 200);
    assert_eq!(pages(&one), pages(&other));
    let fast = run(&text.replace("10Mbit", "100Mbit"));
    let first = |outcome: &Outcome| pages(outcome)[0].size;
    assert_eq!(first(&one), first(&fast));
}

#[test]
fn no_end_of_an_object_waits_for_acknowledgements() {
    // Segments of 1448 B: one and a part for each object, from the second page on over open connections. 10
    // ms each way; 1.2 ms for the data and 0.3 ms for the request.
    let sizes = "main_size = { kind = \"constant\", size = \"2kB\" }, object_size = { kind = \"constant\", size = \"2kB\" }";
    let text = scenario(&format!("objects = 1, think = \"200ms\", {sizes}"), "");
    let begin = text.find("tcp = {").unwrap();
    let end = begin + text[begin..].find('\n').unwrap();
    let outcome = run(&format!("{}{}", &text[..begin], &text[end..]));
    let slowest = pages(&outcome)[1..].iter().map(|page| page.took).max().unwrap();
    assert!(pages(&outcome).len() > 150);
    assert!(slowest < Span::from_millis(45), "{slowest}");
}

#[test]
fn a_probe_measures_round_trips_under_load() {
    let probe = "[flow.probe]\nfrom = \"server\"\nto = \"home\"\njitter = \"0s\"\nsource = \"probe\"\n";
    let of = |queue: &str, load: &str| {
        let text = format!(
            "seed = 1\nstop = \"30s\"\nmeasure_from = \"5s\"\n[link.wire]\nfrom = \"server\"\nto = \"home\"\nrate = \"10Mbit\"\n\
             delay = \"10ms\"\nwatch = true\nqueue = \"{queue}\"\n{probe}{load}"
        );
        let outcome = run(&text);
        let probe = flow(&outcome, "probe");
        assert!(probe.is_probe && probe.completions.len() > 80, "{}", probe.completions.len());
        let took = probe.completions.iter().map(|done| done.took.as_secs_f64());
        took.sum::<f64>() / probe.completions.len() as f64
    };
    // 100 B and 53 B, including headers: 20 ms, 80 and 42.4 us. A delayed ACK of 52 B may be ahead.
    let alone = of("fifo", "");
    assert!((0.020_122..0.020_165).contains(&alone), "{alone}");
    let bulk = "[flow.bulk]\nfrom = \"server\"\nto = \"home\"\n";
    // A buffer of 100 ms that CUBIC keeps more than half full.
    let fifo = of("fifo", bulk);
    assert!((0.07..0.125).contains(&fifo), "{fifo}");
    let fair = of("fq_codel", bulk);
    assert!(fair < 0.024, "{fair}");
}

/// The claim of the example: in a FIFO pages take several times as long, with a queue per flow hardly longer
/// than alone.
#[test]
fn an_upload_delays_pages_behind_a_fifo_not_behind_flow_queues() {
    let text = include_str!("../../../../scenarios/web.toml");
    let mean = |outcome: &Outcome| {
        let webs = outcome.flows.iter().filter(|flow| flow.group == "web");
        let took: Vec<f64> =
            webs.flat_map(|flow| &flow.completions).map(|page| page.took.as_secs_f64()).collect();
        assert!(took.len() > 12, "{}", took.len());
        took.iter().sum::<f64>() / took.len() as f64
    };
    let alone = sweep(&text.replace("start = \"5s\"", "start = \"119s\""));
    let alone = mean(&alone[0]);
    let [fifo, drr, fq_codel] = sweep(text).iter().map(mean).collect::<Vec<_>>()[..] else {
        panic!("three points")
    };
    assert!(fifo > 3.0 * alone, "{fifo} {alone}");
    assert!(drr < 1.2 * alone && fq_codel < 1.2 * alone, "{drr} {fq_codel} {alone}");
}
