//! The run of a discipline.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};

use apportion::Cancel;
use pyo3::prelude::*;

thread_local! {
    /// Run of this thread. Disciplines are built on the thread that runs them, by code without access to the
    /// run.
    static CURRENT: RefCell<Session> = RefCell::default();
}

/// Stops a run, and keeps the exception that it then raises.
#[derive(Clone, Default)]
pub struct Session {
    cancel: Cancel,
    failure: Arc<Mutex<Option<PyErr>>>,
}

impl Session {
    pub fn new(cancel: &Cancel) -> Self {
        Self { cancel: cancel.clone(), failure: Arc::default() }
    }

    /// Session of this thread.
    pub fn current() -> Self {
        CURRENT.with_borrow(Self::clone)
    }

    /// Does `work` as a part of this run, on this thread.
    pub fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        let before = CURRENT.replace(self.clone());
        let result = work();
        CURRENT.set(before);
        result
    }

    /// Stops the run with an exception; the first one counts.
    pub fn fail(&self, error: PyErr) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.cancel.cancel();
    }

    /// Whether the run was stopped, by this or from outside.
    pub fn has_ended(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// The exception, if any.
    pub fn failure(&self) -> Option<PyErr> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
