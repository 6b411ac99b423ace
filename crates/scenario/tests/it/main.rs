//! Scenario files and configurations of gateways: their meaning, and refusals.

#![allow(clippy::unwrap_used, reason = "in tests a panic is the message")]

mod admission;
mod buffers;
mod cake;
mod common;
mod connections;
mod defaults;
mod ecmp;
mod entitlements;
mod entitlements_over_time;
mod examples;
mod gateway;
mod gateway_labels;
mod gateway_reload;
mod gateway_reports;
mod gateway_rules;
mod gateway_warnings;
mod graphs;
mod implied;
mod import;
mod import_refusals;
mod isolate;
mod labels;
mod link_groups;
mod load;
mod mutations;
mod plans;
mod presets;
mod queue_warnings;
mod sweep;
mod targets;
mod tickets;
mod topologies;
mod transport;
mod warnings;
