//! How values of TCP parameters are written and read.

use std::fmt;
use std::str::FromStr;

use apportion_core::units::{Bytes, Packets, Span};

use super::{
    Algorithm, CubicForm, DelayedAck, Halving, Idle, Inflate, InitialSsthresh, InitialWindow, RecoveryExit,
    SackRecovery, Window,
};

/// How a value is written in a scenario file.
pub(crate) trait Text: Sized {
    const UNIT: &'static str;
    fn read(text: &str) -> Result<Self, String>;
    fn write(&self) -> String;
}

/// Types whose `FromStr` and `Display` are already what a scenario file says.
macro_rules! plain_text {
    ($($type:ty: $unit:literal),* $(,)?) => { $(
        impl Text for $type {
            const UNIT: &'static str = $unit;
            fn read(text: &str) -> Result<Self, String> {
                text.trim().parse().map_err(|why: <$type as FromStr>::Err| why.to_string())
            }
            fn write(&self) -> String { self.to_string() }
        }
    )* };
}
plain_text!(Bytes: "size", Packets: "packets", Span: "time");

impl Text for u32 {
    const UNIT: &'static str = "whole number";
    fn read(text: &str) -> Result<Self, String> {
        let why = |_| format!("`{text}` is not a whole number from 0 to {}; write for example 3", Self::MAX);
        text.trim().parse().map_err(why)
    }
    fn write(&self) -> String {
        self.to_string()
    }
}

impl Text for bool {
    const UNIT: &'static str = "true or false";
    fn read(text: &str) -> Result<Self, String> {
        text.trim().parse().map_err(|_| format!("`{text}` is not `true` or `false`"))
    }
    fn write(&self) -> String {
        self.to_string()
    }
}

/// Enumerations written as one word.
macro_rules! words {
    ($($type:ident { $($variant:ident = $word:literal),* })*) => { $(
        impl Text for $type {
            const UNIT: &'static str = concat!($($word, " "),*);
            fn read(text: &str) -> Result<Self, String> {
                match text.trim() {
                    $($word => Ok(Self::$variant),)*
                    _ => Err(format!("`{text}` is none of: {}", Self::UNIT.trim_end())),
                }
            }
            fn write(&self) -> String {
                match self { $(Self::$variant => $word,)* }.to_owned()
            }
        }
        impl FromStr for $type {
            type Err = String;
            fn from_str(text: &str) -> Result<Self, String> { Self::read(text) }
        }
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.write_str(&self.write()) }
        }
    )* };
}
words! {
    CubicForm { Rfc9438 = "rfc9438", Linux = "linux" }
    SackRecovery { Pipe = "pipe", Rfc6675 = "rfc6675", Rack = "rack" }
    Inflate { Recovery = "recovery", Always = "always", Cwnd = "cwnd" }
    Halving { Window = "window", Flight = "flight" }
    RecoveryExit { Grow = "grow", Ssthresh = "ssthresh", Flight = "flight" }
    Idle { Keep = "keep", Decay = "decay", Restart = "restart", Timeout = "timeout" }
}

impl Text for Algorithm {
    const UNIT: &'static str = Self::WORDS;
    fn read(text: &str) -> Result<Self, String> {
        let none = || format!("`{text}` is none of: {}", Self::UNIT.trim_end());
        Self::named(text.trim()).ok_or_else(none)
    }
    fn write(&self) -> String {
        self.to_string()
    }
}

impl Text for Window {
    const UNIT: &'static str = "packets or size";
    fn read(text: &str) -> Result<Self, String> {
        let packets = text.parse().map(Self::Packets);
        packets.or_else(|_| text.parse().map(Self::Bytes)).map_err(|why| format!("{why}, or \"20p\""))
    }
    fn write(&self) -> String {
        match self {
            Self::Packets(n) => n.to_string(),
            Self::Bytes(n) => n.to_string(),
        }
    }
}

impl Text for InitialWindow {
    const UNIT: &'static str = "packets or rfc5681";
    fn read(text: &str) -> Result<Self, String> {
        match text.trim() {
            "rfc5681" => Ok(Self::Rfc5681),
            other => other.parse().map(Self::Packets).map_err(|why| format!("{why}, or \"rfc5681\"")),
        }
    }
    fn write(&self) -> String {
        match self {
            Self::Rfc5681 => "rfc5681".to_owned(),
            Self::Packets(n) => n.to_string(),
        }
    }
}

impl Text for InitialSsthresh {
    const UNIT: &'static str = "packets, window or unlimited";
    fn read(text: &str) -> Result<Self, String> {
        match text.trim() {
            "window" => Ok(Self::Window),
            "unlimited" => Ok(Self::Unlimited),
            other => other
                .parse()
                .map(Self::Packets)
                .map_err(|why| format!("{why}, or \"window\" or \"unlimited\"")),
        }
    }
    fn write(&self) -> String {
        match self {
            Self::Window => "window".to_owned(),
            Self::Unlimited => "unlimited".to_owned(),
            Self::Packets(n) => n.to_string(),
        }
    }
}

impl Text for Option<u32> {
    const UNIT: &'static str = "whole number or none";
    fn read(text: &str) -> Result<Self, String> {
        if text.trim() == "none" { Ok(None) } else { u32::read(text).map(Some) }
    }
    fn write(&self) -> String {
        self.map_or_else(|| "none".to_owned(), |n| n.to_string())
    }
}

impl Text for Option<DelayedAck> {
    const UNIT: &'static str = "off, or segments and time, as in \"2 200ms\" or \"2 200ms aligned\"";
    fn read(text: &str) -> Result<Self, String> {
        let fail = |why: &str| format!("`{text}` is not a delayed ACK ({}){why}", Self::UNIT);
        let mut words = text.split_whitespace();
        let (every, timeout) = match (words.next(), words.next()) {
            (Some("off"), None) => return Ok(None),
            (Some(every), Some(timeout)) => (every, timeout),
            _ => return Err(fail("")),
        };
        let aligned = match (words.next(), words.next()) {
            (None, None) => false,
            (Some("aligned"), None) => true,
            _ => return Err(fail("")),
        };
        let every = every.parse().map_err(|why| fail(&format!(": {why}")))?;
        let timeout = timeout.parse().map_err(|why| fail(&format!(": {why}")))?;
        Ok(Some(DelayedAck { every, timeout, aligned }))
    }
    fn write(&self) -> String {
        match self {
            None => "off".to_owned(),
            Some(DelayedAck { every, timeout, aligned }) => {
                format!("{every} {timeout}{}", if *aligned { " aligned" } else { "" })
            }
        }
    }
}
