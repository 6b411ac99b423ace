//! Turns off offloads, by which a device or the kernel merges packets or leaves checksums unfinished.
//!
//! Source: netdevice(7), linux/ethtool.h, Documentation/networking/segmentation-offloads. *Segmentation*
//! (TSO, GSO, GRO, LRO) hands over up to 64 KB as one packet, which queues, loss and shares would count as
//! one, so it is turned off. Where TSO, GSO or GRO stays on, a port cuts the super-packets; packets that LRO
//! merged cannot be cut again. A *checksum* left to the hardware is wrong in the packet that a packet socket
//! reads. Checksum offload is turned off where the path cannot carry an unfinished checksum, at the cost of a
//! pass over each payload.
//!
//! GSO of UDP stays possible with TSO and GSO off, because programs request it by `UDP_SEGMENT`, a feature of
//! its own; a device that takes packets of one segment only (`IFLA_GSO_MAX_SEGS`) gets every kind of segments
//! one by one.
#![expect(unsafe_code, reason = "nix has no ethtool: SIOCETHTOOL has a pointer inside its argument")]

use std::os::fd::{AsFd, AsRawFd};

use netlink_packet_route::link::LinkAttribute;
use nix::errno::Errno;
use serde::{Deserialize, Serialize};

use super::{Netlink, NetlinkError, checked};

/// An offload: its name, the command that reads it, and the one that writes it (linux/ethtool.h).
type Offload = (&'static str, u32, u32);
const RX_CHECKSUM: Offload = ("receive checksum offload", 0x14, 0x15);
const TX_CHECKSUM: Offload = ("transmit checksum offload", 0x16, 0x17);
const TSO: Offload = ("TCP segmentation offload", 0x1e, 0x1f);
const GSO: Offload = ("generic segmentation offload", 0x23, 0x24);
const FLAGS: Offload = ("large receive offload", 0x25, 0x26);
const GRO: Offload = ("generic receive offload", 0x2b, 0x2c);
/// `ETH_FLAG_LRO` among the flags.
const LRO: u32 = 1 << 15;

/// Offloads of a device; true if on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "they are switches, each by itself")]
pub struct Offloads {
    /// The device cuts TCP's super-packets.
    pub tso: bool,
    /// The kernel cuts super-packets just before the device.
    pub gso: bool,
    /// The kernel merges segments behind the device.
    pub gro: bool,
    /// The device merges segments.
    pub lro: bool,
    /// The device computes checksums.
    pub tx_checksum: bool,
    /// The device verifies checksums.
    pub rx_checksum: bool,
}

/// `struct ethtool_value` of linux/ethtool.h.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

nix::ioctl_readwrite_bad!(siocethtool, libc::SIOCETHTOOL, libc::ifreq);

impl Netlink {
    /// Turns off the merging of received packets on the device called `name`: GRO and LRO. Returns the
    /// offloads that are on then. A [`Port`](crate::port::Port) cuts super-packets that still come, except
    /// those of LRO.
    ///
    /// # Errors
    /// [`NetlinkError::StaysOn`] for large receive offload, or the kernel's error.
    pub fn turn_off_merging(&mut self, name: &str) -> Result<Offloads, NetlinkError> {
        self.turn_off(name, GRO)?;
        let flags = self.ethtool(name, FLAGS.1, 0, FLAGS.0)?;
        if flags & LRO != 0 {
            self.ethtool(name, FLAGS.2, flags & !LRO, FLAGS.0)?;
        }
        match self.offloads(name)? {
            Offloads { lro: true, .. } => Err(stays_on(FLAGS, name)),
            after => Ok(after),
        }
    }

    /// Turns segmentation offloads off on the device called `name`: TSO, GSO, GRO and LRO, and UDP
    /// segmentation that programs request. Returns the offloads that are on then. A
    /// [`Port`](crate::port::Port) cuts the super-packets of an offload that the driver does not turn off.
    ///
    /// # Errors
    /// [`NetlinkError::StaysOn`] for large receive offload, or the kernel's error.
    pub fn turn_off_segmentation(&mut self, name: &str) -> Result<Offloads, NetlinkError> {
        for offload in [TSO, GSO] {
            self.turn_off(name, offload)?;
        }
        let index = self.index_of(name)?;
        self.set(index, LinkAttribute::GsoMaxSegs(1), format_args!("give `{name}` one segment at a time"))?;
        self.turn_off_merging(name)
    }

    /// Turns checksum offloads off on the device called `name`, so that each packet on it has a complete checksum.
    ///
    /// # Errors
    /// [`NetlinkError::StaysOn`] for an offload that the driver cannot turn off, or the kernel's error.
    pub fn turn_off_checksums(&mut self, name: &str) -> Result<(), NetlinkError> {
        for offload in [TX_CHECKSUM, RX_CHECKSUM] {
            if !self.turn_off(name, offload)? {
                return Err(stays_on(offload, name));
            }
        }
        Ok(())
    }

    /// The offloads of the device called `name`.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn offloads(&self, name: &str) -> Result<Offloads, NetlinkError> {
        let read = |offload: Offload| self.ethtool(name, offload.1, 0, offload.0);
        Ok(Offloads {
            tso: read(TSO)? != 0,
            gso: read(GSO)? != 0,
            gro: read(GRO)? != 0,
            lro: read(FLAGS)? & LRO != 0,
            tx_checksum: read(TX_CHECKSUM)? != 0,
            rx_checksum: read(RX_CHECKSUM)? != 0,
        })
    }

    /// Turns those segmentation offloads on that are on in `before`, and sets the maximum of segments of a
    /// super-packet of the device called `name`.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn restore(&mut self, name: &str, before: &Offloads, segments: u32) -> Result<(), NetlinkError> {
        for (offload, was_on) in [(TSO, before.tso), (GSO, before.gso), (GRO, before.gro)] {
            if was_on {
                self.ethtool(name, offload.2, 1, offload.0)?;
            }
        }
        if before.lro {
            let flags = self.ethtool(name, FLAGS.1, 0, FLAGS.0)?;
            self.ethtool(name, FLAGS.2, flags | LRO, FLAGS.0)?;
        }
        if segments > 0 {
            let index = self.index_of(name)?;
            let what = format_args!("give `{name}` {segments} segments at a time");
            self.set(index, LinkAttribute::GsoMaxSegs(segments), what)?;
        }
        Ok(())
    }

    /// Turns an offload off, and returns whether it is off. A device without the offload refuses the command,
    /// and so does one that cannot turn it off; only the value that is read back counts.
    fn turn_off(&self, name: &str, offload: Offload) -> Result<bool, NetlinkError> {
        let written = self.ethtool(name, offload.2, 0, offload.0);
        match (self.ethtool(name, offload.1, 0, offload.0)?, written) {
            (0, _) => Ok(true),
            (_, Err(NetlinkError::Refused { errno, .. })) if errno != Errno::EPERM => Ok(false),
            (_, written) => written.map(|_| false),
        }
    }

    /// Runs `command` on the device called `name`, and returns the value that the kernel wrote back.
    fn ethtool(&self, name: &str, command: u32, data: u32, what: &str) -> Result<u32, NetlinkError> {
        let mut value = Value { command, data };
        // SAFETY: all zeros is an `ifreq`: an empty name and a union of integers and null pointers.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(checked(name)?.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_data = (&raw mut value).cast();
        let fd = self.socket.as_fd().as_raw_fd();
        // SAFETY: `request` and the `value` that it points to are alive and exclusive until the call returns;
        // the commands above read and write one `ethtool_value` and nothing behind it. Any socket will do:
        // the kernel passes a device's ioctl to the socket's namespace.
        unsafe { siocethtool(fd, &raw mut request) }.map_err(|errno| NetlinkError::Refused {
            doing: format!("read or set {what} of `{name}`"),
            errno,
            message: String::new(),
        })?;
        Ok(value.data)
    }
}

fn stays_on(offload: Offload, device: &str) -> NetlinkError {
    NetlinkError::StaysOn { offload: offload.0, device: device.to_owned() }
}
