//! Judges the simulator's TCP by scripts of packetdrill.
//!
//! Packetdrill (Cardwell et al., "packetdrill: scriptable network stack testing", USENIX ATC 2013) runs a script against
//! the TCP of a host: calls of an application, segments of a peer, segments that must leave, and assertions about the
//! state. [`judge`] runs one against [`apportion_sim::tcp`], by the time of the script.
//!
//! # Map
//!
//! | module | holds |
//! |---|---|
//! | [`script`] | a script as data |
//! | [`parse`] | the reader of the language |
//! | [`settings`] | commands that prepare the host, as parameters of the simulator's TCP |
//! | [`code`] | the assertions: a small part of Python |
//! | [`endpoint`] | a sender and a receiver as one end of a connection |
//! | [`drive`] | time, and the comparison of what leaves with what must |
//! | [`applies`] | what the model does not have |
//! | [`verdict`] | the result of a script |
//!
//! # Differences from packetdrill
//!
//! - Time is exact: an event of a script happens at its time, and not later. The tolerances of the script hold for what
//!   the simulator sends.
//! - PSH, URG, `nop` and the order of options are not compared, nor is the window of segments after the SYN.
//! - The simulator has Accurate ECN with Prague alone, which stands for other controls then, without pacing. Byte counters
//!   are not compared, but their room is left; ECT(1) stands for ECT(0), and the ECN field of pure ACKs is not compared.
//! - Assertions are evaluated at once rather than after the end, which gives the same values.
//! - A script that needs what the simulator does not have is not applicable, or is checked up to the line that does.

pub mod applies;
pub mod code;
pub mod drive;
pub mod endpoint;
pub mod parse;
pub mod script;
pub mod settings;
pub mod verdict;

pub use drive::judge;
pub use verdict::Verdict;
