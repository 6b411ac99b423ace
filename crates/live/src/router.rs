//! Routers that exchange reports about their links, on real packets.

pub mod frames;
