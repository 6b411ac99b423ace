//! Keys of `cake` about header fields that packets of scenarios do not have.

use std::path::Path;

use apportion_scenario::gateway::GatewayConfig;
use apportion_scenario::load;

fn problems(queue: &str, more: &str) -> Vec<String> {
    let text = format!(
        "seed = 1\nstop = \"9s\"\nlink.x = {{ from = \"a\", to = \"b\", rate = \"9Mbit\", delay = \"1ms\", queue = {queue} }}\n\
         [flow.f]\nfrom = \"a\"\nto = \"b\"\n{more}"
    );
    let suite = load(&text, Path::new("x.toml"), &[], &|path| std::fs::read(path));
    suite.err().unwrap_or_default().iter().map(ToString::to_string).collect()
}

#[test]
fn tins_by_dscp_are_for_gateways() {
    for tins in ["diffserv3", "diffserv4", "diffserv8", "precedence"] {
        let queue = format!("{{ kind = \"cake\", tins = \"{tins}\" }}");
        let change = format!("[[change]]\nat = \"1s\"\nset = \"link.x.queue\"\nto = {queue}\n");
        for (queue, more) in [(&*queue, ""), ("\"cake\"", &*change)] {
            let found = problems(queue, more);
            let message = "tins: packets have no DSCP here, only those of gateways do; write \"class\", and class = \"real_rate\" for flows";
            assert!(found.len() == 1 && found[0].ends_with(message), "{found:?}");
        }
        let text = format!(
            "inside = \"a\"\noutside = \"b\"\ndown.rate = \"9Mbit\"\n[up]\nrate = \"9Mbit\"\nqueue = {queue}\n"
        );
        assert!(GatewayConfig::load(&text, Path::new("x.toml")).is_ok());
    }
    for tins in ["class", "besteffort"] {
        assert_eq!(problems(&format!("{{ kind = \"cake\", tins = \"{tins}\" }}"), ""), [""; 0]);
    }
}

#[test]
fn hosts_have_no_headers() {
    let found = problems("{ kind = \"cake\", ack_filter = \"aggressive\", isolate = \"source\" }", "");
    let message = "isolate: `cake` goes by TCP headers, which hosts do not have; leave `isolate` out, or take another discipline, such as \"drr\"";
    assert!(found.len() == 1 && found[0].ends_with(message), "{found:?}");
}
