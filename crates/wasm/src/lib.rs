//! The simulator and its report as a WebAssembly module, for the playground: a [request](request::answer) is a
//! JSON object, and so is its answer. It needs no clock, no threads and no files.
//! A panic is a trap without a message; the command shows the message.
//!
//! | export | does |
//! |---|---|
//! | `memory` | the memory of the module |
//! | `alloc(len) -> ptr`, `free(ptr, len)` | room for `len` bytes |
//! | `request(ptr, len) -> ptr` | answers the request at `ptr`: the length of the answer as a little-endian `u32`, then the answer. The caller frees both |
//!
//! | import of `env` | is called |
//! |---|---|
//! | `progress(part: f64)` | while a run proceeds, with its completed fraction |
//! | `policy(rate: f64) -> u32` | when a link gets the reader's own buffer policy: the link's rate in bit/s; returns a handle |
//! | `admit(handle, now: f64, flow, size, packets, bytes: f64, random: f64) -> u32` | for each arrival: time in ns, flow number, size in bytes, backlog, a random number of 0 to 1; returns 0 to accept the packet, 1 to drop and 2 to mark it |
//!
//! | module | holds |
//! |---|---|
//! | [`request`] | requests and answers |
//! | [`knobs`] | the values of a scenario that sliders change |
//! | `host` | the functions that the page provides |
//! | `own_policy` | the buffer policy that the reader writes |
//! | `exports` | the functions above |

#![warn(missing_docs)]

#[cfg(target_family = "wasm")]
mod exports;
mod host;
pub mod knobs;
mod own_policy;
pub mod request;
