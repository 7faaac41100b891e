//! CPU time of this process.

/// Seconds on a core of all threads together, those that have ended too.
pub(crate) fn own_cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    // Of the process' state and what follows, time in user code and in the kernel, in hundredths of a second.
    let ticks: u64 = fields.split(' ').skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    ticks as f64 / 100.0
}
