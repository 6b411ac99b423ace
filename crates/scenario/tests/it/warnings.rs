//! Warnings about scenarios, and scenarios without warnings.

use std::path::Path;

use apportion_scenario::load;

use crate::common::scenario;

/// A link of 12 Mb/s and 20 ms with this queue and these flows, measured from 10 s on.
fn text(stop: &str, queue: &str, flows: &str) -> String {
    format!(
        "seed = 1\nstop = \"{stop}\"\nmeasure_from = \"10s\"\n\
         link.wire = {{ from = \"a\", to = \"b\", rate = \"12Mbit\", delay = \"20ms\", queue = \"{queue}\" }}\n\
         defaults.flow.tcp = \"linux\"\n{flows}"
    )
}

fn warnings(stop: &str, queue: &str, flows: &str) -> Vec<String> {
    scenario(&text(stop, queue, flows)).warnings()
}

const ONE: &str = "flow.one = { from = \"a\", to = \"b\" }\n";

#[test]
fn less_than_ten_seconds_are_too_few() {
    assert_eq!(
        warnings("19.5s", "fifo", ONE),
        [
            "only 9.5 s are measured, of which chance and slow start decide much; write a later `stop`, for 10 s or more"
        ]
    );
    assert_eq!(warnings("20s", "fifo", ONE), [""; 0]);
}

#[test]
fn less_than_a_hundred_round_trips_are_too_few() {
    // The key `rtt` of a flow is for disciplines; the path decides here.
    let of_path = |stop: &str, delay: &str| {
        let text = text(stop, "QUEUE", "flow.slow = { from = \"a\", to = \"b\", rtt = \"900ms\" }\n");
        text.replace("20ms", delay).replace("\"QUEUE\"", "{ kind = \"lqd\", thresholds = \"rtt\" }")
    };
    assert_eq!(
        scenario(&of_path("25s", "100ms")).warnings(),
        [
            "the measured 15 s are only 74 round trips of flow `slow`, 201 ms each; write a later `stop`, for 100 or more"
        ]
    );
    assert_eq!(scenario(&of_path("31s", "100ms")).warnings(), [""; 0]);
    assert_eq!(scenario(&of_path("25s", "5ms")).warnings(), [""; 0]);
    // Without TCP there are none.
    let datagrams = of_path("25s", "100ms")
        .replace("rtt = ", "source = { kind = \"cbr\", rate = \"1Mbit\" }, rtt = ")
        .replace("defaults.flow.tcp = \"linux\"\n", "");
    assert_eq!(scenario(&datagrams).warnings(), [""; 0]);
}

#[test]
fn ramp_needs_a_real_rate_flow_over_its_link() {
    let idle =
        "the queue `ramp` of link `wire` reserves nothing, since no flow over it has class = \"real_rate\"";
    assert_eq!(warnings("40s", "ramp", ONE), [""; 0]);
    let warnings = |stop: &str, queue: &str, flows: &str| {
        let trusting = format!("{{ kind = \"{queue}\", recognise = false }}");
        scenario(&text(stop, "QUEUE", flows).replace("\"QUEUE\"", &trusting)).warnings()
    };
    assert_eq!(warnings("40s", "ramp", ONE), [idle]);
    let film = "flow.film = { from = \"a\", to = \"b\", class = \"real_rate\" }\n";
    assert_eq!(warnings("40s", "ramp", film), [""; 0]);
    // The flow may become real-rate, and acknowledgements have the class of their flow.
    let change = "[[change]]\nat = \"15s\"\nset = \"flow.one.class\"\nto = \"real_rate\"\n";
    assert_eq!(warnings("40s", "ramp", &format!("{ONE}{change}")), [""; 0]);
    let back = "flow.film = { from = \"b\", to = \"a\", class = \"real_rate\" }\n";
    assert_eq!(warnings("40s", "ramp", &format!("{ONE}{back}")), [""; 0]);
}

/// Flows `one` and `two`, each with one of `keys`.
fn two(keys: [&str; 2]) -> String {
    let flow = |(name, keys): (&str, &str)| format!("flow.{name} = {{ from = \"a\", to = \"b\", {keys} }}\n");
    ["one", "two"].into_iter().zip(keys).map(flow).collect()
}

#[test]
fn keys_that_no_queue_on_the_path_heeds_are_named() {
    let told = |key: &str, does: &str| {
        format!(
            "`{key}` of flow `two` does not change what it gets: no queue on its path {does}; write such a queue, or \
             leave it out"
        )
    };
    let weight = told("weight", "shares bandwidth by weights, as \"drr\" does");
    for queue in ["cake", "fifo", "codel", "csfq", "drr", "fq_codel", "pfd"] {
        let expected = if ["cake", "fifo", "codel"].contains(&queue) { vec![weight.clone()] } else { vec![] };
        let of_weights = |keys| warnings("40s", queue, &two(keys));
        assert_eq!(of_weights(["", "weight = 3"]), expected, "{queue}");
        // Equal weights have no effect and cause no warning.
        assert_eq!(of_weights(["weight = 3", "weight = 3"]), [""; 0], "{queue}");
    }
    // Acknowledgements are packets of their flow.
    let back = text("40s", "fifo", &two(["", "weight = 3"]))
        .replace("delay = \"20ms\"", "delay = \"20ms\", back = { queue = \"drr\" }");
    assert_eq!(scenario(&back).warnings(), [""; 0]);
    let change = "[[change]]\nat = \"15s\"\nset = \"flow.two.weight\"\nto = 3\n";
    assert_eq!(warnings("40s", "cake", &(two([""; 2]) + change)), [weight.as_str()]);
    // A change may bring a queue that does.
    let to_drr = "[[change]]\nat = \"15s\"\nset = \"link.wire.queue\"\nto = \"drr\"\n";
    assert_eq!(warnings("40s", "fifo", &(two(["", "weight = 3"]) + to_drr)), [""; 0]);
    let guarantee = told("guarantee", "keeps guarantees, as \"csfq\" does");
    assert_eq!(warnings("40s", "drr", &two(["", "guarantee = \"2Mbit\""])), [guarantee]);
    assert_eq!(warnings("40s", "csfq", &two(["", "guarantee = \"2Mbit\""])), [""; 0]);
    let class = told("class", "knows classes, as \"ramp\" does");
    assert_eq!(warnings("40s", "drr", &two(["", "class = \"real_rate\""])), [class]);
    assert_eq!(warnings("40s", "cake", &two(["", "class = \"real_rate\""])), [""; 0]);
    // A change may bring the key.
    for (key, value, queue) in [("guarantee", "2Mbit", "csfq"), ("class", "real_rate", "cake")] {
        let change = format!("[[change]]\nat = \"15s\"\nset = \"flow.two.{key}\"\nto = \"{value}\"\n");
        let of = |queue| warnings("40s", queue, &(two([""; 2]) + &change));
        assert!(
            of("drr").iter().all(|line| line.starts_with(&format!("`{key}` of flow `two`")))
                && of("drr").len() == 1
        );
        assert_eq!(of(queue), [""; 0]);
    }
}

#[test]
fn targets_rtts_and_colours_without_a_reader_are_named() {
    let told = |key: &str, does: &str| {
        format!(
            "`{key}` of flow `two` does not change what it gets: no queue on its path {does}; write such a queue, or \
             leave it out"
        )
    };
    let queue = "has a queue for each real-rate flow, as \"ramp\" does";
    for (key, value) in [("target", "8kB"), ("target_delay", "20ms")] {
        let keys = format!("class = \"real_rate\", {key} = \"{value}\"");
        assert_eq!(warnings("40s", "cake", &two(["", &keys])), [told(key, queue)]);
        assert_eq!(warnings("40s", "ramp", &two(["", &keys])), [""; 0]);
    }
    let rtt = two(["", "rtt = \"200ms\""]);
    assert_eq!(
        warnings("40s", "lqd", &rtt),
        [told("rtt", "shares buffer space by round-trip times, as \"lqd\" does with thresholds = \"rtt\"")]
    );
    // With a guarantee it determines the depth of a bucket.
    assert_eq!(warnings("40s", "csfq", &two(["", "rtt = \"200ms\", guarantee = \"2Mbit\""])), [""; 0]);
    for marker in ["tsw2cm", "tsw3cm"] {
        let rate = if marker == "tsw2cm" { "cir = \"2Mbit\"" } else { "cir = \"1Mbit\", pir = \"2Mbit\"" };
        let marked = two(["", &format!("mark = {{ kind = \"{marker}\", {rate} }}")]);
        assert_eq!(warnings("40s", "red", &marked), [told("mark", "goes by colours, as \"rio\" does")]);
        assert_eq!(warnings("40s", "rio", &marked), [""; 0]);
    }
    let valued = two(["", "mark = \"value\""]);
    assert_eq!(warnings("40s", "csfq", &valued), [told("mark", "goes by values, as \"ppv\" does")]);
    assert_eq!(warnings("40s", "pvpie", &valued), [""; 0]);
}

#[test]
fn weights_that_are_set_against_none_are_named() {
    let told = |whom: &str| {
        format!(
            "`weight` of {whom} does not change what it gets: wherever weights count on its path, the flows that it shares a host with, or the link, \
             weigh alike; leave it out"
        )
    };
    let links = |queue: &str| {
        let access = |host: &str| {
            format!("link.{host} = {{ from = \"{host}\", to = \"a\", rate = \"1Gbit\", delay = \"1ms\" }}\n")
        };
        text("40s", "QUEUE", &(access("x") + &access("y"))).replace("\"QUEUE\"", queue)
    };
    let flow = |name: &str, from: &str, keys: &str| {
        format!("flow.{name} = {{ from = \"{from}\", to = \"b\", {keys} }}\n")
    };
    let of = |queue: &str, flows: &[String]| scenario(&(links(queue) + &flows.concat())).warnings();
    let alone = [flow("one", "x", ""), flow("two", "y", "weight = 3")];
    let isolated = "{ kind = \"drr\", isolate = \"source\" }";
    assert_eq!(of(isolated, &alone), [told("flow `two`")]);
    assert_eq!(of("\"drr\"", &alone), [""; 0]);
    assert_eq!(of("{ kind = \"drr\", isolate = \"destination\" }", &alone), [""; 0]);
    let together = [flow("one", "x", ""), flow("two", "x", "weight = 3"), flow("three", "y", "weight = 2")];
    assert_eq!(of(isolated, &together), [told("flow `three`")]);
    // Acknowledgements of others on this path have their weights and, swapped, their hosts.
    let back = "flow.back = { from = \"b\", to = \"a\" }\n".to_owned();
    assert_eq!(of(isolated, &[alone.concat(), back]), [""; 0]);
    // A change may make it different from others.
    let change = "[[change]]\nat = \"15s\"\nset = \"flow.one.weight\"\nto = 2\n".to_owned();
    assert_eq!(of(isolated, &[alone.concat(), change]), [""; 0]);
}

#[test]
fn tickets_of_links_without_ticketed_flows_are_named() {
    let with = |key: &str, flows: &str| {
        let text = text("40s", "tred", flows);
        scenario(&text.replace("delay = \"20ms\"", &format!("delay = \"20ms\", {key}"))).warnings()
    };
    let told = "`tickets` of link `wire` does nothing: no flow over it has tickets; write for example tickets = 100 for flows, or leave it out";
    assert_eq!(with("tickets = 100", ONE), [told]);
    assert_eq!(with("tickets = 100", &two(["", "tickets = 5000"])), [""; 0]);
    let told = "`exchange` of link `wire` does nothing: the link is issued no tickets to exchange for; write for example tickets = 100, or \
                leave it out";
    for flows in [ONE.to_owned(), two(["", "tickets = 5000"])] {
        assert_eq!(with("exchange = { bits = 9 }", &flows), [told], "{flows}");
    }
    assert_eq!(with("exchange = { bits = 17 }, tickets = 100", &two(["", "tickets = 5000"])), [""; 0]);
    assert_eq!(with("jitter = \"0ms\"", ONE), [""; 0]);
}

#[test]
fn a_guarantee_within_the_part_of_a_customer_with_one_flow_does_nothing() {
    let flow = |name: &str, customer: &str, guarantee: &str| {
        format!(
            "flow.{name} = {{ from = \"a\", to = \"b\", customer = \"{customer}\", guarantee = \"{guarantee}\" }}\n"
        )
    };
    // Shares of 4 and 8 Mb/s.
    let weights = "customer.rich = { weight = 2 }\n";
    let other = flow("other", "rich", "0bit");
    let with = |guarantee: &str| {
        warnings("40s", "hcsfq", &format!("{weights}{}{other}", flow("call", "poor", guarantee)))
    };
    assert_eq!(
        with("4Mbit"),
        [
            "the guarantee of flow `call` does nothing on link `wire`: the flow is the only one of its customer, whose part is \
          4.000 Mb/s at least"
        ]
    );
    assert_eq!(with("4001kbit"), [""; 0]);
    // A second flow of the customer leaves less for it; other queues have no customers.
    let second = format!("{weights}{}{}{other}", flow("call", "poor", "4Mbit"), flow("bulk", "poor", "0bit"));
    assert_eq!(warnings("40s", "hcsfq", &second), [""; 0]);
    // After a change a share may be smaller.
    let change = "[[change]]\nat = \"15s\"\nset = \"link.wire.rate\"\nto = \"6Mbit\"\n";
    let changed = format!("{weights}{}{other}{change}", flow("call", "poor", "4Mbit"));
    assert_eq!(warnings("40s", "hcsfq", &changed), [""; 0]);
    assert_eq!(warnings("40s", "mcsfq", &format!("{}{other}", flow("call", "poor", "4Mbit"))), [""; 0]);
}

#[test]
fn classes_that_are_assured_more_than_the_link_has_are_named() {
    let of = |kind: &str, rate: &str, inner: &str| {
        let class = format!("a = {{ {rate} = \"7Mbit\", others = true }}, b = {{ {rate} = \"{inner}\" }}");
        let queue = format!("{{ kind = \"{kind}\", class = {{ {class} }} }}");
        scenario(&text("40s", "QUEUE", ONE).replace("\"QUEUE\"", &queue)).warnings()
    };
    for (kind, rate) in [("htb", "rate"), ("hfsc", "rt_m2")] {
        assert_eq!(of(kind, rate, "5Mbit"), [""; 0]);
        let line = "the classes of link `wire` are assured 12.5 Mbit/s together, and it has 12; lower";
        let all = of(kind, rate, "5.5Mbit");
        assert!(all.len() == 1 && all[0].starts_with(line) && all[0].contains(rate), "{all:?}");
    }
}

#[test]
fn flows_and_changes_that_the_run_does_not_reach_are_named() {
    let late = "flow.late = { count = 4, from = \"a\", to = \"b\", start = \"40s\" }\n";
    let change = "[[change]]\nat = \"41s\"\nset = \"link.wire.rate\"\nto = \"6Mbit\"\n";
    let named = |flow: u32| {
        format!(
            "flow `late.{flow}` never starts: the run ends at 40s; write an earlier `start`, or a later `stop`"
        )
    };
    let of_change =
        "the change at 41s never happens: the run ends at 40s; write an earlier `at`, or a later `stop`";
    let all = [named(1), named(2), named(3), of_change.to_owned()];
    assert_eq!(warnings("40s", "fifo", &format!("{ONE}{late}{change}")), all);
    let in_time = format!("{ONE}{late}{change}").replace("40s", "39s").replace("41s", "39s");
    assert_eq!(warnings("40s", "fifo", &in_time), [""; 0]);
}

#[test]
fn a_buffer_below_a_packet_drops_every_one() {
    let of = |queue: &str, flows: &str| {
        scenario(&text("40s", "fifo", flows).replace("\"fifo\"", queue)).warnings()
    };
    let small = |size: &str, key: &str, flow: &str, packet: &str, mend: &str| {
        format!(
            "the queue of link `wire` holds {size} (`{key}`), less than a full packet of flow `{flow}`, {packet}: it drops every \
             one; write {mend} = \"{packet}\" or more"
        )
    };
    // A segment of TCP counts with its headers.
    let tcp = small("1499B", "limit", "one", "1500B", "limit");
    for kind in ["fifo", "drr", "pie", "fq_codel", "cake", "sfq", "hcsfq"] {
        let queue = |limit: &str| format!("{{ kind = \"{kind}\", limit = \"{limit}\" }}");
        assert_eq!(of(&queue("1499B"), ONE), [tcp.as_str()], "{kind}");
        assert_eq!(of(&queue("1500B"), ONE), [""; 0], "{kind}");
        assert_eq!(of(&queue("1p"), ONE), [""; 0], "{kind}");
    }
    let refused = apportion_scenario::queue::from_text("{ kind = \"fq_codel\", memory_limit = \"0B\" }");
    assert!(refused.unwrap_err().to_string().contains("memory_limit: a buffer holds at least one packet"));
    let memory = "{ kind = \"fq_codel\", memory_limit = \"1kB\" }";
    assert_eq!(of(memory, ONE), [small("1kB", "memory_limit", "one", "1500B", "memory_limit")]);
    // The largest packet that crosses the link counts, including acknowledgements.
    let both = "flow.one = { from = \"a\", to = \"b\", tcp = \"linux\" }\n\
                flow.jumbo = { from = \"a\", to = \"b\", source = { kind = \"cbr\", rate = \"1Mbit\", packet = \"9000B\" } }\n";
    let fifo = |limit: &str| format!("{{ kind = \"fifo\", limit = \"{limit}\" }}");
    let jumbo = text("40s", "fifo", both).replace("defaults.flow.tcp = \"linux\"\n", "");
    let jumbo = scenario(&jumbo.replace("\"fifo\"", &fifo("2kB"))).warnings();
    assert_eq!(jumbo, [small("2kB", "limit", "jumbo", "9kB", "limit")]);
    let back = "flow.one = { from = \"b\", to = \"a\" }\n";
    assert_eq!(of(&fifo("1kB"), back), [""; 0]);
    let change =
        "[[change]]\nat = \"15s\"\nset = \"link.wire.queue\"\nto = { kind = \"fifo\", limit = \"1499B\" }\n";
    assert_eq!(of("\"fifo\"", &format!("{ONE}{change}")), [tcp.as_str()]);
    // A class has a buffer of its own, for its flows.
    let classes =
        "{ kind = \"prio\", class = { small = { prio = 1, limit = \"1499B\" }, large = { prio = 2 } } }";
    let flow = |class: &str| format!("flow.one = {{ from = \"a\", to = \"b\", customer = \"{class}\" }}\n");
    assert_eq!(of(classes, &flow("small")), [small("1499B", "class.small.limit", "one", "1500B", "limit")]);
    assert_eq!(of(classes, &flow("large")), [""; 0]);
    let others = classes.replace("1499B\"", "1499B\", others = true");
    assert_eq!(of(&others, &flow("else")), [small("1499B", "class.small.limit", "one", "1500B", "limit")]);
}

#[test]
fn children_with_more_than_their_parent_are_squeezed() {
    let of = |queue: &str| {
        let flow = "flow.one = { from = \"a\", to = \"b\", customer = \"x\" }\n";
        scenario(&text("40s", "fifo", flow).replace("\"fifo\"", queue)).warnings()
    };
    let above = |parent: &str, key: &str, numbers: [u32; 2]| {
        let [below, own] = numbers;
        format!(
            "the classes below class `{parent}` of link `wire` have {below} Mbit/s by `{key}` together, and it has {own}; lower \
             theirs, or raise its, or some get less"
        )
    };
    let htb = |x: u32, y: u32| {
        format!(
            "{{ kind = \"htb\", class = {{ p = {{ rate = \"5Mbit\", ceil = \"12Mbit\" }}, \
             x = {{ parent = \"p\", rate = \"{x}Mbit\" }}, y = {{ parent = \"p\", rate = \"{y}Mbit\" }} }} }}"
        )
    };
    assert_eq!(of(&htb(2, 3)), [""; 0]);
    assert_eq!(of(&htb(3, 3)), [above("p", "rate", [6, 5])]);
    // A class that alone exceeds it.
    assert_eq!(of(&htb(6, 1)), [above("p", "rate", [7, 5])]);
    let hfsc = |key: &str, x: u32| {
        format!(
            "{{ kind = \"hfsc\", class = {{ p = {{ ls_m2 = \"5Mbit\" }}, x = {{ parent = \"p\", {key} = \"{x}Mbit\" }}, \
             y = {{ parent = \"p\", ls_m2 = \"3Mbit\" }} }} }}"
        )
    };
    assert_eq!(of(&hfsc("ls_m2", 2)), [""; 0]);
    assert_eq!(of(&hfsc("ls_m2", 3)), [above("p", "ls_m2", [6, 5])]);
    assert_eq!(of(&hfsc("rt_m2", 3)), [above("p", "ls_m2", [6, 5])]);
}

#[test]
fn queues_that_divide_a_recorded_mean_are_named() {
    // A second with `fast` opportunities and a second with 1000.
    let warnings = |queue: &str, fast: u32| {
        let spread =
            |count: u32, second: u32| (0..count).map(move |at| 1_000 * second + 1 + at * 1_000 / count);
        let times = spread(fast, 0).chain(spread(1_000, 1)).map(|ms| format!("{ms}\n")).collect::<String>();
        let text =
            text("40s", "fifo", ONE).replace("\"fifo\"", queue).replace("\"12Mbit\"", "{ trace = \"lte\" }");
        let suite = load(&text, Path::new("dir/x.toml"), &[], &|_| Ok(times.clone().into()));
        suite.unwrap().points.remove(0).scenario.warnings()
    };
    let told = "the queue of link `wire` divides the mean of the recorded rate, 9.024 Mb/s, also while the link is faster, and \
             drops the rest: up to 17 % of the opportunities, which are beyond the mean of their second, may stay unused; write a \
             queue that asks for no rate, such as \"fq_codel\"";
    let of_paper = |kind| format!("{{ kind = \"{kind}\", preset = \"paper\" }}");
    for queue in ["csfq", "mcsfq", "hcsfq"].map(of_paper).into_iter().chain(["\"cebinae\"".to_owned()]) {
        assert_eq!(warnings(&queue, 500), [told]);
        assert_eq!(warnings(&queue, 950), [""; 0]);
    }
    for name in ["csfq", "mcsfq", "hcsfq", "fifo", "drr", "fq_codel", "ramp"] {
        assert!(warnings(&format!("\"{name}\""), 500).iter().all(|warning| !warning.contains("recorded")));
    }
}

#[test]
fn tags_too_narrow_for_a_packet_are_named() {
    let flow = |name: &str, tickets: u32, packet: &str, mark: &str| {
        format!(
            "flow.{name} = {{ from = \"a\", to = \"b\", tickets = {tickets}, mark = {{ {mark} }}, \
             source = {{ kind = \"cbr\", rate = \"9Mbit\", packet = \"{packet}\" }} }}\n"
        )
    };
    // 50,000 tickets and 12 Mb/s in packets of 9000 B are 300 for each, in those of 1500 B 50.
    let flows = |big: u32, mark| flow("big", big, "9000B", mark) + &flow("small", 20_000, "1500B", mark);
    let warnings = |queue: &str, flows: &str| {
        scenario(&text("40s", queue, flows).replace("defaults.flow.tcp = \"linux\"\n", "")).warnings()
    };
    let told = "packets of 9kB of flow `big` would carry 300 tickets at link `wire`, and its tags hold 255 (`mark.bits` = 8), so shares \
                do not follow tickets; write mark = { bits = 17 }, or issue fewer tickets to all";
    assert_eq!(warnings("tred", &flows(30_000, "bits = 8")), [told]);
    assert_eq!(warnings("tred", &flows(20_000, "bits = 8")), [""; 0]);
    assert_eq!(warnings("tred", &flows(30_000, "bits = 8, form = \"floating\"")), [""; 0]);
    assert_eq!(warnings("tred", &flows(30_000, "")), [""; 0]);
    // 300 tickets are 0.3 of one for a packet of 1500 B, with any tags.
    let few = |tickets, mark| flow("one", 2 * tickets, "1500B", mark) + &flow("two", tickets, "1500B", mark);
    let told = "packets of 1500B of flow `two` would carry 0.300 tickets at link `wire`, and its tags hold whole ones, so shares do not \
                follow tickets; issue 34 times as many to all";
    for mark in ["", "bits = 8", "bits = 8, form = \"floating\""] {
        assert_eq!(warnings("tred", &few(100, mark)), [told], "{mark}");
        assert_eq!(warnings("tred", &few(400, mark)), [""; 0], "{mark}");
    }
    // Other queues do not read them, and the warning says so.
    let [other] = &warnings("red", &flows(30_000, "bits = 8"))[..] else { panic!("one warning") };
    assert!(other.starts_with("`tickets` of flow `big`"), "{other}");
}

#[test]
fn policies_that_undo_a_fair_scheduler_are_named() {
    let flood = "flow.flood = { from = \"a\", to = \"b\", source = { kind = \"cbr\", rate = \"13Mbit\" } }\n";
    let warnings = |queue: &str, flows: &str| {
        let text = text("40s", "QUEUE", flows).replace("\"QUEUE\"", queue);
        scenario(&text.replace("defaults.flow.tcp = \"linux\"\n", "")).warnings()
    };
    let told = "`drr` of link `wire` divides what `tail` lets into the buffer: if flow `flood`, which does not answer to drops, sends \
                more than its share, it has more; write drop = \"lqd\", or another that keeps shares";
    assert_eq!(warnings("{ kind = \"drr\", drop = \"tail\" }", flood), [told]);
    assert_eq!(warnings("{ kind = \"drr\", drop = \"tail\" }", ONE), [""; 0]);
    let thin = flood.replace("13Mbit", "1Mbit");
    assert_eq!(warnings("{ kind = \"drr\", drop = \"tail\" }", &thin), [""; 0], "within its share");
    for policy in ["lqd", "pfd", "random_drop", "codel", "pie", "csfq"] {
        assert_eq!(
            warnings(&format!("{{ kind = \"stfq\", drop = \"{policy}\" }}"), flood),
            [""; 0],
            "{policy}"
        );
    }
    for kind in ["fifo", "drr", "red", "fq_codel"] {
        assert_eq!(warnings(&format!("\"{kind}\""), flood), [""; 0], "{kind}");
    }
    // SF-FC limits unresponsive flows; the warning about its predecessor uses the written name.
    assert_eq!(warnings("{ kind = \"drr\", drop = \"sffc\" }", flood), [""; 0]);
    let nbq = warnings("{ kind = \"drr\", drop = \"nbq\" }", flood);
    assert_eq!(nbq, [told.replace("`tail`", "`nbq`")]);
    // A call answers to delay and loss.
    let call =
        flood.replace("{ kind = \"cbr\", rate = \"13Mbit\" }", "{ kind = \"call\", max = \"13Mbit\" }");
    assert_eq!(warnings("{ kind = \"drr\", drop = \"tail\" }", &call), [""; 0]);
}
