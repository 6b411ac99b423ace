//! Disciplines that are Python classes.
//!
//! | file | holds |
//! |---|---|
//! | `spec` | registration: the class, its parameters, its entry of the catalogue |
//! | `host` | adapter from an object of the class to the discipline that the simulator sees |
//! | `buffer` | the scheduler of a policy, as the policy sees it |
//! | `packet` | packets as objects, and actions on them |
//! | `session` | the run that a discipline belongs to: the first exception stops it |
//! | `laws` | the laws of every discipline |

mod buffer;
mod host;
mod laws;
mod packet;
mod session;
mod spec;

pub use laws::check_laws;
pub use packet::Packet;
pub use session::Session;
pub use spec::{Argument, add_to, arguments, leak, params, register};

pub use buffer::Buffer;
pub use host::Link;
