//! Entitlements of flows over time.

use apportion_core::units::{Bytes, Rate, Ratio, TicketRate};
use apportion_scenario::model::{Cbr, Scenario, Source};

use crate::common::scenario;

/// A dumbbell of 8 Mb/s with this flow.
fn with_flow(flow: &str) -> Scenario {
    scenario(&format!(
        "seed = 1\nstop = \"1s\"\ntopology = {{ kind = \"dumbbell\", pairs = 1, bottleneck = {{ rate = \"8Mbit\", delay = \"1ms\" }} }}\n\
         [flow.f]\ntcp = \"rfc\"\n{flow}\n"
    ))
}

#[test]
fn entitlements_follow_weights_and_guarantees_and_the_scenario_as_it_moves() {
    let flow = "count = 2\nfrom = \"l1\"\nto = \"r1\"\nweight = \"i\"\nguarantee = \"1Mbit\"";
    // 8 - 2 x 1 = 6 Mb/s of excess, divided 1 : 2.
    let shares = with_flow(flow).entitlements();
    assert_eq!(shares, Some(vec![Rate::from_mbit(3), Rate::from_mbit(5)]));
    let late = with_flow(&format!("{flow}\nstart = \"0.5s\""));
    assert_eq!(late.entitlements(), Some(vec![Rate::from_kbit(1_500), Rate::from_kbit(2_500)]));
    let change = "\n[[change]]\nat = \"0.5s\"\nset = \"link.bottleneck.rate\"\nto = \"1Mbit\"";
    // From 0.5 s on the guarantees of 1 Mb/s each get half of a link of 1 Mb/s.
    let slow = with_flow(&format!("{flow}{change}")).entitlements();
    assert_eq!(slow, Some(vec![Rate::from_kbit(1_750), Rate::from_kbit(2_750)]));
}

/// S0, S1 -> S3; S2 -> S4; S3, S4 -> S5 -> S6; flows from S0, S1 and S2 to S6, or the other way round.
fn two_domains(backwards: bool) -> Scenario {
    let mut text = "seed = 1\nstop = \"1s\"\n".to_owned();
    for (name, from, to, rate) in [
        ("a", "S0", "S3", 10),
        ("b", "S1", "S3", 10),
        ("c", "S2", "S4", 10),
        ("d", "S3", "S5", 10),
        ("e", "S4", "S5", 10),
        ("f", "S5", "S6", 1),
    ] {
        text += &format!(
            "[link.{name}]\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"{rate}Mbit\"\ndelay = \"1ms\"\n"
        );
    }
    for (name, host) in [("A", "S0"), ("B", "S1"), ("C", "S2")] {
        let (from, to) = if backwards { ("S6", host) } else { (host, "S6") };
        text += &format!("[flow.{name}]\nfrom = \"{from}\"\nto = \"{to}\"\ntcp = \"rfc\"\n");
    }
    scenario(&text)
}

#[test]
fn entitlements_follow_tickets_in_the_currency_of_each_router() {
    let tickets = |rate: f64| Some(TicketRate::new(rate).unwrap());
    let kbit = |shares: [u64; 3]| Some(shares.map(Rate::from_kbit).to_vec());
    let issue = [("a", 1_000.0), ("b", 500.0), ("c", 700.0), ("d", 900.0), ("e", 300.0)];
    // S3's 1500 are worth 900 to S5, S4's 700 are worth 300: 600, 300 and 300 tickets.
    for backwards in [false, true] {
        let mut it = two_domains(backwards);
        assert_eq!(it.entitlements().map(|shares| shares[0].as_bit()), Some(333_333));
        for flow in &mut it.flows {
            assert_eq!((flow.tickets, flow.ack_tickets), (None, None));
            if backwards { flow.ack_tickets = tickets(5.0) } else { flow.tickets = tickets(5.0) }
        }
        for (name, rate) in issue {
            let name = if backwards { format!("{name}.back") } else { name.to_owned() };
            let link = it.links.iter_mut().find(|link| link.name == name).unwrap();
            if backwards { link.ack_tickets = tickets(rate) } else { link.tickets = tickets(rate) }
        }
        assert_eq!(it.entitlements(), kbit([500, 250, 250]), "backwards {backwards}");
        it.flows[1].source =
            Source::Cbr(Cbr { rate: Rate::from_kbit(160), packet: Bytes::new(500), jitter: Ratio::ZERO });
        assert_eq!(it.entitlements(), kbit([560, 160, 280]), "backwards {backwards}");
        it.flows[2].tickets = None;
        it.flows[2].ack_tickets = None;
        assert_eq!(it.entitlements(), None, "C has no tickets to divide by");
    }
}
