//! Prefetching of memory.
//!
//! With many connections, the state that a packet touches is in no cache, and the processor would wait for
//! one line after the other. Many of the next packets are known: those behind an arriving packet on its wire,
//! those handed over together or waiting in their FIFO, and the timers of the current millisecond. Each is
//! prefetched twice: first its connection, its body and its counts, and a little later, when the connection
//! is in the cache, the end of the TCP that will receive it. No result changes.

use std::ptr::from_ref;

use apportion_core::Packet as _;
use apportion_core::packet::FlowId;
use apportion_core::queue::Queue as _;
use prefetch_index::prefetch_index;

use crate::connection::{Tcp, TransportState};
use crate::events::Event;
use crate::packet::{Direction, Packet};
use crate::simulation::Simulation;

/// The minimum number of connections for prefetching. With fewer, most state is in some cache, and
/// prefetching costs more than it gains. Chosen: their state and their packets take 7 MB. With 3,500, runs
/// took a tenth longer on a core with a cache of 2 MB.
const MANY: usize = 10_000;
/// The number of packets between the present one and the one whose connection is prefetched; another constant
/// for its TCP. Chosen: a miss takes about as long as the simulator needs for one packet.
const FAR: u32 = 4;
const NEAR: u32 = 1;
/// Bytes of a cache line.
const LINE: usize = 64;

/// Prefetches all of `value`.
#[inline(always)]
fn prefetch<T>(value: &T) {
    // The crate counts from the beginning of a slice and accepts any index.
    const HERE: &[u8] = &[];
    let begin = from_ref(value).addr();
    for line in (begin & !(LINE - 1)..begin + size_of::<T>()).step_by(LINE) {
        prefetch_index(HERE, line.wrapping_sub(HERE.as_ptr().addr()));
    }
}

impl Simulation<'_> {
    /// Whether there are enough connections for prefetching to pay. Not if they share ids: then the body of a
    /// packet determines its connection.
    pub(crate) fn has_many_connections(&self) -> bool {
        self.connections.len() >= MANY && !self.ids_are_shared
    }

    /// A packet arrives over `link`: prefetches for those behind it on its wire.
    #[inline(never)]
    pub(crate) fn prefetch_along_wire(&self, link: u32) {
        let link = &self.links[link as usize];
        if let Some(sent) = link.on_wire_after(FAR) {
            self.prefetch_of(sent.packet);
        }
        if let Some(sent) = link.on_wire_after(NEAR) {
            self.prefetch_end_of(sent.packet);
        }
    }

    /// A packet of `link` is handed over, and the next one is at `next` among those handed over with it:
    /// prefetches for these, and then for those that wait in the queue.
    #[inline(never)]
    pub(crate) fn prefetch_behind(&self, link: u32, next: usize) {
        let together = &self.shared.handed_over[next..];
        let upcoming = |others: u32| match together.get(others as usize) {
            Some(later) => Some(later.sent.packet),
            None => {
                let queue = self.links[link as usize].state.queue();
                queue.upcoming(others as usize - together.len()).copied()
            }
        };
        if let Some(packet) = upcoming(FAR) {
            self.prefetch_of(packet);
        }
        if let Some(packet) = upcoming(NEAR) {
            self.prefetch_end_of(packet);
        }
    }

    /// A timer expires or a connection starts: prefetches for the following ones.
    #[inline(never)]
    pub(crate) fn prefetch_timers(&self) {
        let upcoming = |others: u32| self.shared.events.upcoming(others as usize);
        if let Some(Event::Timer(index) | Event::Start(index)) = upcoming(FAR)
            && let Some(connection) = self.connections.get(index as usize)
        {
            prefetch(connection);
            // Without shared ids, connections and ids have the same numbers.
            self.prefetch_counts_of(FlowId(index));
        }
        if let Some(Event::Timer(index)) = upcoming(NEAR)
            && let Some(tcp) = self.open_tcp(index)
        {
            prefetch(tcp);
        }
    }

    /// Prefetches the state that a packet touches besides TCP.
    pub(crate) fn prefetch_of(&self, packet: Packet) {
        let FlowId(index) = packet.flow();
        prefetch(self.shared.store.get(packet.body()));
        if let Some(connection) = self.connections.get(index as usize) {
            prefetch(connection);
        }
        self.prefetch_counts_of(packet.flow());
    }

    fn prefetch_counts_of(&self, id: FlowId) {
        if let Some(counts) = self.shared.counters.memory_of(id) {
            prefetch(counts);
        }
    }

    fn prefetch_end_of(&self, packet: Packet) {
        if let Some(tcp) = self.open_tcp(packet.flow().0) {
            match packet.direction() {
                Direction::Forward => prefetch(&tcp.receiver),
                Direction::Reverse => prefetch(&tcp.sender),
            }
        }
    }

    fn open_tcp(&self, connection: u32) -> Option<&Tcp> {
        let TransportState::Open(place) = self.connections.get(connection as usize)?.transport else {
            return None;
        };
        self.tcps.get(place)
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

    fn outcome(scenario: &Scenario, prefetches: bool) -> String {
        let mut simulation = Simulation::new(scenario, 1, Detail::Full, &mut |_| None).unwrap();
        assert!(!simulation.prefetches);
        simulation.prefetches = prefetches;
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
        assert!(Simulation::new(&scenario, 1, Detail::Full, &mut |_| None).unwrap().prefetches);
    }

    #[test]
    fn looking_ahead_changes_nothing() {
        let scenario = &loaded(TEXT);
        assert_eq!(outcome(scenario, true), outcome(scenario, false));
    }
}
