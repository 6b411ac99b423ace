//! The exported functions, and the memory that passes through them.
#![expect(unsafe_code, reason = "JavaScript passes addresses; each use of one says why it is sound")]

use std::ptr;

use crate::request::answer;

/// Allocates `len` bytes, which [`free`] or [`request`] takes back.
#[unsafe(no_mangle)]
extern "C" fn alloc(len: usize) -> *mut u8 {
    Box::into_raw(vec![0_u8; len].into_boxed_slice()).cast()
}

/// Frees `len` bytes at `at`.
///
/// # Safety
/// `at` and `len` are those of an [`alloc`] or of an answer, which is freed once.
#[unsafe(no_mangle)]
unsafe extern "C" fn free(at: *mut u8, len: usize) {
    // SAFETY: a boxed slice of this length was given away at this address.
    drop(unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(at, len)) });
}

/// Answers the request of `len` bytes at `at`, which it frees.
///
/// # Safety
/// As for [`free`].
#[unsafe(no_mangle)]
unsafe extern "C" fn request(at: *mut u8, len: usize) -> *mut u8 {
    // SAFETY: a boxed slice of this length was given away at this address.
    let text = unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(at, len)) };
    let answer = answer(&text);
    let mut out = Vec::with_capacity(4 + answer.len());
    out.extend_from_slice(&u32::try_from(answer.len()).unwrap_or_default().to_le_bytes());
    out.extend_from_slice(answer.as_bytes());
    Box::into_raw(out.into_boxed_slice()).cast()
}
