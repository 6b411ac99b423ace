//! Kernel queues for watched links. Without root and HTB each test is skipped with a line.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::time::{Duration, Instant};

use apportion_testing::skip;
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::common::{Run, apportion};
use crate::place::{Place, wait_for};
use crate::under_way::UnderWay;

impl Place {
    /// Runs `scenario` in the lab with the backend.
    fn lab(&self, scenario: &str, backend: &str, more: &[&str]) -> Run {
        fs::write(self.path().join("x.toml"), scenario).unwrap();
        let always = ["lab", "x.toml", "--backend", backend, "--out", backend, "--allow-late"];
        apportion(self.path(), &[&always[..], more].concat())
    }

    /// Cells of a table of the latest results in this folder, by name of the flow or link and by column.
    fn table(&self, folder: &str, table: &str) -> BTreeMap<String, BTreeMap<String, String>> {
        let run = apportion(self.path(), &["export", folder, table]);
        let mut lines = run.out.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
        let head = lines.next().unwrap();
        let name = head.iter().position(|column| column == table.trim_end_matches('s')).unwrap();
        lines.map(|cells| (cells[name].clone(), head.iter().cloned().zip(cells).collect())).collect()
    }
}

/// Makes a place, unless the test is to be skipped.
fn place() -> Option<Place> {
    let place = Place::new();
    let short = ["--quiet", "--set", "stop=60ms", "--set", "measure_from=0s"];
    let run = place.lab(CORE, "kernel", &short);
    if run.status != 0 {
        let reasons = ["EPERM", "ENOENT", "ENOSYS", "not part of this build", "Operation not permitted"];
        assert!(reasons.iter().any(|reason| run.err.contains(reason)), "{}", run.err);
        skip::because(&run.err);
        return None;
    }
    Some(place)
}

/// Whether the numbers of a run count; if not, prints a line.
fn is_valid(run: &Run) -> bool {
    assert_eq!(run.status, 0, "{}{}", run.out, run.err);
    let is_valid = !run.out.contains("NOT VALID: ");
    if !is_valid {
        println!("not valid: {}", run.out);
    }
    is_valid
}

fn number(row: &BTreeMap<String, String>, column: &str) -> f64 {
    row.get(column).unwrap_or_else(|| panic!("{column}: {row:?}")).parse().unwrap()
}

fn near(found: f64, wanted: f64, part: f64, what: &str) {
    assert!((found - wanted).abs() <= part * wanted, "{what}: {found}, not {wanted}");
}

/// Three sources of datagrams over 7 Mb/s that send more than their share, and one that sends little.
const FLOODS: &str = r#"
seed = 3
stop = "3500ms"
measure_from = "500ms"
sample = "100ms"
[link.wire]
from = "a"
to = "b"
rate = "7Mbit"
delay = "15ms"
watch = true
queue = QUEUE
[flow.little]
from = "a"
to = "b"
weight = 2
source = { kind = "cbr", rate = "500kbit", packet = "300B" }
[flow.flood]
count = 3
from = "a"
to = "b"
weight = "i"
source = { kind = "cbr", rate = "5Mbit", packet = "1000B", jitter = "5%" }
"#;

fn floods(queue: &str) -> String {
    FLOODS.replace("QUEUE", queue)
}

/// Delivered bits per second by flow.
fn rates(place: &Place, folder: &str) -> BTreeMap<String, f64> {
    let table = place.table(folder, "flows");
    table.iter().map(|(name, row)| (name.clone(), 1e6 * number(row, "throughput_mbps"))).collect()
}

#[test]
fn a_fifo_of_the_kernel_does_what_ours_does() {
    let Some(place) = place() else { return };
    let scenario = floods(r#"{ kind = "fifo", limit = "37kB" }"#);
    let runs = ["kernel", "user-space"].map(|backend| place.lab(&scenario, backend, &[]));
    let json: Value =
        serde_json::from_str(&fs::read_to_string(place.path().join("kernel/2/run.json")).unwrap()).unwrap();
    assert_eq!(json["versions"]["queues of watched links by"], "kernel", "{json}");
    // The tables are the same apart from their numbers.
    let heads = ["kernel", "user-space"].map(|folder| {
        ["flows", "links", "series"].map(|table| {
            let text = apportion(place.path(), &["export", folder, table]).out;
            (text.lines().next().unwrap().to_owned(), text.lines().count())
        })
    });
    assert_eq!(heads[0], heads[1]);
    if !runs.iter().all(is_valid) {
        return;
    }
    let [ours, theirs] = ["user-space", "kernel"].map(|folder| place.table(folder, "flows"));
    for (name, own) in &ours {
        let other = &theirs[name];
        near(number(other, "delivered_bytes"), number(own, "delivered_bytes"), 0.15, name);
        for column in ["delay_p50_ms", "delay_p95_ms"] {
            let (found, wanted) = (number(other, column), number(own, column));
            assert!((found - wanted).abs() <= (0.25 * wanted).max(3.0), "{name} {column}: {found} {wanted}");
        }
        // A full buffer takes 42 ms to send.
        assert!(number(other, "delay_p50_ms") > 45.0, "{other:?}");
    }
    let link = &place.table("kernel", "links")["wire"];
    near(number(link, "throughput_mbps"), 7.0, 0.02, "the link is full");
    let dropped: f64 = theirs.values().map(|row| number(row, "drops_overflow")).sum();
    assert!(dropped > 1_000.0 && dropped <= number(link, "drops_overflow") + 1.0, "{dropped} {link:?}");
}

#[test]
fn weights_divide_by_leaves_of_htb() {
    let Some(place) = place() else { return };
    let run = place.lab(&floods(r#"{ kind = "drr", drop = "tail", limit = "70p" }"#), "kernel", &[]);
    if !is_valid(&run) {
        return;
    }
    // `little` gets what it sends, the others 1 : 2 : 3 of the rest.
    let rates = rates(&place, "kernel");
    near(rates["little"], 0.5e6, 0.03, "little");
    for (name, part) in [("flood.1", 1.0), ("flood.2", 2.0), ("flood.3", 3.0)] {
        near(rates[name], 6.5e6 * part / 6.0, 0.05, name);
    }
}

#[test]
fn a_change_of_weight_or_rate_is_made_in_the_kernel() {
    let Some(place) = place() else { return };
    let change = r#"
        [[change]]
        at = "400ms"
        set = "flow.flood.1.weight"
        to = 4
        [[change]]
        at = "450ms"
        set = "link.wire.rate"
        to = "3500kbit"
    "#;
    let queue = r#"{ kind = "drr", drop = "tail", limit = "30p" }"#;
    let run = place.lab(&format!("{}{change}", floods(queue)), "kernel", &[]);
    if !is_valid(&run) {
        return;
    }
    let rates = rates(&place, "kernel");
    for (name, part) in [("flood.1", 4.0), ("flood.2", 2.0), ("flood.3", 3.0)] {
        near(rates[name], 3e6 * part / 9.0, 0.08, name);
    }
}

/// A flow for each of three classes; two send more than their ceilings.
const CLASSES: &str = r#"
seed = 3
stop = "3500ms"
measure_from = "500ms"
[link.wire]
from = "a"
to = "b"
rate = "7Mbit"
delay = "15ms"
watch = true
queue = { kind = "htb", discipline = "fifo", limit = "20p", class = { link = { rate = "7Mbit" }, x = { parent = "link", rate = "1Mbit", ceil = "1.5Mbit" }, y = { parent = "link", rate = "3Mbit", ceil = "7Mbit" }, rest = { parent = "link", rate = "500kbit", ceil = "800kbit", others = true } } }
[flow.above]
from = "a"
to = "b"
customer = "x"
source = { kind = "cbr", rate = "5Mbit", packet = "1000B" }
[flow.below]
from = "a"
to = "b"
customer = "y"
source = { kind = "cbr", rate = "600kbit", packet = "300B" }
[flow.other]
from = "a"
to = "b"
source = { kind = "cbr", rate = "1Mbit", packet = "700B" }
"#;

#[test]
fn classes_of_customers_have_their_rates() {
    let Some(place) = place() else { return };
    let run = place.lab(CLASSES, "kernel", &[]);
    if !is_valid(&run) {
        return;
    }
    let rates = rates(&place, "kernel");
    near(rates["above"], 1.5e6, 0.03, "a ceiling");
    near(rates["below"], 0.6e6, 0.03, "a class below its rate");
    near(rates["other"], 0.8e6, 0.03, "what has no customer");
    let other = &place.table("kernel", "flows")["other"];
    near(number(other, "drops_overflow"), 0.2e6 / 5_600.0 * 3.0, 0.25, "drops of a full leaf");
}

/// Three senders, an edge in user space that labels, and a core.
const CORE: &str = r#"
seed = 5
stop = "5s"
measure_from = "2s"
[defaults.link]
rate = "100Mbit"
delay = "1ms"
[link.in]
from = "s"
to = "edge"
[link.edge]
from = "edge"
to = "core"
queue = { kind = "csfq", role = "edge", preset = "paper" }
[link.core]
from = "core"
to = "d"
rate = "5500kbit"
delay = "9ms"
watch = true
queue = { kind = "csfq", role = "core", preset = "paper", limit = "60kB" }
[flow.udp]
count = 3
from = "s"
to = "d"
source = { kind = "cbr", rate = "1Mbit * i * i", packet = "900B", jitter = "5%" }
"#;

#[test]
fn a_core_of_the_kernel_divides_by_labels_of_an_edge() {
    let Some(place) = place() else { return };
    let run = place.lab(CORE, "kernel", &[]);
    if !is_valid(&run) {
        return;
    }
    // 1, 4 and 9 Mb/s over 5.5: entitlements of 2.25.
    let rates = rates(&place, "kernel");
    for (name, wanted) in [("udp.1", 1e6), ("udp.2", 2.25e6), ("udp.3", 2.25e6)] {
        near(rates[name], wanted, 0.12, name);
    }
    let flows = place.table("kernel", "flows");
    let early = |name: &str| number(&flows[name], "drops_early");
    assert!(early("udp.1") < 40.0 && early("udp.2") > 300.0 && early("udp.3") > 1_500.0, "{flows:?}");
    // The table of statistics has the estimate under its usual name.
    let statistics = apportion(place.path(), &["export", "kernel", "statistics"]).out;
    let alpha =
        statistics.lines().find(|line| line.contains(",alpha,")).unwrap_or_else(|| panic!("{statistics}"));
    let alpha: f64 = alpha.rsplit(',').find_map(|cell| cell.parse().ok()).unwrap();
    near(alpha, 2.25e6, 0.3, "alpha");
}

/// A customer of weight 1 with two flows and one of weight 2, an edge in user space that labels, and a core.
const CUSTOMERS: &str = r#"
seed = 6
stop = "6s"
measure_from = "2s"
[defaults.link]
rate = "100Mbit"
delay = "1ms"
[link.in]
from = "s"
to = "edge"
[link.edge]
from = "edge"
to = "core"
queue = { kind = "hcsfq", role = "edge" }
[link.core]
from = "core"
to = "d"
rate = "6Mbit"
delay = "9ms"
watch = true
queue = { kind = "hcsfq", role = "core", target_delay = "0s", credit = "0s", limit = "60kB" }
[customer.large]
weight = 2
[flow.little]
from = "s"
to = "d"
customer = "small"
source = { kind = "cbr", rate = "500kbit", packet = "900B", jitter = "5%" }
[flow.much]
from = "s"
to = "d"
customer = "small"
source = { kind = "cbr", rate = "4Mbit", packet = "900B", jitter = "5%" }
[flow.large]
from = "s"
to = "d"
customer = "large"
source = { kind = "cbr", rate = "9Mbit", packet = "900B", jitter = "5%" }
"#;

/// Floods whose packets have tickets 1 : 2 : 4.
const TICKETS: &str = r#"
seed = 7
stop = "6s"
measure_from = "2s"
[link.wire]
from = "a"
to = "b"
rate = "7Mbit"
delay = "15ms"
watch = true
queue = { kind = "tred", limit = "330kB", min_th = "30kB", max_th = "165kB" }
[flow.udp]
count = 3
from = "a"
to = "b"
tickets = "10000 * 2 ^ (i - 1)"
mark = { kind = "tickets" }
source = { kind = "cbr", rate = "5Mbit", packet = "1000B", jitter = "5%" }
"#;

/// Checks that the kernel divides `scenario` as the lab in user space and the simulator do, within the budget
/// of docs/parity.md.
fn agrees(place: &Place, scenario: &str) {
    fs::write(place.path().join("x.toml"), scenario).unwrap();
    let run =
        apportion(place.path(), &["compare", "--parity", "x.toml", "--backend", "kernel", "--allow-late"]);
    if run.out.contains("\nNOT VALID: ") {
        println!("not valid: {}", run.out);
        return;
    }
    println!("{}", run.out);
    assert!(run.status == 0 && run.out.contains(", 0 beyond it"), "{}{}", run.out, run.err);
}

#[test]
fn a_core_of_the_kernel_divides_among_customers_and_among_their_flows() {
    let Some(place) = place() else { return };
    let run = place.lab(CUSTOMERS, "kernel", &[]);
    if !is_valid(&run) {
        return;
    }
    let rates = rates(&place, "kernel");
    println!("{rates:?}");
    for (name, wanted) in [("little", 0.5e6), ("much", 1.5e6), ("large", 4e6)] {
        near(rates[name], wanted, 0.12, name);
    }
    let flows = place.table("kernel", "flows");
    let early = |name: &str| number(&flows[name], "drops_early");
    assert!(early("little") < 40.0 && early("much") > 500.0 && early("large") > 1_000.0, "{flows:?}");
    let statistics = apportion(place.path(), &["export", "kernel", "statistics"]).out;
    for name in [",alpha,", ",customers,"] {
        assert!(statistics.contains(name), "{name}: {statistics}");
    }
    agrees(&place, CUSTOMERS);
}

#[test]
fn tickets_divide_in_the_kernel() {
    let Some(place) = place() else { return };
    let run = place.lab(TICKETS, "kernel", &[]);
    if !is_valid(&run) {
        return;
    }
    let rates = rates(&place, "kernel");
    println!("{rates:?}");
    // Floods with fewer tickets lose more; one queue would give all the same. The simulator says how much.
    assert!(rates["udp.2"] > 1.5 * rates["udp.1"] && rates["udp.3"] > 2.5 * rates["udp.2"], "{rates:?}");
    near(rates.values().sum(), 7e6, 0.05, "all");
    let statistics = apportion(place.path(), &["export", "kernel", "statistics"]).out;
    for name in [",avg,", ",tickets_per_packet,"] {
        assert!(statistics.contains(name), "{name}: {statistics}");
    }
    agrees(&place, TICKETS);
}

#[test]
fn what_the_kernel_cannot_do_is_refused_in_one_line() {
    let Some(place) = place() else { return };
    let refused = |scenario: &str, part: &str| {
        let run = place.lab(&scenario.replace("3500ms", "60s"), "kernel", &[]);
        assert_eq!((run.status, run.out.as_str()), (2, ""), "{}", run.err);
        assert!(run.err.starts_with("error: x.toml: link") && run.err.contains(part), "{}", run.err);
        assert_eq!(run.err.lines().count(), 1, "{}", run.err);
    };
    let begun = Instant::now();
    for (queue, part) in [
        ("\"red\"", "link.wire.queue: the kernel backend cannot run `red`"),
        ("\"drr\"", "`lqd`"),
        ("\"fq_codel\"", "`fq_codel`"),
        ("{ kind = \"sffc\", preset = \"paper\" }", "`sffc`"),
        ("\"csfq\"", "`role` must be \"core\""),
        ("\"hcsfq\"", "`role` must be \"core\""),
        ("{ kind = \"tred\", adaptive = true }", "`adaptive` must be false"),
        ("{ kind = \"drr\", drop = \"tail\", isolate = \"source\" }", "`isolate`"),
        ("{ kind = \"fifo\", shaper = \"token_bucket\", rate = \"1Mbit\" }", "token_bucket"),
        ("{ kind = \"htb\", discipline = \"codel\" }", "`discipline` must be \"fifo\""),
    ] {
        refused(&floods(queue), part);
    }
    let fifo = floods("\"fifo\"");
    refused(&fifo.replace("watch = true", ""), "no link is watched; write watch = true");
    refused(&fifo.replace("\"7Mbit\"", "\"7kbit\""), "link.wire.rate: ");
    let change = |set: &str, to: &str| format!("{fifo}[[change]]\nat = \"1s\"\nset = \"{set}\"\nto = {to}\n");
    refused(
        &change("link.wire.queue", "\"fifo\""),
        "link.wire.queue: a queue of the kernel cannot be replaced",
    );
    refused(&change("link.wire.rate", "\"0bit\""), "link.wire.rate: ");
    let small = CORE.replace("900B", "30B").replace("1Mbit * i * i", "100kbit");
    refused(&small, "link.core.queue: packets of 30B have no room for a label");
    // The edge is watched too, and its queue cannot run in the kernel.
    refused(&CORE.replace("[link.edge]", "[link.edge]\nwatch = true"), "link.edge.queue: ");
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
}

/// Starts a long run of the lab.
fn under_way(place: &Place) -> UnderWay {
    fs::write(place.path().join("x.toml"), floods("\"fifo\"").replace("3500ms", "60s")).unwrap();
    let lab = UnderWay::start(place.path(), &["lab", "x.toml", "--backend", "kernel", "--out", "out"], "");
    assert!(!lab.namespaces.is_empty());
    // Wait until packets cross the devices of the queue.
    let devices = format!("/proc/{}/net/dev", lab.child.id());
    wait_for("nothing crosses the devices of the queue", || {
        let text = fs::read_to_string(&devices).unwrap_or_default();
        let received = text.lines().find_map(|line| line.trim().strip_prefix("queue0.out:"));
        let packets = received.and_then(|counters| counters.split_whitespace().nth(1)?.parse::<u64>().ok());
        packets.is_some_and(|packets| packets > 100)
    });
    lab
}

/// Waits until no process has one of its namespaces, so that the kernel removes them with their devices and
/// queues.
fn is_gone(lab: &UnderWay) {
    lab.is_gone();
    let devices = fs::read_to_string("/proc/net/dev").unwrap();
    assert!(!devices.contains("queue0"), "{devices}");
}

#[test]
fn nothing_is_left_of_a_lab_that_was_killed_or_interrupted() {
    let Some(place) = place() else { return };
    let mut lab = under_way(&place);
    assert_eq!(lab.child.kill().signal(), Some(9));
    is_gone(&lab);
    let mut lab = under_way(&place);
    lab.signal(Signal::SIGINT);
    assert_eq!(lab.child.wait().code(), Some(1));
    is_gone(&lab);
}

#[test]
fn the_simulator_is_compared_with_the_kernel() {
    let Some(place) = place() else { return };
    fs::write(place.path().join("x.toml"), CLASSES).unwrap();
    let run =
        apportion(place.path(), &["compare", "--parity", "x.toml", "--backend", "kernel", "--allow-late"]);
    let text = fs::read_to_string(place.path().join("results/x-parity/lab/1/run.json")).unwrap();
    assert!(text.contains("queues of watched links by"), "{}{}", run.err, text);
    if run.out.contains("\nNOT VALID: ") {
        println!("not valid: {}", run.out);
        return;
    }
    assert!(run.status == 0 && run.out.contains(", 0 beyond it"), "{}{}", run.out, run.err);
}
