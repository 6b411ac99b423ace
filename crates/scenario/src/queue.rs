//! Queue disciplines in scenario files, and those of links that nobody gave one.

use std::rc::Rc;

use apportion_core::system::DisciplineParams;
use apportion_core::system::catalog::Selection;

use crate::problem::Problems;
use crate::selection::Part;
use crate::text::Item;

/// The queue of a link that nobody gave one.
pub(crate) fn default() -> Rc<DisciplineParams> {
    fifo(None)
}

/// A queue that does not drop what ordinary use puts into it: 1000 packets, as Linux interfaces have
/// (`txqueuelen`).
pub(crate) fn deep() -> Rc<DisciplineParams> {
    fifo(Some("1000p"))
}

/// # Panics
/// When the catalogue has no FIFO with a limit in packets: a slip in the program that every test finds.
fn fifo(limit: Option<&str>) -> Rc<DisciplineParams> {
    let built = Selection::new("fifo", None, None).and_then(|mut selection| {
        limit.map_or(Ok(()), |limit| selection.set("limit", limit))?;
        DisciplineParams::from_args(&selection)
    });
    match built {
        Ok(params) => Rc::new(params),
        Err(error) => unreachable!("the catalogue refuses a FIFO: {error}"),
    }
}

/// Reads a discipline; every slip goes to `problems`.
pub(crate) fn read(item: &Item, path: &str, problems: &mut Problems) -> Option<Rc<DisciplineParams>> {
    Part::Queue.read(item, path, DisciplineParams::from_args, problems).map(Rc::new)
}
