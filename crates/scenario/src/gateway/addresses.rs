//! Customers of addresses.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use apportion_core::packet::CustomerId;

use super::classifier::Prefix;

/// The customers of addresses: the longest prefix that contains an address decides.
///
/// Cost: O(log prefixes) for each length of prefixes that there is; 40 bytes per prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    customers: BTreeMap<Prefix, CustomerId>,
    /// The lengths of IPv4 and of IPv6 prefixes, by whether they are IPv4.
    lengths: BTreeSet<(bool, u8)>,
}

impl Addresses {
    /// A table of these prefixes, which all differ.
    pub(super) fn new(prefixes: impl IntoIterator<Item = (Prefix, CustomerId)>) -> Self {
        let customers: BTreeMap<Prefix, CustomerId> = prefixes.into_iter().collect();
        let lengths = customers.keys().map(|prefix| (prefix.is_ipv4(), prefix.length())).collect();
        Self { customers, lengths }
    }

    /// The customer of an address, if it has one.
    #[must_use]
    pub fn customer_of(&self, address: IpAddr) -> Option<CustomerId> {
        let longest_first = self.lengths.iter().rev().filter(|(ipv4, _)| *ipv4 == address.is_ipv4());
        let mut found =
            longest_first.filter_map(|(_, length)| self.customers.get(&Prefix::around(address, *length)));
        found.next().copied()
    }

    /// All prefixes, each with its customer.
    pub fn iter(&self) -> impl Iterator<Item = (Prefix, CustomerId)> {
        self.customers.iter().map(|(prefix, customer)| (*prefix, *customer))
    }

    /// The number of prefixes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.customers.len()
    }

    /// Whether there are no prefixes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.customers.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_decides() {
        let read = |text: &str| Prefix::read(text, "addresses").unwrap();
        let addresses = Addresses::new([
            (read("192.0.2.0/24"), CustomerId(1)),
            (read("192.0.2.64/26"), CustomerId(2)),
            (read("192.0.2.65"), CustomerId(3)),
            (read("2001:db8::/32"), CustomerId(4)),
        ]);
        let of = |text: &str| addresses.customer_of(text.parse().unwrap()).map(|customer| customer.0);
        assert_eq!(of("192.0.2.1"), Some(1));
        assert_eq!(of("192.0.2.66"), Some(2));
        assert_eq!(of("192.0.2.65"), Some(3));
        assert_eq!(of("2001:db8::1"), Some(4));
        assert_eq!((of("192.0.3.1"), of("::1"), addresses.len()), (None, None, 4));
    }
}
