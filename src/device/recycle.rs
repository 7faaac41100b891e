//! Reuse of memory that a CPU plugin frees.
#![cfg_attr(
    all(target_os = "linux", target_env = "gnu"),
    expect(unsafe_code, reason = "the C library receives a policy for freed memory")
)]

/// Makes the C library keep freed memory, for the whole process from now on. Returns false if the C library cannot be
/// configured.
///
/// The device memory of a CPU plugin comes from `malloc`. By default, freeing a large buffer returns its pages to the
/// system, and the next buffer gets new zeroed pages. This causes hundreds of page faults per batch and limits
/// transfers to half the speed of memory. After this call, buffers of up to 32 MiB reuse pages, and the process keeps
/// its peak memory.
///
/// Call this function once, before the first transfer, in a program that trains on the CPU plugin. Other platforms have
/// separate device memory.
///
/// Works with glibc only (`mallopt(3)`: `M_MMAP_THRESHOLD`, `M_TRIM_THRESHOLD`).
pub fn keep_freed_memory() -> bool {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    return set(M_MMAP_THRESHOLD, LARGEST) && set(M_TRIM_THRESHOLD, i32::MAX);
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    false
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod glibc {
    use std::ffi::c_int;

    unsafe extern "C" {
        fn mallopt(option: c_int, value: c_int) -> c_int;
    }

    pub(super) const M_TRIM_THRESHOLD: c_int = -1;
    pub(super) const M_MMAP_THRESHOLD: c_int = -3;
    /// The maximum that glibc accepts (`DEFAULT_MMAP_THRESHOLD_MAX` on 64-bit platforms).
    pub(super) const LARGEST: c_int = 32 << 20;

    pub(super) fn set(option: c_int, value: c_int) -> bool {
        // SAFETY: the function takes two numbers, checks them, and sets an option under the allocator's lock.
        unsafe { mallopt(option, value) == 1 }
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
use glibc::{LARGEST, M_MMAP_THRESHOLD, M_TRIM_THRESHOLD, set};
