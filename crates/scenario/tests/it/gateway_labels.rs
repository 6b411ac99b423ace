//! Consistency of a gateway's keys about labels and tickets.

use crate::common::gateway::{error, load, minimal, try_load};

const BOTH: &str = "labels = { reads = true, writes = true }";

#[test]
fn tickets_need_labels_and_labels_need_a_use() {
    let paths = |up: &str, rest: &str| -> Vec<String> {
        let errors = try_load(&minimal("", up, rest)).err().unwrap_or_default();
        errors.iter().map(|error| error.split(": ").nth(1).unwrap().to_owned()).collect()
    };
    let issued = "[[rule]]\nprotocol = 6\ntickets = 100";
    let fine: [(&str, &str); 9] = [
        ("queue = \"tred\"", issued),
        ("labels.writes = true", issued),
        ("queue = \"tred\"\nlabels.reads = true", ""),
        (BOTH, ""),
        ("tickets = 5\nlabels = { reads = true, writes = true }", ""),
        ("tickets = 5\nlabels.writes = true", issued),
        ("queue = \"csfq\"", ""),
        ("queue = \"csfq\"\nlabels.writes = true", ""),
        ("queue = { kind = \"csfq\", role = \"core\", egress = true }\nlabels.reads = true", ""),
    ];
    for (up, rest) in fine {
        assert_eq!(paths(up, rest), [""; 0], "{up} {rest}");
    }
    for (up, rest, expected) in [
        // Tickets without labels.
        ("", issued, &["rule[1].tickets"][..]),
        ("tickets = 5", "", &["up.tickets"]),
        ("tickets = 5\nlabels.reads = true", "", &["up.tickets", "up.labels"]),
        ("ack_tickets = 5", "", &["up.ack_tickets"]),
        ("ack_tickets = 5\nlabels = { reads = true, writes = true }", "", &["up.ack_tickets"]),
        // Labels without tickets.
        ("queue = \"tred\"", "", &["up.queue"]),
        ("labels.writes = true", "", &["up.labels"]),
        ("labels.reads = true", "", &["up.labels"]),
        // One label on a packet.
        ("queue = \"csfq\"\nlabels.writes = true", issued, &["rule[1].tickets"]),
        ("queue = \"hcsfq\"\ntickets = 5\nlabels.writes = true", "", &["up.tickets"]),
        ("queue = \"ppv\"\ntickets = 5\nlabels.writes = true", "", &["up.tickets"]),
        // Roles of queues.
        ("queue = { kind = \"csfq\", role = \"core\" }", "", &["up.queue"]),
        ("queue = { kind = \"pvpie\", role = \"core\" }", "", &["up.queue"]),
        ("queue = { kind = \"csfq\", egress = true }\nlabels.writes = true", "", &["up.labels"]),
    ] {
        assert_eq!(paths(up, rest), expected, "{up} {rest}");
    }
    let down = format!("down.rate = \"10Mbit\"\ndown.{BOTH}\ndown.exchange = {{ window = \"3s\" }}");
    let receivers =
        minimal("", &format!("ack_tickets = 5\n{BOTH}"), "").replace("down.rate = \"10Mbit\"", &down);
    let config = load(&receivers);
    assert!(
        config.up.exchange.is_some() && config.down.exchange.is_some(),
        "data there, acknowledgements here"
    );
    let both = receivers.replace("ack_tickets = 5", "ack_tickets = 5\ntickets = 5");
    assert!(
        error(&both).contains("up.ack_tickets: with `ack_tickets`, acknowledgements carry"),
        "{}",
        error(&both)
    );
}

#[test]
fn what_acknowledgements_bring_comes_and_goes_in_the_other_direction() {
    let paths = |up: &str, down: &str, rule: &str| -> Vec<String> {
        let text = minimal("", up, &format!("[[rule]]\nprotocol = 6\n{rule}"))
            .replace("[up]", &format!("{down}[up]"));
        let errors = try_load(&text).err().unwrap_or_default();
        errors.iter().map(|error| error.split(": ").nth(1).unwrap().to_owned()).collect()
    };
    let down = |labels: &str| format!("down.labels = {{ {labels} }}\n");
    let [both, reads, writes] = ["reads = true, writes = true", "reads = true", "writes = true"].map(down);
    for (up, down, rule) in [
        // At the sink they are written on packets that go down; nearer to the source they are read from
        // there.
        ("", &*writes, "direction = \"up\"\nack_tickets = 5"),
        ("labels.writes = true", &reads, "direction = \"up\"\nmark = \"tickets\""),
        ("queue = \"tred\"", &reads, "direction = \"up\"\nmark = \"tickets\""),
        (BOTH, &both, "mark = \"tickets\""),
        (BOTH, &both, "ack_tickets = 5\nmark = { kind = \"tickets\", window = \"1s\" }"),
    ] {
        assert_eq!(paths(up, down, rule), [""; 0], "{up} {down} {rule}");
    }
    for (up, down, rule, expected) in [
        ("", "", "direction = \"up\"\nack_tickets = 5", "rule[1].ack_tickets"),
        (BOTH, "", "direction = \"up\"\nmark = \"tickets\"", "rule[1].mark"),
        (BOTH, "", "mark = \"tickets\"", "rule[1].mark"),
        ("", &reads, "direction = \"up\"\nmark = \"tickets\"", "rule[1].mark"),
        (
            "queue = \"csfq\"\nlabels.writes = true",
            &reads,
            "direction = \"up\"\nmark = \"tickets\"",
            "rule[1].mark",
        ),
        (
            BOTH,
            &*("down.queue = \"csfq\"\n".to_owned() + &writes),
            "direction = \"up\"\nack_tickets = 5",
            "rule[1].ack_tickets",
        ),
    ] {
        assert_eq!(paths(up, down, rule), [expected], "{up} {down} {rule}");
    }
    let udp = minimal("", BOTH, "[[rule]]\nprotocol = \"udp\"\ndirection = \"down\"\nack_tickets = 5");
    assert_eq!(
        error(&udp),
        "dir/x.toml:11: rule[1].ack_tickets: only a flow with TCP has acknowledgements to carry them; write for example \
         protocol = \"tcp\", or issue `tickets` to the source"
    );
}
