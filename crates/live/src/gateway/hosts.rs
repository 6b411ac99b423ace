//! Numbers of hosts in one direction of a gateway, for queues that divide among hosts.
//!
//! Sources and destinations are numbered separately. A host that has been silent for long enough gives its
//! number to the next new one, as flows do. Flows that were not [answered](super::establishment) share host
//! 0.
//!
//! Cost: a comparison of two addresses per packet, and two hashes for a new flow; 64 bytes per host.

use std::net::IpAddr;

use apportion_core::packet::{FlowId, HostPair};
use apportion_core::units::{Span, Time};

use crate::flow_table::FlowTable;

/// Maximum of hosts at either end. Chosen: both ends together, and two for frames without hosts, are as many
/// as `fq_codel` has queues by default.
const MAX_HOSTS: usize = (1 << 15) - 2;

/// One end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// The host with this address.
    Address(IpAddr),
    /// An aggregate of flows with this number, which is a host of its own.
    Group(FlowId),
}

/// Source and destination.
pub type Ends = [End; 2];

/// Numbers of hosts, from 1 on. 0 is for flows that were not answered.
#[derive(Debug)]
pub struct HostNumbers {
    sources: FlowTable<End>,
    destinations: FlowTable<End>,
}

impl HostNumbers {
    /// Hosts of frames that belong to no flow, for example ARP: a pair of their own, so that no flood delays
    /// them.
    pub const NO_FLOW: HostPair =
        HostPair { source: MAX_HOSTS as u32 + 1, destination: MAX_HOSTS as u32 + 1 };

    /// A table without hosts; a host that has been silent for `idle` gives up its number when another needs
    /// one.
    #[must_use]
    pub fn new(idle: Span) -> Self {
        let [sources, destinations] = [(); 2].map(|()| FlowTable::new(FlowId(1), MAX_HOSTS, idle));
        Self { sources, destinations }
    }

    /// The numbers of these hosts, for a packet at `now`.
    pub fn pair(&mut self, now: Time, [source, destination]: Ends) -> HostPair {
        HostPair {
            source: self.sources.number(now, source).flow.0,
            destination: self.destinations.number(now, destination).flow.0,
        }
    }

    /// Notes a packet between these hosts. Returns whether `pair` has their numbers; if not, they need
    /// others.
    pub fn note(&mut self, now: Time, [source, destination]: Ends, pair: HostPair) -> bool {
        let has_source = self.sources.note(now, FlowId(pair.source), &source);
        self.destinations.note(now, FlowId(pair.destination), &destination) && has_source
    }

    /// Hosts give up their numbers after `idle` from now on.
    pub fn set_idle(&mut self, idle: Span) {
        self.sources.set_idle(idle);
        self.destinations.set_idle(idle);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use apportion_core::Packet as _;
    use apportion_core::packet::{Ecn, Protocol};
    use apportion_core::units::Bytes;
    use apportion_linux::pool::Pool;
    use apportion_scenario::gateway::classifier::Headers;
    use apportion_scenario::gateway::{Direction, GatewayConfig};

    use super::super::classify::{Classifier, Settings};
    use super::*;
    use crate::frame::FlowTuple;
    use crate::gateway::accounts::Accounts;
    use crate::gateway::link;
    use crate::gateway::world::GatewayWorld;
    use crate::link::{Link, SharedState};
    use crate::packet::{Description, Packet};

    fn config(queue: &str, rules: &str) -> GatewayConfig {
        let text = format!(
            "inside = \"a\"\noutside = \"b\"\nflows = 65536\nup = {{ rate = \"100Mbit\", queue = {queue} }}\n\
             down.rate = \"100Mbit\"\n{rules}"
        );
        GatewayConfig::load(&text, Path::new("x.toml")).unwrap_or_else(|problems| panic!("{problems:?}"))
    }

    fn udp(source: [u8; 4], destination: [u8; 4], ports: (u16, u16)) -> Headers {
        let [source, destination] = [source, destination].map(IpAddr::from);
        Headers { protocol: 17, source, destination, ports: Some(ports), dscp: 0 }
    }

    /// A link of a gateway with its classifier.
    struct Bench {
        world: GatewayWorld,
        link: Link,
        shared: SharedState,
    }

    impl Bench {
        fn new(config: &GatewayConfig) -> Self {
            let mut world = GatewayWorld::new(config);
            let link = link(config, Direction::Up, &mut world);
            Self { world, link, shared: SharedState::new(Pool::new(1 << 15, 1_522), 2) }
        }

        fn flows(&mut self) -> &mut Classifier {
            &mut self.world.direction_mut(Direction::Up).flows
        }

        /// Handles an answer to a packet with these headers: if that packet came, its flow is established.
        fn answer(&mut self, now: Time, headers: &Headers) {
            let (mut settings, tuple) = (Settings::new(), FlowTuple::new(headers).unwrap());
            let (down, up) = self.world.both_ways();
            let found =
                down.find(now, (tuple.reversed(), true), headers, &mut Accounts::default(), &mut settings);
            if found.is_first {
                down.note_qualified(&tuple.reversed(), up);
            }
        }

        /// Queues a packet of 1000 B with these headers, counted under `account`.
        fn enter(&mut self, now: Time, headers: &Headers, account: u32) -> FlowId {
            let mut settings = Settings::new();
            let tuple = FlowTuple::new(headers).unwrap();
            let flow =
                self.flows().find(now, (tuple, true), headers, &mut Accounts::default(), &mut settings).flow;
            for (_, flow, setting) in settings {
                self.link.set_flow(now, flow, setting, &mut self.shared);
            }
            let description = Description {
                flow,
                size: Bytes::new(1_000),
                protocol: Protocol::Udp,
                ecn: Ecn::NotEct,
                label: None,
                account,
                counts: true,
                ip: None,
                acknowledgement: 0,
            };
            let buffer = self.shared.pool.take(0).expect("a buffer");
            let packet = Packet::new((buffer, 0, 1_000), &description, 0, now);
            self.link.enter(now, packet, &mut self.shared);
            flow
        }

        /// Adds the bytes that left until `now`, by account.
        fn left(&mut self, now: Time, counts: &mut [u64; 2]) {
            while self.link.next() <= now {
                let at = self.link.next();
                if let Some(packet) = self.link.on_timer(at, &mut self.shared) {
                    counts[packet.account() as usize] += packet.size().get();
                    self.shared.pool.give_back(packet.buffer);
                }
            }
        }
    }

    /// The share of one flow that sends as fast as the link, against a host that sends twice as fast with a
    /// new tuple in each packet. The host uses 65536 ports, and forged sources if `forged`; if `answered`,
    /// 4096 ports to the same server, which answers. Measured over 130 thousand packets of the link.
    fn share_against_a_flood(queue: &str, forged: bool, answered: bool) -> f64 {
        let mut bench = Bench::new(&config(queue, ""));
        let (mut counts, mut tuple) = ([0; 2], 0_u32);
        for step in 0..130_000_u64 {
            // 1000 B take 80 us.
            let now = Time::from_nanos(80_000 * step);
            let own = udp([10, 0, 0, 1], [192, 0, 2, 1], (1, 1));
            bench.enter(now, &own, 0);
            bench.answer(now, &own);
            for _ in 0..2 {
                let [_, a, b, c] = if answered { tuple % 4_096 } else { tuple }.to_be_bytes();
                let server = [192, 0, 2, if answered { 1 } else { 2 }];
                let source = if forged { [11, a, b, c] } else { [10, 0, 0, 2] };
                let flood = udp(source, server, (u16::from_be_bytes([b, c]), a.into()));
                bench.enter(now, &flood, 1);
                if answered {
                    bench.answer(now, &flood);
                }
                tuple += 1;
            }
            bench.left(now, &mut counts);
        }
        counts[0] as f64 / (counts[0] + counts[1]) as f64
    }

    #[test]
    fn a_flood_of_forged_tuples_leaves_another_host_its_half() {
        let drr = |isolate: &str| format!("{{ kind = \"drr\", limit = \"1000p\"{isolate} }}");
        let fq_codel = "{ kind = \"fq_codel\", isolate = \"both\" }";
        for (queue, forged) in [
            (drr(", isolate = \"source\""), false),
            (drr(", isolate = \"source\""), true),
            (drr(", isolate = \"destination\""), true),
            (drr(", isolate = \"both\""), true),
            (fq_codel.to_owned(), false),
            (fq_codel.to_owned(), true),
        ] {
            let share = share_against_a_flood(&queue, forged, false);
            assert!((share - 0.5).abs() < 0.01, "{queue}, {forged}: {share}");
        }
        let without = share_against_a_flood(&drr(""), false, false);
        assert!(without < 0.05, "{without}");
    }

    #[test]
    fn a_flood_to_the_same_server_leaves_another_host_its_half() {
        for kind in ["drr", "fq_codel", "stfq"] {
            for isolate in ["source", "both"] {
                let queue = format!("{{ kind = \"{kind}\", limit = \"1000p\", isolate = \"{isolate}\" }}");
                let share = share_against_a_flood(&queue, false, true);
                assert!((share - 0.5).abs() < 0.01, "{queue}: {share}");
            }
        }
    }

    #[test]
    fn forged_flows_gain_no_hosts_by_patience() {
        // A thousand forged hosts send for 15 s without a pause, twice as fast as the link.
        let mut bench = Bench::new(&config("{ kind = \"drr\", limit = \"2000p\", isolate = \"both\" }", ""));
        let own = udp([10, 0, 0, 1], [192, 0, 2, 1], (1, 1));
        let mut counts = [0; 2];
        for step in 0..187_500_u64 {
            let now = Time::from_nanos(80_000 * step);
            bench.enter(now, &own, 0);
            bench.answer(now, &own);
            for packet in [2 * step, 2 * step + 1] {
                let [a, b] = ((packet % 1_000) as u16).to_be_bytes();
                bench.enter(now, &udp([11, 0, a, b], [192, 0, 2, 1], (1, 1)), 1);
            }
            bench.left(now, &mut counts);
            if step == 150_000 {
                counts = [0; 2];
            }
        }
        let share = counts[0] as f64 / (counts[0] + counts[1]) as f64;
        assert!((share - 0.5).abs() < 0.01, "{share}");
    }

    /// The host numbers that the link gets for the flow of these headers, if they change.
    fn pair(bench: &mut Bench, seconds: u64, headers: &Headers) -> Option<HostPair> {
        let mut settings = Settings::new();
        let tuple = FlowTuple::new(headers).unwrap();
        bench.flows().find(
            Time::from_secs(seconds),
            (tuple, true),
            headers,
            &mut Accounts::default(),
            &mut settings,
        );
        settings.into_iter().find_map(|(_, _, setting)| match setting {
            apportion_core::FlowSetting::Hosts(hosts) => Some(hosts),
            _ => None,
        })
    }

    /// Like `pair`, once the flow is established.
    fn established(bench: &mut Bench, headers: &Headers) -> Option<HostPair> {
        pair(bench, 1, headers);
        bench.answer(Time::from_secs(1), headers);
        pair(bench, 1, headers)
    }

    #[test]
    fn hosts_keep_their_numbers_and_a_group_is_a_host_of_its_own() {
        let rules = "[[rule]]\nfrom = \"10.0.0.7\"\nto_port = 22\nflows = \"one\"\n\
                     [[rule]]\nto_port = 7\nflows = \"address/32\"\n[[rule]]\nto_port = 8\nflows = \"address/24\"\n";
        let mut bench = Bench::new(&config("{ kind = \"drr\", isolate = \"both\" }", rules));
        let [x, y, z] = [[10, 0, 0, 1], [10, 0, 0, 2], [10, 0, 0, 7]];
        let server = [192, 0, 2, 1];
        let numbers = |source, destination| Some(HostPair { source, destination });
        assert_eq!(pair(&mut bench, 0, &udp(x, server, (1, 1))), None, "no answer yet");
        assert_eq!(established(&mut bench, &udp(x, server, (1, 1))), numbers(1, 1));
        assert_eq!(established(&mut bench, &udp(y, server, (1, 1))), numbers(2, 1));
        assert_eq!(established(&mut bench, &udp(x, y, (1, 1))), numbers(1, 2));
        assert_eq!(pair(&mut bench, 1, &udp(x, y, (1, 1))), None, "the link knows it");
        // The rule names one source, and its destinations are one host together.
        assert_eq!(pair(&mut bench, 1, &udp(z, server, (1, 22))), numbers(3, 3));
        assert_eq!(pair(&mut bench, 1, &udp(z, y, (1, 22))), None);
        assert_eq!(established(&mut bench, &udp(z, server, (1, 1))), numbers(3, 1));
        // Flows of one address belong to that host; a network that a rule makes one flow is a host of its
        // own.
        assert_eq!(established(&mut bench, &udp(x, server, (1, 7))), numbers(1, 4));
        assert_eq!(pair(&mut bench, 1, &udp(x, y, (1, 7))), None);
        assert_eq!(established(&mut bench, &udp(x, server, (1, 8))), numbers(4, 5));
        assert_eq!(pair(&mut bench, 1, &udp(y, server, (1, 8))), None);
    }

    #[test]
    fn a_host_that_gave_up_its_number_gets_another_one() {
        let mut hosts = HostNumbers::new(Span::from_secs(10));
        let ends = |last: u8| [last, last + 100].map(|last| End::Address([10, 0, 0, last].into()));
        let first = hosts.pair(Time::ZERO, ends(1));
        assert!(hosts.note(Time::from_secs(5), ends(1), first));
        // Host 1 has been silent for 10 s; its numbers go to the next host.
        assert_eq!(hosts.pair(Time::from_secs(15), ends(2)), first);
        assert!(!hosts.note(Time::from_secs(15), ends(1), first));
        assert_ne!(hosts.pair(Time::from_secs(15), ends(1)), first);
    }

    #[test]
    fn a_reload_that_isolates_hosts_numbers_those_that_are_there() {
        let mut bench = Bench::new(&config("\"drr\"", ""));
        let headers = udp([10, 0, 0, 1], [192, 0, 2, 1], (1, 1));
        assert_eq!(established(&mut bench, &headers), None);
        let (new, mut settings) = (config("{ kind = \"drr\", isolate = \"source\" }", ""), Settings::new());
        bench.flows().set_isolation(Time::from_secs(1), &new, &mut settings);
        assert_eq!(settings.len(), 1);
        assert_eq!(pair(&mut bench, 1, &headers), None, "the link knows it");
    }
}
