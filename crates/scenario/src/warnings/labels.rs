//! Labels of packets that are too narrow for their values.

use std::collections::BTreeMap;

use apportion_core::aqm::csfq::RouterRole;
use apportion_core::label::Label;
use apportion_core::mark::MarkerParams;
use apportion_core::mark::rate_label::RateLabelParams;
use apportion_core::mark::ticket_policer::PolicerParams;
use apportion_core::packet::LabelKind;
use apportion_core::units::{Bytes, Rate, TicketRate};

use super::queues::Standing;
use crate::entitlement::mean_demand;
use crate::model::{Flow, Link, LinkId, Scenario, Transport};

/// A flow as text.
pub(super) fn named(flow: &Flow) -> String {
    format!("flow `{}`", flow.name)
}

/// The writer of the tags that a link reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Writer {
    /// A flow, by its index.
    Flow(usize),
    /// A link that exchanges tickets.
    Link(LinkId),
}

/// The tickets issued to a writer, and the flow with the largest packets among those with its tags.
struct Issue<'a> {
    tickets: f64,
    params: &'a PolicerParams,
    flow: &'a Flow,
    /// The number of flows; the link may have more.
    flows: usize,
}

impl Issue<'_> {
    fn packet(&self) -> Bytes {
        self.flow.transport.packet()
    }
}

/// Tickets of a packet if all of a link goes to packets with `tickets` a second.
pub(crate) fn carried(tickets: f64, packet: Bytes, rate: Rate) -> f64 {
    tickets * packet.bits() as f64 / rate.as_bit() as f64
}

/// Least mean of tickets per packet: tags hold whole numbers, so below it flows with few tickets have none or
/// as many as others.
const WHOLE: f64 = 1.0;
/// Factor that the remedy adds. Chosen: a flow with a tenth of the mean then has one.
const ROOM_FOR_PARTS: f64 = 10.0;

/// The warning that packets of `whom` would carry a number of tickets that tags by `key` of `whose` cannot
/// hold: too many, or too few for whole numbers.
pub(crate) fn full_tags(
    whom: &str,
    (packet, tickets): (Bytes, f64),
    place: &str,
    (whose, key, end): (&str, &str, &str),
    params: &PolicerParams,
) -> Option<String> {
    let most = params.format().max();
    let wider = match params.bits < Label::BITS {
        true => format!("{key} = {{ bits = {} }}{end}, or ", Label::BITS),
        false => String::new(),
    };
    if tickets < WHOLE {
        return Some(format!(
            "packets of {packet} of {whom} would carry {tickets:.3} tickets {place}, and {whose} hold whole ones, so shares do not follow \
             tickets; issue {:.0} times as many to all",
            (WHOLE * ROOM_FOR_PARTS / tickets).ceil()
        ));
    }
    (tickets > most).then(|| {
        format!(
            "packets of {packet} of {whom} would carry {tickets:.0} tickets {place}, and {whose} hold {most:.0} (`{key}.bits` = {}), so \
             shares do not follow tickets; write {wider}issue fewer tickets to all",
            params.bits
        )
    })
}

impl Scenario {
    /// Tags too narrow for the tickets of a full packet if all of a link goes to packets with equal tickets.
    pub(super) fn full_tags(&self, id: LinkId, link: &Link) -> Option<String> {
        if link.queue.label_required() != Some(LabelKind::Tickets) {
            return None;
        }
        let mut issues: BTreeMap<Writer, Issue<'_>> = BTreeMap::new();
        for at in self.flows_over(id) {
            let Some((writer, tickets, params)) = self.tagged_by(at, id) else { continue };
            let flow = &self.flows[at];
            let issue = issues.entry(writer).or_insert(Issue { tickets, params, flow, flows: 0 });
            issue.flows += 1;
            if flow.transport.packet() > issue.packet() {
                issue.flow = flow;
            }
        }
        // The part of a link's tickets that goes elsewhere is unknown.
        let is_all_here = |writer: &Writer, issue: &Issue<'_>| match writer {
            Writer::Flow(_) => true,
            Writer::Link(from) => self.flows_over(*from).len() == issue.flows,
        };
        let here = issues.iter().filter(|(writer, issue)| is_all_here(writer, issue));
        let total: f64 = here.map(|(_, issue)| issue.tickets).sum();
        let full = issues.iter().filter_map(|(writer, issue)| {
            let packet = issue.packet();
            let tickets = carried(total, packet, link.queue.capacity(link.rate));
            let place = format!("at link `{}`", link.name);
            let line = match writer {
                Writer::Flow(_) => {
                    let tags = ("its tags", "mark", "");
                    full_tags(&named(issue.flow), (packet, tickets), &place, tags, issue.params)
                }
                Writer::Link(from) => {
                    let from = &self.links[from.index()];
                    let own = carried(issue.tickets, packet, from.queue.capacity(from.rate));
                    let (whose, end) =
                        (format!("tags of link `{}`", from.name), format!(" for link `{}`", from.name));
                    let tags = (whose.as_str(), "exchange", end.as_str());
                    full_tags(&named(issue.flow), (packet, tickets.max(own)), &place, tags, issue.params)
                }
            };
            Some((packet, line?))
        });
        full.max_by_key(|(packet, _)| *packet).map(|(_, line)| line)
    }

    /// The writer of the tags of a flow that `id` reads, its tickets, and how it writes; none if there are no
    /// tags, or the tickets are unknown.
    fn tagged_by(&self, at: usize, id: LinkId) -> Option<(Writer, f64, &PolicerParams)> {
        let flow = &self.flows[at];
        let source = match flow.mark.as_deref() {
            Some(MarkerParams::Tickets(params)) => Some(&params.writer),
            _ => None,
        };
        let mut writer = (Writer::Flow(at), flow.tickets, source?);
        for hop in self.before(flow, &flow.path, id).unwrap_or_default() {
            let link = &self.links[hop.index()];
            if link.tickets.is_some() || link.ack_tickets.is_some() {
                writer = (Writer::Link(hop), link.tickets, &link.exchange.writer);
            }
        }
        let (writer, tickets, params) = writer;
        Some((writer, tickets.map(TicketRate::get)?, params))
    }

    /// Labels too narrow for the share of a flow per weight of 1, or, if it is unresponsive, for its rate.
    pub(super) fn full_labels(&self, id: LinkId, link: &Link, standing: &Standing<'_>) -> Option<String> {
        let queue = standing.queue;
        // Hosts have no weights.
        if queue.label_required() != Some(LabelKind::Rate) || queue.isolate().is_some() {
            return None;
        }
        let flows = self.flows_over(id);
        let parts = match queue.divides_among_customers() {
            true => self.parts_of_customers(&flows),
            false => vec![(flows.iter().map(|at| &self.flows[*at]).collect(), 1.0)],
        };
        let all = parts.iter().flat_map(|(members, part)| {
            let guaranteed: f64 = members.iter().map(|flow| flow.guarantee.as_bit() as f64).sum();
            let weights: f64 = members.iter().map(|flow| flow.weight.get()).sum();
            let left = link.rate.as_bit() as f64 * part - guaranteed;
            members.iter().map(move |flow| (*flow, left / weights))
        });
        let full = all.filter_map(|(flow, share)| {
            let written = self.labelled_by(flow, id, standing)?;
            let sent = mean_demand(flow).filter(|_| matches!(flow.transport, Transport::Udp { .. }));
            let before = self.links_before(flow, id).map(|link| link.rate.as_bit() as f64);
            let sent = before.fold(sent.unwrap_or(0.0), f64::min);
            standing.full_labels(&named(flow), share.max(sent / flow.weight.get()), written)
        });
        full.take(1).next()
    }

    /// The links of a flow on its path to `id`, with the first of each group.
    fn links_before<'a>(&'a self, flow: &'a Flow, id: LinkId) -> impl Iterator<Item = &'a Link> {
        let hops = self.before(flow, &flow.path, id).unwrap_or_default();
        hops.into_iter().map(|hop| &self.links[hop.index()])
    }

    /// The narrowest labels of a flow until it leaves `id`: each router may write them again.
    fn labelled_by<'a>(
        &'a self,
        flow: &'a Flow,
        id: LinkId,
        standing: &Standing<'a>,
    ) -> Option<&'a RateLabelParams> {
        let queues = self.links_before(flow, id).map(|link| &link.queue).chain([standing.queue]);
        let mut narrowest: Option<&RateLabelParams> = None;
        let mut is_kept = false;
        for queue in queues {
            let (Some(own), Some((role, egress))) = (queue.rate_label_params(), queue.rate_labels()) else {
                continue;
            };
            let kept = narrowest.filter(|_| is_kept && role != RouterRole::Edge);
            narrowest = kept.filter(|kept| kept.bits < own.bits).or(Some(own));
            is_kept = !egress;
        }
        narrowest
    }
}
