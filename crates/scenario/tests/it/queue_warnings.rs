//! Warnings about queues of a scenario, and queues without warnings.

use std::path::Path;

use apportion_scenario::load;

use crate::common::scenario;

/// A link of 12 Mb/s with this queue, these flows, and other lines.
fn text(queue: &str, rest: &str) -> String {
    format!(
        "seed = 1\nstop = \"40s\"\nmeasure_from = \"10s\"\n\
         link.wire = {{ from = \"a\", to = \"b\", rate = \"12Mbit\", delay = \"20ms\", queue = {queue} }}\n{rest}"
    )
}

fn warnings(queue: &str, rest: &str) -> Vec<String> {
    scenario(&text(queue, rest)).warnings()
}

/// A flow of TCP, with these keys.
fn tcp(name: &str, keys: &str) -> String {
    format!("flow.{name} = {{ from = \"a\", to = \"b\", tcp = \"linux\", {keys} }}\n")
}

/// An unresponsive flow.
fn cbr(name: &str, rate: &str, keys: &str) -> String {
    let source = format!("source = {{ kind = \"cbr\", rate = \"{rate}\" }}");
    format!("flow.{name} = {{ from = \"a\", to = \"b\", {source}, {keys} }}\n")
}

#[test]
fn values_of_parameters_decide_what_is_heeded() {
    let told = "`weight` of flow `two` does not change what it gets: no queue on its path shares bandwidth by weights, as \
                \"drr\" does; write such a queue, or leave it out";
    let weighed = tcp("one", "") + &tcp("two", "weight = 3");
    for (queue, is_heeded) in [
        ("{ kind = \"sffc\" }", true),
        ("{ kind = \"sffc\", discipline = \"fifo\" }", false),
        ("{ kind = \"pfd\" }", true),
        ("{ kind = \"pfd\", thresholds = \"equal\" }", false),
    ] {
        let expected = if is_heeded { vec![] } else { vec![told] };
        assert_eq!(warnings(queue, &weighed), expected, "{queue}");
    }
}

#[test]
fn equal_parts_in_front_of_weights_are_named() {
    let told = "`sffc` of link `wire` holds flows that do not answer to drops to equal parts in front of `csfq`, whatever the `weight` of \
                flow `two`; write discipline = \"fq_codel\", or another that gives each flow its share";
    let behind = |discipline: &str| format!("{{ kind = \"sffc\", discipline = \"{discipline}\" }}");
    let weighed = cbr("one", "9Mbit", "") + &cbr("two", "9Mbit", "weight = 3");
    assert_eq!(warnings(&behind("csfq"), &weighed), [told]);
    for discipline in ["fq_codel", "drr"] {
        assert_eq!(warnings(&behind(discipline), &weighed), [""; 0], "{discipline}");
    }
    assert_eq!(warnings(&behind("csfq"), &(tcp("one", "") + &tcp("two", "weight = 3"))), [""; 0]);
    let alike = cbr("one", "9Mbit", "weight = 3") + &cbr("two", "9Mbit", "weight = 3");
    assert_eq!(warnings(&behind("csfq"), &alike), [""; 0]);
}

const CHANGE_OF_RATE: &str = "[[change]]\nat = \"15s\"\nset = \"link.wire.rate\"\nto = \"20Mbit\"\n";

#[test]
fn classes_are_assured_what_a_shaper_or_the_largest_rate_has() {
    let htb = |shaper: &str, rate: u32| {
        format!(
            "{{ kind = \"htb\", {shaper} class = {{ a = {{ rate = \"3Mbit\", others = true }}, b = {{ rate = \"{rate}Mbit\" }} }} }}"
        )
    };
    let shaper = "shaper = \"token_bucket\", rate = \"5Mbit\",";
    let one = tcp("one", "");
    let told = "the classes of link `wire` are assured 6 Mbit/s together, and its shaper has 5; lower `rate`, or some get less";
    assert_eq!(warnings(&htb(shaper, 3), &one), [told]);
    assert_eq!(warnings(&htb(shaper, 2), &one), [""; 0]);
    let told = "the classes of link `wire` are assured 13 Mbit/s together, and it has 12; lower `rate`, or some get less";
    assert_eq!(warnings(&htb("", 10), &one), [told]);
    assert_eq!(warnings(&htb("", 10), &(one + CHANGE_OF_RATE)), [""; 0]);
}

#[test]
fn ceilings_above_those_of_parents_are_named() {
    let one = tcp("one", "customer = \"x\"");
    let told = |key: &str| {
        format!(
            "`{key}` of class `x` of link `wire` is 9 Mbit/s, and the 4 of class `p` above it bound it; lower it, or raise that of `p`"
        )
    };
    let htb = |ceil: &str| {
        format!(
            "{{ kind = \"htb\", class = {{ p = {{ rate = \"3Mbit\", ceil = \"4Mbit\" }}, m = {{ parent = \"p\", rate = \"2Mbit\" {ceil} }}, \
             x = {{ parent = \"p\", rate = \"1Mbit\", ceil = \"9Mbit\" }} }} }}"
        )
    };
    assert_eq!(warnings(&htb(""), &one), [told("ceil")]);
    // The parent's rate, or one above the link's, is the usual way to write no ceiling.
    assert_eq!(warnings(&htb("").replace("9Mbit", "4Mbit"), &one), [""; 0]);
    assert_eq!(warnings(&htb("").replace("4Mbit", "1Gbit"), &one), [""; 0]);
    let hfsc = |limit: &str| {
        format!(
            "{{ kind = \"hfsc\", class = {{ p = {{ ls_m2 = \"9Mbit\", ul_m2 = \"4Mbit\" }}, m = {{ parent = \"p\", ls_m2 = \"1Mbit\" }}, \
             x = {{ parent = \"m\", ls_m2 = \"1Mbit\", ul_m2 = \"{limit}\" }} }} }}"
        )
    };
    assert_eq!(warnings(&hfsc("9Mbit"), &one), [told("ul_m2")]);
    assert_eq!(warnings(&hfsc("4Mbit"), &one), [""; 0]);
}

#[test]
fn real_time_curves_beyond_an_upper_limit_are_named() {
    let hfsc = |rt: &str, limit: &str| {
        format!(
            "{{ kind = \"hfsc\", class = {{ x = {{ rt_m2 = \"{rt}\", ls_m2 = \"1Mbit\", ul_m2 = \"{limit}\" }}, \
             o = {{ ls_m2 = \"1Mbit\", others = true }} }} }}"
        )
    };
    let one = tcp("one", "");
    let told = "`rt_m2` of class `x` of link `wire` is 5 Mbit/s, and goes beyond the 2 of `ul_m2` of class `x`, which limits link-sharing \
                alone; lower it, or raise `ul_m2`";
    assert_eq!(warnings(&hfsc("5Mbit", "2Mbit"), &one), [told]);
    assert_eq!(warnings(&hfsc("2Mbit", "2Mbit"), &one), [""; 0]);
}

#[test]
fn rates_above_that_of_the_link_are_named() {
    let shaped = |rate: &str| format!("{{ kind = \"fifo\", shaper = \"token_bucket\", rate = \"{rate}\" }}");
    let cake = |rate: &str, more: &str| format!("{{ kind = \"cake\", bandwidth = \"{rate}\" {more} }}");
    let told = |key: &str, out: &str| {
        format!(
            "`{key}` of the queue of link `wire` lets 13 Mbit/s pass, more than the 12 that there are behind it, so that it holds nothing \
             back; lower it, or leave {out} out"
        )
    };
    let one = tcp("one", "");
    assert_eq!(warnings(&shaped("13Mbit"), &one), [told("rate", "`shaper`")]);
    assert_eq!(warnings(&cake("13Mbit", ""), &one), [told("bandwidth", "it")]);
    for queue in [shaped("12Mbit"), cake("12Mbit", ""), cake("13Mbit", ", framing = \"atm\"")] {
        assert_eq!(warnings(&queue, &one), [""; 0], "{queue}");
    }
    assert_eq!(warnings("{ kind = \"fq\", maxrate = \"13Mbit\" }", &one), [told("maxrate", "it")]);
    // The link may become faster, and so may the queue.
    assert_eq!(warnings(&shaped("13Mbit"), &(one.clone() + CHANGE_OF_RATE)), [""; 0]);
    let change =
        format!("[[change]]\nat = \"15s\"\nset = \"link.wire.queue\"\nto = {}\n", cake("13Mbit", ""));
    assert_eq!(warnings("\"cake\"", &(one.clone() + &change)), [told("bandwidth", "it")]);
    // A second with 1000 opportunities of 1504 B and one with 500: at most 12.03 Mb/s, 9.02 on average.
    let recorded = |rate: &str| {
        let spread =
            |count: u32, second: u32| (0..count).map(move |at| 1_000 * second + 1 + at * 1_000 / count);
        let times = spread(1_000, 0).chain(spread(500, 1)).map(|ms| format!("{ms}\n")).collect::<String>();
        let text = text(&shaped(rate), &one).replacen("\"12Mbit\"", "{ trace = \"lte\" }", 1);
        let suite = load(&text, Path::new("dir/x.toml"), &[], &|_| Ok(times.clone().into()));
        suite.unwrap().points.remove(0).scenario.warnings()
    };
    assert_eq!(recorded("12Mbit"), [""; 0]);
    assert_eq!(recorded("13Mbit").len(), 1);
}

#[test]
fn labels_too_narrow_for_a_share_are_named() {
    let of = |kind: &str, bits: u32, rest: &str| {
        let queue = format!("{{ kind = \"{kind}\", bits = {bits} }}");
        scenario(&text(&queue, rest).replace("12Mbit", "1Gbit")).warnings()
    };
    let told = |flow: &str, says: u64, hold: u64, bits: u32, wider: &str| {
        format!(
            "labels of flow `{flow}` would say {says} Mbit/s for a weight of 1 in the queue of link `wire`, and hold {hold} (`bits` = \
             {bits}), so that it is not held to its share; write {wider}larger weights for all"
        )
    };
    // 1 Gb/s for weights of 0.04 together: 25 Gb/s for 1. Labels of 3 + 5 bits hold 15 · 2^30.
    let two = |one: &str, other: &str| {
        tcp("one", &format!("weight = {one}")) + &tcp("two", &format!("weight = {other}"))
    };
    for kind in ["csfq", "mcsfq", "hcsfq"] {
        let line = told("one", 25_000, 16_106, 8, "bits = 17, or ");
        assert_eq!(of(kind, 8, &two("0.01", "0.03")), [line], "{kind}");
        assert_eq!(of(kind, 8, &two("0.02", "0.05")), [""; 0], "{kind}");
        assert_eq!(of(kind, 17, &two("0.01", "0.03")), [""; 0], "{kind}");
    }
    // Labels of 17 bits hold 8191 · 2^30.
    let line = told("one", 10_000_000, 8_795_019, 17, "");
    assert_eq!(of("csfq", 17, &two("0.00005", "0.00005")), [line]);
    // An unresponsive flow sends at its rate, as far as its links carry that.
    let beside = |rate: &str| cbr("flood", rate, "weight = 0.01") + &tcp("two", "");
    let line = told("flood", 20_000, 16_106, 8, "bits = 17, or ");
    assert_eq!(of("csfq", 8, &beside("200Mbit")), [line]);
    assert_eq!(of("csfq", 8, &beside("100Mbit")), [""; 0]);
    // In `hcsfq` the share is one of the customer's share, a third here.
    let customers = |weight: &str| {
        let keys = format!("customer = \"x\", weight = {weight}");
        format!("customer.y = {{ weight = 2 }}\n{}{}", tcp("one", &keys), tcp("two", "customer = \"y\""))
    };
    assert_eq!(of("hcsfq", 8, &customers("0.02")), [told("one", 16_667, 16_106, 8, "bits = 17, or ")]);
    assert_eq!(of("hcsfq", 8, &customers("0.03")), [""; 0]);
    // The core reads the labels of the edge.
    let domain = |edge: u32, core: u32| {
        let link = |name: &str, ends: [&str; 2], role: &str, bits: u32| {
            format!(
                "link.{name} = {{ from = \"{}\", to = \"{}\", rate = \"1Gbit\", delay = \"20ms\", queue = {{ kind = \"csfq\", role = \
                 \"{role}\", bits = {bits} }} }}\n",
                ends[0], ends[1]
            )
        };
        let links = link("edge", ["a", "c"], "edge", edge) + &link("core", ["c", "b"], "core", core);
        let flows = two("0.01", "0.03")
            .replace("tcp = \"linux\",", "source = { kind = \"cbr\", rate = \"100Mbit\" },");
        let text = format!("seed = 1\nstop = \"40s\"\nmeasure_from = \"10s\"\n{links}{flows}");
        scenario(&text).warnings()
    };
    let named = |lines: &[String]| lines.iter().map(|line| line.contains("link `core`")).collect::<Vec<_>>();
    assert_eq!(named(&domain(17, 17)), [false; 0]);
    assert_eq!(named(&domain(8, 17)), [true, false], "{:?}", domain(8, 17));
    assert_eq!(named(&domain(17, 8)), [true], "{:?}", domain(17, 8));
}

#[test]
fn tags_of_an_exchange_too_narrow_for_a_packet_are_named() {
    let of = |bits: u32, tickets: u32, source: &str| {
        let links = format!(
            "link.first = {{ from = \"a\", to = \"c\", rate = \"100Mbit\", delay = \"1ms\", tickets = {tickets}, exchange = {{ bits = \
             {bits} }} }}\nlink.wire = {{ from = \"c\", to = \"b\", rate = \"12Mbit\", delay = \"20ms\", queue = \"tred\" }}\n"
        );
        let flow = |name: &str, from: &str, tickets: u32| {
            cbr(name, "9Mbit", &format!("tickets = {tickets}"))
                .replace("from = \"a\"", &format!("from = \"{from}\""))
        };
        let flows = flow("one", "a", 1_000_000) + &flow("two", "a", 1_000_000) + &flow("own", "c", 100_000);
        let text = format!("seed = 1\nstop = \"40s\"\nmeasure_from = \"10s\"\n{links}{flows}");
        scenario(&text.replace("rate = \"9Mbit\" }", source)).warnings()
    };
    // 300,000 tickets of the link and 100,000 of `own`, for packets of 1000 B at 12 Mb/s: 267 each. Those of
    // the flows are in another currency.
    let told = "packets of 1kB of flow `one` would carry 267 tickets at link `wire`, and tags of link `first` hold 255 (`exchange.bits` = \
                8), so shares do not follow tickets; write exchange = { bits = 17 } for link `first`, or issue fewer tickets to all";
    assert_eq!(of(8, 300_000, "rate = \"9Mbit\" }"), [told]);
    assert_eq!(of(8, 250_000, "rate = \"9Mbit\" }"), [""; 0]);
    assert_eq!(of(17, 300_000, "rate = \"9Mbit\" }"), [""; 0]);
}

#[test]
fn a_part_of_the_buffer_without_room_for_a_packet_is_named() {
    // 100 ms of 12 Mb/s are 150 kB: 16.7 packets of 9000 B, of which a weight of 1 beside 24 has two thirds.
    let jumbo = |name: &str, weight: u32| {
        let source = "source = { kind = \"cbr\", rate = \"9Mbit\", packet = \"9000B\" }";
        format!("flow.{name} = {{ from = \"a\", to = \"b\", {source}, weight = {weight} }}\n")
    };
    let told = "the buffer of link `wire` has room for 0.67 packets of flow `light` by its weight: when it is full, that flow may lose the \
                only one it has; write limit = \"450kB\" or more";
    let flows = jumbo("light", 1) + &jumbo("heavy", 24);
    for queue in ["\"drr\"", "{ kind = \"stfq\", drop = \"pie\" }", "\"fq_codel\""] {
        assert_eq!(warnings(queue, &flows), [told], "{queue}");
    }
    let alone = |queue: &str, flows: &str| {
        let all = warnings(queue, flows);
        all.into_iter().filter(|warning| warning.starts_with("the buffer of")).collect::<Vec<_>>()
    };
    let wide = "{ kind = \"drr\", drop = \"lqd\", limit = \"450kB\" }";
    assert_eq!(alone(wide, &flows), [""; 0]);
    assert_eq!(alone("\"csfq\"", &flows), [""; 0], "labels decide");
    // Equal weights, and one flow with larger packets than the others.
    let small: String = (0..20).map(|at| jumbo(&format!("f{at}"), 1).replace("9000B", "1500B")).collect();
    assert_eq!(alone("\"drr\"", &(small + &jumbo("large", 1))).len(), 1);
    let alike: String = (0..20).map(|at| jumbo(&format!("f{at}"), 2)).collect();
    assert_eq!(alone("\"drr\"", &alike), [""; 0], "chance decides among equals");
}

#[test]
fn tickets_and_customers_that_no_queue_heeds_are_named() {
    let ticketed = tcp("one", "tickets = 3000") + &tcp("two", "tickets = 1000");
    let told = "`tickets` of flow `one` and of 1 more does not change what it gets: no queue on its path goes by tickets, as \"tred\" does; \
                write such a queue, or leave it out";
    assert_eq!(warnings("\"drr\"", &ticketed), [told]);
    assert_eq!(warnings("\"tred\"", &ticketed), [""; 0]);
    let customers = "customer.a.weight = 5\ncustomer.b.weight = 1\n".to_owned()
        + &tcp("one", "customer = \"a\"")
        + &tcp("two", "customer = \"b\"");
    let told = "`weight` of customer `a` does not change what it gets: no queue on the paths of its flows shares bandwidth among customers, as \
                \"hcsfq\" does; write such a queue, or leave it out";
    assert_eq!(warnings("\"drr\"", &customers), [told]);
    assert_eq!(warnings("\"hcsfq\"", &customers), [""; 0]);
    let only = "customer.a.weight = 5\n".to_owned() + &tcp("one", "customer = \"a\"") + &tcp("two", "");
    assert_eq!(warnings("\"drr\"", &only), [told]);
}
