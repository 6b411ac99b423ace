//! The helper: a process that stays in the host's network namespace, opens sockets there and hands them over.
//!
//! Source: unix(7) (`SOCK_SEQPACKET`, `SCM_RIGHTS`), fork(2), `PR_SET_PDEATHSIG` of prctl(2). It is forked
//! before the caller enters its user namespace and starts threads, so it has exactly the caller's rights. It
//! handles addresses only and looks no names up. It starts connections without waiting for them, so that no
//! request waits for the network. It ends when its socket closes, and is killed when the thread that forked
//! it ends.
//!
//! A request has 24 bytes; an answer is an error number and one descriptor. Both ends are one program, so
//! there are no versions. There is one request at a time. Cost: four system calls here, two there, two
//! switches between processes; 76 us measured on two busy cores.
#![expect(unsafe_code, reason = "fork(2), _exit(2), close_range(2), and descriptors that come by SCM_RIGHTS")]

use std::fs::File;
use std::io::{IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};

use nix::errno::Errno;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::socket::sockopt::ReceiveTimeout;
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, Shutdown, SockFlag, SockType,
    SockaddrStorage, connect, recvmsg, sendmsg, setsockopt, shutdown, socket, socketpair,
};
use nix::sys::time::TimeVal;
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, dup2_stderr, dup2_stdin, dup2_stdout, fork, getppid, setsid};

const TCP: u8 = libc::IPPROTO_TCP as u8;
const UDP: u8 = libc::IPPROTO_UDP as u8;

/// The transport protocol of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Transport {
    /// Streams.
    Tcp,
    /// Datagrams.
    Udp,
}

/// Bytes of a request: the protocol's number, a zero, the port, the scope of a link-local address, and the
/// address, as an IPv6 one. Big-endian.
const REQUEST: usize = 24;
/// Time to wait for an answer, in seconds. Chosen: only a helper that was stopped takes longer.
const LIMIT: i64 = 2;

/// Why there is no helper process.
#[derive(Debug, thiserror::Error)]
pub enum HelperError {
    /// The pair of sockets to it cannot be created.
    #[error("cannot make a socket pair for the helper process: {0}")]
    Sockets(Errno),
    /// The process cannot be forked.
    #[error("cannot fork the helper process: {0}")]
    Fork(Errno),
}

/// The helper process, as its parent sees it. Dropping it ends the process.
#[derive(Debug)]
pub struct Helper {
    socket: OwnedFd,
    process: Pid,
}

impl Helper {
    /// Forks the helper, which stays in the calling thread's network namespace. Call it before a namespace is
    /// entered and before there is a second thread. The helper is killed when the calling *thread* ends.
    ///
    /// # Errors
    /// If there are no descriptors or processes left.
    pub fn fork() -> Result<Self, HelperError> {
        let flags = SockFlag::SOCK_CLOEXEC;
        let (ours, theirs) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags)
            .map_err(HelperError::Sockets)?;
        setsockopt(&ours, ReceiveTimeout, &TimeVal::new(LIMIT, 0)).map_err(HelperError::Sockets)?;
        let parent = Pid::this();
        // SAFETY: in a process with one thread, as documented, no other thread holds a lock. With more, the
        // child takes no lock except the allocator's, which the C library makes usable in the child.
        match unsafe { fork() }.map_err(HelperError::Fork)? {
            ForkResult::Parent { child } => Ok(Self { socket: ours, process: child }),
            ForkResult::Child => {
                // No destructor of the parent may run here, and none of its buffered output be printed.
                let _ = catch_unwind(AssertUnwindSafe(|| serve(&theirs, parent)));
                // SAFETY: the call ends the process.
                unsafe { libc::_exit(0) }
            }
        }
    }

    /// The number of the process.
    #[must_use]
    pub const fn id(&self) -> Pid {
        self.process
    }

    /// A non-blocking socket in the host's namespace: for TCP with a connection to `to` in progress, for UDP
    /// connected to `to`.
    ///
    /// # Errors
    /// The system's error; `EPIPE` if the helper has ended, `EAGAIN` if it does not answer. It gets no more
    /// requests then: the next answer would be the late one.
    pub fn open(&self, transport: Transport, to: SocketAddr) -> Result<OwnedFd, Errno> {
        let (answer, descriptor) = self.exchange(&encode(transport, to)).inspect_err(|_| {
            // Further requests fail with EPIPE, and the helper sees the end.
            let _ = shutdown(self.socket.as_raw_fd(), Shutdown::Both);
        })?;
        match (descriptor, answer.map(i32::from_be_bytes)) {
            (Some(descriptor), Some(0)) => Ok(descriptor),
            (None, Some(errno)) if errno != 0 => Err(Errno::from_raw(errno)),
            _ => Err(Errno::EPIPE),
        }
    }

    /// Sends a request and waits for its answer: an error number, none if the answer is incomplete, and the
    /// descriptor that came with it.
    fn exchange(&self, request: &[u8]) -> Result<(Option<[u8; 4]>, Option<OwnedFd>), Errno> {
        let socket = self.socket.as_raw_fd();
        sendmsg::<()>(socket, &[IoSlice::new(request)], &[], MsgFlags::MSG_NOSIGNAL, None)?;
        let (mut answer, mut control) = ([0; 4], nix::cmsg_space!(RawFd));
        let mut vector = [IoSliceMut::new(&mut answer)];
        let flags = MsgFlags::MSG_CMSG_CLOEXEC;
        let message = recvmsg::<()>(socket, &mut vector, Some(&mut control), flags)?;
        let length = message.bytes;
        let descriptor = message.cmsgs()?.find_map(|message| match message {
            ControlMessageOwned::ScmRights(descriptors) => descriptors.first().copied(),
            _ => None,
        });
        // SAFETY: the kernel has just created this descriptor, and nothing else owns it.
        let descriptor = descriptor.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
        Ok(((length == answer.len()).then_some(answer), descriptor))
    }

    /// Whether the host has a route to the Internet over IPv6. If not, the command must have none either: its
    /// connections would be accepted, and reset, instead of being tried over IPv4. No packet is sent.
    #[must_use]
    pub fn has_ipv6(&self) -> bool {
        // An address for documentation (RFC 3849), which only a default route covers.
        let address = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
        self.open(Transport::Udp, SocketAddr::new(address.into(), 9)).is_ok()
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // The helper has no state to save. No other process reaps it.
        let _ = kill(self.process, Signal::SIGKILL);
        let _ = waitpid(self.process, None);
    }
}

fn encode(transport: Transport, to: SocketAddr) -> [u8; REQUEST] {
    let mut request = [0; REQUEST];
    request[0] = match transport {
        Transport::Tcp => TCP,
        Transport::Udp => UDP,
    };
    request[2..4].copy_from_slice(&to.port().to_be_bytes());
    let (address, scope) = match to {
        SocketAddr::V4(to) => (to.ip().to_ipv6_mapped(), 0),
        SocketAddr::V6(to) => (*to.ip(), to.scope_id()),
    };
    request[4..8].copy_from_slice(&scope.to_be_bytes());
    request[8..].copy_from_slice(&address.octets());
    request
}

fn decode(request: &[u8]) -> Option<(Transport, SocketAddr)> {
    let request: &[u8; REQUEST] = request.try_into().ok()?;
    let transport = match (request[0], request[1]) {
        (TCP, 0) => Transport::Tcp,
        (UDP, 0) => Transport::Udp,
        _ => return None,
    };
    let port = u16::from_be_bytes(*request[2..].first_chunk()?);
    let scope = u32::from_be_bytes(*request[4..].first_chunk()?);
    let address = Ipv6Addr::from(*request[8..].first_chunk::<16>()?);
    match address.to_canonical() {
        IpAddr::V4(_) if scope != 0 => None,
        IpAddr::V4(address) => Some((transport, (address, port).into())),
        IpAddr::V6(address) => Some((transport, SocketAddrV6::new(address, port, 0, scope).into())),
    }
}

/// Serves requests until the end.
fn serve(socket: &OwnedFd, parent: Pid) {
    // Keys and hang-ups of a terminal are the parent's business. The call fails only for a process group
    // leader, which a new process is not.
    let _ = setsid();
    let _ = SigSet::empty().thread_set_mask();
    let _ = set_pdeathsig(Signal::SIGKILL);
    // A parent that died before the call above sends no signal any more.
    if getppid() != parent || close_all_but(socket).is_err() {
        return;
    }
    let mut request = [0; REQUEST];
    loop {
        let mut vector = [IoSliceMut::new(&mut request)];
        let (length, flags) = match recvmsg::<()>(socket.as_raw_fd(), &mut vector, None, MsgFlags::empty()) {
            Ok(message) => (message.bytes, message.flags),
            Err(Errno::EINTR) => continue,
            Err(_) => return,
        };
        // The other end was closed. An empty message would look the same, but none is sent.
        if length == 0 {
            return;
        }
        let is_whole = !flags.contains(MsgFlags::MSG_TRUNC);
        let asked = if is_whole { decode(&request[..length]) } else { None };
        let opened = asked.ok_or(Errno::EINVAL).and_then(|(transport, to)| open_here(transport, to));
        if answer(socket, opened.as_ref()).is_err() {
            return;
        }
    }
}

/// Closes the parent's files, which would keep pipes and namespaces open. Descriptors 0 to 2 become `/dev/null`,
/// so that no socket is used as the standard error.
fn close_all_but(socket: &OwnedFd) -> Result<(), Errno> {
    let null = File::options()
        .read(true)
        .write(true)
        .open("/dev/null")
        .map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or_default()))?;
    dup2_stdin(&null)?;
    dup2_stdout(&null)?;
    dup2_stderr(&null)?;
    // Before the range is closed; otherwise its owner would close it a second time.
    drop(null);
    let keep = socket.as_raw_fd().cast_unsigned();
    for (first, last) in [(3, keep.saturating_sub(1)), (keep + 1, u32::MAX)] {
        if first <= last {
            // SAFETY: takes integers. The owners of these descriptors are copies of the parent's, which this
            // process neither uses nor drops. Before Linux 5.9 they stay open, and the helper still ends.
            unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
        }
    }
    Ok(())
}

/// A socket in the calling thread's namespace.
fn open_here(transport: Transport, to: SocketAddr) -> Result<OwnedFd, Errno> {
    let family = if to.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let kind = match transport {
        Transport::Tcp => SockType::Stream,
        Transport::Udp => SockType::Datagram,
    };
    let socket = socket(family, kind, SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC, None)?;
    match connect(socket.as_raw_fd(), &SockaddrStorage::from(to)) {
        Ok(()) | Err(Errno::EINPROGRESS) => Ok(socket),
        Err(errno) => Err(errno),
    }
}

fn answer(socket: &OwnedFd, opened: Result<&OwnedFd, &Errno>) -> Result<(), Errno> {
    let errno = opened.err().map_or(0, |&errno| errno as i32).to_be_bytes();
    let descriptor = opened.ok().map(|socket| [socket.as_fd().as_raw_fd()]);
    let rights = descriptor.as_ref().map(|descriptor| ControlMessage::ScmRights(descriptor));
    let flags = MsgFlags::MSG_NOSIGNAL;
    sendmsg::<()>(socket.as_raw_fd(), &[IoSlice::new(&errno)], rights.as_slice(), flags, None).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_as_it_was_written() {
        let link_local = SocketAddrV6::new("fe80::1".parse().unwrap(), 53, 0, 7).into();
        for to in ["192.0.2.7:80".parse().unwrap(), "[2001:db8::7]:443".parse().unwrap(), link_local] {
            for transport in [Transport::Tcp, Transport::Udp] {
                assert_eq!(decode(&encode(transport, to)), Some((transport, to)));
            }
        }
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let good = encode(Transport::Tcp, "192.0.2.7:80".parse().unwrap());
        // The protocol, the zero, and a scope on an address of IPv4.
        for at in [0, 1, 7] {
            let mut bad = good;
            bad[at] ^= 0xff;
            assert_eq!(decode(&bad), None, "byte {at}");
        }
        assert_eq!(decode(&good[..23]), None);
        assert_eq!(decode(&[]), None);
    }

    #[test]
    fn a_malformed_request_is_answered_and_the_next_one_served() {
        let helper = Helper::fork().unwrap();
        let send = |bytes: &[u8]| {
            let socket = helper.socket.as_raw_fd();
            sendmsg::<()>(socket, &[IoSlice::new(bytes)], &[], MsgFlags::MSG_NOSIGNAL, None).unwrap();
            let mut answer = [0; 4];
            let mut vector = [IoSliceMut::new(&mut answer)];
            recvmsg::<()>(socket, &mut vector, None, MsgFlags::empty()).unwrap();
            Errno::from_raw(i32::from_be_bytes(answer))
        };
        let good = encode(Transport::Udp, "127.0.0.1:9".parse().unwrap());
        // Too short, too long, and with an unknown protocol.
        assert_eq!(send(&[UDP]), Errno::EINVAL);
        assert_eq!(send(&[good, good].concat()), Errno::EINVAL);
        assert_eq!(send(&[0xff; REQUEST]), Errno::EINVAL);
        // Connecting a datagram socket sends nothing.
        helper.open(Transport::Udp, "127.0.0.1:9".parse().unwrap()).unwrap();
    }

    #[test]
    fn a_helper_that_was_late_is_not_asked_again() {
        let helper = Helper::fork().unwrap();
        let open = |port| helper.open(Transport::Udp, SocketAddr::new([127, 0, 0, 1].into(), port));
        open(9).unwrap();
        setsockopt(&helper.socket, ReceiveTimeout, &TimeVal::new(0, 50_000)).unwrap();
        kill(helper.process, Signal::SIGSTOP).unwrap();
        assert_eq!(open(10).unwrap_err(), Errno::EAGAIN);
        kill(helper.process, Signal::SIGCONT).unwrap();
        // This is not the socket to port 10.
        assert_eq!(open(11).unwrap_err(), Errno::EPIPE);
    }
}
