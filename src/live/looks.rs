//! Views that read a pass at intervals, on a single thread.

use std::fmt::Debug;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};

use super::Live;
use crate::error::{Error, ErrorKind, Result};

/// Shortest and longest time between two looks. Between these limits it is a hundredth of the pass's time so far.
const LEAST: Duration = Duration::from_secs(1);
const MOST: Duration = Duration::from_secs(10);

/// A view that reads a pass at intervals and at its end.
pub(crate) trait View: Debug + Send {
    /// Reads the pass; `end` is true at the last call.
    ///
    /// # Errors
    /// Errors that prevent further looks, such as a full disk.
    fn look(&mut self, live: &Live, end: bool) -> Result<()>;
}

/// Views that read a pass until this value is dropped.
#[derive(Debug)]
pub(crate) struct Looks {
    /// Sender that is dropped when the pass is over.
    over: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Looks {
    /// Starts a thread on which `views` read `live`.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the thread cannot start.
    pub(crate) fn start(views: Vec<Box<dyn View>>, live: Arc<Live>) -> Result<Self> {
        let (over, is_over) = bounded(0);
        let thread = std::thread::Builder::new().name("gristmill-views".into());
        let thread = thread
            .spawn(move || run(views, &live, &is_over))
            .map_err(|e| Error::new(ErrorKind::Io, format!("cannot start the thread of the views of the run: {e}")))?;
        Ok(Self { over: Some(over), thread: Some(thread) })
    }
}

impl Drop for Looks {
    fn drop(&mut self) {
        self.over = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(mut views: Vec<Box<dyn View>>, live: &Live, is_over: &Receiver<()>) {
    let start = Instant::now();
    loop {
        let end = !matches!(is_over.recv_timeout(pause(start.elapsed())), Err(RecvTimeoutError::Timeout));
        // A view that fails is logged and removed; the pass goes on.
        views.retain_mut(|view| view.look(live, end).inspect_err(|error| tracing::warn!("{error}")).is_ok());
        if end || views.is_empty() {
            return;
        }
    }
}

/// Returns the time until the next look at a pass that has run for `time`.
fn pause(time: Duration) -> Duration {
    (time / 100).clamp(LEAST, MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_become_rare_in_a_long_pass() {
        for (time, next) in [(0, 1.0), (1, 1.0), (100, 1.0), (250, 2.5), (1000, 10.0), (100_000, 10.0)] {
            assert_eq!(pause(Duration::from_secs(time)), Duration::from_secs_f64(next), "{time} s");
        }
    }
}
