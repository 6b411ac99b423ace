//! Fairness: Jain's index, and the entitlement of each flow of a network.
//!
//! | file | allocation | source |
//! |---|---|---|
//! | [`max_min`](mod@max_min) | a flow has one weight everywhere, and a guarantee | Bertsekas, Gallager 1992 |
//! | [`hierarchical`](mod@hierarchical) | a flow has a customer, which has a weight | Bennett, Zhang 1996 |
//! | [`water_filling`] | one amount divided among demands, during a run | likewise |
//! | [`congestion_shares`](mod@congestion_shares) | each link has a tree of weights | Brown et al. 2024 |
//! | [`ticket_shares`](mod@ticket_shares) | the weight of a flow at each link is the value of its tickets there | Zhang et al. 2002 |
//!
//! Jain, Chiu, Hawe, "A quantitative measure of fairness and discrimination", DEC-TR-301, 1984.

pub mod congestion_shares;
pub mod hierarchical;
mod infeasible;
pub mod max_min;
pub mod ticket_shares;
pub mod water_filling;

pub use congestion_shares::{Right, RightsTree, Stake, congestion_shares};
pub use hierarchical::{CustomerClaim, hierarchical};
pub use infeasible::Infeasible;
pub use max_min::{Claim, fit_guarantees, max_min, oversubscribed};
pub use ticket_shares::{Exchange, Holding, ticket_shares};

/// Jain's index (Σx)² / (n Σx²): 1 if all are equal, 1/n if one has everything. 1 for no flows or no traffic.
#[must_use]
pub fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|x| x * x).sum();
    if squares > 0.0 { sum * sum / (shares.len() as f64 * squares) } else { 1.0 }
}

/// The standard deviation of a population: divided by n, not n - 1. 0 for no values.
#[must_use]
pub fn population_sigma(values: &[f64]) -> f64 {
    let n = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / n;
    libm::sqrt(values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jain_and_sigma_are_their_formulas() {
        // (1 + 2 + 3)² / (3·14) = 36/42; one of four: 1/4.
        assert_eq!(jain(&[1.0, 2.0, 3.0]), 36.0 / 42.0);
        assert_eq!(jain(&[5.0, 0.0, 0.0, 0.0]), 0.25);
        assert_eq!((jain(&[]), jain(&[0.0])), (1.0, 1.0));
        // Mean 5; squares 9+1+1+1+0+0+4+16 = 32; 32/8 = 4; the n - 1 form would give 2.138.
        assert_eq!(population_sigma(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]), 2.0);
    }
}
