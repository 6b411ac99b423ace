//! Labels on packets along the paths of flows: which queues write, require and remove them.

use std::collections::BTreeSet;

use apportion_core::aqm::csfq::RouterRole;
use apportion_core::mark::MarkerParams;
use apportion_core::packet::LabelKind;
use apportion_core::system::{DisciplineKind, DisciplineParams};
use apportion_core::units::Time;

use crate::keys::Fields;
use crate::model::{Change, Flow, Link, LinkId, Setting};
use crate::problem::{Place, Problems};
use crate::text::join;

/// Refuses flows with tickets over queues that write labels of another kind: a packet carries one label.
pub(crate) fn check_tickets(
    links: &[Link],
    flows: &[Flow],
    changes: &[Change],
    root: &Fields<'_>,
    problems: &mut Problems,
) {
    let replaced = |at: usize| {
        changes.iter().find_map(|change| match &change.to {
            Setting::LinkQueue(id, queue) if id.index() == at => queue.label_written(),
            _ => None,
        })
    };
    let writes: Vec<Option<LabelKind>> =
        (0..).zip(links).map(|(at, link)| link.queue.label_written().or_else(|| replaced(at))).collect();
    let mut reported = BTreeSet::new();
    for flow in flows.iter().filter(|flow| flow.tickets.is_some() || flow.ack_tickets.is_some()) {
        let back = flow.back.all(links).filter(|_| flow.ack_tickets.is_some());
        let mut written_at = flow.path.all(links).chain(back).map(|id| (id, writes[id.index()]));
        let Some((id, kind)) = written_at.find_map(|(id, kind)| Some((id, kind?))) else { continue };
        if !reported.insert(&flow.group) {
            continue;
        }
        let key = if flow.tickets.is_some() { "tickets" } else { "ack_tickets" };
        let (place, path) = written(root, flow);
        let (what, queues) = what_is_written(kind);
        let message = format!(
            "the queue of link `{}` writes {what} on packets, and a packet carries one label: its \
             tickets would be lost; give the link another queue than {queues}, or leave `{key}` out",
            links[id.index()].name,
        );
        problems.add(place, join(&path, key), message);
    }
}

/// Refuses flows whose packets reach a core without a label, because it drops every one of them.
/// Acknowledgements are packets as well. A queue that replaces another counts from then on.
pub(crate) fn check_roles(
    links: &[Link],
    flows: &[Flow],
    changes: &[Change],
    root: &Fields<'_>,
    problems: &mut Problems,
) {
    let mut routers: Vec<Router> = links.iter().map(|link| labels_of(&link.queue)).collect();
    let mut reported = BTreeSet::new();
    let mut check = |at: Option<Time>, routers: &[Router]| {
        if !routers.iter().flatten().any(|(_, role, _)| *role == RouterRole::Core) {
            return;
        }
        for flow in flows {
            let acknowledged = flow.transport.is_acknowledged();
            let marks_value = matches!(flow.mark.as_deref(), Some(MarkerParams::Value(_)));
            let marked = marks_value.then_some(Some(LabelKind::Value));
            let back = acknowledged.then_some(("acknowledgements", &flow.back, None));
            for (what, path, marked) in [("packets", &flow.path, marked)].into_iter().chain(back) {
                let Some((core, egress)) = unlabelled(path, marked, routers) else { continue };
                if reported.insert((&flow.group, what, core)) {
                    let name = |id: LinkId| links[id.index()].name.as_str();
                    let kind_of = |id: LinkId| routers[id.index()].and_then(|router| router.0);
                    let (place, path) = written(root, flow);
                    problems.add(
                        place,
                        path,
                        role_message(at, what, (kind_of(core), name(core)), egress.map(name)),
                    );
                }
            }
        }
    };
    check(None, &routers);
    for instant in changes.chunk_by(|a, b| a.at == b.at) {
        let mut replaced = None;
        for change in instant {
            if let Setting::LinkQueue(id, queue) = &change.to {
                routers[id.index()] = labels_of(queue);
                replaced = Some(change.at);
            }
        }
        if replaced.is_some() {
            check(replaced, &routers);
        }
    }
}

/// What a queue writes on packets, and the queues that do so.
pub(crate) const fn what_is_written(kind: LabelKind) -> (&'static str, &'static str) {
    match kind {
        LabelKind::Value => ("values", "ppv and pvpie"),
        LabelKind::Rate => ("the rate of flows", "csfq"),
        LabelKind::Tickets | LabelKind::AckTickets => ("tickets", "tred"),
    }
}

/// A queue's treatment of labels, if any: their kind, if known, its role, and whether it removes them.
type Router = Option<(Option<LabelKind>, RouterRole, bool)>;

/// The treatment of labels by a queue. An external discipline's labels are unknown: it may be the edge.
fn labels_of(queue: &DisciplineParams) -> Router {
    let is_unknown = matches!(queue.kind, DisciplineKind::Custom(_));
    let known = queue.label_role().map(|(kind, role, egress)| (Some(kind), role, egress));
    known.or_else(|| is_unknown.then_some((None, RouterRole::Any, false)))
}

/// The first core on `path` that packets reach without its label, and the egress that removed it, if one did.
/// `labelled`: the label that they start with, if any, by its kind.
fn unlabelled(
    path: &[LinkId],
    mut labelled: Option<Option<LabelKind>>,
    routers: &[Router],
) -> Option<(LinkId, Option<LinkId>)> {
    let mut taken_off = None;
    for &id in path {
        let Some((kind, role, egress)) = routers[id.index()] else { continue };
        let fits = labelled.is_some_and(|written| written.is_none() || kind.is_none() || written == kind);
        if role == RouterRole::Core && !fits {
            return Some((id, taken_off));
        }
        labelled = (!egress).then_some(kind);
        taken_off = egress.then_some(id);
    }
    None
}

fn role_message(
    at: Option<Time>,
    what: &str,
    (kind, core): (Option<LabelKind>, &str),
    egress: Option<&str>,
) -> String {
    let queues = if kind == Some(LabelKind::Value) { "ppv or pvpie" } else { "csfq or mcsfq" };
    let when = at.map(|at| format!("from {at} on, ")).unwrap_or_default();
    let (why, mend) = match egress {
        Some(egress) => (
            format!("as link `{egress}` removes labels, "),
            format!("write egress = false for the queue of `{egress}`"),
        ),
        None => (String::new(), format!("give a link before it a queue {queues} that labels")),
    };
    format!(
        "{when}{why}its {what} reach link `{core}` without a label, and the queue there, with role = \
         \"core\", drops unlabelled packets; {mend}, or write role = \"any\" for that of `{core}`"
    )
}

/// Place at which a flow was written: in its own table, or in that of its group.
pub(crate) fn written(root: &Fields<'_>, flow: &Flow) -> (Place, String) {
    let table = root.item("flow").and_then(|item| item.as_table());
    let mut found = [&flow.name, &flow.group].into_iter().filter_map(|name| Some((table?.get(name)?, name)));
    found.next().map_or_else(
        || (Place::Line(1), join("flow", &flow.group)),
        |(item, name)| (item.place, join("flow", name)),
    )
}
