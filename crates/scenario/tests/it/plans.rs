//! Plans: classes and customers from a file.

use std::path::Path;

use apportion_core::packet::CustomerId;
use apportion_core::system::{DisciplineKind, DisciplineParams};
use apportion_core::units::Rate;
use apportion_scenario::gateway::{GatewayConfig, Setting};
use apportion_scenario::{Suite, load, read_file};

const PLANS: &str = "\
name,   parent, addresses,                 down,    up,     down_min, up_min
# The site and its two masts.
site,   ,       ,                          100Mbit, 40Mbit, ,
north,  site,   ,                          80Mbit,  ,       ,
south,  site,   ,                          80Mbit,  20Mbit, ,
smith,  north,  192.0.2.10 2001:db8:1::/48, 50Mbit, 10Mbit, 20Mbit,   2Mbit
jones,  north,  192.0.2.64/26,             100Mbit, 10Mbit, ,
weber,  north,  192.0.2.0/24,              50Mbit,  5Mbit,  ,
others, south,  ,                          ,        ,       ,
";

/// Each class: its name, its assured rate, and its ceiling, in Mbit/s.
fn classes(queue: &DisciplineParams) -> Vec<(String, f64, f64)> {
    let DisciplineKind::Htb(htb) = &queue.kind else { panic!("{:?}", queue.kind) };
    let mbit = |rate: Rate| (rate.as_bit() as f64 / 1e4).round() / 1e2;
    let one = |class: &apportion_core::system::classes::Class<apportion_core::system::htb::HtbClass>| {
        (class.name.clone(), mbit(class.params.rate), mbit(class.params.ceil))
    };
    htb.class.all().iter().map(one).collect()
}

fn expected(classes: &[(&str, f64, f64)]) -> Vec<(String, f64, f64)> {
    classes.iter().map(|(name, rate, ceil)| ((*name).to_owned(), *rate, *ceil)).collect()
}

fn scenario(plans: &str, queue: &str) -> Result<Suite, Vec<String>> {
    let text = format!(
        "seed = 1\nstop = \"9s\"\nplans = \"plans.csv\"\n[link.x]\nfrom = \"a\"\nto = \"b\"\nrate = \"100Mbit\"\ndelay = \"1ms\"\n\
         queue = {queue}\n[flow.f]\nfrom = \"a\"\nto = \"b\"\ncustomer = \"smith\"\n"
    );
    let read = |path: &Path| {
        assert_eq!(path, Path::new("folder/plans.csv"));
        Ok(plans.as_bytes().to_vec())
    };
    load(&text, Path::new("folder/x.toml"), &[], &read)
        .map_err(|all| all.iter().map(ToString::to_string).collect())
}

const DOWN: &str = "{ kind = \"htb\", discipline = \"fq_codel\", plans = \"down\" }";

#[test]
fn classes_have_ceilings_and_what_their_parents_are_assured_in_proportion() {
    let suite = scenario(PLANS, DOWN).unwrap();
    // The masts want 160 of 100. North has 50: smith 20, the others 30 as 80 to 50, because a ceiling is at
    // most the parent's.
    let down = expected(&[
        ("site", 100.0, 100.0),
        ("north", 50.0, 80.0),
        ("south", 50.0, 80.0),
        ("smith", 20.0, 50.0),
        ("jones", 18.46, 80.0),
        ("weber", 11.54, 50.0),
        ("others", 50.0, 80.0),
    ]);
    assert_eq!(classes(&suite.points[0].scenario.links[0].queue), down);
    let up = scenario(PLANS, &DOWN.replace("down", "up")).unwrap();
    let up = classes(&up.points[0].scenario.links[0].queue);
    assert_eq!(up[1], ("north".to_owned(), 26.67, 40.0));
    assert_eq!(up[3..6], expected(&[("smith", 2.0, 10.0), ("jones", 10.0, 10.0), ("weber", 5.0, 5.0)])[..]);
}

#[test]
fn the_canonical_text_names_the_file_and_its_content() {
    let suite = scenario(PLANS, DOWN).unwrap();
    assert!(suite.canonical.contains("plans = \"plans.csv\""), "{}", suite.canonical);
    assert!(suite.canonical.contains("plans = \"down\""), "{}", suite.canonical);
    let read = |_: &Path| Ok(PLANS.as_bytes().to_vec());
    let again = load(&suite.canonical, Path::new("x.toml"), &[], &read).unwrap();
    assert_eq!((again.hash, &again.canonical), (suite.hash, &suite.canonical));
    let other = scenario(&PLANS.replace("50Mbit", "51Mbit"), DOWN).unwrap();
    assert_ne!(other.hash, suite.hash);
}

#[test]
fn everything_that_is_wrong_with_plans_is_said_with_its_line() {
    let refused = |plans: &str, part: &str| {
        let problems = scenario(plans, DOWN).unwrap_err();
        let starts = "folder/x.toml:3: plans: ";
        assert!(
            problems.iter().any(|line| line.starts_with(starts) && line.contains(part)),
            "{part}: {problems:?}"
        );
        assert!(problems.iter().all(|line| line.starts_with(starts)), "{problems:?}");
    };
    for (from, to, part) in [
        (
            "smith,  north",
            "smith,  nort",
            "plans.csv: line 6, parent: there is no node `nort` (did you mean `north`?)",
        ),
        ("jones, ", "smith, ", "line 7, name: line 6 is `smith` already"),
        ("jones, ", "jo.nes,", "line 7, name: `jo.nes` cannot name a class"),
        ("jones, ", "\"jo\nnes\",", "line 7, name: `jo\\nnes` cannot name a class"),
        (
            "100Mbit, 40Mbit, ,",
            "100Mbit, 40Mbit, 5Mbit,",
            "line 3, down_min: a node without a parent is assured its rate; leave it empty",
        ),
        (
            "192.0.2.0/24",
            "192.0.2.1/24",
            "line 8, addresses: 192.0.2.1 has bits set after the first 24; write 192.0.2.0/24",
        ),
        ("192.0.2.0/24", "192.0.2.10", "line 8, addresses: 192.0.2.10 belongs to `smith` already"),
        ("north,  site,   ,   ", "north,  site, ::1,", "line 4, addresses: `north` is the parent of others"),
        (
            "50Mbit, 10Mbit, 20Mbit",
            "50Mbit, 10Mbit, 60Mbit",
            "line 6, down_min: it is more than the ceiling, 50Mbit",
        ),
        (
            "80Mbit,  ,       ,",
            "80Mbit,  ,       10Mbit,",
            "line 6, down_min: up to this line the children of `north`",
        ),
        ("50Mbit, 10Mbit", "50, 10Mbit", "line 6, down: `50` is not a rate"),
        ("50Mbit, 10Mbit", "0Mbit, 10Mbit", "line 6, down: a rate is above 0"),
        ("100Mbit, 40Mbit", ", 40Mbit", "line 3, down: missing: a node without a parent needs its rates"),
        ("site,   ,  ", "site, north,", "its parents go in a circle"),
        ("down_min", "dwn_min", "line 1: there is no column `dwn_min` (did you mean `down_min`?)"),
        (
            "addresses,                 down,",
            "addresses,           down_min,",
            "line 1: a column `down` is missing",
        ),
        ("others, south,", "others,", "line 9: it has not as many cells"),
    ] {
        assert!(PLANS.contains(from), "{from}");
        refused(&PLANS.replacen(from, to, 1), part);
    }
    refused("name,down,up\n", "it has 0 nodes");
    for separator in [";", "\t"] {
        refused(&PLANS.replace(',', separator), "line 1: the cells are not separated by commas; write name,");
    }
}

#[test]
fn queues_that_plans_do_not_fit_are_refused() {
    for (queue, part) in [
        ("{ kind = \"drr\", plans = \"down\" }", "plans make classes of HTB"),
        ("{ kind = \"htb\", plans = \"left\" }", "write \"up\" or \"down\""),
        (
            "{ kind = \"htb\", plans = \"down\", class = { smith = { rate = \"1Mbit\" } } }",
            "leave `class` or `plans` out",
        ),
    ] {
        let problems = scenario(PLANS, queue).unwrap_err();
        assert!(problems[0].starts_with("folder/x.toml:9: link.x.queue.plans: "), "{problems:?}");
        assert!(problems[0].contains(part), "{problems:?}");
    }
    let none = "seed = 1\nstop = \"9s\"\n[link.x]\nfrom = \"a\"\nto = \"b\"\nrate = \"1Mbit\"\ndelay = \"1ms\"\n\
                queue = { kind = \"htb\", plans = \"down\" }\n[flow.f]\nfrom = \"a\"\nto = \"b\"\n";
    let problems = load(none, Path::new("x.toml"), &[], &|path| std::fs::read(path)).unwrap_err();
    assert!(problems[0].message.contains("there are no plans"), "{problems:?}");
}

fn gateway(folder: &Path, plans: &str, rest: &str) -> Result<GatewayConfig, Vec<String>> {
    std::fs::write(folder.join("plans.csv"), plans).unwrap();
    let text = format!(
        "inside = \"a\"\noutside = \"b\"\nplans = \"plans.csv\"\n[up]\nrate = \"40Mbit\"\nqueue = {{ kind = \"htb\", plans = \"up\" }}\n\
         [down]\nrate = \"100Mbit\"\nqueue = {DOWN}\n{rest}"
    );
    GatewayConfig::load(&text, &folder.join("x.toml"))
        .map_err(|all| all.iter().map(ToString::to_string).collect())
}

#[test]
fn a_cell_in_quotes_may_have_several_addresses_with_commas() {
    let folder = std::env::temp_dir().join(format!("apportion-cells-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let one = "192.0.2.10 2001:db8:1::/48, 50Mbit";
    for cell in ["\"192.0.2.10, 2001:db8:1::/48\" , 50Mbit", "\"192.0.2.10;2001:db8:1::/48,\",50Mbit"] {
        let plans = format!("# What is in \"quotes\n{}", PLANS.replace(one, cell));
        let config = gateway(&folder, &plans, "").unwrap();
        assert_eq!(config.plan_rates(), gateway(&folder, PLANS, "").unwrap().plan_rates());
        for address in ["192.0.2.10", "2001:db8:1::3"] {
            let customer = config.addresses.customer_of(address.parse().unwrap()).unwrap();
            assert_eq!(config.customer_names()[customer.0 as usize], "smith");
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_gateway_finds_customers_by_their_addresses() {
    let folder = std::env::temp_dir().join(format!("apportion-plans-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let config = gateway(&folder, PLANS, "").unwrap();
    let names = config.customer_names();
    let of = |address: &str| {
        let customer = config.addresses.customer_of(address.parse().unwrap());
        customer.map(|CustomerId(number)| names[number as usize].as_str())
    };
    assert_eq!(of("192.0.2.10"), Some("smith"));
    assert_eq!(of("2001:db8:1:2::3"), Some("smith"));
    assert_eq!(of("192.0.2.127"), Some("jones"));
    assert_eq!(of("192.0.2.200"), Some("weber"));
    assert_eq!(of("198.51.100.1"), None);
    assert_eq!(classes(&config.down.queue.params)[3], ("smith".to_owned(), 20.0, 50.0));
    let rates = config.plan_rates();
    assert!(rates.contains("\nsmith: down 20Mbit to 50Mbit, up 2Mbit to 10Mbit\n"), "{rates}");
    // The canonical text names the file and the direction in place of the classes, and loads back.
    let canonical = config.canonical();
    assert!(
        canonical.contains("plans = \"plans.csv\"\n") && canonical.contains("plans = \"up\""),
        "{canonical}"
    );
    assert!(!canonical.contains("class") && !canonical.contains("smith"), "{canonical}");
    let again = GatewayConfig::load(&canonical, &folder.join("y.toml")).unwrap();
    let mut expected = config.clone();
    expected.title.clone_from(&again.title);
    assert_eq!(again, expected);
    // Without a class for others their packets would be lost.
    let problems = gateway(&folder, &PLANS.replace("others, ", "rest,   "), "").unwrap_err();
    assert!(problems[0].contains("add a line `others` to the file of plans"), "{problems:?}");
    assert!(read_file(&folder.join("plans.csv")).is_ok());
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn what_changes_in_plans_is_said_in_the_words_of_the_file() {
    let folder = std::env::temp_dir().join(format!("apportion-plan-changes-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let load = |plans: &str| gateway(&folder, plans, "").unwrap();
    let config = load(PLANS);
    let changes = |plans: &str| {
        let new = load(plans);
        assert!(!config.has_plans_of(&new) && config.plan_text() != new.plan_text());
        let difference = config.difference(&new).unwrap();
        assert!(difference.has(Setting::Plans), "{difference}");
        difference.to_string()
    };
    for (from, to, expected) in [
        (
            "192.0.2.10",
            "192.0.2.11",
            "plans: smith.addresses: 192.0.2.10 2001:db8:1::/48 -> 192.0.2.11 2001:db8:1::/48\n",
        ),
        ("5Mbit,  ,", "6Mbit,  ,", "plans: weber.up: 5Mbit -> 6Mbit\n"),
        // All customers of the site are assured less, and one line has the reason.
        ("100Mbit, 40Mbit", "90Mbit, 40Mbit", "plans: site.down: 100Mbit -> 90Mbit\n"),
        ("20Mbit,   2Mbit", ",   2Mbit", "plans: smith.down_min: 20Mbit -> none\n"),
        ("weber,  north", "weber,  south", "plans: weber.parent: north -> south\n"),
    ] {
        assert!(PLANS.contains(from), "{from}");
        assert_eq!(changes(&PLANS.replacen(from, to, 1)), expected);
    }
    let other = changes(&PLANS.replace("weber,", "mayer,"));
    let expected = "plans: mayer: none -> parent north, addresses 192.0.2.0/24, down 50Mbit, up 5Mbit\n\
                    plans: weber: parent north, addresses 192.0.2.0/24, down 50Mbit, up 5Mbit -> none\n";
    assert_eq!(other, expected);
    let lines: Vec<&str> = PLANS.lines().collect();
    let order = [&lines[..5], &[lines[6], lines[5]], &lines[7..]].concat().join("\n");
    assert_eq!(changes(&order), "plans: order of the lines: one -> another\n");
    assert_eq!(config.difference(&load(&PLANS.replace("# The", "# That"))).unwrap().to_string(), "");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn of_many_changes_the_first_are_said_and_how_many_more_there_are() {
    let folder = std::env::temp_dir().join(format!("apportion-many-changes-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let plans = |rate: u32| {
        let customers = (0..77).map(|n| format!("c{n},site,10.0.0.{n},{rate}Mbit,1Mbit\n"));
        format!(
            "name,parent,addresses,down,up\nsite,,,1Gbit,1Gbit\nothers,site,,,\n{}",
            customers.collect::<String>()
        )
    };
    let load = |rate: u32| gateway(&folder, &plans(rate), "").unwrap();
    let difference = load(50).difference(&load(60)).unwrap();
    let (lines, text) = (difference.changes.len(), difference.to_string());
    assert!(lines == 77 && text.starts_with("plans: c0.down: 50Mbit -> 60Mbit\nplans: c1.down: "), "{text}");
    assert!(text.lines().count() == 41 && text.ends_with("\nand 37 more\n"), "{text}");
    // Written-out classes are one value, of which only the difference is printed.
    let classes = |rate: u32| {
        let all: Vec<_> = (0..500)
            .map(|n| format!("c{n} = {{ rate = \"{}Mbit\" }}", if n == 7 { rate } else { 50 }))
            .collect();
        let text = format!(
            "inside = \"a\"\noutside = \"b\"\ndown.rate = \"1Gbit\"\n[up]\nrate = \"1Gbit\"\nqueue = {{ kind = \"htb\", class = {{ \
             others = {{ rate = \"1Mbit\", others = true }}, {} }} }}\n",
            all.join(", ")
        );
        GatewayConfig::load(&text, &folder.join("x.toml")).unwrap()
    };
    let text = classes(50).difference(&classes(77)).unwrap().to_string();
    assert!(text.lines().count() == 1 && text.len() < 300, "{text}");
    assert!(text.starts_with("up.queue: …") && text.contains("\"c7\" = { rate = \"77Mbit\""), "{text}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn weights_of_customers_that_do_nothing_are_refused_and_not_offered() {
    let folder = std::env::temp_dir().join(format!("apportion-plan-weights-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let problems = gateway(&folder, PLANS, "[customer.smith]\nweight = 9\n").unwrap_err();
    let said = "x.toml:11: customer.smith.weight: it has no effect, since queues schedule classes, without weights: what a customer has \
                is in the file of `plans`, in its columns `down_min` and `up_min`; leave `weight` out";
    assert!(problems.len() == 1 && problems[0].ends_with(said), "{problems:?}");
    let config = gateway(&folder, PLANS, "[customer.smith]\n").unwrap();
    assert!(config.settable().iter().all(|(key, _)| !key.starts_with("customer")), "{:?}", config.settable());
    // HCSFQ divides among customers by their weights, and a queue without classes has room for one that does.
    let text = |down: &str| {
        format!(
            "inside = \"a\"\noutside = \"b\"\n[down]\nrate = \"9Mbit\"\nqueue = \"{down}\"\n[up]\nrate = \"9Mbit\"\nqueue = {{ kind = \"prio\", \
             class = {{ a = {{ prio = 0 }}, rest = {{ prio = 1, others = true }} }} }}\n[[rule]]\ncustomer = \"a\"\nto_port = 5\n\
             [customer.a]\nweight = 2\n"
        )
    };
    let load = |down: &str| GatewayConfig::load(&text(down), Path::new("x.toml"));
    assert!(
        load("hcsfq")
            .unwrap()
            .settable()
            .iter()
            .any(|(key, value)| key == "customer.a.weight" && value == "2.0")
    );
    let problems = load("fifo").unwrap_err();
    assert!(problems[0].message.contains("what its class says, such as `rate`"), "{problems:?}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_gateway_says_nothing_of_queues_whose_plans_are_refused() {
    let folder = std::env::temp_dir().join(format!("apportion-plan-refused-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let problems = gateway(&folder, &PLANS.replace("smith,  north", "smith,  nort"), "").unwrap_err();
    assert!(problems.len() == 1 && problems[0].contains("there is no node `nort`"), "{problems:?}");
    let text =
        "inside = \"a\"\noutside = \"b\"\nplans = \"none.csv\"\nup.rate = \"1Mbit\"\ndown.rate = \"1Mbit\"\n";
    let problems = GatewayConfig::load(text, Path::new("gone/home.toml")).unwrap_err();
    assert!(problems[0].message.ends_with("paths start at the folder of `gone/home.toml`"), "{problems:?}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn plans_that_cannot_be_kept_or_lower_what_customers_have_are_warned_of() {
    let folder = std::env::temp_dir().join(format!("apportion-plan-warnings-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let warnings = |plans: &str| gateway(&folder, plans, "").unwrap().warnings();
    // In proportion to 50, 80 and 50 smith would get 13.9 of 50 Mb/s, and 5 is less; up it would get 10 of
    // 26.67.
    let up = "plans: up_min is below the part in proportion to `up`, and lowers what is assured to `smith` (2Mbit in place of 10Mbit); leave \
              it empty where the part is to count, or raise it";
    assert_eq!(warnings(PLANS), [up]);
    assert_eq!(warnings(&PLANS.replace("20Mbit,   2Mbit", ",")), Vec::<String>::new());
    let down = warnings(&PLANS.replace("20Mbit,   2Mbit", "5Mbit,"));
    assert!(down.len() == 1 && down[0].contains("`smith` (5Mbit in place of 1388"), "{down:?}");
    let above =
        warnings(&PLANS.replace("100Mbit, 40Mbit", "101Mbit, 40Mbit").replace("20Mbit,   2Mbit", ","));
    let said = "down.rate: 100Mbit is less than the plans without a parent have together, 101Mbit, so that what plans assure is not kept while \
                all want more; raise it, or lower `down` of these plans";
    assert_eq!(above, [said]);
    let lacking = PLANS.replace("20Mbit,   2Mbit", ",").replace("192.0.2.0/24, ", ",");
    let said = "plans: no packet belongs to `weber`, without addresses and without a rule that names it as `customer`; write its addresses, or \
                leave it out";
    assert_eq!(warnings(&lacking), [said]);
    let rule = "[[rule]]\nprotocol = 17\ncustomer = \"weber\"\n";
    assert_eq!(gateway(&folder, &lacking, rule).unwrap().warnings(), Vec::<String>::new());
    std::fs::write(folder.join("plans.csv"), PLANS.replace("20Mbit,   2Mbit", ",")).unwrap();
    let text = format!(
        "inside = \"a\"\noutside = \"b\"\nplans = \"plans.csv\"\nup.rate = \"1Mbit\"\n[down]\nrate = \"auto\"\nrate_max = \"200Mbit\"\n\
         rate_min = \"90Mbit\"\nqueue = {DOWN}\n"
    );
    let follows = GatewayConfig::load(&text, &folder.join("x.toml")).unwrap().warnings();
    assert!(
        follows.len() == 1 && follows[0].starts_with("down.rate_min: 90Mbit is less than"),
        "{follows:?}"
    );
    std::fs::remove_dir_all(&folder).unwrap();
}
