//! Distributions of sizes in scenario files.

use std::path::Path;
use std::sync::Arc;

use apportion_core::param::Variant;
use apportion_core::units::Bytes;

use crate::files::Files;
use crate::keys::{Fields, walk_variant};
use crate::problem::Problems;
use crate::sizes::{Cdf, DATA_MINING, SIZES, Shape, Sizes, WEB_SEARCH};

/// A key of sizes in a file, with the data that it reads from another one.
pub(crate) struct Written<'f> {
    variant: &'static Variant,
    fields: Fields<'f>,
    cdf: Option<Arc<Cdf>>,
}

impl<'f> Written<'f> {
    /// The key `name` of a source; none if it is absent or was refused.
    pub(crate) fn read(
        name: &str,
        source: &Fields<'f>,
        files: &Files<'_>,
        problems: &mut Problems,
    ) -> Option<Self> {
        let (variant, fields) =
            walk_variant(source.item(name)?, &source.path_of(name), SIZES, true, problems)?;
        let named = |points: &[(f64, f64)]| Some(Arc::new(Cdf::of(points)));
        let cdf = match variant.name {
            "web_search" => named(WEB_SEARCH),
            "data_mining" => named(DATA_MINING),
            "cdf" => Some(Arc::new(cdf(&fields, files, problems)?)),
            _ => None,
        };
        Some(Self { variant, fields, cdf })
    }

    /// The distribution of member `i`.
    pub(crate) fn at(&self, i: u64, problems: &mut Problems) -> Option<Sizes> {
        let fields = &self.fields;
        if let Some(cdf) = &self.cdf {
            return Some(Sizes::Empirical(Arc::clone(cdf)));
        }
        let least = fields.get("least", i, problems);
        let most = fields.get("most", i, problems);
        if let (Some(least), Some(most)) = (least, most)
            && least >= most
        {
            fields.refuse("most", format!("{most} is not above `least`, {least}; write more"), problems);
            return None;
        }
        Some(match self.variant.name {
            "constant" => Sizes::Shaped { mean: fields.get("size", i, problems)?, shape: Shape::Constant },
            "bounded_pareto" => {
                Sizes::BoundedPareto { alpha: fields.get("alpha", i, problems)?, least: least?, most: most? }
            }
            _ => {
                let median = fields.get("median", i, problems)?;
                let sigma = fields.get("sigma", i, problems)?;
                let sizes = Sizes::Lognormal { median, sigma, least: least.unwrap_or(Bytes::ZERO), most };
                // Chosen: the resolution of the inversion.
                if sigma > MAX_SIGMA || sizes.share_within() < 1e-6 {
                    let message = "less than a millionth of the distribution is within the bounds, or it is wider than \
                                   any file; write a smaller sigma or other bounds";
                    fields.refuse("sigma", message, problems);
                    return None;
                }
                sizes
            }
        })
    }
}

/// The distribution in the file that `fields` name.
fn cdf(fields: &Fields<'_>, files: &Files<'_>, problems: &mut Problems) -> Option<Cdf> {
    let path = Path::new(fields.text("file")?);
    let unit: Option<Bytes> = fields.get("unit", 1, problems);
    let bytes = unit.map_or(1.0, |unit| unit.get() as f64);
    match files.text(path).and_then(|text| Cdf::parse_columns(&text, bytes)) {
        Ok((cdf, columns)) => {
            if columns == 3 && unit.is_none() {
                let note = "the second of three columns is not used, and sizes are taken for bytes; write unit = \"1460B\" if they \
                            are packets, as those of pFabric, or unit = \"1B\"";
                fields.note("file", format!("`{}`: {note}", path.display()), problems);
            }
            Some(cdf)
        }
        Err(message) => {
            fields.refuse("file", format!("`{}`: {message}", path.display()), problems);
            None
        }
    }
}

/// Maximum of sigma. Chosen: half of all files then differ by more than e^6.
const MAX_SIGMA: f64 = 10.0;
