//! Markers: at the edge, they write on packets what routers are to know of a flow.
//!
//! | file | marker | source |
//! |---|---|---|
//! | [`rate_label`] | the rates of the flows that enter a CSFQ router, or a guarantee | Stoica, Shenker, Zhang 1998; Pelsser, De Cnodder 2002 |
//! | [`ticket`] | tickets at a TCP source, at an edge, or on acknowledgements at a sink | Zhang et al. 2002 |
//! | [`ticket_policer`] | keeps the tickets written to the tickets issued | the same, sections II-G and III-J |
//! | [`currency_exchange`] | trades tickets of one currency for those of the next router | the same, sections II-D to II-G |
//! | [`tsw2cm`] | green within a rate, red beyond | Clark, Fang 1998 |
//! | [`tsw3cm`] | green, yellow and red by two rates | RFC 2859 |
//!
//! A [`Marker`] belongs to one flow and stands at one of its ends. It sees every packet that leaves there,
//! and at the source also what comes back.

pub mod currency_exchange;
pub mod rate_label;
pub mod ticket;
pub mod ticket_policer;
pub mod tsw2cm;
pub mod tsw3cm;

use self::ticket::{TicketMarker, TicketMarkerParams};
use self::tsw3cm::{Tsw3cm, Tsw3cmParams};
use crate::label::Label;
use crate::packet::Packet;
use crate::param::{Entry, ParamError};
use crate::random::Stream;
use crate::system::catalog::Selection;
use crate::units::{TicketRate, Time};

/// A marker of one flow.
pub trait Marker<P: Packet> {
    /// `packet` leaves.
    fn mark(&mut self, now: Time, packet: &mut P);

    /// An acknowledgement came back that says of `packets` packets that they arrived, with its own label.
    fn acknowledged(&mut self, _now: Time, _packets: f64, _label: Option<Label>) {}

    /// What the flow is issued from `now` on, for markers that mark tickets.
    fn issue(&mut self, _now: Time, _tickets: TicketRate) {}
}

/// What a marker learns of the place it is built into.
#[derive(Debug)]
pub struct MarkerSetup {
    /// What the flow is issued; none: as its acknowledgements say.
    pub tickets: Option<TicketRate>,
    /// Whether acknowledgements tell what arrived.
    pub acknowledged: bool,
    /// When the flow starts.
    pub start: Time,
    /// For decisions by chance.
    pub random: Stream,
}

/// An entry of the catalogue and how to read its parameters.
#[derive(Debug)]
pub struct KnownMarker {
    /// The entry.
    pub entry: &'static Entry,
    /// Reads its parameters.
    pub read: fn(&crate::param::Args) -> Result<MarkerParams, ParamError>,
}

/// The markers.
pub static MARKERS: &[KnownMarker] = &[
    KnownMarker {
        entry: &ticket::ENTRY,
        read: |args| TicketMarkerParams::from_args(args).map(MarkerParams::Tickets),
    },
    KnownMarker { entry: &tsw2cm::ENTRY, read: |args| tsw2cm::from_args(args).map(MarkerParams::Tsw3cm) },
    KnownMarker {
        entry: &tsw3cm::ENTRY,
        read: |args| Tsw3cmParams::from_args(args).map(MarkerParams::Tsw3cm),
    },
];

/// Parameters of any marker.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "each variant is the marker of the same name")]
pub enum MarkerParams {
    Tickets(TicketMarkerParams),
    Tsw3cm(Tsw3cmParams),
}

impl MarkerParams {
    /// Checks the values of a selection against each other.
    ///
    /// # Errors
    /// When a value makes no sense or contradicts another; the error names the key.
    pub fn from_args(selection: &Selection) -> Result<Self, ParamError> {
        let known = MARKERS.iter().find(|known| known.entry.name == selection.kind.name);
        let known = known.ok_or_else(|| ParamError::new("kind", "it is not a marker"))?;
        (known.read)(&selection.args)
    }

    /// A marker of one flow.
    #[must_use]
    pub fn build(&self, setup: MarkerSetup) -> AnyMarker {
        match self {
            Self::Tickets(params) => AnyMarker::Tickets(TicketMarker::new(params, setup)),
            Self::Tsw3cm(params) => AnyMarker::Tsw3cm(Tsw3cm::new(params, setup)),
        }
    }
}

/// Any marker.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "each variant is the marker of the same name")]
pub enum AnyMarker {
    Tickets(TicketMarker),
    Tsw3cm(Tsw3cm),
}

impl<P: Packet> Marker<P> for AnyMarker {
    fn mark(&mut self, now: Time, packet: &mut P) {
        match self {
            Self::Tickets(it) => it.mark(now, packet),
            Self::Tsw3cm(it) => it.mark(now, packet),
        }
    }
    fn acknowledged(&mut self, now: Time, packets: f64, label: Option<Label>) {
        match self {
            Self::Tickets(it) => Marker::<P>::acknowledged(it, now, packets, label),
            Self::Tsw3cm(it) => Marker::<P>::acknowledged(it, now, packets, label),
        }
    }
    fn issue(&mut self, now: Time, tickets: TicketRate) {
        match self {
            Self::Tickets(it) => Marker::<P>::issue(it, now, tickets),
            Self::Tsw3cm(it) => Marker::<P>::issue(it, now, tickets),
        }
    }
}
