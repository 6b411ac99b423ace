//! Customers in the data of the page.

use serde_json::Value;

use super::*;
use crate::gateway::log::logged;

const PLANS: &str = "name,parent,addresses,up,up_min,down\nsite,,,1Mbit,,1Mbit\nsmith,site,10.0.0.5,,600kbit,\n\
    jones,site,10.0.0.6,,300kbit,\nothers,site,,10kbit,,10kbit\n";

/// Runs for six seconds, in which two customers and senders without a customer exceed the rate up.
fn place(own: &str) -> Place {
    let mut place = Place::of(|folder| {
        fs::write(folder.join("plans.csv"), PLANS).unwrap();
        own.to_owned()
    });
    for last in [5, 6] {
        let flow =
            move |_| datagram([[10, 0, 0, last], [198, 51, 100, 7]], [40_000, 5_000 + u16::from(last)], 986);
        play(&mut place.runner.gateway.engine, 0, [Time::ZERO, Time::from_secs(9)], 200, flow);
    }
    while place.runner.gateway.now() < Time::from_millis(6_050) {
        place.move_packets();
        assert!(place.control.round(place.now));
    }
    place
}

fn body(place: &mut Place, path: &str) -> Value {
    let answer = place.answer(&format!("GET {path}"));
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap_or_else(|_| panic!("{answer}"))
}

fn near(value: &Value, due: f64) {
    let value = value.as_f64().unwrap_or(f64::NAN);
    assert!((value / due - 1.0).abs() < 0.05, "{value} of {due}");
}

#[test]
fn customers_are_shown_with_their_weights_and_entitlements_and_have_a_history() {
    let rule = |name: &str, to: u16| format!("[[rule]]\ncustomer = \"{name}\"\nto_port = {to}\n");
    let text = format!(
        "up = {{ rate = \"1Mbit\", queue = {{ kind = \"drr\", limit = \"50p\" }} }}\ndown.rate = \"1Mbit\"\n{}weight = 3\n{}",
        rule("smith", 5_005),
        rule("jones", 5_006)
    );
    let mut place = place(&text);
    let stats = body(&mut place, "/stats.json");
    let up = &stats["traffic"]["up"];
    let names: Vec<_> =
        up["customers"].as_array().unwrap().iter().map(|it| it["customer"].as_str().unwrap()).collect();
    assert_eq!((names, &up["active_customers"]), (vec!["smith", "jones"], &json!(2)));
    for (at, due) in [93_750.0, 31_250.0].into_iter().enumerate() {
        let own = &up["customers"][at];
        near(&own["bytes_per_second"], due);
        near(&own["entitlement_bytes_per_second"], due);
        assert_eq!((&own["weight"], &own["plan_bytes_per_second"]), (&json!(1.0), &Value::Null));
    }
    let number = up["customers"][1]["number"].as_u64().unwrap();
    let history = body(&mut place, &format!("/history?customer={number}"));
    let rates = history["bytes_per_second"].as_array().unwrap();
    assert_eq!((&history["customer"], &history["direction"]), (&json!("jones"), &json!("up")));
    assert!(rates.len() >= 5 && rates[4] == up["customers"][1]["bytes_per_second"], "{history}");
    // A number belongs to a flow or to a customer.
    for path in [format!("/history?flow={number}"), "/history?customer=99".to_owned()] {
        assert!(place.answer(&format!("GET {path}")).starts_with("HTTP/1.0 404 "), "{path}");
    }
    assert!(place.answer("GET /history?customer=x").starts_with("HTTP/1.0 400 "));
}

#[test]
fn customers_of_plans_are_shown_with_what_they_are_assured_and_their_ceiling() {
    let text = "plans = \"plans.csv\"\nup = { rate = \"1Mbit\", queue = { kind = \"htb\", plans = \"up\", limit = \"50p\" } }\ndown.rate = \"1Mbit\"\n";
    let mut place = place(text);
    let stats = body(&mut place, "/stats.json");
    let customers = &stats["traffic"]["up"]["customers"];
    for (at, name, assured) in [(0, "smith", 75e3), (1, "jones", 37.5e3)] {
        let own = &customers[at];
        assert_eq!(own["customer"], name, "{customers}");
        near(&own["plan_bytes_per_second"], assured);
        near(&own["ceiling_bytes_per_second"], 125e3);
        assert_eq!(own["entitlement_bytes_per_second"], Value::Null);
        // 10 % of 1 Mb/s are left for both to borrow.
        assert!(own["bytes_per_second"].as_f64().unwrap() > 0.95 * assured, "{own}");
    }
    // The counters count the same packets.
    let counted = &stats["directions"]["up"]["customers"];
    assert!(counted["smith"]["sent_packets"].as_u64().unwrap() > 0, "{counted}");
}

#[test]
fn a_gateway_without_customers_shows_none() {
    let mut place = place("up.rate = \"1Mbit\"\ndown.rate = \"1Mbit\"\n");
    let stats = body(&mut place, "/stats.json");
    assert_eq!(stats["traffic"]["up"]["customers"], json!([]));
    assert_eq!(stats["traffic"]["up"]["active_customers"], 0);
}

#[test]
fn a_reload_of_plans_says_what_changed_in_them_and_gives_the_queue_their_classes() {
    let text = "plans = \"plans.csv\"\n\
                up = { rate = \"1Mbit\", queue = { kind = \"htb\", plans = \"up\" } }\ndown.rate = \"1Mbit\"\n";
    let mut place = Place::of(|folder| {
        fs::write(folder.join("plans.csv"), PLANS).unwrap();
        text.to_owned()
    });
    let revision = |place: &mut Place| body(place, "/stats.json")["control"]["revision"].clone();
    let before = revision(&mut place);
    fs::write(place.folder.path().join("plans.csv"), PLANS.replace("300kbit", "200kbit")).unwrap();
    let mut client = place.ask("POST /reload");
    place.move_packets();
    let log = logged(|| assert!(place.control.round(place.now)));
    let lines: Vec<&str> = log.lines().map(str::trim_start).collect();
    assert_eq!(
        lines[..2],
        [
            "INFO reloaded changes=1 warnings=1",
            "INFO changed change=\"plans: jones.up_min: 300kbit -> 200kbit\""
        ]
    );
    assert!(lines[2].starts_with("WARN plans: up_min is below") && lines.len() == 3, "{log}");
    let answer = got(&mut client);
    // Settings that read back as written are no problem.
    let (_, said) = answer.split_once("\r\n\r\n").unwrap();
    let (change, warning) = said.split_once('\n').unwrap();
    assert_eq!(change, "plans: jones.up_min: 300kbit -> 200kbit");
    assert!(
        warning.starts_with("warning: plans: up_min is below") && warning.lines().count() == 1,
        "{warning}"
    );
    let last = body(&mut place, "/stats.json")["reloads"]["last"].clone();
    assert_eq!(last, json!({ "applied": said }));
    assert_ne!(revision(&mut place), before);
}
