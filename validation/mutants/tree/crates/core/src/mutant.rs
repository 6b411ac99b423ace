//! Faults put in on purpose, so that experiments and tests can show that they would notice: each is a line or two
//! of a scheme, done wrong.
//!
//! The patches of `validation/mutants` put them into a copy of the sources. One of them is active in the whole process, after
//! `Mutant::activate`; the unit tests of this crate take it from the environment variable `APPORTION_MUTANT`, and
//! `apportion reproduce --mutants` runs the experiments of papers with each of them.

/// The table: a variant, its name (`SYSTEM-FAULT`), the fault, and a unit test of this crate that it breaks.
macro_rules! mutants {
    ($($variant:ident, $name:literal, $fault:literal, $test:literal;)*) => {
        /// A fault.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Mutant {
            $(#[doc = $fault] $variant,)*
        }

        impl Mutant {
            /// All of them, by system.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// `SYSTEM-FAULT`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// What is wrong with it on.
            #[must_use]
            pub const fn fault(self) -> &'static str {
                match self { $(Self::$variant => $fault,)* }
            }

            /// A unit test of this crate that fails with it on; empty if there is none.
            #[must_use]
            pub const fn test(self) -> &'static str {
                match self { $(Self::$variant => $test,)* }
            }
        }
    };
}

mutants! {
    PfdPZero, "pfd-p-zero", "nothing is dropped early: p is 0",
        "aqm::pfd::tests::as_many_go_as_an_arrival_in_bytes_needs_and_one_that_never_fits_goes_alone";
    PfdPTenfold, "pfd-p-tenfold", "p is ten times what is configured",
        "aqm::pfd::tests::early_drops_and_victims_drawn_by_occupancy_come_as_often_as_they_should";
    PfdNoThresh, "pfd-no-thresh", "early drops at any fill of the buffer: `thresh` is ignored",
        "aqm::pfd::tests::as_many_go_as_an_arrival_in_bytes_needs_and_one_that_never_fits_goes_alone";
    PfdTail, "pfd-tail", "the last packet of the victim is dropped, not the first",
        "aqm::pfd::tests::as_many_go_as_an_arrival_in_bytes_needs_and_one_that_never_fits_goes_alone";
    PfdShortest, "pfd-shortest", "the shortest queue is the victim",
        "aqm::pfd::tests::as_many_go_as_an_arrival_in_bytes_needs_and_one_that_never_fits_goes_alone";
    PfdUniform, "pfd-uniform", "any flow above its threshold is the victim, not the one furthest above",
        "aqm::pfd::tests::as_many_go_as_an_arrival_in_bytes_needs_and_one_that_never_fits_goes_alone";
    PfdTailDrop, "pfd-tail-drop", "a full buffer refuses the arrival; no other packet is pushed out",
        "aqm::pfd::tests::as_many_go_as_an_arrival_in_bytes_needs_and_one_that_never_fits_goes_alone";
    PfdRttOfAll, "pfd-rtt-of-all", "round-trip times of floods count for thresholds",
        "aqm::pfd::tests::a_flood_over_a_long_round_trip_has_the_threshold_of_the_shortest";
    PfdEqualThresholds, "pfd-equal-thresholds", "round-trip times and weights do not count for thresholds",
        "aqm::pfd::tests::long_round_trips_are_allowed_more_by_the_ratio_than_by_the_difference";
    PfdInverseRtt, "pfd-inverse-rtt", "thresholds are in inverse proportion to round-trip times",
        "aqm::pfd::tests::long_round_trips_are_allowed_more_by_the_ratio_than_by_the_difference";
    PfdPOne, "pfd-p-one", "every arrival above `thresh` drops a packet: p is 1",
        "aqm::pfd::tests::early_drops_and_victims_drawn_by_occupancy_come_as_often_as_they_should";
    PfdCharged, "pfd-charged", "a flow is charged for a packet that is pushed out as if it were served",
        "schedule::start_time_fq::tests::a_packet_pushed_out_is_not_charged";
    PfdFifo, "pfd-fifo", "all start tags are equal: flows are served in the order of their numbers",
        "schedule::start_time_fq::tests::a_flow_that_comes_late_starts_at_the_packet_in_service";
    PfdOldTag, "pfd-old-tag", "a flow that comes back has the start tag of its past, not of now",
        "schedule::start_time_fq::tests::nothing_is_owed_after_the_link_was_idle_and_something_is_after_it_was_only_empty";

    PfdFixedLimit, "pfd-fixed-limit", "a buffer without a size of its own holds 50 packets on a link of any rate",
        "aqm::push_out::tests::a_buffer_without_a_size_of_its_own_is_100_ms_of_its_link";

    CsfqNoRelabel, "csfq-no-relabel", "packets keep the label with which they came",
        "aqm::csfq::tests::a_narrow_label_holds_the_share_roughly";
    CsfqShareByArrivals, "csfq-share-by-arrivals", "the share is scaled by what arrives, not by what is accepted",
        "estimate::fair_share::tests::a_congested_link_scales_its_share_by_what_was_accepted";
    CsfqTotalLabel, "csfq-total-label", "excess packets carry the flow's whole rate",
        "mark::rate_label::tests::a_guarantee_that_changes_forgets_nothing_of_the_excess";
    CsfqDoubleK, "csfq-double-k", "K is twice what is configured",
        "aqm::csfq::tests::roles_say_who_labels_and_who_takes_labels_off";
    CsfqNoGuaranteeEstimate, "csfq-no-guarantee-estimate", "guaranteed traffic is divided as if it were excess",
        "estimate::fair_share::tests::what_is_guaranteed_is_set_aside";
    CsfqHalfGuarantee, "csfq-half-guarantee", "the edge marks half of what is guaranteed",
        "mark::rate_label::tests::a_flow_within_its_guarantee_is_covered_entirely";
    CsfqNoDebt, "csfq-no-debt", "nothing is kept of what a flow did not use of its guarantee",
        "mark::rate_label::tests::what_a_flow_did_not_use_is_covered_later_at_no_more_than_the_peak";
    CsfqByLoad, "csfq-by-load", "the share follows the rate of arrivals, not the queueing delay",
        "estimate::fair_share::by_delay::tests::the_share_falls_above_the_target_only";
    CsfqSetRate, "csfq-set-rate", "the set rate of the link is divided, whatever leaves",
        "estimate::fair_share::departures::tests::departures_of_waiting_packets_measure_the_link";
    CsfqOneTarget, "csfq-one-target", "target and windows are the same in front of links of any rate",
        "estimate::fair_share::by_delay::tests::target_and_windows_are_shorter_in_front_of_a_fast_link";
    CsfqNoCredit, "csfq-no-credit", "labels are the rate of the last moment, also of a flow whose mean is less",
        "mark::rate_label::tests::a_burst_is_labelled_with_the_mean_of_its_flow";
    CsfqNoWeights, "csfq-no-weights", "labels are not divided by weights",
        "mark::rate_label::tests::a_label_is_the_rate_for_a_weight_of_one";
    CsfqHalfDrops, "csfq-half-drops", "half of the excess is dropped",
        "aqm::csfq::tests::avoidance_lowers_the_share_as_the_buffer_fills";
    CsfqNoDecay, "csfq-no-decay", "the share never falls without congestion, in CSFQ either",
        "estimate::fair_share::tests::a_window_that_saw_only_its_own_end_is_no_deadlock";
    CsfqDecay, "csfq-decay", "the share is forgotten without congestion, in MCSFQ too",
        "estimate::fair_share::tests::csfq_takes_the_largest_label_of_a_window_and_mcsfq_never_less_than_it_had";
    CsfqTenfoldKc, "csfq-tenfold-kc", "K_c is ten times what is configured",
        "aqm::csfq::tests::a_packet_leaves_with_the_share_after_it_was_counted";
    CsfqNoReserve, "csfq-no-reserve", "no part of the buffer is kept for guaranteed packets",
        "aqm::csfq::tests::the_last_of_the_buffer_is_for_guaranteed_packets";
    CsfqNoFloors, "csfq-no-floors", "a customer has no more than its share, whatever its flows are guaranteed",
        "aqm::hcsfq::tests::a_customer_has_at_least_what_its_guarantees_cover";
    CsfqPartByLoad, "csfq-part-by-load", "a customer may have all of the link whenever less arrives than that",
        "aqm::hcsfq::tests::by_delay_the_part_of_a_customer_does_not_follow_what_arrives";
    CsfqDropsBelowPart, "csfq-drops-below-part", "a customer that sends less than its part is dropped from too",
        "estimate::fair_share::by_delay::tests::a_share_of_a_part_applies_while_more_arrives_than_that";
    CsfqUnmarked, "csfq-unmarked", "the edge marks the excess as guaranteed and what is guaranteed as excess",
        "mark::rate_label::tests::a_bucket_covers_a_burst_as_deep_as_it_is";
    CsfqOldLabels, "csfq-old-labels", "the largest label of all time counts, not that of a window",
        "estimate::fair_share::tests::csfq_takes_the_largest_label_of_a_window_and_mcsfq_never_less_than_it_had";

    PpsInRateOfDepartures, "pps-in-rate-of-departures", "InTktRate does not count dropped packets",
        "mark::currency_exchange::tests::loss_at_the_queue_lowers_what_leaves_unless_policing_makes_up_for_it";
    PpsNoFactor, "pps-no-factor", "tickets do not count for drops",
        "aqm::tred::tests::a_flow_with_a_tenth_of_the_tickets_gets_nothing_through";
    PpsLinear, "pps-linear", "the exponent n is 1",
        "aqm::tred::tests::a_flow_with_a_tenth_of_the_tickets_gets_nothing_through";
    PpsInverse, "pps-inverse", "more tickets, more drops",
        "aqm::tred::tests::a_flow_with_a_tenth_of_the_tickets_gets_nothing_through";
    PpsNoFilter, "pps-no-filter", "rich flows count for ExpectTkt",
        "aqm::tred::tests::a_higher_rank_does_not_notice_single_strays";
    PpsOldMinimum, "pps-old-minimum", "MinTkt is the least of all time",
        "aqm::tred::tests::a_stray_packet_with_one_ticket_is_forgotten_within_two_intervals";
    PpsNoPolicing, "pps-no-policing", "tags are not corrected by ActualTktRate",
        "mark::currency_exchange::tests::after_idle_time_a_packet_is_worth_at_most_a_window";
    PpsLowRate, "pps-low-rate", "a source divides its tickets by a tenth of its packets",
        "mark::ticket::tests::a_flow_is_marked_with_its_tickets_per_packet_whatever_its_rate";
    PpsNoExchange, "pps-no-exchange", "links leave tickets in the currency in which they came",
        "mark::currency_exchange::tests::after_idle_time_a_packet_is_worth_at_most_a_window";
    PpsEvenExchange, "pps-even-exchange", "a link gives every packet the same tickets",
        "mark::currency_exchange::tests::loss_at_the_queue_lowers_what_leaves_unless_policing_makes_up_for_it";
    PpsDeafSource, "pps-deaf-source", "a source takes no notice of the tickets on acknowledgements",
        "mark::ticket::tests::a_source_follows_the_tickets_of_its_acknowledgements";
    PpsInstantQueue, "pps-instant-queue", "RED looks at the queue, not at its average",
        "";
    PpsMeanOfFloods, "pps-mean-of-floods", "ExpectTkt is the mean of what arrives, floods included",
        "aqm::tred::tests::a_flood_moves_neither_what_is_expected_nor_what_others_lose";
    PpsNoBound, "pps-no-bound", "p has no bound: a flood loses all packets",
        "aqm::tred::tests::a_flood_keeps_the_part_of_its_share_that_is_set";
    PpsThinnedTickets, "pps-thinned-tickets", "packets that were spared keep the tickets with which they came",
        "aqm::tred::tests::what_is_thinned_leaves_with_the_tickets_with_which_it_came";
    PpsPerPacket, "pps-per-packet", "large packets need no more tickets than small ones",
        "aqm::tred::tests::packets_of_any_size_are_judged_by_tickets_for_a_byte";
    PpsSuddenIssue, "pps-sudden-issue", "a change of what is issued takes effect at once",
        "mark::ticket_policer::tests::a_change_of_what_is_issued_takes_effect_as_an_average_would_follow_it";
    PpsMiddle, "pps-middle", "adaptive max_p aims at the middle of the thresholds, however far apart they are",
        "aqm::tred::tests::by_default_adaptive_max_p_keeps_the_average_at_twice_min_thresh";
    PpsFixedThresholds, "pps-fixed-thresholds", "buffer, thresholds and w_q are the paper's on a link of any rate",
        "aqm::tred::tests::on_a_fast_link_thresholds_buffer_and_average_are_as_many_times_the_paper_s";
    PpsOneTicket, "pps-one-ticket", "every packet carries one ticket",
        "mark::currency_exchange::tests::after_idle_time_a_packet_is_worth_at_most_a_window";

    PpvNoDraw, "ppv-no-draw", "each packet carries the value of its flow's whole rate, not of a part of it",
        "mark::value::tests::what_is_worth_more_than_a_rate_has_that_rate";
    PpvIndependentDraws, "ppv-independent-draws", "draws of a flow are independent of each other",
        "mark::value::tests::of_any_packets_of_a_flow_as_many_as_should_are_below_a_part";
    PpvTail, "ppv-tail", "a full buffer refuses the arrival, whatever its value",
        "system::ppv::tests::the_victim_is_that_of_a_search";

    RampNoFilter, "ramp-no-filter", "L is 1: no low-pass filter",
        "system::ramp::tests::a_step_is_answered_as_the_loop_in_fluid_answers_it";
    RampNoD, "ramp-no-d", "D is 0",
        "";
    RampTenfoldD, "ramp-tenfold-d", "D is ten times what is configured",
        "";
    RampNoMinimum, "ramp-no-minimum", "the greedy minimum is 0",
        "system::ramp::tests::overload_is_notified_within_200_ms_and_shared_equally_above_the_greedy_minimum";
    RampCredit, "ramp-credit", "a silent flow saves up twenty times the credit",
        "system::ramp::reservations::tests::a_silent_flow_saves_up_a_packet_and_no_more";
    RampWindup, "ramp-windup", "the sum of errors is not bounded",
        "system::ramp::tests::after_ten_seconds_of_silence_a_flow_has_its_rate_within_one";
    RampLongPeriod, "ramp-long-period", "the period is a hundred times what is configured",
        "system::ramp::reservations::tests::a_silent_flow_saves_up_a_packet_and_no_more";
    RampLowTarget, "ramp-low-target", "the target is 15 % low",
        "system::ramp::tests::a_target_in_time_adds_the_same_delay_at_any_rate";
    RampLowI, "ramp-low-i", "I is 20 % low",
        "system::ramp::tests::a_control_delay_of_150_ms_makes_the_paper_s_figure";
    RampOldController, "ramp-old-controller", "a changed rate of the link leaves the controller as it was",
        "";
    RampNoFloor, "ramp-no-floor", "allocations may fall to zero",
        "system::ramp::tests::a_flow_that_changes_its_class_takes_its_packets_along_in_order";
    RampLastDeadline, "ramp-last-deadline", "the latest deadline goes first",
        "system::ramp::reservations::tests::the_longest_released_goes_first_and_with_period_control_the_faster";
    RampNoScale, "ramp-no-scale", "an overload is not scaled down: allocations exceed the link",
        "system::ramp::tests::each_application_is_notified_of_its_own_shortage_at_most_once_an_interval";
    RampSilent, "ramp-silent", "no source is notified of overloads",
        "system::ramp::tests::each_application_is_notified_of_its_own_shortage_at_most_once_an_interval";
    RampGreedyFirst, "ramp-greedy-first", "greedy packets go before those of real-rate flows",
        "system::ramp::tests::greedy_flows_have_what_is_left";
    RampOneTarget, "ramp-one-target", "targets of flows are ignored: all have that of the queue",
        "system::ramp::tests::second::each_queue_holds_the_target_of_its_flow";
    RampNoFeedForward, "ramp-no-feed-forward", "only the fill of its queue shows what a flow needs",
        "system::ramp::tests::second::a_flow_whose_window_never_fills_the_target_has_what_it_sends";
    RampNoLeftover, "ramp-no-leftover", "what reservations leave goes to greedy flows only",
        "system::ramp::tests::second::a_burst_leaves_ahead_of_greedy_packets";
    RampScale, "ramp-scale", "in overload all allocations are scaled down alike",
        "system::ramp::tests::second::a_call_keeps_its_rate_in_an_overload_that_others_make";
    RampFloorWanted, "ramp-floor-wanted", "the floor counts as what a flow needs",
        "system::ramp::tests::second::calls_that_fit_the_link_make_no_overload_by_their_floors";
    RampNoDrain, "ramp-no-drain", "in an overload a flow has no more than what comes in of it",
        "system::ramp::tests::second::in_an_overload_a_small_window_is_no_bound";
    RampPatient, "ramp-patient", "packets wait for as long as their queue has room",
        "system::ramp::tests::second::what_waited_too_long_is_dropped_and_the_rest_comes_in_time";
    RampRestless, "ramp-restless", "flows that are silent are sampled for ever",
        "system::ramp::tests::second::flows_that_are_silent_come_to_rest_and_wake_with_a_packet";
    RampGreedyFifo, "ramp-greedy-fifo", "greedy flows share one queue",
        "system::any::tests::what_divides_among_greedy_flows_of_ramp_has_its_size";
    RampDoubleI, "ramp-double-i", "I is twice what is configured",
        "system::ramp::tests::a_control_delay_of_150_ms_makes_the_paper_s_figure";

    SffcLongActive, "sffc-long-active", "a flow counts as active for twenty times as long",
        "aqm::sffc::tests::a_silent_flow_is_forgotten_and_a_long_silence_costs_nothing";
    SffcRecount, "sffc-recount", "a satisfied flow is counted again in each round",
        "aqm::sffc::tests::recounting_gives_out_too_little";
    SffcNoWait, "sffc-no-wait", "discard rates fall without waiting for a late report",
        "aqm::sffc::tests::a_report_moves_the_basic_discard_rate_to_what_the_next_router_could_forward";
    SffcNoHistory, "sffc-no-history", "only the last interval's departures count",
        "aqm::sffc::tests::departures_are_averaged_over_the_intervals_that_a_report_may_be_about";
    SffcDeaf, "sffc-deaf", "reports of other routers are ignored",
        "aqm::sffc::tests::a_report_moves_the_basic_discard_rate_to_what_the_next_router_could_forward";
    SffcUnfair, "sffc-unfair", "flows are not held to their fair bandwidth",
        "aqm::sffc::tests::departures_for_usage_freeze_flows_at_their_rate";
    SffcFinalRate, "sffc-final-rate", "discard rates go on from v, not from BDR",
        "aqm::sffc::tests::departures_for_usage_freeze_flows_at_their_rate";
    SffcDepartures, "sffc-departures", "the demand of non-adaptive flows is what left",
        "aqm::sffc::tests::a_report_moves_the_basic_discard_rate_to_what_the_next_router_could_forward";
    SffcNoSpare, "sffc-no-spare", "non-adaptive flows get only what steady adaptive ones leave",
        "aqm::sffc::tests::what_is_left_of_steady_adaptive_flows_is_not_below_the_share";
    SffcAllDivide, "sffc-all-divide", "the fair bandwidth is divided among adaptive flows too",
        "aqm::sffc::tests::departures_for_usage_freeze_flows_at_their_rate";
    SffcNeverRises, "sffc-never-rises", "discard rates do not fall without reports",
        "aqm::sffc::tests::a_report_of_regular_loss_lets_a_flow_send_more_too";
    SffcFastRise, "sffc-fast-rise", "discard rates fall ten times as fast without reports",
        "aqm::sffc::tests::a_report_of_regular_loss_lets_a_flow_send_more_too";
    SffcGammaOfAll, "sffc-gamma-of-all", "non-adaptive packets count as adaptive arrivals",
        "aqm::sffc::tests::departures_for_usage_freeze_flows_at_their_rate";
    SffcCountsFlows, "sffc-counts-flows", "non-adaptive flows are due their part of the number of flows",
        "aqm::sffc::tests::many_small_flows_do_not_make_a_greedy_one_rich";
    SffcEachGrows, "sffc-each-grows", "each flow grows by I, and keeps as much, not all of them together",
        "aqm::sffc::tests::flows_grow_together_by_what_one_alone_would";
    SffcShares, "sffc-shares", "cuts are shares of packets, not rates",
        "aqm::sffc::rates::tests::a_rate_cuts_only_what_exceeds_it";
    SffcOverflowsOnly, "sffc-overflows-only", "a router reports only when its own link overflows",
        "aqm::sffc::rates::tests::a_router_with_room_passes_on_what_it_heard";
    SffcGivesAway, "sffc-gives-away", "non-adaptive flows get at once all that steady adaptive ones leave",
        "aqm::sffc::tests::what_adaptive_flows_leave_is_lent_slowly_and_taken_back_when_they_lose";
    SffcFifo, "sffc-fifo", "what the discarder lets pass shares a FIFO, whatever discipline is named",
        "system::sffc_fronted::tests::what_is_let_pass_is_divided_by_the_discipline";
    SffcBelieves, "sffc-believes", "flows are what they say, whatever they do about losses",
        "system::sffc_fronted::tests::who_says_tcp_and_ignores_losses_is_found_out";
    SffcUncrowded, "sffc-uncrowded", "a discipline is trusted to divide among more flows than it can hold packets",
        "system::sffc_fronted::tests::more_flows_than_packets_are_held_to_what_is_fair_in_front_of_the_queue";
    SffcFixedLimit, "sffc-fixed-limit", "a buffer without a size of its own holds 64 kB on a link of any rate",
        "system::sffc_fronted::tests::a_buffer_without_a_size_of_its_own_is_50_ms_of_its_link";
    SffcLossless, "sffc-lossless", "reports say that all that arrived departed",
        "aqm::sffc::tests::only_what_was_lost_to_an_overflow_is_reported";
}

impl Mutant {
    /// The scheme that it is a fault of: the name of a folder of papers.
    #[must_use]
    pub fn system(self) -> &'static str {
        self.name().split('-').next().unwrap_or_default()
    }

    /// `right`, or `wrong` while the fault is on.
    #[must_use]
    #[inline(always)]
    pub fn pick<T>(self, right: T, wrong: T) -> T {
        if self.is_on() { wrong } else { right }
    }

    /// Whether the fault is on.
    #[must_use]
    pub fn is_on(self) -> bool {
        #[cfg(test)]
        tests::from_environment();
        active::get() == Some(self)
    }

    /// Switches this fault on in the whole process, and any other off, until the guard is dropped.
    pub fn activate(self) -> Active {
        active::set(Some(self));
        Active(())
    }
}

/// While it lives, a fault is on.
#[derive(Debug)]
#[must_use]
pub struct Active(());

impl Drop for Active {
    fn drop(&mut self) {
        active::set(None);
    }
}

mod active {
    use core::sync::atomic::{AtomicU8, Ordering};

    use super::Mutant;

    /// The discriminant, plus one, of the fault that is on; zero: none.
    static ACTIVE: AtomicU8 = AtomicU8::new(0);

    pub fn get() -> Option<Mutant> {
        let place = usize::from(ACTIVE.load(Ordering::Relaxed)).checked_sub(1)?;
        Mutant::ALL.get(place).copied()
    }

    pub fn set(mutant: Option<Mutant>) {
        ACTIVE.store(mutant.map_or(0, |mutant| mutant as u8 + 1), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Activates the fault that the environment names, once.
    pub(super) fn from_environment() {
        static ONCE: std::sync::Once = std::sync::Once::new();
        ONCE.call_once(|| {
            let Ok(name) = std::env::var("APPORTION_MUTANT") else { return };
            let mutant = Mutant::ALL.iter().find(|mutant| mutant.name() == name);
            active::set(Some(*mutant.expect("APPORTION_MUTANT names a mutant")));
        });
    }

    #[test]
    fn each_system_has_at_least_twelve_and_names_are_unique() {
        for system in ["pps", "pfd", "csfq", "ramp", "sffc"] {
            let of_system = Mutant::ALL.iter().filter(|mutant| mutant.system() == system).count();
            assert!(of_system >= 12, "{system}: {of_system}");
        }
        let names: BTreeSet<_> = Mutant::ALL.iter().map(|mutant| mutant.name()).collect();
        assert_eq!(names.len(), Mutant::ALL.len());
    }

    #[test]
    fn none_is_on_unless_it_is_activated() {
        assert_eq!(Mutant::PfdPZero.pick("right", "wrong"), "right");
    }
}
