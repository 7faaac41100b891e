//! However a run ends, nothing of it is left: no process, descriptor, file or shared memory.
#![cfg(all(feature = "workers", target_os = "linux"))]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use gristmill::dataset::map::Range;
use gristmill::workers::{MpOptions, mp_prefetch};
use gristmill::{Error, IterDataset, MapDatasetExt, Result};
use serde::{Deserialize, Serialize};

use crate::children::children;

const MIB: u64 = 1 << 20;

/// What happens at element 500; or at all from 3 on, after which there is a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Event {
    Nothing,
    Error,
    Abort,
    Sleep(PathBuf),
    Loop(PathBuf),
}

fn pipeline(event: Event) -> Result<impl IterDataset<Item = Vec<i64>>> {
    let element = move |x: i64| match &event {
        Event::Error if x == 500 => Err(Error::data("the five hundredth")),
        Event::Abort if x == 500 => std::process::abort(),
        Event::Sleep(file) if x >= 3 => {
            std::fs::write(file, "").unwrap();
            loop {
                // Until it is killed.
                std::thread::sleep(Duration::from_secs(600));
            }
        }
        Event::Loop(file) if x >= 3 => {
            std::fs::write(file, "").unwrap();
            loop {
                std::hint::spin_loop();
            }
        }
        _ => Ok(vec![x; 200]),
    };
    Ok(Range::new(0, 2000).try_map(element).to_iter())
}

fn options() -> MpOptions {
    MpOptions::auto().workers(2).threads_per_worker(2).worker_heap(64 * MIB).ram_budget(300 * MIB).retries(1)
}

/// What this process has open and shares: descriptors, mappings of shared memory, children, threads of ours.
#[derive(Debug, PartialEq)]
struct Residue {
    descriptors: usize,
    slabs: usize,
    children: Vec<u32>,
    shared_memory: usize,
}

fn residue() -> Residue {
    let count = |dir: &str| std::fs::read_dir(dir).map_or(0, |entries| entries.count());
    // Other programs of the machine have files there, too.
    let ours = |dir: &str| {
        let files = std::fs::read_dir(dir).into_iter().flatten().flatten();
        files.filter(|file| file.file_name().to_string_lossy().contains("gristmill")).count()
    };
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    Residue {
        descriptors: count("/proc/self/fd"),
        slabs: maps.lines().filter(|line| line.contains("memfd")).count(),
        children: children(),
        shared_memory: ours("/dev/shm"),
    }
}

/// Waits for what must come, with all the patience that a crowded machine needs.
fn soon(what: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    while !what() && start.elapsed() < Duration::from_secs(30) {
        // Nothing tells that the kernel has let go of a process.
        std::thread::sleep(Duration::from_millis(5));
    }
    what()
}

#[test]
fn nothing_is_left_however_a_run_ends() {
    let run = |event| {
        let loader = mp_prefetch(pipeline, event, options()).unwrap().build().unwrap();
        loader.filter_map(Result::ok).count()
    };
    run(Event::Nothing);
    let before = residue();
    assert_eq!((before.slabs, before.children.len()), (0, 0));
    for (event, elements) in [(Event::Nothing, 2000), (Event::Error, 500), (Event::Abort, 500)] {
        assert_eq!(run(event.clone()), elements, "{event:?}");
        assert!(soon(|| residue() == before), "after {event:?}: {:?}, before {before:?}", residue());
    }
}

/// With workers that start, work, hang, or never return.
#[test]
fn a_loader_may_be_dropped_at_any_time() {
    drop(mp_prefetch(pipeline, Event::Nothing, options()).unwrap().build().unwrap());
    assert!(soon(|| children().is_empty()));
    let before = residue();
    let start = |event| mp_prefetch(pipeline, event, options()).unwrap().build().unwrap();
    for read in [0, 1, 300] {
        let mut loader = start(Event::Nothing);
        assert_eq!(loader.by_ref().take(read).map(Result::unwrap).count(), read);
        drop(loader);
        assert!(soon(|| residue() == before), "after {read}: {:?}, before {before:?}", residue());
    }
    let dir = tempfile::tempdir().unwrap();
    let [sleeping, looping] = ["sleeping", "looping"].map(|name| dir.path().join(name));
    for (event, file) in [(Event::Sleep(sleeping.clone()), sleeping), (Event::Loop(looping.clone()), looping)] {
        let loader = start(event.clone());
        assert!(soon(|| file.exists()));
        drop(loader);
        assert!(soon(|| residue() == before), "{event:?}: {:?}, before {before:?}", residue());
    }
}

/// Runs `test` of this file, which is ignored otherwise, in a process of its own, with temporary files in `dir`.
fn alone_in_a_process(test: &str, dir: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"]).env("TMPDIR", dir);
    command
}

#[test]
#[ignore = "what another test runs in a process of its own"]
fn run_once_in_each_way() {
    for event in [Event::Nothing, Event::Error, Event::Abort] {
        let loader = mp_prefetch(pipeline, event, options()).unwrap().build().unwrap();
        assert!(loader.filter_map(Result::ok).count() >= 500);
    }
}

#[test]
fn no_file_is_left_in_the_temporary_directory() {
    let dir = tempfile::tempdir().unwrap();
    let status = alone_in_a_process("ends::run_once_in_each_way", dir.path()).stdout(Stdio::null()).status().unwrap();
    assert!(status.success());
    let left: Vec<PathBuf> = dir.path().read_dir().unwrap().map(|e| e.unwrap().path()).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
#[ignore = "what another test runs in a process of its own, and kills"]
fn run_until_killed() {
    let file = std::env::temp_dir().join("looping");
    let options = options().deadline(None);
    let loader = mp_prefetch(pipeline, Event::Loop(file.clone()), options).unwrap().build().unwrap();
    assert!(soon(|| file.exists() && children().len() == 2));
    println!("\nworkers: {}", children().iter().map(u32::to_string).collect::<Vec<_>>().join(" "));
    assert_eq!(loader.count(), 0, "this is killed first");
}

/// It must not outlive the test, however that ends.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn no_worker_outlives_a_parent_that_is_killed() {
    for signal in ["-KILL", "-TERM"] {
        let dir = tempfile::tempdir().unwrap();
        let parent = alone_in_a_process("ends::run_until_killed", dir.path()).stdout(Stdio::piped()).spawn().unwrap();
        let mut parent = Killed(parent);
        let mut lines = BufReader::new(parent.0.stdout.take().unwrap()).lines().map(Result::unwrap);
        let workers = lines.find_map(|line| line.strip_prefix("workers: ").map(str::to_owned)).unwrap();
        let workers: Vec<&str> = workers.split_whitespace().collect();
        assert_eq!(workers.len(), 2);
        let runs = |pid: &&str| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
        };
        assert!(workers.iter().all(runs));
        assert!(Command::new("kill").args([signal, &parent.0.id().to_string()]).status().unwrap().success());
        parent.0.wait().unwrap();
        assert!(soon(|| !workers.iter().any(runs)), "{signal}: {workers:?}");
    }
}
