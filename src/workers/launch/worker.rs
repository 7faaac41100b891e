//! A running worker, as its parent holds it.

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

/// A running worker. Dropping it kills the process and waits until it is gone.
///
/// A thread belongs to it, which [follows](Followed) what it says until it has ended.
#[derive(Debug)]
pub(crate) struct Worker {
    number: u64,
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
        // One that has ended by itself was not killed, even where nobody has noticed yet.
        if self.process.is_ours() && !self.process.ends_within(Duration::ZERO) {
            self.killed_by_us.store(true, Ordering::Relaxed);
            self.process.kill();
        }
    }
}

impl Worker {
    /// The worker behind `channel`, and what the thread has to do that started it.
    pub(super) fn new(number: u64, process: Arc<Process>, channel: Channel, events: Sender<Event>) -> (Self, Followed) {
        let (told_to_stop, killed_by_us) = (AtomicBool::new(false), AtomicBool::new(false));
        let life = Arc::new(Life { process, channel, told_to_stop, killed_by_us });
        let (tell, gone) = bounded(1);
        let followed = Followed { number, life: life.clone(), events, tell };
        (Self { number, life, gone, exit: None }, followed)
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
        self.life.channel.send(message).map_err(|e| {
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

    /// Memory that it and all processes below it use now, as [`usage::tree_share`] counts it.
    pub(crate) fn tree_share(&self) -> Option<u64> {
        self.of_the_living(|pid| Ok(usage::tree_share(pid)))
    }

    /// CPU time of all its threads so far, or `None` if it is gone.
    pub(crate) fn cpu_time(&self) -> Option<Duration> {
        self.of_the_living(usage::cpu_time)
    }

    /// Has `read` look at the worker's pid; `None` if that was not its own any more afterwards.
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

/// A worker as the thread sees it that started it.
pub(super) struct Followed {
    number: u64,
    life: Arc<Life>,
    events: Sender<Event>,
    tell: Sender<Exit>,
}

impl Followed {
    /// Forwards what the worker says until it has ended, and reaps it. What is no message ends it.
    pub(super) fn follow(self) {
        let Self { number, life, events, tell } = self;
        let nonsense = loop {
            match life.channel.recv_from(life.process.fd(), None) {
                Ok(message) => {
                    // Nobody may listen any more; the worker is heard out all the same, or its sends would block.
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
        // Whoever waits for room to send is told, even where a child of the worker holds its end.
        life.channel.close();
        let exit = Exit {
            pid: life.process.pid(),
            status,
            told_to_stop: life.told_to_stop.load(Ordering::Relaxed),
            killed_by_us: life.killed_by_us.load(Ordering::Relaxed),
            nonsense,
        };
        // Its descriptors are the other owner's to close before anyone hears that it is gone.
        drop(life);
        let _ = events.send(Event { worker: number, what: What::Exited(exit.clone()) });
        let _ = tell.send(exit);
    }
}
