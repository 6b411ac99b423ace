//! A deterministic packet-level simulator with its own TCP and QUIC.
//!
//! A [`Simulation`] runs one scenario with one seed; [`replicate()`] runs many in parallel. A run depends on
//! its scenario and its seed alone: not on threads, not on the order of declarations, not on the build
//! profile.
//!
//! | module | holds |
//! |---|---|
//! | [`events`] | the event queue |
//! | [`packet`] | packets: a handle that moves and a body that stays |
//! | [`link`], [`wire`], `link_users` | queue and transmitter of one direction; the packets behind it; who uses it |
//! | [`shared_state`] | what links share and write into |
//! | [`congestion`] | congestion controls, for both of the next two |
//! | [`tcp`] | TCP sender and receiver |
//! | [`quic`] | QUIC sender and receiver |
//! | [`connection`] | a connection during a run: source, transport, routes |
//! | `transports` | what TCP and QUIC do alike, and QUIC connections during a run |
//! | `outlet` | where what TCP and QUIC send becomes packets |
//! | `pending_notices` | overload notifications on their way to sources |
//! | `router` | routers that exchange reports about their links |
//! | [`aggregation`] | several packets for one access to the medium |
//! | `fast_path` | what is done before or after its time, or left out, and why no result can tell |
//! | `prefetch` | memory that is asked for before it is needed |
//! | `in_place` | answers of TCP in place of what came |
//! | `hosts` | the time that hosts take for the packets that they send |
//! | `media` | players and calls |
//! | `web`, `web_flow` | users who load web pages |
//! | `changes` | what a scenario changes during the run |
//! | [`build`] | a simulation from a scenario |
//! | [`simulation`] | the loop that moves it |
//! | [`measure`] | what is counted, and the outcome |
//! | [`observer`] | what a program sees of a run while it goes on |
//! | [`capture`] | packets of a link as a capture file |
//! | [`replicate`](mod@replicate) | many runs over many cores |

#![forbid(unsafe_code)]

pub mod aggregation;
pub mod build;
pub mod capture;
mod changes;
pub mod congestion;
pub mod connection;
pub mod events;
mod fast_path;
mod hosts;
mod in_place;
pub mod link;
mod link_users;
pub mod measure;
mod media;
pub mod observer;
mod outlet;
pub mod packet;
mod pending_notices;
mod prefetch;
pub mod quic;
pub mod replicate;
mod router;
pub mod shared_state;
pub mod simulation;
pub mod tcp;
mod transports;
mod web;
mod web_flow;
pub mod wire;

pub use build::{BuildError, Detail};
pub use replicate::{Ended, Job, replicate, replicate_with};
pub use simulation::{Ending, Simulation};
