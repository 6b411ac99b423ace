//! Notices changes of devices: they come and go, and get other names, MTUs or offloads.
//!
//! Source: rtnetlink(7), group RTMGRP_LINK. The messages are not read: some are lost when many come at once,
//! so a program that is notified checks the devices in any case.

use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};

use apportion_core::units::Span;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket,
};

use super::NetlinkError;
use crate::clock::timespec;

/// Maximum of messages that are taken out at a time. Chosen: a flood of them must not keep the caller from
/// its own work.
const MOST: usize = 1_024;

/// A socket that receives a message for each change of a device of the namespace.
#[derive(Debug)]
pub struct DeviceMonitor(OwnedFd);

impl DeviceMonitor {
    /// Opens a monitor in the namespace of the calling thread. It needs no privilege.
    ///
    /// # Errors
    /// If the system refuses the socket.
    pub fn open() -> Result<Self, NetlinkError> {
        let failed = |errno| NetlinkError::Socket { doing: "watch for changes of devices".to_owned(), errno };
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let fd = socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkRoute)
            .map_err(failed)?;
        bind(fd.as_raw_fd(), &NetlinkAddr::new(0, libc::RTMGRP_LINK as u32)).map_err(failed)?;
        Ok(Self(fd))
    }

    /// Waits for a change, at most for `span`. Returns whether there was one, or may have been.
    ///
    /// # Errors
    /// If waiting fails.
    pub fn wait(&self, span: Span) -> Result<bool, Errno> {
        match ppoll(&mut [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)], Some(timespec(span)), None) {
            Ok(0) => return Ok(false),
            Ok(_) => (),
            Err(Errno::EINTR) => return Ok(true),
            Err(error) => return Err(error),
        }
        // Longer messages are cut, because none is read.
        let mut start = [0; 16];
        for _ in 0..MOST {
            match recv(self.0.as_raw_fd(), &mut start, MsgFlags::empty()) {
                Ok(_) => (),
                // ENOBUFS: messages were lost. Other errors show again in the next wait.
                Err(_) => break,
            }
        }
        Ok(true)
    }
}
