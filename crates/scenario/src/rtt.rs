//! The round-trip times of flows, as far as the scenario knows them.

use apportion_core::units::{Bytes, Rate, Span};

use crate::model::{Flow, LinkId, Scenario};

impl Scenario {
    /// The round-trip time of `flow` without queueing, at the start: as set in the file, else the link delays in
    /// both directions plus the transmission times of a full packet and its acknowledgement. Datagrams have no
    /// acknowledgements; a reply of the same size is assumed.
    ///
    /// `None` if there is no return path or a link has no rate.
    #[must_use]
    pub fn base_rtt(&self, flow: &Flow) -> Option<Span> {
        flow.rtt.or_else(|| self.path_rtt(flow))
    }

    /// Like [`base_rtt`](Self::base_rtt), for the network alone: the flow's key `rtt` does not count.
    #[must_use]
    pub fn path_rtt(&self, flow: &Flow) -> Option<Span> {
        let answer = flow.transport.ack().unwrap_or_else(|| flow.transport.packet());
        if flow.back.is_empty() {
            return None;
        }
        let there = self.path_delay(flow)?.as_nanos();
        there.checked_add(self.crossing(&flow.back, answer)?).map(Span::from_nanos)
    }

    /// The one-way delay of a full packet of `flow` without queueing, at the start: the delays of its links
    /// and the transmission times. `None` if a link has no rate.
    #[must_use]
    pub fn path_delay(&self, flow: &Flow) -> Option<Span> {
        self.crossing(&flow.path, flow.transport.packet()).map(Span::from_nanos)
    }

    /// The nanoseconds that `packet` takes over empty links, if it ever arrives.
    fn crossing(&self, links: &[LinkId], packet: Bytes) -> Option<u64> {
        links.iter().try_fold(0_u64, |time, id| {
            let link = &self.links[id.index()];
            let transmission = match &link.aggregate {
                Some(aggregate) if link.rate > Rate::ZERO => aggregate.time(1, packet, link.rate),
                _ => link.rate.time_for(packet),
            };
            let arrives = transmission < Span::MAX;
            arrives.then_some(time)?.checked_add(link.delay.as_nanos())?.checked_add(transmission.as_nanos())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Round-trip times of each flow, in microseconds.
    fn rtts(text: &str) -> Vec<Option<u64>> {
        let suite = crate::load(text, Path::new("x.toml"), &[], &|path| std::fs::read(path)).unwrap();
        let scenario = &suite.points[0].scenario;
        let micros = |rtt: Span| rtt.as_nanos() / 1_000;
        scenario.flows.iter().map(|flow| scenario.base_rtt(flow).map(micros)).collect()
    }

    const LINKS: &str = r#"
        seed = 1
        stop = "1s"
        link.access = { from = "a", to = "r", rate = "10Mbit", delay = "1ms" }
        link.bottleneck = { from = "r", to = "b", rate = "2Mbit", delay = "8ms" }
    "#;

    #[test]
    fn a_round_trip_is_delays_and_a_full_packet_there_and_an_acknowledgement_back() {
        // 1040 B take 0.832 ms at 10 Mb/s and 4.16 ms at 2 Mb/s, 40 B 0.032 ms and 0.16 ms:
        // 2 (1 + 8) + 0.832 + 4.16 + 0.032 + 0.16 = 23.184 ms. As datagrams: 2 (9 + 0.8 + 4).
        let tcp = r#"tcp = { profile = "reno-1999", segment = "1000B", header = "40B", ack = "40B" }"#;
        let flows = format!(
            r#"
                flow.said = {{ from = "a", to = "b", {tcp}, rtt = "200ms" }}
                flow.tcp = {{ from = "a", to = "b", {tcp} }}
                flow.udp = {{ from = "a", to = "b", source = {{ kind = "cbr", rate = "1Mbit", packet = "1000B" }} }}
            "#
        );
        assert_eq!(rtts(&(LINKS.to_owned() + &flows)), [Some(200_000), Some(23_184), Some(27_600)]);
    }

    #[test]
    fn there_is_none_without_a_way_back() {
        let one_way = LINKS.replace("delay = \"8ms\"", "delay = \"8ms\", back = false");
        let flow = r#"flow.udp = { from = "a", to = "b", source = { kind = "cbr", rate = "1Mbit" } }"#;
        assert_eq!(rtts(&(one_way + flow)), [None]);
    }
}
