//! Changes the configuration of a running gateway.
//!
//! Rate, delay, loss, labels and rules change in place. A new queue takes over waiting packets, in the order
//! in which the old one would have sent them; a smaller one drops packets that do not fit. A new currency
//! exchange begins without memory.

use apportion_core::mark::currency_exchange::CurrencyExchange;
use apportion_core::packet::LabelKind;
use apportion_core::system::DisciplineParams;
use apportion_core::units::{Bytes, Rate, TicketRate, Time};
use apportion_linux::frame_io::FrameIo;
use apportion_scenario::gateway::{Difference, Direction, GatewayConfig, Setting};

use super::{Gateway, exchanges};
use crate::link::Link;
use crate::pace::Pace;

impl<I: FrameIo> Gateway<I> {
    /// Applies `new`, which differs by `difference` from the running configuration.
    ///
    /// # Errors
    /// Settings that read back differently than written: a bug.
    pub fn apply(&mut self, new: GatewayConfig, difference: &Difference) -> Result<(), String> {
        let now = self.engine.catch_up();
        let rules =
            [Setting::Rules, Setting::Customers, Setting::Plans].into_iter().any(|it| difference.has(it));
        self.engine.world.change(now, &new, rules);
        for direction in Direction::BOTH {
            // Rules may name other customers too, which changes the numbers.
            let customers = self.config.customers != new.customers
                && numbers_customers(&new.direction(direction).queue.params);
            let [old, other] = [&self.config, &new].map(|config| &config.direction(direction).queue.params);
            let classes = difference.has(Setting::Plans) && other.has_classes() && old != other;
            // The overhead charged to an IP packet must not change together with what its size includes.
            let is_charged_apart = difference.has(Setting::Overhead(direction))
                && other.charge(Bytes::ZERO, Bytes::ZERO).is_some();
            if customers || classes || is_charged_apart || difference.has(Setting::Queue(direction)) {
                self.replace_queue(now, direction, &new);
            }
            self.apply_direction(now, direction, &new, difference);
        }
        self.engine.world.set_reports(&new, self.hardware);
        self.engine.apply_flow_updates(now);
        self.config = new;
        self.read_back()
    }

    fn replace_queue(&mut self, now: Time, direction: Direction, new: &GatewayConfig) {
        let queue = self.engine.world.direction_mut(direction).flows.discipline(new);
        let left_out = &mut self.left_out[direction as usize];
        self.engine.change(direction as usize, |link, shared| {
            let dropped = |link: &Link| link.state.counts(now).dropped.iter().sum::<u64>();
            let before = dropped(link);
            link.set_queue(now, queue, shared);
            *left_out += dropped(link) - before;
        });
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
        let rate = self.engine.world.rate(direction).unwrap_or(own.rate);
        let other_exchanges = (is_other_exchange || old.tickets.is_some() != own.tickets.is_some())
            .then(|| exchanges(new, direction));
        self.engine.change(direction as usize, |link, shared| {
            if difference.has(Setting::Rate(direction)) {
                link.set_pace(now, Pace::rate(rate), shared);
            }
            link.state.set_delay(own.delay);
            link.state.set_loss(own.loss);
            if let Some(exchanges) = other_exchanges {
                link.state.set_exchanges(exchanges);
            } else if let Some(tickets) = issued {
                link.state.issue(now, LabelKind::Tickets, tickets);
            }
        });
    }

    /// Compares the settings of the links with the configuration. Fails with the differences, one a line.
    fn read_back(&self) -> Result<(), String> {
        let differs = |direction: Direction| match self.engine.link(direction as usize) {
            Some(link) => differing(link, &self.config, direction, self.engine.world.rate(direction)),
            None => format!("{} is not there\n", direction.name()),
        };
        let differing: String = Direction::BOTH.into_iter().map(differs).collect();
        if differing.is_empty() { Ok(()) } else { Err(differing) }
    }
}

/// The settings of a link that differ from those of its direction, one key a line. A queue is compared by
/// [its parameters](apportion_core::system::LinkQueue::has_params). `rate` is the estimated rate, if the
/// direction has autorate.
fn differing(link: &Link, config: &GatewayConfig, direction: Direction, rate: Option<Rate>) -> String {
    let (way, back) = (direction.name(), direction.other().name());
    let [own, other] = [direction, direction.other()].map(|way| config.direction(way));
    let (queue, exchange) = (&own.queue, own.exchange.as_ref());
    let issued = |tickets: Option<TicketRate>| tickets.map_or_else(|| "none".to_owned(), |it| it.to_string());
    let mut found = vec![
        (format!("{way}.rate"), [link.state.rate(), rate.unwrap_or(own.rate)].map(|rate| rate.to_string())),
        (format!("{way}.delay"), [link.state.delay(), own.delay].map(|delay| delay.to_string())),
        (format!("{way}.loss"), [link.state.loss().mean(), own.loss].map(|loss| loss.to_string())),
    ];
    if !link.state.queue().has_params(&queue.params) {
        found.push((format!("{way}.queue"), ["another one".to_owned(), queue.text.clone()]));
    }
    let is_asked_for = |(_, found): &(_, CurrencyExchange)| {
        exchange.is_some_and(|exchange| found.has_params(&exchange.params))
    };
    let kinds = |all: &[(LabelKind, CurrencyExchange)]| all.iter().map(|(kind, _)| *kind).collect::<Vec<_>>();
    let is_same = kinds(link.state.exchanges()) == kinds(&exchanges(config, direction));
    if !is_same || !link.state.exchanges().iter().all(is_asked_for) {
        let asked = exchange.map_or("none", |exchange| &exchange.text);
        found.push((format!("{way}.exchange"), ["another one".to_owned(), asked.to_owned()]));
    }
    for (kind, exchange) in link.state.exchanges() {
        let (key, tickets) = match kind {
            LabelKind::AckTickets => (format!("{back}.ack_tickets"), other.ack_tickets),
            LabelKind::Tickets | LabelKind::Rate | LabelKind::Value => {
                (format!("{way}.tickets"), own.tickets)
            }
        };
        // Otherwise acknowledgements set the rate, and it is not in the configuration.
        if tickets.is_some() {
            found.push((key, [exchange.issued(), tickets].map(issued)));
        }
    }
    let differing = found.into_iter().filter(|(_, [found, asked])| found != asked);
    differing.map(|(key, [found, asked])| format!("{key} is {found}, not {asked}\n")).collect()
}

/// Whether a queue knows customers by their numbers.
fn numbers_customers(queue: &DisciplineParams) -> bool {
    queue.has_classes() || queue.divides_among_customers()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::gateway::link;
    use crate::gateway::world::GatewayWorld;

    fn config(up: &str, down: &str) -> GatewayConfig {
        let rate = if up.contains("rate") { "" } else { "rate = \"10Mbit\"" };
        let text = format!(
            "inside = \"a\"\noutside = \"b\"\n[up]\n{rate}\n{up}\n[down]\nrate = \"10Mbit\"\n{down}\n"
        );
        GatewayConfig::load(&text, Path::new("x.toml")).unwrap_or_else(|problems| panic!("{problems:?}"))
    }

    /// The differences between a running configuration and the wanted one, up.
    fn differences([up, down]: [&str; 2], asked: [&str; 2]) -> String {
        let runs = config(up, down);
        let link = link(&runs, Direction::Up, &mut GatewayWorld::new(&runs));
        differing(&link, &config(asked[0], asked[1]), Direction::Up, None)
    }

    #[test]
    fn each_setting_of_a_link_is_read_back() {
        const LABELS: &str = "labels = { reads = true, writes = true }\n";
        let with = |more: &str| format!("{LABELS}{more}");
        assert_eq!(differences(["", ""], ["", ""]), "");
        for (runs, asked, said) in [
            ("rate = \"9Mbit\"", "", "up.rate is 9Mbit, not 10Mbit\n"),
            ("delay = \"1ms\"", "", "up.delay is 1ms, not 0s\n"),
            ("", "loss = 0.5", "up.loss is 0, not 0.5\n"),
            (
                "queue = { kind = \"fifo\", limit = \"7p\" }",
                "queue = { kind = \"fifo\", limit = \"8p\" }",
                "up.queue is another one, not { kind = \"fifo\", drop = \"tail\", limit = \"8p\" }\n",
            ),
            (&with("tickets = 100"), &with("tickets = 200"), "up.tickets is 100, not 200\n"),
            (&with("tickets = 100"), &with(""), "up.exchange is another one, not none\n"),
        ] {
            assert_eq!(differences([runs, ""], [runs, ""]), "");
            assert_eq!(differences([runs, ""], [asked, ""]), said);
        }
        let exchange = with("tickets = 100\nexchange = { window = \"3s\" }");
        let said = differences([&exchange, ""], [&exchange.replace("3s", "4s"), ""]);
        assert!(
            said.starts_with("up.exchange is another one, not { kind = \"currency\", window = \"4s\""),
            "{said}"
        );
        // Tickets that acknowledgements bring down are issued up.
        let acks = |tickets: &str| [LABELS.to_owned(), with(tickets)];
        let [of_100, of_200] = [acks("ack_tickets = 100"), acks("ack_tickets = 200")];
        let [of_100, of_200] = [&of_100, &of_200].map(|both| [both[0].as_str(), both[1].as_str()]);
        assert_eq!(differences(of_100, of_100), "");
        assert_eq!(differences(of_100, of_200), "down.ack_tickets is 100, not 200\n");
        assert_eq!(differences([LABELS, LABELS], of_100).lines().count(), 1);
    }
}
