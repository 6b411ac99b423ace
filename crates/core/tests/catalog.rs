//! The catalogue against the code: every parameter arrives where it should, and what is wrong is refused in
//! good words.

mod common;

use std::collections::BTreeSet;

use apportion_core::mark::MarkerParams;
use apportion_core::mark::currency_exchange::ExchangeParams;
use apportion_core::param::{Kind, Param, Role, Value};
use apportion_core::system::DisciplineParams;
use apportion_core::system::catalog::{Catalog, Selection};
use apportion_core::units::Rate;
use common::{SimplePacket, build, combinations, read, setup};

/// Values unlike every default, and consistent with each other.
fn other_value(entry: &str, param: &Param) -> &'static str {
    match (entry, param.name) {
        (_, "limit") if param.kind == Kind::Packets => "77p",
        (_, "limit") => "77kB",
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
        (_, "auto") => "true",
        (_, "gentle" | "bytes" | "stale_out" | "many_flows") | ("red" | "codel", "ecn") => "true",
        ("sffc" | "nbq", "wait") => "4",
        (_, "increment") => "0.7%",
        (_, "alpha") => "0.6",
        (_, "beta") => "0.8",
        (_, "history") => "5",
        (_, "regular") => "3%",
        (_, "active") => "2s",
        (_, "reports") => "false",
        (_, "previous") => "final",
        (_, "recognise") => "behaviour",
        (_, "discipline") => "drr",
        (_, "trust") => "bounded",
        (_, "report_discards") => "9%",
        (_, "group") => "false",
        (_, "discard") => "share",
        (_, "share") => "count",
        (_, "usage") => "departures",
        ("tred", "target") => "middle",
        (_, "per") => "packet",
        (_, "issue_window") => "3s",
        (_, "expect") => "mean",
        (_, "keep") => "0.45",
        (_, "relabel") => "false",
        (_, "spare") => "printed",
        (_, "divisor") => "all",
        (_, "recount") => "true",
        (_, "wait" | "gap" | "full") | ("fq_codel", "ecn") => "false",
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
        (_, "target") => "7ms",
        (_, "interval") => "77ms",
        (_, "mtu") => "777B",
        (_, "quantum") => "999B",
        (_, "memory_limit") => "55kB",
        (_, "drop_batch") => "5",
        (_, "classify") => "hashed",
        (_, "flows") => "55",
        (_, "rate") => "3Mbit",
        (_, "burst") => "2222B",
        (_, "peak") => "4Mbit",
        (_, "peak_burst") => "1111B",
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
        ("csfq" | "mcsfq" | "hcsfq", "k") => "11ms",
        ("csfq" | "mcsfq" | "hcsfq", "k_alpha") => "22ms",
        ("csfq" | "mcsfq" | "hcsfq", "k_c") => "33ms",
        (_, "role") => "core",
        (_, "egress" | "onset") => "true",
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
        (_, "bits") => "9",
        (_, FORM) => "integer",
        (_, "rounding") => "stochastic",
        (_, "decay") => "false",
        (_, "isolate") => "both",
        (entry, name) => {
            panic!("give `{name}` of {entry} a value here, in `other_value` of crates/core/tests/catalog.rs")
        }
    }
}

/// Becomes the name of a variant of the format that `bits` belongs to; `tickets.rs` tests it.
const FORM: &str = "form";

/// The parameters that a selection builds, as they print.
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

/// What the built parameters hold for a catalogue parameter, as they print it.
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

/// How the built parameters print a value.
fn printed(value: Value, optional: bool) -> String {
    let plain = match value {
        Value::Limit(value) => format!("{value:?}"),
        Value::Packets(value) => format!("{value:?}"),
        Value::Threshold(value) => format!("{value:?}"),
        Value::MeanPackets(value) => format!("{value:?}"),
        Value::Bytes(value) => format!("{value:?}"),
        Value::Span(value) => format!("{value:?}"),
        Value::Rate(value) => format!("{value:?}"),
        Value::Ratio(value) => format!("{value:?}"),
        Value::Number(value) => format!("{value:?}"),
        Value::Count(value) => format!("{value:?}"),
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
    Selection::new(if is_kind { entry.name } else { "fifo" }, None, shaper).expect("its own name")
}

/// What an entry builds when only that is set which must be.
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
        // All at once, so that one parameter cannot arrive in the place of another.
        let mut all = selection(entry);
        for param in entry.params {
            all.set(param.name, other_value(entry.name, param)).unwrap();
        }
        let changed = built(&all);
        let default = default_of(entry);
        for param in entry.params.iter().filter(|param| param.name != FORM) {
            let value = param.parse(other_value(entry.name, param)).unwrap();
            // FIFO's tail drop has a `limit` too; a shaper's own parameters stand after it and do not clash.
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

/// As [`printed`], for a parameter; the name of a discipline stays the name that it is.
fn printed_of(entry: &str, param: &Param, value: Value) -> String {
    match value {
        Value::Choice(name) if ["greedy", "discipline"].contains(&param.name) => format!("{name:?}"),
        value => printed(value, is_optional(entry, param.name)),
    }
}

/// Whether a parameter may be unset.
fn is_optional(entry: &str, name: &str) -> bool {
    match (entry, name) {
        (entry, "limit") => !["tred", "ramp"].contains(&entry),
        ("fq_codel", "memory_limit") => true,
        ("ramp", "target_delay" | "patience") => true,
        _ => ["peak", "bucket", "initial", "report_discards"].contains(&name),
    }
}

#[test]
fn every_default_is_what_the_catalogue_says() {
    for entry in Catalog::default().all() {
        let default = default_of(entry);
        for param in entry.params.iter().filter(|param| param.name != FORM) {
            if let Some(text) = param.default {
                let value = param.parse(text).unwrap();
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
fn invalid_values_are_refused_with_the_key_and_a_fix() {
    let catalog = Catalog::default();
    let known = |roles: &[Role]| {
        let entries = catalog.disciplines().filter(|entry| roles.contains(&entry.role));
        entries.map(|entry| entry.name).collect::<Vec<_>>().join(", ")
    };
    let kinds = known(&[Role::Scheduler, Role::Policy, Role::System]);
    let kinds = format!("`kind`: `reed` is not known here (known: {kinds})");
    let drops = format!("`drop`: `drr` is not known here (known: {})", known(&[Role::Policy]));
    for (kind, pairs, message) in [
        ("reed", &[][..], kinds.as_str()),
        ("fifo", &["drop=drr"], drops.as_str()),
        ("fifo", &["shaper=red"], "`shaper`: `red` is not known here (known: token_bucket)"),
        ("fq_codel", &["drop=red"], "`drop`: `fq_codel` has its own buffer policy; leave `drop` out"),
        (
            "red",
            &["drop=red"],
            "`drop`: `red` is a buffer policy already, in front of a FIFO; leave `drop` out",
        ),
        (
            "drr",
            &["min_th=5p"],
            "`min_th`: unknown parameter (known here: quantum, limit, thresholds, rtt_of, victim, ties, isolate, preset)",
        ),
        (
            "fifo",
            &["limit=50"],
            "`limit`: `50` is not a limit in packets or bytes; write for example \"50p\" or \"64kB\"",
        ),
        ("fifo", &["limit=0p"], "`limit`: a buffer holds at least one packet; write for example \"50p\""),
        ("pfd", &["limit=0B"], "`limit`: a buffer holds at least one packet; write for example \"50p\""),
        ("fq_codel", &["limit=0p"], "`limit`: a buffer holds at least one packet; write for example \"50p\""),
        ("drr", &["quantum=0B"], "`quantum`: a quantum must be at least 1B"),
        (
            "drr",
            &["quantum=1500"],
            "`quantum`: `1500` is not a size: the unit is missing; write for example \"64kB\"",
        ),
        (
            "red",
            &["max_p=1.5"],
            "`max_p`: `1.5` is not a share between 0 and 1; write for example 0.01 or \"1%\"",
        ),
        ("red", &["gentle=yes"], "`gentle`: `yes` is neither true nor false"),
        ("red", &["min_th=20p"], "`max_th`: 15p must be above `min_th`, which is 20p"),
        ("red", &["w_q=0"], "`w_q`: with 0 the average never moves; write for example 0.002"),
        ("red", &["mean_pktsize=0B"], "`mean_pktsize`: a packet has at least 1B"),
        (
            "red",
            &["limit=50p", "max_th=55p"],
            "`max_th`: 55p can never be reached with a `limit` of 50p: raise the limit",
        ),
        ("red", &["max_th=9kB"], "`max_th`: `min_th` and `max_th` must both be in packets or both in bytes"),
        ("rio", &["in_min_th=70p"], "`in_max_th`: 70p must be above `in_min_th`, which is 70p"),
        (
            "rio",
            &["limit=60p", "in_max_th=50p", "out_max_th=90p"],
            "`out_max_th`: 90p can never be reached with a `limit` of 60p: raise the limit",
        ),
        ("tred", &["k=1"], "`k`: K is above 1, or no packet counts; 0 counts all; the paper has 2"),
        (
            "sffc",
            &["interval=50us"],
            "`interval`: in so short a time no rate can be measured; write at least \"1ms\"",
        ),
        (
            "sffc",
            &["active=40ms"],
            "`active`: a flow is active for at least one `interval`, 50ms, and at most 1000 of them",
        ),
        (
            "nbq",
            &["interval=1ms", "active=2s"],
            "`active`: a flow is active for at least one `interval`, 1ms, and at most 1000 of them",
        ),
        ("sffc", &["history=9"], "`history`: an average is over 1 to 8 intervals"),
        ("sffc", &["history=0"], "`history`: an average is over 1 to 8 intervals"),
        (
            "sffc",
            &["increment=0%"],
            "`increment`: a rate that was lowered must rise again; write for example \"0.5%\"",
        ),
        (
            "nbq",
            &["beta=0.5"],
            "`beta`: unknown parameter (known here: limit, interval, increment, group, alpha, history, wait, regular, \
             active, reports, previous, discard, report_discards, recognise, trust, isolate, preset)",
        ),
        ("csfq", &["k_alpha=0ms"], "`k_alpha`: it must be above zero; write for example \"100ms\""),
        ("mcsfq", &["k=0ms"], "`k`: it must be above zero; write for example \"100ms\""),
        (
            "mcsfq",
            &["bits=7"],
            "`bits`: a label has 8 to 17 bits: 5 for the exponent and at least 3 for the mantissa",
        ),
        (
            "mcsfq",
            &["marking=probabilistic", "bucket=3kB"],
            "`bucket`: marking by chance has no bucket; write marking = \"debt\" or \"deterministic\", or leave it out",
        ),
        (
            "mcsfq",
            &["bucket=1499B", "marking=deterministic"],
            "`bucket`: a bucket that holds no full packet covers none; write for example \"3000B\"",
        ),
        (
            "mcsfq",
            &["reserve=0.5", "target_delay=0s"],
            "`reserve`: excess packets never fill the buffer beyond `threshold`, so that no congestion is seen; \
             `threshold` and `reserve` must add up to less than 1",
        ),
        ("hcsfq", &["reserve=1"], "`reserve`: with 1 all of the buffer is kept; write for example \"10%\""),
        (
            "mcsfq",
            &["initial=0bit"],
            "`initial`: a share of nothing lets nothing through that could raise it; leave it out if it is unknown",
        ),
        (
            "csfq",
            &["preset=paper", "overflow_decrease=1"],
            "`overflow_decrease`: an overflow that takes all leaves nothing to grow from; write for example \"1%\"",
        ),
        (
            "mcsfq",
            &["decay=0.5"],
            "`decay`: it belongs to the papers' way to estimate the share, which `target_delay` replaces; write preset = \
             \"paper\" or target_delay = \"0s\", or leave it out",
        ),
        ("hcsfq", &["k_c=0ms"], "`k_c`: it must be above zero; write for example \"100ms\""),
        (
            "hcsfq",
            &["bits=18"],
            "`bits`: a label has 8 to 17 bits: 5 for the exponent and at least 3 for the mantissa",
        ),
        (
            "hcsfq",
            &["reserve=0.75", "target_delay=0s"],
            "`reserve`: excess packets never fill the buffer beyond `threshold`, so that no congestion is seen; \
             `threshold` and `reserve` must add up to less than 1",
        ),
        (
            "hcsfq",
            &["initial=1Mbit"],
            "`initial`: unknown parameter (known here: limit, threshold, k, credit, k_alpha, k_c, target_delay, role, egress, \
             bits, marking, bucket, catch_up, reserve, isolate, preset)",
        ),
        ("fred", &["min_th=24p"], "`max_th`: 24p must be above `min_th`, which is 24p"),
        ("fred", &["limit=20p"], "`max_th`: 24p can never be reached with a `limit` of 20p: raise the limit"),
        ("choke", &["w_q=0"], "`w_q`: with 0 the average never moves; write for example 0.002"),
        ("choke", &["max_th=5p"], "`max_th`: 5p must be above `min_th`, which is 5p"),
        ("choke", &["drop=red"], "`drop`: `choke` has its own buffer policy; leave `drop` out"),
        ("sred", &["zombies=0"], "`zombies`: it must lie between 1 and 1048576"),
        ("sred", &["zombies=1048577"], "`zombies`: it must lie between 1 and 1048576"),
        ("sred", &["overwrite=0"], "`overwrite`: with 0 the list never learns of new flows"),
        ("sred", &["crowd=0"], "`crowd`: it must be at least 1"),
        ("bred", &["l1=4p"], "`l2`: 4p must be above `l1`, which is 4p"),
        ("bred", &["l2=12p"], "`w_m`: 12p must be above `l2`, which is 12p"),
        ("bred", &["p1=0.5"], "`p2`: 0.1 must be above `p1`, which is 0.5"),
        ("codel", &["interval=0ms"], "`interval`: it must be above zero; write for example \"100ms\""),
        ("codel", &["target=1s"], "`target`: it must not be longer than `interval`"),
        ("fq_codel", &["quantum=0B"], "`quantum`: a quantum must be at least 1B"),
        ("fq_codel", &["classify=md5"], "`classify`: `md5` is not one of exact, hashed"),
        ("fq_codel", &["flows=0"], "`flows`: it must lie between 1 and 1048576"),
        ("fq_codel", &["flows=9999999"], "`flows`: it must lie between 1 and 1048576"),
        (
            "fq_codel",
            &["drop_batch=-1"],
            "`drop_batch`: `-1` is not a whole number from 0 to 2^64 - 1; write for example 64",
        ),
        ("fq_codel", &["drop_batch=0"], "`drop_batch`: overload must drop at least 1"),
        (
            "ramp",
            &["target=0B"],
            "`target`: an empty queue says nothing about the need of a flow; write for example \"16KiB\"",
        ),
        (
            "ramp",
            &["target_delay=0ms"],
            "`target_delay`: an empty queue says nothing about the need of a flow; write for example \"20ms\"",
        ),
        (
            "ramp",
            &["sample=50us"],
            "`sample`: samples closer than 0.1ms see the same packets; write for example \"10ms\"",
        ),
        ("ramp", &["l=0"], "`l`: with 0 the controller never sees a sample; write for example 0.5"),
        ("ramp", &["i=-1"], "`i`: a gain lies between 0 and 1000000"),
        (
            "ramp",
            &["control_delay=155ms"],
            "`control_delay`: it must be a multiple of `sample`, at most 1000 times it",
        ),
        (
            "ramp",
            &["control_delay=11s"],
            "`control_delay`: it must be a multiple of `sample`, at most 1000 times it",
        ),
        (
            "ramp",
            &["floor=0"],
            "`floor`: with nothing to begin with no flow ever starts; write for example \"2%\"",
        ),
        ("ramp", &["period=0ms"], "`period`: a period lies between 1us and 1s; write for example \"0.1ms\""),
        ("ramp", &["mtu=0B"], "`mtu`: a packet has at least 1B and at most 65535B"),
        ("ramp", &["mtu=70kB"], "`mtu`: a packet has at least 1B and at most 65535B"),
        (
            "ramp",
            &["greedy_minimum=1"],
            "`greedy_minimum`: real-rate flows need something; write for example \"5%\"",
        ),
        ("ramp", &["interface_queue=0p"], "`interface_queue`: nothing passes a queue of 0p"),
        (
            "ramp",
            &["exception_interval=0s"],
            "`exception_interval`: exceptions without a pause are a flood; write for example \"1s\"",
        ),
        ("ramp", &["drop=red"], "`drop`: `ramp` has its own buffer policy; leave `drop` out"),
        ("fifo", &["shaper=token_bucket"], "`rate`: it must be set; write for example \"10Mbit\""),
        ("fifo", &["shaper=token_bucket", "rate=0bit"], "`rate`: nothing passes at rate 0"),
        (
            "fifo",
            &["shaper=token_bucket", "rate=1Mbit", "burst=0B"],
            "`burst`: nothing passes an empty bucket",
        ),
        (
            "fifo",
            &["shaper=token_bucket", "rate=1Mbit", "peak_burst=0B"],
            "`peak_burst`: nothing passes an empty bucket",
        ),
        ("fifo", &["shaper=token_bucket", "rate=1Mbit", "peak=1Mbit"], "`peak`: it must be above `rate`"),
    ] {
        assert_eq!(read(kind, pairs), Err(message.to_owned()), "{kind} {pairs:?}");
    }
}

#[test]
fn an_invalid_marker_is_refused_with_the_key_and_a_fix() {
    for (kind, pairs, message) in [
        ("tsw2cm", &[][..], "`cir`: it must be set; write for example \"1Mbit\""),
        ("tsw3cm", &[("cir", "1Mbit")], "`pir`: it must be set; write for example \"1Mbit\""),
        ("tsw3cm", &[("cir", "3Mbit"), ("pir", "2Mbit")], "`pir`: 2Mbit is below `cir`, which is 3Mbit"),
        (
            "tsw2cm",
            &[("cir", "3Mbit"), ("window", "0s")],
            "`window`: it must be above zero; write for example \"1s\"",
        ),
    ] {
        let mut selection = Selection::of(Role::Marker, kind).unwrap();
        for (key, value) in pairs {
            selection.set(key, value).unwrap();
        }
        assert_eq!(
            MarkerParams::from_args(&selection.kind_args()).unwrap_err().to_string(),
            message,
            "{kind}"
        );
    }
}

#[test]
fn a_discipline_reports_its_parameters() {
    let all: Vec<_> = combinations()
        .into_iter()
        .map(|(kind, drop)| {
            // A policy alone stands behind FIFO.
            let [schedule, policy] = drop.map_or(["fifo", kind], |drop| [kind, drop]);
            let drop = drop.map(|drop| format!("drop={drop}"));
            let params = read(kind, &drop.as_deref().into_iter().collect::<Vec<_>>()).unwrap();
            ([schedule, if policy == "mcsfq" { "csfq" } else { policy }], params)
        })
        .collect();
    for (name, params) in &all {
        let built = params.build::<SimplePacket>(&setup(&[]));
        for (other, asked) in &all {
            // One algorithm with other parameters, of which only the kind is compared.
            let expected = params == asked || name == other;
            assert_eq!(built.has_params(asked), expected, "{name:?} and {other:?}");
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
fn a_reserve_is_bounded_by_the_threshold_only_where_there_is_one() {
    for kind in ["csfq", "mcsfq", "hcsfq"] {
        assert!(read(kind, &["reserve=0.8"]).is_ok(), "{kind}");
        assert!(read(kind, &["reserve=0.8", "target_delay=0s"]).is_err(), "{kind}");
    }
}
