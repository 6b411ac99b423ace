//! Adapter from a Python object to the congestion control that a transport sees.

use std::cell::Cell;

use apportion::apportion_core::congestion::{self, CongestionControl, Phase, Response};
use apportion::units::{Rate, Span, Time};
use pyo3::call::PyCallArgs;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::values::{Ack, CongestionEvent, Connection, Feedback, Sent, Shown, Window};
use crate::discipline::Session;

/// Declares the hooks, methods of a class with the contract's names.
macro_rules! hooks {
    ($($hook:ident = $name:literal),* $(,)?) => {
        #[derive(Clone, Copy)]
        enum Hook {
            $($hook),*
        }

        const HOOKS: &[&str] = &[$($name),*];
    };
}

hooks! {
    OnAck = "on_ack",
    OnLoss = "on_loss",
    OnRepairedLoss = "on_repaired_loss",
    OnMark = "on_mark",
    OnTimeout = "on_timeout",
    OnSent = "on_sent",
    OnFeedback = "on_feedback",
    OnSegmentLost = "on_segment_lost",
    OnRecovered = "on_recovered",
    OnUndone = "on_undone",
    OnAppLimited = "on_app_limited",
    OnRestart = "on_restart",
    PacingRate = "pacing_rate",
    MovesWindow = "moves_window",
    HasSlowStart = "has_slow_start",
    MarkShare = "mark_share",
}

/// An object of a Python class as a congestion control. After the first exception it does nothing, and the
/// run stops.
pub struct Host {
    /// None if the object could not be made.
    object: Option<Object>,
    has_failed: Cell<bool>,
    session: Session,
    /// If false, invalid windows are passed on, for the laws to find.
    is_judged: bool,
}

/// The object with its methods, looked up once.
struct Object {
    class: String,
    /// Methods by [`Hook`]; None where the class lacks one.
    methods: Vec<Option<Py<PyAny>>>,
    /// The window that hooks move.
    window: Py<Window>,
}

/// Return value of a hook.
struct Answer<'a, 'py> {
    object: &'a Object,
    hook: Hook,
    value: Bound<'py, PyAny>,
}

impl Answer<'_, '_> {
    /// Reads a value and checks that it is valid.
    fn read<T: for<'py> FromPyObjectOwned<'py>>(
        &self,
        wanted: &str,
        makes_sense: impl FnOnce(&T) -> bool,
    ) -> PyResult<T> {
        let value = self.value.extract().ok();
        let is_of_type = value.is_some();
        if let Some(value) = value.filter(makes_sense) {
            return Ok(value);
        }
        let name = self.object.name_of(self.hook);
        let message = format!("{name} returned {}; return {wanted}", self.value.repr()?);
        Err(if is_of_type { PyValueError::new_err(message) } else { PyTypeError::new_err(message) })
    }

    /// Reads the window as the hook left it.
    fn window(&self) -> PyResult<congestion::Window> {
        Ok(self.object.window.try_borrow(self.value.py())?.inner())
    }

    /// Refuses a changed window, and says what to do instead.
    fn keeps(&self, before: &congestion::Window, instead: &str) -> PyResult<()> {
        if self.window()? == *before {
            return Ok(());
        }
        let message = format!("{} moved the window; {instead}", self.object.name_of(self.hook));
        Err(PyValueError::new_err(message))
    }
}

impl Object {
    fn new(py: Python<'_>, class: &Py<PyType>, connection: Connection) -> PyResult<Self> {
        let class = class.bind(py);
        let name = class.name()?.to_string();
        let object = class.call1((connection,)).inspect_err(|error| note(py, error, &name, "__init__"))?;
        let method = |name: &&str| object.getattr_opt(*name).map(|method| method.map(Bound::unbind));
        Ok(Self {
            class: name,
            methods: HOOKS.iter().map(method).collect::<PyResult<_>>()?,
            window: Py::new(py, Window { cwnd: 0.0, ssthresh: 0.0 })?,
        })
    }

    fn name_of(&self, hook: Hook) -> String {
        format!("{}.{}", self.class, HOOKS[hook as usize])
    }
}

/// Notes in which method an exception was raised. Python 3.10 has no notes: there only the traceback tells.
fn note(py: Python<'_>, error: &PyErr, class: &str, method: &str) {
    let _ = error.value(py).call_method1("add_note", (format!("in {class}.{method}"),));
}

impl Host {
    pub fn new(class: &Py<PyType>, connection: &congestion::Connection, is_judged: bool) -> Self {
        let session = Session::current();
        let object = Python::attach(|py| Object::new(py, class, connection.into()));
        let object = object.map_err(|error| session.fail(error)).ok();
        Self { object, has_failed: Cell::new(false), session, is_judged }
    }

    fn has(&self, hook: Hook) -> bool {
        self.object.as_ref().is_some_and(|object| object.methods[hook as usize].is_some())
    }

    /// Calls a hook and reads its return value. None if the class lacks the hook, or the object has failed.
    fn call<A: for<'py> PyCallArgs<'py>, T>(
        &self,
        hook: Hook,
        arguments: impl FnOnce(Python<'_>, &Object) -> PyResult<A>,
        read: impl FnOnce(&Answer<'_, '_>) -> PyResult<T>,
    ) -> Option<T> {
        let object = self.object.as_ref().filter(|_| !self.has_failed.get())?;
        let method = object.methods[hook as usize].as_ref()?;
        let result = Python::attach(|py| {
            let arguments = arguments(py, object)?;
            let called = method.bind(py).call1(arguments);
            let value = called.inspect_err(|error| note(py, error, &object.class, HOOKS[hook as usize]))?;
            read(&Answer { object, hook, value })
        });
        result
            .map_err(|error| {
                self.has_failed.set(true);
                self.session.fail(error);
            })
            .ok()
    }

    /// Calls a hook that moves the window.
    fn call_with<A: for<'py> PyCallArgs<'py>, T>(
        &self,
        hook: Hook,
        window: &mut congestion::Window,
        arguments: impl FnOnce(Py<Window>) -> A,
        read: impl FnOnce(&Answer<'_, '_>) -> PyResult<T>,
    ) -> Option<T> {
        let congestion::Window { cwnd, ssthresh } = *window;
        self.call(
            hook,
            |py, object| {
                *object.window.try_borrow_mut(py)? = Window { cwnd, ssthresh };
                Ok(arguments(object.window.clone_ref(py)))
            },
            |answer| {
                let (result, moved) = (read(answer)?, answer.window()?);
                let congestion::Window { cwnd, ssthresh } = moved;
                let makes_sense = cwnd > 0.0 && cwnd.is_finite() && ssthresh > 0.0;
                if !makes_sense && !self.is_judged {
                    let message = format!(
                        "{} left window.cwnd = {cwnd} and window.ssthresh = {ssthresh}; keep both above 0, and cwnd finite",
                        answer.object.name_of(hook)
                    );
                    return Err(PyValueError::new_err(message));
                }
                *window = moved;
                Ok(result)
            },
        )
    }

    /// Calls a hook that may read but not move the window.
    fn show<A: for<'py> PyCallArgs<'py>, T>(
        &self,
        hook: Hook,
        window: &congestion::Window,
        arguments: impl FnOnce(Py<Window>) -> A,
        read: impl FnOnce(&Answer<'_, '_>) -> PyResult<T>,
    ) -> Option<T> {
        self.call_with(hook, &mut window.clone(), arguments, |answer| {
            answer.keeps(window, "it is for reading here")?;
            read(answer)
        })
    }

    /// Calls a hook for a value, and checks that it is valid.
    fn ask<A: for<'py> PyCallArgs<'py>, T: for<'py> FromPyObjectOwned<'py>>(
        &self,
        hook: Hook,
        arguments: A,
        wanted: &str,
        makes_sense: impl FnOnce(&T) -> bool,
    ) -> Option<T> {
        self.call(hook, |_, _| Ok(arguments), |answer| answer.read(wanted, makes_sense))
    }

    /// Reads a number of segments from a hook.
    fn segments(&self, answer: &Answer<'_, '_>, wanted: &str) -> PyResult<f64> {
        answer.read(wanted, |left: &f64| self.is_judged || (left.is_finite() && *left >= 0.0))
    }

    /// Reports a congestion event to its hook, or to the hook for losses if the class lacks it.
    fn sign(
        &self,
        hook: Hook,
        window: &mut congestion::Window,
        event: &congestion::CongestionEvent,
    ) -> Response {
        let (hook, before) = (if self.has(hook) { hook } else { Hook::OnLoss }, *window);
        let response = self.call_with(
            hook,
            window,
            |window| (window, CongestionEvent::from(event)),
            |answer| {
                if answer.value.is_none() {
                    answer.keeps(&before, "return it where it is moved")?;
                    return Ok(Response::Ignore);
                }
                if answer.value.is(&answer.object.window) {
                    return Ok(Response::Done);
                }
                let wanted =
                    "the segments that are left, a finite number from 0; or the window, if it is moved; or None";
                self.segments(answer, wanted).map(Response::Reduce)
            },
        );
        response.unwrap_or(Response::Ignore)
    }
}

impl CongestionControl for Host {
    fn on_ack(&mut self, window: &mut congestion::Window, ack: &congestion::Ack) {
        self.call_with(Hook::OnAck, window, |window| (window, Ack::from(ack)), |_| Ok(()));
    }

    fn on_loss(&mut self, window: &mut congestion::Window, event: &congestion::CongestionEvent) -> Response {
        self.sign(Hook::OnLoss, window, event)
    }

    fn on_repaired_loss(
        &mut self,
        window: &mut congestion::Window,
        event: &congestion::CongestionEvent,
    ) -> Response {
        self.sign(Hook::OnRepairedLoss, window, event)
    }

    fn on_mark(&mut self, window: &mut congestion::Window, event: &congestion::CongestionEvent) -> Response {
        self.sign(Hook::OnMark, window, event)
    }

    fn on_timeout(&mut self, window: &congestion::Window, event: &congestion::CongestionEvent) -> f64 {
        let left = self.show(
            Hook::OnTimeout,
            window,
            |window| (window, CongestionEvent::from(event)),
            |answer| self.segments(answer, "the threshold in segments, a finite number from 0"),
        );
        left.unwrap_or(event.basis / 2.0)
    }

    fn on_sent(&mut self, window: &mut congestion::Window, sent: &congestion::Sent) {
        self.call_with(Hook::OnSent, window, |window| (window, Sent::from(sent)), |_| Ok(()));
    }

    fn on_feedback(&mut self, feedback: &congestion::Feedback) {
        self.call(Hook::OnFeedback, |_, _| Ok((Feedback::from(feedback),)), |_| Ok(()));
    }

    fn on_segment_lost(&mut self, window: &congestion::Window, now: Time, number: u64) {
        let arguments = |window| (window, now.as_secs_f64(), number);
        self.show(Hook::OnSegmentLost, window, arguments, |_| Ok(()));
    }

    fn on_recovered(&mut self, window: &mut congestion::Window) {
        self.call_with(Hook::OnRecovered, window, |window| (window,), |_| Ok(()));
    }

    fn on_undone(&mut self) {
        self.call(Hook::OnUndone, |_, _| Ok(()), |_| Ok(()));
    }

    fn on_app_limited(&mut self, in_flight: u32) {
        self.call(Hook::OnAppLimited, |_, _| Ok((in_flight,)), |_| Ok(()));
    }

    fn on_restart(&mut self) {
        self.call(Hook::OnRestart, |_, _| Ok(()), |_| Ok(()));
    }

    fn pacing_rate(&mut self, srtt: Option<Span>) -> Option<Rate> {
        let wanted = "a rate in bit/s, a finite number from 1; or None";
        let makes_sense = |rate: &Option<f64>| rate.is_none_or(|rate| rate.is_finite() && rate >= 1.0);
        let rate: Option<f64> =
            self.ask(Hook::PacingRate, (srtt.map(Span::as_secs_f64),), wanted, makes_sense)?;
        rate.map(|rate| Rate::from_bit(rate as u64))
    }

    fn moves_window(&self, phase: Phase) -> bool {
        let phase: &str = phase.shown();
        self.ask(Hook::MovesWindow, (phase,), "True or False", |_| true).unwrap_or(false)
    }

    fn observes_segments(&self) -> bool {
        [Hook::OnSent, Hook::OnFeedback, Hook::OnSegmentLost, Hook::OnAppLimited]
            .iter()
            .any(|&hook| self.has(hook))
    }

    fn has_slow_start(&self) -> bool {
        self.ask(Hook::HasSlowStart, (), "True or False", |_| true).unwrap_or(true)
    }

    fn mark_share(&self) -> f64 {
        let makes_sense = |share: &f64| (0.0..=1.0).contains(share);
        self.ask(Hook::MarkShare, (), "a share from 0 to 1", makes_sense).unwrap_or(1.0)
    }
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host").finish_non_exhaustive()
    }
}
