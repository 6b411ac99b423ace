//! Logs of packets as mm-link(1) of mahimahi writes them, for its graphs and those of others who read them.
//!
//! Source: the format as files show it. Lines begin with whole milliseconds since the start: `# BYTES` what
//! could be delivered then, `+ BYTES` a packet came in, `- BYTES DELAY` one left after so many milliseconds,
//! `d PACKETS BYTES` so many were dropped. What deviates: packets leave after the delay of the wire as well, and
//! what was lost on the wire stands as dropped, because one link is both here; without a trace the opportunities
//! are what the rate gives in each millisecond.
//!
//! Cost: a line per event, and one per millisecond or opportunity.

use std::fmt;
use std::io::{self, Write};

use apportion_core::Packet as _;
use apportion_core::units::{Bytes, Rate, Span, Time};

use super::Speed;
use crate::clock::time_of_day;
use crate::link::Witness;
use crate::pace::OPPORTUNITY;
use crate::packet::Packet;

/// Where a log goes.
pub type LogFile = Box<dyn Write + Send>;

/// The log of one direction.
pub struct Log {
    /// Where it goes.
    pub file: LogFile,
    /// Its name, for the header.
    pub name: String,
    /// What gives the speed, for the header.
    pub source: String,
    /// The command behind the link, for the header.
    pub command: String,
    /// The queue, for the header.
    pub queue: String,
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Writes both logs.
#[derive(Debug)]
pub(super) struct LogWitness([Writer; 2]);

impl LogWitness {
    /// The logs of a link that goes at these speeds, up and down.
    pub fn new([up, down]: [Log; 2], speeds: [&Speed; 2]) -> Self {
        Self([Writer::new("uplink", up, speeds[0]), Writer::new("downlink", down, speeds[1])])
    }
}

impl Witness for LogWitness {
    fn entered(&mut self, now: Time, link: u32, packet: &Packet) {
        self.0[link as usize & 1].entry(now, format_args!("+ {}", packet.size().get()));
    }

    fn gone(&mut self, now: Time, link: u32, packet: &Packet) {
        self.0[link as usize & 1].entry(now, format_args!("d 1 {}", packet.size().get()));
    }

    fn arrived(&mut self, now: Time, link: u32, packet: &Packet) {
        let delay = ms(now).saturating_sub(ms(packet.arrived));
        self.0[link as usize & 1].entry(now, format_args!("- {} {delay}", packet.size().get()));
    }

    fn finish(self: Box<Self>, now: Time) -> io::Result<()> {
        self.0.into_iter().try_for_each(|writer| writer.finish(now))
    }
}

const fn ms(time: Time) -> u64 {
    time.as_nanos() / 1_000_000
}

struct Writer {
    file: LogFile,
    opportunities: Opportunities,
    /// The first failure: nothing is written after it.
    result: io::Result<()>,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("result", &self.result).finish_non_exhaustive()
    }
}

impl Writer {
    fn new(direction: &str, log: Log, speed: &Speed) -> Self {
        let Log { mut file, name, source, command, queue } = log;
        let started = time_of_day().as_nanos() / 1_000_000;
        let header = format!(
            "# mahimahi mm-link ({direction}) [{source}] > {name}\n# command line: {}\n# queue: {queue}\n\
             # init timestamp: {started}\n# base timestamp: 0\n",
            command.replace('\n', " "),
        );
        let result = file.write_all(header.as_bytes());
        Self { file, opportunities: Opportunities::of(speed), result }
    }

    fn entry(&mut self, now: Time, what: fmt::Arguments<'_>) {
        if self.result.is_ok() {
            self.result = self.try_entry(now, what);
        }
    }

    fn try_entry(&mut self, now: Time, what: fmt::Arguments<'_>) -> io::Result<()> {
        self.opportunities_until(now)?;
        writeln!(self.file, "{} {what}", ms(now))
    }

    fn opportunities_until(&mut self, now: Time) -> io::Result<()> {
        while let Some((at, size)) = self.opportunities.next_until(now) {
            if size > Bytes::ZERO {
                writeln!(self.file, "{} # {}", ms(at), size.get())?;
            }
        }
        Ok(())
    }

    fn finish(mut self, now: Time) -> io::Result<()> {
        self.result.as_ref().map_err(|error| io::Error::new(error.kind(), error.to_string()))?;
        self.opportunities_until(now)?;
        self.file.flush()
    }
}

/// What could be delivered, and when.
enum Opportunities {
    /// There is no limit, so there is nothing to say.
    Unlimited,
    /// Of a trace.
    Trace(std::iter::Peekable<Box<dyn Iterator<Item = Time> + Send>>),
    /// Of rates from their times on, the next one last; by the millisecond.
    Rates { at: Time, now: Rate, later: Vec<(Time, Rate)>, rest: u64 },
}

impl Opportunities {
    fn of(speed: &Speed) -> Self {
        let rates = |steps: Vec<(Time, Rate)>| Self::Rates {
            at: Time::ZERO,
            now: Rate::ZERO,
            later: steps.into_iter().rev().collect(),
            rest: 0,
        };
        match speed {
            Speed::Unlimited => Self::Unlimited,
            Speed::Rate(rate) => rates(vec![(Time::ZERO, *rate)]),
            Speed::Steps(steps) => rates(steps.clone()),
            Speed::Trace(trace) => {
                let instants: Box<dyn Iterator<Item = Time> + Send> = Box::new(trace.instants());
                Self::Trace(instants.peekable())
            }
        }
    }

    /// The next one, unless it is later than `now`.
    fn next_until(&mut self, until: Time) -> Option<(Time, Bytes)> {
        match self {
            Self::Unlimited => None,
            Self::Trace(instants) => Some((instants.next_if(|at| *at <= until)?, OPPORTUNITY)),
            Self::Rates { at, now, later, rest } => {
                let end = *at + Span::from_millis(1);
                if end > until {
                    return None;
                }
                if let Some((_, rate)) = later.pop_if(|(from, _)| *from <= *at) {
                    *now = rate;
                }
                *at = end;
                // A rate in bit/s gives as many thousandths of a bit in a millisecond.
                let thousandths = *rest + now.as_bit();
                *rest = thousandths % 8_000;
                Some((end, Bytes::new(thousandths / 8_000)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pace::Trace;

    fn lines(speed: &Speed, until: u64) -> Vec<(u64, u64)> {
        let mut opportunities = Opportunities::of(speed);
        std::iter::from_fn(|| opportunities.next_until(Time::from_millis(until)))
            .map(|(at, size)| (ms(at), size.get()))
            .collect()
    }

    #[test]
    fn a_rate_gives_its_bytes_in_each_millisecond() {
        // 1 Mbit/s is 125 B/ms; 12 kbit/s 1.5 B/ms.
        assert_eq!(lines(&Speed::Rate(Rate::from_mbit(1)), 2), [(1, 125), (2, 125)]);
        assert_eq!(lines(&Speed::Rate(Rate::from_kbit(12)), 4), [(1, 1), (2, 2), (3, 1), (4, 2)]);
        let steps = Speed::parse_steps("0s 1Mbit, 2ms 8Mbit").unwrap();
        assert_eq!(lines(&steps, 4), [(1, 125), (2, 125), (3, 1_000), (4, 1_000)]);
    }

    #[test]
    fn a_trace_gives_its_opportunities_again_and_again() {
        let trace = Speed::Trace(Trace::parse("2\n2\n3\n").unwrap());
        assert_eq!(lines(&trace, 5), [(2, 1_504), (2, 1_504), (3, 1_504), (5, 1_504), (5, 1_504)]);
        assert!(lines(&Speed::Unlimited, 1_000).is_empty());
    }
}
