//! Warnings about a gateway's configuration, and configurations without warnings.

use crate::common::gateway::{load, minimal};

/// The warnings about a file with these queues `up` and `down` and these rules.
fn warnings(up: &str, down: &str, rules: &str) -> Vec<String> {
    load(&minimal(&format!("down.queue = {down}"), &format!("queue = {up}"), rules)).warnings()
}

fn rule(keys: &str) -> String {
    format!("[[rule]]\nname = \"calls\"\nprotocol = 17\n{keys}\n")
}

const DRR: &str = "\"drr\"";

fn unheeded(key: &str, whom: &str, place: &str, does: &str, mend: &str) -> String {
    format!(
        "`{key}` of {whom} does not change what it gets: no queue {place} {does}; write {mend}, or leave it out"
    )
}

#[test]
fn keys_of_rules_that_no_queue_heeds_are_named() {
    let (up, calls) = ("in direction `up`", "rule `calls`");
    let weights = "shares bandwidth by weights, as \"drr\" does";
    let weight = rule("weight = 3");
    let only = |way: &str| format!("{weight}direction = \"{way}\"\n");
    for queue in ["\"cake\"", "\"fifo\"", "{ kind = \"pfd\", thresholds = \"equal\" }"] {
        let other = "such a queue, direction = \"down\"";
        assert_eq!(warnings(queue, DRR, &weight), [unheeded("weight", calls, up, weights, other)]);
        assert_eq!(
            warnings(queue, DRR, &only("up")),
            [unheeded("weight", calls, up, weights, "such a queue")]
        );
        assert_eq!(warnings(queue, DRR, &only("down")), [""; 0]);
    }
    assert_eq!(warnings(DRR, DRR, &weight), [""; 0]);
    assert_eq!(warnings("\"fifo\"", "\"fifo\"", &rule("weight = 1")), [""; 0]);
    let second = format!("{weight}[[rule]]\nprotocol = 6\nweight = 2\n");
    let both =
        unheeded("weight", "rule `calls` and of 1 more", "in either direction", weights, "such a queue");
    assert_eq!(warnings("\"fifo\"", "\"cake\"", &second), [both]);
    let guarantee = rule("guarantee = \"2Mbit\"\ndirection = \"up\"");
    let keeps = "keeps guarantees, as \"csfq\" does";
    assert_eq!(warnings(DRR, DRR, &guarantee), [unheeded("guarantee", calls, up, keeps, "such a queue")]);
    assert_eq!(warnings("\"csfq\"", DRR, &guarantee), [""; 0]);
    let class = rule("class = \"real_rate\"\ndirection = \"up\"");
    let knows = "knows classes, as \"ramp\" does";
    assert_eq!(warnings(DRR, DRR, &class), [unheeded("class", calls, up, knows, "such a queue")]);
    for queue in ["\"ramp\"", "\"cake\""] {
        assert_eq!(warnings(queue, DRR, &class), [""; 0]);
    }
    // Tins by DSCP do not use classes of flows.
    let tins = "{ kind = \"cake\", tins = \"diffserv4\" }";
    assert_eq!(
        warnings(tins, DRR, &class),
        [unheeded("class", calls, up, knows, "tins = \"class\" for `cake`")]
    );
}

#[test]
fn policies_that_undo_a_fair_scheduler_are_named() {
    let told = "`drr` of direction `up` divides what `tail` lets into the buffer: if a flow that does not answer to drops sends more than \
                its share, it has more; write drop = \"lqd\", or another that keeps shares";
    assert_eq!(warnings("{ kind = \"drr\", drop = \"tail\" }", DRR, ""), [told]);
    assert_eq!(warnings("{ kind = \"drr\", drop = \"pfd\" }", DRR, ""), [""; 0]);
    let told = "`sffc` of direction `up` holds flows that do not answer to drops to equal parts in front of `csfq`, whatever the `weight` of \
                rule `calls`; write discipline = \"fq_codel\", or another that gives each flow its share";
    let sffc = "{ kind = \"sffc\", reports = false, discipline = \"csfq\" }";
    assert_eq!(warnings(sffc, DRR, &rule("weight = 3")), [told]);
    assert_eq!(warnings(sffc, DRR, ""), [""; 0]);
}

#[test]
fn classes_that_cannot_have_what_they_say_are_named() {
    let htb = |p: &str, x: &str, others: &str| {
        format!(
            "{{ kind = \"htb\", class = {{ p = {{ {p} }}, x = {{ parent = \"p\", {x} }}, o = {{ rate = \"{others}\", others = true }} }} }}"
        )
    };
    let customer = rule("customer = \"x\"");
    let of = |queue: &str| warnings(queue, DRR, &customer);
    let wide = "rate = \"3Mbit\", ceil = \"10Mbit\"";
    assert_eq!(of(&htb(wide, "rate = \"3Mbit\", ceil = \"10Mbit\"", "1Mbit")), [""; 0]);
    assert_eq!(
        of(&htb(wide, "rate = \"8Mbit\"", "1Mbit")),
        [
            "the classes below class `p` of direction `up` have 8 Mbit/s by `rate` together, and it has 3; lower theirs, or raise its, or \
             some get less"
        ]
    );
    assert_eq!(
        of(&htb(wide, "rate = \"3Mbit\"", "8Mbit")),
        [
            "the classes of direction `up` are assured 11 Mbit/s together, and it has 10; lower `rate`, or some get less"
        ]
    );
    assert_eq!(
        of(&htb("rate = \"3Mbit\"", "rate = \"3Mbit\", ceil = \"4Mbit\"", "1Mbit")),
        [
            "`ceil` of class `x` of direction `up` is 4 Mbit/s, and the 3 of class `p` above it bound it; lower it, or raise that of `p`"
        ]
    );
    let hfsc = "{ kind = \"hfsc\", class = { x = { rt_m2 = \"5Mbit\", ul_m2 = \"2Mbit\" }, o = { ls_m2 = \"1Mbit\", others = true } } }";
    assert_eq!(
        of(hfsc),
        [
            "`rt_m2` of class `x` of direction `up` is 5 Mbit/s, and goes beyond the 2 of `ul_m2` of class `x`, which limits link-sharing \
             alone; lower it, or raise `ul_m2`"
        ]
    );
    assert_eq!(of(&hfsc.replace("\"5Mbit\"", "\"2Mbit\"")), [""; 0]);
}

#[test]
fn rates_above_that_of_the_direction_are_named() {
    let cake = |rate: &str| format!("{{ kind = \"cake\", bandwidth = \"{rate}\" }}");
    let told = "`bandwidth` of the queue of direction `up` lets 11 Mbit/s pass, more than the 10 that there are behind it, so that it holds \
                nothing back; lower it, or leave it out";
    assert_eq!(warnings(&cake("11Mbit"), DRR, ""), [told]);
    assert_eq!(warnings(&cake("10Mbit"), DRR, ""), [""; 0]);
    // A rate that follows the link may be higher.
    let follows = minimal("", &format!("queue = {}", cake("11Mbit")), "").replace(
        "[up]\nrate = \"10Mbit\"",
        "[up]\nrate = \"auto\"\nrate_min = \"1Mbit\"\nrate_max = \"12Mbit\"",
    );
    assert_eq!(load(&follows).warnings(), [""; 0]);
}

#[test]
fn labels_and_tags_that_are_too_narrow_are_named() {
    let csfq = |bits: u32| format!("{{ kind = \"csfq\", bits = {bits} }}");
    let weight = |weight: &str| rule(&format!("weight = {weight}\ndirection = \"up\""));
    // 10 Mb/s for a weight of 0.0001.
    let told = "labels of a flow of rule `calls` would say 100000 Mbit/s for a weight of 1 in the queue of direction `up`, and hold 16106 \
                (`bits` = 8), so that it is not held to its share; write bits = 17, or larger weights for all";
    assert_eq!(warnings(&csfq(8), DRR, &weight("0.0001")), [told]);
    assert_eq!(warnings(&csfq(8), DRR, &weight("0.001")), [""; 0]);
    assert_eq!(warnings(&csfq(17), DRR, &weight("0.0001")), [""; 0]);
    let tickets =
        |bits: u32| rule(&format!("tickets = 250000\nmark = {{ bits = {bits} }}\ndirection = \"up\""));
    // One packet of 1514 B is 1.2112 ms of the direction.
    let told = "packets of 1514B of rule `calls` would carry 303 tickets in direction `up`, and its tags hold 255 (`mark.bits` = 8), so shares \
                do not follow tickets; write mark = { bits = 17 }, or issue fewer tickets to all";
    assert_eq!(warnings("\"tred\"", DRR, &tickets(8)), [told]);
    assert_eq!(warnings("\"tred\"", DRR, &tickets(17)), [""; 0]);
    assert_eq!(warnings("\"tred\"", DRR, &tickets(8).replace("250000", "200000")), [""; 0]);
    let exchange = |bits: u32| {
        let up = format!(
            "queue = \"tred\"\nlabels = {{ reads = true, writes = true }}\ntickets = 250000\nexchange = {{ bits = {bits} }}"
        );
        load(&minimal("", &up, "")).warnings()
    };
    let told = "packets of 1514B of direction `up` would carry 303 tickets at the next router, and its tags hold 255 (`exchange.bits` = 8), \
                so shares do not follow tickets; write exchange = { bits = 17 }, or issue fewer tickets to all";
    assert_eq!(exchange(8), [told]);
    assert_eq!(exchange(17), [""; 0]);
}

#[test]
fn a_buffer_below_a_packet_is_warned_of() {
    let of =
        |queue: &str| load(&minimal("down.queue = \"fifo\"", &format!("queue = {queue}"), "")).warnings();
    let warning = |key: &str, size: &str| {
        format!(
            "up.queue.{key}: {size} is less than a full packet of Ethernet, 1514B with the overhead: it drops every one; write \"1514B\" \
             or more"
        )
    };
    assert_eq!(of("{ kind = \"fifo\", limit = \"1513B\" }"), [warning("limit", "1513B")]);
    assert_eq!(of("{ kind = \"fifo\", limit = \"1514B\" }"), [""; 0]);
    let memory = "{ kind = \"fq_codel\", limit = \"9p\", memory_limit = \"1kB\" }";
    assert_eq!(of(memory), [warning("memory_limit", "1kB")]);
}

#[test]
fn what_no_rule_and_no_queue_uses_is_named() {
    let htb = "{ kind = \"htb\", class = { x = { rate = \"1Mbit\" }, y = { rate = \"1Mbit\" }, o = { rate = \"1Mbit\", others = true } } }";
    let told = "no rule for direction `up` leads to class `y` of its queue; write customer = \"y\" in one, or leave the class out";
    assert_eq!(warnings(htb, DRR, &rule("customer = \"x\"")), [told]);
    let both = rule("customer = \"x\"") + "[[rule]]\nprotocol = 6\ncustomer = \"y\"\n";
    assert_eq!(warnings(htb, DRR, &both), [""; 0]);
    let idle =
        "the queue `ramp` of direction `up` reserves nothing, since no rule for it has class = \"real_rate\"";
    assert_eq!(warnings("{ kind = \"ramp\", recognise = false }", DRR, ""), [idle]);
    assert_eq!(warnings("\"ramp\"", DRR, ""), [""; 0]);
    assert_eq!(warnings("\"ramp\"", DRR, &rule("class = \"real_rate\"\ndirection = \"up\"")), [""; 0]);
    let weights = rule("customer = \"x\"")
        + "[[rule]]\nprotocol = 6\ncustomer = \"y\"\n[customer.x]\nweight = 3\n[customer.y]\nweight = 1\n";
    let told = unheeded(
        "weight",
        "customer `x`",
        "in either direction",
        "shares bandwidth among customers, as \"hcsfq\" does",
        "such a queue",
    );
    assert_eq!(warnings(DRR, DRR, &weights), [told]);
    assert_eq!(warnings("\"hcsfq\"", DRR, &weights), [""; 0]);
    for (key, value, queue) in [
        ("notifications", "/run/n.sock", "\"ramp\", which notifies"),
        ("address", "192.0.2.1", "\"sffc\", which reports"),
    ] {
        let file = format!("{key} = \"{value}\"\ndown.queue = \"drr\"");
        let told =
            format!("`{key}` has no effect: neither direction has a queue such as {queue}; leave it out");
        assert_eq!(load(&minimal(&file, "queue = \"drr\"", "")).warnings(), [told]);
    }
    let tsw = rule("mark = { kind = \"tsw2cm\", cir = \"1Mbit\" }\nrtt = \"50ms\"\ndirection = \"up\"");
    let named = warnings(DRR, DRR, &tsw);
    let keys: Vec<_> = named.iter().map(|line| line.split('`').nth(1).unwrap()).collect();
    assert_eq!(keys, ["rtt", "mark"]);
}
