//! Memory: free memory, limits of control groups, shared memory, and huge pages.

use std::path::Path;

use super::check::Check;
use super::host::Host;
use crate::cli::format::{bytes, plural};

/// Amount of memory below which little can be kept ready.
const LITTLE: u64 = 1 << 30;
/// Space in `/dev/shm` below which other libraries that share memory there fail. Containers have 64 MiB by default.
const LITTLE_SHARED: u64 = 256 << 20;
/// Waiting share of the last minute from which a lack of memory is reported, in per cent.
const SHORT: f64 = 10.0;

pub(super) fn checks(host: &Host) -> Vec<Check> {
    [memory(host), group(host), pressure(host), shared(host), huge_pages(host)].into_iter().flatten().collect()
}

fn memory(host: &Host) -> Option<Check> {
    let available = host.machine.available_bytes()?;
    let total = host.machine.memory("MemTotal:");
    let of = total.map_or_else(String::new, |total| format!(" of {}", bytes(total)));
    Some(
        Check::good("memory", format!("{} available{of}", bytes(available)))
            .figure("available_bytes", available)
            .figure("total_bytes", total)
            .poor_if(
                available < LITTLE,
                "worker processes get a quarter of it together, and start with one of them",
                "ps -eo rss,pid,comm --sort -rss | head; or give workers more of it with --ram",
            ),
    )
}

/// Checks the memory of control groups, if they set a limit or have ended a process.
fn group(host: &Host) -> Option<Check> {
    let (most, high, ended) =
        (host.machine.group_memory(), host.machine.group_memory_high(), host.machine.ended_for_memory());
    if most.is_none() && high.is_none() && ended == 0 {
        return None;
    }
    let mut found = most.map_or_else(|| "no limit".to_owned(), |most| format!("{} at most", bytes(most)));
    if let Some(high) = high {
        found += &format!(", slowed down from {} on", bytes(high));
    }
    if ended > 0 {
        found += &format!("; {} ended for lack of it", plural(ended, "process").replace("processs", "processes"));
    }
    let more = host.mend(
        "a higher `resources.limits.memory` in the pod",
        "docker update --memory 32g --memory-swap 32g CONTAINER",
        "systemctl set-property UNIT MemoryMax=32G",
    );
    let free = host.mend("no `memory.high`", "no `memory.high`", "systemctl set-property UNIT MemoryHigh=infinity");
    Some(
        Check::good("memory limit", found)
            .figure("limit_bytes", most)
            .figure("high_bytes", high)
            .figure("ended", ended)
            .poor_if(
                ended > 0,
                "the kernel ends a process as soon as all of them together need more than the limit, and workers first",
                format!("{more}; or less for workers: --ram 4GiB"),
            )
            .poor_if(
                high.is_some_and(|high| most.is_none_or(|most| high < most)),
                "above that all threads are slowed down while the kernel looks for memory, and none is ended",
                free,
            )
            .poor_if(most.is_some_and(|most| most < LITTLE), "workers get a quarter of it together", more),
    )
}

fn pressure(host: &Host) -> Option<Check> {
    let share = host.pressure("memory")?;
    let check = Check::good("lack of it", format!("threads waited for memory in {share:.0} % of the last minute"));
    let hurts = "files that are read again and again are dropped from memory in between";
    let mend = "ps -eo rss,pid,comm --sort -rss | head";
    (share >= SHORT).then(|| check.figure("waiting", share / 100.0).poor_if(true, hurts, mend))
}

fn shared(host: &Host) -> Option<Check> {
    let folder = Path::new("/dev/shm");
    let mount = host.machine.mount_of(folder).filter(|mount| mount.point == folder)?;
    let space = (host.space)(&host.machine.place(folder))?;
    let (free, total) = (space.free_bytes, space.total_bytes);
    let mend = host.mend(
        "volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 8Gi}}] in the pod, mounted at /dev/shm",
        "docker run --shm-size 8g …",
        "sudo mount -o remount,size=8G /dev/shm",
    );
    let found = format!("{} free of {}", bytes(free), bytes(total));
    Some(
        Check::good("/dev/shm", found)
            .figure("free_bytes", free)
            .figure("total_bytes", total)
            .figure("file_system", mount.kind)
            .poor_if(
                free < LITTLE_SHARED,
                "NCCL, workers of torch's DataLoader, Ray and actors of `gm.ray.loader` fail there; memory of gristmill's worker processes lies elsewhere",
                mend,
            ),
    )
}

/// Checks transparent huge pages.
fn huge_pages(host: &Host) -> Option<Check> {
    let folder = "/sys/kernel/mm/transparent_hugepage";
    let chosen = |file: &str| {
        let text = host.machine.text(format!("{folder}/{file}"))?;
        let (_, behind) = text.split_once('[')?;
        Some(behind.split_once(']')?.0.to_owned())
    };
    let (mode, defrag) = (chosen("enabled")?, chosen("defrag"));
    let found = if let Some(defrag) = &defrag { format!("{mode}; when none is free: {defrag}") } else { mode.clone() };
    let stalls = mode == "always" && defrag.as_deref() == Some("always");
    Some(
        Check::good("huge pages", found)
            .figure("mode", mode)
            .figure("defrag", defrag)
            .poor_if(
                stalls,
                "a thread that touches fresh memory waits for milliseconds while the kernel moves pages about, which looks like a slow stage",
                format!("echo defer+madvise | sudo tee {folder}/defrag"),
            ),
    )
}

#[cfg(test)]
mod tests {
    use super::super::check::Health;
    use super::super::host::tests::host;
    use super::*;

    fn of(files: &[(&str, &str)], what: &str) -> Option<Check> {
        let (_folder, host) = host(files);
        checks(&host).into_iter().find(|check| check.what == what)
    }

    #[test]
    fn memory_is_what_is_free_of_what_there_is() {
        let check = of(&[("/proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 524288 kB\n")], "memory").unwrap();
        assert_eq!((check.health, check.found.as_str()), (Health::Poor, "512 MiB available of 16 GiB"));
        assert_eq!(check.figures["available_bytes"], 512 << 20);
        assert_eq!(of(&[], "memory"), None);
    }

    #[test]
    fn groups_that_limit_are_told_and_hurt_where_they_have_ended_something() {
        let group = |events: &'static str, high: &'static str| {
            [
                ("/proc/self/mountinfo", "31 22 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
                ("/proc/self/cgroup", "0::/\n"),
                ("/sys/fs/cgroup/memory.max", "8589934592\n"),
                ("/sys/fs/cgroup/memory.high", high),
                ("/sys/fs/cgroup/memory.events", events),
                ("/run/.containerenv", ""),
            ]
        };
        let ended = of(&group("oom_kill 2\n", "max\n"), "memory limit").unwrap();
        assert_eq!(ended.found, "8 GiB at most; 2 processes ended for lack of it");
        assert!(ended.mend.unwrap().starts_with("podman update --memory 32g"));
        let slowed = of(&group("oom_kill 0\n", "4294967296\n"), "memory limit").unwrap();
        assert_eq!((slowed.health, slowed.found.as_str()), (Health::Poor, "8 GiB at most, slowed down from 4 GiB on"));
        assert_eq!(of(&group("oom_kill 0\n", "max\n"), "memory limit").unwrap().health, Health::Good);
        assert_eq!(of(&[], "memory limit"), None);
    }

    #[test]
    fn little_shared_memory_hurts_others() {
        let mount = ("/proc/self/mountinfo", "25 24 0:23 / /dev/shm rw - tmpfs shm rw,size=65536k\n");
        let check = of(&[mount, ("/.dockerenv", "")], "/dev/shm").unwrap();
        assert_eq!((check.health, check.found.as_str()), (Health::Poor, "64 MiB free of 64 MiB"));
        assert_eq!(check.mend.as_deref(), Some("docker run --shm-size 8g …"));
        // A folder that is not a mount point is not checked.
        assert_eq!(of(&[("/proc/self/mountinfo", "27 1 254:0 / / rw - ext4 /dev/vda rw\n")], "/dev/shm"), None);
    }

    #[test]
    fn huge_pages_hurt_where_threads_wait_for_them() {
        let folder = "/sys/kernel/mm/transparent_hugepage";
        let (enabled, defrag) = (format!("{folder}/enabled"), format!("{folder}/defrag"));
        let never = "always defer defer+madvise madvise [never]";
        let good = of(&[(&enabled, "always [madvise] never"), (&defrag, never)], "huge pages").unwrap();
        assert_eq!((good.health, good.found.as_str()), (Health::Good, "madvise; when none is free: never"));
        let stalls = [(enabled.as_str(), "[always] madvise never"), (defrag.as_str(), "[always] defer madvise never")];
        assert_eq!(of(&stalls, "huge pages").unwrap().health, Health::Poor);
    }

    #[test]
    fn a_lack_of_memory_is_told_where_there_is_one() {
        let at = |text: &'static str| of(&[("/proc/pressure/memory", text)], "lack of it");
        assert_eq!(at("some avg10=0.00 avg60=1.00 avg300=0.00 total=1\n"), None);
        assert_eq!(at("some avg10=0.00 avg60=31.00 avg300=0.00 total=1\n").unwrap().health, Health::Poor);
    }
}
