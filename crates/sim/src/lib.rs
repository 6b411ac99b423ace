//! A deterministic packet-level simulator with its own TCP and QUIC.
//!
//! A [`Simulation`] runs one scenario with one seed; [`replicate()`] runs many in parallel. A run depends
//! only on its scenario and its seed: not on threads, the order of declarations, or the build profile.
//!
//! | module | holds |
//! |---|---|
//! | [`events`] | the event queue |
//! | [`packet`] | packets: a handle that moves and a body that stays |
//! | [`link`], [`wire`], `link_users` | queue and transmitter of one direction; propagation; users of links |
//! | [`shared_state`] | state that links share |
//! | [`congestion`] | congestion controls, for both of the next two |
//! | [`tcp`] | TCP sender and receiver |
//! | [`quic`] | QUIC sender and receiver |
//! | [`connection`] | a connection during a run: source, transport, routes |
//! | `transports` | common parts of all transports, and QUIC connections during a run |
//! | `stacks` | stacks from outside during a run |
//! | `outlet` | creation of packets from the segments of TCP and QUIC |
//! | `pending_notices` | overload notifications on their way to sources |
//! | `router` | routers that exchange reports about their links |
//! | [`aggregation`] | several packets for one access to the medium |
//! | `fast_path` | steps that run early, late or not at all, and why results do not change |
//! | `prefetch` | prefetching of memory |
//! | `in_place` | answers of TCP that reuse the packet they answer |
//! | `hosts` | the jitter of hosts |
//! | `writes` | writes of sources, and send buffers that block them |
//! | `media` | players and calls |
//! | `web`, `web_flow` | users who load web pages |
//! | `changes` | changes of a scenario during the run |
//! | [`build`] | construction of a simulation from a scenario |
//! | [`simulation`] | the event loop |
//! | [`measure`] | measurements, and the outcome |
//! | [`observer`] | observation of a run by a program |
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
mod stacks;
pub mod tcp;
mod transports;
mod web;
mod web_flow;
pub mod wire;
mod writes;

pub use build::{BuildError, Detail};
pub use replicate::{Ended, Job, replicate, replicate_with};
pub use simulation::{Ending, Simulation};
