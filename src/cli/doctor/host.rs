//! The machine that the doctor examines. Its `/proc` and `/sys` can be in another folder.

use std::path::Path;

use crate::machine::Machine;

/// Space in a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Space {
    pub(super) total_bytes: u64,
    /// Bytes that can still be written.
    pub(super) free_bytes: u64,
}

/// Container runtime that started this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Container {
    Kubernetes,
    Podman,
    Docker,
}

/// Machine, with the space in its file systems.
pub(super) struct Host {
    pub(super) machine: Machine,
    pub(super) space: fn(&Path) -> Option<Space>,
}

impl Host {
    pub(super) fn here() -> Self {
        Self { machine: Machine::here(), space }
    }

    pub(super) fn container(&self) -> Option<Container> {
        let has = |path: &str| self.machine.place(path).exists();
        if has("/var/run/secrets/kubernetes.io") {
            return Some(Container::Kubernetes);
        }
        if has("/run/.containerenv") {
            return Some(Container::Podman);
        }
        has("/.dockerenv").then_some(Container::Docker)
    }

    /// Returns the advice for this container runtime, or for a machine without one.
    /// `podman run` has the options of `docker run`.
    pub(super) fn mend(&self, kubernetes: &str, docker: &str, machine: &str) -> String {
        match self.container() {
            Some(Container::Kubernetes) => kubernetes.to_owned(),
            Some(Container::Podman) => docker.replacen("docker", "podman", 1),
            Some(Container::Docker) => docker.to_owned(),
            None => machine.to_owned(),
        }
    }

    /// Returns the share of the last minute in which some thread waited for `what`, in per cent.
    pub(super) fn pressure(&self, what: &str) -> Option<f64> {
        let text = self.machine.text(format!("/proc/pressure/{what}"))?;
        let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
        some.split(' ').find_map(|word| word.strip_prefix("avg60="))?.parse().ok()
    }
}

#[cfg(target_os = "linux")]
fn space(path: &Path) -> Option<Space> {
    let said = rustix::fs::statvfs(path).ok()?;
    let bytes = |blocks: u64| blocks.saturating_mul(said.f_frsize);
    Some(Space { total_bytes: bytes(said.f_blocks), free_bytes: bytes(said.f_bavail) })
}

#[cfg(not(target_os = "linux"))]
fn space(_: &Path) -> Option<Space> {
    None
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::machine::tests::machine;

    /// Makes a machine with these files. Its file systems have 64 MiB, all free.
    pub(in super::super) fn host(files: &[(&str, &str)]) -> (tempfile::TempDir, Host) {
        let (folder, machine) = machine(files);
        let space = |_: &Path| Some(Space { total_bytes: 64 << 20, free_bytes: 64 << 20 });
        (folder, Host { machine, space })
    }

    #[test]
    fn containers_are_told_apart_and_have_advice_of_their_own() {
        for (file, container, mend) in [
            ("/.dockerenv", Some(Container::Docker), "docker run"),
            ("/run/.containerenv", Some(Container::Podman), "podman run"),
            ("/var/run/secrets/kubernetes.io/token", Some(Container::Kubernetes), "limits:"),
            ("/etc/hostname", None, "ulimit"),
        ] {
            let (_folder, host) = host(&[(file, "")]);
            assert_eq!(host.container(), container, "{file}");
            assert_eq!(host.mend("limits:", "docker run", "ulimit"), mend);
        }
    }

    #[test]
    fn pressure_is_that_of_a_minute() {
        let text = "some avg10=1.00 avg60=23.28 avg300=0.00 total=9\nfull avg10=0.00 avg60=9.00 avg300=0.00 total=0\n";
        let (_folder, host) = host(&[("/proc/pressure/cpu", text)]);
        assert_eq!((host.pressure("cpu"), host.pressure("memory")), (Some(23.28), None));
    }
}
