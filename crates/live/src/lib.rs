//! The disciplines on real packets, on Linux: packet sockets, clocks, network namespaces.
//!
//! | module | holds |
//! |---|---|
//! | [`packet`] | what moves through links for each frame |
//! | [`pace`], [`link`] | when packets can be sent; one direction of a link: queue, transmitter, wire |
//! | `agenda` | what is due next |
//! | [`engine`] | ports and links, moved by the clock |
//! | [`bridge`] | two ports with a link each way |
//! | [`frame`] | what an Ethernet frame says, and the few fields that routers change |
//! | [`flow_table`] | which number a flow has |
//! | [`wire_label`] | labels in IPv6 flow labels and IPv4 identifications |
//! | [`gateway`] | a bump in the wire between two interfaces |
//! | [`lab`] | a scenario over the kernel's real TCP |
//! | [`outside`] | a way from a host of our own to the network of the machine |
//! | [`router`] | messages between routers as packets |
//! | [`shell`] | a command behind an emulated link |
//!
//! System calls are in the crate `apportion-linux`.

#![forbid(unsafe_code)]

#[cfg(not(target_os = "linux"))]
compile_error!("packet sockets and namespaces are Linux's");

mod agenda;
pub mod bridge;
pub mod engine;
pub mod flow_table;
pub mod frame;
pub mod gateway;
pub mod host_proxy;
pub mod lab;
pub mod link;
pub mod pace;
pub mod packet;
pub mod router;
pub mod shell;
pub mod wire_label;
