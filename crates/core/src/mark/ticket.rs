//! Ticket marker: each packet carries the tickets issued to its flow since the previous packet.
//!
//! Zhang, Wang, Peterson, Krishnamurthy, "Probabilistic packet scheduling", INFOCOM 2002, sections II-B (source),
//! II-F.1 (sink) and II-G (policing, in [`tickets`](crate::mark::ticket_policer)).
//!
//! One marker serves three places:
//! - At a TCP source, AvgRate is the rate of acknowledged packets (section II-B).
//! - At a sink, the marker writes AckOutTktRate / AckAvgRate on acknowledgements; AckAvgRate is its own
//!   sending rate (II-F.1).
//! - At the edge of a flow without acknowledgements (UDP, the authors' future work), AvgRate is the sending
//!   rate.
//!
//! At a source whose receiver decides, OutTktRate is the rate of tickets that acknowledgements bring (II-F.1).
//!
//! Reading: the initial AvgRate is one packet per second; AvgRate is never below one packet per window.
//!
//! Beyond the paper: after a timeout no acknowledgement comes, so AvgRate stays high and tags stay small when
//! packets matter most. `decay` reads AvgRate as an acknowledgement of zero packets at the time of sending
//! would leave it. And a flow without acknowledgements knows its rate at once: while its rate over
//! `burst_window` exceeds AvgRate, that rate divides the tickets, and policing does not raise them. Otherwise
//! a flood that starts, or one in pulses, carries the tickets of its silence, and no router drops it.
//! `burst_window` extends over at least `BURST` packets, so that random gaps are not taken for bursts.
//!
//! With `hold` the flow adjusts its tickets to hold a rate (section III-E, [`rate_hold`](crate::mark::rate_hold)).
//! Its rate is AvgRate times the mean size of its packets. Its changes take effect at once: they are slow, and
//! a lag of `issue_window` would add to the loop's.
//!
//! Cost: O(1), two averages per packet, three without acknowledgements; 250 bytes per flow, none of it in routers. Parameters: [`ENTRY`].

use super::marker::{Marker, MarkerSetup};
use crate::estimate::RateEstimator;
use crate::estimate::tsw::Tsw;
use crate::label::Label;
use crate::mark::rate_hold::RateHold;
use crate::mark::ticket_policer::{PolicerParams, TicketPolicer, WINDOW, read};
use crate::packet::{LabelKind, Packet};
use crate::param::{Entry, EntryArgs, Param, ParamError, Role, Traits, require};
use crate::params;
use crate::units::{Bytes, Rate, Span, TicketRate, Time};

/// The ticket marker in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "tickets",
    role: Role::Marker,
    summary: "Tickets: each packet carries the tickets that its flow was issued since its previous packet.",
    reference: "Zhang et al. 2002, sections II-B, II-F, II-G",
    cost: "O(1) per packet, state at the ends of flows only",
    params: TicketMarkerParams::PARAMS,
    traits: Traits::NONE,
};

params! {
    /// Parameters of [`TicketMarker`].
    pub struct TicketMarkerParams {
        window: Span = Param::of(
            "2s",
            "chosen: shorter than `issue_window`, so that a flow learns of its new rate before its tickets change; the paper: 5 s",
        )
        .in_paper("5s")
        .or(&WINDOW),
        /// Whether AvgRate decays while no acknowledgement comes; serves flows of a few packets a second.
        decay: bool = Param::of(
            "true",
            "chosen: else flows of a few packets a second get four fifths; the paper, section II-B: no",
        )
        .in_paper("false"),
        /// Of a flow without acknowledgements: its rate over this window, and at least 20 packets, counts if it is above AvgRate;
        /// 0: never.
        burst_window: Span = Param::of(
            "100ms",
            "chosen: shorter than a buffer fills; else a flood in pulses carries the tickets of its silence; the paper, section II-B: no",
        )
        .in_paper("0s"),
        /// The rate of packets, headers included, that a flow with acknowledgements tries to hold: its tickets rise and fall
        /// within `hold_bound`.
        hold: Option<Rate> = Param::unset("off: tickets stay as issued; the paper, section III-E, leaves it to the application"),
        /// With `hold`, tickets stay between those issued divided by this and times this.
        hold_bound: f64 = Param::of("4", "chosen: limits what a flow takes from others of its currency"),
        /// How tickets are written.
        ..writer: PolicerParams where {
            policing_window: Param::of("2s", "chosen: as `window`; the paper has one WinLength, 5 s").in_paper("5s"),
        },
    }
    check: Self::check
}

impl TicketMarkerParams {
    fn check(&self, args: &EntryArgs<'_>) -> Result<(), ParamError> {
        require(self.hold != Some(Rate::ZERO), "hold", "write a rate above zero, for example \"5Mbit\"")?;
        let at_least = "tickets lie between those issued divided by this and times this: write a number from 1, for example 4";
        require(self.hold_bound >= 1.0, "hold_bound", at_least)?;
        args.refuse_idle(&[(
            "hold_bound",
            self.hold.is_none(),
            "it has no effect: only `hold` changes tickets",
        )])
    }
}

/// The marker's state, with the paper's names.
#[derive(Clone, Debug)]
pub struct TicketMarker {
    decay: bool,
    /// AvgRate or AckAvgRate, packets per second.
    avg_rate: Tsw,
    /// One packet per window, in packets per second.
    floor: f64,
    /// The rate in a burst, with `burst_window` in seconds, of a flow without acknowledgements.
    burst: Option<(Tsw, f64)>,
    /// Whether AvgRate counts acknowledged packets; else packets sent.
    acknowledged: bool,
    /// AckInTktRate at a source whose receiver decides.
    ack_in_tkt_rate: Option<Tsw>,
    writer: TicketPolicer,
    /// The tickets of a flow that holds a rate, and the mean size of its packets in bits.
    hold: Option<(RateHold, f64)>,
    /// The kind of label written.
    kind: LabelKind,
}

impl TicketMarker {
    /// A marker of data.
    #[must_use]
    pub fn new(params: &TicketMarkerParams, setup: MarkerSetup) -> Self {
        const UNKNOWN: f64 = 1.0;
        let MarkerSetup { tickets, acknowledged, start, random } = setup;
        Self {
            decay: params.decay,
            avg_rate: Tsw::new(params.window, UNKNOWN, start),
            floor: 1.0 / params.window.as_secs_f64().max(f64::MIN_POSITIVE),
            burst: (!acknowledged && params.burst_window > Span::ZERO)
                .then(|| (Tsw::new(params.burst_window, UNKNOWN, start), params.burst_window.as_secs_f64())),
            acknowledged,
            ack_in_tkt_rate: tickets.is_none().then(|| Tsw::new(params.window, 0.0, start)),
            hold: params.hold.filter(|_| acknowledged).zip(tickets).map(|(rate, tickets)| {
                (RateHold::new(rate, params.hold_bound, params.window, tickets, start), 0.0)
            }),
            writer: TicketPolicer::new(&params.writer, tickets, start, random),
            kind: LabelKind::Tickets,
        }
    }

    /// A marker of acknowledgements, at the sink of the flow.
    #[must_use]
    pub fn at_sink(params: &TicketMarkerParams, setup: MarkerSetup) -> Self {
        Self {
            kind: LabelKind::AckTickets,
            burst: None,
            ..Self::new(params, MarkerSetup { acknowledged: false, ..setup })
        }
    }

    fn avg_rate(&self, now: Time) -> f64 {
        let literal = self.acknowledged && !self.decay;
        let rate = if literal { self.avg_rate.latest() } else { self.avg_rate.rate(now) };
        rate.max(self.floor)
    }

    /// Adjusts the tickets of a flow that holds a rate, which sends a packet of `size`; AvgRate is `rate`.
    fn hold(&mut self, now: Time, rate: f64, size: Bytes) {
        let Some((hold, mean)) = &mut self.hold else { return };
        let bits = size.bits() as f64;
        *mean += (bits - *mean) * if *mean == 0.0 { 1.0 } else { SIZE_WEIGHT };
        self.writer.follow(now, hold.tickets(now, rate * *mean));
    }

    /// Counts a packet of a flow that sends `rate`; its rate in a burst if that is higher.
    fn burst(&mut self, now: Time, rate: f64) -> Option<f64> {
        let (burst, window) = self.burst.as_mut()?;
        burst.set_window(window.max(BURST / rate));
        burst.update(now, 1.0);
        Some(burst.latest()).filter(|&burst| burst > rate)
    }
}

/// The least number of packets of a burst. Chosen: the rate over 20 random arrivals varies by a sixth.
const BURST: f64 = 20.0;
/// The weight of a packet in the mean size. Chosen: a mean over some ten packets.
const SIZE_WEIGHT: f64 = 0.1;

impl<P: Packet> Marker<P> for TicketMarker {
    #[inline]
    fn mark(&mut self, now: Time, packet: &mut P) {
        if !self.acknowledged {
            self.avg_rate.update(now, 1.0);
        }
        // Section II-G: OutTkt = OutTktRate / AvgRate × OutTktRate / ActualTktRate.
        let rate = self.avg_rate(now);
        self.hold(now, rate, packet.size());
        let label = match self.burst(now, rate) {
            Some(burst) => self.writer.write_at_most(now, 1.0 / burst),
            None => self.writer.write(now, 1.0 / rate),
        };
        packet.set_label(self.kind, label);
    }

    fn acknowledged(&mut self, now: Time, packets: f64, label: Option<Label>) {
        if self.acknowledged {
            self.avg_rate.update(now, packets);
        }
        if let (Some(ack_in_tkt_rate), Some(label)) = (&mut self.ack_in_tkt_rate, label) {
            ack_in_tkt_rate.update(now, read(label));
            // Section II-F.1: OutTktRate = AckInTktRate, held between acknowledgements.
            let rate = ack_in_tkt_rate.latest();
            if let Some(rate) = TicketRate::new(rate) {
                self.writer.follow(now, rate);
            }
        }
    }

    fn issue(&mut self, now: Time, tickets: TicketRate) {
        match &mut self.hold {
            Some((hold, _)) => hold.issue(tickets),
            None => self.writer.issue(now, tickets),
        }
    }

    fn full_tags(&self) -> u64 {
        self.writer.full_tags()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::SimplePacket;
    use crate::random::Stream;
    use crate::system::catalog::Selection;
    use crate::testing::packet;

    fn params(pairs: &[(&str, &str)]) -> TicketMarkerParams {
        let mut selection = Selection::of(Role::Marker, "tickets").unwrap();
        selection.set("preset", "paper").unwrap();
        for (key, value) in pairs {
            selection.set(key, value).unwrap();
        }
        TicketMarkerParams::from_args(&selection.args.of(&ENTRY)).unwrap()
    }

    fn setup(tickets: Option<f64>) -> MarkerSetup {
        let tickets = tickets.and_then(TicketRate::new);
        MarkerSetup { tickets, acknowledged: true, start: Time::ZERO, random: Stream::new(1, "marker") }
    }

    fn tag(marker: &mut TicketMarker, now: Time, kind: LabelKind) -> f64 {
        let mut packet = packet(0, 0, 500);
        marker.mark(now, &mut packet);
        packet.label(kind).unwrap().value()
    }

    fn acknowledge(marker: &mut TicketMarker, now: Time, label: Option<Label>) {
        Marker::<SimplePacket>::acknowledged(marker, now, 1.0, label);
    }

    #[test]
    fn a_flow_is_marked_with_its_tickets_per_packet_whatever_its_rate() {
        // 1000 t/s at 20 packets/s: 50 a packet; at 100 packets/s: 10.
        for (gap, tickets) in [(50, 50.0), (10, 10.0)] {
            let mut marker = TicketMarker::new(&params(&[]), setup(Some(1_000.0)));
            let mut last = 0.0;
            for i in 1..60_000 / gap {
                acknowledge(&mut marker, Time::from_millis(i * gap), None);
                last = tag(&mut marker, Time::from_millis(i * gap), LabelKind::Tickets);
            }
            assert!((last - tickets).abs() <= 1.0, "{last} against {tickets}");
        }
    }

    #[test]
    fn the_first_packets_are_worth_a_second_each() {
        // One packet per second is assumed: 200 t/s are 200 tickets; 1000 exceed 8 bits.
        let first = |rate| {
            tag(&mut TicketMarker::new(&params(&[]), setup(Some(rate))), Time::ZERO, LabelKind::Tickets)
        };
        assert_eq!((first(200.0), first(1_000.0)), (200.0, 255.0));
    }

    #[test]
    fn packets_after_a_silence_are_worth_more_if_the_rate_decays() {
        let after_a_silence = |decay| {
            let params = params(&[("decay", decay), ("policing_bound", "1")]);
            let mut marker = TicketMarker::new(&params, setup(Some(1_000.0)));
            for i in 1..2_000 {
                acknowledge(&mut marker, Time::from_millis(10 * i), None);
            }
            tag(&mut marker, Time::from_secs(25), LabelKind::Tickets)
        };
        // 100 packets/s minus the rest of the initial value, (5/5.01)^1999 ≈ 2 %; half of that after 5 s of
        // silence.
        assert_eq!((after_a_silence("false"), after_a_silence("true")), (10.0, 20.0));
    }

    #[test]
    fn a_burst_does_not_carry_the_tickets_of_the_silence_before() {
        let last = |burst_window, acknowledged| {
            let params = params(&[("burst_window", burst_window)]);
            let setup = MarkerSetup { acknowledged, ..setup(Some(1_000.0)) };
            let mut marker = TicketMarker::new(&params, setup);
            // 1,000 packets a second after 10 s of silence: one ticket each.
            let mut last = 0.0;
            for i in 0..300 {
                let now = Time::from_millis(10_000 + i);
                acknowledge(&mut marker, now, None);
                last = tag(&mut marker, now, LabelKind::Tickets);
            }
            last
        };
        // An average over 5 s has 58 packets a second; policing halves the tickets.
        let (follows, averages) = (last("100ms", false), last("0s", false));
        assert!(follows <= 3.0 && averages >= 6.0, "{follows} {averages}");
        // With acknowledgements it is the link that sets the pace.
        assert_eq!(last("100ms", true), last("0s", true));
    }

    #[test]
    fn a_source_follows_the_tickets_of_its_acknowledgements() {
        let mut marker = TicketMarker::new(&params(&[]), setup(None));
        assert_eq!(tag(&mut marker, Time::ZERO, LabelKind::Tickets), 255.0, "nothing is known yet");
        let mut last = 0.0;
        for i in 1..6_000 {
            // 50 packets/s acknowledged with 12 tickets each: 600 t/s, 12 a packet.
            let now = Time::from_millis(20 * i);
            acknowledge(&mut marker, now, Some(Label::new(12.0)));
            last = tag(&mut marker, now, LabelKind::Tickets);
        }
        assert!((last - 12.0).abs() <= 1.0, "{last}");
    }

    #[test]
    fn a_sink_marks_as_many_tickets_on_half_as_many_acknowledgements() {
        for (gap, tickets) in [(20, 10.0), (40, 20.0)] {
            let mut marker = TicketMarker::at_sink(&params(&[]), setup(Some(500.0)));
            let last = (1..2_000)
                .map(|i| tag(&mut marker, Time::from_millis(i * gap), LabelKind::AckTickets))
                .last();
            assert!((last.unwrap() - tickets).abs() <= 1.0, "{last:?} against {tickets}");
        }
    }

    #[test]
    fn a_new_issue_shows_in_the_next_packets() {
        let mut marker = TicketMarker::new(&params(&[]), setup(Some(1_000.0)));
        let mut tags = std::vec::Vec::new();
        for i in 1..4_000 {
            let now = Time::from_millis(20 * i);
            if i == 2_000 {
                Marker::<SimplePacket>::issue(&mut marker, now, TicketRate::new(600.0).unwrap());
            }
            acknowledge(&mut marker, now, None);
            tags.push(tag(&mut marker, now, LabelKind::Tickets));
        }
        assert_eq!((tags[1_900], tags[3_900]), (20.0, 12.0));
    }
}
