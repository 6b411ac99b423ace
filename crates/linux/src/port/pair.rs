//! A pair of devices, the first of which has a queue of the kernel: frames sent into it come out at the other
//! one.
//!
//! Source: packet(7), veth(4), socket(7). Each frame is sent by a call of its own, whose error shows at once
//! that the queue, or a program in front of it, dropped that frame (`ENOBUFS`). `SO_PRIORITY` names the class
//! of a frame. Frames count against the buffer of the socket until they have left the queue, so the buffer is
//! as large as the kernel allows; it takes no memory by itself.
//!
//! Neither end has an address, and the kernel sends no packets of its own: only frames sent here come out.
//!
//! Cost: one system call for each frame and way, and one where the class differs from that of the frame
//! before.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};

use apportion_core::units::{Bytes, Span};
use nix::errno::Errno;
use nix::sys::socket::sockopt::{Priority, RcvBufForce, SndBufForce};
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, recv, send, setsockopt, socket};

use super::socket::{bind, newly_missed};
use crate::namespace::{Namespace, NamespaceError, SysctlError, silence_ipv6};
use crate::netlink::{Netlink, NetlinkError, VethEnd};

/// Maximum backlog of the queue in bytes, as the kernel counts it with its overhead for each frame. Chosen:
/// some 100,000 full frames.
const SEND_BUFFER: usize = 256 << 20;
/// Maximum of bytes that wait behind it. Chosen: that of a [`Port`](super::Port).
const RECEIVE_BUFFER: usize = 16 << 20;
/// Maximum wait for the devices, which run some milliseconds after they were created. Chosen: for a loaded
/// machine.
const PATIENCE: Span = Span::from_secs(10);
/// Hardware address of both ends; frames are sent to other addresses. Locally administered.
const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// Why the pair cannot be created.
#[derive(Debug, thiserror::Error)]
#[error("cannot make the devices of the queue `{name}`: {cause}")]
pub struct PairError {
    name: String,
    cause: Cause,
}

#[derive(Debug, thiserror::Error)]
enum Cause {
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    #[error(transparent)]
    Sysctl(#[from] SysctlError),
    #[error("a socket failed with {0}")]
    Socket(io::Error),
    #[error(
        "{0}: CAP_NET_ADMIN is needed outside of user namespaces for a buffer as large as a queue; run it as root"
    )]
    Buffer(Errno),
}

/// The fate of a frame that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The frame is in the queue, or has left it.
    Taken,
    /// The queue, or a program in front of it, dropped the frame.
    Dropped,
}

/// The pair, with a socket at each end.
#[derive(Debug)]
pub struct QueuePair {
    entrance: OwnedFd,
    exit: OwnedFd,
    /// The class of the last frame.
    class: u32,
    /// The index of the device by which frames enter; its egress has the queue.
    pub device: u32,
}

impl QueuePair {
    /// Creates the devices `name` and `name`.out, which carry frames of at most `longest` bytes, in the
    /// calling thread's namespace.
    ///
    /// # Errors
    /// Without the rights of root, or if devices have these names.
    pub fn create(name: &str, longest: Bytes) -> Result<Self, PairError> {
        Self::make(name, longest).map_err(|cause| PairError { name: name.to_owned(), cause })
    }

    fn make(name: &str, mtu: Bytes) -> Result<Self, Cause> {
        let here = Namespace::current()?;
        let mut netlink = Netlink::open()?;
        let out = format!("{name}.out");
        let end = |name| VethEnd { name, mac: MAC, mtu, namespace: here.as_fd() };
        netlink.add_veth(&end(name), &end(&out))?;
        let names = [name, out.as_str()];
        let mut indices = [0; 2];
        for (name, index) in names.into_iter().zip(&mut indices) {
            silence_ipv6(name)?;
            *index = netlink.index_of(name)?;
            netlink.set_no_arp(*index)?;
            netlink.set_up(*index)?;
        }
        for name in names {
            netlink.wait_until_running(name, PATIENCE)?;
        }
        let [entrance, exit] = [(indices[0], 0), (indices[1], libc::ETH_P_IP as u16)].map(open);
        let (entrance, exit) = (entrance?, exit?);
        setsockopt(&entrance, SndBufForce, &SEND_BUFFER).map_err(Cause::Buffer)?;
        setsockopt(&exit, RcvBufForce, &RECEIVE_BUFFER).map_err(Cause::Buffer)?;
        Ok(Self { entrance, exit, class: 0, device: indices[0] })
    }

    /// Sends a frame with this `skb->priority`.
    ///
    /// # Errors
    /// Other errors than a drop, for example a full buffer of the socket.
    pub fn send(&mut self, frame: &[u8], class: u32) -> Result<Sent, Errno> {
        if class != self.class {
            setsockopt(&self.entrance, Priority, &class.cast_signed())?;
            self.class = class;
        }
        loop {
            match send(self.entrance.as_raw_fd(), frame, MsgFlags::MSG_DONTWAIT) {
                Ok(_) => return Ok(Sent::Taken),
                Err(Errno::ENOBUFS) => return Ok(Sent::Dropped),
                Err(Errno::EINTR) => (),
                Err(error) => return Err(error),
            }
        }
    }

    /// The next frame that has come out, in `buffer`, which cuts a longer one; none if there is none.
    ///
    /// # Errors
    /// If the socket fails.
    pub fn receive<'a>(&self, buffer: &'a mut [u8]) -> Result<Option<&'a [u8]>, Errno> {
        loop {
            match recv(self.exit.as_raw_fd(), buffer, MsgFlags::MSG_DONTWAIT) {
                Ok(length) => return Ok(buffer.get(..length)),
                Err(Errno::EAGAIN) => return Ok(None),
                Err(Errno::EINTR) => (),
                Err(error) => return Err(error),
            }
        }
    }

    /// The socket by which frames come out, to wait for them.
    #[must_use]
    pub fn exit(&self) -> BorrowedFd<'_> {
        self.exit.as_fd()
    }
}

/// A packet socket at a device, for frames of this protocol.
fn open((device, protocol): (u32, u16)) -> Result<OwnedFd, Cause> {
    let (kind, flags) = (SockType::Raw, SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK);
    let opened = socket(AddressFamily::Packet, kind, flags, None);
    let opened = opened.map_err(|errno| Cause::Socket(errno.into()))?;
    bind(&opened, device, protocol).map_err(Cause::Socket)?;
    Ok(opened)
}

/// Number of frames that the kernel lost at this socket since the last call because they were not read in
/// time.
#[must_use]
pub fn lost_at(exit: &OwnedFd) -> u64 {
    newly_missed(exit)
}
