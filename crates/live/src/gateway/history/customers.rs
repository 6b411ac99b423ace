//! The largest customers of a direction, and the last hour of each.
//!
//! Memory: as for flows, for at most [`MAX_KEPT`] of each direction.

use std::collections::BTreeMap;
use std::sync::Arc;

use apportion_core::packet::CustomerId;
use apportion_core::system::DisciplineKind;
use apportion_core::system::classes::Class;
use apportion_core::system::htb::HtbClass;
use apportion_core::units::Rate;
use apportion_scenario::gateway::{Direction, GatewayConfig};
use serde_json::{Value, json};

use super::{Kept, SHOWN, bytes, forget_silent, per_second, whole_number};
use crate::gateway::traffic::{CustomerTraffic, MAX_CUSTOMERS, Traffic};

/// Maximum of customers of each direction in the history: those of the last second and some earlier ones.
const MAX_KEPT: usize = MAX_CUSTOMERS + MAX_CUSTOMERS / 2;

/// The customers of a direction.
#[derive(Debug, Default)]
pub(super) struct CustomerCourse {
    /// Customers by name.
    kept: BTreeMap<Arc<str>, Kept>,
    /// The customers of the last second, the largest first.
    latest: Vec<Value>,
    active: usize,
}

/// The rates of a customer's plan in a direction.
struct Plan {
    assured: Rate,
    ceiling: Rate,
}

fn plans(config: &GatewayConfig, direction: Direction) -> BTreeMap<&str, Plan> {
    match &config.direction(direction).queue.params.kind {
        DisciplineKind::Htb(htb) => {
            let of =
                |class: &Class<HtbClass>| Plan { assured: class.params.rate, ceiling: class.params.ceil };
            htb.class.all().iter().map(|class| (&*class.name, of(class))).collect()
        }
        _ => BTreeMap::new(),
    }
}

impl CustomerCourse {
    /// Records a second. `entitlements` are those of its flows, if they have any.
    pub fn note(
        &mut self,
        config: &GatewayConfig,
        direction: Direction,
        traffic: &Traffic,
        entitlements: Option<&[f64]>,
        numbered: &mut u64,
    ) {
        // Without names there is one customer, which is the direction.
        let own = if config.customers.is_empty() { &[][..] } else { &traffic.customers[..] };
        // Entitlements and customers of flows beyond the largest ones are unknown.
        let entitlements = entitlements.filter(|_| traffic.active == traffic.flows.len());
        let entitled = |customer: CustomerId| {
            let flows = traffic.flows.iter().zip(entitlements?);
            Some(
                flows
                    .filter(|(flow, _)| flow.terms.customer == customer)
                    .map(|(_, share)| share)
                    .sum::<f64>(),
            )
        };
        let plans = plans(config, direction);
        self.active = if config.customers.is_empty() { 0 } else { traffic.active_customers };
        self.latest.clear();
        let weighed = if config.weighs_customers() { &config.customers[..] } else { &[] };
        for CustomerTraffic { id, name, bytes: sent } in own {
            let (rate, entitlement) = (per_second(sent.get(), traffic.span), entitled(*id));
            let kept = self.kept.entry(Arc::clone(name)).or_insert_with(|| Kept::new(numbered));
            kept.series
                .push(traffic.number, [rate as f32, entitlement.map_or(f32::NAN, |share| share as f32)]);
            if self.latest.len() < SHOWN {
                let plan = plans.get(&**name);
                let weight = weighed.iter().find(|customer| *customer.name == **name);
                self.latest.push(json!({
                    "number": kept.number,
                    "customer": **name,
                    "weight": weight.map(|customer| customer.weight.get()),
                    "bytes_per_second": whole_number(rate),
                    "plan_bytes_per_second": plan.map(|plan| whole_number(bytes(plan.assured))),
                    "ceiling_bytes_per_second": plan.map(|plan| whole_number(bytes(plan.ceiling))),
                    "entitlement_bytes_per_second": entitlement.map(whole_number),
                }));
            }
        }
        forget_silent(&mut self.kept, traffic.number + 1, MAX_KEPT);
    }

    /// Number of customers that sent in the last second.
    pub const fn active(&self) -> usize {
        self.active
    }

    /// The largest customers of the last second.
    pub fn latest(&self) -> Value {
        Value::Array(self.latest.clone())
    }

    /// The name and the series of the customer with this number.
    pub fn find(&self, number: u64) -> Option<(&str, &Kept)> {
        self.kept.iter().find(|(_, kept)| kept.number == number).map(|(name, kept)| (&**name, kept))
    }
}
