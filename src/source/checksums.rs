//! Switch for the verification of checksums.

/// Returns false only under fuzzing, because random input would never pass a checksum. In tests, the environment
/// variable `GRISTMILL_TEST_UNCHECKED` has this effect too.
#[inline]
pub(crate) fn are_checked() -> bool {
    #[cfg(test)]
    {
        static CHECKED: std::sync::LazyLock<bool> = std::sync::LazyLock::new(|| std::env::var_os(UNCHECKED).is_none());
        *CHECKED
    }
    #[cfg(not(test))]
    {
        !cfg!(fuzzing)
    }
}

/// Environment variable for a test process that must behave like the fuzzer.
#[cfg(test)]
pub(crate) const UNCHECKED: &str = "GRISTMILL_TEST_UNCHECKED";
