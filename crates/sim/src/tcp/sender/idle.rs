//! A sender with nothing outstanding: the window after silence, and a closed window of the receiver.

use apportion_core::Ecn;
use apportion_core::units::Time;
use apportion_scenario::tcp::Idle;

use super::Sender;
use crate::congestion::window::initial_window;
use crate::tcp::segment::SegmentSink;

impl Sender {
    /// The timer expired with everything acknowledged: the window collapses, while threshold and timeout
    /// stay.
    pub(super) fn idle_timeout(&mut self, now: Time) {
        self.stats.idle_timeouts += 1;
        self.start_over(1.0);
        self.recovery.inflation = 0.0;
        self.restart_timer(now);
    }

    /// Whether the receiver's window is too small for the next segment while no other event would reopen it.
    pub(super) fn window_is_shut(&self) -> bool {
        let next = self.params.segment.get().min(self.data_end - self.snd_una);
        self.snd_wnd < next
    }

    /// Sends the data that the closed window permits, at least a byte (RFC 9293 section 3.8.6.1); in Linux, if it
    /// permits none, the empty segment before them, which is acknowledged too (section 3.10.7.4).
    pub(super) fn probe<W: SegmentSink>(&mut self, now: Time, out: &mut W) {
        self.stats.window_probes += 1;
        self.rtt.back_off(&self.params);
        if self.uses_rack() && self.snd_wnd == 0 {
            self.stats.segments += 1;
            self.restart_timer(now);
            let (segment, size) = self.segment(now, self.snd_una.saturating_sub(1), 0, self.plain_flags());
            return out.send(segment, size, Ecn::NotEct);
        }
        let len = self.snd_wnd.max(1).min(self.data_end - self.snd_una);
        self.timed = None;
        self.transmit(now, self.snd_una, len, out);
    }

    /// RFC 5681 section 4.1: after silence for an idle timeout, restarts from the restart window; or halves
    /// the window for each timeout (RFC 2861 section 3). Returns whether that happened.
    #[inline]
    pub(in crate::tcp) fn restart_after_idle(&mut self, now: Time) -> bool {
        let falls = matches!(self.params.idle, Idle::Restart | Idle::Decay);
        falls && self.snd_una == self.snd_max && self.snd_nxt < self.data_end && self.restart_after(now)
    }

    /// Restarts as [`restart_after_idle`](Self::restart_after_idle) does, with nothing outstanding and data
    /// to send.
    #[inline(never)]
    fn restart_after(&mut self, now: Time) -> bool {
        let silence = now.since(self.last_send);
        if silence <= self.rto() {
            return false;
        }
        let restart = initial_window(&self.params);
        if self.params.idle == Idle::Restart {
            self.start_over(restart);
        } else {
            self.decay(restart, silence.as_nanos() / self.rto().as_nanos().max(1));
        }
        true
    }

    /// Restarts the window from `window` and keeps the threshold.
    fn start_over(&mut self, window: f64) {
        self.window.cwnd = self.window.cwnd.min(window);
        self.control.on_restart();
    }

    /// After silence for `timeouts` timeouts: the window is halved for each, down to `window`, and the
    /// threshold remembers it (RFC 2861 section 3).
    fn decay(&mut self, window: f64, timeouts: u64) {
        self.window.ssthresh = self.window.ssthresh.max(0.75 * self.window.cwnd);
        for _ in 0..timeouts.min(64) {
            self.window.cwnd = (self.window.cwnd / 2.0).max(window.min(self.window.cwnd));
        }
    }

    /// With nothing outstanding, only the timer can find out that a closed window has opened.
    pub(in crate::tcp) fn watch_shut_window(&mut self, now: Time) {
        let waits = self.snd_una == self.snd_max && self.snd_nxt < self.data_end;
        if waits && self.timer.is_none() && self.window_is_shut() {
            self.restart_timer(now);
        }
    }
}
