//! The rate of a direction: fixed, or following the link.

use apportion_core::param::{Kind, Range, Setting};
use apportion_core::units::Rate;

use super::tables::{AUTO, FASTEST, LINK, SLOWEST, THRESHOLD};
use super::{AutoRate, Side};
use crate::keys::{Amount, Fields};
use crate::problem::Problems;
use crate::text::Item;

/// Default ratio of the highest to the lowest rate. Chosen: more than links slow down in all but their worst
/// hour.
const SPAN: u64 = 20;

/// Reads the keys of the rate: the highest one, and how it follows the link if it does; `None` only if something was refused.
pub(super) fn read(fields: &Fields<'_>, problems: &mut Problems) -> Option<(Rate, Option<AutoRate>)> {
    let place = fields.place_of("rate");
    let written = |text: &str| match text {
        AUTO => Ok(None),
        _ => match Amount::read(&Item::text(text, place), Kind::Rate, Range::AboveZero, false)? {
            Amount::Fixed(value) => Ok(Rate::of(Some(value))),
            Amount::Formula(..) => Ok(None),
        },
    };
    let rate = fields.form("rate", written, problems)?;
    if let Some(rate) = rate {
        for key in [FASTEST, SLOWEST, THRESHOLD, LINK] {
            if fields.item(key).is_some() {
                let message = format!(
                    "only a rate that follows the link has it; leave it out, or write rate = \"{AUTO}\""
                );
                fields.refuse(key, message, problems);
            }
        }
        return Some((rate, None));
    }
    let Some(most) = fields.get::<Rate>(FASTEST, 1, problems) else {
        if fields.item(FASTEST).is_none() {
            let message = format!(
                "a rate that follows the link needs bounds; write for example {FASTEST} = \"25Mbit\", the most that the link has \
                 ever passed"
            );
            fields.refuse("rate", message, problems);
        }
        return None;
    };
    let default = || Rate::from_bit((most.as_bit() / SPAN).max(1));
    let least = if fields.item(SLOWEST).is_some() { fields.get(SLOWEST, 1, problems)? } else { default() };
    if least > most {
        let message = format!("{least} is above `{FASTEST}`, {most}; write a lower rate, or leave it out");
        fields.refuse(SLOWEST, message, problems);
        return None;
    }
    let link = if fields.text(LINK)? == Side::Inside.name() { Side::Inside } else { Side::Outside };
    Some((most, Some(AutoRate { least, threshold: fields.get(THRESHOLD, 1, problems)?, link })))
}

impl Side {
    /// The rate as it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Outside => "outside",
            Self::Inside => "inside",
        }
    }
}
