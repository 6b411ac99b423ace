//! A network under construction: links as drafts that may still be changed by name, then the sorted nodes and
//! links of the model.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use apportion_core::delivery_trace::DeliveryTrace;
use apportion_core::mark::currency_exchange::ExchangeParams;
use apportion_core::param::Kind;
use apportion_core::system::Catalog;
use apportion_core::units::{Rate, Span, TicketRate};

use crate::aggregate::Aggregate;
use crate::defaults::Defaults;
use crate::files::Files;
use crate::keys::{Fields, walk};
use crate::link_groups::{self, Member, Written};
use crate::link_trace::{TraceColumns, delivery_trace};
use crate::marking;
use crate::model::{GilbertElliott, Jitter, JitterDistribution, Link, LinkGroup, LinkId, Loss, Node, NodeId};
use crate::names::natural;
use crate::problem::{Place, Problems, misnamed};
use crate::queue::{self, Queue};
use crate::tables::{BACK, LINK, LOST, MAX_LINKS};
use crate::text::{Item, Table, Value, join};

/// A network whose links can still be changed.
#[derive(Debug, Default)]
pub(crate) struct Network {
    nodes: Vec<String>,
    links: Vec<Draft>,
    /// Notes on files whose content was not read as written.
    pub notes: Vec<String>,
}

/// A draft of a link.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub name: String,
    from: usize,
    to: usize,
    spec: Spec,
    lost: Vec<Lost>,
    /// Index of the other direction, in the order of creation.
    other_way: Option<usize>,
    /// Number of equal links.
    count: u64,
    place: Place,
}

/// The settings of one direction of a link.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    pub rate: Rate,
    /// The key that sets it for all access links of a topology.
    pub rate_key: Option<&'static str>,
    pub trace: Option<DeliveryTrace>,
    pub delay: Span,
    pub jitter: Option<Jitter>,
    pub aggregate: Option<Aggregate>,
    pub queue: Rc<Queue>,
    pub loss: Loss,
    pub tickets: Option<TicketRate>,
    pub ack_tickets: Option<TicketRate>,
    pub exchange: Arc<ExchangeParams>,
    pub watch: bool,
    pub pcap: bool,
}

impl Spec {
    /// Replaces a link whose keys were refused, so that checking can continue.
    pub(crate) fn stand_in(catalog: &Catalog) -> Self {
        Self {
            rate: Rate::from_mbit(1),
            rate_key: None,
            trace: None,
            delay: Span::ZERO,
            jitter: None,
            aggregate: None,
            queue: queue::deep(),
            loss: Loss::NONE,
            tickets: None,
            ack_tickets: None,
            exchange: marking::default_exchange(catalog),
            watch: false,
            pcap: false,
        }
    }

    /// The other direction by default: the same rate and delay, with a queue that does not drop
    /// acknowledgements of data. Tags have the same width: it exchanges, on acknowledgements, the tickets
    /// issued to this one.
    pub(crate) fn other_way(&self) -> Self {
        Self {
            queue: queue::deep(),
            jitter: None,
            aggregate: None,
            loss: Loss::NONE,
            tickets: None,
            ack_tickets: None,
            watch: false,
            pcap: false,
            ..self.clone()
        }
    }

    /// Applies the keys in `fields`, for member `i`.
    pub(crate) fn change(
        &mut self,
        fields: &Fields<'_>,
        i: u64,
        catalog: &Catalog,
        files: &Files<'_>,
        problems: &mut Problems,
    ) {
        if let Some(rate) = fields.get("rate", i, problems) {
            (self.rate, self.rate_key, self.trace) = (rate, None, None);
        }
        if let Some(trace) = trace(fields, files, problems) {
            (self.rate, self.rate_key, self.trace) = (trace.mean(), None, Some(trace));
        }
        if let Some(delay) = fields.get("delay", i, problems) {
            self.delay = delay;
        }
        if let Some(jitter) = jitter(fields, i, problems) {
            self.jitter = (jitter.max > Span::ZERO).then_some(jitter);
        }
        if let Some(item) = fields.item("aggregate") {
            let table = match item.value {
                Value::Flag(false) => None,
                _ => walk(item, &fields.path_of("aggregate"), Aggregate::PARAMS, false, problems),
            };
            self.aggregate = table.and_then(|table| Aggregate::read(&table, problems));
        }
        if let Some(loss) = fields.get("loss", i, problems) {
            self.loss = Loss::Chance(loss);
        }
        if let Some(bursts) = bursts(fields, i, problems) {
            self.loss = Loss::GilbertElliott(bursts);
        }
        if let Some(tickets) = fields.tickets("tickets", i, problems) {
            self.tickets = Some(tickets);
        }
        if let Some(tickets) = fields.tickets("ack_tickets", i, problems) {
            self.ack_tickets = Some(tickets);
        }
        if let Some(item) = fields.item("exchange")
            && let Some(exchange) = marking::exchange(catalog, item, &fields.path_of("exchange"), problems)
        {
            self.exchange = exchange;
        }
        if let Some(watch) = fields.flag("watch") {
            self.watch = watch;
        }
        if let Some(pcap) = fields.flag("pcap") {
            self.pcap = pcap;
        }
        if let Some(item) = fields.item("queue")
            && let Some(queue) = queue::read(catalog, item, &fields.path_of("queue"), problems)
        {
            self.queue = queue;
        }
    }
}

/// Listed losses whose flow is not looked up yet.
#[derive(Clone, Debug)]
pub(crate) struct Lost {
    pub flow: String,
    pub packets: Vec<u64>,
    pub path: String,
    pub place: Place,
}

/// Settings of a link that refer to flows, which are not known yet.
pub(crate) struct OfFlows {
    pub lost: Vec<Lost>,
    pub queue: Rc<Queue>,
}

/// The finished network.
pub(crate) struct Finished {
    pub nodes: Vec<Node>,
    pub links: Vec<Link>,
    /// Settings of each link that refer to flows.
    pub of_flows: Vec<OfFlows>,
    pub notes: Vec<String>,
}

impl Network {
    /// Adds a node, unless it exists.
    pub(crate) fn node(&mut self, name: impl Into<String>) -> usize {
        self.nodes.push(name.into());
        self.nodes.len() - 1
    }

    pub(crate) fn one_way(&mut self, name: String, (from, to): (usize, usize), spec: Spec, place: Place) {
        self.links.push(Draft { name, from, to, spec, lost: Vec::new(), other_way: None, count: 1, place });
    }

    /// Adds the link `name` and its other direction `name.back`.
    pub(crate) fn two_way(
        &mut self,
        name: String,
        ends: (usize, usize),
        there: Spec,
        back: Spec,
        place: Place,
    ) {
        self.one_way(name, ends, there, place);
        self.add_other_way(self.links.len() - 1, back);
    }

    /// Adds the other direction of the link at `at`.
    fn add_other_way(&mut self, at: usize, spec: Spec) -> usize {
        let other = self.links.len();
        let Draft { name, from, to, place, .. } = &self.links[at];
        self.one_way(format!("{name}.back"), (*to, *from), spec, *place);
        (self.links[at].other_way, self.links[other].other_way) = (Some(other), Some(at));
        other
    }

    /// Adds and changes links by the tables under `link`.
    pub(crate) fn links(&mut self, table: &Table, defaults: &Defaults<'_>, problems: &mut Problems) {
        let known = self.links.iter().enumerate().map(|(at, link)| (link.name.clone(), at));
        let known: BTreeMap<_, _> = known.collect();
        let mut nodes: BTreeMap<_, _> =
            self.nodes.iter().enumerate().map(|(at, node)| (node.clone(), at)).collect();
        for (name, item) in &table.entries {
            let path = join("link", name);
            let Some(fields) = walk(item, &path, LINK, false, problems) else { continue };
            let ready = known.get(name).copied();
            let has_ends = fields.item("from").is_some() || fields.item("to").is_some();
            if ready.is_none() && !has_ends {
                let names = known.keys().map(String::as_str).chain(declared(table));
                if let Some(message) = misnamed("link", name, names) {
                    problems.add(item.place, path, message);
                    continue;
                }
            }
            let at = match ready {
                Some(at) => {
                    for end in ["from", "to"].into_iter().filter(|end| fields.item(end).is_some()) {
                        let message = format!("the topology defines the ends of `{name}`; leave `{end}` out");
                        fields.refuse(end, message, problems);
                    }
                    at
                }
                None => self.declare(name, &fields, defaults, &mut nodes, problems),
            };
            self.change_both(at, &fields, defaults, problems);
            if ready.is_none() || fields.item("back").is_some() {
                self.other_way(at, &fields, defaults, problems);
            }
            if let Some(count) = fields.get("count", 1, problems) {
                self.links[at].count = count;
                if let Some(other) = self.links[at].other_way {
                    self.links[other].count = count;
                }
            }
        }
    }

    /// Adds a link that no topology declares.
    fn declare(
        &mut self,
        name: &str,
        fields: &Fields<'_>,
        defaults: &Defaults<'_>,
        nodes: &mut BTreeMap<String, usize>,
        problems: &mut Problems,
    ) -> usize {
        for (key, example) in
            [("from", "\"left\""), ("to", "\"right\""), ("rate", "\"10Mbit\""), ("delay", "\"10ms\"")]
        {
            if fields.item(key).is_none() && !defaults.has(key) {
                fields.refuse(key, format!("missing; write for example {key} = {example}"), problems);
            }
        }
        let (from, to) = (fields.text("from").unwrap_or(""), fields.text("to").unwrap_or(""));
        if from == to && !from.is_empty() {
            fields.refuse("to", format!("the link leads from node `{from}` to itself"), problems);
        }
        let mut find = |node: &str| {
            *nodes.entry(node.to_owned()).or_insert_with(|| {
                self.nodes.push(node.to_owned());
                self.nodes.len() - 1
            })
        };
        let ends = (find(from), find(to));
        self.one_way(name.to_owned(), ends, defaults.link(queue::default(&defaults.catalog)), fields.place);
        self.links.len() - 1
    }

    /// Changes the link at `at`, and its other direction, `x.back`, in the keys that both share: rate, delay
    /// and exchange, unless the topology sets them apart.
    fn change_both(
        &mut self,
        at: usize,
        fields: &Fields<'_>,
        defaults: &Defaults<'_>,
        problems: &mut Problems,
    ) {
        let before = self.links[at].spec.clone();
        self.change(at, fields, defaults, problems);
        // `x` was created before its other direction; a change that names `x.back` applies to that alone.
        let Some(other) = self.links[at].other_way.filter(|other| *other > at) else { return };
        let spec = self.links[at].spec.clone();
        let back = &mut self.links[other].spec;
        if (back.rate, &back.trace) == (before.rate, &before.trace) {
            (back.rate, back.rate_key, back.trace) = (spec.rate, spec.rate_key, spec.trace);
        }
        if back.delay == before.delay {
            back.delay = spec.delay;
        }
        if back.exchange == before.exchange {
            back.exchange = spec.exchange;
        }
    }

    fn change(&mut self, at: usize, fields: &Fields<'_>, defaults: &Defaults<'_>, problems: &mut Problems) {
        let link = &mut self.links[at];
        link.spec.change(fields, 1, &defaults.catalog, defaults.files, problems);
        link.lost.extend(listed_losses(fields, problems));
    }

    /// Adds, changes or removes the other direction of the link at `at`.
    fn other_way(
        &mut self,
        at: usize,
        fields: &Fields<'_>,
        defaults: &Defaults<'_>,
        problems: &mut Problems,
    ) {
        let back = fields.item("back");
        let known = self.links[at].other_way;
        let one_way = back.is_some_and(Item::is_false);
        if one_way && known.is_some() {
            let message = "a topology's link has two directions; describe the network with `link` alone";
            return fields.refuse("back", message, problems);
        }
        if one_way {
            return;
        }
        let other = known.unwrap_or_else(|| {
            let spec = defaults.other_way(&self.links[at].spec, problems);
            self.add_other_way(at, spec)
        });
        if let Some(item) = back
            && let Some(fields) = walk(item, &fields.path_of("back"), BACK, false, problems)
        {
            self.change(other, &fields, defaults, problems);
        }
    }

    /// Sorts everything by name.
    pub(crate) fn finish(mut self, problems: &mut Problems) -> Finished {
        let count = self.links.iter().fold(0_u64, |sum, link| sum.saturating_add(link.count));
        if count > MAX_LINKS {
            let message = format!("{count} one-way links; at most {MAX_LINKS} are possible");
            problems.add(self.links[0].place, "link", message);
            self.links.truncate(MAX_LINKS as usize);
            self.links.iter_mut().for_each(|link| link.count = 1);
        }
        self.links.iter().for_each(|link| link.check_tickets(problems));
        let (drafts, groups) = members(std::mem::take(&mut self.links));
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        order.sort_by(|a, b| natural(&self.nodes[*a], &self.nodes[*b]));
        let mut ids = vec![NodeId(0); order.len()];
        for (new, old) in (0..).zip(&order) {
            ids[*old] = NodeId(new);
        }
        let nodes =
            order.into_iter().map(|old| Node { name: std::mem::take(&mut self.nodes[old]) }).collect();

        let mut links: Vec<(usize, Draft)> = drafts.into_iter().enumerate().collect();
        // The list consists of two sorted runs, so this is close to linear.
        links.sort_by_key(|(_, link)| link.name.ends_with(".back"));
        links.sort_by(|(_, a), (_, b)| natural(&a.name, &b.name));
        let mut link_ids = vec![LinkId(0); links.len()];
        for (new, (old, _)) in (0..).zip(&links) {
            link_ids[*old] = LinkId(new);
        }
        for pair in links.windows(2).filter(|pair| pair[0].1.name == pair[1].1.name) {
            let place = pair[0].1.place.max(pair[1].1.place);
            let path = join("link", &pair[1].1.name);
            problems.add(place, path, "there are two links of this name; rename one");
        }
        let (mut links, of_flows): (Vec<Link>, _) =
            links.into_iter().map(|(_, draft)| draft.finish(&ids, &link_ids)).unzip();
        for (name, places) in groups {
            let members: Vec<LinkId> = places.map(|place| link_ids[place]).collect();
            let group = Arc::new(LinkGroup { name, members });
            for member in &group.members {
                links[member.index()].group = Some(Arc::clone(&group));
            }
        }
        Finished { nodes, links, of_flows, notes: self.notes }
    }
}

/// Copies of each draft by its count, and the indices of the members of groups, by name.
fn members(drafts: Vec<Draft>) -> (Vec<Draft>, Vec<(String, Range<usize>)>) {
    if drafts.iter().all(|draft| draft.count == 1) {
        return (drafts, Vec::new());
    }
    let written = drafts.iter().map(|Draft { name, count, other_way, .. }| Written {
        name,
        count: *count,
        other_way: *other_way,
    });
    let (members, groups) = link_groups::members(&written.collect::<Vec<_>>());
    let draft = |Member { of, name, other_way }| Draft { name, other_way, ..drafts[of].clone() };
    (members.into_iter().map(draft).collect(), groups)
}

impl Draft {
    fn check_tickets(&self, problems: &mut Problems) {
        if self.spec.ack_tickets.is_none() {
            return;
        }
        let path = join(&join("link", &self.name), "ack_tickets");
        if self.other_way.is_none() {
            let message = "acknowledgements carry these tickets over the reverse direction, which the link \
                           does not have; leave `back = false` out, or issue `tickets`";
            problems.add(self.place, &path, message);
        }
        if self.count > 1 {
            let message = "acknowledgements carry these tickets, and may take another link of the group; leave `count` out";
            problems.add(self.place, &path, message);
        }
        if self.spec.tickets.is_some() {
            let message =
                "with `ack_tickets`, acknowledgements carry the tickets of the link; leave `tickets` out";
            problems.add(self.place, path, message);
        }
    }

    fn finish(self, ids: &[NodeId], link_ids: &[LinkId]) -> (Link, OfFlows) {
        let Spec {
            rate,
            rate_key,
            trace,
            delay,
            jitter,
            aggregate,
            queue,
            loss,
            tickets,
            ack_tickets,
            exchange,
            watch,
            pcap,
        } = self.spec;
        let link = Link {
            name: self.name,
            from: ids[self.from],
            to: ids[self.to],
            group: None,
            rate,
            rate_key,
            trace,
            delay,
            jitter,
            aggregate,
            queue: queue.params.clone(),
            loss,
            lost: Vec::new(),
            watched: watch,
            pcap,
            // Links beyond the maximum do not exist; the scenario is refused then.
            other_way: self.other_way.and_then(|other| link_ids.get(other)).copied(),
            tickets,
            ack_tickets,
            exchange,
        };
        (link, OfFlows { lost: self.lost, queue })
    }
}

/// The names of tables that declare where a link begins, all except mistakes.
pub(crate) fn declared(table: &Table) -> impl Iterator<Item = &str> + Clone {
    let has_from = |item: &Item| item.as_table().is_some_and(|table| table.get("from").is_some());
    table.entries.iter().filter(move |(_, item)| has_from(item)).map(|(name, _)| name.as_str())
}

/// The trace that the table under `rate` names.
fn trace(fields: &Fields<'_>, files: &Files<'_>, problems: &mut Problems) -> Option<DeliveryTrace> {
    let table = inner(fields, "rate", problems)?;
    let path = Path::new(table.text("trace")?);
    // An empty text was refused before.
    let columns = table.text("columns");
    if columns.is_some_and(str::is_empty) {
        return None;
    }
    let columns = columns.map(str::parse::<TraceColumns>).transpose();
    let columns = columns.map_err(|error| table.refuse("columns", error.to_string(), problems)).ok()?;
    let read = files.text(path).map_err(|error| error.to_string()).and_then(|text| {
        delivery_trace(&text, columns.as_ref()).map_err(|error| format!("`{}`: {error}", path.display()))
    });
    read.map_err(|message| table.refuse("trace", message, problems)).ok()
}

/// The model of losses that the table under `loss` describes.
fn bursts(fields: &Fields<'_>, i: u64, problems: &mut Problems) -> Option<GilbertElliott> {
    let table = inner(fields, "loss", problems)?;
    table.read(GilbertElliott::from_args, i, problems)
}

/// The jitter: a maximum, or the table under `jitter`. Zero takes a default back.
fn jitter(fields: &Fields<'_>, i: u64, problems: &mut Problems) -> Option<Jitter> {
    if let Some(max) = fields.get("jitter", i, problems) {
        return Some(Jitter { max, distribution: JitterDistribution::Uniform, reorder: false });
    }
    let table = inner(fields, "jitter", problems)?;
    table.read(Jitter::from_args, i, problems)
}

/// The table under `key`, if the value is a table.
fn inner<'a>(fields: &Fields<'a>, key: &str, problems: &mut Problems) -> Option<Fields<'a>> {
    let Kind::OrTable(_, keys) = fields.kind(key)? else { return None };
    let item = fields.item(key).filter(|item| item.as_table().is_some())?;
    walk(item, &fields.path_of(key), keys, false, problems)
}

fn listed_losses(fields: &Fields<'_>, problems: &mut Problems) -> Vec<Lost> {
    let Some(item) = fields.item("lost") else { return Vec::new() };
    let Value::List(items) = &item.value else {
        let message = format!("`{}` is {}, not a list of tables", item.plain(), item.what());
        fields.refuse("lost", message, problems);
        return Vec::new();
    };
    let mut all = Vec::new();
    for (at, item) in (1..).zip(items) {
        let path = format!("{}[{at}]", fields.path_of("lost"));
        let Some(entry) = walk(item, &path, LOST, false, problems) else { continue };
        let Some(flow) = entry.text("flow") else { continue };
        let packets = ordinals(&entry, problems);
        all.push(Lost {
            flow: flow.to_owned(),
            packets,
            path: entry.path_of("flow"),
            place: entry.place_of("flow"),
        });
    }
    all
}

/// The ordinals under `packets`, ascending.
fn ordinals(fields: &Fields<'_>, problems: &mut Problems) -> Vec<u64> {
    let Some(item) = fields.item("packets") else { return Vec::new() };
    let ordinal = |item: &Item| match item.value {
        Value::Integer(n) if n > 0 => Some(n.unsigned_abs()),
        _ => None,
    };
    let ordinals: Option<Vec<u64>> = match &item.value {
        Value::List(items) => items.iter().map(ordinal).collect(),
        _ => None,
    };
    let Some(mut ordinals) = ordinals.filter(|ordinals| !ordinals.is_empty()) else {
        let message =
            format!("`{}` is not a list of whole numbers from 1; write for example [20, 22]", item.plain());
        fields.refuse("packets", message, problems);
        return Vec::new();
    };
    ordinals.sort_unstable();
    ordinals.dedup();
    ordinals
}
