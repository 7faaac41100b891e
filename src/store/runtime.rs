//! The threads that speak with stores. Nothing outside of this module tree sees that they are asynchronous.

use std::future::Future;
use std::sync::OnceLock;
use std::sync::mpsc::sync_channel;

use tokio::runtime::{Builder, Runtime};

use crate::error::{Error, ErrorKind, Result};
use crate::fork::PerProcess;

/// More threads do not read faster: what takes time is the network.
const THREADS: usize = 4;

/// Begins a task, which goes on by itself.
pub(super) fn spawn(task: impl Future<Output = ()> + Send + 'static) -> Result<()> {
    runtime()?.spawn(task);
    Ok(())
}

/// The output of a task; the calling thread waits, whatever runtime of somebody else's it may belong to.
pub(super) fn wait<T: Send + 'static>(task: impl Future<Output = T> + Send + 'static) -> Result<T> {
    let (send, receive) = sync_channel(1);
    spawn(async move { send.send(task.await).unwrap_or_default() })?;
    receive.recv().map_err(|_| Error::new(ErrorKind::Io, "a task that reads from a store ended before its time"))
}

fn runtime() -> Result<&'static Runtime> {
    // Threads do not survive a fork, and waiting for them would never end.
    static RUNTIME: PerProcess<OnceLock<Result<Runtime, String>>> = PerProcess::new(OnceLock::new);
    let runtime = RUNTIME.get().get_or_init(start);
    runtime.as_ref().map_err(|text| Error::new(ErrorKind::Io, text.clone()))
}

fn start() -> Result<Runtime, String> {
    let threads = std::thread::available_parallelism().map_or(1, |cores| cores.get().min(THREADS));
    let mut builder = Builder::new_multi_thread();
    let builder = builder.worker_threads(threads).thread_name("gristmill-store").enable_all();
    builder.build().map_err(|e| format!("the threads that read from stores cannot be started: {e}"))
}
