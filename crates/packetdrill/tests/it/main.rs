//! Scripts of our own: what holds, and what must not.
#![allow(clippy::unwrap_used, reason = "in tests a panic is the message")]

use std::path::{Path, PathBuf};
use std::process::Command;

use apportion_packetdrill::parse::{MOST, parse};
use apportion_packetdrill::{Verdict, judge};
use apportion_testing::properties::cases;
use proptest::prelude::*;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts")
}

fn script(name: &str) -> String {
    std::fs::read_to_string(folder().join(name).with_extension("pkt")).unwrap()
}

fn names() -> Vec<String> {
    let files = std::fs::read_dir(folder()).unwrap();
    files.map(|file| file.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned()).collect()
}

#[test]
fn scripts_of_what_the_simulator_does_pass() {
    let names = names();
    assert!(names.len() > 5, "{names:?}");
    for name in names {
        assert_eq!(judge(&script(&name)), Verdict::Pass, "{name}");
    }
}

#[test]
fn each_field_of_a_script_is_compared() {
    for (name, from, to) in [
        ("slow-start", "before + 2", "before + 3"),
        ("slow-start", "10001:14001(4000)", "10001:15001(5000)"),
        ("slow-start", "+0 > P. 1:10001", "+.01 > P. 1:10001"),
        ("slow-start", "wscale 8>", "wscale 7>"),
        ("slow-start", "mss 1460,", ""),
        ("repair", "> . 989:1977(988)", "> . 1:989(988)"),
        ("repair", "val 302 ecr 802", "val 302 ecr 801"),
        ("repair", "TCP_CA_Disorder", "TCP_CA_Open"),
        ("repair", "tcpi_lost == 1", "tcpi_lost == 2"),
        ("both-ways", "= 300", "= 299"),
        ("both-ways", "[300]", "[0]"),
        ("both-ways", "F. 501:501(0) ack 302", ". 501:501(0) ack 302"),
        ("both-ways", "P. 1:501(500) ack 301", "P. 1:501(500) ack 1"),
        ("probe", "+.2~+.21", "+.3~+.31"),
        ("probe", "P. 1001:2001(1000) ack 1\n   +.3", ". 1:1001(1000) ack 1\n   +.3"),
        ("no-probe", "+.3 >", "+.2 >"),
        ("no-probe", "tcp_early_retrans=0", "tcp_early_retrans=4"),
        ("marks", "[ect0] W. 10001", "[ect0] . 10001"),
        ("marks", "[ect0] P", "[ect1] P"),
        ("marks", "tcp_ecn=2", "tcp_ecn=0"),
        ("late", "sack 4001:5001 2001:3001", "sack 2001:3001 4001:5001"),
        ("late", "ack 3001 <nop,nop,sack 4001:5001>", "ack 3001"),
        ("late", "ack 6001 <nop,nop,sack 4001:5001>", "ack 6001"),
        ("accurate", "> SA. 0", "> SW. 0"),
        ("accurate", "> .6 1:1", "> .5 1:1"),
        ("accurate", "[ect0] P.6", "[noecn] P.6"),
        ("accurate", "delivered_ce == 2", "delivered_ce == 1"),
        ("accurate", "tcp_ecn=3", "tcp_ecn=1"),
        ("accurate-marked-syn-ack", "< WA. 1", "< A. 1"),
        ("accurate-client", "[ce] SW.", "[ect0] SW."),
        ("accurate-bleached", "< . 1:1(0)", "< W. 1:1(0)"),
        ("accurate-bleached", "> .6 1:1", "> .5 1:1"),
        ("accurate-late-refusal", "> SW. 0", "> S. 0"),
        ("accurate-late-refusal", "[noecn] P.5", "[ect0] P.5"),
        ("accurate-late-request", "> S. 0:0(0) ack 1 <...>\n +.05", "> SW. 0:0(0) ack 1 <...>\n +.05"),
        ("accurate-syn-ack-again", "] S. 0", "] SEW. 0"),
        ("accurate-syn-ack-again", "[noecn] P.5", "[ect0] P.5"),
        ("accurate-syn-ack-again", "tcp_ecn_option=0", "tcp_ecn_option=2"),
        ("accurate-no-counters", "_option=0", "_option=2"),
        ("closed-window", "2000:2000(0)", "2001:2002(1)"),
        ("reordered", "reordering == 5", "reordering == 3"),
    ] {
        let text = script(name);
        let changed = text.replace(from, to);
        assert_ne!(text, changed, "{name}: {from}");
        let verdict = judge(&changed);
        assert!(matches!(verdict, Verdict::Fail(_)), "{name}: {to}: {verdict:?}");
    }
}

#[test]
fn a_difference_names_line_expectation_and_event() {
    let Verdict::Fail(difference) = judge(&script("slow-start").replace("before + 2", "before + 3")) else {
        panic!()
    };
    assert_eq!((difference.line, difference.expected.as_str()), (17, "tcpi_snd_cwnd == before + 3"));
    assert_eq!(difference.got, "tcpi_snd_cwnd = 12, before = 10");
}

#[test]
fn what_the_model_lacks_has_a_reason() {
    let text = script("slow-start");
    for (from, to, kind) in [
        ("mss 1000", "mss 1000,FO 123", "TCP Fast Open"),
        ("listen(3, 1)", "setsockopt(3, SOL_TCP, TCP_CORK, [1], 4)", "corks"),
        ("`../defaults.sh`", "`iptables -L`", "commands of the host"),
        ("+0 accept", "+0 epoll_create(1) = 5\n+0 accept", "socket interface"),
        ("mss 1000,sackOK", "mss 1000", "no selective acknowledgments"),
    ] {
        let Verdict::NotApplicable(reason) = judge(&text.replace(from, to)) else { panic!("{to}") };
        assert_eq!(reason.kind, kind, "{to}");
    }
    let Verdict::Part(line, reason) = judge(&format!("{text}+0 > R. 1:1(0) ack 1\n")) else { panic!() };
    assert_eq!((line, reason.kind), (18, "resets"));
}

#[test]
fn what_is_no_script_has_a_line() {
    for (text, line) in [
        ("0 socket(", 1),
        ("\n0 > . 1:2(0) ack 1", 2),
        ("0 < . 1:1(0) ack 1", 1),
        ("`sh", 1),
        ("+1~+2 < . 1:1(0) win 1", 1),
        ("0 > Q 1:1(0)", 1),
        ("0 > . 1:70001(70000)", 1),
        ("3601 > . 1:1(0)", 1),
        ("0 %{ assert 1", 1),
        ("nonsense", 1),
    ] {
        assert_eq!(parse(text).map_err(|error| error.line), Err(line), "{text}");
    }
    assert!(parse(&" ".repeat(MOST + 1)).is_err());
}

#[test]
fn the_program_compares_verdicts_with_a_list() {
    let program = |arguments: &[&str]| {
        let output =
            Command::new(env!("CARGO_BIN_EXE_apportion-packetdrill")).args(arguments).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let folder = folder();
    let folder = folder.to_str().unwrap();
    let (status, text) = program(&[folder]);
    assert_eq!(status, Some(0), "{text}");
    assert!(text.contains(&format!("{:>5}  pass\n", names().len())), "{text}");
    let list = tempfile::NamedTempFile::new().unwrap();
    let path = list.path().to_str().unwrap();
    let lines = |word: &str| names().iter().map(|name| format!("{word} {name}\n")).collect::<String>();
    for (content, status) in [
        (lines("pass"), Some(0)),
        (lines("pass").replace("pass late", "fail late"), Some(1)),
        (lines("pass").replace("pass late\n", ""), Some(1)),
        ("nonsense\n".to_owned(), Some(2)),
    ] {
        std::fs::write(path, &content).unwrap();
        assert_eq!(program(&["--expected", path, folder]).0, status, "{content}");
    }
    assert_eq!(program(&["no such folder"]).0, Some(2));
}

/// Words of the language, and some that are none.
const WORDS: &[&str] = &[
    "0 ",
    "+0 ",
    "+.1 ",
    "+1~+2 ",
    "* ",
    "< ",
    "> ",
    "S 0:0(0) ",
    "S. 0:0(0) ack 1 ",
    ". 1:1(0) ack 1 ",
    "P. 1:1001(1000) ",
    "ack 1001 ",
    "win 65535 ",
    "<mss 1000,sackOK>",
    "<sack 1001:2001 3001:2001>",
    "<TS val 1 ecr 2>",
    "<...>",
    "[ce] ",
    "F. 1:1(0) ack 1 ",
    "connect(3, ..., ...) = 0\n",
    "accept(3, ..., ...) = 4\n",
    "write(4, ..., 99999999999) = 99999999999\n",
    "close(4) = 0\n",
    "%{ assert tcpi_snd_cwnd == 10 }%",
    "%{ x = 1 << 99 }%",
    "`sysctl -q net.ipv4.tcp_ecn=3`",
    "--mss=1\n",
    "\n",
    "/*",
    "//",
    "\"",
    "(",
    "é",
];

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = judge(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_words_are_read_or_refused(words in proptest::collection::vec(proptest::sample::select(WORDS), 0..60)) {
        let _ = judge(&words.concat());
    }

    #[test]
    fn any_change_of_a_script_is_judged(
        at in any::<proptest::sample::Index>(), changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..8)
    ) {
        let names = names();
        let mut bytes = script(&names[at.index(names.len())]).into_bytes();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        let _ = judge(&String::from_utf8_lossy(&bytes));
    }
}
