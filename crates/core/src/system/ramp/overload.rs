//! RAMP's overload policy: who has less when real-rate flows want more than they may have.
//!
//! Li, Walpole, McNamee, Pu, Steere 2001, section 3.2.1, notify applications and leave the policy open.
//!
//! Cost: O(flows log flows) per sample in an overload.

use alloc::vec::Vec;

use crate::choice;

choice! {
    /// Who has less when real-rate flows want more than they may have.
    pub enum OverloadPolicy {
        /// Those that want most, down to a common level.
        MaxMin = "max_min",
        /// All, by the same part.
        Scale = "scale",
    }
}

/// What an overload does to allocations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Cut {
    /// Each has this part of what it wants.
    Scale(f64),
    /// Each has what it wants, but not more than this part of the link.
    Level(f64),
}

impl Cut {
    /// No overload.
    pub const NONE: Self = Self::Scale(1.0);

    /// What a policy makes of these parts of the link, of which only `available` is there.
    pub fn of(policy: OverloadPolicy, wanted: Vec<f64>, available: f64) -> Self {
        let total: f64 = wanted.iter().sum();
        match policy {
            _ if total <= available => Self::NONE,
            OverloadPolicy::Scale => Self::Scale(available / total),
            OverloadPolicy::MaxMin => Self::Level(level(wanted, available)),
        }
    }

    /// What remains of what a flow wants.
    pub const fn apply(self, wanted: f64) -> f64 {
        match self {
            Self::Scale(scale) => wanted * scale,
            Self::Level(level) => wanted.min(level),
        }
    }
}

/// The part that each of those who want these parts can have at most, so that all together have `available`, which
/// is less than they want.
fn level(mut wanted: Vec<f64>, available: f64) -> f64 {
    wanted.sort_unstable_by(f64::total_cmp);
    let (mut left, mut flows) = (available, wanted.len());
    for part in wanted {
        let level = left / flows as f64;
        if part >= level {
            return level;
        }
        left -= part;
        flows -= 1;
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_wants_less_than_the_level_has_it_and_the_others_share_the_rest() {
        let cut = Cut::of(OverloadPolicy::MaxMin, std::vec![0.8, 0.1, 0.5, 0.3], 0.9);
        // 0.1, and 0.8 among three: 0.267 each.
        let all = [0.8, 0.1, 0.5, 0.3].map(|wanted| cut.apply(wanted));
        assert!((all[1] - 0.1).abs() < 1e-12 && (all.iter().sum::<f64>() - 0.9).abs() < 1e-12, "{all:?}");
        assert!(all[0] == all[2] && all[2] == all[3], "{all:?}");
    }

    #[test]
    fn no_flow_has_less_without_an_overload_and_all_alike_if_they_are_scaled() {
        for policy in [OverloadPolicy::MaxMin, OverloadPolicy::Scale] {
            assert_eq!(Cut::of(policy, std::vec![0.5, 0.25], 0.75), Cut::NONE);
            assert_eq!(Cut::of(policy, Vec::new(), 0.75), Cut::NONE);
        }
        assert_eq!(Cut::of(OverloadPolicy::Scale, std::vec![1.0, 0.5], 0.75), Cut::Scale(0.5));
    }
}
