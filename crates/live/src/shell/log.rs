//! Packet logs in the format of mahimahi's mm-link(1), for its graphs and other readers.
//!
//! Source: the format as files show it. Lines begin with whole milliseconds since the start: `# BYTES` is a
//! delivery opportunity, `+ BYTES` a packet that arrived, `- BYTES DELAY` one that left after this many
//! milliseconds, `d PACKETS BYTES` a drop. Deviations: packets leave after the delay of the wire as well, and
//! losses on the wire count as drops, because both are one link here; without a trace the opportunities are
//! the bytes that the rate allows in each millisecond. Lines are written when an event happens. The
//! opportunities of a pause longer than [`MAX_PARTS`] milliseconds are added up in that many parts, so that a
//! packet after a pause need not wait for all of them to be written.
//!
//! Cost: a line per event and per millisecond or opportunity; without a trace at most [`MAX_PARTS`] at once,
//! and with one as many as it has in that many milliseconds. Adding up a pause takes 3 ns an opportunity.

use std::fmt;
use std::io::{self, Write};

use apportion_core::Packet as _;
use apportion_core::delivery_trace::OPPORTUNITY;
use apportion_core::units::{Bytes, Rate, Span, Time};
use apportion_linux::clock::time_of_day;

use super::Speed;
use crate::link::Observer;
use crate::packet::Packet;

/// Maximum of parts in which the opportunities of a pause are written. Chosen: for some packets per second
/// each part is a millisecond, and in a pause of minutes it is shorter than the bins of a graph; 100 lines
/// take about 20 us.
const MAX_PARTS: u64 = 100;

/// The file of a log.
pub type LogFile = Box<dyn Write + Send>;

/// The log of one direction.
pub struct Log {
    /// The file to write to.
    pub file: LogFile,
    /// Name in the header.
    pub name: String,
    /// The source of the rate, for the header.
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
pub(super) struct LogObserver([Writer; 2]);

impl LogObserver {
    /// The logs of a link with these speeds, up and down.
    pub fn new([up, down]: [Log; 2], speeds: [&Speed; 2]) -> Self {
        Self([Writer::new("uplink", up, speeds[0]), Writer::new("downlink", down, speeds[1])])
    }
}

impl Observer for LogObserver {
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
    /// The first error; nothing is written after it.
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
        let part = self.opportunities.part(now);
        while let Some((at, size)) = self.opportunities.next_until(now, part) {
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

/// Delivery opportunities and their times.
enum Opportunities {
    /// There is no limit, and no opportunities are written.
    Unlimited,
    /// Opportunities of a trace, written until `at`.
    Trace { at: Time, instants: std::iter::Peekable<Box<dyn Iterator<Item = Time> + Send>> },
    /// Opportunities of rates, the next rate last, by the millisecond; written until `at`.
    Rates { at: Time, now: Rate, later: Vec<(Time, Rate)>, rest: u128 },
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
                Self::Trace { at: Time::ZERO, instants: instants.peekable() }
            }
        }
    }

    /// The length of a part in milliseconds, for opportunities until `until`.
    fn part(&self, until: Time) -> u64 {
        match self {
            Self::Unlimited => 1,
            Self::Trace { at, .. } | Self::Rates { at, .. } => {
                ms(until).saturating_sub(ms(*at)).div_ceil(MAX_PARTS).max(1)
            }
        }
    }

    /// The next opportunity, unless it is later than `until`: of a single millisecond or instant, or added up
    /// over `part` milliseconds.
    fn next_until(&mut self, until: Time, part: u64) -> Option<(Time, Bytes)> {
        match self {
            Self::Unlimited => None,
            Self::Trace { at, instants } => {
                let Some(first) = instants.next_if(|instant| *instant <= until) else {
                    *at = until;
                    return None;
                };
                *at = first;
                let mut size = OPPORTUNITY;
                if part > 1 {
                    let end = first + Span::from_millis(part);
                    while let Some(instant) = instants.next_if(|instant| *instant < end && *instant <= until)
                    {
                        *at = instant;
                        size += OPPORTUNITY;
                    }
                }
                Some((*at, size))
            }
            Self::Rates { at, now, later, rest } => {
                let whole = until.since(*at).as_nanos() / 1_000_000;
                let end = *at + Span::from_millis(part.min(whole));
                // A rate of n bit/s allows n thousandths of a bit in a millisecond.
                let mut thousandths = *rest;
                while *at < end {
                    while let Some((_, rate)) = later.pop_if(|(from, _)| *from <= *at) {
                        *now = rate;
                    }
                    // A rate applies from the first millisecond that begins after its change.
                    let next = later.last().map_or(end, |(from, _)| end.min(*from));
                    let span = next.since(*at).as_nanos().div_ceil(1_000_000);
                    thousandths += u128::from(span) * u128::from(now.as_bit());
                    *at += Span::from_millis(span);
                }
                *rest = thousandths % 8_000;
                let bytes = u64::try_from(thousandths / 8_000).unwrap_or(u64::MAX);
                (whole > 0).then_some((end, Bytes::new(bytes)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use apportion_core::delivery_trace::DeliveryTrace;

    use super::*;

    fn trace(ms: &[u64]) -> DeliveryTrace {
        DeliveryTrace::new(ms.iter().copied().map(Span::from_millis).collect()).unwrap()
    }

    fn lines(speed: &Speed, until: u64) -> Vec<(u64, u64)> {
        let (mut opportunities, until) = (Opportunities::of(speed), Time::from_millis(until));
        let part = opportunities.part(until);
        std::iter::from_fn(|| opportunities.next_until(until, part))
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
        let trace = Speed::Trace(trace(&[2, 2, 3]));
        assert_eq!(lines(&trace, 5), [(2, 1_504), (2, 1_504), (3, 1_504), (5, 1_504), (5, 1_504)]);
        assert!(lines(&Speed::Unlimited, 1_000).is_empty());
    }

    #[test]
    fn a_pause_is_logged_in_at_most_a_hundred_parts() {
        // An hour is 100 parts of 36 s; 1 Mbit/s allows 4.5 MB in each.
        let hour = 3_600_000;
        let events = lines(&Speed::Rate(Rate::from_mbit(1)), hour);
        assert_eq!((events.len(), events[0], events[99]), (100, (36_000, 4_500_000), (hour, 4_500_000)));
        // 201 ms are 67 parts of 3 ms. Up to 100 ms, 12.5 kB; then 101 kB.
        let steps = Speed::parse_steps("0s 1Mbit, 100ms 8Mbit").unwrap();
        let events = lines(&steps, 201);
        assert_eq!((events.len(), events[33]), (67, (102, 125 + 2_000)));
        assert_eq!(events.iter().map(|(_, size)| size).sum::<u64>(), 12_500 + 101_000);
        // One each 5 ms: 200 in a second, which has parts of 10 ms.
        let events = lines(&Speed::Trace(trace(&[5])), 1_000);
        assert_eq!((events.len(), events[0]), (100, (10, 3_008)));
        assert_eq!(events.iter().map(|(_, size)| size).sum::<u64>(), 200 * 1_504);
    }
}
