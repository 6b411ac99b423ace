//! Packets as objects, and the actions of disciplines on them.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::{iter, mem};

use apportion::apportion_core::label::Label;
use apportion::apportion_core::packet::{Ecn, LabelKind, Protocol, SimplePacket};
use apportion::apportion_core::{DropReason, Sink};
use apportion::units::Time;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Actions on packets in the current call.
#[pyclass(frozen)]
#[derive(Default)]
pub struct Mailbox(Mutex<Vec<Event>>);

enum Event {
    Dropped(SimplePacket, DropReason),
    Marked(SimplePacket),
}

impl Mailbox {
    fn put(&self, event: Event) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }

    /// Passes every action on to `sink`, and calls `gone` with each dropped packet.
    pub fn empty(&self, now: Time, sink: &mut dyn Sink<SimplePacket>, mut gone: impl FnMut(&SimplePacket)) {
        // Not locked meanwhile: a callback of the run may see a drop, and act on another packet.
        let next = || mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for event in iter::repeat_with(next).take_while(|events| !events.is_empty()).flatten() {
            match event {
                Event::Dropped(packet, reason) => {
                    gone(&packet);
                    sink.dropped(now, packet, reason);
                }
                Event::Marked(packet) => sink.marked(now, &packet),
            }
        }
    }
}

/// A packet in a discipline. It leaves when `dequeue` returns it, or by `drop`.
#[pyclass(frozen, module = "apportion._native")]
pub struct Packet {
    seen: SimplePacket,
    arrived: Time,
    is_marked: AtomicBool,
    is_gone: AtomicBool,
    /// Codes of the packet's labels by kind, or [`NO_LABEL`].
    labels: [AtomicU32; LabelKind::ALL.len()],
    mailbox: Py<Mailbox>,
}

/// Code for no label.
const NO_LABEL: u32 = u32::MAX;

/// Python's name of a kind of label.
const fn name_of(kind: LabelKind) -> &'static str {
    match kind {
        LabelKind::Tickets => "tickets",
        LabelKind::AckTickets => "ack_tickets",
        LabelKind::Rate => "rate",
        LabelKind::Value => "value",
    }
}

/// The kind of label with this name.
fn kind_of(name: &str) -> PyResult<LabelKind> {
    let known = LabelKind::ALL.into_iter().find(|kind| name_of(*kind) == name);
    known.ok_or_else(|| {
        let names = LabelKind::ALL.map(name_of).join(", ");
        PyValueError::new_err(format!("`{name}` is no kind of label; kinds are {names}"))
    })
}

impl Packet {
    pub fn new(seen: SimplePacket, arrived: Time, mailbox: Py<Mailbox>) -> Self {
        let is_marked = AtomicBool::new(seen.ecn == Ecn::Ce);
        let labels = seen.labels.map(|label| AtomicU32::new(label.map_or(NO_LABEL, Label::code)));
        Self { seen, arrived, is_marked, is_gone: AtomicBool::new(false), labels, mailbox }
    }

    /// Current state of the packet.
    pub fn seen(&self) -> SimplePacket {
        let ecn = if self.is_marked.load(Ordering::Relaxed) { Ecn::Ce } else { self.seen.ecn };
        SimplePacket { ecn, labels: LabelKind::ALL.map(|kind| self.label_of(kind)), ..self.seen }
    }

    fn label_of(&self, kind: LabelKind) -> Option<Label> {
        let code = self.labels[kind as usize].load(Ordering::Relaxed);
        (code != NO_LABEL).then(|| Label::from_code(code))
    }

    /// Whether the discipline has given the packet up.
    pub fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Relaxed)
    }

    /// Takes the packet from the discipline with this mailbox.
    ///
    /// # Errors
    /// The packet was given up before, or belongs to another discipline.
    pub fn take(&self, mailbox: &Py<Mailbox>) -> PyResult<SimplePacket> {
        if !self.mailbox.is(mailbox) {
            return Err(PyValueError::new_err(format!("{} is a packet of another queue", self.__repr__())));
        }
        self.give_up()?;
        Ok(self.seen())
    }

    /// Drops a packet that was not admitted.
    ///
    /// # Errors
    /// The packet has left already.
    pub fn refuse(&self) -> PyResult<()> {
        self.drop(DropReason::Overflow.name())
    }

    fn give_up(&self) -> PyResult<()> {
        if self.is_gone.swap(true, Ordering::Relaxed) {
            let message = format!("{} has left already: it was returned or dropped before", self.__repr__());
            return Err(PyValueError::new_err(message));
        }
        Ok(())
    }
}

#[pymethods]
impl Packet {
    /// Flow of the packet: a small number.
    #[getter]
    const fn flow(&self) -> u32 {
        self.seen.flow.0
    }

    /// Size on the wire in bytes.
    #[getter]
    const fn size(&self) -> u64 {
        self.seen.size.get()
    }

    /// Arrival time in s.
    #[getter]
    fn arrived(&self) -> f64 {
        self.arrived.as_secs_f64()
    }

    /// Protocol in the header: `tcp`, `udp` or `control`.
    #[getter]
    const fn protocol(&self) -> &'static str {
        match self.seen.protocol {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
            Protocol::Control => "control",
        }
    }

    /// Whether the packet is ECN-capable.
    #[getter]
    const fn ecn(&self) -> bool {
        self.seen.ecn.is_capable()
    }

    /// Label of a kind, `rate`, `tickets` or `ack_tickets`; None without one.
    fn label(&self, kind: &str) -> PyResult<Option<f64>> {
        Ok(self.label_of(kind_of(kind)?).map(Label::value))
    }

    /// Writes the label of a kind, rounded to the header's 17 bits, in place of any other; None removes it.
    fn set_label(&self, kind: &str, value: Option<f64>) -> PyResult<()> {
        let kind = kind_of(kind)?;
        if let Some(value) = value.filter(|value| !value.is_finite() || *value < 0.0) {
            let message = format!("{value} is no label; write a finite number from 0, or None for no label");
            return Err(PyValueError::new_err(message));
        }
        let code = value.map_or(NO_LABEL, |value| Label::new(value).code());
        // A header has room for one label.
        for other in LabelKind::ALL.into_iter().filter(|_| value.is_some()) {
            self.labels[other as usize].store(NO_LABEL, Ordering::Relaxed);
        }
        self.labels[kind as usize].store(code, Ordering::Relaxed);
        Ok(())
    }

    /// Marks the packet "congestion experienced"; returns False, without effect, if it is not ECN-capable.
    fn mark(&self) -> bool {
        if !self.seen.ecn.is_capable() || self.is_gone() {
            return false;
        }
        if !self.is_marked.swap(true, Ordering::Relaxed) {
            self.mailbox.get().put(Event::Marked(self.seen()));
        }
        true
    }

    /// Drops the packet. Results count it under the reason: `early`, `forced`, `overflow`, `policy` or
    /// `push_out`.
    #[pyo3(signature = (reason = "overflow"))]
    fn drop(&self, reason: &str) -> PyResult<()> {
        let Some(reason) = DropReason::ALL.into_iter().find(|known| known.name() == reason) else {
            let names = DropReason::ALL.map(DropReason::name).join(", ");
            return Err(PyValueError::new_err(format!("`{reason}` is no reason; reasons are {names}")));
        };
        self.give_up()?;
        self.mailbox.get().put(Event::Dropped(self.seen(), reason));
        Ok(())
    }

    fn __repr__(&self) -> String {
        let SimplePacket { id, flow, size, .. } = &self.seen;
        format!("<apportion.Packet {id} of flow {}, {size}>", flow.0)
    }
}
