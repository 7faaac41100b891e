//! CPU time of this process.

/// Returns the CPU seconds of all threads of this process, including ended threads.
pub(crate) fn own_cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    // The fields after the state include the time in user code and in the kernel, in hundredths of a second.
    let ticks: u64 = fields.split(' ').skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    ticks as f64 / 100.0
}
