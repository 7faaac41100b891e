//! Evaluating a range of root indices: what every executor does, wherever it does it.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, unbounded};

use crate::cx::{Cx, StageId};
use crate::dataset::map::MapDataset;
use crate::error::{Error, ErrorKind, Result};
use crate::exec::{Engine, Pool, Runtime};

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
    /// How many ranges may be under way or wait to be read.
    fn window(&self) -> usize;

    /// Has `range` evaluated.
    fn submit(&self, range: Range<u64>) -> Incoming<T>;
}

/// What comes of a range: its slots in one chunk or several, in index order; an error in place of one is the evaluator's
/// own and the last. Dropping this calls the range off.
pub(crate) struct Incoming<T> {
    pub(crate) chunks: Receiver<Result<Chunk<T>>>,
    _wanted: Arc<()>,
}

/// The other end of [`Incoming`].
pub(crate) struct Outgoing<T> {
    pub(crate) chunks: Sender<Result<Chunk<T>>>,
    wanted: Weak<()>,
}

impl<T> Outgoing<T> {
    /// Whether anybody still waits.
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.strong_count() > 0
    }
}

pub(crate) fn channel<T>() -> (Outgoing<T>, Incoming<T>) {
    let (sender, chunks) = unbounded();
    let wanted = Arc::new(());
    (Outgoing { chunks: sender, wanted: Arc::downgrade(&wanted) }, Incoming { chunks, _wanted: wanted })
}

/// Who evaluates `dataset`, an elementwise prefix, ahead of those who ask for its elements; nobody if they do it themselves.
#[cfg_attr(
    not(all(feature = "workers", target_os = "linux")),
    expect(unused_variables, reason = "other processes need the border's name")
)]
pub(super) fn evaluator<D>(dataset: &Arc<D>, run: &Runtime, border: StageId) -> Option<Box<dyn Evaluator<D::Item>>>
where
    D: MapDataset + 'static,
    D::Item: Send + 'static,
{
    match run.engine() {
        Engine::Inline => None,
        Engine::Threads(pool) => {
            Some(Box::new(OnPool { dataset: dataset.clone(), run: run.clone(), pool: pool.clone() }))
        }
        #[cfg(all(feature = "workers", target_os = "linux"))]
        Engine::Workers(workers) => Some(super::remote::on_workers(run, workers, border)),
        #[cfg(all(feature = "workers", target_os = "linux"))]
        Engine::Serving(served) => {
            super::remote::serve(dataset, run, served, border);
            None
        }
    }
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
    fn window(&self) -> usize {
        2 * self.pool.threads()
    }

    fn submit(&self, range: Range<u64>) -> Incoming<D::Item> {
        let (outgoing, incoming) = channel();
        let (dataset, run) = (self.dataset.clone(), self.run.clone());
        self.pool.submit(Box::new(move || {
            if !outgoing.is_wanted() {
                // The stream was moved or dropped.
                return;
            }
            let start = Instant::now();
            let mut cx = run.cx();
            let slots = range.map(|index| evaluate(&*dataset, index, &mut cx)).collect();
            // The counts are in before anybody can see the elements.
            drop(cx);
            let _ = outgoing.chunks.send(Ok(Chunk { slots, took: start.elapsed() }));
        }));
        incoming
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
