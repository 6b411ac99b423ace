//! The report as readers and browsers see it.

use apportion_core::units::Span;
use apportion_report::figure::COLOURS;
use apportion_report::{RunResults, json_lines, page, summary};
use apportion_runtime::outcome::LinkOutcome;

use crate::synthetic::{
    DRR, FIFO, Made, large, long_sweep, numbered, point, quickstart, run, ten_and_one, thirty, weighted,
    with_dues,
};

/// The page without its script; the data of figures stay.
fn without_script(html: &str) -> String {
    let (main, script) = html.split_once("<script>\n").expect("a script");
    let (script, end) = script.split_once("</script>").expect("its end");
    assert!(!script.contains("<script") && !end.contains("<script"), "one script");
    main.to_owned() + end
}

/// Checks that every tag that opens is closed in order, and returns the text between tags.
fn balanced(html: &str) -> String {
    let html = &without_script(html);
    let mut open: Vec<String> = Vec::new();
    let mut text = String::new();
    let mut rest = html.strip_prefix("<!DOCTYPE html>").expect("a document type");
    while let Some(at) = rest.find('<') {
        text.push_str(&rest[..at]);
        let end = at + rest[at..].find('>').expect("a tag that ends");
        let tag = &rest[at + 1..end];
        assert!(!tag.contains('<'), "a bare < before <{tag}>");
        let name: String =
            tag.trim_start_matches('/').chars().take_while(char::is_ascii_alphanumeric).collect();
        if tag.starts_with('/') {
            assert_eq!(open.pop().as_ref(), Some(&name), "closing tag out of order");
        } else if !tag.ends_with('/') {
            open.push(name);
        }
        rest = &rest[end + 1..];
    }
    assert_eq!(open, Vec::<String>::new(), "left open");
    text
}

fn nothing_measured() -> RunResults {
    let mut empty = quickstart(&[7]);
    for point in &mut empty.points {
        point.outcomes.clear();
    }
    empty.complete = false;
    empty
}

fn all_kinds() -> Vec<RunResults> {
    let mut no_time = quickstart(&[7]);
    for point in &mut no_time.points {
        point.outcomes[0].measured = Span::ZERO;
        point.outcomes[0].links.clear();
        point.sample = Span::ZERO;
    }
    vec![
        quickstart(&[7]),
        quickstart(&[7, 8, 9]),
        weighted(&[7]),
        large(&[7]),
        thirty(&[7, 8]),
        nothing_measured(),
        no_time,
        run("nothing", &[], vec![]),
    ]
}

#[test]
fn the_page_is_well_formed_for_every_kind_of_run() {
    for run in all_kinds() {
        let html = page(&run);
        balanced(&html);
        assert!(!html.contains("NaN") && !html.contains("inf "), "{}", run.title);
        assert!(!html.contains("could not be drawn"), "{}", run.title);
    }
}

#[test]
fn the_page_needs_no_network_and_no_script() {
    for run in all_kinds() {
        // A clip path is in the page.
        let html = page(&run).replace("xmlns=\"http://www.w3.org/2000/svg\"", "").replace("url(#", "");
        for reference in ["http:", "https:", "src=", "url(", "@import", "<link", "href=", "fetch(", "eval("] {
            assert!(!html.contains(reference), "{reference} in {}", run.title);
        }
        // Without a script nothing is hidden: only a script replaces drawings.
        let plain = without_script(&html);
        assert!(!plain.contains(" hidden") && !plain.contains("class=\"painted\""));
    }
}

#[test]
fn the_same_run_gives_the_same_bytes() {
    let all = || quickstart(&[7, 8]);
    assert_eq!(page(&all()), page(&all()));
    assert_eq!(json_lines(&all()), json_lines(&all()));
}

#[test]
fn every_flow_and_point_is_named() {
    let run = quickstart(&[7]);
    let text = balanced(&page(&run));
    for point in &run.points {
        assert!(text.contains(&point.label));
        for flow in &point.flows {
            // Once in each panel, once in each table.
            let lines = text.lines().filter(|l| l.contains(&flow.name)).count();
            assert!(lines >= 2 * run.points.len(), "{} is on {lines} lines", flow.name);
        }
    }
}

#[test]
fn names_are_text_whatever_they_hold() {
    let evil = "</style><script>alert('x')</script>&";
    let flows =
        [Made { name: evil.into(), group: evil.into(), ..ten_and_one(900, 0.0, 0.1, 5.0)[0].clone() }];
    let mut bad = run(evil, &[1], vec![point(&DRR, &flows, &[1])]);
    bad.points[0].label = evil.into();
    bad.points[0].settings = vec![(evil.into(), evil.into())];
    bad.points[0].outcomes[0].links[0].name = evil.into();
    bad.scenario = evil.into();
    bad.hash = evil.into();
    bad.versions.insert(evil.into(), evil.into());
    let html = page(&bad);
    balanced(&html);
    assert!(
        !html.contains("<script>alert") && html.contains("\\u003cscript>alert("),
        "in the data of figures"
    );
    assert!(html.contains("&lt;script&gt;alert("));
}

#[test]
fn ids_are_unique() {
    let html = page(&large(&[7]));
    let mut ids: Vec<&str> = html.split(" id=\"").skip(1).filter_map(|s| s.split('"').next()).collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert!(all > 5 && ids.len() == all);
}

#[test]
fn a_large_run_stays_small_and_says_what_it_leaves_out() {
    let html = page(&large(&[7, 8]));
    assert!(html.len() < 1_500_000, "{} bytes", html.len());
    assert!(html.contains("<summary>8 more points</summary>"));
    assert!(html.contains("of 20 points are shown to keep this page small"));
    assert!(html.contains("Shown: 6 of 9 groups"));
}

#[test]
fn a_long_sweep_stays_small_and_says_what_it_leaves_out() {
    let html = page(&long_sweep(1_000));
    balanced(&html);
    assert!(html.len() < 1_500_000, "{} bytes", html.len());
    assert!(html.contains("Shown: 200 of 1000 points"));
}

#[test]
fn an_interrupted_run_says_so_at_the_top() {
    let mut run = quickstart(&[7, 8]);
    run.points[3].outcomes.clear();
    assert!(!page(&run).contains("interrupted"));
    run.complete = false;
    let html = page(&run);
    let at = html.find("Only 6 of 8 replications finished").expect("the banner");
    assert!(at < html.find("<h2").expect("a section"));
    assert!(summary(&run).lines().next().is_some_and(|l| l.contains("interrupted")));
}

#[test]
fn sentences_follow_the_numbers() {
    let hog = point(&FIFO, &ten_and_one(8_000, 0.0, 0.1, 80.0), &[7]);
    let fair = point(&DRR, &ten_and_one(909, 0.0, 0.1, 80.0), &[7]);
    let text = summary(&run("r", &[7], vec![hog, fair]));
    // The ten TCP flows share 1.95 Mb/s, within the made-up 3 %, of ten times 0.909: 1.95/9.09 = 21.5 %.
    assert!(text.contains("queue=fifo: udp got 7."), "{text}");
    let others = "times its entitlement; 10 tcp flows got 0.19";
    assert!(text.contains(others) && text.contains(" Mb/s each, only 22 % of theirs"), "{text}");
    assert!(text.contains("queue=drr: Every flow is within "), "{text}");
    assert!(text.contains("of its entitlement with queue=drr, but "), "{text}");

    // Within one group the flows are reported separately: an equal share of 0.33 Mb/s is 330/645 = 51 % for
    // the heaviest of thirty and 330/21 = 15.7 times for the lightest, within the made-up 3 %.
    let text = summary(&thirty(&[7]));
    assert!(text.contains("queue=fifo: Flows get from 53 % (bulk.30) to 16.0 times"), "{text}");

    // With the names swapped the sentences swap.
    let hog = point(&DRR, &ten_and_one(8_000, 0.0, 0.1, 80.0), &[7]);
    let fair = point(&FIFO, &ten_and_one(909, 0.0, 0.1, 80.0), &[7]);
    let text = summary(&run("r", &[7], vec![hog, fair]));
    assert!(text.contains("queue=drr: udp got 7.") && text.contains("queue=fifo: Every flow"), "{text}");
}

#[test]
fn the_slowest_of_several_watched_links_is_shown_with_its_name() {
    let several = |name: &str| {
        let mut run = quickstart(&[7]);
        for outcome in run.points.iter_mut().flat_map(|point| &mut point.outcomes) {
            let idle = LinkOutcome { name: name.into(), watched: true, ..LinkOutcome::default() };
            outcome.links.insert(0, idle);
        }
        summary(&run)
    };
    let text = summary(&quickstart(&[7]));
    assert!(text.contains("  utilisation   Jain  queue p95 ms  "), "{text}");
    assert!(text.contains("The 95th percentile of queue delay is "), "{text}");
    let values =
        |text: &str| text.lines().nth(2).unwrap().split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    for other in ["access", "way-out"] {
        let named = several(other);
        let head = named.lines().nth(1).unwrap();
        assert!(
            head.contains("  bottleneck utilisation  ") && head.contains("  bottleneck queue p95 ms  "),
            "{head}"
        );
        assert!(named.contains("The 95th percentile of queue delay at link bottleneck is "), "{named}");
        assert_eq!(values(&named), values(&text));
    }
}

#[test]
fn shares_of_what_is_due_are_shown_over_time_with_events() {
    let run = with_dues(quickstart(&[7]));
    let text = balanced(&page(&run));
    assert!(text.contains("Throughput over entitlement at the time"), "the figure");
    assert!(text.contains("Events, seed 7") && text.contains("link bottleneck: 20 Mb/s"), "the table");
    assert!(text.contains("Worst second"), "of each flow");
    let summary = summary(&run);
    assert!(summary.contains(" of its entitlement in the second that began at "), "{summary}");
    assert!(summary.lines().count() <= 25, "{summary}");
    // The entitlement varies, so it is not drawn as a level; without dues there is no such figure.
    let plain = page(&quickstart(&[7]));
    assert!(plain.contains("class=\"level\"") && !page(&run).contains("class=\"level\""));
    assert!(!plain.contains("entitlement at the time"));
}

#[test]
fn the_summary_fits_a_terminal() {
    for run in all_kinds() {
        let text = summary(&run);
        assert!(text.lines().count() <= 25, "{text}");
        assert!(!text.contains('\u{1b}'));
    }
}

#[test]
fn json_lines_are_one_object_a_line() {
    let lines: Vec<serde_json::Value> =
        json_lines(&quickstart(&[u64::MAX])).lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(lines[0]["run"], "Who protects whom");
    assert_eq!(lines[0]["complete"], true);
    assert_eq!(lines[0]["seeds"], serde_json::json!(["18446744073709551615"]));
    let jain = lines.iter().find(|l| l["metric"] == "jain" && l["point"] == "queue=fifo").unwrap();
    assert!(jain["mean"].as_f64().unwrap() < 0.3);
    assert_eq!((&jain["ci95"], &jain["seeds"]), (&serde_json::Value::Null, &serde_json::json!(1)));
}

#[test]
fn a_discipline_that_broke_its_contract_makes_the_point_invalid_on_the_page_and_in_the_summary() {
    let mut broken = quickstart(&[7]);
    broken.points[1].outcomes[0].links[0].fault = Some("the discipline `mine` broke its contract".into());
    let sentence = "NOT VALID: link bottleneck: the discipline `mine` broke its contract.";
    assert_eq!(page(&broken).matches(sentence).count(), 1);
    assert_eq!(summary(&broken).matches(sentence).count(), 1);
    assert!(!page(&quickstart(&[7])).contains("NOT VALID"));
}

/// A run with these settings at its points, each a copy of the same point.
fn swept(settings: &[&[(&str, &str)]]) -> RunResults {
    let made = |settings: &&[(&str, &str)]| {
        let mut made = point(&DRR, &ten_and_one(900, 0.0, 0.1, 5.0), &[7]);
        made.settings = settings.iter().map(|&(path, value)| (path.to_owned(), value.to_owned())).collect();
        made.label =
            settings.iter().map(|(path, value)| format!("{path}={value}")).collect::<Vec<_>>().join(", ");
        made
    };
    run("swept", &[7], settings.iter().map(made).collect())
}

/// The part of the page about the parameters.
fn sweep_of(html: &str) -> &str {
    let (_, from) = html.split_once("<h2 id=\"sweep\">").expect("a section of the sweep");
    from.split_once("<h2").expect("a section after it").0
}

#[test]
fn numbers_are_axes_and_names_are_lines() {
    let html = page(&swept(&[
        &[("link.x.rate", "2Mbit"), ("link.x.queue", "fifo")],
        &[("link.x.rate", "2Mbit"), ("link.x.queue", "drr")],
        &[("link.x.rate", "10Mbit"), ("link.x.queue", "fifo")],
        &[("link.x.rate", "10Mbit"), ("link.x.queue", "drr")],
    ]));
    let sweep = sweep_of(&html);
    assert!(sweep.contains(">rate, Mb/s</text>") && sweep.contains(">10</text>"), "{sweep}");
    assert!(sweep.contains("</span>fifo</li>") && sweep.contains("</span>drr</li>"), "{sweep}");
    assert!(sweep.contains(">Means over seeds. Dashed: 1. Each quantity has one scale.</p>"), "{sweep}");
}

#[test]
fn two_numbers_are_a_heat_map_and_names_alone_are_not_joined() {
    let html = page(&swept(&[
        &[("rate", "2Mbit"), ("delay", "5ms")],
        &[("rate", "2Mbit"), ("delay", "9ms")],
        &[("rate", "5Mbit"), ("delay", "5ms")],
        &[("rate", "5Mbit"), ("delay", "9ms")],
    ]));
    let sweep = sweep_of(&html);
    assert!(sweep.contains(">delay, ms</text>") && sweep.contains("#FEE838"), "{sweep}");
    assert!(sweep.contains(">Means over seeds. Each quantity has one scale.</p>"), "{sweep}");

    let html =
        page(&swept(&[&[("queue", "fifo")], &[("queue", "red")], &[("queue", "drr limit=50p flows=8")]]));
    let sweep = sweep_of(&html);
    assert!(sweep.contains(">drr limit=50p flows=8</text>") && sweep.contains("<circle"), "{sweep}");
    assert!(!sweep.contains("stroke=\"#0072B2\""), "joined: {sweep}");
}

#[test]
fn a_third_parameter_is_small_multiples() {
    let points = ["2Mbit", "5Mbit"].iter().flat_map(|rate| {
        ["5ms", "9ms"].iter().flat_map(move |delay| {
            ["fifo", "drr"].map(|queue| [("rate", *rate), ("delay", *delay), ("queue", queue)])
        })
    });
    let points: Vec<_> = points.collect();
    let html = page(&swept(&points.iter().map(|point| &point[..]).collect::<Vec<_>>()));
    let sweep = sweep_of(&html);
    assert!(sweep.contains("<br/>delay = 5ms<") || sweep.contains("<br/>rate = 2Mbit<"), "{sweep}");
    // Every point has a panel too.
    assert_eq!(html.matches("aria-label=\"Throughput and entitlement: ").count(), 8);
}

#[test]
fn drops_are_shown_by_reason_of_links_and_groups() {
    let html = page(&quickstart(&[7, 8]));
    for title in ["Drops and marks at link bottleneck, packets", "Drops and marks of group tcp, packets"] {
        assert!(html.contains(title), "{title}");
    }
    assert!(html.contains("</span>dropped: overflow</li>"));
}

#[test]
fn of_many_flows_the_distribution_and_the_worst_ten_are_shown() {
    let mut flows: Vec<Made> = Vec::new();
    for k in 1..=100 {
        let like = ten_and_one(900, 0.0, 0.1, 5.0)[0].clone();
        flows.push(Made { name: format!("tcp.{k}"), got_kbit: 10 * k, ..like });
    }
    let html = page(&run("many", &[7], vec![point(&DRR, &flows, &[7])]));
    assert!(html.contains("<b>100 flows by throughput over entitlement</b>"), "a histogram");
    let table = html.split_once("Worst flows").expect("a table").1.split_once("</table>").unwrap().0;
    assert_eq!(table.matches("<tr>").count(), 10);
    assert!(table.contains(">tcp.1<") && !table.contains(">tcp.20<"), "{table}");
}

#[test]
fn without_series_and_delays_of_flows_curves_of_links_have_all_of_the_time_and_no_column_is_empty() {
    let mut many = quickstart(&[7]);
    for flow in many.points.iter_mut().flat_map(|point| &mut point.outcomes[0].flows) {
        (flow.series, flow.tcp, flow.delay) = Default::default();
    }
    let with = page(&quickstart(&[7]));
    let html = page(&many);
    // The last label of the time axis.
    let last = |html: &str| {
        let queue = html.split_once("packets</b></figcaption>").unwrap().1.split_once("</svg>").unwrap().0;
        let mut labels = queue.split('<').filter_map(|part| part.split_once('>')?.1.strip_suffix(" s"));
        labels.next_back().unwrap().to_owned()
    };
    assert_eq!(
        last(&html[html.find("<b>Queue at").unwrap()..]),
        last(&with[with.find("<b>Queue at").unwrap()..])
    );
    assert!(!html.contains("<b>Throughput of a flow, Mb/s</b></figcaption>\n<svg"));
    let numbers = |html: &str| {
        html.split_once("<h2 id=\"numbers\">").unwrap().1.split_once("</table>").unwrap().0.to_owned()
    };
    assert!(numbers(&with).contains("delay p95, ms") && numbers(&with).contains("udp delay"));
    assert!(!numbers(&html).contains("udp delay") && !numbers(&html).contains('–'));
}

#[test]
fn buffers_are_shown_at_each_point() {
    let mut run = quickstart(&[7]);
    assert!(!without_script(&page(&run)).contains("Buffer"));
    for (at, point) in run.points.iter_mut().enumerate() {
        let names = point.outcomes[0].links.iter().map(|link| link.name.clone());
        point.buffers = names.map(|name| (name, format!("{}p", 41 + at))).collect();
    }
    let html = page(&run);
    let numbers = html.split_once("<h2 id=\"numbers\">").unwrap().1.split_once("</table>").unwrap().0;
    assert!(
        numbers.contains(">Buffer</th>")
            && numbers.contains("<td>41p</td>")
            && numbers.contains("<td>42p</td>")
    );
    let links = html.split_once("<h4>Links</h4>").unwrap().1.split_once("</table>").unwrap().0;
    assert!(links.contains(">Buffer</th>") && links.contains("<td>41p</td>"));
}

#[test]
fn more_than_an_entitlement_is_no_better_than_an_entitlement() {
    let flow = |got_kbit: u64| Made {
        entitlement_kbit: Some(500),
        got_kbit,
        ..ten_and_one(900, 0.0, 0.1, 5.0)[0].clone()
    };
    let points = [(&DRR, 1_000), (&FIFO, 550)].map(|(discipline, got)| point(discipline, &[flow(got)], &[7]));
    let text = summary(&run("plenty", &[7], points.to_vec()));
    let lead = "The worst-off flow gets at least 100 % of its entitlement at every point.";
    assert!(text.contains(lead), "{text}");
}

#[test]
fn names_with_numbers_are_in_numeric_order_and_groups_that_are_left_out_are_counted() {
    let run = numbered(&[7]);
    let html = page(&run);
    let at = |text: &str| html.find(text).unwrap_or_else(|| panic!("{text}"));
    // Rows of the table of points, panels of drops, rows of transfers.
    for part in [
        "<th scope=\"row\">flow#, Mb/s each",
        "<b>Drops and marks of group flow#, packets",
        ">flow#, below 10 kB",
    ] {
        let of = |number: &str| at(&part.replace('#', number));
        assert!(of("2") < of("3"), "{part}");
        assert!(!html[..of("3")].contains(&part.replace('#', "10")), "{part}");
    }
    assert!(html.contains("12 of 14 groups are drawn"));
    assert!(!html.contains("Drops and marks of group flow13"));
}

#[test]
fn a_single_group_without_a_colour_of_its_own_is_named() {
    for (count, last) in [(11, "flow11</li>"), (12, "2 others</li>")] {
        let flows: Vec<Made> = (1..=count)
            .map(|i| Made {
                name: format!("flow{i}"),
                group: format!("flow{i}"),
                ..ten_and_one(900, 0.0, 0.1, 5.0)[0].clone()
            })
            .collect();
        let html = page(&run("groups", &[1], vec![point(&DRR, &flows, &[1])]));
        assert!(html.contains(&format!("<span class=\"k{COLOURS}\"></span>{last}")), "{count}");
    }
}
