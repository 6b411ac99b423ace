//! The example of a registered congestion control: within its length limit, lawful, and usable everywhere
//! that others are.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use apportion::{Catalog, Run, ScenarioBuilder, catalogue};
use apportion_core::congestion::{
    ALGORITHMS, Ack, CongestionControl, CongestionEvent, ControlEntry, Feedback, LossRecovery, Marks,
    Response, Sent, Window,
};
use apportion_core::units::Time;

use crate::own_control as example;

#[test]
fn it_is_at_most_60_lines_and_keeps_the_laws() {
    assert!(include_str!("../../examples/own_congestion_control.rs").lines().count() <= 60);
    apportion_laws::check_control(|_| Box::new(example::Scalable));
}

#[test]
fn it_runs_in_a_sweep_with_all_others() {
    example::main().unwrap();
}

#[test]
fn it_is_listed_explained_and_in_the_schema() {
    let catalog = example::catalog().unwrap();
    let listed = catalogue::list(&catalog).into_iter().flat_map(|list| list.entries);
    assert!(listed.into_iter().any(|entry| entry.name == "scalable"));
    assert!(catalogue::explain(&catalog, "scalable").unwrap().contains("quic = \"scalable\""));
    let guess = catalogue::explain(&catalog, "scaleable").unwrap_err().to_string();
    assert!(guess.contains("did you mean `scalable`?"), "{guess}");
    assert!(catalogue::schema(&catalog).to_string().contains("scalable"));
    let taken = example::catalog().unwrap().register_control(&example::ENTRY, |_| example::Scalable);
    assert!(taken.unwrap_err().to_string().contains("has this name"));
}

/// One flow over a link that holds 50 packets.
fn scenario(flow: &str) -> Result<apportion::Scenario, apportion::ScenarioError> {
    let text = format!(
        r#"
        seed = 1
        stop = "20s"
        measure_from = "5s"
        link.x = {{ from = "a", to = "b", rate = "10Mbit", delay = "20ms", queue = {{ kind = "fifo", limit = "50p" }} }}
        flow.x = {{ from = "a", to = "b", {flow} }}
        "#
    );
    ScenarioBuilder::from_text(text).catalog(&example::catalog().unwrap()).load()
}

#[test]
fn all_transports_run_it_and_a_scenario_knows_that_it_is_not_of_this_project() {
    let throughput = |flow: &str| {
        let scenario = scenario(flow).unwrap();
        let own = scenario.has_own_code();
        let results = Run::new(&scenario).simulate().unwrap();
        (own, results.flows().map(|row| row.throughput_mbps).collect::<Vec<_>>())
    };
    // With RACK, with the classical recovery by SACK, and in QUIC.
    for (flow, least) in [
        (r#"tcp = "scalable""#, 9.0),
        // Retransmissions are lost again, which RFC 6675 leaves to the timer.
        (r#"tcp = { profile = "rfc", algorithm = "scalable" }"#, 4.0),
        (r#"quic = "scalable""#, 9.0),
    ] {
        let (own, rates) = throughput(flow);
        assert!(own && rates.len() == 1 && rates[0] > least, "{flow}: {rates:?}");
    }
    assert!(!throughput(r#"tcp = "reno""#).0);
    // It works as described: a smaller decrease fills the link better than halving the window.
    let short = |tcp: &str| throughput(&format!("tcp = {{ algorithm = {tcp:?}, segment = \"1000B\" }}")).1[0];
    assert!(short("scalable") != short("reno"));
}

/// A congestion control that behaves as this project's Reno.
#[derive(Debug)]
struct Halves;

impl CongestionControl for Halves {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        if ack.may_grow {
            window.grow_as_reno(ack.counted, ack.abc_limit);
        }
    }
    fn on_loss(&mut self, _: &mut Window, event: &CongestionEvent) -> Response {
        Response::Reduce(event.basis / 2.0)
    }
}

/// Runs two flows with [`Halves`] under this entry. Returns the throughput of each in Mb/s, and its
/// retransmitted segments.
fn of_halves(entry: &'static ControlEntry, carrier: &str) -> Vec<(f64, Option<u64>)> {
    let mut catalog = Catalog::default();
    catalog.register_control(entry, |_| Halves).unwrap();
    let text = format!(
        r#"
        seed = 1
        stop = "20s"
        link.x = {{ from = "a", to = "b", rate = "10Mbit", delay = "20ms", loss = "0.3%",
            queue = {{ kind = "codel", ecn = true }} }}
        flow.x = {{ from = "a", to = "b", {carrier} }}
        flow.y = {{ from = "a", to = "b", {carrier}, source = {{ kind = "short_flows", per_second = 5, mean_size = "90kB" }} }}
        "#
    );
    let scenario = ScenarioBuilder::from_text(text).catalog(&catalog).load().unwrap();
    let results = Run::new(&scenario).simulate().unwrap();
    results.flows().map(|row| (row.throughput_mbps, row.retransmits)).collect()
}

#[test]
fn what_does_the_same_as_a_control_of_this_project_gives_the_same() {
    static HALVES: ControlEntry =
        ControlEntry { quic: true, ..ControlEntry::new("halves", "Reno.", "RFC 5681") };
    for carrier in [
        r#"tcp = { algorithm = "NAME", ecn = true }"#,
        r#"tcp = { algorithm = "NAME", pacing = true }"#,
        r#"tcp = { profile = "rfc", algorithm = "NAME", ecn = true }"#,
        r#"tcp = { profile = "ns2-2000", algorithm = "NAME" }"#,
        r#"quic = { algorithm = "NAME", ecn = true }"#,
    ] {
        let known = if carrier.starts_with("quic") { "newreno" } else { "sack" };
        let own = of_halves(&HALVES, &carrier.replace("NAME", "halves"));
        assert_eq!(own, of_halves(&HALVES, &carrier.replace("NAME", known)), "{carrier}");
    }
}

#[test]
fn without_rack_losses_are_repaired_as_the_entry_says() {
    const HALVES: ControlEntry = ControlEntry::new("halves", "Reno.", "RFC 5681");
    static TAHOE: ControlEntry = ControlEntry { recovery: LossRecovery::Tahoe, ..HALVES };
    static RENO: ControlEntry = ControlEntry { recovery: LossRecovery::Reno, ..HALVES };
    static NEW_RENO: ControlEntry = ControlEntry { recovery: LossRecovery::NewReno, ..HALVES };
    static SACK: ControlEntry = HALVES;
    for profile in ["rfc", "ns2-2000"] {
        let carrier = |name: &str| format!("tcp = {{ profile = {profile:?}, algorithm = {name:?} }}");
        let sack = of_halves(&SACK, &carrier("halves"));
        for (entry, known) in [(&TAHOE, "tahoe"), (&RENO, "reno"), (&NEW_RENO, "newreno")] {
            let own = of_halves(entry, &carrier("halves"));
            assert_eq!(own, of_halves(entry, &carrier(known)), "{profile}, {known}");
            assert_ne!(own, sack, "{profile}, {known} has SACK");
        }
    }
}

/// Grows as Reno does, without a response to losses and marks.
#[derive(Debug)]
struct Deaf;

impl CongestionControl for Deaf {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        window.grow_as_reno(ack.counted, ack.abc_limit);
    }
    fn on_loss(&mut self, _: &mut Window, _: &CongestionEvent) -> Response {
        Response::Ignore
    }
}

#[test]
fn a_window_stays_where_its_control_ignores_losses_and_marks() {
    static DEAF: ControlEntry = ControlEntry::new("deaf", "Ignores congestion.", "this test");
    let mut catalog = Catalog::default();
    catalog.register_control(&DEAF, |_| Deaf).unwrap();
    let carried = |tcp: &str, link: &str| {
        let text = format!(
            r#"
            seed = 1
            stop = "60s"
            link.x = {{ from = "a", to = "b", rate = "100Mbit", delay = "50ms", {link} }}
            flow.x = {{ from = "a", to = "b", tcp = {tcp} }}
            "#
        );
        let scenario = ScenarioBuilder::from_text(text).catalog(&catalog).load().unwrap();
        let results = Run::new(&scenario).simulate().unwrap();
        results.flows().map(|row| row.throughput_mbps).sum::<f64>()
    };
    let lossy = r#"loss = "0.1%""#;
    // A threshold of the average queue that a few packets exceed occasionally.
    let marking =
        r#"queue = { kind = "red", ecn = true, min_th = "1p", max_th = "1000p", max_p = 0.5, w_q = 1.0 }"#;
    for profile in ["linux", "rfc"] {
        for (link, ecn) in [(lossy, false), (marking, true)] {
            let of = |name: &str| format!("{{ profile = {profile:?}, algorithm = {name:?}, ecn = {ecn} }}");
            let [deaf, reno] = ["deaf", "reno"].map(|name| carried(&of(name), link));
            println!("{profile} {link}: {deaf} against {reno}");
            assert!(deaf > 1.5 * reno, "{profile}, {link}: {deaf} against {reno}");
        }
    }
}

/// The number of calls of each of the four hooks of single segments; then marks, and sums of the values in
/// ACKs.
type Calls = Arc<[AtomicU64; 7]>;

/// Reno that counts calls, and observes segments or not.
#[derive(Debug)]
struct Counting {
    observes: bool,
    calls: Calls,
}

impl Counting {
    fn add(&self, index: usize, more: u64) {
        self.calls[index].fetch_add(more, Ordering::Relaxed);
    }
}

impl CongestionControl for Counting {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        self.add(5, ack.prior_in_flight.into());
        self.add(6, ack.latest.unwrap_or_default());
        Halves.on_ack(window, ack);
    }
    fn on_loss(&mut self, window: &mut Window, event: &CongestionEvent) -> Response {
        Halves.on_loss(window, event)
    }
    fn on_mark(&mut self, window: &mut Window, event: &CongestionEvent) -> Response {
        self.add(4, 1);
        Halves.on_mark(window, event)
    }
    fn on_sent(&mut self, _: &mut Window, _: &Sent) {
        self.add(0, 1);
    }
    fn on_feedback(&mut self, _: &Feedback) {
        self.add(1, 1);
    }
    fn on_segment_lost(&mut self, _: &Window, _: Time, _: u64) {
        self.add(2, 1);
    }
    fn on_app_limited(&mut self, _: u32) {
        self.add(3, 1);
    }
    fn observes_segments(&self) -> bool {
        self.observes
    }
}

#[test]
fn hooks_of_segments_are_called_where_they_are_observed() {
    const COUNTING: ControlEntry = ControlEntry::new("counting", "Counts calls.", "this test");
    static ONE: ControlEntry = ControlEntry { quic: true, ..COUNTING };
    static EACH: ControlEntry = ControlEntry { marks: Marks::Counted, needs_rack: true, ..COUNTING };
    let run = |entry: &'static ControlEntry, flow: &str, observes| {
        let (calls, mut catalog) = (Calls::default(), Catalog::default());
        let told = Arc::clone(&calls);
        catalog.register_control(entry, move |_| Counting { observes, calls: Arc::clone(&told) }).unwrap();
        let text = format!(
            r#"
            seed = 1
            stop = "20s"
            link.x = {{ from = "a", to = "b", rate = "10Mbit", delay = "20ms", loss = "0.3%", queue = "dualpi2" }}
            flow.x = {{ from = "a", to = "b", {flow} }}
            flow.y = {{ from = "a", to = "b", {flow}, source = {{ kind = "short_flows", per_second = 5, mean_size = "90kB" }} }}
            "#
        );
        let scenario = ScenarioBuilder::from_text(text).catalog(&catalog).load().unwrap();
        Run::new(&scenario).simulate().unwrap();
        calls.each_ref().map(|count| count.load(Ordering::Relaxed))
    };
    for (entry, flow, is_told) in [
        (&ONE, r#"tcp = { algorithm = "counting", ecn = true }"#, true),
        (&ONE, r#"tcp = { algorithm = "counting", pacing = true, ecn = true }"#, true),
        (&EACH, r#"tcp = "counting""#, true),
        (&ONE, r#"tcp = { profile = "rfc", algorithm = "counting", ecn = true }"#, false),
        (&ONE, r#"quic = { algorithm = "counting", ecn = true }"#, true),
    ] {
        let [told, untold] = [true, false].map(|observes| run(entry, flow, observes));
        assert!(told[..4].iter().all(|&count| (count > 0) == is_told), "{flow}: {told:?}");
        assert_eq!(untold[..4], [0; 4], "{flow}");
        assert!(told[4] > 0 && told[5] > 0, "{flow}: {told:?}");
        assert_eq!(told[4..], untold[4..], "{flow}");
    }
    for observes in [true, false] {
        let calls = Calls::default();
        apportion_laws::check_control(|_| Box::new(Counting { observes, calls: Arc::clone(&calls) }));
        assert!(calls[..4].iter().all(|count| (count.load(Ordering::Relaxed) > 0) == observes), "{calls:?}");
    }
}

#[test]
fn it_is_in_a_sweep_with_others_and_its_canonical_text_loads_back() {
    let swept = scenario(r#"tcp = ["reno", "cubic", "scalable"]"#).unwrap();
    let labels: Vec<_> = swept.points().iter().map(|point| point.label.as_str()).collect();
    assert_eq!(labels, ["tcp=reno", "tcp=cubic", "tcp=scalable"]);
    let one = scenario(r#"tcp = "scalable""#).unwrap();
    assert!(one.canonical().contains("algorithm = \"scalable\""), "{}", one.canonical());
    let again =
        ScenarioBuilder::from_text(one.canonical()).catalog(&example::catalog().unwrap()).load().unwrap();
    assert_eq!(again.hash(), one.hash());
}

#[test]
fn a_name_that_is_nearly_right_is_guessed() {
    let wrong = scenario(r#"tcp = "scalabel""#).unwrap_err().to_string();
    assert!(wrong.contains("did you mean `scalable`?"), "{wrong}");
    let wrong = scenario(r#"quic = "scalabel""#).unwrap_err().to_string();
    assert!(wrong.contains("did you mean `scalable`?"), "{wrong}");
    let wrong = scenario(r#"tcp = { algorithm = "scalabel" }"#).unwrap_err().to_string();
    let last = ALGORITHMS.last().unwrap().name;
    assert!(wrong.contains(&format!("{last}, scalable")), "{wrong}");
}
