//! RAMP's overload policy: which flows are cut if real-rate flows want more than is available.
//!
//! Li, Walpole, McNamee, Pu, Steere 2001, section 3.2.1, notify applications and leave the policy open.
//!
//! Cost: O(flows log flows) per sample in an overload.

use alloc::vec::Vec;

use crate::choice;

choice! {
    /// The flows that are cut if real-rate flows want more than is available.
    pub enum OverloadPolicy {
        /// The flows that want most, down to a common level.
        MaxMin = "max_min",
        /// All flows, by the same factor.
        Scale = "scale",
    }
}

/// The effect of an overload on allocations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Cut {
    /// Each flow gets this fraction of what it wants.
    Scale(f64),
    /// Each flow gets what it wants, but at most this part of the link.
    Level(f64),
}

impl Cut {
    /// No overload.
    pub const NONE: Self = Self::Scale(1.0);

    /// The cut by `policy` for these wanted parts of the link, of which `available` is to be divided.
    pub fn of(policy: OverloadPolicy, wanted: Vec<f64>, available: f64) -> Self {
        let total: f64 = wanted.iter().sum();
        match policy {
            _ if total <= available => Self::NONE,
            OverloadPolicy::Scale => Self::Scale(available / total),
            OverloadPolicy::MaxMin => Self::Level(level(wanted, available)),
        }
    }

    /// The part of the link that is left of `wanted`.
    pub const fn apply(self, wanted: f64) -> f64 {
        match self {
            Self::Scale(scale) => wanted * scale,
            Self::Level(level) => wanted.min(level),
        }
    }

    /// The part of the link up to which each flow gets what it wants.
    pub const fn level(self) -> f64 {
        match self {
            Self::Scale(scale) if scale < 1.0 => 0.0,
            Self::Scale(_) => f64::INFINITY,
            Self::Level(level) => level,
        }
    }
}

/// The level to which wanted parts are cut so that they add up to `available`, which is less than they want.
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
