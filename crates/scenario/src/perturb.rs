//! The same scenario with other phases.

use apportion_core::random::Stream;
use apportion_core::units::Span;

use crate::model::{Scenario, Setting};

/// Distance by which each delay moves. Chosen: far below the precision of any known delay, and far above the
/// resolution of simulated time.
const MOVE: Span = Span::from_micros(1);

/// Replications that share a moved scenario. Chosen: two perturbed copies that agree with each other and not
/// with the rest show that the moves are the cause; more would leave fewer moves to try.
const SHARED: u64 = 2;

impl Scenario {
    /// The scenario of the perturbed copy of replication `k`, from 0. Every propagation delay, including
    /// those that changes set, is moved by 1 µs, up or down at random; delays below 1 µs move up. The moves
    /// depend on the seed of the scenario, the names of links and `k` / 2: two successive replications share
    /// theirs.
    #[must_use]
    pub fn perturbed(&self, k: u64) -> Self {
        let mut other = self.clone();
        let group = Self::moves_of(k);
        let goes_up =
            |name: &str| Stream::new(self.seed, &format!("link.{name}.perturbation.{group}")).below(2) == 1;
        let moved = |delay: Span, up: bool| match up || delay < MOVE {
            true => Span::from_nanos(delay.as_nanos().saturating_add(MOVE.as_nanos())),
            false => delay.saturating_sub(MOVE),
        };
        let up: Vec<bool> = self.links.iter().map(|link| goes_up(&link.name)).collect();
        for (link, &up) in other.links.iter_mut().zip(&up) {
            link.delay = moved(link.delay, up);
        }
        for change in &mut other.changes {
            if let Setting::LinkDelay(link, delay) = &mut change.to {
                *delay = moved(*delay, up[link.index()]);
            }
        }
        other
    }

    /// The number of the moves of replication `k`'s perturbed copy.
    #[must_use]
    pub const fn moves_of(k: u64) -> u64 {
        k / SHARED
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_delay_moves_by_a_microsecond_and_none_below_zero() {
        let text = r#"
            seed = 6
            stop = "9s"
            topology = { kind = "dumbbell", pairs = 200, bottleneck = { rate = "5Mbit", delay = "3ms" }, access = { delay = "0.4us" } }
            flow.tcp = { from = "l1", to = "r1", tcp = "rfc" }
            change = [{ at = "2s", set = "link.bottleneck.delay", to = "8ms" }]
        "#;
        let suite = crate::load(text, Path::new("x.toml"), &[], &|path| std::fs::read(path)).unwrap();
        let scenario = &suite.points[0].scenario;
        let other = scenario.perturbed(0);
        let moves = |other: &Scenario| -> Vec<i64> {
            let both = scenario.links.iter().zip(&other.links);
            both.map(|(was, is)| is.delay.as_nanos() as i64 - was.delay.as_nanos() as i64).collect()
        };
        // Access links of 400 ns go up; the two directions of the bottleneck go up or down.
        let all = moves(&other);
        assert!(all.len() == 802 && all.iter().filter(|&&by| by == 1_000).count() >= 800);
        assert!(all.iter().all(|by| by.abs() == 1_000));
        // A changed delay moves like its link's delay, and the moves differ from pair to pair.
        let bottleneck = scenario.links.iter().position(|link| link.name == "bottleneck").unwrap();
        let mut ups = 0;
        for k in 0..400 {
            let other = scenario.perturbed(k);
            let Setting::LinkDelay(_, delay) = other.changes[0].to else { panic!() };
            let by = moves(&other)[bottleneck];
            assert_eq!(delay.as_nanos() as i64 - 8_000_000, by);
            ups += u64::from(by > 0);
        }
        // 200 coins, within 4 σ = 28.
        assert!((144..=256).contains(&ups), "{ups}");
        assert_eq!(format!("{other:?}"), format!("{:?}", scenario.perturbed(1)));
        assert_ne!(moves(&scenario.perturbed(2)), moves(&scenario.perturbed(4)));
    }
}
