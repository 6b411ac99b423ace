//! Markers of flows and exchanges of links in scenario files, read by the catalogue.

use std::sync::{Arc, LazyLock};

use apportion_core::catalog::{Role, Selection};
use apportion_core::exchange::currency::{self, ExchangeParams};

/// The exchange of a link that nobody gave settings.
///
/// # Panics
/// When the catalogue's own defaults are refused: a slip in the program that every test finds.
pub(crate) fn default_exchange() -> Arc<ExchangeParams> {
    static DEFAULT: LazyLock<Arc<ExchangeParams>> = LazyLock::new(|| {
        let built = Selection::of(Role::Exchange, currency::ENTRY.name)
            .and_then(|selection| ExchangeParams::from_args(&selection.args));
        match built {
            Ok(params) => Arc::new(params),
            Err(error) => unreachable!("the catalogue refuses its own exchange: {error}"),
        }
    });
    Arc::clone(&DEFAULT)
}
