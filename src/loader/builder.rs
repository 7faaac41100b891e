//! The options of a run, and its start.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::ahead::Ahead;
use super::edited::check_sizes;
use super::guarded::Guarded;
use super::limit::Limit;
use super::parted::{Number, Parted, Pass, Wanted};
use super::traced::Logged;
use super::watched::Viewers;
use super::{Drive, Host, Loader, Position, typed_state};
use crate::checkpoint::{Checkpoint, Identity};
use crate::cpu::Cpu;
use crate::cx::Command;
use crate::cx::{Cause, Recorder};
use crate::dataset::iter::{edited_stages, keys_help, not_by_lanes, note_keys};
use crate::dataset::{DatasetIterator, IterDataset, Role, Stage};
use crate::edits::{Edits, RunEdits};
use crate::error::{Error, Result};
use crate::exec::{Engine, Executor, Failed, FailedElements, Runtime};
use crate::fork::Ours;
use crate::keys::KeySource;
use crate::part::{Deal, Part, RowBatch};
use crate::report::{ConsumerMeter, First, remark};

/// Maximum number of batches kept ready: each has a preallocated place.
const MOST_BUFFER: usize = 1 << 20;

/// Alternative to an [`Executor`]: starts another evaluator, such as worker processes.
pub(crate) trait Backend: Send {
    /// Starts the evaluator for the elements of `pipeline`. Returns its runtime and a description of it.
    ///
    /// # Errors
    /// If the evaluator cannot be started.
    fn start(self: Box<Self>, pipeline: &dyn Stage, recorder: &Arc<Recorder>) -> Result<(Runtime, String)>;
}

impl Backend for Box<dyn Backend> {
    fn start(self: Box<Self>, pipeline: &dyn Stage, recorder: &Arc<Recorder>) -> Result<(Runtime, String)> {
        (*self).start(pipeline, recorder)
    }
}

/// Builder of a [`Loader`]: see [`Load::loader`](super::Load::loader).
#[must_use = "a builder does nothing until `build`"]
pub struct LoaderBuilder<D: IterDataset> {
    dataset: D,
    executor: Executor,
    buffer: usize,
    timeout: Option<Duration>,
    keeps_records: bool,
    past: Past,
    backend: Option<Box<dyn Backend>>,
    rows: Rows<D::Item>,
    pub(super) guarded: Option<Guarded<D::Item>>,
    pub(super) guard_timeout: Option<Duration>,
    pub(super) viewers: Viewers,
    pub(super) logged: Logged,
    command: Option<Command>,
    /// Counted remarks for the report, from before the pass.
    notes: Vec<(&'static str, u64)>,
}

/// The run before this pass, and its changes.
#[derive(Default)]
struct Past {
    resume: Option<Checkpoint>,
    accepts_changes: bool,
    edits: Edits,
}

/// Options for the rows of a part.
struct Rows<T> {
    parted: Option<Parted<T>>,
    deal: Deal,
    keys: Option<Arc<dyn KeySource>>,
    failed_elements: FailedElements,
}

impl<D: IterDataset + 'static> LoaderBuilder<D> {
    pub(crate) fn new(dataset: D) -> Self {
        Self {
            dataset,
            executor: Executor::Inline,
            buffer: 2,
            timeout: None,
            keeps_records: true,
            past: Past::default(),
            backend: None,
            rows: Rows { parted: None, deal: Deal::Even, keys: None, failed_elements: FailedElements::Error },
            guarded: None,
            guard_timeout: None,
            viewers: Viewers::default(),
            logged: Logged::default(),
            command: None,
            notes: Vec::new(),
        }
    }

    /// Returns the pipeline.
    pub(crate) fn dataset(&self) -> &D {
        &self.dataset
    }

    setters! {
        /// Evaluates elements by `backend`, instead of an [`executor`](Self::executor).
        pub(crate) backend(backend: impl Backend + 'static) => backend = Some(Box::new(backend));

        /// Sets the executor; [`Executor::Inline`] by default. The choice never changes the elements.
        pub executor: Executor;

        /// Sets the number of batches that [`Executor::Threads`] keeps ready ahead of the consumer; 2 by default, at
        /// most 1,048,576.
        pub buffer(batches: usize) => buffer = batches.max(1);

        /// Limits the time that [`next`](Iterator::next) waits for an element. Default: no limit.
        ///
        /// A longer wait is an error of kind [`ErrorKind::Worker`](crate::ErrorKind::Worker), and the loader ends. Its
        /// [`state`](Loader::state) is the position before the element, so the run can be resumed. The consumer's own
        /// time does not count. [`build`](Self::build) refuses a limit for [`Executor::Inline`], whose elements are
        /// evaluated by `next` itself.
        pub timeout(limit: Duration) => timeout = Some(limit);

        /// Sets whether single batches and chunks are recorded, as they are by default. Turning it off shows the cost
        /// of recording.
        #[doc(hidden)]
        pub keep_records(keep: bool) => keeps_records = keep;

        /// Resumes from `checkpoint`, which may come from any executor.
        pub resume(checkpoint: Checkpoint) => past.resume = Some(checkpoint);

        /// Accepts the state of another pipeline: a file was withdrawn, or a weight or the name of a function has
        /// changed.
        ///
        /// Positions are taken unchanged. The change is logged, and recorded in the report and in all later
        /// [states](Checkpoint::accepted_changes).
        ///
        /// Stages after `to_iter` that hold positions must not change: the state of a stream does not fit other
        /// parents.
        pub accept_changes(accept: bool) => past.accepts_changes = accept;

        /// Changes the stream from certain batches on.
        ///
        /// Every [state](Checkpoint::edits) contains the edits that have changed a batch before it. It restores only if
        /// the log still begins with them. Edits of later batches may be added, changed or removed between runs. All
        /// hosts must have equal edits.
        ///
        /// ```
        /// use gristmill::{Edits, dataset::map::Range, prelude::*};
        /// let batches = Range::new(0, 10).to_iter().batch(2).loader().edits(Edits::default().skip(1, 2)).build()?;
        /// let firsts: Vec<i64> = batches.map(|batch| Ok(batch?[0])).collect::<gristmill::Result<_>>()?;
        /// assert_eq!(firsts, [0, 6, 8]);
        /// # Ok::<(), gristmill::Error>(())
        /// ```
        ///
        /// # Cost
        /// Batches that are left out are evaluated. Without edits, a comparison for each batch.
        pub edits(edits: Edits) => past.edits = edits;

        /// Sets how rows are dealt among [parts](Self::part); [`Deal::Even`] by default.
        ///
        /// Deals by cost require the cost of every row of a batch. The plan contains the costs if rows are planned by
        /// [keys](Self::keys) and packed, and their cost depends on their segments only. Otherwise each host evaluates
        /// all rows.
        pub deal(deal: Deal) => rows.deal = deal;

        /// Plans the rows of a [part](Self::part) from keys, so that elements of other parts are not evaluated.
        ///
        /// Applies if keys are enough to plan the rows: see [`plan`](crate::dataset::plan). The batches do not change.
        pub keys(keys: impl KeySource + 'static) => rows.keys = Some(Arc::new(keys));

        /// Sets the policy for an element that fails after its row of a [part](Self::part) was planned, by
        /// [keys](Self::keys) or by indices; [`FailedElements::Error`] by default.
        ///
        /// The policy has no effect if hosts evaluate all elements, because there is no plan. A failed element is then
        /// an error, or handled by [`on_bad_record`](crate::dataset::iter::Stream::on_bad_record).
        pub on_failed_element(policy: FailedElements) => rows.failed_elements = policy;

        /// Serves `GET /metrics` at `address` during the pass: its [figures](crate::Report::metrics) as OpenMetrics
        /// text, for Prometheus.
        ///
        /// `address` is a socket address such as `"127.0.0.1:9464"`, or only a port, which is reachable from this
        /// machine only. Port 0 picks a free port, which [`Loader::metrics_address`] returns.
        ///
        /// On Linux, other users of the machine except root are refused, unless the address begins with `everybody@`.
        /// One thread serves all requests, from counts that are kept anyway.
        pub metrics(address: impl Into<String>) => viewers.metrics = Some(address.into());

        /// Records the pass in a file while it runs: every batch and chunk, and the report, at first once a second.
        ///
        /// [`Report::from_record`](crate::Report::from_record) and `gristmill report` read the recording, even if the
        /// process was killed. An existing recording is kept as `NAME.1.ENDING`.
        pub record(path: impl Into<PathBuf>) => viewers.record = Some(path.into());

        /// Writes a trace of the pass while it runs, in Chrome's trace event format, which Perfetto displays.
        ///
        /// The trace contains the steps and waits of the consumer, the making of batches, and the evaluation of chunks.
        /// Arrows lead from each chunk to its batch and step. Counters show the buffer and memory over time. A file
        /// name that ends in `.gz` is compressed.
        pub trace(path: impl Into<PathBuf>) => viewers.trace = Some(path.into());
    }

    /// Uses `n` threads for the elementwise part and one for the stateful part.
    pub fn threads(self, n: usize) -> Self {
        self.executor(Executor::Threads(n))
    }

    /// Raises the [buffer](Self::buffer) to at least `batches`.
    pub(crate) fn buffer_at_least(self, batches: usize) -> Self {
        let batches = batches.max(self.buffer);
        self.buffer(batches)
    }

    /// Delivers only the rows of `part` of every batch: see [`part`](crate::part).
    ///
    /// The batches of the pipeline are the global batches. Any part can continue from the state of any other part.
    pub fn part(mut self, part: Part) -> Self
    where
        D::Item: RowBatch,
    {
        self.rows.parted = Some(Parted::new(part));
        self
    }

    /// Offers a live view of the running pass to `gristmill top` on this machine. Needs Linux and the feature `top`.
    ///
    /// The socket is open to the same user only. It is in `XDG_RUNTIME_DIR`, or in a private folder of the user among temporary files.
    /// `GRISTMILL_TOP=1` in the environment offers the view for every pass.
    pub fn top(mut self) -> Self {
        self.viewers.top = true;
        self
    }

    /// Starts the pass.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) with the name of a stage that cannot work, or for an invalid or occupied metrics address.
    /// [`ErrorKind::State`](crate::ErrorKind::State) for a checkpoint of another pipeline.
    /// Errors of the sources if elements in memory are read again.
    pub fn build(mut self) -> Result<Loader<D>> {
        if self.buffer > MOST_BUFFER {
            let text = format!("buffer is {}, and must be {MOST_BUFFER} or less", self.buffer);
            return Err(Error::config(text).help("it counts prefetched batches, not bytes"));
        }
        (&self.dataset as &dyn Stage).check_all()?;
        self.past.edits.check()?;
        warn_of_orders(&self.dataset);
        let parted = match (self.rows.parted.take(), std::mem::take(&mut self.rows.deal)) {
            (Some(parted), deal) => Some(parted.dealt(deal)?),
            (None, Deal::Even) => None,
            (None, _) => {
                let text =
                    "rows cannot be dealt among ranks without a part, which gives the rank and the number of ranks";
                return Err(Error::config(text).help("add `part`"));
            }
        };
        let guarded = self.guarded(parted.is_some())?;
        let stages = (&self.dataset as &dyn Stage).count();
        let recorder = if self.keeps_records { Recorder::new(stages) } else { Recorder::without_records(stages) };
        self.command.into_iter().for_each(|command| recorder.set_command(command));
        self.notes.iter().for_each(|(what, count)| recorder.note(what, *count));
        let (run, executor) = self.runtime(&recorder)?;
        let limit = self.timeout.map(Limit::new);
        if limit.is_some() && matches!(run.engine(), Engine::Inline) {
            let error =
                Error::config("`timeout` needs threads or worker processes: the consumer evaluates the elements");
            return Err(error.help("add `threads` or `workers`, or omit `timeout`"));
        }
        let keys = self.rows.keys.take();
        let key_recorder = keys.as_ref().and_then(|keys| keys.recorder());
        // Drops keys that are not needed, because failing to make them would be an error.
        let help = || parted.as_ref().is_none_or(|parted| keys_help(&self.dataset, parted.deal()));
        let keys = keys.filter(|_| key_recorder.is_some() || help());
        // Only one of the hosts writes the files.
        let is_first = parted.as_ref().is_none_or(|parted| parted.part().has_first_row());
        let key_recorder = key_recorder.filter(|_| is_first);
        let deal = parted.as_ref().map(|parted| parted.deal().clone()).unwrap_or_default();
        let failed = Arc::new(Failed::new(self.rows.failed_elements));
        let stages = edited_stages(&self.dataset, &self.past.edits)?;
        check_sizes(&self.past.edits, parted.as_ref().map(Parted::part))?;
        let edits = Arc::new(RunEdits::new(self.past.edits.clone(), stages));
        let run = run.with_keys(keys).with_deal(deal).with_failed(failed).with_edits(edits);
        let run = match &key_recorder {
            Some(recorder) => note_keys(&self.dataset, run, recorder)?,
            None => run,
        };
        let mut identity = Identity::of(&self.dataset).edited(self.past.edits);
        let wanted = Wanted::new(Mutex::new(parted.as_ref().map(|parted| parted.part().clone())));
        let dataset = Arc::new(self.dataset);
        let restored = Number::default();
        let mut iter = Pass::start(dataset.clone(), &run, wanted.clone())?.restored_at(&restored);
        let by_rows = iter.is_of_part().then_some(wanted);
        if by_rows.is_none() && *run.deal() == Deal::Lanes {
            return Err(not_by_lanes(&*dataset, &run));
        }
        let mut cx = run.cx();
        let (mut delivered, mut begins) = (0, Cause::Start);
        if let Some(checkpoint) = self.past.resume {
            identity = identity.after(&checkpoint, self.past.accepts_changes)?;
            identity.log_change_since(&checkpoint);
            restored.store(checkpoint.delivered, Relaxed);
            run.edits().resume(checkpoint.delivered, checkpoint.edited_mix)?;
            iter.restore(typed_state::<D>(checkpoint.state)?, &mut cx)?;
            (delivered, begins) = (checkpoint.delivered, Cause::Restore);
        }
        let state = iter.state();
        let mut meter = ConsumerMeter::default();
        let drive = match run.engine() {
            Engine::Inline => Drive::Inline { iter, cx: Box::new(cx), begins: Some(begins) },
            _ => {
                meter.buffer.capacity = self.buffer;
                Drive::Ahead(Ours::new(Ahead::start(iter, cx, self.buffer, &run, begins)?))
            }
        };
        let watched = self.viewers.start(&dataset, &executor, &recorder, &run)?;
        let mut loader = Loader {
            dataset,
            identity,
            accepts_changes: self.past.accepts_changes,
            executor,
            run,
            recorder,
            drive,
            position: Position { state, delivered, earlier: VecDeque::new(), withheld: None, restored },
            meter,
            first: First::default(),
            host: Host { parted, by_rows, guarded, ledger: None },
            limit,
            key_recorder,
            watched,
            ended: false,
        };
        loader.begin_log(self.logged)?;
        Ok(loader)
    }

    /// Starts the runtime. Returns it with a description.
    fn runtime(&mut self, recorder: &Arc<Recorder>) -> Result<(Runtime, String)> {
        if let Some(backend) = self.backend.take() {
            return backend.start(&self.dataset, recorder);
        }
        Ok((Runtime::new(self.executor, Some(recorder.clone()))?, self.executor.to_string()))
    }
}

impl<D: IterDataset + 'static> LoaderBuilder<D> {
    /// Adds the number of shards that the pipeline leaves out to the report.
    pub(crate) fn skipped_shards(mut self, shards: usize) -> Self {
        self.notes.extend((shards > 0).then_some(("bad shards skipped", shards as u64)));
        self
    }

    /// Marks the pass as the run of a command. `is_drained`: the command's loop discards the elements.
    pub(crate) fn command(mut self, is_drained: bool) -> Self {
        self.command = Some(Command { is_drained, cpu: Cpu::now() });
        self
    }
}

/// Warns of orders that are seldom intended.
fn warn_of_orders(pipeline: &dyn Stage) {
    pipeline.walk(&mut |id, stage| {
        if stage.role() == Role::Order
            && let Some(text) = remark(id, stage)
        {
            tracing::warn!("{text}");
        }
    });
}

debug_as!(<D: IterDataset> LoaderBuilder<D>, |self, f| {
    f.debug_struct("LoaderBuilder").field("executor", &self.executor).finish_non_exhaustive()
});
