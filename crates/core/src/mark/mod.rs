//! Markers: at the edge, they write information about a flow on its packets.
//!
//! | file | marker | source |
//! |---|---|---|
//! | [`rate_label`] | the rates of the flows that enter a CSFQ router, or a guarantee | Stoica, Shenker, Zhang 1998; Pelsser, De Cnodder 2002 |
//! | [`ticket`] | tickets at a TCP source, at an edge, or on ACKs at a sink | Zhang et al. 2002 |
//! | [`rate_hold`] | adjusts the tickets of a flow so that it holds a rate | the same, section III-E |
//! | [`ticket_policer`] | limits tickets written to those issued | the same, sections II-G and III-J |
//! | [`currency_exchange`] | trades tickets of one currency for those of the next router | the same, sections II-D to II-G |
//! | [`value`] | the value of a packet, from a throughput-value function ([`tvf`]) | Nádas, Turányi, Rácz 2016 |
//! | [`tsw2cm`] | green within a rate, red beyond | Clark, Fang 1998 |
//! | [`tsw3cm`] | green, yellow and red by two rates | RFC 2859 |
//!
//! A [`Marker`] belongs to one end of one flow. It sees every packet that leaves there and, at the source,
//! the acknowledgements that come back.

mod any;
pub mod currency_exchange;
mod marker;
pub mod rate_hold;
pub mod rate_label;
pub mod ticket;
pub mod ticket_policer;
pub mod tsw2cm;
pub mod tsw3cm;
pub mod tvf;
pub mod value;

pub use any::{AnyMarker, MARKERS, MarkerParams};
pub use marker::{Marker, MarkerSetup};
