//! A scenario and the outcome of running it: what every world is given and what it gives back.
//!
//! [`load()`] turns the text of a scenario file into checked [`model::Scenario`]s, one for each point of its
//! sweep, or says everything that is wrong with it.
//!
//! | module | holds |
//! |---|---|
//! | [`model`] | a checked scenario: typed, every name resolved |
//! | [`outcome`] | what one run of it measured |
//! | [`probe`], [`histogram`] | what worlds measure it with |
//! | [`connections`] | the connections of its flows, and the numbers that disciplines know flows by |
//! | [`flow_tables`] | what disciplines ask of flows, and disciplines built with that |
//! | [`marks`] | what marks the packets of a flow at its two ends |
//! | [`routers`] | which routers exchange reports about their links, and how they reach each other |
//! | [`source`] | what applications write, and when |
//! | [`routing`] | paths through its network |
//! | [`tcp`] | TCP profiles and their parameters |
//! | [`gateway`] | the configuration of a gateway, read and checked likewise |
//! | [`describe`] | every key of a scenario file, for people and for editors |

#![forbid(unsafe_code)]

pub mod connections;
pub mod describe;
pub mod flow_tables;
pub mod gateway;
pub mod histogram;
mod marking;
pub mod marks;
pub mod model;
pub mod outcome;
pub mod probe;
pub mod routers;
pub mod routing;
pub mod source;
pub mod tcp;

mod admission;
mod build;
mod changes;
mod customers;
mod defaults;
mod entitlement;
mod expression;
mod files;
mod flows;
mod gml;
mod keys;
mod labels;
mod load;
mod names;
mod network;
mod problem;
mod queue;
mod render;
mod rtt;
mod selection;
mod sweep;
mod tables;
mod text;
mod topology;
mod transport;

pub use files::ReadFile;
pub use load::{Point, Suite, load, replication_seed};
pub use problem::{Place, Problem, did_you_mean};
