//! Adapter from a Python object to the discipline that the simulator sees.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use apportion::apportion_core::limit::Limit;
use apportion::apportion_core::packet::{FlowId, SimplePacket};
use apportion::apportion_core::schedule::End;
use apportion::apportion_core::system::{Discipline, LinkContext};
use apportion::apportion_core::{Backlog, DropReason, FlowSetting, Queue, Sink};
use apportion::units::{Rate, Time, Weight};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyMapping, PyTuple};

use super::buffer::Buffer;
use super::packet::{Mailbox, Packet};
use super::session::Session;
use super::spec::{Argument, Kind, Spec};

/// The link of a discipline.
#[pyclass(frozen, module = "apportion._native")]
pub struct Link {
    rate: Rate,
    name: String,
    seed: u64,
    weights: Vec<Weight>,
    random: PyOnceLock<Py<PyAny>>,
}

#[pymethods]
impl Link {
    /// Rate in bit/s.
    #[getter]
    fn rate(&self) -> f64 {
        self.rate.as_bit() as f64
    }

    /// A name that is unique among the queues of the run.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// The seed of the run.
    #[getter]
    const fn seed(&self) -> u64 {
        self.seed
    }

    /// Initial weight of a flow.
    fn weight(&self, flow: usize) -> f64 {
        self.weights.get(flow).copied().unwrap_or(Weight::ONE).get()
    }

    /// A `random.Random`, the same at each call. Its numbers depend only on the seed of the run and the name
    /// of the link.
    fn random(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let random = self.random.get_or_try_init(py, || {
            let seed = format!("{} {}", self.seed, self.name);
            py.import("random")?.getattr("Random")?.call1((seed,)).map(Bound::unbind)
        })?;
        Ok(random.clone_ref(py))
    }
}

/// An object of a Python class as a discipline. After the first exception it drops every packet, and the run
/// stops.
pub struct Host {
    /// None if the object could not be made, or has raised an exception.
    object: Option<Object>,
    session: Session,
    backlog: Backlog,
    wakeup: Option<Time>,
}

/// The object with its methods, looked up once.
struct Object {
    mailbox: Py<Mailbox>,
    methods: Methods,
    wakeup: Option<Py<PyAny>>,
    set_limit: Option<Py<PyAny>>,
    set_rate: Option<Py<PyAny>>,
    set_weight: Option<Py<PyAny>>,
    statistics: Option<Py<PyAny>>,
}

enum Methods {
    Queue { enqueue: Py<PyAny>, dequeue: Py<PyAny> },
    Policy { buffer: Py<Buffer>, admit: Py<PyAny>, victim: Option<Py<PyAny>>, dequeue: Option<Py<PyAny>> },
}

impl Host {
    /// Creates an object of the class for a link.
    pub fn new(spec: &Arc<Spec>, arguments: &[(&'static str, Argument)], link: &LinkContext<'_>) -> Self {
        let session = Session::current();
        let object = Python::attach(|py| Object::new(py, spec, arguments, link));
        let object = object.map_err(|error| session.fail(error)).ok();
        Self { object, session, backlog: Backlog::EMPTY, wakeup: None }
    }

    /// Calls `work` with the object, unless it has failed.
    fn with<T>(&mut self, work: impl FnOnce(Python<'_>, &Object) -> PyResult<T>) -> Option<T> {
        let object = self.object.as_ref()?;
        match Python::attach(|py| work(py, object)) {
            Ok(result) => Some(result),
            Err(error) => {
                self.session.fail(error);
                self.object = None;
                None
            }
        }
    }

    /// Passes on the object's actions on packets.
    fn collect(&mut self, now: Time, sink: &mut dyn Sink<SimplePacket>) {
        if let Some(object) = &self.object {
            object.mailbox.get().empty(now, sink, |packet| self.backlog.remove(packet));
        }
    }
}

impl Object {
    fn new(
        py: Python<'_>,
        spec: &Spec,
        arguments: &[(&'static str, Argument)],
        link: &LinkContext<'_>,
    ) -> PyResult<Self> {
        let keywords = PyDict::new(py);
        for (name, value) in arguments {
            keywords.set_item(name, value)?;
        }
        let seen = Link {
            rate: link.link_rate,
            name: link.name.to_owned(),
            seed: link.seed,
            weights: link.weights.to_vec(),
            random: PyOnceLock::new(),
        };
        let object = spec.class.bind(py).call((seen,), Some(&keywords))?;
        let method = |name: &str| object.getattr_opt(name).map(|found| found.map(Bound::unbind));
        let mailbox = Py::new(py, Mailbox::default())?;
        let methods = match &spec.kind {
            Kind::Queue => Methods::Queue {
                enqueue: object.getattr("enqueue")?.unbind(),
                dequeue: object.getattr("dequeue")?.unbind(),
            },
            Kind::Policy { scheduler } => Methods::Policy {
                buffer: Py::new(py, Buffer::new(scheduler, link, mailbox.clone_ref(py)))?,
                admit: object.getattr("admit")?.unbind(),
                victim: method("victim")?,
                dequeue: method("dequeue")?,
            },
        };
        Ok(Self {
            mailbox,
            methods,
            wakeup: method("wakeup")?,
            set_limit: method("set_limit")?,
            set_rate: method("set_rate")?,
            set_weight: method("set_weight")?,
            statistics: method("statistics")?,
        })
    }

    fn enqueue(
        &self,
        py: Python<'_>,
        now: Time,
        seen: SimplePacket,
        out: &mut Vec<SimplePacket>,
    ) -> PyResult<()> {
        let packet = Py::new(py, Packet::new(seen, now, self.mailbox.clone_ref(py)))?;
        let seconds = now.as_secs_f64();
        match &self.methods {
            Methods::Queue { enqueue, .. } => {
                enqueue.bind(py).call1((seconds, packet))?;
            }
            Methods::Policy { buffer, admit, victim, .. } => {
                buffer.get().set_now(now);
                let answer = admit.bind(py).call1((seconds, packet.clone_ref(py), buffer.clone_ref(py)))?;
                let Ok(admitted) = answer.cast::<PyBool>() else {
                    let message = format!("admit returned {}; return True or False", answer.repr()?);
                    return Err(PyTypeError::new_err(message));
                };
                if packet.get().is_gone() {
                    return Ok(());
                }
                if !admitted.is_true() {
                    return packet.get().refuse();
                }
                buffer.get().push(now, packet.get().seen());
                while let Some((flow, end)) = victim.as_ref().map_or(Ok(None), |victim| {
                    let answer = victim.bind(py).call1((seconds, buffer.clone_ref(py)))?;
                    chosen(&answer)
                })? {
                    let Some(packet) = buffer.get().push_out(now, flow, end) else {
                        let message = format!("victim returned flow {}, of which no packet waits", flow.0);
                        return Err(PyTypeError::new_err(message));
                    };
                    out.push(packet);
                }
            }
        }
        Ok(())
    }

    fn dequeue(&self, py: Python<'_>, now: Time) -> PyResult<Option<SimplePacket>> {
        let seconds = now.as_secs_f64();
        let answer = match &self.methods {
            Methods::Queue { dequeue, .. } => dequeue.bind(py).call1((seconds,))?,
            Methods::Policy { buffer, dequeue: Some(dequeue), .. } => {
                buffer.get().set_now(now);
                dequeue.bind(py).call1((seconds, buffer.clone_ref(py)))?
            }
            Methods::Policy { buffer, dequeue: None, .. } => {
                return Ok(buffer.get().take(now).map(|queued| queued.packet));
            }
        };
        if answer.is_none() {
            return Ok(None);
        }
        let Ok(packet) = answer.cast::<Packet>() else {
            let message = format!("dequeue returned {}; return a packet or None", answer.repr()?);
            return Err(PyTypeError::new_err(message));
        };
        packet.get().take(&self.mailbox).map(Some)
    }

    /// Time of the next call.
    fn wakeup(&self, py: Python<'_>, now: Time) -> PyResult<Option<Time>> {
        let Some(wakeup) = &self.wakeup else { return Ok(None) };
        let seconds: Option<f64> = wakeup.bind(py).call0()?.extract()?;
        let Some(seconds) = seconds else { return Ok(None) };
        // An earlier time would be asked for without end.
        if seconds.is_nan() || seconds < now.as_secs_f64() {
            let message = format!(
                "wakeup returned {seconds} s, but it is {} s; return a later time, or None",
                now.as_secs_f64()
            );
            return Err(PyValueError::new_err(message));
        }
        Ok(Some(at_or_after(seconds).max(Time::from_nanos(now.as_nanos().saturating_add(1)))))
    }
}

/// Result of `statistics`: names with finite numbers, the only ones that tables hold.
fn numbers(answer: &Bound<'_, PyAny>) -> PyResult<Vec<(&'static str, f64)>> {
    let pairs: Option<Vec<(String, f64)>> = answer.cast::<PyMapping>().ok().and_then(|all| {
        let items = all.items().ok()?.extract::<Vec<(String, f64)>>().ok()?;
        items.iter().all(|(_, number)| number.is_finite()).then_some(items)
    });
    let Some(pairs) = pairs else {
        let message =
            format!("statistics returned {}; return a dict of names and finite numbers", answer.repr()?);
        return Err(PyTypeError::new_err(message));
    };
    pairs.into_iter().map(|(name, number)| Ok((interned(&name)?, number))).collect()
}

/// Maximum number of names. Chosen: far more than classes have, and little memory.
const MAX_NAMES: usize = 10_000;

/// Interns a name for the life of the process, as a discipline of the library needs.
fn interned(name: &str) -> PyResult<&'static str> {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return Ok(known);
    }
    if names.len() == MAX_NAMES {
        let message = format!("statistics have had {MAX_NAMES} names; use few names, which do not vary");
        return Err(PyValueError::new_err(message));
    }
    let name: &'static str = Box::leak(name.into());
    names.insert(name);
    Ok(name)
}

/// The first nanosecond that reads back as `seconds` or later: a discipline that waits until then is not
/// called too early.
fn at_or_after(seconds: f64) -> Time {
    let time = Time::from_nanos((seconds * 1e9).ceil() as u64);
    if time.as_secs_f64() < seconds { Time::from_nanos(time.as_nanos().saturating_add(1)) } else { time }
}

/// The flow that loses a packet, and at which end: `flow`, or `(flow, "head")`.
fn chosen(answer: &Bound<'_, PyAny>) -> PyResult<Option<(FlowId, End)>> {
    if answer.is_none() {
        return Ok(None);
    }
    if let Ok(flow) = answer.extract() {
        return Ok(Some((FlowId(flow), End::Tail)));
    }
    let pair = answer.cast::<PyTuple>().ok().and_then(|pair| pair.extract::<(u32, String)>().ok());
    match pair {
        Some((flow, end)) if end == "head" => Ok(Some((FlowId(flow), End::Head))),
        Some((flow, end)) if end == "tail" => Ok(Some((FlowId(flow), End::Tail))),
        _ => {
            let message = format!(
                "victim returned {}; return the number of a flow, (flow, \"head\"), or None",
                answer.repr()?
            );
            Err(PyTypeError::new_err(message))
        }
    }
}

impl Queue<SimplePacket> for Host {
    fn enqueue(&mut self, now: Time, packet: SimplePacket, sink: &mut dyn Sink<SimplePacket>) {
        self.backlog.add(&packet);
        let mut pushed_out = Vec::new();
        let done = self.with(|py, object| object.enqueue(py, now, packet, &mut pushed_out));
        if done.is_none() {
            self.backlog.remove(&packet);
            return sink.dropped(now, packet, DropReason::Policy);
        }
        self.collect(now, sink);
        for packet in pushed_out {
            self.backlog.remove(&packet);
            sink.dropped(now, packet, DropReason::PushOut);
        }
    }

    fn dequeue(&mut self, now: Time, sink: &mut dyn Sink<SimplePacket>) -> Option<SimplePacket> {
        let packet = self.with(|py, object| object.dequeue(py, now)).flatten();
        self.collect(now, sink);
        self.wakeup = None;
        match packet {
            Some(packet) => self.backlog.remove(&packet),
            None if self.backlog.is_empty() => {}
            None => self.wakeup = self.with(|py, object| object.wakeup(py, now)).flatten(),
        }
        packet
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.wakeup
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }
}

impl Discipline<SimplePacket> for Host {
    /// Drains a policy; for a queue, the adapter of the library takes packets in the order of arrival.
    fn drain(&mut self, now: Time) -> Option<SimplePacket> {
        let buffer = match &self.object.as_ref()?.methods {
            Methods::Policy { buffer, .. } => buffer,
            Methods::Queue { .. } => return None,
        };
        let packet = buffer.get().take(now)?.packet;
        self.backlog.remove(&packet);
        Some(packet)
    }

    fn set_limit(&mut self, limit: Limit) {
        self.with(|py, object| match (&object.set_limit, limit) {
            (Some(method), Limit::Packets(packets)) => method.call1(py, (packets.get(),)).map(drop),
            _ => Ok(()),
        });
    }

    fn set_link_rate(&mut self, rate: Rate) {
        self.with(|py, object| match &object.set_rate {
            Some(method) => method.call1(py, (rate.as_bit() as f64,)).map(drop),
            None => Ok(()),
        });
    }

    fn set_flow(&mut self, flow: FlowId, setting: FlowSetting) -> bool {
        let FlowSetting::Weight(weight) = setting else { return false };
        let used = self.with(|py, object| {
            let scheduled = match &object.methods {
                Methods::Policy { buffer, .. } => buffer.get().set_flow(flow, setting),
                Methods::Queue { .. } => false,
            };
            match &object.set_weight {
                Some(method) => method.call1(py, (flow.0, weight.get())).map(|_| true),
                None => Ok(scheduled),
            }
        });
        used.unwrap_or(false)
    }

    fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        let Some(method) = self.object.as_ref().and_then(|object| object.statistics.as_ref()) else { return };
        match Python::attach(|py| numbers(&method.bind(py).call0()?)) {
            Ok(numbers) => numbers.into_iter().for_each(|(name, number)| show(name, number)),
            Err(error) => self.session.fail(error),
        }
    }
}
