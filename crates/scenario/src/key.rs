//! Declarations of keys of tables: their common kinds, and whether they are required.

use apportion_core::param::{Kind, MUST_BE_SET, Param, Range};

pub(crate) const TEXT: Param = of(Kind::Text);
pub(crate) const SWITCH: Param = of(Kind::Switch);
pub(crate) const TIME: Param = of(Kind::Time).within(Range::FromZero);
pub(crate) const SPAN: Param = of(Kind::Span).within(Range::AboveZero);
pub(crate) const RATE: Param = of(Kind::Rate).within(Range::AboveZero);
pub(crate) const DELAY: Param = of(Kind::Span).within(Range::FromZero);
pub(crate) const LOSS: Param = of(Kind::Ratio).within(Range::FromZero);
pub(crate) const NUMBER: Param = of(Kind::Number).within(Range::AboveZero);
pub(crate) const TICKETS: Param = of(Kind::Number).within(Range::FromZero);
pub(crate) const SIZE: Param = of(Kind::Bytes).within(Range::AboveZero);

/// A key of this kind, still without a name.
pub(crate) const fn of(kind: Kind) -> Param {
    Param::unset("").field("", kind, "")
}

/// A key that every table must set.
pub(crate) const fn required(name: &'static str, like: Param, doc: &'static str) -> Param {
    Param { source: MUST_BE_SET, ..optional(name, like, doc) }
}

/// A key that a table may leave out: its documentation describes that case.
pub(crate) const fn optional(name: &'static str, like: Param, doc: &'static str) -> Param {
    Param { name, doc, ..like }
}

/// A key that has the value `text` unless it is set.
pub(crate) const fn default(name: &'static str, like: Param, text: &'static str, doc: &'static str) -> Param {
    Param { default: Some(text), ..optional(name, like, doc) }
}
