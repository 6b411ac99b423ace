//! TCP in scenario files: a profile's name, or a table with `profile` and parameters.

use std::sync::Arc;

use crate::problem::Problems;
use crate::tcp::TcpParams;
use crate::text::Item;

/// Reads a TCP.
pub(crate) fn read(_item: &Item, _path: &str, _problems: &mut Problems) -> Option<Arc<TcpParams>> {
    Some(Arc::new(TcpParams))
}

/// The TCP as TOML; `None` if it is refused or swept inside.
pub(crate) fn canonical(_item: &Item) -> Option<String> {
    None
}
