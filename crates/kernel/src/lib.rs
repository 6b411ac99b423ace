//! Queue disciplines that the Linux kernel implements, where it can.
//!
//! | module | holds |
//! |---|---|
//! | [`plan`] | which queues the kernel can implement, and how; the others are refused by name |
//! | [`classes`] | a tree of HTB classes with rates, ceilings and FIFOs |
//! | `gateway` | a gateway whose packets the kernel forwards (feature `bpf`) |
//! | `lab` | links of the lab whose queues are in the kernel (feature `bpf`) |
//! | [`htb`] | the common parts of both kinds of HTB trees |
//! | [`settings`] | the constants of a CSFQ core in fixed point, its state and its counters |
//! | [`hierarchy`] | the constants of an HCSFQ core with customers, its state and its counters |
//! | [`tickets`] | the constants of TRED with a ticket exchange, its state and its counters |
//! | [`weights`] | a tree of HTB classes with one leaf per flow, divided by weights |
//! | `program` | the tc programs: loading, attaching, reading and writing their maps (feature `bpf`) |
//!
//! The programs are written in C, in `bpf/`. The feature `bpf` compiles them by clang and embeds them;
//! without the feature or without clang, the rest of this crate works unchanged. `docs/kernel.md` describes
//! the programs, their accuracy and their cost.

pub mod classes;
#[cfg(feature = "bpf")]
pub mod gateway;
pub mod hierarchy;
pub mod htb;
#[cfg(feature = "bpf")]
pub mod lab;
pub mod plan;
#[cfg(feature = "bpf")]
pub mod program;
pub mod settings;
pub mod tickets;
pub mod weights;
