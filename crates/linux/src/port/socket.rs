//! Options and properties of a packet socket.

use std::io;
use std::mem::{size_of, size_of_val, zeroed};
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;

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

/// Binds a packet socket to the interface with this index, for all protocols.
pub(super) fn bind(socket: &OwnedFd, interface: u32) -> io::Result<()> {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as libc::c_ushort,
        sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
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

/// What the kernel lost since it was last asked (packet(7), PACKET_STATISTICS); zero if it does not say.
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

/// The MTU of the interface with this index, whatever it is called now (netdevice(7)). Neither call waits for a change of
/// other settings, as requests of netlink do.
///
/// # Errors
/// If there is no such interface any more.
pub(super) fn mtu(socket: &OwnedFd, interface: u32) -> io::Result<usize> {
    // SAFETY: all zeros is an `ifreq`: an empty name and a union of integers and null pointers.
    let mut request: libc::ifreq = unsafe { zeroed() };
    request.ifr_ifru.ifru_ifindex = interface as libc::c_int;
    // SAFETY: the kernel reads the index and writes the name of an `ifreq` that outlives the call.
    unsafe { siocgifname(socket.as_raw_fd(), &raw mut request) }?;
    // SAFETY: the kernel reads the name, which it wrote, and writes the MTU.
    unsafe { siocgifmtu(socket.as_raw_fd(), &raw mut request) }?;
    // SAFETY: it wrote this member of the union, and every pattern of bits is an integer.
    let mtu = unsafe { request.ifr_ifru.ifru_mtu };
    Ok(usize::try_from(mtu).unwrap_or(0))
}

/// Takes the error of the socket that no call has reported so far (socket(7), SO_ERROR).
///
/// # Errors
/// That error.
pub(super) fn take_error(socket: &OwnedFd) -> io::Result<()> {
    match nix::sys::socket::getsockopt(socket, nix::sys::socket::sockopt::SocketError)? {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}
