//! Starts workers according to the options.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::budget::{Plan, available, total};
use super::launch::Program;
use super::options::MpOptions;
use super::pool::WorkerPool;
use super::processes::Processes;
use super::serve;
use crate::cx::Recorder;
use crate::dataset::{IterDataset, Stage};
use crate::error::Result;
use crate::exec::{Engine, Executor, Runtime};
use crate::loader::Backend;
use crate::units::Bytes;

/// Data that a loader needs to start workers.
#[derive(Debug)]
pub(crate) struct Launch {
    program: Program,
    options: MpOptions,
    /// Lines of the stages that workers run, if workers run only a part of the pipeline.
    stages: Option<Vec<String>>,
    /// Description of the function that takes up most of the configuration, if known.
    largest: Option<String>,
}

impl Launch {
    pub(crate) fn new<C, D>(factory: fn(C) -> Result<D>, cfg: &C, options: MpOptions) -> Result<Self>
    where
        C: Serialize + DeserializeOwned,
        D: IterDataset + 'static,
    {
        options.check()?;
        Ok(Self { program: Program::new(factory, cfg, serve::serve::<D>)?, options, stages: None, largest: None })
    }

    /// Creates a launch of workers with `starter`; `factory` builds the first `stages` of the pipeline from `cfg`.
    /// `largest` describes the function that takes up most of `cfg`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for invalid options.
    #[cfg(feature = "python")]
    pub(crate) fn of_bytes<D: IterDataset + 'static>(
        factory: super::launch::FromBytes<D>,
        cfg: Arc<Vec<u8>>,
        largest: Option<String>,
        starter: Arc<super::launch::Starter>,
        stages: Vec<String>,
        options: MpOptions,
    ) -> Result<Self> {
        options.check()?;
        let program = Program::of_bytes(factory, cfg, starter, serve::serve::<D>)?;
        Ok(Self { program, options, stages: Some(stages), largest })
    }
}

impl Backend for Launch {
    fn start(mut self: Box<Self>, pipeline: &dyn Stage, recorder: &Arc<Recorder>) -> Result<(Runtime, String)> {
        self.options.far = pipeline.any_reads_far();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let plan = Plan::new(&self.options, cores, available())?;
        if let Some(memory) = total().filter(|memory| plan.budget_bytes > *memory) {
            tracing::warn!(
                "ram_budget is {}, but the machine has {} of memory",
                Bytes(plan.budget_bytes),
                Bytes(memory)
            );
        }
        if plan.workers == 0 {
            let threads = Executor::Threads(plan.threads_per_worker);
            return Ok((Runtime::new(threads, Some(recorder.clone()))?, threads.to_string()));
        }
        plan.check_cfg(self.program.cfg.len() as u64, self.largest.as_deref())?;
        let workers = match plan.workers {
            most if most > plan.start_workers => format!("{} to {most} workers", plan.start_workers),
            n => plural(n, "worker"),
        };
        let threads = match plan.threads_per_worker {
            most if plan.tuned && most > plan.active_threads => format!("{} to {most} threads", plan.active_threads),
            n => plural(n, "thread"),
        };
        pipeline.check_crossing()?;
        if !pipeline.employs_workers() {
            tracing::warn!(
                "workers have no work: one thread reads the stream, and mp_prefetch has no function of single elements before it"
            );
        }
        let words = format!("{workers} of {threads}");
        let stages = self.stages.unwrap_or_else(|| pipeline.lines());
        let counting = self.options.counted.then(|| recorder.clone());
        let pool = WorkerPool::start(Processes::of(self.program, &plan), stages, plan, self.options, recorder.clone())?;
        let demand = pool.demand().clone();
        Ok((Runtime::of(Engine::Workers(pool), counting).with_demand(demand), words))
    }
}

pub(super) fn plural(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
