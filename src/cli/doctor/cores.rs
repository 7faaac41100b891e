//! Processors: their number, the cores available to this process, and their load.

use super::check::Check;
use super::host::Host;
use crate::cli::format::plural;

/// Share of throttled periods from which throttling by a control group is reported, 0 to 1.
const HELD_UP: f64 = 0.05;
/// Waiting share of the last minute from which the load of other programs is reported, in per cent.
const BUSY: f64 = 25.0;
/// Clock sources that are read without a system call.
const QUICK_CLOCKS: [&str; 4] = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"];

pub(super) fn checks(host: &Host) -> Vec<Check> {
    let cores = Cores::of(host);
    [Some(cores.check(host)), cores.quota(host), busy(host), clock(host)].into_iter().flatten().collect()
}

struct Cores {
    /// Cores that this process may run on.
    allowed: u64,
    online: u64,
}

impl Cores {
    fn of(host: &Host) -> Self {
        let status = host.machine.text("/proc/self/status").unwrap_or_default();
        let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).and_then(counted);
        let allowed = allowed.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from) as u64);
        let online = host.machine.text("/sys/devices/system/cpu/online").as_deref().and_then(counted);
        Self { allowed, online: online.unwrap_or(allowed).max(allowed) }
    }

    fn check(&self, host: &Host) -> Check {
        let &Self { allowed, online } = self;
        let found = match allowed == online {
            true => plural(allowed, "core"),
            false => format!("{allowed} of {} that are online", plural(online, "core")),
        };
        let all = format!("taskset -a -cp 0-{} $$", online.saturating_sub(1));
        let docker = format!("docker run --cpuset-cpus 0-{} …", online.saturating_sub(1));
        let mend = host.mend("resources: {limits: {cpu: 8}} in the pod, or another node", &docker, &all);
        Check::good("cores", found)
            .figure("allowed", allowed)
            .figure("online", online)
            .poor_if(
                allowed * 4 < online,
                "all workers and the trainer share these few; launchers such as `srun` and `taskset` hand that on",
                mend,
            )
            .poor_if(allowed == 1, "nothing computes beside the training loop", "a machine of two cores or more")
    }

    /// Checks the processor time that control groups allow, if they limit it.
    fn quota(&self, host: &Host) -> Option<Check> {
        let group = host.machine.cpu_group();
        let cores = group.cores?;
        let found = format!(
            "time of {cores:.1} of {}; held up in {:.1} % of the periods so far",
            plural(self.allowed, "core"),
            100.0 * group.held_up
        );
        let docker = format!("docker update --cpus {} CONTAINER", self.allowed);
        let machine = "systemctl set-property UNIT CPUQuota=";
        let mend = host.mend("a higher `resources.limits.cpu` in the pod, or none", &docker, machine);
        let check = Check::good("core time", found).figure("cores", cores).figure("held_up", group.held_up);
        let hurts =
            "threads stop for up to a tenth of a second at a time, as soon as all of them together have used this up";
        Some(check.poor_if(group.held_up >= HELD_UP, hurts, mend.clone()).poor_if(
            cores < 1.0,
            "a worker and the trainer take turns on less than one core",
            mend,
        ))
    }
}

/// Counts the numbers of a list such as `0-3,8`.
fn counted(list: &str) -> Option<u64> {
    let count = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u64, u64) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        Some(last.checked_sub(first)? + 1)
    };
    list.trim().split(',').map(count).sum()
}

/// Checks whether other programs use the processors.
fn busy(host: &Host) -> Option<Check> {
    let share = host.pressure("cpu")?;
    let check = Check::good("other work", format!("threads waited for a core in {share:.0} % of the last minute"));
    Some(check.figure("waiting", share / 100.0).poor_if(
        share >= BUSY,
        "figures measured now are too low, and `tune` decides by them",
        "ps -eo pcpu,pid,comm --sort -pcpu | head",
    ))
}

/// Checks the clock that measures all waits.
fn clock(host: &Host) -> Option<Check> {
    let folder = "/sys/devices/system/clocksource/clocksource0";
    let clock = host.machine.text(format!("{folder}/current_clocksource"))?;
    let others = host.machine.text(format!("{folder}/available_clocksource")).unwrap_or_default();
    let quick = QUICK_CLOCKS.into_iter().find(|quick| others.split(' ').any(|other| other == *quick));
    let mend = match quick {
        Some(quick) => format!("echo {quick} | sudo tee {folder}/current_clocksource"),
        None => "another type of machine: this one offers no other clock".to_owned(),
    };
    let check = Check::good("clock", clock.clone()).figure("source", clock.clone());
    let hurts =
        "each look at it calls the kernel, which takes a microsecond, and stages look several times per element";
    Some(check.poor_if(!QUICK_CLOCKS.contains(&clock.as_str()), hurts, mend))
}

#[cfg(test)]
mod tests {
    use super::super::check::Health;
    use super::super::host::tests::host;
    use super::*;

    const ONLINE: (&str, &str) = ("/sys/devices/system/cpu/online", "0-63\n");

    fn of(files: &[(&str, &str)], what: &str) -> Option<Check> {
        let (_folder, host) = host(files);
        checks(&host).into_iter().find(|check| check.what == what)
    }

    #[test]
    fn lists_of_cores_are_counted() {
        for (list, count) in [("0-63", Some(64)), ("0", Some(1)), ("0-3,8,10-11\n", Some(7)), ("", None), ("3-1", None)]
        {
            assert_eq!(counted(list), count, "{list}");
        }
    }

    #[test]
    fn a_process_that_may_use_few_cores_is_told_how_to_get_the_others() {
        let few = of(&[ONLINE, ("/proc/self/status", "Name:\tx\nCpus_allowed_list:\t0-7\n")], "cores").unwrap();
        assert_eq!((few.health, few.found.as_str()), (Health::Poor, "8 of 64 cores that are online"));
        assert_eq!(few.mend.as_deref(), Some("taskset -a -cp 0-63 $$"));
        let half = of(&[ONLINE, ("/proc/self/status", "Cpus_allowed_list:\t0-31\n")], "cores").unwrap();
        assert_eq!((half.health, half.mend), (Health::Good, None));
        let one = [("/sys/devices/system/cpu/online", "0"), ("/proc/self/status", "Cpus_allowed_list:\t0\n")];
        assert!(of(&one, "cores").unwrap().hurts.unwrap().starts_with("nothing computes beside"));
    }

    #[test]
    fn a_quota_hurts_where_threads_were_held_up() {
        let group = |stat: &'static str| {
            [
                ("/proc/self/status", "Cpus_allowed_list:\t0-7\n"),
                ("/proc/self/mountinfo", "31 22 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
                ("/proc/self/cgroup", "0::/\n"),
                ("/sys/fs/cgroup/cpu.max", "150000 100000\n"),
                ("/sys/fs/cgroup/cpu.stat", stat),
                ("/.dockerenv", ""),
            ]
        };
        let held = of(&group("nr_periods 1000\nnr_throttled 340\n"), "core time").unwrap();
        assert_eq!(held.found, "time of 1.5 of 8 cores; held up in 34.0 % of the periods so far");
        assert_eq!((held.health, held.mend.as_deref()), (Health::Poor, Some("docker update --cpus 8 CONTAINER")));
        assert_eq!(of(&group("nr_periods 1000\nnr_throttled 3\n"), "core time").unwrap().health, Health::Good);
        assert_eq!(of(&[ONLINE], "core time"), None);
    }

    #[test]
    fn slow_clocks_and_busy_machines_are_told() {
        let folder = "/sys/devices/system/clocksource/clocksource0";
        let (now, all) = (format!("{folder}/current_clocksource"), format!("{folder}/available_clocksource"));
        let slow = of(&[(&now, "hpet\n"), (&all, "tsc hpet acpi_pm \n")], "clock").unwrap();
        assert_eq!(slow.mend.unwrap(), format!("echo tsc | sudo tee {now}"));
        assert_eq!(of(&[(&now, "tsc\n")], "clock").unwrap().health, Health::Good);
        let busy = of(&[("/proc/pressure/cpu", "some avg10=0.00 avg60=63.10 avg300=0.00 total=1\n")], "other work");
        assert_eq!(busy.unwrap().health, Health::Poor);
    }
}
