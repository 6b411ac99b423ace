//! The canonical text contains values that a scenario leaves out.

use crate::common::{self, suite, survives};

const DEEP: &str = r#"{ kind = "fifo", drop = "tail", limit = "1000p" }"#;

/// A dumbbell with these keys of its bottleneck, and `more` before its flow.
fn dumbbell(bottleneck: &str, more: &str) -> String {
    format!(
        "seed = 1\nstop = \"9s\"\n[topology]\nkind = \"dumbbell\"\npairs = 1\n\
         bottleneck = {{ rate = \"10Mbit\", delay = \"5ms\"{bottleneck} }}\n{more}\n[flow.f]\nfrom = \"l1\"\nto = \"r1\"\n"
    )
}

#[test]
fn access_links_reverse_directions_and_tcp_are_written_out() {
    let suite = suite(&dumbbell("", ""));
    survives(&suite);
    let access = format!("access = {{ rate = \"100Mbit\", delay = \"1ms\", queue = {DEEP} }}\n");
    let back = format!("back = {{ queue = {DEEP} }}");
    for part in [&access, &back, "queue = { kind = \"fifo\", drop = \"tail\" }", "[flow.f.tcp]\n"] {
        assert!(suite.canonical.contains(part), "{part} is not in\n{}", suite.canonical);
    }
}

#[test]
fn a_link_of_its_own_has_its_queues_written_out() {
    let link = "[link.l]\nfrom = \"l1\"\nto = \"r1\"\nrate = \"1Mbit\"\ndelay = \"1ms\"";
    for (more, has_back) in [("", true), ("\nback = false", false), ("\nback.rate = \"2Mbit\"", true)] {
        let suite = suite(&dumbbell("", &format!("{link}{more}")));
        survives(&suite);
        let table = suite.canonical.split("[link.l]\n").nth(1).unwrap().split("\n\n").next().unwrap();
        assert!(table.contains("\nqueue = { kind = \"fifo\", drop = \"tail\" }"), "{table}");
        assert_eq!(table.contains(&format!("queue = {DEEP}")), has_back, "{table}");
    }
}

#[test]
fn what_defaults_may_set_is_left_to_them() {
    for defaults in [
        "[defaults.link]\nqueue = \"drr\"",
        "[defaults.link.back]\nqueue = \"drr\"",
        "[defaults.link]\nqueue = [\"drr\", \"fifo\"]\nback = { queue = \"red\" }",
        "[defaults]\nlink = [{ queue = \"drr\" }, { queue = \"red\" }]",
        "[defaults.flow]\ntcp = \"reno\"",
        "[defaults.flow]\nsource = { kind = \"cbr\", rate = \"1Mbit\" }",
        "[defaults.flow]\nsource = [{ kind = \"cbr\", rate = \"1Mbit\" }, \"greedy\"]",
        "[defaults]\npreset = \"paper\"",
        "[defaults]\npreset = [\"paper\", \"default\"]",
    ] {
        for bottleneck in ["", ", queue = [\"fifo\", \"red\"]", ", back = { rate = \"1Mbit\" }"] {
            survives(&suite(&dumbbell(bottleneck, defaults)));
        }
    }
}

#[test]
fn queues_without_a_limit_have_their_buffers_listed() {
    let text =
        dumbbell(", queue = [\"codel\", \"csfq\", { kind = \"fifo\", limit = \"50p\" }, \"sffc\"]", "");
    let suite = suite(&text);
    survives(&suite);
    let listed: Vec<_> = suite.canonical.lines().filter(|line| line.starts_with("# Buffer")).collect();
    assert_eq!(
        listed,
        [
            "# Buffer by the rate of its link: bottleneck holds 125kB at 2 of 4 points",
            "# Buffer by the rate of its link: bottleneck holds 64kB at 1 of 4 points",
        ]
    );
    let faster = common::try_load(&text, &[("topology.bottleneck.rate", "100Mbit")]).unwrap();
    assert!(faster.canonical.contains("bottleneck holds 1250kB"), "{}", faster.canonical);
    assert_ne!(faster.hash, suite.hash);
}

#[test]
fn the_time_that_hosts_take_is_listed_unless_it_is_set() {
    let more = "[flow.udp]\nfrom = \"l1\"\nto = \"r1\"\nsource = { kind = \"cbr\", rate = \"1Mbit\", packet = \"250B\" }";
    let listed = |more: &str, rate: &str| {
        let suite = common::try_load(&dumbbell("", more), &[("topology.bottleneck.rate", rate)]).unwrap();
        survives(&suite);
        let lines = suite.canonical.lines().filter(|line| line.contains("jitter`"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    // 1500 B at 5 Mb/s take 2.4 ms, 52 B 83.2 µs, 250 B 0.4 ms.
    assert_eq!(
        listed(more, "5Mbit").last().unwrap(),
        "# Without `jitter`: hosts of udp take up to 400us for a packet"
    );
    let tcp = listed("", "[\"5Mbit\", \"10Mbit\"]");
    assert!(
        tcp.len() == 2 && tcp.iter().all(|line| line.ends_with("for an acknowledgement at 1 of 2 points")),
        "{tcp:?}"
    );
    assert!(tcp.iter().any(|line| line.contains("take up to 2400us for a packet, 83200ns")), "{tcp:?}");
    let set = format!("{more}\njitter = \"0s\"\n[defaults.flow]\njitter = \"0s\"");
    assert!(listed(&set, "5Mbit").is_empty());
}

#[test]
fn the_sample_interval_is_written_out_unless_each_point_has_its_own() {
    let suite = suite(&dumbbell("", ""));
    survives(&suite);
    assert!(suite.canonical.contains("\nsample = \"20ms\"\n"), "{}", suite.canonical);
    for (stop, sample) in [("1ns", "1ns"), ("12345s", "50s"), ("0.1s", "200us"), ("1.5s", "5ms")] {
        let suite = common::try_load(&dumbbell("", ""), &[("stop", stop)]).unwrap();
        survives(&suite);
        assert!(suite.canonical.contains(&format!("\nsample = \"{sample}\"\n")), "{}", suite.canonical);
    }
    let swept = common::try_load(&dumbbell("", ""), &[("stop", "[\"9s\", \"90s\"]")]).unwrap();
    survives(&swept);
    let samples: Vec<f64> = swept.points.iter().map(|point| point.scenario.sample.as_secs_f64()).collect();
    assert_eq!(samples, [0.02, 0.2]);
    let listed: Vec<_> = swept.canonical.lines().filter(|line| line.contains("ample")).collect();
    assert_eq!(
        listed,
        ["# Without `sample`: 200ms at 1 of 2 points", "# Without `sample`: 20ms at 1 of 2 points"]
    );
}

#[test]
fn a_gfc_has_the_queues_of_access_links_and_reverse_directions_written_out() {
    let own = "[link.own]\nfrom = \"short1\"\nto = \"x\"\nrate = \"1Mbit\"\ndelay = \"1ms\"";
    let text = |more: &str| {
        format!(
            "seed = 1\nstop = \"9s\"\n[topology]\nkind = \"gfc\"\n{more}\n[flow.f]\nfrom = \"short1\"\nto = \"short2\"\n"
        )
    };
    let plain = suite(&text(own));
    survives(&plain);
    let both = format!("[defaults.link]\nback = {{ queue = {DEEP} }}\nqueue = {DEEP}\n");
    assert!(plain.canonical.contains(&both), "{}", plain.canonical);
    for defaults in [
        "",
        "[defaults.link]\nqueue = \"drr\"",
        "[defaults.link.back]\nqueue = \"drr\"",
        "[defaults.link.back]\nrate = \"5Mbit\"",
        "[defaults.link]\nqueue = [\"drr\", \"fifo\"]\nback = { queue = \"red\" }",
        "[defaults]\nlink = [{ queue = \"drr\" }, { queue = \"red\" }]",
        "[defaults.flow]\ntcp = \"reno\"",
        "[defaults]\npreset = [\"paper\", \"default\"]",
    ] {
        for more in ["", "queue = [\"red\", \"drr\"]"] {
            survives(&suite(&text(&format!("{more}\n{defaults}\n{own}\n[link.R1-R2]\nloss = 0.01"))));
        }
    }
}
