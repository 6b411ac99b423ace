//! Sentences that sum up the results, computed from the numbers.

use std::collections::{BTreeMap, BTreeSet};

use apportion_core::units::Span;

use crate::metrics::{Metrics, SlowestLink};
use crate::quantities::{COMPLETION_P95, QUEUE_DELAY_P95};
use crate::run_results::{PointResults, RunResults};
use crate::shares::{FlowShare, GroupShare, flow_shares, group_shares};
use crate::statistics::number;

/// A statement about one point, or about the run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Headline {
    pub(crate) point: Option<String>,
    pub(crate) text: String,
}

/// Chosen: deviations up to a tenth are called "within"; larger ones are reported by group.
const CLOSE: f64 = 0.1;

/// A sentence about the run, if its points differ, then one about each point.
pub(crate) fn headlines(run: &RunResults) -> Vec<Headline> {
    let lead = lead(run).map(|text| Headline { point: None, text });
    let name = |point: &PointResults| (run.points.len() > 1).then(|| point.name().to_owned());
    let points = run.points.iter().flat_map(|point| {
        let timekeeping = timekeeping(point).map(|(_, text)| text);
        let text =
            of_point(point) + &worst_second(point).map_or_else(String::new, |worst| format!(" {worst}"));
        let texts = faults(point).into_iter().chain([text]).chain(timekeeping);
        texts.map(|text| Headline { point: name(point), text })
    });
    lead.into_iter().chain(points).collect()
}

/// The second in which a flow got the least of what it was due.
pub(crate) fn worst_second(point: &PointResults) -> Option<String> {
    let transfers = transfers_of(point);
    let of_flows = point.summary().flows.iter().filter(|flow| !transfers.contains(flow.group.as_str()));
    let of_flows = of_flows.filter_map(|flow| Some((flow.name.as_str(), flow.worst?)));
    let (flow, worst) = of_flows.min_by(|a, b| a.1.share.total_cmp(&b.1.share))?;
    let share = percent(worst.share);
    Some(format!(
        "Worst second: {flow} got {share} of its due from {} s on.",
        number(worst.from.as_secs_f64())
    ))
}

/// The disciplines that broke their contract, in one replication at least; one sentence a link.
pub(crate) fn faults(point: &PointResults) -> Vec<String> {
    if point.outcomes.is_empty() {
        let first = point.summary().faults.first();
        return first.map(|(seed, fault)| format!("NOT VALID: seed {seed}: {fault}.")).into_iter().collect();
    }
    let links = point.outcomes.iter().flat_map(|outcome| &outcome.links);
    let faults: BTreeMap<&str, &str> =
        links.filter_map(|link| Some((link.name.as_str(), link.fault.as_deref()?))).collect();
    faults.into_iter().map(|(link, fault)| format!("NOT VALID: link {link}: {fault}.")).collect()
}

/// Whether packets left on time, so that the run is valid, and how late they left; none for a simulation.
pub(crate) fn timekeeping(point: &PointResults) -> Option<(bool, String)> {
    let kept: Vec<_> = point.outcomes.iter().filter_map(|outcome| outcome.timekeeping.as_ref()).collect();
    let worst = |share| kept.iter().filter_map(|kept| kept.lateness.quantile(share)).max();
    let (median, high) = (worst(0.5)?, worst(0.99)?);
    Some(match kept.iter().find_map(|kept| Some((kept.fault()?, kept.hint()))) {
        Some((fault, hint)) => (false, format!("NOT VALID: {fault}. {hint}")),
        None => {
            let (median, high) = (millis(median), millis(high));
            let limit = kept.iter().map(|kept| kept.limit).min().unwrap_or_default();
            let attempts = kept.iter().map(|kept| kept.attempts).max().unwrap_or(0);
            let attempts = if attempts > 1 { format!("; attempt {attempts}") } else { String::new() };
            let text = format!(
                "In real time: packets left late by {median} ms (median) and {high} ms (99th percentile; the limit is {} \
                 ms{attempts}).",
                millis(limit)
            );
            (true, text)
        }
    })
}

fn millis(span: Span) -> String {
    number(span.as_secs_f64() * 1e3)
}

/// The flow with the lowest share of its entitlement at the best and at the worst point, and queue delays.
pub(crate) fn lead(run: &RunResults) -> Option<String> {
    let worst_off = |point: &PointResults| {
        let transfers = transfers_of(point);
        let of_flow = |flow: &FlowShare| flow.ratio().filter(|_| !transfers.contains(flow.group.as_str()));
        // What is more than the entitlement is no better.
        flow_shares(point).iter().filter_map(of_flow).map(|ratio| ratio.min(1.0)).min_by(f64::total_cmp)
    };
    let mut ranked: Vec<(f64, &str)> =
        run.points.iter().filter_map(|p| Some((worst_off(p)?, p.name()))).collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (&(best, best_name), &(worst, worst_name)) = (ranked.first()?, ranked.last()?);
    if ranked.len() < 2 {
        return None;
    }
    let shares = if best - worst <= CLOSE / 2.0 {
        format!("The worst-off flow gets at least {} of its entitlement at every point.", percent(worst))
    } else {
        format!(
            "The worst-off flow gets {} of its entitlement with {best_name}, but {} with {worst_name}.",
            percent(best),
            percent(worst)
        )
    };
    Some(shares + &waiting(run).unwrap_or_default() + &transfers(run).unwrap_or_default())
}

/// Chosen: the smallest difference worth mentioning.
const FELT: f64 = 3.0;

/// The points with the shortest and longest queue delay of the slowest watched link, if they differ much.
fn waiting(run: &RunResults) -> Option<String> {
    let link = SlowestLink::of(run.points.iter().map(|point| &point.summary().metrics))?;
    let metric = QUEUE_DELAY_P95.at(link.name);
    let wait = |p: &'_ PointResults| Some(p.summary().metrics.get(&metric)?.mean);
    let mut ranked: Vec<(f64, &str)> = run.points.iter().filter_map(|p| Some((wait(p)?, p.name()))).collect();
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (&(least, shortest), &(most, longest)) = (ranked.first()?, ranked.last()?);
    (least > 0.0 && most >= FELT * least).then(|| {
        let (least, most) = (number(least), number(most));
        let of_link = if link.is_only { String::new() } else { format!(" at link {}", link.name) };
        format!(
            " The 95th percentile of queue delay{of_link} is {least} ms with {shortest}, but {most} ms with {longest}."
        )
    })
}

/// Chosen: completion times are mentioned from a difference of half.
const SLOWER: f64 = 1.5;

/// The points with the shortest and longest completion times of the first group with finite transfers, if they
/// differ.
fn transfers(run: &RunResults) -> Option<String> {
    let all: Vec<(&Metrics, &str)> = run.points.iter().map(|p| (&p.summary().metrics, p.name())).collect();
    let group = all.iter().find_map(|(metrics, _)| metrics.transfers().next())?;
    let metric = COMPLETION_P95.at(group);
    let mut ranked: Vec<(f64, &str)> =
        all.iter().filter_map(|(metrics, name)| Some((metrics.get(&metric)?.mean, *name))).collect();
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (&(least, shortest), &(most, longest)) = (ranked.first()?, ranked.last()?);
    (least > 0.0 && most > SLOWER * least).then(|| {
        let (least, most) = (number(least), number(most));
        format!(" Of the transfers of {group}, 95 % are done in {least} s with {shortest}, but in {most} s with {longest}.")
    })
}

/// The groups of finite transfers. These are due a share as long as they are there, and cannot use all of it: TCP starts slowly, and
/// they have no more to send. So sentences do not say that they got little; they compare completion times.
fn transfers_of(point: &PointResults) -> BTreeSet<&str> {
    point.summary().metrics.transfers().collect()
}

/// A sentence about one point. A name at its start keeps its case.
pub(crate) fn of_point(point: &PointResults) -> String {
    let flows = flow_shares(point);
    if flows.is_empty() {
        return "No result yet.".to_owned();
    }
    let transfers = transfers_of(point);
    let others: Vec<&FlowShare> =
        flows.iter().filter(|flow| !transfers.contains(flow.group.as_str())).collect();
    let entitled: Vec<(&FlowShare, f64)> = others.iter().filter_map(|f| Some((*f, f.ratio()?))).collect();
    let by_ratio = |a: &&(&FlowShare, f64), b: &&(&FlowShare, f64)| a.1.total_cmp(&b.1);
    let (Some(least), Some(most)) = (entitled.iter().min_by(by_ratio), entitled.iter().max_by(by_ratio))
    else {
        return without_entitlement(&flows);
    };
    if let ([only], [(_, ratio)]) = (&others[..], &entitled[..]) {
        let got = number(only.throughput.mean);
        return format!("{} got {got} Mb/s, {} its entitlement.", only.name, of(*ratio));
    }
    let off = (1.0 - least.1).max(most.1 - 1.0);
    if off <= CLOSE {
        let all = match (entitled.len() == others.len(), others.len() == flows.len()) {
            (false, _) => "Every entitled flow",
            (true, true) => "Every flow",
            (true, false) => "Every flow but finite transfers",
        };
        return match (off * 100.0).ceil() {
            off if off >= 1.0 => format!("{all} is within {off} % of its entitlement."),
            _ => format!("{all} gets its entitlement."),
        };
    }
    let groups = group_shares(&flows);
    let judged = groups.iter().filter(|group| !transfers.contains(group.name.as_str()));
    let ratios: Vec<(&GroupShare, f64)> = judged.filter_map(|g| Some((g, g.ratio()?))).collect();
    let low = ratios.iter().min_by(|a, b| a.1.total_cmp(&b.1));
    let high = ratios.iter().max_by(|a, b| a.1.total_cmp(&b.1));
    match (low, high) {
        (Some(&(low, low_ratio)), Some(&(high, high_ratio))) if high_ratio - low_ratio > CLOSE => {
            between_groups(&flows, (low, low_ratio), (high, high_ratio))
        }
        _ => format!(
            "The flows get from {} ({}) to {} their entitlement ({}).",
            percent(least.1),
            least.0.name,
            of(most.1),
            most.0.name,
        ),
    }
}

fn between_groups(flows: &[FlowShare], low: (&GroupShare, f64), high: (&GroupShare, f64)) -> String {
    let total: f64 = flows.iter().map(|f| f.throughput.mean).sum();
    let got =
        |g: &GroupShare| format!("{} of {} Mb/s", number(g.throughput * g.members as f64), number(total));
    let its = |g: &GroupShare| if g.members > 1 { "their entitlement" } else { "its entitlement" };
    let verb = if high.1 > 1.0 + CLOSE { "took" } else { "got" };
    let only = if low.1 < 1.0 - CLOSE { "only " } else { "" };
    format!(
        "{} {verb} {}, {} {}; {} got {only}{} of {}.",
        who(high.0),
        got(high.0),
        of(high.1),
        its(high.0),
        who(low.0),
        percent(low.1),
        if low.0.members > 1 { "theirs" } else { "its own" },
    )
}

fn without_entitlement(flows: &[FlowShare]) -> String {
    let by_throughput = |a: &&FlowShare, b: &&FlowShare| a.throughput.mean.total_cmp(&b.throughput.mean);
    match (flows.iter().min_by(by_throughput), flows.iter().max_by(by_throughput)) {
        (Some(least), Some(most)) if flows.len() > 1 => format!(
            "Throughput goes from {} Mb/s ({}) to {} Mb/s ({}).",
            number(least.throughput.mean),
            least.name,
            number(most.throughput.mean),
            most.name
        ),
        (Some(only), _) => format!("{} got {} Mb/s.", only.name, number(only.throughput.mean)),
        _ => String::new(),
    }
}

fn who(group: &GroupShare) -> String {
    match group.members {
        1 => group.name.clone(),
        n => format!("{n} {} flows", group.name),
    }
}

/// A ratio in words before "its entitlement": percent below 2, times from there.
fn of(ratio: f64) -> String {
    if ratio < 2.0 { format!("{} of", percent(ratio)) } else { format!("{ratio:.1} times") }
}

fn percent(ratio: f64) -> String {
    let percent = ratio * 100.0;
    if percent > 0.0 && percent < 0.95 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}
