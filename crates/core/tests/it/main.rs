//! Disciplines against transcripts, laws, and the promises of their sources.

#![allow(clippy::unwrap_used, reason = "in tests a panic is the message")]

mod catalog;
mod class_disciplines;
mod common;
mod differential;
mod differential_approximate;
mod differential_cake;
mod differential_csfq;
mod differential_fairness;
mod differential_fq;
mod differential_pps;
mod differential_ramp;
mod fair_share_steps;
mod fluid;
mod golden;
mod heeded;
mod hierarchy;
mod isolate;
mod isolate_peers;
mod judges;
mod laws;
mod occupancy;
mod reference;
mod traits;
