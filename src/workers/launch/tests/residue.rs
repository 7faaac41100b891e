use std::collections::BTreeSet;
use std::path::PathBuf;

use super::*;

fn links(pid: u32) -> BTreeSet<PathBuf> {
    let fds = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    fds.filter_map(|fd| std::fs::read_link(fd.unwrap().path()).ok()).collect()
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

/// Pids of this process' children, zombies too.
fn children() -> Vec<u32> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<_>>()).collect()
}

/// Files of shared memory by the name of ours; other programs of the machine have files there, too.
fn shared_memory() -> usize {
    let files = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    files.filter(|file| file.file_name().to_string_lossy().contains("gristmill")).count()
}

#[test]
fn nothing_is_left_of_fifty_workers() {
    scenario(|()| {
        let temp = tempfile::tempdir().unwrap();
        // SAFETY: the scene's other thread only waits.
        unsafe { std::env::set_var("TMPDIR", temp.path()) };
        drop(echoing(0));
        // Threads of the first worker may still be ending.
        let before = (descriptors(), threads());
        let shared = shared_memory();
        for i in 0..50 {
            let (worker, events) = echoing(i);
            assert_echoes(&worker, &events, i, i);
            match i % 3 {
                0 => assert!(worker.stop(PATIENCE)?.is_clean()),
                1 => worker.kill(),
                _ => drop(worker),
            }
        }
        assert!(soon(|| descriptors() <= before.0 && threads() <= before.1));
        assert_eq!(children(), Vec::<u32>::new());
        assert_eq!(temp.path().read_dir().unwrap().count(), 0);
        assert_eq!(shared_memory(), shared);
        Ok(())
    });
}

/// Lists what the descriptors of a process that stay open on `exec` lead to.
fn inheritable(pid: u32) -> BTreeSet<PathBuf> {
    const CLOEXEC: u32 = 0o2_000_000;
    let fds = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().map(|fd| fd.unwrap());
    let stays = |fd: &std::fs::DirEntry| {
        let info = std::fs::read_to_string(format!("/proc/{pid}/fdinfo/{}", fd.file_name().display())).ok()?;
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
        Some(u32::from_str_radix(flags.trim(), 8).unwrap() & CLOEXEC == 0)
    };
    fds.filter(|fd| stays(fd) == Some(true)).map(|fd| std::fs::read_link(fd.path()).unwrap()).collect()
}

#[test]
fn a_worker_shares_no_descriptor_with_its_parent() {
    scenario(|()| {
        let before = inheritable(std::process::id());
        let _others = (echoing(0), echoing(1));
        let (worker, _events) = echoing(2);
        assert_eq!(inheritable(std::process::id()), before);
        assert_eq!(inheritable(worker.pid()), before);
        let mut shared = &links(worker.pid()) & &links(std::process::id());
        // All that is no file has one name.
        shared.retain(|link| !before.contains(link) && !link.starts_with("anon_inode:[pidfd]"));
        // The two ends of a connection have names of their own.
        assert!(shared.is_empty(), "{shared:?}");
        Ok(())
    });
}

#[test]
fn a_dead_worker_is_an_error_where_sigpipe_kills() {
    scenario(|()| {
        // SAFETY: the default disposition is no handler.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
        let (worker, events) = echoing(0);
        worker.kill();
        assert_eq!(next_exit(&events).to_string(), "killed by its parent");
        for _ in 0..3 {
            assert!(worker.send(&task(0)).is_err());
        }
        // None is left pending either.
        let mut pending = std::mem::MaybeUninit::uninit();
        // SAFETY: the set is written before it is read.
        let pending = unsafe {
            libc::sigpending(pending.as_mut_ptr());
            libc::sigismember(pending.as_ptr(), libc::SIGPIPE)
        };
        assert_eq!(pending, 0);
        Ok(())
    });
}

#[test]
fn an_end_that_somebody_else_saw_is_an_end() {
    scenario(|()| {
        // From now on the kernel reaps children by itself.
        // SAFETY: ignoring a signal is no handler.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
        let (worker, events) = echoing(0);
        worker.kill();
        let exit = next_exit(&events);
        assert_eq!(exit.status, crate::workers::sys::process::Status::Unknown);
        assert_eq!(worker.stop(PATIENCE)?, exit);
        let (worker, events) = echoing(0);
        assert_echoes(&worker, &events, 1, 0);
        Ok(())
    });
}

#[test]
fn without_descriptors_a_start_is_an_error_and_leaves_nothing() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    scenario(|()| {
        let before = descriptors();
        let full = getrlimit(Resource::Nofile);
        let limited = |room: usize| {
            setrlimit(Resource::Nofile, Rlimit { current: Some((before + room) as u64), ..full }).unwrap();
            let result = begin(adder, 0, echo, &Options::default(), &unbounded().0);
            setrlimit(Resource::Nofile, full).unwrap();
            result
        };
        let results: Vec<_> = (0..40).map(|room| limited(room).map(drop)).collect();
        assert!(results[..10].iter().all(|r| r.as_ref().is_err_and(|e| e.to_string().contains("Too many open files"))));
        assert!(results[30..].iter().all(Result::is_ok), "{:?}", &results[30..]);
        assert!(results.iter().flat_map(|r| r.as_ref().err()).all(|e| e.kind() == crate::ErrorKind::Worker));
        assert_eq!((descriptors(), children()), (before, Vec::new()));
        Ok(())
    });
}

#[test]
fn many_start_at_once() {
    scenario(|()| {
        let before = descriptors();
        std::thread::scope(|scope| {
            for i in 0..8 {
                scope.spawn(move || {
                    let (worker, events) = echoing(i);
                    assert_echoes(&worker, &events, i, i);
                    assert!(worker.stop(PATIENCE).unwrap().is_clean());
                });
            }
        });
        assert_eq!((descriptors(), children()), (before, Vec::new()));
        Ok(())
    });
}

/// Starts a worker that spins in its factory, says its pid, and waits.
fn parent_of_a_spinner(fork: bool, session: Session) -> Result<()> {
    let spin = |parent: u32| -> Result<u64> {
        std::fs::read_dir(format!("/proc/{parent}")).unwrap();
        loop {
            std::hint::spin_loop();
        }
    };
    let (worker, _events) = launch(spin, std::process::id(), echo);
    let mut forked = 0;
    if fork {
        // SAFETY: the child holds what its parent held, sleeps, and leaves.
        unsafe {
            forked = libc::fork();
            if forked == 0 {
                // Longer than `soon` waits for the spinner. It is killed by the test.
                libc::sleep(100);
                libc::_exit(0);
            }
        }
    }
    session.send(FromWorker::Done(done(worker.pid().into(), forked.cast_unsigned().into())))?;
    // It is killed before.
    std::thread::sleep(2 * PATIENCE);
    Ok(())
}

#[test]
fn no_worker_outlives_its_parent() {
    use rustix::process::{Pid, Signal, kill_process};
    for (fork, signal) in [(false, Signal::KILL), (false, Signal::TERM), (false, Signal::ABORT), (true, Signal::KILL)] {
        let (middle, events) = launch(|fork: bool| Ok(fork), fork, parent_of_a_spinner);
        let FromWorker::Done(ids) = next_message(&events) else { panic!("no pids") };
        let spinner = ids.id as u32;
        assert!(!is_gone(spinner));
        kill_process(Pid::from_raw(middle.pid().cast_signed()).unwrap(), signal).unwrap();
        assert!(soon(|| is_gone(spinner)), "{signal:?}, forked: {fork}");
        if fork {
            kill_process(Pid::from_raw(ids.evaluated.indices as i32).unwrap(), Signal::KILL).unwrap();
        }
    }
}

/// A process that is stopped cannot see that its parent has gone.
#[test]
fn a_stopped_worker_does_not_outlive_its_parent() {
    use rustix::process::{Pid, Signal, kill_process};
    let (middle, events) = launch(|fork: bool| Ok(fork), false, parent_of_a_spinner);
    let FromWorker::Done(ids) = next_message(&events) else { panic!("no pids") };
    let spinner = ids.id as u32;
    kill_process(Pid::from_raw(spinner.cast_signed()).unwrap(), Signal::STOP).unwrap();
    kill_process(Pid::from_raw(middle.pid().cast_signed()).unwrap(), Signal::KILL).unwrap();
    assert!(soon(|| is_gone(spinner)));
}

/// The kernel ends a worker with the thread that started it.
#[test]
fn a_worker_outlives_the_thread_that_asked_for_it() {
    scenario(|()| {
        let (worker, events) = std::thread::spawn(|| echoing(3)).join().unwrap();
        for id in 0..50 {
            assert_echoes(&worker, &events, id, 3);
            // The kernel may take a moment to notice the end of a thread.
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    });
}

#[test]
fn a_fork_of_the_parent_leaves_the_worker_alone() {
    scenario(|()| {
        let (worker, events) = echoing(0);
        // SAFETY: the child touches the worker's handle, takes no lock that another thread may hold, and leaves.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let refused = worker.send(&task(0)).is_err();
            worker.kill();
            drop(worker);
            // SAFETY: leaving is always allowed.
            unsafe { libc::_exit(if refused { 0 } else { 1 }) };
        }
        let child = rustix::process::Pid::from_raw(child).unwrap();
        let (_, status) =
            rustix::process::waitpid(Some(child), rustix::process::WaitOptions::empty()).unwrap().unwrap();
        assert_eq!(status.exit_status(), Some(0));
        assert_echoes(&worker, &events, 1, 0);
        assert!(worker.stop(PATIENCE)?.is_clean());
        Ok(())
    });
}
