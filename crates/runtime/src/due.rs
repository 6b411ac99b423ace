//! The entitlements of the flows of a replication over time: the
//! [entitlement](apportion_scenario::entitlement) with the events of that replication.
//!
//! A flow is entitled to its share while it has data to send. A replication shows when it had: random starts,
//! on periods and writes of sources are drawn again from its seed, and transfers of finite size end when they
//! did. Each connection of short flows counts as a flow. A source whose rate varies wants its writes, as a
//! mean over a second or more.
//!
//! *A transfer stays entitled until its measured completion*, not until it would have completed with its
//! entitlement. This is the definition of generalised processor sharing (Parekh, Gallager 1993), which
//! divides the link among backlogged flows. A starved transfer is entitled to its share while it lasts, so
//! its share is low; by the other definition it would be entitled to its size in any case, and shares of
//! transfers that complete would all be 1. The others can only get more once it has really left. Entitlements
//! therefore depend on the discipline if transfers are finite: one that finishes early leaves more to others.
//!
//! Cost: that of [`Scenario::due`], and O(flows · samples · log) for the series.

use std::collections::BTreeMap;

use apportion_core::units::{Rate, Span, Time};
use apportion_scenario::entitlement::{Phase, Wants};
use apportion_scenario::model::{Change, Flow, OnOff, Scenario, Setting, Source};

use crate::connections::{Planned, Workload, connections};
use crate::outcome::{FlowOutcome, Outcome};

mod offered;

use offered::Bins;

/// Maximum of events that are kept. Chosen: more are transfers, too many to adapt to each.
pub const EVENTS_MAX: usize = 100;

/// The entitlements of flows in one replication.
#[derive(Clone, Debug, Default)]
pub struct Dues {
    /// Flows in the scenario's order.
    pub flows: Vec<FlowDue>,
    /// Changes within the measured part, in order of time: changes that affect entitlements, and flows that
    /// join and leave. At most [`EVENTS_MAX`]; if there are more, only changes.
    pub events: Vec<Event>,
}

/// The entitlement of a flow.
#[derive(Clone, Debug, Default)]
pub struct FlowDue {
    /// The mean over the measured part.
    pub measured: Rate,
    /// The mean over each sample interval, from the start of the run; as long as the flow's series of bytes.
    pub series: Vec<Rate>,
}

/// A change that affects entitlements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Time of the event.
    pub at: Time,
    /// A description, for example `film joins` or `link wire: 5 Mb/s`; several at once separated by commas.
    pub what: String,
}

/// The entitlements of flows in a replication of a scenario; none if the scenario does not define them, see
/// [`Scenario::entitlements`].
#[must_use]
pub fn dues(scenario: &Scenario, outcome: &Outcome) -> Option<Dues> {
    let hashed = scenario.hashed(outcome.seed)?;
    let entitled = |activity: Vec<Vec<Phase>>| {
        let due = hashed.due(&activity, Time::ZERO, scenario.stop)?;
        Some((activity, due))
    };
    // Where that would take too long, sources want their mean rate all the time.
    let (activity, due) = entitled(activity(scenario, outcome, Some(&Bins::of(scenario))))
        .or_else(|| entitled(activity(scenario, outcome, None)))?;
    let begin = Time::ZERO + scenario.stop.since(Time::ZERO).saturating_sub(outcome.measured);
    let sample = scenario.sample;
    let of_flow = |(at, flow): (usize, &FlowOutcome)| {
        let mean = |k: u64| {
            let (from, to) = (Time::ZERO + sample * k, Time::ZERO + sample * (k + 1));
            due.amount(at, from, to).over(sample)
        };
        FlowDue {
            measured: due.amount(at, begin, scenario.stop).over(outcome.measured),
            series: (0..flow.series.len() as u64).map(mean).collect(),
        }
    };
    let flows = outcome.flows.iter().enumerate().map(of_flow).collect();
    Some(Dues { flows, events: events(scenario, &activity, begin) })
}

/// Demand of the flows of a replication over time; without `bins`, sources with a varying rate want their
/// mean rate.
fn activity(scenario: &Scenario, outcome: &Outcome, bins: Option<&Bins>) -> Vec<Vec<Phase>> {
    let (planned, numbers) = connections(scenario, outcome.seed);
    let of_flow = |(index, flow): (usize, &Flow)| {
        let members = numbers.members(index);
        let members = &planned[members.start as usize..members.end as usize];
        match &flow.source {
            Source::File { .. } | Source::ShortFlows { .. } => {
                let one = matches!(flow.source, Source::File { .. });
                let wants = |count: u32| Wants::Everything(if one { count.min(1) } else { count });
                phases(transfers(members, outcome.flows.get(index), scenario.stop), wants)
            }
            // A page counts while it loads, which is known only if it completed.
            Source::Web(web) if !web.is_probe => phases(pages(outcome.flows.get(index)), Wants::Everything),
            // No series can show changes within a sample.
            Source::OnOff(OnOff { on, off, .. }) if on.mean + off.mean >= scenario.sample => {
                phases(bursts(members, scenario.stop), Wants::Bursts)
            }
            source => match bins {
                Some(bins) if varies(source) => bins.phases(members, &changes(scenario, index)),
                _ => {
                    let start = members.iter().map(|connection| connection.start).min();
                    let stop = flow.stop.unwrap_or(scenario.stop);
                    start.map_or_else(Vec::new, |start| Phase::between(start, stop, source))
                }
            },
        }
    };
    scenario.flows.iter().enumerate().map(of_flow).collect()
}

/// Whether the rate of a source varies.
const fn varies(source: &Source) -> bool {
    matches!(
        source,
        Source::OnOff { .. } | Source::Poisson { .. } | Source::Video { .. } | Source::Replay { .. }
    )
}

/// The changes of the rate of this flow's source.
fn changes(scenario: &Scenario, index: usize) -> Vec<(Time, Rate)> {
    let of = |change: &Change| match change.to {
        Setting::FlowRate(flow, rate) if flow == index => Some((change.at, rate)),
        _ => None,
    };
    scenario.changes.iter().filter_map(of).collect()
}

/// Begin and end of each transfer of a flow.
fn transfers(members: &[Planned], outcome: Option<&FlowOutcome>, end: Time) -> Vec<(Time, Time)> {
    let mut took: BTreeMap<Time, Vec<Span>> = BTreeMap::new();
    for done in outcome.into_iter().flat_map(|flow| flow.earlier.iter().chain(&flow.completions)) {
        took.entry(done.start).or_default().push(done.took);
    }
    let mut until = |start: Time| took.get_mut(&start).and_then(Vec::pop).map_or(end, |took| start + took);
    members.iter().map(|connection| (connection.start, until(connection.start))).collect()
}

/// Begin and end of each page.
fn pages(outcome: Option<&FlowOutcome>) -> Vec<(Time, Time)> {
    let all = outcome.into_iter().flat_map(|flow| flow.earlier.iter().chain(&flow.completions));
    all.map(|page| (page.start, page.start + page.took)).collect()
}

/// Begin and end of each on period of an on-off source's connections.
fn bursts(members: &[Planned], end: Time) -> Vec<(Time, Time)> {
    let of = |connection: &Planned| match &connection.workload {
        Workload::Writes(writes) => writes.generator.on_periods(connection.stop.min(end)),
        _ => Vec::new(),
    };
    members.iter().flat_map(of).collect()
}

/// The number of concurrent intervals, from each time at which it changes.
fn phases(there: Vec<(Time, Time)>, wants: impl Fn(u32) -> Wants) -> Vec<Phase> {
    let mut steps: Vec<(Time, bool)> =
        there.into_iter().flat_map(|(from, to)| [(from, true), (to.max(from), false)]).collect();
    // At the same time joins come first, so that a count never falls below zero.
    steps.sort_by_key(|&(at, joins)| (at, !joins));
    let mut count = 0u32;
    let mut all: Vec<Phase> = Vec::new();
    for (at, joins) in steps {
        count = if joins { count.saturating_add(1) } else { count.saturating_sub(1) };
        match all.last_mut().filter(|last| last.at == at) {
            Some(last) => last.wants = wants(count),
            None => all.push(Phase { at, wants: wants(count) }),
        }
    }
    all
}

/// Changes from `begin` on and before the end.
fn events(scenario: &Scenario, activity: &[Vec<Phase>], begin: Time) -> Vec<Event> {
    let within = |at: Time| at >= begin && at < scenario.stop;
    let changes = scenario.changes.iter().filter(|change| within(change.at));
    let changes: Vec<(Time, String)> =
        changes.filter_map(|change| Some((change.at, in_words(scenario, &change.to)?))).collect();
    let mut all = changes.clone();
    for (flow, phases) in scenario.flows.iter().zip(activity) {
        // Connections of short flows and bursts come and go all the time.
        if matches!(flow.source, Source::ShortFlows { .. } | Source::Web(_) | Source::OnOff { .. }) {
            continue;
        }
        let (Some(first), Some(last)) = (phases.first(), phases.last()) else { continue };
        for (at, verb) in [(first.at, "joins"), (last.at, "leaves")] {
            all.extend(within(at).then(|| (at, format!("{} {verb}", flow.name))));
        }
    }
    let merged = merge(all);
    if merged.len() <= EVENTS_MAX {
        return merged;
    }
    let mut only = merge(changes);
    only.truncate(EVENTS_MAX);
    only
}

/// Merges simultaneous events, of which four are named and the others counted. Chosen: as many as a line has
/// room for.
fn merge(all: Vec<(Time, String)>) -> Vec<Event> {
    const NAMED: usize = 4;
    let mut by_time: BTreeMap<Time, Vec<String>> = BTreeMap::new();
    for (at, what) in all {
        by_time.entry(at).or_default().push(what);
    }
    let event = |(at, mut whats): (Time, Vec<String>)| {
        let more = whats.len().saturating_sub(NAMED);
        whats.truncate(NAMED);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        Event { at, what: whats.join(", ") + &more }
    };
    by_time.into_iter().map(event).collect()
}

/// The text of a change, if it affects entitlements.
fn in_words(scenario: &Scenario, setting: &Setting) -> Option<String> {
    let link = |id: &apportion_scenario::model::LinkId| scenario.links[id.index()].name.as_str();
    let flow = |at: &usize| scenario.flows[*at].name.as_str();
    let mbps = |rate: &Rate| format!("{} Mb/s", rate.as_mbit_f64());
    Some(match setting {
        Setting::LinkRate(id, rate) => format!("link {}: {}", link(id), mbps(rate)),
        Setting::LinkTickets(id, tickets) | Setting::LinkAckTickets(id, tickets) => {
            format!("link {}: {} tickets", link(id), tickets.get())
        }
        Setting::FlowRate(at, rate) => format!("{}: {}", flow(at), mbps(rate)),
        Setting::FlowWeight(at, weight) => format!("{}: weight {}", flow(at), weight.get()),
        Setting::FlowGuarantee(at, rate) => format!("{}: guarantee {}", flow(at), mbps(rate)),
        Setting::FlowTickets(at, tickets) | Setting::FlowAckTickets(at, tickets) => {
            format!("{}: {} tickets", flow(at), tickets.get())
        }
        Setting::LinkDelay(..) | Setting::LinkLoss(..) | Setting::LinkQueue(..) | Setting::FlowClass(..) => {
            return None;
        }
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use apportion_core::units::Bytes;

    use super::*;
    use crate::outcome::Completion;

    fn scenario(text: &str) -> Scenario {
        let text = format!(
            "seed = 9\nstop = \"30s\"\nmeasure_from = \"10s\"\nsample = \"500ms\"\n\
             link.x = {{ from = \"a\", to = \"b\", rate = \"12Mbit\", delay = \"3ms\" }}\n{text}"
        );
        let suite = apportion_scenario::load(&text, Path::new("x.toml"), &[], &|path| std::fs::read(path));
        suite.unwrap().points.remove(0).scenario
    }

    fn outcome(scenario: &Scenario) -> Outcome {
        let series = vec![Bytes::new(1); 60];
        let flow = |flow: &Flow| FlowOutcome {
            name: flow.name.clone(),
            group: flow.group.clone(),
            series: series.clone(),
            ..FlowOutcome::default()
        };
        Outcome {
            seed: 4,
            measured: Span::from_secs(20),
            flows: scenario.flows.iter().map(flow).collect(),
            links: Vec::new(),
            packet_hops: 0,
            events: 0,
            timekeeping: None,
        }
    }

    fn done(start: u64, millis: u64) -> Completion {
        Completion { start: Time::from_secs(start), took: Span::from_millis(millis), size: Bytes::new(5_000) }
    }

    #[test]
    fn a_transfer_is_due_its_share_until_it_has_completed() {
        let file = "from = \"a\", to = \"b\", tcp = \"rfc\", source = { kind = \"file\", size = \"5kB\" }";
        let it = scenario(&format!(
            "flow.a = {{ from = \"a\", to = \"b\", tcp = \"rfc\" }}\nflow.b = {{ {file}, start = \"4s\" }}\n\
             flow.c = {{ {file}, start = \"12s\" }}\nflow.d = {{ {file}, start = \"25s\" }}\n"
        ));
        let mut outcome = outcome(&it);
        // One transfer before the measured part, one within it, and one that does not end.
        outcome.flows[1].earlier = vec![done(4, 3_000)];
        outcome.flows[2].completions = vec![done(12, 5_000)];
        let dues = dues(&it, &outcome).unwrap();
        // Time out of 20 s: 2 alone, 5 with half, 8 alone, 5 with half.
        assert_eq!(dues.flows[0].measured, Rate::from_kbit(9_000));
        let measured = |flow: usize| dues.flows[flow].measured;
        assert_eq!(
            (measured(1), measured(2), measured(3)),
            (Rate::ZERO, Rate::from_kbit(1_500), Rate::from_kbit(1_500))
        );
        let series = |flow: usize, k: usize| dues.flows[flow].series[k].as_mbit_f64();
        assert_eq!((series(1, 7), series(1, 8), series(1, 13), series(1, 14)), (0.0, 6.0, 6.0, 0.0));
        let events: Vec<_> =
            dues.events.iter().map(|event| (event.at.as_secs_f64(), event.what.as_str())).collect();
        assert_eq!(events, [(12.0, "c joins"), (17.0, "c leaves"), (25.0, "d joins")]);
    }

    #[test]
    fn on_periods_are_those_in_which_the_source_writes() {
        let it = scenario(
            "flow.a = { from = \"a\", to = \"b\", tcp = \"rfc\" }\n\
             flow.b = { from = \"a\", to = \"b\", source = { kind = \"on_off\", rate = \"2Mbit\", on = \"2s\", off = \"1s\" } }\n",
        );
        let outcome = outcome(&it);
        let phases = &activity(&it, &outcome, None)[1];
        let on = |at: Time| {
            let last = phases.iter().rev().find(|phase| phase.at <= at);
            last.is_some_and(|phase| phase.wants == Wants::Bursts(1))
        };
        let (planned, _) = connections(&it, outcome.seed);
        let Workload::Writes(writes) = &planned[1].workload else { panic!("it writes") };
        let generator = &writes.generator;
        let writes: Vec<_> = generator.clone().collect();
        assert!(phases.len() > 4 && writes.len() > 1_000);
        assert!(writes.iter().all(|write| on(write.at)));
        // The entitlement equals the writes, except for the last packet of a period.
        let due = dues(&it, &outcome).unwrap();
        let wrote: u64 = writes.iter().filter(|w| w.at >= Time::from_secs(10)).map(|w| w.size.bits()).sum();
        let bits = due.flows[1].measured.as_bit() * 20;
        assert!(bits.abs_diff(wrote) < 8_000 * phases.len() as u64, "{bits} {wrote}");
    }

    #[test]
    fn a_source_whose_rate_varies_is_due_what_it_writes() {
        let of = |source: &str| format!("{{ from = \"a\", to = \"b\", source = {{ {source} }} }}");
        let it = scenario(&format!(
            "flow.a = {}\nflow.b = {}\nflow.c = {}\nflow.d = {{ count = 2, connections = 3, start = {{ between = [\"2s\", \"13s\"] }}, stop = \"17.3s\", from = \"a\", \
             to = \"b\", source = {{ kind = \"poisson\", rate = \"80kbit\" }} }}\n\
             change = [{{ at = \"12.5s\", set = \"flow.b.rate\", to = \"0bit\" }}, {{ at = \"21.7s\", set = \"flow.b.rate\", to = \"800kbit\" }}]\n",
            of("kind = \"video\", mean = \"900kbit\""),
            of("kind = \"poisson\", rate = \"80kbit\""),
            of("kind = \"on_off\", rate = \"900kbit\", on = \"20ms\", off = \"20ms\", shape = \"pareto\""),
        ));
        let outcome = outcome(&it);
        let due = dues(&it, &outcome).unwrap();
        let means = activity(&it, &outcome, None);
        let mean = it.due(&means, Time::ZERO, it.stop).unwrap();
        let (planned, numbers) = connections(&it, outcome.seed);
        for (flow, is) in due.flows.iter().enumerate() {
            let writes = numbers.members(flow).flat_map(|member| {
                let Workload::Writes(writes) = &planned[member as usize].workload else {
                    panic!("it writes")
                };
                let generator = &writes.generator;
                generator.clone()
            });
            // The second flow is silent from 12.5 s on; writes with its new rate are checked by their amount.
            let before = |at: Time| flow != 1 || at < Time::from_millis(12_500);
            let measured = |at: Time| at >= Time::from_secs(10) && before(at);
            let wrote: u64 = writes.filter(|write| measured(write.at)).map(|write| write.size.bits()).sum();
            let bits = is.measured.as_bit() * 20;
            let by_mean = mean.amount(flow, Time::from_secs(10), it.stop).bits();
            if flow == 1 {
                let silent = &is.series[26..42];
                assert!(silent.iter().all(|rate| *rate == Rate::ZERO), "{silent:?}");
                let after = bits - wrote;
                assert!((0.9..1.1).contains(&(after as f64 / (8.3 * 800e3))), "{after}");
            } else {
                assert!(bits.abs_diff(wrote) < 100, "flow {flow}: {bits} {wrote}");
                assert!((by_mean - wrote as f64).abs() > 0.01 * wrote as f64, "another seed for flow {flow}");
            }
        }
    }

    #[test]
    fn short_flows_count_one_by_one_and_many_events_are_left_out() {
        let it = scenario(
            "flow.a = { from = \"a\", to = \"b\", tcp = \"rfc\" }\n\
             flow.b = { from = \"a\", to = \"b\", tcp = \"rfc\", source = { kind = \"short_flows\", per_second = 1, mean_size = \"9kB\" } }\n\
             change = [{ at = \"20s\", set = \"link.x.rate\", to = \"6Mbit\" }]\n",
        );
        // No transfer completes: their number grows, and the first flow is one of more and more.
        let outcome = outcome(&it);
        let (planned, _) = connections(&it, outcome.seed);
        let dues = dues(&it, &outcome).unwrap();
        let there = planned.iter().filter(|connection| connection.start < Time::from_millis(29_500)).count();
        let last = planned.iter().filter(|connection| connection.start >= Time::from_millis(29_500)).count();
        assert!(there > 10 && last == 0, "another seed");
        let due = 6e6 / there as f64;
        assert!((dues.flows[0].series[59].as_bit() as f64 - due).abs() < 1.0);
        let events: Vec<_> = dues.events.iter().map(|event| event.what.as_str()).collect();
        assert_eq!(events, ["link x: 6 Mb/s"]);
        // With many transfers only the change is an event; several at once are one.
        let many = scenario(
            "flow.f = { count = 60, from = \"a\", to = \"b\", tcp = \"rfc\", start = \"10s + i * 100ms\", stop = \"20s + i * 100ms\" }\n\
             change = [{ at = \"20s\", set = \"flow.f.weight\", to = 2 }]\n",
        );
        let dues = super::dues(&many, &self::outcome(&many)).unwrap();
        assert_eq!(dues.events.len(), 1);
        assert_eq!(
            dues.events[0].what,
            "f.1: weight 2, f.2: weight 2, f.3: weight 2, f.4: weight 2, and 56 more"
        );
    }
}
