//! A script of packetdrill as data.

use std::fmt;

use apportion_core::Ecn;
use apportion_core::units::Span;
use apportion_sim::tcp::Flags;

/// A script: options, then events in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// `--name=value` and `--name`, which has an empty value.
    pub options: Vec<(String, String)>,
    /// What happens, in order.
    pub events: Vec<Event>,
}

/// An event, and the line on which it begins (from 1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The line.
    pub line: usize,
    /// When it happens.
    pub at: When,
    /// What happens.
    pub what: What,
}

/// The time of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// With the event before: shell at the beginning and the end of a script.
    Untimed,
    /// Between two times.
    Between {
        /// Whether they count from the event before, rather than from the start of the script.
        relative: bool,
        /// The first time.
        from: Span,
        /// The last time, if it is not the first.
        to: Option<Span>,
    },
    /// At any time.
    Any,
}

/// The content of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The peer sends a segment.
    Inject(Packet),
    /// The endpoint must send a segment.
    Expect(Packet),
    /// A packet that is not TCP, by its kind.
    Foreign(String),
    /// The application calls the socket interface.
    Call(Call),
    /// Commands of a shell.
    Shell(String),
    /// Assertions about the connection.
    Code(String),
}

/// A TCP segment as a script describes it. Sequence numbers are relative to the SYN of each side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The ECN field, if the script names it.
    pub ecn: Option<EcnField>,
    /// The flags.
    pub flags: TcpFlags,
    /// The sequence number.
    pub seq: u32,
    /// Payload bytes.
    pub len: u16,
    /// The acknowledgment number.
    pub ack: Option<u32>,
    /// The window field, not scaled.
    pub window: Option<u16>,
    /// The options; `None` for `<...>`, any.
    pub options: Option<Vec<TcpOption>>,
}

/// The ECN field that a script names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnField {
    /// This codepoint.
    Is(Ecn),
    /// ECT(0) or ECT(1).
    Capable,
}

/// The flags of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpFlags {
    /// FIN.
    pub fin: bool,
    /// SYN.
    pub syn: bool,
    /// RST.
    pub rst: bool,
    /// ACK.
    pub ack: bool,
    /// AE, CWR and ECE as one number, as RFC 9768 reads them.
    pub ace: u8,
    /// PSH or URG, which the model does not have.
    pub other: bool,
}

impl TcpFlags {
    /// The flags of a segment of the simulator.
    #[must_use]
    pub const fn of(flags: Flags) -> Self {
        Self {
            fin: flags.has(Flags::FIN),
            syn: flags.has(Flags::SYN),
            rst: flags.has(Flags::RST),
            ack: flags.has(Flags::ACK),
            ace: flags.ace(),
            other: false,
        }
    }

    /// The same flags for the simulator.
    #[must_use]
    pub fn bits(self) -> Flags {
        let flag = |is_set, flag| if is_set { flag } else { Flags::NONE };
        let ends = flag(self.fin, Flags::FIN) | flag(self.syn, Flags::SYN) | flag(self.rst, Flags::RST);
        ends | flag(self.ack, Flags::ACK) | Flags::from_ace(self.ace)
    }
}

/// As a script writes them, with the field ACE as a number.
impl fmt::Display for TcpFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letters = [(self.fin, 'F'), (self.syn, 'S'), (self.rst, 'R'), (self.ack, '.')];
        let letters: String =
            letters.iter().filter(|(is_set, _)| *is_set).map(|(_, letter)| letter).collect();
        let ace = if self.ace > 0 { self.ace.to_string() } else { String::new() };
        write!(f, "{letters}{ace}")
    }
}

/// A TCP option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TcpOption {
    /// Maximum segment size.
    Mss(u16),
    /// SACK permitted.
    SackOk,
    /// Window scale.
    WindowScale(u8),
    /// Timestamps: TSval and TSecr.
    Timestamp(u32, u32),
    /// SACK blocks.
    Sack(Vec<(u32, u32)>),
    /// Byte counters of Accurate ECN (RFC 9768 section 3.2.3), as written.
    Counters(String),
    /// Another option, by its name.
    Other(String),
}

impl fmt::Display for TcpOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mss(size) => write!(f, "mss {size}"),
            Self::SackOk => write!(f, "sackOK"),
            Self::WindowScale(shift) => write!(f, "wscale {shift}"),
            Self::Timestamp(value, echo) => write!(f, "TS val {value} ecr {echo}"),
            Self::Sack(blocks) => {
                write!(f, "sack")?;
                blocks.iter().try_for_each(|(from, to)| write!(f, " {from}:{to}"))
            }
            Self::Counters(text) => write!(f, "ECN {text}"),
            Self::Other(name) => write!(f, "{name}"),
        }
    }
}

/// As a script writes it.
impl fmt::Display for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.seq.wrapping_add(self.len.into());
        write!(f, "{} {}:{}({})", self.flags, self.seq, end, self.len)?;
        self.ack.map_or(Ok(()), |ack| write!(f, " ack {ack}"))?;
        match &self.options {
            None => write!(f, " <...>"),
            Some(options) if options.is_empty() => Ok(()),
            Some(options) => {
                let options: Vec<String> = options.iter().map(ToString::to_string).collect();
                write!(f, " <{}>", options.join(","))
            }
        }
    }
}

/// A system call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its name.
    pub name: String,
    /// Its arguments, as written.
    pub args: Vec<String>,
    /// Its result; `None` if the script does not care.
    pub result: Option<i64>,
}

impl Call {
    /// An argument as a number.
    #[must_use]
    pub fn number(&self, at: usize) -> Option<u64> {
        self.args.get(at)?.parse().ok()
    }

    /// An argument `[N]` as a number.
    #[must_use]
    pub fn bracketed(&self, at: usize) -> Option<u64> {
        self.args.get(at)?.strip_prefix('[')?.strip_suffix(']')?.parse().ok()
    }
}
