//! The disciplines on real packets, on Linux: packet sockets, clocks, network namespaces.
//!
//! | module | holds |
//! |---|---|
//! | [`clock`] | real time |
//! | [`pool`], [`packet`] | buffers for frames, and what moves for each of them |
//! | [`port`] | a packet socket on one interface, in batches |
//! | [`readiness`] | which ports have frames |
//! | [`pace`], [`link`] | when packets can be sent; one direction of a link: queue, transmitter, wire |
//! | `agenda` | what is due next |
//! | [`engine`] | ports and links, moved by the clock |
//! | [`bridge`] | two ports with a link each way |
//! | [`frame`] | what an Ethernet frame says, and the few fields that routers change |
//! | [`flow_table`] | which number a flow has |
//! | [`wire_label`] | labels in IPv6 flow labels and IPv4 identifications |
//! | [`namespace`] | user and network namespaces; threads and commands inside of them |
//! | [`gateway`] | a bump in the wire between two interfaces |
//! | [`host`] | a namespace whose interface is a port of the engine |
//! | [`lab`] | a scenario over the kernel's real TCP |
//! | [`netlink`] | devices, addresses and routes of a namespace |
//! | [`outside`] | a way from a host of our own to the network of the machine |
//! | [`command`] | a user's command inside a namespace, with a limit |
//! | [`router`] | messages between routers as packets |
//! | [`shell`] | a command behind an emulated link |
//!
//! This is the only crate that may hold `unsafe`; each module that does says why at its top.

#[cfg(not(target_os = "linux"))]
compile_error!("packet sockets and namespaces are Linux's");

mod agenda;
pub mod bridge;
pub mod clock;
pub mod command;
pub mod engine;
pub mod flow_table;
pub mod frame;
pub mod gateway;
pub mod host;
pub mod lab;
pub mod link;
pub mod namespace;
pub mod netlink;
pub mod outside;
pub mod pace;
pub mod packet;
pub mod pool;
pub mod port;
pub mod readiness;
pub mod router;
pub mod shell;
pub mod wire_label;
