//! CSFQ and MCSFQ with guarantees, for one queue: Pelsser, De Cnodder 2002, figures 1, 2, 3 and 7.
//!
//! The figures line by line. Where they leave room, a field of [`Readings`] says what is meant, and
//! [`Readings::LITERAL`] is what the figures say. The semicolon after `if (current_time > start_time + Kc)`
//! is a slip: with it the fair share would be multiplied at each packet.
//!
//! Figure 3 keeps in temp_FS both the share and the labels of the window, and ends a window with
//! FS = temp_FS. Here temp_FS is of the window alone, and FS becomes the larger of the two, as section 3.2
//! says it. That is the same (a test has the figure's lines) unless FS changes within a window, as by an
//! overflow.
//!
//! Three things must not be confused: a share that is unknown (`None`) drops nothing; a share of 0 allows
//! nothing, so every packet with a label above 0 is dropped; a label of 0 is covered by a guarantee and never
//! dropped early. Labels that an edge writes for excess, and labels that are replaced by the share, are
//! therefore at least 1.
//!
//! Randomness: see [`Draw`].

use std::collections::BTreeMap;

use super::csfq::Average;

/// What a random number is asked for. For each packet at most one of each kind, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draw {
    /// The `unifrand(0,1)` of the marking in figure 7: once for each packet that comes without a label and is
    /// of a flow with a guarantee above 0, under [`Marking::Probabilistic`]. Drawn also where P_out is 0.
    Marking,
    /// The `unifrand(0,1)` that P_drop is compared with: once for every packet, even one of label 0 or under
    /// an unknown share, whose P_drop is 0.
    Drop,
}

/// How the share is estimated while the link is not congested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Figure 2: the largest label of the last window.
    Csfq,
    /// Figure 3: that, or the share as it was if that is larger.
    Mcsfq,
}

/// What a queue that is at most at the threshold means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BelowThreshold {
    /// Nothing, as in the figures.
    Nothing,
    /// Footnote 3: a link that is not congested stays so until the queue passes the threshold. One that is
    /// congested stays so as long as AR >= BW, whatever the queue.
    Uncongested,
    /// Stoica's code: the share is unknown again after a window without congestion. So is one of 0.
    Unknown,
}

/// How the packets are chosen that a guarantee covers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Marking {
    /// Figure 7.
    Probabilistic,
    /// Section 4 names a token bucket for each flow: of the guaranteed rate, full at time 0, and so many
    /// bytes deep. Excess takes no tokens.
    Deterministic(f64),
}

/// How the figures are read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Readings {
    /// Figure 2 or figure 3.
    pub scheme: Scheme,
    /// FR is averaged at each arrival, a dropped packet counting 0 bits; else over accepted packets alone,
    /// and stands still while all is dropped.
    pub fr_at_arrivals: bool,
    /// temp_FS notes the label that came; else p.label, which figures 1 and 7 may have replaced by FS before.
    pub original_label: bool,
    /// The label of the packet at which a window without congestion ends counts in that window.
    pub own_label: bool,
    /// A packet above the share leaves with the share as estimated at its arrival, as in [`super::csfq`];
    /// else, if P_drop was above 0, with the share that P_drop was computed from.
    pub relabel_after: bool,
    /// What a short queue means.
    pub below_threshold: BelowThreshold,
    /// FS at first; `None` is unknown, and then the link counts as congested at first, as in Stoica's
    /// code.
    pub initial: Option<f64>,
    /// FR is at least a thousandth of the link in eq. (3), and FS at most BW after it, or BW / w for the
    /// smallest weight w below 1. Otherwise an FR of 0 divides by 0.
    pub bounded: bool,
    /// The part of FS lost with a packet that the full queue refuses, at most 30 times in a period of
    /// congestion. 0 in the paper, which names it as future work.
    pub overflow_decrease: f64,
    /// BW is what the guaranteed packets leave of the link, at least 1 %, and AR and FR are of the excess.
    pub aggregate_guarantee: bool,
    /// How packets in the guarantee are chosen.
    pub marking: Marking,
}

impl Readings {
    /// Figures 1, 2 and 7 as printed, with the share of section 3.3.
    pub const LITERAL: Self = Self {
        scheme: Scheme::Csfq,
        fr_at_arrivals: false,
        original_label: false,
        own_label: false,
        relabel_after: false,
        below_threshold: BelowThreshold::Nothing,
        initial: Some(1.0),
        bounded: false,
        overflow_decrease: 0.0,
        aggregate_guarantee: false,
        marking: Marking::Probabilistic,
    };
}

/// The parameters, in bits, seconds and bits a second unless said otherwise.
#[derive(Clone, Debug)]
pub struct Params {
    /// How the figures are read.
    pub readings: Readings,
    /// K of AR_i and ER_i.
    pub k: f64,
    /// K of AR and FR.
    pub k_alpha: f64,
    /// K_c, in nanoseconds.
    pub k_c: u64,
    /// The rate of the link.
    pub c: f64,
    /// The threshold as a part of the limit.
    pub threshold: f64,
    /// Queue and limit are in bytes, not packets.
    pub in_bytes: bool,
    /// w_i, by flow; 1 for others. A label is a rate for a weight of 1.
    pub weights: BTreeMap<usize, f64>,
    /// guar_rate_i, by flow; 0 for others.
    pub guarantees: BTreeMap<usize, f64>,
    /// What a label holds of a number.
    pub write: fn(f64) -> f64,
}

/// A packet that arrives.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// In nanoseconds, so that windows end when they should.
    pub now: u64,
    /// Its flow.
    pub flow: usize,
    /// Its size.
    pub bits: f64,
    /// The label it came with. Without one, this router is its edge.
    pub label: Option<f64>,
    /// The queue without it.
    pub queued: u64,
    /// The most that fits in the queue.
    pub limit: u64,
}

/// The decision on an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It joins.
    Enqueue,
    /// Dropped for its label.
    Early,
    /// Dropped at a full queue.
    Overflow,
}

/// What an edge knows of a flow.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    /// AR_i.
    ar: Average,
    /// ER_i.
    er: Average,
    /// Bits in the bucket as of `filled`; `None` before the first packet.
    tokens: Option<f64>,
    filled: u64,
}

/// The state, with the figures' names.
#[derive(Clone, Debug)]
pub struct Mcsfq {
    /// The parameters.
    pub params: Params,
    flows: BTreeMap<usize, Flow>,
    /// FS.
    pub fs: Option<f64>,
    temp_fs: f64,
    ar: Average,
    fr: Average,
    /// Of guaranteed packets.
    g: Average,
    /// Whether the link counts as congested.
    pub congested: bool,
    start_time: u64,
    decreases: u32,
}

impl Mcsfq {
    /// At time 0.
    #[must_use]
    pub fn new(params: Params) -> Self {
        let initial = params.readings.initial;
        Self {
            params,
            flows: BTreeMap::new(),
            fs: initial,
            temp_fs: 0.0,
            ar: Average::default(),
            fr: Average::default(),
            g: Average::default(),
            congested: initial.is_none(),
            start_time: 0,
            decreases: 30,
        }
    }

    /// Figure 7, of which figure 1 is the case without guarantees. The label with which the packet leaves
    /// comes second.
    pub fn arrive(&mut self, p: Arrival, mut draw: impl FnMut(Draw) -> f64) -> (Outcome, f64) {
        let label = match p.label {
            Some(label) => label,
            None => self.mark(p, &mut draw),
        };
        let p_drop = match self.fs {
            None => 0.0,
            Some(_) if label == 0.0 => 0.0,
            Some(fs) => f64::max(0.0, 1.0 - fs / label),
        };
        if p_drop > draw(Draw::Drop) {
            self.estimate_fs(p, label, label, true);
            return (Outcome::Early, 0.0);
        }
        let relabelled = self.fs.filter(|_| p_drop > 0.0);
        self.estimate_fs(p, label, relabelled.unwrap_or(label), false);
        let relabelled = match self.params.readings.relabel_after {
            false => relabelled,
            true => self.fs.filter(|fs| label > *fs && *fs > 0.0),
        };
        let takes = if self.params.in_bytes { (p.bits / 8.0) as u64 } else { 1 };
        if p.queued + takes > p.limit {
            if self.decreases > 0 {
                self.decreases -= 1;
                self.fs = self.fs.map(|fs| fs * (1.0 - self.params.readings.overflow_decrease));
            }
            return (Outcome::Overflow, 0.0);
        }
        (Outcome::Enqueue, relabelled.map_or(label, |fs| (self.params.write)(fs.max(1.0))))
    }

    /// The label that an edge gives: 0 in the guarantee, else the rate of the flow's excess.
    fn mark(&mut self, p: Arrival, mut draw: impl FnMut(Draw) -> f64) -> f64 {
        let guar_rate = self.params.guarantees.get(&p.flow).copied().unwrap_or(0.0);
        let weight = self.params.weights.get(&p.flow).copied().unwrap_or(1.0);
        let flow = self.flows.entry(p.flow).or_default();
        let ar = flow.ar.estimate_rate(p.now, p.bits, self.params.k);
        // Without a guarantee P_out is 1, which no draw reaches.
        let mut in_guarantee = false;
        if guar_rate > 0.0 {
            match self.params.readings.marking {
                Marking::Probabilistic => {
                    let p_out = f64::max(0.0, 1.0 - guar_rate / ar);
                    in_guarantee = p_out <= draw(Draw::Marking);
                }
                Marking::Deterministic(bytes) => {
                    let depth = 8.0 * bytes;
                    let tokens =
                        flow.tokens.unwrap_or(depth) + guar_rate * (p.now - flow.filled) as f64 / 1e9;
                    let mut tokens = tokens.min(depth);
                    if tokens >= p.bits {
                        tokens -= p.bits;
                        in_guarantee = true;
                    }
                    flow.tokens = Some(tokens);
                    flow.filled = p.now;
                }
            }
        }
        if in_guarantee {
            return 0.0;
        }
        let er = flow.er.estimate_rate(p.now, p.bits, self.params.k);
        (self.params.write)((er / weight).max(1.0))
    }

    /// Figures 2 and 3, for a packet that came with `original` and now has `label`.
    fn estimate_fs(&mut self, p: Arrival, original: f64, label: f64, dropped: bool) {
        let Params { readings, k_alpha, k_c, c, threshold, .. } = self.params;
        let Arrival { now: current_time, mut bits, queued, limit, .. } = p;
        let mut bw = c;
        if readings.aggregate_guarantee {
            let guaranteed = if original == 0.0 { bits } else { 0.0 };
            bw = f64::max(c - self.g.estimate_rate(current_time, guaranteed, k_alpha), 0.01 * c);
            bits -= guaranteed;
        }
        self.ar.estimate_rate(current_time, bits, k_alpha);
        if !dropped {
            self.fr.estimate_rate(current_time, bits, k_alpha);
        } else if readings.fr_at_arrivals {
            self.fr.estimate_rate(current_time, 0.0, k_alpha);
        }
        let label = if readings.original_label { original } else { label };
        let short = queued as f64 <= threshold * limit as f64;

        let Some(fs) = self.fs.or_else(|| self.first_share(label, short)) else { return };
        self.fs = Some(fs);

        let mut over = self.ar.rate >= bw;
        if readings.below_threshold == BelowThreshold::Uncongested && !self.congested && short {
            over = false;
        }
        if over {
            if !self.congested {
                self.congested = true;
                self.start_time = current_time;
                self.decreases = 30;
            } else if current_time > self.start_time + k_c {
                self.fs = Some(if readings.bounded {
                    let smallest = self.params.weights.values().copied().fold(1.0, f64::min);
                    f64::min(fs * bw / self.fr.rate.max(c / 1_000.0), bw / smallest)
                } else {
                    fs * bw / self.fr.rate
                });
                self.start_time = current_time;
            }
        } else if self.congested {
            self.congested = false;
            self.start_time = current_time;
            self.temp_fs = 0.0;
        } else if current_time < self.start_time + k_c {
            self.temp_fs = self.temp_fs.max(label);
        } else {
            if readings.own_label {
                self.temp_fs = self.temp_fs.max(label);
            }
            let kept = if readings.scheme == Scheme::Mcsfq { fs } else { 0.0 };
            self.fs = Some(self.temp_fs.max(kept));
            self.start_time = current_time;
            self.temp_fs = 0.0;
            if readings.below_threshold == BelowThreshold::Unknown && (short || self.fs == Some(0.0)) {
                self.fs = None;
            }
        }
    }

    /// The share that follows an unknown one, as in Stoica's code: none while the queue is short, then the
    /// largest label noted, or half the link. With it the figures begin.
    fn first_share(&mut self, label: f64, short: bool) -> Option<f64> {
        self.temp_fs = self.temp_fs.max(label);
        if short {
            return None;
        }
        let fs = if self.temp_fs > 0.0 { self.temp_fs } else { self.params.c / 2.0 };
        self.temp_fs = 0.0;
        Some(fs)
    }
}

#[cfg(test)]
mod tests;
