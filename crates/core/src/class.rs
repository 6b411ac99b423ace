//! Rules that say of what class a flow is, by the headers of its packets.
//!
//! Li, Walpole, McNamee, Pu, Steere, "A rate-matching packet scheduler for real-rate applications", MMCN
//! 2001, section 2: applications say that they are real-rate, and flows of which nothing is said are greedy.
//! A host can ask its applications; a router sees headers only, and is told by rules. The first rule that
//! matches decides, as in packet filters. Beyond the paper, which has no rules.
//!
//! Cost: O(rules), once for each flow if the caller remembers the answer; 100 bytes per rule.

use alloc::vec::Vec;
use core::net::IpAddr;
use core::ops::RangeInclusive;

use crate::catalog::ParamError;
use crate::packet::FlowClass;

/// Most rules of a list. Chosen: looked through for each new flow.
pub const MOST_RULES: usize = 1_000;

/// What the headers of a packet say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    /// What is inside: the number that IANA assigned (RFC 5237), such as 6 for TCP and 17 for UDP.
    pub protocol: u8,
    /// Where it is from.
    pub source: IpAddr,
    /// Where it goes.
    pub destination: IpAddr,
    /// Source and destination port, if the protocol has ports and this packet shows them: fragments after the
    /// first do not.
    pub ports: Option<(u16, u16)>,
    /// The differentiated services codepoint (RFC 2474 section 3).
    pub dscp: u8,
}

/// Addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

impl Prefix {
    /// Addresses whose first `length` bits are those of `address`.
    ///
    /// # Errors
    /// If the address has fewer bits, or others than those set: `key` is what the user wrote it under.
    pub fn new(key: &str, address: IpAddr, length: u8) -> Result<Self, ParamError> {
        let bits = width(address);
        if length > bits {
            let message = alloc::format!("/{length} is longer than the {bits} bits of {address}");
            return Err(ParamError::new(key, message));
        }
        if common(address, address, length) != first_bits(address) {
            let message = alloc::format!("{address} has bits set after the first {length}; write them as 0");
            return Err(ParamError::new(key, message));
        }
        Ok(Self { address, length })
    }

    /// Whether `address` is one of them. IPv4 and IPv6 have none in common.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4()
            && common(address, self.address, self.length) == first_bits(self.address)
    }
}

const fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The address from the highest bit on.
fn first_bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// The first `length` bits of `address`, which is of the kind of `like`.
fn common(address: IpAddr, like: IpAddr, length: u8) -> u128 {
    debug_assert_eq!(width(address), width(like));
    // Shifting by all 128 bits is no shift.
    let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
    first_bits(address) & mask
}

/// A rule: what is absent matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// The protocol.
    pub protocol: Option<u8>,
    /// Where it is from.
    pub source: Option<Prefix>,
    /// Where it goes.
    pub destination: Option<Prefix>,
    /// Its source port. A packet that shows no port does not match.
    pub source_port: Option<RangeInclusive<u16>>,
    /// Its destination port, likewise.
    pub destination_port: Option<RangeInclusive<u16>>,
    /// The codepoint.
    pub dscp: Option<u8>,
    /// What flows are that match.
    pub class: FlowClass,
}

impl Rule {
    /// Whether packets with these headers match.
    #[must_use]
    pub fn matches(&self, headers: &Headers) -> bool {
        let ports = headers.ports;
        let is_in = |range: &Option<RangeInclusive<u16>>, port: Option<u16>| {
            range.as_ref().is_none_or(|range| port.is_some_and(|port| range.contains(&port)))
        };
        self.protocol.is_none_or(|protocol| protocol == headers.protocol)
            && self.source.is_none_or(|prefix| prefix.contains(headers.source))
            && self.destination.is_none_or(|prefix| prefix.contains(headers.destination))
            && is_in(&self.source_port, ports.map(|(source, _)| source))
            && is_in(&self.destination_port, ports.map(|(_, destination)| destination))
            && self.dscp.is_none_or(|dscp| dscp == headers.dscp)
    }
}

/// Rules in order.
#[derive(Clone, Debug, Default)]
pub struct ClassRules(Vec<Rule>);

impl ClassRules {
    /// A list of them.
    ///
    /// # Errors
    /// If there are more than [`MOST_RULES`], or one can match nothing: a codepoint above 63 or an empty
    /// range of ports. The error names the key, such as `rule[2].dscp`.
    pub fn new(rules: Vec<Rule>) -> Result<Self, ParamError> {
        if rules.len() > MOST_RULES {
            let message = alloc::format!("{} are too many; write at most {MOST_RULES}", rules.len());
            return Err(ParamError::new("rule", message));
        }
        for (number, rule) in (1..).zip(&rules) {
            let fault = |key, message| Err(ParamError::new(&alloc::format!("rule[{number}].{key}"), message));
            if let Some(dscp) = rule.dscp.filter(|dscp| *dscp > 63) {
                return fault("dscp", alloc::format!("{dscp} does not fit six bits; write 0 to 63"));
            }
            for (key, range) in
                [("source_port", &rule.source_port), ("destination_port", &rule.destination_port)]
            {
                if let Some(range) = range.as_ref().filter(|range| range.is_empty()) {
                    let (first, last) = (range.start(), range.end());
                    return fault(key, alloc::format!("no port is from {first} to {last}; swap them"));
                }
            }
        }
        Ok(Self(rules))
    }

    /// The class of the flow whose packets have these headers: that of the first rule that matches, else
    /// greedy.
    #[must_use]
    pub fn class(&self, headers: &Headers) -> FlowClass {
        self.0.iter().find(|rule| rule.matches(headers)).map_or(FlowClass::Greedy, |rule| rule.class)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use std::string::ToString;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn prefix(text: &str, length: u8) -> Prefix {
        Prefix::new("x", ip(text), length).unwrap()
    }

    /// RTP over UDP from a server to a home, expedited forwarding.
    fn headers() -> Headers {
        Headers {
            protocol: 17,
            source: ip("192.0.2.77"),
            destination: ip("198.51.100.9"),
            ports: Some((5_004, 40_000)),
            dscp: 46,
        }
    }

    #[test]
    fn a_prefix_holds_the_addresses_that_begin_like_it() {
        let net = prefix("192.0.2.64", 26);
        assert!(net.contains(ip("192.0.2.64")) && net.contains(ip("192.0.2.127")));
        assert!(!net.contains(ip("192.0.2.63")) && !net.contains(ip("192.0.2.128")));
        assert!(prefix("192.0.2.77", 32).contains(ip("192.0.2.77")));
        assert!(!prefix("192.0.2.77", 32).contains(ip("192.0.2.76")));
        let net = prefix("2001:db8:8000::", 33);
        assert!(net.contains(ip("2001:db8:ffff::1")) && !net.contains(ip("2001:db8:7fff::1")));
        // All of one kind, and none of the other, even where the bits are alike.
        assert!(prefix("0.0.0.0", 0).contains(ip("203.0.113.1")) && !prefix("0.0.0.0", 0).contains(ip("::")));
        assert!(prefix("::", 0).contains(ip("ffff::")) && !prefix("::", 0).contains(ip("0.0.0.0")));
    }

    #[test]
    fn prefixes_that_are_none_are_refused() {
        let error = |text: &str, length| Prefix::new("from", ip(text), length).unwrap_err().to_string();
        assert!(error("192.0.2.0", 33).contains("/33 is longer than the 32 bits"));
        assert!(error("192.0.2.1", 24).contains("192.0.2.1 has bits set after the first 24"));
        assert!(Prefix::new("from", ip("::1"), 128).is_ok());
    }

    #[test]
    fn each_part_of_a_rule_decides_by_itself() {
        let all = Rule {
            protocol: Some(17),
            source: Some(prefix("192.0.2.0", 24)),
            destination: Some(prefix("198.51.100.9", 32)),
            source_port: Some(5_004..=5_005),
            destination_port: Some(40_000..=40_000),
            dscp: Some(46),
            class: FlowClass::RealRate,
        };
        assert!(all.matches(&headers()) && Rule::default().matches(&headers()));
        for other in [
            Headers { protocol: 6, ..headers() },
            Headers { source: ip("192.0.3.1"), ..headers() },
            Headers { destination: ip("198.51.100.8"), ..headers() },
            Headers { ports: Some((5_006, 40_000)), ..headers() },
            Headers { ports: Some((5_005, 40_001)), ..headers() },
            Headers { ports: None, ..headers() },
            Headers { dscp: 0, ..headers() },
        ] {
            assert!(!all.matches(&other), "{other:?}");
            assert!(Rule::default().matches(&other), "{other:?}");
        }
    }

    #[test]
    fn the_first_rule_that_matches_decides_and_greedy_if_none_does() {
        let rule = |protocol, class| Rule { protocol: Some(protocol), class, ..Rule::default() };
        let rules = ClassRules::new(vec![
            Rule { dscp: Some(8), ..Rule::default() },
            rule(17, FlowClass::RealRate),
            rule(17, FlowClass::Greedy),
        ])
        .unwrap();
        assert_eq!(rules.class(&headers()), FlowClass::RealRate);
        assert_eq!(rules.class(&Headers { dscp: 8, ..headers() }), FlowClass::Greedy);
        assert_eq!(rules.class(&Headers { protocol: 6, ..headers() }), FlowClass::Greedy);
        assert_eq!(ClassRules::default().class(&headers()), FlowClass::Greedy);
    }

    #[test]
    fn rules_that_can_match_nothing_are_refused() {
        let error = |rule| ClassRules::new(vec![Rule::default(), rule]).unwrap_err().to_string();
        let found = error(Rule { dscp: Some(64), ..Rule::default() });
        assert!(found.contains("rule[2].dscp") && found.contains("write 0 to 63"), "{found}");
        #[allow(clippy::reversed_empty_ranges, reason = "that is the slip")]
        let found = error(Rule { source_port: Some(9..=8), ..Rule::default() });
        assert!(found.contains("rule[2].source_port") && found.contains("no port is from 9 to 8"), "{found}");
        let found = ClassRules::new(vec![Rule::default(); MOST_RULES + 1]).unwrap_err().to_string();
        assert!(found.contains("1001 are too many"), "{found}");
    }
}
