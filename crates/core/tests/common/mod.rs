//! What the integration tests share: a packet, a sink that remembers, and every discipline of the catalogue.
#![allow(dead_code, reason = "each test binary uses its part of this module")]

pub use apportion_core::SimplePacket;
use apportion_core::packet::Customers;
use apportion_core::param::Role;
use apportion_core::system::catalog::{Catalog, Selection};
use apportion_core::system::{Discipline, DisciplineParams, LinkContext};
use apportion_core::units::{self, Rate, Time, Weight};
use apportion_core::{DropReason, FlowId, Overload, Queue, Sink};

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
        selection.set(key, value).map_err(text)?;
    }
    DisciplineParams::from_args(&selection).map_err(text)
}

pub fn setup(weights: &[Weight]) -> LinkContext<'_> {
    LinkContext {
        link_rate: Rate::from_mbit(10),
        weights,
        rtts: &[],
        guarantees: &[],
        classes: &[],
        customers: Customers::default(),
        seed: 1,
        name: "link",
    }
}

pub fn build(kind: &str, pairs: &[&str], weights: &[f64]) -> Discipline<SimplePacket> {
    let weights: Vec<_> = weights.iter().map(|&weight| Weight::new(weight).expect("a weight")).collect();
    read(kind, pairs).expect("a valid table").build(&setup(&weights))
}

/// Every kind with every policy it takes, by the words of a scenario.
pub fn combinations() -> Vec<(&'static str, Option<&'static str>)> {
    let catalog = Catalog::default();
    let of = |role| catalog.all().filter(move |entry| entry.role == role).map(|entry| entry.name);
    let alone = of(Role::System).chain(of(Role::Policy)).map(|kind| (kind, None));
    let both = of(Role::Scheduler).flat_map(|kind| of(Role::Policy).map(move |drop| (kind, Some(drop))));
    alone.chain(both).collect()
}

/// Bytes served per flow in `bytes` of service, with `flows` flows that always have two packets waiting.
pub fn serve_backlogged(
    queue: &mut Discipline<SimplePacket>,
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
