//! Currency exchange: a link replaces the tickets of the upstream entity by tickets that the downstream one
//! issued to it.
//!
//! Zhang, Wang, Peterson, Krishnamurthy, "Probabilistic packet scheduling", INFOCOM 2002, sections II-D and II-E
//! (data), II-F.1 (acknowledgements) and II-G (policing, in [`tickets`](crate::mark::ticket_policer)).
//!
//! Readings, where the paper leaves room:
//! - InTktRate counts all tickets that arrive, also on packets that the queue then drops; otherwise the rate
//!   of exchange would depend on loss.
//! - Tags are rewritten when a packet leaves the queue, so that an exchange works with any discipline; the
//!   discipline itself compares tickets of one currency.
//! - In the receiver-based scheme the link's OutTktRate is the AckInTktRate of its other direction, held
//!   between acknowledgements; before the first, packets carry 255 tickets.
//! - With InTktRate near 0, after idle time, a packet is worth at most the tickets issued in one window.
//!
//! Cost: O(1), two averages per packet; no state per flow. Parameters: [`ENTRY`].

use crate::estimate::RateEstimator;
use crate::estimate::tsw::Tsw;
use crate::mark::ticket_policer::{PolicerParams, TicketPolicer, WINDOW, read};
use crate::packet::{LabelKind, Packet};
use crate::param::{Entry, Role, Traits};
use crate::params;
use crate::random::Stream;
use crate::units::{Span, TicketRate, Time};

/// The currency exchange in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "currency",
    role: Role::Exchange,
    summary: "Currency exchange: packets trade their tickets for those that the next router issued to the link.",
    reference: "Zhang et al. 2002, sections II-D to II-G",
    cost: "O(1) per packet, no state per flow",
    params: ExchangeParams::PARAMS,
    traits: Traits::NONE,
};

params! {
    /// Parameters of [`CurrencyExchange`].
    pub struct ExchangeParams {
        window: Span = WINDOW,
        /// How tickets are written.
        ..writer: PolicerParams,
    }
}

/// The exchange of one direction of a link, for one kind of label. Names are the paper's; there, names for
/// acknowledgements begin with "Ack".
#[derive(Clone, Debug)]
pub struct CurrencyExchange {
    kind: LabelKind,
    /// WinLength, in seconds.
    window: f64,
    in_tkt_rate: Tsw,
    writer: TicketPolicer,
    stats: ExchangeStats,
}

/// The tickets that an exchange has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ExchangeStats {
    /// Tickets that arrived, dropped packets included.
    pub tickets_in: f64,
    /// Tickets that left, in the next currency.
    pub tickets_out: f64,
}

impl CurrencyExchange {
    /// An exchange with an issue of `tickets`; none: unknown as yet.
    #[must_use]
    pub fn new(
        params: &ExchangeParams,
        kind: LabelKind,
        tickets: Option<TicketRate>,
        random: Stream,
    ) -> Self {
        Self {
            kind,
            window: params.window.as_secs_f64(),
            in_tkt_rate: Tsw::new(params.window, 0.0, Time::ZERO),
            writer: TicketPolicer::new(&params.writer, tickets, Time::ZERO, random),
            stats: ExchangeStats::default(),
        }
    }

    /// Whether it has these parameters.
    #[must_use]
    pub fn has_params(&self, params: &ExchangeParams) -> bool {
        self.window == params.window.as_secs_f64() && self.writer.has_params(&params.writer)
    }

    /// The tickets issued to it per second; none while unknown.
    #[must_use]
    pub const fn issued(&self) -> Option<TicketRate> {
        self.writer.out_tkt_rate()
    }

    /// The number of tags so far that were too narrow for their tickets.
    #[must_use]
    pub const fn full_tags(&self) -> u64 {
        self.writer.full_tags()
    }

    /// The tickets counted so far.
    #[must_use]
    pub const fn stats(&self) -> &ExchangeStats {
        &self.stats
    }

    /// Counts a packet that arrives before the queue. Returns the rate of arriving tickets, if the packet has
    /// any.
    #[inline]
    pub fn arrive<P: Packet>(&mut self, now: Time, packet: &P) -> Option<TicketRate> {
        let label = packet.label(self.kind)?;
        self.in_tkt_rate.update(now, read(label));
        self.stats.tickets_in += read(label);
        TicketRate::new(self.in_tkt_rate.latest())
    }

    /// Rewrites the tag of a packet that leaves the queue.
    #[inline]
    pub fn exchange<P: Packet>(&mut self, now: Time, packet: &mut P) {
        let Some(label) = packet.label(self.kind) else { return };
        // Sections II-D and II-G: OutTkt = InTkt × OutTktRate / InTktRate × OutTktRate / ActualTktRate.
        let share = (read(label) / self.in_tkt_rate.rate(now)).min(self.window);
        let label = self.writer.write(now, share);
        self.stats.tickets_out += label.value();
        packet.set_label(self.kind, label);
    }

    /// Sets the tickets per second that the next entity issues to the link.
    pub fn issue(&mut self, now: Time, tickets: TicketRate) {
        self.writer.issue(now, tickets);
    }

    /// Sets the issue to the ticket rate of acknowledgements in the other direction: an average, which takes
    /// effect at once.
    pub fn follow(&mut self, now: Time, tickets: TicketRate) {
        self.writer.follow(now, tickets);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::label::Label;
    use crate::system::catalog::Selection;
    use crate::testing::packet;

    fn exchange(pairs: &[(&str, &str)], tickets: Option<f64>) -> CurrencyExchange {
        let mut selection = Selection::of(Role::Exchange, "currency").unwrap();
        for (key, value) in pairs {
            selection.set(key, value).unwrap();
        }
        let params = ExchangeParams::from_args(&selection.args.of(&ENTRY)).unwrap();
        CurrencyExchange::new(
            &params,
            LabelKind::Tickets,
            tickets.and_then(TicketRate::new),
            Stream::new(1, "link"),
        )
    }

    /// Sends tags in turn, one every 10 ms for 100 s, and drops every n-th before its exchange; returns the
    /// rate of tickets written in the second half.
    fn written(exchange: &mut CurrencyExchange, tags: &[f64], drop: u64) -> f64 {
        let mut sum = 0.0;
        for i in 0..10_000 {
            let mut packet = packet(0, 0, 500);
            packet.set_label(LabelKind::Tickets, Label::new(tags[i as usize % tags.len()]));
            let now = Time::from_millis(10 * i);
            exchange.arrive(now, &packet);
            if drop > 0 && i % drop == 0 {
                continue;
            }
            exchange.exchange(now, &mut packet);
            sum += if i >= 5_000 { packet.label(LabelKind::Tickets).unwrap().value() } else { 0.0 };
        }
        sum / 50.0
    }

    #[test]
    fn tickets_keep_their_proportion_and_their_sum_is_what_was_issued() {
        // 100 packets/s with 1000 and 3000 tickets in turn are 200,000 t/s; 90,000 go out: 450 and 1350 a packet.
        let mut exchange = exchange(&[("bits", "17")], Some(90_000.0));
        let rate = written(&mut exchange, &[1_000.0, 3_000.0], 0);
        assert!((rate / 90_000.0 - 1.0).abs() < 0.005, "{rate}");
        let mut tag = |value: f64| {
            let mut packet = packet(0, 0, 500);
            packet.set_label(LabelKind::Tickets, Label::new(value));
            exchange.exchange(Time::from_secs(100), &mut packet);
            packet.label(LabelKind::Tickets).unwrap().value()
        };
        assert!((tag(3_000.0) / tag(1_000.0) - 3.0).abs() < 0.05); // the first counts for the second
    }

    #[test]
    fn loss_at_the_queue_lowers_what_leaves_unless_policing_makes_up_for_it() {
        // A fifth of the packets is dropped: without policing 0.8 × 900 t/s leave. With policing the factor
        // T/x balances x = 0.8 T · T/x, so x = T √0.8 = 0.894 T.
        let lossy =
            |bound| written(&mut exchange(&[("policing_bound", bound)], Some(900.0)), &[50.0], 5) / 900.0;
        assert!((lossy("1") - 0.8).abs() < 0.02, "{}", lossy("1"));
        assert!((lossy("2") - 0.8_f64.sqrt()).abs() < 0.02, "{}", lossy("2"));
    }

    #[test]
    fn the_scale_of_the_upstream_currency_does_not_matter() {
        let rate = |scale: f64| written(&mut exchange(&[], Some(900.0)), &[10.0 * scale, 20.0 * scale], 0);
        assert_eq!(rate(1.0), rate(10.0));
    }

    #[test]
    fn packets_without_tickets_pass_as_they_are_and_count_for_nothing() {
        let mut exchange = exchange(&[], Some(900.0));
        let mut untagged = packet(0, 0, 40);
        untagged.set_label(LabelKind::AckTickets, Label::new(7.0));
        let before = untagged;
        assert_eq!(exchange.arrive(Time::ZERO, &untagged), None);
        exchange.exchange(Time::ZERO, &mut untagged);
        assert_eq!(untagged, before);
    }

    #[test]
    fn after_idle_time_a_packet_is_worth_at_most_a_window() {
        // 5 s of 900 t/s, doubled by policing, as nothing was written lately; 8 bits hold 255.
        assert_eq!(after_idle_time("17"), 9_000.0);
        assert_eq!(after_idle_time("8"), 255.0);
    }

    fn after_idle_time(bits: &str) -> f64 {
        let mut exchange = exchange(&[("bits", bits)], Some(900.0));
        written(&mut exchange, &[20.0], 0);
        let mut late = packet(0, 0, 500);
        late.set_label(LabelKind::Tickets, Label::new(20.0));
        let now = Time::from_secs(100_000);
        exchange.arrive(now, &late);
        exchange.exchange(now, &mut late);
        late.label(LabelKind::Tickets).map_or(0.0, Label::value)
    }

    #[test]
    fn the_rate_of_arriving_tickets_is_given_to_the_other_direction() {
        let mut exchange = exchange(&[], Some(900.0));
        let mut rate = None;
        for i in 1..5_000 {
            let mut packet = packet(0, 0, 40);
            packet.set_label(LabelKind::Tickets, Label::new(20.0));
            rate = exchange.arrive(Time::from_millis(20 * i), &packet);
        }
        // 50 packets a second with 20 tickets each.
        assert!((rate.unwrap().get() - 1_000.0).abs() < 1.0, "{rate:?}");
    }

    #[test]
    fn parameters_and_issued_tickets_are_read_back() {
        let params = |pairs: &[(&str, &str)]| {
            let mut selection = Selection::of(Role::Exchange, "currency").unwrap();
            for (key, value) in pairs {
                selection.set(key, value).unwrap();
            }
            ExchangeParams::from_args(&selection.args.of(&ENTRY)).unwrap()
        };
        let mut exchange = exchange(&[("window", "3s"), ("bits", "17")], None);
        assert!(exchange.has_params(&params(&[("window", "3s"), ("bits", "17")])));
        assert!(!exchange.has_params(&params(&[("window", "4s"), ("bits", "17")])));
        assert!(!exchange.has_params(&params(&[("window", "3s"), ("bits", "16")])));
        assert_eq!(exchange.issued(), None);
        exchange.issue(Time::ZERO, TicketRate::new(900.0).unwrap());
        assert_eq!(exchange.issued(), TicketRate::new(900.0));
    }

    #[test]
    fn it_has_no_state_per_flow() {
        // An exchange consists of its parameters and averages, however many flows pass: it owns no memory.
        assert!(size_of::<CurrencyExchange>() < 512 && !core::mem::needs_drop::<CurrencyExchange>());
    }
}
