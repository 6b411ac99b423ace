//! The configuration of a gateway: a bump in the wire between two network interfaces, with a queue and a rate
//! for each direction, and rules that assign parameters to flows.
//!
//! It is read by the code that reads scenarios, and all errors are reported at once. Nothing here depends on
//! the machine: the gateway itself checks whether an interface exists.
//!
//! | file | holds |
//! |---|---|
//! | `config` | a checked configuration, typed |
//! | `tables` | every key, with its documentation |
//! | `forms` | addresses, ports, protocols and other values written as short strings |
//! | `rules` | the list `rule`: conditions, and the parameters of flows |
//! | `directions` | the tables `up` and `down` |
//! | `addresses` | the customers of addresses |
//! | `checks` | consistency of keys in different tables |
//! | `edit` | a configuration with other weights, rates or queues |
//! | `warnings` | warnings about probable mistakes |
//! | `written` | a configuration as TOML |
//! | `difference` | differences between two configurations |
//! | `describe` | the keys as Markdown |

mod addresses;
mod checks;
pub mod classifier;
mod config;
mod describe;
mod difference;
mod directions;
mod edit;
mod forms;
mod rate;
mod rules;
mod tables;
mod warnings;
mod written;

use std::path::Path;

use apportion_core::system::Catalog;

use crate::gateway::classifier::{Prefix, RuleSet};

use crate::customers;
use crate::files::{Files, ReadFile, read_file};
use crate::keys::{Fields, walk_root};
use crate::model::Customer;
use crate::plans::{self, Plans};
use crate::problem::{Problem, Problems};
use crate::selection::Part;
use crate::text::{self, Item, Table};
use rules::Rules;

#[cfg(test)]
pub(crate) use tables::ROOT as KEYS;

pub use crate::direction::Direction;
pub use addresses::Addresses;
pub use checks::COUNTED_APART;
pub use config::{
    AutoRate, DirectionConfig, GatewayConfig, Grouping, Labels, NetworkLengths, ReportKey, RuleConfig, Side,
    Treatment, TrustedSources, Written,
};
pub use describe::reference;
pub use difference::{Change, Difference, Pinned, Setting};
pub use directions::MAX_TRUSTED;
pub use edit::MAX_SET;
pub(crate) use forms::interface;
pub use rules::real_rate_rule;

impl GatewayConfig {
    /// Reads and checks a configuration file. `origin` is the path for messages; its folder on disk holds a
    /// file of plans.
    ///
    /// # Errors
    /// All problems of the file, in the order of its lines.
    pub fn load(text: &str, origin: &Path) -> Result<Self, Vec<Problem>> {
        Self::load_with(&Catalog::default(), text, origin, &read_file)
    }

    /// Like [`load`](Self::load), with the disciplines of `catalog`; `read` opens the file of plans.
    ///
    /// # Errors
    /// All problems of the file, in the order of its lines.
    pub fn load_with(
        catalog: &Catalog,
        text: &str,
        origin: &Path,
        read: ReadFile<'_>,
    ) -> Result<Self, Vec<Problem>> {
        let mut problems = Problems::default();
        let root = text::parse(text, &mut problems);
        let refuse = |problems: Problems| problems.into_vec(&origin.display().to_string());
        let Some(plans) = plans::of(&root, &Files::new(origin, read), &mut problems) else {
            return Err(refuse(problems));
        };
        let expanded = plans::expanded(&root, plans.as_ref(), &mut problems);
        let is_readable = problems.is_empty();
        let planned_queues = Direction::BOTH.map(|way| plans::queue_of(&root, way).is_some());
        let read =
            || self::read(&expanded, (plans.as_ref(), planned_queues), stem(origin), catalog, &mut problems);
        let read = is_readable.then(read).flatten();
        match read.filter(|_| problems.is_empty()) {
            Some(mut config) => {
                config.name_plans(&root, catalog);
                config.nodes = plans;
                Ok(config)
            }
            None => Err(refuse(problems)),
        }
    }

    /// Writes queues with classes of plans as the file does, not class by class: a copy would keep old rates.
    fn name_plans(&mut self, root: &Table, catalog: &Catalog) {
        for (own, way) in [(&mut self.up, Direction::Up), (&mut self.down, Direction::Down)] {
            let Some((item, of)) = plans::queue_of(root, way) else { continue };
            self.classes_of[way as usize] = Some(of);
            if let Some(text) = Part::Queue.canonical(catalog, item) {
                own.queue.text = text;
            }
        }
    }

    /// The title of a gateway with this file, even if the file has errors elsewhere.
    #[must_use]
    pub fn title_of(text: &str, origin: &Path) -> String {
        let root = text::parse(text, &mut Problems::default());
        root.get("title").and_then(Item::as_text).map_or_else(|| stem(origin), ToOwned::to_owned)
    }

    /// The settings of this direction.
    #[must_use]
    pub const fn direction(&self, direction: Direction) -> &DirectionConfig {
        match direction {
            Direction::Up => &self.up,
            Direction::Down => &self.down,
        }
    }
}

/// The title of a gateway whose file has none.
fn stem(origin: &Path) -> String {
    origin.file_stem().map_or_else(|| "gateway".to_owned(), |stem| stem.to_string_lossy().into())
}

/// Checks the whole file, with its plans, and whether the queues up and down have classes from these; every
/// error is added to `problems`. `None` only if there were errors.
fn read(
    root: &Table,
    (plans, planned_queues): (Option<&Plans>, [bool; 2]),
    name: String,
    catalog: &Catalog,
    problems: &mut Problems,
) -> Option<GatewayConfig> {
    let fields = walk_root(root, tables::ROOT, problems);
    let seed = fields.get("seed", 1, problems);
    let [inside, outside] = interfaces(&fields, problems);
    let metrics = fields.form("metrics", forms::metrics, problems);
    let notifications = fields.form("notifications", forms::socket, problems);
    let control = fields.flag("control");
    let control_token = fields.form("control_token", forms::secret_file, problems);
    checks::control(&fields, problems);
    let address = fields.form("address", forms::own_address, problems);
    let report_key = fields.form("report_key", forms::key, problems).map(ReportKey);
    let insecure = fields.flag("insecure");
    let flow_idle = fields.get("flow_idle", 1, problems);
    let flows = fields.get::<usize>("flows", 1, problems);

    let rules = rules::read(&fields, problems);
    checks::rules(&rules.all, problems);
    let planned: Vec<_> = plans.into_iter().flat_map(Plans::customers).collect();
    let (customers, addresses) = customers_of(&fields, &rules, &planned, problems);
    let [up, down] = Direction::BOTH.map(|direction| directions::read(direction, &fields, catalog, problems));
    for direction in [&up, &down].into_iter().flatten() {
        checks::guarantees(direction, &rules.all, problems);
        checks::isolation(direction, &rules.all, problems);
        checks::classes(direction, planned_queues[direction.direction as usize], problems);
    }
    let (mut up, mut down) = (up?, down?);
    checks::customers(&fields, [&up, &down], problems);
    checks::reports(&fields, [&up, &down], problems);
    directions::pair(&mut up, &mut down, problems);
    if rules.complete {
        checks::labels([&up, &down], &rules.all, problems);
    }
    let rules: Vec<RuleConfig> = rules.all.into_iter().map(|rule| rule.config).collect();
    for direction in [&mut up, &mut down] {
        direction.config.rules = class_rules(direction.direction, &rules, &fields, problems)?;
    }
    Some(GatewayConfig {
        title: fields.text("title").map_or(name, ToOwned::to_owned),
        seed: seed?,
        inside: inside?,
        outside: outside?,
        metrics,
        notifications,
        control: control?,
        control_token,
        address,
        report_key,
        insecure: insecure?,
        flow_idle: flow_idle?,
        flows: flows?,
        up: up.config,
        down: down.config,
        rules,
        plans: fields.text(plans::KEY).map(ToOwned::to_owned),
        nodes: None,
        classes_of: [None; 2],
        addresses,
        customers,
    })
}

/// The interfaces towards the inside and the outside.
fn interfaces(fields: &Fields<'_>, problems: &mut Problems) -> [Option<String>; 2] {
    let both = ["inside", "outside"].map(|key| fields.form(key, interface, problems));
    if let [Some(inside), Some(outside)] = &both
        && inside == outside
    {
        let message = format!("`{inside}` is the interface towards the inside already; write another one");
        fields.refuse("outside", message, problems);
    }
    both
}

/// The customers of rules and plans, and the customers of the plans' addresses.
fn customers_of<'a>(
    fields: &Fields<'_>,
    rules: &Rules<'_>,
    planned: &[(&str, &'a [Prefix])],
    problems: &mut Problems,
) -> (Vec<Customer>, Addresses) {
    let named = rules.all.iter().filter_map(|rule| rule.config.gives.customer.as_deref());
    let named = named.chain(planned.iter().map(|(name, _)| *name));
    // If rules were refused, their customers are unknown.
    let customers =
        if rules.complete { customers::read(fields, named, "rule", problems) } else { Vec::new() };
    let of_plan = |(name, prefixes): &(&str, &'a [Prefix])| {
        let customer = customers::number(&customers, Some(name));
        prefixes.iter().map(move |prefix| (*prefix, customer))
    };
    let addresses = Addresses::new(planned.iter().flat_map(of_plan));
    (customers, addresses)
}

fn class_rules(
    direction: Direction,
    rules: &[RuleConfig],
    root: &Fields<'_>,
    problems: &mut Problems,
) -> Option<RuleSet> {
    let own = rules.iter().enumerate().filter(|(_, rule)| rule.is_for(direction));
    let rules = RuleSet::new(own.map(|(number, rule)| (number, rule.when.clone())).collect());
    rules.map_err(|error| root.refuse("rule", error.message, problems)).ok()
}
