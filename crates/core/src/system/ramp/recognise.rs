//! RAMP's recogniser, beyond the paper: finds real-rate flows by their behaviour, and declared ones that are
//! greedy.
//!
//! Each flow is judged by windows of [`WINDOW`]. A window speaks for a real-rate flow if
//! - an application paces it: sizes of packets change as frames end ([`CHANGES`]), or packets are smaller
//!   than a full segment and come at regular times ([`IRREGULAR`]). A sender that always has data fills its
//!   segments, and sends when acknowledgements come;
//! - it found its queue empty at least once, so it leaves no standing queue;
//! - its rate, averaged over a second, is at most the level that max-min fairness gives each flow.
//!
//! [`ENOUGH`] such windows in a row, without a silent one, make a flow real-rate. It becomes greedy again if
//! its rate exceeds the level by [`EXCESS`], or if its queue stands and nothing paces it, in two windows out
//! of few; then it must behave for twice as long as the last time, up to a minute. A flow that is silent for
//! [`FORGOTTEN`] is unknown. A liar that looks like a real-rate flow thus gets at most [`EXCESS`] times its
//! fair share, and lower delay.
//!
//! Flows that are declared real-rate are so from the first packet. They lose it by a standing queue without
//! pacing, not by their rate, which `overload` limits.
//!
//! Cost: O(1) per packet, O(n log n) per window for n flows that sent in it; 96 bytes per flow number.

use alloc::vec::Vec;

use super::Ramp;
use super::overload::{Cut, OverloadPolicy};
use crate::packet::{FlowId, Packet};
use crate::queue::{DropReason, Overload, Sink};
use crate::system::discipline::Discipline;
use crate::units::{Bytes, Rate, Span, Time};

/// The time after which flows are judged. Chosen: several frames of a video of 12 frames per second.
const WINDOW: Span = Span::from_millis(250);
/// Windows in a row that make a flow real-rate. Chosen: 2 s, longer than the burst that opens a transfer.
const ENOUGH: i32 = 8;
/// The windows that a bad one costs. Chosen: a single one does not make a flow greedy.
const COST: i32 = 5;
/// The most times that the time on probation doubles: up to 64 s.
const DOUBLINGS: u32 = 5;
/// Packets of another size than the one before, per window, of a flow whose frames end. Chosen: a segment of
/// adaptive video over TCP or a web page ends with one or two.
const CHANGES: u32 = 3;
/// The squared coefficient of variation of gaps up to which they are regular. Chosen: gaps that vary evenly
/// by their whole length have 1/3; packets in pairs, as acknowledgements release them, have 1.
const IRREGULAR: f64 = 0.35;
/// The packet size from which segments are full. Chosen: above the packets of calls and the datagrams of
/// QUIC's first flight (RFC 9000 section 14).
const FULL: Bytes = Bytes::new(1_250);
/// The weight of the newest window in the rate.
const WEIGHT: f64 = 0.25;
/// The rate, relative to the level, at which a recognised flow becomes greedy.
const EXCESS: f64 = 1.25;
/// The silence after which a flow is unknown.
const FORGOTTEN: Span = Span::from_secs(10);

/// A flow as it was seen.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    flow: FlowId,
    is_declared: bool,
    /// Whether `score` made it real-rate; of a declared flow whether it is trusted.
    is_real_rate: bool,
    /// Windows that speak for it; below zero, windows until they count.
    score: i32,
    offences: u32,
    /// Bytes per window, averaged.
    rate: f64,
    /// The number of its packets in the greedy class.
    queued: u32,
    last: Time,
    size: Bytes,
    /// The window in which it sent last, the first of which has number 1, and whether it sent in the one before.
    window: u64,
    follows: bool,
    // The counts of this window:
    bytes: u64,
    largest: Bytes,
    changes: u32,
    gaps: u32,
    sum: f64,
    squares: f64,
    found_empty: bool,
}

impl Seen {
    /// Whether an application paces the flow.
    fn is_paced(&self) -> bool {
        let variance = f64::from(self.gaps) * self.squares - self.sum * self.sum;
        let is_regular = self.gaps >= CHANGES && variance <= IRREGULAR * self.sum * self.sum;
        self.changes >= CHANGES || (is_regular && self.largest < FULL)
    }

    /// Counts a window that is over. Returns whether the flow is real-rate from now on.
    fn judge(&mut self, level: f64) -> bool {
        let is_paced = self.is_paced();
        let stands = !self.found_empty && !is_paced;
        let limit = if self.is_real_rate { level * EXCESS } else { level };
        let is_above = self.rate > limit;
        let (is_good, is_bad) = match (self.is_declared, self.is_real_rate) {
            (true, true) => (!stands, stands),
            (false, true) => (!stands && !is_above, stands || is_above),
            (true, false) => (self.found_empty && !is_above, true),
            (false, false) => (self.found_empty && !is_above && is_paced && self.follows, true),
        };
        if is_good {
            self.score = (self.score + 1).min(ENOUGH);
        } else if is_bad {
            let least = self.score.min(0);
            self.score = (self.score - COST).max(least);
        }
        if self.is_real_rate && self.score <= 0 {
            self.score = -(ENOUGH << self.offences.min(DOUBLINGS));
            self.offences += 1;
            self.is_real_rate = false;
        } else if self.score >= ENOUGH {
            self.is_real_rate = true;
        }
        self.is_real_rate
    }
}

/// The flows of a link, and the present window.
#[derive(Clone, Debug)]
pub(super) struct Recogniser {
    seen: Vec<Seen>,
    /// The slots that sent in this window.
    active: Vec<u32>,
    window: u64,
    began: Time,
}

impl Recogniser {
    pub const fn new() -> Self {
        Self { seen: Vec::new(), active: Vec::new(), window: 1, began: Time::ZERO }
    }

    fn of(&mut self, flow: FlowId) -> &mut Seen {
        let slot = flow.slot();
        if slot >= self.seen.len() {
            self.seen.resize(slot + 1, Seen::default());
        }
        &mut self.seen[slot]
    }

    /// Forgets what is known of `flow`, whose class was declared.
    pub fn declare(&mut self, flow: FlowId, is_declared: bool) {
        let seen = self.of(flow);
        let score = if is_declared { ENOUGH } else { 0 };
        *seen = Seen { flow, is_declared, is_real_rate: is_declared, score, offences: 0, rate: 0.0, ..*seen };
    }

    /// Notes that `packets` of `flow` have joined the greedy class.
    pub fn joined(&mut self, flow: FlowId, packets: u32) {
        self.of(flow).queued += packets;
    }

    /// Notes that a packet of `flow` has left the greedy class.
    pub fn left(&mut self, flow: FlowId) {
        let seen = self.of(flow);
        seen.queued = seen.queued.saturating_sub(1);
    }

    /// Notes an arrival; `is_empty`: the queue of the flow in the real-rate class, if it is there. Returns
    /// whether the flow has been silent for so long that it is unknown.
    fn arrived(&mut self, now: Time, packet: &impl Packet, is_empty: Option<bool>) -> bool {
        let (flow, size) = (packet.flow(), packet.size());
        let silence = now.since(self.of(flow).last);
        let is_stranger = silence > FORGOTTEN && !self.of(flow).is_declared;
        if is_stranger {
            self.declare(flow, false);
        }
        let window = self.window;
        let seen = self.of(flow);
        let is_first = seen.window != window;
        if is_first {
            (seen.follows, seen.window) = (seen.window + 1 == window, window);
        }
        if seen.size > Bytes::ZERO {
            let gap = silence.as_secs_f64();
            seen.gaps += 1;
            seen.sum += gap;
            seen.squares += gap * gap;
            seen.changes += u32::from(size != seen.size);
        }
        (seen.flow, seen.last, seen.size) = (flow, now, size);
        seen.bytes += size.get();
        seen.largest = seen.largest.max(size);
        seen.found_empty |= is_empty.unwrap_or(seen.queued == 0);
        if is_first {
            self.active.push(flow.slot() as u32);
        }
        is_stranger
    }

    /// Ends the window at `now`, and returns the flows that were judged, and whether they are real-rate.
    fn judge(&mut self, now: Time, link_rate: Rate) -> Vec<(FlowId, bool)> {
        let windows = now.since(self.began).as_secs_f64() / WINDOW.as_secs_f64();
        let capacity = link_rate.as_bit() as f64 / 8.0 * WINDOW.as_secs_f64();
        let active = core::mem::take(&mut self.active);
        let wanted = active.iter().map(|&slot| {
            let seen = &mut self.seen[slot as usize];
            seen.rate += WEIGHT * (seen.bytes as f64 / windows - seen.rate);
            // A standing queue says that the flow would send more.
            if seen.found_empty { seen.rate / capacity } else { 1.0 }
        });
        let level = Cut::of(OverloadPolicy::MaxMin, wanted.collect(), 1.0).level() * capacity;
        let judged = active.iter().map(|&slot| {
            let seen = &mut self.seen[slot as usize];
            let is_real_rate = seen.judge(level);
            *seen = Seen {
                bytes: 0,
                largest: Bytes::ZERO,
                changes: 0,
                gaps: 0,
                sum: 0.0,
                squares: 0.0,
                found_empty: false,
                ..*seen
            };
            (seen.flow, is_real_rate)
        });
        let judged = judged.collect();
        (self.window, self.began) = (self.window + 1, now);
        judged
    }
}

impl<P: Packet, G: Discipline<P> + ?Sized> Ramp<P, G> {
    /// Notes the arrival of a packet.
    pub(super) fn see(&mut self, now: Time, packet: &P) {
        let index = self.index(packet.flow());
        let is_empty = index.map(|index| self.flows[index].fill.is_empty());
        let Some(recogniser) = &mut self.recogniser else { return };
        let is_stranger = recogniser.arrived(now, packet, is_empty);
        if let Some(index) = index.filter(|_| is_stranger) {
            self.make_greedy(index);
        }
    }

    /// Judges flows at the end of a window.
    pub(super) fn recognise(&mut self) {
        let Some(recogniser) = &mut self.recogniser else { return };
        if self.clock.since(recogniser.began) < WINDOW {
            return;
        }
        for (flow, is_real_rate) in recogniser.judge(self.clock, self.link_rate) {
            match self.index(flow) {
                None if is_real_rate => self.make_real_rate(flow),
                Some(index) if !is_real_rate => self.make_greedy(index),
                _ => {}
            }
        }
    }
}

/// A sink that counts the drops of the greedy class.
pub(super) struct Counting<'a, P> {
    pub sink: &'a mut dyn Sink<P>,
    pub recogniser: Option<&'a mut Recogniser>,
}

impl<P: Packet> Sink<P> for Counting<'_, P> {
    fn dropped(&mut self, now: Time, packet: P, reason: DropReason) {
        if let Some(recogniser) = &mut self.recogniser {
            recogniser.left(packet.flow());
        }
        self.sink.dropped(now, packet, reason);
    }

    fn marked(&mut self, now: Time, packet: &P) {
        self.sink.marked(now, packet);
    }

    fn supersedes(&self, newer: &P, older: &P) -> bool {
        self.sink.supersedes(newer, older)
    }

    fn overload(&mut self, now: Time, overload: Overload) {
        self.sink.overload(now, overload);
    }
}
