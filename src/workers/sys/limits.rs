//! Limits that a worker sets on itself before user code runs.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};

use super::usage;

/// Makes the kernel's out-of-memory killer choose this process before the trainer.
///
/// Raising the score needs no rights. Nothing else depends on it if it fails (no `/proc`).
pub(crate) fn offer_to_oom_killer() {
    let _ = std::fs::write("/proc/self/oom_score_adj", "900");
}

/// Leaves shared memory out of core files. Otherwise each crashed worker's file would contain the whole slab.
pub(crate) fn keep_shared_memory_out_of_cores() {
    const SHARED: u64 = 1 << 1 | 1 << 3;
    let path = "/proc/self/coredump_filter";
    let filter = std::fs::read_to_string(path).ok();
    if let Some(filter) = filter.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()) {
        let _ = std::fs::write(path, format!("{:#x}", filter & !SHARED));
    }
}

/// Caps private writable memory: heap, thread stacks and private mappings, but not shared memory or mapped files.
///
/// Sets the hard limit too, so that nothing in this process can raise the cap again.
pub(crate) fn cap_data(bytes: u64) -> io::Result<()> {
    let hard = getrlimit(Resource::Data).maximum;
    let bytes = hard.map_or(bytes, |hard| hard.min(bytes));
    Ok(setrlimit(Resource::Data, Rlimit { current: Some(bytes), maximum: Some(bytes) })?)
}

/// Returns the cap of this process, or `None` if it has no cap.
pub(crate) fn data_cap() -> Option<u64> {
    getrlimit(Resource::Data).current
}

/// Lowers that cap for another process. Returns true if the process is below the cap, and so stays below it.
///
/// A process that already uses more is left unchanged.
pub(crate) fn lower_data_cap(pid: u32, bytes: u64) -> io::Result<bool> {
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
    if usage::memory(pid)?.data > bytes {
        return Ok(false);
    }
    prlimit(Some(number), Resource::Data, Rlimit { current: Some(bytes), maximum: Some(bytes) })?;
    // A thread that is growing memory under the old cap holds the memory map's lock. Reading the map waits for the
    // lock.
    std::fs::read(format!("/proc/{pid}/smaps_rollup"))?;
    Ok(usage::memory(pid)?.data <= bytes)
}

/// Sets the name that `ps` and `top` show.
pub(crate) fn name_process() {
    let _ = rustix::thread::set_name(c"gristmill");
}

/// Takes the descriptor of standard input and leaves an empty input in its place.
///
/// The returned descriptor is closed on `exec`, so children of this process do not inherit it.
pub(crate) fn take_stdin() -> io::Result<OwnedFd> {
    let stdin = rustix::stdio::stdin();
    let taken = rustix::io::fcntl_dupfd_cloexec(stdin, 3)?;
    let empty = rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(&empty)?;
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cap_of_another_process_is_lowered_where_it_is_below() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        // A new process has no private memory until its program is loaded.
        while usage::memory(child.id()).unwrap().data == 0 {
            std::thread::yield_now();
        }
        let cap = |bytes| lower_data_cap(child.id(), bytes);
        let limit = || std::fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap();
        let data = || limit().lines().find(|line| line.starts_with("Max data size")).unwrap().to_owned();
        assert!(cap(123 << 20).unwrap());
        assert!(data().contains(" 128974848 "), "{}", data());
        // The process already uses more than 1 byte.
        assert!(!cap(1).unwrap());
        assert!(data().contains(" 128974848 "), "{}", data());
        assert!(lower_data_cap(u32::MAX, 1 << 30).is_err());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
