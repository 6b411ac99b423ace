//! Rules of a gateway's configuration: their meaning, and refusals.

use apportion_core::units::Rate;
use apportion_scenario::gateway::Direction;
use apportion_scenario::gateway::classifier::Headers;

use crate::common::gateway::{error, load, minimal, refused};

#[test]
fn a_direction_decides_by_the_rules_that_hold_in_it() {
    let rules = "[[rule]]\ndirection = \"down\"\nprotocol = \"tcp\"\n[[rule]]\ndirection = \"up\"\nprotocol = \"tcp\"\n\
                 [[rule]]\nname = \"rest\"";
    let config = load(&minimal("", "", rules));
    let tcp = Headers {
        protocol: 6,
        source: "192.0.2.1".parse().unwrap(),
        destination: "192.0.2.2".parse().unwrap(),
        ports: Some((1, 2)),
        dscp: 0,
    };
    let udp = Headers { protocol: 17, ..tcp };
    let decide = |headers| Direction::BOTH.map(|way| config.direction(way).rules.first(headers));
    assert_eq!(decide(&tcp), [Some(1), Some(0)]);
    assert_eq!(decide(&udp), [Some(2), Some(2)]);
}

#[test]
fn values_of_a_rule_are_refused_with_a_fix() {
    // The rule starts on the eighth line; the error is on the ninth.
    for (line, expected) in [
        ("direction = \"out\"", "direction: `out` is not known here; known: up, down"),
        (
            "protocol = \"upd\"",
            "protocol: `upd` is not a protocol (did you mean `udp`?); write 0 to 255, or one of icmp, tcp, \
                                udp, icmpv6",
        ),
        (
            "protocol = 256",
            "protocol: `256` is not a protocol; write 0 to 255, or one of icmp, tcp, udp, icmpv6",
        ),
        (
            "from = \"home\"",
            "from: `home` is neither an address nor a prefix; write for example \"192.168.1.0/24\"",
        ),
        (
            "from = \"10.0.0.0/x\"",
            "from: `10.0.0.0/x` is neither an address nor a prefix; write for example \
                                   \"192.168.1.0/24\"",
        ),
        ("from = \"10.0.0.0/33\"", "from: /33 is longer than the 32 bits of 10.0.0.0"),
        ("to = \"10.0.0.1/8\"", "to: 10.0.0.1 has bits set after the first 8; write 10.0.0.0/8"),
        (
            "from_port = \"http\"",
            "from_port: `http` is neither a port nor a range; write 0 to 65535, or for example \
                                  \"5004-5005\"",
        ),
        (
            "to_port = 65536",
            "to_port: `65536` is neither a port nor a range; write 0 to 65535, or for example \"5004-5005\"",
        ),
        ("to_port = \"9-8\"", "to_port: no port is from 9 to 8; swap them"),
        ("to_port = [9]", "to_port: `[9]` is a list; write for example 443"),
        (
            "dscp = 64",
            "dscp: `64` is not a codepoint; write 0 to 63, or one of cs0, cs1, cs2, cs3, cs4, cs5, cs6, \
                       cs7, af11, af12, af13, af21, af22, af23, af31, af32, af33, af41, af42, af43, ef, va, \
                       voice-admit, le, df, be",
        ),
        ("class = \"fast\"", "class: `fast` is not known here; known: greedy, real_rate"),
        ("weight = 0", "weight: `0`: a number must be above zero here; write for example 2.5"),
        ("weight = \"2 * i\"", "weight: `2 * i` is a formula of `i`, but there is no `i` here"),
        (
            "guarantee = \"1\"",
            "guarantee: `1` is not a rate: the unit is missing; write for example \"10Mbit\"",
        ),
        ("rtt = \"0ms\"", "rtt: `0ms`: a time must be above zero here; write for example \"20ms\""),
        (
            "flows = \"some\"",
            "flows: `some` does not say what counts as one flow; write \"each\", \"one\" or for example \"address/32\", \
             with a length for IPv6 \"address/32/56\"",
        ),
        (
            "flows = \"address/33\"",
            "flows: `address/33` does not say what counts as one flow; write \"each\", \"one\" or for example \
             \"address/32\", with a length for IPv6 \"address/32/56\"",
        ),
        ("name = \"\"", "name: `` is not a name; write for example \"name\""),
        (
            "mark = \"tickets\"",
            "mark: no tickets are issued to the flow; write for example tickets = 100, or labels = { reads \
             = true } for `up`, where acknowledgements carry them",
        ),
        (
            "ack_tickets = 5",
            "ack_tickets: acknowledgements carry these tickets, but leave `up` without labels; write labels \
             = { writes = true } there, or leave `ack_tickets` out",
        ),
        (
            "label_limit = \"3Mbit\"",
            "label_limit: no label of these packets is trusted; write labels = { reads = true } for their direction, \
             or leave `label_limit` out",
        ),
        (
            "guarantee_limit = \"3Mbit\"",
            "guarantee_limit: the rule guarantees nothing; write for example guarantee = \"1Mbit\", or leave \
             `guarantee_limit` out",
        ),
        (
            "guarantee_limit_per_host = \"3Mbit\"\nguarantee = \"1Mbit\"\nflows = \"address/24\"",
            "guarantee_limit_per_host: each address or network is one flow of this rule and has one guarantee; leave \
             `guarantee_limit_per_host` out, or write `guarantee_limit` for all of them",
        ),
        (
            "guarantee_limit_per_host = \"3Mbit\"\nguarantee = \"1Mbit\"\nflows = \"one\"",
            "guarantee_limit_per_host: the flows of this rule are one and share one guarantee; leave \
             `guarantee_limit_per_host` out",
        ),
        (
            "guarantee_limit = \"3Mbit\"\nguarantee = \"3001kbit\"",
            "guarantee_limit: no flow fits: each is guaranteed 3001kbit; write at least \"3001kbit\"",
        ),
        (
            "guarantee = \"11Mbit\"\ndirection = \"up\"",
            "guarantee: direction `up` carries 10Mbit, but 11Mbit is guaranteed to one flow of each rule \
          (11Mbit to `rule 1`); guarantee 1Mbit less, or give the direction a rate of 11Mbit",
        ),
    ] {
        refused(&minimal("", "", &format!("[[rule]]\n{line}")), 9, &format!("rule[1].{expected}"));
    }
    let tickets = minimal(
        "",
        "labels = { writes = true }",
        "[[rule]]\nmark = { kind = \"tsw2cm\", cir = \"1Mbit\" }\ntickets = 5",
    );
    refused(
        &tickets,
        9,
        "rule[1].mark: only the marker `tickets` writes issued tickets on packets; write mark = \
         \"tickets\", or leave `tickets` and `ack_tickets` out",
    );
    refused(
        &minimal("", "labels = { writes = true }", "[[rule]]\ncustomer = \"a\"\ntickets = 5"),
        9,
        "rule[1].customer: a customer's bandwidth is shared among its flows by their weights; leave `tickets` or \
         `customer` out",
    );
    let both = minimal("", "queue = \"hcsfq\"", "[[rule]]\ncustomer = \"a\"\nguarantee = \"1Mbit\"");
    assert_eq!(load(&both).rules[0].gives.guarantee, Rate::from_mbit(1));
}

#[test]
fn conditions_that_contradict_each_other_are_refused() {
    for (lines, expected) in [
        (
            "from = \"10.0.0.0/8\"\nto = \"::1\"",
            "10: rule[1].to: no packet goes from 10.0.0.0/8 to ::1: one is IPv4, the other IPv6; use one \
             version for both",
        ),
        (
            "protocol = \"icmp\"\nfrom_port = 7",
            "10: rule[1].from_port: packets of protocol icmp have no ports; leave \
                                               `from_port` or `protocol` out",
        ),
        (
            "protocol = 47\nto_port = 7",
            "10: rule[1].to_port: packets of protocol 47 have no ports; leave `to_port` or \
                                       `protocol` out",
        ),
    ] {
        assert_eq!(error(&minimal("", "", &format!("[[rule]]\n{lines}"))), format!("dir/x.toml:{expected}"));
    }
}

#[test]
fn rules_that_never_decide_and_names_that_are_taken_are_refused() {
    let rules =
        |first: &str, second: &str| minimal("", "", &format!("[[rule]]\n{first}\n[[rule]]\n{second}"));
    refused(
        &rules("name = \"all\"", "protocol = 6"),
        10,
        "rule[2]: it never applies: rule[1], `all`, comes first and matches everything; write it before \
         that one, or leave it out",
    );
    refused(
        &rules("from = \"10.0.0.0/8\"", "from = \"10.1.0.0/16\"\ndirection = \"up\""),
        10,
        "rule[2]: it never applies: rule[1], `rule 1`, comes first and matches all of that; write it before \
         that one, or leave it out",
    );
    // A rule of one direction does not affect the other.
    load(&rules("direction = \"up\"", "direction = \"down\""));
    load(&rules("direction = \"up\"", ""));
    load(&rules("from = \"10.1.0.0/16\"", "from = \"10.0.0.0/8\""));
    refused(
        &rules("name = \"a\"\nprotocol = 6", "name = \"a\""),
        12,
        "rule[2].name: rule[1] is called `a` already; rename one",
    );
    refused(
        &rules("name = \"rule 2\"\nprotocol = 6", ""),
        11,
        "rule[2].name: rule[1] is called `rule 2` already; rename one",
    );
    refused(
        &rules("name = \"not IP\"", "protocol = 6").replacen("[[rule]]", "[[rule]]\nto_port = 1", 1),
        10,
        "rule[1].name: metrics use `not IP` for packets that no rule matches; take another name",
    );
}

#[test]
fn guarantees_fit_each_direction_by_one_flow_of_each_rule() {
    let rules =
        "[[rule]]\nprotocol = 6\nguarantee = \"6Mbit\"\n[[rule]]\ndirection = \"up\"\nguarantee = \"4Mbit\"";
    load(&minimal("", "", rules));
    // 6 + 4.1 Mb/s in a direction of 10.
    refused(
        &minimal("", "", &rules.replace("4Mbit", "4.1Mbit")),
        10,
        "rule[1].guarantee: direction `up` carries 10Mbit, but 10100kbit is guaranteed to one flow of each \
         rule (6Mbit to `rule 1`, 4100kbit to `rule 2`); guarantee 100kbit less, or give the direction a \
         rate of 10100kbit",
    );
}
