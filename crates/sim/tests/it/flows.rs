//! Flows: the data that sources supply to transports, and the data that arrive.

use apportion_core::units::Bytes;
use apportion_sim::{Detail, Simulation};
use apportion_testing::net::net;

use crate::common::{self, flow, link, run, scenarios, throughput};

/// Returns the completion time of the only file of flow `x`, in nanoseconds; 10 Mb/s in both directions, 10
/// ms each way.
fn took(tcp: &str, size: u64) -> u64 {
    let outcome = run(&format!(
        "
            stop = 20s
            link wire: a -> b, rate = 10Mbit, delay = 10ms
            flow x: a -> b, start = 1s, tcp = {tcp}, source = {{ kind = file, size = {size}B }}
        "
    ));
    let done = &flow(&outcome, "x").completions;
    assert_eq!((done.len(), done[0].size.get(), done[0].start.as_nanos()), (1, size, 1_000_000_000));
    done[0].took.as_nanos()
}

#[test]
fn a_file_takes_as_long_as_computed_by_hand() {
    // A segment of 1000 B with 40 B of headers takes 832 us, an acknowledgement or SYN of 40 B 32 us.
    // One segment, no handshake: 0.832 + 10 ms.
    let bare = r#"{ profile = "ns2-235", syn = false, initial_window = "2p" }"#;
    assert_eq!(took(bare, 1_000), 10_832_000);
    // The window is 2: both go at once.
    assert_eq!(took(bare, 2_000), 11_664_000);
    // Four segments: the ACK of the first one arrives at 10.832 + 0.032 + 10 = 20.864 ms and releases the
    // third and the fourth, which need another 2 * 0.832 + 10 ms.
    assert_eq!(took(bare, 4_000), 20_864_000 + 11_664_000);
    // Three would need 0.832 ms less.
    assert_eq!(took(bare, 3_000), 20_864_000 + 10_832_000);
    // A handshake comes first: SYN and SYN-ACK, 10.032 ms each.
    let syn = r#"{ profile = "ns2-235", syn = true, initial_window = "2p" }"#;
    assert_eq!(took(syn, 1_000), 2 * 10_032_000 + 10_832_000);
    assert_eq!(took(syn, 4_000), 2 * 10_032_000 + 32_528_000);
    // The size of the last segment is the rest: 10 B and headers take 40 us.
    assert_eq!(took(bare, 1_010), 832_000 + 40_000 + 10_000_000);
}

#[test]
fn short_flows_come_at_their_rate_and_each_one_completes() {
    let outcome = run("
        stop = 110s
        link wire: a -> b, rate = 100Mbit, delay = 5ms
        flow web: a -> b, tcp = rfc, stop = 100s,
            source = { kind = short_flows, per_second = 50, mean_size = 20kB, shape = exponential }
    ");
    let web = flow(&outcome, "web");
    // A Poisson number with mean 5000 and standard deviation 71; all have ten seconds to finish at the end.
    let count = web.completions.len() as u64;
    assert!(count.abs_diff(5_000) < 4 * 71, "{count}");
    let bytes: u64 = web.completions.iter().map(|completion| completion.size.get()).sum();
    assert_eq!(web.goodput, Some(Bytes::new(bytes)));
    // The mean of n exponential sizes has a standard error of 20 kB / sqrt(n).
    let mean = bytes as f64 / count as f64;
    assert!((mean - 20_000.0).abs() < 4.0 * 20_000.0 / (count as f64).sqrt(), "{mean}");
    assert!(web.completions.is_sorted_by_key(|completion| completion.start));
    // The minimum: handshake and propagation of the data, 15 ms.
    assert!(web.completions.iter().all(|completion| completion.took.as_nanos() > 15_000_000));
}

const WIRE: &str = "
    stop = 10s, sample = 1s
    link wire: a -> b, rate = 10Mbit, delay = 10ms, queue = { kind = fifo, limit = 50p }, watch = true
";

fn with(flow: &str) -> String {
    net(&format!("{WIRE}\n[flow.x]\nfrom = \"a\"\nto = \"b\"\n{flow}\n"))
}

#[test]
fn a_greedy_flow_falls_silent_at_its_stop() {
    let outcome = run(&with("tcp = \"rfc\"\nstop = \"4s\""));
    let series: Vec<u64> = flow(&outcome, "x").series.iter().map(|bytes| bytes.get()).collect();
    // A full link carries 1.25 MB per second. The part of the window that was queued at 4 s still arrives.
    assert!(series[3] > 1_100_000, "{series:?}");
    assert!(series[4] < 200_000, "{series:?}");
    assert_eq!(series[5..], [0; 5]);
    // Until the end of the run without it.
    let outcome = run(&with("tcp = \"rfc\""));
    assert!(flow(&outcome, "x").series[9].get() > 1_100_000);
}

#[test]
fn a_flow_starts_when_it_should() {
    let outcome = run(&with("tcp = \"rfc\"\nstart = \"3500ms\""));
    let series: Vec<u64> = flow(&outcome, "x").series.iter().map(|bytes| bytes.get()).collect();
    assert_eq!(series[..3], [0; 3]);
    assert!(series[3] > 0 && series[4] > series[3], "{series:?}");
    // A start between two times: different for each seed, but always within the range.
    let text = with("start = { between = [\"2s\", \"4s\"] }\nsource = { kind = \"cbr\", rate = \"1Mbit\" }");
    let scenario = scenarios(&text).pop().unwrap();
    // 125 packets a second up to 10 s.
    let sent: Vec<u64> =
        (0..20).map(|seed| flow(&common::run_with(&scenario, seed), "x").sent.packets.get()).collect();
    let (least, most) = (sent.iter().min().unwrap(), sent.iter().max().unwrap());
    assert!((750..850).contains(least) && (900..=1_000).contains(most), "{sent:?}");
}

#[test]
fn an_application_that_writes_less_than_tcp_sends_sets_the_rate() {
    let text = with(
        "tcp = { profile = \"rfc\", nagle = false }\nsource = { kind = \"cbr\", rate = \"2Mbit\", packet = \"1000B\" }",
    )
    .replace("sample", "measure_from = \"2s\"\nsample");
    let outcome = run(&text);
    // 250 writes per second for 8 s, each in a segment of its own, 1040 B including headers.
    let x = flow(&outcome, "x");
    assert_eq!(x.goodput, Some(Bytes::new(2_000_000)));
    assert_eq!((x.delivered.packets.get(), x.delivered.bytes.get()), (2_000, 2_080_000));
    assert_eq!((x.retransmits, x.timeouts), (Some(0), Some(0)));
}

#[test]
fn goodput_of_datagrams_is_what_headers_leave() {
    let outcome =
        run(&with("source = { kind = \"cbr\", rate = \"1Mbit\", packet = \"500B\" }\nstop = \"8s\""));
    let x = flow(&outcome, "x");
    // 250 per second for 8 s; IPv4 and UDP take 28 B of each.
    assert_eq!((x.delivered.packets.get(), x.delivered.bytes.get()), (2_000, 1_000_000));
    assert_eq!(x.goodput, Some(Bytes::new(2_000 * (500 - 28))));
    assert!((throughput(&outcome, "x") - 800_000.0).abs() < 1e-3);
    // 4000 bit take 0.4 ms at 10 Mb/s, plus 10 ms of propagation: the same for every packet.
    assert_eq!(x.delay.mean.as_nanos(), 10_400_000);
    assert_eq!(x.delay.count, 2_000);
}

#[test]
fn datagrams_need_no_way_back() {
    let text = with("source = { kind = \"cbr\", rate = \"1Mbit\" }\nstop = \"8s\"")
        .replace("watch = true", "watch = true\nback = false");
    let outcome = run(&text);
    assert_eq!(outcome.links.len(), 1);
    assert_eq!(flow(&outcome, "x").delivered.packets.get(), 1_000);
    assert_eq!(link(&outcome, "wire").sent.packets.get(), 1_000);
}

#[test]
fn a_congestion_control_without_its_record_is_refused() {
    let built = |profile: &str| {
        let text = format!(
            "seed = 1\nstop = \"1s\"\nlink.wire = {{ from = \"a\", to = \"b\", rate = \"10Mbit\", delay = \"10ms\" }}\n\
             flow.x = {{ from = \"a\", to = \"b\", tcp = {{ profile = \"{profile}\", algorithm = \"dctcp\" }} }}\n"
        );
        let scenario = scenarios(&text).pop().unwrap();
        Simulation::new(&scenario, 1, Detail::Counts, &mut |_| None).err().map(|error| error.to_string())
    };
    assert_eq!(built("linux"), None);
    assert_eq!(
        built("rfc").unwrap(),
        "flow `x`: the simulator has `dctcp` with `sack_recovery = \"rack\"` only, as in the profile \"linux\""
    );
}
