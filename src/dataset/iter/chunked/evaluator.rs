//! Evaluators of chunks of a stream: the threads of this process, or worker processes.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use super::Work;
use crate::cx::{Cx, StageId, Watch};
use crate::dataset::run::evaluate::{Aim, Chunk, Incoming, caught, channel};
use crate::element::{Part, Slot};
use crate::exec::{Engine, Pool, Runtime};

/// Applies the function of a stage to elements of type `T`, several chunks at a time.
pub(super) trait Apply<T, U>: Send {
    /// Returns the number of chunks that may be under way or waiting to be read.
    fn window(&self) -> usize;

    /// Returns the target size of a chunk.
    fn aim(&self) -> Aim;

    /// Returns the shortest time per element that is worth a hand-over. The reading thread evaluates cheaper functions.
    fn least_time(&self) -> Duration;

    /// Submits elements to the function; `first` is the index of the first element.
    ///
    /// Returns one or more chunks, each with its number of elements.
    fn submit(&self, first: u64, elements: Vec<T>) -> Vec<(Incoming<Chunk<U, Infallible>>, usize)>;
}

/// Returns the evaluator of `work`; `None` if the reading thread applies `work` itself.
pub(super) fn evaluator<T, W>(work: &Arc<W>, run: &Runtime, stage: StageId) -> Option<Box<dyn Apply<T, W::Out>>>
where
    T: Send + 'static,
    W: Work<T>,
{
    match run.engine() {
        // Keys are recorded on the thread that reads the elements, in their order.
        _ if run.records_keys() => None,
        Engine::Inline => None,
        Engine::Threads(pool) => {
            Some(Box::new(OnPool { work: work.clone(), pool: pool.clone(), run: run.clone(), stage }))
        }
        #[cfg(all(feature = "workers", target_os = "linux"))]
        Engine::Workers(workers) => super::remote::on_workers(work, workers, run, stage),
        #[cfg(all(feature = "workers", target_os = "linux"))]
        Engine::Serving(served) => {
            super::remote::serve(work, run, served, stage);
            None
        }
    }
}

/// Returns the result for an element, converted by `convert`. A panic in the function becomes the element's error.
pub(super) fn applied<T, W: Work<T>, U>(
    work: &W,
    index: u64,
    element: T,
    stage: StageId,
    cx: &mut Cx,
    convert: impl FnOnce(W::Out, &mut Cx) -> U,
) -> Slot<U> {
    cx.begin_element();
    let made = caught(|| Ok(work.work(index, element, stage, cx)?.map(|made| convert(made, cx))));
    made.map_err(|error| cx.blame(stage, work.name(), error))
}

/// The threads of this process.
struct OnPool<W> {
    work: Arc<W>,
    pool: Arc<Pool>,
    run: Runtime,
    stage: StageId,
}

impl<T: Send + 'static, W: Work<T>> Apply<T, W::Out> for OnPool<W> {
    fn window(&self) -> usize {
        self.pool.window()
    }

    fn aim(&self) -> Aim {
        Aim { time: Duration::from_millis(2), slots: 1024, bytes: usize::MAX }
    }

    fn least_time(&self) -> Duration {
        Duration::from_micros(1)
    }

    fn submit(&self, first: u64, elements: Vec<T>) -> Vec<(Incoming<Chunk<W::Out, Infallible>>, usize)> {
        let ((outgoing, incoming), count) = (channel(), elements.len());
        let (work, run, pool, stage) = (self.work.clone(), self.run.clone(), self.pool.clone(), self.stage);
        self.pool.submit(Box::new(move |open| {
            let (watch, mut cx) = (Watch::start(), run.cx_ahead());
            let mut slots = Vec::with_capacity(count);
            for (index, element) in (first..).zip(elements) {
                // A stream that was moved or dropped needs nothing more.
                if !open.get() || !outgoing.is_wanted() {
                    return;
                }
                slots.push(applied(&*work, index, element, stage, &mut cx, |made, _| made));
            }
            // Adds the counts before the elements become visible.
            drop(cx);
            pool.evaluated(count as u64);
            let parts = vec![Part::Slots(slots.into_iter().collect())];
            let _ = outgoing.chunks.send(Ok(Chunk { parts, made: watch.end(None) }));
        }));
        vec![(incoming, count)]
    }
}
