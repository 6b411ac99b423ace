//! Transport stacks that are Python classes.
//!
//! An [`End`] holds a Python object for one end of a connection, and keeps its totals after each call. After
//! the first exception it sends nothing, and the run stops.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use apportion::Catalog;
use apportion::apportion_core::Ecn;
use apportion::apportion_core::param::{Entry, Role, Traits};
use apportion::apportion_core::stack::{Command, Datagram, Endpoint, Ends, Progress, Sizes, Stack};
use apportion::apportion_core::system::catalog::RegisterError;
use apportion::units::{Bytes, Span, Time};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyType};

use crate::discipline::{Argument, Session, arguments, leak, params};

/// A class that is a transport stack.
struct Spec {
    class: Py<PyType>,
    entry: &'static Entry,
    attributes: Attributes,
}

/// Attributes of a class: bytes on the wire of a full packet and of an acknowledgement, bytes of the
/// application in a packet, and whether it sets the ECN field.
#[derive(Clone, Copy, FromPyObject)]
#[pyo3(from_item_all)]
pub struct Attributes {
    packet: u16,
    payload: u16,
    ack: u16,
    ecn: bool,
}

/// Classes by name. A second registration of a name replaces the first, as with disciplines.
static REGISTERED: Mutex<BTreeMap<String, Arc<Spec>>> = Mutex::new(BTreeMap::new());

fn registered() -> MutexGuard<'static, BTreeMap<String, Arc<Spec>>> {
    REGISTERED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds the registered stacks.
pub fn add_to(catalog: &mut Catalog) {
    for spec in registered().values() {
        // Registration has refused a class that cannot be added.
        let _ = add(catalog, spec);
    }
}

fn add(catalog: &mut Catalog, spec: &Arc<Spec>) -> Result<(), RegisterError> {
    let made = Arc::clone(spec);
    catalog.register_stack(spec.entry, move |args| {
        Ok(Host { spec: Arc::clone(&made), arguments: arguments(made.entry, args) })
    })
}

/// Registers a class as a transport stack; `parameters` are names with defaults as text.
#[pyfunction]
pub fn register_stack(
    class: Py<PyType>,
    name: &str,
    summary: &str,
    attributes: Attributes,
    parameters: Vec<(String, String)>,
) -> PyResult<()> {
    let entry = Entry {
        name: leak(name),
        role: Role::Stack,
        summary: leak(summary),
        reference: "–",
        cost: "some calls of Python for each packet",
        params: params(&parameters)?,
        traits: Traits::NONE,
    };
    let spec = Arc::new(Spec { class, entry: Box::leak(Box::new(entry)), attributes });
    let refused = add(&mut Catalog::default(), &spec);
    refused.map_err(|error| PyValueError::new_err(error.to_string()))?;
    // Drop the replaced class without the lock: that may call Python.
    let replaced = registered().insert(name.to_owned(), spec);
    drop(replaced);
    Ok(())
}

/// A class with its parameters.
struct Host {
    spec: Arc<Spec>,
    arguments: Vec<(&'static str, Argument)>,
}

impl Stack for Host {
    fn sizes(&self) -> Sizes {
        let Attributes { packet, payload, ack, .. } = self.spec.attributes;
        let [packet, payload, ack] = [packet, payload, ack].map(|size| Bytes::new(size.into()));
        Sizes { packet, payload, ack, memory: MEMORY }
    }
    fn offers_ecn(&self) -> bool {
        self.spec.attributes.ecn
    }
    fn connect(&self, ends: &Ends) -> [Box<dyn Endpoint>; 2] {
        [true, false].map(|is_source| Box::new(End::new(self, ends, is_source)) as Box<dyn Endpoint>)
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Host").field(&self.spec.entry.name).finish()
    }
}

/// One end of a connection, as its object sees it.
#[pyclass(frozen, get_all, module = "apportion._native")]
pub struct StackEnd {
    is_source: bool,
    number: u32,
    seed: u64,
}

/// An object of a class.
struct End {
    /// None if it could not be made, or has failed.
    object: Option<Py<PyAny>>,
    progress: Progress,
    is_done: bool,
    failure: Option<String>,
    timer: Option<Time>,
    session: Session,
}

/// The ECN fields as Python names them, in the order of [`ECN`].
const NAMES: [&str; 4] = ["not_ect", "ect0", "ect1", "ce"];
const ECN: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce];

impl End {
    fn new(host: &Host, ends: &Ends, is_source: bool) -> Self {
        let session = Session::current();
        let seed = ends.seeds[usize::from(!is_source)];
        let object = Python::attach(|py| {
            let end = StackEnd { is_source, number: ends.number, seed };
            let keys = pyo3::types::PyDict::new(py);
            for (name, value) in &host.arguments {
                keys.set_item(name, value)?;
            }
            host.spec.class.bind(py).call((end,), Some(&keys)).map(Bound::unbind)
        });
        let object = object.map_err(|error| session.fail(error)).ok();
        let (progress, is_done, failure, timer) = (Progress::default(), false, None, None);
        Self { object, progress, is_done, failure, timer, session }
    }

    /// Calls the object, and reads what its attributes say after that.
    fn call<T>(&mut self, call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> Option<T> {
        let object = self.object.as_ref()?;
        let result = Python::attach(|py| {
            let object = object.bind(py);
            let result = call(object)?;
            let count = |name: &str| match object.getattr_opt(name)? {
                Some(value) => value.extract::<u64>(),
                None => Ok(0),
            };
            let seconds = |value: Option<f64>, name: &str| match value {
                Some(time) if !(0.0..MAX_SECONDS).contains(&time) => Err(PyValueError::new_err(format!(
                    "{name} is {time}; a time is in seconds, from 0, or None"
                ))),
                value => Ok(value),
            };
            let srtt = object
                .getattr_opt("srtt")?
                .map(|value| value.extract::<Option<f64>>())
                .transpose()?
                .flatten();
            let timer = object.call_method0("timer")?.extract::<Option<f64>>()?;
            Ok((
                result,
                Progress {
                    delivered: count("delivered")?,
                    lost: count("lost")?,
                    timeouts: count("timeouts")?,
                    reductions: count("reductions")?,
                    window: count("window")?,
                    srtt: seconds(srtt, "srtt")?.map(Span::from_secs_f64),
                },
                seconds(timer, "timer()")?.map(|at| Time::ZERO + Span::from_secs_f64(at)),
                object.getattr_opt("done")?.is_some_and(|done| done.is_truthy().unwrap_or(false)),
                match object.getattr_opt("failure")? {
                    Some(reason) => reason.extract::<Option<String>>()?,
                    None => None,
                },
            ))
        });
        match result {
            Ok((result, progress, timer, is_done, failure)) => {
                (self.progress, self.timer, self.is_done, self.failure) = (progress, timer, is_done, failure);
                Some(result)
            }
            Err(error) => {
                self.object = None;
                self.session.fail(error);
                None
            }
        }
    }
}

/// Memory of two objects. Chosen.
const MEMORY: Bytes = Bytes::new(10_000);
/// A time of Python that the simulator can count: two years.
const MAX_SECONDS: f64 = 6e7;
/// Headers of IPv4 and UDP.
const HEADERS: usize = 28;

impl Endpoint for End {
    fn command(&mut self, now: Time, command: Command) {
        let now = now.as_secs_f64();
        self.call(|object| {
            let called = match command {
                Command::Start => ("start", object.getattr_opt("start")?.map(|start| start.call1((now,)))),
                Command::Supply(bytes) => ("supply", Some(object.call_method1("supply", (now, bytes)))),
                Command::SupplyUnlimited => {
                    ("supply", Some(object.call_method1("supply", (now, None::<u64>))))
                }
                Command::Close => ("close", object.getattr_opt("close")?.map(|close| close.call1((now,)))),
            };
            called.1.transpose().map(|_| ())
        });
    }

    fn receive(&mut self, now: Time, ecn: Ecn, payload: Vec<u8>) {
        let ecn = ECN.iter().position(|&known| known == ecn).map_or(NAMES[0], |at| NAMES[at]);
        self.call(|object| {
            let payload = PyBytes::new(object.py(), &payload);
            object.call_method1("receive", (now.as_secs_f64(), payload, ecn)).map(|_| ())
        });
    }

    fn transmit(&mut self, now: Time, payload: &mut Vec<u8>) -> Option<Datagram> {
        self.call(|object| {
            let sent = object.call_method1("transmit", (now.as_secs_f64(),))?;
            if sent.is_none() {
                return Ok(None);
            }
            let (bytes, ecn) = match sent.extract::<(Vec<u8>, String)>() {
                Ok(both) => both,
                Err(_) => (sent.extract::<Vec<u8>>().map_err(|_| wrong(&sent))?, NAMES[0].to_owned()),
            };
            let Some(at) = NAMES.iter().position(|name| **name == ecn) else { return Err(wrong(&sent)) };
            let Ok(size) = u16::try_from(bytes.len() + HEADERS) else { return Err(wrong(&sent)) };
            payload.extend(bytes);
            Ok(Some(Datagram { size, ecn: ECN[at] }))
        })?
    }

    fn next_timer(&mut self) -> Option<Time> {
        self.timer.filter(|_| self.object.is_some())
    }

    fn on_timer(&mut self, now: Time) {
        self.call(|object| object.call_method1("on_timer", (now.as_secs_f64(),)).map(|_| ()));
    }

    fn progress(&self) -> Progress {
        self.progress
    }

    fn is_done(&self) -> bool {
        self.is_done
    }

    fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }
}

fn wrong(sent: &Bound<'_, PyAny>) -> PyErr {
    let shown = sent.repr().map_or_else(|_| "something".to_owned(), |text| text.to_string());
    let shown: String = shown.chars().take(80).collect();
    PyTypeError::new_err(format!(
        "transmit returned {shown}; return None, at most 65507 bytes, or bytes with not_ect, ect0, ect1 or ce"
    ))
}

impl fmt::Debug for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("End").field("progress", &self.progress).finish_non_exhaustive()
    }
}
