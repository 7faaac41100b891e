//! A running worker, as its parent holds it.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use ipc_channel::IpcError;
use ipc_channel::ipc::{IpcReceiver, IpcSender};

use super::child::words;
use super::exit::Exit;
use crate::error::{Error, ErrorKind, Result};
use crate::workers::control::{Event, FromWorker, ToWorker, Up, What, send};
use crate::workers::sys::process::{Process, Status};
use crate::workers::sys::usage::{self, Memory};
use crate::workers::sys::{limits, signals};

/// A running worker. Dropping it kills the process and waits until it is gone.
///
/// Two threads belong to it: one receives and forwards, one waits for the process to end. The second then marks the end
/// of the messages on the first one's channel, so that all that the worker said is heard before [`What::Exited`].
#[derive(Debug)]
pub(crate) struct Worker {
    number: u64,
    life: Arc<Life>,
    inbox: IpcSender<ToWorker>,
    gone: Receiver<Exit>,
    exit: Option<Exit>,
}

#[derive(Debug)]
struct Life {
    process: Arc<Process>,
    told_to_stop: AtomicBool,
    killed_by_us: AtomicBool,
}

impl Life {
    fn kill(&self) {
        // One that has ended by itself was not killed, even where nobody has noticed yet.
        if self.process.is_ours() && !self.process.ends_within(Duration::ZERO) {
            self.killed_by_us.store(true, Ordering::Relaxed);
            self.process.kill();
        }
    }
}

impl Worker {
    pub(super) fn new(
        number: u64,
        process: Arc<Process>,
        inbox: IpcSender<ToWorker>,
        outbox: IpcSender<Up>,
        heard: IpcReceiver<Up>,
        events: Sender<Event>,
    ) -> io::Result<Self> {
        let life =
            Arc::new(Life { process, told_to_stop: AtomicBool::new(false), killed_by_us: AtomicBool::new(false) });
        let (tell, gone) = bounded(1);
        let started = thread::Builder::new().name(format!("gristmill-end-{number}")).spawn({
            let life = life.clone();
            move || reap(&life.process, &outbox)
        });
        let started = started.and_then(|reaper| {
            let life = life.clone();
            let receive = move || {
                signals::block_all();
                let exit = receive(number, &heard, &life, reaper, &events);
                // All descriptors are closed before anyone hears that the worker is gone.
                drop((heard, life));
                let _ = events.send(Event { worker: number, what: What::Exited(exit.clone()) });
                let _ = tell.send(exit);
            };
            thread::Builder::new().name(format!("gristmill-hear-{number}")).spawn(receive)
        });
        // If the first thread runs, it takes the status; else the drop of the process does.
        started.inspect_err(|_| life.kill())?;
        Ok(Self { number, life, inbox, gone, exit: None })
    }

    /// The number that it was started with.
    #[cfg(test)]
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.life.process.pid()
    }

    /// Sends a message. It blocks when the worker has left some hundred unread, until it reads or dies.
    ///
    /// # Errors
    /// [`ErrorKind::Worker`] if the worker is gone, or this process is a fork of the worker's parent.
    pub(crate) fn send(&self, message: &ToWorker) -> Result<()> {
        if !self.life.process.is_ours() {
            return Err(Error::new(ErrorKind::Worker, format!("worker {} belongs to the parent process", self.number))
                .help("start workers in the process that uses them: a fork of it cannot"));
        }
        if *message == ToWorker::Stop {
            self.life.told_to_stop.store(true, Ordering::Relaxed);
        }
        signals::without_sigpipe(|| send(&self.inbox, || message.clone())).map_err(|e| {
            Error::new(ErrorKind::Worker, format!("cannot send to worker {} (pid {}): {e}", self.number, self.pid()))
        })
    }

    /// Kills it (SIGKILL), without waiting.
    pub(crate) fn kill(&self) {
        self.life.kill();
    }

    /// Tells it to stop, gives it `grace` to finish what it has begun, then kills it; returns when it is gone.
    ///
    /// # Errors
    /// [`ErrorKind::Worker`] if the kernel does not let go of the process, or this process is a fork.
    #[cfg(test)]
    pub(crate) fn stop(mut self, grace: Duration) -> Result<Exit> {
        if self.send(&ToWorker::Stop).is_err() {
            self.kill();
        }
        self.finish(grace).ok_or_else(|| {
            Error::new(ErrorKind::Worker, format!("worker {} (pid {}) does not end", self.number, self.pid()))
        })
    }

    /// Memory that it uses now, or `None` if it is gone.
    pub(crate) fn memory(&self) -> Option<Memory> {
        self.of_the_living(usage::memory)
    }

    /// Lowers the cap of its private memory to `bytes`; `false` where that cannot be said to hold.
    pub(crate) fn lower_cap(&self, bytes: u64) -> bool {
        !self.life.process.has_ended() && limits::lower_data_cap(self.pid(), bytes).unwrap_or(false)
    }

    /// Anonymous memory that it uses now, shared pages split among those who share them; takes milliseconds for gigabytes.
    #[cfg(test)]
    pub(crate) fn anonymous_share(&self) -> Option<u64> {
        self.of_the_living(usage::anonymous_share)
    }

    /// CPU time of all its threads so far, or `None` if it is gone.
    pub(crate) fn cpu_time(&self) -> Option<Duration> {
        self.of_the_living(usage::cpu_time)
    }

    /// What `read` says of its pid, if that was still its own afterwards.
    fn of_the_living<T>(&self, read: impl Fn(u32) -> io::Result<T>) -> Option<T> {
        read(self.pid()).ok().filter(|_| !self.life.process.has_ended())
    }

    /// Waits for its end, kills it after `grace`, and gives up (then the reaping thread goes on waiting) after [`STUCK`].
    fn finish(&mut self, grace: Duration) -> Option<Exit> {
        if !self.life.process.is_ours() {
            return None;
        }
        if self.exit.is_none() {
            self.exit = match self.gone.recv_timeout(grace) {
                Err(RecvTimeoutError::Timeout) => {
                    self.life.kill();
                    self.gone.recv_timeout(STUCK).ok()
                }
                other => other.ok(),
            };
        }
        self.exit.clone()
    }
}

/// A killed process is gone at once unless the kernel itself is stuck in it, as in a dead network file system.
const STUCK: Duration = Duration::from_secs(30);

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
        self.finish(Duration::ZERO);
    }
}

/// Waits for the end of the process, then marks the end of its messages.
fn reap(process: &Process, outbox: &IpcSender<Up>) -> Status {
    signals::block_all();
    let status = process.wait();
    let _ = send(outbox, || Up::Gone);
    status
}

/// Forwards messages until the mark of the end. What is no message ends the worker.
fn receive(
    worker: u64,
    heard: &IpcReceiver<Up>,
    life: &Life,
    reaper: JoinHandle<Status>,
    events: &Sender<Event>,
) -> Exit {
    let nonsense = loop {
        match hear(heard) {
            Ok(Some(message)) => {
                // Nobody may listen any more; the worker is heard out all the same, or its sends would block.
                let _ = events.send(Event { worker, what: What::Message(message) });
            }
            Ok(None) if life.process.has_ended() => break None,
            Ok(None) => break Some("the parent's own mark".to_owned()),
            Err(nonsense) => break Some(nonsense),
        }
    };
    if nonsense.is_some() {
        life.kill();
    }
    let status = reaper.join().unwrap_or(Status::Unknown);
    Exit {
        pid: life.process.pid(),
        status,
        told_to_stop: life.told_to_stop.load(Ordering::Relaxed),
        killed_by_us: life.killed_by_us.load(Ordering::Relaxed),
        nonsense,
    }
}

/// The next message, or `None` for the mark of the end. A damaged message makes `ipc-channel` fail or panic.
fn hear(heard: &IpcReceiver<Up>) -> Result<Option<FromWorker>, String> {
    loop {
        match catch_unwind(AssertUnwindSafe(|| heard.recv())) {
            Ok(Ok(Up::Message(message))) => return Ok(Some(message)),
            Ok(Ok(Up::Gone)) => return Ok(None),
            Ok(Err(IpcError::Io(e))) if e.kind() == io::ErrorKind::Interrupted => {}
            Ok(Err(e)) => return Err(e.to_string()),
            Err(panic) => return Err(words(&*panic)),
        }
    }
}
