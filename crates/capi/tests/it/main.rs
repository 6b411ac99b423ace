//! The C interface: its header, and a C program that uses it.

mod c;
#[cfg(feature = "header")]
mod header;
