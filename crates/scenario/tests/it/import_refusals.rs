//! Text that cannot be imported is refused with its place and a mend.

use apportion_scenario::import::{File, Kind, Options, import};

/// The messages of a file `f`.
fn refused_as(kind: Option<Kind>, gateway: bool, text: &str) -> String {
    let files = [File { name: "f".to_owned(), text: text.to_owned() }];
    let options = Options { kind, gateway, plans: "p.csv".to_owned() };
    let problems = import(&files, &options).map(|imported| imported.text).unwrap_err();
    problems.iter().map(|problem| format!("{problem}\n")).collect()
}

#[track_caller]
fn assert_refused(text: &str, wanted: &str) {
    let messages = refused_as(None, false, text);
    assert!(messages.starts_with(wanted), "{text}\n{messages}");
}

#[test]
fn commands_of_tc_are_refused_with_their_line() {
    for (options, wanted) in [
        ("netem delay 100", "`100` is not a time of an hour at most with its unit; write for example 10ms"),
        ("netem delay", "netem: `delay` wants a value behind it"),
        ("netem delay $D", "`$D` has a variable that is set nowhere here; write its value"),
        ("netem loss 101%", "`101%` is not between 0% and 100%; write for example 0.5%"),
        ("netem loss gemodel 1% 0%", "netem: `loss gemodel` never gets out of the bad state; write a second"),
        ("delay 1ms", "tc: there is no discipline `delay`; write for example netem behind `root`"),
        ("netem loss gemodel", "netem: `loss gemodel` wants a probability behind it"),
        ("netem rate 50%", "`50%` is not a rate of tc(8) above 0; write for example 10mbit"),
        ("netem dely 1ms", "netem: there is no option `dely`; tc-netem(8) lists its options"),
        ("cake bandwith 1mbit", "cake: there is no option `bandwith`; tc-cake(8) lists its options"),
        ("cake overhead 300", "overhead: `300` is not a whole number from -64 to 256"),
        ("cake rtt 0ms", "rtt: a round-trip time is above 0; write for example 100ms"),
        ("tbf burst 10kb latency 5ms", "tbf: it has no `rate`"),
        ("fq_codel limit many", "`many` is not a whole number of at most 4294967295"),
        ("", "tc: no discipline is named; write for example netem behind `root`"),
    ] {
        assert_refused(&format!("\ntc qdisc add dev e root {options}\n"), &format!("f:2: {wanted}"));
    }
    assert_refused("tc qdisc add root netem", "f:1: tc: no device is named; write for example dev eth0\n");
    let read = "it is read as files of tc: a script of commands, or the output of `tc qdisc show`; --from names others\n";
    assert_refused("tc qdisc show", &format!("f:1: there is nothing in it to import; {read}"));
    let left_out = "(line 1: `fq` is not imported: left out)";
    assert_refused(
        "tc qdisc add dev e root fq",
        &format!("f:1: there is nothing in it to import {left_out}; {read}"),
    );
}

#[test]
fn other_files_are_refused_with_their_line() {
    let sqm = "config queue\n option enabled 1\n option interface e\n option upload 1\n";
    for (text, wanted) in [
        ("name: x\ntopology:\n", "f:1: a topology of containerlab is not read; import what"),
        ("hello", "f:1: nothing here says what wrote it; name it with --from: libreqos ("),
        ("config queue x\n option enabled 0\n", "f:1: no queue is enabled; write option enabled '1'"),
        (&format!("{sqm} option download fast\n"), "f:5: download: `fast` is not a whole number of kbit/s"),
        (
            &format!("{sqm} option download 1\n option qdisc red\n"),
            "f:6: qdisc `red` is not imported; those that are",
        ),
        (&format!("{sqm} optoin download 1\n"), "f:5: `optoin download 1` is no line of UCI"),
        ("{ \"n\": [ { \"packet_loss\": } ] }", "f:1: not what `tools netem show -f json` prints"),
        ("clab tools netem set -n a --delay 1ms", "f:1: no interface is named; write --interface"),
        (
            "clab tools netem set -n a -i b --jitter 1ms",
            "f:1: jitter wants a delay, as containerlab says too",
        ),
        ("clab tools netem set -n a -i b --dealy 1ms", "f:1: there is no `--dealy` of `tools netem set`"),
        ("{\"A\": {\"downloadBandwidthMbps\": 1}}", "f:1: there are no circuits; name ShapedDevices.csv"),
        (
            "Circuit ID;Name\n1;x\n",
            "f:1: the cells are not separated by commas; save the table as CSV with commas",
        ),
        ("Circuit ID,Name\n1,x\n", "f:1: a column `Download Max Mbps` is missing"),
        (
            "Circuit ID,Download Max Mbps,Upload Max Mbps,IPv4\n1,fast,0,1.1.1.1\n,1,1,\n",
            "f:2: Download Max Mbps: `fast` is not a number of Mb/s up to 1000000; write for example 100\n\
             f:2: Upload Max Mbps: it is empty or 0; write what the circuit has at most, such as 100\n\
             f:3: Circuit ID: it is empty",
        ),
        (
            "Circuit ID,Download Max Mbps,Upload Max Mbps,IPv4\n1,1,1,\n",
            "f:1: no circuit has an address, and packets are told apart by addresses",
        ),
    ] {
        assert_refused(text, wanted);
    }
    let message = refused_as(None, true, "clab tools netem set -n a -i b --delay 1ms");
    assert!(message.starts_with("f:1: impairments of containerlab are links of a scenario"), "{message}");
    let two = "tc qdisc add dev a root cake bandwidth 1mbit\ntc qdisc add dev b root cake bandwidth 1mbit\n";
    let message = refused_as(None, true, two);
    assert!(message.starts_with("f:1: a gateway has one link, and here are a, b; "), "{message}");
}
