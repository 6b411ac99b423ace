//! Web pages: what users ask for, and when they come and go.
//!
//! What is not set is the web model of 3GPP2 C.R1002 ("cdma2000 Evaluation Methodology"), section on HTTP, as IEEE 802.16m and NGMN took it
//! over:
//!
//! | what | distribution |
//! |---|---|
//! | main object | lognormal, μ = 8.35, σ = 1.37, 100 B to 2 MB |
//! | embedded object | lognormal, μ = 6.17, σ = 2.36, 50 B to 2 MB |
//! | embedded objects of a page | Pareto, α = 1.1, k = 2, cut at 55, less 2: 0 to 53 and 5.64 on average |
//! | reading time | exponential, 30 s on average |
//! | request | 350 B |

use apportion_core::units::{Bytes, Span};

use crate::sizes::{Shape, Sizes};

/// Users who load pages.
#[derive(Clone, Debug, PartialEq)]
pub struct Web {
    /// How they come and go; none if there is one, for the whole time.
    pub users: Option<Users>,
    /// Of the object that a page begins with.
    pub main: Sizes,
    /// Of the others.
    pub object: Sizes,
    /// How many others a page has.
    pub objects: Objects,
    /// Most connections of a user.
    pub parallel: u32,
    /// Of a request on the wire.
    pub request: Bytes,
    /// Mean of the exponential time from a page that is complete to the next.
    pub think: Span,
    /// Whether the pages are requests of a byte, which measure how long a round trip takes.
    pub is_probe: bool,
}

/// Users who come as a Poisson process, and stay for an exponential time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Users {
    /// Mean number that come in a second.
    pub per_second: f64,
    /// Mean time that each stays.
    pub life: Span,
}

/// How many embedded objects a page has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Objects {
    /// So many.
    Fixed(u32),
    /// As the model of 3GPP2.
    Pareto,
}

/// The mean of [`Objects::Pareto`], and its parameters.
const MEAN_OBJECTS: f64 = 5.64;
const ALPHA: f64 = 1.1;
const LEAST: f64 = 2.0;
const MOST: f64 = 55.0;

impl Objects {
    /// The number that a share of pages, from 0 to below 1, has at most.
    #[must_use]
    pub fn quantile(self, share: f64) -> u32 {
        match self {
            Self::Fixed(count) => count,
            // 53 at most.
            Self::Pareto => ((LEAST / libm::pow(1.0 - share, 1.0 / ALPHA)).min(MOST) - LEAST).round() as u32,
        }
    }

    /// The mean number.
    #[must_use]
    pub fn mean(self) -> f64 {
        match self {
            Self::Fixed(count) => f64::from(count),
            Self::Pareto => MEAN_OBJECTS,
        }
    }
}

impl Web {
    /// A user who asks for a byte again and again, with such a mean time in between.
    pub(crate) fn probe(request: Bytes, think: Span) -> Self {
        let byte = Sizes::Shaped { mean: Bytes::new(1), shape: Shape::Constant };
        let objects = Objects::Fixed(0);
        Self {
            users: None,
            main: byte.clone(),
            object: byte,
            objects,
            parallel: 1,
            request,
            think,
            is_probe: true,
        }
    }

    /// The mean size of a page, bytes.
    #[must_use]
    pub fn page(&self) -> f64 {
        self.main.mean() + self.objects.mean() * self.object.mean()
    }

    /// The mean number of users at the same time.
    #[must_use]
    pub fn population(&self) -> f64 {
        self.users.map_or(1.0, |users| users.per_second * users.life.as_secs_f64())
    }
}

/// Embedded objects of a page. Chosen: no page has more.
pub(crate) const MAX_OBJECTS: u32 = 10_000;
/// Connections of a user. Chosen: browsers have 6 to a server.
pub(crate) const MAX_PARALLEL: u64 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_as_many_objects_as_the_model_says() {
        let n = 1_000_000;
        let all = (0..n).map(|k| Objects::Pareto.quantile((f64::from(k) + 0.5) / f64::from(n)));
        let mean = all.clone().map(f64::from).sum::<f64>() / f64::from(n);
        // Rounding to whole objects moves it a little: the density falls within each.
        assert!((mean - MEAN_OBJECTS).abs() < 0.05, "{mean}");
        assert_eq!((all.clone().min(), all.max()), (Some(0), Some(53)));
    }
}
