//! QUIC: loss detection by transcripts of RFC 9002, and the goodput of connections compared with theory and
//! TCP.

mod acknowledgments;
mod detection;
mod goodput;
mod transcript;
