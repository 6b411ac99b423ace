//! The time that hosts take to send a packet.
//!
//! If hosts take no time, the phases of flows at a queue lock, and delays down to the microsecond decide who
//! loses packets. A random time of up to one transmission at the bottleneck breaks that: S. Floyd, V.
//! Jacobson, "On Traffic Phase Effects in Packet-Switched Gateways", Internetworking: Research and Experience
//! 3(3), 1992, section 3.

use apportion_core::delivery_trace::DeliveryTrace;
use apportion_core::units::{Bytes, Rate, Span, Time};

use crate::model::{Flow, LinkId, Scenario, Setting};

impl Scenario {
    /// The maximum time that the source of `flow` takes for a packet, and its sink for an acknowledgement,
    /// over time; the first entry is the start's. The file sets it; by default it is the transmission time of
    /// a full packet, or of an acknowledgement, over the slowest link of the path at that time. A recorded
    /// link counts with the median rate of its opportunities.
    #[must_use]
    pub fn jitter(&self, flow: &Flow) -> [Vec<(Time, Span)>; 2] {
        if let Some(jitter) = flow.jitter {
            return [vec![(Time::ZERO, jitter)], vec![(Time::ZERO, jitter)]];
        }
        let (packet, answer) = (flow.transport.packet(), flow.transport.ack().unwrap_or(Bytes::ZERO));
        [self.longest_transmissions(&flow.path, packet), self.longest_transmissions(&flow.back, answer)]
    }

    /// The longest transmission over the links that have a rate, from each time at which it changes.
    fn longest_transmissions(&self, links: &[LinkId], packet: Bytes) -> Vec<(Time, Span)> {
        let at_start = |&id: &LinkId| {
            let link = &self.links[id.index()];
            (id, link.trace.as_ref().map_or(link.rate, DeliveryTrace::median_rate))
        };
        let mut rates: Vec<(LinkId, Rate)> = links.iter().map(at_start).collect();
        let longest = |rates: &[(LinkId, Rate)]| {
            let slowest = rates.iter().map(|&(_, rate)| rate).filter(|rate| *rate > Rate::ZERO).min();
            slowest.map_or(Span::ZERO, |slowest| slowest.time_for(packet))
        };
        let mut steps = vec![(Time::ZERO, longest(&rates))];
        for change in &self.changes {
            let Setting::LinkRate(changed, rate) = change.to else { continue };
            if !links.contains(&changed) {
                continue;
            }
            rates.iter_mut().filter(|(link, _)| *link == changed).for_each(|(_, is)| *is = rate);
            steps.push((change.at, longest(&rates)));
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use apportion_core::units::{Span, Time};

    #[test]
    fn hosts_take_up_to_a_packet_time_of_the_slowest_link() {
        let text = r#"
            seed = 4
            stop = "9s"
            link.access = { from = "a", to = "r", rate = "50Mbit", delay = "2ms" }
            link.bottleneck = { from = "r", to = "b", rate = "5Mbit", delay = "7ms", back = { rate = "200kbit" } }
            flow.tcp = { from = "a", to = "b", tcp = { profile = "reno-1999", segment = "1460B", header = "40B", ack = "50B" } }
            flow.udp = { from = "a", to = "b", source = { kind = "cbr", rate = "1Mbit", packet = "250B" } }
            change = [
                { at = "2s", set = "link.bottleneck.rate", to = "10Mbit" },
                { at = "8s", set = "link.bottleneck.rate", to = "0bit" },
            ]
            flow.set = { from = "a", to = "b", tcp = "rfc", jitter = "3us" }
        "#;
        let suite = crate::load(text, Path::new("x.toml"), &[], &|path| std::fs::read(path)).unwrap();
        let scenario = &suite.points[0].scenario;
        let micros = |at: u64, flow| {
            let last = |steps: Vec<(Time, Span)>| {
                steps.into_iter().rfind(|step| step.0 <= Time::from_secs(at)).unwrap().1.as_nanos() / 1_000
            };
            scenario.jitter(flow).map(last)
        };
        let all = |at| -> Vec<_> { scenario.flows.iter().map(|flow| micros(at, flow)).collect() };
        // 1500 B at 5 Mb/s take 2.4 ms, 50 B at 200 kb/s 2 ms, 250 B at 5 Mb/s 0.4 ms.
        assert_eq!(all(1), [[3, 3], [2_400, 2_000], [400, 0]]);
        // 10 Mb/s halve them; without a rate the access link is the slowest that has one.
        assert_eq!(all(2), [[3, 3], [1_200, 2_000], [200, 0]]);
        assert_eq!(all(8), [[3, 3], [240, 2_000], [40, 0]]);
    }

    #[test]
    fn jitter_before_a_recorded_link_leaves_out_its_pauses() {
        let read = |_: &Path| Ok(b"10\n20\n30\n40\n1000\n".to_vec());
        let text = r#"
            seed = 1
            stop = "50ms"
            link.x = { from = "a", to = "b", rate = { trace = "x" }, delay = "1ms" }
            flow.udp = { from = "a", to = "b", source = { kind = "cbr", rate = "20Mbit", packet = "1504B" } }
        "#;
        let suite = crate::load(text, Path::new("x.toml"), &[], &read).unwrap();
        let scenario = &suite.points[0].scenario;
        assert_eq!(scenario.jitter(&scenario.flows[0])[0], [(Time::ZERO, Span::from_millis(10))]);
    }

    #[test]
    fn a_jitter_as_long_as_the_run_is_refused() {
        let load = |jitter: &str| {
            let text = format!(
                "seed = 4\nstop = \"9s\"\nlink.x = {{ from = \"a\", to = \"b\", rate = \"5Mbit\", delay = \"7ms\" }}\n\
                 flow.tcp = {{ from = \"a\", to = \"b\", jitter = \"{jitter}\" }}"
            );
            crate::load(&text, Path::new("x.toml"), &[], &|path| std::fs::read(path))
                .map_err(|e| format!("{e:?}"))
        };
        assert!(load("8s").is_ok());
        assert!(load("9s").unwrap_err().contains("not shorter than the run"));
    }
}
