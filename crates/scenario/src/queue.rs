//! Queue disciplines as text: in scenario files, on command lines and in programs; and the defaults of links.

use std::rc::Rc;

use apportion_core::system::DisciplineParams;
use apportion_core::system::catalog::{Catalog, Selection};

use crate::problem::{Place, Problems, TextError};
use crate::selection::Part;
use crate::text::{self, Item};

/// Reads a discipline: a name such as `pfd`, with or without quotes, or an inline table such as
/// `{ kind = "red", limit = "50p" }`, as the key `queue` of a scenario takes them.
///
/// ```
/// let params = apportion_scenario::queue::from_text("{ kind = \"drr\", limit = \"110p\" }");
/// assert!(params.is_ok());
/// let error = apportion_scenario::queue::from_text("drrr").unwrap_err();
/// assert!(error.to_string().contains("(did you mean `drr`?)"), "{error}");
/// ```
///
/// # Errors
/// Everything that is wrong with it, with the messages that files get.
pub fn from_text(text: &str) -> Result<DisciplineParams, TextError> {
    from_text_with(&Catalog::default(), text)
}

/// As [`from_text`], with the disciplines of `catalog`.
///
/// # Errors
/// Everything that is wrong with it.
pub fn from_text_with(catalog: &Catalog, text: &str) -> Result<DisciplineParams, TextError> {
    let trimmed = text.trim();
    let item = if trimmed.starts_with('{') {
        text::parse_value(trimmed).map_err(|error| TextError::whole(format!("`{trimmed}` is {error}")))?
    } else {
        Item::text(trimmed.trim_matches('"'), Place::Override)
    };
    let mut problems = Problems::default();
    let params = read(catalog, &item, "queue", &mut problems).map(Rc::unwrap_or_clone);
    params.ok_or_else(|| TextError::keys(None, problems))
}

/// The queue of a link without the key `queue`: [`DEFAULT`], with the preset of `catalog`.
pub(crate) fn default(catalog: &Catalog) -> Rc<DisciplineParams> {
    fifo(catalog, None)
}

/// The discipline of a link without the key `queue`.
pub(crate) const DEFAULT: &str = "fifo";

/// The size of a queue that does not drop what ordinary use puts into it: as Linux interfaces have (`txqueuelen`).
pub(crate) const DEEP: &str = "1000p";

/// The queue of access links and reverse directions: of the size [`DEEP`].
pub(crate) fn deep() -> Rc<DisciplineParams> {
    fifo(&Catalog::default(), Some(DEEP))
}

/// # Panics
/// If the catalogue has no FIFO with a limit in packets: a bug that every test finds.
fn fifo(catalog: &Catalog, limit: Option<&str>) -> Rc<DisciplineParams> {
    let built = catalog.select(DEFAULT, None, None).and_then(|mut selection| {
        limit.map_or(Ok(()), |limit| selection.set("limit", limit))?;
        DisciplineParams::from_args(&selection)
    });
    match built {
        Ok(params) => Rc::new(params),
        Err(error) => unreachable!("the catalogue refuses a FIFO: {error}"),
    }
}

/// Reads a discipline of a scenario; every error is added to `problems`.
pub(crate) fn read(
    catalog: &Catalog,
    item: &Item,
    path: &str,
    problems: &mut Problems,
) -> Option<Rc<DisciplineParams>> {
    let of_scenario = |selection: &Selection| {
        let params = DisciplineParams::from_args(selection)?;
        params.refuse_dscp().map(|()| params)
    };
    Part::Queue.read(catalog, item, path, of_scenario, problems).map(Rc::new)
}

/// The same of a gateway, whose packets have a DSCP.
pub(crate) fn read_of_gateway(
    catalog: &Catalog,
    item: &Item,
    path: &str,
    problems: &mut Problems,
) -> Option<Rc<DisciplineParams>> {
    Part::Queue.read(catalog, item, path, DisciplineParams::from_args, problems).map(Rc::new)
}
