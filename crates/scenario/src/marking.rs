//! Markers of flows and exchanges of links in scenario files.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use apportion_core::catalog::{Role, Selection};
use apportion_core::exchange::currency::{self, ExchangeParams};
use apportion_core::mark::{MarkerParams, ticket};

use crate::keys::Fields;
use crate::model::{Change, Flow, Link, Setting};
use crate::problem::{Place, Problems};
use crate::selection::Part;
use crate::text::{Item, Table, join};

/// The exchange of a link that nobody gave settings.
///
/// # Panics
/// When the catalogue's own defaults are refused: a slip in the program that every test finds.
pub(crate) fn default_exchange() -> Arc<ExchangeParams> {
    static DEFAULT: LazyLock<Arc<ExchangeParams>> = LazyLock::new(|| {
        let built = Selection::of(Role::Exchange, currency::ENTRY.name)
            .and_then(|selection| ExchangeParams::from_args(&selection.args));
        match built {
            Ok(params) => Arc::new(params),
            Err(error) => unreachable!("the catalogue refuses its own exchange: {error}"),
        }
    });
    Arc::clone(&DEFAULT)
}

/// Reads an exchange; every slip goes to `problems`.
pub(crate) fn exchange(item: &Item, path: &str, problems: &mut Problems) -> Option<Arc<ExchangeParams>> {
    let build = |selection: &Selection| ExchangeParams::from_args(&selection.args);
    Part::Exchange.read(item, path, build, problems).map(Arc::new)
}

/// Reads a marker; every slip goes to `problems`.
pub(crate) fn marker(item: &Item, path: &str, problems: &mut Problems) -> Option<Arc<MarkerParams>> {
    Part::Marker.read(item, path, MarkerParams::from_args, problems).map(Arc::new)
}

/// Refuses flows with tickets over queues that write labels of another kind: a packet carries one label.
pub(crate) fn check_labels(
    links: &[Link],
    flows: &[Flow],
    changes: &[Change],
    table: &Table,
    problems: &mut Problems,
) {
    let replaced = |at: usize| {
        changes.iter().find_map(|change| match &change.to {
            Setting::LinkQueue(id, queue) if id.index() == at => queue.writes(),
            _ => None,
        })
    };
    let writes: Vec<bool> =
        (0..).zip(links).map(|(at, link)| link.queue.writes().or_else(|| replaced(at)).is_some()).collect();
    let mut told = BTreeSet::new();
    for flow in flows.iter().filter(|flow| flow.tickets.is_some() || flow.ack_tickets.is_some()) {
        let back = flow.back.iter().filter(|_| flow.ack_tickets.is_some());
        let Some(id) = flow.path.iter().chain(back).find(|id| writes[id.index()]) else { continue };
        if !told.insert(&flow.group) {
            continue;
        }
        let key = if flow.tickets.is_some() { "tickets" } else { "ack_tickets" };
        let place = table.get(&flow.group).map_or(Place::Line(1), |item| item.place);
        let message = format!(
            "the queue of link `{}` writes the rate of flows on packets, and a packet carries one label: its \
             tickets would be lost; give the link another queue than csfq, or leave `{key}` out",
            links[id.index()].name
        );
        problems.add(place, join(&join("flow", &flow.group), key), message);
    }
}

/// The marker of the flow that `fields` describe, which has `tcp` or not; none if nothing is marked.
pub(crate) fn of_flow(fields: &Fields<'_>, tcp: bool, problems: &mut Problems) -> Option<Arc<MarkerParams>> {
    let issued = ["tickets", "ack_tickets"].map(|key| fields.item(key).is_some());
    if issued == [true, true] {
        let message = "`tickets` are issued to the source, `ack_tickets` to the sink, which then decides for \
                       both; leave one of them out";
        fields.refuse("ack_tickets", message, problems);
    }
    if issued[1] && !tcp {
        let message = "only a flow with TCP has acknowledgements to carry them; write for example \
                       tcp = \"rfc\", or issue `tickets` to the source";
        fields.refuse("ack_tickets", message, problems);
    }
    let issued = issued.contains(&true);
    static TICKETS: LazyLock<Item> = LazyLock::new(|| Item::text(ticket::ENTRY.name, Place::Line(1)));
    let item = fields.item("mark").or_else(|| issued.then_some(&*TICKETS))?;
    let marker = marker(item, &fields.path_of("mark"), problems)?;
    let takes_tickets = matches!(*marker, MarkerParams::Tickets(_));
    if takes_tickets && !issued {
        let message = "what is the flow issued? write for example tickets = 100, or ack_tickets = 100 for a \
                       sink that decides";
        fields.refuse("mark", message, problems);
    }
    if issued && !takes_tickets {
        let message = "only the marker `tickets` marks what a flow is issued; write mark = \"tickets\", or \
                       leave `tickets` and `ack_tickets` out";
        fields.refuse("mark", message, problems);
    }
    Some(marker)
}
