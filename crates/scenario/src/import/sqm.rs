//! The configuration of sqm-scripts, `/etc/config/sqm`, in the format of UCI: sections `config queue` with lines `option KEY 'VALUE'`.
//!
//! Scripts do what their help files say: `piece_of_cake` is CAKE with one tin, `layer_cake` CAKE with three,
//! `simplest` one class with the configured discipline, and `simple` three classes.

use std::collections::BTreeMap;

use apportion_core::units::Rate;

use super::cake::Cake;
use super::file::File;
use super::link::{Link, Queue, gateway};
use super::qdisc;
use super::report::Report;
use super::words::commands;

/// Bytes of the Ethernet header, which Linux counts before a size table adds to it.
const ETHERNET: u64 = 14;
/// Default limit of queues with CoDel in packets, by the defaults of sqm-scripts.
const LIMIT: &str = "1001";
/// The rate of a direction that is not shaped. Chosen: above the rate of such machines.
const UNSHAPED: Rate = Rate::from_bit(10_000_000_000);
/// Rate below which sqm-scripts raise the target of CoDel by themselves. RFC 8290 section 5.2.1: where a
/// packet takes longer than the target.
const SLOW: Rate = Rate::from_bit(2_400_000);

/// Keys without an effect on queues: pages, logs, and sizes of tables.
const SILENT: [&str; 11] = [
    "enabled",
    "interface",
    "debug_logging",
    "verbosity",
    "qdisc_advanced",
    "qdisc_really_really_advanced",
    "linklayer_advanced",
    "tcMTU",
    "tcTSIZE",
    "shaper_burst",
    "use_mq",
];

/// A section.
struct Section {
    line: u32,
    name: String,
    options: BTreeMap<String, (u32, String)>,
}

impl Section {
    fn get(&self, key: &str) -> Option<&str> {
        self.options.get(key).map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    fn line(&self, key: &str) -> u32 {
        self.options.get(key).map_or(self.line, |(line, _)| *line)
    }

    fn is_on(&self, key: &str, absent: bool) -> bool {
        self.get(key).map_or(absent, |value| matches!(value, "1" | "on" | "true" | "yes" | "enabled"))
    }
}

/// Whether the file has sections of sqm-scripts.
pub(super) fn is_one(file: &File) -> bool {
    file.text.lines().any(|line| {
        let mut words = line.split_whitespace();
        words.next() == Some("config")
            && words.next().is_some_and(|word| word.trim_matches(['\'', '"']) == "queue")
    })
}

/// The configuration of a gateway from the first enabled section.
pub(super) fn import(files: &[File], report: &mut Report) -> Option<String> {
    let [file, rest @ ..] = files else { return None };
    report.in_file(&file.name);
    if let Some(other) = rest.first() {
        report.refuse(1, format!("sqm-scripts have one file; import `{}` by itself", other.name));
        return None;
    }
    let sections = sections(&file.text, report);
    let (on, off): (Vec<_>, Vec<_>) = sections.iter().partition(|section| section.is_on("enabled", false));
    for section in off {
        report
            .note(section.line("enabled"), format!("the queue `{}` is not enabled: left out", section.name));
    }
    let [first, others @ ..] = &on[..] else {
        report.refuse(1, "no queue is enabled; write option enabled '1' in the section that is meant");
        return None;
    };
    for section in others {
        let name = &section.name;
        report.note(section.line, format!("the queue `{name}`: a gateway has one link; import it from a copy in which no other is enabled"));
    }
    let interface = first.get("interface");
    let interface = report.or_refuse(
        first.line,
        interface.ok_or_else(|| "there is no `interface`; write option interface 'eth1'".to_owned()),
    )?;
    let (up, down) = (direction(first, true, report), direction(first, false, report));
    let (up, down) = (up?, down?);
    leftovers(first, report);
    gateway(interface, &up, &down, first.line("interface"), report)
}

/// The sections `queue`.
fn sections(text: &str, report: &mut Report) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    let mut is_queue = false;
    for command in commands(text) {
        let line = command.line;
        let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
        match words[..] {
            ["config", kind, ref name @ ..] => {
                is_queue = kind == "queue";
                if is_queue {
                    let name =
                        name.first().map_or_else(|| format!("of line {line}"), |name| (*name).to_owned());
                    sections.push(Section { line, name, options: BTreeMap::new() });
                } else {
                    report.note(line, format!("the section `{kind}`: only those of queues are read"));
                }
            }
            ["option" | "list", key, ref value @ ..] => {
                if let Some(section) = sections.last_mut().filter(|_| is_queue) {
                    section.options.insert(key.to_owned(), (line, value.join(" ")));
                }
            }
            ["package", _] => (),
            _ => report.refuse(
                line,
                format!(
                    "`{}` is no line of UCI; write for example option download '85000'",
                    command.text().chars().take(60).collect::<String>()
                ),
            ),
        }
    }
    sections
}

/// One direction: `upload` is egress of the interface, `download` its ingress.
fn direction(section: &Section, is_up: bool, report: &mut Report) -> Option<Link> {
    let key = if is_up { "upload" } else { "download" };
    let line = section.line(key);
    let kbit = section.get(key).unwrap_or("0");
    let read = kbit.parse::<u64>().ok().filter(|kbit| *kbit <= 1_000_000_000);
    let wrong = || {
        format!("{key}: `{kbit}` is not a whole number of kbit/s up to 1000000000; write for example 85000")
    };
    let kbit = report.or_refuse(line, read.ok_or_else(wrong))?;
    let sources = vec![format!("{}: {key} of the queue `{}`", report.place(line), section.name)];
    if kbit == 0 {
        report.note(line, format!("{key} 0: it is not shaped; {UNSHAPED} stands for that"));
        return Some(Link { sources, rate: Some(UNSHAPED), ..Link::default() });
    }
    let rate = Rate::from_kbit(kbit);
    let script = section.get("script").unwrap_or("simple.qos");
    let (script, _) = script.rsplit('/').next().unwrap_or_default().split_once('.').unwrap_or((script, ""));
    let kind = section.get("qdisc").unwrap_or("fq_codel");
    let is_cake = kind.starts_with("cake") || ["piece_of_cake", "layer_cake"].contains(&script);
    let mut link = Link { sources, rate: Some(rate), ..Link::default() };
    if is_cake {
        let cake = cake(section, script, is_up, report)?;
        link.overhead = cake.overhead();
        link.queue = Queue::Cake(Box::new(cake));
    } else {
        queue(section, script, kind, is_up, &mut link, report)?;
    }
    Some(link)
}

/// CAKE: the options of the script, then of the link layer, then of the direction; the last ones count.
fn cake(section: &Section, script: &str, is_up: bool, report: &mut Report) -> Option<Cake> {
    let mut words: Vec<&str> = Vec::new();
    let ignores_dscp = !is_up && section.is_on("squash_ingress", true);
    let washes = !is_up && section.is_on("squash_dscp", true);
    match script {
        "piece_of_cake" => words.extend(["nat", "besteffort"]),
        "layer_cake" => words.extend(["diffserv3", "nat"]),
        "simplest" => words.push("besteffort"),
        _ => (),
    }
    if ignores_dscp {
        words.push("besteffort");
    }
    if washes && ["piece_of_cake", "layer_cake"].contains(&script) {
        words.push("wash");
    }
    let layer = section.get("linklayer").unwrap_or("none");
    let overhead = section.get("overhead").unwrap_or("0");
    let mpu = section.get("tcMPU").unwrap_or("0");
    if layer != "none" {
        if is_atm(layer) {
            words.push("atm");
        }
        words.extend(["overhead", overhead, "mpu", mpu]);
    } else if is_up && overhead != "0" {
        report.note(
            section.line("overhead"),
            "overhead: without a `linklayer` sqm-scripts do not count it either",
        );
    }
    let options = if is_up { "eqdisc_opts" } else { "iqdisc_opts" };
    words.extend(section.get(options).into_iter().flat_map(str::split_whitespace));
    let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
    let key = if is_up { "upload" } else { "download" };
    let line = section.options.get(options).map_or_else(|| section.line(key), |(line, _)| *line);
    Cake::read(&words, line, report)
}

fn is_atm(layer: &str) -> bool {
    ["atm", "adsl"].contains(&layer)
}

/// A discipline with one class, and the options of the direction.
fn queue(
    section: &Section,
    script: &str,
    kind: &str,
    is_up: bool,
    link: &mut Link,
    report: &mut Report,
) -> Option<()> {
    let [limit, target, ecn, options] = if is_up {
        ["elimit", "etarget", "egress_ecn", "eqdisc_opts"]
    } else {
        ["ilimit", "itarget", "ingress_ecn", "iqdisc_opts"]
    };
    if !qdisc::is_known(kind) {
        let line = section.line("qdisc");
        report.refuse(
            line,
            format!("qdisc `{kind}` is not imported; those that are: cake, fq_codel, codel, sfq, pfifo"),
        );
        return None;
    }
    if is_up && !["simplest", "simplest_tbf"].contains(&script) {
        let why =
            if script == "simple" { "three classes by codepoints" } else { "what it does is not known here" };
        report.note(section.line("script"), format!("script {script}: {why}; one class is taken"));
    }
    let codel = ["fq_codel", "codel"].contains(&kind);
    let mut words: Vec<String> = Vec::new();
    if let Some(packets) = section.get(limit).or(codel.then_some(LIMIT)) {
        words.extend(["limit".to_owned(), packets.to_owned()]);
    }
    match section.get(target) {
        Some("default") => (),
        Some("auto") | None if link.rate.is_none_or(|rate| rate >= SLOW) => (),
        Some("auto") | None => {
            report.note(
                section.line(target),
                "sqm-scripts raise the target of slow links by themselves: set `target` of the queue",
            );
        }
        Some(time) if codel => words.extend(["target".to_owned(), time.to_owned()]),
        Some(_) => (),
    }
    if codel && section.get(ecn).is_some_and(|value| value.eq_ignore_ascii_case("noecn")) {
        words.push("noecn".to_owned());
    }
    words.extend(section.get(options).into_iter().flat_map(str::split_whitespace).map(str::to_owned));
    let line = section.options.get(options).map_or_else(|| section.line("qdisc"), |(line, _)| *line);
    link.queue = Queue::Text(qdisc::queue(kind, &words, line, report)?);
    let layer = section.get("linklayer").unwrap_or("none");
    if layer != "none" {
        let line = section.line("overhead");
        let text = section.get("overhead").unwrap_or("0");
        let read = text.parse::<i64>().ok().filter(|bytes| (-64..=242).contains(bytes));
        let wrong = || format!("overhead: `{text}` is not a whole number from -64 to 242");
        let bytes = report.or_refuse(line, read.ok_or_else(wrong))?;
        let interface = section.get("interface").unwrap_or_default();
        let header = if interface.starts_with("ppp") { 0 } else { ETHERNET };
        link.overhead = Some(header.saturating_add_signed(bytes));
        if is_up && is_atm(layer) {
            report.note(
                section.line("linklayer"),
                format!(
                    "linklayer {layer}: cells of ATM are counted by `cake` alone, with framing = \"atm\""
                ),
            );
        }
        if is_up && section.get("tcMPU").is_some_and(|mpu| mpu != "0") {
            report.note(section.line("tcMPU"), "tcMPU: a least size is counted by `cake` alone, as `mpu`");
        }
    }
    Some(())
}

/// Notes the options that are neither taken nor without an effect.
fn leftovers(section: &Section, report: &mut Report) {
    const TAKEN: [&str; 19] = [
        "download",
        "upload",
        "qdisc",
        "script",
        "linklayer",
        "overhead",
        "tcMPU",
        "squash_dscp",
        "squash_ingress",
        "ilimit",
        "elimit",
        "itarget",
        "etarget",
        "ingress_ecn",
        "egress_ecn",
        "iqdisc_opts",
        "eqdisc_opts",
        "target",
        "linklayer_adaptation_mechanism",
    ];
    for (key, (line, value)) in &section.options {
        let is_read = TAKEN.contains(&key.as_str()) || SILENT.contains(&key.as_str());
        if !is_read && !value.is_empty() {
            report.note(*line, format!("option {key} '{value}': there is no word for it here"));
        }
    }
    if section
        .get("linklayer_adaptation_mechanism")
        .is_some_and(|how| !["default", "cake", "tc_stab"].contains(&how))
    {
        let line = section.line("linklayer_adaptation_mechanism");
        report
            .note(line, "linklayer_adaptation_mechanism: the overhead is counted by the gateway in any case");
    }
}
