use super::*;
use crate::error::{Error, ErrorKind, Told};
use crate::workers::sys::process::Status;

/// A worker that fails before it is ready: how it ends, and what it said.
fn end_of<D>(factory: fn(u64) -> Result<D>, serve: fn(D, Session) -> Result<()>) -> (Option<Told>, Exit) {
    let (_worker, events) = launch(factory, 0, serve);
    match next(&events) {
        What::Message(FromWorker::Failed(failure)) => (Some(failure), next_exit(&events)),
        What::Message(other) => panic!("{other:?}"),
        What::Exited(exit) => (None, exit),
    }
}

fn idle(_: u64, session: Session) -> Result<()> {
    while session.recv()?.is_some() {}
    Ok(())
}

#[test]
fn a_factory_that_refuses_is_an_error_with_its_words() {
    let refuse = |_: u64| -> Result<u64> { Err(Error::config("vocabulary is 0").help("1 or more").path("a.json")) };
    let (failure, exit) = end_of(refuse, idle);
    let error = failure.unwrap().into_error();
    assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Config, "a.json: vocabulary is 0"));
    assert_eq!(error.help_text(), Some("1 or more"));
    assert_eq!(exit.status, Status::Code(62));
}

#[test]
fn words_without_end_are_cut() {
    let refuse = |_: u64| -> Result<u64> { Err(Error::data("é".repeat(1 << 20))) };
    let (failure, _) = end_of(refuse, idle);
    let message = failure.unwrap().into_error().to_string();
    assert!(message.ends_with("é…") && message.len() < 20_000);
}

#[test]
fn a_panic_is_an_error_with_its_words() {
    let (failure, exit) = end_of(|x: u64| -> Result<u64> { panic!("index {x} is out of everything") }, idle);
    let error = failure.unwrap().into_error();
    assert_eq!(error.to_string(), "worker panicked: index 0 is out of everything");
    assert_eq!((error.kind(), exit.status), (ErrorKind::Worker, Status::Code(62)));
}

#[test]
fn a_panic_while_serving_is_an_error_with_its_words() {
    let (failure, _) = end_of(adder, |_, _| std::panic::panic_any(5));
    assert_eq!(failure.unwrap().into_error().to_string(), "worker panicked: a value that is not text");
}

#[test]
fn the_ways_to_die_are_told_apart() {
    let (_, exit) = end_of(|_| -> Result<u64> { std::process::abort() }, idle);
    assert_eq!(exit.to_string(), "killed by signal 6 (SIGABRT)");
    let (_, exit) = end_of(|_| -> Result<u64> { std::process::exit(0) }, idle);
    assert_eq!(exit.to_string(), "exit code 0 before the request to stop");
    let (_, exit) = end_of(adder, |_, _| std::process::exit(9));
    assert_eq!(exit.to_string(), "exit code 9 before the request to stop");
    let stray = |_| -> Result<u64> {
        // SAFETY: none; that it ends the process is what shall be seen.
        Ok(unsafe { std::ptr::without_provenance::<u64>(8).read_volatile() })
    };
    let (_, exit) = end_of(stray, idle);
    assert_eq!(exit.to_string(), "killed by signal 11 (SIGSEGV)");
    let raise = |_| -> Result<u64> {
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TERM).unwrap();
        Ok(0)
    };
    let (_, exit) = end_of(raise, idle);
    assert_eq!(exit.to_string(), "killed by signal 15 (SIGTERM)");
    assert!(!exit.is_clean());
}

#[test]
fn a_stack_overflow_is_a_segmentation_fault() {
    fn deep(n: u64) -> Result<u64> {
        let frame = std::hint::black_box([n; 64]);
        if frame[0] == u64::MAX {
            return Ok(0);
        }
        Ok(deep(n + 1)? + frame[n as usize % 64])
    }
    let (_, exit) = end_of(deep, idle);
    assert_eq!(exit.to_string(), "killed by signal 11 (SIGSEGV)");
}

#[test]
fn a_wild_allocation_fails_in_the_worker_alone() {
    fn limited<D>(factory: fn(u64) -> Result<D>, serve: fn(D, Session) -> Result<()>) -> (Worker, Events) {
        let (tell, events) = unbounded();
        let options = Options { heap_limit: Some(64 << 20), ..Options::default() };
        (begin(factory, 0, serve, &options, &tell).unwrap(), events)
    }
    let (_worker, events) = limited(|_| Ok(vec![1u8; 1 << 30]), |_, _| Ok(()));
    let exit = next_exit(&events);
    assert_eq!(exit.to_string(), "killed by signal 6 (SIGABRT)");
    assert!(exit.advice().unwrap().contains("heap limit"));

    // Inside the limit it serves, an allocation that may fail is an error, and the limit cannot be raised.
    fn careful(_: u64) -> Result<u64> {
        assert!(Vec::<u8>::new().try_reserve_exact(1 << 30).is_err());
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let limit = Some(64 << 20);
        assert_eq!(getrlimit(Resource::Data), Rlimit { current: limit, maximum: limit });
        let raised = Rlimit { current: limit, maximum: None };
        // Root may raise it.
        assert!(setrlimit(Resource::Data, raised).is_err() || rustix::process::geteuid().is_root());
        Ok(vec![1u8; 16 << 20].len() as u64)
    }
    let (worker, events) = limited(careful, echo);
    assert!(matches!(next_message(&events), FromWorker::Ready(_)));
    assert_echoes(&worker, &events, 1, 16 << 20);
}

#[test]
fn an_endless_loop_is_killed_after_its_grace() {
    let spin = |_: u64| -> Result<u64> {
        loop {
            std::hint::spin_loop();
        }
    };
    let (worker, events) = launch(spin, 0, idle);
    let exit = worker.stop(Duration::from_millis(50)).unwrap();
    assert_eq!(exit.to_string(), "killed by its parent");
    assert!(exit.told_to_stop && exit.killed_by_us && !exit.is_clean());
    assert_eq!(next_exit(&events), exit);
}

#[test]
fn a_dropped_worker_is_gone() {
    let (worker, events) = echoing(0);
    let pid = worker.pid();
    drop(worker);
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    assert!(next_exit(&events).killed_by_us);
}

#[test]
fn a_stranger_s_kill_is_not_ours() {
    let (worker, events) = echoing(0);
    let pid = rustix::process::Pid::from_raw(worker.pid().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let exit = next_exit(&events);
    assert_eq!(exit.to_string(), "killed by signal 9 (SIGKILL)");
    assert!(exit.advice().unwrap().contains("out-of-memory"));
    worker.kill();
    let error = worker.send(&task(0)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Worker);
    assert_eq!(worker.stop(PATIENCE).unwrap(), exit);
}

#[test]
fn ctrl_c_is_the_parent_s_to_answer() {
    let (worker, events) = echoing(0);
    let pid = rustix::process::Pid::from_raw(worker.pid().cast_signed()).unwrap();
    for _ in 0..3 {
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    }
    assert_echoes(&worker, &events, 1, 0);
    assert!(worker.stop(PATIENCE).unwrap().is_clean());
}

#[test]
fn all_that_a_worker_said_comes_before_its_end() {
    fn chatter(n: u64, session: Session) -> Result<()> {
        (0..n).try_for_each(|id| session.send(FromWorker::Done(done(id, 0))))?;
        std::process::abort()
    }
    let (_worker, events) = launch(adder, 2000, chatter);
    for id in 0..2000 {
        assert_eq!(next_message(&events), FromWorker::Done(done(id, 0)));
    }
    assert_eq!(next_exit(&events).to_string(), "killed by signal 6 (SIGABRT)");
}

#[test]
fn the_end_is_noticed_while_a_child_of_the_worker_holds_its_channels() {
    fn leave_a_child(_: u64, session: Session) -> Result<()> {
        // SAFETY: the child only sleeps and leaves.
        unsafe {
            match libc::fork() {
                0 => {
                    // It is killed below.
                    libc::sleep(600);
                    libc::_exit(0)
                }
                child => session.send(FromWorker::Done(done(child.cast_unsigned().into(), 0)))?,
            }
        }
        std::process::abort()
    }
    let (_worker, events) = launch(adder, 0, leave_a_child);
    let FromWorker::Done(child) = next_message(&events) else { panic!("no child") };
    // Not by the end of the child, which takes longer than `next_exit` waits.
    assert_eq!(next_exit(&events).to_string(), "killed by signal 6 (SIGABRT)");
    let child = rustix::process::Pid::from_raw(child.id as i32).unwrap();
    rustix::process::kill_process(child, rustix::process::Signal::KILL).unwrap();
}

#[test]
fn bytes_that_are_no_message_end_the_worker() {
    fn babble(_: u64, session: Session) -> Result<()> {
        session.send(FromWorker::Ready(Ready { build_ns: 1 }))?;
        session.channel().send(&vec![0xffu8; 100]).unwrap();
        idle(0, session)
    }
    let (_worker, events) = launch(adder, 0, babble);
    assert!(matches!(next_message(&events), FromWorker::Ready(_)));
    let exit = next_exit(&events);
    assert!(exit.to_string().starts_with("killed because it sent an invalid message"), "{exit}");
}

#[test]
fn a_worker_that_closes_its_channel_is_ended() {
    fn close(_: u64, session: Session) -> Result<()> {
        session.channel().close();
        // It is killed before.
        std::thread::sleep(2 * PATIENCE);
        Ok(())
    }
    let (_worker, events) = launch(adder, 0, close);
    let exit = next_exit(&events);
    assert!(exit.nonsense.is_some() && exit.killed_by_us, "{exit}");
}
