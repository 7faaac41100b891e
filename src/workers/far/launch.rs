//! Starts a pass on other machines according to the options.

use std::sync::Arc;
use std::time::Duration;

use super::carrier::Far;
use super::exchange::Exchange;
use crate::cx::Recorder;
use crate::dataset::Stage;
use crate::error::Result;
use crate::exec::{Engine, Runtime};
use crate::loader::Backend;
use crate::workers::budget::Plan;
use crate::workers::options::{Elsewhere, MpOptions};
use crate::workers::pool::WorkerPool;
use crate::workers::start::plural;

/// Options of workers on other machines.
#[derive(Clone, Debug)]
pub(crate) struct FarOptions {
    /// Initial and maximum number of workers.
    pub(crate) workers: (usize, usize),
    /// Threads of each worker.
    pub(crate) threads: usize,
    /// Bytes of answers in transfer, ready or in use in this process.
    pub(crate) ram_budget: u64,
    /// Maximum bytes of a block.
    pub(crate) block: u64,
    /// Factor over the 99th percentile of task times after which a task is also sent to another worker, on another
    /// machine if there is any.
    pub(crate) hedge: Option<f64>,
    /// Time that a task may take before its worker counts as hanging.
    pub(crate) deadline: Option<Duration>,
    /// Time of low load after which one worker is released, and the tuning interval.
    pub(crate) idle: Duration,
    pub(crate) tick: Duration,
    /// Whether the workers also serve other passes.
    pub(crate) shared: bool,
    /// Lines of the stages that workers run.
    pub(crate) stages: Vec<String>,
}

#[cfg(test)]
impl Default for FarOptions {
    fn default() -> Self {
        Self {
            workers: (1, 1),
            threads: 1,
            ram_budget: 4 << 20,
            block: 1 << 17,
            hedge: None,
            deadline: None,
            idle: Duration::from_secs(60),
            tick: Duration::from_secs(1),
            shared: false,
            stages: Vec::new(),
        }
    }
}

/// Data that a loader needs to evaluate on other machines.
pub(crate) struct FarLaunch {
    exchange: Arc<Exchange>,
    options: FarOptions,
}

impl FarLaunch {
    pub(crate) fn new(exchange: Arc<Exchange>, options: FarOptions) -> Self {
        Self { exchange, options }
    }
}

impl Backend for FarLaunch {
    fn start(self: Box<Self>, pipeline: &dyn Stage, recorder: &Arc<Recorder>) -> Result<(Runtime, String)> {
        pipeline.check_crossing()?;
        let Self { exchange, options } = *self;
        let (least, most) = options.workers;
        let elsewhere = Elsewhere { block_bytes: options.block, idle: options.idle, shared: options.shared };
        let plan = Plan::far(options.workers, options.threads, options.ram_budget, elsewhere)?;
        let workers = if least == most { plural(most, "worker") } else { format!("{least} to {most} workers") };
        let words = format!("{workers} on other machines, of {}", plural(options.threads, "thread"));
        let of_pool = MpOptions {
            tune: plan.tuned,
            hedge: options.hedge,
            deadline: options.deadline,
            arrays_in_slab: false,
            tick: options.tick,
            ..MpOptions::auto()
        };
        let aside = exchange.set_aside(options.block);
        let bytes = (plan.slab_bytes - plan.max_element_bytes).saturating_sub(aside);
        let carrier = move |wake| Ok(Far::new(exchange, bytes, wake));
        let pool = WorkerPool::start(carrier, options.stages, plan, of_pool, recorder.clone())?;
        let demand = pool.demand().clone();
        Ok((Runtime::of(Engine::Workers(pool), Some(recorder.clone())).with_demand(demand), words))
    }
}
