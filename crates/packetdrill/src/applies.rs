//! What a script needs that the model does not have.

use crate::code::{Names, Stop};
use crate::script::{Call, Event, Packet, TcpOption, What, When};
use crate::settings::Settings;
use crate::verdict::Reason;

/// Socket options without an effect on the model.
const INERT_OPTIONS: &[&str] = &[
    "SO_REUSEADDR",
    "SO_REUSEPORT",
    "SO_SNDBUF",
    "SO_RCVBUF",
    "SO_RCVLOWAT",
    "IP_TOS",
    "IPV6_TCLASS",
    "IP_MTU_DISCOVER",
    "IPV6_MTU_DISCOVER",
    "TCP_CONGESTION",
    "TCP_NODELAY",
];

/// Words of calls and options, and the kind of script that has them.
const FOREIGN: &[(&str, &str)] = &[
    ("FASTOPEN", "TCP Fast Open"),
    ("ZEROCOPY", "zero-copy"),
    ("TIMESTAMPING", "timestamps of the socket interface"),
    ("MSG_EOR", "records of the socket interface"),
    ("MSG_MORE", "corks"),
    ("TCP_CORK", "corks"),
    ("MD5", "MD5 signatures"),
    ("TCP_MAXSEG", "maximum segment size by the application"),
    ("NOTSENT_LOWAT", "low-water mark of the send buffer"),
    ("USER_TIMEOUT", "user timeout"),
    ("TCP_INQ", "socket interface"),
    ("SO_LINGER", "resets"),
    ("MSG_", "socket interface"),
];

/// The first event that the model does not have, and why.
#[must_use]
pub fn first_foreign(events: &[Event]) -> Option<(usize, Reason)> {
    let mut settings = Settings::default();
    let mut started = false;
    events.iter().enumerate().find_map(|(at, event)| {
        let reason = match &event.what {
            What::Shell(commands) => {
                let before = settings.clone();
                let applied = settings.apply(commands);
                // The byte counters are not compared.
                let changes = started && Settings { counters: before.counters, ..settings.clone() } != before;
                applied.err().or_else(|| {
                    changes.then(|| Reason::new("settings that change during a connection", commands))
                })
            }
            What::Foreign(kind) => Some(Reason::new("packets other than TCP", kind)),
            What::Code(_) => None,
            What::Call(call) => of_call(event.at, call),
            What::Inject(packet) | What::Expect(packet) => {
                started = true;
                let is_expected = matches!(event.what, What::Expect(_));
                if packet.flags.rst && !is_expected && at + 1 == events.len() {
                    // Nothing is asked after it.
                    return None;
                }
                of_packet(packet).or_else(|| of_window(packet, is_expected))
            }
        };
        reason.map(|reason| (at, reason))
    })
}

fn of_call(at: When, call: &Call) -> Option<Reason> {
    let whole = format!("{}({})", call.name, call.args.join(", "));
    if let Some((_, kind)) = FOREIGN.iter().find(|(word, _)| whole.contains(word)) {
        return Some(Reason::new(kind, &whole));
    }
    let is_error = call.result.is_some_and(i64::is_negative);
    let option = || call.args.get(2).map(String::as_str).unwrap_or_default();
    let is_known = match call.name.as_str() {
        "socket" => !whole.contains("SOCK_DGRAM"),
        "bind" | "listen" | "accept" | "close" | "fcntl" => !is_error,
        "connect" => true,
        "setsockopt" => INERT_OPTIONS.contains(&option()) && !is_error,
        "ioctl" => {
            call.args.get(1).is_some_and(|request| request == "SIOCINQ") && call.bracketed(2).is_some()
        }
        "getsockopt" => option() == "SO_ERROR" && !is_error,
        "shutdown" => !is_error,
        "write" | "send" | "sendto" => {
            let asked = call.number(2).and_then(|asked| i64::try_from(asked).ok());
            let is_whole = asked.is_some() && (asked == call.result || call.result == Some(-1));
            return (!is_whole).then(|| Reason::new("a full send buffer", &whole));
        }
        "read" | "recv" => {
            if matches!(at, When::Between { to: Some(_), .. }) {
                return Some(Reason::new("reads that wait", &whole));
            }
            call.number(2).is_some()
        }
        _ => false,
    };
    (!is_known).then(|| Reason::new("socket interface", &whole))
}

fn of_packet(packet: &Packet) -> Option<Reason> {
    let flags = packet.flags;
    let reason = |kind| Some(Reason::new(kind, &packet.to_string()));
    if flags.rst {
        return reason("resets");
    }
    if flags.other {
        return reason("urgent data");
    }
    if !flags.syn && !flags.ack {
        return reason("segments that no peer of the model sends");
    }
    if flags.syn && packet.len > 0 {
        return reason("TCP Fast Open");
    }
    let other = packet.options.iter().flatten().find_map(|option| match option {
        TcpOption::Other(name) => Some(name.as_str()),
        _ => None,
    });
    match other {
        Some(name) if name.starts_with("FO") => reason("TCP Fast Open"),
        Some(name) if name.starts_with("md5") => reason("MD5 signatures"),
        Some(_) => reason("TCP options"),
        None => None,
    }
}

/// The window of the endpoint follows from the kernel's own accounts of memory.
fn of_window(packet: &Packet, is_expected: bool) -> Option<Reason> {
    let is_checked = is_expected && packet.window.is_some() && !packet.flags.syn;
    is_checked.then(|| Reason::new("receive window of the kernel's buffers", &packet.to_string()))
}

/// Why a block of code cannot be evaluated; `None` if an assertion does not hold.
#[must_use]
pub fn of_code(stop: &Stop, info: &Names) -> Option<Reason> {
    match stop {
        Stop::False(..) => None,
        Stop::Unknown(name) if !info.contains_key(name) => Some(Reason::new("fields of tcp_info", name)),
        Stop::Unknown(_) | Stop::Foreign(_) => Some(Reason::new("code", &stop.to_string())),
    }
}
