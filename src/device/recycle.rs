//! Memory that a CPU's plugin frees, kept for its next buffers.
#![cfg_attr(
    all(target_os = "linux", target_env = "gnu"),
    expect(unsafe_code, reason = "the C library is told how to treat what is freed")
)]

/// Has the C library keep what is freed, for the whole process and from now on: `false` where it cannot be told.
///
/// What a CPU's plugin calls device memory is `malloc`'s. By default a large buffer's pages go back to the system with it,
/// and come again, zeroed, with the next one: hundreds of page faults a batch, and transfers at half the speed of memory.
/// Afterwards buffers of up to 32 MiB are made of pages that were used before; the process keeps as much as it ever had in
/// use at a time. Worth calling once, before the first transfer, in a program that trains on the CPU's plugin; other
/// platforms have memory of their own.
///
/// Of glibc alone (`mallopt(3)`: `M_MMAP_THRESHOLD`, `M_TRIM_THRESHOLD`).
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
    /// The most that glibc takes (`DEFAULT_MMAP_THRESHOLD_MAX` where pointers have 64 bits).
    pub(super) const LARGEST: c_int = 32 << 20;

    pub(super) fn set(option: c_int, value: c_int) -> bool {
        // SAFETY: it takes two numbers, checks them, and holds the allocator's lock while it sets one.
        unsafe { mallopt(option, value) == 1 }
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
use glibc::{LARGEST, M_MMAP_THRESHOLD, M_TRIM_THRESHOLD, set};
