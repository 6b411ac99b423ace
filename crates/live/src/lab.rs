//! Scenarios over the kernel's TCP: hosts are network namespaces, and one engine runs all links between them.
//!
//! | module | holds |
//! |---|---|
//! | [`tcp`] | what of a scenario's TCP the kernel is told, and what it says of a connection |
//! | [`driver`] | the thread that plays all applications |

pub mod driver;
pub mod tcp;
