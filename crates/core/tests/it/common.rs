//! Helpers of the integration tests: a packet, a sink that records, and every discipline of the catalogue.

pub use apportion_core::SimplePacket;
use apportion_core::limit::Limit;
use apportion_core::packet::Customers;
use apportion_core::param::Role;
use apportion_core::schedule::rcs::Rights;
use apportion_core::system::catalog::{Catalog, Selection};
use apportion_core::system::{Discipline, DisciplineParams, LinkContext, LinkQueue};
use apportion_core::units::{self, Rate, Time, Weight};
use apportion_core::{Backlog, DropReason, FlowId, FlowSetting, Overload, Queue, Sink};

#[path = "../../src/testing.rs"]
mod testing;
pub use testing::{Log, packet};

/// Reads a scenario table: `kind`, then `key=value` pairs, of which `drop` and `shaper` select entries.
pub fn read(kind: &str, pairs: &[&str]) -> Result<DisciplineParams, String> {
    let pairs: Vec<_> = pairs.iter().filter_map(|pair| pair.split_once('=')).collect();
    let of = |key| pairs.iter().find(|pair| pair.0 == key).map(|pair| pair.1);
    let text = |error: apportion_core::param::ParamError| error.to_string();
    let mut selection = Selection::new(kind, of("drop"), of("shaper")).map_err(text)?;
    for (key, value) in pairs.iter().filter(|pair| !["drop", "shaper"].contains(&pair.0)) {
        match key.strip_prefix("class.").and_then(|rest| rest.split_once('.')) {
            Some((class, key)) => selection.set_of_class(class, key, value).map_err(text)?,
            None => selection.set(key, value).map_err(text)?,
        }
    }
    DisciplineParams::from_args(&selection).map_err(text)
}

pub fn setup(weights: &[Weight]) -> LinkContext<'_> {
    LinkContext {
        link_rate: Rate::from_mbit(10),
        weights,
        smallest_weight: None,
        rtts: &[],
        guarantees: &[],
        classes: &[],
        targets: &[],
        customers: Customers::default(),
        rights: Rights::default(),
        hosts: &[],
        seed: 1,
        layer2: units::Bytes::ZERO,
        name: "link",
    }
}

pub fn build(kind: &str, pairs: &[&str], weights: &[f64]) -> LinkQueue<SimplePacket> {
    let weights: Vec<_> = weights.iter().map(|&weight| Weight::new(weight).expect("a weight")).collect();
    read(kind, pairs).expect("a valid table").build_simple(&setup(&weights))
}

/// Every kind with every policy that fits it, by the words of a scenario.
pub fn combinations() -> Vec<(&'static str, Option<&'static str>)> {
    let catalog = Catalog::default();
    let of = |role| catalog.all().filter(move |entry| entry.role == role).map(|entry| entry.name);
    let alone = of(Role::System).chain(of(Role::Policy)).map(|kind| (kind, None));
    let both = of(Role::Scheduler).flat_map(|kind| of(Role::Policy).map(move |drop| (kind, Some(drop))));
    alone.chain(both).collect()
}

/// Bytes served per flow in `bytes` of service, with `flows` flows that always have two packets waiting.
pub fn serve_backlogged(
    queue: &mut LinkQueue<SimplePacket>,
    flows: u32,
    size: impl Fn(u32) -> u64,
    services: u64,
) -> Vec<f64> {
    let mut log = Log::default();
    let mut served = vec![0.0; flows as usize];
    for flow in (0..flows).chain(0..flows) {
        queue.enqueue(Time::ZERO, packet(0, flow, size(flow)), &mut log);
    }
    for _ in 0..services {
        let sent = queue.dequeue(Time::ZERO, &mut log).expect("work conservation");
        served[sent.flow.index()] += sent.size.get() as f64;
        queue.enqueue(Time::ZERO, packet(0, sent.flow.0, sent.size.get()), &mut log);
    }
    served
}

/// Keys for a buffer of `limit` packets. Disciplines with an average and thresholds are set to drop within a
/// few packets; otherwise missed idle time would not show.
pub fn keys(kind: &str, drop: Option<&str>, limit: u64) -> Vec<String> {
    let (low, high) = (limit / 4, 3 * limit / 4);
    let thresholds = |of: &str| format!("{of}min_th={low}p {of}max_th={high}p");
    let brisk = match drop.unwrap_or(kind) {
        "red" => format!("w_q=0.3 ecn=true {}", thresholds("")),
        "tred" => format!("w_q=0.3 l4s=true {}", thresholds("")),
        "rio" => format!("w_q=0.3 {} {}", thresholds("in_"), thresholds("out_")),
        "fred" => format!("w_q=0.3 max_p=0.5 min_q=1p {}", thresholds("")),
        "choke" => format!("w_q=0.3 {}", thresholds("")),
        "afq" => "bpr=1500B queues=3".to_owned(),
        "cebinae" => "interval=1ms tax=0.3 delta_f=0.2".to_owned(),
        "sred" => "zombies=3 crowd=2".to_owned(),
        "pie" | "fq_pie" => {
            "target=1ms tupdate=1ms alpha=50 beta=50 max_burst=2ms ecn=true mean_pktsize=40B".to_owned()
        }
        "ppv" => "target=4p".to_owned(),
        "pvpie" => "target=1ms tupdate=1ms alpha=50 beta=50 max_burst=2ms window=20ms".to_owned(),
        "vdq_csaqm" => "target=1ms window=10ms".to_owned(),
        "dualpi2" => "target=1ms rtt_max=3ms min_th=100us".to_owned(),
        "cobalt" => "target=1us interval=2us increment=0.1 decrement=0.05".to_owned(),
        "cake" => "flows=4 ways=2 target=1us interval=2us increment=0.1 decrement=0.05".to_owned(),
        "pfd" => "p=0.2 thresh=0.4 l4s=true".to_owned(),
        "csfq" | "mcsfq" => "l4s=true".to_owned(),
        "bred" => format!("l1={}p l2={low}p w_m={high}p p1=0.2 p2=0.4", low / 2),
        // These have no average and no threshold, or drop within a few packets by default.
        "tail" | "head" | "lqd" | "random_drop" | "ahab" | "hcsfq" | "sffc" | "nbq" | "codel" | "fq"
        | "fq_codel" | "ramp" | "aifo" | "packs" | "rifo" | "sp_pifo" | "sfq" | "prio" | "htb" | "hfsc" => {
            String::new()
        }
        other => panic!(
            "`{other}` has no row in `keys` of crates/core/tests/it/common.rs: add one with parameters at which it drops, \
             marks and reorders within a few packets, or name it among those that need none"
        ),
    };
    let drop = drop.map(|drop| format!("drop={drop} ")).unwrap_or_default();
    format!("{drop}limit={limit}p {brisk}").split_whitespace().map(str::to_owned).collect()
}

/// A discipline of the catalogue as a system, for the laws.
pub struct Whole(pub LinkQueue<SimplePacket>);

impl Queue<SimplePacket> for Whole {
    fn enqueue(&mut self, now: Time, packet: SimplePacket, sink: &mut dyn Sink<SimplePacket>) {
        self.0.enqueue(now, packet, sink);
    }
    fn dequeue(&mut self, now: Time, sink: &mut dyn Sink<SimplePacket>) -> Option<SimplePacket> {
        self.0.dequeue(now, sink)
    }
    fn is_transparent(&self) -> bool {
        self.0.is_transparent()
    }
    fn next_wakeup(&self) -> Option<Time> {
        self.0.next_wakeup()
    }
    fn backlog(&self) -> Backlog {
        self.0.backlog()
    }
}

impl Discipline<SimplePacket> for Whole {
    fn drain(&mut self, now: Time) -> Option<SimplePacket> {
        self.0.drain(now)
    }
    fn set_limit(&mut self, limit: Limit) {
        self.0.set_limit(limit);
    }
    fn set_link_rate(&mut self, rate: Rate) {
        self.0.set_link_rate(rate);
    }
    fn set_flow(&mut self, flow: FlowId, setting: FlowSetting) -> bool {
        self.0.set_flow(flow, setting)
    }
}
