//! The key `isolate` of queues: its values, and contradictions.

use std::path::Path;

use apportion_core::system::isolate::Isolate;
use apportion_scenario::gateway::GatewayConfig;
use apportion_scenario::{Suite, load};

fn scenario(queue: &str, more: &str) -> Result<Suite, Vec<String>> {
    let text = format!(
        "seed = 1\nstop = \"9s\"\nlink.x = {{ from = \"a\", to = \"b\", rate = \"9Mbit\", delay = \"1ms\", queue = {queue} }}\n\
         [flow.f]\nfrom = \"a\"\nto = \"b\"\ntcp = \"rfc\"\n{more}"
    );
    let suite = load(&text, Path::new("x.toml"), &[], &|path| std::fs::read(path));
    suite.map_err(|problems| problems.iter().map(ToString::to_string).collect())
}

#[test]
fn it_is_a_word_of_any_queue_and_can_be_swept() {
    let suite = scenario(
        "{ kind = \"stfq\", drop = \"pfd\", isolate = [\"source\", \"destination\", \"both\"] }",
        "",
    );
    let suite = suite.unwrap_or_else(|problems| panic!("{problems:?}"));
    let isolate = |queue: &apportion_core::system::DisciplineParams| queue.isolate();
    let read: Vec<_> = suite
        .points
        .iter()
        .map(|point| (point.label.as_str(), isolate(&point.scenario.links[0].queue)))
        .collect();
    let [source, destination, both] = [Isolate::Source, Isolate::Destination, Isolate::Both].map(Some);
    let label = |word: &str| format!("isolate={word}");
    let labels = ["source", "destination", "both"].map(label);
    assert_eq!(read, [(&*labels[0], source), (&*labels[1], destination), (&*labels[2], both)]);
    let again = load(&suite.canonical, Path::new("x.toml"), &[], &|path| std::fs::read(path));
    assert_eq!(again.map(|again| again.hash), Ok(suite.hash));
}

#[test]
fn guarantees_contradict_it_at_the_start_and_later() {
    const MESSAGE: &str = "flow.f.guarantee: the queue of link `x` is fair among hosts, and a guarantee is of a flow; leave \
                           `guarantee` out, or `isolate` of that queue";
    const DRR: &str = "{ kind = \"drr\", isolate = \"both\" }";
    let later = |set: &str, to: &str| format!("[[change]]\nat = \"1s\"\nset = \"{set}\"\nto = {to}\n");
    let given = "guarantee = \"1Mbit\"\n".to_owned();
    for (queue, more) in [
        (DRR, given.clone()),
        ("\"drr\"", given + &later("link.x.queue", DRR)),
        (DRR, later("flow.f.guarantee", "\"1Mbit\"")),
    ] {
        let problems = scenario(queue, &more).err().unwrap_or_default();
        assert!(problems.iter().any(|problem| problem.ends_with(MESSAGE)), "{problems:?}");
    }
    assert!(scenario(DRR, "").is_ok());
}

#[test]
fn a_gateway_refuses_guarantees_in_that_direction_alone() {
    let config = |direction: &str| {
        let text = format!(
            "inside = \"a\"\noutside = \"b\"\ndown.rate = \"9Mbit\"\n[up]\nrate = \"9Mbit\"\n\
             queue = {{ kind = \"csfq\", isolate = \"source\" }}\n[[rule]]\n{direction}guarantee = \"1Mbit\"\n"
        );
        let loaded = GatewayConfig::load(&text, Path::new("x.toml"));
        loaded.map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    assert!(config("direction = \"down\"\n").is_ok());
    let problems = config("").err().unwrap_or_default();
    let message = "rule[1].guarantee: the queue of `up` is fair among hosts, and a guarantee is of a flow; leave `guarantee` \
                   out, or `isolate` of that queue";
    assert!(problems.iter().any(|problem| problem.ends_with(message)), "{problems:?}");
}
