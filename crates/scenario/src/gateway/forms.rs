//! Values written as short strings: interfaces, addresses, ports, protocols, codepoints, keys.
//!
//! Numbers are those that IANA assigned: protocols in "Assigned Internet Protocol Numbers", codepoints in
//! "Differentiated Services Field Codepoints" (RFC 2474 section 4.2.2, RFC 2597 section 6, RFC 3246 section
//! 2.7, RFC 5865 section 4, RFC 8622 section 4).

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;

use super::{Grouping, NetworkLengths};

use crate::problem::did_you_mean;

/// Longest name of an interface in bytes (`IFNAMSIZ` of `<net/if.h>` is 16 with the zero at the end).
const MAX_NAME: usize = 15;

/// Maximum of bytes of a socket's path: sun_path has room for 108 with a zero at the end (unix(7)).
const MAX_SOCKET: usize = 107;

/// Fewest and most bytes of a key: shorter ones can be guessed, longer ones are hashed (RFC 2104 section 2).
const KEY_BYTES: RangeInclusive<usize> = 16..=64;

/// Protocols with names.
const PROTOCOLS: [(&str, u8); 4] = [("icmp", 1), ("tcp", 6), ("udp", 17), ("icmpv6", 58)];

/// Codepoints with names: class selectors, assured and expedited forwarding, voice admitted, lower effort,
/// default forwarding.
const CODEPOINTS: [(&str, u8); 26] = [
    ("cs0", 0),
    ("cs1", 8),
    ("cs2", 16),
    ("cs3", 24),
    ("cs4", 32),
    ("cs5", 40),
    ("cs6", 48),
    ("cs7", 56),
    ("af11", 10),
    ("af12", 12),
    ("af13", 14),
    ("af21", 18),
    ("af22", 20),
    ("af23", 22),
    ("af31", 26),
    ("af32", 28),
    ("af33", 30),
    ("af41", 34),
    ("af42", 36),
    ("af43", 38),
    ("ef", 46),
    ("va", 44),
    ("voice-admit", 44),
    ("le", 1),
    ("df", 0),
    ("be", 0),
];

/// Default number of bits of an IPv6 address that belong to its network: an end site has at least a /64 (RFC
/// 6177).
const IPV6_NETWORK: u8 = 64;

/// The packets that count as one flow.
pub(super) fn grouping(text: &str) -> Result<Grouping, String> {
    let wrong = || {
        format!(
            "`{text}` does not say what counts as one flow; write \"each\", \"one\" or for example \"address/32\", with a \
             length for IPv6 \"address/32/56\""
        )
    };
    match text {
        "each" => return Ok(Grouping::Each),
        "one" => return Ok(Grouping::One),
        _ => (),
    }
    let lengths = text.strip_prefix("address/").ok_or_else(wrong)?;
    let (ipv4, ipv6) = lengths.split_once('/').map_or((lengths, None), |(ipv4, ipv6)| (ipv4, Some(ipv6)));
    let length = |text: &str, most: u8| text.parse().ok().filter(|length| *length <= most).ok_or_else(wrong);
    let ipv6 = ipv6.map_or(Ok(IPV6_NETWORK), |text| length(text, 128))?;
    Ok(Grouping::Network(NetworkLengths { ipv4: length(ipv4, 32)?, ipv6 }))
}

/// The text of a grouping.
pub(super) fn grouping_text(grouping: Grouping) -> String {
    match grouping {
        Grouping::Each => "\"each\"".to_owned(),
        Grouping::One => "\"one\"".to_owned(),
        Grouping::Network(NetworkLengths { ipv4, ipv6 }) => format!("\"address/{ipv4}/{ipv6}\""),
    }
}

/// The path of a Unix socket.
pub(super) fn socket(text: &str) -> Result<PathBuf, String> {
    let example = "write for example \"/run/apportion/notifications.sock\"";
    if !text.starts_with('/') || text.ends_with('/') || text.contains('\0') {
        return Err(format!("`{text}` is not the path of a file from the root; {example}"));
    }
    if text.len() > MAX_SOCKET {
        return Err(format!(
            "{} bytes are more than the {MAX_SOCKET} of a socket's path; {example}",
            text.len()
        ));
    }
    Ok(text.into())
}

/// The path of a file with a secret.
pub(super) fn secret_file(text: &str) -> Result<PathBuf, String> {
    if !text.starts_with('/') || text.ends_with('/') || text.contains('\0') {
        return Err(format!(
            "`{text}` is not the path of a file from the root; write for example \"/etc/apportion/control-token\""
        ));
    }
    Ok(text.into())
}

/// A valid name of an interface.
pub(crate) fn interface(text: &str) -> Result<String, String> {
    let odd = |c: char| c == '/' || c == ':' || c.is_whitespace() || c.is_control();
    let why = match text {
        "" => "it is empty",
        "." | ".." => "it is the name of a folder",
        _ if text.len() > MAX_NAME => "it is longer than 15 bytes",
        _ if text.contains(odd) => "it has a slash, a colon or a blank in it",
        _ => return Ok(text.to_owned()),
    };
    Err(format!("`{text}` is not the name of an interface: {why}; write for example \"eth0\""))
}

/// The address that serves metrics, which must be a loopback address.
pub(super) fn metrics(text: &str) -> Result<SocketAddr, String> {
    let example = "write for example \"127.0.0.1:9617\" or \"[::1]:9617\"";
    let address: SocketAddr =
        text.parse().map_err(|_| format!("`{text}` is not an address and a port; {example}"))?;
    if address.port() == 0 {
        return Err(format!("`{text}` has port 0, to which no client can connect; {example}"));
    }
    if address.ip().is_loopback() {
        return Ok(address);
    }
    Err(format!(
        "`{}` is not a loopback address, and metrics are for this machine only; {example}",
        address.ip()
    ))
}

/// An address by which other gateways can identify this one.
pub(super) fn own_address(text: &str) -> Result<IpAddr, String> {
    let example = "write for example \"192.0.2.1\"";
    let address: IpAddr = text.parse().map_err(|_| format!("`{text}` is not an address; {example}"))?;
    let broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    if address.is_unspecified() || address.is_loopback() || address.is_multicast() || broadcast {
        return Err(format!("`{address}` is not an address of one machine that others can reach; {example}"));
    }
    Ok(address)
}

/// The bytes of a secret. Messages do not contain it.
pub(super) fn key(text: &str) -> Result<Vec<u8>, String> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    let Some(digits) = digits.filter(|digits| digits.len().is_multiple_of(2)) else {
        return Err(
            "not pairs of hexadecimal digits; write 32 random bytes as 64 of 0 to 9 and a to f".to_owned()
        );
    };
    let bytes: Vec<u8> = digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    if KEY_BYTES.contains(&bytes.len()) {
        return Ok(bytes);
    }
    let (least, most, length) = (KEY_BYTES.start(), KEY_BYTES.end(), bytes.len());
    Err(format!("{length} bytes; write {least} to {most} random bytes, two digits each"))
}

/// A protocol by its name or number.
pub(super) fn protocol(text: &str) -> Result<u8, String> {
    named(text, &PROTOCOLS, "a protocol", u8::MAX)
}

/// A codepoint by its name or number.
pub(super) fn codepoint(text: &str) -> Result<u8, String> {
    named(text, &CODEPOINTS, "a codepoint", 63)
}

/// One of these names, in any case, or a number, decimal or with the prefix `0x`.
fn named(text: &str, names: &[(&'static str, u8)], what: &str, most: u8) -> Result<u8, String> {
    let lower = text.to_ascii_lowercase();
    let found = names.iter().find(|(name, _)| *name == lower).map(|(_, number)| *number);
    let number = || match lower.strip_prefix("0x") {
        Some(digits) => u8::from_str_radix(digits, 16),
        None => lower.parse(),
    };
    found.or_else(|| number().ok().filter(|number| *number <= most)).ok_or_else(|| {
        let guess = did_you_mean(&lower, names.iter().map(|(name, _)| *name));
        let known = names.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        format!("`{text}` is not {what}{guess}; write 0 to {most}, or one of {known}")
    })
}

/// A port, or the first and last of a range; the order of the two is checked with the rule.
pub(super) fn ports(text: &str) -> Result<RangeInclusive<u16>, String> {
    let fail =
        |_| format!("`{text}` is neither a port nor a range; write 0 to 65535, or for example \"5004-5005\"");
    let port = |text: &str| text.trim().parse().map_err(fail);
    match text.split_once('-') {
        Some((first, last)) => Ok(port(first)?..=port(last)?),
        None => port(text).map(|port| port..=port),
    }
}

/// Ports as TOML, in the form that [`ports`] reads.
pub(super) fn ports_text(ports: &RangeInclusive<u16>) -> String {
    let (first, last) = (ports.start(), ports.end());
    if first == last { first.to_string() } else { format!("\"{first}-{last}\"") }
}

/// A protocol as TOML, in the form that [`protocol`] reads.
pub(super) fn protocol_text(protocol: u8) -> String {
    let name = PROTOCOLS.iter().find(|(_, number)| *number == protocol);
    name.map_or_else(|| protocol.to_string(), |(name, _)| format!("\"{name}\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::classifier::Prefix;

    #[test]
    fn codepoints_are_those_of_the_registry() {
        // RFC 2597 section 6: class n in the upper three bits, precedence m in the next two: 8n + 2m. RFC
        // 2474 section 4.2.2.1: a class selector is 8n.
        for (name, number) in CODEPOINTS {
            let digits: Vec<u8> = name.bytes().filter(u8::is_ascii_digit).map(|digit| digit - b'0').collect();
            let expected = match (&name[..2], &digits[..]) {
                ("cs", [class]) => 8 * class,
                ("af", [class, precedence]) => 8 * class + 2 * precedence,
                ("ef", []) => 0b10_1110,
                ("va" | "vo", []) => 0b10_1100,
                ("df" | "be", []) => 0,
                ("le", []) => 0b00_0001,
                _ => panic!("{name}"),
            };
            assert_eq!(number, expected, "{name}");
            assert_eq!(codepoint(name), Ok(number));
            assert_eq!(codepoint(&name.to_uppercase()), Ok(number));
        }
        assert_eq!(["Af41", "0x2e", "0X2E", "46"].map(codepoint), [34, 46, 46, 46].map(Ok));
        let error = |text| codepoint(text).unwrap_err();
        assert!(error("0x40").starts_with("`0x40` is not a codepoint; write 0 to 63"));
        assert!(error("AF14").starts_with("`AF14` is not a codepoint (did you mean `af11`?)"));
        assert!(error("0x").starts_with("`0x` is not a codepoint"));
    }

    #[test]
    fn forms_print_as_they_are_read() {
        assert_eq!((protocol_text(58), protocol_text(132)), ("\"icmpv6\"".into(), "132".into()));
        assert_eq!((ports_text(&(443..=443)), ports_text(&(1..=2))), ("443".into(), "\"1-2\"".into()));
        assert_eq!(ports("5004 - 5005"), Ok(5_004..=5_005));
        assert_eq!(
            Prefix::read("192.0.2.1", "from").map(|prefix| prefix.to_string()),
            Ok("192.0.2.1".to_owned())
        );
    }

    #[test]
    fn a_key_is_its_bytes() {
        assert_eq!(key("00112233445566778899aAbBcCdDeEfF").unwrap()[9..13], [0x99, 0xAA, 0xBB, 0xCC]);
        assert_eq!(key(&"ab".repeat(64)).map(|bytes| bytes.len()), Ok(64));
        // Not hexadecimal digits; the message must not contain the secret.
        assert!(!key("secret").unwrap_err().contains("secret"));
    }
}
