//! Memory of this process and its workers, read from `/proc`. Unknown on systems without `/proc`.

use std::collections::HashMap;
use std::fs::read_to_string;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::cli::format::percent;
use crate::cpu::fields;

/// Minimum interval between two readings of the memory. Readings take at most about 2 % of the time.
const EVERY: Duration = Duration::from_millis(20);
/// Share of all cores that others may use before a warning is printed.
const BUSY: f64 = 0.1;

/// Memory of this process and all its descendants. Shared pages count once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Memory {
    /// Anonymous and shared memory, which a memory budget limits.
    pub(crate) used_bytes: u64,
    /// `used_bytes` plus the pages of mapped files, which the system can reclaim.
    pub(crate) with_files_bytes: u64,
}

impl Memory {
    /// Reads the current memory; `None` if the system does not report it.
    fn now() -> Option<Self> {
        let mut sum = None;
        for pid in tree(std::process::id()) {
            // A process that has just ended uses no memory.
            let Some(memory) = read_to_string(format!("/proc/{pid}/smaps_rollup")).ok().and_then(|t| rollup(&t)) else {
                continue;
            };
            let sum: &mut Self = sum.get_or_insert_default();
            sum.used_bytes += memory.used_bytes;
            sum.with_files_bytes += memory.with_files_bytes;
        }
        sum
    }

    fn max(self, other: Self) -> Self {
        Self {
            used_bytes: self.used_bytes.max(other.used_bytes),
            with_files_bytes: self.with_files_bytes.max(other.with_files_bytes),
        }
    }
}

/// Reads the proportional set size of a process from its `smaps_rollup`.
fn rollup(text: &str) -> Option<Memory> {
    let kb = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    };
    let with_files_bytes = 1024 * kb("Pss:")?;
    // Linux before 5.9 does not report `Pss_File`.
    let used_bytes = kb("Pss_File:").map_or(with_files_bytes, |file| with_files_bytes.saturating_sub(1024 * file));
    Some(Memory { used_bytes, with_files_bytes })
}

/// Returns `root` and all its descendants.
fn tree(root: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let stat = read_to_string(entry.path().join("stat")).unwrap_or_default();
        if let Some(parent) = fields(&stat).nth(1).and_then(|field| field.parse().ok()) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = vec![root];
    let mut at = 0;
    while let Some(pid) = found.get(at) {
        found.extend(children.remove(pid).unwrap_or_default());
        at += 1;
    }
    found
}

/// Thread that records the peak memory.
pub(super) struct Watch {
    stop: Sender<()>,
    thread: JoinHandle<Option<Memory>>,
}

impl Watch {
    pub(super) fn start() -> Self {
        let (stop, stopped) = channel();
        let thread = std::thread::spawn(move || {
            let mut peak = Memory::now();
            loop {
                let start = Instant::now();
                let now = Memory::now();
                peak = peak.zip(now).map(|(peak, now)| peak.max(now)).or(peak);
                let pause = EVERY.max(50 * start.elapsed());
                if stopped.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
                    return peak;
                }
            }
        });
        Self { stop, thread }
    }

    /// Stops the thread and returns the peak.
    pub(super) fn finish(self) -> Option<Memory> {
        let last = Memory::now();
        drop(self.stop);
        let peak = self.thread.join().ok().flatten();
        peak.zip(last).map(|(peak, last)| peak.max(last)).or(peak)
    }
}

/// Returns a warning if others used more than a tenth of all cores, which makes figures unreliable.
pub(crate) fn busy(others_share: f64) -> Option<String> {
    (others_share > BUSY).then(|| {
        let share = percent(others_share);
        format!("the machine was busy: others used up to {share} of all cores; measure again when it is quiet")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_system_are_understood() {
        let text =
            "55d0-7ffd ---p 0 00:00 0 [rollup]\nRss: 900 kB\nPss:   700 kB\nPss_Dirty: 1 kB\nPss_File:   300 kB\n";
        let expected = Memory { used_bytes: 400 << 10, with_files_bytes: 700 << 10 };
        assert_eq!(rollup(text), Some(expected));
        assert_eq!(rollup("Pss: 8 kB\n").unwrap().used_bytes, 8 << 10);
        assert_eq!(rollup(""), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_peak_sees_memory_of_this_process_and_of_children() {
        let watch = Watch::start();
        let mut child = std::process::Command::new("sleep").arg("10").spawn().unwrap();
        assert!(tree(std::process::id()).contains(&child.id()));
        let held = vec![1u8; 64 << 20];
        let peak = watch.finish();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(held.iter().all(|&byte| byte == 1));
        // A system that hides its memory reports nothing; it never reports too little.
        assert!(peak.is_none_or(|peak| peak.used_bytes >= 64 << 20), "{peak:?}");
    }
}
