//! Numbers, rules and guarantees.

use std::path::Path;

use super::*;

const OTHER: u32 = Accounts::unmatched(Direction::Up);

/// A direction up of 10 Mb/s with room for four flows, and these rules.
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

/// Classifies a UDP packet to `port` at `seconds`.
fn find(classifier: &mut Classifier, seconds: u64, port: u16) -> (Found, Vec<(FlowId, FlowSetting)>) {
    find_at(classifier, Time::from_secs(seconds), port)
}

fn find_at(classifier: &mut Classifier, now: Time, port: u16) -> (Found, Vec<(FlowId, FlowSetting)>) {
    let headers = Headers {
        protocol: 17,
        source: "192.0.2.1".parse().unwrap(),
        destination: "192.0.2.2".parse().unwrap(),
        ports: Some((9, port)),
        dscp: 0,
    };
    let mut settings = Settings::new();
    let tuple = FlowTuple::new(&headers).unwrap();
    let found = classifier.find(now, (tuple, true), &headers, &mut Accounts::default(), &mut settings);
    // Every 100 ms these are 4 Mb/s.
    classifier.arrived(now, found.flow, Bytes::new(50_000), &mut settings);
    (found, settings.into_iter().map(|(_, flow, setting)| (flow, setting)).collect())
}

/// Sends a flow to `port` every 100 ms in this second and at its end. Returns the updates.
fn second(classifier: &mut Classifier, seconds: u64, port: u16) -> Vec<(FlowId, FlowSetting)> {
    let times = (0..=10).map(|tenth| Time::from_millis(1_000 * seconds + 100 * tenth));
    times.flat_map(|now| find_at(classifier, now, port).1).collect()
}

fn guarantee(rate: Rate) -> FlowSetting {
    FlowSetting::Guarantee(rate, Span::ZERO)
}

fn reserved(classifier: &Classifier) -> Rate {
    classifier.guarantees().reserved()
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
    assert_eq!(find(&mut classifier, 1, 1), (Found { is_first: false, ..found }, vec![]));
    let (other, updates) = find(&mut classifier, 1, 2);
    assert_eq!((other.flow, other.account, updates), (FlowId(FIRST + 1), OTHER, vec![]));
}

#[test]
fn a_number_that_is_reused_inherits_nothing() {
    let rules = "[customer.alice]\nweight = 2\n[[rule]]\nname = \"a\"\nto_port = 1\nweight = 3\n\
                 class = \"real_rate\"\ntarget_delay = \"7ms\"\nrtt = \"20ms\"\ncustomer = \"alice\"\n";
    let mut classifier = classifier(&config(rules));
    let (first, updates) = find(&mut classifier, 0, 1);
    assert_eq!(updates.len(), 5, "{updates:?}");
    assert_eq!(updates[2].1, FlowSetting::Target(Some(FillTarget::Delay(Span::from_millis(7)))));
    // 10 s later flow 1 is forgotten, and flow 2 has its number.
    let (second, updates) = find(&mut classifier, 10, 2);
    assert_eq!(second.flow, first.flow);
    let expected = [
        weight(1.0),
        FlowSetting::Class(FlowClass::Greedy),
        FlowSetting::Target(None),
        FlowSetting::Rtt(Span::ZERO),
        FlowSetting::Customer(CustomerId::OTHERS),
    ];
    assert_eq!(updates, expected.map(|setting| (first.flow, setting)));
}

#[test]
fn all_that_match_are_one_flow_where_that_is_asked_for() {
    let rules = "[[rule]]\nname = \"a\"\nto_port = \"1-5\"\nweight = 3\nflows = \"one\"\n";
    let mut classifier = classifier(&config(rules));
    // The rule's weight was set when the discipline was built.
    assert_eq!(find(&mut classifier, 0, 1), (Found { flow: FlowId(1), account: 10, is_first: true }, vec![]));
    assert_eq!(find(&mut classifier, 0, 2).0.flow, FlowId(1));
    assert_eq!(find(&mut classifier, 0, 6).0.flow, FlowId(FIRST + 2));
    assert_eq!(classifier.count(), 3);
}

#[test]
fn a_guarantee_that_does_not_fit_is_refused_until_a_silent_flow_gives_up_its_own() {
    // Two guarantees of 4 Mb/s fit into 10, a third does not.
    let rules = "[[rule]]\nname = \"a\"\nto_port = \"1-5\"\nguarantee = \"4Mbit\"\n";
    let mut classifier = classifier(&config(rules));
    let four = Rate::from_mbit(4);
    for port in [1, 2] {
        let flow = FlowId(FIRST + u32::from(port) - 1);
        assert_eq!(second(&mut classifier, 0, port), [(flow, guarantee(four))]);
    }
    assert_eq!(second(&mut classifier, 0, 3), []);
    assert_eq!(
        (reserved(&classifier), classifier.guarantees().counts().refused),
        (Rate::from_mbit(8), [1, 0, 0])
    );
    // Flows that were silent for 1.9 s have no guarantee; the third one earns it again.
    let mut settings = Settings::new();
    classifier.release(Time::from_millis(2_899), &mut settings);
    assert_eq!((settings.len(), reserved(&classifier)), (0, Rate::from_mbit(8)));
    classifier.release(Time::from_millis(2_900), &mut settings);
    assert_eq!((settings.len(), reserved(&classifier)), (2, Rate::ZERO));
    assert_eq!(second(&mut classifier, 3, 3), [(FlowId(FIRST + 2), guarantee(four))]);
    assert_eq!((reserved(&classifier), classifier.guarantees().counts().unused), (four, 2));
}

#[test]
fn a_number_that_is_reused_gives_up_its_guarantee() {
    let rules = "[[rule]]\nname = \"a\"\nto_port = 1\nguarantee = \"4Mbit\"\n";
    let mut classifier = classifier(&config(rules));
    second(&mut classifier, 0, 1);
    // 10 s later the flow is forgotten; the other flow has its number.
    let (found, updates) = find(&mut classifier, 11, 2);
    assert_eq!((found.flow, updates), (FlowId(FIRST), vec![(FlowId(FIRST), guarantee(Rate::ZERO))]));
    assert_eq!(reserved(&classifier), Rate::ZERO);
}

#[test]
fn other_rules_keep_guarantees_that_fit_the_oldest_first() {
    let rule = |rest: &str| config(&format!("[[rule]]\nname = \"a\"\nto_port = \"1-5\"\n{rest}"));
    let mut classifier = classifier(&rule("guarantee = \"3Mbit\"\n"));
    for port in [3, 2, 1] {
        assert_eq!(second(&mut classifier, 0, port).len(), 1);
    }
    let mut reload = |text: &str| {
        let mut settings = Settings::new();
        classifier.set_rules(Time::from_secs(1), &rule(text), &[10], &mut Accounts::default(), &mut settings);
        let updates: Vec<_> = settings.into_iter().map(|(_, flow, setting)| (flow, setting)).collect();
        (updates, reserved(&classifier), classifier.guarantees().counts().withdrawn)
    };
    let three = "guarantee = \"3Mbit\"\n";
    assert_eq!(reload(&format!("{three}rtt = \"9ms\"\n")).1, Rate::from_mbit(9));
    assert_eq!(reload(three).1, Rate::from_mbit(9));
    assert_eq!(reload(three), (vec![], Rate::from_mbit(9), 0));
    // Ports 3 and 2 came first.
    let [none, two] = [0, 2].map(|mbit| guarantee(Rate::from_mbit(mbit)));
    let expected = vec![(FlowId(FIRST + 2), none)];
    assert_eq!(reload(&format!("{three}guarantee_limit = \"7Mbit\"\n")), (expected, Rate::from_mbit(6), 1));
    let expected = vec![(FlowId(FIRST), two), (FlowId(FIRST + 1), two)];
    assert_eq!(reload("guarantee = \"2Mbit\"\n"), (expected, Rate::from_mbit(4), 1));
    let expected = vec![(FlowId(FIRST), none), (FlowId(FIRST + 1), none)];
    assert_eq!(reload(""), (expected, Rate::ZERO, 3));
}

#[test]
fn other_rules_decide_anew_on_flows_that_are_there() {
    let rule = |weight| format!("[[rule]]\nname = \"a\"\nto_port = 1\nweight = {weight}\n");
    let mut classifier = classifier(&config(&rule("3")));
    let (found, _) = find(&mut classifier, 0, 1);
    find(&mut classifier, 0, 2);
    let mut settings = Settings::new();
    classifier.set_rules(
        Time::from_secs(1),
        &config(&rule("5")),
        &[10],
        &mut Accounts::default(),
        &mut settings,
    );
    // The number of the rule is updated too, for a discipline that knew its weight from the start.
    assert_eq!(
        settings.into_iter().map(|(_, flow, setting)| (flow, setting)).collect::<Vec<_>>(),
        [(FlowId(1), weight(1.0)), (found.flow, weight(5.0))]
    );
    assert_eq!(find(&mut classifier, 1, 1).1, []);
}

#[test]
fn a_rate_that_falls_takes_back_the_latest_guarantees() {
    // Three guarantees of 3 Mb/s fit into 10; into 7 only the first two.
    let rules = "[[rule]]\nname = \"a\"\nto_port = \"1-5\"\nguarantee = \"3Mbit\"\n";
    let mut classifier = classifier(&config(rules));
    let flows = [1, 2, 3].map(|port| second(&mut classifier, 0, port)[0].0);
    let mut settings = Settings::new();
    classifier.set_limits(Rate::from_mbit(7), Span::from_secs(10), &mut settings);
    let none = guarantee(Rate::ZERO);
    assert_eq!(settings, [(0, flows[2], none)]);
    assert_eq!((reserved(&classifier), classifier.guarantees().counts().withdrawn), (Rate::from_mbit(6), 1));
    // The old rate admits no more.
    assert_eq!(second(&mut classifier, 0, 4), []);
    assert_eq!(classifier.guarantees().counts().refused, [1, 0, 0]);
    settings.clear();
    classifier.set_limits(Rate::from_mbit(2), Span::from_secs(10), &mut settings);
    assert_eq!(settings, [(0, flows[1], none), (0, flows[0], none)]);
    assert_eq!((reserved(&classifier), classifier.guarantees().counts().withdrawn), (Rate::ZERO, 3));
}

#[test]
fn flows_that_are_one_have_their_guarantee_at_once_and_until_all_of_them_are_silent() {
    let rules = "[[rule]]\nname = \"a\"\nto_port = \"1-2\"\nguarantee = \"4Mbit\"\nflows = \"one\"\n";
    let mut classifier = classifier(&config(rules));
    let [some, none] = [4, 0].map(|mbit| (FlowId(1), guarantee(Rate::from_mbit(mbit))));
    assert_eq!(find(&mut classifier, 0, 1).1, [some]);
    assert_eq!(find(&mut classifier, 1, 2).1, []);
    // Seen at 1 s, the flows are silent for too long 1.9 s later.
    let mut settings = Settings::new();
    classifier.release(Time::from_millis(2_899), &mut settings);
    assert_eq!((settings.len(), reserved(&classifier)), (0, Rate::from_mbit(4)));
    classifier.release(Time::from_millis(2_900), &mut settings);
    assert_eq!((settings.pop_front().unwrap(), reserved(&classifier)), ((0, none.0, none.1), Rate::ZERO));
    // The first flow that comes back gets the guarantee for all.
    assert_eq!(find(&mut classifier, 16, 2).1, [some]);
    assert_eq!(find(&mut classifier, 17, 1).1, []);
    assert_eq!(reserved(&classifier), Rate::from_mbit(4));
}

/// The flow of a UDP packet between these addresses and ports, and its updates.
fn between(classifier: &mut Classifier, seconds: u64, from: &str, to: &str) -> (FlowId, Vec<FlowSetting>) {
    let [source, destination] = [from, to].map(|text| text.parse::<std::net::SocketAddr>().unwrap());
    let headers = Headers {
        protocol: 17,
        source: source.ip(),
        destination: destination.ip(),
        ports: Some((source.port(), destination.port())),
        dscp: 0,
    };
    let mut settings = Settings::new();
    let tuple = FlowTuple::new(&headers).unwrap();
    let found = classifier.find(
        Time::from_secs(seconds),
        (tuple, true),
        &headers,
        &mut Accounts::default(),
        &mut settings,
    );
    (found.flow, settings.into_iter().map(|(_, _, setting)| setting).collect())
}

#[test]
fn one_rule_makes_one_flow_of_each_network_inside() {
    let many = |flows: &str| {
        let text = format!(
            "inside = \"a\"\noutside = \"b\"\nflows = 40\nflow_idle = \"10s\"\nup.rate = \"10Mbit\"\ndown.rate = \"10Mbit\"\n\
             [[rule]]\nname = \"a\"\nweight = 3\nflows = \"{flows}\"\n"
        );
        GatewayConfig::load(&text, Path::new("x.toml")).unwrap()
    };
    let of = |flows: &str, direction: Direction, ends: [(&str, &str); 4]| {
        let mut classifier = Classifier::new(direction, &many(flows), &[10]);
        let found = ends.map(|(from, to)| between(&mut classifier, 0, from, to));
        // Each flow has the weight of the rule, set once.
        let updates: Vec<_> = found.iter().flat_map(|(_, updates)| updates.clone()).collect();
        assert!(updates.iter().all(|update| *update == weight(3.0)), "{updates:?}");
        let ids = found.map(|(id, _)| id);
        let distinct: BTreeSet<_> = ids.iter().collect();
        assert_eq!(updates.len(), distinct.len());
        ids.map(|id| ids.iter().position(|other| *other == id).unwrap())
    };
    let up = [
        ("10.0.1.1:1", "192.0.2.1:1"),
        ("10.0.1.1:2", "192.0.2.2:1"),
        ("10.0.1.2:1", "192.0.2.1:1"),
        ("10.0.2.1:1", "192.0.2.1:1"),
    ];
    assert_eq!(of("address/32", Direction::Up, up), [0, 0, 2, 3]);
    assert_eq!(of("address/24", Direction::Up, up), [0, 0, 0, 3]);
    assert_eq!(of("address/0", Direction::Up, up), [0; 4]);
    assert_eq!(of("each", Direction::Up, up), [0, 1, 2, 3]);
    // Down, the destination is inside.
    let down = up.map(|(from, to)| (to, from));
    assert_eq!(of("address/32", Direction::Down, down), [0, 0, 2, 3]);
    assert_eq!(of("address/32", Direction::Up, down), [0, 1, 0, 0]);
    let six = [
        ("[2001:db8:0:1::1]:1", "[2001:db8:f::1]:1"),
        ("[2001:db8:0:1::2]:1", "[2001:db8:f::1]:1"),
        ("[2001:db8:0:2::1]:1", "[2001:db8:f::1]:1"),
        ("[2001:db8:1:1::1]:1", "[2001:db8:f::1]:1"),
    ];
    assert_eq!(of("address/32", Direction::Up, six), [0, 0, 2, 3]);
    assert_eq!(of("address/32/48", Direction::Up, six), [0, 0, 0, 3]);
    assert_eq!(of("address/32/128", Direction::Up, six), [0, 1, 2, 3]);
}

#[test]
fn a_network_keeps_its_number_while_any_of_its_flows_sends() {
    let rules = "[[rule]]\nname = \"a\"\nweight = 3\nflows = \"address/32\"\n";
    let mut classifier = classifier(&config(rules));
    let to = "192.0.2.1:1";
    let (first, _) = between(&mut classifier, 0, "10.0.0.1:1", to);
    for seconds in 1..30 {
        let (found, updates) = between(&mut classifier, seconds, "10.0.0.1:2", to);
        assert_eq!((found, updates), (first, vec![]), "{seconds}");
    }
    // A flood of other networks takes all four numbers, including the first network's.
    for last in 2..200 {
        between(&mut classifier, 30, &format!("10.0.0.{last}:1"), to);
    }
    assert_eq!(classifier.count(), 4);
    let (again, _) = between(&mut classifier, 31, "10.0.0.1:1", to);
    assert_eq!(between(&mut classifier, 31, "10.0.0.1:2", to).0, again);
    // The rules are read again, and give the network another weight.
    let mut settings = Settings::new();
    let new = config(&rules.replace("weight = 3", "weight = 5"));
    classifier.set_rules(Time::from_secs(32), &new, &[10], &mut Accounts::default(), &mut settings);
    let last = settings.into_iter().rfind(|(_, flow, _)| *flow == again);
    assert_eq!(last.map(|(_, _, setting)| setting), Some(weight(5.0)));
}
