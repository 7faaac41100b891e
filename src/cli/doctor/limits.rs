//! Limits of this process: open files, processes, locked memory, mappings.

use serde_json::Value as Json;

use super::check::Check;
use super::host::Host;
use crate::cli::format::{bytes, grouped};
use crate::machine::Limit;

/// Number of open files below which folders of many shards do not open.
const FILES: u64 = 1024;
/// Processes and threads that a large run needs. Both count toward the same limit.
const PROCESSES: u64 = 1024;
/// Memory mappings that the kernel allows by default.
const MAPPINGS: u64 = 65530;

/// Checks limits for a pipeline that reads `files` files.
pub(super) fn checks(host: &Host, files: u64) -> Vec<Check> {
    [open_files(host, files), processes(host), locked(host), mappings(host, files)].into_iter().flatten().collect()
}

fn in_words(limit: Option<u64>, words: impl Fn(u64) -> String) -> String {
    limit.map_or_else(|| "no limit".to_owned(), words)
}

/// Formats a limit: the current value, and the maximum that can be requested.
fn both(limit: Limit, words: impl Fn(u64) -> String) -> String {
    match limit.now == limit.most {
        true => in_words(limit.now, words),
        false => format!("{}, up to {} if asked for", in_words(limit.now, &words), in_words(limit.most, &words)),
    }
}

fn is_below(limit: Option<u64>, needed: u64) -> bool {
    limit.is_some_and(|limit| limit < needed)
}

fn open_files(host: &Host, files: u64) -> Option<Check> {
    let limit = host.machine.limit("Max open files")?;
    // Room for libraries, pipes of workers and connections besides the data.
    let needed = FILES.max(files.saturating_add(512));
    let asked = needed.max(65536).next_power_of_two();
    let mend = match limit.most.is_some_and(|most| most < needed) {
        false => format!("ulimit -n {}", limit.most.map_or(asked, |most| most.min(asked))),
        true => host.mend(
            "a node whose container runtime allows more: LimitNOFILE of containerd",
            &format!("docker run --ulimit nofile={asked} …"),
            &format!("echo '* - nofile {asked}' | sudo tee -a /etc/security/limits.d/nofile.conf, and log in again"),
        ),
    };
    let hurts = match files {
        0 => "folders of many shards do not open".to_owned(),
        files => format!("each of the {} files of this pipeline may be open at the same time", grouped(files)),
    };
    Some(Check::good("open files", both(limit, grouped)).figure("limit", limit.now).figure("most", limit.most).poor_if(
        is_below(limit.now, needed),
        hurts,
        mend,
    ))
}

fn processes(host: &Host) -> Option<Check> {
    let limit = host.machine.limit("Max processes")?;
    let group = host.machine.group_processes();
    let mut found = both(limit, grouped);
    if let Some(group) = group {
        found += &format!("; {} in this control group", grouped(group));
    }
    let check = Check::good("processes", found)
        .figure("limit", limit.now)
        .figure("most", limit.most)
        .figure("group_limit", group);
    let hurts = "threads count, too: workers that cannot start theirs end with an error";
    let more = host.mend(
        "a higher podPidsLimit of the kubelet",
        "docker run --pids-limit -1 …",
        "systemctl set-property UNIT TasksMax=infinity",
    );
    let asked = limit.most.map_or(4 * PROCESSES, |most| most.min(4 * PROCESSES));
    Some(check.poor_if(is_below(group, PROCESSES), hurts, more).poor_if(
        is_below(limit.now, PROCESSES),
        hurts,
        format!("ulimit -u {asked}"),
    ))
}

/// Checks the limit of locked memory. The drivers of some accelerators lock all memory that they map.
fn locked(host: &Host) -> Option<Check> {
    let limit = host.machine.limit("Max locked memory")?;
    let needs = host.machine.place("/dev/vfio").exists();
    let mend = host.mend(
        "securityContext: {privileged: true} in the pod, or the runtime's LimitMEMLOCK",
        "docker run --ulimit memlock=-1 …",
        "ulimit -l unlimited, after `* - memlock unlimited` in /etc/security/limits.conf",
    );
    Some(
        Check::good("locked memory", both(limit, bytes))
            .figure("limit_bytes", limit.now)
            .figure("most_bytes", limit.most)
            .poor_if(
                needs && is_below(limit.now, 1 << 30),
                "the accelerator of this machine is mapped by VFIO, and its driver fails if it cannot lock memory",
                mend,
            ),
    )
}

/// Checks the limit of memory mappings. Each file and each thread stack takes a mapping.
fn mappings(host: &Host, files: u64) -> Option<Check> {
    let limit: u64 = host.machine.text("/proc/sys/vm/max_map_count")?.parse().ok()?;
    let needed = files.saturating_mul(2).max(MAPPINGS / 2);
    let check = Check::good("mappings", grouped(limit)).figure("limit", Json::from(limit));
    let hurts = "each file that is read, and each stack of a thread, is a mapping: too many end in `out of memory`";
    let mend = format!("sudo sysctl vm.max_map_count={}", needed.max(262_144).next_power_of_two());
    Some(check.poor_if(limit < needed, hurts, mend))
}

#[cfg(test)]
mod tests {
    use super::super::check::Health;
    use super::super::host::tests::host;
    use super::*;

    const LIMITS: &str = "Limit   Soft Limit  Hard Limit  Units\nMax processes  512  4096  processes\n\
                          Max open files  256  1048576  files\nMax locked memory  65536  65536  bytes\n";

    fn of(files: &[(&str, &str)], shards: u64, what: &str) -> Option<Check> {
        let (_folder, host) = host(files);
        checks(&host, shards).into_iter().find(|check| check.what == what)
    }

    #[test]
    fn files_that_can_be_asked_for_are_asked_for() {
        let low = of(&[("/proc/self/limits", LIMITS)], 0, "open files").unwrap();
        assert_eq!(low.found, "256, up to 1 048 576 if asked for");
        assert_eq!((low.health, low.mend.as_deref()), (Health::Poor, Some("ulimit -n 65536")));
        let hard = LIMITS.replace("1048576", "512");
        let hard = of(&[("/proc/self/limits", &hard), ("/.dockerenv", "")], 0, "open files").unwrap();
        assert_eq!(hard.mend.as_deref(), Some("docker run --ulimit nofile=65536 …"));
        // Enough for most pipelines, but not for this pipeline.
        let high = LIMITS.replace("256 ", "20000");
        assert_eq!(of(&[("/proc/self/limits", &high)], 100, "open files").unwrap().health, Health::Good);
        let many = of(&[("/proc/self/limits", &high)], 50_000, "open files").unwrap();
        assert!(many.hurts.unwrap().starts_with("each of the 50 000 files"));
    }

    #[test]
    fn processes_of_the_user_and_of_the_group_are_looked_at() {
        let user = of(&[("/proc/self/limits", LIMITS)], 0, "processes").unwrap();
        assert_eq!(
            (user.found.as_str(), user.mend.as_deref()),
            ("512, up to 4 096 if asked for", Some("ulimit -u 4096"))
        );
        let group = [
            ("/proc/self/limits", LIMITS),
            ("/proc/self/mountinfo", "31 22 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
            ("/proc/self/cgroup", "0::/\n"),
            ("/sys/fs/cgroup/pids.max", "100\n"),
            ("/.dockerenv", ""),
        ];
        let group = of(&group, 0, "processes").unwrap();
        assert_eq!(group.mend.as_deref(), Some("docker run --pids-limit -1 …"));
        assert_eq!(group.figures["group_limit"], 100);
    }

    #[test]
    fn locked_memory_and_mappings_hurt_where_they_are_needed() {
        let limits = ("/proc/self/limits", LIMITS);
        assert_eq!(of(&[limits], 0, "locked memory").unwrap().health, Health::Good);
        assert_eq!(of(&[limits, ("/dev/vfio/0", "")], 0, "locked memory").unwrap().health, Health::Poor);
        let maps = ("/proc/sys/vm/max_map_count", "65530\n");
        assert_eq!(of(&[maps], 100, "mappings").unwrap().health, Health::Good);
        let many = of(&[maps], 200_000, "mappings").unwrap();
        assert_eq!(many.mend.as_deref(), Some("sudo sysctl vm.max_map_count=524288"));
    }
}
