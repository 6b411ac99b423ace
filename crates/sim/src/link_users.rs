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

/// For each of so many links the one over which hosts answer all that it brings them, data with acknowledgements and these with data, if
/// that link carries nothing else; otherwise none.
pub(crate) fn answering_links(links: usize, ways: &[Way]) -> Vec<Option<u32>> {
    /// No link, one, or several.
    #[derive(Clone, Copy, PartialEq)]
    enum One {
        None,
        Link(u32),
        Several,
    }
    fn note(one: &mut One, link: u32) {
        let same = matches!(*one, One::None) || *one == One::Link(link);
        *one = if same { One::Link(link) } else { One::Several };
    }
    let mut answering = vec![One::None; links];
    let mut origins = answering.clone();
    let both = ways.iter().flat_map(|way| [(&way.path, &way.back), (&way.back, &way.path)]);
    for (there, back) in both {
        back.iter().skip(1).for_each(|link| origins[link.index()] = One::Several);
        match (there.last(), back.first()) {
            (Some(last), Some(first)) => {
                note(&mut answering[last.index()], first.0);
                note(&mut origins[first.index()], last.0);
            }
            (None, Some(first)) => origins[first.index()] = One::Several,
            (_, None) => {}
        }
    }
    let alone = |(link, answering)| match answering {
        One::Link(by) if origins[by as usize] == One::Link(link as u32) => Some(by),
        _ => None,
    };
    answering.into_iter().enumerate().map(alone).collect()
}

/// For each of so many links the only one from which packets come to it; none if they come from several, or from a host.
pub(crate) fn feeders(links: usize, ways: &[Way]) -> Vec<Option<u32>> {
    /// From where packets come.
    #[derive(Clone, Copy, PartialEq)]
    enum Origin {
        None,
        Link(u32),
        Others,
    }
    let mut origins = vec![Origin::None; links];
    for path in ways.iter().flat_map(|way| [&way.path, &way.back]) {
        let mut from = Origin::Others;
        for link in path.iter() {
            let origin = &mut origins[link.index()];
            *origin = if *origin == Origin::None || *origin == from { from } else { Origin::Others };
            from = Origin::Link(link.0);
        }
    }
    let only = |origin| if let Origin::Link(link) = origin { Some(link) } else { None };
    origins.into_iter().map(only).collect()
}
