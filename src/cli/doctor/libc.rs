//! Version of the C library.
#![cfg_attr(
    all(target_os = "linux", target_env = "gnu"),
    expect(unsafe_code, reason = "the C library returns its version as a pointer")
)]

/// Returns the C library of this process, such as `glibc 2.36`; `None` if its version is unknown.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(super) fn version() -> Option<String> {
    // SAFETY: the function takes no arguments, and returns a NUL-terminated string that is never changed or freed.
    let text = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
    Some(format!("glibc {}", text.to_str().ok()?))
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(super) fn version() -> Option<String> {
    cfg!(target_env = "musl").then(|| "musl".to_owned())
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    #[test]
    fn the_c_library_says_its_version() {
        let version = super::version().unwrap();
        let number = version.strip_prefix("glibc ").unwrap();
        assert!(number.split('.').all(|part| part.parse::<u32>().is_ok()), "{version}");
    }
}
