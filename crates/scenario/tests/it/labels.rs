//! Paths on which every packet would be dropped for lack of a label are refused.

use crate::common::{errors, scenario};

/// A flow over the links `x`, `y` and `z` with these queues, and over their other directions.
fn text(queues: [&str; 3], back: [&str; 3], carrier: &str, end: &str) -> String {
    let nodes = ["a", "b", "c", "d"];
    let links = ["x", "y", "z"].into_iter().enumerate().map(|(at, link)| {
        let (from, to) = (nodes[at], nodes[at + 1]);
        format!(
            "[link.{link}]\nfrom = \"{from}\"\nto = \"{to}\"\nqueue = {}\nback.queue = {}\n",
            queues[at], back[at]
        )
    });
    format!(
        "seed = 1\nstop = \"9s\"\ndefaults.link = {{ rate = \"1Mbit\", delay = \"1ms\" }}\n{}\
         [flow.f]\ncount = 2\nfrom = \"a\"\nto = \"d\"\n{carrier}\n{end}",
        links.collect::<String>()
    )
}

const PLAIN: &str = "\"fifo\"";
const ANY: &str = "\"csfq\"";
const EDGE: &str = "{ kind = \"csfq\", role = \"edge\" }";
const CORE: &str = "{ kind = \"mcsfq\", role = \"core\" }";
const EGRESS: &str = "{ kind = \"csfq\", egress = true }";
const LAST: &str = "{ kind = \"mcsfq\", role = \"core\", egress = true }";
const UDP: &str = "source = { kind = \"cbr\", rate = \"1Mbit\" }";
const TCP: &str = "tcp = \"rfc\"";

#[test]
fn a_core_has_an_edge_before_it_on_every_path() {
    for queues in [
        [EDGE, CORE, LAST],
        [ANY, PLAIN, CORE],
        [PLAIN, EDGE, CORE],
        ["\"hcsfq\"", CORE, CORE],
        [EGRESS, EDGE, CORE],
        [EGRESS, EGRESS, ANY],
        [EDGE, LAST, PLAIN],
        [EDGE, LAST, ANY],
        ["{ kind = \"drr\", drop = \"csfq\", role = \"any\" }", CORE, CORE],
    ] {
        scenario(&text(queues, [PLAIN; 3], TCP, ""));
    }
    let refused = |queues| errors(&text(queues, [PLAIN; 3], TCP, ""));
    assert_eq!(
        refused([PLAIN, CORE, PLAIN]),
        ["dir/x.toml:19: flow.f: its packets reach link `y` without a label, and the queue there, with \
             role = \"core\", drops unlabelled packets; give a link before it a queue csfq or mcsfq that \
             labels, or write role = \"any\" for that of `y`"]
    );
    for queues in [[CORE, EDGE, PLAIN], [LAST, PLAIN, PLAIN], [PLAIN, PLAIN, CORE]] {
        assert_eq!(refused(queues).len(), 1, "{queues:?}");
    }
}

#[test]
fn behind_an_egress_there_is_no_label() {
    let message = |egress: &str, core: &str| {
        format!(
            "dir/x.toml:19: flow.f: as link `{egress}` removes labels, its packets reach link `{core}` \
             without a label, and the queue there, with role = \"core\", drops unlabelled packets; write \
             egress = false for the queue of `{egress}`, or write role = \"any\" for that of `{core}`"
        )
    };
    let refused = |queues| errors(&text(queues, [PLAIN; 3], UDP, ""));
    assert_eq!(refused([EGRESS, CORE, PLAIN]), [message("x", "y")]);
    assert_eq!(refused([EDGE, LAST, CORE]), [message("y", "z")]);
    assert_eq!(refused([EGRESS, PLAIN, CORE]), [message("x", "z")]);
}

#[test]
fn acknowledgements_are_packets_that_need_a_label_too() {
    let back = [CORE, PLAIN, EDGE];
    scenario(&text([PLAIN; 3], back, TCP, ""));
    let refused = errors(&text([PLAIN; 3], [CORE, PLAIN, PLAIN], TCP, ""));
    assert!(
        refused.len() == 1 && refused[0].contains("flow.f: its acknowledgements reach link `x.back` without"),
        "{refused:?}"
    );
    // Datagrams have no acknowledgements.
    scenario(&text([PLAIN; 3], [CORE, PLAIN, PLAIN], UDP, ""));
}

#[test]
fn a_queue_that_comes_later_counts_from_then_on() {
    let change = |at: u64, link: &str, queue: &str| {
        format!("[[change]]\nat = \"{at}s\"\nset = \"link.{link}.queue\"\nto = {queue}\n")
    };
    let queues = |changes: &str| text([ANY, PLAIN, PLAIN], [PLAIN; 3], UDP, changes);
    scenario(&queues(&change(1, "y", CORE)));
    // The edge moves to y: x labels nothing from then on, and y is no core at that time.
    scenario(&queues(&(change(1, "y", CORE) + &change(2, "x", PLAIN) + &change(2, "y", EDGE))));
    let refused = errors(&queues(&(change(1, "y", CORE) + &change(2, "x", PLAIN))));
    assert!(
        refused.len() == 1
            && refused[0].contains("flow.f: from 2s on, its packets reach link `y` without a label"),
        "{refused:?}"
    );
}
