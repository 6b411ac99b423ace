//! Word of disciplines to sources: that a link cannot carry what a flow needs, or can again.
//!
//! In the sending host it is there at once. From a queue further on it takes the delay of the wires that the
//! flow's packets pass before that queue: a small message goes back over the same wires and waits nowhere
//! (chosen: how such word would travel is not specified; ICMP would be one way). What a queue says of
//! acknowledgements reaches nobody: their sender does not choose how much it acknowledges.

use std::collections::BTreeMap;

use apportion_core::queue::Overload;
use apportion_core::units::{Rate, Span, Time};
use apportion_runtime::connections::Load;

use crate::events::Event;
use crate::simulation::Simulation;

/// Word on its way, by the time of its arrival and then in the order in which it was sent.
#[derive(Debug, Default)]
pub struct Word {
    ahead: BTreeMap<(Time, u64), (u32, Overload)>,
    sent: u64,
}

impl Simulation<'_> {
    /// Puts on its way what disciplines have told.
    pub(crate) fn send_word(&mut self, now: Time) {
        let mut told = std::mem::take(&mut self.shared.exceptions);
        for (at, link, exception) in told.drain(..) {
            // A discipline that nobody called catches up later.
            let Some((flow, delay)) = self.way_back(link, exception) else { continue };
            let arrival = (at + delay).max(now);
            if delay == Span::ZERO {
                self.hear(now, flow, exception);
            } else {
                self.word.ahead.insert((arrival, self.word.sent), (flow, exception));
                self.word.sent += 1;
                self.shared.events.schedule(arrival, Event::Exception);
            }
        }
        self.shared.exceptions = told;
    }

    /// The flow of the scenario, and how long word from a link takes to its source; none if its packets do
    /// not pass there.
    fn way_back(&self, link: u32, exception: Overload) -> Option<(u32, Span)> {
        let flow = self.numbers.flow_of(exception.flow)?;
        let path = &self.scenario.flows.get(flow)?.path;
        let before = path.iter().position(|on| on.0 == link)?;
        let delay = path[..before].iter().map(|on| self.links[on.index()].delay());
        Some((flow as u32, delay.fold(Span::ZERO, |sum, delay| sum + delay)))
    }

    /// Delivers what has arrived.
    pub(crate) fn deliver_word(&mut self, now: Time) {
        while let Some(first) = self.word.ahead.first_entry().filter(|first| first.key().0 <= now) {
            let (flow, exception) = first.remove();
            self.hear(now, flow, exception);
        }
    }

    /// The sources of a flow hear of it, each for its part.
    fn hear(&mut self, now: Time, flow: u32, exception: Overload) {
        if !exception.is_over {
            self.shared.counters[exception.flow.index()].exceptions += 1;
        }
        let members = self.members(flow as usize);
        let part = |rate: Rate| Rate::from_bit(rate.as_bit() / members.len().max(1) as u64);
        let exception =
            Overload { wanted: part(exception.wanted), granted: part(exception.granted), ..exception };
        for index in members {
            if let Load::Writes(generator, _) = &mut self.connections[index as usize].load {
                generator.hear(now, &exception);
            }
        }
    }
}
