//! Threads for requests to stores. Asynchronous code is confined to this module tree.

use std::future::Future;
use std::sync::OnceLock;
use std::sync::mpsc::sync_channel;

use tokio::runtime::{Builder, Runtime};

use crate::error::{Error, ErrorKind, Result};
use crate::fork::PerProcess;

/// Maximum number of threads. More threads are not faster, because reads wait for the network.
const THREADS: usize = 4;

/// Starts a task in the background.
pub(in crate::store) fn spawn(task: impl Future<Output = ()> + Send + 'static) -> Result<()> {
    runtime()?.spawn(task);
    Ok(())
}

/// Returns the output of a task. Blocks the calling thread, which may belong to another runtime.
pub(in crate::store) fn wait<T: Send + 'static>(task: impl Future<Output = T> + Send + 'static) -> Result<T> {
    let (send, receive) = sync_channel(1);
    spawn(async move { send.send(task.await).unwrap_or_default() })?;
    receive.recv().map_err(|_| Error::new(ErrorKind::Io, "a task that reads from a store ended early"))
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
