//! Figures as inline SVG.

mod bars;
mod canvas;
mod curves;
mod groups;
mod ranges;
mod scatter;

pub(crate) use bars::{Bar, bars};
pub use canvas::COLOURS;
pub(crate) use canvas::style_sheet;
pub(crate) use curves::curves_with_events;
pub use curves::{Curve, Level, Plot, XAxis, curves};
pub use groups::{Group, groups};
pub(crate) use ranges::{Range, ranges};
pub use scatter::{Scatter, scatter};
