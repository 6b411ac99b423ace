//! The options of queueing disciplines besides CAKE and netem: tc-fq_codel(8), tc-codel(8), tc-sfq(8), tc-pfifo(8), tc-tbf(8), and
//! of the classes of tc-htb(8).

use apportion_core::units::{Bytes, Rate};

use super::link::{Link, Queue};
use super::report::Report;
use super::units;
use crate::queue::from_text;

/// The kind of an option's value.
#[derive(Clone, Copy)]
enum Value {
    Packets,
    Bytes,
    Time,
    Count,
    /// A whole number of seconds.
    Seconds,
    /// No value: sets the key to this.
    Flag(&'static str),
    /// An option with a value, not supported here.
    Ignored,
    /// An option without a value, not supported here.
    Word,
}

/// A discipline: its options with our keys, and Linux's defaults where ours differ.
struct Discipline {
    /// The beginning of the queue as TOML.
    begins: &'static str,
    options: &'static [(&'static str, &'static str, Value)],
    defaults: &'static [(&'static str, &'static str)],
}

const ECN: [(&str, &str, Value); 2] =
    [("ecn", "ecn", Value::Flag("true")), ("noecn", "ecn", Value::Flag("false"))];

const FQ_CODEL: Discipline = Discipline {
    begins: "kind = \"fq_codel\"",
    options: &[
        ("limit", "limit", Value::Packets),
        ("memory_limit", "memory_limit", Value::Bytes),
        ("flows", "flows", Value::Count),
        ("target", "target", Value::Time),
        ("interval", "interval", Value::Time),
        ("quantum", "quantum", Value::Bytes),
        ("drop_batch", "drop_batch", Value::Count),
        ("ce_threshold", "ce_threshold", Value::Time),
        ("ce_threshold_selector", "", Value::Ignored),
        ECN[0],
        ECN[1],
    ],
    // tc-fq_codel(8)
    defaults: &[("limit", "\"10240p\""), ("memory_limit", "\"32MiB\"")],
};
const CODEL: Discipline = Discipline {
    begins: "kind = \"fifo\", drop = \"codel\"",
    options: &[
        ("limit", "limit", Value::Packets),
        ("target", "target", Value::Time),
        ("interval", "interval", Value::Time),
        ("ce_threshold", "ce_threshold", Value::Time),
        ECN[0],
        ECN[1],
    ],
    // tc-codel(8)
    defaults: &[("limit", "\"1000p\"")],
};
const PFIFO: Discipline = Discipline {
    begins: "kind = \"fifo\"",
    options: &[("limit", "limit", Value::Packets)],
    // The default length of an Ethernet interface's queue, ip-link(8): txqueuelen.
    defaults: &[("limit", "\"1000p\"")],
};
const PFIFO_HEAD_DROP: Discipline = Discipline { begins: "kind = \"head\"", ..PFIFO };
const BFIFO: Discipline = Discipline {
    begins: "kind = \"fifo\"",
    options: &[("limit", "limit", Value::Bytes)],
    defaults: &[("limit", "\"1514kB\"")],
};
const PFIFO_FAST: Discipline = Discipline {
    begins: "kind = \"fifo\"",
    options: &[("bands", "", Value::Ignored), ("priomap", "", Value::Ignored)],
    defaults: &[("limit", "\"1000p\"")],
};
const SFQ: Discipline = Discipline {
    begins: "kind = \"sfq\"",
    options: &[
        ("limit", "limit", Value::Packets),
        ("perturb", "perturb", Value::Seconds),
        ("quantum", "", Value::Ignored),
        ("divisor", "", Value::Ignored),
        ("flows", "", Value::Ignored),
        ("depth", "", Value::Ignored),
        ("headdrop", "", Value::Word),
    ],
    // tc-sfq(8)
    defaults: &[("limit", "\"127p\""), ("perturb", "\"0s\"")],
};

/// Whether a discipline of this name is supported.
pub(super) fn is_known(kind: &str) -> bool {
    discipline(kind).is_some()
}

fn discipline(kind: &str) -> Option<&'static Discipline> {
    Some(match kind {
        "fq_codel" => &FQ_CODEL,
        "codel" => &CODEL,
        "pfifo" => &PFIFO,
        "pfifo_head_drop" => &PFIFO_HEAD_DROP,
        "bfifo" => &BFIFO,
        "pfifo_fast" => &PFIFO_FAST,
        "sfq" => &SFQ,
        _ => return None,
    })
}

/// The queue with these options, as TOML; none if one is refused.
pub(super) fn queue(kind: &str, words: &[String], line: u32, report: &mut Report) -> Option<String> {
    let known = discipline(kind)?;
    let mut entries: Vec<(&str, String)> =
        known.defaults.iter().map(|(key, text)| (*key, (*text).to_owned())).collect();
    let mut set = |key: &'static str, text: String| match entries.iter_mut().find(|(own, _)| *own == key) {
        Some((_, own)) => *own = text,
        None => entries.push((key, text)),
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let Some((_, key, value)) = known.options.iter().find(|(option, ..)| option == word) else {
            // Both print numbers after the name that are not needed here.
            if kind == "pfifo_fast" {
                continue;
            }
            report.refuse(line, format!("{kind}: there is no option `{word}`; tc-{kind}(8) lists them"));
            return None;
        };
        let text = match value {
            Value::Flag(_) | Value::Word => "",
            _ => report.or_refuse(
                line,
                words.next().ok_or_else(|| format!("{kind}: `{word}` wants a value behind it")),
            )?,
        };
        let most = u64::from(u32::MAX);
        let read = match value {
            Value::Packets => {
                units::count(text.trim_end_matches('p'), most).map(|packets| format!("\"{packets}p\""))
            }
            Value::Bytes => units::size(text).map(|bytes| format!("\"{bytes}B\"")),
            Value::Time => units::time(text).map(|time| format!("\"{time}\"")),
            Value::Count => units::count(text, most).map(|count| count.to_string()),
            Value::Seconds => units::count(text, most).map(|seconds| format!("\"{seconds}s\"")),
            Value::Flag(flag) => Ok((*flag).to_owned()),
            Value::Ignored | Value::Word => {
                report.note(line, format!("{kind}: `{word} {text}` has no word here"));
                continue;
            }
        };
        set(key, report.or_refuse(line, read)?);
        if *key == "flows" {
            set("classify", "\"hashed\"".to_owned());
        }
    }
    let entries: String = entries.iter().map(|(key, text)| format!(", {key} = {text}")).collect();
    let text = format!("{{ {}{entries} }}", known.begins);
    let checked = from_text(&text).map(drop).map_err(|why| format!("{kind}: {why}"));
    report.or_refuse(line, checked).map(|()| text)
}

/// Reads the options of tc-tbf(8) into a link; false if one is refused.
pub(super) fn token_bucket(words: &[String], line: u32, link: &mut Link, report: &mut Report) -> bool {
    let mut read = || -> Result<(), String> {
        let (mut limit, mut latency, mut burst, mut rate) = (None, None, None, None);
        let mut words = words.iter();
        while let Some(option) = words.next() {
            let value = words.next().ok_or_else(|| format!("tbf: `{option}` wants a value behind it"))?;
            match option.as_str() {
                "rate" => rate = Some(units::rate(value)?),
                "limit" => limit = Some(units::size(value)?),
                "latency" | "lat" => latency = Some(units::time(value)?),
                "burst" | "buffer" | "maxburst" => {
                    // A cell may follow the size.
                    burst = Some(units::size(value.split('/').next().unwrap_or_default())?);
                }
                "peakrate" | "mtu" | "minburst" | "mpu" | "overhead" | "linklayer" => {
                    report.note(line, format!("tbf: `{option} {value}` has no word here"));
                }
                _ => return Err(format!("tbf: there is no option `{option}`; tc-tbf(8) lists them")),
            }
        }
        let rate = rate.ok_or("tbf: it has no `rate`")?;
        if let Some(burst) = burst {
            report.note(
                line,
                format!("tbf: a burst of {burst} B at once: a link sends at its rate from the first byte on"),
            );
        }
        let waits = latency.map(|latency| rate.bytes_in(latency).get().saturating_add(burst.unwrap_or(0)));
        if let Some(bytes) = limit.or(waits) {
            link.queue =
                Queue::Text(format!("{{ kind = \"fifo\", limit = \"{}\" }}", Bytes::new(bytes.max(1))));
        }
        link.rate = Some(link.rate.map_or(rate, |above| above.min(rate)));
        Ok(())
    };
    let result = read();
    report.or_refuse(line, result).is_some()
}

/// The ceiling of a class of tc-htb(8); none if an option is refused.
pub(super) fn class_rate(words: &[String], line: u32, report: &mut Report) -> Option<Rate> {
    let read = || -> Result<Rate, String> {
        let (mut rate, mut ceil) = (None, None);
        let mut words = words.iter();
        while let Some(option) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("htb: `{option}` wants a value behind it"));
            match option.as_str() {
                "root" => (),
                "rate" => rate = Some(units::rate(value()?)?),
                "ceil" => ceil = Some(units::rate(value()?)?),
                // They order classes, or allow bursts above the rate.
                "burst" | "cburst" | "prio" | "quantum" | "mtu" | "mpu" | "overhead" | "linklayer"
                | "leaf" => {
                    value()?;
                }
                _ => return Err(format!("htb: there is no option `{option}`; tc-htb(8) lists them")),
            }
        }
        ceil.or(rate).ok_or_else(|| "htb: the class has no `rate`".to_owned())
    };
    let result = read();
    report.or_refuse(line, result)
}
