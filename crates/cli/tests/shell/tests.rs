//! Promises of the command that can be tested without other programs.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::UdpSocket;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use apportion_testing::child::Running;
use apportion_testing::processes::{CASE, judge_by_time, this_program};
use apportion_testing::skip;
use nix::sys::signal::Signal;
use serde_json::Value;
use tempfile::TempDir;

use super::common::{Run, apportion};
use super::video;

pub const PORT: u16 = 9_000;

/// Whether the system forbids user namespaces.
fn is_forbidden(folder: &TempDir) -> bool {
    let run = apportion(folder.path(), &["shell", "--", "true"]);
    let forbidden = run.status == 2 && run.err.contains("cannot make a");
    if forbidden {
        skip::because(&run.err);
    }
    forbidden
}

/// Makes a folder, unless the test is to be skipped.
fn ready() -> Option<TempDir> {
    let folder = tempfile::tempdir().unwrap();
    (!is_forbidden(&folder)).then_some(folder)
}

/// Name of [`part`] as a test.
const PART: &str = "tests::part";

/// Shell command line that runs a part of this program.
fn part_line(part: &str) -> String {
    let this = std::env::current_exe().unwrap();
    format!("{CASE}={PART} SHELL_PART='{part}' exec '{}'", this.display())
}

/// Runs `part` behind a link with `far` at its other end.
fn between(folder: &Path, link: &[&str], far: &str, near: &str) -> Run {
    let (far, near) = (part_line(far), part_line(near));
    let mut arguments = vec!["shell", "--time-limit", "20s", "--far", &far];
    arguments.extend(link);
    arguments.extend(["--", "sh", "-c", &near]);
    apportion(folder, &arguments)
}

fn json(folder: &Path, name: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(folder.join(name)).unwrap()).unwrap()
}

/// Numbers that a part printed after `MEASURED`.
fn measured(run: &Run) -> Vec<f64> {
    let line = run
        .out
        .lines()
        .find_map(|line| line.strip_prefix("MEASURED "))
        .unwrap_or_else(|| panic!("{}{}", run.out, run.err));
    line.split(' ').map(|number| number.parse().unwrap()).collect()
}

/// Rate at the far interface between two times in seconds, by the lines of [`count`]; Mbit/s.
fn rate_at_far(file: &Path, from: f64, to: f64) -> f64 {
    let text = fs::read_to_string(file).unwrap();
    let samples: Vec<(f64, f64)> = text
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(at, bytes)| (at.parse::<f64>().unwrap() / 1e9, bytes.parse().unwrap()))
        .filter(|(at, _)| (from..to).contains(at))
        .collect();
    let (first, last) = (samples.first().unwrap(), samples.last().unwrap());
    (last.1 - first.1) * 8.0 / (last.0 - first.0) / 1e6
}

/// Part of this program behind the link or at its end, chosen by the environment.
pub fn part() {
    let Ok(part) = std::env::var("SHELL_PART") else { return };
    let words: Vec<&str> = part.split(' ').collect();
    match words[..] {
        ["echo"] => echo(),
        ["rtt", times] => rtt(times.parse().unwrap()),
        ["count", file] => count(Path::new(file)),
        ["blast", mbit, ms] => blast(mbit.parse().unwrap(), ms.parse().unwrap()),
        ["sink", file] => video::sink(Path::new(file)),
        ["overload", socket] => video::overload(Path::new(socket)),
        ["film", bulk] => video::film(bulk.parse().unwrap()),
        ["terminal", file] => terminal(Path::new(file)),
        ["daemon"] => daemon(),
        _ => panic!("{part}"),
    }
}

fn echo() {
    let socket = UdpSocket::bind(("0.0.0.0", PORT)).unwrap();
    let mut buffer = [0; 2_048];
    loop {
        let (length, from) = socket.recv_from(&mut buffer).unwrap();
        socket.send_to(&buffer[..length], from).unwrap();
    }
}

/// Prints round-trip times in µs: minimum, median, 90th percentile.
fn rtt(times: usize) {
    let socket = UdpSocket::bind(("0.0.0.0", 0)).unwrap();
    socket.connect((std::env::var("APPORTION_FAR").unwrap(), PORT)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let mut took: Vec<u128> = (0..times)
        .map(|_| {
            sleep(Duration::from_millis(5));
            let start = Instant::now();
            socket.send(&[0; 56]).unwrap();
            socket.recv(&mut [0; 64]).unwrap();
            start.elapsed().as_micros()
        })
        .collect();
    took.sort_unstable();
    println!("\nMEASURED {} {} {}", took[0], took[times / 2], took[times * 9 / 10]);
}

/// Writes the bytes that the interface has received whenever they grow, with the time since the first.
fn count(file: &Path) {
    let _socket = UdpSocket::bind(("0.0.0.0", PORT)).unwrap();
    // Appended, never rewritten: this process can be killed at any moment.
    let mut out = fs::File::create(file).unwrap();
    let (mut before, mut start) = (0, None);
    loop {
        let table = fs::read_to_string("/proc/self/net/dev").unwrap();
        let line = table.lines().find_map(|line| line.trim().strip_prefix("eth0:")).unwrap();
        let bytes: u64 = line.split_whitespace().next().unwrap().parse().unwrap();
        if bytes > before {
            let start = start.get_or_insert_with(Instant::now);
            let line = format!("{} {bytes}\n", start.elapsed().as_nanos());
            out.write_all(line.as_bytes()).unwrap();
            before = bytes;
        }
        sleep(Duration::from_micros(500));
    }
}

/// Sends full packets at a rate.
fn blast(mbit: f64, ms: u64) {
    let socket = UdpSocket::bind(("0.0.0.0", 0)).unwrap();
    socket.connect((std::env::var("APPORTION_FAR").unwrap(), PORT)).unwrap();
    let start = Instant::now();
    let mut sent = 0.0;
    while start.elapsed() < Duration::from_millis(ms) {
        while sent < mbit * 1e6 / 8.0 * start.elapsed().as_secs_f64() {
            let _ = socket.send(&[0; 1_472]);
            sent += 1_514.0;
        }
        sleep(Duration::from_millis(1));
    }
    // Wait until the other end has written its last sample.
    sleep(Duration::from_millis(150));
}

pub fn a_video_has_its_rate_beside_bulk_transfers_of_the_same_host_if_it_is_real_rate() {
    let Some(folder) = ready().filter(|_| skip::unless_judged_by_the_clock()) else { return };
    let file = folder.path().join("bytes");
    let arrives = |options: &[&str]| {
        let link = [&["--rate", "4Mbit", "--delay", "5ms"], options].concat();
        let run = between(folder.path(), &link, &format!("sink {}", file.display()), "film 12");
        let got: f64 = fs::read_to_string(&file).unwrap().parse().unwrap();
        println!("{options:?}: {:.3} of the video\n{}", got / measured(&run)[0], run.err);
        (got / measured(&run)[0], run.err)
    };
    // Among 13 flows its share of 4 Mb/s is 0.26 of its need.
    let (without, err) = arrives(&["--queue", "ramp"]);
    assert!(without < 0.6 && err.contains("warning: no flow is real-rate"), "{without} {err}");
    let rule = format!("{{ protocol = \"udp\", to_port = {PORT} }}");
    let (with, err) = arrives(&["--queue", "ramp", "--real-rate", &rule]);
    assert!(with >= 0.98 && !err.contains("warning: "), "{with} {err}");
}

pub fn an_application_reads_that_the_link_cannot_carry_what_it_sends() {
    let Some(folder) = ready() else { return };
    let ramp = ["--rate", "1Mbit", "--queue", "ramp", "--real-rate", "{ protocol = \"udp\" }"];
    let file = folder.path().join("bytes");
    let options = [&ramp[..], &["--notifications", "x.sock"]].concat();
    let run = between(folder.path(), &options, &format!("sink {}", file.display()), "overload x.sock");
    println!("{}", run.out);
    // 200 ms are asked for on an idle machine.
    assert!(measured(&run)[0] < 400.0 && run.out.contains("\"direction\":\"up\""), "{}", run.out);
    assert!(!folder.path().join("x.sock").exists());
}

pub fn the_exit_status_is_the_commands() {
    let Some(folder) = ready() else { return };
    let run = |arguments: &[&str]| apportion(folder.path(), &[&["shell"], arguments].concat());
    let done = run(&["--delay", "1ms", "--", "sh", "-c", "echo said; exit 3"]);
    assert_eq!((done.status, done.out.as_str()), (3, "said\n"));
    assert!(done.err.contains("`sh` ended with status 3"), "{}", done.err);
    // 128 + 9; timeout(1) exits with 124.
    assert_eq!(run(&["--quiet", "--", "sh", "-c", "kill -9 $$"]).status, 137);
    let limited = run(&["--time-limit", "100ms", "--", "sleep", "100"]);
    assert_eq!(limited.status, 124);
    assert!(limited.err.contains("time limit"), "{}", limited.err);
    let quiet = run(&["--quiet", "--", "true"]);
    assert_eq!((quiet.status, quiet.out.as_str(), quiet.err.as_str()), (0, "", ""));
}

pub fn wrong_options_are_reported_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |arguments: &[&str], part: &str| {
        let run =
            apportion(folder.path(), &[&["shell"], arguments, &["--", "sh", "-c", "echo ran"]].concat());
        assert_eq!((run.status, run.out.as_str()), (2, ""), "{arguments:?}: {}", run.err);
        assert_eq!(run.err.matches("error:").count(), 1, "{}", run.err);
        assert!(run.err.contains(part), "{arguments:?}: {}", run.err);
    };
    refused(&["--rate", "10kbps"], "bits or bytes?");
    refused(&["--rate", "1Mbit", "--trace", "x"], "cannot be used with");
    refused(&["--queue", "{ kind = \"red\", limit = \"50\" }"], "is not a size in packets, bytes or time");
    refused(&["--up-queue", "nothing"], "nothing");
    refused(&["--trace", "missing.trace"], "missing.trace: cannot read the trace");
    refused(&["--steps", "1s 1Mbit"], "the first step must be at 0s");
    refused(&["--loss", "2"], "between 0 and 1");
    let ramp = |rule| ["--queue", "ramp", "--real-rate", rule];
    refused(
        &ramp("udp"),
        "real-rate: `udp` is not a table; write for example { protocol = \"udp\", to_port = 5004 }",
    );
    refused(&ramp("{ to_port = 99999 }"), "to_port: `99999` is neither a port nor a range");
    refused(&ramp("{ port = 9 }"), "port: unknown key");
    refused(&ramp("{ protocol = \"icmp\", to_port = 9 }"), "packets of protocol icmp have no ports");
    refused(
        &ramp("{ dscp = \"ef\", target = \"1kB\", target_delay = \"1ms\" }"),
        "target: `target_delay` says it already",
    );
    let rule = "{ direction = \"down\", protocol = \"udp\" }";
    let other = ["--up-queue", "ramp", "--real-rate", rule];
    refused(
        &other,
        "the queue down does not distinguish classes of flows; write --queue ramp, or leave it out",
    );
    refused(
        &["--notifications", "x"],
        "x: no queue notifies of overloads; write --queue ramp, or leave it out",
    );
    refused(
        &["--queue", "ramp", "--notifications", "no/such/x"],
        "notifications: no/such/x: cannot listen there: ",
    );
    refused(&["--log", "no/such/folder"], "cannot create `no/such/folder.up`");
    fs::write(folder.path().join("bad.trace"), "5\n1\n").unwrap();
    refused(&["--down-trace", "bad.trace"], "bad.trace: line 2: 1 ms comes after");
    fs::write(folder.path().join("table.trace"), "0 1\n1 x\n").unwrap();
    let table = ["--up-trace", "table.trace", "--up-trace-columns", "s Mbit"];
    refused(&table, "table.trace: line 2: `x` is not a rate in the unit of `s Mbit`");
    refused(&["--trace-columns", "s Mbit"], "--trace <FILE>");
    refused(&["--trace", "table.trace", "--trace-columns", "Mbit"], "has no column of times");
    let without = apportion(folder.path(), &["shell", "--rate", "1Mbit"]);
    assert_eq!(without.status, 2);
}

pub fn a_program_that_is_not_there_is_bad_input() {
    let Some(folder) = ready() else { return };
    let run = apportion(folder.path(), &["shell", "--", "/no/such/program"]);
    assert_eq!(run.status, 2);
    assert!(run.err.contains("cannot start `/no/such/program`"), "{}", run.err);
}

pub fn the_caller_stays_who_they_are_and_has_no_rights_over_the_link() {
    let Some(folder) = ready() else { return };
    // Nothing but builtins of the shell.
    let show =
        "while read -r line; do case $line in Uid:*|CapEff:*) echo $line;; esac; done </proc/self/status";
    let run = apportion(folder.path(), &["shell", "-q", "--", "sh", "-c", show]);
    let mut lines = run.out.lines();
    let (user, [real, effective]) = (nix::unistd::getuid(), [nix::unistd::getuid(), nix::unistd::geteuid()]);
    let seen = lines.next().unwrap();
    assert!(seen.starts_with(&format!("Uid: {real} {effective} ")), "{seen}");
    // Root keeps its rights across exec; other users have none.
    if !user.is_root() {
        assert_eq!(lines.next(), Some("CapEff: 0000000000000000"));
    }
}

pub fn shells_nest_with_addresses_of_their_own() {
    let Some(folder) = ready() else { return };
    let inner = assert_cmd::cargo::cargo_bin("apportion");
    let show = "echo $APPORTION_NEAR $APPORTION_FAR $APPORTION_DEPTH";
    let run = apportion(
        folder.path(),
        &[
            "shell",
            "-q",
            "--",
            inner.to_str().unwrap(),
            "shell",
            "-q",
            "--delay",
            "1ms",
            "--",
            "sh",
            "-c",
            show,
        ],
    );
    assert_eq!((run.status, run.out.as_str(), run.err.as_str()), (0, "100.64.1.2 100.64.1.1 2\n", ""));
}

pub fn a_command_starts_soon() {
    let Some(folder) = ready() else { return };
    let took: Vec<Duration> = (0..5)
        .map(|_| {
            let start = Instant::now();
            assert_eq!(apportion(folder.path(), &["shell", "-q", "--", "sh", "-c", "echo x"]).out, "x\n");
            start.elapsed()
        })
        .collect();
    // 150 ms on an idle machine; the best of five on a busy one.
    assert!(took.iter().min().unwrap() < &Duration::from_millis(400), "{took:?}");
    println!("start to end: {took:?}");
}

pub fn a_round_trip_takes_both_delays_and_little_more() {
    let Some(folder) = ready() else { return };
    judge_by_time();
    for (delay, asked) in [("0ms", 0.0), ("20ms", 40_000.0)] {
        let run = between(folder.path(), &["--delay", delay, "-q"], "echo", "rtt 50");
        let [least, median, most] = measured(&run)[..] else { panic!("{}", run.out) };
        println!("delay {delay}: {least} {median} {most} µs");
        assert!(least >= asked, "{least}");
        // 800 µs above the delay at most on an idle machine.
        assert!(median <= asked + 3_000.0, "{delay}: {median}");
    }
    // With a rate: 98 bytes at 1 Mbit/s take 784 µs each way.
    let run = between(folder.path(), &["--delay", "5ms", "--rate", "1Mbit"], "echo", "rtt 30");
    let [least, median, _] = measured(&run)[..] else { panic!("{}", run.out) };
    println!("1 Mbit/s, 5 ms: {least} {median} µs");
    assert!(least >= 11_568.0 && median <= 15_000.0, "{least} {median}");
}

pub fn what_arrives_comes_at_the_rate_that_was_asked_for() {
    let Some(folder) = ready() else { return };
    judge_by_time();
    let rates = std::env::var("SHELL_RATES").unwrap_or_else(|_| "1 10 100".to_owned());
    for mbit in rates.split(' ').map(|rate| rate.parse::<f64>().unwrap()) {
        let file = folder.path().join("counts");
        let rate = format!("{mbit}Mbit");
        let run = between(
            folder.path(),
            &["--rate", &rate, "--json", "x.json"],
            &format!("count {}", file.display()),
            &format!("blast {} 2500", mbit * 1.2),
        );
        let far = rate_at_far(&file, 0.3, 2.4);
        println!("{rate}: {far:.4} Mbit/s at the far interface\n{}", run.err);
        // 0.5 % where nothing else runs.
        assert!((0.98..1.02).contains(&(far / mbit)), "{rate}: {far}");
        let json = json(folder.path(), "x.json");
        let busy = json["directions"]["up"]["busy_mbps"].as_f64().unwrap();
        assert!((busy / mbit - 1.0).abs() < 0.001, "{busy}");
    }
}

pub fn steps_change_the_rate_and_a_trace_sets_the_pace() {
    let Some(folder) = ready() else { return };
    judge_by_time();
    let file = folder.path().join("counts");
    let count = format!("count {}", file.display());
    let steps = ["--steps", "0s 8Mbit, 1200ms 2Mbit", "--queue", "{ kind = \"fifo\", limit = \"10p\" }"];
    between(folder.path(), &steps, &count, "blast 10 2500");
    // The link's clock started up to a few tenths of a second before the first packet.
    let (before, after) = (rate_at_far(&file, 0.1, 0.7), rate_at_far(&file, 1.3, 2.4));
    let is_near = |rate: f64, asked: f64| (0.97..1.03).contains(&(rate / asked));
    assert!(is_near(before, 8.0) && is_near(after, 2.0), "{before} {after}");

    // A packet of 1500 + 4 bytes each millisecond; the interface counts 1514 of them: 12.112 Mbit/s.
    fs::write(folder.path().join("one.trace"), "1\n").unwrap();
    between(folder.path(), &["--up-trace", "one.trace", "--down-rate", "1Mbit"], &count, "blast 20 1500");
    let traced = rate_at_far(&file, 0.2, 1.4);
    assert!(is_near(traced, 12.112), "{traced}");
}

pub fn a_log_holds_every_packet_in_mahimahis_format() {
    let Some(folder) = ready() else { return };
    let link = ["--rate", "4Mbit", "--delay", "10ms", "--queue", "{ kind = \"fifo\", limit = \"5p\" }"];
    let rest = ["--log", "x.log", "--json", "x.json", "--loss", "10%", "--report", "results"];
    let run = between(folder.path(), &[link.as_slice(), &rest].concat(), "count far", "blast 8 1000");
    assert_eq!(run.status, 0, "{}", run.err);
    let log = fs::read_to_string(folder.path().join("x.log.up")).unwrap();
    let headers: Vec<&str> = log.lines().take(5).collect();
    assert_eq!(headers[0], "# mahimahi mm-link (uplink) [4Mbit] > x.log.up");
    assert!(headers[1].starts_with("# command line: sh -c"), "{}", headers[1]);
    assert_eq!(headers[2], "# queue: { kind = \"fifo\", limit = \"5p\" }");
    assert!(headers[3].strip_prefix("# init timestamp: ").unwrap().parse::<u64>().is_ok());
    assert_eq!(headers[4], "# base timestamp: 0");
    let (mut came, mut left, mut gone, mut possible, mut before) = (0, 0, 0, 0, 0);
    for line in log.lines().skip(5) {
        let words: Vec<&str> = line.split(' ').collect();
        let at: u64 = words[0].parse().unwrap();
        match words[1..] {
            ["+", size] => came += size.parse::<u64>().unwrap(),
            ["-", size, delay] => {
                left += size.parse::<u64>().unwrap();
                assert!((10..60).contains(&delay.parse::<u64>().unwrap()), "{line}");
            }
            ["d", "1", size] => gone += size.parse::<u64>().unwrap(),
            ["#", size] => possible += size.parse::<u64>().unwrap(),
            _ => panic!("{line}"),
        }
        assert!(at >= before, "{line}");
        before = at;
    }
    // Packets without a result at the end were in flight: 5 in the queue, one in transmission, 4 on the wire.
    assert!(came >= left + gone && came - left - gone <= 10 * 1_514, "{came} {left} {gone}");
    let json = json(folder.path(), "x.json");
    let up = &json["directions"]["up"];
    let seconds = json["seconds"].as_f64().unwrap();
    assert!((possible as f64 * 8.0 / 4e6 / seconds - 1.0).abs() < 0.02, "{possible} {seconds}");
    // 10 % of n packets within four standard deviations of 0.3 √n.
    let (lost, packets) = (up["lost"].as_f64().unwrap(), up["packets"].as_f64().unwrap());
    assert!((lost - 0.1 * packets).abs() < 4.0 * 0.3 * packets.sqrt(), "{lost} of {packets}");
    assert!(up["dropped"]["overflow"].as_u64().unwrap() > 0, "{up}");
    assert!(json["valid"].is_boolean() && json["flows"].as_u64().unwrap() >= 1);
    let flows = fs::read_to_string(folder.path().join("results/1/flows.csv")).unwrap();
    assert!(flows.contains("udp 100.64.0.2:"), "{flows}");
    assert_unmeasured_is_empty(&flows);
    let report = fs::read_to_string(folder.path().join("results/1/report.html")).unwrap();
    assert!(report.contains(">Sent packets<") && !report.contains(">Retransmits<"), "{report}");
    assert!(fs::read_to_string(folder.path().join("x.log.down")).unwrap().contains("(downlink)"));
}

/// Checks that values a shell cannot know, of connections that are not its own, are empty and not zero.
fn assert_unmeasured_is_empty(flows: &str) {
    let mut lines = flows.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let names = lines.next().unwrap();
    let columns = ["goodput_mbps", "goodput_bytes", "retransmits", "timeouts", "fast_retransmits"];
    let columns = columns.map(|column| names.iter().position(|name| *name == column).unwrap());
    for cells in lines {
        assert!(columns.iter().all(|column| cells[*column].is_empty()), "{flows}");
    }
}

/// Number of processes with this word among their arguments.
fn alive(word: &str) -> usize {
    let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    entries
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .filter(|line| line.split(|byte| *byte == 0).any(|argument| argument == word.as_bytes()))
        .count()
}

/// Waits up to 10 s until there are `count` processes with this word.
fn wait_for(word: &str, count: usize) {
    for _ in 0..1_000 {
        if alive(word) == count {
            return;
        }
        sleep(Duration::from_millis(10));
    }
    panic!("{} processes with `{word}`, not {count}", alive(word));
}

/// Leaves the session, and waits.
fn daemon() {
    nix::unistd::setsid().unwrap();
    sleep(Duration::from_secs(60));
}

fn long_shell(word: &str, arguments: &[&str]) -> Running {
    // The daemon takes the word for a further name of a test, and no test has it.
    let line = format!("({} {word}) & sleep {word}; exit 5", part_line("daemon"));
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("apportion"));
    command
        .args([&["shell", "--time-limit", "60s"], arguments, &["--", "sh", "-c", &line]].concat())
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .stdout(Stdio::null());
    Running::start(&mut command)
}

pub fn nothing_is_left_of_a_shell_that_was_killed() {
    if ready().is_none() {
        return;
    }
    let word = format!("7{:06}.25", std::process::id());
    let mut shell = long_shell(&word, &["--far", &format!("sleep {word}")]);
    // Two processes of the command, one of which has left its session, and one at the far end.
    wait_for(&word, 3);
    assert_eq!(shell.kill().signal(), Some(9));
    wait_for(&word, 0);
}

pub fn a_signal_goes_to_the_command_and_its_daemons_end_with_it() {
    if ready().is_none() {
        return;
    }
    let word = format!("8{:06}.25", std::process::id());
    let mut shell = long_shell(&word, &[]);
    wait_for(&word, 2);
    shell.signal(Signal::SIGTERM);
    // 128 + 15 (SIGTERM).
    assert_eq!(shell.wait().code(), Some(143));
    wait_for(&word, 0);
}

/// Takes `file` as its terminal, runs the words of `SHELL_COMMAND` behind a link there, and reports the
/// status and whether it has the terminal back.
fn terminal(file: &Path) {
    nix::unistd::setsid().unwrap();
    // The first terminal that a session leader opens becomes the session's.
    let terminal = fs::File::options().read(true).write(true).open(file).unwrap();
    let stream = || Stdio::from(terminal.try_clone().unwrap());
    // Tests started by a shell in the background ignore SIGINT, and their children would too.
    let mut shell = Command::new("env");
    shell.arg("--default-signal=INT").arg(assert_cmd::cargo::cargo_bin("apportion"));
    shell.args(["shell", "--quiet", "--time-limit", "15s", "--"]);
    shell.args(std::env::var("SHELL_COMMAND").unwrap().split('|'));
    let status = Running::start(shell.stdin(stream()).stdout(stream()).stderr(stream())).wait();
    let is_back = nix::unistd::tcgetpgrp(&terminal).unwrap() == nix::unistd::getpgrp();
    println!("MEASURED {} {}", status.code().unwrap(), u8::from(is_back));
}

/// Types `keys` at a terminal, each after the text before it was read. Returns the output, and the
/// measurements of [`terminal`].
fn at_terminal(command: &str, keys: &[(&str, &str)]) -> (String, Vec<f64>) {
    let pty = nix::pty::openpty(None, None).unwrap();
    let file = nix::unistd::ttyname(&pty.slave).unwrap();
    let mut this = this_program();
    this.env(CASE, PART)
        .env("SHELL_PART", format!("terminal {}", file.display()))
        .env("SHELL_COMMAND", command)
        .env("PS1", "ready> ")
        .stdout(Stdio::piped());
    let this = Running::start(&mut this);
    let mut master = fs::File::from(pty.master);
    let (mut shown, mut typed, mut seen) = (String::new(), 0, 0);
    drop(pty.slave);
    // Reading fails with EIO once all processes have closed the terminal, at the time limit at the latest.
    let mut bytes = [0; 1024];
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(20) {
        let Ok(length) = master.read(&mut bytes) else {
            // The terminal may have no reader yet.
            if typed > 0 || begun.elapsed() > Duration::from_secs(15) {
                break;
            }
            sleep(Duration::from_millis(10));
            continue;
        };
        shown += &String::from_utf8_lossy(&bytes[..length]);
        while let Some((before, key)) = keys.get(typed)
            && let Some(at) = shown[seen..].find(before)
        {
            seen += at + before.len();
            master.write_all(key.as_bytes()).unwrap();
            typed += 1;
        }
    }
    let output = this.output();
    let out = String::from_utf8(output.stdout).unwrap();
    let run = Run { status: 0, out, err: shown.clone() };
    (shown, measured(&run))
}

pub fn an_interactive_shell_controls_its_jobs_and_gives_the_terminal_back() {
    if ready().is_none() {
        return;
    }
    let keys = [("ready> ", "sh -c 'echo $((6*7))'\n"), ("ready> ", "exit 3\n")];
    let (shown, measured) = at_terminal("sh|-i", &keys);
    assert!(shown.contains("42") && !shown.contains("tty") && !shown.contains("job control"), "{shown}");
    assert_eq!(measured, [3.0, 1.0], "{shown}");
}

pub fn the_keys_of_a_terminal_reach_the_command() {
    if ready().is_none() {
        return;
    }
    // Ctrl-C: 128 + SIGINT. Without a trap, dash under -c may defer the signal until the command ends.
    let command = "sh|-c|trap 'exit 130' INT; echo begun; sleep 5; true";
    let (shown, measured) = at_terminal(command, &[("begun", "\x03")]);
    assert_eq!(measured, [130.0, 1.0], "{shown}");
    // Ctrl-Z without a shell that could continue the job: the command keeps running.
    let (shown, measured) =
        at_terminal("sh|-c|echo begun; read word; echo got $word", &[("begun", "\x1a"), ("^Z", "it\n")]);
    assert!(shown.contains("got it"), "{shown}");
    assert_eq!(measured, [0.0, 1.0], "{shown}");
}
