//! The work of a second and of a reload with many customers, in instructions as Valgrind counts them, which
//! are nearly equal in each run.

use std::process::Command;

use apportion_testing::{child, skip};

use super::*;

/// The settings of [`work_of_customers`], as environment variables.
const SETTINGS: [&str; 3] = ["APPORTION_CUSTOMERS", "APPORTION_SECONDS", "APPORTION_RELOADS"];
/// Customers that send: as many as traffic keeps apart.
const SENDING: u64 = crate::gateway::traffic::MAX_CUSTOMERS as u64;

/// A file of plans for this number of customers, each with an address.
fn plans(customers: u64, rate: u64) -> String {
    let line = |i: u64| format!("c{i},site,10.{}.{}.{},{rate}Mbit,1Mbit\n", i >> 16, i >> 8 & 0xff, i & 0xff);
    let customers: String = (0..customers).map(line).collect();
    format!("name,parent,addresses,up,down\nsite,,,1Gbit,1Gbit\nothers,site,,1Mbit,1Mbit\n{customers}")
}

/// Runs a gateway with plans for this number of seconds, in which customers send, a client reads the page,
/// and the file is reloaded.
#[test]
#[ignore = "the other test runs it under Valgrind"]
fn work_of_customers() {
    let [customers, seconds, reloads] = SETTINGS.map(|name| std::env::var(name).unwrap().parse().unwrap());
    let text = "plans = \"plans.csv\"\n\
                up = { rate = \"1Gbit\", queue = { kind = \"htb\", discipline = \"fq_codel\", plans = \"up\" } }\n\
                down = { rate = \"1Gbit\", queue = { kind = \"htb\", discipline = \"fq_codel\", plans = \"down\" } }\n";
    let mut place = Place::of(|folder| {
        fs::write(folder.join("plans.csv"), plans(customers, 2)).unwrap();
        text.to_owned()
    });
    let frame = move |number: u64| {
        // Spread over the whole file.
        let [.., a, b, c] = ((number % SENDING) * customers / SENDING).to_be_bytes();
        datagram([[10, a, b, c], [198, 51, 100, 7]], [40_000, 5_000], 986)
    };
    play(&mut place.runner.gateway.engine, 0, [Time::ZERO, Time::from_secs(1_000)], 2 * SENDING, frame);
    // The page asks once a second.
    for second in 1..=seconds {
        while place.runner.gateway.now() < Time::from_millis(1_000 * second + 150) {
            place.move_packets();
            assert!(place.control.round(place.now));
        }
        let stats = place.answer("GET /stats.json");
        assert!(stats.contains(&format!("\"active_customers\": {SENDING}")), "{stats}");
    }
    for reload in 1..=reloads {
        fs::write(place.folder.path().join("plans.csv"), plans(customers, 2 + reload)).unwrap();
        let mut client = place.ask("POST /reload");
        place.move_packets();
        assert!(place.control.round(place.now));
        let answer = got(&mut client);
        assert!(
            answer.contains(&format!("\nplans: c0.up: {}Mbit -> {}Mbit\n", 1 + reload, 2 + reload)),
            "{answer}"
        );
    }
}

/// The instructions of that run.
fn instructions(settings: [u64; 3]) -> f64 {
    let own = std::env::current_exe().unwrap();
    let mut command = Command::new("valgrind");
    command.args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]).arg(own);
    command.args(["--ignored", "--exact", "gateway::control::tests::work::work_of_customers"]);
    let out = child::output(command.envs(SETTINGS.into_iter().zip(settings.map(|of| of.to_string()))));
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{said}{}", String::from_utf8_lossy(&out.stdout));
    let count =
        said.lines().find_map(|line| line.split_once("refs:")).map(|(_, count)| count.replace(',', ""));
    count.expect("Valgrind counts").trim().parse().unwrap()
}

/// Guards against a list of all customers for each of them, to find whether their weights count.
#[test]
fn a_second_and_a_reload_are_work_in_proportion_to_the_customers() {
    const CUSTOMERS: [u64; 2] = [128, 512];
    let of = |customers, seconds, reloads| instructions([customers, seconds, reloads]);
    if !skip::unless_found(&["valgrind"]) {
        return;
    }
    let [few, many] = CUSTOMERS.map(|customers| {
        let [start, seconds, reloads] = [(1, 0), (4, 0), (1, 3)].map(|(s, r)| of(customers, s, r));
        [(seconds - start) / 3.0, (reloads - start) / 3.0]
    });
    for ((few, many), what) in few.into_iter().zip(many).zip(["second", "reload"]) {
        println!("{what}: {few} and {many} instructions");
        // With four times as many customers a sort does 5.1 times the work, a list for each of them 16 times.
        assert!(few > 1e5 && many < 5.5 * few, "{what}: {few} and {many} instructions");
    }
}
