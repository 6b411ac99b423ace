//! The max-min fair split of one amount over demands: an unsatisfied demand gets no less than any other.
//!
//! Bertsekas, Gallager, "Data networks", 1992, section 6.5.2, for one link: every demand is filled up to the
//! same level. [`max_min`](super::max_min()) does it for networks; this function is fast enough to run per
//! packet.
//!
//! Cost: O(n log n), no memory of its own.

/// The level up to which `demands` are filled so that they take `amount` together; infinite if they want
/// less. Each takes the smaller of its demand and the level. Sorts `demands`. Neither the demands nor
/// `amount` may be negative.
#[must_use]
pub fn level(amount: f64, demands: &mut [f64]) -> f64 {
    demands.sort_unstable_by(f64::total_cmp);
    let (mut left, mut unfilled) = (amount, demands.len());
    for &demand in &*demands {
        let level = left / unfilled as f64;
        if demand > level {
            return level;
        }
        left -= demand;
        unfilled -= 1;
    }
    f64::INFINITY
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    fn split(amount: f64, demands: &[f64]) -> Vec<f64> {
        let level = level(amount, &mut demands.to_vec());
        demands.iter().map(|demand| demand.min(level)).collect()
    }

    #[test]
    fn small_demands_are_met_and_the_rest_is_divided_equally() {
        // 7.8 over three: 2.6 each; 0.6 leaves 7.2 for two, 3.6 each; 2.7 leaves 4.5.
        assert_eq!(split(7.8, &[0.6, 2.7, 4.7]), [0.6, 2.7, 4.5]);
        // 0.3, 0.8 and 1.4 leave 5.7 for three, 1.9 each, which is exactly the demand of the fourth.
        let shares = split(8.2, &[4.8, 0.3, 1.9, 0.8, 2.5, 1.4]);
        let expected = [1.9, 0.3, 1.9, 0.8, 1.9, 1.4];
        assert!(shares.iter().zip(expected).all(|(share, due)| (share - due).abs() < 1e-12), "{shares:?}");
    }

    #[test]
    fn a_demand_below_the_amount_is_met() {
        assert_eq!(split(10.0, &[1.0, 2.0]), [1.0, 2.0]);
        assert_eq!(split(3.0, &[1.0, 2.0]), [1.0, 2.0]);
        assert_eq!(split(0.0, &[0.0, 2.0]), [0.0, 0.0]);
        assert_eq!(split(1.0, &[]), [0.0; 0]);
    }
}
