//! The buffer policy that the reader writes in JavaScript, as the discipline `own`.

use apportion::Catalog;
use apportion_core::aqm::{Admission, BufferPolicy};
use apportion_core::buffer::Buffer;
use apportion_core::limit::{BufferSize, Limit, LinkLimit};
use apportion_core::param::{Entry, LIMIT, Role, Traits};
use apportion_core::random::Stream;
use apportion_core::schedule::fifo::Fifo;
use apportion_core::system::LinkContext;
use apportion_core::units::{Rate, Time};
use apportion_core::{Backlog, DropReason, Packet};

use crate::host::{self, DROP, MARK};

static ENTRY: Entry = Entry {
    name: "own",
    role: Role::System,
    summary: "The buffer policy of the playground's page, on one queue.",
    reference: "–",
    cost: "that of the policy",
    params: &[LIMIT],
    traits: Traits::NONE,
};

struct OwnPolicy {
    handle: u32,
    limit: LinkLimit,
    random: Stream,
}

impl<P: Packet> BufferPolicy<P> for OwnPolicy {
    fn admit(&mut self, now: Time, packet: &mut P, backlog: Backlog) -> Admission {
        let verdict = host::admit(
            self.handle,
            now.as_nanos() as f64,
            packet.flow().0,
            u32::try_from(packet.size().get()).unwrap_or(u32::MAX),
            u32::try_from(backlog.packets.get()).unwrap_or(u32::MAX),
            backlog.bytes.get() as f64,
            self.random.uniform(),
        );
        match verdict {
            _ if !self.limit.get().admits(packet, backlog) => Admission::Drop(DropReason::Overflow),
            DROP => Admission::Drop(DropReason::Early),
            MARK if packet.ecn().is_capable() => Admission::Mark,
            MARK => Admission::Drop(DropReason::Early),
            _ => Admission::Accept,
        }
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit.set(limit);
    }

    fn set_link_rate(&mut self, rate: Rate) {
        self.limit.set_link_rate(rate);
    }
}

/// The catalogue with the discipline `own`.
pub(crate) fn catalog() -> Catalog {
    let mut catalog = Catalog::default();
    let build = |&limit: &Option<BufferSize>, link: &LinkContext<'_>| {
        let handle = host::policy(link.link_rate.as_bit() as f64);
        let policy =
            OwnPolicy { handle, limit: LinkLimit::new(limit, link.link_rate), random: link.stream() };
        Buffer::new(Fifo::new(), policy)
    };
    // Its name is free: no discipline is called so.
    let _ = catalog.register(&ENTRY, |args| Ok(args.limit_if_set("limit")), build);
    catalog
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_verdicts_decide() {
        let scenario = r#"
            seed = 1
            stop = "5s"
            link.l = { from = "a", to = "b", rate = "2Mbit", delay = "5ms", watch = true, queue = ["own", "fifo"] }
            flow.x = { from = "a", to = "b", tcp = "rfc" }
        "#;
        let scenario = apportion::ScenarioBuilder::from_text(scenario).catalog(&catalog()).load().unwrap();
        let results = apportion::Run::new(&scenario).jobs(1).simulate().unwrap();
        let rows: Vec<_> = results.links().filter(|row| row.link == "l").collect();
        assert!(rows[0].drops_early > 0 && rows[1].drops_early == 0, "{rows:?}");
        assert!(rows[0].queue_mean_packets < 6.0, "{rows:?}");
    }
}
