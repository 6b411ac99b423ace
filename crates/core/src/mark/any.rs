//! Every marker, one row for each.

use super::marker::{Marker, MarkerSetup};
use super::{ticket, tsw2cm, tsw3cm, value};
use crate::label::Label;
use crate::packet::Packet;
use crate::param::{EntryArgs, Known, ParamError};
use crate::units::{TicketRate, Time};

family! {
    $ marker
    /// Parameters of any marker.
    params MarkerParams;
    /// The markers.
    table MARKERS;

    Tickets(ticket::TicketMarkerParams), [ticket::ENTRY],
        |params, setup| AnyMarker::Tickets(ticket::TicketMarker::new(params, setup));
    Tsw3cm(tsw3cm::Tsw3cmParams), [tsw2cm::ENTRY, tsw3cm::ENTRY],
        |params, setup| AnyMarker::Tsw3cm(tsw3cm::Tsw3cm::new(params, setup));
    Value(value::ValueParams), [value::ENTRY],
        |params, setup| AnyMarker::Value(value::ValueMarker::new(params, setup));
}

/// Any marker.
#[derive(Debug)]
pub enum AnyMarker {
    /// Marks tickets.
    Tickets(ticket::TicketMarker),
    /// Marks colours.
    Tsw3cm(tsw3cm::Tsw3cm),
    /// Marks values.
    Value(value::ValueMarker),
}

impl AnyMarker {
    fn marker<P: Packet>(&mut self) -> &mut dyn Marker<P> {
        match self {
            Self::Tickets(marker) => marker,
            Self::Tsw3cm(marker) => marker,
            Self::Value(marker) => marker,
        }
    }
}

impl MarkerParams {
    /// Reads and checks the values of a marker's entry.
    ///
    /// # Errors
    /// When a value makes no sense or contradicts another; the error names the key.
    pub fn from_args(args: &EntryArgs<'_>) -> Result<Self, ParamError> {
        let known = MARKERS.iter().find(|known| args.is_of(known.entry));
        (known.ok_or_else(|| ParamError::new("kind", "it is not a marker"))?.read)(args)
    }

    /// A marker of one flow.
    #[must_use]
    pub fn build(&self, setup: MarkerSetup) -> AnyMarker {
        marker!(self, setup, marker => marker)
    }
}

impl<P: Packet> Marker<P> for AnyMarker {
    fn mark(&mut self, now: Time, packet: &mut P) {
        self.marker().mark(now, packet);
    }
    fn acknowledged(&mut self, now: Time, packets: f64, label: Option<Label>) {
        self.marker::<P>().acknowledged(now, packets, label);
    }
    fn issue(&mut self, now: Time, tickets: TicketRate) {
        self.marker::<P>().issue(now, tickets);
    }
    fn full_tags(&self) -> u64 {
        match self {
            Self::Tickets(marker) => Marker::<P>::full_tags(marker),
            Self::Tsw3cm(marker) => Marker::<P>::full_tags(marker),
            Self::Value(marker) => Marker::<P>::full_tags(marker),
        }
    }
}
