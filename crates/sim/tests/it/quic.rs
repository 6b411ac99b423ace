//! QUIC: loss detection by transcripts of RFC 9002, and what a connection carries against what theory and TCP say.

mod acknowledgments;
mod detection;
mod goodput;
mod transcript;
