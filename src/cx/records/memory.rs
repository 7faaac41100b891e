//! Memory of a run.

use serde::{Deserialize, Serialize};

/// Memory of worker processes on this machine, and of the data that they hand over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WorkerMemory {
    /// Bytes of private memory of all workers.
    pub(crate) heaps: u64,
    /// Bytes of shared memory that are written, or held by views.
    pub(crate) shared: u64,
    /// Budget of `heaps` and `shared` together, in bytes. 0 if there are no workers.
    pub(crate) budget: u64,
}

impl WorkerMemory {
    /// Returns the bytes that count against the budget.
    pub(crate) fn used(&self) -> u64 {
        self.heaps + self.shared
    }

    /// Returns true if there are no workers.
    pub(crate) fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the larger of two measurements.
    pub(crate) fn larger(self, other: Self) -> Self {
        if other.used() > self.used() || self.is_none() { other } else { self }
    }
}

/// Returns the resident bytes of this process, or 0 if the system does not report them.
pub(super) fn own() -> u64 {
    #[cfg(target_os = "linux")]
    {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix("kB"));
        kib.and_then(|kib| kib.trim().parse::<u64>().ok()).unwrap_or(0) << 10
    }
    #[cfg(not(target_os = "linux"))]
    0
}
