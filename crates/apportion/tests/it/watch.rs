//! The page of a run agrees with its tables, and does not change its results.

#![cfg(all(feature = "live", target_os = "linux"))]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Mutex;

use apportion::{Cache, Cancel, Run, Scenario, Watch};
use serde_json::Value;

const SCENARIO: &str = r#"
    title = "two queues"
    seed = 1
    stop = "8s"
    measure_from = "2s"
    sample = "100ms"
    link.x = { from = "a", to = "b", rate = "4Mbit", delay = "5ms", loss = "0.2%", watch = true, queue = ["red", "fifo"] }
    link.y = { from = "b", to = "c", rate = "3Mbit", delay = "5ms", watch = true, queue = "fifo" }
    flow.long = { from = "a", to = "c", count = 2, tcp = "rfc" }
    flow.short = { from = "a", to = "b", source = { kind = "cbr", rate = "1Mbit" } }
    [[change]]
    at = "4050ms"
    set = "link.y.rate"
    to = "1Mbit"
"#;

fn page() -> Watch {
    let mut watch = Watch::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    watch.serve().unwrap();
    watch
}

fn stats(watch: &Watch, query: &str) -> Value {
    let mut stream = TcpStream::connect(watch.url()["http://".len()..].trim_end_matches('/')).unwrap();
    write!(stream, "GET /stats.json?{query} HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

#[test]
fn a_page_shows_what_tables_say_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path());
    let scenario = Scenario::from_text(SCENARIO).unwrap();
    let run = || Run::new(&scenario).seeds(2).cache(&cache, Cache::MOST);
    let plain = run().simulate().unwrap();
    let watch = page();
    assert_eq!(stats(&watch, "")["state"], "waiting");
    let during = Mutex::new(Vec::new());
    let look = |_| during.lock().unwrap().push(stats(&watch, ""));
    let watched = run().watch(&watch).progress(look).simulate().unwrap();
    assert_eq!(watched.reused(), 0, "it must be run to be seen");
    assert!(watched.flows().eq(plain.flows()) && watched.links().eq(plain.links()));
    assert!(watched.series().eq(plain.series()) && watched.phase_sensitivity().eq(plain.phase_sensitivity()));

    // During the run the page shows the last replication that began.
    let during = during.into_inner().unwrap();
    assert!(during.iter().all(|stats| stats["state"] == "running" && stats["replications"] == 4));
    assert_eq!(during[0]["courses"].as_array().unwrap().len(), 1);
    let all = stats(&watch, "");
    assert_eq!((&all["state"], &all["title"]), (&"ended".into(), &"two queues".into()));
    assert_eq!((&all["run"], &all["replications_done"]), (&1.into(), &4.into()));
    let courses = all["courses"].as_array().unwrap();
    let points: Vec<&str> = courses.iter().map(|course| course["point"].as_str().unwrap()).collect();
    assert_eq!(points, ["queue=red", "queue=red", "queue=fifo", "queue=fifo"]);
    assert_eq!(all["course"]["number"], 4);

    for (course, point) in [(1, "queue=red"), (3, "queue=fifo")] {
        for (link, flows) in [("x", &["long.1", "long.2", "short"][..]), ("y", &["long.1", "long.2"])] {
            let place =
                all["course"]["links"].as_array().unwrap().iter().position(|name| name == link).unwrap();
            let course = &stats(&watch, &format!("course={course}&link={place}"))["course"];
            assert_eq!((&course["point"], &course["link"]["name"]), (&point.into(), &link.into()));
            let seed: u64 = course["seed"].as_str().unwrap().parse().unwrap();
            let first = watched.flows().next().unwrap().seed;
            assert_eq!(seed, first);
            let shown = course["link"]["flows"].as_array().unwrap();
            assert_eq!(shown.len(), flows.len());
            let of_first: Vec<_> = watched.flows().filter(|row| row.seed == seed).collect();
            let all: u64 = of_first
                .iter()
                .filter(|row| row.point == point && flows.contains(&row.flow.as_str()))
                .map(|row| row.delivered_bytes)
                .sum();
            for flow in shown {
                let row = of_first
                    .iter()
                    .find(|row| row.point == point && row.flow == *flow["flow"].as_str().unwrap());
                let expected = row.unwrap().delivered_bytes as f64 / all as f64;
                let share = flow["measured_share"].as_f64().unwrap();
                assert!((share - expected).abs() < 1e-6, "{link} {flow}: {share} is not {expected}");
                let entitled = flow["measured_entitlement_bytes_per_second"].as_f64().unwrap() * 8e-6;
                let expected = row.unwrap().entitlement_mbps.unwrap();
                assert!((entitled - expected).abs() < 1e-5, "{link} {flow}: {entitled} is not {expected}");
            }
            // A table counts drops of the measured part; over the whole run there are at least as many.
            let row = watched
                .links()
                .find(|row| row.point == point && row.seed == seed && row.link == link)
                .unwrap();
            let dropped = &course["link"]["dropped_packets"];
            assert!(dropped["overflow"].as_u64().unwrap() >= row.drops_overflow, "{dropped}");
            assert!(course["link"]["lost_packets"].as_u64().unwrap() >= row.lost_packets);
        }
    }
}

#[test]
fn a_change_of_the_rate_and_the_time_in_the_queue_are_seen() {
    let scenario = Scenario::from_text(SCENARIO.replace("[\"red\", \"fifo\"]", "\"fifo\"")).unwrap();
    let watch = page();
    let results = Run::new(&scenario).watch(&watch).simulate().unwrap();
    let course = &stats(&watch, "link=1")["course"];
    let link = &course["link"];
    assert_eq!((&link["name"], &course["point_seconds"]), (&"y".into(), &0.1.into()));
    // The rate changes within an interval.
    let rate = |at: usize| link["rate_kbit_per_second"][at].as_f64().unwrap();
    assert_eq!([39, 40, 41].map(rate), [3_000.0, 2_000.0, 1_000.0]);
    // Two flows share it at the end, and the states of all links are there whichever is shown.
    assert_eq!(link["flows"][0]["entitlement_bytes_per_second"], 62_500);
    let states = course["link_states"].as_array().unwrap();
    assert_eq!((&states[0]["name"], &states[1]["name"]), (&"x".into(), &"y".into()));
    for (name, value) in states[1].as_object().unwrap() {
        assert_eq!(value, &link[name], "{name}");
    }
    let sent = link["sent_kbit_per_second"].as_array().unwrap();
    let rows = results.series().filter(|row| row.name == "y").map(|row| row.throughput_mbps * 1e3);
    assert!(sent.iter().zip(rows).all(|(sent, row)| (sent.as_f64().unwrap() - row).abs() < 0.002));
    assert_eq!(sent.len(), 80);
    // The table has the mean over all packets of the measured part; nearly all packets of this link have the
    // same size.
    let of =
        |name: &str| link[name].as_array().unwrap()[20..].iter().map(|value| value.as_f64().unwrap_or(0.0));
    let waited: f64 = of("delay_ms").zip(of("sent_kbit_per_second")).map(|(delay, sent)| delay * sent).sum();
    let mean = waited / of("sent_kbit_per_second").sum::<f64>();
    let expected = results.links().find(|row| row.link == "y").unwrap().queue_delay_mean_ms.unwrap();
    assert!(expected > 10.0 && (mean / expected - 1.0).abs() < 0.002, "{mean} ms, not {expected}");
}

#[test]
fn a_run_that_is_cancelled_is_cut_and_the_next_one_takes_its_place() {
    let scenario = Scenario::from_text(SCENARIO).unwrap();
    let watch = page();
    let cancel = Cancel::new();
    let stop = |_| cancel.cancel();
    Run::new(&scenario).watch(&watch).cancel(&cancel).progress(stop).simulate().unwrap();
    let cut = stats(&watch, "");
    assert_eq!((&cut["state"], &cut["replications_done"]), (&"cut".into(), &1.into()));
    Run::new(&scenario).watch(&watch).simulate().unwrap();
    let next = stats(&watch, "");
    assert_eq!((&next["state"], &next["run"]), (&"ended".into(), &2.into()));
    assert_eq!(next["courses"].as_array().unwrap().len(), 2);
    assert!(next["courses"][0]["number"].as_u64() > cut["courses"][0]["number"].as_u64());
}
