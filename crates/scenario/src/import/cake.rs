//! The options of tc-cake(8).

use apportion_core::units::{Rate, Span};

use super::report::Report;
use super::units;

/// Bytes of the Ethernet header, which Linux counts as part of a packet unless CAKE is configured otherwise.
const ETHERNET: i64 = 14;

/// Maximum of bytes that a link layer adds. tc-cake(8)
const MOST_OVERHEAD: i64 = 256;

/// Keywords of overhead: bytes, the minimum size, and the framing.
// tc-cake(8), "OVERHEAD COMPENSATION PARAMETERS"
const LAYERS: [(&str, i64, Option<u64>, Option<&str>); 13] = [
    ("conservative", 48, None, Some("atm")),
    ("pppoa-vcmux", 10, None, Some("atm")),
    ("pppoa-llc", 14, None, Some("atm")),
    ("pppoe-vcmux", 32, None, Some("atm")),
    ("pppoe-llcsnap", 40, None, Some("atm")),
    ("bridged-vcmux", 24, None, Some("atm")),
    ("bridged-llcsnap", 32, None, Some("atm")),
    ("ipoa-vcmux", 8, None, Some("atm")),
    ("ipoa-llcsnap", 16, None, Some("atm")),
    ("pppoe-ptm", 30, None, Some("ptm")),
    ("bridged-ptm", 22, None, Some("ptm")),
    ("docsis", 18, Some(64), None),
    ("ethernet", 38, Some(84), None),
];

/// Keywords of round-trip times, in microseconds.
// tc-cake(8), "ROUND TRIP TIME PARAMETERS"
const ROUND_TRIPS: [(&str, u64); 9] = [
    ("datacentre", 100),
    ("lan", 1_000),
    ("metro", 10_000),
    ("regional", 30_000),
    ("internet", 100_000),
    ("oceanic", 300_000),
    ("satellite", 1_000_000),
    ("interplanetary", 3_600_000_000),
    ("datacenter", 100),
];

/// The default round-trip time, for which the times of CAKE are the same here.
const ROUND_TRIP: Span = Span::from_millis(100);
/// The default tins.
const TINS: &str = "diffserv3";

/// The meaning of options.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Cake {
    pub bandwidth: Option<Rate>,
    round_trip: Option<Span>,
    tins: Option<&'static str>,
    hosts: Option<&'static str>,
    ack_filter: Option<&'static str>,
    memory: Option<u64>,
    overhead: Option<i64>,
    is_raw: bool,
    mpu: u64,
    framing: Option<&'static str>,
}

impl Cake {
    /// Reads options, the last of each kind counts; none if one is refused.
    pub fn read(words: &[String], line: u32, report: &mut Report) -> Option<Self> {
        let mut cake = Self::default();
        let mut words = words.iter().map(String::as_str);
        while let Some(word) = words.next() {
            cake.option(word, &mut words, report, line).map_err(|why| report.refuse(line, why)).ok()?;
        }
        if cake.overhead.is_some_and(|bytes| bytes < 0) {
            let bytes = cake.overhead.unwrap_or_default();
            report.note(line, format!("overhead {bytes}: less than an IP packet is not charged; 0 is taken"));
            cake.overhead = Some(0);
        }
        if let Some(bytes) = cake.overhead.filter(|bytes| *bytes > MOST_OVERHEAD) {
            report.refuse(line, format!("overhead: {bytes} bytes are more than {MOST_OVERHEAD}"));
            return None;
        }
        Some(cake)
    }

    fn option<'a>(
        &mut self,
        word: &str,
        rest: &mut impl Iterator<Item = &'a str>,
        report: &mut Report,
        line: u32,
    ) -> Result<(), String> {
        if let Some((_, bytes, mpu, framing)) = LAYERS.iter().find(|layer| layer.0 == word) {
            // Layers add up, as in tc, except for the first of the list.
            let before = if word == LAYERS[0].0 { None } else { self.overhead };
            self.overhead = Some(before.unwrap_or(0) + *bytes);
            self.mpu = mpu.unwrap_or(self.mpu);
            self.framing = *framing;
            return Ok(());
        }
        if let Some((_, micros)) = ROUND_TRIPS.iter().find(|(name, _)| *name == word) {
            self.round_trip = Some(Span::from_micros(*micros));
            return Ok(());
        }
        if self.choice(word) {
            return Ok(());
        }
        let mut value = || rest.next().ok_or_else(|| format!("cake: `{word}` wants a value behind it"));
        match word {
            "bandwidth" => self.bandwidth = Some(units::rate(value()?)?),
            "rtt" => {
                let time = units::time(value()?)?;
                let wrong = || "rtt: a round-trip time is above 0; write for example 100ms".to_owned();
                self.round_trip = Some(time).filter(|time| *time > Span::ZERO);
                self.round_trip.ok_or_else(wrong)?;
            }
            "memlimit" => {
                self.memory = Some(units::size(value()?)?);
                report.note(
                    line,
                    "memlimit: Linux counts its own memory, `limit` the bytes of packets; taken as they are",
                );
            }
            "overhead" => {
                let text = value()?;
                let bytes = text.parse().ok().filter(|bytes| (-64..=MOST_OVERHEAD).contains(bytes));
                let wrong = || format!("overhead: `{text}` is not a whole number from -64 to 256");
                // After `raw` it is added to the size that Linux reports.
                let base = if self.is_raw { ETHERNET } else { 0 };
                self.overhead = Some(base + bytes.ok_or_else(wrong)?);
            }
            "mpu" => self.mpu = units::count(value()?, 256)?,
            "fwmark" => {
                let mask = value()?;
                report.note(line, format!("fwmark {mask}: marks of the firewall choose no tin here"));
            }
            _ => self.without_effect(word, report, line)?,
        }
        Ok(())
    }

    /// Takes a keyword without a value that Apportion supports; false if it is none.
    fn choice(&mut self, word: &str) -> bool {
        match word {
            "unlimited" => self.bandwidth = None,
            "besteffort" => self.tins = Some("besteffort"),
            "precedence" => self.tins = Some("precedence"),
            "diffserv3" => self.tins = Some("diffserv3"),
            "diffserv4" => self.tins = Some("diffserv4"),
            "diffserv8" => self.tins = Some("diffserv8"),
            "triple-isolate" => self.hosts = None,
            "dual-srchost" => self.hosts = Some("source"),
            "dual-dsthost" => self.hosts = Some("destination"),
            "flows" => self.hosts = Some("none"),
            "no-ack-filter" => self.ack_filter = None,
            "ack-filter" => self.ack_filter = Some("conservative"),
            "ack-filter-aggressive" => self.ack_filter = Some("aggressive"),
            "raw" => (self.is_raw, self.overhead, self.framing, self.mpu) = (true, None, None, 0),
            "ether-vlan" => {
                let base = if self.is_raw { ETHERNET } else { 0 };
                self.overhead = Some(self.overhead.unwrap_or(base) + 4);
            }
            "noatm" => self.framing = None,
            "atm" => self.framing = Some("atm"),
            "ptm" => self.framing = Some("ptm"),
            // Apportion always behaves like this.
            "split-gso" | "nonat" | "nowash" | "egress" | "no_ack_filter" => (),
            _ => return false,
        }
        true
    }

    /// Notes why a keyword has no effect.
    fn without_effect(&mut self, word: &str, report: &mut Report, line: u32) -> Result<(), String> {
        let why = match word {
            "srchost" | "dsthost" => {
                self.hosts = Some(if word == "srchost" { "source" } else { "destination" });
                "flows of a host do not share a queue; the link is shared among hosts first, then among their flows"
            }
            "hosts" => {
                self.hosts = None;
                "flows between two hosts do not share a queue; the link is shared among hosts first"
            }
            "flowblind" => {
                self.hosts = Some("none");
                "flows do not share one queue; each has its own"
            }
            // Scenarios have no NAT.
            "nat" if !report.is_gateway => return Ok(()),
            "nat" => {
                "a gateway asks no NAT; put it between the hosts and the NAT, where it sees their addresses"
            }
            "wash" => "codepoints of packets stay as they are",
            "ingress" => "packets that are dropped are not charged to the rate",
            "no-split-gso" => "super-packets are divided as packets of the wire in any case",
            "autorate-ingress" | "autorate_ingress" => {
                "the rate is fixed; of gateways rate = \"auto\" follows the link, with `rate_max`"
            }
            _ => {
                let known = "tc-cake(8) lists its options";
                return Err(format!("cake: there is no option `{word}`; {known}"));
            }
        };
        report.note(line, format!("{word}: {why}"));
        Ok(())
    }

    /// The queue of a scenario's link with this rate. Packets of scenarios have no DSCP.
    pub fn of_scenario(&self, rate: Rate) -> String {
        let frames = self.overhead.is_some_and(|bytes| bytes > 0) || self.mpu > 0 || self.framing.is_some();
        let tins = self.tins.filter(|tins| *tins == "besteffort");
        self.text(tins, frames.then_some(rate))
    }

    /// The queue of a gateway's direction with this rate; the direction's `overhead` holds that of CAKE.
    pub fn of_gateway(&self, rate: Rate) -> String {
        let frames = self.mpu > 0 || self.framing.is_some();
        self.text(Some(self.tins.unwrap_or(TINS)), frames.then_some(rate))
    }

    /// The overhead of a gateway's direction.
    pub fn overhead(&self) -> Option<u64> {
        self.overhead.map(|bytes| bytes.max(0) as u64)
    }

    fn text(&self, tins: Option<&str>, bandwidth: Option<Rate>) -> String {
        let mut out = "{ kind = \"cake\"".to_owned();
        let mut add = |key: &str, value: Option<String>| {
            if let Some(value) = value {
                out += &format!(", {key} = \"{value}\"");
            }
        };
        let framed = bandwidth.is_some();
        add("bandwidth", bandwidth.map(|rate| rate.to_string()));
        add("overhead", self.overhead().filter(|_| framed).map(|bytes| format!("{bytes}B")));
        add("mpu", Some(self.mpu).filter(|mpu| *mpu > 0).map(|mpu| format!("{mpu}B")));
        add("framing", self.framing.map(str::to_owned));
        add("tins", tins.map(str::to_owned));
        add("hosts", self.hosts.map(str::to_owned));
        add("ack_filter", self.ack_filter.map(str::to_owned));
        // CAKE's target is a twentieth of the round trip: tc-cake(8) has 5 ms for 100 ms in its example.
        let target = |round_trip: Span| Span::from_nanos((round_trip.as_nanos() / 20).max(1));
        let round_trip = self.round_trip.filter(|time| *time != ROUND_TRIP);
        add("target", round_trip.map(|round_trip| target(round_trip).to_string()));
        add("interval", round_trip.map(|round_trip| round_trip.to_string()));
        add("limit", self.memory.map(|bytes| format!("{bytes}B")));
        out + " }"
    }
}
