//! The tables of what is compared: of perturbed copies, and of a league.

use serde::{Deserialize, Serialize};

use super::column::{Cell, Column, Field, Row};

row! {
    /// Shift of a number of a point if every delay of the scenario moves by 1 µs, up or down: each replication against its perturbed copy. Two
    /// replications in succession have the same moves. Rows of flows in the order of the scenario, then of the point; none without perturbed copies.
    PhaseSensitivityRow of "phase_sensitivity" {
        /// The label of the sweep point; empty without a sweep.
        point: String, "";
        /// The flow; empty for a number of all flows.
        flow: String, "";
        /// `throughput_mbps` of the flow, or of all flows, or `jain`.
        metric: String, "";
        /// Replications that finished, with their perturbed copies.
        seeds: u64, "";
        /// The mean over these replications.
        mean: f64, "";
        /// Half the width of its 95 % interval; missing with a single seed.
        half_width: Option<f64>, "";
        /// The mean over the perturbed copies, less the mean over the replications.
        shift: f64, "";
        /// The mean over the perturbed copies with the moves that shift it most, less the mean over their replications.
        largest_shift: f64, "";
        /// p of the F test of the analysis of variance, with the replications as one group and the perturbed copies of each choice of moves
        /// as another. Missing with a single seed; 0 if moves change the number and no seed does.
        p: Option<f64>, "";
        /// Whether p is significant at 5 % over all rows of the run (Holm's correction).
        significant: bool, "";
    }
}
row! {
    /// One metric of one cell of a league: of a discipline in a situation. A cell that is empty has a row without a metric.
    LeagueRow of "cells" {
        /// The situation.
        situation: String, "";
        /// The discipline.
        discipline: String, "";
        /// The metric, such as `worst_share`, `jain` or `delay_p95_ms/call`: the quantity, then the group or link unless it is over all.
        metric: String, "";
        /// The unit of the metric.
        unit: String, "";
        /// Replications in which the metric was measured.
        seeds: u64, "";
        /// The mean over these.
        mean: Option<f64>, "";
        /// Half the width of its 95 % interval; missing with a single seed.
        half_width: Option<f64>, "";
        /// Why the discipline cannot run; missing if it did.
        reason: Option<String>, "";
    }
}

row! {
    /// What an incumbent gets next to a contender, on one link: a cell of a grid of [pairs](crate::pairs).
    PairRow of "pairs" {
        /// The rate of the link.
        rate_mbps: f64, "Mb/s";
        /// The discipline of the link.
        discipline: String, "";
        /// The service beside which the incumbent is measured.
        contender: String, "";
        /// The service that is measured.
        incumbent: String, "";
        /// Replications.
        seeds: u64, "";
        /// Throughput of the incumbent alone on the link, median over replications.
        alone_mbps: f64, "Mb/s";
        /// Max-min fair share of the incumbent next to the contender.
        fair_mbps: f64, "Mb/s";
        /// Throughput of the incumbent, median over replications.
        throughput_mbps: f64, "Mb/s";
        /// First quartile of throughput over fair share.
        score_q1: f64, "";
        /// Median of throughput over fair share.
        score: f64, "";
        /// Third quartile of throughput over fair share.
        score_q3: f64, "";
        /// Median time of the pages and files of the incumbent alone, median over replications.
        alone_completion_p50_s: Option<f64>, "s";
        /// Median time of its pages and files next to the contender, median over replications.
        completion_p50_s: Option<f64>, "s";
        /// 95th percentile of the sojourn time at the link, median over replications.
        queue_delay_p95_ms: f64, "ms";
    }
}
