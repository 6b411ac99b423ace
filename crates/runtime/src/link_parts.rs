//! The parts of a link before its first packet.

use apportion_core::Packet;
use apportion_core::delivery_trace::DeliveryTrace;
use apportion_core::mark::currency_exchange::CurrencyExchange;
use apportion_core::packet::{FlowId, LabelKind};
use apportion_core::random::Stream;
use apportion_core::system::LinkQueue;
use apportion_core::units::{Rate, Span};
use apportion_scenario::model::{LinkId, Loss, Scenario};

use crate::connections::Numbers;
use crate::flow_tables::{FlowTables, exchanges};
use crate::listed_losses::ListedLosses;
use crate::loss::RandomLoss;
use crate::wire_jitter::WireJitter;

/// The parts of a link's state.
#[derive(Debug)]
pub struct LinkParts<P: Packet> {
    /// The link's number in the backend.
    pub index: u32,
    /// The discipline, empty.
    pub queue: LinkQueue<P>,
    /// Rate of the transmitter, in bits per second; the mean of a recorded link.
    pub rate: Rate,
    /// The opportunities of a recorded link. Default: none; the link sends at its rate.
    pub trace: Option<DeliveryTrace>,
    /// Delay of the wire. Default: 0.
    pub delay: Span,
    /// Jitter of the wire. Default: none.
    pub jitter: Option<WireJitter>,
    /// Random losses of the wire. Default: none.
    pub loss: RandomLoss,
    /// Losses by ordinal. Default: none.
    pub listed: Vec<ListedLosses>,
    /// Whether delay, backlog and allocations are measured too. Default: false.
    pub watched: bool,
    /// Whether [`capture`](crate::link::LinkBackend::capture) is called for each packet. Default: false.
    pub captured: bool,
    /// The exchanges of labels between the routers at its ends, by kind of label. Default: none.
    pub exchanges: Vec<(LabelKind, CurrencyExchange)>,
}

impl<P: Packet> LinkParts<P> {
    /// A link whose wire has no delay and no losses, without label exchanges, with counts only.
    #[must_use]
    pub fn new(index: u32, queue: LinkQueue<P>, rate: Rate) -> Self {
        Self {
            index,
            queue,
            rate,
            trace: None,
            delay: Span::ZERO,
            jitter: None,
            loss: RandomLoss::new(Loss::NONE, Stream::new(0, "link.loss")),
            listed: Vec::new(),
            watched: false,
            captured: false,
            exchanges: Vec::new(),
        }
    }

    /// Link `index` of `scenario`, in a run with `seed`; with statistics if it is watched.
    ///
    /// # Panics
    /// If the scenario has no link with this index.
    #[must_use]
    pub fn of_scenario(
        scenario: &Scenario,
        index: usize,
        tables: &FlowTables,
        numbers: &Numbers,
        seed: u64,
    ) -> Self {
        let link = &scenario.links[index];
        let listed = link.lost.iter().flat_map(|lost| {
            let ids = numbers.ids(lost.flow).map(FlowId);
            ids.map(|id| ListedLosses::new(id, lost.packets.clone()))
        });
        Self {
            index: index as u32,
            queue: tables.discipline(scenario, LinkId(index as u32), &link.queue, link.rate),
            rate: link.rate,
            trace: link.trace.clone(),
            delay: link.delay,
            jitter: link.jitter.map(|jitter| {
                WireJitter::new(jitter, Stream::new(seed, &format!("link.{}.jitter", link.name)))
            }),
            loss: RandomLoss::new(link.loss, Stream::new(seed, &format!("link.{}.loss", link.name))),
            listed: listed.collect(),
            watched: link.watched,
            captured: false,
            exchanges: exchanges(scenario, link, seed),
        }
    }
}
