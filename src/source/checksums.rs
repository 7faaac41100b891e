//! Whether checksums of files are held against their data.

/// Always, but where any bytes are tried: a fuzzer that has to find checksums finds nothing else.
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

/// Set in a process of tests that is to do as the fuzzer did.
#[cfg(test)]
pub(crate) const UNCHECKED: &str = "GRISTMILL_TEST_UNCHECKED";
