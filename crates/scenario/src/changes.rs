//! Timed changes: `set = "link.bottleneck.rate"` finds what to change and how to read the new value.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use apportion_core::packet::{FillTarget, FlowClass};
use apportion_core::param::{Kind, Range};
use apportion_core::system::Catalog;
use apportion_core::units::{Rate, TicketRate, Time, Weight};

use crate::admission;
use crate::flows;
use crate::keys::{Amount, Fields, walk};
use crate::link_groups;
use crate::model::{Change, Flow, Link, LinkId, Setting, Source};
use crate::names::position;
use crate::problem::{Place, Problems, did_you_mean};
use crate::queue;
use crate::selection::Part;
use crate::tables::{CHANGE, CLASSES};
use crate::text::{Item, Value};

const LINK_KEYS: [&str; 6] = ["rate", "delay", "loss", "queue", "tickets", "ack_tickets"];
const FLOW_KEYS: [&str; 6] = ["rate", "class", "weight", "guarantee", "tickets", "ack_tickets"];

/// A change and where it was written.
pub(crate) struct Placed {
    pub at: Time,
    pub to: Setting,
    pub place: Place,
    /// Number in the order of the file, from 1.
    pub number: usize,
}

/// Reads the list `change`, sorted by time, then by setting.
pub(crate) fn read(
    item: &Item,
    links: &[Link],
    flows: &[Flow],
    catalog: &Catalog,
    problems: &mut Problems,
) -> Vec<Change> {
    let Value::List(items) = &item.value else {
        problems.add(item.place, "change", "write each change as a table [[change]]");
        return Vec::new();
    };
    let mut changes = Vec::new();
    for (number, item) in (1..).zip(items) {
        let Some(fields) = walk(item, &format!("change[{number}]"), CHANGE, false, problems) else {
            continue;
        };
        let (Some(at), Some(set), Some(to)) =
            (fields.get("at", 1, problems), fields.text("set"), fields.item("to"))
        else {
            continue;
        };
        let settings = match set.split_once('.').and_then(|(what, rest)| Some((what, rest.rsplit_once('.')?)))
        {
            Some(("link", (name, key))) => link(name, key, to, &fields, (links, flows), catalog, problems),
            Some(("flow", (name, key))) => flow(name, key, to, flows).map_err(|(on, message)| {
                fields.refuse(on, message, problems);
            }),
            _ => {
                let message = format!(
                    "`{set}` names nothing that can change; write for example \"link.bottleneck.rate\""
                );
                fields.refuse("set", message, problems);
                continue;
            }
        };
        let placed = |to| Placed { at, to, place: item.place, number };
        changes.extend(settings.unwrap_or_default().into_iter().map(placed));
    }
    changes.sort_by(|a, b| a.at.cmp(&b.at).then_with(|| order(&a.to, &b.to)));
    refuse_twice(&changes, problems);
    admission::check_changes(links, flows, &changes, problems);
    changes.into_iter().map(|Placed { at, to, .. }| Change { at, to }).collect()
}

/// Refuses targets of flows that stay greedy: only the queues of real-rate flows have one.
pub(crate) fn check_targets(flows: &[Flow], changes: &[Change], root: &Fields<'_>, problems: &mut Problems) {
    let is_real_rate = |at: usize, flow: &Flow| {
        let becomes =
            |change: &Change| matches!(change.to, Setting::FlowClass(of, FlowClass::RealRate) if of == at);
        flow.class == FlowClass::RealRate || changes.iter().any(becomes)
    };
    let mut reported = BTreeSet::new();
    for (at, flow) in flows.iter().enumerate() {
        let Some(target) = flow.target.filter(|_| !is_real_rate(at, flow)) else { continue };
        if reported.insert(&flow.group) {
            let key = match target {
                FillTarget::Size(_) => "target",
                FillTarget::Delay(_) => "target_delay",
            };
            let (place, path) = admission::written(root, flow, key);
            let message = format!(
                "greedy flows share what is left and have no target; write class = \"real_rate\", or leave `{key}` out"
            );
            problems.add(place, path, message);
        }
    }
}

/// The kind of the new value for the setting that `set` names.
pub(crate) fn kind_of(set: &str) -> Kind {
    match set.rsplit_once('.').map(|(_, key)| key) {
        Some("rate" | "guarantee") => Kind::Rate,
        Some("class") => Kind::Choice(CLASSES),
        Some("delay") => Kind::Span,
        Some("loss") => Kind::Ratio,
        Some("weight") => Kind::Number,
        Some("queue") => Part::Queue.kind(),
        Some("tickets" | "ack_tickets") => Kind::Number,
        _ => Kind::Any,
    }
}

fn refuse_twice(changes: &[Placed], problems: &mut Problems) {
    for pair in changes.windows(2) {
        let [first, second] = pair else { continue };
        if first.at == second.at && order(&first.to, &second.to).is_eq() {
            let (earlier, at) = (first.number, first.at);
            let message = format!("change[{earlier}] sets the same thing at {at}; remove one of them");
            problems.add(second.place, format!("change[{}]", second.number), message);
        }
    }
}

/// The order of settings.
fn order(a: &Setting, b: &Setting) -> Ordering {
    const fn rank(setting: &Setting) -> (u8, usize) {
        match setting {
            Setting::LinkRate(link, _) => (0, link.0 as usize),
            Setting::LinkDelay(link, _) => (1, link.0 as usize),
            Setting::LinkLoss(link, _) => (2, link.0 as usize),
            Setting::LinkQueue(link, _) => (3, link.0 as usize),
            Setting::FlowRate(flow, _) => (4, *flow),
            Setting::FlowWeight(flow, _) => (5, *flow),
            Setting::FlowGuarantee(flow, _) => (6, *flow),
            Setting::FlowTickets(flow, _) => (7, *flow),
            Setting::FlowAckTickets(flow, _) => (8, *flow),
            Setting::LinkTickets(link, _) => (9, link.0 as usize),
            Setting::LinkAckTickets(link, _) => (10, link.0 as usize),
            Setting::FlowClass(flow, _) => (11, *flow),
        }
    }
    rank(a).cmp(&rank(b))
}

fn link(
    name: &str,
    key: &str,
    to: &Item,
    fields: &Fields<'_>,
    (links, flows): (&[Link], &[Flow]),
    catalog: &Catalog,
    problems: &mut Problems,
) -> Result<Vec<Setting>, ()> {
    let one = position(links, name, |link| &link.name).and_then(|at| u32::try_from(at).ok());
    let group = || Some(link_groups::find(links, name)?.members.clone());
    let Some(ids) = one.map(|at| vec![LinkId(at)]).or_else(group) else {
        let guess = did_you_mean(name, links.iter().take(1_000).map(|link| link.name.as_str()));
        fields.refuse("set", format!("there is no link `{name}`{guess}"), problems);
        return Err(());
    };
    // All members of a group have the same values here.
    let id = ids[0];
    if let Some(group) = links[id.index()].group.as_ref().filter(|_| ids.len() == 1)
        && !["rate", "delay", "loss"].contains(&key)
    {
        let message = format!("a group has one `{key}`; write \"link.{}.{key}\"", group.name);
        fields.refuse("set", message, problems);
        return Err(());
    }
    if key == "rate" && links[id.index()].trace.is_some() {
        fields.refuse(
            "set",
            format!("link `{name}` is recorded, and its trace says when it sends; leave this out"),
            problems,
        );
        return Err(());
    }
    let settings = |setting: &dyn Fn(LinkId) -> Setting| ids.iter().map(|&id| setting(id)).collect();
    let changed = match key {
        "rate" => rate(to, 1).map(|rate| settings(&|id| Setting::LinkRate(id, rate))),
        "delay" => {
            Amount::one(to, Range::FromZero, 1).map(|delay| settings(&|id| Setting::LinkDelay(id, delay)))
        }
        "loss" => Amount::one(to, Range::FromZero, 1).map(|loss| settings(&|id| Setting::LinkLoss(id, loss))),
        "queue" => {
            let queue = queue::read(catalog, to, &fields.path_of("to"), problems).ok_or(())?;
            let changes = ids
                .iter()
                .map(|&id| Setting::LinkQueue(id, Box::new(queue.of_link(id, links, flows, problems))));
            return Ok(changes.collect());
        }
        "tickets" | "ack_tickets" => {
            let link = &links[id.index()];
            let (issued, setting): (_, fn(_, _) -> _) = match key {
                "tickets" => (link.tickets, Setting::LinkTickets),
                _ => (link.ack_tickets, Setting::LinkAckTickets),
            };
            if issued.is_none() {
                fields.refuse("set", not_issued("link", name, key), problems);
                return Err(());
            }
            tickets(to, 1).map(|tickets| settings(&|id| setting(id, tickets)))
        }
        _ => {
            let guess = did_you_mean(key, LINK_KEYS);
            let message =
                format!("`{key}` of a link cannot change{guess}; what can: {}", LINK_KEYS.join(", "));
            fields.refuse("set", message, problems);
            return Err(());
        }
    };
    changed.map_err(|message| fields.refuse("to", message, problems))
}

/// A setting of a flow, or of all members of a group. An error names the key it is about.
fn flow(name: &str, key: &str, to: &Item, flows: &[Flow]) -> Result<Vec<Setting>, (&'static str, String)> {
    let one = position(flows, name, |flow| &flow.name).map(|at| vec![at]);
    let members = one.unwrap_or_else(|| {
        let members = flows.iter().enumerate().filter(|(_, flow)| flow.group == name);
        members.map(|(at, _)| at).collect()
    });
    if members.is_empty() {
        let guess = did_you_mean(name, flows.iter().take(1_000).map(|flow| flow.group.as_str()));
        return Err(("set", format!("there is no flow or group `{name}`{guess}")));
    }
    let mut settings = Vec::new();
    for at in members {
        let flow = &flows[at];
        let i = flow.name.rsplit_once('.').and_then(|(_, i)| i.parse().ok()).unwrap_or(1);
        let setting = match key {
            "rate" if !has_rate(&flow.source) => {
                let message =
                    format!("flow `{}` has no rate: its source is none of cbr, poisson, on_off", flow.name);
                return Err(("set", message));
            }
            "rate" => rate(to, i).map(|rate| Setting::FlowRate(at, rate)),
            "class" => class(to).map(|class| Setting::FlowClass(at, class)),
            "weight" => Amount::one(to, Range::AboveZero, i)
                .map(|weight| Setting::FlowWeight(at, Weight::new(weight).unwrap_or_default())),
            "guarantee" => rate(to, i).map(|guarantee| Setting::FlowGuarantee(at, guarantee)),
            "tickets" | "ack_tickets" => {
                let (issued, setting): (_, fn(_, _) -> _) = match key {
                    "tickets" => (flow.tickets, Setting::FlowTickets),
                    _ => (flow.ack_tickets, Setting::FlowAckTickets),
                };
                if issued.is_none() {
                    return Err(("set", not_issued("flow", &flow.name, key)));
                }
                tickets(to, i).map(|tickets| setting(at, tickets))
            }
            _ => {
                let guess = did_you_mean(key, FLOW_KEYS);
                let known = FLOW_KEYS.join(", ");
                return Err(("set", format!("`{key}` of a flow cannot change{guess}; what can: {known}")));
            }
        };
        settings.push(setting.map_err(|message| ("to", message))?);
    }
    Ok(settings)
}

fn not_issued(what: &str, name: &str, key: &str) -> String {
    format!("{what} `{name}` has no `{key}` that could change; give it some, for example {key} = 100")
}

fn class(item: &Item) -> Result<FlowClass, String> {
    let known = item.as_text().filter(|name| CLASSES.contains(name));
    known.map(flows::class).ok_or_else(|| format!("not a class; write one of {}", CLASSES.join(", ")))
}

fn tickets(item: &Item, i: u64) -> Result<TicketRate, String> {
    let value = Amount::one(item, Range::FromZero, i)?;
    TicketRate::new(value).ok_or_else(|| format!("`{value}` is not a number of tickets per second"))
}

const fn has_rate(source: &Source) -> bool {
    matches!(source, Source::Cbr { .. } | Source::Poisson { .. } | Source::OnOff { .. })
}

fn rate(item: &Item, i: u64) -> Result<Rate, String> {
    Amount::one(item, Range::FromZero, i)
}
