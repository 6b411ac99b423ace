//! CSFQ and MCSFQ with guarantees, for one queue: Pelsser, De Cnodder 2002, figures 1, 2, 3 and 7.
//!
//! The figures line by line. Where they leave room, a field of [`Readings`] chooses the meaning, and
//! [`Readings::LITERAL`] is the literal one. The semicolon after `if (current_time > start_time + Kc)` is an
//! error: with it the fair share would be multiplied at each packet.
//!
//! Figure 3 keeps both the share and the labels of the window in temp_FS, and ends a window with FS =
//! temp_FS. Here temp_FS belongs to the window alone, and FS becomes the larger of the two, as in section
//! 3.2. The result is the same (a test has the figure's lines) unless FS changes within a window, for example
//! by an overflow.
//!
//! Three cases must not be confused: an unknown share (`None`) drops nothing; a share of 0 allows nothing, so
//! every packet with a label above 0 is dropped; a label of 0 is covered by a guarantee and never dropped
//! early. Labels that an edge writes for excess, and labels that are replaced by the share, are therefore at
//! least 1.
//!
//! Randomness: see [`Draw`].

use std::collections::BTreeMap;

use super::csfq::Average;

/// The purpose of a random number. For each packet at most one of each kind, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draw {
    /// The `unifrand(0,1)` of the marking in figure 7: once for each packet that arrives without a label from
    /// a flow with a guarantee above 0, with [`Marking::Probabilistic`]. Drawn also if P_out is 0.
    Marking,
    /// The `unifrand(0,1)` with which P_drop is compared: once for every packet, even with label 0 or an
    /// unknown share, whose P_drop is 0.
    Drop,
}

/// The estimate of the share while the link is uncongested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Figure 2: the largest label of the last window.
    Csfq,
    /// Figure 3: the same label, or the previous share if that is larger.
    Mcsfq,
}

/// The meaning of a queue at or below the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BelowThreshold {
    /// No meaning, as in the figures.
    Nothing,
    /// Footnote 3: an uncongested link stays so until the queue passes the threshold. A congested one stays
    /// so as long as AR >= BW, whatever the queue.
    Uncongested,
    /// Stoica's code: the share is unknown again after a window without congestion. So is a share of 0.
    Unknown,
}

/// The choice of packets that a guarantee covers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Marking {
    /// Random, as in figure 7.
    Probabilistic,
    /// Section 4 names a token bucket for each flow: with the guaranteed rate, full at time 0, and of this
    /// depth in bytes. Excess takes no tokens.
    Deterministic(f64),
}

/// The readings of the figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Readings {
    /// Figure 2 or figure 3.
    pub scheme: Scheme,
    /// Whether FR is averaged at each arrival, with 0 bits for a dropped packet; else over accepted packets
    /// alone, so that it is frozen while all are dropped.
    pub fr_at_arrivals: bool,
    /// Whether temp_FS notes the arriving label; else p.label, which figures 1 and 7 may have replaced by FS
    /// before.
    pub original_label: bool,
    /// Whether the label of the packet at which a window without congestion ends counts in that window.
    pub own_label: bool,
    /// Whether a packet above the share leaves with the share as estimated at its arrival, as in
    /// [`super::csfq`]; else, if P_drop was above 0, with the share from which P_drop was computed.
    pub relabel_after: bool,
    /// The meaning of a short queue.
    pub below_threshold: BelowThreshold,
    /// The initial FS; `None` is unknown, and the link then counts as congested at first, as in Stoica's
    /// code.
    pub initial: Option<f64>,
    /// Whether FR is at least a thousandth of the link in eq. (3), and FS at most BW after it, or BW / w for
    /// the smallest weight w below 1. Otherwise an FR of 0 divides by 0.
    pub bounded: bool,
    /// The part of FS lost with a packet that the full queue refuses, at most 30 times in a period of
    /// congestion. 0 in the paper, which names it as future work.
    pub overflow_decrease: f64,
    /// Whether BW is the link minus guaranteed packets, at least 1 %, and AR and FR count excess packets.
    pub aggregate_guarantee: bool,
    /// The choice of packets in the guarantee.
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

/// The parameters, in bits, seconds and bits a second unless stated otherwise.
#[derive(Clone, Debug)]
pub struct Params {
    /// The readings of the figures.
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
    /// Whether queue and limit are in bytes, not packets.
    pub in_bytes: bool,
    /// w_i by flow; 1 for others. A label is a rate for a weight of 1.
    pub weights: BTreeMap<usize, f64>,
    /// guar_rate_i by flow; 0 for others.
    pub guarantees: BTreeMap<usize, f64>,
    /// Rounds a number to a label.
    pub write: fn(f64) -> f64,
}

/// A packet that arrives.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// The arrival time in nanoseconds, so that windows end at exact times.
    pub now: u64,
    /// The flow of the packet.
    pub flow: usize,
    /// The size of the packet.
    pub bits: f64,
    /// The label with which it arrived. Without a label, this router is its edge.
    pub label: Option<f64>,
    /// The queue without the packet.
    pub queued: u64,
    /// The limit of the queue.
    pub limit: u64,
}

/// The decision on an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The packet joins.
    Enqueue,
    /// Dropped for its label.
    Early,
    /// Dropped at a full queue.
    Overflow,
}

/// The state of a flow at an edge.
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
    /// The average of guaranteed packets.
    g: Average,
    /// Whether the link counts as congested.
    pub congested: bool,
    start_time: u64,
    decreases: u32,
}

impl Mcsfq {
    /// The state at time 0.
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

    /// Figure 7, of which figure 1 is the case without guarantees. Returns the fate, and the label with which
    /// the packet leaves.
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

    /// The label from an edge: 0 within the guarantee, else the rate of the flow's excess.
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

    /// Figures 2 and 3, for a packet that arrived with `original` and now has `label`.
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
    /// largest label noted, or half the link. The figures start from it.
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
