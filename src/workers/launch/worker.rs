//! The parent's handle to a running worker.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};

use super::exit::Exit;
use crate::error::{Error, ErrorKind, Result};
use crate::workers::channel::{Broken, Channel};
use crate::workers::control::{Event, ToWorker, What};
use crate::workers::sys::limits;
use crate::workers::sys::process::Process;
use crate::workers::sys::usage::{self, Memory};

/// A running worker. Dropping it kills the process and waits for its end.
///
/// Each worker has a thread that [follows](Followed) its messages until it has ended.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) number: u64,
    life: Arc<Life>,
    gone: Receiver<Exit>,
    exit: Option<Exit>,
}

#[derive(Debug)]
struct Life {
    process: Arc<Process>,
    channel: Channel,
    told_to_stop: AtomicBool,
    killed_by_us: AtomicBool,
}

impl Life {
    fn kill(&self) {
        // A worker that has already ended was not killed here, even if its end was not yet noticed.
        if self.process.is_ours() && !self.process.ends_within(Duration::ZERO) {
            self.killed_by_us.store(true, Ordering::Relaxed);
            self.process.kill();
        }
    }
}

impl Worker {
    /// Creates the handle of the worker connected to `channel`, and the remaining work of the starting thread.
    pub(super) fn new(number: u64, process: Arc<Process>, channel: Channel, events: Sender<Event>) -> (Self, Followed) {
        let (told_to_stop, killed_by_us) = (AtomicBool::new(false), AtomicBool::new(false));
        let life = Arc::new(Life { process, channel, told_to_stop, killed_by_us });
        let (tell, gone) = bounded(1);
        let followed = Followed { number, life: life.clone(), events, tell };
        (Self { number, life, gone, exit: None }, followed)
    }

    /// Returns the process id.
    pub(crate) fn pid(&self) -> u32 {
        self.life.process.pid
    }

    /// Sends a message. Blocks if the worker has left some hundred unread, until the worker reads or dies.
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
        self.life.channel.send(message).map_err(|e| {
            Error::new(ErrorKind::Worker, format!("cannot send to worker {} (pid {}): {e}", self.number, self.pid()))
        })
    }

    /// Kills the worker (SIGKILL) without waiting.
    pub(crate) fn kill(&self) {
        self.life.kill();
    }

    /// Sends a stop request, waits up to `grace` for unfinished work, then kills the worker and waits for its end.
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

    /// Returns the worker's present memory use, or `None` if the worker is gone.
    pub(crate) fn memory(&self) -> Option<Memory> {
        self.of_the_living(usage::memory)
    }

    /// Lowers the cap on private memory to `bytes`; returns false if the cap may not hold.
    pub(crate) fn lower_cap(&self, bytes: u64) -> bool {
        !self.life.process.has_ended() && limits::lower_data_cap(self.pid(), bytes).unwrap_or(false)
    }

    /// Returns anonymous memory, with shared pages split among their processes; takes milliseconds for gigabytes.
    #[cfg(test)]
    pub(crate) fn anonymous_share(&self) -> Option<u64> {
        self.of_the_living(usage::anonymous_share)
    }

    /// Returns the memory of the worker and all its descendants, as counted by [`usage::tree_share`].
    pub(crate) fn tree_share(&self) -> Option<u64> {
        self.of_the_living(|pid| Ok(usage::tree_share(pid)))
    }

    /// Returns the CPU time of all threads so far, or `None` if the worker is gone.
    pub(crate) fn cpu_time(&self) -> Option<Duration> {
        self.of_the_living(usage::cpu_time)
    }

    /// Calls `read` with the worker's pid; returns `None` if the worker had ended by the time `read` returned.
    fn of_the_living<T>(&self, read: impl Fn(u32) -> io::Result<T>) -> Option<T> {
        read(self.pid()).ok().filter(|_| !self.life.process.has_ended())
    }

    /// Waits for the end, kills the worker after `grace`, and gives up after [`STUCK`]. The reaping thread then goes on
    /// waiting.
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

/// Longest wait for a killed process, which ends at once unless the kernel is stuck, as in a dead network file system.
const STUCK: Duration = Duration::from_secs(30);

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
        self.finish(Duration::ZERO);
    }
}

/// The starting thread's share of a worker.
pub(super) struct Followed {
    number: u64,
    life: Arc<Life>,
    events: Sender<Event>,
    tell: Sender<Exit>,
}

impl Followed {
    /// Forwards the worker's messages until the worker has ended, and reaps it. Invalid bytes end the worker.
    pub(super) fn follow(self) {
        let Self { number, life, events, tell } = self;
        let nonsense = loop {
            match life.channel.recv_from(life.process.fd(), None) {
                Ok(message) => {
                    // The receiver may be gone. Reading goes on, because the worker's sends would block otherwise.
                    let _ = events.send(Event { worker: number, what: What::Message(message) });
                }
                Err(Broken::Ended) => break None,
                Err(broken) => break Some(broken.to_string()),
            }
        };
        if nonsense.is_some() {
            life.kill();
        }
        let status = life.process.wait();
        // Wakes threads that wait for room to send, even if a child of the worker holds its end of the connection.
        life.channel.close();
        let exit = Exit {
            pid: life.process.pid,
            status,
            told_to_stop: life.told_to_stop.load(Ordering::Relaxed),
            killed_by_us: life.killed_by_us.load(Ordering::Relaxed),
            nonsense,
        };
        // Leaves the descriptors to the other owner before the exit is reported.
        drop(life);
        let _ = events.send(Event { worker: number, what: What::Exited(exit.clone()) });
        let _ = tell.send(exit);
    }
}
