//! Messages about scenarios without a meaning.

use super::*;

#[test]
fn every_problem_is_reported_at_once_with_line_key_and_fix() {
    let text = r#"stop = "60"
colour = "red"
[link.bottleneck]
from = "left"
to = "right"
rate = "10kbps"
delay = "-5ms"
queue = { kind = "redd" }
[link.other]
from = "left"
to = "left"
rate = "0Mbit"
delay = "1ms"
dealy = "1ms"
[flow.bulk]
to = "right"
tcp = "rfc"
weight = 0
"#;
    let kinds: Vec<_> = Catalog::default()
        .disciplines()
        .filter(|entry| entry.role != Role::Shaper)
        .map(|entry| entry.name)
        .collect();
    let redd = format!(
        "dir/x.toml:8: link.bottleneck.queue.kind: `redd` is not known here (did you mean `red`?) (known: {})",
        kinds.join(", ")
    );
    assert_eq!(
        errors(text),
        [
            "dir/x.toml:1: seed: missing; write for example seed = 10",
            "dir/x.toml:1: stop: `60` is not a time: the unit is missing; write for example \"20ms\"",
            "dir/x.toml:2: colour: unknown key; known here: title, seed, stop, measure_from, sample, topology, routing, sweep, \
             defaults, link, flow, customer, agreement, plans, change",
            "dir/x.toml:6: link.bottleneck.rate: `10kbps` is not a rate: `bps` is ambiguous: bits or bytes?; \
             write for example \"10Mbit\"",
            "dir/x.toml:7: link.bottleneck.delay: `-5ms` is not a time: it is negative; write for example \"20ms\"",
            redd.as_str(),
            "dir/x.toml:11: link.other.to: the link leads from node `left` to itself",
            "dir/x.toml:12: link.other.rate: `0Mbit`: a rate must be above zero here; write for example \"10Mbit\"",
            "dir/x.toml:14: link.other.dealy: unknown key (did you mean `delay`?); known here: from, to, count, lost, \
             back, rate, delay, jitter, aggregate, queue, loss, tickets, ack_tickets, exchange, watch, pcap",
            "dir/x.toml:15: flow.bulk.from: missing; write for example from = \"name\"",
            "dir/x.toml:18: flow.bulk.weight: `0`: a number must be above zero here; write for example 2.5",
        ]
    );
}

/// The one problem of `GROUP` with `from` replaced by `to`.
fn mended(from: &str, to: &str) -> String {
    assert!(GROUP.contains(from), "{from}");
    let errors = errors(&GROUP.replacen(from, to, 1));
    assert_eq!(errors.len(), 1, "{errors:#?}");
    errors[0].strip_prefix("dir/x.toml:").unwrap().to_owned()
}

#[test]
fn each_kind_of_error_has_its_message() {
    assert_eq!(
        mended("to = \"b\"\ntcp", "to = \"c\"\ntcp"),
        "13: flow.g.to: there is no node `c` (did you mean `a`?); nodes are the ends of links and the hosts of the topology"
    );
    assert_eq!(
        mended("\"g.20\"", "\"g.10\""),
        "19: flow.\"g.10\": a group already has a flow of this name; rename one"
    );
    assert_eq!(
        mended("\"g.11\"", "\"g.12\""),
        "9: link.l.lost[1].flow: there is no flow `g.12` (did you mean `g.1`?)"
    );
    assert_eq!(
        mended("measure_from = \"1s\"", "measure_from = \"10s\""),
        "3: measure_from: the measurement would start at 10s, but the run stops at 10s; write an earlier \
         time"
    );
    // 10 s in steps of 99 us are 101,010.
    assert_eq!(
        mended("measure_from = \"1s\"", "measure_from = \"1s\"\nsample = \"99us\""),
        "4: sample: 99us gives more than 100000 intervals until 10s; write a longer one"
    );
    assert_eq!(
        mended("stop = \"9s\"", "stop = \"1s\""),
        "18: flow.g.stop: flow `g.10` stops at 1s, but may start as late as 1s; stop it later"
    );
    assert_eq!(
        mended("\"i\"", "\"i - 3\""),
        "15: flow.g.weight: `i - 3 = -2 for i = 1`: a number must be above zero here; write for example 2.5"
    );
    assert_eq!(
        mended("count = 11", "count = 0"),
        "11: flow.g.count: `0`: a whole number must be between 1 and 1000000 here; write for example 10"
    );
    assert_eq!(
        mended(
            "from = \"a\"\nto = \"b\"\ntcp",
            "path = [\"a\", \"b\", \"a\", \"b\"]\nfrom = \"a\"\nto = \"b\"\ntcp"
        ),
        "12: flow.g.path: the path has a loop: it visits node `a` twice"
    );
    assert_eq!(
        mended("\"poisson\"", "\"poison\""),
        "22: flow.\"g.20\".source: `poison` is not known here (did you mean `poisson`?); known: greedy, file, cbr, poisson, \
         on_off, short_flows, web, probe, video, dash, voice, call, replay"
    );
    assert_eq!(
        mended("packet = \"100B\"", "packet = \"28B\""),
        "22: flow.\"g.20\".source.packet: a datagram of 28B has no room for its 28B of headers"
    );
    assert_eq!(
        mended(
            "[flow.g]",
            "[link.\"l.back\"]\nfrom = \"b\"\nto = \"a\"\nrate = \"1Mbit\"\ndelay = \"1ms\"\n[flow.g]"
        ),
        "10: link.\"l.back\": there are two links of this name; rename one"
    );
}

#[test]
fn more_short_flows_than_can_be_made_are_refused() {
    let text = |per_second: &str, times: &str| {
        format!(
            "seed = 1\nstop = \"1000s\"\n[link.l]\nfrom = \"a\"\nto = \"b\"\nrate = \"1Mbit\"\ndelay = \"1ms\"\n\
             [flow.web]\nfrom = \"a\"\nto = \"b\"\ntcp = \"rfc\"\n{times}\n\
             source = {{ kind = \"short_flows\", mean_size = \"30kB\", per_second = {per_second} }}\n"
        )
    };
    // 1000 s at 1000 a second are a million, which is allowed.
    scenario(&text("1000", ""));
    assert_eq!(
        errors(&text("1500", "")),
        ["dir/x.toml:13: flow.web.source.per_second: 1500 a second from 0s to 1000s are more than 1000000 \
             connections; write at most 1000, or a shorter time"]
    );
    // The time of the source counts, not that of the run: 400 s at 2500 a second are a million.
    scenario(&text("2500", "start = \"100s\"\nstop = \"500s\""));
    assert_eq!(
        errors(&text("2501", "start = \"100s\"\nstop = \"500s\"")),
        ["dir/x.toml:14: flow.web.source.per_second: 2501 a second from 100s to 500s are more than 1000000 \
             connections; write at most 2500, or a shorter time"]
    );
}

#[test]
fn numbers_beyond_what_toml_requires_are_read_or_refused_with_the_range() {
    let with = |line: &str| {
        format!(
            "{line}\nstop = \"9s\"\n[link.l]\nfrom = \"a\"\nto = \"b\"\nrate = \"1Mbit\"\ndelay = \"1ms\"\n[flow.f]\nfrom = \"a\"\nto = \"b\"\ntcp = \"rfc\"\n"
        )
    };
    assert_eq!(scenario(&with("seed = 18446744073709551615")).seed, u64::MAX);
    // The canonical text preserves it too.
    let canonical = suite(&with("seed = 0xffffffffffffffff")).canonical;
    assert_eq!(scenario(&canonical).seed, u64::MAX);
    for (line, message) in [
        (
            "seed = 99999999999999999999",
            "seed: `99999999999999999999` is not a whole number from 0 to 18446744073709551615",
        ),
        ("seed = 2026-01-01", "seed: `2026-01-01` is a date, not a whole number"),
        ("title = 99999999999999999999", "title: `99999999999999999999` is not a name"),
        ("sample = 99999999999999999999", "sample: `99999999999999999999`"),
        (
            "defaults.link.queue = { kind = \"fifo\", limit = 2026-01-01 }",
            "defaults.link.queue.limit: `2026-01-01` is a date",
        ),
    ] {
        let errors = errors(&with(line));
        let wanted = format!("dir/x.toml:1: {message}");
        assert!(errors.iter().any(|error| error.starts_with(&wanted)), "{errors:?}");
    }
}

#[test]
fn sources_that_would_take_all_memory_or_time_are_refused() {
    let text = |source: &str| {
        format!(
            "seed = 1\nstop = \"3s\"\n[link.l]\nfrom = \"a\"\nto = \"b\"\nrate = \"1Mbit\"\ndelay = \"1ms\"\n\
             [flow.x]\nfrom = \"a\"\nto = \"b\"\nsource = {source}\n"
        )
    };
    let video = |fps| text(&format!("{{ kind = \"video\", mean = \"1Mbit\", fps = {fps} }}"));
    for (fps, is_fine) in [("1e-308", false), ("0.1", true), ("10000", true), ("10001", false)] {
        if is_fine {
            scenario(&video(fps));
        } else {
            let message = "dir/x.toml:11: flow.x.source.fps: a video has 0.1 to 10000 frames a second; write for example 25";
            assert_eq!(errors(&video(fps)), [message]);
        }
    }
    let bursts =
        |on, off| text(&format!("{{ kind = \"on_off\", rate = \"1Mbit\", on = \"{on}\", off = \"{off}\" }}"));
    scenario(&bursts("10us", "10us"));
    let message = |key| {
        format!(
            "dir/x.toml:11: flow.x.source.{key}: periods below 10us are shorter than packets; write for example \"100ms\""
        )
    };
    assert_eq!(errors(&bursts("1ns", "1s")), [message("on")]);
    assert_eq!(errors(&bursts("1s", "9999ns")), [message("off")]);
}

#[test]
fn players_and_calls_that_cannot_be_are_refused() {
    let refused = |source: &str, more: &str| {
        let text = format!(
            "seed = 1\nstop = \"9s\"\nlink.l = {{ from = \"a\", to = \"b\", rate = \"1Mbit\", delay = \"1ms\" }}\n\
             flow.f = {{ from = \"a\", to = \"b\", source = {source}{more} }}"
        );
        let loaded = load(&text, Path::new("x.toml"), &[], &|path| std::fs::read(path));
        loaded.map_or_else(|errors| errors[0].to_string(), |_| "nothing".to_owned())
    };
    for (source, more, words) in [
        (r#""dash""#, "", "nothing"),
        (
            r#"{ kind = "dash", ladder = ["2Mbit", "1Mbit"] }"#,
            "",
            "the rates of a ladder ascend from above zero",
        ),
        (
            r#"{ kind = "dash", ladder = ["0bit", "1Mbit"] }"#,
            "",
            "the rates of a ladder ascend from above zero",
        ),
        (r#"{ kind = "dash", segment = "20s" }"#, "", "30s is less than two segments of 20s"),
        (r#"{ kind = "dash", segment = "1ms" }"#, "", "1ms is too short; write 100ms or more"),
        (r#"{ kind = "dash", cushion = "80%" }"#, "", "more than the buffer together"),
        (r#"{ kind = "dash", safety = "50%" }"#, "", "only algorithm = \"throughput\" goes by it"),
        (
            r#"{ kind = "dash", algorithm = "throughput", cushion = "9%" }"#,
            "",
            "only algorithm = \"buffer\" goes by it",
        ),
        (r#""dash""#, ", connections = 3", "is what one person sees or hears; write count = 3"),
        (r#""voice""#, r#", tcp = "linux""#, "a source `voice` sends datagrams; leave `tcp` out"),
        (r#"{ kind = "call", first = "5Mbit" }"#, "", "is not between `min`"),
        (r#"{ kind = "call", min = "1kbit" }"#, "", "has no room for its 40B of headers"),
        (r#"{ kind = "call", packet = "50B" }"#, "", "packets of a call have 82B to"),
    ] {
        let text = refused(source, more);
        assert!(text.contains(words), "{source}: {text}");
    }
}

#[test]
fn a_slip_in_the_name_of_a_table_leads_to_the_one_that_is_meant() {
    let text = "seed = 1\nstop = \"9s\"\n\n\
                topology = { kind = \"dumbbell\", pairs = 1, bottleneck = { rate = \"1Mbit\", delay = \"1ms\" } }\n\
                [link.botleneck]\nrate = \"5Mbit\"\n\
                [flow.bulk]\nfrom = \"l1\"\nto = \"r1\"\n[flow.bluk]\nweight = 2\n";
    assert_eq!(
        errors(text),
        [
            "dir/x.toml:5: link.botleneck: there is no link `botleneck` (did you mean `link.bottleneck`?); known here: \
             bottleneck, bottleneck.back, l1-left, l1-left.back, right-r1, right-r1.back; a new one needs `from` and `to`",
            "dir/x.toml:10: flow.bluk: there is no flow `bluk` (did you mean `flow.bulk`?); known here: bulk; a new one \
             needs `from` and `to`",
        ]
    );
    let set = [("link.botleneck.rate", "5Mbit")];
    let overridden = try_load(DUMBBELL, &set).unwrap_err();
    assert!(
        overridden[0].starts_with("dir/x.toml: --set: link.botleneck: there is no link"),
        "{overridden:?}"
    );
    // No name is close to it: an incomplete link.
    let other =
        errors("seed = 1\nstop = \"9s\"\n[link.wan]\nrate = \"5Mbit\"\n[flow.f]\nfrom = \"a\"\nto = \"b\"\n");
    assert!(other[0].starts_with("dir/x.toml:3: link.wan.delay: missing"), "{other:?}");
}

#[test]
fn other_languages_are_named() {
    let named = |text: &str, line: u32, what: &str| {
        let expected = format!(
            "dir/x.toml:{line}: this looks like {what}, and TOML is read here: key = value, and [link.NAME] above the keys of a \
             table"
        );
        assert_eq!(errors(text), [expected]);
    };
    named("# x\n\nseed: 1\nlink:\n  bottleneck:\n    rate: 5Mbit\n", 3, "YAML");
    named("---\nlink:\n  - a\n", 1, "YAML");
    named("{\n  \"seed\": 1\n}\n", 1, "JSON");
    named("<?xml version=\"1.0\"?>\n<scenario/>\n", 1, "XML");
    assert!(errors("seed = 1\nstop: 5\n")[0].starts_with("dir/x.toml:2: not valid TOML"));
}
