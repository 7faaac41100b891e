//! The worker's side of a launch: everything between its first instruction and its program.

use std::any::Any;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::command::Call;
use super::handshake::{Hello, Start};
use super::hook;
use super::identity::Identity;
use crate::error::{Error, ErrorKind, Result, Told};
use crate::units::Bytes;
use crate::workers::channel::{Broken, Channel};
use crate::workers::control::{FromWorker, Session};
use crate::workers::slab::WorkerSlab;
use crate::workers::sys::process::{end_with_parent, exit_now, pidfd, wait_readable};
use crate::workers::sys::{limits, signals};

/// Exit code of a worker whose parent is gone.
const ORPHANED: i32 = 60;
/// Exit code of a worker that failed before it had a program.
const UNSTARTED: i32 = 61;
/// Exit code of a worker that has sent its parent the reason for its end.
const FAILED: i32 = 62;

/// Serves the parent on a new thread, while the calling thread watches for the parent's end.
///
/// The main thread does nothing else. User code cannot block it or use its stack. A program that runs before `main`
/// still runs on an ordinary thread.
pub(crate) fn run(call: Call) -> ! {
    signals::ignore_in_worker();
    limits::offer_to_oom_killer();
    limits::keep_shared_memory_out_of_cores();
    limits::name_process();
    // Also ends a process that is stopped when its parent ends. The starting thread outlives this process.
    end_with_parent();
    let parent = pidfd(call.parent);
    // If the process is still the parent, the descriptor was opened in time. Otherwise the pid may have been reused.
    let (Ok(parent), true) = (&parent, is_parent(call)) else {
        give_up(&format!(
            "process {}, the parent according to GRISTMILL_WORKER, is not the parent; unset GRISTMILL_WORKER if you set it",
            call.parent
        ));
    };
    if let Err(e) = thread::Builder::new().name("gristmill-serve".into()).spawn(|| exit_now(serve())) {
        give_up(&format!("cannot start a thread: {e}"));
    }
    while !matches!(wait_readable(parent, None), Ok(true)) && is_parent(call) {
        // Delays the next attempt after a failed wait.
        thread::sleep(Duration::from_millis(100));
    }
    exit_now(ORPHANED)
}

/// Returns true if the parent still exists. A forked worker always gets true: the process that forked it reports the
/// parent's end.
fn is_parent(call: Call) -> bool {
    let pid = call.parent;
    call.forked
        || rustix::process::getppid().is_some_and(|parent| i64::from(parent.as_raw_nonzero().get()) == i64::from(pid))
}

fn serve() -> i32 {
    let (channel, outcome) = match catch_unwind(AssertUnwindSafe(connect)) {
        Ok(Ok((start, channel))) => {
            let channel = Arc::new(channel);
            let given = channel.clone();
            (channel, catch_unwind(AssertUnwindSafe(|| run_program(start, given))))
        }
        Ok(Err(e)) => give_up(&e.to_string()),
        Err(panic) => give_up(&words(&*panic)),
    };
    let _ = std::io::stdout().flush();
    let error = match outcome {
        Ok(Ok(())) => return 0,
        Ok(Err(e)) => e,
        Err(panic) => Error::new(ErrorKind::Worker, format!("worker panicked: {}", words(&*panic)))
            .help("the location of the panic is on standard error; run without workers to get a backtrace"),
    };
    let _ = channel.send(&FromWorker::Failed(Told::in_words(&error)));
    FAILED
}

/// Sends this worker's identity to the parent and receives its assignment.
fn connect() -> Result<(Start, Channel)> {
    let failed = |what: &str, e: &dyn std::fmt::Display| Error::new(ErrorKind::Worker, format!("{what}: {e}"));
    let module = hook::module().ok_or_else(|| Error::new(ErrorKind::Worker, "gristmill's own module was not found"))?;
    let socket = limits::take_stdin().map_err(|e| Error::io(e, "/dev/null"))?;
    crate::source::refuse_stdin();
    let channel = Channel::over(socket);
    let greeted = channel.send(&Hello::of(Identity::of(&module)));
    if greeted.as_ref().is_err_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe) {
        // The parent no longer waits for this worker or its messages.
        exit_now(UNSTARTED);
    }
    greeted.map_err(|e| failed("cannot greet the parent", &e))?;
    match Start::receive(&channel) {
        Ok(start) => Ok((start, channel)),
        Err(Broken::Closed) => exit_now(UNSTARTED),
        Err(e) => Err(failed("the parent's message cannot be read", &e)),
    }
}

fn run_program(start: Start, channel: Arc<Channel>) -> Result<()> {
    // The slab is mapped before any user code runs, so user code finds no descriptor of it.
    let slab = channel.take_file().map(WorkerSlab::map).transpose()?;
    if let Some(bytes) = start.heap_limit {
        limits::cap_data(bytes)
            .map_err(|e| Error::new(ErrorKind::Worker, format!("cannot limit the heap to {}: {e}", Bytes(bytes))))?;
    }
    #[cfg(feature = "text")]
    crate::text::learn(start.tokenizers);
    tell_panics_without_backtrace();
    let session = Session::new(start.worker, channel, slab);
    start.program.run(session.at_place(start.place))
}

/// Installs a panic hook that prints no backtrace.
///
/// Printing a backtrace allocates under a lock of the standard library. If the heap limit refuses that allocation, the
/// message about it would wait for that lock on its own thread.
fn tell_panics_without_backtrace() {
    std::panic::set_hook(Box::new(|panic| {
        let thread = thread::current();
        let name = thread.name().unwrap_or("without a name");
        let _ = writeln!(std::io::stderr(), "gristmill: worker process {}: thread {name} {panic}", std::process::id());
    }));
}

/// Ends a worker that cannot report the reason to its parent.
fn give_up(why: &str) -> ! {
    let _ = writeln!(std::io::stderr(), "gristmill: worker process {}: {why}", std::process::id());
    exit_now(UNSTARTED)
}

/// Returns the text of a panic.
pub(crate) fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a value that is not text").to_owned()
}
