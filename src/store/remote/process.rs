//! Identity of a process, from which another process can detect its end.

use std::fs;

use serde::{Deserialize, Serialize};

/// Process on any machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct Process {
    host: String,
    pid: u32,
    /// ID of the boot of the machine. `None` if the system has no such ID.
    boot: Option<String>,
    /// Namespace of the process ID. `None` if the system has no namespaces.
    namespace: Option<String>,
    /// Start time in clock ticks since the boot, because process IDs are reused.
    began: Option<u64>,
}

impl Process {
    /// Returns the current process.
    pub(in crate::store) fn this() -> Self {
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

    /// Returns true if the process ran in the current boot and namespace, and has ended.
    pub(in crate::store) fn is_gone(&self) -> bool {
        let this = Self::this();
        let is_near = self.boot == this.boot && self.namespace == this.namespace;
        let is_known = self.boot.is_some() && self.namespace.is_some() && self.began.is_some() && this.began.is_some();
        is_near && is_known && began(self.pid) != self.began
    }
}

display_as!(Process, |self, f| write!(f, "process {} on {}", self.pid, self.host));

/// Returns the start time of a process, if the process is running.
fn began(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may contain any character, including parentheses.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    // A process that has ended may remain until its parent waits for it.
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
        // The end of a process on another machine cannot be detected.
        assert!(!Process { boot: Some("another".to_owned()), ..process }.is_gone());
    }
}
