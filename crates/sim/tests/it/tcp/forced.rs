//! The cases of `validation/forced-loss`, run through our TCP over a pipe.

use apportion_core::units::{Rate, Span, Time};
use apportion_scenario::tcp::TcpParams;

use super::pipe::Pipe;

pub type Failure = Box<dyn std::error::Error>;

/// The phase within a tick at which ns-2's first agent boots, measured as the RTT at which its first sample
/// goes from one tick to two. It is the same in every process because ns-2's default generator has a fixed
/// seed.
const NS2_PHASE: f64 = 0.555_88;

/// The phase for a connection between two of ns-2's two-way agents, measured to within 0.0004: round trips of
/// 60 to 67 ms that cross one tick boundary or none.
const NS2_FULL_PHASE: f64 = 0.312_86;

/// One line of the case file.
pub struct Case {
    pub name: String,
    pub profile: String,
    pub algorithm: String,
    pub delayed_ack: bool,
    pub window: u32,
    pub supply: Supply,
    pub stop: Time,
    pub losses: Vec<usize>,
}

pub enum Supply {
    Endless,
    Packets(u64),
    Every(u64, Span),
}

/// The results of one of the two simulators.
#[derive(Default)]
pub struct Run {
    /// Packets offered to the link: seconds, and sequence number in packets.
    pub sent: Vec<(f64, u64)>,
    /// Reductions of the window and timeouts: seconds, and the congestion window after it.
    pub events: Vec<(f64, f64)>,
    pub timeouts: u64,
    pub last_cwnd: f64,
    /// The lines printed: seconds, name, value.
    pub lines: Vec<(f64, &'static str, f64)>,
}

/// Reads the cases of a case file.
pub fn read_cases(text: &str) -> Result<Vec<Case>, Failure> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    lines.map(read_case).collect()
}

fn read_case(line: &str) -> Result<Case, Failure> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [name, profile, algorithm, delack, window, packets, stop, losses] = words[..] else {
        return Err(format!("a case has 8 words: {line}").into());
    };
    let losses = match losses {
        "-" => Vec::new(),
        list => list.split(',').map(str::parse).collect::<Result<_, _>>()?,
    };
    let supply = match (packets, packets.split_once('@')) {
        ("0", _) => Supply::Endless,
        (_, Some((burst, every))) => Supply::Every(burst.parse()?, Span::from_secs_f64(every.parse()?)),
        _ => Supply::Packets(packets.parse()?),
    };
    Ok(Case {
        name: name.to_owned(),
        profile: profile.to_owned(),
        algorithm: algorithm.to_owned(),
        delayed_ack: delack == "1",
        window: window.parse()?,
        supply,
        stop: Time::from_secs(stop.parse()?),
        losses,
    })
}

/// Runs this project's TCP. The link is that of forced-loss.tcl.
pub fn simulate(case: &Case) -> Result<Run, Failure> {
    let mut params = TcpParams::profile(&case.profile).ok_or("no such profile")?;
    params.set("algorithm", &case.algorithm)?;
    params.set("window", &format!("{}p", case.window))?;
    match (case.delayed_ack, &params.delayed_ack) {
        (true, None) => params.set("delayed_ack", "2 100ms")?,
        (true, Some(_)) => {}
        (false, _) => params.set("delayed_ack", "off")?,
    }
    let segment = params.segment.get();
    let syn = u64::from(params.syn);
    let full = case.profile == "ns2-full";
    let phase = if full { NS2_FULL_PHASE } else { NS2_PHASE };
    let phase = Span::from_secs_f64(params.tick.as_secs_f64() * phase);
    // As in forced-loss.tcl: an odd delay where delayed ACKs are due at round times.
    let delay = if full { Span::from_nanos(30_013_700) } else { Span::from_millis(30) };
    let mut pipe = Pipe::new(params, 0, Rate::from_mbit(2), delay).losing(&case.losses);
    pipe.sender = pipe.sender.with_clock_phase(phase);
    pipe.handshake_ack = full;
    // ns-2 ends slightly later than configured, so that nothing else is due then.
    let stop = case.stop + Span::from_micros(50);
    match case.supply {
        Supply::Endless => pipe.start(u64::MAX),
        Supply::Packets(packets) => pipe.start(packets * segment),
        Supply::Every(burst, every) => {
            pipe.start(burst * segment);
            let mut at = Time::ZERO + every;
            while at < case.stop {
                pipe.run(at);
                pipe.with_sender(|sender, now, wire| sender.supply(now, burst * segment, wire));
                at += every;
            }
        }
    }
    pipe.run(stop);

    let mut run = Run::default();
    for (at, segment_sent) in &pipe.sent {
        // The SYN is packet 0 where there is one; data follows.
        let offset = u64::from(segment_sent.seq);
        let number = if offset < syn { 0 } else { (offset - syn) / segment + syn };
        run.sent.push((at.as_secs_f64(), number));
        run.lines.push((at.as_secs_f64(), "send", number as f64));
    }
    let first = pipe.trace.first().ok_or("nothing happened")?;
    let mut last = *first;
    for snapshot in &pipe.trace {
        let at = snapshot.at.as_secs_f64();
        let cut = snapshot.cwnd < last.cwnd || snapshot.timeouts > last.timeouts;
        if cut {
            run.events.push((at, snapshot.cwnd));
        }
        if snapshot.cwnd != last.cwnd {
            run.lines.push((at, "cwnd", snapshot.cwnd));
        }
        if snapshot.ssthresh != last.ssthresh {
            run.lines.push((at, "ssthresh", snapshot.ssthresh));
        }
        if snapshot.timeouts != last.timeouts {
            run.lines.push((at, "timeouts", snapshot.timeouts as f64));
        }
        last = *snapshot;
    }
    run.timeouts = last.timeouts;
    run.last_cwnd = last.cwnd;
    run.lines.sort_by(|a, b| a.0.total_cmp(&b.0));
    Ok(run)
}
