//! Web pages: requests of users, and when they come and go.
//!
//! Defaults follow the web model of 3GPP2 C.R1002 ("cdma2000 Evaluation Methodology"), section on HTTP, as
//! adopted by IEEE 802.16m and NGMN:
//!
//! | what | distribution |
//! |---|---|
//! | main object | lognormal, μ = 8.35, σ = 1.37, 100 B to 2 MB |
//! | embedded object | lognormal, μ = 6.17, σ = 2.36, 50 B to 2 MB |
//! | embedded objects of a page | Pareto, α = 1.1, k = 2, cut at 55, less 2: 0 to 53 and 5.64 on average |
//! | reading time | exponential, 30 s on average |
//! | request | 350 B |

use apportion_core::param::{Kind, Param, ParamError, Range, Setting, Value};
use apportion_core::params;
use apportion_core::units::{Bytes, Span};

use crate::sizes::{Shape, Sizes};

/// A parameter of the model.
const MODEL: Param = Param::unset("3GPP2 C.R1002");

params! {
    /// Users who load pages. Sizes are those of the model.
    pub struct Web {
        /// Sizes of main objects; if absent, lognormal with median 4230B and sigma 1.37, 100B to 2MB.
        main_size: Sizes = MODEL => |_| lognormal(4_230, 1.37, 100),
        /// Embedded objects per page; if absent, Pareto from 0 to 53, 5.64 on average.
        objects: Objects = MODEL.within(Range::FromZero),
        /// Sizes of embedded objects; if absent, lognormal with median 478B and sigma 2.36, 50B to 2MB.
        object_size: Sizes = MODEL => |_| lognormal(478, 2.36, 50),
        /// Most connections of a user, as browsers over HTTP/1.1.
        parallel: u32 = Param::of("6", "browsers").within(Range::UpTo(MAX_PARALLEL)),
        /// Mean of the exponential time from page to page.
        think: Span = Param::of("30s", "3GPP2 C.R1002").within(Range::AboveZero),
        /// Size of a request on the wire.
        request: Bytes = Param::of("350B", "3GPP2 C.R1002").within(Range::AboveZero),
        /// Mean number of new users per second; if absent, one user is always there.
        users_per_second: Option<f64> = Param::unset("chosen").within(Range::AboveZero),
        /// Mean of the exponential time that they stay.
        life: Option<Span> = Param::unset("chosen").within(Range::AboveZero),
        /// Whether the pages are requests of a byte, which measure how long a round trip takes.
        is_probe: bool => |_| Ok(false),
    }
}

/// The medians are e^8.35 and e^6.17.
fn lognormal(median: u64, sigma: f64, least: u64) -> Result<Sizes, ParamError> {
    let most = Some(Bytes::new(2_000_000));
    Ok(Sizes::Lognormal { median: Bytes::new(median), sigma, least: Bytes::new(least), most })
}

/// Users who come as a Poisson process, and stay for an exponential time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Users {
    /// Mean number that come in a second.
    pub per_second: f64,
    /// Mean time that each stays.
    pub life: Span,
}

/// The number of embedded objects of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Objects {
    /// A fixed number.
    Fixed(u32),
    /// By the model of 3GPP2.
    Pareto,
}

impl Setting for Objects {
    const KIND: Kind = u32::KIND;
    fn of(value: Option<Value>) -> Option<Self> {
        Some(u32::of(value).map_or(Self::Pareto, Self::Fixed))
    }
}

/// The mean of [`Objects::Pareto`], and its parameters.
const MEAN_OBJECTS: f64 = 5.64;
const ALPHA: f64 = 1.1;
const LEAST: f64 = 2.0;
const MOST: f64 = 55.0;

impl Objects {
    /// The number at a quantile, from 0 to below 1.
    #[must_use]
    pub fn quantile(self, share: f64) -> u32 {
        match self {
            Self::Fixed(count) => count,
            // At most 53.
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
    /// A user who requests a byte again and again, with this mean time in between.
    pub(crate) fn probe(request: Bytes, think: Span) -> Self {
        let byte = Sizes::Shaped { mean: Bytes::new(1), shape: Shape::Constant };
        let objects = Objects::Fixed(0);
        Self {
            main_size: byte.clone(),
            objects,
            object_size: byte,
            parallel: 1,
            think,
            request,
            users_per_second: None,
            life: None,
            is_probe: true,
        }
    }

    /// The arrivals and departures of users; none if there is one, for the whole time.
    #[must_use]
    pub fn users(&self) -> Option<Users> {
        Some(Users { per_second: self.users_per_second?, life: self.life? })
    }

    /// The mean size of a page, bytes.
    #[must_use]
    pub fn page(&self) -> f64 {
        self.main_size.mean() + self.objects.mean() * self.object_size.mean()
    }

    /// The mean number of users at the same time.
    #[must_use]
    pub fn population(&self) -> f64 {
        self.users().map_or(1.0, |users| users.per_second * users.life.as_secs_f64())
    }
}

/// Maximum of embedded objects of a page. Chosen: no page has more.
pub(crate) const MAX_OBJECTS: u32 = 10_000;
/// Maximum of connections of a user. Chosen: browsers have 6 to a server.
pub(crate) const MAX_PARALLEL: u64 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_as_many_objects_as_the_model_says() {
        let n = 1_000_000;
        let all = (0..n).map(|k| Objects::Pareto.quantile((f64::from(k) + 0.5) / f64::from(n)));
        let mean = all.clone().map(f64::from).sum::<f64>() / f64::from(n);
        // Rounding to whole objects changes it a little: the density falls within each.
        assert!((mean - MEAN_OBJECTS).abs() < 0.05, "{mean}");
        assert_eq!((all.clone().min(), all.max()), (Some(0), Some(53)));
    }
}
