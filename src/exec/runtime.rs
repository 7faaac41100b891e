use std::sync::Arc;

use super::pool::Pool;
use crate::cx::{Cx, Recorder};
use crate::error::{Error, Result};

/// Who evaluates the elementwise part of a pipeline, and where its stateful part runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Executor {
    /// Everything on the consumer's thread, on demand. Nothing is prefetched.
    Inline,
    /// The elementwise part on so many threads, the stateful part on one more, both ahead of the consumer.
    Threads(usize),
}

impl Executor {
    /// One thread for every available core.
    pub fn all_cores() -> Self {
        Self::Threads(std::thread::available_parallelism().map_or(1, usize::from))
    }
}

impl std::fmt::Display for Executor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Inline => f.write_str("inline"),
            Self::Threads(n) => write!(f, "{n} thread{}", if *n == 1 { "" } else { "s" }),
        }
    }
}

/// What an [`IterDataset`](crate::IterDataset) needs to start a pass: the threads to use and where to count.
///
/// A stage hands it on to its parents; one with several parents shifts the stage ids of each by [`offset`](Self::offset).
#[derive(Clone, Debug, Default)]
pub struct Runtime {
    pool: Option<Arc<Pool>>,
    recorder: Option<Arc<Recorder>>,
    base: usize,
}

impl Runtime {
    /// No threads, no counting.
    pub fn inline() -> Self {
        Self::default()
    }

    /// The runtime of `executor`, counting into `recorder`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for 0 threads, [`ErrorKind::Io`](crate::ErrorKind::Io) if they cannot be started.
    pub fn new(executor: Executor, recorder: Option<Arc<Recorder>>) -> Result<Self> {
        let pool = match executor {
            Executor::Inline => None,
            Executor::Threads(0) => {
                return Err(Error::config("threads is 0").help("1 or more threads, or the executor `inline`"));
            }
            Executor::Threads(n) => Some(Pool::start(n)?),
        };
        Ok(Self { pool, recorder, base: 0 })
    }

    /// The same, for a parent whose stage ids start `stages` higher.
    #[must_use]
    pub fn offset(&self, stages: usize) -> Self {
        Self { base: self.base + stages, ..self.clone() }
    }

    /// A context for this part of the pipeline.
    pub fn cx(&self) -> Cx {
        Cx::at(self.recorder.as_ref(), self.base)
    }

    /// The same, counting nowhere: for what has no stage ids in the pipeline.
    pub(crate) fn unrecorded(&self) -> Self {
        Self { pool: self.pool.clone(), recorder: None, base: 0 }
    }

    pub(crate) fn pool(&self) -> Option<&Arc<Pool>> {
        self.pool.as_ref()
    }
}
