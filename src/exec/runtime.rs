use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use super::demand::Demand;
use super::failed::Failed;
use super::figures::WorkersReport;
use super::pool::Pool;
#[cfg(all(feature = "workers", target_os = "linux"))]
use super::remote::{Border, Remote, Served};
use super::tuning::Tuning;
use crate::cx::{Cause, Cx, Given, Recorder, StageId};
use crate::error::{Error, Result};
use crate::fork::Ours;
use crate::keys::KeySource;
use crate::part::{Deal, Part};
use crate::sync::Locked;
use crate::tune::Decision;

/// The evaluator of the elementwise part of a pipeline, and the place where its stateful part runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Executor {
    /// Everything on the consumer's thread, on demand. No function and no source of the user's is called before its element, or
    /// the batch that it is in, is asked for; what only the crate's own stages make is, by 50 µs at most.
    Inline,
    /// The elementwise part on so many threads, the stateful part on one more, both ahead of the consumer.
    Threads(usize),
    /// The same on threads whose number, and how far they are ahead, follow what the consumer needs while it runs: one for each core
    /// at first, and up to 256 if elements mostly wait.
    Auto,
}

impl Executor {
    /// One thread for every available core.
    pub fn all_cores() -> Self {
        Self::Threads(cores())
    }
}

/// Time for which counts of other processes are waited for.
const SYNC: Duration = Duration::from_millis(200);

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

impl std::fmt::Display for Executor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Inline => f.write_str("inline"),
            Self::Threads(n) => write!(f, "{n} thread{}", if *n == 1 { "" } else { "s" }),
            Self::Auto => f.write_str("threads, as many as pay"),
        }
    }
}

/// Everything that an [`IterDataset`](crate::IterDataset) needs to start a pass: who evaluates its elements, and where to count.
///
/// A stage hands it on to its parents; one with several parents shifts the stage ids of each by [`offset`](Self::offset).
#[derive(Clone, Debug, Default)]
pub struct Runtime {
    engine: Engine,
    recorder: Option<Arc<Recorder>>,
    demand: Arc<Demand>,
    tuning: Option<Arc<Ours<Tuning>>>,
    keys: Option<Arc<dyn KeySource>>,
    /// Who notes the keys of what passes a border, by the id of its stage, where keys are recorded.
    noted: Option<Arc<NotedBorders>>,
    /// The first reason for which a pipeline has no plan.
    unplanned: Arc<OnceLock<String>>,
    deal: Arc<Deal>,
    failed: Arc<Failed>,
    base: usize,
    /// The share of each batch that is evaluated, if it is not all: its index, and their number.
    #[cfg_attr(
        not(all(feature = "workers", target_os = "linux")),
        expect(dead_code, reason = "only workers have to be told of it")
    )]
    share: Option<(u32, u32)>,
    /// Whether no more than half of the rows of each batch are evaluated here.
    apart: bool,
}

/// Notes of borders: what is behind `Any`, those know who note.
type NotedBorders = Mutex<HashMap<usize, Arc<dyn Any + Send + Sync>>>;

/// The evaluator of elements.
#[derive(Clone, Debug, Default)]
pub(crate) enum Engine {
    /// The consumer, as it asks for them.
    #[default]
    Inline,
    /// Threads of this process.
    Threads(Arc<Pool>),
    /// Worker processes.
    #[cfg(all(feature = "workers", target_os = "linux"))]
    Workers(Arc<dyn Remote>),
    /// This is a worker: borders say how their elements are evaluated, nothing is read in order.
    #[cfg(all(feature = "workers", target_os = "linux"))]
    Serving(Arc<Served>),
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

    /// The same, with a consumer that somebody watches already.
    #[cfg(all(feature = "workers", target_os = "linux"))]
    pub(crate) fn with_demand(self, demand: Arc<Demand>) -> Self {
        Self { demand, ..self }
    }

    /// The same, with keys by which rows can be planned.
    pub(crate) fn with_keys(self, keys: Option<Arc<dyn KeySource>>) -> Self {
        Self { keys, ..self }
    }

    /// The place where keys of elements are kept, if there is one.
    pub(crate) fn keys(&self) -> Option<&dyn KeySource> {
        self.keys.as_deref()
    }

    /// The same, where keys are recorded of what is evaluated, if `others` are: it shares their notes.
    pub(crate) fn noting_with(self, others: &Self) -> Self {
        Self { noted: others.noted.clone(), ..self }
    }

    /// The same, where keys are to be recorded.
    pub(crate) fn noting(self) -> Self {
        Self { noted: Some(Arc::default()), ..self }
    }

    /// Has the pass over the border `stage` noted, where keys are recorded.
    pub(crate) fn have_noted(&self, stage: StageId, noted: impl FnOnce() -> Arc<dyn Any + Send + Sync>) {
        if let Some(borders) = &self.noted {
            borders.locked().insert(self.base + stage.0 as usize, noted());
        }
    }

    /// Whether keys are recorded: they are noted in the order of the elements, on the thread that reads these.
    pub(crate) fn is_noting(&self) -> bool {
        self.noted.is_some()
    }

    /// Who notes the keys of what passes the border `stage`, if anybody does.
    pub(crate) fn noted<N: Any + Send + Sync>(&self, stage: StageId) -> Option<Arc<N>> {
        let noted = self.noted.as_ref()?.locked().get(&(self.base + stage.0 as usize)).cloned()?;
        noted.downcast().ok()
    }

    /// Notes why there is no plan, with the id of the stage that has this place in this part of the pipeline; the first note stays.
    pub(crate) fn note_unplanned(&self, place: usize, why: impl FnOnce(usize) -> String) {
        self.unplanned.get_or_init(|| why(self.base + place));
    }

    /// The reason for which there is no plan, once one was asked for.
    pub(crate) fn unplanned(&self) -> Option<&str> {
        self.unplanned.get().map(String::as_str)
    }

    /// The same, where the rows of a part are dealt in this way.
    pub(crate) fn with_deal(self, deal: Deal) -> Self {
        Self { deal: Arc::new(deal), ..self }
    }

    /// How the rows of a part are dealt.
    pub(crate) fn deal(&self) -> &Deal {
        &self.deal
    }

    /// The same, with what becomes of elements that fail after rows were planned of them.
    pub(crate) fn with_failed(self, failed: Arc<Failed>) -> Self {
        Self { failed, ..self }
    }

    /// The elements that have failed after rows were planned of them.
    pub(crate) fn failed(&self) -> &Arc<Failed> {
        &self.failed
    }

    /// The clock of the consumer.
    pub(crate) fn demand(&self) -> &Demand {
        &self.demand
    }

    /// The same, for a parent whose stage ids start `stages` higher.
    #[must_use]
    pub fn offset(&self, stages: usize) -> Self {
        Self { base: self.base + stages, ..self.clone() }
    }

    /// The same for a pass over the rows of `part` alone.
    pub(crate) fn over(&self, part: &Part) -> Self {
        Self { apart: part.is_half_at_most(), ..self.clone() }
    }

    /// Whether a pass over the rows of a part leaves out half of all elements or more.
    pub(crate) fn is_apart(&self) -> bool {
        self.apart
    }

    /// The same for the elements of one part of every batch: a share, its index and how many there are, or another; `None` for one that those who
    /// evaluate elements cannot be told of.
    pub(crate) fn for_part(&self, share: Option<(usize, usize)>) -> Option<Self> {
        let number = |number: usize| u32::try_from(number).ok();
        let share = share.and_then(|(index, count)| Some((number(index)?, number(count)?)));
        (share.is_some() || self.reads_here()).then(|| Self { share, ..self.clone() })
    }

    /// Notes what the consumer was given, and what caused its wait for it.
    pub(crate) fn given(&self, given: &Given, begins: Option<Cause>) {
        if let Some(recorder) = &self.recorder {
            recorder.given(given, begins);
        }
    }

    /// A context for this part of the pipeline.
    pub fn cx(&self) -> Cx {
        Cx::at(self.recorder.as_ref(), self.base)
    }

    /// A context for those who evaluate elements ahead of whoever asks for them.
    pub(crate) fn cx_ahead(&self) -> Cx {
        self.cx().ahead()
    }

    /// The same for what is read on the thread of whoever asks, and nowhere else.
    pub(crate) fn on_one_thread(&self) -> Self {
        Self { engine: Engine::Inline, ..self.clone() }
    }

    /// The same for datasets that are made while the pipeline runs. Their stages have no ids in it, so they count nowhere,
    /// and other processes do not know them.
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

    /// Whether elements are evaluated in this process.
    pub(crate) fn reads_here(&self) -> bool {
        matches!(self.engine, Engine::Inline | Engine::Threads(_))
    }

    /// Whether this is a worker, which never reads the passes that it starts.
    pub(crate) fn is_serving(&self) -> bool {
        #[cfg(all(feature = "workers", target_os = "linux"))]
        return matches!(self.engine, Engine::Serving(_));
        #[cfg(not(all(feature = "workers", target_os = "linux")))]
        false
    }

    /// The name of a stage across processes.
    #[cfg(all(feature = "workers", target_os = "linux"))]
    pub(crate) fn border(&self, stage: crate::cx::StageId) -> Border {
        super::remote::border(self.base, stage, self.share)
    }

    /// Has everything counted that happens elsewhere.
    pub(crate) fn sync(&self) {
        self.sync_within(SYNC);
    }

    /// The same, as far as it is told within `patience`.
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

    /// Has everybody who evaluates elements stop, so that nobody waits for them.
    pub(crate) fn cancel(&self) {
        match &self.engine {
            Engine::Threads(pool) => pool.cancel(),
            #[cfg(all(feature = "workers", target_os = "linux"))]
            Engine::Workers(workers) => workers.cancel(),
            _ => {}
        }
    }

    /// Waits for the threads that were told to stop.
    pub(crate) fn join(&self) {
        if let Engine::Threads(pool) = &self.engine {
            pool.join();
        }
    }

    /// Worker processes, if there are any.
    pub(crate) fn workers(&self) -> Option<WorkersReport> {
        match &self.engine {
            #[cfg(all(feature = "workers", target_os = "linux"))]
            Engine::Workers(workers) => Some(workers.figures()),
            _ => None,
        }
    }

    /// Whether their number follows what the consumer needs.
    pub(crate) fn is_tuned(&self) -> bool {
        self.tuning.is_some() || self.workers().is_some_and(|workers| workers.tuned)
    }

    /// Decisions about threads of this process, with their reasons.
    pub(crate) fn decisions(&self) -> Vec<Decision> {
        self.tuning.as_ref().and_then(|tuning| tuning.get()).map(Tuning::decisions).unwrap_or_default()
    }

    /// Counts those who evaluate elements at a time, beside whoever asks for them.
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

    /// Time in which they were at work, summed over all.
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
