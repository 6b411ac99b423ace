use std::path::Path;

use apportion_core::units::Rate;

use super::*;

fn load(text: &str) -> Result<Scenario, Vec<String>> {
    let suite = crate::load(text, Path::new("x.toml"), &[], &|path| std::fs::read(path));
    let suite = suite.map_err(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    Ok(suite.points[0].scenario.clone())
}

/// Hosts `a`, `b` at operator `p`, `c` at operator `q`; both at the transit `t`, whose customer `s` has the hosts `x`, `y`.
/// Links up to `t` have 6 Mb/s, others 100.
fn tree(more: &str) -> String {
    let link = |from: &str, to: &str, rate: u32| {
        format!("[link.{from}{to}]\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"{rate}Mbit\"\n")
    };
    let links = [("a", "p", 100), ("b", "p", 100), ("c", "q", 100), ("p", "t", 100), ("q", "t", 100)];
    let down = [("t", "s", 6), ("s", "x", 100), ("s", "y", 100)];
    let links: String = links.iter().chain(&down).map(|(from, to, rate)| link(from, to, *rate)).collect();
    format!("seed = 1\nstop = \"20s\"\n[defaults.link]\ndelay = \"1ms\"\nqueue = \"rcs\"\n{links}{more}")
}

const AGREEMENTS: &str = r#"
[agreement.p]
payer = "p"
provider = "t"
weight = 2
[agreement.q]
payer = "q"
provider = "t"
[agreement.s]
payer = "s"
provider = "t"
weight = 3
"#;

fn flow(name: &str, from: &str, to: &str) -> String {
    format!("[flow.{name}]\nfrom = \"{from}\"\nto = \"{to}\"\ntcp = \"rfc\"\n")
}

fn id(scenario: &Scenario, name: &str) -> LinkId {
    LinkId(position(&scenario.links, name, |link| &link.name).unwrap() as u32)
}

fn shares(scenario: &Scenario) -> Option<Vec<f64>> {
    let of = |all: Vec<Rate>| all.into_iter().map(Rate::as_mbit_f64).collect();
    scenario.entitlements().map(of)
}

#[test]
fn a_link_that_goes_down_is_divided_by_receivers() {
    // Of 6 Mb/s to `s`, 3 go to each of its hosts; the two senders to `y` divide 3.
    let flows = flow("f", "a", "x") + &flow("g", "b", "y") + &flow("h", "c", "y");
    let scenario = load(&tree(&(AGREEMENTS.to_owned() + &flows))).unwrap();
    let rights = scenario.rights().remove(&id(&scenario, "ts")).unwrap();
    assert_eq!(rights.vertices, [Right { parent: None, weight: 1.0 }; 2]);
    assert_eq!(rights.of_flows, [(0, Some(0)), (1, Some(1)), (2, Some(1))]);
    assert_eq!(shares(&scenario), Some(vec![3.0, 1.5, 1.5]));
    assert_eq!(scenario.idle_agreements(), None);
}

#[test]
fn a_link_that_goes_up_is_divided_by_senders() {
    // Over `tu` of 6 Mb/s, which `t` pays: 4 to `p`, 2 each for `a` and `b`; 2 to `q`. Of `q`'s own packets and
    // those of its host `c` each has a half. Acknowledgements of `k` cross it too.
    let more = "[link.tu]\nfrom = \"t\"\nto = \"u\"\nrate = \"6Mbit\"\n[link.uz]\nfrom = \"u\"\nto = \"z\"\nrate = \"1Gbit\"\n\
                [agreement.t]\npayer = \"t\"\nprovider = \"u\"\n";
    let flows =
        ["a", "b", "c", "q"].map(|from| flow(&format!("f{from}"), from, "z")).concat() + &flow("k", "z", "a");
    let scenario = load(&tree(&(AGREEMENTS.to_owned() + more + &flows))).unwrap();
    let rights = scenario.rights().remove(&id(&scenario, "tu")).unwrap();
    let right = |parent, weight| Right { parent, weight };
    let expected = [
        right(None, 2.0),
        right(Some(0), 1.0),
        right(Some(0), 1.0),
        right(None, 1.0),
        right(Some(3), 1.0),
        right(Some(3), 1.0),
    ];
    assert_eq!(rights.vertices, expected);
    assert_eq!(rights.of_flows, [(0, Some(1)), (1, Some(2)), (2, Some(4)), (3, Some(5)), (4, Some(1))]);
    assert_eq!(shares(&scenario).map(|shares| shares[..4].to_vec()), Some(vec![2.0, 2.0, 1.0, 1.0]));
}

#[test]
fn without_agreements_sending_hosts_have_equal_parts() {
    let wire = "[topology]\nkind = \"dumbbell\"\npairs = 2\naccess = { rate = \"100Mbit\", delay = \"1ms\" }\n\
                bottleneck = { rate = \"6Mbit\", delay = \"1ms\", queue = \"rcs\" }\n";
    let flows = "[flow.f]\nfrom = \"l1\"\nto = \"r1\"\ntcp = \"rfc\"\ncount = 3\n[flow.g]\nfrom = \"l2\"\nto = \"r2\"\ntcp = \"rfc\"\n";
    let scenario = load(&format!("seed = 1\nstop = \"20s\"\n{wire}{flows}")).unwrap();
    assert_eq!(shares(&scenario), Some(vec![1.0, 1.0, 1.0, 3.0]));
    assert!(scenario.idle_agreements().unwrap().contains("none is written"));
}

#[test]
fn several_equilibria_leave_entitlements_open() {
    // Uphill the senders' operators weigh 2:1, downhill the receivers' agreements 1:2, on links of equal rate.
    let text = r#"
        seed = 1
        stop = "20s"
        defaults.link = { delay = "1ms", rate = "100Mbit", queue = "rcs" }
        link.at = { from = "a", to = "t" }
        link.bt = { from = "b", to = "t" }
        link.tu = { from = "t", to = "u", rate = "3Mbit" }
        link.uv = { from = "u", to = "v", rate = "3Mbit" }
        link.vx = { from = "v", to = "x" }
        link.vy = { from = "v", to = "y" }
        agreement.a = { payer = "a", provider = "t", weight = 2 }
        agreement.t = { payer = "t", provider = "u" }
        agreement.v = { payer = "v", provider = "u" }
        agreement.y = { payer = "y", provider = "v", weight = 2 }
        flow.f = { from = "a", to = "x", tcp = "rfc" }
        flow.g = { from = "b", to = "y", tcp = "rfc" }
    "#;
    let scenario = load(text).unwrap();
    assert_eq!(shares(&scenario), None);
    assert!(scenario.idle_agreements().unwrap().contains("several divisions"));
    // With a narrower link up, which decides alone, there is one.
    let scenario =
        load(&text.replace("to = \"v\", rate = \"3Mbit\"", "to = \"v\", rate = \"6Mbit\"")).unwrap();
    assert_eq!(shares(&scenario), Some(vec![2.0, 1.0]));
}

#[test]
fn what_defines_no_rights_is_refused_once_with_its_line() {
    let flows = flow("f", "a", "x");
    let with = |more: &str| tree(&format!("{more}{flows}"));
    for (text, part) in [
        (
            with(""),
            "flow.f: its packets cross link `ts`, for which neither `t` nor `s` pays, after link `pt`, for which \
             neither `p` nor `t` pays: the nodes in between would carry them for nothing; write an [agreement.NAME]",
        ),
        (
            with(
                "[agreement.t]\npayer = \"t\"\nprovider = \"p\"\n[agreement.s]\npayer = \"t\"\nprovider = \"s\"\n",
            ),
            "link `ts`, for which `t` pays `s`, after link `pt`, for which `t` pays `p`",
        ),
        (
            with("[agreement.p]\npayer = \"p\"\nprovider = \"tt\"\n"),
            "x.toml:40: agreement.p.provider: there is no node `tt` (did you mean `t`?)",
        ),
        (
            with("[agreement.p]\npayer = \"a\"\nprovider = \"t\"\n"),
            "agreement.p.provider: no link joins `a` and `t`; name two nodes that a link joins",
        ),
        (with("[agreement.p]\npayer = \"a\"\nprovider = \"a\"\n"), "no link joins `a` and `a`"),
        (with("[agreement.p]\npayer = \"a\"\n"), "agreement.p.provider: missing"),
        (with("[agreement.p]\npayer = \"a\"\nprovider = \"p\"\nweight = 0\n"), "agreement.p.weight: "),
        (
            with(
                "[agreement.p]\npayer = \"p\"\nprovider = \"t\"\n[agreement.t]\npayer = \"t\"\nprovider = \"p\"\n",
            ),
            "agreement.t.payer: `p` is between these nodes already; leave one out",
        ),
        (with("[agreement]\np = 5\n"), "agreement.p: `5` is an integer, not a table"),
        (with("[agreements.p]\npayer = \"p\"\n"), "did you mean `agreement`?"),
        (
            with(AGREEMENTS) + "guarantee = \"1Mbit\"\n",
            "flow.f: agreements divide links by weights alone; leave `guarantee` or the agreements out",
        ),
    ] {
        let problems = load(&text).unwrap_err();
        assert!(problems.len() == 1 && problems[0].contains(part), "{part} in {problems:?}");
    }
}

#[test]
fn payments_in_a_circle_are_named() {
    let text = r#"
        seed = 1
        stop = "20s"
        defaults.link = { delay = "1ms", rate = "6Mbit" }
        link.ab = { from = "a", to = "b" }
        link.bc = { from = "b", to = "c" }
        link.ca = { from = "c", to = "a" }
        link.hc = { from = "h", to = "c" }
        agreement.h = { payer = "h", provider = "c" }
        agreement.x = { payer = "a", provider = "b" }
        agreement.y = { payer = "b", provider = "c" }
        agreement.z = { payer = "c", provider = "a" }
        flow.f = { from = "a", to = "b", tcp = "rfc" }
    "#;
    let problems = load(text).unwrap_err();
    assert!(
        problems[0].contains("payments go in a circle: ") && problems[0].contains("leave one"),
        "{problems:?}"
    );
    assert_eq!(problems.len(), 1);
    let only_defined = load(&text.replace("agreement.z = { payer = \"c\", provider = \"a\" }", "")).unwrap();
    assert!(only_defined.idle_agreements().unwrap().contains("no queue divides by them"));
}
