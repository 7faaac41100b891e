//! Evaluating a range of root indices: what every executor does, wherever it does it.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, bounded};

use crate::cx::Cx;
use crate::dataset::map::MapDataset;
use crate::error::{Error, ErrorKind, Result};
use crate::exec::{Pool, Runtime};

/// One index: an element, nothing (a filter dropped it), or an error.
pub(crate) type Slot<T> = Result<Option<T>>;

/// The slots of consecutive indices.
pub(crate) struct Chunk<T> {
    pub(crate) slots: Vec<Slot<T>>,
    /// How long evaluating them took.
    pub(crate) took: Duration,
}

/// Somebody who evaluates ranges of indices, several at a time.
pub(crate) trait Evaluator<T>: Send {
    /// How many ranges are under way at a time.
    fn parallel(&self) -> usize;

    /// Has `range` evaluated. Its slots come in one chunk or several, in index order; an error in place of one is the
    /// evaluator's own and the last. Dropping the receiver calls it off.
    fn submit(&self, range: Range<u64>) -> Receiver<Result<Chunk<T>>>;
}

/// Who evaluates `dataset`, an elementwise prefix, ahead of those who ask for its elements; nobody if they do it themselves.
pub(super) fn evaluator<D>(dataset: &Arc<D>, run: &Runtime) -> Option<Box<dyn Evaluator<D::Item>>>
where
    D: MapDataset + 'static,
    D::Item: Send + 'static,
{
    let pool = run.pool()?.clone();
    Some(Box::new(OnPool { dataset: dataset.clone(), run: run.clone(), pool }))
}

/// The threads of this process.
struct OnPool<D> {
    dataset: Arc<D>,
    run: Runtime,
    pool: Arc<Pool>,
}

impl<D> Evaluator<D::Item> for OnPool<D>
where
    D: MapDataset + 'static,
    D::Item: Send + 'static,
{
    fn parallel(&self) -> usize {
        self.pool.threads()
    }

    fn submit(&self, range: Range<u64>) -> Receiver<Result<Chunk<D::Item>>> {
        let (sender, receiver) = bounded(1);
        let (dataset, run) = (self.dataset.clone(), self.run.clone());
        self.pool.submit(Box::new(move || {
            let start = Instant::now();
            let mut cx = run.cx();
            let slots = range.map(|index| evaluate(&*dataset, index, &mut cx)).collect();
            // The counts are in before anybody can see the elements.
            drop(cx);
            // Nobody waits any more where the stream was moved or dropped.
            let _ = sender.send(Ok(Chunk { slots, took: start.elapsed() }));
        }));
        receiver
    }
}

/// One index. A panic in a user's function becomes that element's error: it must not take the thread along.
pub(crate) fn evaluate<D: MapDataset>(dataset: &D, index: u64, cx: &mut Cx) -> Slot<D::Item> {
    cx.begin_element();
    let slot = catch_unwind(AssertUnwindSafe(|| dataset.get(index, cx)));
    slot.unwrap_or_else(|panic| Err(panicked(&*panic))).map_err(|e| e.index(index))
}

fn panicked(payload: &(dyn std::any::Any + Send)) -> Error {
    let text = payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    Error::new(ErrorKind::User, format!("a function panicked: {}", text.unwrap_or("(no message)")))
}
