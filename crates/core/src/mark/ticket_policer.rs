//! Ticket policer: limits the tickets written on packets to the tickets issued.
//!
//! Zhang, Wang, Peterson, Krishnamurthy, "Probabilistic packet scheduling", INFOCOM 2002, section II-G (ticket
//! policing) and III-J (ticket bits). The writers are the [marker](crate::mark::ticket) at an end of a flow and
//! the [exchange](crate::mark::currency_exchange) at a link.
//!
//! Readings, where the paper leaves room:
//! - x ← (T/r)(T/x) without memory alternates between two values for ever (12.3, 20.8, 12.3, ... for T/r =
//!   16), so ActualTktRate is a TSW of its own. It starts at OutTktRate, and the factor is bounded.
//! - ActualTktRate counts the tickets written, after rounding.
//! - A packet carries at least one ticket: 0 would divide by zero downstream. A label of 0 is read as 1.
//!
//! Cost: O(1), one division for the policing and one for the average; 64 bytes.

use crate::estimate::RateEstimator;
use crate::estimate::tsw::Tsw;
use crate::label::{Format, Label};
use crate::param::{Kind, Param, ParamError, require};
use crate::random::Stream;
use crate::units::{Span, TicketRate, Time};
use crate::{choice, params};

/// WinLength of the averages of tickets and packets.
pub(crate) const WINDOW: Param = Param::new(
    "window",
    "WinLength",
    Kind::Span,
    "5s",
    "the paper, section III",
    "Window of the averages of packets and tickets.",
);

/// Tickets on a packet while the issue is unknown. Chosen: the maximum of the paper's 8 bits. The maximum of
/// 17 bits would distort the averages of every router on the path.
const UNKNOWN: f64 = 255.0;

params! {
    /// Parameters of a [`TicketPolicer`].
    pub struct PolicerParams {
        /// A change of what is issued takes effect as an average over this window would follow it; 0: at once.
        issue_window: Span = Param::of(
            "5s",
            "chosen: WinLength, the memory of the rate that tickets are divided by; the paper: at once",
        )
        .in_paper("0s"),
        /// Window of ActualTktRate, the average of what was written.
        policing_window: Span = Param::of("5s", "the paper has one WinLength"),
        /// OutTktRate / ActualTktRate is kept between 1 / this and this; 1 switches policing off.
        policing_bound: f64 = Param::of("2", "chosen; wider bounds show no difference"),
        /// Width of the tag, 4 to 17; 17 bits are always floating, 12 + 5.
        bits: u32 = Param::of(
            "17",
            "chosen: fewer bits saturate with large packets or slow links; the paper, section III-J: 8",
        )
        .in_paper("8"),
        /// How a tag is written: a whole number, or a mantissa with 5 bits of exponent (8 bits and more).
        form: Option<Form> = Param::unset("integer below 17 bits; the paper, section III-J: 0 to 255").in_paper("integer"),
        /// How tickets become a whole tag; stochastic keeps their mean.
        rounding: Rounding = Param::of("nearest", "chosen; a cast in C rounds down"),
    }
    check: |params: &Self, _| params.check()
}

choice! {
    /// How a tag is written.
    pub enum Form {
        /// A whole number.
        Integer = "integer",
        /// A mantissa with 5 bits of exponent.
        Floating = "floating",
    }
}

choice! {
    /// How tickets become a tag.
    pub enum Rounding {
        /// To the nearest tag.
        Nearest = "nearest",
        /// To the next smaller whole number.
        Down = "down",
        /// Up with the probability of the fraction, so that the mean is kept.
        Stochastic = "stochastic",
    }
}

impl PolicerParams {
    fn check(&self) -> Result<(), ParamError> {
        require((4..=Label::BITS).contains(&self.bits), "bits", "a tag has 4 to 17 bits")?;
        let wide_enough =
            "a floating tag has 8 to 17 bits: 5 for the exponent and at least 3 for the mantissa";
        require(self.form != Some(Form::Floating) || self.bits >= 8, "bits", wide_enough)?;
        let at_least = "the factor lies between 1 / this and this: write a number from 1, for example 2";
        require(self.policing_bound >= 1.0, "policing_bound", at_least)
    }

    /// The format in which tickets are written.
    #[must_use]
    pub const fn format(&self) -> Format {
        match self.form {
            Some(Form::Floating) => Format::Floating { mantissa: self.bits - 5, exponent: 5 },
            _ if self.bits == Label::BITS => Format::WIDEST,
            _ => Format::Integer { bits: self.bits },
        }
    }
}

/// Tickets on a packet as a router reads them: at least 1.
#[must_use]
#[inline]
pub fn read(label: Label) -> f64 {
    label.value().max(1.0)
}

/// Writes tags so that the rate of tickets written stays the rate issued.
#[derive(Clone, Debug)]
pub struct TicketPolicer {
    params: PolicerParams,
    /// None while it is unknown; packets then carry [`UNKNOWN`] tickets.
    out_tkt_rate: Option<TicketRate>,
    /// The part of the issue that is in effect, and since when.
    effective: f64,
    changed: Time,
    actual_tkt_rate: Tsw,
    full_tags: u64,
    random: Stream,
}

impl TicketPolicer {
    /// A writer with an issue of `tickets`.
    #[must_use]
    pub fn new(params: &PolicerParams, tickets: Option<TicketRate>, start: Time, random: Stream) -> Self {
        let initial = tickets.map_or(0.0, TicketRate::get);
        Self {
            actual_tkt_rate: Tsw::new(params.policing_window, initial, start),
            params: params.clone(),
            out_tkt_rate: tickets,
            effective: initial,
            changed: start,
            full_tags: 0,
            random,
        }
    }

    /// Whether it has these parameters.
    #[must_use]
    pub fn has_params(&self, params: &PolicerParams) -> bool {
        self.params == *params
    }

    /// The tickets issued per second; none while unknown.
    #[must_use]
    pub const fn out_tkt_rate(&self) -> Option<TicketRate> {
        self.out_tkt_rate
    }

    /// Changes the issue from `now` on. The change takes effect over `issue_window`, as the rate by which
    /// tickets are divided follows a change: otherwise all packets in flight at that rate would be worth less
    /// at once.
    pub fn issue(&mut self, now: Time, tickets: TicketRate) {
        if self.out_tkt_rate.is_none() {
            return self.follow(now, tickets);
        }
        self.approach(now);
        self.out_tkt_rate = Some(tickets);
    }

    /// Sets the issue to an average, which takes effect at once.
    pub fn follow(&mut self, now: Time, tickets: TicketRate) {
        if self.out_tkt_rate.replace(tickets).is_none() {
            self.actual_tkt_rate = Tsw::new(self.params.policing_window, tickets.get(), now);
        }
        (self.effective, self.changed) = (tickets.get(), now);
    }

    /// Moves the issue in effect towards `out_tkt_rate`, by the time that has passed.
    fn approach(&mut self, now: Time) -> Option<f64> {
        let issued = self.out_tkt_rate?.get();
        if self.effective != issued {
            let window = self.params.issue_window.as_secs_f64();
            let gap = now.since(self.changed).as_secs_f64();
            // A TSW (section II-B): without elapsed time and without a window it is the issue itself.
            self.effective = match window + gap > 0.0 {
                true => (self.effective * window + issued * gap) / (window + gap),
                false => issued,
            };
        }
        self.changed = now;
        Some(self.effective)
    }

    /// The tag of a packet that is worth `share` seconds of the issue: 1/AvgRate at a source, InTkt/InTktRate
    /// at a link.
    #[inline]
    pub fn write(&mut self, now: Time, share: f64) -> Label {
        self.write_policed(now, share, self.params.policing_bound)
    }

    /// The tag of a packet that is worth `share` seconds of the issue, which policing lowers but does not raise.
    pub fn write_at_most(&mut self, now: Time, share: f64) -> Label {
        self.write_policed(now, share, 1.0)
    }

    fn write_policed(&mut self, now: Time, share: f64, at_most: f64) -> Label {
        let Some(out_tkt_rate) = self.approach(now) else {
            return Label::new(self.params.format().max().min(UNKNOWN));
        };
        // Section II-G: OutTkt = ... × OutTktRate / ActualTktRate.
        let bound = self.params.policing_bound;
        let policing = (out_tkt_rate / self.actual_tkt_rate.rate(now)).clamp(1.0 / bound, at_most);
        // An idle writer without an issue gives 0/0, which polices nothing.
        let policing = if policing.is_nan() { 1.0 } else { policing };
        let tag = self.round(out_tkt_rate * share * policing);
        self.actual_tkt_rate.update(now, tag);
        Label::new(tag)
    }

    /// The number of tags so far that were too narrow for their tickets: these packets carry fewer than they
    /// are worth. Tags of unknown issues do not count.
    #[must_use]
    pub const fn full_tags(&self) -> u64 {
        self.full_tags
    }

    fn round(&mut self, tickets: f64) -> f64 {
        let format = self.params.format();
        // More than rounding takes away.
        self.full_tags += u64::from(tickets >= format.max() + 1.0);
        let whole = match self.params.rounding {
            Rounding::Nearest => tickets,
            Rounding::Down => libm::floor(tickets),
            Rounding::Stochastic => libm::floor(tickets + self.random.uniform()),
        };
        format.round(whole).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mark::currency_exchange;
    use crate::param::Role;
    use crate::system::catalog::Selection;
    use std::string::ToString;

    fn params(rounding: Rounding) -> PolicerParams {
        PolicerParams {
            policing_window: Span::from_secs(2),
            issue_window: Span::ZERO,
            policing_bound: 2.0,
            bits: 8,
            form: None,
            rounding,
        }
    }

    fn writer(params: &PolicerParams, rate: f64) -> TicketPolicer {
        TicketPolicer::new(params, TicketRate::new(rate), Time::ZERO, Stream::new(1, "tickets"))
    }

    /// The tickets per second written from 20 s to 60 s, if each of `per_second` packets is worth `share`.
    fn written(writer: &mut TicketPolicer, per_second: u64, share: f64) -> f64 {
        let mut sum = 0.0;
        for i in 1..60 * per_second {
            let tag = writer.write(Time::from_nanos(i * 1_000_000_000 / per_second), share);
            sum += if i >= 20 * per_second { tag.value() } else { 0.0 };
        }
        sum / 40.0
    }

    #[test]
    fn the_first_tag_is_the_share_of_what_is_issued() {
        // 1000 t/s × 1/25 s = 40; policing starts at 1000/1000, which decays by nothing at t = 0.
        assert_eq!(writer(&params(Rounding::Nearest), 1_000.0).write(Time::ZERO, 0.04).value(), 40.0);
    }

    #[test]
    fn a_tag_has_the_width_and_form_it_was_given() {
        let format = |pairs: &[(&str, &str)]| {
            let mut selection = Selection::of(Role::Exchange, "currency").unwrap();
            for (key, value) in pairs {
                selection.set(key, value).unwrap();
            }
            let args = selection.args.of(&currency_exchange::ENTRY);
            PolicerParams::from_args(&args).map(|params| params.format()).map_err(|error| error.to_string())
        };
        let floating = |mantissa| Ok(Format::Floating { mantissa, exponent: 5 });
        assert_eq!(format(&[]), floating(12));
        assert_eq!(format(&[("bits", "8")]), Ok(Format::Integer { bits: 8 }));
        assert_eq!(format(&[("bits", "8"), ("form", "floating")]), floating(3));
        assert_eq!(format(&[("preset", "paper")]), Ok(Format::Integer { bits: 8 }));
        assert_eq!(format(&[("bits", "17")]), floating(12));
        let refused = |pairs: &[(&str, &str)]| format(pairs).unwrap_err();
        for bits in ["3", "18", "4294967300"] {
            assert_eq!(refused(&[("bits", bits)]), "`bits`: a tag has 4 to 17 bits");
        }
        assert_eq!(
            refused(&[("bits", "7"), ("form", "floating")]),
            "`bits`: a floating tag has 8 to 17 bits: 5 for the exponent and at least 3 for the mantissa"
        );
        assert_eq!(
            refused(&[("policing_bound", "0.5")]),
            "`policing_bound`: the factor lies between 1 / this and this: write a number from 1, for example 2"
        );
    }

    #[test]
    fn a_wrong_share_is_corrected_up_to_the_bound() {
        // 25 packets/s of 1/25 s each are 1000 t/s. A source that assumes 20 packets/s would write 1250, and
        // is limited to 1000; one that assumes 5 would write 5000, and is limited to half of that.
        let wrong = |share: f64| written(&mut writer(&params(Rounding::Nearest), 1_000.0), 25, share);
        assert!((wrong(0.04) / 1_000.0 - 1.0).abs() < 0.01, "{}", wrong(0.04));
        // Steady state of the factor T/x with x = s T · T/x: x = T √s, so 1250 becomes 1118.
        assert!((wrong(0.05) / 1_000.0 - 1.25_f64.sqrt()).abs() < 0.01, "{}", wrong(0.05));
        assert!((wrong(0.2) / 2_500.0 - 1.0).abs() < 0.01, "{}", wrong(0.2));
    }

    #[test]
    fn policing_settles_where_a_step_without_memory_would_swing() {
        let mut writer = writer(&params(Rounding::Nearest), 1_000.0);
        // An issue of 1000 t/s, worth 1/16 s each, 16 packets/s.
        let tags: std::vec::Vec<f64> =
            (1..800).map(|i| writer.write(Time::from_millis(i * 62), 1.0 / 16.0).value()).collect();
        let last = &tags[700..];
        let (least, most) = last.iter().fold((f64::MAX, 0.0_f64), |(a, b), &x| (a.min(x), b.max(x)));
        assert!(most - least <= 1.0, "{least} to {most}");
    }

    #[test]
    fn a_tag_is_between_one_and_what_its_width_holds() {
        let mut writer = writer(&params(Rounding::Nearest), 1_000.0);
        assert_eq!(writer.write(Time::ZERO, 1.0).value(), 255.0);
        assert_eq!(writer.write(Time::ZERO, 1e-9).value(), 1.0);
        assert_eq!(read(Label::ZERO), 1.0);
    }

    #[test]
    fn tags_too_narrow_for_their_tickets_are_counted() {
        // Of 255.9 tickets rounding takes a part; 256 are cut; the tag of an unknown issue is no cut.
        let params = PolicerParams { policing_bound: 1.0, ..params(Rounding::Nearest) };
        let mut writer = writer(&params, 1_000.0);
        for (tickets, count) in [(255.0, 0), (255.9, 0), (256.0, 1), (1e9, 2), (1.0, 2)] {
            writer.write(Time::ZERO, tickets / 1_000.0);
            assert_eq!(writer.full_tags(), count, "{tickets}");
        }
        let mut unknown = TicketPolicer::new(&params, None, Time::ZERO, Stream::new(1, ""));
        unknown.write(Time::ZERO, 1e9);
        assert_eq!(unknown.full_tags(), 0);
    }

    #[test]
    fn nothing_known_yet_is_255_and_nothing_issued_at_all_is_one() {
        let mut writer = TicketPolicer::new(&params(Rounding::Nearest), None, Time::ZERO, Stream::new(1, ""));
        assert_eq!(writer.write(Time::ZERO, 0.001).value(), 255.0);
        writer.issue(Time::from_secs(1), TicketRate::default());
        assert_eq!(writer.write(Time::from_secs(1), 0.001).value(), 1.0);
    }

    #[test]
    fn a_change_of_what_is_issued_takes_effect_as_an_average_would_follow_it() {
        // 100 packets a second of 1000 t/s carry 10 tickets. After a cut to 400, a TSW of 5 s has 400 + 600
        // e^(-1/5) = 891 after a second and 508 after 8.5; without a window the cut is complete at once.
        for (window, after) in [(5, [9.0, 5.0]), (0, [4.0, 4.0])] {
            let params = PolicerParams {
                issue_window: Span::from_secs(window),
                policing_bound: 1.0,
                ..params(Rounding::Nearest)
            };
            let mut writer = writer(&params, 1_000.0);
            written(&mut writer, 100, 0.01);
            writer.issue(Time::from_secs(60), TicketRate::new(400.0).unwrap());
            let tags: std::vec::Vec<f64> =
                (1..=850).map(|i| writer.write(Time::from_millis(60_000 + 10 * i), 0.01).value()).collect();
            assert_eq!([tags[99], tags[849]], after, "{window} s");
        }
    }

    #[test]
    fn what_acknowledgements_bring_is_an_average_and_takes_effect_at_once() {
        let params = PolicerParams {
            issue_window: Span::from_secs(5),
            policing_bound: 1.0,
            ..params(Rounding::Nearest)
        };
        let mut writer = writer(&params, 1_000.0);
        writer.follow(Time::from_secs(1), TicketRate::new(400.0).unwrap());
        assert_eq!(writer.write(Time::from_secs(1), 0.01).value(), 4.0);
    }

    #[test]
    fn stochastic_rounding_keeps_the_mean_where_the_nearest_tag_does_not() {
        // 960 t/s over 100 packets/s are 9.6 a packet. The nearest tag is 10; only policing keeps the mean.
        let bound = PolicerParams { policing_bound: 1.0, ..params(Rounding::Nearest) };
        let mean = |rounding| {
            let params = PolicerParams { rounding, ..bound.clone() };
            written(&mut writer(&params, 960.0), 100, 0.01) / 100.0
        };
        assert_eq!((mean(Rounding::Nearest), mean(Rounding::Down)), (10.0, 9.0));
        // 4000 draws of 0 or 1 with p = 0.6: σ of the mean = √(0.24/4000) = 0.0077.
        let band = 4.0 * (0.24_f64 / 4_000.0).sqrt();
        assert!((mean(Rounding::Stochastic) - 9.6).abs() < band);
    }
}
