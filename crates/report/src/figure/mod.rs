//! Figures as drawings.

mod bars;
mod canvas;
mod compose;
mod curves;
mod data;
mod dots;
mod drawing;
mod groups;
mod heat;
mod histogram;
mod lines;
mod named_rows;
mod pdf;
mod ranges;
mod scatter;
mod stacks;

pub(crate) use bars::{Bar, bars};
pub use canvas::COLOURS;
pub(crate) use canvas::{inks, style_sheet};
pub use compose::{Panel, compose};
pub(crate) use curves::curves_with_events;
pub use curves::{Curve, Level, Plot, XAxis, curves};
pub(crate) use dots::{DotRow, dots};
pub use drawing::Drawing;
pub use groups::{Group, groups};
pub(crate) use heat::{Heat, heat};
pub(crate) use histogram::histogram;
pub(crate) use lines::{Across, Line, lines};
pub(crate) use ranges::{Range, ranges};
pub use scatter::{Scatter, scatter};
pub(crate) use stacks::{Stack, stacks};
