//! Keys for tickets, markers and exchanges: every one read back, every error with its message.

use apportion_core::label::Format;
use apportion_core::mark::ticket::TicketMarkerParams;
use apportion_core::mark::ticket_policer::Rounding;
use apportion_core::mark::{MARKERS, MarkerParams};
use apportion_core::units::{Span, TicketRate};
use apportion_scenario::model::{Flow, Link, Scenario, Setting};

use crate::common::{self, errors, link, scenario};

const TEXT: &str = r#"seed = 1
stop = "10s"
[link.l2]
from = "a"
to = "b"
rate = "1Mbit"
delay = "1ms"
[link.l10]
from = "b"
to = "c"
rate = "1Mbit"
delay = "1ms"
[flow.f]
from = "a"
to = "c"
tcp = "rfc"
"#;

/// `TEXT` with these lines added to link `l2`, to flow `f` and at the end.
fn text(l2: &str, f: &str, end: &str) -> String {
    TEXT.replace("[link.l10]", &format!("{l2}\n[link.l10]")) + f + "\n" + end
}

fn flow(lines: &str) -> Flow {
    scenario(&text("", lines, "")).flows.remove(0)
}

fn tickets(flow: &Flow) -> TicketMarkerParams {
    let Some(MarkerParams::Tickets(params)) = flow.mark.as_deref() else { panic!("tickets") };
    params.clone()
}

/// The one problem of `text`.
fn refused(text: &str) -> String {
    let errors = errors(text);
    assert_eq!(errors.len(), 1, "{errors:#?}");
    errors[0].strip_prefix("dir/x.toml:").unwrap().to_owned()
}

#[test]
fn a_flow_is_issued_tickets_at_its_source_or_at_its_sink() {
    let plain = flow("");
    assert!(plain.tickets.is_none() && plain.ack_tickets.is_none() && plain.mark.is_none());
    let source = flow("tickets = 0.5");
    assert_eq!((source.tickets, source.ack_tickets), (TicketRate::new(0.5), None));
    let sink = flow("ack_tickets = 0");
    assert_eq!((sink.tickets, sink.ack_tickets), (None, TicketRate::new(0.0)));
    let group = scenario(&text("", "tickets = \"100 * i\"\ncount = 3", ""));
    let issued: Vec<_> = group.flows.iter().map(|flow| flow.tickets.unwrap().get()).collect();
    assert_eq!(issued, [100.0, 200.0, 300.0]);
    // At the sinks: each member has its own tickets, once for all of its connections.
    let group = scenario(&text("", "ack_tickets = \"100 * i\"\ncount = 3\nconnections = 4", ""));
    let issued: Vec<_> =
        group.flows.iter().map(|flow| (flow.ack_tickets.unwrap().get(), flow.connections)).collect();
    assert_eq!(issued, [(100.0, 4), (200.0, 4), (300.0, 4)]);
    // Other markers need no tickets.
    let other = flow("mark = { kind = \"tsw2cm\", cir = \"1Mbit\" }");
    assert!(
        !matches!(other.mark.as_deref(), None | Some(MarkerParams::Tickets(_))) && other.tickets.is_none()
    );
    // Without acknowledgements the marker is at the edge.
    let udp = text("", "tickets = 7\nsource = { kind = \"cbr\", rate = \"1Mbit\" }", "");
    assert!(scenario(&udp.replace("tcp = \"rfc\"", "")).flows[0].mark.is_some());
}

#[test]
fn a_flow_with_tickets_is_marked_as_the_catalogue_says_unless_it_says_otherwise() {
    let usual = tickets(&flow("tickets = 1"));
    assert_eq!(
        (usual.window, usual.decay, usual.writer.format()),
        (Span::from_secs(2), true, Format::WIDEST)
    );
    assert_eq!(tickets(&flow("ack_tickets = 1")), usual);
    assert_eq!(tickets(&flow("tickets = 1\nmark = \"tickets\"")), usual);
    assert_eq!(tickets(&flow("tickets = 1\nmark = { kind = \"tickets\" }")), usual);
    let own = tickets(&flow("tickets = 1\nmark = { window = \"3s\", decay = false, rounding = \"down\" }"));
    assert_eq!((own.window, own.decay, own.writer.rounding), (Span::from_secs(3), false, Rounding::Down));
}

fn other_way<'a>(scenario: &'a Scenario, link: &Link) -> Option<&'a str> {
    Some(scenario.links[link.other_way?.index()].name.as_str())
}

#[test]
fn each_direction_of_a_link_knows_the_other_also_when_names_change_their_order() {
    // In the order of creation: l2, l2.back, l10, l10.back, z, l1, l1.back; z has one direction.
    let more = "[link.z]\nfrom = \"c\"\nto = \"a\"\nrate = \"1Mbit\"\ndelay = \"9ms\"\nback = false\n\
                [link.l1]\nfrom = \"c\"\nto = \"d\"\nrate = \"1Mbit\"\ndelay = \"9ms\"\n";
    let scenario = scenario(&text("", "", more));
    let pairs: Vec<_> =
        scenario.links.iter().map(|link| (link.name.as_str(), other_way(&scenario, link))).collect();
    assert_eq!(
        pairs,
        [
            ("l1", Some("l1.back")),
            ("l1.back", Some("l1")),
            ("l2", Some("l2.back")),
            ("l2.back", Some("l2")),
            ("l10", Some("l10.back")),
            ("l10.back", Some("l10")),
            ("z", None),
        ]
    );
    let dumbbell = common::scenario(
        "seed = 1\nstop = \"1s\"\n[topology]\nkind = \"dumbbell\"\npairs = 11\n\
         bottleneck = { rate = \"1Mbit\", delay = \"1ms\" }\n\
         [flow.f]\nfrom = \"l1\"\nto = \"r11\"\ntcp = \"rfc\"\n",
    );
    assert_eq!(dumbbell.links.len(), 2 * 23);
    for link in &dumbbell.links {
        let name =
            link.name.strip_suffix(".back").map_or_else(|| format!("{}.back", link.name), str::to_owned);
        assert_eq!(other_way(&dumbbell, link), Some(name.as_str()));
    }
}

#[test]
fn a_link_is_issued_tickets_and_exchanges_them() {
    let back = "back = { tickets = 2, exchange = { bits = 12 } }";
    let scenario =
        scenario(&text(&format!("ack_tickets = 900.5\nexchange = {{ window = \"1s\" }}\n{back}"), "", ""));
    let (there, back) = (link(&scenario, "l2"), link(&scenario, "l2.back"));
    assert_eq!((there.tickets, there.ack_tickets), (None, TicketRate::new(900.5)));
    assert_eq!((back.tickets, back.ack_tickets), (TicketRate::new(2.0), None));
    assert_eq!(there.exchange.window, Span::from_secs(1));
    // The other direction has a whole table of its own.
    assert_eq!(back.exchange.window, Span::from_secs(5));
    assert_eq!(back.exchange.writer.format(), Format::Integer { bits: 12 });
    let plain = link(&scenario, "l10");
    assert!(plain.tickets.is_none() && plain.ack_tickets.is_none());
    let text = text(
        "tickets = 3\nexchange = { kind = \"currency\", bits = 10 }\nback = { ack_tickets = 4 }",
        "",
        "",
    );
    let scenario = common::scenario(&text);
    let (there, back) = (link(&scenario, "l2"), link(&scenario, "l2.back"));
    assert_eq!((there.tickets, there.ack_tickets), (TicketRate::new(3.0), None));
    assert_eq!((back.tickets, back.ack_tickets), (None, TicketRate::new(4.0)));
    // Tags have the same width in the other direction unless it sets another.
    assert_eq!(back.exchange, there.exchange);
    assert_ne!(back.exchange, link(&scenario, "l10.back").exchange);
}

#[test]
fn links_of_a_topology_are_issued_tickets_by_name() {
    let network = "seed = 1\nstop = \"1s\"\n[topology]\nkind = \"dumbbell\"\npairs = 1\n\
                   bottleneck = { rate = \"1Mbit\", delay = \"1ms\", back = { ack_tickets = 5 } }\n\
                   [link.bottleneck]\ntickets = 4\nexchange.bits = 9\n[link.\"l1-left.back\"]\nack_tickets = 6\n\
                   [flow.f]\nfrom = \"l1\"\nto = \"r1\"\ntcp = \"rfc\"\n";
    let scenario = scenario(network);
    assert_eq!(link(&scenario, "bottleneck").tickets, TicketRate::new(4.0));
    assert_eq!(link(&scenario, "bottleneck").exchange.writer.format(), Format::Integer { bits: 9 });
    assert_eq!(link(&scenario, "bottleneck.back").ack_tickets, TicketRate::new(5.0));
    assert_eq!(link(&scenario, "l1-left.back").ack_tickets, TicketRate::new(6.0));
    // A direction that is changed by name does not add one more.
    assert_eq!(scenario.links.len(), 6);
}

#[test]
fn what_flows_are_issued_must_make_sense() {
    let error = |lines: &str| refused(&text("", lines, ""));
    assert_eq!(
        error("tickets = -1"),
        "18: flow.f.tickets: `-1`: a number must be zero or more here; write for example 2.5"
    );
    assert_eq!(
        error("ack_tickets = \"1 - i\"\ncount = 2"),
        "18: flow.f.ack_tickets: `1 - i = -1 for i = 2`: a number must be zero or more here; write for example 2.5"
    );
    assert_eq!(
        error("tickets = \"10kbit\""),
        "18: flow.f.tickets: `10kbit` is not a number; write for example 2.5"
    );
    assert_eq!(
        error("tickets = 1\nack_tickets = 2"),
        "19: flow.f.ack_tickets: `tickets` are issued to the source, `ack_tickets` to the sink, which then decides \
         for both; leave one of them out"
    );
    assert_eq!(
        error("mark = \"tickets\""),
        "18: flow.f.mark: no tickets are issued to the flow; write for example tickets = 100, or \
         ack_tickets = 100 to let the sink decide"
    );
    let known: Vec<_> = MARKERS.iter().map(|known| known.entry.name).collect();
    let known = known.join(", ");
    assert_eq!(
        error("tickets = 1\nmark = \"ticket\""),
        format!("19: flow.f.mark: `ticket` is not known here (did you mean `tickets`?) (known: {known})")
    );
    // A discipline is no marker.
    assert_eq!(
        error("tickets = 1\nmark = { kind = \"red\" }"),
        format!("19: flow.f.mark.kind: `red` is not known here (known: {known})")
    );
    for key in ["tickets", "ack_tickets"] {
        assert_eq!(
            error(&format!("{key} = 1\nmark = {{ kind = \"tsw2cm\", cir = \"1Mbit\" }}")),
            "19: flow.f.mark: only the marker `tickets` writes issued tickets on packets; write mark = \
             \"tickets\", or leave `tickets` and `ack_tickets` out"
        );
    }
    // A name is short for a table, and the message names the key that such a table needs.
    assert_eq!(
        error("mark = \"tsw2cm\""),
        "18: flow.f.mark.cir: it must be set; write for example \"1Mbit\""
    );
    assert_eq!(
        error("tickets = 1\nmark = 3"),
        "19: flow.f.mark: `3` is an integer, not a marker; write for example \"tickets\""
    );
    assert_eq!(
        error("tickets = 1\nmark = { windw = \"1s\" }"),
        "19: flow.f.mark.windw: unknown parameter (did you mean `window`?); known here: window, decay, burst_window, hold, hold_bound, issue_window, \
         policing_window, policing_bound, bits, form, rounding, preset"
    );
    assert_eq!(error("tickets = 1\nmark = { bits = 3 }"), "19: flow.f.mark.bits: a tag has 4 to 17 bits");
    // Keys that select in a queue are unknown here.
    assert!(
        error("tickets = 1\nmark = { drop = \"red\" }")
            .starts_with("19: flow.f.mark.drop: unknown parameter")
    );
    let udp = text("", "ack_tickets = 1\nsource = { kind = \"cbr\", rate = \"1Mbit\" }", "");
    assert_eq!(
        refused(&udp.replace("tcp = \"rfc\"\n", "")),
        "17: flow.f.ack_tickets: only a flow with TCP has acknowledgements to carry them; write for example tcp = \
         \"rfc\", or issue `tickets` to the source"
    );
}

#[test]
fn what_links_are_issued_must_make_sense() {
    let error = |lines: &str| refused(&text(lines, "", ""));
    assert_eq!(
        error("tickets = -1"),
        "8: link.l2.tickets: `-1`: a number must be zero or more here; write for example 2.5"
    );
    assert_eq!(
        error("exchange = { decay = true }"),
        "8: link.l2.exchange.decay: unknown parameter; known here: window, issue_window, policing_window, policing_bound, bits, \
         form, rounding, preset"
    );
    assert_eq!(
        error("exchange = { kind = \"tickets\" }"),
        "8: link.l2.exchange.kind: `tickets` is not known here (known: currency)"
    );
    assert_eq!(
        error("exchange = false"),
        "8: link.l2.exchange: `false` is a boolean, not an exchange; write for example \"currency\""
    );
    assert_eq!(
        error("tickets = 1\nack_tickets = 1"),
        "3: link.l2.ack_tickets: with `ack_tickets`, acknowledgements carry the tickets of the link; leave \
         `tickets` out"
    );
    let one_way = "ack_tickets = 1\nback = false\n\
                   [link.home]\nfrom = \"b\"\nto = \"a\"\nrate = \"1Mbit\"\ndelay = \"1ms\"";
    assert_eq!(
        error(one_way),
        "3: link.l2.ack_tickets: acknowledgements carry these tickets over the reverse direction, which the \
         link does not have; leave `back = false` out, or issue `tickets`"
    );
    // Tickets for data need no other direction.
    scenario(&text(&one_way.replace("ack_tickets", "tickets"), "", ""));
}

#[test]
fn what_is_issued_changes_where_there_is_something_to_change() {
    let change = |l2: &str, f: &str, set: &str, to: &str| {
        text(l2, f, &format!("[[change]]\nat = \"5s\"\nset = \"{set}\"\nto = {to}\n"))
    };
    let settings = |l2: &str, f: &str, set: &str, to: &str| -> Vec<_> {
        scenario(&change(l2, f, set, to)).changes.into_iter().map(|change| change.to).collect()
    };
    let group = settings("", "count = 2\ntickets = 1", "flow.f.tickets", "\"5 * i\"");
    assert!(
        matches!(group[..], [
        Setting::FlowTickets(0, first),
        Setting::FlowTickets(1, second),
    ] if [first.get(), second.get()] == [5.0, 10.0]),
        "{group:?}"
    );
    let sink = settings("", "ack_tickets = 1", "flow.f.ack_tickets", "0");
    assert!(matches!(sink[..], [Setting::FlowAckTickets(0, none)] if none.get() == 0.0), "{sink:?}");
    let link = settings("tickets = 1", "", "link.l2.tickets", "2.5");
    assert!(matches!(link[..], [Setting::LinkTickets(id, to)] if (id.0, to.get()) == (0, 2.5)));
    let back = settings("back.ack_tickets = 1", "", "link.l2.back.ack_tickets", "9");
    assert!(matches!(back[..], [Setting::LinkAckTickets(id, to)] if (id.0, to.get()) == (1, 9.0)));

    let error = |l2: &str, f: &str, set: &str, to: &str| refused(&change(l2, f, set, to));
    assert_eq!(
        error("", "ack_tickets = 1", "flow.f.tickets", "2"),
        "21: change[1].set: flow `f` has no `tickets` that could change; give it some, for example tickets = 100"
    );
    assert_eq!(
        error("tickets = 1", "", "link.l2.ack_tickets", "2"),
        "21: change[1].set: link `l2` has no `ack_tickets` that could change; give it some, for example ack_tickets = 100"
    );
    assert_eq!(
        error("tickets = 1", "", "link.l2.tickets", "-2"),
        "22: change[1].to: `-2`: a number must be zero or more here; write for example 2.5"
    );
    assert_eq!(
        error("", "tickets = 1", "flow.f.ticket", "2"),
        "21: change[1].set: `ticket` of a flow cannot change (did you mean `tickets`?); what can: rate, class, \
         weight, guarantee, tickets, ack_tickets"
    );
}

#[test]
fn the_canonical_text_spells_markers_and_exchanges_out() {
    let link = "tickets = 1_0\nexchange = { bits = 8, form = \"integer\" }\nback = { exchange = { bits = 8, form = \"floating\" } }";
    let suite = common::suite(&text(link, "tickets = 1", ""));
    let exchange = |form: &str| {
        format!(
            "{{ kind = \"currency\", window = \"5s\", issue_window = \"5s\", policing_window = \"5s\", policing_bound = 2.0, bits = 8, \
             form = \"{form}\", rounding = \"nearest\" }}"
        )
    };
    assert!(
        suite.canonical.contains(&format!("exchange = {}\n", exchange("integer"))),
        "{}",
        suite.canonical
    );
    assert!(
        suite.canonical.contains(&format!("limit = \"1000p\" }}, exchange = {} }}\n", exchange("floating"))),
        "{}",
        suite.canonical
    );
    assert!(suite.canonical.contains("tickets = 10.0\n"), "{}", suite.canonical);
    common::survives(&suite);
    let marked = common::suite(&text("", "tickets = 1\nmark = { decay = false, window = \"5s\" }", ""));
    assert!(marked.canonical.contains("mark = { kind = \"tickets\", window = \"5s\", decay = false, "));
    common::survives(&marked);
}

#[test]
fn tickets_do_not_cross_a_queue_that_writes_another_label() {
    let refused = |link: &str, flow: &str, rest: &str| {
        let errors = errors(&text(link, flow, rest));
        assert_eq!(errors.len(), 1, "{errors:#?}");
        errors[0].clone()
    };
    let message = refused("queue = \"csfq\"", "tickets = 1", "");
    assert!(
        message.ends_with(
            "a packet carries one label: its tickets would be lost; give the link another queue than csfq, or \
             leave `tickets` out"
        ),
        "{message}"
    );
    let message = refused("queue = \"pvpie\"", "tickets = 1", "");
    assert!(message.contains("writes values on packets"), "{message}");
    // Acknowledgements go the other way; a change counts as well.
    refused("back = { queue = \"csfq\" }", "ack_tickets = 1", "");
    let change = "[[change]]\nat = \"1s\"\nset = \"link.l1.queue\"\nto = \"csfq\"";
    refused("", "tickets = 1", change);
    // Without tickets, or only in the other direction, nothing is lost.
    scenario(&text("queue = \"csfq\"", "", ""));
    scenario(&text("back = { queue = \"csfq\" }", "tickets = 1", ""));
}

#[test]
fn a_flow_holds_a_rate_only_with_its_own_tickets() {
    let hold = "mark = { kind = \"tickets\", hold = \"2Mbit\" }";
    let held = scenario(&text("", &format!("tickets = 100\n{hold}"), ""));
    assert_eq!(tickets(&held.flows[0]).hold, Some("2Mbit".parse().unwrap()));
    // What it is due depends on its controller.
    assert!(held.entitlements().is_none());
    assert!(scenario(&text("", "tickets = 100", "")).entitlements().is_some());
    let check = |text: &str, told: &str| {
        let error = refused(text);
        assert!(error.contains(told), "{error}");
    };
    let at_sink = text("", &format!("ack_tickets = 100\n{hold}"), "");
    check(&at_sink, "the flow cannot hold a rate: its receiver decides on its tickets");
    let udp =
        text("", &format!("tickets = 100\nsource = {{ kind = \"cbr\", rate = \"1Mbit\" }}\n{hold}"), "");
    check(&udp.replace("tcp = \"rfc\"", ""), "only acknowledgements tell it the rate that arrives");
    check(
        &text("", "tickets = 100\nmark = { hold_bound = 8 }", ""),
        "it has no effect: only `hold` changes tickets",
    );
    check(
        &text("", "tickets = 100\nmark = { hold = \"2Mbit\", hold_bound = 0.5 }", ""),
        "write a number from 1",
    );
}
