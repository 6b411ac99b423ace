//! The dashboard for Grafana, and the expressions of the operator's page, in a Prometheus that scrapes a
//! gateway. Grafana itself is not run.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use apportion_core::units::{Bytes, Span, Time};
use apportion_linux::clock::{Clock, pause};
use apportion_linux::netlink::Netlink;
use apportion_testing::child::Running;
use apportion_testing::skip;
use serde_json::Value;

use super::load::Busy;
use super::place::{ask, place_of};

const GATEWAY: &str = "127.0.0.1:9617";
const PROMETHEUS: u16 = 9_619;
/// Two customers behind a site that each would fill.
const PLANS: &str = "name,parent,addresses,down,up\nsite,,,8Mbit,8Mbit\nmill,site,10.0.0.1,,\n\
    bakery,site,fd00::1,,\nothers,site,,1Mbit,1Mbit\n";
const TEXT: &str = "inside = \"near\"\noutside = \"far\"\nmetrics = \"127.0.0.1:9617\"\nplans = \"plans.csv\"\n\
    up = { rate = \"8Mbit\", queue = { kind = \"htb\", discipline = \"drr\", plans = \"up\" } }\n\
    down = { rate = \"8Mbit\", queue = { kind = \"htb\", discipline = \"drr\", plans = \"down\" } }\n\
    [[rule]]\nname = \"films\"\nto_port = \"5001-5002\"\n";

/// A Prometheus that scrapes the gateway each second, ended with the test.
struct Prometheus {
    _child: Running,
}

impl Prometheus {
    fn start(folder: &Path) -> Self {
        let file = folder.join("prometheus.yml");
        let text = format!(
            "global: {{ scrape_interval: 1s }}\n\
             scrape_configs: [{{ job_name: apportion, static_configs: [{{ targets: [\"{GATEWAY}\"] }}] }}]\n"
        );
        fs::write(&file, text).unwrap();
        let mut command = Command::new("prometheus");
        command
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("series").display()))
            .arg(format!("--web.listen-address=127.0.0.1:{PROMETHEUS}"))
            .arg("--log.level=error")
            .stdout(Stdio::null());
        Self { _child: Running::start(&mut command) }
    }

    /// Answer of its API; null while it does not answer.
    fn get(path: &str) -> Value {
        let answer = ask(PROMETHEUS, path).unwrap_or_default();
        answer
            .split_once("\r\n\r\n")
            .and_then(|(_, body)| serde_json::from_str(body).ok())
            .unwrap_or_default()
    }

    /// Labels of the series that an expression selects now.
    ///
    /// # Errors
    /// Prometheus's message about the expression.
    fn query(expression: &str) -> Result<Vec<BTreeMap<String, String>>, String> {
        let coded: String = expression.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let answer = Self::get(&format!("/api/v1/query?query={coded}"));
        if answer["status"] == "error" {
            return Err(format!("{expression}: {}", answer["error"]));
        }
        let series = answer["data"]["result"].as_array().cloned().unwrap_or_default();
        Ok(series.into_iter().map(|one| serde_json::from_value(one["metric"].clone()).unwrap()).collect())
    }
}

/// Expressions of a panel with the names of their series.
struct Panel {
    title: String,
    targets: Vec<(String, String)>,
}

/// Panels of the dashboard, and the expressions of its annotations.
fn dashboard() -> (Vec<Panel>, Vec<String>) {
    let text = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../dist/grafana/apportion.json"));
    let dashboard: Value = serde_json::from_str(&text.unwrap()).unwrap();
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    let panel = |panel: &Value| {
        let targets = panel["targets"].as_array().unwrap().iter();
        let targets = targets.map(|it| (word(&it["expr"]), word(&it["legendFormat"]))).collect();
        Panel { title: word(&panel["title"]), targets }
    };
    let panels = dashboard["panels"].as_array().unwrap().iter().map(panel).collect();
    let annotations = dashboard["annotations"]["list"].as_array().unwrap().iter();
    (panels, annotations.map(|it| word(&it["expr"])).collect())
}

/// Expressions in the table of the operator's page.
fn of_operators() -> Vec<String> {
    let text = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operator.md")).unwrap();
    let (_, table) = text.split_once("| | expression |").unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| row.split('`').nth(1).unwrap().to_owned()).collect()
}

/// Fills the values of labels into a legend.
fn named(legend: &str, labels: &BTreeMap<String, String>) -> String {
    let mut name = legend.to_owned();
    for (label, value) in labels {
        name = name.replace(&format!("{{{{{label}}}}}"), value);
    }
    name
}

pub fn each_panel_of_the_dashboard_has_data_in_prometheus() {
    if !skip::unless_found(&["prometheus"]) {
        return;
    }
    let place =
        place_of(|last| vec![[10, 0, 0, last].into(), [0xfd00, 0, 0, 0, 0, 0, 0, last.into()].into()]);
    fs::write(place.folder.path().join("plans.csv"), PLANS).unwrap();
    let path = place.write(TEXT);
    let gateway = place.start(&path);
    let prometheus = Prometheus::start(place.folder.path());
    let [near, far] = &place.hosts;
    // 16 Mb/s in each direction: half of it is dropped.
    let flow = |from: &str, to: &str, port: u16| [format!("{from}:{}", port + 1_000), format!("{to}:{port}")];
    let pairs = [("10.0.0.1", "10.0.0.2"), ("[fd00::1]", "[fd00::2]")];
    let both = |from, to| [5_001, 6_001].map(|port| flow(from, to, port));
    let up = pairs.into_iter().flat_map(|(near, far)| both(near, far)).collect();
    let down =
        pairs.into_iter().zip([7_001, 8_001]).map(|((near, far), port)| flow(far, near, port)).collect();
    let loads = [Busy::datagrams(near, 2, up), Busy::datagrams(far, 4, down)];
    // The events of the annotations happen once Prometheus has read the counters at their start.
    let limit = Time::from_secs(60);
    let clock = Clock::start();
    while Prometheus::query("count_over_time(apportion_gateway_flows[1m]) >= 3").unwrap().is_empty() {
        assert!(clock.now() < limit, "Prometheus does not read the gateway");
        pause(Span::from_millis(200));
    }
    place.write(&TEXT.replace("5001-5002", "5001-5003"));
    assert_eq!(place.ask(&["reload"], &path).0, 0);
    let mut netlink = Netlink::open().unwrap();
    let index = netlink.index_of("far").unwrap();
    netlink.set_mtu(index, Bytes::new(1_400)).unwrap();
    netlink.set_down(index).unwrap();
    pause(Span::from_secs(1));
    netlink.set_up(index).unwrap();

    let label = Prometheus::get("/api/v1/label/instance/values?match[]=apportion_gateway_uptime_seconds");
    assert_eq!(label["data"], serde_json::json!([GATEWAY]));
    let filled = |text: &str| text.replace("$instance", GATEWAY).replace("$__rate_interval", "10s");
    let wait = |expression: &str| loop {
        let series = Prometheus::query(&filled(expression)).unwrap();
        if !series.is_empty() {
            return series;
        }
        assert!(clock.now() < limit, "no data: {expression}\n{}", super::place::get("/metrics"));
        pause(Span::from_millis(200));
    };
    let ((panels, annotations), table) = (dashboard(), of_operators());
    assert!(panels.len() > 10 && annotations.len() > 2 && table.len() > 3);
    for Panel { title, targets } in panels {
        let mut names = BTreeSet::new();
        for (expression, legend) in targets {
            for labels in wait(&expression) {
                let name = named(&legend, &labels);
                assert!(!name.contains("{{"), "{title}: {name}: {labels:?}");
                assert!(names.insert(name.clone()), "{title}: two lines are called {name}: {labels:?}");
            }
        }
    }
    annotations.iter().chain(&table).for_each(|expression| drop(wait(expression)));
    drop((loads, prometheus));
    gateway.stop();
}
