//! Consistency of keys in different tables of a gateway's configuration.

use std::collections::BTreeMap;

use apportion_core::aqm::csfq::RouterRole;
use apportion_core::aqm::sffc::Trust;
use apportion_core::packet::LabelKind;
use apportion_core::units::Rate;

use super::directions::Placed as PlacedDirection;
use super::rules::Placed as PlacedRule;
use super::{Direction, RuleConfig, config};
use crate::admission::listed;
use crate::keys::Fields;
use crate::labels::what_is_written;
use crate::plans;
use crate::problem::Problems;
use crate::text::{Item, join};

/// Names in metrics for packets that no rule matches and for those that are not IP; rules cannot use them.
pub const COUNTED_APART: [&str; 2] = ["unmatched", "not IP"];

/// Refuses duplicate and reserved names of rules, and rules that never apply.
pub(super) fn rules(rules: &[PlacedRule<'_>], problems: &mut Problems) {
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    for (at, rule) in rules.iter().enumerate() {
        let (name, path) = (&rule.config.name, &rule.fields.path);
        if COUNTED_APART.contains(&name.as_str()) {
            let message = format!("metrics use `{name}` for packets that no rule matches; take another name");
            rule.fields.refuse("name", message, problems);
        }
        if let Some(earlier) = names.insert(name, path) {
            rule.fields.refuse("name", format!("{earlier} is called `{name}` already; rename one"), problems);
        }
        let Some(earlier) = rules[..at].iter().find(|earlier| hides(&earlier.config, &rule.config)) else {
            continue;
        };
        let everything = earlier.config.when == crate::gateway::classifier::Rule::default();
        let what = if everything { "everything" } else { "all of that" };
        let place = &earlier.fields.path;
        let message = format!(
            "it never applies: {place}, `{}`, comes first and matches {what}; write it before that one, or \
             leave it out",
            earlier.config.name
        );
        problems.add(rule.fields.place, path, message);
    }
}

/// Whether `earlier` matches everything that `later` does.
fn hides(earlier: &RuleConfig, later: &RuleConfig) -> bool {
    Direction::BOTH.into_iter().all(|way| !later.is_for(way) || earlier.is_for(way))
        && earlier.when.covers(&later.when)
}

/// Refuses guarantees that the direction cannot keep, even with one flow of each rule.
pub(super) fn guarantees(direction: &PlacedDirection<'_>, rules: &[PlacedRule<'_>], problems: &mut Problems) {
    let own = rules.iter().filter(|rule| rule.config.is_for(direction.direction));
    let mut given: Vec<_> = own.filter(|rule| rule.config.gives.guarantee > Rate::ZERO).collect();
    let sum = given.iter().fold(0_u64, |sum, rule| sum.saturating_add(rule.config.gives.guarantee.as_bit()));
    let (sum, rate) = (Rate::from_bit(sum), direction.config.least_rate());
    if sum <= rate {
        return;
    }
    given.sort_by_key(|rule| std::cmp::Reverse(rule.config.gives.guarantee));
    let Some(largest) = given.first() else { return };
    let whom: Vec<(&str, Rate)> =
        given.iter().map(|rule| (rule.config.name.as_str(), rule.config.gives.guarantee)).collect();
    let over = Rate::from_bit(sum.as_bit().saturating_sub(rate.as_bit()));
    let message = format!(
        "direction `{}` carries {rate}, but {sum} is guaranteed to one flow of each rule ({}); guarantee \
         {over} less, or give the direction a rate of {sum}",
        direction.direction.name(),
        listed(&whom)
    );
    largest.fields.refuse("guarantee", message, problems);
}

/// Refuses guarantees in a direction whose queue isolates hosts: it divides among hosts, which have no
/// guarantees.
pub(super) fn isolation(direction: &PlacedDirection<'_>, rules: &[PlacedRule<'_>], problems: &mut Problems) {
    if direction.config.queue.params.isolate().is_none() {
        return;
    }
    let given = |rule: &&PlacedRule<'_>| {
        rule.config.is_for(direction.direction) && rule.config.gives.guarantee > Rate::ZERO
    };
    for rule in rules.iter().filter(given) {
        let message = format!(
            "the queue of `{}` is fair among hosts, and a guarantee is of a flow; leave `guarantee` out, or `isolate` of \
             that queue",
            direction.direction.name()
        );
        rule.fields.refuse("guarantee", message, problems);
    }
}

/// Refuses weights of customers if none counts.
pub(super) fn customers(root: &Fields<'_>, directions: [&PlacedDirection<'_>; 2], problems: &mut Problems) {
    if config::weighs_customers(directions.map(|placed| &placed.config.queue.params)) {
        return;
    }
    let mend = if root.item(plans::KEY).is_some() {
        "what a customer has is in the file of `plans`, in its columns `down_min` and `up_min`"
    } else {
        "what a customer has is what its class says, such as `rate` of a class of htb"
    };
    let Some(table) = root.item("customer").and_then(Item::as_table) else { return };
    for (name, item) in &table.entries {
        let Some(weight) = item.as_table().and_then(|own| own.get("weight")) else { continue };
        let path = join(&join("customer", name), "weight");
        let message = format!(
            "it has no effect, since queues schedule classes, without weights: {mend}; leave `weight` out"
        );
        problems.add(weight.place, path, message);
    }
}

/// Refuses reports without an `address` or without a `report_key`, unless they are `insecure`, and both keys without
/// reports.
pub(super) fn reports(root: &Fields<'_>, directions: [&PlacedDirection<'_>; 2], problems: &mut Problems) {
    let reports = |placed: &&&PlacedDirection<'_>| placed.config.queue.params.report_interval().is_some();
    let insecure = root.flag("insecure") == Some(true);
    let Some(placed) = directions.iter().find(reports) else {
        let says = [("report_key", root.item("report_key").is_some()), ("insecure", insecure)];
        for (key, _) in says.into_iter().filter(|(_, is_there)| *is_there) {
            let message = format!(
                "no queue sends reports that this concerns; write for example queue = \"sffc\" for a direction, or \
                 leave `{key}` out"
            );
            root.refuse(key, message, problems);
        }
        return;
    };
    let name = placed.direction.name();
    if root.item("address").is_none() {
        let message = format!(
            "missing: the queue of `{name}` sends reports, which carry the gateway's address; write for \
             example address = \"192.0.2.1\", or reports = false for the queue"
        );
        problems.add(placed.fields.place_of("queue"), "address", message);
    }
    if root.item("report_key").is_none() && !insecure {
        let message = format!(
            "missing: the queue of `{name}` takes reports of others, which anybody can forge without a key; write the \
             same 16 to 64 random bytes in hexadecimal in all gateways, or reports = false for the queue, or insecure = \
             true"
        );
        problems.add(placed.fields.place_of("queue"), "report_key", message);
    } else if insecure && root.item("report_key").is_some() {
        root.refuse("insecure", "reports have a key; leave `insecure` or `report_key` out", problems);
    }
    let full =
        |placed: &&&PlacedDirection<'_>| placed.config.queue.params.report_trust() == Some(Trust::Full);
    if let Some(placed) = directions.iter().find(full).filter(|_| insecure) {
        let message = "with insecure = true everybody on the link could starve flows; write trust = \"bounded\", or a \
                       `report_key`";
        placed.fields.refuse("queue", message, problems);
    }
}

/// Refuses control without an address or without a token, and a token without control.
pub(super) fn control(root: &Fields<'_>, problems: &mut Problems) {
    if root.flag("control") != Some(true) {
        if root.item("control_token").is_some() && root.item("control").is_none() {
            let message =
                "it has no effect without `control`; write control = true, or control = false to keep it off";
            root.refuse("control_token", message, problems);
        }
        return;
    }
    let needs = [
        ("metrics", "where changes are taken; write for example metrics = \"127.0.0.1:9617\""),
        (
            "control_token",
            "the file with the token that changes need; write for example control_token = \"/etc/apportion/control-token\"",
        ),
    ];
    for (key, what) in needs.into_iter().filter(|(key, _)| root.item(key).is_none()) {
        let message = format!("missing: {what}, or leave `control` out");
        problems.add(root.place_of("control"), key, message);
    }
}

/// Refuses labels that are never written or never used, and tickets that have no effect.
pub(super) fn labels(
    directions: [&PlacedDirection<'_>; 2],
    rules: &[PlacedRule<'_>],
    problems: &mut Problems,
) {
    let treatments = directions.map(|placed| &placed.config.labels);
    for placed in directions {
        let issuing: Vec<_> = rules.iter().filter_map(|rule| issues(rule, placed.direction)).collect();
        tickets_under_labels(placed, &issuing, problems);
        own_tickets(placed, treatments.iter().all(|labels| labels.reads.is_any() && labels.writes), problems);
        let followed = rules
            .iter()
            .any(|rule| rule.config.is_for(placed.direction.other()) && rule.config.gives.follows_sink());
        sources_and_uses(placed, [!issuing.is_empty(), followed], problems);
        roles(placed, problems);
    }
    for rule in rules {
        if acknowledgements(directions, rule, problems) {
            tickets_unseen(directions, rule, problems);
        }
        let mut own = directions.iter().filter(|placed| rule.config.is_for(placed.direction));
        if rule.config.gives.label_limit.is_some() && !own.any(|placed| placed.config.labels.reads.is_any()) {
            let message = "no label of these packets is trusted; write labels = { reads = true } for their direction, or \
                           leave `label_limit` out";
            rule.fields.refuse("label_limit", message, problems);
        }
    }
}

/// The key by which the rule writes tickets on packets in this direction, if it does.
fn issues<'r, 'a>(rule: &'r PlacedRule<'a>, direction: Direction) -> Option<(&'r Fields<'a>, &'static str)> {
    let gives = &rule.config.gives;
    if gives.writes_tickets() && rule.config.is_for(direction) {
        return Some((&rule.fields, if gives.tickets.is_some() { "tickets" } else { "mark" }));
    }
    let returns = gives.ack_tickets.is_some() && rule.config.is_for(direction.other());
    returns.then_some((&rule.fields, "ack_tickets"))
}

/// Refuses tickets of a rule that neither a queue uses nor packets carry further.
fn tickets_unseen(directions: [&PlacedDirection<'_>; 2], rule: &PlacedRule<'_>, problems: &mut Problems) {
    let own = directions.iter().filter(|placed| rule.config.is_for(placed.direction));
    let seen = |placed: &&PlacedDirection<'_>| {
        placed.config.labels.writes || placed.config.queue.params.label_required() == Some(LabelKind::Tickets)
    };
    if !rule.config.gives.writes_tickets() || own.clone().any(seen) {
        return;
    }
    let key = if rule.config.gives.tickets.is_some() { "tickets" } else { "mark" };
    let names: Vec<_> = own.map(|placed| format!("`{}`", placed.direction.name())).collect();
    let message = format!(
        "these tickets have no effect: the queue of {} does not use them, and packets leave without labels; \
         write labels = {{ writes = true }} there, or a queue that uses tickets such as \"tred\", or leave \
         `{key}` out",
        names.join(" and of ")
    );
    rule.fields.refuse(key, message, problems);
}

/// Whether labels on acknowledgements pass in the other direction, as the rule needs; refuses the rule if not.
fn acknowledgements(
    directions: [&PlacedDirection<'_>; 2],
    rule: &PlacedRule<'_>,
    problems: &mut Problems,
) -> bool {
    let gives = &rule.config.gives;
    let back = directions.into_iter().filter(|placed| rule.config.is_for(placed.direction.other()));
    for placed in back {
        let (labels, name) = (&placed.config.labels, placed.direction.name());
        if gives.ack_tickets.is_some() && !labels.writes {
            let message = format!(
                "acknowledgements carry these tickets, but leave `{name}` without labels; write labels = {{ \
                 writes = true }} there, or leave `ack_tickets` out"
            );
            rule.fields.refuse("ack_tickets", message, problems);
            return false;
        }
        if gives.follows_sink() && !labels.reads.is_any() {
            let message = format!(
                "no tickets are issued to the flow; write for example tickets = 100, or labels = {{ reads = \
                 true }} for `{name}`, where acknowledgements carry them"
            );
            rule.fields.refuse("mark", message, problems);
            return false;
        }
    }
    true
}

/// A packet carries one label: if the queue writes rates or values, there is no room for tickets.
fn tickets_under_labels(
    placed: &PlacedDirection<'_>,
    issuing: &[(&Fields<'_>, &'static str)],
    problems: &mut Problems,
) {
    let Some(kind @ (LabelKind::Rate | LabelKind::Value)) = placed.config.queue.params.label_written() else {
        return;
    };
    let (what, queues) = what_is_written(kind);
    let name = placed.direction.name();
    let issued = [("tickets", placed.config.tickets), ("ack_tickets", placed.config.ack_tickets)];
    let own = issued.iter().filter(|(_, tickets)| tickets.is_some()).map(|(key, _)| (&placed.fields, *key));
    for (fields, key) in own.chain(issuing.iter().copied()) {
        let message = format!(
            "the queue of `{name}` writes {what} on packets, and a packet carries one label: its \
             tickets would be lost; give the direction another queue than {queues}, or leave `{key}` out"
        );
        fields.refuse(key, message, problems);
    }
}

/// Labels carry the tickets issued to a direction. `all`: both directions read and write labels.
fn own_tickets(placed: &PlacedDirection<'_>, all: bool, problems: &mut Problems) {
    let (config, fields) = (&placed.config, &placed.fields);
    if config.tickets.is_some() && config.ack_tickets.is_some() {
        let message =
            "with `ack_tickets`, acknowledgements carry the tickets of the direction; leave `tickets` out";
        fields.refuse("ack_tickets", message, problems);
    }
    if config.tickets.is_some() && !config.labels.writes {
        let message = "tickets are written on packets, but packets leave without labels; write labels = { \
                       writes = true }, or leave `tickets` out";
        fields.refuse("tickets", message, problems);
    }
    if config.ack_tickets.is_some() && !all {
        let message = "acknowledgements carry these tickets, and data is marked with them; write labels = { \
                       reads = true, writes = true } in both directions, or leave `ack_tickets` out";
        fields.refuse("ack_tickets", message, problems);
    }
}

/// Refuses labels without a source or without a use.
///
/// Arriving packets, rules or the queue supply labels. The queue, the next devices or, on acknowledgements, rules of
/// the other direction use them. `issued` and `followed`: rules write them and read them.
fn sources_and_uses(placed: &PlacedDirection<'_>, [issued, followed]: [bool; 2], problems: &mut Problems) {
    let (labels, queue) = (&placed.config.labels, &placed.config.queue.params);
    if queue.label_required() == Some(LabelKind::Tickets) && !labels.reads.is_any() && !issued {
        let message = "the queue uses tickets, but no packet has any; write labels = { reads = true } to \
                       trust those of arriving packets, or tickets = 100 in a rule";
        placed.fields.refuse("queue", message, problems);
    } else if labels.writes && !labels.reads.is_any() && !issued && queue.label_written().is_none() {
        let message = "no packet has a label that could stay: neither rules nor the queue write any, and \
                       those of arriving packets are not trusted; write reads = true, or writes = false";
        placed.fields.refuse("labels", message, problems);
    }
    if labels.reads.is_any() && !labels.writes && queue.label_required().is_none() && !followed {
        let message = "labels are trusted, but the queue uses none and none stay on packets; write writes = \
                       true to pass them on, or reads = false";
        placed.fields.refuse("labels", message, problems);
    }
}

/// Refuses a role of a queue with labels that contradicts the key `labels`.
fn roles(placed: &PlacedDirection<'_>, problems: &mut Problems) {
    let labels = &placed.config.labels;
    let Some((_, role, egress)) = placed.config.queue.params.label_role() else { return };
    if role == RouterRole::Core && !labels.reads.is_any() {
        let message = "with role = \"core\" the queue drops packets without a label, and no label is \
                       trusted; write labels = { reads = true }, or role = \"any\"";
        placed.fields.refuse("queue", message, problems);
    }
    if egress && labels.writes {
        let message = "the queue removes labels, since it has egress = true; write writes = false, or \
                       egress = false for the queue";
        placed.fields.refuse("labels", message, problems);
    }
}

/// Refuses a queue with classes if none takes the packets without a class by rules. `is_planned`: the classes
/// come from plans.
pub(super) fn classes(direction: &PlacedDirection<'_>, is_planned: bool, problems: &mut Problems) {
    let Some(classes) = direction.config.queue.params.classes() else { return };
    if classes.others.is_some() {
        return;
    }
    let message = if is_planned {
        "packets of addresses without a plan would be dropped; add a line `others` to the file of plans, with what they have at most"
    } else {
        "packets of flows whose customer is none of its classes would be dropped; write others = true for the class that takes them"
    };
    direction.fields.refuse("queue", message, problems);
}
