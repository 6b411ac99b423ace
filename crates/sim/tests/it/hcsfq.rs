//! HCSFQ on whole links, compared with the hierarchical shares that it promises and with CSFQ, which does not
//! distinguish customers.

use apportion_runtime::outcome::Outcome;
use apportion_testing::net::net;

use crate::common::{link, run, scenarios, throughput};

/// A link of 10 Mb/s and the customers a, b, c with these numbers of flows that send 12 Mb/s each. The first
/// twelve seconds, in which the labels of floods become their rates, are left out.
fn scenario(queue: &str, flows: [u32; 3], weights: &str) -> String {
    let mut text = net(&format!(
        "
            stop = 52s, measure_from = 12s
            {weights}
            link wire: a -> b, rate = 10Mbit, delay = 1ms, queue = {{ kind = {queue}, limit = 64p }}, watch = true
        "
    ));
    for (name, count) in ["a", "b", "c"].iter().zip(flows) {
        text += &format!(
            r#"
            [flow.{name}]
            count = {count}
            from = "a"
            to = "b"
            customer = "{name}"
            source = {{ kind = "cbr", rate = "12Mbit", packet = "1000B", jitter = "5%" }}
        "#
        );
    }
    text
}

/// Throughput of each flow by customer, in Mb/s.
fn by_customer(outcome: &Outcome) -> [Vec<f64>; 3] {
    ["a", "b", "c"].map(|name| {
        let own = outcome.flows.iter().filter(|flow| flow.group == name);
        own.map(|flow| throughput(outcome, &flow.name) / 1e6).collect()
    })
}

fn sums(shares: &[Vec<f64>; 3]) -> [f64; 3] {
    shares.each_ref().map(|own| own.iter().sum())
}

fn off(got: &[f64], expected: &[f64]) -> f64 {
    got.iter().zip(expected).map(|(got, expected)| (got / expected - 1.0).abs()).fold(0.0, f64::max)
}

#[test]
fn customers_with_any_number_of_flows_get_a_third_each() {
    let outcome = run(&scenario("hcsfq", [1, 4, 10], ""));
    let shares = by_customer(&outcome);
    assert!(link(&outcome, "wire").utilisation > 0.99, "{}", link(&outcome, "wire").utilisation);
    assert!(off(&sums(&shares), &[10.0 / 3.0; 3]) < 0.05, "{:?}", sums(&shares));
    for own in &shares {
        let mean = own.iter().sum::<f64>() / own.len() as f64;
        assert!(off(own, &vec![mean; own.len()]) < 0.1, "{own:?}");
    }
    // CSFQ divides by flows: 1, 4 and 10 fifteenths.
    let csfq = sums(&by_customer(&run(&scenario("csfq", [1, 4, 10], ""))));
    assert!(off(&csfq, &[10.0 / 15.0, 40.0 / 15.0, 100.0 / 15.0]) < 0.1, "{csfq:?}");
}

#[test]
fn customers_divide_by_their_weights() {
    let weights = "customer.b.weight = 2\ncustomer.c.weight = 3";
    // The customer of the largest weight has the most flows, and the fewest.
    for flows in [[1, 4, 10], [10, 4, 1]] {
        let text = scenario("hcsfq", flows, weights);
        let shares = sums(&by_customer(&run(&text)));
        assert!(off(&shares, &[10.0 / 6.0, 20.0 / 6.0, 30.0 / 6.0]) < 0.05, "{shares:?}");
        let entitled = scenarios(&text)[0].entitlements().unwrap();
        let due: Vec<f64> = entitled.iter().map(|rate| rate.as_mbit_f64()).collect();
        let first_of_c = (flows[0] + flows[1]) as usize;
        assert!(
            off(&[due[0], due[first_of_c]], &[10.0 / 6.0 / f64::from(flows[0]), 5.0 / f64::from(flows[2])])
                < 1e-5
        );
    }
}

#[test]
fn opening_ten_times_the_flows_gains_a_customer_nothing() {
    let part = |queue, flows| sums(&by_customer(&run(&scenario(queue, [2, 2, flows], ""))))[2];
    let (few, many) = (part("hcsfq", 2), part("hcsfq", 20));
    assert!((many / few - 1.0).abs() < 0.05, "{few} and {many}");
    // With CSFQ it gets 2 of 6 and 20 of 24 parts.
    let (few, many) = (part("csfq", 2), part("csfq", 20));
    assert!((many / few - 2.5).abs() < 0.25, "{few} and {many}");
}

#[test]
fn what_an_idle_customer_leaves_the_others_take_and_give_back() {
    // Customer c sends for ten seconds and is silent for ten.
    let greedy = r#"kind = "cbr", rate = "12Mbit", packet = "1000B", jitter = "5%""#;
    let half =
        r#"kind = "on_off", rate = "12Mbit", packet = "1000B", on = "10s", off = "10s", shape = "constant""#;
    // Labels are rates at once, as c comes and goes.
    let outcome = |queue| {
        let text = scenario(queue, [1, 4, 4], "").replace("limit =", "credit = \"0s\", limit =");
        let (others, c) = text.split_at(text.find("[flow.c]").unwrap());
        run(&(others.to_owned() + &c.replace(greedy, half)))
    };
    let hcsfq = outcome("hcsfq");
    assert!(link(&hcsfq, "wire").utilisation > 0.98, "{}", link(&hcsfq, "wire").utilisation);
    // From 12 to 52 s c is present for 20 s and gets a third; the others get a third then, and half each
    // otherwise: 5/3 + 5/2 = 4.17.
    let shares = sums(&by_customer(&hcsfq));
    assert!(off(&shares, &[25.0 / 6.0, 25.0 / 6.0, 10.0 / 6.0]) < 0.05, "{shares:?}");
    // With CSFQ a gets a ninth and then a fifth: 1.56.
    let [a, _, _] = sums(&by_customer(&outcome("csfq")));
    assert!((a / (5.0 / 9.0 + 1.0) - 1.0).abs() < 0.1, "{a}");
}

#[test]
fn flows_without_a_customer_are_one_customer_together() {
    let without = |queue, name: &str| {
        let text = scenario(queue, [1, 4, 10], "").replace(&format!("customer = \"{name}\""), "");
        sums(&by_customer(&run(&text)))
    };
    let others = without("hcsfq", "c");
    assert!(off(&others, &[10.0 / 3.0; 3]) < 0.05, "{others:?}");
    let mut text = scenario("hcsfq", [1, 4, 10], "");
    for name in ["a", "b", "c"] {
        text = text.replace(&format!("customer = \"{name}\""), "");
    }
    let none = sums(&by_customer(&run(&text)));
    assert!(off(&none, &[10.0 / 15.0, 40.0 / 15.0, 100.0 / 15.0]) < 0.1, "{none:?}");
}

/// A flow of customer c that has a guarantee of 3 Mb/s and sends 2.9, an unresponsive flow of the same
/// customer, and unresponsive flows of a and b, over an edge with enough capacity and a core of 10 Mb/s.
fn guaranteed(weight: f64, guarantee: &str) -> Outcome {
    let flood = r#"source = { kind = "cbr", rate = "12Mbit", packet = "1000B", jitter = "5%" }"#;
    let mut text = format!(
        "
            seed = 3, stop = 52s, measure_from = 12s, customer.c.weight = {weight}
            link edge: a -> r, rate = 1Gbit, delay = 1ms, queue = {{ kind = hcsfq, role = edge }}
            link core: r -> b, rate = 10Mbit, delay = 1ms, queue = {{ kind = hcsfq, role = core }}
            flow within: a -> b, customer = c, guarantee = {guarantee},
                source = {{ kind = cbr, rate = 2.9Mbit, packet = 1000B, jitter = 5% }}
        "
    );
    for (name, customer, count) in [("own", "c", 1), ("one", "a", 1), ("four", "b", 4)] {
        text += &format!(
            "[flow.{name}]\ncount = {count}\nfrom = \"a\"\nto = \"b\"\ncustomer = \"{customer}\"\n{flood}\n"
        );
    }
    run(&text)
}

#[test]
fn a_core_serves_guarantees_within_a_customers_part_and_beyond() {
    let parts = |weight, guarantee| {
        let outcome = guaranteed(weight, guarantee);
        let sum = |group| {
            let own = outcome.flows.iter().filter(|flow| flow.group == group);
            own.map(|flow| throughput(&outcome, &flow.name)).sum::<f64>() / 1e6
        };
        ["within", "own", "one", "four"].map(sum)
    };
    // The part of c would be 10/21 Mb/s: it gets the rate that its guarantee covers, and the others 3.55
    // each. Almost nothing is left for the unresponsive flow of c.
    let [within, own, others @ ..] = parts(0.1, "3Mbit");
    assert!(off(&[within], &[2.9]) < 0.005 && own < 0.06, "{within} and {own}");
    assert!(off(&others, &[3.55; 2]) < 0.05, "{others:?}");
    // By weights 2:1:1 c gets 5: its unresponsive flow gets the rate that the guarantee leaves, and the
    // others get the same as before.
    let [within, own, others @ ..] = parts(2.0, "3Mbit");
    assert!(off(&[within], &[2.9]) < 0.005 && off(&[own], &[2.1]) < 0.1, "{within} and {own}");
    assert!(off(&others, &[2.5; 2]) < 0.05, "{others:?}");
    // Without a guarantee the two flows of c get half of 5 each.
    let [within, own, ..] = parts(2.0, "0bit");
    assert!(off(&[within, own], &[2.5; 2]) < 0.1, "{within} and {own}");
}
