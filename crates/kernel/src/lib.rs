//! Disciplines that the Linux kernel carries out by itself, where it can.
//!
//! | module | holds |
//! |---|---|
//! | [`plan`] | which queue can be carried out here, and how; the others are refused by name |
//! | [`classes`] | a tree of HTB's classes with rates, ceilings and FIFOs |
//! | `gateway` | a gateway whose packets the kernel moves (feature `bpf`) |
//! | `lab` | links of the lab whose queues are the kernel's (feature `bpf`) |
//! | [`htb`] | what the two kinds of trees of HTB have in common |
//! | [`settings`] | the constants of a CSFQ core in fixed point, its state and its counters |
//! | [`hierarchy`] | the same for a core of HCSFQ, with customers |
//! | [`tickets`] | those of TRED with a ticket exchange |
//! | [`weights`] | a tree of HTB with one leaf for each flow, in proportion to weights |
//! | `program` | the tc programs: loading, attaching, reading and writing their maps (feature `bpf`) |
//!
//! The programs are C, in `bpf/`. The feature `bpf` compiles them by clang and embeds them; without it, or without clang,
//! the rest of this crate works the same. What they do, how exactly, and what they cost: `docs/kernel.md`.

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
