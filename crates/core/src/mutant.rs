//! Faults put in on purpose, so that experiments and tests can show that they would notice: each is a line or two
//! of a scheme, done wrong.
//!
//! With the feature `mutants` one of them is active in the whole process, after [`Mutant::activate`]; the unit tests of
//! this crate take it from the environment variable `APPORTION_MUTANT`. Without the feature, as in every release,
//! [`Mutant::is_on`] is `false` at compile time and nothing of a fault is left.
//!
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
    PfdPZero, "pfd-p-zero", "nothing is dropped early: p is 0", "";
    PfdPTenfold, "pfd-p-tenfold", "p is ten times what is configured", "";
    PfdNoThresh, "pfd-no-thresh", "early drops at any fill of the buffer: `thresh` is ignored", "";
    PfdTail, "pfd-tail", "the last packet of the victim is dropped, not the first", "";
    PfdShortest, "pfd-shortest", "the shortest queue is the victim", "";
    PfdUniform, "pfd-uniform", "any flow above its threshold is the victim, not the one furthest above", "";
    PfdTailDrop, "pfd-tail-drop", "a full buffer refuses the arrival; nobody is pushed out", "";
    PfdEqualThresholds, "pfd-equal-thresholds", "round-trip times and weights do not count for thresholds", "";
    PfdInverseRtt, "pfd-inverse-rtt", "thresholds are in inverse proportion to round-trip times", "";
    PfdPOne, "pfd-p-one", "every arrival above `thresh` drops a packet: p is 1", "";
    PfdCharged, "pfd-charged", "a flow is charged for a packet that is pushed out as if it were served", "";
    PfdFifo, "pfd-fifo", "all start tags are equal: flows are served in the order of their numbers", "";
    PfdOldTag, "pfd-old-tag", "a flow that comes back has the start tag of its past, not of now", "";

    CsfqNoRelabel, "csfq-no-relabel", "packets keep the label with which they came", "";
    CsfqShareByArrivals, "csfq-share-by-arrivals", "the share is scaled by what arrives, not by what is accepted", "";
    CsfqTotalLabel, "csfq-total-label", "excess packets carry the flow's whole rate", "";
    CsfqDoubleK, "csfq-double-k", "K is twice what is configured", "";
    CsfqNoGuaranteeEstimate, "csfq-no-guarantee-estimate", "guaranteed traffic is divided as if it were excess", "";
    CsfqHalfGuarantee, "csfq-half-guarantee", "the edge marks half of what is guaranteed", "";
    CsfqNoWeights, "csfq-no-weights", "labels are not divided by weights", "";
    CsfqHalfDrops, "csfq-half-drops", "half of the excess is dropped", "";
    CsfqNoDecay, "csfq-no-decay", "the share never falls without congestion, in CSFQ either", "";
    CsfqDecay, "csfq-decay", "the share is forgotten without congestion, in MCSFQ too", "";
    CsfqTenfoldKc, "csfq-tenfold-kc", "K_c is ten times what is configured", "";
    CsfqNoReserve, "csfq-no-reserve", "no part of the buffer is kept for guaranteed packets", "";
    CsfqUnmarked, "csfq-unmarked", "the edge marks the excess as guaranteed and what is guaranteed as excess", "";
    CsfqOldLabels, "csfq-old-labels", "the largest label of all time counts, not that of a window", "";

    PpsInRateOfDepartures, "pps-in-rate-of-departures", "InTktRate does not count dropped packets", "";
    PpsNoFactor, "pps-no-factor", "tickets do not count for drops", "";
    PpsLinear, "pps-linear", "the exponent n is 1", "";
    PpsInverse, "pps-inverse", "more tickets, more drops", "";
    PpsNoFilter, "pps-no-filter", "rich flows count for ExpectTkt", "";
    PpsOldMinimum, "pps-old-minimum", "MinTkt is the least of all time", "";
    PpsNoPolicing, "pps-no-policing", "tags are not corrected by ActualTktRate", "";
    PpsLowRate, "pps-low-rate", "a source divides its tickets by a tenth of its packets", "";
    PpsNoExchange, "pps-no-exchange", "links leave tickets in the currency in which they came", "";
    PpsEvenExchange, "pps-even-exchange", "a link gives every packet the same tickets", "";
    PpsDeafSource, "pps-deaf-source", "a source takes no notice of the tickets on acknowledgements", "";
    PpsInstantQueue, "pps-instant-queue", "RED looks at the queue, not at its average", "";
    PpsOneTicket, "pps-one-ticket", "every packet carries one ticket", "";

    RampNoFilter, "ramp-no-filter", "L is 1: no low-pass filter", "";
    RampNoD, "ramp-no-d", "D is 0", "";
    RampTenfoldD, "ramp-tenfold-d", "D is ten times what is configured", "";
    RampNoMinimum, "ramp-no-minimum", "the greedy minimum is 0", "";
    RampCredit, "ramp-credit", "a silent flow saves up twenty times the credit", "";
    RampWindup, "ramp-windup", "the sum of errors is not bounded", "";
    RampLongPeriod, "ramp-long-period", "the period is a hundred times what is configured", "";
    RampLowTarget, "ramp-low-target", "the target is 15 % low", "";
    RampLowI, "ramp-low-i", "I is 20 % low", "";
    RampOldController, "ramp-old-controller", "a changed rate of the link leaves the controller as it was", "";
    RampNoFloor, "ramp-no-floor", "allocations may fall to zero", "";
    RampLastDeadline, "ramp-last-deadline", "the latest deadline goes first", "";
    RampNoScale, "ramp-no-scale", "an overload is not scaled down: allocations exceed the link", "";
    RampSilent, "ramp-silent", "nobody is notified of overloads", "";
    RampGreedyFirst, "ramp-greedy-first", "greedy packets go before those of real-rate flows", "";
    RampDoubleI, "ramp-double-i", "I is twice what is configured", "";

    SffcLongActive, "sffc-long-active", "a flow counts as active for twenty times as long", "";
    SffcRecount, "sffc-recount", "a satisfied flow is counted again in each round", "";
    SffcNoWait, "sffc-no-wait", "discard rates fall without waiting for a late report", "";
    SffcNoHistory, "sffc-no-history", "only the last interval's departures count", "";
    SffcDeaf, "sffc-deaf", "reports of other routers are ignored", "";
    SffcUnfair, "sffc-unfair", "flows are not held to their fair bandwidth", "";
    SffcFinalRate, "sffc-final-rate", "discard rates go on from v, not from BDR", "";
    SffcDepartures, "sffc-departures", "the demand of non-adaptive flows is what left", "";
    SffcNoSpare, "sffc-no-spare", "non-adaptive flows get only what steady adaptive ones leave", "";
    SffcAllDivide, "sffc-all-divide", "the fair bandwidth is divided among adaptive flows too", "";
    SffcNeverRises, "sffc-never-rises", "discard rates do not fall without reports", "";
    SffcFastRise, "sffc-fast-rise", "discard rates fall ten times as fast without reports", "";
    SffcGammaOfAll, "sffc-gamma-of-all", "non-adaptive packets count as adaptive arrivals", "";
    SffcLossless, "sffc-lossless", "reports say that all that arrived departed", "";
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
    #[cfg(not(feature = "mutants"))]
    #[must_use]
    #[inline(always)]
    pub const fn is_on(self) -> bool {
        false
    }

    /// Whether the fault is on.
    #[cfg(feature = "mutants")]
    #[must_use]
    pub fn is_on(self) -> bool {
        #[cfg(test)]
        from_environment();
        active::get() == Some(self)
    }

    /// Switches this fault on in the whole process, and any other off, until the guard is dropped.
    #[cfg(feature = "mutants")]
    pub fn activate(self) -> Active {
        active::set(Some(self));
        Active(())
    }
}

/// While it lives, a fault is on.
#[cfg(feature = "mutants")]
#[derive(Debug)]
#[must_use]
pub struct Active(());

#[cfg(feature = "mutants")]
impl Drop for Active {
    fn drop(&mut self) {
        active::set(None);
    }
}

#[cfg(feature = "mutants")]
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

/// Activates the fault that the environment names, once.
#[cfg(all(feature = "mutants", test))]
fn from_environment() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let Ok(name) = std::env::var("APPORTION_MUTANT") else { return };
        let mutant = Mutant::ALL.iter().find(|mutant| mutant.name() == name);
        active::set(Some(*mutant.expect("APPORTION_MUTANT names a mutant")));
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

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
