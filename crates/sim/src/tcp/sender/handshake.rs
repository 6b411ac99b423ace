//! The handshake of a sender: its SYN, and the result of a SYN/ACK.
//!
//! RFC 9293 section 3.5, RFC 7323 section 2 (window scale), RFC 3168 section 6.1.1 and RFC 9768 section 3.1 (ECN).

use apportion_core::Ecn;
use apportion_core::units::Time;

use super::{Phase, Sender};
use crate::congestion::window::initial_window;
use crate::tcp::accurate::{self, Feedback};
use crate::tcp::receiver::window_scale;
use crate::tcp::segment::{Extra, Flags, Segment, SegmentSink};

impl Sender {
    /// Sends a SYN, for the first time or again.
    pub(super) fn send_syn<W: SegmentSink>(&mut self, now: Time, out: &mut W) {
        let offer = self.offer();
        let flags = Flags::SYN | offer;
        let syn = Segment {
            seq: self.isn,
            window: u16::MAX,
            flags,
            extra: if self.params.window_scale {
                Extra::WindowScale(window_scale(&self.params))
            } else {
                Extra::None
            },
            timestamp: self.timestamp(now),
            ..Segment::default()
        };
        self.account(now, 0, 1);
        self.snd_nxt = 1;
        let is_capable = self.params.algorithm.is_wholly_capable() && offer != Flags::NONE;
        out.send(syn, self.params.ack, if is_capable { Ecn::Ect0 } else { Ecn::NotEct });
    }

    /// The flags of a SYN that request ECN.
    fn offer(&self) -> Flags {
        let Phase::SynSent { timeouts } = self.phase else { return Flags::NONE };
        // RFC 3168 section 6.1.1.1: a SYN without an answer may have been dropped for its flags. RFC 9768
        // section 3.1.4.1 tries twice.
        let is_l4s = self.params.algorithm.is_l4s();
        let (flags, tries) = if is_l4s { (accurate::OFFER, 2) } else { (Flags::ECE | Flags::CWR, 1) };
        let falls_back = self.uses_rack() && timeouts >= tries;
        if self.params.offers_ecn() && !falls_back { flags } else { Flags::NONE }
    }

    /// Applies the result of a SYN/ACK with these flags.
    fn agree(&mut self, answer: Flags) {
        let feedback = if self.params.algorithm.is_l4s() {
            Feedback::granted(answer)
        } else if self.params.offers_ecn() && answer.has(Flags::ECE) {
            Feedback::Classic
        } else {
            Feedback::None
        };
        (self.ecn_agreed, self.accurate) = (feedback != Feedback::None, feedback == Feedback::Accurate);
    }

    /// For a sender whose peer opened the connection, after the handshake: `ack` has the flags of the peer's ACK of the
    /// SYN/ACK if that was a pure ACK (RFC 9768 section 3.2.2.1), and `asked_none` is whether a SYN or SYN/ACK had none of
    /// the flags of ECN, after which no packet may be ECN-capable (section 3.1.5). Without Accurate ECN nothing happens.
    pub fn confirm(&mut self, ack: Option<Flags>, asked_none: bool) {
        if !self.accurate {
            return;
        }
        match ack.map(accurate::confirmed) {
            Some(Some(marks)) => self.rack.marks = marks,
            Some(None) => self.accurate = false,
            None => {}
        }
        self.ecn_agreed = self.accurate && !asked_none;
    }

    /// The SYN/ACK has come, after `timeouts` timeouts.
    pub(super) fn establish(&mut self, now: Time, ack: u64, segment: &Segment, timeouts: u16) {
        self.phase = Phase::Open;
        self.scale = segment.extra.window_scale().unwrap_or(0).min(14);
        self.snd_wnd = u64::from(segment.window).min(u64::from(self.largest_window));
        if self.params.window_scale && segment.extra.window_scale().is_some() {
            // The field of a SYN is unscaled and limited to 64 kB; both ends share the parameters.
            self.snd_wnd = u64::from(self.largest_window);
        }
        self.agree(segment.flags);
        // Linux ignores the first lost SYN.
        let forgiven = u16::from(self.uses_rack());
        if timeouts > forgiven {
            self.syn_lost();
        } else {
            self.window.cwnd = initial_window(&self.params);
        }
        if timeouts > 0
            && let Some(sent) = segment.sent_at(now)
        {
            self.rtt.sample(&self.params, sent, now);
        }
        self.advance(now, ack);
    }
}
