//! The sources and the target of this build.

/// A hash of the sources that this program was built from: results of different sources are never mixed.
pub(crate) const BUILD: &str = env!("APPORTION_BUILD");
/// The target of the build: as far as is known, results do not depend on it.
pub(crate) const TARGET: &str = env!("APPORTION_TARGET");

/// Returns the name of the sources and the target of this build: programs of the same build have the same
/// results, bit for bit.
///
/// ```
/// assert!(apportion::build().starts_with(env!("CARGO_PKG_VERSION")));
/// ```
#[must_use]
pub fn build() -> String {
    format!("{BUILD} for {TARGET}")
}
