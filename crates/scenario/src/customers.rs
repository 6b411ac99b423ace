//! Customers: bandwidth is divided among customers first, then among the flows of each.

use std::sync::Arc;

use apportion_core::packet::{CustomerId, MAX_CUSTOMERS};
use apportion_core::units::Weight;

use crate::expression::Pattern;
use crate::keys::{Fields, walk};
use crate::model::{Customer, Flow, Scenario};
use crate::names::{natural, position};
use crate::problem::{Problems, did_you_mean};
use crate::tables::CUSTOMER;
use crate::text::join;

impl Scenario {
    /// The customer of a flow, as disciplines number customers: those of [`Scenario::customers`] from 1 on.
    #[must_use]
    pub fn customer_of(&self, flow: &Flow) -> CustomerId {
        number(&self.customers, flow.customer.as_deref())
    }

    /// Weights by number of the customer. All flows without a customer have weight 1 together.
    #[must_use]
    pub fn customer_weights(&self) -> Vec<Weight> {
        weights(&self.customers)
    }

    /// Names by number of the customer, which classes may refer to. The name for flows without a customer is
    /// empty.
    #[must_use]
    pub fn customer_names(&self) -> Vec<String> {
        names(&self.customers)
    }
}

/// Names by number of the customer. The name for flows without a customer is empty.
pub(crate) fn names(customers: &[Customer]) -> Vec<String> {
    [String::new()].into_iter().chain(customers.iter().map(|customer| customer.name.clone())).collect()
}

/// The number of the customer of this name, in a list sorted by name that counts from 1.
pub(crate) fn number(customers: &[Customer], name: Option<&str>) -> CustomerId {
    let at = name.and_then(|name| position(customers, name, |customer| &customer.name));
    at.map_or(CustomerId::OTHERS, |at| CustomerId(at as u32 + 1))
}

/// Weights by number of the customer. All flows without a customer have weight 1 together.
pub(crate) fn weights(customers: &[Customer]) -> Vec<Weight> {
    [Weight::ONE].into_iter().chain(customers.iter().map(|customer| customer.weight)).collect()
}

/// The customer of flow number `i` of the group that `fields` describe; none if it names none. Contradictions
/// go to `problems`.
pub(crate) fn of_flow(fields: &Fields<'_>, i: u64, problems: &mut Problems) -> Option<Arc<str>> {
    let text = fields.text("customer")?;
    check(fields, problems)?;
    let name =
        Pattern::parse(text).and_then(|pattern| pattern.at(i)).and_then(|name| match name.is_empty() {
            true => Err("a customer needs a name; write for example \"acme\"".to_owned()),
            false => Ok(name),
        });
    name.map(Arc::from).map_err(|message| fields.refuse("customer", message, problems)).ok()
}

/// Refuses a customer whose flows are given what contradicts that.
pub(crate) fn check(fields: &Fields<'_>, problems: &mut Problems) -> Option<()> {
    if let Some(key) = ["tickets", "ack_tickets"].into_iter().find(|key| fields.item(key).is_some()) {
        let message = format!(
            "a customer's bandwidth is shared among its flows by their weights; leave `{key}` or \
             `customer` out"
        );
        fields.refuse("customer", message, problems);
        return None;
    }
    Some(())
}

/// The customers of these `names`, in the order of their names, with what the table `customer` says of them.
/// `of` is what names them: a flow or a rule.
pub(crate) fn read<'a>(
    fields: &Fields<'_>,
    names: impl IntoIterator<Item = &'a str>,
    of: &str,
    problems: &mut Problems,
) -> Vec<Customer> {
    let mut names: Vec<&str> = names.into_iter().collect();
    names.sort_unstable_by(|a, b| natural(a, b));
    names.dedup();
    if names.len() > MAX_CUSTOMERS {
        let message =
            format!("{of}s belong to {} customers; at most {MAX_CUSTOMERS} are supported", names.len());
        fields.refuse(of, message, problems);
    }
    let one = |name: &&str| Customer { name: (*name).to_owned(), weight: Weight::ONE };
    let mut customers: Vec<Customer> = names.iter().map(one).collect();
    let Some(item) = fields.item("customer") else { return customers };
    let Some(table) = item.as_table() else {
        fields.refuse("customer", "not a table; write each of them as a table [customer.NAME]", problems);
        return customers;
    };
    for (name, item) in &table.entries {
        let path = join("customer", name);
        let Some(own) = walk(item, &path, CUSTOMER, false, problems) else { continue };
        let weight = own.get("weight", 1, problems).and_then(Weight::new);
        match position(&customers, name, |customer| &customer.name) {
            Some(at) => customers[at].weight = weight.unwrap_or(Weight::ONE),
            None => {
                let guess = did_you_mean(name, names.iter().take(1_000).copied());
                let message =
                    format!("no {of} belongs to customer `{name}`{guess}; {of}s name theirs by `customer`");
                problems.add(item.place, path, message);
            }
        }
    }
    customers
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use apportion_core::units::Rate;

    use super::*;

    fn load(text: &str) -> Result<Scenario, Vec<String>> {
        let wire = r#"link.x = { from = "a", to = "b", rate = "6Mbit", delay = "1ms" }"#;
        let text = format!("seed = 1\nstop = \"1s\"\n{wire}\n{text}");
        let suite = crate::load(&text, Path::new("x.toml"), &[], &|path| std::fs::read(path));
        let suite = suite.map_err(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        Ok(suite.points[0].scenario.clone())
    }

    /// A group of greedy flows.
    fn flows(name: &str, keys: &str) -> String {
        format!("[flow.{name}]\nfrom = \"a\"\nto = \"b\"\ntcp = \"rfc\"\n{keys}\n")
    }

    fn customers(scenario: &Scenario) -> Vec<(&str, f64)> {
        scenario.customers.iter().map(|customer| (customer.name.as_str(), customer.weight.get())).collect()
    }

    #[test]
    fn flows_name_customers_and_tables_weigh_them() {
        let groups = flows("bulk", "count = 10\ncustomer = \"home{ceil(i / 5)}\"") + &flows("other", "");
        let scenario = load(&(groups + "[customer.home2]\nweight = 2.5\n")).unwrap();
        assert_eq!(customers(&scenario), [("home1", 1.0), ("home2", 2.5)]);
        let of: Vec<u32> = scenario.flows.iter().map(|flow| scenario.customer_of(flow).0).collect();
        assert_eq!(of, [1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 0]);
        let weights: Vec<f64> = scenario.customer_weights().into_iter().map(Weight::get).collect();
        assert_eq!(weights, [1.0, 1.0, 2.5], "those without a customer share one of weight 1");
    }

    #[test]
    fn customers_are_entitled_before_their_flows() {
        // 6 Mb/s: 2 for customer a of one flow; 4 for b of weight 2, by flow weights 1:3.
        let groups = flows("f", "customer = \"a\"")
            + &flows("g", "count = 2\ncustomer = \"b\"\nweight = \"2 * i - 1\"");
        let shares = |text: &str| {
            let shares = load(text).unwrap().entitlements();
            shares.map(|shares| shares.into_iter().map(Rate::as_mbit_f64).collect::<Vec<_>>())
        };
        let weighted = groups.clone() + "[customer.b]\nweight = 2\n";
        assert_eq!(shares(&weighted), Some(vec![2.0, 1.0, 3.0]));
        // Two flows without a customer are together a third one: 6/4 for each unit of weight.
        let more = weighted + &flows("h", "count = 2");
        assert_eq!(shares(&more), Some(vec![1.5, 0.75, 2.25, 0.75, 0.75]));
        // A guarantee within the share of its customer, here of all without a name, divides that share:
        // 2 Mb/s, 0.5 + 0.75 and 0.75.
        let guaranteed =
            shares(&(groups.clone() + &flows("h", "count = 2\nguarantee = \"1Mbit - 0.5Mbit * i\"")));
        assert_eq!(guaranteed, Some(vec![2.0, 0.5, 1.5, 1.25, 0.75]));
        // Beyond that share others have less: 3 of 6 Mb/s are left for two.
        let guaranteed = shares(&(groups + &flows("h", "customer = \"c\"\nguarantee = \"3Mbit\"")));
        assert_eq!(guaranteed, Some(vec![1.5, 0.375, 1.125, 3.0]));
    }

    #[test]
    fn what_contradicts_customers_is_refused_with_a_fix() {
        for (text, part) in [
            (
                flows("f", "customer = \"acme\"") + "[customer.acne]\nweight = 2\n",
                "customer.acne: no flow belongs to customer `acne` (did you mean `acme`?); flows name theirs \
                 by `customer`",
            ),
            (
                flows("f", "customer = \"acme\"\ntickets = 5"),
                "flow.f.customer: a customer's bandwidth is shared among its flows by their weights; leave \
                 `tickets` or `customer` out",
            ),
            (
                flows("f", "customer = \"\""),
                "flow.f.customer: a customer needs a name; write for example \"acme\"",
            ),
            (flows("f", "customer = \"{j}\""), "flow.f.customer: "),
            (flows("f", "customer = \"a\"") + "[customer.a]\nweight = 0\n", "customer.a.weight: "),
            (flows("f", "") + "[customer]\na = 5\n", "customer.a: `5` is an integer, not a table"),
        ] {
            let problems = load(&text).unwrap_err();
            assert!(problems.iter().any(|problem| problem.contains(part)), "{part} in {problems:?}");
        }
    }
}
