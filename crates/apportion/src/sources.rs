//! What this program was built from.

/// The sources that this program was built from: results of different ones are never mixed.
pub(crate) const BUILD: &str = env!("APPORTION_BUILD");
/// What it was built for: results do not depend on it as far as is known.
pub(crate) const TARGET: &str = env!("APPORTION_TARGET");

/// Names the sources and the system that this program was built from and for: programs of the same build simulate the same, bit for
/// bit.
///
/// ```
/// assert!(apportion::build().starts_with(env!("CARGO_PKG_VERSION")));
/// ```
#[must_use]
pub fn build() -> String {
    format!("{BUILD} for {TARGET}")
}
