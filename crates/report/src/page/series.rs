//! Time series and distributions as curves.

use std::collections::BTreeMap;

use apportion_core::units::{Bytes, Span};
use apportion_runtime::outcome::{Allocation, Distribution, FlowOutcome, LinkOutcome};

use crate::figure::{COLOURS, Curve};
use crate::run_results::PointResults;
use crate::shares::Keys;
use crate::statistics::merge;

/// Maximum of bins. Chosen: one per three pixels of a figure; finer bins show the noise of single packets.
const THROUGHPUT_BINS: usize = 140;
/// Maximum of bins of queues. Chosen: one per displayed pixel or two; the band keeps peaks.
const QUEUE_BINS: usize = 280;

/// Throughput over time in the first replication, one curve per key: the mean of its flows in Mb/s, with the
/// band between the lowest and the highest where it has several.
pub(super) fn throughput(point: &PointResults, keys: &Keys) -> Vec<Curve> {
    let step = point.sample.as_secs_f64();
    by_key(point, keys, |_, flow| Some(binned_rate(&flow.series, step)))
}

/// Congestion windows over time in segments, averaged and banded like throughputs.
pub(super) fn windows(point: &PointResults, keys: &Keys) -> Vec<Curve> {
    let step = point.sample.as_secs_f64();
    by_key(point, keys, |_, flow| {
        let windows = flow.tcp.iter().map(|tcp| tcp.window);
        (!flow.tcp.is_empty()).then(|| binned_mean(&windows.collect::<Vec<_>>(), step))
    })
}

/// The rate that a watched link allocates over time in Mb/s, the mean over the flows of a key, with a band from
/// there to their mean throughput.
pub(super) fn allocations(point: &PointResults, link: &LinkOutcome, keys: &Keys) -> Vec<Curve> {
    let step = point.sample.as_secs_f64();
    let of_flows: BTreeMap<usize, &Allocation> = link.allocations.iter().map(|of| (of.flow, of)).collect();
    let of = |flow: usize| of_flows.get(&flow);
    let mut all = by_key(point, keys, |at, _| Some(binned_rate(&of(at)?.series, step)));
    let throughput = by_key(point, keys, |at, flow| of(at).map(|_| binned_rate(&flow.series, step)));
    for (allocation, throughput) in all.iter_mut().zip(throughput) {
        let both = allocation.line.iter().zip(&throughput.line);
        allocation.band = both.map(|(&(x, a), &(_, t))| (x, a.min(t), a.max(t))).collect();
    }
    all
}

/// The upper end of the axis, at which larger shares are drawn, so that shares below 1 can be read.
pub(super) const MAX_SHARE: f64 = 2.0;

/// Throughput over entitlement in the first replication, of all flows of a key together, at most
/// [`MAX_SHARE`]. A curve ends where the entitlement is zero, and another one of the key begins afterwards.
/// Bins have at least a second.
pub(super) fn shares(point: &PointResults, keys: &Keys) -> Vec<Curve> {
    let first = point.replication(0).and_then(|of| Some((of.outcome, of.dues?)));
    let Some((outcome, dues)) = first else { return Vec::new() };
    let step = point.sample.as_secs_f64();
    let bins_of = |length: usize| {
        let second = Span::from_secs(1).as_nanos().div_ceil(point.sample.as_nanos().max(1)) as usize;
        length.div_ceil(THROUGHPUT_BINS).max(second).max(1)
    };
    let mut of_keys = vec![Vec::new(); keys.names().len().min(COLOURS)];
    for (flow, due) in outcome.flows.iter().zip(&dues.flows) {
        if let Some(members) = of_keys.get_mut(keys.of_flow(&flow.name, &flow.group)) {
            members.push((flow, due));
        }
    }
    let mut all = Vec::new();
    for (key, members) in of_keys.into_iter().enumerate() {
        let length =
            members.iter().map(|(flow, due)| flow.series.len().min(due.series.len())).min().unwrap_or(0);
        let size = bins_of(length);
        let mut curve = Curve::empty(Some(key));
        for from in (0..length).step_by(size) {
            let bin = from..(from + size).min(length);
            let got: u64 =
                members.iter().flat_map(|(flow, _)| &flow.series[bin.clone()]).map(|b| b.bits()).sum();
            let due: u64 =
                members.iter().flat_map(|(_, due)| &due.series[bin.clone()]).map(|r| r.as_bit()).sum();
            if due == 0 {
                all.push(std::mem::replace(&mut curve, Curve::empty(Some(key))));
                continue;
            }
            let middle = round((bin.start + bin.end) as f64 / 2.0 * step);
            curve.line.push((middle, got as f64 / (due as f64 * step)));
        }
        all.push(curve);
    }
    all.retain(|curve| !curve.line.is_empty());
    all
}

/// Curves of the quantity `of` of the flows by index, in the first replication: one per key, the mean of its flows,
/// with a band from the lowest to the highest if it has several.
fn by_key(
    point: &PointResults,
    keys: &Keys,
    of: impl Fn(usize, &FlowOutcome) -> Option<Vec<(f64, f64)>>,
) -> Vec<Curve> {
    let Some(outcome) = point.outcomes.first() else { return Vec::new() };
    let mut members: Vec<Vec<Vec<(f64, f64)>>> = vec![Vec::new(); keys.names().len().min(COLOURS)];
    for (at, flow) in outcome.flows.iter().enumerate() {
        if let Some(of_key) = members.get_mut(keys.of_flow(&flow.name, &flow.group)) {
            of_key.extend(of(at, flow));
        }
    }
    members
        .iter()
        .enumerate()
        .filter(|(_, flows)| !flows.is_empty())
        .map(|(key, flows)| {
            let bins = flows.iter().map(Vec::len).min().unwrap_or(0);
            let at = |k: usize| flows.iter().map(move |flow| flow[k].1);
            let x = |k: usize| flows[0][k].0;
            let line = (0..bins).map(|k| (x(k), at(k).sum::<f64>() / flows.len() as f64)).collect();
            let band = (0..bins).map(|k| {
                (x(k), at(k).fold(f64::INFINITY, f64::min), at(k).fold(f64::NEG_INFINITY, f64::max))
            });
            let band = if flows.len() > 1 { band.collect() } else { Vec::new() };
            Curve { key: Some(key), line, band }
        })
        .collect()
}

/// (middle, mean) of bins of samples, each taken at the end of its interval.
fn binned_mean(samples: &[f64], step: f64) -> Vec<(f64, f64)> {
    let size = samples.len().div_ceil(THROUGHPUT_BINS).max(1);
    let middle = |k: usize, length: usize| (k * size) as f64 * step + (length + 1) as f64 / 2.0 * step;
    let bins = samples.chunks(size).enumerate();
    bins.map(|(k, bin)| (round(middle(k, bin.len())), bin.iter().sum::<f64>() / bin.len() as f64)).collect()
}

/// (middle, Mb/s) of bins of whole samples.
fn binned_rate(series: &[Bytes], step: f64) -> Vec<(f64, f64)> {
    let size = series.len().div_ceil(THROUGHPUT_BINS).max(1);
    series
        .chunks(size)
        .enumerate()
        .map(|(k, chunk)| {
            let bits: u64 = chunk.iter().map(|b| b.bits()).sum();
            let width = chunk.len() as f64 * step;
            (round(k as f64 * size as f64 * step + width / 2.0), bits as f64 / width / 1e6)
        })
        .collect()
}

/// Packets in the queue of a watched link over time: the mean of each bin within the band of its extremes.
pub(super) fn backlog(link: &LinkOutcome, step: f64) -> Curve {
    let size = link.backlog.len().div_ceil(QUEUE_BINS).max(1);
    let mut curve = Curve::empty(None);
    for (k, chunk) in link.backlog.chunks(size).enumerate() {
        // A sample is taken at the end of its interval.
        let x = round((k * size) as f64 * step + (chunk.len() + 1) as f64 / 2.0 * step);
        let low = chunk.iter().copied().min().unwrap_or(0) as f64;
        let high = chunk.iter().copied().max().unwrap_or(0) as f64;
        curve.line.push((x, chunk.iter().sum::<u64>() as f64 / chunk.len() as f64));
        if size > 1 {
            curve.band.push((x, low, high));
        }
    }
    curve
}

/// Cumulative distributions over delay in ms: one-way delay per key, over all replications and flows.
pub(super) fn one_way_delay(point: &PointResults, keys: &Keys) -> Vec<Curve> {
    let mut parts: Vec<Vec<&Distribution>> = vec![Vec::new(); keys.names().len().min(COLOURS)];
    for flow in point.outcomes.iter().flat_map(|o| &o.flows) {
        if let Some(of_key) = parts.get_mut(keys.of_flow(&flow.name, &flow.group)) {
            of_key.push(&flow.delay);
        }
    }
    let curve = |(key, parts): (usize, &Vec<&Distribution>)| cumulative(&merge(parts), Some(key));
    parts.iter().enumerate().filter_map(curve).collect()
}

/// The cumulative distribution of the queue delay at a link, in ms, over all replications.
pub(super) fn queue_delay(point: &PointResults, link: &str) -> Option<Curve> {
    let links = point.outcomes.iter().flat_map(|o| &o.links).filter(|l| l.name == link);
    let parts: Vec<_> = links.map(|l| &l.queue_delay).collect();
    cumulative(&merge(&parts), None)
}

fn cumulative(d: &Distribution, key: Option<usize>) -> Option<Curve> {
    let line: Vec<_> = d.quantiles.iter().map(|&(share, v)| (v.as_secs_f64() * 1e3, share)).collect();
    (!line.is_empty()).then_some(Curve { key, line, band: Vec::new() })
}

/// Rounds away the floating-point noise of products of decimal fractions.
fn round(x: f64) -> f64 {
    (x * 1e9).round() / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_counts_at_the_end_of_its_interval() {
        // 280 samples of 0.1 s in 140 bins of two: the first at 0.1 and 0.2 s.
        let samples: Vec<f64> = (0..280).map(f64::from).collect();
        let bins = binned_mean(&samples, 0.1);
        assert_eq!((bins.len(), bins[0], bins[139]), (140, (0.15, 0.5), (27.95, 278.5)));
    }

    #[test]
    fn bins_keep_the_mean_of_throughput_and_the_extremes_of_the_queue() {
        // 1,400 samples of 0.1 s in 140 bins of ten: 12,500 bytes in 0.1 s are 1 Mb/s.
        let series = vec![Bytes::new(12_500); 1_400];
        let bins = binned_rate(&series, 0.1);
        assert_eq!(bins.len(), 140);
        assert_eq!(bins[0], (0.5, 1.0));
        // A peak of one sample among 560 survives in the band of its bin of two.
        let mut link = LinkOutcome { backlog: vec![10; 560], ..LinkOutcome::default() };
        link.backlog[101] = 90;
        let curve = backlog(&link, 0.1);
        assert_eq!(curve.line.len(), 280);
        assert_eq!((curve.band[50].1, curve.band[50].2, curve.line[50].1), (10.0, 90.0, 50.0));
    }
}
