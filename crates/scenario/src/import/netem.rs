//! The options of tc-netem(8).

use apportion_core::units::{Rate, Span};

use super::link::{Jitter, Link, Loss, Queue};
use super::report::Report;
use super::units::{self, percent};

/// The default limit of netem in packets. tc-netem(8) shows it.
const LIMIT: u64 = 1_000;
/// A full packet, in bits.
const FULL: f64 = 12_000.0;

/// The parts of a delay.
#[derive(Default)]
struct Delay {
    mean: Span,
    spread: Span,
    distribution: Option<String>,
}

/// Reads options into a link; false if one is refused.
pub(super) fn read(words: &[String], line: u32, link: &mut Link, report: &mut Report) -> bool {
    let mut reader =
        Reader { words, line, report, delay: Delay::default(), has_rate: false, limit: None, corrupt: 0.0 };
    let result = reader.all(link);
    let Reader { delay, has_rate, limit, corrupt, .. } = reader;
    if let Err(why) = result {
        report.refuse(line, why);
        return false;
    }
    // With a rate netem sends in order.
    apply_delay(&delay, !has_rate, line, link, report);
    apply_limit(limit, line, link, report);
    if corrupt > 0.0 {
        apply_corruption(corrupt, line, link, report);
    }
    true
}

struct Reader<'a> {
    words: &'a [String],
    line: u32,
    report: &'a mut Report,
    delay: Delay,
    has_rate: bool,
    limit: Option<u64>,
    corrupt: f64,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        Some(first)
    }

    /// The next word if it begins like a number.
    fn number(&mut self) -> Option<&'a str> {
        let starts = |c: char| c.is_ascii_digit() || matches!(c, '.' | '$');
        let word = self.words.first()?;
        (word.starts_with(starts) || word.starts_with('-') && word.len() > 1).then(|| self.next())?
    }

    /// The number after an option.
    fn value(&mut self, option: &str) -> Result<&'a str, String> {
        self.number().ok_or_else(|| format!("netem: `{option}` wants a value behind it"))
    }

    fn note(&mut self, message: impl Into<String>) {
        self.report.note(self.line, message);
    }

    /// Skips a correlation.
    fn correlation(&mut self, of: &str) {
        if let Some(correlation) = self.number().filter(|text| percent(text) != Ok(0.0)) {
            self.note(format!("{of}: its correlation of {correlation}: each packet draws for itself"));
        }
    }

    fn all(&mut self, link: &mut Link) -> Result<(), String> {
        while let Some(option) = self.next() {
            match option {
                "delay" | "latency" => self.delay()?,
                "distribution" => self.distribution(),
                "loss" | "drop" => self.loss(link)?,
                "rate" => self.rate(link)?,
                "limit" => self.limit = Some(units::count(self.value(option)?, u64::from(u32::MAX))?),
                "corrupt" => {
                    self.corrupt = percent(self.value(option)?)?;
                    self.correlation(option);
                }
                "duplicate" | "reorder" => {
                    let share = self.value(option)?;
                    if percent(share)? == 0.0 {
                        self.number();
                        continue;
                    }
                    let why = if option == "duplicate" {
                        "no packet comes twice"
                    } else {
                        "packets that go at once are not drawn; `jitter` with reorder = true has packets overtake"
                    };
                    self.note(format!("{option} {share}: {why}"));
                    self.correlation(option);
                }
                "gap" => {
                    let gap = self.value(option)?;
                    if gap != "0" {
                        self.note(format!("gap {gap}: no packet of each {gap} goes at once"));
                    }
                }
                "ecn" => self.note("ecn: what is lost is not marked instead"),
                "seed" => drop(self.next()),
                "slot" => {
                    let is_option =
                        |word: &str| ["delay", "loss", "rate", "limit", "corrupt"].contains(&word);
                    let mut skipped = vec![];
                    while self.words.first().is_some_and(|word| !is_option(word)) {
                        skipped.extend(self.next());
                    }
                    self.note(format!(
                        "slot {}: packets are not gathered; `aggregate` of a link is near to it",
                        skipped.join(" ")
                    ));
                }
                _ => {
                    let mend = "tc-netem(8) lists its options";
                    return Err(format!("netem: there is no option `{option}`; {mend}"));
                }
            }
        }
        Ok(())
    }

    fn delay(&mut self) -> Result<(), String> {
        self.delay.mean = units::time(self.value("delay")?)?;
        if let Some(spread) = self.number() {
            self.delay.spread = units::time(spread)?;
            self.correlation("jitter");
        }
        Ok(())
    }

    fn distribution(&mut self) {
        let name = self.next().unwrap_or_default();
        if !["uniform", "normal"].contains(&name) {
            self.note(format!(
                "distribution {name}: `normal` stands for it, with the same mean and deviation"
            ));
        }
        self.delay.distribution = Some(name.to_owned());
    }

    fn rate(&mut self, link: &mut Link) -> Result<(), String> {
        let rate = self.value("rate")?;
        // 0 means no rate.
        if !["0", "0bit", "0kbit", "0mbit"].contains(&rate.to_ascii_lowercase().as_str()) {
            link.rate = Some(units::rate(rate)?);
            self.has_rate = true;
        }
        // In the output of tc(8), names precede the numbers.
        let names = ["packetoverhead", "cellsize", "celloverhead"];
        let mut more = Vec::new();
        loop {
            match self.words.first() {
                Some(word) if names.contains(&word.as_str()) => drop(self.next()),
                _ => match self.number() {
                    Some(number) => more.push(number),
                    None => break,
                },
            }
        }
        if !more.is_empty() {
            self.note(format!("rate {rate} {}: packets are sent with their own size alone", more.join(" ")));
        }
        Ok(())
    }

    fn loss(&mut self, link: &mut Link) -> Result<(), String> {
        // In the output of tc(8), names precede the numbers.
        let names = ["p", "r", "1-h", "1-k", "p13", "p31", "p32", "p23", "p14"];
        let model = match self.words.first().map(String::as_str) {
            Some("gemodel" | "state" | "random") => self.next().unwrap_or_default(),
            _ => "random",
        };
        if model == "random" {
            let share = percent(self.value("loss")?)?;
            self.correlation("loss");
            self.lose(link, if share > 0.0 { Loss::Random(share) } else { Loss::None });
            return Ok(());
        }
        let mut given = Vec::new();
        loop {
            match self.words.first() {
                Some(word) if names.contains(&word.as_str()) => drop(self.next()),
                _ => match self.number() {
                    Some(number) => given.push(percent(number)?),
                    None => break,
                },
            }
        }
        let at = |place: usize| given.get(place).copied();
        let p = at(0).ok_or_else(|| format!("netem: `loss {model}` wants a probability behind it"))?;
        let r = at(1).unwrap_or(100.0 - p);
        let [mut h, mut k] = [0.0, 100.0];
        if model == "gemodel" {
            [h, k] = [100.0 - at(2).unwrap_or(100.0), 100.0 - at(3).unwrap_or(0.0)];
        } else if given.iter().skip(2).zip([0.0, 100.0, 0.0]).any(|(given, plain)| *given != plain) {
            self.note(
                "loss state: `p32`, `p23` and `p14` are not taken; the losses of links have two states",
            );
        }
        if r == 0.0 && p > 0.0 {
            return Err(format!(
                "netem: `loss {model}` never gets out of the bad state; write a second probability above 0%"
            ));
        }
        let loss = match (given.len(), k) {
            (1, _) if p > 0.0 => Loss::Random(p),
            _ if p > 0.0 => Loss::Bursts { p, r, h, k },
            (_, 100.0) => Loss::None,
            _ => Loss::Random(100.0 - k),
        };
        self.lose(link, loss);
        Ok(())
    }

    /// Adds the losses of this netem to those of the enclosing ones.
    fn lose(&mut self, link: &mut Link, loss: Loss) {
        link.loss = match (&link.loss, loss) {
            (Loss::None, loss) => loss,
            (_, Loss::None) => return,
            (Loss::Random(one), Loss::Random(other)) => Loss::Random(either(*one, other)),
            _ => {
                return self.note(
                    "loss: losses in bursts leave no room for others; those of the netem around it stay",
                );
            }
        };
    }
}

/// The combined percentage of two independent losses.
fn either(one: f64, other: f64) -> f64 {
    100.0 - (100.0 - one) * (100.0 - other) / 100.0
}

/// Sets the delay of the wire and its jitter. netem draws around the mean; here the minimum is separate. The
/// range is `spread` on both sides without a table, which Linux draws uniformly, and three deviations with
/// one.
fn apply_delay(delay: &Delay, reorder: bool, line: u32, link: &mut Link, report: &mut Report) {
    let is_normal = delay.distribution.as_deref().is_some_and(|name| name != "uniform");
    let wanted = Span::from_nanos(delay.spread.as_nanos().saturating_mul(if is_normal { 3 } else { 1 }));
    let half = wanted.min(delay.mean);
    if half < wanted {
        report.note(line, format!(
            "delay {} {}: netem cuts the delays below 0; the range is narrower around the same mean instead",
            delay.mean, delay.spread
        ));
    }
    link.delay += delay.mean.saturating_sub(half);
    if half > Span::ZERO {
        if link.jitter.is_some() {
            report.note(line, "delay: a link has one jitter; that of the netem around it is left out");
        }
        link.jitter = Some(Jitter { max: half + half, is_normal, reorder });
    }
}

/// netem holds packets that wait for its rate and packets in flight in one buffer.
fn apply_limit(limit: Option<u64>, line: u32, link: &mut Link, report: &mut Report) {
    let packets = limit.unwrap_or(LIMIT).max(1);
    let delay = link.delay.as_secs_f64();
    let fits = |rate: Rate| rate.as_bit() as f64 * delay / FULL;
    let most = format!("{:.1} Mb/s", packets as f64 * FULL / delay / 1e6);
    match link.rate {
        Some(rate) => {
            link.queue = Queue::Text(format!("{{ kind = \"fifo\", limit = \"{packets}p\" }}"));
            if fits(rate) > packets as f64 {
                report.note(line, format!(
                    "limit {packets}: netem counts packets on their way too, so that {most} of full packets pass there; here all of the rate"
                ));
            }
        }
        None if limit.is_some() && delay > 0.0 => report.note(line, format!(
            "limit {packets}: netem counts packets on their way too, so that {most} of full packets pass there; here nothing limits them"
        )),
        None => (),
    }
}

/// A packet with a wrong bit fails its checksum at the receiver: it is lost.
fn apply_corruption(percent: f64, line: u32, link: &mut Link, report: &mut Report) {
    match link.loss {
        Loss::None => link.loss = Loss::Random(percent),
        Loss::Random(lost) => link.loss = Loss::Random(either(lost, percent)),
        Loss::Bursts { .. } => {
            report.note(line, format!("corrupt {percent}%: losses in bursts leave no room for others"));
            return;
        }
    }
    report
        .note(line, format!("corrupt {percent}%: taken as losses, since receivers throw such packets away"));
}
