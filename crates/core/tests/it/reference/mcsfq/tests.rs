//! Worked numbers for each equation and each reading.

use super::*;

const MS: u64 = 1_000_000;
/// 8 Mb/s: a packet of 1000 B takes a millisecond.
const C: f64 = 8e6;
const MODIFIED: Readings = Readings { scheme: Scheme::Mcsfq, ..Readings::LITERAL };

fn queue(readings: Readings) -> Mcsfq {
    Mcsfq::new(Params {
        readings,
        k: 0.1,
        k_alpha: 0.1,
        k_c: 100 * MS,
        c: C,
        threshold: 0.5,
        in_bytes: false,
        weights: BTreeMap::new(),
        guarantees: BTreeMap::new(),
        write: |label| label,
    })
}

fn average(rate: f64) -> Average {
    let mut average = Average::default();
    average.rate = rate;
    average
}

/// A link with averages of `ar` and `fr` since time 0, and this share.
fn standing(readings: Readings, congested: bool, fs: f64, ar: f64, fr: f64) -> Mcsfq {
    Mcsfq { congested, fs: Some(fs), ar: average(ar), fr: average(fr), ..queue(readings) }
}

fn core(now: u64, label: f64, queued: u64) -> Arrival {
    Arrival { now, flow: 0, bits: 8_000.0, label: Some(label), queued, limit: 64 }
}

/// Sends a packet of 1000 B with `label` to an empty queue, with this draw.
fn send(queue: &mut Mcsfq, now: u64, label: f64, u: f64) -> (Outcome, f64) {
    queue.arrive(core(now, label, 0), |_| u)
}

fn edge(queue: &mut Mcsfq, now: u64, u: f64) -> f64 {
    queue.arrive(Arrival { label: None, ..core(now, 0.0, 0) }, |_| u).1
}

#[test]
fn equation_1_is_the_label_at_the_edge() {
    let mut plain = queue(Readings { initial: None, ..Readings::LITERAL });
    // K = 0.1 s, first gap 0.1 s from time 0: (1 - 1/e)·8000/0.1 = 50569.64. A second packet at that time
    // gets the same label and counts with the next gap: (1 - 1/e)·16000/0.1 + 50569.64/e = 119742.82.
    let labels = [100, 100, 200].map(|ms| edge(&mut plain, ms * MS, 0.5));
    for (label, expected) in labels.into_iter().zip([50_569.644_7, 50_569.644_7, 119_742.821_9]) {
        assert!((label - expected).abs() < 1e-3, "{label} against {expected}");
    }
    // A quarter for a weight of 4. 1 before any time has passed: 0 means a guarantee.
    let mut weighted = queue(Readings { initial: None, ..Readings::LITERAL });
    weighted.params.weights.insert(0, 4.0);
    assert_eq!([0, 0].map(|now| edge(&mut weighted, now, 0.5)), [1.0, 1.0]);
    weighted.flows.clear();
    assert_eq!(edge(&mut weighted, 100 * MS, 0.5), labels[0] / 4.0);
}

#[test]
fn equation_2_drops_the_excess_and_relabels_the_rest() {
    // P_drop = 1 - 1/4 > u.
    for (u, expected) in [(0.749, (Outcome::Early, 0.0)), (0.75, (Outcome::Enqueue, 1e6))] {
        assert_eq!(send(&mut standing(MODIFIED, false, 1e6, 0.0, 0.0), 1, 4e6, u), expected);
    }
    // A packet within the share is not dropped.
    let mut within = standing(MODIFIED, false, 1e6, 0.0, 0.0);
    assert_eq!(send(&mut within, 1, 1e6, 0.0), (Outcome::Enqueue, 1e6));
    // A share of 0 allows only packets that a guarantee covers; an unknown share allows all.
    let mut none = standing(MODIFIED, false, 0.0, 0.0, 0.0);
    assert_eq!(send(&mut none, 1, 1.0, 0.999_999), (Outcome::Early, 0.0));
    assert_eq!(send(&mut none, 1, 0.0, 0.0), (Outcome::Enqueue, 0.0));
    let mut unknown = queue(Readings { initial: None, ..MODIFIED });
    assert_eq!(send(&mut unknown, 1, 1e12, 0.0), (Outcome::Enqueue, 1e12));
    // A share below 1 relabels to 1, which is not a guarantee.
    let mut tiny = standing(MODIFIED, false, 0.5, 0.0, 0.0);
    assert_eq!(send(&mut tiny, 1, 1.0, 0.5), (Outcome::Enqueue, 1.0));
}

#[test]
fn a_share_of_1_bit_a_second_drops_the_first_window() {
    for readings in [Readings::LITERAL, MODIFIED] {
        let mut cautious = queue(readings);
        let mut open = queue(Readings { initial: None, ..readings });
        // P_drop = 1 - 1e-6. The packet at 100 ms ends the window, after its own fate is decided.
        for ms in (10..=100).step_by(10) {
            assert_eq!(send(&mut cautious, ms * MS, 1e6, 0.5).0, Outcome::Early);
            assert_eq!(send(&mut open, ms * MS, 1e6, 0.5).0, Outcome::Enqueue);
        }
        assert_eq!(cautious.fs, Some(1e6));
        assert_eq!(send(&mut cautious, 110 * MS, 1e6, 0.0).0, Outcome::Enqueue);
    }
}

#[test]
fn a_lone_packet_per_window_ends_all_traffic_unless_its_own_label_counts() {
    for (own_label, last, passed) in [(false, 0.0, 0), (true, 1e6, 9)] {
        let mut lone = queue(Readings { own_label, ..Readings::LITERAL });
        // Each packet ends a window without other packets; the first is dropped for FS = 1 either way.
        let fates: Vec<_> = (1..=10).map(|i| send(&mut lone, 200 * i * MS, 1e6, 0.5).0).collect();
        assert_eq!(lone.fs, Some(last));
        assert_eq!(fates.iter().filter(|fate| **fate == Outcome::Enqueue).count(), passed);
    }
    // Figure 3 keeps the initial share, and takes the label if the own label counts.
    for (own_label, last) in [(false, 1.0), (true, 1e6)] {
        let mut lone = queue(Readings { own_label, ..MODIFIED });
        send(&mut lone, 200 * MS, 1e6, 0.5);
        assert_eq!(lone.fs, Some(last));
    }
}

#[test]
fn only_mcsfq_s_share_never_falls_without_congestion() {
    // Labels of 1 to 1.9 Mb/s and down again, a step each 90 ms, with a packet each 9 ms: AR is about 0.9
    // Mb/s. A share that follows falls about 9 times in each of two rounds.
    let falls = |readings| {
        let readings = Readings { original_label: true, ..readings };
        let mut link = standing(readings, true, 1e6, 0.0, 0.0);
        let shares: Vec<_> = (1..400_u64)
            .map(|i| {
                let label = 19 - (i / 10 % 20).abs_diff(10).min(9);
                send(&mut link, 9 * i * MS, 1e5 * label as f64, 0.9);
                assert!(!link.congested);
                link.fs
            })
            .collect();
        (shares.windows(2).filter(|pair| pair[1] < pair[0]).count(), link.fs)
    };
    assert_eq!(falls(MODIFIED), (0, Some(1.9e6)));
    assert!(falls(Readings::LITERAL).0 > 12);
}

#[test]
fn figure_3_is_what_section_3_2_says() {
    for own_label in [false, true] {
        let mut link = queue(Readings { own_label, original_label: true, initial: Some(2e5), ..MODIFIED });
        link.params.k_c = 20 * MS;
        let (mut fs, mut temp_fs, mut congested, mut start_time) = (2e5, 2e5, false, 0);
        let (mut now, mut shares) = (0, Vec::new());
        // Spells of 600 packets at 2.3 and at 26 Mb/s, with labels and gaps from a multiplicative sequence.
        for i in 1..20_000_u64 {
            let chance = i.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(i << 40) >> 40;
            let label = (chance % 1_000_003) as f64;
            now += if i / 600 % 2 == 0 { 3 * MS + chance % MS } else { MS / 4 + chance % (MS / 8) };
            link.arrive(core(now, label, 0), |_| 0.3);
            // AR, FR and the lines that figures 2 and 3 share are the transcript's.
            if link.ar.rate >= C {
                if !congested {
                    (congested, start_time) = (true, now);
                } else if now > start_time + 20 * MS {
                    (fs, start_time) = (fs * C / link.fr.rate, now);
                }
            } else if congested {
                (congested, start_time, temp_fs) = (false, now, fs);
            } else if now < start_time + 20 * MS {
                temp_fs = f64::max(temp_fs, label);
            } else {
                temp_fs = if own_label { f64::max(temp_fs, label) } else { temp_fs };
                (fs, start_time) = (temp_fs, now);
            }
            assert_eq!((link.fs, link.congested), (Some(fs), congested), "packet {i}");
            shares.push(fs);
        }
        let rises = shares.windows(2).filter(|pair| pair[1] > pair[0]).count();
        let falls = shares.windows(2).filter(|pair| pair[1] < pair[0]).count();
        assert!(rises > 20 && falls > 20, "{rises} {falls}");
    }
}

#[test]
fn a_packet_is_relabelled_before_the_estimate_or_after() {
    // FS becomes 1e6·8e6/16e6 = 0.5e6, nearly, with the packet that leaves.
    for (relabel_after, label, expected) in
        [(false, 2e6, 1e6), (false, 0.7e6, 0.7e6), (true, 2e6, 0.5e6), (true, 0.7e6, 0.5e6), (true, 0.0, 0.0)]
    {
        let mut link = standing(Readings { relabel_after, ..Readings::LITERAL }, true, 1e6, 16e6, 16e6);
        link.params.k_c = 0;
        assert!((send(&mut link, MS / 2, label, 0.9).1 - expected).abs() < 1e3, "{link:?}");
    }
}

#[test]
fn mcsfq_starts_from_the_share_at_which_congestion_ended() {
    for (readings, expected) in [(MODIFIED, 3e6), (Readings::LITERAL, 2e6)] {
        let mut link = standing(readings, true, 3e6, 1e6, 1e6);
        // The packet at which congestion ends is not noted.
        send(&mut link, MS, 2.9e6, 0.5);
        send(&mut link, 50 * MS, 2e6, 0.5);
        send(&mut link, 101 * MS, 1e6, 0.5);
        assert_eq!(link.fs, Some(expected));
    }
}

#[test]
fn traffic_within_its_guarantees_leaves_no_share_to_csfq() {
    for (readings, expected) in [(Readings::LITERAL, 0.0), (MODIFIED, 2e6)] {
        for own_label in [false, true] {
            let mut link = standing(Readings { own_label, ..readings }, true, 2e6, 0.0, 0.0);
            for ms in [10, 60, 110] {
                assert_eq!(send(&mut link, ms * MS, 0.0, 0.0).0, Outcome::Enqueue);
            }
            assert_eq!(link.fs, Some(expected));
            // Excess that arrives then is lost.
            assert_eq!(send(&mut link, 120 * MS, 2e6, 0.9).0 == Outcome::Early, expected == 0.0);
        }
    }
}

#[test]
fn equation_3_scales_the_share_by_what_was_forwarded() {
    // K_alpha = 0.1 s, 8000 bit after 0.5 ms: w = 1 - e^-0.005 = 0.00498752. AR stays at 16e6. Accepted,
    // FR = 12e6 + w·4e6 = 12019950 and FS = 2e6·8e6/12019950 = 1331120. Dropped, FR is 12e6 by figure 2
    // and FS = 1333333; counted as 0 bits, FR = (1 - w)·12e6 = 11940150 and FS = 1340017.
    for (fr_at_arrivals, u, expected) in [
        (false, 0.9, 1_331_120.1),
        (true, 0.9, 1_331_120.1),
        (false, 0.1, 1_333_333.3),
        (true, 0.1, 1_340_016.7),
    ] {
        let mut link = standing(Readings { fr_at_arrivals, ..Readings::LITERAL }, true, 2e6, 16e6, 12e6);
        link.params.k_c = MS / 2 - 1;
        // P_drop = 1 - 2/4. The departing label is the previous share.
        let expected_label = if u < 0.5 { 0.0 } else { 2e6 };
        assert_eq!(send(&mut link, MS / 2, 4e6, u).1, expected_label);
        assert!((link.fs.unwrap() - expected).abs() < 1.0, "{link:?}");
    }
    // `current_time > start_time + Kc`: not at the very end of the window.
    let mut link = standing(Readings::LITERAL, true, 2e6, 16e6, 12e6);
    link.params.k_c = MS / 2;
    send(&mut link, MS / 2, 4e6, 0.9);
    assert_eq!(link.fs, Some(2e6));
}

#[test]
fn a_bounded_share_is_at_most_the_link_and_a_small_fr_is_guarded() {
    // 7e6·8e6/1e3 = 5.6e10, at most C, or 2 C for a weight of a half. 1e3·8e6/1e3 = 8e6, but 1e6 with FR
    // taken as C/1000 = 8e3. FR is frozen, because the packet is dropped.
    for (bounded, weight, fs, expected) in [
        (false, 1.0, 7e6, 5.6e10),
        (true, 1.0, 7e6, C),
        (true, 0.5, 7e6, 2.0 * C),
        (false, 1.0, 1e3, 8e6),
        (true, 1.0, 1e3, 1e6),
    ] {
        let mut link = standing(Readings { bounded, ..Readings::LITERAL }, true, fs, 16e6, 1e3);
        link.params.weights.insert(0, weight);
        link.params.k_c = 0;
        assert_eq!(send(&mut link, MS, 9e9, 0.0).0, Outcome::Early);
        assert_eq!(link.fs, Some(expected));
    }
}

#[test]
fn the_label_noted_is_the_one_that_came_or_the_one_that_leaves() {
    // An accepted packet of 4e6 leaves with FS = 1e6; a dropped one keeps its label.
    for (original_label, u, expected) in [(false, 0.9, 1e6), (true, 0.9, 4e6), (false, 0.1, 4e6)] {
        let mut link = standing(Readings { original_label, ..Readings::LITERAL }, false, 1e6, 0.0, 0.0);
        send(&mut link, 50 * MS, 4e6, u);
        send(&mut link, 100 * MS, 1.0, 0.5);
        assert_eq!(link.fs, Some(expected));
    }
}

#[test]
fn a_short_queue_holds_off_congestion_by_footnote_3_but_does_not_end_it() {
    // 32 of 64 packets are at the threshold of a half; AR is twice BW.
    for (below_threshold, queued, congested) in [
        (BelowThreshold::Nothing, 0, true),
        (BelowThreshold::Uncongested, 32, false),
        (BelowThreshold::Uncongested, 33, true),
        (BelowThreshold::Unknown, 32, true),
    ] {
        let mut link = standing(Readings { below_threshold, ..Readings::LITERAL }, false, 1e6, 16e6, 8e6);
        link.arrive(core(1, 1e6, queued), |_| 0.5);
        assert_eq!(link.congested, congested, "{below_threshold:?} {queued}");
        link.congested = true;
        link.arrive(core(2, 1e6, 0), |_| 0.5);
        assert!(link.congested);
    }
}

#[test]
fn a_short_queue_makes_the_share_unknown_by_stoica_s_code() {
    for scheme in [Scheme::Csfq, Scheme::Mcsfq] {
        let readings = Readings { scheme, below_threshold: BelowThreshold::Unknown, ..MODIFIED };
        let mut link = standing(readings, false, 9e6, 0.0, 0.0);
        link.temp_fs = 7e6;
        link.arrive(core(100 * MS, 1e6, 32), |_| 0.5);
        assert_eq!(link.fs, None);
        // Known again above the threshold: the largest label since then.
        link.arrive(core(101 * MS, 5e6, 32), |_| 0.0);
        assert_eq!(link.fs, None);
        link.arrive(core(102 * MS, 2e6, 33), |_| 0.0);
        assert_eq!(link.fs, Some(5e6));
    }
    // A window without labels leaves 0, which there means unknown, also above the threshold.
    for (below_threshold, expected) in [(BelowThreshold::Unknown, None), (BelowThreshold::Nothing, Some(0.0))]
    {
        let mut link = standing(Readings { below_threshold, ..Readings::LITERAL }, false, 9e6, 0.0, 0.0);
        link.arrive(core(100 * MS, 1e6, 33), |_| 0.5);
        assert_eq!(link.fs, expected);
    }
    // Half the link, without labels.
    let mut link = queue(Readings { initial: None, ..Readings::LITERAL });
    link.arrive(core(MS, 0.0, 33), |_| 0.0);
    assert_eq!(link.fs, Some(C / 2.0));
}

#[test]
fn an_overflow_takes_one_percent_thirty_times_in_a_period() {
    for (overflow_decrease, factor) in [(0.0, 1.0_f64), (0.01, 0.99)] {
        let mut link = standing(Readings { overflow_decrease, ..Readings::LITERAL }, true, 4e6, 16e6, 8e6);
        for i in 1..=40 {
            assert_eq!(link.arrive(core(0, 1.0, 64), |_| 0.5).0, Outcome::Overflow);
            assert!((link.fs.unwrap() / (4e6 * factor.powi(i.min(30))) - 1.0).abs() < 1e-12);
        }
        link.congested = false;
        link.arrive(core(0, 1.0, 64), |_| 0.5);
        assert_eq!(link.decreases, 29, "a new period has thirty of its own");
    }
    // In bytes: 1000 fit into 64000 above 63000, not above 63001.
    for (queued, expected) in [(63_000, Outcome::Enqueue), (63_001, Outcome::Overflow)] {
        let mut link = queue(Readings { initial: None, ..MODIFIED });
        link.params.in_bytes = true;
        assert_eq!(link.arrive(Arrival { limit: 64_000, ..core(1, 1.0, queued) }, |_| 0.5).0, expected);
    }
}

#[test]
fn packets_are_in_the_guarantee_with_its_part_of_the_rate() {
    // AR_i = (1 - 1/e)·8000/0.1 = 50569.64; with a quarter of it guaranteed, P_out = 0.75, and a draw of 0.75
    // is within the guarantee.
    let mut draws = Vec::new();
    let mut mark = |now, mark: f64, link: &mut Mcsfq| {
        link.params.guarantees.insert(0, (1.0 - (-1.0_f64).exp()) * 20_000.0);
        let p = Arrival { label: None, ..core(now, 0.0, 0) };
        let uniform = |asked| if asked == Draw::Marking { mark } else { 0.0 };
        link.arrive(p, |asked| {
            draws.push(asked);
            uniform(asked)
        })
    };
    let fresh = || queue(Readings { initial: None, ..Readings::LITERAL });
    assert_eq!(mark(100 * MS, 0.750_000_1, &mut fresh()), (Outcome::Enqueue, 0.0));
    let mut link = fresh();
    let (_, label) = mark(100 * MS, 0.749_999_9, &mut link);
    assert!((label - 50_569.644_7).abs() < 1e-3, "all of the flow so far was excess: {label}");
    // Within the guarantee at 200 ms, so ER_i averages over the 200 ms to 300: (1 - e^-2)·8000/0.2 +
    // 50569.64·e^-2 = 34586.59 + 6843.86.
    assert_eq!(mark(200 * MS, 0.999, &mut link).1, 0.0);
    let (_, label) = mark(300 * MS, 0.0, &mut link);
    assert!((label - 41_430.443_0).abs() < 1e-2, "{label}");
    assert_eq!(draws, [Draw::Marking, Draw::Drop].repeat(4));
    // A flow without a guarantee, and one in the core, draw once.
    for label in [None, Some(1.0), Some(0.0)] {
        let mut asked = Vec::new();
        fresh().arrive(Arrival { label, ..core(MS, 0.0, 0) }, |draw| {
            asked.push(draw);
            0.5
        });
        assert_eq!(asked, [Draw::Drop]);
    }
}

#[test]
fn a_bucket_marks_what_conforms() {
    let marking = Marking::Deterministic(2_500.0);
    let mut link = queue(Readings { initial: None, marking, ..Readings::LITERAL });
    link.params.guarantees.insert(0, 8e6);
    // 2500 B at first: two packets of 1000 B are covered, 500 B are left. 1000 B more take a millisecond: at
    // 0.5 ms 1000 B are there. At 10 ms the bucket is full.
    let labels = [0, 0, 0, MS / 2 - 1, MS / 2, 10 * MS, 10 * MS, 10 * MS].map(|now| {
        let p = Arrival { label: None, ..core(now, 0.0, 0) };
        link.arrive(p, |asked| {
            assert_eq!(asked, Draw::Drop);
            0.5
        })
        .1 == 0.0
    });
    assert_eq!(labels, [true, true, false, false, true, true, true, false]);
}

#[test]
fn the_aggregate_guarantee_leaves_the_rest_of_the_link() {
    // K_alpha = 0.1 s, 8000 bit after 0.5 ms, w = 0.00498752. G = 6e6 + w·(16e6 - 6e6) = 6049875 with a
    // guaranteed packet, which is 0 bits in AR and FR: AR = (1 - w)·3e6 = 2985037, FR = (1 - w)·2e6 =
    // 1990025. X = 8e6 - G = 1950125 <= AR, so FS = 1e6·X/FR = 979950. Over all packets, AR = 3e6 + w·13e6 =
    // 3064838 < C, and congestion ends.
    for (aggregate_guarantee, congested, expected) in [(true, true, 979_949.9), (false, false, 1e6)] {
        let readings = Readings { aggregate_guarantee, ..Readings::LITERAL };
        let mut link = Mcsfq { g: average(6e6), ..standing(readings, true, 1e6, 3e6, 2e6) };
        link.params.k_c = 0;
        send(&mut link, MS / 2, 0.0, 0.5);
        assert_eq!(link.congested, congested);
        assert!((link.fs.unwrap() - expected).abs() < 1.0, "{link:?}");
    }
    // An excess packet counts 0 bits in G. If guarantees fill the link, X is 1 % of it: 1e6·8e4/2e6 = 4e4,
    // and a bounded share is at most X: 9e6·8e4/2e6 = 3.6e5 becomes 8e4.
    for (fs, expected) in [(1e6, 4e4), (9e6, 8e4)] {
        let readings = Readings { aggregate_guarantee: true, bounded: true, ..Readings::LITERAL };
        let mut link = Mcsfq { g: average(9e6), ..standing(readings, true, fs, 3e6, 2e6) };
        link.params.k_c = 0;
        assert_eq!(send(&mut link, MS / 2, 1e12, 0.0).0, Outcome::Early);
        assert!((link.g.rate - 9e6 * (-0.005_f64).exp()).abs() < 1e-3);
        assert!((link.fs.unwrap() / expected - 1.0).abs() < 1e-12, "{link:?}");
    }
}
