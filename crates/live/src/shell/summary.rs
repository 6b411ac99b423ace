//! Measurements of a shell.

use apportion_core::units::{Rate, Span};
use apportion_linux::command::End;
use apportion_linux::port::PortCounts;
use apportion_runtime::outcome::{Distribution, FlowOutcome, LinkOutcome, Timekeeping};

use crate::host_proxy::{Counts, ListenerCounts};

/// The results of a run.
#[derive(Clone, Debug)]
pub struct Summary {
    /// End of the command.
    pub end: End,
    /// End of the program at the far end, if that was before the command's.
    pub far: Option<End>,
    /// Time from the start of the command to its end.
    pub lasted: Span,
    /// Directions up and down.
    pub directions: [DirectionSummary; 2],
    /// Counts of the sockets at the command's end and at the far end.
    pub ports: [PortCounts; 2],
    /// Malformed frames.
    pub malformed: u64,
    /// Number of flows.
    pub flows_seen: u64,
    /// The largest flows by delivered bytes, then all others of each direction as one.
    pub flows: Vec<FlowOutcome>,
    /// Lateness of packets handed to the system.
    pub lateness: Distribution,
    /// Counters of the host proxy, if there was one.
    pub outside: Option<Counts>,
    /// Counters of the listeners.
    pub doors: Option<ListenerCounts>,
}

/// The measurements of one direction.
#[derive(Clone, Debug, Default)]
pub struct DirectionSummary {
    /// Counts, rates and series; bytes are those of layer 2.
    pub link: LinkOutcome,
    /// Whether it had no rate.
    pub is_unlimited: bool,
    /// The time spent transmitting.
    pub busy: Span,
    /// Delays of packets, from arrival to departure.
    pub delay: Distribution,
}

impl DirectionSummary {
    /// Throughput while the link was transmitting; none if it never was.
    #[must_use]
    pub fn while_busy(&self) -> Option<Rate> {
        rate(self.link.sent.bytes.bits(), self.busy)
    }

    /// Throughput over `lasted`.
    #[must_use]
    pub fn over(&self, lasted: Span) -> Option<Rate> {
        rate(self.link.sent.bytes.bits(), lasted)
    }
}

fn rate(bits: u64, span: Span) -> Option<Rate> {
    (span > Span::ZERO).then(|| Rate::from_bit((bits as f64 / span.as_secs_f64()).round() as u64))
}

impl Summary {
    /// Whether the machine kept up: the 99th percentile of lateness is at most `most`.
    #[must_use]
    pub fn kept_up(&self, most: Span) -> bool {
        self.lateness.quantile(0.99).is_none_or(|late| late <= most)
    }

    /// Sum of a count over both sockets.
    #[must_use]
    pub fn at_ports(&self, count: fn(&PortCounts) -> u64) -> u64 {
        self.ports.iter().map(count).sum()
    }

    /// Timekeeping of the run, where `limit` bounds the 99th percentile of lateness.
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

    /// The exit status of a command that runs another one: that command's own, 128 plus the number of the
    /// signal that ended it, or 124 at the time limit, like timeout(1).
    #[must_use]
    pub fn status(&self) -> u8 {
        match self.end {
            // The system keeps only 8 bits.
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
        // 1 Mbit in half a second of two.
        assert_eq!(direction.while_busy(), Some(Rate::from_mbit(2)));
        assert_eq!(direction.over(Span::from_secs(2)), Some(Rate::from_kbit(500)));
        assert_eq!(DirectionSummary::default().while_busy(), None);
    }
}
