//! Targets of flows for their queues: in scenarios by flow, on gateways by rule.

use apportion_core::packet::FillTarget;
use apportion_core::units::{Bytes, Span};

use crate::common::{errors, gateway, suite, survives};

/// A scenario whose flow has these lines, from the eleventh line on.
fn with(flow: &str) -> String {
    format!(
        "seed = 1\nstop = \"10s\"\n[link.l]\nfrom = \"a\"\nto = \"b\"\nrate = \"1Mbit\"\ndelay = \"1ms\"\n[flow.f]\n\
         from = \"a\"\nto = \"b\"\n{flow}\n"
    )
}

#[test]
fn a_flow_has_the_target_that_it_names() {
    let target = |lines: &str| {
        let suite = suite(&with(lines));
        survives(&suite);
        suite.points[0].scenario.flows[0].target
    };
    assert_eq!(target("class = \"real_rate\""), None);
    assert_eq!(target("class = \"real_rate\"\ntarget = \"3KiB\""), Some(FillTarget::Size(Bytes::new(3_072))));
    let later =
        "target_delay = \"35ms\"\n[[change]]\nat = \"1s\"\nset = \"flow.f.class\"\nto = \"real_rate\"";
    assert_eq!(target(later), Some(FillTarget::Delay(Span::from_millis(35))));
    // Members of a group differ.
    let suite = suite(&with("count = 2\nclass = \"real_rate\"\ntarget_delay = \"10ms * i\""));
    let targets = suite.points[0].scenario.flows.iter().map(|flow| flow.target).collect::<Vec<_>>();
    assert_eq!(targets, [10, 20].map(|ms| Some(FillTarget::Delay(Span::from_millis(ms)))));
}

#[test]
fn targets_without_a_use_are_refused_with_a_fix() {
    for (lines, expected) in [
        (
            "target = \"3KiB\"",
            "11: flow.f.target: greedy flows share what is left and have no target; write class = \"real_rate\", or leave \
             `target` out",
        ),
        (
            "class = \"greedy\"\ntarget_delay = \"3ms\"",
            "12: flow.f.target_delay: greedy flows share what is left and have no target; write class = \"real_rate\", or \
             leave `target_delay` out",
        ),
        (
            "class = \"real_rate\"\ntarget = \"3KiB\"\ntarget_delay = \"3ms\"",
            "12: flow.f.target: `target_delay` says it already; leave one of them out",
        ),
        (
            "class = \"real_rate\"\ntarget = \"20ms\"",
            "12: flow.f.target: `20ms` is not a size: unknown unit `ms` (known: MB, kB, B, KiB, MiB); write for example \"64kB\"",
        ),
        (
            "class = \"real_rate\"\ntarget_delay = \"0ms\"",
            "12: flow.f.target_delay: `0ms`: a time must be above zero here; write for example \"20ms\"",
        ),
    ] {
        assert_eq!(errors(&with(lines)), [format!("dir/x.toml:{expected}")], "{lines}");
    }
}

#[test]
fn a_rule_of_a_gateway_names_the_target_of_its_flows() {
    let config = gateway::load(gateway::EVERYTHING);
    assert_eq!(config.rules[0].gives.target, Some(FillTarget::Size(Bytes::new(4_096))));
    assert_eq!(config.rules[3].gives.target, Some(FillTarget::Delay(Span::from_millis(50))));
    // The canonical text preserves the target, and a reload notices a change.
    let again = gateway::load(&config.canonical());
    assert_eq!(again, config);
    let changed = gateway::load(&gateway::EVERYTHING.replace("target = \"4KiB\"", "target_delay = \"9ms\""));
    let changes = config.difference(&changed).unwrap().to_string();
    assert!(changes.contains("target_delay: none -> 9ms"), "{changes}");
    let rule = |lines: &str| gateway::minimal("", "", &format!("[[rule]]\n{lines}"));
    gateway::refused(
        &rule("target = \"4KiB\""),
        9,
        "rule[1].target: greedy flows share what is left and have no target; write class = \"real_rate\", or leave `target` \
         out",
    );
    gateway::refused(
        &rule("class = \"real_rate\"\ntarget_delay = \"1ms\"\ntarget = \"4KiB\""),
        11,
        "rule[1].target: `target_delay` says it already; leave one of them out",
    );
}

#[test]
fn rules_of_gateways_are_refused_in_scenarios() {
    let rule = "class = \"real_rate\"\n[[rule]]\nto_port = 5004\nclass = \"real_rate\"";
    let expected = "dir/x.toml:12: rule: rules go by addresses and ports, which the simulator's packets do not have; write \
                    the keys of a flow in its table, such as class = \"real_rate\" under [flow.NAME]";
    assert_eq!(errors(&with(rule)), [expected]);
}
