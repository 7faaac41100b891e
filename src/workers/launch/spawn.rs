//! Starting a worker.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Sender, bounded};
use rustix::event::EventfdFlags;

use super::command::{self, Call};
use super::exit::Exit;
use super::failure::LaunchFailure;
use super::handshake::{Hello, Start};
use super::hook;
use super::identity::Identity;
use super::program::Program;
use super::worker::Worker;
use crate::error::Result;
use crate::workers::channel::{Broken, Channel};
use crate::workers::control::Event;
use crate::workers::sys::process::Process;
use crate::workers::sys::signals;

/// Options for starting a worker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options<'a> {
    /// The worker's memory file. The worker gets a duplicate of the descriptor.
    pub(crate) slab: Option<BorrowedFd<'a>>,
    /// The worker's cap on private writable memory, in bytes.
    pub(crate) heap_limit: Option<u64>,
    /// Number of the worker among several workers.
    pub(crate) place: u64,
    /// Time limit for the greeting. The worker builds its pipeline after the greeting.
    pub(crate) time_out: Duration,
}

default_as!(Options<'_>, Self { slab: None, heap_limit: None, place: 0, time_out: Duration::from_secs(20) });

/// Starts a worker under `number` that runs `program`, and sends its events to `events`, which must be unbounded.
///
/// Returns after the worker has greeted and received its program, in about 2 ms. The start does not fork: `std` uses
/// `posix_spawn` if no code runs between fork and exec. So the size of this process and the activity of its other
/// threads do not matter.
///
/// The starting thread belongs to the worker until the worker is reaped, because the kernel ends a worker together with
/// the thread that started it.
///
/// # Errors
/// [`ErrorKind::Worker`](crate::ErrorKind::Worker), caused by a [`LaunchFailure`]; then no process remains.
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
    let slab = options.slab.map(|fd| fd.try_clone_to_owned()).transpose().map_err(LaunchFailure::Descriptors)?;
    let (program, events, time_out) = (program.clone(), events.clone(), options.time_out);
    let start = Start {
        worker: number,
        place: options.place,
        heap_limit: options.heap_limit,
        #[cfg(feature = "text")]
        tokenizers: crate::text::known(),
        program: program.clone(),
    };
    let (tell, told) = bounded(1);
    let life = move || match meet(&program, start, slab, time_out) {
        Ok((process, channel)) => {
            signals::block_all();
            let (worker, life) = Worker::new(number, Arc::new(process), channel, events);
            // If the caller has gone, the worker is dropped here, which ends it.
            let _ = tell.send(Ok(worker));
            life.follow();
        }
        Err(failure) => drop(tell.send(Err(failure))),
    };
    thread::Builder::new().name(format!("gristmill-work-{number}")).spawn(life).map_err(LaunchFailure::Watch)?;
    told.recv().unwrap_or_else(|_| Err(LaunchFailure::Watch(std::io::Error::other("the thread that watches it ended"))))
}

/// Starts the process, receives its greeting, and sends its assignment.
fn meet(
    program: &Program,
    start: Start,
    slab: Option<OwnedFd>,
    time_out: Duration,
) -> Result<(Process, Channel), LaunchFailure> {
    let call = Call {
        in_main: program.starter().is_some() || hook::init_was_called(),
        forked: false,
        parent: std::process::id(),
    };
    let (process, channel) = spawn(call, program)?;
    greet(&channel, &process, time_out)?;
    // The worker may be stopped before it has read the whole assignment.
    let late = |e: std::io::Error| match e.kind() {
        std::io::ErrorKind::WouldBlock => LaunchFailure::TimedOut { pid: process.pid, limit: time_out },
        _ => LaunchFailure::Unheard { exit: last_words(&process) },
    };
    channel.limit_sends(Some(time_out)).map_err(LaunchFailure::Watch)?;
    start.send(&program.cfg, slab.as_ref().map(std::os::fd::AsFd::as_fd), &channel).map_err(late)?;
    channel.limit_sends(None).map_err(LaunchFailure::Watch)?;
    Ok((process, channel))
}

/// Fails early if a start would run out of descriptors. A start that fails half-way resembles a dead worker.
fn make_sure_of_descriptors() -> Result<(), LaunchFailure> {
    const NEEDED: usize = 16;
    let spare = || rustix::event::eventfd(0, EventfdFlags::CLOEXEC);
    let spares: Result<Vec<_>, _> = (0..NEEDED).map(|_| spare()).collect();
    spares.map(drop).map_err(|e| LaunchFailure::Descriptors(e.into()))
}

fn spawn(call: Call, program: &Program) -> Result<(Process, Channel), LaunchFailure> {
    #[cfg(feature = "python")]
    if let Some(starter) = program.starter() {
        let (channel, socket) = Channel::pair().map_err(LaunchFailure::Descriptors)?;
        if let Some(process) = starter.fork(call, &socket) {
            return Ok((process, channel));
        }
        // The forked worker may still connect late, to a connection that has no owner any more.
    }
    let (channel, socket) = Channel::pair().map_err(LaunchFailure::Descriptors)?;
    let (mut command, program) = command::build(call, socket, program.starter().map(|starter| &starter.command))?;
    let mut child = command.spawn().map_err(|e| LaunchFailure::Spawn { program, source: e })?;
    // The command holds the worker's end of the connection.
    drop(command);
    let process = Process::open(child.id()).map_err(|e| {
        let _ = child.kill();
        let _ = child.wait();
        LaunchFailure::Watch(e)
    })?;
    Ok((process, channel))
}

/// Receives the worker's greeting and checks that the worker is the same build.
fn greet(channel: &Channel, process: &Process, time_out: Duration) -> Result<(), LaunchFailure> {
    let hello = Hello::receive(channel, process.fd(), Instant::now() + time_out).map_err(|broken| match broken {
        Broken::Ended => LaunchFailure::Died { exit: last_words(process) },
        Broken::Late => LaunchFailure::TimedOut { pid: process.pid, limit: time_out },
        Broken::Closed => {
            LaunchFailure::NoGreeting { exit: last_words(process), what: "it closed the connection".into() }
        }
        Broken::Nonsense(what) => LaunchFailure::NoGreeting { exit: last_words(process), what },
        Broken::Io(e) => LaunchFailure::Watch(e),
    })?;
    let ours = hook::module().as_ref().map(Identity::of);
    match ours {
        Some(ours) if ours.same_build(&hello.module) => Ok(()),
        ours => Err(LaunchFailure::OtherBuild {
            ours: ours.map(|m| m.name()).unwrap_or_default(),
            worker: hello.module.name(),
        }),
    }
}

/// Waits briefly for the worker to end, kills it if it has not, and returns its exit.
fn last_words(process: &Process) -> Exit {
    let killed_by_us = !process.ends_within(Duration::from_millis(200));
    process.kill();
    Exit { pid: process.pid, status: process.wait(), told_to_stop: false, killed_by_us, nonsense: None }
}
