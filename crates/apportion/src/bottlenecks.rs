//! Bottlenecks that a scenario does not watch.
//!
//! A link limits the flows that cross it, with their data or their ACKs, if it is full and its queue rejects
//! packets or never empties. Full utilisation alone does not limit a flow: a source at 95 % of the rate
//! without loss gets all that it needs. The capacity of a link is its rate, or the rate of its shaper if that
//! is lower.

use apportion_report::link_use::{FULL, LinkUse};
use apportion_scenario::model::{Flow, Link, LinkId, Scenario, Setting};

/// The minimum difference in utilisation between a hidden bottleneck and a watched link; smaller differences
/// are random.
const MARGIN: f64 = 0.02;
/// Utilisation from which a link is never idle, so that packets always wait: for TCP with a window limit
/// below the size of the buffer, or while a large buffer fills.
const NEVER_IDLE: f64 = 0.99;

/// A link that limits a flow and is not watched, while no watched link of the flow limits it as much.
#[derive(Clone, Debug)]
pub(crate) struct Hidden<'a> {
    pub(crate) link: &'a Link,
    /// Utilisation of the link's capacity, 0 to 1, averaged over replications.
    pub(crate) used: f64,
    /// The first flow that the link limits.
    pub(crate) flow: &'a Flow,
    /// The watched link on the path of this flow with the highest utilisation.
    pub(crate) watched: Option<Watched<'a>>,
}

/// A watched link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watched<'a> {
    pub(crate) link: &'a Link,
    /// Utilisation, as in [`Hidden`].
    pub(crate) used: f64,
    /// Whether the link limits flows too.
    pub(crate) limits: bool,
}

/// Returns the hidden bottlenecks, sorted by descending utilisation.
pub(crate) fn hidden<'a>(scenario: &'a Scenario, uses: &[LinkUse]) -> Vec<Hidden<'a>> {
    let mut by_link: Vec<Option<Load>> = vec![None; scenario.links.len()];
    for of in uses {
        // Links are sorted by name.
        let at = scenario.links.binary_search_by(|link| link.name.as_str().cmp(&of.link));
        if let Ok(at) = at {
            by_link[at] = Some(Load::of(scenario, at, of));
        }
    }
    if !by_link.iter().flatten().any(|load| !load.watched && load.used >= FULL) {
        return Vec::new();
    }
    let mut found: Vec<Option<Hidden<'a>>> = vec![None; scenario.links.len()];
    for flow in &scenario.flows {
        // If several paths have equal cost, the path of the first replication is used.
        let routes = [&flow.path, &flow.back].map(|path| scenario.route(flow, path, 0, scenario.seed));
        let way = || routes.iter().flat_map(|route| route.iter()).flat_map(|id| scenario.choices(flow, id));
        let way = || way().map(|id| id.index());
        let loads = || way().filter_map(|at| Some((at, by_link[at]?)));
        let watched = loads().filter(|(_, load)| load.watched);
        let watched = watched.map(|(at, load)| Watched {
            link: &scenario.links[at],
            used: load.used,
            limits: load.limits(),
        });
        let fullest = watched.clone().max_by(|a, b| a.used.total_cmp(&b.used));
        let most = watched.filter(|watched| watched.limits).map(|watched| watched.used).fold(0.0, f64::max);
        for (at, load) in loads().filter(|(_, load)| !load.watched && load.limits()) {
            if found[at].is_none() && load.used > most + MARGIN {
                let link = &scenario.links[at];
                found[at] = Some(Hidden { link, used: load.used, flow, watched: fullest });
            }
        }
    }
    let mut found: Vec<Hidden<'a>> = found.into_iter().flatten().collect();
    found.sort_by(|a, b| b.used.total_cmp(&a.used));
    found
}

/// The utilisation of a link.
#[derive(Clone, Copy, Debug)]
struct Load {
    watched: bool,
    used: f64,
    rejects: bool,
}

impl Load {
    fn of(scenario: &Scenario, at: usize, of: &LinkUse) -> Self {
        let shaper = scenario.links[at].queue.shaper.as_ref().map(|shaper| shaper.rate);
        // A shaper whose rate changes counts with its maximum rate.
        let changed = scenario.changes.iter().filter_map(|change| match &change.to {
            Setting::LinkQueue(LinkId(link), queue) if *link as usize == at => Some(queue.shaper.as_ref()),
            _ => None,
        });
        let shapers = changed.map(|shaper| shaper.map(|shaper| shaper.rate)).chain([shaper]);
        // `None` means no limit.
        let lets_through = shapers.map(|rate| rate.map_or(of.rate, |rate| rate.min(of.rate))).max();
        let share = lets_through.map_or(1.0, |rate| rate.as_bit() as f64 / of.rate.as_bit().max(1) as f64);
        let used = if share > 0.0 { of.utilisation / share } else { 0.0 };
        Self { watched: of.watched, used: used.min(1.0), rejects: of.rejects }
    }

    fn limits(&self) -> bool {
        self.used >= NEVER_IDLE || self.used >= FULL && self.rejects
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use apportion_core::units::Rate;

    use super::*;

    /// Two flows: `own` over the links `a` and `b`, `shared` over `b` and `c`; ACKs return over separate
    /// links.
    fn scenario(b: &str) -> Scenario {
        let text = format!(
            "seed = 1\nstop = \"1s\"\n\
             link.a = {{ from = \"1\", to = \"2\", rate = \"10Mbit\", delay = \"1ms\" }}\n\
             link.b = {{ from = \"2\", to = \"3\", rate = \"10Mbit\", delay = \"1ms\"{b} }}\n\
             link.c = {{ from = \"3\", to = \"4\", rate = \"10Mbit\", delay = \"1ms\" }}\n\
             flow.own = {{ from = \"1\", to = \"3\" }}\nflow.shared = {{ from = \"2\", to = \"4\" }}\n"
        );
        let suite = apportion_scenario::load(&text, Path::new("x.toml"), &[], &|path| std::fs::read(path));
        suite.unwrap().points.remove(0).scenario
    }

    /// Returns the hidden links, each with the flow and the watched link of highest utilisation. Links are
    /// given by name, whether watched, utilisation, and whether packets are rejected.
    fn found(scenario: &Scenario, uses: &[(&str, bool, f64, bool)]) -> Vec<[String; 3]> {
        let uses = uses.iter().map(|&(link, watched, utilisation, rejects)| LinkUse {
            link: link.to_owned(),
            watched,
            utilisation,
            rate: Rate::from_mbit(10),
            rejects,
        });
        let text = |of: Hidden<'_>| {
            let watched = of.watched.map_or(String::new(), |watched| watched.link.name.clone());
            [of.link.name.clone(), of.flow.name.clone(), watched]
        };
        hidden(scenario, &uses.collect::<Vec<_>>()).into_iter().map(text).collect()
    }

    #[test]
    fn a_full_link_is_a_bottleneck_if_it_rejects_packets_or_is_never_idle() {
        let it = scenario("");
        let uses = |used, rejects| [("a", false, used, rejects), ("b", true, 0.5, false)];
        let named = [["a", "own", "b"].map(str::to_owned)];
        assert_eq!(found(&it, &uses(0.95, true)), named);
        assert_eq!(found(&it, &uses(0.995, false)), named);
        assert!(found(&it, &uses(0.95, false)).is_empty() && found(&it, &uses(0.8, true)).is_empty());
    }

    #[test]
    fn only_watched_bottlenecks_that_the_same_flow_crosses_excuse_a_link() {
        let it = scenario("");
        let (named, own) = ([["a", "own", "b"].map(str::to_owned)], ["a", "own", ""].map(str::to_owned));
        let a = ("a", false, 0.95, true);
        assert!(found(&it, &[a, ("b", true, 0.94, true)]).is_empty());
        assert_eq!(found(&it, &[a, ("b", true, 0.92, true)]), named);
        // The watched link is full and loses nothing: it is no bottleneck.
        assert_eq!(found(&it, &[a, ("b", true, 0.98, false)]), named);
        // The watched link belongs to another flow.
        assert_eq!(found(&it, &[a, ("c", true, 1.0, true)]), [own]);
        // A link that both cross is hidden to the flow without a watched link.
        let both = ["b", "own", ""].map(str::to_owned);
        assert_eq!(found(&it, &[("b", false, 0.99, true), ("c", true, 1.0, true)]), [both]);
    }

    #[test]
    fn a_shaper_says_what_a_link_lets_through_unless_a_change_removes_it() {
        let shaped = ", queue = { kind = \"fifo\", shaper = \"token_bucket\", rate = \"5Mbit\" }";
        let mut it = scenario(shaped);
        let uses = [("b", false, 0.49, true), ("c", true, 0.6, false)];
        let named = ["b", "shared", "c"].map(str::to_owned);
        let own = ["b", "own", ""].map(str::to_owned);
        assert_eq!(found(&it, &uses), [own]);
        it.flows.remove(0);
        assert_eq!(found(&it, &uses), [named]);
        let at = |name: &str| it.links.iter().position(|link| link.name == name).unwrap();
        let plain = Box::new(it.links[at("a")].queue.clone());
        let to = Setting::LinkQueue(LinkId(at("b") as u32), plain);
        it.changes.push(apportion_scenario::model::Change { at: it.stop, to });
        assert!(found(&it, &uses).is_empty());
    }
}
