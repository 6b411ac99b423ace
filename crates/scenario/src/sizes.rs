//! Distributions of the sizes of files: those that papers cite, and any other as a cumulative distribution in a file.
//!
//! Sizes are drawn by inversion, with one uniform number each, so that another distribution shifts no other
//! draw.
//!
//! | name | distribution | source |
//! |---|---|---|
//! | `web_search` | [`WEB_SEARCH`] | Alizadeh et al., "Data Center TCP", SIGCOMM 2010, the flows of a cluster that answers searches |
//! | `data_mining` | [`DATA_MINING`] | Greenberg et al., "VL2", SIGCOMM 2009, the flows of a cluster that mines data |
//! | `constant` | one size | – |
//! | `bounded_pareto` | Pareto within bounds | Harchol-Balter, Downey, "Exploiting process lifetime distributions", SIGMETRICS 1996 |
//! | `lognormal` | lognormal, also within bounds | – |
//! | `cdf` | points of a file | – |
//!
//! Both papers print curves. The points are those that simulations have used since pFabric (Alizadeh et al.,
//! SIGCOMM 2013), read off the curves, in bytes; between two points sizes are uniform.

use std::sync::Arc;

use apportion_core::param::{Kind, Setting, Value, Variant};
use apportion_core::units::Bytes;

use crate::files::FileError;
use crate::key::{NUMBER, SIZE, TEXT, default, optional, required};

/// A distribution of sizes.
#[derive(Clone, Debug, PartialEq)]
pub enum Sizes {
    /// A shape with this mean.
    Shaped { mean: Bytes, shape: Shape },
    /// Pareto between two bounds.
    BoundedPareto {
        /// The shape parameter.
        alpha: f64,
        /// The smallest size.
        least: Bytes,
        /// The largest.
        most: Bytes,
    },
    /// The logarithm is normal; sizes outside the bounds are left out.
    Lognormal {
        /// The median without bounds.
        median: Bytes,
        /// Standard deviation of the natural logarithm.
        sigma: f64,
        /// The smallest size.
        least: Bytes,
        /// The largest; none without bound.
        most: Option<Bytes>,
    },
    /// Points of a cumulative distribution.
    Empirical(Arc<Cdf>),
}

/// Distributions of sizes.
pub(crate) const SIZES: &[Variant] = &[
    Variant {
        name: "web_search",
        doc: "Flows of a web search cluster (Alizadeh et al., SIGCOMM 2010): half below 73 kB, 3 % above 10 MB; mean 1.7 \
             MB.",
        params: &[],
    },
    Variant {
        name: "data_mining",
        doc: "Flows of a data mining cluster (Greenberg et al., SIGCOMM 2009): half below 1.1 kB, 2 % above 100 MB; mean \
             12.7 MB.",
        params: &[],
    },
    Variant { name: "constant", doc: "One size.", params: &[required("size", SIZE, "The size.")] },
    Variant {
        name: "bounded_pareto",
        doc: "Pareto between two bounds.",
        params: &[
            default("alpha", NUMBER, "1.2", "Shape; the smaller, the heavier the tail."),
            required("least", SIZE, "Smallest size."),
            required("most", SIZE, "Largest size."),
        ],
    },
    Variant {
        name: "lognormal",
        doc: "Lognormal, without values outside the bounds.",
        params: &[
            required("median", SIZE, "Median without bounds."),
            required("sigma", NUMBER, "Standard deviation of the natural logarithm."),
            optional("least", SIZE, "Smallest size."),
            optional("most", SIZE, "Largest size."),
        ],
    },
    Variant {
        name: "cdf",
        doc: "A cumulative distribution by its points.",
        params: &[
            required(
                "file",
                TEXT,
                "A point per line: a size, and the share of files not larger, up to 1 or 100 (per cent). Sizes are \
                 uniform between points. `#` comments and a first line of names are skipped, and the second of three \
                 columns (ns-2).",
            ),
            optional("unit", SIZE, "Unit of sizes; bytes if absent. pFabric's files count packets, `1460B`."),
        ],
    },
];

/// A table or a word; a table may need a file.
impl Setting for Sizes {
    const KIND: Kind = Kind::Variants(SIZES);
    fn of(_: Option<Value>) -> Option<Self> {
        None
    }
}

/// The shape of a distribution with a given mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// Always the mean.
    Constant,
    Exponential,
    /// Pareto with this shape parameter, above 1.
    Pareto(f64),
}

/// A cumulative distribution by its points: between two of them sizes are uniform.
#[derive(Clone, Debug, PartialEq)]
pub struct Cdf {
    /// Sizes in bytes with the share of files of at most this size; neither descends, and the last share is
    /// 1.
    points: Vec<(f64, f64)>,
}

/// Sizes in bytes, and the share of flows of at most this size.
pub(crate) const WEB_SEARCH: &[(f64, f64)] = &[
    (0.0, 0.0),
    (10e3, 0.15),
    (20e3, 0.2),
    (30e3, 0.3),
    (50e3, 0.4),
    (80e3, 0.53),
    (200e3, 0.6),
    (1e6, 0.7),
    (2e6, 0.8),
    (5e6, 0.9),
    (10e6, 0.97),
    (30e6, 1.0),
];

/// Sizes in bytes, and the share of flows of at most this size.
pub(crate) const DATA_MINING: &[(f64, f64)] = &[
    (0.0, 0.0),
    (180.0, 0.1),
    (216.0, 0.2),
    (560.0, 0.3),
    (900.0, 0.4),
    (1_100.0, 0.5),
    (1_870.0, 0.6),
    (3_160.0, 0.7),
    (10e3, 0.8),
    (400e3, 0.9),
    (3.16e6, 0.95),
    (100e6, 0.98),
    (1e9, 1.0),
];

/// Maximum of points in a file. Chosen: a curve read off a figure has some ten, one from a trace some
/// thousand.
const MAX_POINTS: usize = 1_000_000;
/// Maximum size in bytes. Chosen: a petabyte, far below the limit of whole numbers in floats.
const MAX_SIZE: f64 = 1e15;

impl Cdf {
    /// Parses one point a line: a size in bytes, and the share of files of at most this size, up to 1 or, in
    /// per cent, up to 100. Neither descends. A number between the two is ignored. Empty lines, text after
    /// `#` and a first line of names are skipped.
    ///
    /// # Errors
    /// The first invalid line, and how to mend it.
    pub fn parse(text: &str) -> Result<Self, FileError> {
        Self::parse_columns(text, 1.0).map(|(cdf, _)| cdf)
    }

    /// Parses sizes in units of `unit` bytes, and returns the number of columns as well.
    pub(crate) fn parse_columns(text: &str, unit: f64) -> Result<(Self, usize), FileError> {
        let mut points: Vec<(f64, f64)> = Vec::new();
        let (mut last_line, mut columns) = (1, None);
        for (number, line) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
            let line = line.split('#').next().unwrap_or("").trim();
            if line.is_empty() {
                continue;
            }
            let fail = |what: String| Err(FileError::new(number, what));
            let fields = line.split(|c: char| c.is_whitespace() || c == ',').filter(|f| !f.is_empty());
            let numbers: Vec<_> = fields.map(str::parse::<f64>).collect();
            if columns.is_none() && numbers.len() > 1 && numbers.iter().all(Result::is_err) {
                columns = Some(numbers.len());
                continue;
            }
            last_line = number;
            let (size, share) = match numbers[..] {
                [Ok(size), Ok(share)] | [Ok(size), Ok(_), Ok(share)] => (size * unit, share),
                _ => {
                    return fail(format!(
                        "`{line}` is not a size and a share; write bytes and a number from 0 to 1, such as 10000 0.15"
                    ));
                }
            };
            let known = *columns.get_or_insert(numbers.len());
            if known != numbers.len() {
                return fail(format!(
                    "`{line}` has {} columns, and the lines before have {known}",
                    numbers.len()
                ));
            }
            if !(0.0..=MAX_SIZE).contains(&size) {
                return fail(format!("{size} is not a size; write bytes from 0 to 1e15"));
            }
            if !(0.0..=100.0).contains(&share) {
                return fail(format!(
                    "{share} is not a share; write a number from 0 to 1, such as 0.15 for 15 %, or per cent up to 100"
                ));
            }
            if let Some(&(before, below)) = points.last() {
                if size < before {
                    return fail(format!("{size} bytes come after {before}; sort the lines by size"));
                }
                if share < below {
                    return fail(format!(
                        "the share falls from {below} to {share}; write the share of all files that are not larger"
                    ));
                }
            }
            if points.len() == MAX_POINTS {
                return fail(format!("there are more than {MAX_POINTS} points; leave some out"));
            }
            points.push((size, share));
        }
        let (line, message) = match points.last() {
            None => (
                None,
                "there is no point in it; write a size and a share a line, such as 10000 0.15".to_owned(),
            ),
            Some(&(_, share)) if share != 1.0 && share != 100.0 => (
                Some(last_line),
                format!("the last share is {share}; end with the largest size and 1, or 100 in per cent"),
            ),
            Some(&(size, _)) if size < 1.0 => {
                (Some(last_line), "no file has a byte; write sizes in bytes".to_owned())
            }
            Some(&(_, whole)) => {
                let points = points.into_iter().map(|(size, share)| (size, share / whole)).collect();
                return Ok((Self { points }, columns.unwrap_or(2)));
            }
        };
        Err(FileError::new(line, message))
    }

    fn quantile(&self, share: f64) -> f64 {
        let above = self.points.partition_point(|&(_, at)| at <= share);
        let Some(&(size, at)) = self.points.get(above) else {
            return self.points.last().map_or(0.0, |&(size, _)| size);
        };
        // Files up to the share of the first point have the first size.
        let Some(&(before, below)) = above.checked_sub(1).and_then(|above| self.points.get(above)) else {
            return size;
        };
        before + (size - before) * (share - below) / (at - below)
    }

    fn mean(&self) -> f64 {
        let first = self.points.first().map_or(0.0, |&(size, share)| size * share);
        let between = |pair: &[(f64, f64)]| (pair[1].1 - pair[0].1) * (pair[0].0 + pair[1].0) / 2.0;
        first + self.points.windows(2).map(between).sum::<f64>()
    }
}

impl Cdf {
    /// A distribution of these points, which are valid.
    pub(crate) fn of(points: &[(f64, f64)]) -> Self {
        Self { points: points.to_vec() }
    }
}

impl Sizes {
    /// The size in bytes at a quantile, from 0 to below 1.
    #[must_use]
    pub fn quantile(&self, share: f64) -> f64 {
        match self {
            Self::Shaped { mean, shape } => {
                let mean = mean.get() as f64;
                match *shape {
                    Shape::Constant => mean,
                    Shape::Exponential => -mean * libm::log(1.0 - share),
                    Shape::Pareto(alpha) => {
                        mean * (alpha - 1.0) / alpha / libm::pow(1.0 - share, 1.0 / alpha)
                    }
                }
            }
            &Self::BoundedPareto { alpha, least, most } => {
                let (least, most) = (least.get() as f64, most.get() as f64);
                let left_out = libm::pow(least / most, alpha);
                (least / libm::pow(1.0 - share * (1.0 - left_out), 1.0 / alpha)).min(most)
            }
            &Self::Lognormal { median, sigma, .. } => {
                let [from, to] = self.bounds();
                let (from, to) = (normal_below(from), normal_below(to));
                let size =
                    median.get() as f64 * libm::exp(sigma * normal_quantile(from + share * (to - from)));
                self.within(size)
            }
            Self::Empirical(cdf) => cdf.quantile(share),
        }
    }

    /// The mean in bytes.
    #[must_use]
    pub fn mean(&self) -> f64 {
        match self {
            Self::Shaped { mean, .. } => mean.get() as f64,
            &Self::BoundedPareto { alpha, least, most } => {
                let (least, most) = (least.get() as f64, most.get() as f64);
                let ratio = least / most;
                let scale = least / (1.0 - libm::pow(ratio, alpha));
                if (alpha - 1.0).abs() < 1e-9 {
                    scale * libm::log(1.0 / ratio)
                } else {
                    scale * alpha / (alpha - 1.0) * (1.0 - libm::pow(ratio, alpha - 1.0))
                }
            }
            &Self::Lognormal { median, sigma, .. } => {
                let [from, to] = self.bounds();
                let within = normal_below(to) - normal_below(from);
                let weighted = normal_below(to - sigma) - normal_below(from - sigma);
                median.get() as f64 * libm::exp(sigma * sigma / 2.0) * weighted / within
            }
            Self::Empirical(cdf) => cdf.mean(),
        }
    }

    /// The share of a lognormal distribution within its bounds.
    pub(crate) fn share_within(&self) -> f64 {
        let [from, to] = self.bounds();
        normal_below(to) - normal_below(from)
    }

    /// The bounds of a lognormal distribution as bounds of the normal one.
    fn bounds(&self) -> [f64; 2] {
        let &Self::Lognormal { median, sigma, least, most } = self else {
            return [f64::NEG_INFINITY, f64::INFINITY];
        };
        let normal = |size: Bytes| libm::log(size.get() as f64 / median.get() as f64) / sigma;
        let from = if least == Bytes::ZERO { f64::NEG_INFINITY } else { normal(least) };
        [from, most.map_or(f64::INFINITY, normal)]
    }

    /// Clamps a size that rounding has moved beyond a bound.
    fn within(&self, size: f64) -> f64 {
        match self {
            Self::Lognormal { least, most, .. } => {
                let most = most.map_or(MAX_SIZE, |most| most.get() as f64);
                size.max(least.get() as f64).min(most)
            }
            _ => size,
        }
    }
}

/// The share of a standard normal distribution below `x`.
fn normal_below(x: f64) -> f64 {
    libm::erfc(-x / std::f64::consts::SQRT_2) / 2.0
}

/// The inverse of [`normal_below`] to seven digits: Wichura, "Algorithm AS 241", Applied Statistics 37(3), 1988, PPND7.
fn normal_quantile(share: f64) -> f64 {
    /// The value of a polynomial with these coefficients, the highest first.
    fn polynomial(x: f64, coefficients: &[f64]) -> f64 {
        coefficients.iter().fold(0.0, |sum, c| sum * x + c)
    }
    let q = share - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180_625 - q * q;
        return q * polynomial(r, &[59.109_374_720, 159.291_132_02, 50.434_271_938, 3.387_132_717_9])
            / polynomial(r, &[67.187_563_600, 78.757_757_664, 17.895_169_469, 1.0]);
    }
    let r = if q < 0.0 { share } else { 1.0 - share };
    // Draws have 53 bits; a share of 0 or 1 would give infinity.
    let r = libm::sqrt(-libm::log(r.max(f64::MIN_POSITIVE)));
    let x = if r <= 5.0 {
        let r = r - 1.6;
        polynomial(r, &[0.170_238_211_03, 1.306_728_481_6, 2.756_815_390_0, 1.423_437_277_7])
            / polynomial(r, &[0.120_211_329_75, 0.737_001_642_50, 1.0])
    } else {
        let r = r - 5.0;
        polynomial(r, &[0.017_337_203_997, 0.428_682_943_37, 3.081_226_386_0, 6.657_905_115_0])
            / polynomial(r, &[0.012_258_202_635, 0.241_978_942_25, 1.0])
    };
    if q < 0.0 { -x } else { x }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Sizes> {
        let [kb, mb] = [1_000, 1_000_000].map(Bytes::new);
        vec![
            Sizes::Shaped { mean: kb, shape: Shape::Exponential },
            Sizes::Shaped { mean: kb, shape: Shape::Pareto(2.5) },
            Sizes::BoundedPareto { alpha: 1.2, least: kb, most: mb },
            Sizes::BoundedPareto { alpha: 1.0, least: kb, most: mb },
            Sizes::Lognormal { median: kb, sigma: 1.0, least: Bytes::ZERO, most: None },
            Sizes::Lognormal { median: kb, sigma: 2.36, least: Bytes::new(50), most: Some(mb) },
            Sizes::Empirical(Arc::new(Cdf { points: WEB_SEARCH.to_vec() })),
            Sizes::Empirical(Arc::new(Cdf { points: DATA_MINING.to_vec() })),
            Sizes::Empirical(Arc::new(Cdf::parse("100 0.5\n100 0.6\n900 1").unwrap())),
        ]
    }

    #[test]
    fn the_mean_is_that_of_the_quantiles() {
        for sizes in all() {
            // The midpoint rule, with more points in the tail.
            let (mut sum, mut to) = (0.0, 0.0);
            for level in 0..40 {
                let from = to;
                to = 1.0 - 0.5_f64.powi(level + 1);
                let n = 4_000;
                let step = (to - from) / f64::from(n);
                sum += (0..n).map(|k| sizes.quantile(from + (f64::from(k) + 0.5) * step)).sum::<f64>() * step;
            }
            assert!((sum / sizes.mean() - 1.0).abs() < 2e-3, "{sum} {} {sizes:?}", sizes.mean());
        }
    }

    #[test]
    fn the_inverse_of_the_normal_distribution_is_one() {
        for k in 1..100_000 {
            let share = f64::from(k) / 100_000.0;
            let back = normal_below(normal_quantile(share));
            assert!((back - share).abs() < 1e-7, "{share} {back}");
        }
        for share in [1e-16, 1e-12, 1e-8] {
            assert!((normal_below(normal_quantile(share)) / share - 1.0).abs() < 1e-4, "{share}");
        }
        assert!(normal_quantile(0.0) > -40.0 && normal_quantile(1.0) < 40.0);
    }

    #[test]
    fn files_of_hpcc_and_of_ns_2_are_read_as_they_are() {
        let shares = Cdf::parse("1000 0.25\n3000 1").unwrap();
        assert_eq!(Cdf::parse("size,cdf\n1000,25\n3000,100\n").unwrap(), shares);
        assert_eq!(Cdf::parse_columns("1 7 0.25\n3 9 1\n", 1_000.0).unwrap(), (shares, 3));
    }

    #[test]
    fn points_of_a_file_are_met_and_between_them_sizes_are_uniform() {
        let cdf = Cdf::parse("# bytes, share\n1000 0.25\n\n1000,0.5 # half\n 3000\t1\n").unwrap();
        let sizes = [0.0, 0.3, 0.4999, 0.5, 0.75, 0.875].map(|share| cdf.quantile(share));
        assert_eq!(sizes, [1_000.0, 1_000.0, 1_000.0, 1_000.0, 2_000.0, 2_500.0]);
        assert_eq!(cdf.mean(), 0.5 * 1_000.0 + 0.5 * 2_000.0);
    }

    #[test]
    fn a_bad_file_is_refused_with_its_line_and_what_to_write() {
        let error = |text: &str| Cdf::parse(text).unwrap_err().to_string();
        assert_eq!(
            error("10 0.5\nabc"),
            "line 2: `abc` is not a size and a share; write bytes and a number from 0 to 1, such as 10000 0.15"
        );
        assert!(error("1 2 3 4").starts_with("line 1: `1 2 3 4` is not"));
        assert_eq!(error("-1 0.5"), "line 1: -1 is not a size; write bytes from 0 to 1e15");
        assert!(error("nan 0.5").starts_with("line 1: NaN is not a size"));
        assert!(error("1 150").starts_with("line 1: 150 is not a share; write a number from 0 to 1"));
        assert!(error("1 15").starts_with("line 1: the last share is 15"));
        assert!(
            error("1 0.5\n2 1 1").starts_with("line 2: `2 1 1` has 3 columns, and the lines before have 2")
        );
        assert!(error("1 0.5\nsize share").starts_with("line 2: `size share` is not a size and a share"));
        assert_eq!(error("9 0.1\n5 0.2"), "line 2: 5 bytes come after 9; sort the lines by size");
        assert!(error("5 0.3\n\n9 0.2").starts_with("line 3: the share falls from 0.3 to 0.2"));
        assert_eq!(
            error("5 0.3\n9 0.9\n"),
            "line 2: the last share is 0.9; end with the largest size and 1, or 100 in per cent"
        );
        assert!(error("0 1").contains("no file has a byte"));
        assert!(error("# nothing").starts_with("there is no point in it"));
    }
}
