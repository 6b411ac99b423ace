//! Congestion controls that are classes of Python.
//!
//! A control is a [`Host`](host::Host) around an object of Python. Its hooks have the names of the contract. What they are given has the
//! fields of the contract in the units of Python; the window is one object for all calls.

mod host;
mod spec;
mod values;

pub use spec::{add_to, check_control_laws, register_control};
pub use values::{Ack, CongestionEvent, Connection, Feedback, Sent, Window};
