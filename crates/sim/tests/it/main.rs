//! The behaviour of the simulator, tested by scenarios and by transcripts.

#![allow(clippy::unwrap_used, reason = "in tests a panic is the message")]

mod aggregate;
mod approximate;
mod cake;
mod common;
mod confucius;
mod connections;
mod controls;
mod csfq;
mod custom;
mod cut;
mod determinism;
mod dues;
mod early_delivery;
mod ecmp;
mod flows;
mod fq;
mod hcsfq;
mod headlines;
mod hosts;
mod isolate;
mod l4s;
mod link_groups;
mod links;
mod marks;
mod matrix;
mod media;
mod ns3_validation;
mod overflow;
mod per_queue;
mod pps;
mod quic;
mod ramp;
mod rcs;
mod responsiveness;
mod sffc;
mod stacks;
mod tcp;
mod theory;
mod web;
mod writes;
