//! Registered classes with their parameters, as entries of the catalogue.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use apportion::Catalog;
use apportion::apportion_core::param::{self, Entry, EntryArgs, Param, Role, Traits};
use apportion::units::{Bytes, Packets, Rate, Ratio, Span};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::buffer::SCHEDULERS;
use super::host::Host;

/// A class that is a discipline.
pub struct Spec {
    pub class: Py<PyType>,
    pub kind: Kind,
    entry: &'static Entry,
}

/// Role of a class.
pub enum Kind {
    /// Holds packets: `enqueue`, `dequeue`.
    Queue,
    /// Decides about packets in a scheduler: `admit`, and optionally `victim` and `dequeue`.
    Policy { scheduler: String },
}

/// Value of a parameter, in the units of Python: s, bit/s, bytes, packets.
#[derive(Clone, Debug, IntoPyObject, IntoPyObjectRef)]
pub enum Argument {
    Flag(bool),
    Count(u64),
    Number(f64),
}

/// Classes by name. A second registration of a name replaces the first, for notebook cells that run again.
static REGISTERED: Mutex<BTreeMap<String, Arc<Spec>>> = Mutex::new(BTreeMap::new());

fn registered() -> MutexGuard<'static, BTreeMap<String, Arc<Spec>>> {
    REGISTERED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Leaks a text: the catalogue keeps it for the life of the process. A program registers a few classes, a
/// notebook a few more.
pub fn leak(text: &str) -> &'static str {
    Box::leak(text.to_owned().into_boxed_str())
}

impl Spec {
    /// `parameters` are names with defaults as text.
    pub fn new(
        class: Py<PyType>,
        name: &str,
        summary: &str,
        scheduler: Option<String>,
        parameters: &[(String, String)],
    ) -> PyResult<Self> {
        let kind = match scheduler {
            None => Kind::Queue,
            Some(scheduler) if SCHEDULERS.contains(&&*scheduler) => Kind::Policy { scheduler },
            Some(other) => {
                let known = SCHEDULERS.join(", ");
                let message = format!("`{other}` is no scheduler for a policy; schedulers are {known}");
                return Err(PyValueError::new_err(message));
            }
        };
        let entry = Entry {
            name: leak(name),
            role: Role::System,
            summary: leak(summary),
            reference: "–",
            cost: "a call of Python for each packet that comes and for each that goes",
            params: params(parameters)?,
            traits: Traits::NONE,
        };
        Ok(Self { class, kind, entry: Box::leak(Box::new(entry)) })
    }

    /// Values of all parameters.
    pub fn arguments(&self, args: &EntryArgs<'_>) -> Vec<(&'static str, Argument)> {
        arguments(self.entry, args)
    }

    /// Default values of all parameters.
    pub fn defaults(&self) -> Vec<(&'static str, Argument)> {
        self.arguments(&EntryArgs::defaults(self.entry))
    }
}

/// The parameters of a class, from names with defaults as text.
pub fn params(parameters: &[(String, String)]) -> PyResult<&'static [Param]> {
    let param = |(name, default): &(String, String)| {
        let kind = kind_of(default).ok_or_else(|| {
            let message = format!(
                "the default of `{name}` is `{default}`; write a number, True or False, or a quantity such as \"50p\", \
                 \"64kB\", \"5ms\", \"10Mbit\" or \"2%\""
            );
            PyValueError::new_err(message)
        })?;
        Ok(Param::new(leak(name), "–", kind, leak(default), "the class", "See the class."))
    };
    let params: Vec<Param> = parameters.iter().map(param).collect::<PyResult<_>>()?;
    Ok(Box::leak(params.into_boxed_slice()))
}

/// The values of the parameters of a class.
pub fn arguments(entry: &'static Entry, args: &EntryArgs<'_>) -> Vec<(&'static str, Argument)> {
    let value = |param: &Param| {
        let name = param.name;
        let value = match param.kind {
            param::Kind::Packets => Argument::Count(args.packets(name).get()),
            param::Kind::Bytes => Argument::Count(args.bytes(name).get()),
            param::Kind::Count => Argument::Count(args.count(name)),
            param::Kind::Span => Argument::Number(args.span(name).as_secs_f64()),
            param::Kind::Rate => Argument::Number(args.rate(name).as_bit() as f64),
            param::Kind::Ratio => Argument::Number(args.ratio(name).get()),
            param::Kind::Switch => Argument::Flag(args.switch(name)),
            _ => Argument::Number(args.number(name)),
        };
        (name, value)
    };
    entry.params.iter().map(value).collect()
}

/// Type of a parameter, from its default.
fn kind_of(default: &str) -> Option<param::Kind> {
    if default == "true" || default == "false" {
        return Some(param::Kind::Switch);
    }
    if default.parse::<u64>().is_ok() {
        return Some(param::Kind::Count);
    }
    if default.parse::<f64>().is_ok_and(f64::is_finite) {
        return Some(param::Kind::Number);
    }
    let quantities = [
        (default.parse::<Packets>().is_ok(), param::Kind::Packets),
        (default.parse::<Bytes>().is_ok(), param::Kind::Bytes),
        (default.parse::<Span>().is_ok(), param::Kind::Span),
        (default.parse::<Rate>().is_ok(), param::Kind::Rate),
        (default.parse::<Ratio>().is_ok(), param::Kind::Ratio),
    ];
    quantities.into_iter().find_map(|(fits, kind)| fits.then_some(kind))
}

/// Adds the registered disciplines.
pub fn add_to(catalog: &mut Catalog) {
    for spec in registered().values() {
        // Registration has refused a class that cannot be added.
        let _ = add(catalog, spec);
    }
}

fn add(
    catalog: &mut Catalog,
    spec: &Arc<Spec>,
) -> Result<(), apportion::apportion_core::system::catalog::RegisterError> {
    let (of_args, of_link) = (Arc::clone(spec), Arc::clone(spec));
    catalog.register(
        spec.entry,
        move |args| Ok(of_args.arguments(args)),
        move |arguments, link| Host::new(&of_link, arguments, link),
    )
}

/// Registers a class as a discipline; a class with a scheduler is a policy.
#[pyfunction]
pub fn register(
    class: Py<PyType>,
    name: &str,
    summary: &str,
    scheduler: Option<String>,
    parameters: Vec<(String, String)>,
) -> PyResult<()> {
    let spec = Arc::new(Spec::new(class, name, summary, scheduler, &parameters)?);
    let refused = add(&mut Catalog::default(), &spec);
    refused.map_err(|error| PyValueError::new_err(error.to_string()))?;
    // Drop the replaced class without the lock: that may call Python.
    let replaced = registered().insert(name.to_owned(), spec);
    drop(replaced);
    Ok(())
}
