//! The choices of how a pipeline is run, and its start.

use std::collections::VecDeque;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::ahead::Ahead;
use super::guarded::Guarded;
use super::parted::{Parted, Pass, Wanted};
use super::watched::Viewers;
use super::{Drive, Loader, typed_state};
use crate::checkpoint::{Checkpoint, Identity};
#[cfg(feature = "cli")]
use crate::cpu::Cpu;
#[cfg(feature = "cli")]
use crate::cx::Command;
use crate::cx::{Cause, Recorder};
use crate::dataset::iter::{keys_help, not_by_lanes, note_keys};
use crate::dataset::{DatasetIterator, IterDataset, Role, Stage};
use crate::error::{Error, Result};
use crate::exec::{Engine, Executor, Failed, FailedElements, Runtime};
use crate::fork::Ours;
use crate::keys::KeySource;
use crate::part::{Deal, Part, RowBatch};
use crate::report::{ConsumerMeter, First, remark};

/// Batches that may be kept ready: each has its place from the start.
const MOST_BUFFER: usize = 1 << 20;

/// Starts those who evaluate a pipeline, if that is neither the consumer's thread nor threads beside it.
pub(crate) trait Backend: Send {
    /// Starts them for the elements of `pipeline`; returns what runs it, and who evaluates in words.
    ///
    /// # Errors
    /// If they cannot be started.
    fn start(self: Box<Self>, pipeline: &dyn Stage, recorder: &Arc<Recorder>) -> Result<(Runtime, String)>;
}

impl Backend for Box<dyn Backend> {
    fn start(self: Box<Self>, pipeline: &dyn Stage, recorder: &Arc<Recorder>) -> Result<(Runtime, String)> {
        (*self).start(pipeline, recorder)
    }
}

/// Chooses how a pipeline is run: see [`Load::loader`](super::Load::loader).
#[must_use = "a builder does nothing until `build`"]
pub struct LoaderBuilder<D: IterDataset> {
    dataset: D,
    executor: Executor,
    buffer: usize,
    keeps_records: bool,
    resume: Option<Checkpoint>,
    accepts_changes: bool,
    backend: Option<Box<dyn Backend>>,
    parted: Option<Parted<D::Item>>,
    deal: Deal,
    keys: Option<Arc<dyn KeySource>>,
    failed_elements: FailedElements,
    pub(super) guarded: Option<Guarded<D::Item>>,
    pub(super) guard_timeout: Option<Duration>,
    pub(super) viewers: Viewers,
    #[cfg(feature = "cli")]
    command: Option<Command>,
    /// Counted remarks of the report from before the pass.
    #[cfg(feature = "cli")]
    notes: Vec<(&'static str, u64)>,
}

impl<D: IterDataset + 'static> LoaderBuilder<D> {
    pub(crate) fn new(dataset: D) -> Self {
        let (executor, deal) = (Executor::Inline, Deal::Even);
        Self {
            dataset,
            executor,
            buffer: 2,
            keeps_records: true,
            resume: None,
            accepts_changes: false,
            backend: None,
            parted: None,
            deal,
            keys: None,
            failed_elements: FailedElements::Error,
            guarded: None,
            guard_timeout: None,
            viewers: Viewers::default(),
            #[cfg(feature = "cli")]
            command: None,
            #[cfg(feature = "cli")]
            notes: Vec::new(),
        }
    }

    /// The pipeline.
    pub(crate) fn dataset(&self) -> &D {
        &self.dataset
    }

    /// Counts shards in the report that the pipeline leaves out.
    #[cfg(feature = "cli")]
    pub(crate) fn skipped_shards(mut self, shards: usize) -> Self {
        self.notes.extend((shards > 0).then_some(("bad shards skipped", shards as u64)));
        self
    }

    /// Has those evaluate the elements that `backend` starts, in place of an [`executor`](Self::executor).
    #[cfg(all(feature = "workers", target_os = "linux"))]
    pub(crate) fn backend(mut self, backend: impl Backend + 'static) -> Self {
        self.backend = Some(Box::new(backend));
        self
    }

    /// Who evaluates it; [`Executor::Inline`] at first. The choice never changes the elements.
    pub fn executor(mut self, executor: Executor) -> Self {
        self.executor = executor;
        self
    }

    /// `n` threads for the elementwise part and one for the stateful part.
    pub fn threads(self, n: usize) -> Self {
        self.executor(Executor::Threads(n))
    }

    /// Batches kept ready ahead of the consumer by [`Executor::Threads`]; 2 at first, and 1,048,576 at most.
    pub fn buffer(mut self, batches: usize) -> Self {
        self.buffer = batches.max(1);
        self
    }

    /// Whether single batches and chunks are recorded, as they always are: what that costs is measured by doing without.
    #[doc(hidden)]
    pub fn keep_records(mut self, keep: bool) -> Self {
        self.keeps_records = keep;
        self
    }

    /// Marks the pass as the run of a command. `is_drained`: the loop of the command discards the elements.
    #[cfg(feature = "cli")]
    pub(crate) fn command(mut self, is_drained: bool) -> Self {
        self.command = Some(Command { is_drained, cpu: Cpu::now() });
        self
    }

    /// Continues where `checkpoint` was taken, under whatever executor that was.
    pub fn resume(mut self, checkpoint: Checkpoint) -> Self {
        self.resume = Some(checkpoint);
        self
    }

    /// Accepts a state of another pipeline: a file was withdrawn, a weight or a function's name has changed. Positions are taken as they are, and the change is
    /// logged, stands in the report and in all later [states](Checkpoint::accepted_changes).
    ///
    /// Stages after `to_iter` that hold positions must be as before: the state of a stream of other parents does not fit.
    pub fn accept_changes(mut self, accept: bool) -> Self {
        self.accepts_changes = accept;
        self
    }

    /// Delivers only the rows of `part` of every batch: see [`part`](crate::part). All else is as without: the batches of the pipeline are the global
    /// ones, and any part goes on from the state of any other.
    pub fn part(mut self, part: Part) -> Self
    where
        D::Item: RowBatch,
    {
        self.parted = Some(Parted::new(part));
        self
    }

    /// Chooses how rows are dealt among [parts](Self::part); [`Deal::Even`] at first. Another deal needs to know what all rows of a batch cost: where they are
    /// planned by [keys](Self::keys) and packed, and cost what their segments do, the plan says it; else each host evaluates all of them.
    pub fn deal(mut self, deal: Deal) -> Self {
        self.deal = deal;
        self
    }

    /// Plans the rows of a [part](Self::part) out of keys, where they decide by no more than those, so that elements of other parts are not
    /// evaluated: see [`plan`](crate::dataset::plan). The batches are the same.
    pub fn keys(mut self, keys: impl KeySource + 'static) -> Self {
        self.keys = Some(Arc::new(keys));
        self
    }

    /// Chooses what becomes of an element that fails after rows of a [part](Self::part) were planned of it, by [keys](Self::keys) or by
    /// indices; [`FailedElements::Error`] at first. Where hosts evaluate all elements it changes nothing: there is no plan, and one that fails is an error, or what
    /// [`on_bad_record`](crate::dataset::iter::Stream::on_bad_record) says.
    pub fn on_failed_element(mut self, policy: FailedElements) -> Self {
        self.failed_elements = policy;
        self
    }

    /// Answers `GET /metrics` at `address` while the pass lives, with its [figures](crate::Report::metrics) as OpenMetrics text, for Prometheus: `"127.0.0.1:9464"`, or a
    /// port alone, which nobody but this machine reaches. On Linux other users of it but root are refused, unless `everybody@` stands in front. One thread answers, of what is counted anyway; port 0 is a free one, which
    /// [`Loader::metrics_address`] tells.
    pub fn metrics(mut self, address: impl Into<String>) -> Self {
        self.viewers.metrics = Some(address.into());
        self
    }

    /// Records the pass in a file while it runs: every batch and chunk, and the report as of then, once a second at first. [`Report::from_record`](crate::Report::from_record)
    /// and `gristmill report` read it back, also where the process was killed. A recording that is there is kept beside it as `NAME.1.ENDING`.
    pub fn record(mut self, path: impl Into<PathBuf>) -> Self {
        self.viewers.record = Some(path.into());
        self
    }

    /// Writes the pass as a trace while it runs, in Chrome's format of events, which Perfetto shows: the steps and waits of the consumer, batches as they were made, chunks as
    /// they were evaluated, with arrows from each to its batch and step, and the buffer and memory over time. A file that ends in `.gz` is compressed.
    pub fn trace(mut self, path: impl Into<PathBuf>) -> Self {
        self.viewers.trace = Some(path.into());
        self
    }

    /// Lets people of this machine look at the pass while it runs, by `gristmill top`: over a socket that only the same user may open, in `XDG_RUNTIME_DIR` or a folder
    /// of the user's own among temporary files. `GRISTMILL_TOP=1` in the environment does so for every pass. Needs Linux and the feature `top`.
    pub fn top(mut self) -> Self {
        self.viewers.top = true;
        self
    }

    /// Starts.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) naming the stage that cannot work, and for an address of metrics that is none, or is taken; [`ErrorKind::State`](crate::ErrorKind::State)
    /// for a checkpoint of another pipeline; what the sources report while elements in memory are read again.
    pub fn build(mut self) -> Result<Loader<D>> {
        if self.buffer > MOST_BUFFER {
            let text = format!("buffer is {}, and must be {MOST_BUFFER} or less", self.buffer);
            return Err(Error::config(text).help("it counts batches that are kept ready, not bytes"));
        }
        (&self.dataset as &dyn Stage).check_all()?;
        warn_of_orders(&self.dataset);
        let parted = match (self.parted.take(), std::mem::take(&mut self.deal)) {
            (Some(parted), deal) => Some(parted.dealt(deal)?),
            (None, Deal::Even) => None,
            (None, _) => {
                let text = "rows are to be dealt among ranks, and no part says which rank of how many this is";
                return Err(Error::config(text).help("add `part`"));
            }
        };
        let guarded = self.guarded(parted.is_some())?;
        let stages = (&self.dataset as &dyn Stage).count();
        let recorder = if self.keeps_records { Recorder::new(stages) } else { Recorder::without_records(stages) };
        #[cfg(feature = "cli")]
        self.command.into_iter().for_each(|command| recorder.set_command(command));
        #[cfg(feature = "cli")]
        self.notes.iter().for_each(|(what, count)| recorder.note(what, *count));
        let (run, executor) = self.runtime(&recorder)?;
        let keys = self.keys.take();
        let key_recorder = keys.as_ref().and_then(|keys| keys.recorder());
        // Keys that are needed would be an error where none can be made.
        let help = || parted.as_ref().is_none_or(|parted| keys_help(&self.dataset, parted.deal()));
        let keys = keys.filter(|_| key_recorder.is_some() || help());
        // One host of all writes the files.
        let is_first = parted.as_ref().is_none_or(|parted| parted.part().has_first_row());
        let key_recorder = key_recorder.filter(|_| is_first);
        let deal = parted.as_ref().map(|parted| parted.deal().clone()).unwrap_or_default();
        let failed = Arc::new(Failed::new(self.failed_elements));
        let run = run.with_keys(keys).with_deal(deal).with_failed(failed);
        let run = match &key_recorder {
            Some(recorder) => note_keys(&self.dataset, run, recorder)?,
            None => run,
        };
        let mut identity = Identity::of(&self.dataset);
        let wanted = Wanted::new(Mutex::new(parted.as_ref().map(|parted| parted.part().clone())));
        let dataset = Arc::new(self.dataset);
        let mut iter = Pass::start(dataset.clone(), &run, wanted.clone())?;
        let by_rows = iter.is_of_part().then_some(wanted);
        if by_rows.is_none() && *run.deal() == Deal::Lanes {
            return Err(not_by_lanes(&*dataset, &run));
        }
        let mut cx = run.cx();
        let (mut delivered, mut begins) = (0, Cause::Start);
        if let Some(checkpoint) = self.resume {
            identity = identity.after(&checkpoint, self.accepts_changes)?;
            identity.log_change_since(&checkpoint);
            iter.restore(typed_state::<D>(checkpoint.state)?, &mut cx)?;
            (delivered, begins) = (checkpoint.delivered, Cause::Restore);
        }
        let state = iter.state();
        let mut meter = ConsumerMeter::default();
        let drive = match run.engine() {
            Engine::Inline => Drive::Inline { iter, cx: Box::new(cx), begins: Some(begins) },
            _ => {
                meter.capacity = self.buffer;
                Drive::Ahead(Ours::new(Ahead::start(iter, cx, self.buffer, &run, begins)?))
            }
        };
        let first = First::default();
        let watched = self.viewers.start(&dataset, &executor, &recorder, &run)?;
        Ok(Loader {
            dataset,
            identity,
            #[cfg(feature = "python")]
            accepts_changes: self.accepts_changes,
            executor,
            run,
            recorder,
            drive,
            state,
            earlier: VecDeque::new(),
            withheld: None,
            delivered,
            meter,
            first,
            parted,
            by_rows,
            guarded,
            key_recorder,
            watched,
            ended: false,
        })
    }

    /// Who evaluates, and that in words.
    fn runtime(&mut self, recorder: &Arc<Recorder>) -> Result<(Runtime, String)> {
        if let Some(backend) = self.backend.take() {
            return backend.start(&self.dataset, recorder);
        }
        Ok((Runtime::new(self.executor, Some(recorder.clone()))?, self.executor.to_string()))
    }
}

/// Warns of orders that are seldom meant.
fn warn_of_orders(pipeline: &dyn Stage) {
    pipeline.walk(&mut |id, stage| {
        if stage.role() == Role::Order
            && let Some(text) = remark(id, stage)
        {
            tracing::warn!("{text}");
        }
    });
}

impl<D: IterDataset> fmt::Debug for LoaderBuilder<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoaderBuilder").field("executor", &self.executor).finish_non_exhaustive()
    }
}
