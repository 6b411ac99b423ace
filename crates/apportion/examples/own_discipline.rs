//! A registered discipline: in the simulator with all others, or on the real packets of a command.
#![expect(clippy::print_stdout, reason = "a program")]

use apportion::{Catalog, Run, ScenarioBuilder};
use apportion_core::limit::{BufferSize, Limit, LinkLimit};
use apportion_core::param::{Entry, LIMIT, Role, Traits};
use apportion_core::{Backlog, DropReason, Packet, aqm::Admission, aqm::BufferPolicy, buffer::Buffer};
use apportion_core::{random::Stream, schedule::fifo::Fifo, system::LinkContext, units::Rate, units::Time};

pub(crate) struct Quadratic(pub LinkLimit, pub Stream);

impl<P: Packet> BufferPolicy<P> for Quadratic {
    fn admit(&mut self, _now: Time, packet: &mut P, backlog: Backlog) -> Admission {
        let early = self.1.chance(self.0.get().filled_by(backlog).powi(2));
        let drops = early || !self.0.get().admits(packet, backlog);
        if drops { Admission::Drop(DropReason::Early) } else { Admission::Accept }
    }
    fn set_limit(&mut self, limit: Limit) {
        self.0.set(limit);
    }
    fn set_link_rate(&mut self, rate: Rate) {
        self.0.set_link_rate(rate);
    }
}

static ENTRY: Entry = Entry {
    name: "quadratic",
    role: Role::System,
    summary: "Drops with the square of how full the buffer is.",
    reference: "–",
    cost: "O(1) per packet, no state per flow",
    params: &[LIMIT],
    traits: Traits::NONE,
};

pub(crate) fn catalog() -> Result<Catalog, Box<dyn std::error::Error>> {
    let mut catalog = Catalog::default();
    let build = |&limit: &Option<BufferSize>, link: &LinkContext<'_>| {
        Buffer::new(Fifo::new(), Quadratic(LinkLimit::new(limit, link.link_rate), link.stream()))
    };
    catalog.register(&ENTRY, |args| Ok(args.limit_if_set("limit")), build)?;
    Ok(catalog)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let catalog = catalog()?;
    #[cfg(target_os = "linux")]
    if std::env::args_os().len() > 1 {
        use apportion::shell::{LinkOptions, Shell};
        let up = LinkOptions { queue: Some("quadratic".to_owned()), ..LinkOptions::default() };
        let results = Shell { up, catalog, ..Shell::new(std::env::args_os().skip(1)) }.prepare()?.run()?;
        println!("{}", results.lines().join("\n"));
        return Ok(());
    }
    let queues = catalog.disciplines().filter(|entry| entry.role != Role::Shaper);
    let queues = format!("{:?}", queues.map(|entry| entry.name).collect::<Vec<_>>());
    let scenario = ScenarioBuilder::example("quickstart").ok_or("no such example")?.catalog(&catalog);
    let scenario = scenario.set("stop", "8s").set("topology.bottleneck.queue", queues).load()?;
    let results = Run::new(&scenario).simulate()?;
    results.flows().for_each(|row| println!("{} {}: {:.3} Mb/s", row.point, row.flow, row.throughput_mbps));
    Ok(())
}
