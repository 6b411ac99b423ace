//! One point of a scenario, checked: every name resolved, every quantity typed.

use apportion_core::system::Catalog;
use apportion_core::units::{Span, Time};

use crate::admission;
use crate::agreements;
use crate::changes;
use crate::classes;
use crate::customers;
use crate::defaults::Defaults;
use crate::ecmp;
use crate::files::Files;
use crate::flows::Builder;
use crate::keys::{Fields, walk_root};
use crate::labels;
use crate::link_groups;
use crate::model::{Customer, Flow, Link, LinkId, ListedLoss, Scenario};
use crate::names::position;
use crate::network::{Finished, Lost, OfFlows};
use crate::plans;
use crate::problem::{Problems, did_you_mean};
use crate::routing::Routing;
use crate::tables::ROOT;
use crate::text::Table;
use crate::topology;

/// Checks the whole file; every error is added to `problems`. The result may be run only if there were none.
pub(crate) fn build(
    root: &Table,
    file_name: &str,
    files: &Files<'_>,
    catalog: &Catalog,
    problems: &mut Problems,
) -> Option<Scenario> {
    refuse_rules(root, problems);
    let plans = plans::of(root, files, problems)?;
    let root = &*plans::expanded(root, plans.as_ref(), problems);
    let fields = walk_root(root, ROOT, problems);
    let seed = fields.get("seed", 1, problems);
    let stop = fields.get("stop", 1, problems);
    let measure_from = fields.get("measure_from", 1, problems);
    check_start(&fields, stop, measure_from, problems);
    let defaults = Defaults::read(fields.item("defaults"), catalog, files, problems);
    let ready = fields.item("topology").map(|item| topology::expand(item, files, &defaults, problems));
    let complete = !matches!(ready, Some(None));
    let mut network = ready.flatten().unwrap_or_default();
    // If the topology is unknown, a change to one of its links would look like a link without ends.
    if let Some(table) = declared_links(&fields, problems).filter(|_| complete) {
        network.links(table, &defaults, problems);
    }
    let Finished { nodes, mut links, of_flows, mut notes } = network.finish(problems);

    let routing = Routing::new(nodes.len(), &links);
    let mut builder = Builder {
        nodes: &nodes,
        links: &links,
        routing,
        is_single: fields.text("routing") == Some(ecmp::SINGLE),
        files,
        catalog: &defaults.catalog,
        defaults: defaults.flow.as_ref(),
        complete,
        end: stop,
    };
    let flows = read_flows(&fields, &mut builder, problems);
    let customers = read_customers(&fields, &flows, problems);
    if complete && problems.is_empty() {
        resolve(&mut links, of_flows, &flows, problems);
    }
    // Changes name links and flows; if some of them are missing, errors about names would be wrong.
    let sound = problems.is_empty();
    let agreements = if sound { agreements::read(&fields, &nodes, &links, problems) } else { Vec::new() };
    let sound = problems.is_empty();
    let changes = match fields.item("change") {
        Some(item) if sound => changes::read(item, &links, &flows, &defaults.catalog, problems),
        _ => Vec::new(),
    };
    labels::check_tickets(&links, &flows, &changes, &fields, problems);
    link_groups::check_reports(&links, &changes, &fields, problems);
    ecmp::check(&links, &flows, &changes, &fields, problems);
    if sound {
        admission::check(&links, &flows, &fields, problems);
        admission::check_isolation(&links, &flows, &changes, &fields, problems);
        changes::check_targets(&flows, &changes, &fields, problems);
        classes::check(&links, &flows, &changes, &fields, problems);
        labels::check_roles(&links, &flows, &changes, &fields, problems);
    }
    let stop = stop?;
    let sample = read_sample(&fields, stop, problems);
    notes.extend(problems.take_notes());
    let title = fields.text("title").unwrap_or(file_name).to_owned();
    let scenario = Scenario {
        title,
        seed: seed?,
        stop,
        measure_from: measure_from?,
        sample,
        nodes,
        links,
        flows,
        customers,
        agreements,
        changes,
        notes,
    };
    if sound {
        agreements::check(&scenario, &fields, problems);
    }
    Some(scenario)
}

fn declared_links<'a>(fields: &Fields<'a>, problems: &mut Problems) -> Option<&'a Table> {
    let item = fields.item("link")?;
    named_tables(fields, item.as_table(), "link", problems)
}

fn named_tables<'a>(
    fields: &Fields<'_>,
    table: Option<&'a Table>,
    key: &str,
    problems: &mut Problems,
) -> Option<&'a Table> {
    if table.is_none() {
        fields.refuse(key, format!("not a table; write each of them as a table [{key}.NAME]"), problems);
    }
    table
}

/// Resolves the settings of links that refer to flows.
fn resolve(links: &mut [Link], of_flows: Vec<OfFlows>, flows: &[Flow], problems: &mut Problems) {
    for (at, OfFlows { lost, queue }) in (0..).zip(of_flows) {
        let queue = queue.of_link(LinkId(at), links, flows, problems);
        let link = &mut links[at as usize];
        link.queue = queue;
        for Lost { flow, packets, path, place } in lost {
            let Some(flow) = position(flows, &flow, |flow| &flow.name) else {
                let guess = did_you_mean(&flow, flows.iter().take(1_000).map(|flow| flow.name.as_str()));
                problems.add(place, path, format!("there is no flow `{flow}`{guess}"));
                continue;
            };
            link.lost.push(ListedLoss { flow, packets });
        }
        link.lost.sort_by_key(|loss| loss.flow);
    }
}

fn refuse_rules(root: &Table, problems: &mut Problems) {
    if let Some(item) = root.get("rule") {
        let message = "rules go by addresses and ports, which the simulator's packets do not have; write the keys of a flow in \
                       its table, such as class = \"real_rate\" under [flow.NAME]";
        problems.add_final(item.place, "rule".to_owned(), message);
    }
}

/// Refuses a measurement that starts when the run has ended.
fn check_start(fields: &Fields<'_>, stop: Option<Time>, measure_from: Option<Time>, problems: &mut Problems) {
    if let (Some(stop), Some(from)) = (stop, measure_from)
        && from >= stop
    {
        let message = format!(
            "the measurement would start at {from}, but the run stops at {stop}; write an earlier time"
        );
        fields.refuse("measure_from", message, problems);
    }
}

fn read_flows<'a>(fields: &Fields<'a>, builder: &mut Builder<'a>, problems: &mut Problems) -> Vec<Flow> {
    match fields.item("flow").and_then(|item| named_tables(fields, item.as_table(), "flow", problems)) {
        Some(table) => builder.flows(table, problems),
        None => {
            let message = "missing; a scenario needs at least one flow, such as [flow.bulk]";
            fields.refuse("flow", message, problems);
            Vec::new()
        }
    }
}

/// The customers that flows name. If flows were refused, their customers would seem to have none.
fn read_customers(fields: &Fields<'_>, flows: &[Flow], problems: &mut Problems) -> Vec<Customer> {
    if !problems.is_empty() {
        return Vec::new();
    }
    let named = flows.iter().filter_map(|flow| flow.customer.as_deref());
    customers::read(fields, named, "flow", problems)
}

/// The interval of time series of a run that ends at `stop`.
fn read_sample(fields: &Fields<'_>, stop: Time, problems: &mut Problems) -> Span {
    let sample = fields.get("sample", 1, problems).unwrap_or_else(|| default_sample(stop));
    if sample.as_nanos().saturating_mul(MAX_SAMPLES) < stop.as_nanos() {
        let message =
            format!("{sample} gives more than {MAX_SAMPLES} intervals until {stop}; write a longer one");
        fields.refuse("sample", message, problems);
    }
    sample
}

/// Maximum of samples. Chosen: a second in steps of 10 us; each flow and link keeps a number for each.
const MAX_SAMPLES: u64 = 100_000;

/// 1, 2 or 5 times a power of ten nanoseconds that gives at most 600 samples: as many as a figure shows.
pub(crate) fn default_sample(stop: Time) -> Span {
    let least = stop.as_nanos().div_ceil(600).max(1);
    let mut unit = 1u64;
    loop {
        for step in [1, 2, 5] {
            if unit.saturating_mul(step) >= least {
                return Span::from_nanos(unit.saturating_mul(step));
            }
        }
        unit = unit.saturating_mul(10);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_sample_is_round_and_gives_at_most_600() {
        // 60 s / 600 = 100 ms; 100 s / 600 = 167 ms, up to 200 ms; 4 s / 600 = 6.7 ms, up to 10 ms.
        assert_eq!(default_sample(Time::from_secs(60)), Span::from_millis(100));
        assert_eq!(default_sample(Time::from_secs(100)), Span::from_millis(200));
        assert_eq!(default_sample(Time::from_secs(4)), Span::from_millis(10));
        assert_eq!(default_sample(Time::from_nanos(1)), Span::from_nanos(1));
        assert!(default_sample(Time::MAX).as_nanos() >= Time::MAX.as_nanos() / 600);
    }
}
