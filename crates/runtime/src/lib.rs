//! Parts for running a scenario that backends share: the simulator and real packets.
//!
//! Both backends create the same connections and disciplines from a
//! [`Scenario`](apportion_scenario::model::Scenario), count and sample the same quantities, and return the
//! same [`Outcome`](outcome::Outcome). They do not share the transmitter, the wire and the order of events.
//!
//! | module | holds |
//! |---|---|
//! | [`outcome`] | the measurements of one run of a scenario |
//! | [`probe`], [`histogram`] | counters and statistics of backends |
//! | [`connections`] | the connections of its flows, and their numbers for disciplines |
//! | [`due`] | entitlements of flows in a replication, over time |
//! | [`flow_tables`] | the parameters of flows by id, and disciplines built with them |
//! | [`link`], `link_parts` | one direction of a link, without its transmitter and its wire; its parts |
//! | [`loss`], `listed_losses` | the packets that a wire loses by chance, and by ordinal |
//! | [`marks`] | the markers of a flow's packets at its two ends |
//! | [`media`] | video and voice: players, calls, and their quality |
//! | [`routers`] | the routers that exchange reports about their links, and the paths between them |
//! | [`sffc`] | the manager of SF-FC: which router is upstream, and the messages between routers |
//! | [`source`] | writes of applications |
//! | [`tolerances`] | how far two backends may differ, and how late real packets may be |
//! | [`ways`] | the links that connections cross |
//! | [`wire_jitter`] | the time that packets take on a wire beyond its delay |

#![forbid(unsafe_code)]

pub mod connections;
pub mod due;
pub mod flow_tables;
pub mod histogram;
pub mod link;
mod link_parts;
mod listed_losses;
pub mod loss;
pub mod marks;
pub mod media;
pub mod outcome;
pub mod probe;
pub mod routers;
pub mod sffc;
pub mod source;
pub mod tolerances;
pub mod ways;
pub mod wire_jitter;
