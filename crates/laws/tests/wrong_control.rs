//! Congestion controls that are wrong in one way each: each one is detected, by the right law, with a short
//! sequence.

use std::sync::atomic::{AtomicU64, Ordering};

use apportion_core::congestion::{Ack, CongestionControl, CongestionEvent, Response, Sent, Window};
use apportion_laws::{ControlLaw, ControlViolation, verify_control};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Defect {
    None,
    /// Sets the window to "not a number" after a second loss.
    LeavesNothing,
    /// Can reduce the window to zero.
    ShutsWindow,
    /// Doubles the threshold on a timeout.
    TimesOutUpwards,
    /// Grows the window depending on previous runs.
    Random,
    /// Grows the window when it sends.
    GrowsBySending,
    /// Grows the window on a loss.
    GrowsByLoss,
    /// Never grows the window after a timeout.
    Sulks,
}

/// Reno with one defect.
#[derive(Debug)]
struct Control {
    defect: Defect,
    losses: u32,
    timed_out: bool,
}

impl CongestionControl for Control {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        static RUNS: AtomicU64 = AtomicU64::new(0);
        if !ack.may_grow || self.defect == Defect::Sulks && self.timed_out {
            return;
        }
        let random = RUNS.fetch_add(1, Ordering::Relaxed) % 7;
        let more = if self.defect == Defect::Random { random as f64 } else { ack.acked };
        window.cwnd += if window.is_slow_start() { more } else { more / window.cwnd };
        if self.defect == Defect::ShutsWindow && ack.lost == 0 && window.cwnd > 30.0 {
            window.cwnd = 0.0;
        }
    }
    fn on_loss(&mut self, _: &mut Window, event: &CongestionEvent) -> Response {
        self.losses += 1;
        Response::Reduce(match self.defect {
            Defect::LeavesNothing if self.losses > 1 => f64::NAN,
            Defect::GrowsByLoss => 2.0 * event.basis,
            _ => event.basis / 2.0,
        })
    }
    fn on_timeout(&mut self, _: &Window, event: &CongestionEvent) -> f64 {
        self.timed_out = true;
        event.basis * if self.defect == Defect::TimesOutUpwards { 2.0 } else { 0.5 }
    }
    fn on_sent(&mut self, window: &mut Window, _: &Sent) {
        window.cwnd += if self.defect == Defect::GrowsBySending { 0.01 } else { 0.0 };
    }
}

fn violation(defect: Defect) -> Option<ControlViolation> {
    verify_control(|_| Box::new(Control { defect, losses: 0, timed_out: false }))
        .err()
        .map(|violation| *violation)
}

#[test]
fn every_defect_is_found_by_its_law_with_a_short_sequence() {
    assert_eq!(violation(Defect::None), None);
    for (defect, law, longest) in [
        (Defect::LeavesNothing, ControlLaw::Finite, 6),
        (Defect::ShutsWindow, ControlLaw::Finite, 8),
        (Defect::TimesOutUpwards, ControlLaw::Timeout, 1),
        (Defect::GrowsBySending, ControlLaw::Growth, 1),
        (Defect::GrowsByLoss, ControlLaw::Growth, 2),
        (Defect::Sulks, ControlLaw::Outage, 0),
    ] {
        let found = violation(defect).unwrap_or_else(|| panic!("{defect:?} is not found"));
        assert_eq!(found.law, law, "{defect:?}: {found}");
        assert!(found.ops.len() <= longest, "{defect:?}: {found}");
        assert!(found.to_string().starts_with(&format!("the law of {law} is broken: ")));
        // The same sequence in each run of the test.
        assert_eq!(Some(&found), violation(defect).as_ref());
    }
    let found = violation(Defect::Random).unwrap_or_else(|| panic!("chance is not found"));
    assert_eq!(found.law, ControlLaw::Determinism, "{found}");
}
