//! Memory that is asked for before it is needed.
//!
//! With many connections, what a packet touches of its own is in no cache, and the processor would wait for one line after the
//! other. What comes next is known: the packets behind the one that arrives over a wire, those that wait in a FIFO, and the timers
//! of the current millisecond. Each is looked at twice: first its connection, its body and its counts are asked for, and a little later,
//! when the connection is there, the end of the TCP that will receive it. None of this changes a result.

use std::slice::from_ref;

use apportion_core::Packet as _;
use apportion_core::packet::FlowId;
use apportion_core::queue::Queue as _;
use prefetch_index::prefetch_index;

use crate::connection::Carrier;
use crate::events::Event;
use crate::packet::{Direction, Packet};
use crate::simulation::Simulation;

/// With fewer connections, most of what a packet touches is in some cache, and looking ahead costs more than it brings. Chosen: 7 MB of them
/// and of their packets. With 3,500 it took a tenth longer where a core has a cache of 2 MB.
const MANY: usize = 10_000;
/// How many others come before the one whose connection is asked for, and before the one whose TCP is. Chosen: a miss takes about as long
/// as a packet.
const FAR: usize = 4;
const NEAR: usize = 1;
/// Bytes of a cache line.
const LINE: usize = 64;

/// Asks the caches for all of `value`.
#[inline(always)]
fn prefetch<T>(value: &T) {
    // The crate counts from the beginning of a slice and takes any index.
    const HERE: &[u8] = &[];
    let first = from_ref(value).as_ptr().addr() & !(LINE - 1);
    let end = from_ref(value).as_ptr().addr() + size_of::<T>();
    for line in (first..end).step_by(LINE) {
        prefetch_index(HERE, line.wrapping_sub(HERE.as_ptr().addr()));
    }
}

impl Simulation<'_> {
    /// Whether looking ahead pays. Not where connections share ids: which one a packet belongs to is then in its body.
    pub(crate) fn has_many_connections(&self) -> bool {
        self.connections.len() >= MANY && !self.ids_are_shared
    }

    /// A packet arrives over `link`: others follow on its wire.
    #[inline(never)]
    pub(crate) fn look_along_wire(&self, link: u32) {
        let link = &self.links[link as usize];
        if let Some(sent) = link.on_wire_after(FAR) {
            self.prefetch_of(sent.packet);
        }
        if let Some(sent) = link.on_wire_after(NEAR) {
            self.prefetch_end_of(sent.packet);
        }
    }

    /// A packet has left the queue of `link`: others follow.
    #[inline(never)]
    pub(crate) fn look_into_queue(&self, link: u32) {
        let queue = self.links[link as usize].state.queue();
        if let Some(&packet) = queue.upcoming(FAR) {
            self.prefetch_of(packet);
        }
        if let Some(&packet) = queue.upcoming(NEAR) {
            self.prefetch_end_of(packet);
        }
    }

    /// A timer expires or a connection starts: others follow.
    #[inline(never)]
    pub(crate) fn look_at_timers(&self) {
        if let Some(Event::Timer(index) | Event::Start(index)) = self.shared.events.upcoming(FAR)
            && let Some(connection) = self.connections.get(index as usize)
        {
            prefetch(connection);
            // Without shared ids, connections and ids have the same numbers.
            self.prefetch_counts_of(FlowId(index));
        }
        if let Some(Event::Timer(index)) = self.shared.events.upcoming(NEAR)
            && let Some(connection) = self.connections.get(index as usize)
            && let Carrier::Open(place) = connection.carrier
            && let Some(tcp) = self.tcps.get(place)
        {
            prefetch(tcp);
        }
    }

    /// What a packet touches besides TCP.
    pub(crate) fn prefetch_of(&self, packet: Packet) {
        let FlowId(index) = packet.flow();
        prefetch(self.shared.store.get(packet.body()));
        if let Some(connection) = self.connections.get(index as usize) {
            prefetch(connection);
        }
        self.prefetch_counts_of(packet.flow());
    }

    fn prefetch_counts_of(&self, id: FlowId) {
        if let Some(counts) = self.shared.counters.place(id) {
            prefetch(counts);
        }
    }

    fn prefetch_end_of(&self, packet: Packet) {
        let FlowId(index) = packet.flow();
        if let Some(connection) = self.connections.get(index as usize)
            && let Carrier::Open(place) = connection.carrier
            && let Some(tcp) = self.tcps.get(place)
        {
            match packet.direction() {
                Direction::Forth => prefetch(&tcp.receiver),
                Direction::Back => prefetch(&tcp.sender),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::AtomicBool;

    use apportion_scenario::model::Scenario;

    use super::*;
    use crate::build::Detail;

    /// Losses, timeouts, connections that end, datagrams, and QUIC.
    const TEXT: &str = r#"
        seed = 1
        stop = "6s"
        [topology]
        kind = "dumbbell"
        pairs = 2
        bottleneck = { rate = "10Mbit", delay = "9ms", queue = { kind = "fifo", limit = "40p" } }
        access = { rate = "100Mbit", delay = "1ms" }
        [defaults.flow]
        jitter = "0s"
        [flow.reno]
        from = "l1"
        to = "r1"
        count = 20
        tcp = { profile = "ns2-2000" }
        start = { between = ["0s", "1s"] }
        [flow.short]
        from = "l2"
        to = "r2"
        tcp = { profile = "rfc" }
        source = { kind = "file", size = "200kB" }
        [flow.quic]
        from = "l2"
        to = "r2"
        quic = { algorithm = "cubic" }
        [flow.udp]
        from = "l2"
        to = "r1"
        source = { kind = "cbr", rate = "1Mbit", packet = "500B" }
    "#;

    fn outcome(scenario: &Scenario, looks_ahead: bool) -> String {
        let mut simulation = Simulation::new(scenario, 1, Detail::Full, &mut |_| None).unwrap();
        assert!(!simulation.looks_ahead);
        simulation.looks_ahead = looks_ahead;
        assert!(simulation.run(&AtomicBool::new(false)));
        serde_json::to_string(&simulation.outcome()).unwrap()
    }

    fn loaded(text: &str) -> Scenario {
        let suite = apportion_scenario::load(text, Path::new("x"), &[], &|path| std::fs::read(path)).unwrap();
        suite.points[0].scenario.clone()
    }

    #[test]
    fn many_connections_are_looked_ahead_for() {
        let scenario = loaded(&TEXT.replace("count = 20", &format!("count = {MANY}")));
        assert!(Simulation::new(&scenario, 1, Detail::Full, &mut |_| None).unwrap().looks_ahead);
    }

    #[test]
    fn looking_ahead_changes_nothing() {
        let scenario = &loaded(TEXT);
        assert_eq!(outcome(scenario, true), outcome(scenario, false));
    }
}
