//! Texts of TCP and QUIC parameters: by their kind, except for types of TCP's own.

use apportion_core::param::{Kind, Setting, Value, Written};
use apportion_core::units::{Bytes, Packets, Span};

use super::{
    Algorithm, CubicForm, DelayedAck, Halving, Idle, Inflate, InitialSsthresh, InitialWindow, RecoveryExit,
    SackRecovery, Window,
};

/// A value's text in a scenario file.
pub(crate) trait Text: Setting {
    /// Reads a value by its [kind](Setting::KIND).
    fn read(text: &str) -> Result<Self, String> {
        let value = Self::KIND.read(Written::Text(text.trim())).map_err(|why| why.to_string())?;
        Self::of(Some(value)).ok_or_else(|| format!("`{text}` is no {}", Self::KIND.describe()))
    }
    fn write(&self) -> String;
}

macro_rules! plain_text {
    ($($type:ty),*) => { $(
        impl Text for $type {
            fn write(&self) -> String { self.to_string() }
        }
    )* };
}
plain_text!(Bytes, Packets, Span, u32, bool, Algorithm);

macro_rules! words {
    ($($type:ty),*) => { $(
        impl Text for $type {
            fn write(&self) -> String {
                // Enums of `choice!` have the order of their words.
                if let Kind::Choice(words) = Self::KIND { words[*self as usize].to_owned() } else { String::new() }
            }
        }
    )* };
}
words!(CubicForm, SackRecovery, Inflate, Halving, RecoveryExit, Idle);

/// Types with a text of their own: a description for people.
macro_rules! own {
    ($($type:ty: $description:literal),* $(,)?) => { $(
        impl Setting for $type {
            const KIND: Kind = Kind::Own($description);
            fn of(_: Option<Value>) -> Option<Self> { None }
        }
    )* };
}
own! {
    Window: "packets or size",
    InitialWindow: "packets or rfc5681",
    InitialSsthresh: "packets, window or unlimited",
    DelayedAck: "off, or segments and time, as in \"2 200ms\" or \"2 200ms aligned\"",
}

impl Text for Window {
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

macro_rules! optional_text {
    ($($type:ty),*) => { $(
        impl Text for Option<$type> {
            fn read(text: &str) -> Result<Self, String> {
                if text.trim() == "none" { Ok(None) } else { <$type>::read(text).map(Some) }
            }
            fn write(&self) -> String {
                self.map_or_else(|| "none".to_owned(), |n| n.to_string())
            }
        }
    )* };
}
optional_text!(u32, Bytes);

impl Text for Option<DelayedAck> {
    fn read(text: &str) -> Result<Self, String> {
        let fail = |why: &str| format!("`{text}` is not a delayed ACK ({}){why}", Self::KIND.describe());
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
