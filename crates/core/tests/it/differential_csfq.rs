//! CSFQ and MCSFQ against a slow transcript of Pelsser, De Cnodder 2002: the same arrivals, the same fate and
//! the same label for every packet, whatever the readings.

use std::collections::BTreeMap;

use apportion_core::label::Label;
use apportion_core::random::Stream;
use apportion_core::system::LinkContext;
use apportion_core::units::{Rate, Time, Weight};
use apportion_core::{DropReason, LabelKind, Packet, Queue};
use apportion_testing::properties;
use proptest::prelude::*;

use crate::common::{Log, SimplePacket, packet, read, setup};
use crate::reference::mcsfq::{
    Arrival, BelowThreshold, Draw, Marking, Mcsfq as Slow, Outcome, Params, Readings, Scheme,
};

/// The rate of the link, in bits a second.
const C: u64 = 10_000_000;

/// A guarantee, in bits a second, chosen so that a bucket never reaches exactly the size of a packet, where
/// rounding would decide.
const G: u64 = 1_000_003;

/// A number of packets in sequence, of one flow or of all in turn.
#[derive(Clone, Copy, Debug)]
struct Spell {
    packets: u32,
    gap: u64,
    size: u64,
    flow: Option<u32>,
}

/// The settings of a scenario.
#[derive(Clone, Debug)]
struct Case {
    readings: Readings,
    in_bytes: bool,
    /// K_c in nanoseconds.
    k_c: u64,
    /// Weights in quarters.
    weights: [u8; 4],
    /// Guarantees in units of [`G`].
    guarantees: [u8; 4],
    /// Flows below this number arrive labelled, with a rate that follows from their size; 0 is among the
    /// labels.
    core: u32,
}

fn readings() -> impl Strategy<Value = Readings> {
    let initial = prop_oneof![Just(None), Just(Some(1.0)), Just(Some(2e6))];
    let marking = prop_oneof![Just(Marking::Probabilistic), Just(Marking::Deterministic(4_000.0))];
    let decrease = prop_oneof![Just(0.0), Just(0.01), Just(0.25)];
    (any::<[bool; 6]>(), initial, marking, decrease).prop_map(|(switches, initial, marking, decrease)| {
        let [modified, at_arrivals, original_label, own_label, unknown, aggregate_guarantee] = switches;
        Readings {
            scheme: if modified { Scheme::Mcsfq } else { Scheme::Csfq },
            fr_at_arrivals: at_arrivals,
            original_label,
            own_label,
            relabel_after: RELABEL_AFTER,
            below_threshold: if unknown { BelowThreshold::Unknown } else { BelowThreshold::Uncongested },
            initial,
            bounded: true,
            overflow_decrease: decrease,
            aggregate_guarantee,
            marking,
        }
    })
}

/// The core relabels after the estimate; figures 1 and 7 do so before.
const RELABEL_AFTER: bool = true;

fn cases() -> impl Strategy<Value = Case> {
    let numbers = (5u64..60, prop::array::uniform4(1u8..20), prop::array::uniform4(0u8..4), 0u32..3);
    (readings(), any::<bool>(), numbers).prop_map(|(readings, in_bytes, (ms, weights, guarantees, core))| {
        // All times end in the same digit, so that none is exactly at the end of a window.
        let k_c = 1_000_000 * ms + 7;
        Case { readings, in_bytes, k_c, weights, guarantees, core }
    })
}

/// Load far below the link's rate, far above it, and all at one time.
fn spells() -> impl Strategy<Value = Vec<Spell>> {
    let gap = prop_oneof![Just(0), 50_000u64..300_000, 300_000u64..1_500_000, 2_000_000u64..20_000_000];
    let one = (1u32..120, gap, 40u64..1_500, prop::option::of(0u32..4))
        .prop_map(|(packets, gap, size, flow)| Spell { packets, gap: gap / 10 * 10, size, flow });
    prop::collection::vec(one, 1..25)
}

impl Case {
    /// The settings as in a scenario.
    fn pairs(&self) -> Vec<String> {
        let Readings { scheme, fr_at_arrivals, original_label, own_label, .. } = self.readings;
        let choose = |on: bool, yes: &'static str, no: &'static str| if on { yes } else { no };
        let mut pairs = vec![
            // The papers have one buffer for all.
            "reserve=0".to_owned(),
            format!("decay={}", choose(scheme == Scheme::Csfq, "1", "0")),
            format!("limit={}", choose(self.in_bytes, "20000B", "20p")),
            format!("k_c={}ns", self.k_c),
            format!("accepted_rate={}", choose(fr_at_arrivals, "arrivals", "accepted")),
            format!("noted_label={}", choose(original_label, "original", "relabelled")),
            format!("own_label={own_label}"),
            format!("overflow_decrease={}", self.readings.overflow_decrease),
            format!("aggregate_guarantee={}", self.readings.aggregate_guarantee),
            format!(
                "below_threshold={}",
                choose(self.readings.below_threshold == BelowThreshold::Unknown, "unknown", "uncongested")
            ),
        ];
        pairs.extend(self.readings.initial.map(|rate| format!("initial={rate}bit")));
        match self.readings.marking {
            Marking::Probabilistic => pairs.push("marking=probabilistic".to_owned()),
            Marking::Deterministic(depth) => {
                pairs.extend(["marking=deterministic".to_owned(), format!("bucket={depth}B")]);
            }
        }
        pairs.extend(["preset=paper", "threshold=0.25", "k=20ms", "k_alpha=30ms"].map(str::to_owned));
        pairs
    }

    fn slow(&self) -> Slow {
        let by_flow = |numbers: [u8; 4], unit: f64| -> BTreeMap<usize, f64> {
            numbers.into_iter().map(|number| f64::from(number) * unit).enumerate().collect()
        };
        Slow::new(Params {
            readings: self.readings,
            k: 0.02,
            k_alpha: 0.03,
            k_c: self.k_c,
            c: C as f64,
            threshold: 0.25,
            in_bytes: self.in_bytes,
            weights: by_flow(self.weights, 0.25),
            guarantees: by_flow(self.guarantees, G as f64),
            write: |value| Label::new(value).value(),
        })
    }

    /// Sends the load through both. Returns the number of packets of each fate, and of packets that found the
    /// link congested, the share unknown, and the share 0.
    fn compare(&self, spells: &[Spell]) -> Result<[u32; 6], TestCaseError> {
        let weights = self.weights.map(|weight| Weight::new(f64::from(weight) / 4.0).expect("a weight"));
        let guarantees = self.guarantees.map(|times| Rate::from_bit(u64::from(times) * G));
        let pairs = self.pairs();
        let pairs: Vec<&str> = pairs.iter().map(String::as_str).collect();
        let mut ours = read("mcsfq", &pairs)
            .expect("a valid table")
            .build::<SimplePacket>(&LinkContext { guarantees: &guarantees, ..setup(&weights) });
        let mut slow = self.slow();
        let (mut drops, mut marks) = (Stream::new(1, "link"), Stream::new(1, "link.marking"));
        let (mut log, mut queue) = (Log::default(), Vec::<(u32, f64, u64)>::new());
        let (mut now, mut free_at, mut id, mut counts) = (1, 0, 0, [0; 6]);
        for spell in spells {
            for i in 0..spell.packets {
                now += spell.gap;
                // The link sends what it can until now.
                while !queue.is_empty() && free_at <= now {
                    let (expected, label, size) = queue.remove(0);
                    let sent = ours.dequeue(Time::from_nanos(free_at), &mut log).expect("a packet waits");
                    prop_assert_eq!(sent.id, expected);
                    let written = sent.label(LabelKind::Rate).expect("a label").value();
                    // Averages of the same arrivals differ by rounding, which may pass a step of a label.
                    prop_assert!((written - label).abs() <= label / 4_096.0, "{id}: {written}, not {label}");
                    free_at += size * 800;
                }
                let (flow, size) = (spell.flow.unwrap_or(i % 4), spell.size + u64::from(i % 7));
                let mut arrives = packet(id, flow, size);
                if flow < self.core {
                    arrives.set_label(LabelKind::Rate, Label::new((size % 7) as f64 * 1e6));
                }
                let bytes: u64 = queue.iter().map(|waiting| waiting.2).sum();
                let (queued, limit) = if self.in_bytes { (bytes, 20_000) } else { (queue.len() as u64, 20) };
                let label = arrives.label(LabelKind::Rate).map(Label::value);
                let arrival =
                    Arrival { now, flow: flow as usize, bits: 8.0 * size as f64, label, queued, limit };
                let (outcome, label) = slow.arrive(arrival, |draw| match draw {
                    Draw::Marking => marks.uniform(),
                    Draw::Drop => drops.uniform(),
                });
                ours.enqueue(Time::from_nanos(now), arrives, &mut log);
                let reason = match outcome {
                    Outcome::Enqueue => None,
                    Outcome::Early => Some(DropReason::Early),
                    Outcome::Overflow => Some(DropReason::Overflow),
                };
                let dropped = log.dropped.pop().map(|dropped| (dropped.1, dropped.2));
                prop_assert_eq!(dropped, reason.map(|reason| (id, reason)));
                if reason.is_none() {
                    free_at = if queue.is_empty() { free_at.max(now + size * 800) } else { free_at };
                    queue.push((id, label, size));
                }
                counts[outcome as usize] += 1;
                counts[3] += u32::from(slow.congested);
                counts[4] += u32::from(slow.fs.is_none());
                counts[5] += u32::from(slow.fs == Some(0.0));
                id += 1;
            }
        }
        Ok(counts)
    }
}

proptest! {
    #![proptest_config(properties::cases(1_000))]

    #[test]
    fn csfq_and_mcsfq_are_the_paper_s(case in cases(), spells in spells()) {
        case.compare(&spells)?;
    }
}

#[test]
fn every_reading_matters_to_some_packet() {
    // The differential test requires that every switch changes something, and that every fate and state
    // occurs.
    let case = Case {
        readings: Readings {
            scheme: Scheme::Mcsfq,
            below_threshold: BelowThreshold::Uncongested,
            relabel_after: RELABEL_AFTER,
            fr_at_arrivals: true,
            original_label: true,
            own_label: true,
            initial: Some(2e6),
            bounded: true,
            overflow_decrease: 0.01,
            aggregate_guarantee: true,
            ..Readings::LITERAL
        },
        in_bytes: false,
        k_c: 20_000_007,
        weights: [4; 4],
        guarantees: [1, 1, 0, 0],
        core: 0,
    };
    let spells: Vec<Spell> = (0..60)
        .map(|i| Spell {
            packets: 40 + i,
            gap: [200_000, 3_000_000, 700_000, 100_000][i as usize % 4],
            size: [1_000, 1_400, 500][i as usize % 3],
            flow: (i % 5 == 0).then_some(i % 4),
        })
        .collect();
    let counts = |change: &dyn Fn(&mut Case)| {
        let mut case = case.clone();
        change(&mut case);
        case.compare(&spells).unwrap_or_else(|error| panic!("{error}: {case:?}"))
    };
    let plain = counts(&|_| ());
    assert!(plain[..4].iter().all(|&count| count > 0), "{plain:?}");
    let changes: [&dyn Fn(&mut Case); 11] = [
        &|case| case.readings.scheme = Scheme::Csfq,
        &|case| case.readings.fr_at_arrivals = false,
        &|case| case.readings.original_label = false,
        &|case| case.readings.own_label = false,
        &|case| case.readings.below_threshold = BelowThreshold::Unknown,
        &|case| case.readings.initial = Some(1.0),
        &|case| case.readings.overflow_decrease = 0.0,
        &|case| case.readings.aggregate_guarantee = false,
        &|case| case.readings.marking = Marking::Deterministic(4_000.0),
        &|case| case.guarantees = [0; 4],
        &|case| case.weights = [1, 4, 4, 8],
    ];
    for (i, change) in changes.into_iter().enumerate() {
        assert_ne!(counts(change), plain, "change {i}");
    }
    let unknown = counts(changes[4]);
    assert!(unknown[4] > 0, "{unknown:?}");
    let literal = counts(&|case| {
        (case.readings, case.guarantees) = (Readings { bounded: true, ..case.readings }, [9; 4]);
        (case.readings.scheme, case.readings.aggregate_guarantee) = (Scheme::Csfq, false);
    });
    assert!(literal[5] > 0, "traffic within its guarantees leaves CSFQ a share of 0: {literal:?}");
}
