//! The same scenario with other phases.

use apportion_core::random::Stream;
use apportion_core::units::Span;

use crate::model::{Scenario, Setting};

/// How far a delay moves at most. Chosen: far below what anyone knows of a delay, and far above the resolution of
/// simulated time.
const MOVE: u64 = 1_000;

impl Scenario {
    /// The same scenario with every propagation delay, also those that it changes to, moved by an amount of its own: whole
    /// nanoseconds, uniform between -1 µs (or the delay, if that is less) and 1 µs. The amounts depend on the seed of the
    /// scenario and the names of links, not on the seed of a replication: it is one other scenario.
    #[must_use]
    pub fn perturbed(&self) -> Self {
        let mut other = self.clone();
        let moved = |delay: Span, stream: &mut Stream| {
            let down = delay.as_nanos().min(MOVE);
            Span::from_nanos((delay.as_nanos() - down).saturating_add(stream.below(down + MOVE + 1)))
        };
        let mut streams: Vec<Stream> = other
            .links
            .iter()
            .map(|link| Stream::new(self.seed, &format!("link.{}.perturbation", link.name)))
            .collect();
        for (link, stream) in other.links.iter_mut().zip(&mut streams) {
            link.delay = moved(link.delay, stream);
        }
        for change in &mut other.changes {
            if let Setting::LinkDelay(link, delay) = &mut change.to {
                *delay = moved(*delay, &mut streams[link.index()]);
            }
        }
        other
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_delay_moves_by_a_microsecond_at_most_and_none_below_zero() {
        let text = r#"
            seed = 6
            stop = "9s"
            topology = { kind = "dumbbell", pairs = 200, bottleneck = { rate = "5Mbit", delay = "3ms" }, access = { delay = "0.4us" } }
            flow.tcp = { from = "l1", to = "r1", tcp = "rfc" }
            change = [{ at = "2s", set = "link.bottleneck.delay", to = "8ms" }]
        "#;
        let suite = crate::load(text, Path::new("x.toml"), &[], &|path| std::fs::read(path)).unwrap();
        let scenario = &suite.points[0].scenario;
        let other = scenario.perturbed();
        let mut delays: Vec<u64> = Vec::new();
        for (was, is) in scenario.links.iter().zip(&other.links) {
            assert!(is.delay.as_nanos().abs_diff(was.delay.as_nanos()) <= 1_000, "{}", was.name);
            delays.push(is.delay.as_nanos());
        }
        // Access links: uniform from 0 to 1,400 ns.
        let access: Vec<u64> = delays.into_iter().filter(|delay| *delay < 1_000_000).collect();
        let mean = access.iter().sum::<u64>() as f64 / access.len() as f64;
        assert!(access.len() == 800 && (mean - 700.0).abs() < 50.0, "{mean}");
        let Setting::LinkDelay(_, delay) = other.changes[0].to else { panic!() };
        assert!(delay != Span::from_millis(8) && delay.as_nanos().abs_diff(8_000_000) <= 1_000);
        assert_eq!(format!("{other:?}"), format!("{:?}", scenario.perturbed()));
    }
}
