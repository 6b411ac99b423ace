//! What a shell measured.

use apportion_core::units::{Rate, Span};
use apportion_linux::command::End;
use apportion_linux::port::PortCounts;
use apportion_runtime::outcome::{Distribution, FlowOutcome, LinkOutcome, Timekeeping};

use crate::host_proxy::{Counts, ListenerCounts};

/// A run of a shell.
#[derive(Clone, Debug)]
pub struct Summary {
    /// How the command ended.
    pub end: End,
    /// How what ran at the far end did, if that was before.
    pub far: Option<End>,
    /// From the start of the command to its end.
    pub lasted: Span,
    /// Up and down.
    pub directions: [DirectionSummary; 2],
    /// What the sockets at the command's end and at the far end did.
    pub ports: [PortCounts; 2],
    /// Malformed frames.
    pub malformed: u64,
    /// How many flows there were.
    pub flows_seen: u64,
    /// The largest of them by what was delivered, then all others of each direction as one.
    pub flows: Vec<FlowOutcome>,
    /// How late packets were handed to the system.
    pub lateness: Distribution,
    /// Counters of the host proxy, if there was one.
    pub outside: Option<Counts>,
    /// Counters of its listeners.
    pub doors: Option<ListenerCounts>,
}

/// The measurements of one direction.
#[derive(Clone, Debug, Default)]
pub struct DirectionSummary {
    /// Counts, rates, series; bytes are those of layer 2.
    pub link: LinkOutcome,
    /// Whether it had no rate.
    pub is_unlimited: bool,
    /// The time in which it was transmitting.
    pub busy: Span,
    /// Of packets, from coming in to leaving.
    pub delay: Distribution,
}

impl DirectionSummary {
    /// What it sent over the time in which it had something to send; none if it never had.
    #[must_use]
    pub fn while_busy(&self) -> Option<Rate> {
        rate(self.link.sent.bytes.bits(), self.busy)
    }

    /// What it sent over `lasted`.
    #[must_use]
    pub fn over(&self, lasted: Span) -> Option<Rate> {
        rate(self.link.sent.bytes.bits(), lasted)
    }
}

fn rate(bits: u64, span: Span) -> Option<Rate> {
    (span > Span::ZERO).then(|| Rate::from_bit((bits as f64 / span.as_secs_f64()).round() as u64))
}

impl Summary {
    /// Whether the machine kept up: 99 of 100 packets were no later than `most`.
    #[must_use]
    pub fn kept_up(&self, most: Span) -> bool {
        self.lateness.quantile(0.99).is_none_or(|late| late <= most)
    }

    /// A count of both sockets together.
    #[must_use]
    pub fn at_ports(&self, count: fn(&PortCounts) -> u64) -> u64 {
        self.ports.iter().map(count).sum()
    }

    /// How well real time was kept, where `limit` is what 99 of 100 packets may be late at most.
    #[must_use]
    pub fn timekeeping(&self, limit: Span) -> Timekeeping {
        Timekeeping {
            lateness: self.lateness.clone(),
            limit,
            missed: self.at_ports(|port| port.missed),
            refused: self.at_ports(|port| port.unsent),
            unusable: self.at_ports(|port| port.oversize + port.super_packets) + self.malformed,
            ..Timekeeping::default()
        }
    }

    /// The exit status of a command that runs another one: its own, 128 and the number of the signal that ended
    /// it, or 124 at the time limit as timeout(1) has it.
    #[must_use]
    pub fn status(&self) -> u8 {
        match self.end {
            // The system keeps 8 bits of it.
            End::Exited(status) => (status & 0xff) as u8,
            End::Signalled(signal) => 128_u8.saturating_add(u8::try_from(signal).unwrap_or(u8::MAX)),
            End::TimedOut => 124,
        }
    }
}

#[cfg(test)]
mod tests {
    use apportion_core::units::Bytes;

    use super::*;

    #[test]
    fn rates_are_over_the_time_of_transmission_and_over_all() {
        let mut direction = DirectionSummary { busy: Span::from_millis(500), ..DirectionSummary::default() };
        direction.link.sent.bytes = Bytes::new(125_000);
        // 1 Mbit in half a second, of two.
        assert_eq!(direction.while_busy(), Some(Rate::from_mbit(2)));
        assert_eq!(direction.over(Span::from_secs(2)), Some(Rate::from_kbit(500)));
        assert_eq!(DirectionSummary::default().while_busy(), None);
    }
}
