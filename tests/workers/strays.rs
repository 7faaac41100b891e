//! Workers write where they must not, and no element has other data for it.
#![cfg(all(feature = "workers", target_os = "linux"))]
#![allow(unsafe_code, reason = "workers that write through wild pointers")]

use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use gristmill::dataset::map::Range;
use gristmill::workers::{MpOptions, mp_prefetch};
use gristmill::{Array, Element, ErrorKind, IterDataset, IterDatasetExt, MapDatasetExt, Result};
use rustix::fs::{FallocateFlags, fallocate, fstat};
use rustix::mm::{MapFlags, ProtFlags};
use serde::{Deserialize, Serialize};

const MIB: u64 = 1 << 20;
const LEN: i64 = 600;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Stray {
    /// Over every mapping of shared memory, from its start to its end.
    Mappings,
    /// Holes, writes and mappings, through every descriptor of a memory file.
    Descriptors,
    /// Over every mapping of shared memory, in a process that the worker forks.
    Forked,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Config {
    stray: Stray,
    /// Elements at which a worker goes astray.
    at: Vec<i64>,
    /// Where it is noted who has done so already; without it they do each time.
    once: Option<PathBuf>,
}

/// Elements of 64 KiB, so that much of the shared memory is in use.
fn pipeline(config: Config) -> Result<impl IterDataset<Item = Element>> {
    let element = move |x: i64| {
        let first = |dir: &PathBuf| std::fs::File::create_new(dir.join(x.to_string())).is_ok();
        if config.at.contains(&x) && config.once.as_ref().is_none_or(first) {
            go_astray(config.stray);
        }
        Element::new().with("x", Array::from_vec(vec![x; 8192]))
    };
    Ok(Range::new(0, LEN).shuffle(3).map(element).to_iter())
}

fn go_astray(stray: Stray) {
    match stray {
        Stray::Mappings => scribble(),
        Stray::Descriptors => descriptors().into_iter().for_each(spoil),
        // SAFETY: the child writes and leaves.
        Stray::Forked => match unsafe { libc::fork() } {
            0 => {
                scribble();
                // SAFETY: leaving is always allowed.
                unsafe { libc::_exit(0) }
            }
            child => {
                let child = rustix::process::Pid::from_raw(child).unwrap();
                rustix::process::waitpid(Some(child), rustix::process::WaitOptions::empty()).unwrap();
            }
        },
    }
}

fn scribble() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    for line in maps.lines().filter(|line| line.split_whitespace().nth(1).is_some_and(|access| access.ends_with('s'))) {
        let (start, end) = line.split_whitespace().next().unwrap().split_once('-').unwrap();
        let [start, end] = [start, end].map(|text| usize::from_str_radix(text, 16).unwrap());
        for at in (start..end).step_by(512) {
            // SAFETY: none; that it ends the process before it does harm is what shall be seen.
            unsafe { std::ptr::with_exposed_provenance_mut::<u64>(at).write_volatile(u64::MAX) };
        }
    }
}

/// Descriptors of memory files.
fn descriptors() -> Vec<i32> {
    let all = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let memory = all.filter(|fd| std::fs::read_link(fd.path()).is_ok_and(|to| to.starts_with("/memfd:")));
    memory.filter_map(|fd| fd.file_name().to_str()?.parse().ok()).collect()
}

fn spoil(fd: i32) {
    // SAFETY: it is open: nothing in this process closes it.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    let len = fstat(fd).unwrap().st_size as usize;
    let _ = rustix::io::pwrite(fd, &vec![0xee; len], 0);
    // SAFETY: the system chooses the address, and the mapping is never used otherwise.
    let map = unsafe {
        rustix::mm::mmap(std::ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, fd, 0)
    };
    if let Ok(map) = map {
        // SAFETY: just mapped, and so long.
        unsafe { map.cast::<u8>().write_bytes(0xdd, len) };
    }
    let _ = fallocate(fd, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 0, len as u64);
}

fn run(config: Config) -> Result<Vec<Element>> {
    let options = MpOptions::auto().workers(2).threads_per_worker(2).worker_heap(64 * MIB).ram_budget(300 * MIB);
    // All are kept, so that what they are is seen at the end.
    mp_prefetch(pipeline, config, options.retries(2))?.build()?.collect()
}

fn inline() -> Vec<Element> {
    pipeline(Config { stray: Stray::Mappings, at: Vec::new(), once: None }).unwrap().collect().unwrap()
}

#[test]
fn writes_that_stray_change_no_element() {
    let expected = inline();
    for stray in [Stray::Mappings, Stray::Descriptors, Stray::Forked] {
        let dir = tempfile::tempdir().unwrap();
        let config = Config { stray, at: (0..6).map(|n| n * 100 + 7).collect(), once: Some(dir.path().to_owned()) };
        match run(config) {
            Ok(got) => assert!(got == expected, "{stray:?}: other data"),
            // What a worker handed over before is its own, and can only be found to have changed.
            Err(error) => {
                assert!(matches!(stray, Stray::Mappings), "{stray:?}: {error}");
                let words = error.to_string();
                assert!(words.contains("wrote to memory of elements that it had handed over"), "{error}");
                assert!(words.starts_with("worker ") && words.contains("(pid "), "{error}");
            }
        }
    }
}

#[test]
fn a_worker_that_strays_each_time_is_named_with_its_element() {
    let error = run(Config { stray: Stray::Mappings, at: vec![7], once: None }).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Worker);
    let words = error.to_string();
    assert!(words.contains("SIGSEGV") || words.contains("wrote to memory"), "{error}");
    assert!(words.contains("worker ") && words.contains("pid "), "{error}");
}
