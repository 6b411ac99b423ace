//! Markers of flows and exchanges of links in scenario files.

use std::sync::{Arc, LazyLock};

use apportion_core::mark::currency_exchange::{self, ExchangeParams};
use apportion_core::mark::{MarkerParams, ticket};
use apportion_core::param::Role;
use apportion_core::system::catalog::{Catalog, Selection};

use crate::keys::Fields;
use crate::problem::{Place, Problems};
use crate::selection::Part;
use crate::text::Item;

/// The exchange of a link without settings.
///
/// # Panics
/// If the catalogue refuses its own default: a bug that every test finds.
pub(crate) fn default_exchange(catalog: &Catalog) -> Arc<ExchangeParams> {
    let built = catalog
        .select_alone(Role::Exchange, currency_exchange::ENTRY.name)
        .and_then(|selection| ExchangeParams::from_args(&selection.kind_args()));
    match built {
        Ok(params) => Arc::new(params),
        Err(error) => unreachable!("the catalogue refuses its own exchange: {error}"),
    }
}

/// Reads an exchange; every error is added to `problems`.
pub(crate) fn exchange(
    catalog: &Catalog,
    item: &Item,
    path: &str,
    problems: &mut Problems,
) -> Option<Arc<ExchangeParams>> {
    let build = |selection: &Selection| ExchangeParams::from_args(&selection.kind_args());
    Part::Exchange.read(catalog, item, path, build, problems).map(Arc::new)
}

/// Reads a marker; every error is added to `problems`.
pub(crate) fn marker(
    catalog: &Catalog,
    item: &Item,
    path: &str,
    problems: &mut Problems,
) -> Option<Arc<MarkerParams>> {
    let build = |selection: &Selection| MarkerParams::from_args(&selection.kind_args());
    Part::Marker.read(catalog, item, path, build, problems).map(Arc::new)
}

/// The marker of the flow that `fields` describe, which is acknowledged or not; none if there is none.
/// `sink_elsewhere`: its acknowledgements may carry tickets that another entity issues to its sink.
pub(crate) fn of_flow(
    catalog: &Catalog,
    fields: &Fields<'_>,
    is_acknowledged: bool,
    sink_elsewhere: bool,
    problems: &mut Problems,
) -> Option<Arc<MarkerParams>> {
    let issued = ["tickets", "ack_tickets"].map(|key| fields.item(key).is_some());
    if issued == [true, true] {
        let message = "`tickets` are issued to the source, `ack_tickets` to the sink, which then decides for \
                       both; leave one of them out";
        fields.refuse("ack_tickets", message, problems);
    }
    if issued[1] && !is_acknowledged {
        let mend = if fields.kind("tcp").is_some() { "tcp = \"rfc\"" } else { "protocol = \"tcp\"" };
        let message = format!(
            "only a flow with TCP has acknowledgements to carry them; write for example {mend}, or issue \
             `tickets` to the source"
        );
        fields.refuse("ack_tickets", message, problems);
    }
    let issued = issued.contains(&true);
    static TICKETS: LazyLock<Item> = LazyLock::new(|| Item::text(ticket::ENTRY.name, Place::Line(1)));
    let item = fields.item("mark").or_else(|| issued.then_some(&*TICKETS))?;
    let marker = marker(catalog, item, &fields.path_of("mark"), problems)?;
    if matches!(&*marker, MarkerParams::Tickets(mark) if mark.hold.is_some()) {
        check_hold(fields, is_acknowledged, problems);
    }
    let takes_tickets = matches!(*marker, MarkerParams::Tickets(_));
    if takes_tickets && !issued && !sink_elsewhere {
        let message = "no tickets are issued to the flow; write for example tickets = 100, or ack_tickets = \
                       100 to let the sink decide";
        fields.refuse("mark", message, problems);
    }
    if issued && !takes_tickets {
        let message = "only the marker `tickets` writes issued tickets on packets; write mark = \
                       \"tickets\", or leave `tickets` and `ack_tickets` out";
        fields.refuse("mark", message, problems);
    }
    Some(marker)
}

/// Refuses to hold a rate where tickets are not the source's, or nothing tells it the rate.
fn check_hold(fields: &Fields<'_>, is_acknowledged: bool, problems: &mut Problems) {
    let mend = match (is_acknowledged, fields.item("tickets").is_some()) {
        (true, true) => return,
        (true, false) => {
            "its receiver decides on its tickets; issue `tickets` to the source instead of `ack_tickets`"
        }
        (false, _) => "only acknowledgements tell it the rate that arrives; write a flow of TCP or QUIC",
    };
    fields.refuse("mark", format!("the flow cannot hold a rate: {mend}, or leave `hold` out"), problems);
}
