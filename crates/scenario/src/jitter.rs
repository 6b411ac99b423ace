//! The time that hosts take for the packets that they send.
//!
//! Where hosts take none, the phases of flows at a queue lock, and who loses packets depends on delays down to the
//! microsecond. A random time of up to one transmission at the bottleneck breaks that: S. Floyd, V. Jacobson, "On
//! Traffic Phase Effects in Packet-Switched Gateways", Internetworking: Research and Experience 3(3), 1992, section 3.

use apportion_core::units::{Bytes, Rate, Span};

use crate::model::{Flow, LinkId, Scenario, Transport};

impl Scenario {
    /// The longest time that the source of `flow` takes for a packet, and its sink for an acknowledgement: as set in the
    /// file, else the transmission time of a full packet, or of an acknowledgement, over the slowest link of its path at
    /// the start.
    #[must_use]
    pub fn jitter(&self, flow: &Flow) -> [Span; 2] {
        if let Some(jitter) = flow.jitter {
            return [jitter; 2];
        }
        let (packet, answer) = match &flow.transport {
            Transport::Tcp(tcp) => (tcp.segment + tcp.header, tcp.ack),
            Transport::Udp { packet, .. } => (*packet, Bytes::ZERO),
        };
        [self.longest_transmission(&flow.path, packet), self.longest_transmission(&flow.back, answer)]
    }

    /// Over those links that have a rate.
    fn longest_transmission(&self, links: &[LinkId], packet: Bytes) -> Span {
        let rates = links.iter().map(|link| self.links[link.index()].rate).filter(|rate| *rate > Rate::ZERO);
        rates.min().map_or(Span::ZERO, |slowest| slowest.time_for(packet))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn hosts_take_up_to_a_packet_time_of_the_slowest_link() {
        let text = r#"
            seed = 4
            stop = "9s"
            link.access = { from = "a", to = "r", rate = "50Mbit", delay = "2ms" }
            link.bottleneck = { from = "r", to = "b", rate = "5Mbit", delay = "7ms", back = { rate = "200kbit" } }
            flow.tcp = { from = "a", to = "b", tcp = { profile = "reno-1999", segment = "1460B", header = "40B", ack = "50B" } }
            flow.udp = { from = "a", to = "b", source = { kind = "cbr", rate = "1Mbit", packet = "250B" } }
            flow.set = { from = "a", to = "b", tcp = "rfc", jitter = "3us" }
        "#;
        let suite = crate::load(text, Path::new("x.toml"), &[], &|path| std::fs::read(path)).unwrap();
        let scenario = &suite.points[0].scenario;
        let micros = |flow| scenario.jitter(flow).map(|span| span.as_nanos() / 1_000);
        // 1500 B at 5 Mb/s take 2.4 ms, 50 B at 200 kb/s 2 ms, 250 B at 5 Mb/s 0.4 ms.
        let all: Vec<_> = scenario.flows.iter().map(micros).collect();
        assert_eq!(all, [[3, 3], [2_400, 2_000], [400, 0]]);
    }
}
