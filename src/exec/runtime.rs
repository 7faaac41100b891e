use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use super::demand::Demand;
use super::failed::Failed;
use super::figures::WorkersReport;
use super::plans_only::PlansOnly;
use super::pool::Pool;
#[cfg(all(feature = "workers", target_os = "linux"))]
use super::remote::{Border, Remote, Served};
use super::tuning::Tuning;
use crate::cx::{Cause, Cx, Recorder, Response, StageId};
use crate::edits::RunEdits;
use crate::error::{Error, Result};
use crate::fork::Ours;
use crate::keys::KeySource;
use crate::part::{Deal, Part};
use crate::sync::Locked;
use crate::tune::Decision;

/// Executor of a pipeline: the threads that evaluate its elementwise part and its stateful part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Executor {
    /// Evaluates everything on the consumer's thread, on demand.
    ///
    /// No function or source of the user is called before its element, or the batch with that element, is requested.
    /// Elements that need only the crate's stages are made at most 50 µs ahead.
    Inline,
    /// Evaluates the elementwise part on this number of threads, and the stateful part on one more. Both run ahead of the consumer.
    Threads(usize),
    /// Evaluates like [`Threads`](Self::Threads), and tunes the number of threads and the prefetch to the consumer's demand.
    ///
    /// Starts with one thread per core, and uses up to 256 if elements mostly wait.
    Auto,
}

impl Executor {
    /// Returns the executor with one thread per available core.
    pub fn all_cores() -> Self {
        Self::Threads(cores())
    }
}

/// Maximum wait for the counts of other processes.
const SYNC: Duration = Duration::from_millis(200);

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

display_as!(Executor, |self, f| {
    match self {
        Self::Inline => f.write_str("inline"),
        Self::Threads(n) => write!(f, "{n} thread{}", if *n == 1 { "" } else { "s" }),
        Self::Auto => f.write_str("threads, tuned automatically"),
    }
});

/// Context in which an [`IterDataset`](crate::IterDataset) starts a pass: the evaluator of its elements, and the recorder of counts.
///
/// A stage passes its runtime on to its parents. A stage with several parents shifts the stage ids of each by [`offset`](Self::offset).
#[derive(Clone, Debug, Default)]
pub struct Runtime {
    engine: Engine,
    recorder: Option<Arc<Recorder>>,
    pub(crate) demand: Arc<Demand>,
    tuning: Option<Arc<Ours<Tuning>>>,
    keys: Option<Arc<dyn KeySource>>,
    /// Recorders of the keys that pass each border, if keys are recorded.
    key_recorders: Option<Arc<KeyRecorders>>,
    /// Census of batches that are only planned, if there is one. [`Runtime::census`] restores its type.
    census: Option<Arc<dyn Any + Send + Sync>>,
    /// First reason why the pipeline has no plan.
    unplanned: Arc<OnceLock<String>>,
    deal: Arc<Deal>,
    edits: Arc<RunEdits>,
    failed: Arc<Failed>,
    /// Present if passes over planned rows yield the plan of each batch and make no elements.
    plans_only: Option<Arc<PlansOnly>>,
    base: usize,
    /// Share of each batch to evaluate, as (index, count), unless all is evaluated.
    share: Option<(u32, u32)>,
    /// Whether at most half of the rows of each batch are evaluated here.
    apart: bool,
}

/// Recorders of keys by the id of their stage. [`Runtime::key_recorder`] restores their type.
type KeyRecorders = Mutex<HashMap<usize, Arc<dyn Any + Send + Sync>>>;

/// Evaluator of elements.
#[derive(Clone, Debug, Default)]
pub(crate) enum Engine {
    /// The consumer's thread, on demand.
    #[default]
    Inline,
    /// Threads of this process.
    Threads(Arc<Pool>),
    /// Worker processes.
    #[cfg(all(feature = "workers", target_os = "linux"))]
    Workers(Arc<dyn Remote>),
    /// This process is a worker. Borders define the evaluation of their elements, and nothing is read in order.
    #[cfg(all(feature = "workers", target_os = "linux"))]
    Serving(Arc<Served>),
}

impl Runtime {
    /// Returns a runtime without threads and counts.
    pub fn inline() -> Self {
        Self::default()
    }

    /// Makes the runtime of `executor`, which counts into `recorder`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for 0 threads, [`ErrorKind::Io`](crate::ErrorKind::Io) if a thread cannot be started.
    pub fn new(executor: Executor, recorder: Option<Arc<Recorder>>) -> Result<Self> {
        let engine = match executor {
            Executor::Inline => Engine::Inline,
            Executor::Auto => return Self::tuned(recorder),
            Executor::Threads(0) => {
                return Err(Error::config("threads is 0").help("1 or more threads, or the executor `inline`"));
            }
            Executor::Threads(n) => Engine::Threads(Pool::start(n)?),
        };
        Ok(Self::of(engine, recorder))
    }

    fn tuned(recorder: Option<Arc<Recorder>>) -> Result<Self> {
        let pool = Pool::start(cores())?;
        let run = Self::of(Engine::Threads(pool.clone()), recorder.clone());
        let tuning = Ours::new(Tuning::start(pool, run.demand.clone(), recorder)?);
        Ok(Self { tuning: Some(Arc::new(tuning)), ..run })
    }

    pub(crate) fn of(engine: Engine, recorder: Option<Arc<Recorder>>) -> Self {
        Self { engine, recorder, ..Self::default() }
    }

    setters! {
        /// Sets the keys by which rows can be planned.
        pub(crate) with_keys(keys: Option<Arc<dyn KeySource>>) => keys = keys;

        /// Shares the recorders of keys of `others`, if keys are recorded there.
        pub(crate) recording_keys_with(others: &Self) => key_recorders = others.key_recorders.clone();

        /// Sets the deal of the rows of a part.
        pub(crate) with_deal(deal: Deal) => deal = Arc::new(deal);

        /// Sets the edits of the run.
        pub(crate) with_edits(edits: Arc<RunEdits>) => edits = edits;

        /// Sets the policy for elements that fail after their rows were planned.
        pub(crate) with_failed(failed: Arc<Failed>) => failed = failed;
    }

    /// Returns the source of keys, if there is one.
    pub(crate) fn keys(&self) -> Option<&dyn KeySource> {
        self.keys.as_deref()
    }

    /// Returns a shared reference to the source of keys, if there is one.
    pub(crate) fn shared_keys(&self) -> Option<Arc<dyn KeySource>> {
        self.keys.clone()
    }

    /// Enables the recording of keys.
    pub(crate) fn recording_keys(self) -> Self {
        Self { key_recorders: Some(Arc::default()), ..self }
    }

    /// Adds the recorder of the pass over `stage`, if keys are recorded.
    pub(crate) fn add_key_recorder(&self, stage: StageId, recorder: impl FnOnce() -> Arc<dyn Any + Send + Sync>) {
        if let Some(recorders) = &self.key_recorders {
            recorders.locked().insert(self.base + stage.0 as usize, recorder());
        }
    }

    /// Returns true if keys are recorded: on the thread that reads the elements, in their order.
    pub(crate) fn records_keys(&self) -> bool {
        self.key_recorders.is_some()
    }

    /// Returns the recorder of the keys that pass `stage`, if any.
    pub(crate) fn key_recorder<N: Any + Send + Sync>(&self, stage: StageId) -> Option<Arc<N>> {
        let found = self.key_recorders.as_ref()?.locked().get(&(self.base + stage.0 as usize)).cloned()?;
        found.downcast().ok()
    }

    /// Sets the census of batches that are [only planned](Self::only_planning).
    pub(crate) fn with_census(self, census: Arc<dyn Any + Send + Sync>) -> Self {
        Self { census: Some(census), ..self.only_planning(Arc::default()) }
    }

    /// Returns true if there is a census of batches.
    pub(crate) fn has_census(&self) -> bool {
        self.census.is_some()
    }

    /// Returns the census of batches, if there is one.
    pub(crate) fn census<N: Any + Send + Sync>(&self) -> Option<Arc<N>> {
        self.census.clone()?.downcast().ok()
    }

    /// Records the reason why there is no plan, unless a reason is recorded already.
    /// `place` is the stage's place in this part of the pipeline; `why` receives the stage's id.
    pub(crate) fn note_unplanned(&self, place: usize, why: impl FnOnce(usize) -> String) {
        self.unplanned.get_or_init(|| why(self.base + place));
    }

    /// Returns the reason why there is no plan, after a plan was requested.
    pub(crate) fn unplanned(&self) -> Option<&str> {
        self.unplanned.get().map(String::as_str)
    }

    /// Returns the deal of the rows of a part.
    pub(crate) fn deal(&self) -> &Deal {
        &self.deal
    }

    /// Returns the edits of the run.
    pub(crate) fn edits(&self) -> &Arc<RunEdits> {
        &self.edits
    }

    /// Returns the elements that failed after their rows were planned.
    pub(crate) fn failed(&self) -> &Arc<Failed> {
        &self.failed
    }

    /// Makes passes over planned rows yield the plan of each batch, and make no elements.
    pub(crate) fn only_planning(self, plans: Arc<PlansOnly>) -> Self {
        Self { plans_only: Some(plans), ..self }
    }

    /// Returns the settings of [`only_planning`](Self::only_planning); `None` if elements are made.
    pub(crate) fn plans_only(&self) -> Option<&Arc<PlansOnly>> {
        self.plans_only.as_ref()
    }

    /// Returns the runtime of a parent whose stage ids start `stages` higher.
    #[must_use]
    pub fn offset(&self, stages: usize) -> Self {
        Self { base: self.base + stages, ..self.clone() }
    }

    /// Returns the runtime of a pass over the rows of `part` only.
    pub(crate) fn over(&self, part: &Part) -> Self {
        Self { apart: part.is_half_at_most(), ..self.clone() }
    }

    /// Returns true if a pass over the rows of a part leaves out at least half of all elements.
    pub(crate) fn is_apart(&self) -> bool {
        self.apart
    }

    /// Returns the runtime for the elements of a part of every batch. `share` is (index, count), or `None` for other parts.
    /// Returns `None` if elements are evaluated elsewhere and `share` cannot describe the part.
    pub(crate) fn for_part(&self, share: Option<(usize, usize)>) -> Option<Self> {
        let number = |number: usize| u32::try_from(number).ok();
        let share = share.and_then(|(index, count)| Some((number(index)?, number(count)?)));
        (share.is_some() || self.reads_here()).then(|| Self { share, ..self.clone() })
    }

    /// Returns the id of a stage in the whole pipeline.
    pub(crate) fn id_of(&self, stage: StageId) -> usize {
        self.base + stage.index()
    }

    /// Records the elements given to the consumer, and the cause of its wait for them.
    pub(crate) fn responded(&self, response: &Response, begins: Option<Cause>) {
        if let Some(recorder) = &self.recorder {
            recorder.responded(response, begins);
        }
    }

    /// Makes a context for this part of the pipeline.
    pub fn cx(&self) -> Cx {
        Cx::at(self.recorder.as_ref(), self.base)
    }

    /// Makes a context for evaluators that work ahead of their consumer.
    pub(crate) fn cx_ahead(&self) -> Cx {
        self.cx().ahead()
    }

    /// Returns the runtime for elements that are read on the requesting thread only.
    pub(crate) fn on_one_thread(&self) -> Self {
        Self { engine: Engine::Inline, ..self.clone() }
    }

    /// Returns the runtime for datasets that are made while the pipeline runs.
    /// Their stages have no ids in the pipeline, so they are not counted, and other processes cannot evaluate them.
    pub(crate) fn unrecorded(&self) -> Self {
        let engine = match &self.engine {
            Engine::Threads(pool) => Engine::Threads(pool.clone()),
            _ => Engine::Inline,
        };
        Self { engine, recorder: None, ..Self::default() }
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Returns true if elements are evaluated in this process.
    pub(crate) fn reads_here(&self) -> bool {
        matches!(self.engine, Engine::Inline | Engine::Threads(_))
    }

    /// Returns true if this process is a worker, which never reads the passes that it starts.
    pub(crate) fn is_serving(&self) -> bool {
        #[cfg(all(feature = "workers", target_os = "linux"))]
        return matches!(self.engine, Engine::Serving(_));
        #[cfg(not(all(feature = "workers", target_os = "linux")))]
        false
    }

    /// Collects the counts of other processes.
    pub(crate) fn sync(&self) {
        self.sync_within(SYNC);
    }

    /// Collects the counts of other processes that arrive within `patience`.
    #[cfg_attr(
        not(all(feature = "workers", target_os = "linux")),
        expect(unused_variables, reason = "nothing happens elsewhere without workers")
    )]
    pub(crate) fn sync_within(&self, patience: Duration) {
        #[cfg(all(feature = "workers", target_os = "linux"))]
        if let Engine::Workers(workers) = &self.engine {
            workers.sync(patience);
        }
    }

    /// Stops all evaluators, so that no thread waits for them.
    pub(crate) fn cancel(&self) {
        match &self.engine {
            Engine::Threads(pool) => pool.cancel(),
            #[cfg(all(feature = "workers", target_os = "linux"))]
            Engine::Workers(workers) => workers.cancel(),
            _ => {}
        }
    }

    /// Waits for the threads that were stopped.
    pub(crate) fn join(&self) {
        if let Engine::Threads(pool) = &self.engine {
            pool.join();
        }
    }

    /// Returns the figures of worker processes, if there are any.
    pub(crate) fn workers(&self) -> Option<WorkersReport> {
        match &self.engine {
            #[cfg(all(feature = "workers", target_os = "linux"))]
            Engine::Workers(workers) => Some(workers.figures()),
            _ => None,
        }
    }

    /// Returns true if the number of threads or workers is tuned to the consumer's demand.
    pub(crate) fn is_tuned(&self) -> bool {
        self.tuning.is_some() || self.workers().is_some_and(|workers| workers.tuned)
    }

    /// Returns the decisions about threads of this process, with their reasons.
    pub(crate) fn decisions(&self) -> Vec<Decision> {
        self.tuning.as_ref().and_then(|tuning| tuning.get()).map(Tuning::decisions).unwrap_or_default()
    }

    /// Returns the number of threads that evaluate at a time, in addition to the requesting thread.
    pub(crate) fn parallel(&self) -> usize {
        match &self.engine {
            Engine::Inline => 0,
            Engine::Threads(pool) => pool.threads(),
            #[cfg(all(feature = "workers", target_os = "linux"))]
            Engine::Workers(workers) => workers.parallel(),
            #[cfg(all(feature = "workers", target_os = "linux"))]
            Engine::Serving(_) => 0,
        }
    }

    /// Returns the time at work, summed over all threads.
    pub(crate) fn busy(&self) -> Duration {
        match &self.engine {
            Engine::Inline => Duration::ZERO,
            Engine::Threads(pool) => pool.busy(),
            #[cfg(all(feature = "workers", target_os = "linux"))]
            Engine::Workers(workers) => workers.busy(),
            #[cfg(all(feature = "workers", target_os = "linux"))]
            Engine::Serving(_) => Duration::ZERO,
        }
    }
}

#[cfg(all(feature = "workers", target_os = "linux"))]
impl Runtime {
    /// Sets the clock of a consumer that is already watched.
    pub(crate) fn with_demand(self, demand: Arc<Demand>) -> Self {
        Self { demand, ..self }
    }

    /// Returns the name of a stage across processes.
    pub(crate) fn border(&self, stage: crate::cx::StageId) -> Border {
        super::remote::border(self.base, stage, self.share)
    }
}
