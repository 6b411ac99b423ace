//! Gateways, routes and trees of classes in the kernel, between hosts, in real time.
//!
//! A separate test program, whose tests run one at a time (`common::alone`): other tests in the process would
//! take their processors.

#![cfg(feature = "bpf")]
#![allow(clippy::unwrap_used, reason = "in tests a panic is the message")]
#![allow(clippy::print_stdout, reason = "figures are printed")]
#![allow(clippy::disallowed_methods, reason = "what is measured here is the kernel, in real time")]

#[path = "../common/mod.rs"]
mod common;
mod cost;
mod customers;
mod exchange;
mod gateway;
mod parity;
mod route;
mod weights;
