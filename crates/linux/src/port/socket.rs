//! Options and properties of a packet socket.

use std::io;
use std::mem::{size_of, size_of_val, zeroed};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::ptr;

/// Send buffer in bytes; without privilege the system grants at most net.core.wmem_max.
const SEND_BUFFER: libc::c_int = 4 << 20;

nix::ioctl_readwrite_bad!(siocgifname, libc::SIOCGIFNAME, libc::ifreq);
nix::ioctl_readwrite_bad!(siocgifmtu, libc::SIOCGIFMTU, libc::ifreq);

/// The error of a system call, if it failed.
pub(super) fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

pub(super) fn set_option<T>(
    socket: &OwnedFd,
    level: libc::c_int,
    option: libc::c_int,
    value: &T,
) -> io::Result<()> {
    // SAFETY: the kernel reads `size_of::<T>()` bytes of `value`.
    check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    })
    .map(drop)
}

/// An unbound packet socket.
pub(super) fn packet_socket() -> io::Result<OwnedFd> {
    // SAFETY: no pointers.
    let socket = check(unsafe {
        libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC, 0)
    });
    // SAFETY: the socket is new, and nothing else owns it.
    socket.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Sets the options for sending.
///
/// # Errors
/// The option that the system refused, and its error.
pub(super) fn set_send_options(socket: &OwnedFd) -> Result<(), (&'static str, io::Error)> {
    for (option, name) in [
        (libc::PACKET_VNET_HDR, "PACKET_VNET_HDR"),
        // Our disciplines queue; the interface must not queue again.
        (libc::PACKET_QDISC_BYPASS, "PACKET_QDISC_BYPASS"),
    ] {
        set_option(socket, libc::SOL_PACKET, option, &1_i32).map_err(|error| (name, error))?;
    }
    // Frames count until the device has sent them; a batch must fit.
    if set_option(socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &SEND_BUFFER).is_err() {
        set_option(socket, libc::SOL_SOCKET, libc::SO_SNDBUF, &SEND_BUFFER)
            .map_err(|error| ("SO_SNDBUF", error))?;
    }
    Ok(())
}

/// Binds a packet socket to the interface with this index, for received frames of this protocol; zero
/// receives none.
pub(super) fn bind(socket: &OwnedFd, interface: u32, protocol: u16) -> io::Result<()> {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as libc::c_ushort,
        sll_protocol: protocol.to_be(),
        sll_ifindex: interface as libc::c_int,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    // SAFETY: the kernel reads an address of this size.
    check(unsafe {
        libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    })
    .map(drop)
}

/// Number of frames that the kernel lost since the last call (packet(7), PACKET_STATISTICS); zero if it does
/// not report it.
pub(super) fn newly_missed(socket: &OwnedFd) -> u64 {
    // `struct tpacket_stats`: packets, drops.
    let mut stats = [0_u32; 2];
    let mut length = size_of_val(&stats) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes.
    let read = check(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            stats.as_mut_ptr().cast(),
            &raw mut length,
        )
    });
    if read.is_ok() { u64::from(stats[1]) } else { 0 }
}

/// The MTU of the interface with this index, whatever its name (netdevice(7)). Neither call waits for changes
/// of other settings, as requests of netlink do.
///
/// # Errors
/// If the interface does not exist any more.
pub(super) fn mtu(socket: &OwnedFd, interface: u32) -> io::Result<usize> {
    // SAFETY: all zeros is an `ifreq`: an empty name and a union of integers and null pointers.
    let mut request: libc::ifreq = unsafe { zeroed() };
    request.ifr_ifru.ifru_ifindex = interface as libc::c_int;
    // SAFETY: the kernel reads the index and writes the name of an `ifreq` that outlives the call.
    unsafe { siocgifname(socket.as_raw_fd(), &raw mut request) }?;
    // SAFETY: the kernel reads the name, which it wrote, and writes the MTU.
    unsafe { siocgifmtu(socket.as_raw_fd(), &raw mut request) }?;
    // SAFETY: the kernel wrote this member of the union, and every bit pattern is an integer.
    let mtu = unsafe { request.ifr_ifru.ifru_mtu };
    Ok(usize::try_from(mtu).unwrap_or(0))
}

/// Takes the error of the socket that no call has reported yet (socket(7), SO_ERROR).
///
/// # Errors
/// The error.
pub(super) fn take_error(socket: &OwnedFd) -> io::Result<()> {
    match nix::sys::socket::getsockopt(socket, nix::sys::socket::sockopt::SocketError)? {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}
