//! CPU time of the calling thread.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Returns the CPU time in `/proc/thread-self/schedstat`, whose first word is nanoseconds; wall time on other systems.
///
/// The kernel updates that word at a scheduler tick, every few milliseconds, or when the thread yields. The function
/// yields first, so its result is exact.
pub(crate) fn on_core() -> Duration {
    std::thread::yield_now();
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let ns = stat.and_then(|s| s.split_whitespace().next()?.parse().ok());
    static START: OnceLock<Instant> = OnceLock::new();
    ns.map_or_else(|| START.get_or_init(Instant::now).elapsed(), Duration::from_nanos)
}
