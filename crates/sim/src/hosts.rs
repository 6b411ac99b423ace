//! Hosts: the time that they take for each packet that they send.
//!
//! The time is drawn uniformly between zero and the jitter of the flow. Packets of a flow leave its source,
//! and acknowledgements its sink, in the order in which they were sent: a packet that would overtake leaves
//! together with the previous one. So no packet takes longer than the jitter, and hosts limit no rate.
//!
//! Cost: O(1) per packet, and an event for each packet that waits here. A packet whose first link serves its
//! flow alone and would send it at once does not wait: the link takes it early, with the time at which it
//! leaves the host.

use std::collections::VecDeque;

use apportion_core::random::Stream;
use apportion_core::units::{Span, Time};
use apportion_runtime::ways::Way;
use apportion_scenario::model::{Flow, Path, Scenario};

use crate::events::Event;
use crate::link::Link;
use crate::link_users::users;
use crate::packet::{Direction, Packet};
use crate::shared_state::SharedState;

/// The ends of the flows of a scenario: the source of flow `n` is number 2 `n`, its sink 2 `n` + 1. None if
/// hosts take no time.
#[derive(Debug, Default)]
pub(crate) struct Hosts(Vec<Host>);

/// The end of a flow.
#[derive(Debug)]
struct Host {
    /// The maximum time for a packet, in ns.
    jitter: u64,
    /// Later values of the jitter, with their times; the next one last.
    later: Vec<(Time, Span)>,
    random: Stream,
    /// The departure time of the previous packet.
    last: Time,
    /// Packets with their departure times. The first one has an event.
    waiting: VecDeque<(Time, Packet)>,
    /// Whether it [owns](Hosts::owns_first_link) its first link.
    owns_link: bool,
}

impl Hosts {
    /// The hosts of `scenario`; `has_routers`: some routers exchange reports.
    pub fn new(scenario: &Scenario, ways: &[Way], seed: u64, has_routers: bool) -> Self {
        let is_zero = |steps: Vec<(Time, Span)>| steps.iter().all(|&(_, jitter)| jitter == Span::ZERO);
        if scenario.flows.iter().all(|flow| scenario.jitter(flow).into_iter().all(is_zero)) {
            return Self(Vec::new());
        }
        let users = users(scenario, ways);
        let host = |flow: &Flow, jitter: Vec<(Time, Span)>, purpose: &str, path: &Path| {
            let random = Stream::new(seed, &format!("flow.{}.{purpose}", flow.stream()));
            Host::new(jitter, random, Self::owns_first_link(scenario, &users, (flow, path), has_routers))
        };
        let ends = |flow: &Flow| {
            let [source, sink] = scenario.jitter(flow);
            [host(flow, source, "jitter", &flow.path), host(flow, sink, "ack_jitter", &flow.back)]
        };
        Self(scenario.flows.iter().flat_map(ends).collect())
    }

    /// Whether packets enter their first links as soon as they are sent.
    pub fn take_no_time(&self) -> bool {
        self.0.is_empty()
    }

    /// Sends a packet of an end of `flow` over `link`; returns it if it leaves now.
    pub fn send(
        &mut self,
        now: Time,
        flow: u32,
        packet: Packet,
        link: &mut Link,
        shared: &mut SharedState,
    ) -> Option<Packet> {
        let number = 2 * flow + u32::from(packet.direction() == Direction::Reverse);
        let host = &mut self.0[number as usize];
        let at = host.departure(now);
        if !host.waiting.is_empty() {
            host.hold(at, packet);
        } else if at == now {
            return Some(packet);
        } else if link.may_leave_early(host.owns_link, at) {
            link.receive(at, packet, shared);
        } else {
            host.hold(at, packet);
            shared.events.schedule(now, at, Event::Departure(number));
        }
        None
    }

    /// Removes and returns the packet that leaves the host with this number now.
    pub fn depart(&mut self, now: Time, number: u32, shared: &mut SharedState) -> Option<Packet> {
        let waiting = &mut self.0[number as usize].waiting;
        let (_, packet) = waiting.pop_front()?;
        if let Some(&(at, _)) = waiting.front() {
            shared.events.schedule(now, at, Event::Departure(number));
        }
        Some(packet)
    }
}

impl Host {
    fn new(jitter: Vec<(Time, Span)>, random: Stream, owns_link: bool) -> Self {
        let (last, waiting) = (Time::ZERO, VecDeque::new());
        let mut host = Self { jitter: 0, later: jitter, random, last, waiting, owns_link };
        host.later.reverse();
        host.change_jitter(Time::ZERO);
        // Most hosts have one value for the whole run: the rest takes no memory.
        host.later.shrink_to_fit();
        host
    }

    /// Sets the jitter to its value at `now`.
    fn change_jitter(&mut self, now: Time) {
        while let Some((_, jitter)) = self.later.pop_if(|&mut (at, _)| at <= now) {
            self.jitter = jitter.as_nanos();
        }
    }

    /// Holds a packet until `at`.
    fn hold(&mut self, at: Time, packet: Packet) {
        if self.waiting.capacity() == 0 {
            // In most cases one packet waits at a time.
            self.waiting.reserve_exact(1);
        }
        self.waiting.push_back((at, packet));
    }

    /// The departure time of a packet that is sent at `now`.
    fn departure(&mut self, now: Time) -> Time {
        self.change_jitter(now);
        self.last = self.last.max(now + Span::from_nanos(self.random.below(self.jitter.saturating_add(1))));
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(jitter: u64) -> Host {
        let random = Stream::new(3, "host");
        Host {
            jitter,
            later: Vec::new(),
            random,
            last: Time::ZERO,
            waiting: VecDeque::new(),
            owns_link: false,
        }
    }

    #[test]
    fn packets_that_are_far_apart_take_uniform_times() {
        const JITTER: u64 = 9;
        let mut host = host(JITTER);
        let mut counts = [0_u64; JITTER as usize + 1];
        for k in 0..100_000 {
            let now = Time::from_nanos(20 * k);
            counts[host.departure(now).since(now).as_nanos() as usize] += 1;
        }
        // Chi-square with 9 degrees of freedom: 27.88 is exceeded with a probability of 0.001.
        let square = |count: &u64| (*count as f64 - 10_000.0).powi(2) / 10_000.0;
        assert!(counts.iter().map(square).sum::<f64>() < 27.88, "{counts:?}");
    }

    #[test]
    fn the_jitter_changes_at_its_times() {
        let mut host = host(0);
        host.later = vec![(Time::from_secs(2), Span::ZERO), (Time::ZERO, Span::from_millis(9))];
        let takes = |host: &mut Host, secs: u64| {
            let now = Time::from_secs(secs);
            host.departure(now).since(now)
        };
        let early = takes(&mut host, 1);
        assert!(early > Span::ZERO && early <= Span::from_millis(9), "{early}");
        assert_eq!(takes(&mut host, 2), Span::ZERO);
    }

    #[test]
    fn no_packet_overtakes_another_or_takes_longer_than_the_jitter() {
        let (mut host, mut last, mut together) = (host(1_000), Time::ZERO, 0);
        for k in 0..10_000 {
            let now = Time::from_nanos(130 * k);
            let at = host.departure(now);
            assert!(at >= last && at.since(now) <= Span::from_nanos(1_000));
            together += u32::from(at == last);
            last = at;
        }
        assert!(together > 1_000, "{together}");
        assert_eq!(Host { jitter: 0, ..host }.departure(last), last);
    }
}
