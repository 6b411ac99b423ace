//! Queue disciplines in scenario files: a name, or a table with `kind`, `drop`, `shaper` and parameters, read by the
//! catalogue of disciplines.

use std::rc::Rc;

use apportion_core::system::DisciplineParams;

use crate::problem::Problems;
use crate::text::Item;

/// The queue of a link that nobody gave one.
pub(crate) fn default() -> Rc<DisciplineParams> {
    Rc::new(DisciplineParams)
}

/// A queue that does not drop what ordinary use puts into it.
pub(crate) fn deep() -> Rc<DisciplineParams> {
    Rc::new(DisciplineParams)
}

/// Reads a discipline.
pub(crate) fn read(_item: &Item, _path: &str, _problems: &mut Problems) -> Option<Rc<DisciplineParams>> {
    Some(Rc::new(DisciplineParams))
}
