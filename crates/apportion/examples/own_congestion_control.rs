//! A registered congestion control: by its name in a scenario, and next to all others in a sweep.
#![expect(clippy::print_stdout, reason = "a program")]

use apportion::{Catalog, Run, ScenarioBuilder, catalogue};
use apportion_core::congestion::{
    ALGORITHMS, Ack, CongestionControl, CongestionEvent, ControlEntry, LossRecovery, Response, Window,
};

/// Kelly, "Scalable TCP", CCR 33(2), 2003: each segment acknowledged increases the window by 0.01, and a loss
/// decreases it by an eighth.
#[derive(Debug)]
pub(crate) struct Scalable;

impl CongestionControl for Scalable {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        if ack.may_grow {
            window.cwnd += if window.is_slow_start() { ack.acked } else { 0.01 * ack.acked };
        }
    }
    fn on_loss(&mut self, _window: &mut Window, event: &CongestionEvent) -> Response {
        Response::Reduce(0.875 * event.basis)
    }
}

pub(crate) static ENTRY: ControlEntry = ControlEntry {
    quic: true,
    ..ControlEntry::new(
        "scalable",
        "Opens the window by a hundredth of what is acknowledged; a loss takes an eighth.",
        "Kelly, Scalable TCP (CCR 33(2), 2003)",
    )
};

pub(crate) fn catalog() -> Result<Catalog, Box<dyn std::error::Error>> {
    let mut catalog = Catalog::default();
    catalog.register_control(&ENTRY, |_connection| Scalable)?;
    Ok(catalog)
}

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let catalog = catalog()?;
    println!("{}", catalogue::explain(&catalog, "scalable")?);
    // Tahoe's loss recovery differs from that of the default TCP.
    let known =
        ALGORITHMS.iter().chain(catalog.controls()).filter(|entry| entry.recovery != LossRecovery::Tahoe);
    let names = format!("{:?}", known.map(|entry| entry.name).collect::<Vec<_>>());
    let scenario = ScenarioBuilder::example("quickstart").ok_or("no such example")?.catalog(&catalog);
    let scenario = scenario.set("stop", "8s").set("topology.bottleneck.queue", "fifo");
    let scenario = scenario.set("flow.bulk.tcp", names).load()?;
    let results = Run::new(&scenario).simulate()?;
    results.flows().for_each(|row| println!("{} {}: {:.3} Mb/s", row.point, row.flow, row.throughput_mbps));
    Ok(())
}
