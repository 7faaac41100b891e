//! Limit of the memory for blocks: no more than a part of what the process may have.

/// Of the bytes that are allowed for blocks, as many as leave the rest of the process enough: an eighth, where the memory of the process
/// is limited, as that of a worker is by its part of the RAM budget. The limit may be lowered at any time.
pub(super) fn within(bytes: u64) -> u64 {
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
