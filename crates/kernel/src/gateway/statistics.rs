//! The counters of a gateway in the kernel, as Prometheus text and as JSON.
//!
//! Names are those of the gateway in user space where the meaning is the same. The classes of HTB count
//! frames including their Ethernet header, which is the overhead that the kernel charges.

use std::collections::BTreeMap;

use apportion_core::queue::DropReason;
use apportion_core::units::{Rate, Span, Time};
use apportion_linux::netlink::statistics::ClassStatistics;
use apportion_live::gateway::metrics::{COUNTER, GAUGE, Kind, Metrics};
use apportion_live::gateway::snapshot::Reloads;
use apportion_scenario::gateway::Direction;
use serde_json::{Map, Value, json};

use super::earlier::{ByName, Counted, add};
use super::{Attached, DirectionPlan, KernelGateway};
use crate::hierarchy::CustomerState;
use crate::htb::MAJOR;
use crate::settings::{Counts, LinkState};
use crate::tickets::{TicketCounts, TicketState};

/// A reading of the counters.
#[derive(Clone, Debug)]
pub struct Statistics {
    title: String,
    uptime: Span,
    /// The directions up and down.
    directions: [DirectionStatistics; 2],
}

#[derive(Clone, Debug, Default)]
pub struct DirectionStatistics {
    /// The egress interface.
    pub interface: String,
    /// Whether the interface exists.
    pub is_attached: bool,
    /// Whether the interface exists, is up, and has a carrier.
    pub is_up: bool,
    /// Whether queue and program are set up.
    pub is_installed: bool,
    /// The rate of the link.
    pub rate: Rate,
    /// The leaves since the start, including those that were removed and set up again; a leaf without a name
    /// holds all packets.
    pub classes: BTreeMap<String, ClassStatistics>,
    /// Counts of leaves that a reload removed.
    pub others: ClassStatistics,
    /// Counts of the programs before the queue, including removed ones; `unlabelled` are packets dropped for
    /// lack of a label.
    pub programs: TicketCounts,
    /// Packets that the programs dropped because no class was assigned to them.
    pub unclassed: u64,
    /// The core before the queue.
    pub core: Option<(LinkState, Counts)>,
    /// TRED before the queue.
    pub tickets: Option<(TicketState, TicketCounts)>,
    /// The customers of a core of HCSFQ; all others have an empty name.
    pub customers: BTreeMap<String, CustomerState>,
}

impl KernelGateway {
    /// Reads the counters, at time `now` after the start. The counters of a direction continue when its queue
    /// is set up anew or another program removed it.
    pub fn statistics(&mut self, now: Time) -> Statistics {
        Statistics {
            title: self.config.title.clone(),
            uptime: now.since(Time::ZERO),
            directions: Direction::BOTH.map(|direction| self.of_direction(direction)),
        }
    }

    fn of_direction(&mut self, direction: Direction) -> DirectionStatistics {
        let at = direction as usize;
        let (is_attached, is_up) = (self.ends[at].is_some(), self.are_up()[at]);
        if let Some(device) = self.ends[at].as_ref().map(|end| end.device) {
            // Values that the kernel does not return stay as last read.
            if let Ok(all) = self.netlink.class_statistics(device, MAJOR) {
                self.note(direction, &all);
            }
        }
        let own = match direction {
            Direction::Up => &self.config.up,
            Direction::Down => &self.config.down,
        };
        let earlier = &self.earlier[at];
        let program = self.ends[at].as_ref().and_then(|end| end.program.as_ref());
        let mut statistics = DirectionStatistics {
            interface: self.interface(direction).to_owned(),
            is_attached,
            is_up,
            is_installed: program.is_some(),
            rate: own.rate,
            classes: earlier.totals(),
            others: earlier.others,
            programs: earlier.programs.packets,
            unclassed: earlier.programs.unclassed,
            ..DirectionStatistics::default()
        };
        if let Some(program) = program {
            statistics.take(program, &earlier.programs);
        }
        statistics
    }

    /// Notes the counts of the classes at the device of a direction since they were set up.
    pub(super) fn note(&mut self, direction: Direction, all: &[ClassStatistics]) {
        let at = direction as usize;
        self.earlier[at].read(counted_by(&self.plans[at], all));
    }

    /// Keeps the counts of the queue of a device under the plan `before`, which is about to be removed.
    pub(super) fn keep_counts(&mut self, direction: Direction, device: u32, before: &DirectionPlan) {
        let (plan, earlier) = (&self.plans[direction as usize], &mut self.earlier[direction as usize]);
        if let Ok(all) = self.netlink.class_statistics(device, MAJOR) {
            earlier.read(counted_by(before, &all));
        }
        earlier.end_queue();
        earlier.keep(&plan.tree.leaves().map(|(_, name)| name).collect());
    }
}

/// Maps counts to the names of the leaves of a plan.
fn counted_by(plan: &DirectionPlan, all: &[ClassStatistics]) -> ByName {
    let by_number: BTreeMap<u16, &ClassStatistics> = all.iter().map(|class| (class.minor, class)).collect();
    let named = |(minor, name): (u16, &str)| Some((name.to_owned(), **by_number.get(&minor)?));
    plan.tree.leaves().filter_map(named).collect()
}

type OfClass = fn(&ClassStatistics) -> f64;
const OF_CLASSES: [(&str, Kind, &str, OfClass); 4] = [
    ("sent_packets_total", COUNTER, "Packets handed to the interface.", |it| it.packets as f64),
    ("sent_bytes_total", COUNTER, "What left, overhead included.", |it| it.bytes as f64),
    ("backlog_packets", GAUGE, "Packets that wait.", |it| it.backlog_packets.into()),
    ("backlog_bytes", GAUGE, "What waits, overhead included.", |it| it.backlog_bytes.into()),
];

type OfCounts = fn(&Counts) -> f64;
const OF_COUNTS: [(&str, Kind, &str, OfCounts); 3] = [
    ("core_received_packets_total", COUNTER, "IP packets that came to a core.", |it| it.packets as f64),
    ("core_received_bytes_total", COUNTER, "Their bytes, as charged.", |it| it.bytes as f64),
    ("core_relabelled_packets_total", COUNTER, "Packets that left a core with a lower label.", |it| {
        it.relabelled as f64
    }),
];

type OfInterface = fn(&DirectionStatistics) -> bool;
const OF_INTERFACES: [(&str, &str, OfInterface); 2] = [
    ("interface_attached", "Whether the interface is there.", |it| it.is_attached),
    ("interface_up", "Whether the interface is there, up, and has a carrier.", |it| it.is_up),
];

type OfCore = fn(&LinkState) -> f64;
const OF_CORES: [(&str, Kind, &str, OfCore); 1] = [(
    "core_fair_share_bytes_per_second",
    GAUGE,
    "The fair share of weight 1; 0 while it is unknown.",
    |it| it.alpha.unwrap_or(0.0) / 8.0,
)];

type OfTickets = fn(&(TicketState, TicketCounts)) -> f64;
const OF_TICKETS: [(&str, Kind, &str, OfTickets); 6] = [
    ("core_average_queue_seconds", GAUGE, "The average queue, as time of the link.", |it| {
        it.0.average.as_secs_f64()
    }),
    ("core_expected_tickets", GAUGE, "ExpectTkt, for 64 KiB or for a packet; 0 before one counted.", |it| {
        it.0.expected.unwrap_or(0.0)
    }),
    ("core_issued_tickets_per_second", GAUGE, "What an exchange is issued; 0 without one.", |it| it.0.issued),
    ("core_received_tickets_total", COUNTER, "Tickets on packets that came to a core.", |it| {
        it.1.tickets as f64
    }),
    ("core_labelled_packets_total", COUNTER, "Packets with tickets that came to a core.", |it| {
        it.1.labelled as f64
    }),
    ("core_exchanged_tickets_total", COUNTER, "Tickets that an exchange wrote.", |it| it.1.written as f64),
];

type OfCustomer = fn(&CustomerState) -> f64;
const OF_CUSTOMERS: [(&str, Kind, &str, OfCustomer); 6] = [
    (
        "core_customer_received_packets_total",
        COUNTER,
        "Labelled packets of a customer that came to a core.",
        |it| it.packets as f64,
    ),
    ("core_customer_received_bytes_total", COUNTER, "Their bytes, as charged.", |it| it.bytes as f64),
    ("core_customer_dropped_packets_total", COUNTER, "Those that it dropped.", |it| it.dropped as f64),
    (
        "core_customer_arrival_bytes_per_second",
        GAUGE,
        "Rate of a customer's packets at their last one.",
        |it| it.arrival_rate / 8.0,
    ),
    (
        "core_customer_part_bytes_per_second",
        GAUGE,
        "What a customer may have; 0 before its first packet.",
        |it| it.part.unwrap_or(0.0) / 8.0,
    ),
    (
        "core_customer_fair_share_bytes_per_second",
        GAUGE,
        "The fair share of a customer's flow of weight 1; 0 while it is unknown.",
        |it| it.share.alpha.unwrap_or(0.0) / 8.0,
    ),
];

impl DirectionStatistics {
    /// Takes over the counters of the program, added to those of earlier programs.
    fn take(&mut self, program: &Attached, earlier: &Counted) {
        let total = Counted::of(program).plus(earlier);
        (self.programs, self.unclassed) = (total.packets, total.unclassed);
        match program {
            Attached::None | Attached::Prefixes(_) => (),
            Attached::Core(core) => self.core = core.state().ok().map(|state| (state, total.packets.all)),
            Attached::Hierarchy { core, names } => {
                self.core = core.state().ok().map(|state| (state, total.packets.all));
                let counted = |(name, number): (&String, u32)| {
                    let [packets, bytes, dropped] = *total.customers.get(name)?;
                    let state = core.customer(number).ok()?;
                    Some((name.clone(), CustomerState { packets, bytes, dropped, ..state }))
                };
                self.customers = names.iter().zip(0..).filter_map(counted).collect();
            }
            Attached::Tickets(queue) => {
                self.tickets = queue.state().ok().map(|state| (state, total.packets));
            }
        }
    }

    /// Packet counts of the program and earlier ones, if they count.
    fn counts(&self) -> Option<Counts> {
        let tickets = self.tickets.map(|(_, counts)| counts.all);
        self.core.map(|(_, counts)| counts).or(tickets)
    }

    /// Packets dropped, by reason.
    fn dropped(&self) -> impl Iterator<Item = (DropReason, u64)> {
        let TicketCounts { all: counts, forced, .. } = self.programs;
        let classes = self.classes.values().chain([&self.others]);
        let full: u64 = classes.map(|class| class.drops).sum();
        let forced = Some((DropReason::Forced, forced)).filter(|_| self.tickets.is_some() || forced > 0);
        [
            (DropReason::Early, counts.early),
            (DropReason::Overflow, counts.overflow + full),
            (DropReason::Policy, counts.unlabelled + self.unclassed),
        ]
        .into_iter()
        .chain(forced)
    }

    /// The state of the program, as JSON.
    fn core_json(&self) -> Option<Value> {
        let counts = self.counts()?;
        let mut all: Map<_, _> =
            OF_COUNTS.iter().map(|(name, _, _, of)| (plain(name), json!(of(&counts)))).collect();
        if let Some((state, _)) = &self.core {
            all.extend(OF_CORES.iter().map(|(name, _, _, of)| (plain(name), json!(of(state)))));
            all.insert("congested".to_owned(), json!(state.is_congested));
        }
        if !self.customers.is_empty() {
            let customers = self.customers.iter().map(|(name, own)| (name.clone(), of_customer(own)));
            all.insert("customers".to_owned(), customers.collect());
        }
        if let Some(tickets) = &self.tickets {
            all.extend(OF_TICKETS.iter().map(|(name, _, _, of)| (plain(name), json!(of(tickets)))));
        }
        Some(Value::Object(all))
    }

    fn json(&self) -> Value {
        let class = |class: &ClassStatistics| {
            let mut of: Map<_, _> =
                OF_CLASSES.iter().map(|(name, _, _, of)| (plain(name), json!(of(class) as u64))).collect();
            of.insert("dropped_packets".to_owned(), json!({ DropReason::Overflow.name(): class.drops }));
            Value::Object(of)
        };
        let mut sum = self.others;
        self.classes.values().for_each(|class| add(&mut sum, class));
        let mut all = class(&sum);
        let named = self.classes.iter().filter(|(name, _)| !name.is_empty());
        let customers: Map<_, _> = named.map(|(name, own)| (name.clone(), class(own))).collect();
        all["interface"] = json!(self.interface);
        all["installed"] = json!(self.is_installed);
        all["rate_bytes_per_second"] = json!(self.rate.as_bit() as f64 / 8.0);
        all["customers"] = Value::Object(customers);
        all["dropped_packets"] =
            self.dropped().map(|(reason, count)| (reason.name().to_owned(), json!(count))).collect();
        if let Some(core) = self.core_json() {
            all["core"] = core;
        }
        all
    }
}

fn of_customer(own: &CustomerState) -> Value {
    OF_CUSTOMERS
        .iter()
        .map(|(name, _, _, of)| (plain(name).trim_start_matches("customer_").to_owned(), json!(of(own))))
        .collect()
}

/// Removes the parts of a name that only Prometheus requires.
fn plain(name: &str) -> String {
    name.trim_start_matches("core_").trim_end_matches("_total").to_owned()
}

impl Statistics {
    #[must_use]
    pub fn json(&self, reloads: &Reloads) -> Value {
        let directions = Direction::BOTH.into_iter().zip(&self.directions);
        json!({
            "title": self.title,
            "version": env!("CARGO_PKG_VERSION"),
            "backend": "kernel",
            "uptime_seconds": self.uptime.as_secs_f64(),
            "directions": directions
                .map(|(direction, own)| (direction.name().to_owned(), own.json()))
                .collect::<Value>(),
            "interfaces": self
                .directions
                .iter()
                .map(|own| (own.interface.clone(), json!({ "attached": own.is_attached, "up": own.is_up })))
                .collect::<Value>(),
            "reloads": reloads.json(),
        })
    }

    /// Formats the counters as Prometheus text.
    #[must_use]
    pub fn prometheus(&self, reloads: &Reloads) -> String {
        let mut metrics = Metrics::default();
        let info = vec![
            ("title", self.title.as_str()),
            ("version", env!("CARGO_PKG_VERSION")),
            ("backend", "kernel"),
        ];
        metrics.gauge("info", "The gateway.", [(info, 1.0)]);
        let directions = || Direction::BOTH.map(Direction::name).into_iter().zip(&self.directions);
        for (name, kind, help, of) in OF_CLASSES {
            let classes = directions().flat_map(|(direction, own)| {
                own.classes.iter().map(move |(customer, class)| {
                    let customer = Some(("customer", &**customer)).filter(|(_, name)| !name.is_empty());
                    let labels = std::iter::once(("direction", direction)).chain(customer);
                    (labels.collect(), of(class))
                })
            });
            metrics.add(name, kind, help, classes);
        }
        let dropped = directions().flat_map(|(direction, own)| {
            own.dropped().map(move |(reason, count)| {
                (vec![("direction", direction), ("reason", reason.name())], count as f64)
            })
        });
        metrics.counter("dropped_packets_total", "Packets that were dropped.", dropped);
        for (name, kind, help, of) in OF_COUNTS {
            let counts = directions()
                .filter_map(|(direction, own)| Some((vec![("direction", direction)], of(&own.counts()?))));
            metrics.add(name, kind, help, counts);
        }
        for (name, kind, help, of) in OF_CORES {
            let cores = directions().filter_map(|(direction, own)| {
                Some((vec![("direction", direction)], of(&own.core.as_ref()?.0)))
            });
            metrics.add(name, kind, help, cores);
        }
        for (name, kind, help, of) in OF_TICKETS {
            let tickets = directions().filter_map(|(direction, own)| {
                Some((vec![("direction", direction)], of(own.tickets.as_ref()?)))
            });
            metrics.add(name, kind, help, tickets);
        }
        for (name, kind, help, of) in OF_CUSTOMERS {
            let customers = directions().flat_map(|(direction, own)| {
                own.customers.iter().map(move |(customer, state)| {
                    let customer = Some(("customer", &**customer)).filter(|(_, name)| !name.is_empty());
                    (std::iter::once(("direction", direction)).chain(customer).collect(), of(state))
                })
            });
            metrics.add(name, kind, help, customers);
        }
        for (name, help, of) in OF_INTERFACES {
            let interfaces = self.directions.iter();
            let states =
                interfaces.map(|own| (vec![("interface", &*own.interface)], f64::from(u8::from(of(own)))));
            metrics.gauge(name, help, states);
        }
        let rates = directions()
            .map(|(direction, own)| (vec![("direction", direction)], own.rate.as_bit() as f64 / 8.0));
        metrics.gauge("rate_bytes_per_second", "Rate of the transmitter.", rates);
        metrics.gauge("uptime_seconds", "Time since the start.", [(Vec::new(), self.uptime.as_secs_f64())]);
        reloads.add_to(&mut metrics);
        metrics.text()
    }
}
