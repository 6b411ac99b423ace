//! The catalogue against the code: every parameter reaches its field, and wrong values are refused with clear
//! messages.

mod refusals;

use std::collections::BTreeSet;

use apportion_core::mark::MarkerParams;
use apportion_core::mark::currency_exchange::ExchangeParams;
use apportion_core::param::{Kind, Param, Role, Value};
use apportion_core::system::DisciplineParams;
use apportion_core::system::catalog::{Catalog, Selection};
use apportion_core::units::Rate;

use crate::common::{SimplePacket, build, combinations, read, setup};

/// Values different from every default, and consistent with each other.
fn other_value(entry: &str, param: &Param) -> &'static str {
    match (entry, param.name) {
        (_, "limit") if param.kind == Kind::Packets => "77p",
        (_, "limit") => "77kB",
        ("dualpi2", "min_th") => "2ms",
        (_, "min_th") => "7.5p",
        (_, "max_th") => "33.25p",
        (_, "in_min_th") => "6.125p",
        (_, "in_max_th") => "34p",
        (_, "out_min_th") => "8p",
        (_, "out_max_th") => "35.5p",
        (_, "w_q") => "0.25",
        (_, "max_p") => "0.3",
        (_, "in_max_p") => "0.4",
        (_, "out_max_p") => "0.5",
        (_, "min_q") => "3p",
        (_, "zombies") => "66",
        (_, "overwrite") => "0.6",
        (_, "p_max") => "0.7",
        (_, "crowd") => "99",
        (_, "l1") => "3p",
        (_, "l2") => "9p",
        (_, "w_m") => "21p",
        (_, "p1") => "0.31",
        (_, "p2") => "0.32",
        (_, "p") => "0.33",
        (_, "thresh") => "0.44",
        (_, "thresholds") => "rtt",
        ("lqd", "victim") => "difference",
        ("pfd", "victim") => "proportional",
        (_, "ties") => "arrival",
        (_, "rtt_of") => "all",
        (_, "end") => "tail",
        ("csfq" | "mcsfq" | "hcsfq", "l4s") => "false",
        (_, "auto" | "l4s") => "true",
        ("tred", "gentle") => "false",
        (_, "gentle" | "bytes" | "stale_out" | "many_flows")
        | ("red" | "codel" | "pie" | "fq_pie", "ecn") => "true",
        ("sffc" | "nbq", "wait") => "4",
        (_, "levels") => "2",
        (_, "increment") => "0.7%",
        (_, "decrement") => "0.3%",
        ("pie" | "fq_pie", "derandomize") => "false",
        ("dualpi2", "k") => "3",
        (_, "rtt_max") => "88ms",
        (_, "range") => "0s",
        (_, "ce_threshold") => "1.5ms",
        (_, "classic_weight") => "0.2",
        (_, "tupdate") => "16ms",
        (_, "max_burst") => "99ms",
        (_, "mark_ecnth") => "0.2",
        (_, "burst_factor") => "3",
        (_, "l4s_target") => "2ms",
        (_, "virtual_rate") => "90%",
        (_, "alpha") => "0.6",
        (_, "beta") => "0.8",
        ("ppv" | "pvpie" | "vdq_csaqm" | "value", "history") => "7s",
        (_, "history") => "5",
        (_, "regular") => "3%",
        (_, "active") => "2s",
        (_, "reports") => "false",
        (_, "previous") => "final",
        ("ramp", "recognise") => "false",
        (_, "recognise") => "behaviour",
        (_, "discipline") => "drr",
        (_, "trust") => "bounded",
        (_, "report_discards") => "9%",
        (_, "group" | "counters") => "false",
        (_, "discard") => "share",
        (_, "share") => "count",
        (_, "usage") => "departures",
        ("tred", "target") => "middle",
        (_, "per") => "packet",
        (_, "issue_window" | "burst_window") => "3s",
        (_, "expect") => "mean",
        (_, "keep") => "0.45",
        (_, "relabel") => "false",
        (_, "spare") => "printed",
        (_, "divisor") => "all",
        (_, "recount") => "true",
        (_, "wait" | "gap" | "full") | ("fq_codel" | "cobalt" | "cake" | "ppv" | "pvpie", "ecn") => "false",
        (_, "mean_pktsize") => "333B",
        ("ramp", "target") => "7kB",
        ("ramp", "l") => "0.51",
        ("ramp", "i") => "0.052",
        ("ramp", "d") => "0.053",
        ("ramp", "target_delay") => "21ms",
        ("ramp", "patience") => "222ms",
        ("ramp", "sample") => "22ms",
        ("ramp", "units") => "fraction",
        ("ramp", "gains") => "printed",
        ("ramp", "feed_forward") => "false",
        ("ramp", "leftover") => "greedy",
        ("ramp", "greedy") => "drr",
        ("ramp", "overload") => "scale",
        ("ramp", "control_delay") => "44ms",
        ("ramp", "floor") => "0.03",
        ("ramp", "anti_windup") => "false",
        ("ramp", "period") => "3ms",
        ("ramp", "predictor" | "period_control") => "true",
        ("ramp", "greedy_minimum") => "0.04",
        ("ramp", "interface_queue") => "11p",
        ("ramp", "exception_interval") => "5s",
        ("confucius", "lambda") => "0.2",
        ("confucius", "pace") => "77ms",
        ("confucius", "elastic") => "1.5",
        ("confucius", "settle") => "2s",
        ("cebinae", "periods") => "3",
        ("cebinae", "tax") => "0.02",
        ("cebinae", "delta_p") => "0.03",
        ("cebinae", "delta_f") => "0.04",
        ("cebinae", "slots") => "77",
        (_, "target") => "7ms",
        (_, "interval") => "77ms",
        (_, "mtu") => "777B",
        (_, "quantum") => "999B",
        ("fq", "initial_quantum") => "888B",
        ("fq", "flow_limit") => "5p",
        ("fq", "maxrate") => "3Mbit",
        (_, "memory_limit") => "55kB",
        (_, "drop_batch") => "5",
        (_, "classify") => "hashed",
        (_, "flows") => "55",
        (_, "buckets") => "99",
        ("cake", "bandwidth") => "3Mbit",
        ("cake", "overhead") => "38B",
        ("cake", "mpu") => "84B",
        ("cake", "framing") => "atm",
        ("cake", "hosts") => "source",
        ("cake", "tins") => "besteffort",
        ("cake", "ack_filter") => "aggressive",
        ("cake", "ways") => "4",
        ("aifo" | "packs" | "rifo", "headroom") => "0.35",
        ("aifo" | "packs", "sample") => "15",
        ("packs", "bound") => "total",
        ("rifo", "reset") => "77",
        ("rifo", "admission") => "published",
        (_, "perturb") => "9s",
        ("afq" | "packs" | "sp_pifo", "queues") => "9",
        ("afq", "bpr") => "999B",
        ("ahab", "rows") => "4",
        ("ahab", "epoch") => "2ms",
        ("ahab", "step") => "2",
        ("ahab", "interpolate") => "false",
        ("ahab", "k") => "5ms",
        ("ahab", "k_customer") => "3ms",
        ("ahab", "control") => "2s",
        ("afq", "rows") => "3",
        ("afq" | "ahab", "columns") => "99",
        (_, "rate") => "3Mbit",
        (_, "burst") => "2222B",
        (_, "peak") => "4Mbit",
        (_, "peak_burst") => "1111B",
        ("aifo" | "packs", "window") => "21",
        (_, "window") => "7s",
        (_, "cir") => "2Mbit",
        (_, "pir") => "5Mbit",
        (_, "factor") => "false",
        (_, "n") => "2.5",
        (_, "stage") => "after",
        ("csfq" | "mcsfq" | "hcsfq", "threshold") => "0.4",
        // Next to one, the parameters of the papers' estimate are refused.
        ("csfq" | "mcsfq" | "hcsfq", "target_delay") => "0s",
        ("csfq" | "mcsfq" | "hcsfq", "credit") => "3s",
        ("csfq" | "mcsfq" | "hcsfq" | "ppv" | "pvpie" | "vdq_csaqm" | "value", "k") => "11ms",
        (_, "tvf") => "2Mbit 1e9, 8Mbit 1e7",
        ("csfq" | "mcsfq" | "hcsfq", "k_alpha") => "22ms",
        ("csfq" | "mcsfq" | "hcsfq", "k_c") => "33ms",
        (_, "role") => "core",
        (_, "egress" | "onset") => "true",
        (_, "by_flow") => "false",
        (_, "aggregate_guarantee" | "own_label") => "false",
        (_, "marking") => "deterministic",
        (_, "bucket") => "6kB",
        ("csfq" | "mcsfq" | "hcsfq", "catch_up") => "3",
        (_, "initial") => "8Mbit",
        ("csfq", "below_threshold") => "uncongested",
        ("mcsfq", "below_threshold") => "unknown",
        ("csfq" | "mcsfq", "decay") => "0.35",
        (_, "accepted_rate") => "accepted",
        (_, "noted_label") => "relabelled",
        (_, "overflow_decrease") => "0.02",
        (_, "avoidance") => "0.6",
        (_, "reserve") => "0.15",
        (_, "k") => "5.5",
        (_, "min_tkt_window") => "3s",
        (_, "min_tkt_rank") => "3",
        (_, "adaptive") => "true",
        (_, "policing_window") => "9s",
        (_, "policing_bound") => "4.5",
        (_, "hold") => "3Mbit",
        (_, "hold_bound") => "5.5",
        (_, "bits") => "9",
        (_, "form") => "floating",
        (_, "rounding") => "stochastic",
        (_, "decay") => "false",
        (_, "isolate") => "both",
        (entry, name) => {
            panic!(
                "give `{name}` of {entry} a value here, in `other_value` of crates/core/tests/it/catalog.rs"
            )
        }
    }
}

/// Whether its [other value](other_value) leaves other parameters without effect, which are then refused.
fn turns_off_others(param: &Param) -> bool {
    param.name == "marking"
}

/// The parameters built by a selection, as printed.
fn built(selection: &Selection) -> String {
    let built = match selection.kind.role {
        Role::Marker => MarkerParams::from_args(&selection.kind_args()).map(|params| format!("{params:?}")),
        Role::Exchange => {
            ExchangeParams::from_args(&selection.kind_args()).map(|params| format!("{params:?}"))
        }
        _ => DisciplineParams::from_args(selection)
            .map(|params| format!("{params:?} isolate: {:?}", params.isolate())),
    };
    built.expect("valid parameters")
}

/// The printed value of a catalogue parameter in the built parameters.
fn read_back(text: &str, name: &str) -> String {
    // The `Debug` form names every field: `limit: Bytes(Bytes(77000))`.
    let from = text.find(&format!(" {name}: ")).unwrap_or_else(|| panic!("no `{name}` in {text}"));
    let rest = &text[from + name.len() + 3..];
    let mut depth = 0;
    let end = rest.find(|c| {
        depth += match c {
            '(' | '{' => 1,
            ')' | '}' => -1,
            _ => 0,
        };
        depth < 0 || (depth == 0 && c == ',')
    });
    rest[..end.unwrap_or(rest.len())].trim().to_owned()
}

/// A value as the built parameters print it.
fn printed(value: Value, optional: bool) -> String {
    let plain = match value {
        Value::Limit(value) => format!("{value:?}"),
        Value::Bdp(times) => format!("{times:?} bandwidth-delay products"),
        Value::Packets(value) => format!("{value:?}"),
        Value::Threshold(value) => format!("{value:?}"),
        Value::MeanPackets(value) => format!("{value:?}"),
        Value::Bytes(value) => format!("{value:?}"),
        Value::Span(value) => format!("{value:?}"),
        Value::Time(value) => format!("{value:?}"),
        Value::Rate(value) => format!("{value:?}"),
        Value::Ratio(value) => format!("{value:?}"),
        Value::Number(value) => format!("{value:?}"),
        Value::Count(value) => format!("{value:?}"),
        Value::Tvf(value) => format!("{value:?}"),
        Value::Switch(value) => format!("{value:?}"),
        Value::Choice(word) => {
            word.split('_').map(|part| part[..1].to_uppercase() + &part[1..]).collect::<String>()
        }
    };
    if optional { format!("Some({plain})") } else { plain }
}

fn selection(entry: &apportion_core::param::Entry) -> Selection {
    if matches!(entry.role, Role::Marker | Role::Exchange) {
        return Selection::of(entry.role, entry.name).expect("its own name");
    }
    let shaper = (entry.role == Role::Shaper).then_some(entry.name);
    let is_kind = !matches!(entry.role, Role::Shaper | Role::Isolation);
    Selection::new(if is_kind { entry.name } else { "drr" }, None, shaper).expect("its own name")
}

/// The parameters of an entry with only the required ones set.
fn default_of(entry: &'static apportion_core::param::Entry) -> String {
    let mut default = selection(entry);
    for param in entry.params.iter().filter(|param| param.is_required()) {
        default.set(param.name, "1Mbit").expect("a rate");
    }
    built(&default)
}

#[test]
fn every_parameter_is_set_and_read_back() {
    for entry in Catalog::default().all() {
        // All are set at once, so that one parameter cannot reach the field of another.
        let mut all = selection(entry);
        let (alone, together): (Vec<&Param>, Vec<&Param>) =
            entry.params.iter().partition(|param| turns_off_others(param));
        for param in together {
            all.set(param.name, other_value(entry.name, param)).unwrap();
        }
        let together = built(&all);
        let default = default_of(entry);
        for param in entry.params {
            let mut one = selection(entry);
            one.set(param.name, other_value(entry.name, param)).unwrap();
            let changed = if alone.contains(&param) { built(&one) } else { together.clone() };
            let value = Catalog::parse(param, other_value(entry.name, param)).unwrap();
            // FIFO's tail drop has a `limit` too; a shaper's parameters come after it and do not clash.
            assert_eq!(
                read_back(&changed, param.name),
                printed_of(entry.name, param, value),
                "{} {}",
                entry.name,
                param.name
            );
            assert_ne!(
                read_back(&changed, param.name),
                read_back(&default, param.name),
                "{} {}: the value tried is the default",
                entry.name,
                param.name
            );
        }
    }
}

/// Formats as [`printed`] does, for a parameter; the name of a discipline stays a name.
fn printed_of(entry: &str, param: &Param, value: Value) -> String {
    match value {
        Value::Choice(name) if ["greedy", "discipline"].contains(&param.name) => format!("{name:?}"),
        value => printed(value, is_optional(entry, param.name)),
    }
}

/// Whether a parameter may be unset.
fn is_optional(entry: &str, name: &str) -> bool {
    match (entry, name) {
        (entry, "limit") => entry != "ramp",
        ("tred", "min_th" | "max_th" | "w_q" | "adaptive") => true,
        ("ppv", "target") | (_, "tvf") => true,
        ("fq_codel" | "fq_pie", "memory_limit" | "flows")
        | ("afq", "bpr")
        | ("cake", "bandwidth" | "overhead" | "quantum") => true,
        ("ahab", "epoch" | "k" | "k_customer")
        | ("ramp", "target_delay" | "patience")
        | ("pfd", "thresh") => true,
        _ => [
            "ce_threshold",
            "hold",
            "peak",
            "maxrate",
            "bucket",
            "initial",
            "report_discards",
            "form",
            "levels",
        ]
        .contains(&name),
    }
}

#[test]
fn every_default_is_what_the_catalogue_says() {
    for entry in Catalog::default().all() {
        let default = default_of(entry);
        for param in entry.params {
            if let Some(text) = param.default {
                let value = Catalog::parse(param, text).unwrap();
                assert_eq!(
                    read_back(&default, param.name),
                    printed_of(entry.name, param, value),
                    "{} {}",
                    entry.name,
                    param.name
                );
            }
        }
    }
}

#[test]
fn names_are_unique_and_parameters_of_what_combines_do_not_clash() {
    let names: BTreeSet<_> = Catalog::default().all().map(|entry| entry.name).collect();
    assert_eq!(names.len(), Catalog::default().all().count());
    let catalog = Catalog::default();
    let of = |role| catalog.all().filter(move |entry| entry.role == role);
    let names =
        |entry: &apportion_core::param::Entry| entry.params.iter().map(|p| p.name).collect::<BTreeSet<_>>();
    let check = |a: &apportion_core::param::Entry, b: &apportion_core::param::Entry| {
        assert!(names(a).is_disjoint(&names(b)), "{} and {} share a parameter name", a.name, b.name);
    };
    for scheduler in of(Role::Scheduler) {
        of(Role::Policy).for_each(|policy| check(scheduler, policy));
    }
    for shaper in of(Role::Shaper) {
        Catalog::default()
            .disciplines()
            .filter(|e| e.role != Role::Shaper)
            .for_each(|entry| check(shaper, entry));
    }
    for entry in Catalog::default().all() {
        assert_eq!(names(entry).len(), entry.params.len(), "{} names a parameter twice", entry.name);
    }
}

#[test]
fn shorthands_mean_what_they_say() {
    assert_eq!(read("red", &[]), read("fifo", &["drop=red"]));
    assert_eq!(read("codel", &[]), read("fifo", &["drop=codel"]));
    assert_eq!(read("fifo", &[]), read("fifo", &["drop=tail"]));
    assert_eq!(read("drr", &[]), read("drr", &["drop=lqd"]));
    let table = ["drop=red", "limit=110p", "min_th=5p", "quantum=1500B"];
    assert!(read("drr", &table).is_ok());
}

#[test]
fn csfq_takes_turns_unless_a_fifo_or_the_papers_are_named() {
    for kind in ["csfq", "mcsfq", "hcsfq"] {
        let drop = format!("drop={kind}");
        let fifo = read("fifo", &[&drop]);
        assert_ne!(read(kind, &[]), fifo, "{kind}");
        assert_eq!(read(kind, &["by_flow=false"]), fifo, "{kind}");
        assert_eq!(read(kind, &["preset=paper"]), read("fifo", &[&drop, "preset=paper"]), "{kind}");
    }
}

#[test]
fn a_discipline_reports_its_parameters() {
    let all: Vec<_> = combinations()
        .into_iter()
        .map(|(kind, drop)| {
            // A policy alone stands behind FIFO, and CSFQ behind turns by flow.
            let alone = if kind.ends_with("csfq") { "turns" } else { "fifo" };
            let [schedule, policy] = drop.map_or([alone, kind], |drop| [kind, drop]);
            let drop = drop.map(|drop| format!("drop={drop}"));
            let params = read(kind, &drop.as_deref().into_iter().collect::<Vec<_>>()).unwrap();
            ([schedule, policy], params)
        })
        .collect();
    for (name, params) in &all {
        let built = params.build::<SimplePacket>(&setup(&[]));
        for (other, asked) in &all {
            assert_eq!(built.has_params(asked), name == other, "{name:?} and {other:?}");
        }
    }
    for (kind, others) in [
        ("tail", &["limit=9p"][..]),
        ("red", &["max_p=0.5"]),
        ("fq_codel", &["target=9ms"]),
        ("fifo", &["shaper=token_bucket", "rate=1Mbit"]),
    ] {
        let plain = build(kind, &[], &[]);
        assert!(plain.has_params(&read(kind, &[]).unwrap()));
        assert!(!plain.has_params(&read(kind, others).unwrap()), "{kind}");
        let other = build(kind, others, &[]);
        assert!(other.has_params(&read(kind, others).unwrap()), "{kind}");
        assert!(!other.has_params(&read(kind, &[]).unwrap()), "{kind}");
    }
    const SHAPED: [&str; 2] = ["shaper=token_bucket", "rate=1Mbit"];
    let built = build("fifo", &SHAPED, &[]);
    for other in ["burst=9kB", "peak=2Mbit"] {
        assert!(!built.has_params(&read("fifo", &[SHAPED[0], SHAPED[1], other]).unwrap()), "{other}");
    }
}

#[test]
fn what_states_no_limit_has_the_buffer_of_its_link_whatever_its_name() {
    let catalog = Catalog::default();
    let kinds = catalog.disciplines().filter(|entry| entry.role != Role::Shaper);
    // Disciplines whose buffer is part of them: 50 ms, thresholds, queues of flows.
    for name in kinds.map(|entry| entry.name).filter(|name| !["sffc", "nbq", "tred", "ramp"].contains(name)) {
        let limit = |set: &[&str], mbit| {
            let mut queue = build(name, set, &[]);
            queue.set_link_rate(Rate::from_mbit(mbit));
            queue.limit().map(|limit| limit.to_string()).unwrap()
        };
        // 100 ms of the link, and at least 64 packets of 1500 B.
        assert_eq!([100, 10, 1].map(|mbit| limit(&[], mbit)), ["1250kB", "125kB", "96kB"], "{name}");
        assert_eq!([100, 10].map(|mbit| limit(&["limit=70p"], mbit)), ["70p", "70p"], "{name}");
    }
}

#[test]
fn a_limit_in_time_follows_the_rate_of_the_link() {
    let catalog = Catalog::default();
    for entry in catalog.disciplines().filter(|entry| entry.role != Role::Shaper) {
        let name = entry.name;
        let mut queue = build(name, &["limit=40ms"], &[]);
        let mut limit = |kbit| {
            queue.set_link_rate(Rate::from_kbit(kbit));
            queue.limit().map(|limit| limit.to_string()).unwrap()
        };
        // 40 ms of 100 and 10 Mbit/s; nothing sent keeps the size; 40 ms of 100 kbit/s are 500 B, less than a packet.
        let rates = [100_000, 10_000, 0, 100];
        assert_eq!(rates.map(&mut limit), ["500kB", "50kB", "50kB", "1500B"], "{name}");
    }
}

#[test]
fn only_scenarios_know_bandwidth_delay_products() {
    for keys in [&["limit=0.5bdp"][..], &["limit=9p", "class.a.limit=1bdp", "class.a.others=true"]] {
        let kind = if keys.len() == 1 { "fifo" } else { "prio" };
        let error = read(kind, keys).unwrap_err();
        assert!(error.contains("limit`: ") && error.contains("write a time here"), "{error}");
    }
    for wrong in ["0bdp", "-1bdp", "bdp", "infbdp"] {
        let error = read("fifo", &[&format!("limit={wrong}")]).unwrap_err();
        assert!(error.contains("is no bandwidth-delay product"), "{error}");
    }
    assert!(read("fifo", &["limit=0s"]).unwrap_err().contains("holds at least one packet"));
}

#[test]
fn a_reserve_is_bounded_by_the_threshold_only_where_there_is_one() {
    for kind in ["csfq", "mcsfq", "hcsfq"] {
        assert!(read(kind, &["reserve=0.8"]).is_ok(), "{kind}");
        assert!(read(kind, &["reserve=0.8", "target_delay=0s"]).is_err(), "{kind}");
    }
}

/// On a link that asks late, clocked or reporting disciplines would use the wrong time.
#[test]
fn disciplines_that_concern_their_link_alone_allow_deferral() {
    let late = |kind, pairs: &[&str]| build(kind, pairs, &[]).allows_deferred_dequeue();
    // `sffc` and `nbq` exchange reports with routers, which keeps all links prompt.
    let reports = |word: &str| ["sffc", "nbq"].contains(&word);
    for (kind, drop) in
        combinations().into_iter().filter(|(kind, drop)| !reports(kind) && !drop.is_some_and(reports))
    {
        let drop = drop.map(|drop| format!("drop={drop}"));
        let pairs: Vec<_> = drop.iter().map(String::as_str).collect();
        if read(kind, &pairs).is_ok() {
            let holds_back = ["ramp", "htb", "hfsc"].contains(&kind);
            assert_eq!(late(kind, &pairs), !holds_back, "{kind} {pairs:?}");
        }
    }
    assert!(!late("fifo", &["shaper=token_bucket", "rate=1Mbit"]));
    assert!(!late("drr", &["isolate=source"]));
}
