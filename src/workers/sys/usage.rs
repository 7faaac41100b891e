//! Memory and CPU time of a process, read from outside.

#![allow(unsafe_code, reason = "clocks of other processes are not in std")]

use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::time::Duration;

/// Memory of a process in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    /// Anonymous memory in RAM: heap and stacks.
    pub(crate) anonymous: u64,
    /// Shared memory in RAM: the part of the slab that this process has touched.
    pub(crate) shared: u64,
    /// Private writable address space, in RAM or not. The heap limit caps this figure.
    pub(crate) data: u64,
}

/// Reads the present memory use of `pid`. Cheap: about 20 us.
pub(crate) fn memory(pid: u32) -> io::Result<Memory> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))?;
    Ok(Memory { anonymous: kib(&text, "RssAnon:"), shared: kib(&text, "RssShmem:"), data: kib(&text, "VmData:") })
}

/// Returns the anonymous memory of `pid`, with pages shared by several processes split among them.
///
/// The kernel walks the page tables, which takes milliseconds for gigabytes.
#[cfg(test)]
pub(crate) fn anonymous_share(pid: u32) -> io::Result<u64> {
    Ok(kib(&fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?, "Pss_Anon:"))
}

/// Returns the anonymous and shared memory of `pid` and all its descendants, with shared pages split among their
/// processes.
///
/// Missing processes and figures count as 0. The kernel walks the page tables, which takes milliseconds for gigabytes.
pub(crate) fn tree_share(pid: u32) -> u64 {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let own = kib(&rollup, "Pss_Anon:") + kib(&rollup, "Pss_Shmem:");
    children(pid).into_iter().map(tree_share).fold(own, u64::saturating_add)
}

fn children(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()).collect()
}

/// Returns the CPU time of all threads of `pid` since it started.
pub(crate) fn cpu_time(pid: u32) -> io::Result<Duration> {
    let pid = libc::pid_t::try_from(pid).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut clock = MaybeUninit::uninit();
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the clock's number is written when the call succeeds, and read only then.
    let clock = unsafe {
        match libc::clock_getcpuclockid(pid, clock.as_mut_ptr()) {
            0 => clock.assume_init(),
            e => return Err(io::Error::from_raw_os_error(e)),
        }
    };
    // SAFETY: the time is written when the call succeeds, and read only then.
    let time = unsafe {
        match libc::clock_gettime(clock, time.as_mut_ptr()) {
            0 => time.assume_init(),
            _ => return Err(io::Error::last_os_error()),
        }
    };
    Ok(Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0)))
}

/// Returns the number after `name` in a file of `name: number kB` lines, in bytes; 0 if the name is missing.
fn kib(text: &str, name: &str) -> u64 {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse::<u64>().ok());
    value.unwrap_or(0).saturating_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found_by_its_whole_name() {
        let text = "VmDataX:\t 9 kB\nVmData:\t     12 kB\nRssAnon: x kB\n";
        assert_eq!(kib(text, "VmData:"), 12 * 1024);
        assert_eq!(kib(text, "RssAnon:"), 0);
        assert_eq!(kib(text, "Pss_Anon:"), 0);
    }

    /// Shell with a child process that holds 16 MiB. Dropping the value ends both processes.
    ///
    /// The tests measure a separate process, because other tests allocate and free in the test process.
    struct Holder(std::process::Child);

    impl Holder {
        fn start() -> Self {
            let script = "(x=$(head -c 16777216 /dev/zero | tr '\\0' a); echo; sleep 60; :) & wait";
            let mut command = std::process::Command::new("sh");
            let mut child = command.args(["-c", script]).stdout(std::process::Stdio::piped()).spawn().unwrap();
            let mut line = String::new();
            std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut line).unwrap();
            Self(child)
        }

        /// Returns the pid of the subshell, which holds 16 MiB.
        fn below(&self) -> u32 {
            *children(self.0.id()).first().unwrap()
        }
    }

    impl Drop for Holder {
        fn drop(&mut self) {
            let below = children(self.0.id());
            below.iter().flat_map(|&pid| [children(pid), vec![pid]].concat()).chain([self.0.id()]).for_each(|pid| {
                let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            });
            let _ = self.0.wait();
        }
    }

    #[test]
    fn touched_memory_and_spent_time_show() {
        let holder = Holder::start();
        let (shell, below) = (memory(holder.0.id()).unwrap(), memory(holder.below()).unwrap());
        assert!(below.anonymous >= 16 << 20 && below.data >= 16 << 20, "{below:?}");
        assert!(shell.anonymous < 16 << 20, "{shell:?}");
        assert!(anonymous_share(holder.below()).unwrap() >= 16 << 20);
        assert!(cpu_time(holder.below()).unwrap() > Duration::ZERO);
    }

    #[test]
    fn what_a_process_has_started_counts_with_it() {
        let holder = Holder::start();
        assert!(tree_share(holder.0.id()) >= 16 << 20, "{}", tree_share(holder.0.id()));
        assert!(children(holder.0.id()).len() == 1 && tree_share(u32::MAX) == 0);
    }

    #[test]
    fn no_process_has_no_usage() {
        assert!(memory(u32::MAX).is_err() && anonymous_share(u32::MAX).is_err() && cpu_time(u32::MAX).is_err());
        assert!(cpu_time(0x7fff_fff0).is_err());
    }
}
