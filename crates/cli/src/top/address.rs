//! The address of a page: what is accepted, and the default ones.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Port of a gateway's page in examples and imports of configurations.
const GATEWAY: u16 = 9617;
/// Default port of the page of a run.
const RUN: u16 = 9618;

/// The address of a page on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Host and port, as in a URL.
    pub host: String,
    /// The sockets to try, in order.
    pub sockets: Vec<SocketAddr>,
}

impl Address {
    /// The default addresses, each with what has its page there.
    pub fn defaults() -> [(Self, &'static str); 2] {
        [(GATEWAY, "a gateway"), (RUN, "a run")].map(|(port, what)| {
            let socket = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            (Self { host: socket.to_string(), sockets: vec![socket] }, what)
        })
    }

    /// The URL of the page.
    pub fn url(&self) -> String {
        format!("http://{}/", self.host)
    }
}

/// Reads an address, or the URL of a page as commands print it.
///
/// # Errors
/// The text is no address of a page on this machine; the message says what to write.
pub fn read(text: &str) -> Result<Address, String> {
    if text.starts_with("https://") {
        return Err(elsewhere("pages have no TLS of their own", GATEWAY));
    }
    let host = text.strip_prefix("http://").unwrap_or(text);
    let host = host.strip_suffix('/').unwrap_or(host);
    let no_address = || "write an address with a port, such as 127.0.0.1:9618 or localhost:9617".to_owned();
    let (name, port) = host.rsplit_once(':').ok_or_else(no_address)?;
    let port: u16 = port.parse().map_err(|_| no_address())?;
    if port == 0 {
        return Err("port 0 is no address; write the one that `watch it at` shows".to_owned());
    }
    let hosts: Vec<IpAddr> = if name.eq_ignore_ascii_case("localhost") {
        vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]
    } else {
        match host.parse::<SocketAddr>() {
            Ok(socket) => vec![socket.ip()],
            Err(_) if name.is_empty() || name.contains(['/', '@', '?', '[']) => return Err(no_address()),
            Err(_) => return Err(elsewhere("a page answers its own machine only", port)),
        }
    };
    if hosts.iter().any(|host| !host.is_loopback()) {
        return Err(elsewhere("a page answers its own machine only", port));
    }
    let sockets = hosts.into_iter().map(|host| SocketAddr::new(host, port)).collect();
    Ok(Address { host: host.to_owned(), sockets })
}

/// The refusal of a page that is not on this machine.
fn elsewhere(why: &str, port: u16) -> String {
    format!("{why}; run `ssh -L {port}:127.0.0.1:{port} HOST`, and give 127.0.0.1:{port} here")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_this_machine_are_read_in_all_their_forms() {
        for (text, host, sockets) in [
            ("127.0.0.1:9617", "127.0.0.1:9617", &["127.0.0.1:9617"][..]),
            ("http://127.0.0.2:80/", "127.0.0.2:80", &["127.0.0.2:80"]),
            ("localhost:9618", "localhost:9618", &["127.0.0.1:9618", "[::1]:9618"]),
            ("http://[::1]:9618", "[::1]:9618", &["[::1]:9618"]),
        ] {
            let sockets = sockets.iter().map(|socket| socket.parse().unwrap()).collect();
            assert_eq!(read(text), Ok(Address { host: host.to_owned(), sockets }));
        }
    }

    #[test]
    fn other_addresses_are_refused_with_what_to_write() {
        for text in [
            "",
            "9618",
            "localhost",
            "127.0.0.1",
            "127.0.0.1:x",
            "127.0.0.1:70000",
            ":9618",
            "x/y:9618",
            "[::1:9618",
            "a@b:9618",
        ] {
            assert!(read(text).unwrap_err().starts_with("write an address with a port, such as "), "{text}");
        }
        assert!(read("127.0.0.1:0").unwrap_err().contains("`watch it at`"));
        for text in [
            "https://127.0.0.1:9617",
            "192.0.2.1:9617",
            "router.example:9617",
            "[2001:db8::1]:9617",
            "0.0.0.0:9617",
        ] {
            let said = read(text).unwrap_err();
            assert!(said.contains("`ssh -L 9617:127.0.0.1:9617 HOST`"), "{text}: {said}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_default_of_runs_is_where_their_page_is() {
        assert_eq!(Address::defaults()[1].0.sockets, [apportion::Watch::ADDRESS]);
    }
}
