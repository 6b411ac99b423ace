//! Round-trip times of the kernel's TCP, as a gateway measures them.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use apportion_testing::skip;

use crate::line::Line;

/// An edge that measures, in front of a path of 10 ms up and 20 ms down.
const EDGE: &str = "inside = \"near\"\noutside = \"m1\"\ndown.rate = \"20Mbit\"\n\
    up = { rate = \"20Mbit\", queue = { kind = \"stfq\", drop = \"pfd\", thresholds = \"rtt\" } }\n";
const PATH: &str = "inside = \"m2\"\noutside = \"far\"\nup = { rate = \"100Mbit\", delay = \"10ms\" }\n\
    down = { rate = \"100Mbit\", delay = \"20ms\" }\n";
const PORT: u16 = 1_003;

/// The value of a metric of the direction up.
fn up(metrics: &str, name: &str) -> f64 {
    let start = format!("apportion_gateway_{name}{{direction=\"up\"}} ");
    metrics.lines().find_map(|line| line.strip_prefix(&start)).unwrap().parse().unwrap()
}

pub fn that_of_an_upload_is_what_its_path_has_without_the_queue() {
    if !skip::unless_judged_by_the_clock() {
        return;
    }
    let line = Line::new(EDGE, PATH);
    let listener = line.far.namespace.run(|| TcpListener::bind(("10.0.0.12", PORT)).unwrap()).unwrap();
    let sink = std::thread::spawn(move || {
        let mut all = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut all).unwrap();
        all.len()
    });
    // A second and a half at 20 Mb/s: most data wait in the edge, 30 ms and more.
    let mut source = line.near.namespace.run(|| TcpStream::connect(("10.0.0.12", PORT)).unwrap()).unwrap();
    source.write_all(&vec![7; 4_000_000]).unwrap();
    drop(source);
    assert_eq!(sink.join().unwrap(), 4_000_000);
    let [edge, path] = line.stop();
    let rtt = up(&edge, "measured_rtt_seconds");
    assert!((0.030..0.045).contains(&rtt), "{rtt}");
    assert_eq!(["measured_rtt_flows", "flows"].map(|name| up(&edge, name)), [1.0, 1.0]);
    assert_eq!(up(&path, "measured_rtt_flows"), 0.0);
}
