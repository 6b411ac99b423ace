//! Rules that classify flows by the headers of their packets.
//!
//! The papers assume that the class, weight and guarantee of a flow are set when it is created: in Li, Walpole,
//! McNamee, Pu, Steere, "A rate-matching packet scheduler for real-rate applications", MMCN 2001, section 2,
//! applications declare that they are real-rate. A router sees headers only, so rules assign these parameters.
//! The first rule that matches applies, as in packet filters. This module returns its number; the caller keeps
//! the parameters.
//!
//! Cost: O(rules), once for each flow if the caller caches the result; 100 bytes per rule.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

use apportion_core::param::ParamError;

/// Maximum number of rules in a list. Chosen: each new flow searches all of them.
pub const MAX_RULES: usize = 1_000;

/// The header fields of a packet that rules match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    /// The protocol number that IANA assigned (RFC 5237), for example 6 for TCP and 17 for UDP.
    pub protocol: u8,
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Source and destination port, if the protocol has ports and this packet shows them: fragments after the
    /// first do not.
    pub ports: Option<(u16, u16)>,
    /// The differentiated services codepoint (RFC 2474 section 3).
    pub dscp: u8,
}

/// Addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

impl Prefix {
    /// Addresses whose first `length` bits are those of `address`.
    ///
    /// # Errors
    /// If the address has fewer bits, or sets bits after these; `key` names the value in messages.
    pub fn new(key: &str, address: IpAddr, length: u8) -> Result<Self, ParamError> {
        let bits = width(address);
        if length > bits {
            let message = format!("/{length} is longer than the {bits} bits of {address}");
            return Err(ParamError::new(key, message));
        }
        if common(address, address, length) != first_bits(address) {
            let mend = Self { address: first_address(common(address, address, length), address), length };
            let message = format!("{address} has bits set after the first {length}; write {mend}");
            return Err(ParamError::new(key, message));
        }
        Ok(Self { address, length })
    }

    /// Reads an address or a prefix: `192.0.2.7`, `2001:db8::/32`; `key` names the value in messages.
    ///
    /// # Errors
    /// The reason why the text is neither.
    pub fn read(text: &str, key: &str) -> Result<Self, ParamError> {
        let mend = "write for example \"192.168.1.0/24\"";
        let fail = || ParamError::new(key, format!("`{text}` is neither an address nor a prefix; {mend}"));
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| fail())?;
        match length {
            None => Ok(Self::one(address)),
            Some(length) => {
                let length = length.parse().map_err(|_| fail())?;
                Self::new(key, address, length)
            }
        }
    }

    /// A single address.
    #[must_use]
    pub const fn one(address: IpAddr) -> Self {
        Self { address, length: width(address) }
    }

    /// The address, if it is a single one.
    #[must_use]
    pub fn address(&self) -> Option<IpAddr> {
        (self.length == width(self.address)).then_some(self.address)
    }

    /// Addresses whose first `length` bits, or all if there are fewer, are those of `address`.
    #[must_use]
    pub fn around(address: IpAddr, length: u8) -> Self {
        let length = length.min(width(address));
        Self { address: first_address(common(address, address, length), address), length }
    }

    /// The first address.
    #[must_use]
    pub const fn first(&self) -> IpAddr {
        self.address
    }

    /// The number of common bits.
    #[must_use]
    pub const fn length(&self) -> u8 {
        self.length
    }

    /// Whether they are IPv4 addresses, not IPv6.
    #[must_use]
    pub const fn is_ipv4(&self) -> bool {
        self.address.is_ipv4()
    }

    /// Whether `address` is one of these. IPv4 and IPv6 have none in common.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.is_ipv4()
            && common(address, self.address, self.length) == first_bits(self.address)
    }

    /// Whether all addresses of `other` are among these.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        self.length <= other.length && self.contains(other.address)
    }
}

/// Formats as it is written: `192.0.2.0/24`, and a single address without its length.
impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)?;
        if self.length == width(self.address) { Ok(()) } else { write!(f, "/{}", self.length) }
    }
}

const fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The bits of an address, the highest first.
fn first_bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// The address of the same version as `like` with these [`first_bits`].
const fn first_address(bits: u128, like: IpAddr) -> IpAddr {
    match like {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from_bits((bits >> 96) as u32)),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(bits)),
    }
}

/// The first `length` bits of `address`, which has the same version as `like`.
fn common(address: IpAddr, like: IpAddr, length: u8) -> u128 {
    debug_assert_eq!(width(address), width(like));
    // A shift by all 128 bits would overflow.
    let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
    first_bits(address) & mask
}

/// A rule; absent conditions match everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    pub protocol: Option<u8>,
    /// The source.
    pub from: Option<Prefix>,
    /// The destination.
    pub to: Option<Prefix>,
    /// The source port. A packet that shows no port does not match.
    pub from_port: Option<RangeInclusive<u16>>,
    /// The destination port. A packet that shows no port does not match.
    pub to_port: Option<RangeInclusive<u16>>,
    /// The codepoint.
    pub dscp: Option<u8>,
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
            && self.from.is_none_or(|prefix| prefix.contains(headers.source))
            && self.to.is_none_or(|prefix| prefix.contains(headers.destination))
            && is_in(&self.from_port, ports.map(|(source, _)| source))
            && is_in(&self.to_port, ports.map(|(_, destination)| destination))
            && self.dscp.is_none_or(|dscp| dscp == headers.dscp)
    }

    /// Whether each of its conditions holds whenever the same one of `other` does. Then everything that
    /// matches `other` matches this rule as well, and `other` never decides after it.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        fn each<T>(own: Option<&T>, other: Option<&T>, covers: impl Fn(&T, &T) -> bool) -> bool {
            own.is_none_or(|own| other.is_some_and(|other| covers(own, other)))
        }
        let ports = |own: &RangeInclusive<u16>, other: &RangeInclusive<u16>| {
            own.contains(other.start()) && own.contains(other.end())
        };
        each(self.protocol.as_ref(), other.protocol.as_ref(), u8::eq)
            && each(self.from.as_ref(), other.from.as_ref(), Prefix::covers)
            && each(self.to.as_ref(), other.to.as_ref(), Prefix::covers)
            && each(self.from_port.as_ref(), other.from_port.as_ref(), ports)
            && each(self.to_port.as_ref(), other.to_port.as_ref(), ports)
            && each(self.dscp.as_ref(), other.dscp.as_ref(), u8::eq)
    }

    /// Refuses a rule that can match nothing.
    ///
    /// # Errors
    /// A codepoint above 63 or an empty range of ports. The error names the condition, for example `dscp`.
    pub fn check(&self) -> Result<(), ParamError> {
        if let Some(dscp) = self.dscp.filter(|dscp| *dscp > 63) {
            let message = format!("{dscp} does not fit six bits; write 0 to 63");
            return Err(ParamError::new("dscp", message));
        }
        for (key, range) in [("from_port", &self.from_port), ("to_port", &self.to_port)] {
            if let Some(range) = range.as_ref().filter(|range| range.is_empty()) {
                let (first, last) = (range.start(), range.end());
                return Err(ParamError::new(key, format!("no port is from {first} to {last}; swap them")));
            }
        }
        Ok(())
    }
}

/// Rules in order, each with its number.
///
/// A list for a part of the traffic, such as one direction, contains only the rules for that part; they keep their
/// numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleSet(Vec<(usize, Rule)>);

impl RuleSet {
    /// A list of rules.
    ///
    /// # Errors
    /// If there are more than [`MAX_RULES`], or one [can match nothing](Rule::check). The error names the
    /// key, for example `rule[2].dscp`, where rules count from 1 and their numbers from 0.
    pub fn new(rules: Vec<(usize, Rule)>) -> Result<Self, ParamError> {
        if rules.len() > MAX_RULES {
            let message = format!("{} are too many; write at most {MAX_RULES}", rules.len());
            return Err(ParamError::new("rule", message));
        }
        for (number, rule) in &rules {
            rule.check().map_err(|error| {
                ParamError::new(&format!("rule[{}].{}", number + 1, error.key), error.message)
            })?;
        }
        Ok(Self(rules))
    }

    /// The number of the first rule that packets with these headers match; none if there is none.
    #[must_use]
    pub fn first(&self, headers: &Headers) -> Option<usize> {
        self.0.iter().find(|(_, rule)| rule.matches(headers)).map(|(number, _)| *number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        // All of one version, and none of the other, even if the bits are equal.
        assert!(prefix("0.0.0.0", 0).contains(ip("203.0.113.1")) && !prefix("0.0.0.0", 0).contains(ip("::")));
        assert!(prefix("::", 0).contains(ip("ffff::")) && !prefix("::", 0).contains(ip("0.0.0.0")));
    }

    #[test]
    fn prefixes_that_are_none_are_refused() {
        let error = |text: &str, length| Prefix::new("from", ip(text), length).unwrap_err().to_string();
        assert!(error("192.0.2.0", 33).contains("/33 is longer than the 32 bits"));
        assert!(error("192.0.2.1", 24).contains("bits set after the first 24; write 192.0.2.0/24"));
        assert!(error("2001:db8::1", 32).contains("bits set after the first 32; write 2001:db8::/32"));
        assert!(Prefix::new("from", ip("::1"), 128).is_ok());
    }

    #[test]
    fn a_prefix_covers_longer_ones_that_begin_like_it() {
        let net = prefix("192.0.2.0", 24);
        for inside in [net, prefix("192.0.2.128", 25), Prefix::one(ip("192.0.2.9"))] {
            assert!(net.covers(&inside), "{inside}");
        }
        for outside in [prefix("192.0.0.0", 16), prefix("192.0.3.0", 24), prefix("::", 0)] {
            assert!(!net.covers(&outside), "{outside}");
        }
    }

    #[test]
    fn a_prefix_prints_as_it_is_written() {
        let printed = [prefix("192.0.2.0", 24), prefix("::", 0), Prefix::one(ip("2001:db8::1"))];
        assert_eq!(printed.map(|prefix| prefix.to_string()), ["192.0.2.0/24", "::/0", "2001:db8::1"]);
    }

    /// Conditions that match exactly [`headers`], and their neighbours.
    fn narrow() -> Rule {
        Rule {
            protocol: Some(17),
            from: Some(prefix("192.0.2.0", 24)),
            to: Some(prefix("198.51.100.9", 32)),
            from_port: Some(5_004..=5_005),
            to_port: Some(40_000..=40_000),
            dscp: Some(46),
        }
    }

    #[test]
    fn each_part_of_a_rule_decides_by_itself() {
        let all = narrow();
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
    fn the_first_rule_that_matches_decides_by_its_number() {
        let protocol = |protocol| Rule { protocol: Some(protocol), ..Rule::default() };
        let dscp = Rule { dscp: Some(8), ..Rule::default() };
        // Number 1 is left out.
        let rules = RuleSet::new(vec![(0, dscp), (2, protocol(17)), (3, protocol(17))]).unwrap();
        assert_eq!(rules.first(&headers()), Some(2));
        assert_eq!(rules.first(&Headers { dscp: 8, ..headers() }), Some(0));
        assert_eq!(rules.first(&Headers { protocol: 6, ..headers() }), None);
        assert_eq!(RuleSet::default().first(&headers()), None);
    }

    #[test]
    fn a_rule_covers_those_that_ask_for_no_less() {
        let narrow = narrow();
        assert!(Rule::default().covers(&narrow) && narrow.covers(&narrow));
        assert!(!narrow.covers(&Rule::default()));
        for wider in [
            Rule { protocol: None, ..narrow.clone() },
            Rule { from: Some(prefix("192.0.0.0", 16)), ..narrow.clone() },
            Rule { to: None, ..narrow.clone() },
            Rule { from_port: Some(5_004..=5_006), ..narrow.clone() },
            Rule { to_port: Some(0..=u16::MAX), ..narrow.clone() },
            Rule { dscp: None, ..narrow.clone() },
        ] {
            assert!(wider.covers(&narrow) && !narrow.covers(&wider), "{wider:?}");
        }
        for other in [
            Rule { protocol: Some(6), ..narrow.clone() },
            Rule { from: Some(prefix("192.0.3.0", 24)), ..narrow.clone() },
            Rule { from_port: Some(5_005..=5_006), ..narrow.clone() },
            Rule { dscp: Some(0), ..narrow.clone() },
        ] {
            assert!(!other.covers(&narrow) && !narrow.covers(&other), "{other:?}");
        }
    }

    #[test]
    fn rules_that_can_match_nothing_are_refused() {
        let error = |rule| RuleSet::new(vec![(0, Rule::default()), (1, rule)]).unwrap_err().to_string();
        let found = error(Rule { dscp: Some(64), ..Rule::default() });
        assert!(found.contains("rule[2].dscp") && found.contains("write 0 to 63"), "{found}");
        #[allow(clippy::reversed_empty_ranges, reason = "the error under test")]
        let found = error(Rule { from_port: Some(9..=8), ..Rule::default() });
        assert!(found.contains("rule[2].from_port") && found.contains("no port is from 9 to 8"), "{found}");
        let found = RuleSet::new(vec![(0, Rule::default()); MAX_RULES + 1]).unwrap_err().to_string();
        assert!(found.contains("1001 are too many"), "{found}");
    }
}
