//! Worker processes: a pipeline's elementwise part, run outside the trainer's process under a RAM budget.
//!
//! [`mp_prefetch`] takes a function that makes the pipeline. The same program is started again as a worker, which makes the
//! same pipeline; ranges of root indices are evaluated there, and the elements come back through one sealed piece of shared
//! memory, without a copy. The order is that of the same pipeline run inline, byte for byte, however many workers there
//! are and whatever happens to them: a worker that dies in any way is replaced, and what it had begun is done again.
//!
//! ```
//! use gristmill::dataset::map::Range;
//! use gristmill::{IterDataset, MapDataset, Result};
//! use gristmill::workers::{MpOptions, mp_prefetch};
//!
//! fn pipeline(seed: u32) -> Result<impl IterDataset<Item = Vec<i64>>> {
//!     Ok(Range::new(0, 1000).seed(seed).shuffle(None).map(|x| x * x).to_iter().batch(32))
//! }
//!
//! let workers = MpOptions::auto().ram_budget(256 << 20);
//! let batches = mp_prefetch(pipeline, 42, workers)?.build()?.collect::<Result<Vec<_>>>()?;
//! assert_eq!(batches, pipeline(42)?.collect()?);
//! # Ok::<(), gristmill::Error>(())
//! ```
//!
//! # What may go where
//! Elements that cross are [`Element`](crate::Element)s, numbers, text, and vectors and pairs of those. The function takes
//! nothing but its argument along, which travels as JSON. Stateful stages run in this process, on one thread.
//!
//! So do streams without random access, such as compressed files, and all that is behind them; unless they are read as
//! [`lanes`](crate::dataset::iter::lanes()). Then workers read different lanes, with all stages that are inside them, stateful
//! ones too. A worker keeps the lanes open that it has read; when it dies, others open them where they were, from a state
//! at most 63 elements old.

mod budget;
mod control;
mod launch;
mod options;
mod pick;
mod pool;
mod serve;
mod slab;
mod sys;
pub(crate) mod wire;

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use launch::{init, set_worker_command};
pub use options::{Count, MpOptions, Poison};
pub use pick::{Measured, PerformanceConfig, PickLimits, pick_performance_config};

use self::budget::{Plan, available};
use self::launch::Program;
use self::pool::WorkerPool;
use crate::cx::Recorder;
use crate::dataset::{IterDataset, Stage};
use crate::error::Result;
use crate::exec::{Engine, Executor, Runtime};
use crate::loader::LoaderBuilder;

/// A loader of the pipeline that `factory` makes of `cfg`, whose elements are evaluated in worker processes.
///
/// `factory` is a function or a closure that captures nothing: the compiler refuses others. It is called here and in every
/// worker, and must make the same pipeline each time. Nothing is started before
/// [`build`](LoaderBuilder::build). See the [module](self).
///
/// # Errors
/// Those of `factory`; [`ErrorKind::Config`](crate::ErrorKind::Config) for a `cfg` that does not survive the way through JSON.
pub fn mp_prefetch<C, D>(factory: fn(C) -> Result<D>, cfg: C, options: MpOptions) -> Result<LoaderBuilder<D>>
where
    C: Serialize + DeserializeOwned,
    D: IterDataset + 'static,
{
    let launch = Launch::new(factory, &cfg, options)?;
    Ok(factory(cfg)?.loader().launch(launch))
}

/// What [`LoaderBuilder`] needs to start workers.
#[derive(Debug)]
pub(crate) struct Launch {
    program: Program,
    options: MpOptions,
}

impl Launch {
    pub(crate) fn new<C, D>(factory: fn(C) -> Result<D>, cfg: &C, options: MpOptions) -> Result<Self>
    where
        C: Serialize + DeserializeOwned,
        D: IterDataset + 'static,
    {
        options.check()?;
        Ok(Self { program: Program::new(factory, cfg, serve::serve::<D>)?, options })
    }

    /// The runtime of workers that evaluate elements of `pipeline`, and what it is in words.
    pub(crate) fn start(self, pipeline: &dyn Stage, recorder: &Arc<Recorder>) -> Result<(Runtime, String)> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let plan = Plan::new(&self.options, cores, available())?;
        if plan.workers == 0 {
            let threads = Executor::Threads(plan.threads);
            return Ok((Runtime::new(threads, Some(recorder.clone()))?, threads.to_string()));
        }
        let workers = match plan.workers {
            most if most > plan.start_workers => format!("{} to {most} workers", plan.start_workers),
            n => plural(n, "worker"),
        };
        let words = format!("{workers} of {}", plural(plan.threads, "thread"));
        let counting = self.options.counted.then(|| recorder.clone());
        let pool = WorkerPool::start(self.program, pipeline.lines(), plan, self.options, recorder.clone())?;
        let demand = pool.demand().clone();
        Ok((Runtime::of(Engine::Workers(pool), counting).with_demand(demand), words))
    }
}

fn plural(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// What a worker may send, on bytes in memory: what `fuzz/` runs. Only in builds with `--cfg fuzzing`.
#[cfg(fuzzing)]
pub mod fuzzing {
    /// A chunk of elements. No bytes may make it panic, hang or take much more memory than it is given.
    pub fn wire(data: &[u8]) {
        super::wire::fuzz_wire(data);
    }
}
