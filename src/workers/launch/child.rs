//! The worker's side: from the first instruction to the program that it was started for.

use std::any::Any;
use std::io::Write;
use std::os::unix::fs::FileTypeExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use ipc_channel::ipc::{self, IpcSender};

use super::command::Call;
use super::handshake::{Greeting, Hello, Start};
use super::hook;
use super::identity::Identity;
use crate::error::{Error, ErrorKind, Result};
use crate::workers::control::{Failure, FromWorker, Session, Up, send};
use crate::workers::sys::process::{exit_now, pidfd, wait_readable};
use crate::workers::sys::{limits, signals};

/// Exit code of a worker whose parent is gone.
const ORPHANED: i32 = 60;
/// Exit code of a worker that never got so far as to have a program.
const UNSTARTED: i32 = 61;
/// Exit code of a worker that has told its parent why it ends.
const FAILED: i32 = 62;

/// Whether the parent can be told of failures, and cleans up after itself.
static CONNECTED: AtomicBool = AtomicBool::new(false);

/// Serves the parent on a thread of its own, while this one watches for the parent's end.
///
/// The main thread does nothing else: user code cannot block it, its stack is not used, and a program that runs before
/// `main` finds an ordinary thread under it.
pub(crate) fn run(call: &Call) -> ! {
    signals::ignore_in_worker();
    limits::offer_to_oom_killer();
    limits::keep_shared_memory_out_of_cores();
    limits::name_process();
    let parent = pidfd(call.parent);
    // It was opened in time if it is the parent still; its number may be another's otherwise.
    let (Ok(parent), true) = (&parent, is_parent(call)) else {
        if parent.is_err() {
            sweep(call);
        }
        give_up(&format!(
            "process {}, whose worker this is to be, is not its parent; unset GRISTMILL_WORKER if you set it",
            call.parent
        ));
    };
    let serve = {
        let call = call.clone();
        move || exit_now(serve(&call))
    };
    if let Err(e) = thread::Builder::new().name("gristmill-serve".into()).spawn(serve) {
        give_up(&format!("cannot start a thread: {e}"));
    }
    while !matches!(wait_readable(parent, None), Ok(true)) && is_parent(call) {
        thread::sleep(Duration::from_millis(100));
    }
    sweep(call);
    exit_now(ORPHANED)
}

/// Whether the parent is there still. One that was forked for it is told of its end by whoever forked it.
fn is_parent(call: &Call) -> bool {
    let pid = call.parent;
    call.forked
        || rustix::process::getppid().is_some_and(|parent| i64::from(parent.as_raw_nonzero().get()) == i64::from(pid))
}

/// Removes the socket to which this process was to connect, and its directory, if the parent died before it could.
fn sweep(call: &Call) {
    let socket = Path::new(&call.socket);
    let is_socket = socket.symlink_metadata().is_ok_and(|m| m.file_type().is_socket());
    if !CONNECTED.load(Ordering::Relaxed) && is_socket && std::fs::remove_file(socket).is_ok() {
        // It goes only if it is empty, as the directory made for this one socket is.
        let _ = socket.parent().map(std::fs::remove_dir);
    }
}

fn serve(call: &Call) -> i32 {
    let (outbox, outcome) = match catch_unwind(AssertUnwindSafe(|| connect(call))) {
        Ok(Ok(start)) => {
            let outbox = start.outbox.clone();
            (outbox, catch_unwind(AssertUnwindSafe(|| run_program(start))))
        }
        Ok(Err(e)) => give_up(&e.to_string()),
        Err(panic) => give_up(&words(&*panic)),
    };
    let _ = std::io::stdout().flush();
    let error = match outcome {
        Ok(Ok(())) => return 0,
        Ok(Err(e)) => e,
        Err(panic) => Error::new(ErrorKind::Worker, format!("worker panicked: {}", words(&*panic)))
            .help("the panic's place and backtrace are on standard error"),
    };
    let _ = send(&outbox, || Up::Message(FromWorker::Failed(Failure::of(&error))));
    FAILED
}

/// Tells the parent who this is, and hears what to do.
fn connect(call: &Call) -> Result<Start> {
    let failed = |what: &str, e: &dyn std::fmt::Display| Error::new(ErrorKind::Worker, format!("{what}: {e}"));
    let module =
        hook::module().ok_or_else(|| Error::new(ErrorKind::Worker, "gristmill's own module is not to be found"))?;
    let parent = IpcSender::connect(call.socket.clone()).map_err(|e| failed("cannot connect to the parent", &e))?;
    let (tell, told) = ipc::channel().map_err(|e| failed("cannot make a channel", &e))?;
    let hello = Hello { module: Identity::of(&module), tell };
    parent.send(Greeting::Hello(hello)).map_err(|e| failed("cannot greet the parent", &e))?;
    let start = Start::receive(&told).map_err(|e| failed("the parent refused this worker", &e))?;
    CONNECTED.store(true, Ordering::Relaxed);
    Ok(start)
}

fn run_program(start: Start) -> Result<()> {
    let stdin = limits::take_stdin().map_err(|e| Error::io(e, "/dev/null"))?;
    let slab = start.slab.then_some(stdin);
    if let Some(bytes) = start.heap_limit {
        limits::cap_data(bytes)
            .map_err(|e| Error::new(ErrorKind::Worker, format!("cannot limit the heap to {bytes} bytes: {e}")))?;
    }
    #[cfg(feature = "text")]
    crate::text::learn(start.tokenizers);
    let session = Session::new(start.worker, start.inbox, start.outbox, slab);
    start.program.run(session.at_place(start.place))
}

/// Ends a worker that cannot tell its parent why.
fn give_up(why: &str) -> ! {
    let _ = writeln!(std::io::stderr(), "gristmill: worker process {}: {why}", std::process::id());
    exit_now(UNSTARTED)
}

/// What a panic said.
pub(crate) fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a value that is not text").to_owned()
}
