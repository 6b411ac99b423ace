//! Every marker, one row for each.

use super::marker::{Marker, MarkerSetup};
use super::{ticket, tsw2cm, tsw3cm};
use crate::label::Label;
use crate::packet::Packet;
use crate::param::{EntryArgs, Known, ParamError};
use crate::units::{TicketRate, Time};

family! {
    $ marker
    /// Parameters of any marker.
    params MarkerParams;
    /// Any marker.
    any AnyMarker;
    /// The markers.
    table MARKERS;
    context MarkerSetup;

    Tickets(ticket::TicketMarker, ticket::TicketMarkerParams), [ticket::ENTRY],
        |params, setup| ticket::TicketMarker::new(params, setup),
        same |_marker, _params| true;
    Tsw3cm(tsw3cm::Tsw3cm, tsw3cm::Tsw3cmParams), [tsw2cm::ENTRY, tsw3cm::ENTRY],
        |params, setup| tsw3cm::Tsw3cm::new(params, setup),
        same |_marker, _params| true;
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
        AnyMarker::new(self, setup)
    }
}

impl<P: Packet> Marker<P> for AnyMarker {
    fn mark(&mut self, now: Time, packet: &mut P) {
        marker!(self, it => it.mark(now, packet));
    }
    fn acknowledged(&mut self, now: Time, packets: f64, label: Option<Label>) {
        marker!(self, it => Marker::<P>::acknowledged(it, now, packets, label));
    }
    fn issue(&mut self, now: Time, tickets: TicketRate) {
        marker!(self, it => Marker::<P>::issue(it, now, tickets));
    }
}
