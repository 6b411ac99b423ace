//! Another configuration for a gateway that runs.
//!
//! Rate, delay, loss, labels and rules change in place. Another queue takes over what waits, in the order in
//! which it would have been sent; one that is smaller drops what does not fit. A new currency exchange begins
//! without memory.

use apportion_core::packet::LabelKind;
use apportion_core::system::{CoreParams, DisciplineParams, any::PolicyParams};
use apportion_core::units::Time;
use apportion_scenario::gateway::{Difference, Direction, GatewayConfig, Setting};

use super::{Gateway, exchanges};
use crate::pace::Pace;

impl Gateway {
    /// Runs by `new` from now on, which differs by `difference` from what it runs by.
    ///
    /// # Errors
    /// What was read back and is not as it was written: a slip of ours.
    pub fn apply(&mut self, new: GatewayConfig, difference: &Difference) -> Result<(), String> {
        let now = self.engine.catch_up();
        let rules = difference.has(Setting::Rules) || difference.has(Setting::Customers);
        self.engine.world.change(now, &new, rules);
        for direction in Direction::BOTH {
            let customers =
                difference.has(Setting::Customers) && has_customers(&new.direction(direction).queue.params);
            if customers || difference.has(Setting::Queue(direction)) {
                let queue = self.engine.world.way_mut(direction).flows.discipline(&new);
                self.engine.change(direction as usize, |link, books| link.set_queue(now, queue, books));
            }
            self.apply_direction(now, direction, &new, difference);
        }
        self.engine.world.set_reports(&new, self.hardware);
        self.engine.settle(now);
        self.config = new;
        self.read_back()
    }

    fn apply_direction(
        &mut self,
        now: Time,
        direction: Direction,
        new: &GatewayConfig,
        difference: &Difference,
    ) {
        let (old, own) = (self.config.direction(direction), new.direction(direction));
        let other_has = |setting: fn(Direction) -> Setting| {
            Direction::BOTH.into_iter().any(|either| difference.has(setting(either)))
        };
        let is_other_exchange =
            difference.has(Setting::Exchange(direction)) || other_has(Setting::AckTickets);
        let issued = own.tickets.filter(|tickets| old.tickets.is_some_and(|before| before != *tickets));
        let other_exchanges = (is_other_exchange || old.tickets.is_some() != own.tickets.is_some())
            .then(|| exchanges(new, direction));
        self.engine.change(direction as usize, |link, books| {
            if difference.has(Setting::Rate(direction)) {
                link.set_pace(now, Pace::rate(own.rate), books);
            }
            link.set_delay(own.delay);
            link.set_loss(own.loss);
            if let Some(exchanges) = other_exchanges {
                link.set_exchanges(exchanges);
            } else if let Some(tickets) = issued {
                link.issue(now, LabelKind::Tickets, tickets);
            }
        });
    }

    /// Whether what runs is what was asked for, as far as links tell it: all that is not, one a line.
    fn read_back(&self) -> Result<(), String> {
        let differs = |direction: Direction| {
            let asked = self.config.direction(direction).rate;
            let name = direction.name();
            match self.engine.link(direction as usize).map(crate::link::Link::rate) {
                Some(found) if found == asked => None,
                Some(found) => Some(format!("{name}.rate is {found}, not {asked}\n")),
                None => Some(format!("{name} is not there\n")),
            }
        };
        let differing: String = Direction::BOTH.into_iter().filter_map(differs).collect();
        if differing.is_empty() { Ok(()) } else { Err(differing) }
    }
}

const fn has_customers(queue: &DisciplineParams) -> bool {
    matches!(queue.core, CoreParams::Buffered { drop: PolicyParams::Hcsfq(_), .. })
}
