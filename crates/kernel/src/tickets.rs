//! Settings, state and counters of TRED with a ticket exchange in the kernel: maps of 64-bit words, as
//! declared in `bpf/tred.c`.
//!
//! Times are in nanoseconds, fractions of 1 in Q32 or Q64, tickets in Q16 or Q20. The queue is measured in
//! transmission time, so that a packet of a threshold or a limit has 1500 bytes.

use apportion_core::aqm::tred::{Expect, Per, Stage, TredParams};
use apportion_core::label::Format;
use apportion_core::limit::{Limit, LinkLimit, Threshold};
use apportion_core::mark::currency_exchange::ExchangeParams;
use apportion_core::mark::ticket_policer::Rounding;
use apportion_core::units::{Bytes, Rate, Span, TicketRate};

use crate::settings::{COUNTS, Counts, Unsuitable, is_rate, is_window, per_bit};

/// Number of words of one of the two sets of constants in the map `settings`.
pub const TICKETS: usize = 27;
/// Number of words of the map `state`.
pub const TICKET_STATE: usize = 24;
/// Number of words of the map `counts`.
pub const TICKET_COUNTS: usize = COUNTS + 6;

/// The size of a packet in a threshold or limit.
const FULL_PACKET: Bytes = Bytes::new(1_500);
/// The buffer of the paper, as in `crates/core`: 110 full packets.
const PAPER_BUFFER: f64 = 165_000.0;
/// The longest queue that fits, in nanoseconds: 2^38.
const LONGEST: f64 = 274e9;
/// The maximum number of tickets per second that fits.
const MOST_TICKETS: f64 = 134_217_728.0;

const FACTOR: u64 = 1;
const PER_BYTE: u64 = 2;
const SHARE: u64 = 4;
const RELABEL: u64 = 8;
const WAIT: u64 = 16;
const AFTER: u64 = 32;
const NO_COUNT: u64 = 64;
const EXCHANGE: u64 = 128;
const FLOATING: u64 = 256;
const DOWN: u64 = 512;
const STOCHASTIC: u64 = 1024;

/// The constants of TRED.
#[derive(Clone, Debug, PartialEq)]
pub struct TicketSettings {
    params: TredParams,
    exchange: Option<(ExchangeParams, TicketRate)>,
    /// C.
    pub rate: Rate,
    /// Bytes charged for each frame besides its length, which includes the Ethernet header but not the check
    /// sequence. Default: 0 B.
    pub overhead: Bytes,
}

impl TicketSettings {
    /// Creates the constants for `params` for a link of `rate`, without an exchange.
    ///
    /// # Errors
    /// The key that the program does not support, or whose value does not fit.
    pub fn new(params: &TredParams, rate: Rate) -> Result<Self, Unsuitable> {
        let settings = Self { params: params.clone(), exchange: None, rate, overhead: Bytes::ZERO };
        let [min_th, max_th] = settings.thresholds();
        let limit = settings.nanos(settings.limit());
        let refusals = [
            (!is_rate(rate), "rate", "must lie between 8 kbit/s and 1 Tbit/s"),
            (params.l4s, "l4s", "must be false: nothing is marked here"),
            (params.adaptive == Some(true), "adaptive", "must be false: max_p stays here"),
            (params.min_tkt_rank != 1, "min_tkt_rank", "must be 1"),
            (params.n.fract() != 0.0, "n", "must be a whole number"),
            (params.k > 65_536.0, "k", "must be at most 65536"),
            (!is_window(params.window), "window", "must lie between 1 ms and 1 h"),
            (!is_window(params.min_tkt_window), "min_tkt_window", "must lie between 1 ms and 1 h"),
            (limit >= LONGEST, "limit", "must be at most 274 s of the link"),
            (max_th >= LONGEST / 2.0, "max_th", "must be at most 137 s of the link"),
            (max_th - min_th < 256.0, "max_th", "must be 256 ns of the link above `min_th`"),
        ];
        match refusals.into_iter().find(|(refused, ..)| *refused) {
            Some((_, key, hint)) => Err(Unsuitable { key, hint: hint.to_owned() }),
            None => Ok(settings),
        }
    }

    /// Adds an exchange, to which the next router issues tickets at the rate `issued`.
    ///
    /// # Errors
    /// As for [`Self::new`].
    pub fn with_exchange(self, params: &ExchangeParams, issued: TicketRate) -> Result<Self, Unsuitable> {
        let writer = &params.writer;
        let is_narrow =
            matches!(writer.format(), Format::Floating { .. }) && writer.format() != Format::WIDEST;
        let issue = writer.issue_window;
        let refusals = [
            (issued.get() > MOST_TICKETS, "tickets", "must be at most 134217728"),
            (!is_window(params.window), "exchange.window", "must lie between 1 ms and 1 h"),
            (!is_window(writer.policing_window), "exchange.policing_window", "must lie between 1 ms and 1 h"),
            (
                issue > Span::ZERO && !is_window(issue),
                "exchange.issue_window",
                "must be \"0s\", or lie between 1 ms and 1 h",
            ),
            (writer.policing_bound > 65_536.0, "exchange.policing_bound", "must be at most 65536"),
            (is_narrow, "exchange.form", "must be \"integer\", or `bits` 17"),
        ];
        match refusals.into_iter().find(|(refused, ..)| *refused) {
            Some((_, key, hint)) => Err(Unsuitable { key, hint: hint.to_owned() }),
            None => Ok(Self { exchange: Some((params.clone(), issued)), ..self }),
        }
    }

    /// Whether tickets are exchanged.
    #[must_use]
    pub const fn exchanges(&self) -> bool {
        self.exchange.is_some()
    }

    /// The ratio of this link's sizes to the paper's.
    fn scale(&self) -> f64 {
        match LinkLimit::new(None, self.rate).get() {
            Limit::Bytes(of_link) if self.params.follows_link() => {
                (of_link.get() as f64 / PAPER_BUFFER).max(1.0)
            }
            _ => 1.0,
        }
    }

    /// Returns the size of the virtual queue.
    #[must_use]
    pub fn limit(&self) -> Bytes {
        match self.params.limit().at(self.rate) {
            Limit::Packets(packets) => {
                Bytes::new((packets.get() as f64 * self.scale()) as u64 * FULL_PACKET.get())
            }
            Limit::Bytes(limit) => limit,
        }
    }

    /// Returns the transmission time of `bytes`, in nanoseconds.
    fn nanos(&self, bytes: Bytes) -> f64 {
        self.nanos_of(bytes.get() as f64)
    }

    fn nanos_of(&self, bytes: f64) -> f64 {
        bytes * 8e9 / self.rate.as_bit().max(1) as f64
    }

    /// Returns MinThresh and MaxThresh as transmission times, in nanoseconds.
    fn thresholds(&self) -> [f64; 2] {
        let (scale, detection) = (self.scale(), self.params.detection());
        [detection.min_th, detection.max_th].map(|threshold| match threshold {
            Threshold::Packets(packets) => self.nanos_of(scale * packets.get() * FULL_PACKET.get() as f64),
            Threshold::Bytes(bytes) => self.nanos_of(scale * bytes.get() as f64),
        })
    }

    /// Converts an average queue to the unit of the thresholds: bytes, or packets of 1500 B.
    #[must_use]
    pub fn measure(&self, average: Span) -> f64 {
        let bytes = average.as_secs_f64() * self.rate.as_bit() as f64 / 8.0;
        match self.params.detection().min_th {
            Threshold::Bytes(_) => bytes,
            Threshold::Packets(_) => bytes / FULL_PACKET.get() as f64,
        }
    }

    /// Returns the words that the program reads, in the order of `struct settings`.
    #[must_use]
    pub fn words(&self) -> [u64; TICKETS] {
        let (params, detection) = (&self.params, self.params.detection());
        let [min_th, max_th] = self.thresholds();
        let max_p = detection.max_p.get();
        let ceiling = if detection.gentle { 2.0 * max_th } else { max_th };
        // Q32 per unit of 2^-24 ns, by 2^-64.
        let slope = |part: f64, range: f64| (part * 72_f64.exp2() / range) as u64;
        let own = [
            per_bit(self.rate),
            self.overhead.get(),
            self.flags(),
            self.nanos(self.limit()) as u64,
            self.nanos(FULL_PACKET) as u64,
            q(24, min_th),
            q(24, max_th),
            q(24, ceiling),
            slope(max_p, max_th - min_th),
            slope(1.0 - max_p, max_th),
            q(32, max_p),
            q(64, detection.w_q.get() / self.scale()),
            q(16, self.nanos(params.mean_pktsize)),
            params.window.as_nanos(),
            params.min_tkt_window.as_nanos() / 2,
            params.n as u64,
            q(16, params.k),
            q(32, params.keep.get()).min(u64::from(u32::MAX)),
        ];
        let mut words = [0; TICKETS];
        words[..own.len()].copy_from_slice(&own);
        words[own.len()..own.len() + EXCHANGE_WORDS].copy_from_slice(&self.exchange_words());
        words
    }

    fn exchange_words(&self) -> [u64; EXCHANGE_WORDS] {
        let Some((params, issued)) = &self.exchange else { return [0; EXCHANGE_WORDS] };
        let writer = &params.writer;
        [
            q(16, issued.get()),
            params.window.as_nanos(),
            writer.policing_window.as_nanos(),
            writer.issue_window.as_nanos(),
            q(32, params.window.as_secs_f64()),
            q(32, writer.policing_window.as_secs_f64()),
            q(32, writer.policing_bound),
            q(32, 1.0 / writer.policing_bound),
            writer.format().max() as u64,
        ]
    }

    fn flags(&self) -> u64 {
        let flag = |is_set: bool, flag: u64| if is_set { flag } else { 0 };
        let params = &self.params;
        let stage = match params.stage {
            Stage::Before => 0,
            Stage::After => AFTER,
            Stage::None => NO_COUNT,
        };
        let exchange = self.exchange.as_ref().map_or(0, |(params, _)| {
            EXCHANGE
                | flag(params.writer.format() == Format::WIDEST, FLOATING)
                | match params.writer.rounding {
                    Rounding::Nearest => 0,
                    Rounding::Down => DOWN,
                    Rounding::Stochastic => STOCHASTIC,
                }
        });
        flag(params.factor, FACTOR)
            | flag(params.per == Per::Byte, PER_BYTE)
            | flag(params.expect == Expect::Share, SHARE)
            | flag(params.relabel, RELABEL)
            | flag(params.wait, WAIT)
            | stage
            | exchange
    }

    /// Returns the initial state of a link, in the order of `struct state`.
    #[must_use]
    pub fn initial_state(&self) -> [u64; TICKET_STATE] {
        let mut state = [0; TICKET_STATE];
        // There is no minimum label yet.
        (state[10], state[11]) = (u64::MAX, u64::MAX);
        if let Some((params, issued)) = &self.exchange {
            // The issue rate is in effect, as if it had been written for a window.
            state[16] = q(16, issued.get());
            state[20] = q(20, issued.get() * params.writer.policing_window.as_secs_f64()).min(1 << 62);
        }
        state
    }
}

const EXCHANGE_WORDS: usize = 9;

/// Converts a value to a fixed-point number with `bits` fractional bits, saturating.
fn q(bits: i32, value: f64) -> u64 {
    (value * f64::from(bits).exp2()).round() as u64
}

/// The averages of TRED at the time of reading.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TicketState {
    /// The average queue, as transmission time.
    pub average: Span,
    /// ExpectTkt: tickets per 64 KiB, or per packet if `per` says so; none before any packet was counted.
    pub expected: Option<f64>,
    /// OutTktRate in effect, in tickets per second; 0 without an exchange.
    pub issued: f64,
}

impl TicketState {
    /// Decodes the words of the map `state`.
    #[must_use]
    pub fn of(words: &[u64; TICKET_STATE]) -> Self {
        let [_, average, _, _, _, _, _, tickets, bytes, ..] = *words;
        // The window has tickets in Q20 and bytes in Q16.
        let ratio = |bytes: u64| tickets as f64 / 16.0 / bytes as f64 * 65_536.0;
        Self {
            average: Span::from_nanos(average >> 24),
            expected: (bytes > 0).then(|| ratio(bytes)),
            issued: words[16] as f64 / 65_536.0,
        }
    }
}

/// The counters of TRED since it was loaded, summed over all processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TicketCounts {
    /// The counters of all cores; `unlabelled` are packets without tickets, which are treated as by RED.
    pub all: Counts,
    /// Packets dropped since the average queue is too long.
    pub forced: u64,
    /// Packets with tickets that arrived.
    pub labelled: u64,
    /// Tickets on these packets.
    pub tickets: u64,
    /// Number of these packets that ExpectTkt ignored.
    pub filtered: u64,
    /// Packets that could be dropped by their tickets.
    pub judged: u64,
    /// Tickets that the exchange wrote.
    pub written: u64,
}

impl TicketCounts {
    /// Sums the counters of all processors.
    pub fn sum(processors: impl IntoIterator<Item = [u64; TICKET_COUNTS]>) -> Self {
        let mut sum = [0; TICKET_COUNTS];
        for words in processors {
            sum.iter_mut().zip(words).for_each(|(sum, word)| *sum += word);
        }
        let mut all = [0; COUNTS];
        all.copy_from_slice(&sum[..COUNTS]);
        let [forced, labelled, tickets, filtered, judged, written] = std::array::from_fn(|i| sum[COUNTS + i]);
        Self { all: Counts::sum([all]), forced, labelled, tickets, filtered, judged, written }
    }

    /// The counters of a program without tickets.
    #[must_use]
    pub fn of_core(all: Counts) -> Self {
        Self { all, ..Self::default() }
    }

    /// Adds both counters.
    #[must_use]
    pub const fn plus(&self, other: &Self) -> Self {
        Self {
            all: self.all.plus(&other.all),
            forced: self.forced + other.forced,
            labelled: self.labelled + other.labelled,
            tickets: self.tickets + other.tickets,
            filtered: self.filtered + other.filtered,
            judged: self.judged + other.judged,
            written: self.written + other.written,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apportion_core::param::Role;
    use apportion_core::system::any::PolicyParams;
    use apportion_core::system::catalog::Selection;
    use apportion_core::system::{BufferParams, Catalog, DisciplineKind, DisciplineParams};

    fn settings(set: &[(&str, &str)], rate: Rate) -> TicketSettings {
        let mut selection = Catalog::default().select("tred", None, None).unwrap();
        for (key, value) in set {
            selection.set(key, value).unwrap();
        }
        match DisciplineParams::from_args(&selection).unwrap().kind {
            DisciplineKind::Buffered(BufferParams { drop: PolicyParams::Tred(params), .. }) => {
                TicketSettings::new(&params, rate).unwrap()
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn constants_are_in_fixed_point() {
        let set = [("limit", "64kB"), ("min_th", "8000B"), ("max_th", "16kB"), ("n", "3"), ("keep", "50%")];
        let slow = Rate::from_mbit(8);
        let words = settings(&set, slow).words();
        // A bit takes 125 ns; factor, bytes, share, relabel and wait; 64 kB and a full packet.
        assert_eq!(words[..5], [125 << 32, 0, 31, 64_000_000, 1_500_000]);
        // Thresholds in Q24; 0.2 / 8 ms by 2^72; all is dropped from twice MaxThresh on.
        assert_eq!(words[5..8], [8_000_000 << 24, 16_000_000 << 24, 32_000_000 << 24]);
        assert_eq!(words[8], (0.2 * 72_f64.exp2() / 8e6) as u64);
        // 500 B take 500 us; a window of 5 s, and halves of 500 ms; n, K, and a half.
        assert_eq!(words[12..18], [500_000 << 16, 5_000_000_000, 500_000_000, 3, 2 << 16, 1 << 31]);
        assert_eq!(words[18..], [0; 9]);
        // 3 ms of 8 Mb/s: 3000 B, or two full packets.
        let average = Span::from_millis(3);
        let measure = |set: &[_]| settings(set, slow).measure(average);
        assert_eq!([measure(&set), measure(&[])], [3_000.0, 2.0]);
    }

    #[test]
    fn a_packet_of_a_threshold_is_a_full_one_and_grows_with_the_link() {
        let bytes = [
            ("limit", "165kB"),
            ("min_th", "7500B"),
            ("max_th", "82500B"),
            ("w_q", "0.2%"),
            ("gentle", "false"),
        ];
        let rate = Rate::from_mbit(8);
        assert_eq!(
            settings(&[("preset", "paper")], rate).words()[3..8],
            settings(&bytes, rate).words()[3..8]
        );
        // 100 ms of 1 Gb/s are 12.5 MB, in place of 165 kB.
        let fast = settings(&[], Rate::from_mbit(1_000));
        let (scale, words) = (12_500_000.0 / 165_000.0, fast.words());
        assert_eq!(fast.limit(), Bytes::new((110.0 * scale) as u64 * 1_500));
        assert_eq!(words[5], (60_000.0 * scale * 24_f64.exp2()).round() as u64);
        assert!((words[11] as f64 / 64_f64.exp2() * scale / 0.002 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn an_exchange_starts_with_what_is_issued() {
        let mut selection = Selection::of(Role::Exchange, "currency").unwrap();
        selection.set("policing_window", "2s").unwrap();
        let params = ExchangeParams::from_args(&selection.kind_args()).unwrap();
        let issued = TicketRate::new(900.0).unwrap();
        let settings = settings(&[], Rate::from_mbit(8));
        assert!(settings.initial_state()[16..].iter().all(|word| *word == 0) && !settings.exchanges());
        let settings = settings.with_exchange(&params, issued).unwrap();
        let words = settings.words();
        assert_eq!(words[18..22], [900 << 16, 5_000_000_000, 2_000_000_000, 5_000_000_000]);
        assert_eq!(words[22..], [5 << 32, 2 << 32, 2 << 32, 1 << 31, Format::WIDEST.max() as u64]);
        let state = settings.initial_state();
        assert_eq!((state[16], state[20], words[2] & EXCHANGE), (900 << 16, 1_800 << 20, EXCHANGE));
        assert_eq!(
            TicketState::of(&state),
            TicketState { average: Span::ZERO, expected: None, issued: 900.0 }
        );
        let many = TicketRate::new(1e9).unwrap();
        assert_eq!(settings.with_exchange(&params, many).unwrap_err().key, "tickets");
    }
}
