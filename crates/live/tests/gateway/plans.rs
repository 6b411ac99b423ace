//! Customers with plans.

use std::path::{Path, PathBuf};
use std::sync::mpsc;

use apportion_core::units::Span;
use apportion_linux::clock::Clock;
use apportion_live::gateway::Gateway;
use apportion_live::gateway::snapshot::Reloads;
use apportion_scenario::gateway::GatewayConfig;
use apportion_testing::skip;
use etherparse::PacketBuilder;

use crate::common::{Wire, enter, host, judge_by_time, open_config, pause, snapshot, start};

const PLANS: &str = "\
name,   parent, addresses, down,    up,    up_min
site,   ,       ,          20Mbit,  4Mbit,
first,  site,   10.0.0.1,  ,        ,      3Mbit
second, site,   10.0.0.3,  ,        ,      900kbit
others, site,   ,          ,        100kbit,
";

/// The gateway's configuration, with these plans next to its file.
fn config(folder: &Path, plans: &str) -> GatewayConfig {
    std::fs::write(folder.join("plans.csv"), plans).unwrap();
    let text = "inside = \"near\"\noutside = \"far\"\nplans = \"plans.csv\"\ndown.rate = \"20Mbit\"\n\
                [up]\nrate = \"100Mbit\"\nqueue = { kind = \"htb\", discipline = \"drr\", plans = \"up\" }\n\
                [[rule]]\nname = \"calls\"\nfrom_port = 7\nweight = 4\n";
    GatewayConfig::load(text, &folder.join("x.toml")).unwrap_or_else(|problems| panic!("{problems:?}"))
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("apportion-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// A datagram of 1,000 bytes.
fn datagram(from: [u8; 4], port: u16) -> Vec<u8> {
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 1])
        .ipv4(from, [10, 0, 0, 2], 64)
        .udp(port, 9)
        .write(&mut frame, &[0; 972])
        .unwrap();
    frame
}

/// Bytes sent up by a member of the group `of`, which is rules or customers.
fn sent(gateway: &mut Gateway, of: &str, name: &str) -> f64 {
    let json = snapshot(gateway).json(&Reloads::default(), Span::ZERO);
    json["directions"]["up"][of][name]["sent_bytes"].as_f64().unwrap_or(0.0)
}

/// Bytes sent up by both customers.
fn customers(gateway: &mut Gateway) -> [f64; 2] {
    ["first", "second"].map(|name| sent(gateway, "customers", name))
}

pub fn customers_have_what_they_are_assured_and_are_counted() {
    enter();
    judge_by_time();
    let folder = folder("plans");
    let (near, _far) = (host("near", 11), host("far", 12));
    let mut next = Some(config(&folder, &PLANS.replace("10.0.0.3", "10.0.0.4").replace("second", "third ")));
    let (at_reload, counted) = mpsc::channel();
    let running = start(open_config(config(&folder, PLANS)), {
        let mut rounds = 0;
        move |gateway| {
            rounds += 1;
            if rounds == 100
                && let Some(next) = next.take()
            {
                at_reload.send(customers(gateway)).unwrap();
                let difference = gateway.config().difference(&next).unwrap();
                gateway.apply(next, &difference).unwrap();
            }
        }
    });
    let mut wire = near.namespace.run(Wire::open).unwrap();
    let sender = near.namespace.spawn("sender", move || {
        // 6 Mb/s of each for 4 s, the first with a call among it; after 2 s the second customer has no plan.
        for number in 0..3_000_u16 {
            wire.send(&datagram([10, 0, 0, 1], if number % 8 == 0 { 7 } else { 1_000 }));
            wire.send(&datagram([10, 0, 0, 3], 1_000 + number % 3));
            if number % 3 == 2 {
                pause(4);
            }
        }
    });
    sender.unwrap().join().unwrap();
    let mut gateway = running.stop();
    let ([first, second], before) = (customers(&mut gateway), counted.recv().unwrap());
    let calls = sent(&mut gateway, "rules", "calls");
    // Ratios of throughputs, which do not depend on the sender's lateness. The first customer is assured 3 of
    // 4 Mb/s and the second 0.9; after the reload the second shares, with the others, a hundredth of the
    // first's weight.
    let ratio = before[0] / before[1];
    assert!((2.8..3.8).contains(&ratio), "{before:?}");
    let after = [first - before[0], second - before[1]];
    assert!(after[0] > before[0] / 4.0 && after[1] < after[0] / 10.0, "{before:?} {after:?}");
    assert!(calls > first / 20.0 && calls < first, "{first} {second} {calls}");
    std::fs::remove_dir_all(folder).unwrap();
}

/// Classes have names, not numbers: a customer that comes first by name takes no class of another.
pub fn a_new_customer_takes_no_class_of_another() {
    enter();
    let text = |rest: &str| {
        format!(
            "inside = \"near\"\noutside = \"far\"\ndown.rate = \"20Mbit\"\n[up]\nrate = \"1Mbit\"\n\
             queue = {{ kind = \"prio\", class = {{ m = {{ prio = 0 }}, rest = {{ prio = 1, others = true }} }} }}\n\
             [[rule]]\nname = \"m\"\nfrom_port = 7\ncustomer = \"m\"\n{rest}"
        )
    };
    let load = |text: String| GatewayConfig::load(&text, Path::new("x.toml")).unwrap();
    let (near, _far) = (host("near", 11), host("far", 12));
    let mut next = Some(load(text("[[rule]]\nname = \"a\"\nfrom_port = 8\ncustomer = \"a\"\n")));
    let running = start(open_config(load(text(""))), move |gateway| {
        if let Some(next) = next.take() {
            let difference = gateway.config().difference(&next).unwrap();
            gateway.apply(next, &difference).unwrap();
        }
    });
    let mut wire = near.namespace.run(Wire::open).unwrap();
    let sender = near.namespace.spawn("sender", move || {
        // 0.5 Mb/s of m and 3 Mb/s of others, for 2 s.
        for number in 0..875_u16 {
            wire.send(&datagram([10, 0, 0, 1], if number % 7 == 0 { 7 } else { 1_000 }));
            if number % 7 == 6 {
                pause(16);
            }
        }
    });
    sender.unwrap().join().unwrap();
    let mut gateway = running.stop();
    let [m, others] = ["m", "unmatched"].map(|name| sent(&mut gateway, "rules", name));
    assert!(m > 110_000.0 && others > 50_000.0, "{m} {others}");
}

pub fn a_thousand_customers_are_reloaded_at_once() {
    enter();
    let folder = folder("many-plans");
    let (_near, _far) = (host("near", 11), host("far", 12));
    let plans = |rate: u64| {
        let mut plans =
            String::from("name,parent,addresses,down,up\nsite,,,20Mbit,4Gbit\nothers,site,,,1Mbit\n");
        for mast in 0..10 {
            plans += &format!("mast{mast},site,,,400Mbit\n");
        }
        for i in 0..1_000 {
            let (high, low) = (i / 250, i % 250);
            plans += &format!("c{i},mast{},10.1.{high}.{low},,{}Mbit\n", i % 10, rate + i % 7);
        }
        plans
    };
    let mut gateway = open_config(config(&folder, &plans(10)));
    let clock = Clock::start();
    let begin = clock.now();
    let next = config(&folder, &plans(20));
    let loaded = clock.now().since(begin);
    let difference = gateway.config().difference(&next).unwrap();
    assert_eq!(difference.changes.len(), 1_000, "{difference}");
    assert!(difference.to_string().ends_with("and 960 more\n"), "{difference}");
    gateway.apply(next, &difference).unwrap();
    let applied = clock.now().since(begin);
    if skip::unless_judged_by_the_clock() {
        assert!(applied < Span::from_millis(200), "read in {loaded}, applied after {applied}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}
