//! Proportional rate reduction: the data that each ACK lets out while the window falls (RFC 6937, and its
//! revision draft-ietf-tcpm-prr-rfc6937bis, whose SafeACK it uses).
//!
//! Deviation, as in Linux: RecoverFS is the window before the reduction, not the outstanding data.

/// One reduction of the window. In segments; names as in the draft, section 5.
#[derive(Clone, Copy, Debug, Default)]
pub struct Prr {
    /// The window before the reduction.
    recover_fs: f64,
    /// Segments delivered since the start of the reduction.
    prr_delivered: u32,
    /// Segments sent since the start of the reduction.
    prr_out: u32,
}

impl Prr {
    /// Begins a reduction from a window of `cwnd`.
    #[must_use]
    pub const fn new(cwnd: f64) -> Self {
        Self { recover_fs: cwnd, prr_delivered: 0, prr_out: 0 }
    }

    /// Segments delivered since the start of the reduction.
    #[cfg(test)]
    #[must_use]
    pub const fn delivered(&self) -> u32 {
        self.prr_delivered
    }

    /// Notes that a segment was sent.
    pub const fn send(&mut self) {
        self.prr_out += 1;
    }

    /// The window after an ACK that delivers `delivered` segments and leaves `in_flight`.
    ///
    /// `safe`: it acknowledges new data and shows no further loss (SafeACK).
    #[must_use]
    pub fn window(&mut self, ssthresh: f64, in_flight: u32, delivered: u32, safe: bool) -> f64 {
        self.prr_delivered += delivered;
        let (delivered, out) = (f64::from(delivered), f64::from(self.prr_out));
        let total = f64::from(self.prr_delivered);
        let room = ssthresh - f64::from(in_flight);
        let send = if room < 0.0 {
            (ssthresh * total / self.recover_fs.max(1.0)).ceil() - out
        } else {
            // Slow start up to the threshold while no loss shows; conservation of packets otherwise.
            ((total - out).max(delivered) + f64::from(u8::from(safe))).min(room)
        };
        // The first ACK always lets the retransmission out.
        let least = if self.prr_out == 0 { 1.0 } else { 0.0 };
        f64::from(in_flight) + send.max(least)
    }
}
