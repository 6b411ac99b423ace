//! The last part of the buffer, which CSFQ and HCSFQ reserve for packets that a guarantee covers.

use crate::mark::rate_label::RateLabel;
use crate::param::{Param, ParamError, require};
use crate::units::{Ratio, Span};

/// The part of the buffer in [`Reserve`].
pub(super) const RESERVE: Param = Param::of("10%", "chosen: some packets; the 2002 paper has 0")
    .doc("Part of the buffer kept for guaranteed packets, while any arrive.");

/// The last part of the buffer, for guaranteed packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reserve {
    pub(super) part: Ratio,
    /// Whether a label of 1 marks a packet that pays a debt, to which half of the part is open.
    pub(super) pays_debts: bool,
}

impl Reserve {
    /// Refuses a `reserve` that leaves no room above `threshold`, or with a `target_delay`, which replaces the
    /// threshold, one that takes the whole buffer.
    pub(super) fn check(threshold: Ratio, reserve: Ratio, target_delay: Span) -> Result<(), ParamError> {
        let is_by_delay = target_delay > Span::ZERO;
        let all = "with 1 all of the buffer is kept; write for example \"10%\"";
        require(!is_by_delay || reserve.get() < 1.0, "reserve", all)?;
        let room = "excess packets never fill the buffer beyond `threshold`, so that no congestion is seen; \
                    `threshold` and `reserve` must add up to less than 1";
        require(is_by_delay || threshold.get() + reserve.get() < 1.0, "reserve", room)
    }

    pub(super) fn is_debt(self, label: RateLabel) -> bool {
        self.pays_debts && matches!(label, RateLabel::Excess(rate) if rate <= 1.0)
    }

    /// Whether a buffer whose part `filled` is full has only room that is reserved for other packets.
    pub(super) fn is_closed(self, label: RateLabel, filled: f64) -> bool {
        let kept = match label {
            RateLabel::Guaranteed => 0.0,
            _ if self.is_debt(label) => self.part.get() / 2.0,
            RateLabel::Excess(_) => self.part.get(),
        };
        kept > 0.0 && filled >= 1.0 - kept
    }
}
