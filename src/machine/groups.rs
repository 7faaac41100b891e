//! Control groups of this process, of version 1 or 2. Limits hold for a group and everything below it.

use std::path::{Path, PathBuf};

use super::Machine;

/// CPU time that control groups allow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct CpuGroup {
    /// Number of cores that threads may use together; `None` without a limit.
    pub(crate) cores: Option<f64>,
    /// Share of the periods so far in which threads were throttled, 0 to 1.
    pub(crate) held_up: f64,
}

/// Smallest number that means no limit: version 1 reports more than the memory of any machine.
const UNLIMITED: u64 = 1 << 60;

impl Machine {
    /// Returns the folders of this process's groups of a controller, innermost first, and whether each is of version 2.
    fn groups(&self, controller: &str) -> Vec<(PathBuf, bool)> {
        let Some(text) = self.text("/proc/self/cgroup") else { return Vec::new() };
        let mounts = self.mounts();
        let mut folders = Vec::new();
        // `4:memory:/path` in version 1, `0::/path` in version 2.
        for line in text.lines() {
            let mut parts = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
            let is_second = controllers.is_empty();
            if !is_second && controllers.split(',').all(|known| known != controller) {
                continue;
            }
            let kind = if is_second { "cgroup2" } else { "cgroup" };
            let is_its = |mount: &&super::Mount| mount.kind == kind && (is_second || mount.has_option(controller));
            let Some(mount) = mounts.iter().rfind(is_its) else { continue };
            // In a container, the mounted folder may already be the folder of the group.
            let below = Path::new(path).strip_prefix(&mount.root).unwrap_or(Path::new(""));
            let own = if below.components().any(|part| part.as_os_str() == "..") { Path::new("") } else { below };
            folders.extend(own.ancestors().map(|part| (mount.point.join(part), is_second)));
        }
        folders
    }

    /// Returns the limits of a controller's groups, without unlimited groups.
    ///
    /// Each limit is read from the file `second` in version 2, and from `first` in version 1.
    fn group_limits(&self, controller: &str, second: &str, first: &str) -> Vec<(PathBuf, bool, u64)> {
        let limit = |(folder, is_second): (PathBuf, bool)| {
            let text = self.text(folder.join(if is_second { second } else { first }))?;
            let limit = text.parse().ok().filter(|limit| *limit < UNLIMITED)?;
            Some((folder, is_second, limit))
        };
        self.groups(controller).into_iter().filter_map(limit).collect()
    }

    fn least(&self, controller: &str, second: &str, first: &str) -> Option<u64> {
        self.group_limits(controller, second, first).into_iter().map(|(.., limit)| limit).min()
    }

    /// Returns the bytes that the groups allow, if there is a limit.
    pub(crate) fn group_memory(&self) -> Option<u64> {
        self.least("memory", "memory.max", "memory.limit_in_bytes")
    }

    /// Returns the bytes that the groups leave, if there is a limit.
    pub(super) fn group_memory_left(&self) -> Option<u64> {
        let limits = self.group_limits("memory", "memory.max", "memory.limit_in_bytes");
        let left = |(folder, is_second, limit): (PathBuf, bool, u64)| {
            let (used, idle) = match is_second {
                true => ("memory.current", "inactive_file"),
                false => ("memory.usage_in_bytes", "total_inactive_file"),
            };
            let used: u64 = self.text(folder.join(used))?.parse().ok()?;
            // The kernel reclaims inactive file cache when memory is needed.
            let idle = self.text(folder.join("memory.stat")).and_then(|stat| field(&stat, idle)).unwrap_or(0);
            Some(limit.saturating_sub(used.saturating_sub(idle)))
        };
        limits.into_iter().filter_map(left).min()
    }
}

impl Machine {
    /// Returns the number of bytes above which the groups throttle their processes.
    pub(crate) fn group_memory_high(&self) -> Option<u64> {
        // Version 1 has no such limit.
        self.least("memory", "memory.high", "")
    }

    /// Returns the number of processes and threads that the groups allow together.
    pub(crate) fn group_processes(&self) -> Option<u64> {
        self.least("pids", "pids.max", "pids.max")
    }

    /// Returns the number of processes in this process's group that the kernel has killed for lack of memory.
    pub(crate) fn ended_for_memory(&self) -> u64 {
        let counts = |(folder, is_second): &(PathBuf, bool)| {
            let file = if *is_second { "memory.events" } else { "memory.oom_control" };
            self.text(folder.join(file)).and_then(|text| field(&text, "oom_kill"))
        };
        self.groups("memory").iter().find_map(counts).unwrap_or(0)
    }

    /// Returns the CPU time that the groups allow.
    pub(crate) fn cpu_group(&self) -> CpuGroup {
        let mut found = CpuGroup::default();
        for (folder, is_second) in self.groups("cpu") {
            let cores = if is_second {
                self.text(folder.join("cpu.max")).and_then(|text| {
                    let (quota, period) = text.split_once(' ')?;
                    Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?)
                })
            } else {
                let number = |file: &str| self.text(folder.join(file))?.parse::<f64>().ok();
                number("cpu.cfs_quota_us").zip(number("cpu.cfs_period_us")).map(|(quota, period)| quota / period)
            };
            // Version 1 contains -1 if there is no limit.
            let cores = cores.filter(|cores| *cores > 0.0);
            found.cores = found.cores.into_iter().chain(cores).reduce(f64::min);
            let stat = self.text(folder.join("cpu.stat")).unwrap_or_default();
            let (periods, held) = (field(&stat, "nr_periods"), field(&stat, "nr_throttled"));
            if let (Some(periods @ 1..), Some(held)) = (periods, held) {
                found.held_up = found.held_up.max(held as f64 / periods as f64);
            }
        }
        found
    }
}

/// Returns the number after `name` on a line.
fn field(text: &str, name: &str) -> Option<u64> {
    let number = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok();
    text.lines().find_map(number)
}

#[cfg(test)]
mod tests {
    use super::super::tests::machine;
    use super::*;

    const SECOND: (&str, &str) = ("/proc/self/mountinfo", "31 22 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");

    #[test]
    fn the_tightest_group_from_the_own_to_the_root_counts() {
        let (_folder, machine) = machine(&[
            SECOND,
            ("/proc/self/cgroup", "0::/a/b\n"),
            ("/sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("/sys/fs/cgroup/a/memory.max", "4096\n"),
            ("/sys/fs/cgroup/a/memory.current", "1096\n"),
            ("/sys/fs/cgroup/a/memory.stat", "anon 96\ninactive_file 1000\n"),
            ("/sys/fs/cgroup/a/b/memory.high", "2048\n"),
            ("/sys/fs/cgroup/a/b/memory.events", "low 0\noom 3\noom_kill 2\n"),
            ("/sys/fs/cgroup/a/b/cpu.max", "250000 100000\n"),
            ("/sys/fs/cgroup/a/cpu.max", "max 100000\n"),
            ("/sys/fs/cgroup/a/b/cpu.stat", "usage_usec 5\nnr_periods 200\nnr_throttled 50\n"),
            ("/sys/fs/cgroup/a/b/pids.max", "512\n"),
        ]);
        assert_eq!((machine.group_memory(), machine.group_memory_left()), (Some(4096), Some(4000)));
        assert_eq!((machine.group_memory_high(), machine.group_processes()), (Some(2048), Some(512)));
        assert_eq!(machine.ended_for_memory(), 2);
        assert_eq!(machine.cpu_group(), CpuGroup { cores: Some(2.5), held_up: 0.25 });
    }

    #[test]
    fn groups_of_the_first_version_are_found_by_their_mounts() {
        let (_folder, machine) = machine(&[
            (
                "/proc/self/mountinfo",
                "35 31 0:32 /docker/1 /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                 32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n",
            ),
            ("/proc/self/cgroup", "4:memory:/docker/1/job\n2:cpu,cpuacct:/x\n0::/\n"),
            ("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9223372036854771712\n"),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "8192\n"),
            ("/sys/fs/cgroup/memory/memory.usage_in_bytes", "8000\n"),
            ("/sys/fs/cgroup/memory/job/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n"),
            ("/sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us", "-1\n"),
            ("/sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us", "100000\n"),
            ("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "50000\n"),
            ("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
        ]);
        assert_eq!((machine.group_memory(), machine.group_memory_left()), (Some(8192), Some(192)));
        assert_eq!(machine.ended_for_memory(), 1);
        assert_eq!(machine.cpu_group(), CpuGroup { cores: Some(0.5), held_up: 0.0 });
    }

    #[test]
    fn a_machine_without_groups_limits_nothing() {
        for files in [&[][..], &[SECOND], &[SECOND, ("/proc/self/cgroup", "0::/../..\nodd\n")]] {
            let (_folder, machine) = machine(files);
            assert_eq!((machine.group_memory(), machine.group_memory_left()), (None, None));
            assert_eq!((machine.cpu_group(), machine.ended_for_memory()), (CpuGroup::default(), 0));
        }
    }
}
