//! Numbers, rules and guarantees.

use std::path::Path;

use super::*;

const OTHER: u32 = 0;

/// Up at 10 Mb/s, four flows, and these rules.
fn config(rules: &str) -> GatewayConfig {
    let text = format!(
        "inside = \"a\"\noutside = \"b\"\nflows = 4\nflow_idle = \"10s\"\nup.rate = \"10Mbit\"\n\
         down.rate = \"10Mbit\"\n{rules}"
    );
    GatewayConfig::load(&text, Path::new("x.toml")).unwrap_or_else(|problems| panic!("{problems:?}"))
}

fn classifier(config: &GatewayConfig) -> Classifier {
    let accounts: Vec<u32> = (0..config.rules.len()).map(|rule| 10 + rule as u32).collect();
    Classifier::new(Direction::Up, config, &accounts)
}

/// A packet of UDP to `port` at `seconds`.
fn find(classifier: &mut Classifier, seconds: u64, port: u16) -> (Found, Vec<(FlowId, FlowSetting)>) {
    let headers = Headers {
        protocol: 17,
        source: "192.0.2.1".parse().unwrap(),
        destination: "192.0.2.2".parse().unwrap(),
        ports: Some((9, port)),
        dscp: 0,
    };
    let mut settings = Settings::new();
    let tuple = FlowTuple::new(&headers).unwrap();
    let found = classifier.find(Time::from_secs(seconds), tuple, &headers, OTHER, &mut settings);
    (found, settings.into_iter().map(|(_, flow, setting)| (flow, setting)).collect())
}

fn weight(weight: f64) -> FlowSetting {
    FlowSetting::Weight(Weight::new(weight).unwrap())
}

#[test]
fn a_rule_decides_once_and_a_flow_that_none_matches_sends_no_update() {
    let config = config("[[rule]]\nname = \"a\"\nto_port = 1\nweight = 3\n");
    let mut classifier = classifier(&config);
    let (found, updates) = find(&mut classifier, 0, 1);
    assert_eq!((found.flow, found.account), (FlowId(FIRST), 10));
    assert_eq!(updates, [(FlowId(FIRST), weight(3.0))]);
    assert_eq!(find(&mut classifier, 1, 1), (found, vec![]));
    let (other, updates) = find(&mut classifier, 1, 2);
    assert_eq!((other.flow, other.account, updates), (FlowId(FIRST + 1), OTHER, vec![]));
}

#[test]
fn a_number_that_is_reused_inherits_nothing() {
    let rules = "[customer.alice]\nweight = 2\n[[rule]]\nname = \"a\"\nto_port = 1\nweight = 3\n\
                 class = \"real_rate\"\nrtt = \"20ms\"\ncustomer = \"alice\"\n";
    let mut classifier = classifier(&config(rules));
    let (first, updates) = find(&mut classifier, 0, 1);
    assert_eq!(updates.len(), 4, "{updates:?}");
    // 10 s later it is forgotten, and flow 2 has its number.
    let (second, updates) = find(&mut classifier, 10, 2);
    assert_eq!(second.flow, first.flow);
    let expected = [
        weight(1.0),
        FlowSetting::Class(FlowClass::Greedy),
        FlowSetting::Rtt(Span::ZERO),
        FlowSetting::Customer(CustomerId::OTHERS),
    ];
    assert_eq!(updates, expected.map(|setting| (first.flow, setting)));
}

#[test]
fn all_that_match_are_one_flow_where_that_is_asked_for() {
    let rules = "[[rule]]\nname = \"a\"\nto_port = \"1-5\"\nweight = 3\nflows = \"one\"\n";
    let mut classifier = classifier(&config(rules));
    // The rule's weight was there when the discipline was built.
    assert_eq!(find(&mut classifier, 0, 1), (Found { flow: FlowId(1), account: 10 }, vec![]));
    assert_eq!(find(&mut classifier, 0, 2).0.flow, FlowId(1));
    assert_eq!(find(&mut classifier, 0, 6).0.flow, FlowId(FIRST + 2));
    assert_eq!(classifier.known(), 3);
}

#[test]
fn a_guarantee_that_does_not_fit_is_refused_until_a_silent_flow_gives_up_its_own() {
    // Two of 4 Mb/s fit into 10, a third does not.
    let rules = "[[rule]]\nname = \"a\"\nto_port = \"1-5\"\nguarantee = \"4Mbit\"\n";
    let mut classifier = classifier(&config(rules));
    let guarantee = FlowSetting::Guarantee(Rate::from_mbit(4), Span::ZERO);
    for port in [1, 2] {
        assert_eq!(find(&mut classifier, 0, port).1, [(FlowId(FIRST + u32::from(port) - 1), guarantee)]);
    }
    assert_eq!(find(&mut classifier, 5, 3).1, []);
    assert_eq!((classifier.reserved(), classifier.refused()), (Rate::from_mbit(8), 1));
    // At 11 s the first two are silent for too long; the third one has asked already, a fourth one asks now.
    let mut settings = Settings::new();
    classifier.release(Time::from_secs(11), &mut settings);
    assert_eq!((settings.len(), classifier.reserved()), (2, Rate::ZERO));
    let (again, updates) = find(&mut classifier, 11, 1);
    assert_eq!(updates, [(again.flow, guarantee)]);
    assert_eq!(classifier.reserved(), Rate::from_mbit(4));
}

#[test]
fn other_rules_decide_anew_on_flows_that_are_there() {
    let rule = |weight| format!("[[rule]]\nname = \"a\"\nto_port = 1\nweight = {weight}\n");
    let mut classifier = classifier(&config(&rule("3")));
    let (found, _) = find(&mut classifier, 0, 1);
    find(&mut classifier, 0, 2);
    let mut settings = Settings::new();
    classifier.set_rules(Time::from_secs(1), &config(&rule("5")), &[10], OTHER, &mut settings);
    // Also the number of the rule, for a discipline that knew its weight from the start.
    assert_eq!(
        settings.into_iter().map(|(_, flow, setting)| (flow, setting)).collect::<Vec<_>>(),
        [(FlowId(1), weight(1.0)), (found.flow, weight(5.0))]
    );
    assert_eq!(find(&mut classifier, 1, 1).1, []);
}

#[test]
fn a_rate_that_falls_takes_back_the_latest_guarantees() {
    // Three of 3 Mb/s fit into 10; into 7 only the first two.
    let rules = "[[rule]]\nname = \"a\"\nto_port = \"1-5\"\nguarantee = \"3Mbit\"\n";
    let mut classifier = classifier(&config(rules));
    let flows = [1, 2, 3].map(|port| find(&mut classifier, 0, port).0.flow);
    let mut settings = Settings::new();
    classifier.set_limits(Rate::from_mbit(7), Span::from_secs(10), &mut settings);
    let none = FlowSetting::Guarantee(Rate::ZERO, Span::ZERO);
    assert_eq!(settings, [(0, flows[2], none)]);
    assert_eq!((classifier.reserved(), classifier.withdrawn()), (Rate::from_mbit(6), 1));
    // Nothing more is given against the old rate.
    assert_eq!(find(&mut classifier, 0, 4).1, []);
    assert_eq!(classifier.refused(), 1);
    settings.clear();
    classifier.set_limits(Rate::from_mbit(2), Span::from_secs(10), &mut settings);
    assert_eq!(settings, [(0, flows[1], none), (0, flows[0], none)]);
    assert_eq!((classifier.reserved(), classifier.withdrawn()), (Rate::ZERO, 3));
}

#[test]
fn flows_that_are_one_give_up_their_guarantee_when_all_of_them_are_silent() {
    let rules = "[[rule]]\nname = \"a\"\nto_port = \"1-2\"\nguarantee = \"4Mbit\"\nflows = \"one\"\n";
    let mut classifier = classifier(&config(rules));
    let [some, none] =
        [4, 0].map(|mbit| (FlowId(1), FlowSetting::Guarantee(Rate::from_mbit(mbit), Span::ZERO)));
    assert_eq!(find(&mut classifier, 0, 1).1, [some]);
    assert_eq!(find(&mut classifier, 5, 2).1, []);
    // Seen at 5 s, they are silent for too long at 15 s.
    let mut settings = Settings::new();
    classifier.release(Time::from_secs(14), &mut settings);
    assert_eq!((settings.len(), classifier.reserved()), (0, Rate::from_mbit(4)));
    classifier.release(Time::from_secs(15), &mut settings);
    assert_eq!((settings.pop_front().unwrap(), classifier.reserved()), ((0, none.0, none.1), Rate::ZERO));
    // Whichever comes back gets it for all.
    assert_eq!(find(&mut classifier, 16, 2).1, [some]);
    assert_eq!(find(&mut classifier, 17, 1).1, []);
    assert_eq!(classifier.reserved(), Rate::from_mbit(4));
}
