//! What a gateway needs of the network devices of a machine besides the frames.
//!
//! [`Devices`] is that; [`Netlink`] is this machine, and a test puts a simulated one in its place, whose devices come and go.

use crate::frame_io::Socket;
use crate::netlink::{Device, Netlink, NetlinkError, Offloads};
use crate::port::{Port, PortError, RingSize};

/// The devices of a namespace.
pub trait Devices {
    /// What a port of a device reads and writes by.
    type Socket: Socket;

    /// The device called `name`.
    ///
    /// # Errors
    /// The kernel's error; see [`NetlinkError::is_no_device`].
    fn device(&mut self, name: &str) -> Result<Device, NetlinkError>;

    /// The device with this index, which keeps it when it gets another name.
    ///
    /// # Errors
    /// As for [`Self::device`].
    fn device_at(&mut self, index: u32) -> Result<Device, NetlinkError>;

    /// Which offloads of the device called `name` are on.
    ///
    /// # Errors
    /// As for [`Self::device`].
    fn offloads(&mut self, name: &str) -> Result<Offloads, NetlinkError>;

    /// Turns off the offloads by which packets that come in are merged. Those that are on after that.
    ///
    /// # Errors
    /// As for [`Netlink::turn_off_merging`].
    fn turn_off_merging(&mut self, name: &str) -> Result<Offloads, NetlinkError>;

    /// Turns on again what was on in `before`, with super-packets of `segments` at most.
    ///
    /// # Errors
    /// As for [`Self::device`].
    fn restore(&mut self, name: &str, before: &Offloads, segments: u32) -> Result<(), NetlinkError>;

    /// Opens a socket on the device with this index, whose frames come in by memory of this size, shared with the kernel, where the
    /// system lets them.
    ///
    /// # Errors
    /// If the system refuses it.
    fn open_port(&mut self, index: u32, ring: RingSize) -> Result<Self::Socket, PortError>;
}

impl Devices for Netlink {
    type Socket = Port;

    fn device(&mut self, name: &str) -> Result<Device, NetlinkError> {
        self.device(name)
    }
    fn device_at(&mut self, index: u32) -> Result<Device, NetlinkError> {
        self.device_at(index)
    }
    fn offloads(&mut self, name: &str) -> Result<Offloads, NetlinkError> {
        Self::offloads(self, name)
    }
    fn turn_off_merging(&mut self, name: &str) -> Result<Offloads, NetlinkError> {
        self.turn_off_merging(name)
    }
    fn restore(&mut self, name: &str, before: &Offloads, segments: u32) -> Result<(), NetlinkError> {
        self.restore(name, before, segments)
    }
    fn open_port(&mut self, index: u32, ring: RingSize) -> Result<Port, PortError> {
        Port::open_with_ring(index, ring)
    }
}
