//! Reports of an attacker downstream that no packets of a flow depart there, against that flow.

use std::net::IpAddr;

use apportion_core::packet::FlowId;
use apportion_core::random::Stream;
use apportion_runtime::sffc::{FlowReport, ManagerParams};
use apportion_scenario::gateway::classifier::Headers;

use super::*;
use crate::frame::FlowTuple;
use crate::router::frames::Hardware;
use crate::router::{Router, RouterContext};

const KEY: &str = "sixteen bytes at least";
const FLOW: [u16; 2] = [5_000, 5_004];
/// The port by which the attacker's messages leave, and the other port of a router.
const UPSTREAM: u32 = 0;
const DOWNSTREAM: u32 = 1;
const PACKETS: u64 = 1_875;
/// Offset of IPv4's hop limit in a frame.
const HOP_LIMIT: usize = 14 + 8;

/// A gateway with 20 Mb/s up, whose queue has these keys.
fn gateway(keys: &str, trust: &str) -> Bench {
    let keys = match keys {
        "insecure" => "insecure = true\n".to_owned(),
        key => {
            let digits: String = key.bytes().map(|byte| format!("{byte:02x}")).collect();
            format!("report_key = \"{digits}\"\n")
        }
    };
    let mut bench = Bench::new(&format!(
        "address = \"192.0.2.1\"\n{keys}down.rate = \"100Mbit\"\n[up]\nrate = \"20Mbit\"\noverhead = \"0B\"\n\
         queue = {{ kind = \"sffc\", trust = \"{trust}\" }}\n"
    ));
    // 15 Mb/s.
    bench.play(INSIDE, [0, 10_000], PACKETS, |_| datagram([inside(1), SERVER], FLOW, 1_000));
    bench
}

/// The flow that the attacker claims to know.
struct Claims(FlowTuple);

impl RouterContext for Claims {
    fn tuple(&self, port: u32, flow: FlowId) -> Option<FlowTuple> {
        (port == DOWNSTREAM && flow == FlowId(0)).then_some(self.0)
    }
    fn flow(&self, port: u32, tuple: &FlowTuple) -> Option<FlowId> {
        (port == DOWNSTREAM && *tuple == self.0).then_some(FlowId(0))
    }
    fn sender(&self, _port: u32, _flow: FlowId) -> Option<Hardware> {
        Some(HARDWARE[1])
    }
    fn carries(&self, _port: u32, _flow: FlowId) -> bool {
        false
    }
    fn on_report(&mut self, _port: u32, _report: FlowReport) {}
}

/// For 10 s a host outside plays a router with this key, and reports every 50 ms that no packets of the flow
/// depart. Its messages arrive with this hop limit.
fn attack(bench: &mut Bench, key: Option<&str>, hop_limit: u8) {
    let [source, destination] = [inside(1), SERVER].map(IpAddr::from);
    let headers = Headers { protocol: 17, source, destination, ports: Some((FLOW[0], FLOW[1])), dscp: 0 };
    let mut claims = Claims(FlowTuple::new(&headers).unwrap());
    let hardware = [[2, 0, 0, 0, 9, 0], [2, 0, 0, 0, 9, 1]];
    let (params, random) = (ManagerParams::default(), Stream::new(1, "attacker"));
    let mut router = Router::new([203, 0, 113, 9].into(), hardware, &params, key.map(str::as_bytes), random);
    let (arrived, interval) = (Bytes::new(93_750), Span::from_millis(50));
    let report = FlowReport { flow: FlowId(0), arrived, departed: Bytes::ZERO, interval };
    let mut seen = 0;
    for ms in (0..10_000).step_by(10) {
        bench.run(ms);
        let now = Time::from_millis(ms);
        let heard = &bench.engine.io_mut().sent[seen..];
        seen += heard.len();
        for sent in heard.iter().filter(|sent| sent.port == OUTSIDE && sent.frame[..6] == hardware[0]) {
            router.on_frame(
                now,
                UPSTREAM,
                &sent.frame,
                &frame::parse(&sent.frame).unwrap(),
                false,
                &mut claims,
            );
        }
        if ms > 100 && ms % 50 == 0 {
            router.report(now, DOWNSTREAM, &[report], &mut claims);
        }
        if router.next_timer().is_some_and(|timer| timer <= now) {
            router.on_timer(now, &mut claims);
        }
        while let Some((port, frame)) = router.transmit() {
            if port == UPSTREAM {
                bench.play(OUTSIDE, [ms, ms + 1], 1, move |_| with_hop_limit(frame.clone(), hop_limit));
            }
        }
    }
    bench.run(10_100);
}

/// The frame with another hop limit, and a matching header checksum.
fn with_hop_limit(mut frame: Vec<u8>, hop_limit: u8) -> Vec<u8> {
    let change = u16::from(frame[HOP_LIMIT] - hop_limit) << 8;
    frame[HOP_LIMIT] = hop_limit;
    // RFC 1624: what the header loses, its checksum gains, in ones' complement.
    let (sum, carry) =
        u16::from_be_bytes([frame[HOP_LIMIT + 2], frame[HOP_LIMIT + 3]]).overflowing_add(change);
    frame[HOP_LIMIT + 2..HOP_LIMIT + 4].copy_from_slice(&(sum + u16::from(carry)).to_be_bytes());
    frame
}

/// The loss of the flow from the second second on, in percent.
fn loss(bench: &mut Bench) -> f64 {
    let sent = 9 * PACKETS;
    100.0 - bench.count(OUTSIDE, FLOW[0], [1_000, 10_000]) as f64 * 100.0 / sent as f64
}

fn count(bench: &mut Bench, name: &str) -> f64 {
    let mut found = 0.0;
    let mut show = |shown, value| {
        if shown == name {
            found = value;
        }
    };
    bench.engine.world.reports_mut().unwrap().statistics(&mut show);
    found
}

#[test]
fn a_host_without_the_key_is_not_heard() {
    let mut bench = gateway(KEY, "full");
    attack(&mut bench, None, 255);
    assert_eq!((count(&mut bench, "heard"), count(&mut bench, "answers_sent")), (0.0, 0.0));
    assert!(count(&mut bench, "refused_unauthenticated") > 0.0);
    assert!(loss(&mut bench) < 0.1, "{} %", loss(&mut bench));
}

#[test]
fn who_is_not_on_the_link_is_not_heard_even_with_the_key() {
    for hop_limit in [1, 40, 254] {
        let mut bench = gateway(KEY, "full");
        attack(&mut bench, Some(KEY), hop_limit);
        assert_eq!((count(&mut bench, "heard"), count(&mut bench, "answers_sent")), (0.0, 0.0));
        assert!(count(&mut bench, "refused_hop_limit") > 0.0);
        assert!(loss(&mut bench) < 0.1, "{} %", loss(&mut bench));
    }
}

#[test]
fn what_is_heard_costs_a_flow_nothing_on_a_link_with_room() {
    for (own, other) in [("insecure", None), (KEY, Some(KEY))] {
        let mut bench = gateway(own, "bounded");
        attack(&mut bench, other, 255);
        assert!(count(&mut bench, "heard") > 100.0);
        assert!(loss(&mut bench) < 0.1, "{} %", loss(&mut bench));
    }
    // With full trust the gateway behaves as in the paper.
    let mut bench = gateway(KEY, "full");
    attack(&mut bench, Some(KEY), 255);
    assert!(loss(&mut bench) > 90.0, "{} %", loss(&mut bench));
}

#[test]
fn what_is_heard_leaves_a_flow_its_fair_share_of_a_full_link() {
    let mut bench = gateway("insecure", "bounded");
    bench.play(INSIDE, [0, 10_000], PACKETS, |_| datagram([inside(2), SERVER], [6_000, 80], 1_000));
    attack(&mut bench, None, 255);
    assert!(count(&mut bench, "heard") > 100.0);
    // 10 of 15 Mb/s, drawn at random: 11,250 of 16,875 packets, 4 sigma = 245.
    let sent = bench.count(OUTSIDE, FLOW[0], [1_000, 10_000]);
    assert!(sent > 11_000, "{sent} of 11250");
}
