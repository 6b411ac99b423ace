//! Runs a script: its time, and the comparison of what leaves with what must.

use std::fmt::Display;

use apportion_core::Ecn;
use apportion_core::units::{Span, Time};

use crate::applies;
use crate::code::{self, Names, Stop};
use crate::endpoint::{Agreed, Endpoint, Sent};
use crate::parse::parse;
use crate::script::{Call, EcnField, Event, Packet, Script, TcpOption, What, When};
use crate::settings::Settings;
use crate::verdict::{Difference, Reason, Verdict};

/// The largest number of segments that the endpoint may send.
const MOST_SENT: u64 = 200_000;
/// How much later than allowed a segment may leave and still be compared, to say when it left.
const LATEST: Span = Span::from_secs(120);

/// Judges the simulator's TCP by the text of a script.
#[must_use]
pub fn judge(text: &str) -> Verdict {
    match parse(text) {
        Ok(script) => run(&script),
        Err(error) => Verdict::Unreadable(error.to_string()),
    }
}

/// Runs a script up to the first event that the model does not have.
fn run(script: &Script) -> Verdict {
    let foreign = applies::first_foreign(&script.events);
    let events = &script.events[..foreign.as_ref().map_or(script.events.len(), |(at, _)| *at)];
    let mut run = match Run::new(script) {
        Ok(run) => run,
        Err(reason) => return Verdict::NotApplicable(foreign.map_or(reason, |(_, reason)| reason)),
    };
    for event in events {
        match run.event(event) {
            Ok(()) => {}
            Err(End::Differs(expected, got)) => {
                return Verdict::Fail(Difference { line: event.line, expected, got });
            }
            Err(End::Foreign(reason)) => return run.end(event.line, reason),
        }
    }
    match foreign {
        Some((at, reason)) => run.end(script.events[at].line, reason),
        None => Verdict::Pass,
    }
}

/// Why a run ends before the end of its script.
enum End {
    /// What was expected, and what happened.
    Differs(String, String),
    Foreign(Reason),
}

fn differs<T>(expected: impl Display, got: impl Display) -> Result<T, End> {
    Err(End::Differs(expected.to_string(), got.to_string()))
}

struct Run {
    endpoint: Endpoint,
    names: Names,
    tolerance: Span,
    tolerance_percent: f64,
    now: Time,
    /// The time of the last event, from which relative times count.
    last: Time,
    /// The descriptor of the connection.
    descriptor: Option<i64>,
    /// Whether the application has closed, for writing and for reading.
    closed: bool,
    reads_end: bool,
    /// Segments and assertions after the handshake that hold.
    held: u32,
}

impl Run {
    fn new(script: &Script) -> Result<Self, Reason> {
        let mut settings = Settings::default();
        for event in &script.events {
            if let (When::Untimed, What::Shell(commands)) = (event.at, &event.what) {
                settings.apply(commands)?;
            }
        }
        let no_delay = |event: &Event| match &event.what {
            What::Call(call) => call.args.iter().any(|word| word == "TCP_NODELAY"),
            _ => false,
        };
        settings.nagle = !script.events.iter().any(no_delay);
        let syn = script.events.iter().find_map(|event| match &event.what {
            What::Inject(packet) if packet.flags.syn => Some(packet),
            _ => None,
        });
        let Some(syn) = syn else { return Err(Reason::new("no connection", "no SYN of a peer")) };
        let agreed = agree(&settings, syn);
        let beyond = script.events.iter().find_map(|event| match &event.what {
            What::Inject(packet) if packet.flags.syn && packet.flags.ack != syn.flags.ack => Some(packet),
            _ => None,
        });
        if let Some(beyond) = beyond {
            return Err(Reason::new("several connections", &beyond.to_string()));
        }
        if !agreed.sack {
            return Err(Reason::new("no selective acknowledgments", &syn.to_string()));
        }
        let counts = sends_counters(script, &settings, syn);
        let room = if agreed.timestamps { 12 } else { 0 } + if counts { 12 } else { 0 };
        // RFC 9293 section 3.7.1, and the least that Linux takes.
        let mss = agreed.mss.unwrap_or(536).clamp(88, 1_460) - room;
        let params = settings.params(syn.flags.ack, mss)?;
        let option = |name| {
            let found = script.options.iter().find(|(key, _)| key == name);
            found.and_then(|(_, value)| value.parse::<u32>().ok())
        };
        Ok(Self {
            endpoint: Endpoint::new(params, settings.probes, agreed),
            names: Names::new(),
            tolerance: Span::from_micros(option("tolerance_usecs").map_or(4_000, u64::from)),
            tolerance_percent: option("tolerance_percent").map_or(12.5, f64::from),
            now: Time::ZERO,
            last: Time::ZERO,
            descriptor: None,
            closed: false,
            reads_end: false,
            held: 0,
        })
    }

    /// The verdict of a script whose rest, from `line` on, is not applied.
    fn end(&self, line: usize, reason: Reason) -> Verdict {
        if self.held > 0 { Verdict::Part(line, reason) } else { Verdict::NotApplicable(reason) }
    }

    fn event(&mut self, event: &Event) -> Result<(), End> {
        if self.endpoint.sent() > MOST_SENT {
            return Err(End::Foreign(Reason::new("longer than a run may be", "segments")));
        }
        if let What::Expect(packet) = &event.what {
            return self.expect(event.at, packet);
        }
        if let When::Between { relative, from, .. } = event.at {
            self.advance(if relative { self.last + from } else { Time::ZERO + from });
        }
        self.last = self.now;
        match &event.what {
            What::Inject(packet) if packet.flags.rst => Ok(()),
            What::Inject(packet) if packet.ack.is_some_and(|ack| ack > self.endpoint.snd_nxt()) => Err(
                End::Foreign(Reason::new("segments that no peer of the model sends", &packet.to_string())),
            ),
            What::Inject(packet) => {
                let ecn = match packet.ecn {
                    Some(EcnField::Is(ecn)) => ecn,
                    _ => Ecn::NotEct,
                };
                self.endpoint.inject(self.now, packet, ecn);
                Ok(())
            }
            What::Call(call) => self.call(call),
            What::Code(code) => self.assert(code),
            What::Expect(_) | What::Foreign(_) | What::Shell(_) => Ok(()),
        }
    }

    /// Handles all timers up to `to`.
    fn advance(&mut self, to: Time) {
        while let Some(at) = self.endpoint.next_timer().filter(|&at| at <= to) {
            self.now = self.now.max(at);
            self.endpoint.on_timer(self.now);
        }
        self.now = self.now.max(to);
    }

    fn call(&mut self, call: &Call) -> Result<(), End> {
        let descriptor = call.args.first().and_then(|word| word.parse().ok());
        match call.name.as_str() {
            "accept" | "connect" if self.descriptor.is_some() => {
                return Err(End::Foreign(Reason::new("several connections", &call.name)));
            }
            "accept" => self.descriptor = call.result,
            "connect" => {
                self.descriptor = descriptor;
                self.endpoint.connect(self.now);
            }
            _ if descriptor != self.descriptor => {}
            "write" | "send" | "sendto" if call.result == Some(-1) => {
                // EPIPE; other errors come from a buffer that the model does not have.
                let reason = || End::Foreign(Reason::new("a full send buffer", &call.name));
                return if self.closed { Ok(()) } else { Err(reason()) };
            }
            "write" | "send" | "sendto" => self.endpoint.write(self.now, call.number(2).unwrap_or(0)),
            "close" | "shutdown" => {
                let how = call.args.get(1).map_or("SHUT_RDWR", String::as_str);
                // Linux acknowledges and stores what arrives after SHUT_RD.
                self.reads_end |= how != "SHUT_WR";
                if how != "SHUT_RD" && !self.closed {
                    self.closed = true;
                    self.endpoint.close(self.now);
                }
            }
            "read" | "recv" => {
                let most = call.number(2).unwrap_or(0);
                let bytes = self.endpoint.read(most);
                let is_empty = bytes == 0 && most > 0 && !self.endpoint.is_finished() && !self.reads_end;
                let got = if is_empty { -1 } else { bytes as i64 };
                if call.result.is_some_and(|result| result != got) {
                    return differs(format!("read of {}", call.result.unwrap_or(0)), got);
                }
                self.held += 1;
            }
            "ioctl" => {
                let (unread, wanted) = (self.endpoint.unread(), call.bracketed(2).unwrap_or(0));
                if unread != wanted {
                    return differs(format!("{wanted} unread bytes"), unread);
                }
                self.held += 1;
            }
            _ => {}
        }
        Ok(())
    }

    fn assert(&mut self, code: &str) -> Result<(), End> {
        let info = self.endpoint.info();
        match code::run(code, &info, &mut self.names) {
            Ok(held) => {
                self.held += held;
                Ok(())
            }
            Err(stop) => match applies::of_code(&stop, &info) {
                Some(reason) => Err(End::Foreign(reason)),
                None => match stop {
                    Stop::False(text, values) => differs(text, values),
                    Stop::Unknown(_) | Stop::Foreign(_) => Ok(()),
                },
            },
        }
    }

    // -----------------------------------------------------------------------------------------
    // What must leave

    fn expect(&mut self, at: When, packet: &Packet) -> Result<(), End> {
        let window = match at {
            When::Between { relative, from, to } => {
                let start = if relative { self.last } else { Time::ZERO };
                Some((start + from, start + to.unwrap_or(from)))
            }
            When::Untimed | When::Any => None,
        };
        let deadline = window.map_or(self.now, |(_, to)| to) + LATEST;
        let Some(mut sent) = self.next_sent(deadline) else {
            return differs(packet, "nothing");
        };
        let size = sent.len;
        while sent.len < packet.len.into() && self.join(&mut sent, size) {}
        if let Some((from, to)) = window {
            self.check_time(from, to, &sent)?;
        }
        if let Some(difference) = difference(packet, &sent, self.endpoint.is_accurate()) {
            return differs(format!("{packet}{}", in_parentheses(&difference)), &sent);
        }
        for option in packet.options.iter().flatten() {
            if let TcpOption::Timestamp(value, _) = option {
                self.endpoint.name_timestamp(*value, &sent);
            }
        }
        self.held += u32::from(!packet.flags.syn);
        self.last = sent.at;
        self.now = self.now.max(sent.at);
        Ok(())
    }

    /// The next segment that leaves until `deadline`.
    fn next_sent(&mut self, deadline: Time) -> Option<Sent> {
        while self.endpoint.queue.is_empty() {
            let at = self.endpoint.next_timer().filter(|&at| at <= deadline)?;
            self.now = self.now.max(at);
            self.endpoint.on_timer(self.now);
        }
        self.endpoint.queue.pop_front()
    }

    /// Appends the next segment to `sent`, whose segments have `size` bytes, if it leaves with it and continues it.
    fn join(&mut self, sent: &mut Sent, size: u32) -> bool {
        let deadline = sent.at + self.tolerance;
        let Some(next) = self.next_sent(deadline) else { return false };
        let continues = next.at <= deadline
            && next.seq == sent.seq.wrapping_add(sent.len)
            && sent.len.is_multiple_of(size.max(1))
            && next.len > 0
            && (next.flags.syn, next.ack, &next.options) == (sent.flags.syn, sent.ack, &sent.options);
        if continues {
            sent.len += next.len;
            sent.flags.fin |= next.flags.fin;
            sent.flags.ace |= next.flags.ace;
        } else {
            self.endpoint.queue.push_front(next);
        }
        continues
    }

    fn check_time(&self, from: Time, to: Time, sent: &Sent) -> Result<(), End> {
        let gap = from.since(self.last).as_nanos() as f64;
        let tolerance = self.tolerance.max(Span::from_nanos((gap * self.tolerance_percent / 100.0) as u64));
        if sent.at + tolerance < from || sent.at > to + tolerance {
            let seconds = |time: Time| time.as_nanos() as f64 / 1e9;
            let expected = if from == to {
                format!("{}", seconds(from))
            } else {
                format!("{} to {}", seconds(from), seconds(to))
            };
            return differs(
                format!("a segment at {expected} s"),
                format!("{sent} at {} s", seconds(sent.at)),
            );
        }
        Ok(())
    }
}

fn in_parentheses(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(" ({text})") }
}

/// Whether both ends send byte counters of Accurate ECN, for which each segment leaves room, when the application first
/// writes.
fn sends_counters(script: &Script, settings: &Settings, syn: &Packet) -> bool {
    let mut settings = settings.clone();
    for event in &script.events {
        match &event.what {
            // The run ends at commands that it cannot follow.
            What::Shell(commands) if event.at != When::Untimed && settings.apply(commands).is_err() => break,
            What::Call(call) if matches!(call.name.as_str(), "write" | "send" | "sendto") => break,
            _ => {}
        }
    }
    let are_said = syn.options.iter().flatten().any(|option| matches!(option, TcpOption::Counters(_)));
    settings.counters
        && settings.has_accurate_ecn(syn.flags.ack)
        && if syn.flags.ack { are_said } else { syn.flags.ace == 7 }
}

/// The result of the handshake, in which the peer sends `syn`.
fn agree(settings: &Settings, syn: &Packet) -> Agreed {
    let mut agreed = Agreed { asks: (settings.sack, settings.timestamps), ..Agreed::default() };
    for option in syn.options.iter().flatten() {
        match option {
            TcpOption::Mss(size) => agreed.mss = Some(*size),
            TcpOption::SackOk => agreed.sack = settings.sack,
            TcpOption::Timestamp(..) => agreed.timestamps = settings.timestamps,
            TcpOption::WindowScale(shift) => agreed.scale = Some(*shift),
            TcpOption::Sack(_) | TcpOption::Counters(_) | TcpOption::Other(_) => {}
        }
    }
    agreed
}

/// The first field of a segment that differs from what a script expects; an empty text if the script shows it.
///
/// With Accurate ECN byte counters are not compared, and Prague's ECT(1) stands for the ECT(0) of other controls, which Linux
/// sends on pure ACKs too.
fn difference(expected: &Packet, sent: &Sent, is_accurate: bool) -> Option<String> {
    let (mut flags, mut other) = (expected.flags, sent.flags);
    (flags.other, other.other) = (false, false);
    let shown = flags != other
        || (expected.seq, u32::from(expected.len)) != (sent.seq, sent.len)
        || expected.ack != sent.ack;
    if shown {
        return Some(String::new());
    }
    let is_ecn = match expected.ecn {
        None => true,
        Some(EcnField::Is(Ecn::Ect0)) if is_accurate => sent.len == 0 || sent.ecn == Ecn::Ect1,
        Some(EcnField::Is(ecn)) => ecn == sent.ecn,
        Some(EcnField::Capable) => matches!(sent.ecn, Ecn::Ect0 | Ecn::Ect1),
    };
    if !is_ecn {
        return Some(format!("ECN field {:?}, not {:?}", expected.ecn, sent.ecn));
    }
    if let Some(window) = expected.window.filter(|&window| expected.flags.syn && window != sent.window) {
        return Some(format!("window {window}, not {}", sent.window));
    }
    let wanted: Vec<_> = expected
        .options
        .as_ref()?
        .iter()
        .filter(|option| !matches!(option, TcpOption::Counters(_)))
        .collect();
    let is_sent = |option: &TcpOption| sent.options.iter().any(|sent| is_same(option, sent));
    let is_same = wanted.len() == sent.options.len() && wanted.into_iter().all(is_sent);
    (!is_same).then(String::new)
}

/// Whether two options are the same; of timestamps only the echo is compared.
fn is_same(expected: &TcpOption, sent: &TcpOption) -> bool {
    match (expected, sent) {
        (TcpOption::Timestamp(_, echo), TcpOption::Timestamp(_, sent)) => echo == sent,
        _ => expected == sent,
    }
}
