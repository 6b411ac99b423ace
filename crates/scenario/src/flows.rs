//! Flows: groups into members, sources and transports.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use apportion_core::mark::MarkerParams;
use apportion_core::packet::{Ecn, FillTarget, FlowClass, Protocol};
use apportion_core::param::{Range, Variant};
use apportion_core::system::Catalog;
use apportion_core::units::{Time, Weight};

use crate::customers;
use crate::expression::Pattern;
use crate::files::Files;
use crate::keys::{Amount, Fields, walk, walk_variant};
use crate::marking;
use crate::media_sources;
use crate::model::{Flow, FlowSettings, Link, Node, Start, Transport};
use crate::names::natural;
use crate::network::declared;
use crate::packet_size::{MAX_PACKET, UDP_HEADER};
use crate::problem::{Place, Problems, misnamed};
use crate::routing::Routing;
use crate::tables::{FLOW, MAX_FLOWS, SOURCES, START};
use crate::text::{Item, Table, Value, join};
use crate::transport;
use crate::written_source::{FromFile, WrittenSource};

mod paths;

/// Builds all flows of the table `flow`, in the order of their names.
pub(crate) struct Builder<'a> {
    pub nodes: &'a [Node],
    pub links: &'a [Link],
    pub routing: Routing<'a>,
    /// Whether flows take the first of several paths of equal cost.
    pub is_single: bool,
    pub files: &'a Files<'a>,
    /// The known markers and congestion controls.
    pub catalog: &'a Catalog,
    /// Defaults of groups.
    pub defaults: Option<&'a Fields<'a>>,
    /// Whether all nodes are known; without them groups are checked, but not their members.
    pub complete: bool,
    /// The end of the run, if it could be read.
    pub end: Option<Time>,
}

/// Settings that all members of a group share.
struct Group<'f> {
    name: &'f str,
    /// `None` for a flow that is not a group.
    count: Option<u64>,
    fields: Fields<'f>,
    from: Pattern,
    to: Pattern,
    path: Option<Vec<Pattern>>,
    return_path: Option<Vec<Pattern>>,
    /// TCP or QUIC; none for datagrams.
    transport: Option<Transport>,
    mark: Option<Arc<MarkerParams>>,
    source: WrittenSource<'f>,
}

impl<'a> Builder<'a> {
    pub(crate) fn flows(&mut self, table: &'a Table, problems: &mut Problems) -> Vec<Flow> {
        let mut flows: Vec<Flow> = Vec::new();
        let mut connections = 0;
        for (name, item) in &table.entries {
            let path = join("flow", name);
            let lacks = |key| {
                self.defaults.is_none_or(|defaults| defaults.item(key).is_none())
                    && item.as_table().is_some_and(|table| table.get(key).is_none())
            };
            if lacks("from")
                && lacks("to")
                && let Some(message) = misnamed("flow", name, declared(table))
            {
                problems.add(item.place, path, message);
                continue;
            }
            let Some(group) = self.group(name, item, &path, problems) else { continue };
            if !self.complete {
                continue;
            }
            let count = group.count.unwrap_or(1);
            if flows.len() as u64 + count > MAX_FLOWS {
                group.fields.refuse("count", format!("more than {MAX_FLOWS} flows in all"), problems);
                break;
            }
            flows.reserve(count as usize);
            for i in 1..=count {
                // Only the first wrong member is reported; the others would repeat it.
                let Some(flow) = self.member(&group, i, flows.last(), problems) else { break };
                connections += u64::from(flow.connections);
                if connections > MAX_FLOWS {
                    let message = format!("more than {MAX_FLOWS} connections in all");
                    group.fields.refuse("connections", message, problems);
                    return flows;
                }
                flows.push(flow);
            }
        }
        flows.sort_by(|a, b| natural(&a.name, &b.name));
        for pair in flows.windows(2).filter(|pair| pair[0].name == pair[1].name) {
            let name = &pair[0].name;
            let alone = table.entries.iter().find(|(entry, _)| entry == name);
            let place = alone.map_or(Place::Line(1), |(_, item)| item.place);
            problems.add(place, join("flow", name), "a group already has a flow of this name; rename one");
        }
        check_streams(&flows, table, problems);
        flows
    }

    /// Reads the settings common to all members; `None` if there can be no members.
    fn group(&self, name: &'a str, item: &'a Item, path: &str, problems: &mut Problems) -> Option<Group<'a>> {
        let fields = walk(item, path, FLOW, true, problems)?;
        let fields = match self.defaults {
            Some(defaults) => fields.or(defaults),
            None => fields,
        };
        // A flow with a stack cannot have marks: defaults of them are for other flows.
        let fields = match transport::key(&fields) {
            Some("transport") => fields.without_lent(&MARKS),
            _ => fields,
        };
        let count = fields.get("count", 1, problems);
        let from = pattern(&fields, "from", problems);
        let to = pattern(&fields, "to", problems);
        let via = patterns(&fields, "path", problems);
        let return_path = patterns(&fields, "return_path", problems);
        static GREEDY: LazyLock<Item> = LazyLock::new(|| Item::text("greedy", Place::Line(1)));
        let source = fields.item("source").unwrap_or(&GREEDY);
        let (kind, source) = walk_variant(source, &fields.path_of("source"), SOURCES, true, problems)?;
        let transport = transport::of_flow(self.catalog, &fields, kind.name, problems);
        self.check_transport(kind, &fields, &source, problems);
        if fields.text("ecn").is_some() {
            check_ecn(kind, &fields, transport.is_some(), problems);
        }
        let source = WrittenSource::read(kind, source, self.files, problems);
        let mark = match takes_marks(&fields, problems) {
            true => marking::of_flow(self.catalog, &fields, transport.is_some(), false, problems),
            false => None,
        };
        Some(Group {
            name,
            count,
            from: from?,
            to: to?,
            path: via,
            return_path,
            transport: transport.flatten(),
            mark,
            source,
            fields,
        })
    }

    fn check_transport(
        &self,
        kind: &Variant,
        fields: &Fields<'_>,
        source: &Fields<'_>,
        problems: &mut Problems,
    ) {
        match kind.name {
            name if name == "replay" || media_sources::sends_datagrams(name) => {
                let Some(key) = transport::key(fields) else { return };
                let message = format!("a source `{name}` sends datagrams; leave `{key}` out");
                fields.refuse(key, message, problems);
            }
            name @ ("web" | "probe") => {
                let Some(key) = transport::key(fields).filter(|key| *key != "tcp") else { return };
                let message =
                    format!("a source `{name}` opens TCP connections, as HTTP/1.1 does; leave `{key}` out");
                fields.refuse(key, message, problems);
            }
            "short_flows" if source.item("sizes").is_some() == source.item("mean_size").is_some() => {
                let message = "write either `mean_size` or `sizes`, for example mean_size = \"30kB\"";
                problems.add(source.place, &source.path, message);
            }
            "video" if source.item("file").is_some() == source.item("mean").is_some() => {
                let message = "write either `file` or `mean`, for example mean = \"1.5Mbit\"";
                problems.add(source.place, &source.path, message);
            }
            _ => (),
        }
    }

    /// The member with this number; `before` is the flow before it, which may have equal settings.
    fn member(
        &mut self,
        group: &Group<'_>,
        i: u64,
        before: Option<&Flow>,
        problems: &mut Problems,
    ) -> Option<Flow> {
        let fields = &group.fields;
        let from = self.node(&group.from, i, fields, "from", problems);
        let to = self.node(&group.to, i, fields, "to", problems);
        let (from, to) = (from?, to?);
        let named = |name: &str| group.count.map_or_else(|| name.to_owned(), |_| format!("{name}.{i}"));
        let name = named(group.name);
        if from == to {
            let node = &self.nodes[from.0 as usize].name;
            fields.refuse("to", format!("flow `{name}` leads from node `{node}` to itself"), problems);
            return None;
        }
        let path = self.path(&name, (from, to), group.path.as_deref(), i, (fields, "path"), problems);
        // Datagrams need no return path, except for reports of a receiver.
        let back = match group.return_path.as_deref() {
            None if group.transport.is_none() && group.source.kind.name != "call" => {
                Some(self.shortest(to, from).unwrap_or_default())
            }
            listed => self.path(&name, (to, from), listed, i, (fields, "return_path"), problems),
        };
        let connections = connections(group, i, problems);
        let source = group.source.at(i, problems);
        let transport = transport(group, i, problems);
        let start = start(fields, i, problems);
        let stop: Option<Time> = fields.get("stop", i, problems);
        let jitter = fields.get("jitter", i, problems);
        if let (Some(jitter), Some(end)) = (jitter, self.end)
            && Time::ZERO + jitter >= end
        {
            let message =
                format!("{jitter} is not shorter than the run, which ends at {end}; write a shorter time");
            fields.refuse("jitter", message, problems);
            return None;
        }
        let [tickets, ack_tickets] = ["tickets", "ack_tickets"].map(|key| fields.tickets(key, i, problems));
        if let (Some(stop), Some(Start::At(start) | Start::Between(_, start))) = (stop, start)
            && stop <= start
        {
            let message =
                format!("flow `{name}` stops at {stop}, but may start as late as {start}; stop it later");
            fields.refuse("stop", message, problems);
            return None;
        }
        if let (Some(source), Some(start), Some(end)) = (&source, start, self.end) {
            group.source.check_arrivals(source, start, stop.map_or(end, |stop| stop.min(end)), problems)?;
        }
        let settings = FlowSettings {
            group: self.group_name(group, &name),
            class: fields.text("class").map(class).unwrap_or_default(),
            target: target(fields, i, problems),
            weight: fields.get("weight", i, problems).and_then(Weight::new)?,
            rtt: fields.get("rtt", i, problems),
            stream: fields.text("stream").map(|stream| named(stream).into()),
            jitter,
            guarantee: fields.get("guarantee", i, problems)?,
            customer: customers::of_flow(fields, i, problems),
            tickets,
            ack_tickets,
            mark: group.mark.clone(),
            pinned: self.pinned(group, i),
            protocol: protocol(group),
            ecn: ecn(group),
            transport: transport?,
            connections: connections?,
            source: source?,
            stop,
        };
        let settings = match before.filter(|before| *before.settings == settings) {
            Some(before) => Arc::clone(&before.settings),
            None => Arc::new(settings),
        };
        Some(Flow { name, path: path?, back: back?, start: start?, settings })
    }

    /// A flow declared by itself as `g.3` belongs to the group `g`, like a member of a declared group.
    fn group_name(&self, group: &Group<'_>, name: &str) -> String {
        let alone = group.count.is_none();
        let counted = |(_, number): &(&str, &str)| number.bytes().all(|byte| byte.is_ascii_digit());
        match name.rsplit_once('.').filter(counted) {
            Some((group, _)) if alone => group.to_owned(),
            _ => group.name.to_owned(),
        }
    }
}

/// Refuses a stream that two flows draw from: their draws would be equal, not independent.
fn check_streams(flows: &[Flow], table: &Table, problems: &mut Problems) {
    if flows.iter().all(|flow| flow.stream.is_none()) {
        return;
    }
    let mut owners = BTreeMap::new();
    for flow in flows {
        let Some(other) = owners.insert(flow.stream(), flow) else { continue };
        // Names are unique, so one of the two has the key `stream`.
        let (flow, other) = if flow.stream.is_some() { (flow, other) } else { (other, flow) };
        let entry = table.entries.iter().find(|(name, _)| *name == flow.group || *name == flow.name);
        let message = format!(
            "flow `{}` would draw from the streams of flow `{}`; write a name that no flow has",
            flow.name, other.name
        );
        let place = entry.map_or(Place::Line(1), |(_, item)| item.place);
        problems.add(place, join(&join("flow", &flow.group), "stream"), message);
        return;
    }
}

fn pattern(fields: &Fields<'_>, key: &str, problems: &mut Problems) -> Option<Pattern> {
    Pattern::parse(fields.text(key)?).map_err(|message| fields.refuse(key, message, problems)).ok()
}

fn patterns(fields: &Fields<'_>, key: &str, problems: &mut Problems) -> Option<Vec<Pattern>> {
    let names = fields.names(key, problems).filter(|names| !names.is_empty())?;
    let all: Result<_, _> = names.into_iter().map(Pattern::parse).collect();
    all.map_err(|message| fields.refuse(key, message, problems)).ok()
}

fn start(fields: &Fields<'_>, i: u64, problems: &mut Problems) -> Option<Start> {
    let Some(item) = fields.item("start").filter(|item| item.as_table().is_some()) else {
        return fields.get("start", i, problems).map(Start::At);
    };
    let time = |item: &Item| Amount::one::<Time>(item, Range::FromZero, i);
    let table = walk(item, &fields.path_of("start"), START, true, problems)?;
    let ends = match &table.item("between")?.value {
        Value::List(ends) => &ends[..],
        _ => &[],
    };
    let between = match ends {
        [first, last] => time(first).and_then(|first| Ok((first, time(last)?))),
        _ => Err("write two times, for example [\"0s\", \"1s\"]".to_owned()),
    };
    let ordered = between.and_then(|(first, last)| {
        if first <= last { Ok(Start::Between(first, last)) } else { Err(format!("{first} is after {last}")) }
    });
    ordered.map_err(|message| table.refuse("between", message, problems)).ok()
}

fn connections(group: &Group<'_>, i: u64, problems: &mut Problems) -> Option<u32> {
    if group.fields.item("connections").is_none() {
        return Some(1);
    }
    let connections: u32 = group.fields.get("connections", i, problems)?;
    let kind = group.source.kind.name;
    if connections > 1 && ["short_flows", "web", "probe"].contains(&kind) {
        let message = format!(
            "a source `{kind}` opens its own connections, each a separate flow for queues; write connections = 1, or another \
             source"
        );
        group.fields.refuse("connections", message, problems);
        return None;
    }
    let kind = group.source.kind.name;
    if connections > 1 && media_sources::is_personal(kind) {
        let message =
            format!("a source `{kind}` is what one person sees or hears; write count = {connections}");
        group.fields.refuse("connections", message, problems);
        return None;
    }
    Some(connections)
}

fn transport(group: &Group<'_>, i: u64, problems: &mut Problems) -> Option<Transport> {
    if let Some(transport) = &group.transport {
        return Some(transport.clone());
    }
    let source = &group.source.fields;
    let packet = match &group.source.file {
        Some(FromFile::Packets(packets)) => packets.iter().map(|(_, size)| *size).max()?,
        _ if media_sources::sends_datagrams(group.source.kind.name) => {
            media_sources::packet(group.source.kind.name, source, i, problems)?
        }
        _ => source.get("packet", i, problems)?,
    };
    // Packets of a capture were checked one by one; a packet without payload is valid.
    if group.source.file.is_some() {
        return Some(Transport::Udp { packet, header: UDP_HEADER });
    }
    if packet <= UDP_HEADER || packet > MAX_PACKET {
        let message = match packet <= UDP_HEADER {
            true => format!("a datagram of {packet} has no room for its {UDP_HEADER} of headers"),
            false => format!("a datagram of {packet} is larger than the maximum, {MAX_PACKET}"),
        };
        source.refuse("packet", message, problems);
        return None;
    }
    Some(Transport::Udp { packet, header: UDP_HEADER })
}

/// The class called `name`, which is known to exist.
pub(crate) fn class(name: &str) -> FlowClass {
    if name == "real_rate" { FlowClass::RealRate } else { FlowClass::Greedy }
}

/// The target of a real-rate flow's queue, if the flow sets one.
pub(crate) fn target(fields: &Fields<'_>, i: u64, problems: &mut Problems) -> Option<FillTarget> {
    let size = fields.get("target", i, problems).map(FillTarget::Size);
    let delay = fields.get("target_delay", i, problems).map(FillTarget::Delay);
    if size.is_some() && delay.is_some() {
        fields.refuse("target", "`target_delay` says it already; leave one of them out", problems);
    }
    size.or(delay)
}

fn protocol(group: &Group<'_>) -> Protocol {
    match group.fields.text("protocol") {
        Some("tcp") => Protocol::Tcp,
        Some(_) => Protocol::Udp,
        None => match &group.transport {
            Some(Transport::Tcp(_)) => Protocol::Tcp,
            Some(Transport::Stack(params)) => params.stack().protocol(),
            Some(Transport::Quic(_) | Transport::Udp { .. }) | None => Protocol::Udp,
        },
    }
}

/// Keys of what the host writes on packets.
const MARKS: [&str; 3] = ["mark", "tickets", "ack_tickets"];

/// Whether packets can have marks. Refuses them for a stack from outside, which does not say what is
/// acknowledged.
fn takes_marks(fields: &Fields<'_>, problems: &mut Problems) -> bool {
    if transport::key(fields) != Some("transport") {
        return true;
    }
    for key in MARKS.into_iter().filter(|key| fields.item(key).is_some()) {
        let message = "the host writes marks by what is acknowledged, which a stack from outside does not say; leave \
                       it out, or write `tcp` or `quic`";
        fields.refuse(key, message, problems);
    }
    false
}

/// Refuses the key `ecn` for flows whose transport sets the field (`has_transport`), and media.
fn check_ecn(kind: &Variant, fields: &Fields<'_>, has_transport: bool, problems: &mut Problems) {
    let message = if transport::key(fields) == Some("transport") {
        "it is for datagrams; leave it out: a stack has parameters of its own (`apportion explain`)"
            .to_owned()
    } else if has_transport {
        let key = transport::key(fields).unwrap_or("tcp");
        format!(
            "it is for datagrams; write it as a parameter of `{key}`, for example {key} = {{ ecn = true }}"
        )
    } else if media_sources::sends_datagrams(kind.name) {
        format!("a source `{}` has datagrams of its own, which are not ECN-capable; leave it out", kind.name)
    } else {
        return;
    };
    fields.refuse("ecn", message, problems);
}

fn ecn(group: &Group<'_>) -> Ecn {
    match group.fields.text("ecn") {
        Some("ect0") => Ecn::Ect0,
        Some("ect1") => Ecn::Ect1,
        _ => Ecn::NotEct,
    }
}
