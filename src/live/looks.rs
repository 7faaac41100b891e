//! Views that look at a pass once in a while, on one thread.

use std::fmt::Debug;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};

use super::Live;
use crate::error::{Error, ErrorKind, Result};

/// Time between two looks at first, and at most: in between a hundredth of the time that the pass has run.
const LEAST: Duration = Duration::from_secs(1);
const MOST: Duration = Duration::from_secs(10);

/// A view that looks at a pass once in a while, and at its end.
pub(crate) trait View: Debug + Send {
    /// Looks; at the `end` for the last time.
    ///
    /// # Errors
    /// Those that keep it from looking again, such as a disk that is full.
    fn look(&mut self, live: &Live, end: bool) -> Result<()>;
}

/// Views that look until this is dropped.
#[derive(Debug)]
pub(crate) struct Looks {
    /// Dropped when the pass is over.
    over: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Looks {
    /// Has `views` look at `live`.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if there is no thread for them.
    pub(crate) fn start(views: Vec<Box<dyn View>>, live: Arc<Live>) -> Result<Self> {
        let (over, is_over) = bounded(0);
        let thread = std::thread::Builder::new().name("gristmill-views".into());
        let thread = thread.spawn(move || run(views, &live, &is_over)).map_err(|e| {
            Error::new(ErrorKind::Io, format!("cannot start the thread of those who look at the run: {e}"))
        })?;
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
        // One that fails is told of once, and the pass goes on.
        views.retain_mut(|view| view.look(live, end).inspect_err(|error| tracing::warn!("{error}")).is_ok());
        if end || views.is_empty() {
            return;
        }
    }
}

/// Time until the next look at a pass that has run for `time`.
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
