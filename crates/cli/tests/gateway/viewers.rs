//! Cost of viewers of the page to the gateway.

use std::fs;
use std::path::Path;

use apportion_core::units::{Span, Time};
use apportion_linux::clock::{Clock, pause};
use apportion_linux::host::Host;
use serde_json::Value;

use super::load::Busy;
use super::place::{Gateway, get, place};

const VIEWERS: usize = 5;
/// Maximum cost, as a fraction of what forwarding takes.
const LIMIT: f64 = 0.02;
/// Length of a measurement: ten polls of the page.
const LENGTH: Span = Span::from_secs(10);
/// Measurements without and with viewers, alternating.
const PAIRS: usize = 4;
/// Flows in each direction: as many as the page can show.
const FLOWS: u16 = 16;
const TEXT: &str = "inside = \"near\"\noutside = \"far\"\nmetrics = \"127.0.0.1:9617\"\n\
    up = { rate = \"100Mbit\", queue = \"drr\" }\ndown = { rate = \"100Mbit\", queue = \"drr\" }\n\
    [[rule]]\nname = \"even\"\nweight = 2\nto_port = \"5000-5007\"\n[[rule]]\nname = \"others\"\n";

/// Sends datagrams of all flows from one host to the other: 32 Mb/s.
fn load(host: &Host, from: &str, to: &str) -> Busy {
    let flow = |port| [from, to].map(|address| format!("{address}:{port}"));
    Busy::datagrams(host, 1, (5_000..5_000 + FLOWS).map(flow).collect())
}

/// A viewer that opens the page and polls as often as the page does.
fn viewer() -> Busy {
    for path in ["/", "/history"] {
        assert!(get(path).starts_with("HTTP/1.0 200 "));
    }
    Busy::every(Span::ZERO, None, || {
        let up = stats()["uptime_seconds"].as_f64().unwrap();
        let wait = (1_300 - (up * 1e3) as u64 % 1_000) % 1_000;
        pause(Span::from_millis(if wait < 200 { wait + 1_000 } else { wait }));
    })
}

fn stats() -> Value {
    let answer = get("/stats.json");
    assert!(answer.starts_with("HTTP/1.0 200 "), "{answer}");
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

/// CPU time in seconds of the thread that forwards packets and of the one that serves the page, and frames
/// sent.
#[derive(Clone, Copy, Debug)]
struct Spent {
    moving: f64,
    serving: f64,
    frames: f64,
}

impl Spent {
    fn now(gateway: &Gateway) -> Self {
        let process = gateway.child.id().as_raw();
        let tasks = format!("/proc/{process}/task");
        let seconds = |task: &Path| {
            let text = fs::read_to_string(task.join("schedstat")).unwrap();
            text.split_whitespace().next().unwrap().parse::<f64>().unwrap() * 1e-9
        };
        let control = fs::read_dir(&tasks)
            .unwrap()
            .map(|task| task.unwrap().path())
            .find(|task| fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == "control"));
        let moving = seconds(&Path::new(&tasks).join(process.to_string()));
        let serving = seconds(&control.unwrap());
        let stats = stats();
        let sent = |name: &str| stats["interfaces"][name]["sent_frames"].as_f64().unwrap();
        Self { moving, serving, frames: sent("near") + sent("far") }
    }

    /// Difference to `before` with this number of viewers.
    fn during(gateway: &Gateway, viewers: usize) -> Self {
        let _viewers: Vec<_> = (0..viewers)
            .map(|_| {
                // The viewers do not start at the same moment.
                pause(Span::from_millis(170));
                viewer()
            })
            .collect();
        let before = Self::now(gateway);
        pause(LENGTH);
        let after = Self::now(gateway);
        Self {
            moving: after.moving - before.moving,
            serving: after.serving - before.serving,
            frames: after.frames - before.frames,
        }
    }

    /// Nanoseconds per frame.
    fn per_frame(self, seconds: f64) -> f64 {
        seconds * 1e9 / self.frames
    }
}

/// Not part of each run of the tests: it takes a minute and a half.
pub fn five_viewers_cost_less_than_2_percent_of_forwarding() {
    let place = place();
    let gateway = place.start(&place.write(TEXT));
    let [near, far] = &place.hosts;
    let _up = load(near, "10.0.0.1", "10.0.0.2");
    let _down = load(far, "10.0.0.2", "10.0.0.1");
    let clock = Clock::start();
    while !get("/stats.json").contains("\"active_flows\": 16") {
        assert!(clock.now() < Time::from_secs(20), "{}", get("/stats.json"));
        pause(Span::from_millis(100));
    }
    let (mut costs, mut ratios) = (Vec::new(), Vec::new());
    println!("ns of processor time a frame, moving + serving, without and with {VIEWERS} viewers:");
    for _ in 0..PAIRS {
        let [without, with] = [0, VIEWERS].map(|viewers| Spent::during(&gateway, viewers));
        let [own, both] =
            [without, with].map(|spent| [spent.moving, spent.serving].map(|it| spent.per_frame(it)));
        let cost = (both[1] - own[1]) / own[0];
        let ratio = both.iter().sum::<f64>() / own.iter().sum::<f64>();
        println!(
            "{:.0} + {:.1}, {:.0} + {:.1}: {:.2} % by what serves, {:+.2} % in all; {:.3} % of a processor; {:.0} frames/s",
            own[0],
            own[1],
            both[0],
            both[1],
            100.0 * cost,
            100.0 * (ratio - 1.0),
            100.0 * with.serving / LENGTH.as_secs_f64(),
            with.frames / LENGTH.as_secs_f64()
        );
        costs.push(cost);
        ratios.push(ratio);
    }
    let median = |values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values.iter().skip((PAIRS - 1) / 2).take(2).sum::<f64>() / 2.0
    };
    let (cost, ratio) = (median(&mut costs), median(&mut ratios));
    println!("medians: {:.2} % by what serves, {:+.2} % in all", 100.0 * cost, 100.0 * (ratio - 1.0));
    gateway.stop();
    assert!(cost < LIMIT, "{costs:?}");
}
