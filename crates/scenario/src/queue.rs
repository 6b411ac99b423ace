//! Queue disciplines as text: in scenario files, on command lines and in programs; and the defaults of links.

use std::rc::Rc;

use apportion_core::param::ParamError;
use apportion_core::system::DisciplineParams;
use apportion_core::system::catalog::{Catalog, Selection};
use apportion_core::units::Span;

use crate::model::{Flow, Link, LinkId};
use crate::problem::{Place, Problems, TextError};
use crate::selection::Part;
use crate::text::{self, Item};

/// Reads a discipline in the syntax of the key `queue` of a scenario: a name, for example `pfd`, with or
/// without quotes, or an inline table, for example `{ kind = "red", limit = "50p" }`.
///
/// ```
/// let params = apportion_scenario::queue::from_text("{ kind = \"drr\", limit = \"110p\" }");
/// assert!(params.is_ok());
/// let error = apportion_scenario::queue::from_text("drrr").unwrap_err();
/// assert!(error.to_string().contains("(did you mean `drr`?)"), "{error}");
/// ```
///
/// # Errors
/// All problems of the text, with the messages that files get.
pub fn from_text(text: &str) -> Result<DisciplineParams, TextError> {
    from_text_with(&Catalog::default(), text)
}

/// Like [`from_text`], with the disciplines of `catalog`.
///
/// # Errors
/// All problems of the text.
pub fn from_text_with(catalog: &Catalog, text: &str) -> Result<DisciplineParams, TextError> {
    let trimmed = text.trim();
    let item = if trimmed.starts_with('{') {
        text::parse_value(trimmed).map_err(|error| TextError::whole(format!("`{trimmed}` is {error}")))?
    } else {
        Item::text(trimmed.trim_matches('"'), Place::Override)
    };
    let mut problems = Problems::default();
    let params = Part::Queue.read(catalog, &item, "queue", of_scenario, &mut problems);
    params.ok_or_else(|| TextError::keys(None, problems))
}

/// The queue of a link without the key `queue`: [`DEFAULT`], with the preset of `catalog`.
pub(crate) fn default(catalog: &Catalog) -> Rc<Queue> {
    fifo(catalog, None)
}

/// The discipline of a link without the key `queue`.
pub(crate) const DEFAULT: &str = "fifo";

/// The size of a queue that does not drop packets in ordinary use: that of Linux interfaces (`txqueuelen`).
pub(crate) const DEEP: &str = "1000p";

/// The queue of access links and reverse directions, of size [`DEEP`].
pub(crate) fn deep() -> Rc<Queue> {
    fifo(&Catalog::default(), Some(DEEP))
}

/// # Panics
/// If the catalogue has no FIFO with a limit in packets: a bug that every test finds.
fn fifo(catalog: &Catalog, limit: Option<&str>) -> Rc<Queue> {
    let built = catalog.select(DEFAULT, None, None).and_then(|mut selection| {
        limit.map_or(Ok(()), |limit| selection.set("limit", limit))?;
        DisciplineParams::from_args(&selection)
    });
    match built {
        Ok(params) => Rc::new(Queue { params, in_bdp: None }),
        Err(error) => unreachable!("the catalogue refuses a FIFO: {error}"),
    }
}

/// A discipline as it is read, before flows are known.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    /// The parameters, with 100 ms for sizes in bandwidth-delay products.
    pub params: DisciplineParams,
    in_bdp: Option<InBdp>,
}

/// The parts with sizes in bandwidth-delay products.
#[derive(Clone, Debug)]
struct InBdp {
    selection: Selection,
    place: Place,
    path: String,
}

/// Reads a discipline of a scenario; every error is added to `problems`.
pub(crate) fn read(catalog: &Catalog, item: &Item, path: &str, problems: &mut Problems) -> Option<Rc<Queue>> {
    let build = |selection: &Selection| {
        let in_bdp = selection.args.in_bdp().map(|key| InBdp {
            selection: selection.clone(),
            place: item.place,
            path: text::join(path, &key),
        });
        let params = of_scenario(&sized(selection, Span::from_millis(100)))?;
        Ok(Queue { params, in_bdp })
    };
    Part::Queue.read(catalog, item, path, build, problems).map(Rc::new)
}

fn of_scenario(selection: &Selection) -> Result<DisciplineParams, ParamError> {
    let params = DisciplineParams::from_args(selection)?;
    params.refuse_dscp().map(|()| params)
}

/// `selection` with bandwidth-delay products of flows with `round_trip`.
fn sized(selection: &Selection, round_trip: Span) -> Selection {
    let mut selection = selection.clone();
    selection.args.size_by(round_trip);
    selection
}

impl Queue {
    /// The parameters at a link that flows cross, with sizes by these flows. A link that no flow crosses has
    /// no bandwidth-delay product, and nothing to hold.
    pub(crate) fn of_link(
        &self,
        id: LinkId,
        links: &[Link],
        flows: &[Flow],
        problems: &mut Problems,
    ) -> DisciplineParams {
        let Some(InBdp { selection, place, path }) = &self.in_bdp else { return self.params.clone() };
        let params = match longest_round_trip(id, links, flows) {
            None => Ok(self.params.clone()),
            Some(Span::ZERO) => {
                let message = format!(
                    "no flow that crosses link `{}` has a way back with a delay, so that there is no bandwidth-delay product; write \
                     a time, for example \"100ms\"",
                    links[id.index()].name
                );
                Err(message)
            }
            Some(round_trip) => of_scenario(&sized(selection, round_trip)).map_err(|error| error.message),
        };
        params.unwrap_or_else(|message| {
            problems.add(*place, path.clone(), message);
            self.params.clone()
        })
    }
}

/// The longest round trip of a flow over the link `id` in either direction, counting only delays of links;
/// none without flows, zero if none returns.
fn longest_round_trip(id: LinkId, links: &[Link], flows: &[Flow]) -> Option<Span> {
    // One of equal-cost paths, or a member of a group, counts as one that the flow may take.
    let group = |of: LinkId| links[of.index()].group.as_ref().map_or(&[][..], |group| &group.members);
    let may_be = |flow: &Flow, of: LinkId| of == id || !flow.pinned.contains(&of) && group(of).contains(&id);
    let crosses = |flow: &&Flow| {
        [&flow.path, &flow.back].into_iter().any(|path| path.all(links).any(|of| may_be(flow, of)))
    };
    let delay = |id: &LinkId| links[id.index()].delay.as_nanos();
    let round_trip = |flow: &Flow| {
        let ways = flow.path.iter().chain(flow.back.iter()).map(delay);
        if flow.back.is_empty() { 0 } else { ways.fold(0, u64::saturating_add) }
    };
    flows.iter().filter(crosses).map(round_trip).max().map(Span::from_nanos)
}

/// Reads a discipline of a gateway, whose packets have a DSCP.
pub(crate) fn read_of_gateway(
    catalog: &Catalog,
    item: &Item,
    path: &str,
    problems: &mut Problems,
) -> Option<Rc<DisciplineParams>> {
    Part::Queue.read(catalog, item, path, DisciplineParams::from_args, problems).map(Rc::new)
}
