//! Who uses the links of a scenario: flows in both directions, hosts, and changes.

use apportion_runtime::ways::Way;
use apportion_scenario::model::{Scenario, Setting};

/// How many directions of ways and changes each link has to do with.
pub(crate) fn users(scenario: &Scenario, ways: &[Way]) -> Vec<usize> {
    let mut users = vec![0; scenario.links.len()];
    for path in ways.iter().flat_map(|way| [&way.path, &way.back]) {
        path.iter().for_each(|link| users[link.index()] += 1);
    }
    for (users, is_changed) in users.iter_mut().zip(changed_links(scenario)) {
        *users += usize::from(is_changed);
    }
    users
}

/// Which links the scenario changes.
pub(crate) fn changed_links(scenario: &Scenario) -> Vec<bool> {
    let mut changed = vec![false; scenario.links.len()];
    for change in &scenario.changes {
        if let Setting::LinkRate(link, _)
        | Setting::LinkDelay(link, _)
        | Setting::LinkLoss(link, _)
        | Setting::LinkQueue(link, _)
        | Setting::LinkTickets(link, _)
        | Setting::LinkAckTickets(link, _) = &change.to
        {
            changed[link.index()] = true;
        }
    }
    changed
}

/// Of the links that were noted: none, one, or several. Hosts count as several.
#[derive(Clone, Copy, PartialEq)]
enum Noted {
    None,
    Link(u32),
    Several,
}

impl Noted {
    fn note(&mut self, other: Self) {
        *self = if *self == Self::None || *self == other { other } else { Self::Several };
    }

    const fn only(self) -> Option<u32> {
        if let Self::Link(link) = self { Some(link) } else { None }
    }
}

/// For each of so many links the one over which hosts answer all that it brings them, data with acknowledgements and these with data, if
/// that link carries nothing else; otherwise none.
pub(crate) fn answering_links(links: usize, ways: &[Way]) -> Vec<Option<u32>> {
    let mut answering = vec![Noted::None; links];
    let mut origins = answering.clone();
    let both = ways.iter().flat_map(|way| [(&way.path, &way.back), (&way.back, &way.path)]);
    for (there, back) in both {
        back.iter().skip(1).for_each(|link| origins[link.index()].note(Noted::Several));
        match (there.last(), back.first()) {
            (Some(last), Some(first)) => {
                answering[last.index()].note(Noted::Link(first.0));
                origins[first.index()].note(Noted::Link(last.0));
            }
            (None, Some(first)) => origins[first.index()].note(Noted::Several),
            (_, None) => {}
        }
    }
    let alone = |(link, answering): (usize, Noted)| {
        answering.only().filter(|&by| origins[by as usize] == Noted::Link(link as u32))
    };
    answering.into_iter().enumerate().map(alone).collect()
}

/// For each of so many links the only one from which packets come to it; none if they come from several, or from a host.
pub(crate) fn feeders(links: usize, ways: &[Way]) -> Vec<Option<u32>> {
    let mut origins = vec![Noted::None; links];
    for path in ways.iter().flat_map(|way| [&way.path, &way.back]) {
        let mut from = Noted::Several;
        for link in path.iter() {
            origins[link.index()].note(from);
            from = Noted::Link(link.0);
        }
    }
    origins.into_iter().map(Noted::only).collect()
}
