//! Sentences about sources that do not send all the time: they do not claim that a flow got too little if it
//! needed no more.

use apportion::{Run, ScenarioBuilder};

/// Returns the summary of flows over a link without drops.
fn summary(flows: &str) -> String {
    let text = format!(
        "seed = 1\nstop = \"14s\"\nmeasure_from = \"2s\"\n\
         link.x = {{ from = \"a\", to = \"b\", rate = \"50Mbit\", delay = \"5ms\", watch = true }}\n{flows}"
    );
    let results = Run::new(&ScenarioBuilder::from_text(&text).load().unwrap()).simulate().unwrap();
    assert!(results.report().contains("its entitlement."), "{flows}");
    results.summary()
}

fn flow(name: &str, source: &str) -> String {
    format!("flow.{name} = {{ from = \"a\", to = \"b\", {source} }}\n")
}

#[test]
fn a_source_whose_rate_varies_gets_its_entitlement_where_nothing_is_in_its_way() {
    let all = [
        ("video", "source = { kind = \"video\", mean = \"1Mbit\" }"),
        ("calls", "source = { kind = \"poisson\", rate = \"100kbit\" }"),
        ("slow", "source = { kind = \"on_off\", rate = \"2Mbit\", on = \"2s\", off = \"1s\" }"),
        (
            "fast",
            "source = { kind = \"on_off\", rate = \"2Mbit\", on = \"20ms\", off = \"20ms\", shape = \"pareto\" }",
        ),
        ("steps", "source = { kind = \"cbr\", rate = \"2Mbit\" }"),
    ];
    let flows: String = all.iter().map(|(name, source)| flow(name, source)).collect();
    let change = "change = [{ at = \"6s\", set = \"flow.steps.rate\", to = \"5Mbit\" }, \
                  { at = \"9s\", set = \"flow.steps.rate\", to = \"1Mbit\" }]\n";
    let text = summary(&format!("{flows}{change}"));
    assert!(text.contains("Every flow is within 1 % of its entitlement."), "{text}");
}

#[test]
fn short_transfers_are_not_said_to_get_little() {
    let short = flow(
        "mice",
        "tcp = \"rfc\", source = { kind = \"short_flows\", per_second = 5, mean_size = \"10kB\" }",
    );
    let steady = flow("cbr", "source = { kind = \"cbr\", rate = \"1Mbit\" }");
    let text = summary(&format!("{short}{steady}"));
    assert!(
        text.contains("cbr got 1.00 Mb/s, 100 % of its entitlement.") && !text.contains("only"),
        "{text}"
    );
    assert!(!text.contains("Worst second: mice"), "{text}");
    let two = flow("other", "source = { kind = \"cbr\", rate = \"1Mbit\" }");
    let text = summary(&format!("{short}{steady}{two}"));
    assert!(text.contains("Every flow but finite transfers gets its entitlement."), "{text}");
}
