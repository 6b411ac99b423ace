//! The disciplines on real packets, on Linux: packet sockets, clocks, network namespaces.
//!
//! | module | holds |
//! |---|---|
//! | [`clock`] | real time |
//! | [`pool`], [`packet`] | buffers for frames, and what moves for each of them |
//! | [`port`] | a packet socket on one interface, in batches |
//! | [`pace`], [`link`] | when packets can be sent; one direction of a link: queue, transmitter, wire |
//! | [`engine`] | ports and links, moved by the clock |
//! | [`frame`] | what an Ethernet frame says, and the few fields that routers change |
//! | [`wire_label`] | labels in IPv6 flow labels and IPv4 identifications |
//! | [`namespace`] | user and network namespaces; threads and commands inside of them |
//! | [`netlink`] | devices, addresses and routes of a namespace |
//!
//! This is the only crate that may hold `unsafe`; each module that does says why at its top.

#[cfg(not(target_os = "linux"))]
compile_error!("packet sockets and namespaces are Linux's");

pub mod clock;
pub mod engine;
pub mod frame;
pub mod link;
pub mod namespace;
pub mod netlink;
pub mod pace;
pub mod packet;
pub mod pool;
pub mod port;
pub mod wire_label;
