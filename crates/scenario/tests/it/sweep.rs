//! Sweeps, overrides and the canonical text.

use std::io;
use std::path::Path;

use apportion_core::units::{Rate, Span};
use apportion_scenario::{Suite, load};

const TEXT: &str = r#"seed = 1
stop = "10s"
[topology]
kind = "dumbbell"
pairs = 2
[topology.bottleneck]
rate = "10Mbit"
delay = "5ms"
queue = "fifo"
[flow.b]
from = "l2"
to = "r2"
source = { kind = "cbr", rate = "3Mbit" }
[flow.a]
from = "l1"
to = "r1"
source = { kind = "on_off", rate = "1.0Mbit", on = "1s", off = "500ms" }
[[change]]
at = "5s"
set = "link.bottleneck.delay"
to = "1s"
[[change]]
at = "3s"
set = "flow.b.rate"
to = "1Mbit"
"#;

fn try_load(text: &str, overrides: &[(&str, &str)]) -> Result<Suite, Vec<String>> {
    let overrides: Vec<_> =
        overrides.iter().map(|(path, value)| ((*path).to_owned(), (*value).to_owned())).collect();
    load(text, Path::new("dir/x.toml"), &overrides, &|_| Err(io::ErrorKind::NotFound.into()))
        .map_err(|problems| problems.iter().map(ToString::to_string).collect())
}

fn with(overrides: &[(&str, &str)]) -> Suite {
    try_load(TEXT, overrides).unwrap_or_else(|messages| panic!("{messages:#?}"))
}

fn labels(overrides: &[(&str, &str)]) -> Vec<String> {
    with(overrides).points.into_iter().map(|point| point.label).collect()
}

/// Everything that a run depends on.
fn scenarios(suite: &Suite) -> String {
    suite.points.iter().map(|point| format!("{} {:?}\n", point.label, point.scenario)).collect()
}

#[test]
fn lists_are_axes_of_a_grid_in_the_order_of_the_file() {
    let queues = r#"["fifo", { kind = "red", limit = "90p" }, { kind = "red", limit = ["50p", "70p"] }]"#;
    let suite = with(&[
        ("topology.bottleneck.queue", queues),
        ("topology.bottleneck.rate", "[\"1Mbit\", \"2Mbit\"]"),
    ]);
    let labels: Vec<_> = suite.points.iter().map(|point| point.label.as_str()).collect();
    assert_eq!(
        labels,
        [
            "rate=1Mbit, queue=fifo",
            "rate=1Mbit, queue=red limit=90p",
            "rate=1Mbit, queue=red limit=50p",
            "rate=1Mbit, queue=red limit=70p",
            "rate=2Mbit, queue=fifo",
            "rate=2Mbit, queue=red limit=90p",
            "rate=2Mbit, queue=red limit=50p",
            "rate=2Mbit, queue=red limit=70p",
        ]
    );
    let rate =
        |point: usize| suite.points[point].scenario.links.iter().find(|link| link.watched).unwrap().rate;
    assert_eq!((rate(3), rate(4)), (Rate::from_mbit(1), Rate::from_mbit(2)));
    assert_eq!(suite.points[7].settings[0], ("topology.bottleneck.rate".into(), "2Mbit".into()));
    assert_eq!(suite.points[7].settings[1], ("topology.bottleneck.queue".into(), "red limit=70p".into()));
}

#[test]
fn the_labels_of_an_axis_differ() {
    let tcp = r#"["rfc", { profile = "rfc", algorithm = "cubic" }, { profile = "rfc", algorithm = "sack" }, "rfc"]"#;
    assert_eq!(
        labels(&[("flow.a.tcp", tcp)]),
        ["tcp=rfc", "tcp=rfc algorithm=cubic", "tcp=rfc algorithm=sack", "tcp=rfc (2)"]
    );
}

/// The labels of one axis, which are the same in the canonical text.
fn labels_of(path: &str, values: &str) -> Vec<String> {
    labels_with(&[(path, values)])
}

fn labels_with(overrides: &[(&str, &str)]) -> Vec<String> {
    let suite = with(overrides);
    let labels = |suite: &Suite| suite.points.iter().map(|point| point.label.clone()).collect::<Vec<_>>();
    let again = try_load(&suite.canonical, &[]).unwrap_or_else(|m| panic!("{m:#?}\n{}", suite.canonical));
    assert_eq!(labels(&again), labels(&suite));
    let name = |label: String| label.split_once('=').map(|(_, name)| name.to_owned());
    labels(&suite).into_iter().filter_map(name).collect()
}

#[test]
fn labels_show_every_parameter_that_differs() {
    let queue = "topology.bottleneck.queue";
    // By the unit that it divides among, and by its policy, even for a discipline that is the only one of its
    // kind.
    assert_eq!(
        labels_of(
            queue,
            r#"["fifo", { kind = "fq_codel", isolate = "source" }, { kind = "cake", hosts = "none" }]"#
        ),
        ["fifo", "fq_codel isolate=source", "cake hosts=none"]
    );
    assert_eq!(
        labels_of(
            queue,
            r#"["drr", { kind = "drr", drop = "codel" }, { kind = "drr", drop = "codel", target = "20ms" }]"#
        ),
        ["drr", "drr drop=codel", "drr drop=codel target=20ms"]
    );
    // Settings that all have in common, and default ones, are left out.
    assert_eq!(
        labels_of(
            queue,
            r#"[{ kind = "fifo", limit = "90p" }, { kind = "drr", limit = "90p", quantum = "1500B" }]"#
        ),
        ["fifo", "drr"]
    );
    assert_eq!(
        labels_of(queue, r#"["codel", { kind = "fifo", limit = "60p" }]"#),
        ["codel", "fifo limit=60p"]
    );
    assert_eq!(labels_of("topology.bottleneck.rate", r#"["5Mbit", "10Mbit"]"#), ["5Mbit", "10Mbit"]);
    assert_eq!(
        labels_of(
            "flow.b.source",
            r#"[{ kind = "cbr", rate = "2Mbit" }, { kind = "cbr", rate = "2Mbit", packet = "500B" }, { kind = "poisson", rate = "2Mbit" }]"#
        ),
        ["cbr", "cbr packet=500B", "poisson"]
    );
}

#[test]
fn classes_distinguish_queues_of_one_kind_alone() {
    let of = |rate: &str| {
        format!(r#"{{ kind = "htb", class = {{ a = {{ rate = "{rate}" }}, b = {{ rate = "4Mbit" }} }} }}"#)
    };
    let prio = r#"{ kind = "prio", class = { a = { prio = 0 }, b = { prio = 1 } } }"#;
    let labels_of = |queues: &str| {
        let customers = [("flow.a.customer", "a"), ("flow.b.customer", "b")];
        labels_with(&[&customers[..], &[("topology.bottleneck.queue", queues)]].concat())
    };
    assert_eq!(labels_of(&format!("[{prio}, {}]", of("5Mbit"))), ["prio", "htb"]);
    assert_eq!(
        labels_of(&format!("[{prio}, {}, {}]", of("5Mbit"), of("6Mbit"))),
        ["prio", "htb class.a.rate=5Mbit", "htb class.a.rate=6Mbit"]
    );
}

#[test]
fn labels_of_topologies_and_of_tcp_show_what_differs() {
    let of = |pairs, rate: &str| {
        format!(
            r#"{{ kind = "dumbbell", pairs = {pairs}, bottleneck = {{ rate = "{rate}", delay = "5ms", queue = "fifo" }} }}"#
        )
    };
    assert_eq!(
        labels_of("topology", &format!("[{}, {}]", of(2, "10Mbit"), of(3, "5Mbit"))),
        ["dumbbell pairs=2 bottleneck.rate=10Mbit", "dumbbell pairs=3 bottleneck.rate=5Mbit"]
    );
    let tcp = r#"[{ profile = "linux", ecn = true }, { profile = "rfc", ecn = true }, { profile = "rfc", ecn = true, nagle = false }]"#;
    let suite = with(&[("flow.a.tcp", tcp)]);
    let labels: Vec<_> = suite.points.iter().map(|point| point.label.as_str()).collect();
    assert_eq!(labels, ["tcp=linux", "tcp=rfc", "tcp=rfc nagle=false"]);
}

#[test]
fn axes_are_named_by_the_shortest_end_that_distinguishes_them() {
    let rates = "[\"1Mbit\", \"2Mbit\"]";
    assert_eq!(
        labels(&[
            ("flow.a.source.rate", rates),
            ("flow.b.source.rate", "[\"3Mbit\"]"),
            ("flow.a.source.on", "[\"1s\"]")
        ])[0],
        "b.source.rate=3Mbit, a.source.rate=1Mbit, on=1s"
    );
    assert_eq!(labels(&[]), [""]);
}

#[test]
fn links_with_the_names_of_lists_are_swept_too() {
    let link = r#"{ from = "left", to = "right", rate = ["1Mbit", "2Mbit"], delay = "1s" }"#;
    assert_eq!(labels(&[("link.path", link)]), ["rate=1Mbit", "rate=2Mbit"]);
    assert_eq!(labels(&[("change[1].to", "[\"1s\", \"2s\"]")]), ["to=1s", "to=2s"]);
}

#[test]
fn ranges_count_in_units_and_in_numbers() {
    assert_eq!(
        labels(&[("topology.bottleneck.delay", "10ms..50ms step 20ms")]),
        ["delay=10ms", "delay=30ms", "delay=50ms"]
    );
    assert_eq!(labels(&[("flow.a.weight", "0.1..0.3 step 0.1")]), ["weight=0.1", "weight=0.2", "weight=0.3"]);
    assert_eq!(labels(&[("topology.pairs", "5..9 step 3")]), ["pairs=5", "pairs=8"]);
    assert_eq!(labels(&[("topology.bottleneck.rate", "1Mbit..2Mbit step 0.5Mbit")])[1], "rate=1500kbit");
    let error = |text| try_load(TEXT, &[("topology.bottleneck.delay", text)]).unwrap_err();
    let not_a_range = |text: &str| {
        format!(
            "dir/x.toml: --set: topology.bottleneck.delay: `{text}` is not a range; write for example \
             \"10ms..50ms step 10ms\", from low to high in one unit"
        )
    };
    for text in ["5ms..1ms step 1ms", "1ms..5ms step 0ms", "1ms..5Mbit step 1ms", "1ms..5ms step 1"] {
        assert_eq!(error(text), [not_a_range(text)]);
    }
    assert_eq!(
        error("1ns..1s step 1ns"),
        ["dir/x.toml: --set: topology.bottleneck.delay: `1ns..1s step 1ns` has more than 10000 values"]
    );
}

#[test]
fn a_grid_has_at_most_ten_thousand_points() {
    let hundred = "1ms..100ms step 1ms";
    let two = [("topology.bottleneck.delay", hundred), ("flow.a.source.on", hundred)];
    assert_eq!(with(&two).points.len(), 10_000);
    let three = [two[0], two[1], ("seed", "[1, 2]")];
    assert_eq!(
        try_load(TEXT, &three).unwrap_err(),
        [
            "dir/x.toml: --set: seed: the sweep has 2 x 100 x 100 points; at most 10000 are possible: shorten a list"
        ]
    );
    assert_eq!(
        try_load(TEXT, &[("seed", "[]")]).unwrap_err(),
        ["dir/x.toml: --set: seed: an empty list; write at least one value"]
    );
}

#[test]
fn overrides_reach_every_key() {
    let link = |overrides: &[_], name: &str| {
        let suite = with(overrides);
        suite.points[0].scenario.links.iter().find(|link| link.name == name).unwrap().clone()
    };
    assert_eq!(link(&[("link.bottleneck.rate", "5Mbit")], "bottleneck").rate, Rate::from_mbit(5));
    // Without a path the key is that of the only bottleneck.
    assert_eq!(link(&[("rate", "5Mbit")], "bottleneck").rate, Rate::from_mbit(5));
    assert_eq!(
        link(&[("queue", "cake")], "bottleneck").queue,
        link(&[("topology.bottleneck.queue", "cake")], "bottleneck").queue
    );
    assert_eq!(link(&[("link.bottleneck.back.rate", "5Mbit")], "bottleneck.back").rate, Rate::from_mbit(5));
    assert_eq!(link(&[("topology.access.delay", "3ms")], "l1-left").delay, Span::from_millis(3));
    assert_eq!(with(&[("change[2].at", "4s")]).points[0].scenario.changes[0].at.to_string(), "4s");
    // A discipline by name becomes a table when one of its parameters is set.
    let limited = link(&[("topology.bottleneck.queue.limit", "7p")], "bottleneck").queue;
    assert_eq!(
        limited,
        link(&[("topology.bottleneck.queue", "{ kind = \"fifo\", limit = \"7p\" }")], "bottleneck").queue
    );
    assert_ne!(limited, link(&[], "bottleneck").queue);
}

#[test]
fn a_key_without_a_path_is_refused_where_links_are_several() {
    let link = |name: &str| {
        format!("link.{name} = {{ from = \"a\", to = \"b\", rate = \"1Mbit\", delay = \"1ms\" }}\n")
    };
    let flow = "flow.x = { from = \"a\", to = \"b\", path = [\"one\"] }\n";
    let text = |links: &str| format!("seed = 1\nstop = \"1s\"\n{links}{flow}");
    let one = try_load(&text(&link("one")), &[("rate", "5Mbit")]).unwrap();
    assert_eq!(one.points[0].scenario.links[0].rate, Rate::from_mbit(5));
    let two = try_load(&text(&(link("one") + &link("two"))), &[("rate", "5Mbit")]).unwrap_err();
    assert_eq!(
        two,
        [
            "dir/x.toml: --set: rate: there is no single bottleneck that it could be of; write the whole path, such as link.one.rate or \
          link.two.rate"
        ]
    );
}

#[test]
fn an_error_in_an_override_names_its_path() {
    let error = |path, value| try_load(TEXT, &[(path, value)]).unwrap_err();
    assert_eq!(
        error("link.bottleneck.rat", "5Mbit"),
        [
            "dir/x.toml: --set: link.bottleneck.rat: unknown key (did you mean `rate`?); known here: from, to, count, lost, \
          back, rate, delay, jitter, aggregate, queue, loss, tickets, ack_tickets, exchange, watch, pcap"
        ]
    );
    assert_eq!(
        error("stop", "60"),
        ["dir/x.toml: --set: stop: `60` is not a time: the unit is missing; write for example \"20ms\""]
    );
    assert_eq!(
        error("stop..x", "60"),
        ["dir/x.toml: --set: stop..x: not a key path; write for example --set link.bottleneck.rate=5Mbit"]
    );
    assert_eq!(
        error("change.at", "1s"),
        [
            "dir/x.toml: --set: change.at: `at` cannot be set: what it belongs to is a list; set the list, or its entry [1], [2], ..."
        ]
    );
    assert_eq!(error("change[9].at", "1s"), ["dir/x.toml: --set: change[9].at: the list has 2 entries"]);
    assert_eq!(
        error("seed.x", "1"),
        ["dir/x.toml: --set: seed.x: `x` cannot be set: what it belongs to is an integer, not a table"]
    );
}

#[test]
fn the_canonical_text_loads_back_to_the_same_scenarios() {
    let queues = r#"["fifo", { kind = "red", min_th = ["5p", "6p"], max_th = "30p" }, { kind = "drr", drop = "lqd", shaper = "token_bucket", rate = "1Mbit" }]"#;
    let lost = r#"[{ flow = "b", packets = [3, 1] }]"#;
    for overrides in [
        &[][..],
        &[
            ("topology.bottleneck.queue", queues),
            ("link.bottleneck.lost", lost),
            ("link.bottleneck.back.loss", "1%"),
        ],
        &[
            ("topology.access.delay", "1ms * i"),
            ("flow.a.count", "2"),
            ("flow.a.from", "l{i}"),
            ("flow.a.start", "{ between = [\"0s\", \"1s\"] }"),
        ],
        &[
            ("flow.a.path", "[\"left\", \"right\"]"),
            ("flow.a.tcp", "rfc"),
            ("topology.bottleneck.delay", "1ms..3ms step 1ms"),
        ],
        &[
            ("topology", "{ kind = \"gfc\" }"),
            ("flow.a.from", "short1"),
            ("flow.a.to", "long2"),
            ("flow.b.from", "long4"),
            ("flow.b.to", "long1"),
            ("change", "[]"),
        ],
        &[
            (
                "topology",
                "{ kind = [\"chain\", \"parking_lot\"], hops = 2, link = { rate = \"1Mbit\", delay = \"1ms\" } }",
            ),
            (
                "flow",
                "{ f = { from = \"n1\", to = \"n3\", source = { kind = \"poisson\", rate = \"1Mbit\" } } }",
            ),
            ("change", "[]"),
        ],
    ] {
        let suite = with(overrides);
        let again = try_load(&suite.canonical, &[]).unwrap_or_else(|m| panic!("{m:#?}\n{}", suite.canonical));
        assert!(scenarios(&again) == scenarios(&suite), "{}", suite.canonical);
        assert_eq!((&again.canonical, again.hash), (&suite.canonical, suite.hash));
    }
}

#[test]
fn permuted_declarations_and_other_spellings_are_the_same_scenario() {
    let permuted = r#"# The same, upside down.
change = [
  { to = "1000kbit", at = "3000ms", set = "flow.b.rate" },
  { set = "link.bottleneck.delay", to = "1s", at = "5s" },
]
stop = "0.01ks"
seed = 0x1
flow.a = { to = "r1", from = "l1", source = { off = "0.5s", on = "1s", rate = "1Mbit", kind = "on_off" } }
flow.b = { to = "r2", from = "l2", source = { rate = "3000kbit", kind = "cbr", packet = "1kB" }, weight = 1 }
topology = { pairs = 2, kind = "dumbbell", bottleneck = { delay = "5ms", queue = { kind = "fifo" }, rate = "10Mbit" } }
"#
    .replace("0.01ks", "10s");
    let other = try_load(&permuted, &[]).unwrap();
    let suite = with(&[]);
    assert_eq!(other.canonical, suite.canonical);
    assert!((other.hash, scenarios(&other)) == (suite.hash, scenarios(&suite)));
    assert_ne!(with(&[("flow.b.weight", "2")]).hash, suite.hash);
    assert_eq!(with(&[("title", "other")]).hash, suite.hash);
    assert_eq!(with(&[("flow.b.weight", "1")]).hash, suite.hash);
}

/// Three points of rate and delay, by two queues.
const ZIPPED: [(&str, &str); 4] = [
    ("topology.bottleneck.rate", r#"["1Mbit", "10Mbit", "10Mbit"]"#),
    ("topology.bottleneck.queue", r#"["fifo", "red"]"#),
    ("topology.bottleneck.delay", r#""10ms..30ms step 10ms""#),
    ("sweep.zip", r#"[["delay", "topology.bottleneck.rate"]]"#),
];

#[test]
fn zipped_lists_vary_together_as_one_axis() {
    let suite = with(&ZIPPED);
    let labels: Vec<_> = suite.points.iter().map(|point| point.label.as_str()).collect();
    assert_eq!(
        labels,
        [
            "rate=1Mbit, delay=10ms, queue=fifo",
            "rate=1Mbit, delay=10ms, queue=red",
            "rate=10Mbit, delay=20ms, queue=fifo",
            "rate=10Mbit, delay=20ms, queue=red",
            "rate=10Mbit (2), delay=30ms, queue=fifo",
            "rate=10Mbit (2), delay=30ms, queue=red",
        ]
    );
    assert!(suite.points.iter().all(|point| point.settings.len() == 3));
    let again = try_load(&suite.canonical, &[]).unwrap();
    assert_eq!(again.canonical, suite.canonical);
    assert!(scenarios(&again) == scenarios(&suite));
    // A point is the same in any sweep, so that a cache finds it.
    let alone = with(&[
        ("topology.bottleneck.rate", "10Mbit"),
        ("topology.bottleneck.queue", "red"),
        ("topology.bottleneck.delay", "20ms"),
    ]);
    assert_eq!(suite.inputs(&suite.points[3]), alone.inputs(&alone.points[0]));
}

#[test]
fn lists_that_cannot_be_zipped_are_refused() {
    let error = |zip: &str| {
        let errors = try_load(TEXT, &[&ZIPPED[..3], &[("sweep.zip", zip)]].concat()).unwrap_err();
        assert_eq!(errors.len(), 1, "{errors:?}");
        errors[0].clone()
    };
    let lengths = "`topology.bottleneck.rate` has 3 values and `topology.bottleneck.queue` has 2; lists that vary together have as many";
    assert!(error(r#"[["rate", "queue"]]"#).ends_with(lengths), "{}", error(r#"[["rate", "queue"]]"#));
    for (zip, message) in [
        (
            r#"[["rate", "count"]]"#,
            "no key `count` has a list of values; swept is `topology.bottleneck.rate`",
        ),
        (r#"[["rate", "delay"], ["delay", "queue"]]"#, "`delay` is named twice"),
        (r#"[["rate", "rate"]]"#, "`rate` is named twice"),
        (r#"["rate", "delay"]"#, "is not a list of lists of two or more keys"),
        (r#"[["rate"]]"#, "is not a list of lists of two or more keys"),
        ("1", "is not a list of lists of two or more keys"),
    ] {
        assert!(error(zip).contains(message), "{zip}: {}", error(zip));
        assert!(error(zip).contains("sweep.zip"), "{zip}: {}", error(zip));
    }
    let rates =
        [("flow.a.source.rate", r#"["1Mbit", "2Mbit", "3Mbit"]"#), ("sweep.zip", r#"[["rate", "delay"]]"#)];
    let errors = try_load(TEXT, &[&ZIPPED[..3], &rates].concat()).unwrap_err();
    assert!(
        errors[0].contains("`rate` may be `topology.bottleneck.rate` or `flow.a.source.rate`; write more"),
        "{errors:?}"
    );
    assert!(try_load(TEXT, &[("sweep.grid", "1")]).unwrap_err()[0].contains("unknown key"));
}
