//! The CPU time and memory of simulating a scenario, estimated from its rates before anything is built.
//!
//! - Sources that write by the clock cost an event for each write, however few of these a link carries.
//! - A flow has no more packets than it writes and than the narrowest link of its path carries; flows that
//!   share a link have no more packets than the link carries. An endless TCP fills its narrowest link. Each
//!   of its packets is acknowledged.
//! - With several paths of equal cost a flow takes that of its first connection in the first replication.
//! - Memory is that of the program, of links, of flows and connections, of state that queues keep of flows,
//!   of packets on wires and in the queues of full links, and of series.
//!
//! The estimate is of the right order of magnitude: it ignores losses, timeouts and delayed acknowledgements.

use std::fmt;
use std::sync::Arc;

use apportion_core::limit::Limit;
use apportion_core::param::Heeds;
use apportion_core::units::{Bytes, Rate, Span, Time};

use crate::media::Codec;
use crate::model::{
    Cbr, Flow, Frames, LinkId, OnOff, Poisson, Scenario, Setting, ShortFlows, Source, Start, Transport, Video,
};
use crate::tcp::SackRecovery;

/// Packet-hops and writes per second of CPU time. `docs/performance.md` measures 3 to 54 million.
/// Chosen: a slow machine, and disciplines that cost more than a FIFO.
const PER_SECOND: f64 = 4e6;
/// Bytes of the program with its catalogue, before it has a scenario, and of a link; both measured with one
/// flow, on one link and on a fat tree of 1,536.
const PROGRAM: f64 = 14e6;
const PER_LINK: f64 = 2.9e3;
/// Bytes of a connection with its flow's entries in the scenario and in results, which are more than half of
/// it (`docs/performance.md`).
const PER_CONNECTION: f64 = 2.4e3;
/// Bytes of the state of RACK and CUBIC per connection, in addition (`docs/performance.md`).
const PER_RACK: f64 = 1.3e3;
/// Bytes of a packet on a wire or in a queue: a handle of 16 bytes and a body of 64
/// (`crates/sim/src/packet.rs`), in tables that grow by doubling.
const PER_PACKET: f64 = 100.0;
/// Maximum backlog of a full link, in seconds at its rate: the buffers of queues that set none, and more than
/// an AQM lets wait.
const FULL_QUEUE: f64 = 0.1;
/// Bytes of a sample of a flow or a link, at the peak, when the report draws it and the tables are written.
/// Measured with `apportion run`, 2,000 flows and 1,000 and 3,000 samples of each: 250 to 253.
const PER_SAMPLE: f64 = 250.0;
/// Bytes per flow in a queue that divides among flows (the largest: `fq_codel`, 128 bytes), in tables as long
/// as the largest number of a flow over the link.
const PER_SLOT: f64 = 128.0;
/// Bytes of queues' tables above which they are rarely in a cache. Chosen: the last level of a common
/// processor.
const CACHE: f64 = 32e6;
/// Packets per second of CPU time through queues whose tables exceed that. Measured on a fat tree of 1,536
/// links with 5,000 flows: `fq_codel` with tables of 640 MB takes 0.8 us more for a packet than a FIFO.
const FAR_PER_SECOND: f64 = 1.25e6;
/// Samples that are taken, written and drawn per second of CPU time; in the same runs 0.71 to 0.78 million.
const SAMPLES_PER_SECOND: f64 = 7e5;
/// Flows up to which samples are kept for each flow.
const SAMPLED_FLOWS: usize = 2_000;

/// The cost of one replication, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Transmissions of packets over all links.
    pub hops: f64,
    /// Transmissions among these from queues whose tables of flows exceed the cache.
    pub far: f64,
    /// Writes of sources.
    pub writes: f64,
    /// Samples of flows and links in series.
    pub samples: f64,
    /// Memory of one replication, bytes, with its results and report.
    pub memory: f64,
}

impl Estimate {
    /// CPU time, s.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        (self.hops + self.writes) / PER_SECOND + self.far / FAR_PER_SECOND + self.samples / SAMPLES_PER_SECOND
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = match self.seconds() {
            s if s < 1.0 => "less than a second".to_owned(),
            s if s < 120.0 => format!("some {} s", rounded(s)),
            s if s < 7_200.0 => format!("some {} minutes", rounded(s / 60.0)),
            s if s < 172_800.0 => format!("some {} hours", rounded(s / 3_600.0)),
            s => format!("some {} days", rounded(s / 86_400.0)),
        };
        write!(
            f,
            "{time} of CPU time ({} packets, writes and samples) and ",
            rounded(self.hops + self.writes + self.samples)
        )?;
        match self.memory / 1e6 {
            mega if mega < 1e3 => write!(f, "{} MB of memory", rounded(mega)),
            mega => write!(f, "{} GB of memory", rounded(mega / 1e3)),
        }
    }
}

/// Rounded to two digits, because it is an estimate.
fn rounded(number: f64) -> String {
    match number {
        n if n >= 1e6 => format!("{n:.0e}"),
        n if n >= 10.0 => format!("{n:.0}"),
        n => format!("{n:.1}"),
    }
}

/// Packets of sources without congestion control that reach a link: what it does not carry waits, up to the limit of its queue.
#[derive(Clone, Copy, Default)]
struct Flood {
    /// Of all flows.
    offered: f64,
    /// More than the link carries while the flow sends, even if the flow is alone.
    alone: f64,
}

impl Flood {
    fn backlog(self, carried: f64) -> f64 {
        self.alone.max(self.offered - carried)
    }
}

impl Scenario {
    /// The cost of one replication in the simulator.
    #[must_use]
    pub fn estimate(&self) -> Estimate {
        let rates = self.highest_rates();
        let whole = self.stop.since(Time::ZERO).as_secs_f64().max(f64::MIN_POSITIVE);
        let samples = self.samples(whole);
        let mut all = Estimate { samples, memory: PROGRAM + samples * PER_SAMPLE, ..Estimate::default() };
        all.memory += self.links.len() as f64 * PER_LINK;
        // The offered load of flows: over each link, in bits and in packets, and of each flow in packets.
        let mut loads = vec![0.0; self.links.len()];
        let mut counts = vec![0.0; self.links.len()];
        let mut floods = vec![Flood::default(); self.links.len()];
        // The largest number of a flow over each link whose queue divides among flows.
        let mut slots: Vec<Option<usize>> = vec![None; self.links.len()];
        let keeps: Vec<bool> = self.links.iter().map(|link| link.queue.may_heed(Heeds::Weight)).collect();
        let mut wanted = Vec::with_capacity(self.flows.len());
        for (at, flow) in self.flows.iter().enumerate() {
            let (Start::At(start) | Start::Between(start, _)) = flow.start;
            let lasts = flow.stop.unwrap_or(self.stop).min(self.stop).since(start).as_secs_f64();
            let sent = self.sent(at, flow, lasts);
            all.writes += sent.writes;
            let has_rack = match &flow.transport {
                Transport::Tcp(tcp) => tcp.sack_recovery == SackRecovery::Rack,
                Transport::Quic(_) | Transport::Stack(_) => true,
                Transport::Udp { .. } => false,
            };
            if let Transport::Stack(params) = &flow.transport {
                all.memory += sent.connections * params.stack().sizes().memory.get() as f64;
            }
            all.memory += sent.connections * (PER_CONNECTION + if has_rack { PER_RACK } else { 0.0 });
            let size = bits(flow.transport.packet());
            // The backlog at the stop of the source leaves by the end.
            let time = self.stop.since(start).as_secs_f64();
            // Connections spread over a group of links, and so do flows.
            let equal = |link: &LinkId| self.choices(flow, link).len() as f64;
            let most = |link: &LinkId| rates[link.index()] * equal(link).min(sent.connections) * time / size;
            let route = self.route(flow, &flow.path, 0, self.seed);
            let packets = route.iter().map(most).fold(sent.packets, f64::min);
            for link in route.iter() {
                loads[link.index()] += packets * size / equal(link);
                counts[link.index()] += packets / equal(link);
            }
            if matches!(flow.transport, Transport::Udp { .. }) {
                let mut packets = sent.packets;
                for link in route.iter() {
                    let (offered, carried) = (packets / equal(link), most(link) / equal(link));
                    floods[link.index()].offered += offered;
                    floods[link.index()].alone += (offered - carried).max(0.0);
                    packets = packets.min(most(link));
                }
            }
            let back = if flow.transport.is_acknowledged() {
                self.route(flow, &flow.back, 0, self.seed)
            } else {
                Arc::default()
            };
            let keeping = route.iter().chain(back.iter()).filter(|link| keeps[link.index()]);
            keeping.for_each(|link| slots[link.index()] = Some(at));
            wanted.push((packets, route, back));
        }
        let tables = slots.iter().flatten().map(|last| (last + 1) as f64 * PER_SLOT).sum::<f64>();
        all.memory += tables;
        for (at, link) in self.links.iter().enumerate() {
            // A single flow that fills the link counts like many.
            let is_full = loads[at] > 0.99 * rates[at] * whole;
            // Packets of the mean size.
            let carried = rates[at] * counts[at] / loads[at].max(1.0);
            let queue = if is_full { carried * FULL_QUEUE } else { 0.0 };
            let holds = queue.max(floods[at].backlog(carried * whole));
            let limit = match link.queue.limit_at(link.rate) {
                Some(Limit::Packets(limit)) => limit.get() as f64,
                Some(Limit::Bytes(limit)) => bits(limit) * counts[at] / loads[at].max(1.0),
                None => f64::INFINITY,
            };
            all.memory += holds.min(limit) * PER_PACKET;
        }
        for (wanted, route, back) in wanted {
            let share = |link: &LinkId| rates[link.index()] * whole / loads[link.index()].max(1.0);
            let packets = wanted * route.iter().map(share).fold(1.0, f64::min);
            all.hops += packets * (route.len() + back.len()) as f64;
            if tables > CACHE {
                let far = route.iter().chain(back.iter()).filter(|link| keeps[link.index()]);
                all.far += packets * far.count() as f64;
            }
            let delay: f64 = route.iter().map(|link| self.links[link.index()].delay.as_secs_f64()).sum();
            all.memory += packets * (delay / whole).min(1.0) * PER_PACKET;
        }
        all
    }

    /// The highest rate that each link has at any time, bit/s.
    fn highest_rates(&self) -> Vec<f64> {
        let mut rates: Vec<f64> = self.links.iter().map(|link| bit(link.rate)).collect();
        for change in &self.changes {
            if let Setting::LinkRate(link, rate) = &change.to {
                let highest = &mut rates[link.index()];
                *highest = highest.max(bit(*rate));
            }
        }
        rates
    }

    /// Amount that the source of the flow at this index sends within `seconds`.
    fn sent(&self, at: usize, flow: &Flow, seconds: f64) -> Sent {
        let segment = flow.transport.segment();
        let changed = self.changes.iter().filter_map(|change| match change.to {
            Setting::FlowRate(flow, rate) if flow == at => Some(bit(rate)),
            _ => None,
        });
        let highest = |rate: &Rate| changed.fold(bit(*rate), f64::max);
        let packets = |size: Bytes| (bits(size) / bits(segment)).ceil();
        let paced = |writes: f64, size: Bytes| (writes, writes * packets(size));
        let each = f64::from(flow.connections);
        let (connections, (writes, packets)) = match &flow.source {
            Source::Greedy => (each, (0.0, f64::INFINITY)),
            Source::File(file) => (each, (0.0, packets(file.size))),
            Source::Cbr(Cbr { rate, packet, .. }) | Source::Poisson(Poisson { rate, packet }) => {
                (each, paced(highest(rate) / bits(*packet) * seconds, *packet))
            }
            Source::OnOff(OnOff { rate, packet, on, off }) => {
                let (on, off) = (on.mean.as_secs_f64(), off.mean.as_secs_f64());
                let share = if on + off > 0.0 { on / (on + off) } else { 1.0 };
                (each, paced(highest(rate) / bits(*packet) * seconds * share, *packet))
            }
            Source::ShortFlows(ShortFlows { per_second, sizes }) => {
                let count = per_second * seconds;
                (count, (0.0, count * packets(Bytes::new(sizes.mean().round() as u64))))
            }
            Source::Web(web) => {
                let pages = web.population() * seconds / web.think.as_secs_f64();
                let count = web.population() * f64::from(web.parallel);
                (count, (0.0, pages * packets(Bytes::new(web.page().round() as u64))))
            }
            Source::Video(Video { fps, frames, .. }) => {
                let size = match frames {
                    Frames::Trace(sizes) => {
                        let all: u64 = sizes.iter().map(|size| size.get()).sum();
                        Bytes::new(all.div_ceil(sizes.len().max(1) as u64))
                    }
                    Frames::Gop { mean } => mean.bytes_in(Span::from_secs_f64(1.0 / fps.max(1e-3))),
                };
                (each, paced(fps * seconds, size))
            }
            Source::Dash(dash) => {
                let most = dash.ladder.last().map_or(Bytes::ZERO, |rate| rate.bytes_in(dash.segment));
                let segments = seconds / dash.segment.as_secs_f64();
                (each, (segments, segments * packets(most)))
            }
            Source::Voice(voice) => (each, paced(seconds / Codec::FRAME.as_secs_f64(), voice.codec.packet())),
            Source::Call(call) => {
                let interval = call.interval();
                (each, paced(seconds / interval.as_secs_f64(), call.max.bytes_in(interval)))
            }
            Source::Replay { packets } => (each, paced(packets.len() as f64, segment)),
        };
        let times = if flow.source.opens_connections() { 1.0 } else { each };
        Sent { connections, writes: writes * times, packets: packets * times }
    }

    /// The number of samples of flows, if they are kept, and of links.
    fn samples(&self, seconds: f64) -> f64 {
        let flows = if self.flows.len() <= SAMPLED_FLOWS { self.flows.len() } else { 0 };
        let watched = self.links.iter().filter(|link| link.watched).count();
        let interval = self.sample.as_secs_f64();
        if interval > 0.0 { (flows + watched) as f64 * seconds / interval } else { 0.0 }
    }
}

/// The load of a source.
struct Sent {
    connections: f64,
    writes: f64,
    packets: f64,
}

fn bit(rate: Rate) -> f64 {
    rate.as_bit() as f64
}

/// At least one, so that rates can be divided by it.
fn bits(size: Bytes) -> f64 {
    size.bits().max(1) as f64
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn estimate(flows: &str) -> Estimate {
        let text = format!(
            r#"
            seed = 1
            stop = "20s"
            link.first = {{ from = "a", to = "m", rate = "100Mbit", delay = "1ms" }}
            link.second = {{ from = "m", to = "b", rate = "6Mbit", delay = "10ms" }}
            {flows}
            "#
        );
        let suite = crate::load(&text, Path::new("x.toml"), &[], &|path| std::fs::read(path)).unwrap();
        suite.points[0].scenario.estimate()
    }

    #[test]
    fn datagrams_cost_a_write_each_and_what_links_carry() {
        // 3 Mb/s of 750 bytes from 4 s to 14 s: 5000 datagrams over two links.
        let flow = |rate| {
            format!(
                r#"flow.x = {{ from = "a", to = "b", start = "4s", stop = "14s", source = {{ kind = "cbr", rate = "{rate}", packet = "750B" }} }}"#
            )
        };
        let slow = estimate(&flow("3Mbit"));
        assert_eq!((slow.writes, slow.hops), (5_000.0, 10_000.0));
        // 9e17 b/s: that many writes, and 6 Mb/s of packets in 16 s on each link.
        let fast = estimate(&flow("900000000Gbit"));
        assert_eq!((fast.writes, fast.hops), (1.5e15, 32_000.0));
        assert!(fast.seconds() > 1e8, "{fast}");
    }

    #[test]
    fn tcp_fills_its_narrowest_link_and_its_acknowledgements_come_back() {
        let flows = |count: u32| {
            format!(
                r#"flow.x = {{ count = {count}, from = "a", to = "b", tcp = {{ profile = "rfc", segment = "960B", header = "40B" }} }}"#
            )
        };
        // 750 packets a second for 20 s over four links, with any number of flows.
        let one = estimate(&flows(1));
        assert_eq!((one.writes, one.hops), (0.0, 60_000.0));
        let many = estimate(&flows(1_000));
        assert!((many.hops - 60_000.0).abs() < 1.0, "{many:?}");
        // With this many flows none has samples. Each flow with Linux TCP keeps state of outstanding packets.
        let crowd = flows(4_000);
        let each = |text: &str| (estimate(text).memory - PROGRAM) / 4_000.0;
        let (reno, linux) = (each(&crowd), each(&crowd.replace("rfc", "linux")));
        assert!((2_000.0..3_000.0).contains(&reno) && (3_000.0..4_500.0).contains(&linux), "{reno} {linux}");
    }

    #[test]
    fn a_change_of_rate_and_files_count() {
        let file = estimate(
            r#"flow.x = { from = "a", to = "b", tcp = { profile = "rfc", segment = "1000B" }, source = { kind = "file", size = "9500B" } }"#,
        );
        assert_eq!(file.hops, 40.0);
        let changed = estimate(
            r#"flow.x = { from = "a", to = "b", source = { kind = "cbr", rate = "1Mbit", packet = "1250B" } }
            [[change]]
            at = "5s"
            set = "flow.x.rate"
            to = "4Mbit""#,
        );
        assert_eq!(changed.writes, 8_000.0);
    }

    #[test]
    fn samples_of_up_to_2000_flows_are_most_of_the_memory_of_long_series() {
        let with = |count: u32, sample: &str| {
            estimate(&format!(
                r#"sample = "{sample}"
                flow.x = {{ count = {count}, from = "a", to = "b", source = {{ kind = "cbr", rate = "1kbit" }} }}"#
            ))
        };
        // 2000 samples of each flow in 20 s; no link is watched.
        let (many, more) = (with(2_000, "10ms"), with(2_001, "10ms"));
        assert_eq!((many.samples, more.samples), (2_000.0 * 2_000.0, 0.0));
        assert!((0.9e9..1.1e9).contains(&many.memory) && many.seconds() > 5.0, "{many}");
        assert!(more.memory < PROGRAM + 2e7, "{more}");
    }

    #[test]
    fn packets_wait_in_the_queues_of_full_links_up_to_their_limits() {
        let with = |limit: &str, source: &str| {
            estimate(&format!(
                r#"defaults.link.queue = {{ kind = "fifo", limit = "{limit}" }}
                flow.x = {{ from = "a", to = "b", tcp = {{ profile = "rfc", segment = "1210B", header = "40B" }}, source = {source} }}"#
            ))
            .memory
        };
        let (greedy, file) = (r#"{ kind = "greedy" }"#, r#"{ kind = "file", size = "10kB" }"#);
        // The link of 6 Mb/s is full, and its 100 ms are 60 packets of 1,250 bytes; the other is not, and
        // with a file neither is.
        let one = with("1p", greedy);
        for (limit, packets) in [("10p", 10.0), ("12500B", 10.0), ("10000p", 60.0)] {
            let more = with(limit, greedy) - one;
            assert!((more / PER_PACKET - (packets - 1.0)).abs() < 0.1, "{limit}: {more}");
        }
        assert_eq!(with("10000p", file), with("1p", file));
    }

    #[test]
    fn what_a_flood_sends_too_much_waits_up_to_the_limit() {
        let with = |limit: &str, rate: &str, stop: &str| {
            estimate(&format!(
                r#"defaults.link.queue = {{ kind = "fifo", limit = "{limit}" }}
                flow.x = {{ from = "a", to = "b", stop = "{stop}", source = {{ kind = "cbr", rate = "{rate}", packet = "125B" }} }}"#
            ))
            .memory
        };
        // 20 s of 106 Mb/s: both links hold what they do not carry, and the second carries 6 Mb/s.
        let waits = |limit, rate, stop| (with(limit, rate, stop) - with("1p", rate, stop)) / PER_PACKET + 1.0;
        for (limit, rate, stop, packets) in [
            ("100000000p", "106Mbit", "20s", 2e6),
            ("1000p", "106Mbit", "20s", 2e3),
            ("125kB", "106Mbit", "20s", 2e3),
            ("100000000p", "106Mbit", "5s", 4.1e5),
            ("100000000p", "5Mbit", "20s", 1.0),
        ] {
            let waits = waits(limit, rate, stop);
            assert!((waits / packets - 1.0).abs() < 0.01, "{limit} {rate} {stop}: {waits}");
        }
    }

    #[test]
    fn fair_queues_keep_a_table_of_flows_on_each_link() {
        let with = |queue: &str, flows: u32| {
            estimate(&format!(
                r#"defaults.link = {{ queue = "{queue}", back = {{ queue = "{queue}" }} }}
                flow.x = {{ count = {flows}, from = "a", to = "b", tcp = "rfc" }}"#
            ))
        };
        // Four directions of links, and the same packets.
        for flows in [100, 80_000] {
            let (fifo, fair) = (with("fifo", flows), with("fq_codel", flows));
            assert_eq!(fair.memory - fifo.memory, 4.0 * f64::from(flows) * 128.0);
            // 100 flows fit a cache; 41 MB do not.
            assert_eq!((fair.far, fair.hops), (if flows > 100 { fair.hops } else { 0.0 }, fifo.hops));
        }
    }

    #[test]
    fn it_is_said_in_units_that_people_read() {
        let said = |hops, memory| Estimate { hops, memory, ..Estimate::default() }.to_string();
        assert_eq!(
            said(6e6, 4e6),
            "some 1.5 s of CPU time (6e6 packets, writes and samples) and 4.0 MB of memory"
        );
        assert_eq!(
            said(4e6 * 86_400.0 * 30.0, 3.5e9),
            "some 30 days of CPU time (1e13 packets, writes and samples) and 3.5 GB of memory"
        );
    }
}
