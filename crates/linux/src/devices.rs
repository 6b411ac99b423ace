//! Network devices of a machine, as a gateway uses them apart from frames.
//!
//! [`Devices`] is the trait; [`Netlink`] implements it for this machine, and tests use a simulated machine,
//! whose devices come and go.

use crate::frame_io::Socket;
use crate::netlink::{Device, Netlink, NetlinkError, Offloads};
use crate::port::{Port, PortError, RingSize};

/// The devices of a namespace.
pub trait Devices {
    /// The socket of a port.
    type Socket: Socket;

    /// The device called `name`.
    ///
    /// # Errors
    /// The kernel's error; see [`NetlinkError::is_no_device`].
    fn device(&mut self, name: &str) -> Result<Device, NetlinkError>;

    /// The device with this index, which stays the same when the device is renamed.
    ///
    /// # Errors
    /// As for [`Self::device`].
    fn device_at(&mut self, index: u32) -> Result<Device, NetlinkError>;

    /// Reads which offloads of the device called `name` are on.
    ///
    /// # Errors
    /// As for [`Self::device`].
    fn offloads(&mut self, name: &str) -> Result<Offloads, NetlinkError>;

    /// Turns off the offloads that merge received packets. Returns those that are still on.
    ///
    /// # Errors
    /// As for [`Netlink::turn_off_merging`].
    fn turn_off_merging(&mut self, name: &str) -> Result<Offloads, NetlinkError>;

    /// Turns the offloads on that are on in `before`, with super-packets of at most `segments`.
    ///
    /// # Errors
    /// As for [`Self::device`].
    fn restore(&mut self, name: &str, before: &Offloads, segments: u32) -> Result<(), NetlinkError>;

    /// Opens a socket on the device with this index. Frames enter by memory of this size that is shared with
    /// the kernel, if the system allows it.
    ///
    /// # Errors
    /// If the system refuses.
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
