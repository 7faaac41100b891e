//! Starting a worker.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::Sender;
use ipc_channel::ipc::{self, IpcReceiver, IpcSender};
use rustix::event::EventfdFlags;

use super::command::{self, Call};
use super::exit::Exit;
use super::failure::LaunchFailure;
use super::handshake::{Order, Rendezvous, Start, Unmet};
use super::hook;
use super::identity::Identity;
use super::program::Program;
use super::starter::Starter;
use super::worker::Worker;
use crate::error::Result;
use crate::workers::control::{Event, ToWorker, Up};
use crate::workers::sys::process::Process;
use crate::workers::sys::signals;

/// How a worker is started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options<'a> {
    /// The slab's descriptor, which the worker gets a copy of.
    pub(crate) slab: Option<BorrowedFd<'a>>,
    /// The worker's cap on private writable memory, in bytes.
    pub(crate) heap_limit: Option<u64>,
    /// Which of several workers it is.
    pub(crate) place: u64,
    /// How long it may take to connect; building its pipeline comes after that.
    pub(crate) time_out: Duration,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self { slab: None, heap_limit: None, place: 0, time_out: Duration::from_secs(20) }
    }
}

/// Starts a worker under `number`, which runs `program`; what happens to it is told to `events`, which must be unbounded.
///
/// It returns when the worker has connected and got its program, after some 2 ms. The program is started without a fork
/// (`std` uses `posix_spawn` as long as nothing is to run between fork and exec), so it makes no difference how large this
/// process is or what its other threads do.
///
/// # Errors
/// [`ErrorKind::Worker`](crate::ErrorKind::Worker), caused by a [`LaunchFailure`]; then no process is left.
pub(crate) fn start(number: u64, program: &Program, options: &Options<'_>, events: &Sender<Event>) -> Result<Worker> {
    try_start(number, program, options, events).map_err(LaunchFailure::into_error)
}

fn try_start(
    number: u64,
    program: &Program,
    options: &Options<'_>,
    events: &Sender<Event>,
) -> Result<Worker, LaunchFailure> {
    make_sure_of_descriptors()?;
    let rendezvous = Rendezvous::open()?;
    let call = Call {
        in_main: program.starter().is_some() || hook::init_was_called(),
        forked: false,
        parent: std::process::id(),
        socket: rendezvous.path().to_owned(),
    };
    let process = spawn(&call, program, options)?;
    let tell = greet(rendezvous, &process, options)?;
    let (outbox, heard) = channel::<Up>()?;
    let (inbox, told) = channel::<ToWorker>()?;
    let start = Start {
        worker: number,
        place: options.place,
        heap_limit: options.heap_limit,
        slab: options.slab.is_some(),
        #[cfg(feature = "text")]
        tokenizers: crate::text::known(),
        program: program.clone(),
        inbox: told,
        outbox: outbox.clone(),
    };
    if signals::without_sigpipe(|| start.send(program.cfg(), &tell)).is_err() {
        return Err(LaunchFailure::Unheard { exit: last_words(&process) });
    }
    Worker::new(number, Arc::new(process), inbox, outbox, heard, events.clone()).map_err(LaunchFailure::Watch)
}

/// Fails if a start would run out of descriptors half-way: `ipc-channel` does not take that well.
fn make_sure_of_descriptors() -> Result<(), LaunchFailure> {
    const NEEDED: usize = 20;
    let spare = || rustix::event::eventfd(0, EventfdFlags::CLOEXEC);
    let spares: Result<Vec<_>, _> = (0..NEEDED).map(|_| spare()).collect();
    spares.map(drop).map_err(|e| LaunchFailure::Descriptors(e.into()))
}

fn spawn(call: &Call, program: &Program, options: &Options<'_>) -> Result<Process, LaunchFailure> {
    #[cfg(feature = "python")]
    if let Some(process) = program.starter().and_then(|starter| starter.fork(call, options.slab)) {
        return Ok(process);
    }
    let (mut command, program) = command::build(call, options.slab, program.starter().map(Starter::command))?;
    let mut child = command.spawn().map_err(|e| LaunchFailure::Spawn { program, source: e })?;
    Process::open(child.id()).map_err(|e| {
        let _ = child.kill();
        let _ = child.wait();
        LaunchFailure::Watch(e)
    })
}

/// Hears the worker out: it must be the process that was started, and the same build.
fn greet(rendezvous: Rendezvous, process: &Process, options: &Options<'_>) -> Result<IpcSender<Order>, LaunchFailure> {
    let hello = rendezvous.accept(process, options.time_out).map_err(|unmet| match unmet {
        Unmet::Died => LaunchFailure::Died { exit: last_words(process) },
        Unmet::TimedOut => LaunchFailure::TimedOut { pid: process.pid(), limit: options.time_out },
        Unmet::NoGreeting(what) => LaunchFailure::NoGreeting { exit: last_words(process), what },
        Unmet::Watch(e) => LaunchFailure::Watch(e),
    })?;
    let ours = hook::module().as_ref().map(Identity::of);
    match ours {
        Some(ours) if ours.same_build(&hello.module) => Ok(hello.tell),
        ours => Err(LaunchFailure::OtherBuild {
            ours: ours.map(|m| m.name()).unwrap_or_default(),
            worker: hello.module.name(),
        }),
    }
}

fn channel<T>() -> Result<(IpcSender<T>, IpcReceiver<T>), LaunchFailure>
where
    T: for<'de> serde::Deserialize<'de> + serde::Serialize,
{
    ipc::channel().map_err(LaunchFailure::Watch)
}

/// How a worker ended that ends just now, or is made to.
fn last_words(process: &Process) -> Exit {
    let killed_by_us = !process.ends_within(Duration::from_millis(200));
    process.kill();
    Exit { pid: process.pid(), status: process.wait(), told_to_stop: false, killed_by_us, nonsense: None }
}
