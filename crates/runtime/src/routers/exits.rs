//! Exits: links further on whose routers send no reports, so that the counters of these links, as any router
//! publishes them (`ifHCOutUcastPkts`, `ifHCOutOctets` and `ifOutDiscards` of RFC 2863), must do.
//!
//! A router that takes part reads the counters of such links on the paths of its flows every second. If one
//! lost more than `regular` of its packets, what it sent is what it can carry. Its max-min fair division
//! among the flows to it, as this router knows them, gives a fair rate; adaptive flows want any rate. The
//! router then treats each non-adaptive flow above the fair rate as if the exit had reported it. So a flow
//! keeps at least its fair share of the exit, and `trust` and the other bounds of reports apply.
//!
//! While an exit loses little, the estimate grows by a twentieth, a tenth and so on each second, to follow an
//! exit that has become wider; while losses last it shrinks by them, to at least half of what the exit sends, since the exit may
//! carry flows that come by other ways.
//!
//! An idealisation: reading takes no bandwidth and no time.
//!
//! Cost: O(exits) a second; O(n log n) per interval for the n flows of links before an exit that loses packets.

use std::collections::BTreeMap;

use apportion_core::aqm::sffc::Sffc;
use apportion_core::fairness::water_filling;
use apportion_core::packet::FlowId;
use apportion_core::units::{Bytes, Span, Time};
use apportion_scenario::model::{LinkId, Scenario};

use super::Links;
use crate::connections::Numbers;
use crate::outcome::Count;
use crate::sffc::FlowReport;

/// The time between readings. Chosen: agents refresh their counters as often at best.
const READING: Span = Span::from_secs(1);
/// The growth of an estimate in the first reading with few losses, and how much larger it is in each further
/// one. Chosen: about the losses that count as few.
const GROWTH: f64 = 0.05;
/// The part of what an exit sends that is left at least to flows that this router knows: floods that come by
/// other ways may cause all losses. Chosen.
const LEAST: f64 = 0.5;
/// The readings after which losses are those of the limited flows. Chosen: cuts take a few intervals.
const SETTLED: u32 = 2;

/// All exits of the links that take part.
#[derive(Debug, Default)]
pub(super) struct Exits {
    all: Vec<Exit>,
    /// The indices of exits behind each link that takes part.
    behind: BTreeMap<u32, Vec<usize>>,
    next_reading: Time,
}

#[derive(Debug)]
struct Exit {
    link: LinkId,
    /// The links that take part before it.
    before: Vec<u32>,
    /// The counters at the last reading: packets sent, and packets dropped.
    sent: Count,
    dropped: u64,
    /// The bytes a second that it can carry of flows that pass these links; none while it loses little.
    carries: Option<f64>,
    /// The number of readings since `carries` is known.
    readings: u32,
    /// The number of readings with few losses in a row.
    calm: u32,
}

impl Exits {
    /// The exits behind the links that take part, as `takes_part` tells.
    pub fn new(scenario: &Scenario, takes_part: impl Fn(LinkId) -> bool) -> Self {
        let mut exits = Self::default();
        let mut indices = BTreeMap::new();
        let mut last: Option<&[LinkId]> = None;
        for path in scenario.flows.iter().flat_map(|flow| [&flow.path.first, &flow.back.first]) {
            // Flows of a group mostly share a path.
            if last.replace(path).is_some_and(|last| std::ptr::eq(last, &**path)) {
                continue;
            }
            for (before, link) in pairs(path, &takes_part) {
                let index = *indices.entry(link).or_insert_with(|| {
                    exits.all.push(Exit {
                        link,
                        before: Vec::new(),
                        sent: Count::default(),
                        dropped: 0,
                        carries: None,
                        readings: 0,
                        calm: 0,
                    });
                    exits.all.len() - 1
                });
                if !exits.all[index].before.contains(&before.0) {
                    exits.all[index].before.push(before.0);
                    exits.behind.entry(before.0).or_default().push(index);
                }
            }
        }
        exits
    }

    /// Ends an interval of `link`: limits its flows to what the exits behind it can carry.
    pub fn limit<L: Links>(
        &mut self,
        now: Time,
        link: u32,
        scenario: &Scenario,
        numbers: &Numbers,
        links: &mut L,
    ) {
        let Some(behind) = self.behind.get(&link) else { return };
        if now >= self.next_reading {
            self.next_reading = now + READING;
            self.all.iter_mut().for_each(|exit| exit.read(links));
        }
        for exit in behind.iter().map(|&index| &self.all[index]) {
            if let Some(carries) = exit.carries {
                exit.limit(link, carries, scenario, numbers, links);
            }
        }
    }
}

impl Exit {
    /// Reads the counters.
    fn read<L: Links>(&mut self, links: &L) {
        let Some((sent, dropped)) = links.counts(self.link.0) else { return };
        let packets = sent.packets.get().saturating_sub(self.sent.packets.get());
        let bytes = sent.bytes.get().saturating_sub(self.sent.bytes.get()) as f64 / READING.as_secs_f64();
        let lost = dropped.saturating_sub(self.dropped);
        (self.sent, self.dropped) = (sent, dropped);
        // A queue that reports needs no reading.
        let Some(regular) = self.regular(links).filter(|_| links.reporter(self.link.0).is_none()) else {
            self.carries = None;
            return;
        };
        let loss = lost as f64 / (lost + packets).max(1) as f64;
        self.readings = self.readings.saturating_add(1);
        self.calm = if loss > regular { 0 } else { self.calm.saturating_add(1) };
        self.carries = match self.carries {
            None if loss > regular => {
                self.readings = 0;
                Some(bytes)
            }
            Some(_) if loss > regular && self.readings < SETTLED => Some(bytes),
            Some(carries) if loss > regular => Some(bytes.min(carries * (1.0 - loss)).max(bytes * LEAST)),
            Some(carries) => {
                Some(carries * (1.0 + GROWTH * f64::from(self.calm))).filter(|_| carries < self.most(links))
            }
            None => None,
        };
    }

    /// The loss that counts as none, by the links before it; none if none of them reads counters.
    fn regular<L: Links>(&self, links: &L) -> Option<f64> {
        let reporters = self.before.iter().filter_map(|&link| links.reporter(link));
        reporters.filter_map(Sffc::regular_of_counters).min_by(f64::total_cmp)
    }

    /// The bytes a second that the links before it can send.
    fn most<L: Links>(&self, links: &L) -> f64 {
        let reporters = self.before.iter().filter_map(|&link| links.reporter(link));
        reporters.map(|reporter| reporter.link_rate().as_bit() as f64 / 8.0).sum()
    }

    fn limit<L: Links>(
        &self,
        link: u32,
        carries: f64,
        scenario: &Scenario,
        numbers: &Numbers,
        links: &mut L,
    ) {
        let is_exit_of = |id: FlowId, before: u32| {
            let flow = numbers.flow_of(id).and_then(|flow| scenario.flows.get(flow));
            flow.is_some_and(|flow| {
                [&flow.path, &flow.back].into_iter().any(|path| {
                    let place = path.iter().position(|link| link.0 == before);
                    place.is_some_and(|place| path[place..].contains(&self.link))
                })
            })
        };
        let mut demands = Vec::new();
        for &before in &self.before {
            let Some(reporter) = links.reporter(before) else { continue };
            let flows = reporter.demands().filter(|(id, _)| is_exit_of(*id, before));
            demands.extend(flows.map(|(_, demand)| demand.unwrap_or(f64::INFINITY)));
        }
        let fair = water_filling::level(carries, &mut demands);
        let Some(reporter) =
            links.reporter_mut(link).filter(|reporter| reporter.regular_of_counters().is_some())
        else {
            return;
        };
        let above: Vec<(FlowId, f64)> = reporter
            .demands()
            .filter_map(|(id, demand)| Some((id, demand.filter(|demand| *demand > fair)?)))
            .filter(|(id, _)| is_exit_of(*id, link))
            .collect();
        for (flow, demand) in above {
            let bytes = |rate: f64| Bytes::new((rate * READING.as_secs_f64()) as u64);
            let report =
                FlowReport { flow, arrived: bytes(demand), departed: bytes(fair), interval: READING };
            reporter.on_report(report);
        }
    }
}

/// The links of a path that do not take part, each with the last link before it that does.
fn pairs<'a>(
    path: &'a [LinkId],
    takes_part: &'a impl Fn(LinkId) -> bool,
) -> impl Iterator<Item = (LinkId, LinkId)> + 'a {
    let mut before = None;
    path.iter().filter_map(move |&link| {
        if takes_part(link) {
            before = Some(link);
            return None;
        }
        before.map(|before| (before, link))
    })
}
