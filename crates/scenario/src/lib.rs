//! Reads and checks a scenario file, and turns it into a typed model that every backend runs.
//!
//! [`load()`] turns the text of a scenario file into checked [`model::Scenario`]s, one for each point of its
//! sweep, or returns all its problems.
//!
//! | module | holds |
//! |---|---|
//! | `load`, `build` | from text to points, and from a point to a checked scenario |
//! | [`model`] | a checked scenario: typed, every name resolved |
//! | `text`, `problem` | TOML with the places of values; problems with places and remedies |
//! | `files`, `capture`, `link_trace` | files that a scenario names; packet captures; recorded links |
//! | `tables`, `key`, `keys` | every key of a file; how keys are declared; the walker that checks tables |
//! | `expression`, `sweep`, `zip`, `value_names` | formulas of `i`; lists and ranges in place of values; lists that vary together; how points are named by these |
//! | `defaults`, `implied`, `listed`, `render` | default and implied values; the canonical text |
//! | `topology` | predefined networks |
//! | `graph`, `gml`, `graphml` | networks from graphs in files, and the formats of these |
//! | `network`, `link_groups`, `names` | drafts of links; groups of equal links; the order of names |
//! | [`routing`], `ecmp`, `rtt` | paths through the network, which of equal ones connections take, and their round-trip times |
//! | `aggregate`, `packet_size` | several packets for one access to the medium; sizes of packets that are fixed |
//! | [`queue`], `selection` | a discipline from its text; selections from the catalogue |
//! | `classes`, `marking`, `labels` | flows in the classes of queues; markers and exchanges; labels along paths |
//! | `flows`, `customers`, `jitter` | flows from groups; their customers; the time that hosts take |
//! | [`agreements`] | who pays whom, and the rights to links that follow |
//! | `source`, `written_source` | sources of flows; the same in a scenario file |
//! | `sizes`, `written_sizes` | sizes of files: likewise |
//! | [`media`], `media_sources` | sources of video and voice that react to delay and loss: likewise |
//! | `web`, `written_web` | users who load web pages: likewise |
//! | [`tcp`], [`quic`], `transport`, `params` | their parameters; how a scenario file chooses them; parameters by name |
//! | `changes`, `perturb` | changes during a run; the same scenario with other phases |
//! | `admission`, [`entitlement`] | whether guarantees fit their links; entitlements of flows over time |
//! | `estimate`, `warnings` | the cost of a simulation; warnings about probable mistakes |
//! | [`gateway`], [`direction`] | the configuration of a gateway, read and checked likewise; up and down |
//! | `plans` | files of customers with rates |
//! | [`import`] | configurations of other programs, converted |
//! | [`document`] | the reader of other files that people write, with the same messages |
//! | `differences` | differences between the texts of two scenarios |
//! | [`describe`] | every key of a scenario file, for people and for editors |

#![forbid(unsafe_code)]

pub mod agreements;
pub mod describe;
pub mod direction;
pub mod document;
pub mod entitlement;
pub mod gateway;
pub mod import;
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
mod capture;
mod changes;
mod classes;
mod customers;
mod defaults;
mod differences;
mod ecmp;
mod estimate;
mod expression;
mod files;
mod flows;
mod gml;
mod graph;
mod graphml;
mod implied;
mod jitter;
mod key;
mod keys;
mod labels;
mod link_groups;
mod link_trace;
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
mod value_names;
mod warnings;
mod web;
mod written_sizes;
mod written_source;
mod written_web;
mod zip;

pub use capture::Capture;
pub use differences::{Difference, differences};
pub use estimate::Estimate;
pub use files::{FileError, ReadFile, open_file, read_file, read_text_file};
pub use link_trace::{TraceColumns, delivery_trace};
pub use load::{Point, Suite, load, load_with, replication_seed};
pub use problem::{Place, Problem, TextError, did_you_mean, renamed, unknown_key};
