//! Memory of a run.

use serde::{Deserialize, Serialize};

/// Memory of worker processes on this machine, and what they hand over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WorkerMemory {
    /// Bytes of private memory of all of them.
    pub(crate) heaps: u64,
    /// Bytes of shared memory that are written, or held by views.
    pub(crate) shared: u64,
    /// The budget of both; 0 where there are no workers.
    pub(crate) budget: u64,
}

impl WorkerMemory {
    /// Bytes of what the budget limits.
    pub(crate) fn used(&self) -> u64 {
        self.heaps + self.shared
    }

    /// Whether there are no workers.
    pub(crate) fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// The one of two that is more.
    pub(crate) fn larger(self, other: Self) -> Self {
        if other.used() > self.used() || self.is_none() { other } else { self }
    }
}

/// Bytes of this process in memory; 0 where the system does not say.
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
