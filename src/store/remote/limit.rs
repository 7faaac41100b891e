//! Limit of the memory for blocks, relative to the memory limit of the process.

/// Returns the bytes that blocks may use, at most `bytes`. If the memory of the process is limited, blocks get at most
/// an eighth of the limit. Workers are limited by their share of the RAM budget. The limit may be lowered at any time.
pub(in crate::store) fn within(bytes: u64) -> u64 {
    of(bytes, data_limit())
}

fn of(bytes: u64, limit: Option<u64>) -> u64 {
    limit.map_or(bytes, |limit| bytes.min(limit / 8))
}

#[cfg(all(feature = "workers", target_os = "linux"))]
fn data_limit() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Data).current
}

#[cfg(not(all(feature = "workers", target_os = "linux")))]
fn data_limit() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limited_process_uses_a_part() {
        assert_eq!((of(100, None), of(100, Some(1000)), of(100, Some(200))), (100, 100, 25));
    }
}
