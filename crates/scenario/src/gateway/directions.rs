//! The tables `up` and `down`: the settings of one direction.

use crate::gateway::classifier::{Prefix, RuleSet};
use apportion_core::param::GoesBy;
use apportion_core::system::{Catalog, DisciplineParams};
use apportion_core::units::Bytes;

use super::tables::{DIRECTION, LABELS};
use super::{Direction, DirectionConfig, Labels, TrustedSources, Written, rate};
use crate::keys::{Fields, walk};
use crate::problem::Problems;
use crate::selection::Part;
use crate::text::{Item, Table, Value, join};
use crate::{marking, queue};

/// Maximum overhead charged per packet. Chosen: several times what any stack of link layers adds.
const MAX_OVERHEAD: Bytes = Bytes::new(256);

/// Maximum number of prefixes in a list of trusted sources. Chosen: each labelled packet is compared with all of them.
pub const MAX_TRUSTED: usize = 64;

/// A direction and its place. Its rules are not known yet.
pub(super) struct Placed<'a> {
    pub direction: Direction,
    pub config: DirectionConfig,
    pub fields: Fields<'a>,
}

/// Reads a direction; `None` only if something was refused.
pub(super) fn read<'a>(
    direction: Direction,
    root: &Fields<'a>,
    catalog: &Catalog,
    problems: &mut Problems,
) -> Option<Placed<'a>> {
    let key = direction.name();
    let fields = walk(root.item(key)?, key, DIRECTION, false, problems)?;
    let rate = rate::read(&fields, problems);
    let overhead = fields.get("overhead", 1, problems);
    if let Some(overhead) = overhead.filter(|overhead| *overhead > MAX_OVERHEAD) {
        let message = format!(
            "{overhead} in addition to each packet is more than {MAX_OVERHEAD}; write for example \"14B\""
        );
        fields.refuse("overhead", message, problems);
    }
    let fifo = Item::text(Part::Queue.example(), fields.place);
    let item = fields.item("queue").unwrap_or(&fifo);
    let queue = read_queue(catalog, item, &fields.path_of("queue"), problems);
    if queue.as_ref().is_some_and(|queue| queue.params.goes_by(GoesBy::Agreements)) {
        let message = "`rcs` divides along the agreements of a network, which a gateway does not know; write for example \"drr\"";
        fields.refuse("queue", message, problems);
    }
    let exchange = fields.item("exchange").and_then(|item| {
        let params = marking::exchange(catalog, item, &fields.path_of("exchange"), problems)?;
        Some(Written::new(catalog, Part::Exchange, item, (*params).clone()))
    });
    let labels = labels(&fields, problems);
    let (rate, auto) = rate?;
    let config = DirectionConfig {
        rate,
        auto,
        overhead: overhead?,
        queue: queue?,
        delay: fields.get("delay", 1, problems)?,
        loss: fields.get("loss", 1, problems)?,
        tickets: fields.tickets("tickets", 1, problems),
        ack_tickets: fields.tickets("ack_tickets", 1, problems),
        exchange,
        labels: labels?,
        rules: RuleSet::default(),
    };
    Some(Placed { direction, config, fields })
}

/// Reads the queue. If it does not set the trust in reports, trust is bounded: unlike in a scenario, routers
/// may lie. A gateway cannot read the counters of other routers.
fn read_queue(
    catalog: &Catalog,
    item: &Item,
    path: &str,
    problems: &mut Problems,
) -> Option<Written<DisciplineParams>> {
    let params = queue::read_of_gateway(catalog, item, path, problems)?;
    let mut table = match &item.value {
        Value::Table(table) => table.clone(),
        _ => Table { entries: vec![("kind".to_owned(), item.clone())] },
    };
    if params.report_trust().is_none() {
        return Some(Written::new(catalog, Part::Queue, item, (*params).clone()));
    }
    if params.reads_counters() && table.get("counters").is_some() {
        let message = "a gateway reads no counters of other routers; leave `counters` out";
        problems.add(item.place, join(path, "counters"), message);
    }
    for (key, value) in [("trust", Value::Text("bounded".to_owned())), ("counters", Value::Flag(false))] {
        if table.get(key).is_none() {
            table.entries.push((key.to_owned(), Item { value, place: item.place }));
        }
    }
    let item = Item { value: Value::Table(table), place: item.place };
    let params = queue::read_of_gateway(catalog, &item, path, problems)?;
    Some(Written::new(catalog, Part::Queue, &item, (*params).clone()))
}

fn labels(fields: &Fields<'_>, problems: &mut Problems) -> Option<Labels> {
    let Some(item) = fields.item("labels") else { return Some(Labels::default()) };
    let fields = walk(item, &fields.path_of("labels"), LABELS, false, problems)?;
    let reads = trusted_sources(&fields, problems);
    Some(Labels { reads: reads?, writes: fields.flag("writes")? })
}

/// `None` only if something was refused.
fn trusted_sources(fields: &Fields<'_>, problems: &mut Problems) -> Option<TrustedSources> {
    let items = match fields.item("reads").map(|item| &item.value) {
        None | Some(Value::Flag(false)) => return Some(TrustedSources::None),
        Some(Value::Flag(true)) => return Some(TrustedSources::All),
        Some(Value::List(items)) => items,
        Some(_) => return None,
    };
    if items.is_empty() || items.len() > MAX_TRUSTED {
        let message =
            format!("a list has 1 to {MAX_TRUSTED} prefixes; write for example [\"192.0.2.0/24\"], or false");
        fields.refuse("reads", message, problems);
        return None;
    }
    let prefix = |item: &Item| match Prefix::read(&item.plain(), "reads") {
        Ok(prefix) => Some(prefix),
        Err(error) => {
            fields.refuse("reads", error.message, problems);
            None
        }
    };
    items.iter().map(prefix).collect::<Option<_>>().map(TrustedSources::Of)
}

/// Adds an exchange to each direction that exchanges tickets, and refuses one without tickets to exchange.
pub(super) fn pair<'a>(up: &mut Placed<'a>, down: &mut Placed<'a>, problems: &mut Problems) {
    let carries = [&*down, &*up].map(|other| other.config.ack_tickets.is_some());
    for (placed, carries_tickets) in [up, down].into_iter().zip(carries) {
        let Placed { config, fields, direction } = placed;
        if config.tickets.is_some() || config.ack_tickets.is_some() || carries_tickets {
            config.exchange.get_or_insert_with(|| {
                let item = Item::text(Part::Exchange.example(), fields.place);
                let catalog = Catalog::default();
                let params = (*marking::default_exchange(&catalog)).clone();
                Written::new(&catalog, Part::Exchange, &item, params)
            });
        } else if config.exchange.is_some() {
            let other = direction.other().name();
            let message = format!(
                "nothing is exchanged here: neither does this direction have tickets, nor does `{other}` \
                 have `ack_tickets`; write for example tickets = 100, or leave `exchange` out"
            );
            fields.refuse("exchange", message, problems);
        }
    }
}
