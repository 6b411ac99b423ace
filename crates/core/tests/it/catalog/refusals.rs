//! Wrong settings are refused with a clear message.

use apportion_core::mark::MarkerParams;
use apportion_core::param::Role;
use apportion_core::system::catalog::{Catalog, Selection};

use crate::common::read;

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
            "`min_th`: unknown parameter; known here: quantum, limit, thresholds, rtt_of, victim, ties, isolate, preset",
        ),
        (
            "fifo",
            &["limit=50"],
            "`limit`: `50` is not a size in packets, bytes or time of the link; write for example \"50p\", \"64kB\" or \"100ms\"",
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
        ("tred", &["k=0"], "`k`: it has no effect: only expect = \"mean\" leaves out packets of rich flows"),
        (
            "tred",
            &["target=middle", "adaptive=false"],
            "`target`: it has no effect: only adaptive = true moves the average to it",
        ),
        (
            "sffc",
            &["previous=final"],
            "`previous`: it has no effect: only cuts that are shares, discard = \"share\", go on from a rate before",
        ),
        ("fq_pie", &["mark_ecnth=0.2"], "`mark_ecnth`: it has no effect: only ecn = true marks packets"),
        (
            "lqd",
            &["rtt_of=all"],
            "`rtt_of`: it has no effect: only thresholds = \"rtt\" follows round-trip times",
        ),
        (
            "pfd",
            &["rtt_of=all"],
            "`rtt_of`: it has no effect: only thresholds = \"rtt\" follows round-trip times",
        ),
        (
            "csfq",
            &["marking=deterministic", "catch_up=3"],
            "`catch_up`: it has no effect: only marking = \"debt\" lets a flow catch up",
        ),
        (
            "ramp",
            &["predictor=true"],
            "`predictor`: it has no effect: with control_delay = \"0ms\" nothing is held back; set that, or leave it out",
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
            "`beta`: unknown parameter; known here: limit, interval, increment, group, alpha, history, wait, regular, \
             active, reports, previous, discard, report_discards, counters, recognise, trust, isolate, preset",
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
            "`initial`: unknown parameter; known here: limit, threshold, k, credit, k_alpha, k_c, target_delay, role, egress, by_flow, \
             bits, marking, bucket, catch_up, reserve, l4s, isolate, preset",
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
