//! The disciplines on real packets, on Linux: the engine and its links, and the commands `shell`, `lab` and `gateway`.
//!
//! | module | holds |
//! |---|---|
//! | [`packet`] | the handle of a frame that moves through links |
//! | [`pace`], [`link`] | when packets can be sent; one direction of a link: queue, transmitter, wire |
//! | `timer_heap` | due times, the next one first |
//! | [`engine`] | moves frames between ports and links, by the clock |
//! | [`bridge`] | two ports with a link each way |
//! | [`endpoint`], `http`, `page` | a listener and its clients; requests and answers; pages for browsers |
//! | `notifications`, [`unix_socket`] | overload notifications to applications |
//! | [`frame`] | parses Ethernet frames, and edits the few fields that routers change |
//! | `flow_table` | numbers of flows |
//! | `acks` | ACKs of TCP that a later one makes redundant |
//! | [`wire_label`] | labels in IPv6 flow labels and IPv4 identifications |
//! | [`gateway`] | a bump in the wire between two interfaces |
//! | [`lab`] | a scenario over the kernel's real TCP |
//! | [`host_proxy`] | connections from an emulated host to the network of the machine |
//! | [`router`] | messages between routers as frames |
//! | [`shell`] | a command behind an emulated link |
//! | [`watch`] | a page that shows a run while it goes on |
//!
//! System calls are in the crate `apportion-linux`.

#![forbid(unsafe_code)]

#[cfg(not(target_os = "linux"))]
compile_error!("packet sockets and namespaces are Linux's");

mod acks;
pub mod bridge;
pub mod endpoint;
pub mod engine;
mod flow_table;
pub mod frame;
pub mod gateway;
pub mod host_proxy;
mod http;
pub mod lab;
pub mod link;
mod notifications;
pub mod pace;
pub mod packet;
mod page;
pub mod router;
pub mod shell;
mod timer_heap;
pub mod unix_socket;
pub mod watch;
pub mod wire_label;
