//! The system calls that Apportion needs on Linux, behind a safe interface.
//!
//! | module | holds |
//! |---|---|
//! | [`clock`] | the monotonic clock |
//! | [`pool`] | a bounded number of frame buffers |
//! | [`port`] | a packet socket on one interface, in batches; super-packets cut into segments |
//! | [`frame_io`] | ports, a clock and a wait for either, as a trait for engines |
//! | [`devices`] | devices that come and go, as a trait |
//! | [`files`] | small files that are replaced as a whole, as a trait |
//! | [`readiness`] | which descriptors are readable |
//! | [`netlink`] | devices, addresses, routes and offloads of a namespace |
//! | [`namespace`] | user, network, mount and process namespaces; threads inside them |
//! | [`host`] | a network namespace with one interface, for emulated hosts |
//! | [`command`] | a command inside a namespace, with a time limit and forwarded signals |
//! | [`socket_helper`] | a process that opens sockets in the namespace it was forked in |
//! | [`capabilities`] | dropping privileges |
//! | [`machine`] | the kernel's release, and where CPU time goes, of the machine and of a thread |
//! | [`precision`] | scheduling ahead of others and locked memory, where they are permitted |
//! | [`tcp`] | TCP socket options and `TCP_INFO` |
//!
//! This crate and the C interface are the only ones that may hold `unsafe`; each module that does says why at its top.

#[cfg(not(target_os = "linux"))]
compile_error!("packet sockets and namespaces exist only on Linux");

pub mod capabilities;
pub mod clock;
pub mod command;
pub mod devices;
pub mod files;
pub mod frame_io;
pub mod host;
pub mod machine;
pub mod namespace;
pub mod netlink;
pub mod pool;
pub mod port;
pub mod precision;
pub mod readiness;
pub mod socket_helper;
pub mod tcp;
