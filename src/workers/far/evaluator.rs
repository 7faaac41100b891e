//! A worker that answers messages, independent of the transport.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use super::blocks::Blocks;
use super::messages::{Answer, Facts, Request, packed};
use crate::cx::clock;
use crate::cx::turn::OwnTime;
use crate::dataset::IterDataset;
use crate::element::Buffer;
use crate::error::{Error, ErrorKind, Result, Told};
use crate::sync::Locked;
use crate::workers::borders::Borders;
use crate::workers::control::{Begin, Done, FromWorker, Need, Ready, Task, ToWorker};
use crate::workers::far::cache::Made;
use crate::workers::far::pooled::Share;
use crate::workers::sys::usage;

/// Function that builds the borders of a pipeline from the first message.
type Make = Box<dyn FnOnce(&Begin) -> Result<Borders> + Send>;

/// A worker of a pipeline. Any number of threads may answer messages at once.
pub(crate) struct Evaluator {
    host: String,
    make: Mutex<Option<Make>>,
    borders: OnceLock<Borders>,
    blocks: Arc<Blocks>,
    /// State shared with evaluators of other passes, if the worker is pooled.
    share: Option<Share>,
}

impl Evaluator {
    /// Creates a worker on `host` for the pipeline built by `make`.
    pub(crate) fn new<D: IterDataset + 'static>(
        host: String,
        make: impl FnOnce() -> Result<D> + Send + 'static,
    ) -> Self {
        let make: Make = Box::new(move |begin| Borders::open(make()?, begin));
        Self { host, make: Mutex::new(Some(make)), borders: OnceLock::new(), blocks: Arc::default(), share: None }
    }

    /// Sets the state shared with evaluators of other passes.
    pub(super) fn sharing(self, share: Share) -> Self {
        Self { share: Some(share), ..self }
    }

    /// Answers a message; the block contains the result of a task.
    ///
    /// # Errors
    /// [`ErrorKind::Worker`] for an invalid message, or a task before [`ToWorker::Begin`].
    pub(crate) fn hear(&self, message: &[u8]) -> Result<(Vec<u8>, Option<Buffer>)> {
        let Request { message, packing, most } = Request::read(message)?;
        let (message, block) = match message {
            ToWorker::Begin(begin) => (Some(self.begin(&begin)), None),
            ToWorker::Task(task) => self.evaluate(&task).map(|(answer, block)| (Some(answer), block))?,
            ToWorker::Tell => (Some(FromWorker::Told(self.borders()?.drain())), None),
            // The engine decides the number of threads, and ends workers.
            ToWorker::Active(_) | ToWorker::Stop => (None, None),
        };
        let (block, packed) = match block.map(|block| packed(block, packing, most)) {
            Some((block, packed)) => (Some(block), packed),
            None => (None, None),
        };
        let answer = Answer { message, facts: self.facts(), packed };
        let answer = postcard::to_stdvec(&answer)
            .map_err(|e| Error::new(ErrorKind::Worker, format!("an answer cannot be written: {e}")))?;
        Ok((answer, block))
    }

    /// Builds the pipeline. A failure is reported to the parent, because it would also occur in other workers.
    fn begin(&self, begin: &Begin) -> FromWorker {
        let started = Instant::now();
        if begin.one_of_many {
            crate::store::be_one_of_many();
        }
        let twice = || Error::new(ErrorKind::Worker, "a worker was started twice");
        match self.make.locked().take().ok_or_else(twice).and_then(|make| make(begin)) {
            Ok(borders) => {
                let _ = self.borders.set(borders);
                FromWorker::Ready(Ready { build_ns: started.elapsed().as_nanos() as u64 })
            }
            Err(error) => FromWorker::Failed(Told::in_words(&error)),
        }
    }

    fn borders(&self) -> Result<&Borders> {
        self.borders.get().ok_or_else(|| Error::new(ErrorKind::Worker, "a task came before the start message"))
    }

    fn evaluate(&self, task: &Task) -> Result<(FromWorker, Option<Buffer>)> {
        let borders = self.borders()?;
        let Made { evaluated, took, block } = match &self.share {
            Some(share) => share.answer(task, || self.make(borders, task))?,
            None => self.make(borders, task)?,
        };
        if let Some(bytes) = evaluated.need.filter(|_| evaluated.indices == 0) {
            return Ok((FromWorker::Need(Need { id: task.id, bytes: bytes as u64, kept: false }), None));
        }
        let done = Done { id: task.id, evaluated, took, tally: borders.tally() };
        Ok((FromWorker::Done(done), Some(block)))
    }

    fn make(&self, borders: &Borders, task: &Task) -> Result<Made> {
        let own = OwnTime::start();
        let mut room = self.blocks.take(task.extent.len())?;
        let evaluated = borders.evaluate(task, room.as_mut_bytes())?;
        let block = self.blocks.lend(room, evaluated.used);
        Ok(Made { evaluated, took: own.until(Instant::now()), block })
    }

    fn facts(&self) -> Facts {
        let pid = std::process::id();
        let heap_bytes = usage::memory(pid).map_or(0, |memory| memory.anonymous);
        Facts { pid, host: self.host.clone(), cpu: clock::process_cpu(), heap_bytes }
    }
}
