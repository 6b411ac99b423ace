//! Accounts of packets: by the rule that matches, and by the customer where plans name one.

use std::collections::BTreeMap;
use std::sync::Arc;

use apportion_scenario::gateway::{COUNTED_APART, Direction};

/// Maximum of accounts in each direction, including those of earlier configurations; later ones share the
/// last. Chosen: ten for each of a thousand customers, in 5 MB.
pub const MAX_ACCOUNTS: usize = 16_384;
/// Indices in the order of [`COUNTED_APART`]: the account of flows that no rule matches, and one of frames that
/// are not IP and of messages between gateways.
const UNMATCHED: usize = 0;
const OTHER: usize = 1;

/// The accounts of both directions. An account has a number in each direction.
#[derive(Debug)]
pub struct Accounts {
    all: Vec<Account>,
    /// Indices by customer and rule; the customer is empty if there is none.
    places: BTreeMap<Arc<str>, BTreeMap<Arc<str>, usize>>,
}

/// A set of packets that are counted together.
#[derive(Clone, Debug)]
pub struct Account {
    /// The rule, or one of [`COUNTED_APART`].
    pub rule: Arc<str>,
    /// The customer whose packets they are, by plans; else empty.
    pub customer: Arc<str>,
}

/// The number of an account in one direction.
const fn number(at: usize, way: Direction) -> u32 {
    (2 * at + way as usize) as u32
}

impl Default for Accounts {
    fn default() -> Self {
        let mut accounts = Self { all: Vec::new(), places: BTreeMap::new() };
        for name in COUNTED_APART {
            accounts.place(name, "");
        }
        accounts
    }
}

impl Accounts {
    /// The account of flows that no rule matches.
    pub const fn unmatched(way: Direction) -> u32 {
        number(UNMATCHED, way)
    }

    /// The account of frames that belong to no flow, in the direction of this number.
    pub const fn no_flow(way: usize) -> u32 {
        (2 * OTHER + way) as u32
    }

    pub fn of_rule(&mut self, rule: &str, way: Direction) -> u32 {
        number(self.place(rule, ""), way)
    }

    /// The account of a customer's packets among those of `account`.
    pub fn of_customer(&mut self, account: u32, customer: &str, way: Direction) -> u32 {
        let Some(Account { rule, .. }) = self.all.get(account as usize / 2) else { return account };
        let rule = Arc::clone(rule);
        number(self.place(&rule, customer), way)
    }

    /// The rule of an account.
    pub fn rule(&self, account: u32) -> Arc<str> {
        self.all.get(account as usize / 2).map(|account| Arc::clone(&account.rule)).unwrap_or_default()
    }

    fn place(&mut self, rule: &str, customer: &str) -> usize {
        if let Some(at) = self.places.get(customer).and_then(|own| own.get(rule)) {
            return *at;
        }
        if self.all.len() < MAX_ACCOUNTS {
            let account = Account { rule: rule.into(), customer: customer.into() };
            let own = self.places.entry(Arc::clone(&account.customer)).or_default();
            own.insert(Arc::clone(&account.rule), self.all.len());
            self.all.push(account);
        }
        self.all.len() - 1
    }

    /// All accounts of one direction, with their numbers.
    pub fn all(&self, way: Direction) -> impl Iterator<Item = (&Account, u32)> {
        (0..).zip(&self.all).map(move |(at, account)| (account, number(at, way)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_has_an_account_and_one_for_each_customer_up_to_the_most() {
        let mut accounts = Accounts::default();
        let [up, down] = Direction::BOTH;
        let calls = accounts.of_rule("calls", up);
        assert_eq!([calls, accounts.of_rule("calls", down)], [4, 5]);
        let smith = accounts.of_customer(calls, "smith", up);
        assert_eq!([smith, accounts.of_customer(calls, "smith", up)], [6, 6]);
        assert_eq!(accounts.of_customer(Accounts::unmatched(down), "smith", down), 9);
        let names: Vec<_> = accounts.all(up).map(|(own, at)| (&*own.rule, &*own.customer, at)).collect();
        assert_eq!(names[2..], [("calls", "", 4), ("calls", "smith", 6), ("unmatched", "smith", 8)]);
        for i in 0..2 * MAX_ACCOUNTS {
            accounts.of_rule(&i.to_string(), up);
        }
        assert_eq!(accounts.of_rule("one more", down), 2 * MAX_ACCOUNTS as u32 - 1);
    }
}
