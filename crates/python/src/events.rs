//! Events of a run as calls of Python.

use apportion::Run;
use apportion::apportion_core::DropReason;
use apportion::events::{FlowSample, LinkSample};
use pyo3::call::PyCallArgs;
use pyo3::prelude::*;

use crate::discipline::Session;

/// Python's name for a loss on a wire; disciplines have other reasons.
const LOST: &str = "lost";

/// Functions called during a run with the values of an event.
#[derive(Default, FromPyObject)]
pub struct Callbacks {
    on_drop: Option<Py<PyAny>>,
    on_mark: Option<Py<PyAny>>,
    on_sample: Option<Py<PyAny>>,
}

impl Callbacks {
    pub const fn are_none(&self) -> bool {
        self.on_drop.is_none() && self.on_mark.is_none() && self.on_sample.is_none()
    }

    /// Adds the callbacks to a run.
    pub fn add<'a>(self, mut run: Run<'a>, session: &Session) -> Run<'a> {
        let caller = |function| Caller { function, session: session.clone() };
        if let Some(to) = self.on_drop.map(caller) {
            run = run.on_drop(move |of| {
                let reason = of.reason.map_or(LOST, DropReason::name);
                to.call((of.point, of.seed, of.at.as_secs_f64(), of.link, of.flow, of.size.get(), reason));
            });
        }
        if let Some(to) = self.on_mark.map(caller) {
            run = run.on_mark(move |of| {
                to.call((of.point, of.seed, of.at.as_secs_f64(), of.link, of.flow, of.size.get()));
            });
        }
        if let Some(to) = self.on_sample.map(caller) {
            run = run.on_sample(move |of| {
                let flows: Vec<_> = of.flows.iter().map(flow_values).collect();
                let links: Vec<_> = of.links.iter().map(link_values).collect();
                to.call((of.point, of.seed, of.at.as_secs_f64(), flows, links));
            });
        }
        run
    }
}

/// Name, Mb/s, segments and ms.
fn flow_values<'a>(of: &FlowSample<'a>) -> (&'a str, f64, Option<f64>, Option<f64>) {
    let srtt = of.tcp.and_then(|tcp| tcp.srtt).map(|srtt| srtt.as_secs_f64() * 1e3);
    (of.name, of.throughput.as_mbit_f64(), of.tcp.map(|tcp| tcp.window), srtt)
}

/// Name, Mb/s and packets.
fn link_values<'a>(of: &LinkSample<'a>) -> (&'a str, f64, u64) {
    (of.name, of.throughput.as_mbit_f64(), of.backlog.get())
}

/// Calls a function; an exception in it stops the run.
struct Caller {
    function: Py<PyAny>,
    session: Session,
}

impl Caller {
    fn call(&self, values: impl for<'py> PyCallArgs<'py>) {
        // A stopped run goes on for a moment.
        if self.session.has_ended() {
            return;
        }
        let called = Python::attach(|py| self.function.bind(py).call1(values).map(drop));
        called.unwrap_or_else(|error| self.session.fail(error));
    }
}
