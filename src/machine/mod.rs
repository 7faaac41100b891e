//! The machine, and the kernel's limits for this process, from `/proc` and `/sys`.

mod groups;
mod limits;
mod mounts;

use std::path::{Path, PathBuf};

pub(crate) use limits::Limit;
pub(crate) use mounts::Mount;

/// View of `/proc` and `/sys` below a root folder, which tests replace.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    root: PathBuf,
}

impl Machine {
    /// Returns the machine of this process.
    pub(crate) fn here() -> Self {
        Self::below("/")
    }

    /// Returns the machine whose `proc` and `sys` are in `root`.
    pub(crate) fn below(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Returns the location of an absolute path of that machine.
    pub(crate) fn place(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root.join(path.as_ref().strip_prefix("/").unwrap_or(path.as_ref()))
    }

    /// Reads a file as text, without the last line end; `None` if it cannot be read.
    pub(crate) fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        let text = std::fs::read(self.place(path)).ok()?;
        Some(String::from_utf8_lossy(&text).trim_end().to_owned())
    }

    /// Returns the bytes that programs can still use: free and reclaimable memory, within the limits of the control groups.
    /// `None` if neither is known.
    pub(crate) fn available_bytes(&self) -> Option<u64> {
        self.memory("MemAvailable:").into_iter().chain(self.group_memory_left()).min()
    }

    /// Returns the bytes of `key` in `/proc/meminfo`.
    pub(crate) fn memory(&self, key: &str) -> Option<u64> {
        let text = self.text("/proc/meminfo")?;
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Makes a folder with these files, and a view of it.
    pub(crate) fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Machine) {
        let folder = tempfile::tempdir().unwrap();
        let machine = Machine::below(folder.path());
        for (path, text) in files {
            let path = machine.place(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        (folder, machine)
    }

    #[test]
    fn what_groups_leave_bounds_what_is_free() {
        let meminfo = ("/proc/meminfo", "MemTotal:  16000 kB\nMemAvailable:   8000 kB\n");
        let (_folder, free) = machine(&[meminfo]);
        assert_eq!((free.available_bytes(), free.memory("MemTotal:")), (Some(8_192_000), Some(16_384_000)));
        let (_folder, bounded) = machine(&[
            meminfo,
            ("/proc/self/mountinfo", "31 22 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
            ("/proc/self/cgroup", "0::/job\n"),
            ("/sys/fs/cgroup/job/memory.max", "3000000\n"),
            ("/sys/fs/cgroup/job/memory.current", "1000000\n"),
        ]);
        assert_eq!(bounded.available_bytes(), Some(2_000_000));
        assert_eq!(machine(&[]).1.available_bytes(), None);
    }
}
