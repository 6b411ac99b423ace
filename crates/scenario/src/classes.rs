//! Classes of queues: each flow over a link whose queue has classes belongs to one.

use std::collections::BTreeSet;

use apportion_core::system::DisciplineParams;
use apportion_core::system::classes::ClassNames;

use crate::keys::Fields;
use crate::labels::written;
use crate::model::{Change, Flow, Link, Scenario, Setting};
use crate::problem::{Problems, did_you_mean};
use crate::text::join;

impl Scenario {
    /// Whether a queue divides by its own classes at any time: then the scenario defines no entitlements.
    pub(crate) fn has_classes(&self) -> bool {
        let later = self.changes.iter().filter_map(|change| match &change.to {
            Setting::LinkQueue(_, queue) => Some(queue.as_ref()),
            _ => None,
        });
        let queues = self.links.iter().map(|link| &link.queue).chain(later);
        queues.filter_map(DisciplineParams::classes).any(|classes| classes.leaves.len() > 1)
    }
}

/// Refuses flows over queues with classes that belong to none of these, at the start or after a change.
pub(crate) fn check(
    links: &[Link],
    flows: &[Flow],
    changes: &[Change],
    root: &Fields<'_>,
    problems: &mut Problems,
) {
    let later = changes.iter().filter_map(|change| match &change.to {
        Setting::LinkQueue(id, queue) => Some((id.index(), queue.as_ref())),
        _ => None,
    });
    let queues = links.iter().enumerate().map(|(at, link)| (at, &link.queue)).chain(later);
    let mut reported = BTreeSet::new();
    for (at, classes) in queues.filter_map(|(at, queue)| Some((at, queue.classes()?))) {
        for flow in flows.iter().filter(|_| classes.others.is_none()) {
            let mut path = flow.path.all(links).chain(flow.back.all(links));
            let named = flow.customer.as_deref();
            let belongs = named.is_some_and(|named| classes.leaves.contains(&named));
            if belongs || path.all(|id| id.index() != at) || !reported.insert((&flow.group, at)) {
                continue;
            }
            let (place, path) = written(root, flow);
            problems.add(place, join(&path, "customer"), message(&links[at].name, named, &classes));
        }
    }
}

fn message(link: &str, named: Option<&str>, classes: &ClassNames<'_>) -> String {
    let what = match named {
        Some(named) => {
            let guess = did_you_mean(named, classes.leaves.iter().copied());
            format!("`{named}` is no class with packets of the queue of link `{link}`{guess}")
        }
        None => format!("missing, and the queue of link `{link}` schedules classes"),
    };
    let some: Vec<_> = classes.leaves.iter().copied().take(20).collect();
    format!("{what}; write one of {}, or others = true for the class that takes such flows", some.join(", "))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn load(queue: &str, flow: &str) -> Result<Scenario, Vec<String>> {
        let text = format!(
            "seed = 1\nstop = \"9s\"\n[link.x]\nfrom = \"a\"\nto = \"b\"\nrate = \"6Mbit\"\ndelay = \"1ms\"\n\
             [link.x.queue]\nkind = \"htb\"\n{queue}\n[flow.f]\nfrom = \"a\"\nto = \"b\"\ntcp = \"rfc\"\n{flow}\n"
        );
        let suite = crate::load(&text, Path::new("x.toml"), &[], &|path| std::fs::read(path));
        let suite = suite.map_err(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        Ok(suite.points[0].scenario.clone())
    }

    const CLASSES: &str =
        "class.all = { rate = \"5Mbit\" }\nclass.web = { parent = \"all\", rate = \"1Mbit\" }";

    #[test]
    fn flows_belong_to_classes_by_their_customers() {
        let scenario = load(CLASSES, "customer = \"web\"").unwrap();
        assert_eq!(scenario.links[0].queue.classes().map(|classes| classes.leaves), Some(vec!["web"]));
        // The return path of acknowledgements has a queue of its own.
        assert!(load(&CLASSES.replace("\"1Mbit\"", "\"1Mbit\", others = true"), "").is_ok());
    }

    #[test]
    fn trees_and_flows_that_do_not_fit_are_refused_once_with_their_line() {
        for (queue, flow, part) in [
            (
                CLASSES,
                "",
                "x.toml:12: flow.f.customer: missing, and the queue of link `x` schedules classes; write one of web",
            ),
            (
                CLASSES,
                "customer = \"wep\"",
                "flow.f.customer: `wep` is no class with packets of the queue of link `x` (did you mean `web`?)",
            ),
            (CLASSES, "customer = \"all\"", "flow.f.customer: `all` is no class with packets"),
            (
                "class.web = { parent = \"al\", rate = \"1Mbit\" }",
                "",
                "x.toml:10: link.x.queue.class.web.parent: there is no class `al`",
            ),
            (
                "class.p = { rate = \"1Mbit\", parent = \"q\" }\nclass.q = { rate = \"1Mbit\", parent = \"p\" }",
                "",
                "link.x.queue.class.p.parent: its parents go in a circle: p, q, p",
            ),
            (
                "class.web = { rate = \"2Mbit\", ceil = \"1Mbit\" }",
                "",
                "x.toml:10: link.x.queue.class.web.ceil: it is below the rate",
            ),
            ("class.web = { rate = \"2Mbit\", cell = \"1Mbit\" }", "", "class.web.cell: unknown parameter"),
            ("class.web = 5", "", "link.x.queue.class.web: `5` is an integer, not a table"),
            ("class.web = { rate = 5 }", "", "x.toml:10: link.x.queue.class.web.rate: "),
        ] {
            let problems = load(queue, flow).unwrap_err();
            assert!(problems.len() == 1 && problems[0].contains(part), "{part} in {problems:?}");
        }
    }
}
