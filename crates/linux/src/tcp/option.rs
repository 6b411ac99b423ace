//! Options of TCP sockets that `nix` does not have, or has with other types. Source: tcp(7).
#![expect(unsafe_code, reason = "getsockopt and setsockopt of options that nix does not have")]

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::ptr;

use nix::sys::socket::{getsockopt, setsockopt, sockopt};

/// Sets TCP_CONGESTION.
///
/// # Errors
/// The error of the system call.
pub fn set_congestion(socket: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    Ok(setsockopt(&socket, sockopt::TcpCongestion, &OsString::from(name))?)
}

/// The congestion control of a socket, by the kernel's name.
///
/// # Errors
/// The error of the system call.
pub fn congestion(socket: BorrowedFd<'_>) -> io::Result<String> {
    let name = getsockopt(&socket, sockopt::TcpCongestion)?;
    // The kernel pads its array with zeros.
    Ok(name.to_string_lossy().trim_end_matches('\0').to_owned())
}

/// Sets TCP_WINDOW_CLAMP.
///
/// # Errors
/// The error of the system call.
pub fn set_window_clamp(socket: BorrowedFd<'_>, bytes: u32) -> io::Result<()> {
    set(socket, libc::TCP_WINDOW_CLAMP, bytes)
}

/// The bound of the window that a socket advertises.
///
/// # Errors
/// The error of the system call.
pub fn window_clamp(socket: BorrowedFd<'_>) -> io::Result<u32> {
    let mut value = 0;
    read(socket, libc::TCP_WINDOW_CLAMP, &mut value).map(|_| value)
}

/// Sets TCP_NOTSENT_LOWAT: a socket is writable while fewer bytes than this wait to be sent.
///
/// # Errors
/// The error of the system call.
pub fn set_not_sent_low_water(socket: BorrowedFd<'_>, bytes: u32) -> io::Result<()> {
    set(socket, libc::TCP_NOTSENT_LOWAT, bytes)
}

fn set(socket: BorrowedFd<'_>, option: libc::c_int, value: u32) -> io::Result<()> {
    // SAFETY: the kernel reads four bytes of `value`.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            option,
            ptr::from_ref(&value).cast(),
            size_of::<u32>() as libc::socklen_t,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Types that consist of integers, for which every bit pattern is valid.
pub(super) trait Plain: Copy {}
impl Plain for u32 {}
impl<const N: usize> Plain for [u8; N] {}

/// Reads an option into `value`. Returns the number of bytes that the kernel filled.
pub(super) fn read<T: Plain>(
    socket: BorrowedFd<'_>,
    option: libc::c_int,
    value: &mut T,
) -> io::Result<usize> {
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes, and every bit pattern of a `Plain` type is valid.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            option,
            ptr::from_mut(value).cast(),
            &raw mut length,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(length as usize) }
}
