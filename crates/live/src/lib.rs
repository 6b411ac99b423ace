//! The disciplines on real packets, on Linux: packet sockets, clocks, network namespaces.
//!
//! | module | holds |
//! |---|---|
//! | [`frame`] | what an Ethernet frame says, and the few fields that routers change |
//! | [`wire_label`] | labels in IPv6 flow labels and IPv4 identifications |
//! | [`namespace`] | user and network namespaces; threads and commands inside of them |
//! | [`netlink`] | devices, addresses and routes of a namespace |
//! | [`command`] | a user's command inside a namespace, with a limit |
//!
//! This is the only crate that may hold `unsafe`; each module that does says why at its top.

#[cfg(not(target_os = "linux"))]
compile_error!("packet sockets and namespaces are Linux's");

pub mod command;
pub mod frame;
pub mod namespace;
pub mod netlink;
pub mod wire_label;
