//! Congestion controls that are Python classes.
//!
//! A control is a [`Host`](host::Host) around a Python object. Its hooks have the names of the contract.
//! Their arguments have the fields of the contract in the units of Python; all calls share one window object.

mod host;
mod spec;
mod values;

pub use spec::{add_to, check_control_laws, register_control};
pub use values::{Ack, CongestionEvent, Connection, Feedback, Sent, Window};
