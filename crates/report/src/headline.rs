//! Sentences that sum up the results, computed from the numbers.

use std::collections::{BTreeMap, BTreeSet};

use apportion_core::units::Span;

use crate::metrics::{Metrics, SlowestLink};
use crate::quantities::{COMPLETION_P95, COMPLETIONS, QUEUE_DELAY_P95, SHARE};
use crate::run_results::{PointResults, RunResults};
use crate::shares::{FlowShare, GroupShare, flow_shares, group_shares};
use crate::statistics::{Estimate, mean, number};

/// A statement about one point, or about the run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Headline {
    pub(crate) point: Option<String>,
    pub(crate) text: String,
}

/// Deviations up to this count as "within"; larger ones are reported by group.
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

/// The sentence about the second with the lowest share of any flow.
pub(crate) fn worst_second(point: &PointResults) -> Option<String> {
    let transfers = transfers_of(point);
    let of_flows = point.summary().flows.iter().filter(|flow| !transfers.contains(flow.group.as_str()));
    let of_flows = of_flows.filter_map(|flow| Some((flow.name.as_str(), flow.worst?)));
    let (flow, worst) = of_flows.min_by(|a, b| a.1.share.total_cmp(&b.1.share))?;
    let share = percent(worst.share);
    Some(format!(
        "Worst second: {flow} got {share} of its entitlement in the second that began at {} s.",
        number(worst.from.as_secs_f64())
    ))
}

/// Sentences about disciplines that broke their contract in at least one replication, one for each link.
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

/// Whether packets left on time, so that the run is valid, and a sentence about their lateness; none for a
/// simulation.
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

/// The points with the lowest and the highest value of a quantity.
struct Extremes<'a> {
    low: (Estimate, &'a str),
    high: (Estimate, &'a str),
}

impl<'a> Extremes<'a> {
    /// None with fewer than two points.
    fn of(all: impl Iterator<Item = (Estimate, &'a str)>) -> Option<Self> {
        let mut ranked: Vec<_> = all.collect();
        ranked.sort_by(|a, b| a.0.mean.total_cmp(&b.0.mean));
        let (low, high) = (*ranked.first()?, *ranked.last()?);
        (ranked.len() > 1).then_some(Self { low, high })
    }

    /// Whether the two differ by more than chance, as far as the replications show; one seed shows nothing
    /// about that.
    fn are_apart(&self) -> bool {
        self.low.0.overlaps(&self.high.0) != Some(true)
    }

    /// The number of replications behind the values, as text.
    fn seeds(&self) -> String {
        match self.low.0.n.min(self.high.0.n) {
            1 => "one seed".to_owned(),
            n => format!("{n} seeds"),
        }
    }

    /// The sentence that `what` does not differ by more than chance.
    fn alike(&self, what: &str, unit: &str, show: impl Fn(&Estimate) -> String) -> String {
        let ((low, low_name), (high, high_name)) = (&self.low, &self.high);
        format!(
            "{what} is not distinguishable between points: {}{unit} with {low_name}, {}{unit} with {high_name} ({}).",
            show(low),
            show(high),
            self.seeds()
        )
    }
}

/// The sentence about the flow with the lowest share at the best and at the worst point, and about queue
/// delays.
pub(crate) fn lead(run: &RunResults) -> Option<String> {
    let worst_off = |point: &PointResults| {
        let transfers = transfers_of(point);
        let of_flow = |flow: FlowShare| flow.share().filter(|_| !transfers.contains(flow.group.as_str()));
        let least =
            flow_shares(point).into_iter().filter_map(of_flow).min_by(|a, b| a.mean.total_cmp(&b.mean))?;
        // A share above 1 is no better than 1.
        Some(Estimate { mean: least.mean.min(1.0), ..least })
    };
    let shares = Extremes::of(run.points.iter().filter_map(|p| Some((worst_off(p)?, p.name()))))?;
    let (low, high) = (shares.low.0.mean, shares.high.0.mean);
    let sentence = if high - low <= CLOSE / 2.0 {
        format!("The worst-off flow gets at least {} of its entitlement at every point.", percent(low))
    } else if shares.are_apart() {
        format!(
            "The worst-off flow gets {} of its entitlement with {}, but {} with {} ({}).",
            percent(high),
            shares.high.1,
            percent(low),
            shares.low.1,
            shares.seeds()
        )
    } else {
        shares.alike("The worst-off flow's share of its entitlement", "", percents)
    };
    let more = [waiting(run), transfers(run)].into_iter().flatten();
    Some(more.fold(sentence, |all, sentence| all + " " + &sentence))
}

/// The smallest ratio of delays that is mentioned.
const FELT: f64 = 3.0;

/// The points with the shortest and longest queue delay of the slowest watched link, if they differ much.
fn waiting(run: &RunResults) -> Option<String> {
    let link = SlowestLink::of(run.points.iter().map(|point| &point.summary().metrics))?;
    let metric = QUEUE_DELAY_P95.at(link.name);
    let wait = |p: &'_ PointResults| p.summary().metrics.get(&metric);
    let delays = Extremes::of(run.points.iter().filter_map(|p| Some((wait(p)?, p.name()))))?;
    let (least, most) = (delays.low.0.mean, delays.high.0.mean);
    let of_link = if link.is_only { String::new() } else { format!(" at link {}", link.name) };
    let what = format!("The 95th percentile of queue delay{of_link}");
    (least > 0.0 && most >= FELT * least).then(|| match delays.are_apart() {
        true => format!(
            "{what} is {} ms with {}, but {} ms with {} ({}).",
            number(least),
            delays.low.1,
            number(most),
            delays.high.1,
            delays.seeds()
        ),
        false => delays.alike(&what, " ms", ToString::to_string),
    })
}

/// The smallest ratio of completion times that is mentioned.
const SLOWER: f64 = 1.5;
/// Least number of transfers for which one replication shows their 95th percentile. With fewer, the longest
/// is below the 95th percentile in more than one of forty cases, 0.95^72 = 0.025, so that no 95 % interval
/// has an upper end.
const ENOUGH: f64 = 72.0;

/// The points with the shortest and longest completion times of the group with the most finite transfers, if they
/// differ.
fn transfers(run: &RunResults) -> Option<String> {
    let all: Vec<(&Metrics, &str)> = run.points.iter().map(|p| (&p.summary().metrics, p.name())).collect();
    let mut counts: BTreeMap<&str, f64> = BTreeMap::new();
    for (metrics, _) in &all {
        for (group, completed) in metrics.of_each(COMPLETIONS) {
            *counts.entry(group).or_default() += mean(completed).unwrap_or(0.0);
        }
    }
    // The first by name of several equal ones.
    let (group, _) = counts.into_iter().rev().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let [took, completed] = [COMPLETION_P95, COMPLETIONS].map(|quantity| quantity.at(group));
    let times = Extremes::of(all.iter().filter_map(|(metrics, name)| Some((metrics.get(&took)?, *name))))?;
    let (least, most) = (times.low.0.mean, times.high.0.mean);
    let of_point = |name: &str| {
        all.iter().find(|(_, own)| *own == name).and_then(|(metrics, _)| metrics.get(&completed))
    };
    let counts = [times.low.1, times.high.1].map(|name| of_point(name).map_or(0.0, |count| count.mean));
    let [fewest, most_of_them] = [counts[0].min(counts[1]), counts[0].max(counts[1])];
    let count = match (fewest.round(), most_of_them.round()) {
        (few, many) if few < many => format!("{few:.0} to {many:.0}"),
        (few, _) => format!("{few:.0}"),
    };
    let what = if most_of_them.round() == 1.0 { "transfer" } else { "transfers" };
    let is_known = times.low.0.n > 1 || fewest >= ENOUGH;
    (least > 0.0 && most > SLOWER * least).then(|| match is_known && times.are_apart() {
        true => format!(
            "95 % of {count} {what} of {group} complete within {} s with {}, but within {} s with {} ({}).",
            number(least),
            times.low.1,
            number(most),
            times.high.1,
            times.seeds()
        ),
        false => times.alike(
            &format!("The time within which 95 % of {count} {what} of {group} complete"),
            " s",
            ToString::to_string,
        ),
    })
}

/// The groups of finite transfers. These have an entitlement while they last, but cannot use all of it: TCP
/// starts slowly, and they have no more to send. So sentences do not report low shares of them; they compare
/// completion times.
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
            let of_group = |group: &GroupShare| point.summary().metrics.get(&SHARE.at(&group.name));
            match (of_group(low), of_group(high)) {
                (Some(one), Some(other)) if one.overlaps(&other) == Some(true) => format!(
                    "The groups' shares of their entitlement are not distinguishable: {} ({}) to {} ({}), {} seeds.",
                    percents(&one),
                    low.name,
                    percents(&other),
                    high.name,
                    one.n
                ),
                _ => between_groups((low, low_ratio), (high, high_ratio)),
            }
        }
        _ => format!(
            "Flows get from {} ({}) to {} their entitlement ({}).",
            percent(least.1),
            least.0.name,
            of(most.1),
            most.0.name,
        ),
    }
}

fn between_groups(low: (&GroupShare, f64), high: (&GroupShare, f64)) -> String {
    // No total beside it: flows on several links are counted once per flow, and their sum says nothing of any link.
    let got = |g: &GroupShare| {
        let each = if g.members > 1 { " each" } else { "" };
        format!("{} Mb/s{each}", number(g.throughput))
    };
    let its = |g: &GroupShare| if g.members > 1 { "their entitlement" } else { "its entitlement" };
    let only = if low.1 < 1.0 - CLOSE { "only " } else { "" };
    format!(
        "{} got {}, {} {}; {} got {}, {only}{} of {}.",
        who(high.0),
        got(high.0),
        of(high.1),
        its(high.0),
        who(low.0),
        got(low.0),
        percent(low.1),
        if low.0.members > 1 { "theirs" } else { "its own" },
    )
}

fn without_entitlement(flows: &[FlowShare]) -> String {
    let by_throughput = |a: &&FlowShare, b: &&FlowShare| a.throughput.mean.total_cmp(&b.throughput.mean);
    match (flows.iter().min_by(by_throughput), flows.iter().max_by(by_throughput)) {
        (Some(least), Some(most)) if flows.len() > 1 => format!(
            "Throughput ranges from {} Mb/s ({}) to {} Mb/s ({}).",
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

/// A ratio as text before "its entitlement": percent below 2, times from there.
fn of(ratio: f64) -> String {
    if ratio < 2.0 { format!("{} of", percent(ratio)) } else { format!("{ratio:.1} times") }
}

/// A ratio in percent with its interval.
fn percents(ratio: &Estimate) -> String {
    match ratio.ci95 {
        Some(half) => format!("{:.0} ± {:.0} %", ratio.mean * 100.0, half * 100.0),
        None => percent(ratio.mean),
    }
}

fn percent(ratio: f64) -> String {
    let percent = ratio * 100.0;
    if percent > 0.0 && percent < 0.95 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}
