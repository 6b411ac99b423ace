//! Configurations of gateways: valid ones are read and printed back; invalid ones are refused with the line
//! and a mend.

use std::path::Path;

use apportion_core::mark::MarkerParams;
use apportion_core::packet::CustomerId;
use apportion_core::packet::FlowClass;
use apportion_core::units::{Bytes, Rate, Ratio, Span, TicketRate, Weight};
use apportion_scenario::gateway::classifier::Prefix;
use apportion_scenario::gateway::{
    AutoRate, Direction, GatewayConfig, Grouping, Labels, Setting, Side, Treatment, TrustedSources,
};
use apportion_scenario::queue::from_text;

use crate::common::gateway::{EVERYTHING, error, load, minimal, refused, try_load};

#[test]
fn every_key_is_read() {
    let config = load(EVERYTHING);
    assert_eq!((&*config.title, config.seed, config.flows), ("everything", 7, 1_000));
    assert_eq!((&*config.inside, &*config.outside), ("eth1", "wan.7"));
    assert_eq!(config.metrics, Some("[::1]:9617".parse().unwrap()));
    assert_eq!(config.address, Some("2001:db8::1".parse().unwrap()));
    assert_eq!(config.report_key.as_ref().unwrap().as_bytes()[..3], [0x00, 0x11, 0x22]);
    assert_eq!(format!("{:?}", config.report_key.as_ref().unwrap()), "ReportKey(..)");
    assert_eq!(config.flow_idle, Span::from_secs(90));

    let up = config.direction(Direction::Up);
    assert_eq!((up.rate, up.overhead), (Rate::from_mbit(18), Bytes::new(22)));
    assert_eq!(up.queue.params, from_text("{ kind = \"tred\", limit = \"90p\" }").unwrap());
    assert_eq!((up.delay, up.loss), (Span::from_millis(5), Ratio::clamped(0.01)));
    assert_eq!((up.tickets, up.ack_tickets), (TicketRate::new(1_000.0), None));
    assert_eq!(up.exchange.as_ref().unwrap().params.window, Span::from_secs(3));
    assert_eq!(up.labels, Labels { reads: TrustedSources::All, writes: true });

    let voice = &config.rules[0];
    assert_eq!((&*voice.name, voice.direction), ("voice", Some(Direction::Up)));
    assert_eq!((voice.when.protocol, voice.when.dscp), (Some(17), Some(46)));
    let net = Prefix::new("from", "192.168.1.0".parse().unwrap(), 24).unwrap();
    assert_eq!(voice.when.from, Some(net));
    assert_eq!(voice.when.to, Some(Prefix::one("203.0.113.5".parse().unwrap())));
    assert_eq!((&voice.when.from_port, &voice.when.to_port), (&Some(5_004..=5_005), &Some(443..=443)));
    let gives = &voice.gives;
    assert_eq!((gives.class, gives.weight), (FlowClass::RealRate, Weight::new(2.5).unwrap()));
    assert_eq!(gives.label_limit, Some(Rate::from_mbit(3)));
    assert_eq!((gives.guarantee, gives.tickets), (Rate::from_mbit(1), TicketRate::new(100.0)));
    let MarkerParams::Tickets(marker) = &gives.mark.as_ref().unwrap().params else { panic!() };
    assert!(marker.decay);
    let downloads = &config.rules[2].gives;
    assert_eq!((downloads.tickets, downloads.ack_tickets), (None, TicketRate::new(50.0)));
    assert_eq!(downloads.guarantee_limit, Some(Rate::from_mbit(20)));
    assert_eq!(downloads.guarantee_limit_per_host, Some(Rate::from_mbit(4)));
    assert!(downloads.mark.is_some() && !downloads.writes_tickets() && gives.writes_tickets());
    assert_eq!((gives.rtt, gives.flows), (Some(Span::from_millis(50)), Grouping::One));

    let customers: Vec<u32> = config.rules.iter().map(|rule| config.customer_of(&rule.gives).0).collect();
    assert_eq!(customers, [0, 1, 0, 2]);
    let weights: Vec<f64> = config.customer_weights().into_iter().map(Weight::get).collect();
    assert_eq!(weights, [1.0, 2.0, 1.0]);
}

#[test]
fn what_is_absent_has_its_default() {
    let config = load(&minimal("", "", "[[rule]]\nprotocol = 6"));
    assert_eq!((&*config.title, config.seed, config.flows), ("x", 1, 65_536));
    assert_eq!((config.metrics, config.address, &config.report_key), (None, None, &None));
    assert_eq!(config.flow_idle, Span::from_secs(60));
    let up = &config.up;
    assert_eq!((up.overhead, up.delay, up.loss), (Bytes::new(14), Span::ZERO, Ratio::ZERO));
    assert_eq!(up.queue.params, from_text("fifo").unwrap());
    assert_eq!((up.tickets, up.ack_tickets, &up.exchange), (None, None, &None));
    assert_eq!(up.labels, Labels::default());
    let rule = &config.rules[0];
    assert_eq!((&*rule.name, rule.direction, &rule.gives), ("rule 1", None, &Treatment::default()));
    assert_eq!(rule.gives.weight, Weight::ONE);
    assert_eq!(config.customer_of(&rule.gives), CustomerId::OTHERS);
}

#[test]
fn the_canonical_text_is_the_same_configuration() {
    for text in
        [EVERYTHING.to_owned(), minimal("", "", "[[rule]]"), minimal("title = \"a\\\"\\u0001\"", "", "")]
    {
        let config = load(&text);
        let again = load(&config.canonical());
        assert_eq!(again, config, "{}", config.canonical());
        assert_eq!(again.canonical(), config.canonical());
    }
    // Everything that the file sets is there, as written or in canonical form.
    let canonical = load(EVERYTHING).canonical();
    for line in [
        "flows = 1000",
        "report_key = \"00112233445566778899aabbccddeeff\"",
        "loss = 0.01",
        "protocol = \"udp\"",
        "protocol = 132",
        "dscp = 46",
        "from_port = \"5004-5005\"",
        "to_port = 443",
        "to = \"203.0.113.5\"",
        "name = \"rule 2\"",
        "[customer.\"bob & co\"]",
    ] {
        assert!(canonical.lines().any(|found| found == line), "{line} in\n{canonical}");
    }
}

#[test]
fn the_examples_load_and_say_what_they_are() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/gateway");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "toml"));
    files.sort();
    let titles: Vec<_> = files
        .iter()
        .map(|path| {
            let text = std::fs::read_to_string(path).unwrap();
            assert!(text.starts_with('#'), "{}: the first line says what it is about", path.display());
            let load = |text: &str| GatewayConfig::load(text, path).unwrap();
            let config = load(&text);
            assert_eq!(load(&config.canonical()), config);
            config.title
        })
        .collect();
    assert_eq!(titles, ["core", "edge", "home", "provider", "tickets-sink", "tickets-source"]);
}

#[test]
fn values_of_the_file_are_refused_with_a_fix() {
    // The third line.
    for (line, expected) in [
        ("flows = 0", "flows: `0`: a whole number must be between 1 and 1048576 here; write for example 10"),
        (
            "flows = 1048577",
            "flows: `1048577`: a whole number must be between 1 and 1048576 here; write for example 10",
        ),
        ("flow_idle = \"0s\"", "flow_idle: `0s`: a time must be above zero here; write for example \"20ms\""),
        ("title = \"\"", "title: `` is not a name; write for example \"name\""),
        (
            "seed = -1",
            "seed: `-1` is not a whole number from 0 to 18446744073709551615; write for example 10",
        ),
        (
            "metric = 1",
            "metric: unknown key (did you mean `metrics`?); known here: title, seed, inside, outside, \
                        metrics, notifications, control, control_token, address, report_key, insecure, flow_idle, flows, up, down, plans, rule, customer",
        ),
        (
            "notifications = \"x.sock\"",
            "notifications: `x.sock` is not the path of a file from the root; write for example \
             \"/run/apportion/notifications.sock\"",
        ),
        (
            "notifications = 9",
            "notifications: `9` is not the path of a file from the root; write for example \"/run/apportion/notifications.sock\"",
        ),
        (
            "control_token = \"token\"\ncontrol = false",
            "control_token: `token` is not the path of a file from the root; write for example \
             \"/etc/apportion/control-token\"",
        ),
        (
            "control_token = \"/token\"",
            "control_token: it has no effect without `control`; write control = true, or control = false to keep it off",
        ),
        (
            "control = true\ncontrol_token = \"/token\"",
            "metrics: missing: where changes are taken; write for example metrics = \"127.0.0.1:9617\", or leave `control` out",
        ),
        (
            "control = true\nmetrics = \"127.0.0.1:9617\"",
            "control_token: missing: the file with the token that changes need; write for example control_token = \
             \"/etc/apportion/control-token\", or leave `control` out",
        ),
        ("control = 1", "control: `1` is neither true nor false"),
        (
            "metrics = \"9617\"",
            "metrics: `9617` is not an address and a port; write for example \"127.0.0.1:9617\" or \
                                \"[::1]:9617\"",
        ),
        (
            "metrics = \"0.0.0.0:9617\"",
            "metrics: `0.0.0.0` is not a loopback address, and metrics are for this machine \
                                       only; write for example \"127.0.0.1:9617\" or \"[::1]:9617\"",
        ),
        (
            "metrics = \"127.0.0.1:0\"",
            "metrics: `127.0.0.1:0` has port 0, to which no client can connect; write for example \
             \"127.0.0.1:9617\" or \"[::1]:9617\"",
        ),
        ("metrics = true", "metrics: `true` is a boolean; write for example \"127.0.0.1:9617\""),
        ("address = \"home\"", "address: `home` is not an address; write for example \"192.0.2.1\""),
        (
            "address = \"ff02::1\"",
            "address: `ff02::1` is not an address of one machine that others can reach; write for \
                                   example \"192.0.2.1\"",
        ),
        ("rule = 5", "rule: write each rule as a table [[rule]]"),
        ("rule = [5]", "rule[1]: `5` is an integer, not a table"),
    ] {
        refused(&minimal(line, "", ""), 3, expected);
    }
    refused(
        &minimal("", "", "[customer.acme]"),
        8,
        "customer.acme: no rule belongs to customer `acme`; rules name theirs by `customer`",
    );
    assert_eq!(try_load(&minimal("report_key = \"x\"", "", "")).unwrap_err().len(), 2);
    let sffc = minimal("address = \"192.0.2.1\"\nreport_key = \"KEY\"", "queue = \"sffc\"", "");
    for (key, expected) in [
        ("0g", "not pairs of hexadecimal digits; write 32 random bytes as 64 of 0 to 9 and a to f"),
        ("012", "not pairs of hexadecimal digits; write 32 random bytes as 64 of 0 to 9 and a to f"),
        ("00112233", "4 bytes; write 16 to 64 random bytes, two digits each"),
        (&"00".repeat(65), "65 bytes; write 16 to 64 random bytes, two digits each"),
    ] {
        refused(&sffc.replace("KEY", key), 4, &format!("report_key: {expected}"));
    }
    for (name, why) in [
        ("", "it is empty"),
        ("..", "it is the name of a folder"),
        ("a/b", "it has a slash, a colon or a blank in it"),
        ("a b", "it has a slash, a colon or a blank in it"),
        ("0123456789abcdef", "it is longer than 15 bytes"),
    ] {
        let text = minimal("", "", "").replace("eth1", name);
        let expected =
            format!("inside: `{name}` is not the name of an interface: {why}; write for example \"eth0\"");
        refused(&text, 1, &expected);
    }
    let same = minimal("", "", "").replace("eth1", "eth0");
    refused(&same, 2, "outside: `eth0` is the interface towards the inside already; write another one");
    refused(
        "inside = \"a\"\noutside = \"b\"\nup.rate = \"1Mbit\"",
        1,
        "down: missing; write for example down = { rate = \"10Mbit\" }",
    );
}

#[test]
fn values_of_a_direction_are_refused_with_a_fix() {
    // The seventh line.
    for (line, expected) in [
        (
            "rates = 5",
            "up.rates: unknown key (did you mean `rate`?); known here: rate, rate_max, rate_min, rate_delay, \
             rate_link, overhead, queue, delay, loss, labels, tickets, ack_tickets, exchange",
        ),
        (
            "queue = \"rcs\"",
            "up.queue: `rcs` divides along the agreements of a network, which a gateway does not know; write for example \"drr\"",
        ),
        (
            "overhead = \"1kB\"",
            "up.overhead: 1kB in addition to each packet is more than 256B; write for example \"14B\"",
        ),
        ("delay = \"5\"", "up.delay: `5` is not a time: the unit is missing; write for example \"20ms\""),
        ("loss = 2", "up.loss: `2` is not a share between 0 and 1; write for example 0.01 or \"1%\""),
        ("labels = true", "up.labels: `true` is a boolean, not a table"),
        (
            "labels.read = true",
            "up.labels.read: unknown key (did you mean `reads`?); known here: reads, writes",
        ),
        ("labels.reads = 1", "up.labels.reads: `1` is neither true nor false nor a list"),
        (
            "labels.reads = []",
            "up.labels.reads: a list has 1 to 64 prefixes; write for example [\"192.0.2.0/24\"], or false",
        ),
        (
            "labels.reads = [\"192.0.2.1/24\"]",
            "up.labels.reads: 192.0.2.1 has bits set after the first 24; write 192.0.2.0/24",
        ),
        ("tickets = -1", "up.tickets: `-1`: a number must be zero or more here; write for example 2.5"),
        (
            "queue = { kind = \"fifo\", limits = 5 }",
            "up.queue.limits: unknown parameter (did you mean `limit`?); known here: limit, isolate, preset",
        ),
        (
            "exchange = { window = \"1s\" }",
            "up.exchange: nothing is exchanged here: neither does this direction have tickets, nor does \
             `down` have `ack_tickets`; write for example tickets = 100, or leave `exchange` out",
        ),
    ] {
        refused(&minimal("", line, ""), 7, expected);
    }
    let zero = minimal("", "", "").replace("[up]\nrate = \"10Mbit\"", "[up]\nrate = \"0bit\"");
    refused(&zero, 6, "up.rate: `0bit`: a rate must be above zero here; write for example \"10Mbit\"");
}

#[test]
fn a_rate_that_follows_the_link_is_read_and_has_bounds() {
    let with = |keys: &str| minimal("", "", "").replace("[up]\nrate = \"10Mbit\"", &format!("[up]\n{keys}"));
    let config = load(&with("rate = \"auto\"\nrate_max = \"25Mbit\""));
    let (up, down) = (&config.up, &config.down);
    let auto = up.auto.unwrap();
    assert_eq!(
        (up.rate, up.least_rate(), auto.least),
        (Rate::from_mbit(25), auto.least, Rate::from_kbit(1_250))
    );
    assert_eq!((auto.threshold, auto.link), (Span::from_millis(15), Side::Outside));
    assert_eq!((down.auto, down.least_rate()), (None, down.rate));
    let every = "rate = \"auto\"\nrate_max = \"25Mbit\"\nrate_min = \"2Mbit\"\nrate_delay = \"20ms\"\n\
                 rate_link = \"inside\"";
    let config = load(&with(every));
    assert_eq!(
        config.up.auto,
        Some(AutoRate { least: Rate::from_mbit(2), threshold: Span::from_millis(20), link: Side::Inside })
    );
    assert_eq!(load(&config.canonical()), config);
    let before = load(&minimal("", "", ""));
    let difference = before.difference(&config).unwrap();
    assert!(difference.has(Setting::Rate(Direction::Up)) && !difference.has(Setting::Rate(Direction::Down)));
    for (keys, line, expected) in [
        (
            "rate = \"auto\"",
            6,
            "up.rate: a rate that follows the link needs bounds; write for example rate_max = \"25Mbit\", the most that \
             the link has ever passed",
        ),
        (
            "rate = \"auto\"\nrate_max = \"2Mbit\"\nrate_min = \"3Mbit\"",
            8,
            "up.rate_min: 3Mbit is above `rate_max`, 2Mbit; write a lower rate, or leave it out",
        ),
        (
            "rate = \"9Mbit\"\nrate_min = \"3Mbit\"",
            7,
            "up.rate_min: only a rate that follows the link has it; leave it out, or write rate = \"auto\"",
        ),
        (
            "rate = \"automatic\"",
            6,
            "up.rate: `automatic` is not a rate: it does not start with a number; write for example \"10Mbit\"",
        ),
        (
            "rate = \"auto\"\nrate_max = \"9Mbit\"\nrate_delay = \"0s\"",
            8,
            "up.rate_delay: `0s`: a time must be above zero here; write for example \"20ms\"",
        ),
        (
            "rate = \"auto\"\nrate_max = \"9Mbit\"\nrate_link = \"wan\"",
            8,
            "up.rate_link: `wan` is not known here; known: outside, inside",
        ),
    ] {
        refused(&with(keys), line, expected);
    }
    // Guarantees must fit into the lowest rate.
    let promised = with("rate = \"auto\"\nrate_max = \"25Mbit\"\nrate_min = \"2Mbit\"\nqueue = \"mcsfq\"\n");
    let text = format!("{promised}[[rule]]\ndirection = \"up\"\nguarantee = \"3Mbit\"\n");
    assert!(error(&text).contains("2Mbit"), "{}", error(&text));
}

#[test]
fn labels_are_trusted_from_addresses() {
    let queue = "queue = { kind = \"csfq\", egress = true }\n";
    let reads = |text: &str| {
        let config = load(&minimal("", &format!("{queue}labels = {{ reads = {text} }}"), ""));
        assert_eq!(load(&config.canonical()), config);
        config.up.labels.reads
    };
    let some = reads("[\"192.0.2.0/24\", \"2001:db8::1\"]");
    let trusted = ["192.0.2.255", "192.0.3.0", "2001:db8::1", "2001:db8::2"];
    assert_eq!(trusted.map(|source| some.trusts(source.parse().unwrap())), [true, false, true, false]);
    assert_eq!((reads("true"), reads("false")), (TrustedSources::All, TrustedSources::None));
}

#[test]
fn all_errors_are_reported_at_once() {
    let text = "inside = \"a/b\"\nmetrics = 5\n[up]\nrate = 3\nqueue = \"ddr\"\n[[rule]]\nport = 5\ndscp = \"x\"\n\
                [[rule]]\nfrom = \"y\"\nto_port = \"2-1\"";
    let errors = try_load(text).unwrap_err();
    let paths: Vec<_> = errors.iter().map(|error| error.split(": ").nth(1).unwrap()).collect();
    assert_eq!(
        paths,
        [
            "down",
            "inside",
            "outside",
            "metrics",
            "up.rate",
            "up.queue",
            "rule[1].port",
            "rule[1].dscp",
            "rule[2].from"
        ]
    );
    let errors = try_load("a = = 2\nb = 1").unwrap_err();
    assert!(errors[0].starts_with("dir/x.toml:1: not valid TOML: "), "{errors:?}");
}

/// Whether it loads. Panics if the loader breaks its contract.
fn survives(text: &str) -> bool {
    match try_load(text) {
        Ok(config) => {
            assert_eq!(load(&config.canonical()), config, "{text}");
            true
        }
        Err(problems) => {
            assert!(!problems.is_empty(), "refused without a reason:\n{text}");
            false
        }
    }
}

#[test]
fn cut_and_changed_files_are_refused_with_a_reason_or_survive_their_canonical_text() {
    for (at, _) in EVERYTHING.char_indices() {
        survives(&EVERYTHING[..at]);
    }
    let lines: Vec<&str> = EVERYTHING.lines().collect();
    let mut loaded = 0;
    for at in 0..lines.len() {
        let key = lines[at].split(" = ").next().unwrap_or_default();
        let pieces = [
            "0",
            "-1",
            "\"\"",
            "\"x\"",
            "[]",
            "{}",
            "true",
            "nan",
            "1e400",
            "2026-01-01",
            "\"1s..2s step 1s\"",
        ];
        let changed = pieces.map(|piece| format!("{key} = {piece}"));
        for line in changed.iter().map(String::as_str).chain(["", "[[rule]]", "[up]"]) {
            let mut lines = lines.clone();
            lines[at] = line;
            loaded += u32::from(survives(&lines.join("\n")));
        }
    }
    assert!(loaded > 50, "{loaded}");
}

#[test]
fn a_queue_on_a_command_line_is_a_name_or_a_table_with_the_messages_of_files() {
    assert!(from_text("pfd").is_ok() && from_text(" \"pfd\" ").is_ok());
    assert_ne!(from_text("{ kind = \"red\", limit = \"70p\" }"), from_text("red"));
    let message = |text: &str| from_text(text).unwrap_err().to_string();
    let unknown = message("pdf");
    assert!(
        unknown.starts_with("queue: `pdf` is not known here (did you mean `pfd`?) (known: "),
        "{unknown}"
    );
    let all = message("{ kind = \"red\", limit = 5, min_th = \"x\" }");
    assert!(all.contains("queue.limit: ") && all.contains("; queue.min_th: "), "{all}");
    let problems = from_text("{ kind = \"red\", limit = 5, min_th = \"x\" }").unwrap_err().problems;
    assert!(problems.iter().map(|problem| problem.path.as_str()).eq(["queue.limit", "queue.min_th"]));
    assert_eq!(message("{}"), "queue.kind: missing; write for example kind = \"fifo\"");
    assert!(message("{ kind = ").contains("is not valid TOML: "), "{}", message("{ kind = "));
    assert!(message("").starts_with("queue: `` is not known here"), "{}", message(""));
}

#[test]
fn what_packets_are_charged_is_told_for_each_direction() {
    let up = "queue = { kind = \"cake\", bandwidth = \"1Mbit\", overhead = \"38B\", mpu = \"84B\" }";
    let config = load(&minimal("down.overhead = \"0B\"", up, ""));
    assert_eq!(
        config.charges(),
        "up: 54, 114 and 1514 B, and by `cake` 84, 138 and 1538 B\ndown: 40, 100 and 1500 B\n"
    );
}
