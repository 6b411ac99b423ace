//! Return values of calls.

use std::ffi::{c_char, c_int};

/// The result of a call: zero, a positive answer, or a negative error. A call that fails changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum Status {
    /// The call succeeded.
    Ok = 0,
    /// There is no packet to send now, or no time to wait for.
    None = 1,
    /// The discipline does not use this setting.
    Unused = 2,
    /// A pointer is null.
    ErrorNull = -1,
    /// The call came from a callback of the same queue.
    ErrorBusy = -2,
    /// `now` is earlier than in a previous call, or than the start.
    ErrorTime = -3,
    /// The size of the packet is zero or above 65535.
    ErrorSize = -4,
    /// A code of the packet or of the call is not in its enumeration, or the label has more than 17 bits.
    ErrorCode = -5,
    /// A weight is not positive or not finite, or a limit is zero.
    ErrorValue = -6,
    /// A bug in the library: this queue panicked, now or in an earlier call, and can only be destroyed; or a
    /// simulation panicked.
    ErrorPanicked = -7,
    /// The scenario, a transport stack or the run was refused, or failed; the text says why.
    ErrorSimulation = -8,
}

/// Returns the meaning of `status` as a text in English. The text is static: do not free it.
#[unsafe(no_mangle)]
pub extern "C" fn apportion_status_text(status: c_int) -> *const c_char {
    let text = match status {
        0 => c"done",
        1 => c"nothing now",
        2 => c"the discipline has no use for this setting",
        -1 => c"a pointer is null",
        -2 => c"called from a callback of the same queue",
        -3 => c"the time is earlier than in a call before, or than the start",
        -4 => c"the size of a packet must be between 1 and 65535 bytes",
        -5 => c"a code is not one of its enumeration, or a label has more than 17 bits",
        -6 => c"a weight must be finite and above zero, a limit above zero",
        -7 => c"a queue or a simulation panicked, which is a defect of the library; destroy the queue",
        -8 => c"the simulation was refused, or failed; its text has the reason",
        _ => c"not a status of this library",
    };
    text.as_ptr()
}
