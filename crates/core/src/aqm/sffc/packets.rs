//! The path of packets: through the discarder, and the FIFO behind it.

use super::Sffc;
use crate::aqm::{Admission, BufferPolicy};
use crate::limit::Limit;
use crate::packet::{FlowId, Packet, Protocol};
use crate::queue::{Backlog, DropReason, Sink};
use crate::schedule::{Queued, Scheduler};
use crate::units::{Rate, Time};

/// The path of packets, whatever queue follows.
impl Sffc {
    /// Whether an arriving packet may enter the queue.
    pub(crate) fn lets_pass<P: Packet>(&mut self, now: Time, packet: &P) -> bool {
        self.advance(now);
        if packet.protocol() == Protocol::Control {
            return true;
        }
        if self.discards(now, packet) {
            return false;
        }
        // A FIFO will send every packet that it has accepted: for few packets that is more exact than the
        // departures in the interval.
        if self.cuts_rates()
            && !self.divided
            && let Some(flow) = self.flows.get_mut(packet.flow())
            && !flow.adaptive
        {
            flow.mu += packet.size().get();
        }
        true
    }

    /// Counts the drop of a packet by the queue that follows.
    pub(crate) fn lost<P: Packet>(&mut self, packet: &P) {
        self.overflowed = true;
        let (rates, divided) = (self.cuts_rates(), self.divided);
        if let Some(flow) = self.flows.get_mut(packet.flow()) {
            self.hurt |= flow.adaptive;
            flow.dropped += packet.size().get();
            if rates && !divided {
                flow.mu = flow.mu.saturating_sub(packet.size().get());
            }
        }
        if let Some(recognition) = &mut self.recognition {
            recognition.lost(packet.flow());
        }
    }

    /// Counts a packet that the queue has sent to the link.
    pub(crate) fn sent<P: Packet>(&mut self, packet: &P) {
        if packet.protocol() != Protocol::Control
            && (self.divided || !self.cuts_rates())
            && let Some(flow) = self.flows.get_mut(packet.flow())
            && !flow.adaptive
        {
            flow.mu += packet.size().get();
        }
    }

    /// Counts the packet and returns whether it is discarded in front of the queue.
    fn discards<P: Packet>(&mut self, now: Time, packet: &P) -> bool {
        let (id, size) = (packet.flow(), packet.size());
        let says_adaptive = packet.protocol() == Protocol::Tcp;
        let [adaptive, known] = match &mut self.recognition {
            Some(recognition) => recognition.arrived(id, now, size, says_adaptive),
            None => [says_adaptive, true],
        };
        let rates = self.cuts_rates();
        let flow = self.flows.seen(id, now, adaptive);
        flow.known = known;
        let mut discarded = false;
        if adaptive {
            self.gamma += size.get();
        } else {
            flow.lambda += size.get();
            discarded = if rates {
                flow.exceeds(now, size, self.params.interval)
            } else {
                flow.v > 0.0 && self.random.chance(flow.v)
            };
        }
        if let Some(recognition) = &mut self.recognition {
            discarded = discarded || recognition.tests(id);
            if discarded {
                recognition.lost(id);
            }
        }
        if discarded {
            flow.discarded += size.get();
        }
        discarded
    }
}

impl<P: Packet> BufferPolicy<P> for Sffc {
    fn admit(&mut self, now: Time, packet: &mut P, backlog: Backlog) -> Admission {
        if !self.lets_pass(now, packet) {
            return Admission::Drop(DropReason::Policy);
        }
        if !self.limit.get().admits(packet, backlog) {
            self.lost(packet);
            return Admission::Drop(DropReason::Overflow);
        }
        Admission::Accept
    }

    fn dequeue<S: Scheduler<P>>(
        &mut self,
        now: Time,
        scheduler: &mut S,
        _sink: &mut dyn Sink<P>,
    ) -> Option<Queued<P>> {
        self.advance(now);
        let queued = scheduler.pop(now)?;
        self.sent(&queued.packet);
        Some(queued)
    }

    fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        let adaptive = self.flows.iter().filter(|flow| flow.adaptive).count();
        show("adaptive_flows", adaptive as f64);
        show("non_adaptive_flows", (self.flows.len() - adaptive) as f64);
        if self.params.fairness.is_some() {
            let mbit = 8e-6 / self.params.interval.as_secs_f64();
            show("fair_bandwidth_mbps", self.fair_bandwidth * mbit);
            show("rho", self.rho);
        }
    }

    fn flow_statistics(&self, show: &mut dyn FnMut(FlowId, &'static str, f64)) {
        match &self.recognition {
            Some(recognition) => recognition.statistics(show),
            None => {
                self.flows
                    .iter()
                    .for_each(|flow| show(flow.id, "adaptive", f64::from(u8::from(flow.adaptive))));
            }
        }
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit.get())
    }

    fn set_limit(&mut self, limit: Limit) {
        self.params.limit = Some(limit.into());
        self.limit.set(limit);
    }

    fn set_link_rate(&mut self, rate: Rate) {
        self.link_rate = rate;
        self.limit.set_link_rate(rate);
    }

    fn reporter(&self) -> Option<&Sffc> {
        Some(self).filter(|sffc| sffc.params.reports)
    }

    fn reporter_mut(&mut self) -> Option<&mut Sffc> {
        Some(self).filter(|sffc| sffc.params.reports)
    }
}
