//! A process as another may know it: by name, and whether it is gone, as far as that can be seen from here.

use std::fmt;
use std::fs;

use serde::{Deserialize, Serialize};

/// A process of some machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Process {
    host: String,
    pid: u32,
    /// The run of the machine, and the namespace of its numbers: `None` where the system has no such thing.
    boot: Option<String>,
    namespace: Option<String>,
    /// Time at which it began, in ticks since the machine did: numbers are given again.
    began: Option<u64>,
}

impl Process {
    /// The process that asks.
    pub(super) fn this() -> Self {
        let pid = std::process::id();
        let line = |path: &str| Some(fs::read_to_string(path).ok()?.trim().to_owned());
        let host = line("/proc/sys/kernel/hostname").or_else(|| std::env::var("HOSTNAME").ok());
        Self {
            host: host.unwrap_or_else(|| "an unnamed machine".to_owned()),
            pid,
            boot: line("/proc/sys/kernel/random/boot_id"),
            namespace: fs::read_link("/proc/self/ns/pid").ok().map(|link| link.to_string_lossy().into_owned()),
            began: began(pid),
        }
    }

    /// Whether the process ran where this one does, and is gone.
    pub(super) fn is_gone(&self) -> bool {
        let this = Self::this();
        let is_near = self.boot == this.boot && self.namespace == this.namespace;
        let is_known = self.boot.is_some() && self.namespace.is_some() && self.began.is_some() && this.began.is_some();
        is_near && is_known && began(self.pid) != self.began
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} on {}", self.pid, self.host)
    }
}

/// Returns when a process began, if it runs.
fn began(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Its name may hold anything, brackets too.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    // One that ended may wait for its parent to look.
    fields.nth(18)?.parse().ok().filter(|_| !["Z", "X"].contains(&state))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_gone_once_it_has_ended() {
        assert!(!Process::this().is_gone());
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let process = Process { pid: child.id(), began: began(child.id()), ..Process::this() };
        assert!(process.began.is_some() && !process.is_gone());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(process.is_gone());
        // Of another machine nobody knows.
        assert!(!Process { boot: Some("another".to_owned()), ..process }.is_gone());
    }
}
