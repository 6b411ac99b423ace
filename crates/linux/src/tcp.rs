//! Options of TCP sockets and `TCP_INFO` that `nix` does not have. Source: tcp(7).

mod info;
mod option;

pub use info::{TcpInfo, tcp_info};
pub use option::{congestion, set_congestion, set_not_sent_low_water, set_window_clamp, window_clamp};
