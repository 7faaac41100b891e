//! Readers of lanes: the threads of this process, or worker processes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::evaluate::{Ending, LaneChunk, LaneEvaluator, OpenLanes, Wanted, open_lane, share};
use super::lane::{LaneIter, Step};
use super::{ItemOf, Shared, StateOf};
use crate::cx::Watch;
use crate::dataset::iter::open_lane::OpenLane;
use crate::dataset::run::evaluate::{Aim, Incoming, channel};
use crate::error::Result;
use crate::exec::{Engine, Pool, Runtime};

/// A reader of the lanes of an `L`.
type Reader<L> = Box<dyn LaneEvaluator<ItemOf<L>, StateOf<L>>>;

/// Returns the reader that reads the lanes of a pass ahead of the consumer; `None` if the consumer reads them.
///
/// # Errors
/// Elements have to leave a worker process, and their type cannot.
pub(super) fn evaluator<L: OpenLane>(shared: &Arc<Shared<L>>, run: &Runtime) -> Result<Option<Reader<L>>> {
    Ok(match run.engine() {
        Engine::Inline => None,
        Engine::Threads(pool) => {
            let (open, next_id) = (Arc::new(OpenLanes::new(usize::MAX)), AtomicU64::new(0));
            Some(Box::new(OnPool { shared: shared.clone(), pool: pool.clone(), open, next_id }))
        }
        #[cfg(all(feature = "workers", target_os = "linux"))]
        Engine::Workers(workers) => Some(super::remote::on_workers::<L>(run, workers, shared.stage)?),
        #[cfg(all(feature = "workers", target_os = "linux"))]
        Engine::Serving(served) => {
            super::remote::serve(shared, run, served);
            None
        }
    })
}

/// The threads of this process.
struct OnPool<L: OpenLane> {
    shared: Arc<Shared<L>>,
    pool: Arc<Pool>,
    open: Arc<OpenLanes<LaneIter<L>>>,
    next_id: AtomicU64,
}

impl<L: OpenLane> LaneEvaluator<ItemOf<L>, StateOf<L>> for OnPool<L> {
    fn aim(&self, lanes: usize) -> Aim {
        let time = share(Duration::from_millis(2), 2 * self.pool.threads(), lanes);
        Aim { time, slots: 1024, bytes: usize::MAX }
    }

    fn submit(&self, wanted: Wanted<StateOf<L>>) -> Incoming<LaneChunk<ItemOf<L>, StateOf<L>>> {
        let (outgoing, incoming) = channel();
        let (shared, open) = (self.shared.clone(), self.open.clone());
        let after = self.next_id.fetch_add(1, Ordering::Relaxed);
        self.pool.submit(Box::new(move |open_pool| {
            // A stream that was moved or dropped needs nothing more.
            let go_on = || open_pool.get() && outgoing.is_wanted();
            if !go_on() {
                return;
            }
            let watch = Watch::start();
            let mut cx = shared.run.cx_ahead();
            let (mut slots, lane) = (Vec::new(), wanted.lane);
            let ending = match open_lane(&shared, open.take(lane, wanted.after), wanted.from, &mut cx) {
                Err(error) => Ending::Failed(error),
                Ok(mut iter) => loop {
                    if !go_on() {
                        return;
                    }
                    if slots.len() as u64 == wanted.quota {
                        open.keep(lane, after, iter);
                        break Ending::Open;
                    }
                    match iter.step(&mut cx) {
                        Step::Next(slot) => slots.push(slot),
                        Step::Ended => break Ending::Ended,
                        Step::Failed(error) => break Ending::Failed(error),
                    }
                },
            };
            // Adds the counts before the elements become visible.
            drop(cx);
            let _ = outgoing.chunks.send(Ok(LaneChunk { slots, ending, made: watch.end(None), after }));
        }));
        incoming
    }
}
