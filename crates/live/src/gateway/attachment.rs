//! Keeps the ports of a gateway attached to the interfaces of their names: the third thread.
//!
//! An interface that is deleted takes its packet socket with it, and a new one of that name has another
//! index. The kernel notifies this thread of changes, and the thread also checks once a second. It detaches
//! the port of an interface that has gone, prepares the one that came back, opens a packet socket on it, and
//! hands the socket to the thread that moves packets. It alone therefore keeps CAP_NET_RAW and CAP_NET_ADMIN;
//! it reads no input from other hosts or users.
//!
//! An interface that was only renamed stays attached: the packet socket is bound to the index.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use apportion_core::units::{Bytes, Span};
use apportion_linux::devices::Devices;
use apportion_linux::files::{Disk, Files};
use apportion_linux::frame_io::Socket as _;
use apportion_linux::netlink::{DeviceMonitor, Netlink};
use apportion_linux::port::{PortError, RingSize};

use super::control::{Order, Shared};
use super::interface_lock::{InterfaceLock, LockError};
use super::interfaces::{Interface, InterfaceError};
use super::longest_frame;
use super::offloads::{PrepareError, Prepared};

/// Interval of checks of interfaces without a notification. Chosen: the longest time that a lost notification
/// may cost.
pub(crate) const PERIOD: Span = Span::from_secs(1);

/// An attached interface.
#[derive(Debug)]
struct Attached {
    index: u32,
    mtu: Bytes,
    /// Names of the offloads that stay on.
    stay_on: Vec<&'static str>,
    /// Whether they stay on because the state file cannot be written, which is tried again at each check;
    /// otherwise the driver refuses to turn them off.
    is_pending: bool,
    is_renamed: bool,
    /// Held while the interface is attached.
    _interface_lock: InterfaceLock,
}

/// Why an interface cannot be attached.
#[derive(Debug, thiserror::Error)]
enum AttachError {
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Offloads(#[from] PrepareError),
    #[error(transparent)]
    Port(#[from] PortError),
}

/// The thread that keeps ports attached.
#[derive(Debug)]
pub(crate) struct Attachment<D: Devices = Netlink, F = Disk> {
    devices: D,
    names: [String; 2],
    attached: [Option<Attached>; 2],
    /// Why an interface that exists cannot be attached, so that the log says it once.
    obstacles: [Option<String>; 2],
    locks: PathBuf,
    prepared: Arc<Prepared<F>>,
    shared: Arc<Shared>,
    orders: Sender<Order<D::Socket>>,
}

impl<D: Devices, F: Files> Attachment<D, F> {
    /// Starts with no interface attached; orders go to `orders`.
    pub fn new(
        devices: D,
        locks: PathBuf,
        prepared: Arc<Prepared<F>>,
        shared: Arc<Shared>,
        orders: Sender<Order<D::Socket>>,
    ) -> Self {
        Self {
            devices,
            names: Default::default(),
            attached: [None, None],
            obstacles: [None, None],
            locks,
            prepared,
            shared,
            orders,
        }
    }

    /// Prepares and opens both interfaces, which are claimed.
    ///
    /// # Errors
    /// All problems of both interfaces, one each.
    pub fn attach_both(
        &mut self,
        interfaces: &[Interface; 2],
        interface_locks: [InterfaceLock; 2],
    ) -> Result<[D::Socket; 2], Vec<String>> {
        self.names = interfaces.each_ref().map(|interface| interface.name.clone());
        let [first, second] = interface_locks;
        match [(0, first), (1, second)].map(|(port, lock)| self.open(&interfaces[port], lock)) {
            [Ok((inside, first)), Ok((outside, second))] => {
                self.attached = [Some(inside), Some(outside)];
                for (port, interface) in interfaces.iter().enumerate() {
                    self.note_state(port, interface.is_running);
                }
                Ok([first, second])
            }
            results => {
                Err(results.into_iter().filter_map(Result::err).map(|error| error.to_string()).collect())
            }
        }
    }

    /// Keeps the ports attached, for ever, and checks whenever `monitor` notices a change. The monitor is
    /// opened before the ports, so that no change is missed.
    ///
    /// # Errors
    /// If the kernel's notifications cannot be polled.
    pub fn run(&mut self, monitor: &DeviceMonitor) -> Result<(), nix::errno::Errno> {
        loop {
            monitor.wait(PERIOD)?;
            self.look_at_both();
        }
    }

    /// Checks the interfaces, and attaches or detaches their ports.
    pub fn look_at_both(&mut self) {
        (0..2).for_each(|port| self.look(port));
    }

    fn look(&mut self, port: usize) {
        let device = match self.devices.device(&self.names[port]) {
            Ok(device) => Some(device),
            Err(error) if error.is_no_device() => None,
            // The error says nothing about the interface; the next check will.
            Err(error) => return tracing::debug!(%error, "cannot look at an interface"),
        };
        let index = self.attached[port].as_ref().map(|attached| attached.index);
        match (device, index) {
            (Some(device), Some(index)) if device.index == index => self.look_at_attached(port),
            (Some(_), _) => self.attach(port),
            (None, Some(index)) => self.look_for_renamed(port, index),
            (None, None) => (),
        }
    }

    /// Checks an interface that is still attached, whose settings may have changed.
    fn look_at_attached(&mut self, port: usize) {
        let name = &self.names[port];
        let Ok(found) = Interface::look(&mut self.devices, name) else { return };
        self.note_state(port, found.is_running);
        let Some(attached) = &mut self.attached[port] else { return };
        attached.is_renamed = false;
        if found.mtu != attached.mtu {
            let [before, mtu] = [attached.mtu, found.mtu].map(Bytes::get);
            let other = self.devices.device(&self.names[1 - port]).map_or(found.mtu, |other| other.mtu);
            if found.mtu == other {
                tracing::info!(interface = name, before, mtu, "the MTU changed; both are the same");
            } else {
                tracing::warn!(
                    interface = name,
                    before,
                    mtu,
                    other = other.get(),
                    "the MTU changed; packets that are longer than that of the other interface are dropped without ICMP"
                );
            }
            attached.mtu = found.mtu;
            self.shared.events.note(port, |events| events.mtu += 1);
        }
        let on: Vec<_> =
            found.to_turn_off().into_iter().filter(|it| !attached.stay_on.contains(it)).collect();
        if !on.is_empty() && self.prepared.is_over() {
            // The gateway itself turned them on, because it ends.
            return;
        }
        if !on.is_empty() {
            tracing::warn!(
                interface = name,
                on = on.join(", "),
                "offloads were turned on; they are turned off again"
            );
            self.shared.events.note(port, |events| events.offloads += 1);
        }
        if !on.is_empty() || attached.is_pending {
            match self.prepared.turn_off(&mut self.devices, &found) {
                Ok(stay_on) => (attached.stay_on, attached.is_pending) = (stay_on, false),
                Err(error) if attached.is_pending => {
                    tracing::debug!(interface = name, %error, "offloads still stay on");
                }
                Err(error) => {
                    tracing::warn!(interface = name, %error, "offloads stay on");
                    (attached.stay_on, attached.is_pending) = (found.to_turn_off(), true);
                }
            }
        }
    }

    /// Handles an interface whose name is gone: it was deleted or renamed.
    fn look_for_renamed(&mut self, port: usize, index: u32) {
        let name = &self.names[port];
        match self.devices.device_at(index) {
            Ok(device) => {
                self.note_state(port, device.is_running);
                let Some(attached) = &mut self.attached[port] else { return };
                if !std::mem::replace(&mut attached.is_renamed, true) {
                    tracing::warn!(
                        interface = name,
                        index,
                        "the interface was renamed; it is used as long as this gateway runs, but the next start will not find it"
                    );
                    self.shared.events.note(port, |events| events.renamed += 1);
                }
            }
            Err(error) if error.is_no_device() => self.detach(port),
            Err(error) => tracing::debug!(%error, "cannot look at an interface"),
        }
    }

    fn detach(&mut self, port: usize) {
        if self.attached[port].take().is_none() {
            return;
        }
        tracing::warn!(
            interface = self.names[port],
            "the interface has gone; frames to it are dropped until it is back"
        );
        self.shared.events.note(port, |events| {
            (events.is_gone, events.is_down) = (true, false);
            events.gone += 1;
        });
        self.send(Order::Attach(port as u32, None));
    }

    /// Attaches a new interface of the port's name.
    fn attach(&mut self, port: usize) {
        // The interface was deleted and created again between two checks.
        self.detach(port);
        match self.reopen(port) {
            Ok((attached, socket)) => {
                self.attached[port] = Some(attached);
                self.obstacles[port] = None;
                tracing::info!(interface = self.names[port], "the interface is back; frames pass again");
                self.shared.events.note(port, |events| {
                    events.is_gone = false;
                    events.back += 1;
                });
                self.send(Order::Attach(port as u32, Some(socket)));
            }
            Err(error) => {
                let error = error.to_string();
                if self.obstacles[port].as_ref() != Some(&error) {
                    tracing::error!(
                        interface = self.names[port],
                        error,
                        "the interface is back, but cannot be used"
                    );
                    self.obstacles[port] = Some(error);
                }
            }
        }
    }

    fn reopen(&mut self, port: usize) -> Result<(Attached, D::Socket), AttachError> {
        let found = Interface::look(&mut self.devices, &self.names[port])?;
        let lock = InterfaceLock::take(&self.locks, &found)?;
        let opened = self.open(&found, lock)?;
        self.note_state(port, found.is_running);
        Ok(opened)
    }

    /// Notes whether the interface is up and has a carrier, for reports of whether frames pass.
    fn note_state(&self, port: usize, is_running: bool) {
        self.shared.events.note(port, |events| events.is_down = !is_running);
    }

    fn open(&mut self, found: &Interface, lock: InterfaceLock) -> Result<(Attached, D::Socket), AttachError> {
        let turned_off = self.prepared.turn_off(&mut self.devices, found);
        let (stay_on, is_pending) = match turned_off {
            Ok(stay_on) => (stay_on, false),
            // A full disk must not cost the link, so super-packets are cut.
            Err(error @ PrepareError::State { .. }) => {
                tracing::warn!(interface = found.name, %error, "offloads stay on");
                (found.to_turn_off(), true)
            }
            Err(error @ PrepareError::Netlink(_)) => return Err(error.into()),
        };
        let ring = RingSize::of(longest_frame(found.mtu));
        let socket = self.devices.open_port(found.index, ring)?;
        if !socket.has_ring() {
            tracing::info!(
                interface = found.name,
                "the system gives no memory for frames that come in, so they are read by system calls"
            );
        }
        let Interface { index, mtu, .. } = *found;
        Ok((Attached { index, mtu, stay_on, is_pending, is_renamed: false, _interface_lock: lock }, socket))
    }

    fn send(&self, order: Order<D::Socket>) {
        // Without the thread that moves packets the process ends.
        if self.orders.send(order).is_ok() {
            let _ = self.shared.wake.write(1);
        }
    }
}
