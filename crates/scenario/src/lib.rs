//! A scenario: its file is read, checked, and turned into a typed model that every backend runs.
//!
//! [`load()`] turns the text of a scenario file into checked [`model::Scenario`]s, one for each point of its
//! sweep, or says everything that is wrong with it.
//!
//! | module | holds |
//! |---|---|
//! | [`model`] | a checked scenario: typed, every name resolved |
//! | [`media`] | sources of video and voice that react to delay and loss |
//! | [`routing`] | paths through its network |
//! | [`tcp`] | TCP profiles and their parameters |
//! | [`quic`] | QUIC's parameters |
//! | [`entitlement`] | what its flows are due over time |
//! | [`gateway`] | the configuration of a gateway, read and checked likewise |
//! | [`queue`] | a discipline from its text |
//! | [`document`] | the reader of other files that people write, with the same messages |
//! | [`describe`] | every key of a scenario file, for people and for editors |

#![forbid(unsafe_code)]

pub mod describe;
pub mod direction;
pub mod document;
pub mod entitlement;
pub mod gateway;
mod marking;
pub mod media;
mod media_sources;
pub mod model;
pub mod queue;
pub mod quic;
pub mod routing;
pub mod tcp;

mod admission;
mod aggregate;
mod build;
mod changes;
mod classes;
mod customers;
mod defaults;
mod estimate;
mod expression;
mod files;
mod flows;
mod gml;
mod implied;
mod jitter;
mod key;
mod keys;
mod labels;
mod link_groups;
mod listed;
mod load;
mod names;
mod network;
mod packet_size;
mod params;
mod perturb;
mod plans;
mod problem;
mod render;
mod rtt;
mod selection;
mod sizes;
mod source;
mod sweep;
mod tables;
mod text;
mod topology;
mod transport;
mod warnings;
mod web;
mod written_sizes;
mod written_source;
mod written_web;

pub use estimate::Estimate;
pub use files::{FileError, ReadFile, delivery_trace, open_file, read_file, read_text_file};
pub use load::{Point, Suite, load, load_with, replication_seed};
pub use problem::{Place, Problem, TextError, did_you_mean, renamed, unknown_key};
