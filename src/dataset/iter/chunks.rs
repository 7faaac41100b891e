//! Root elements in index order, whoever evaluates them.
//!
//! Without threads, an index is evaluated when it is asked for. With threads, chunks of consecutive indices are
//! dispatched ahead and put back in order here. A chunk is a pure function of (pipeline, range), so its size and
//! who runs it are free to follow the clock: they never shape the stream.

use std::collections::VecDeque;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, bounded};

use crate::cx::{Cx, StageId};
use crate::dataset::map::MapDataset;
use crate::error::{Error, ErrorKind, Result};
use crate::exec::{Pool, Runtime};

/// One index: an element, nothing (a filter dropped it), or an error.
pub(super) type Slot<T> = Result<Option<T>>;

/// Work per chunk that hides the cost of handing it over.
const CHUNK_TIME: Duration = Duration::from_millis(2);
const MAX_CHUNK: u64 = 1024;

/// Slots of `0..len` in order, from any index on.
pub(super) struct Roots<D: MapDataset> {
    dataset: Arc<D>,
    run: Runtime,
    stage: StageId,
    len: u64,
    next: u64,
    ahead: Option<Ahead<D::Item>>,
}

/// What is dispatched and not yet delivered.
struct Ahead<T> {
    pool: Arc<Pool>,
    pending: VecDeque<Receiver<Chunk<T>>>,
    current: std::vec::IntoIter<Slot<T>>,
    dispatched: u64,
    chunk: u64,
}

struct Chunk<T> {
    slots: Vec<Slot<T>>,
    took: Duration,
}

impl<D> Roots<D>
where
    D: MapDataset + 'static,
    D::Item: Send + 'static,
{
    pub(super) fn new(dataset: Arc<D>, run: &Runtime, stage: StageId) -> Self {
        let (pending, current) = (VecDeque::new(), Vec::new().into_iter());
        let ahead = run.pool().map(|pool| Ahead { pool: pool.clone(), pending, current, dispatched: 0, chunk: 1 });
        Self { len: dataset.len(), dataset, run: run.clone(), stage, next: 0, ahead }
    }

    /// The index whose slot comes next.
    pub(super) fn position(&self) -> u64 {
        self.next
    }

    /// Goes to `index`; what was dispatched is thrown away.
    pub(super) fn seek(&mut self, index: u64) -> Result<()> {
        if index > self.len {
            return Err(Error::state(format!(
                "next index {index} is out of range for a dataset of length {}",
                self.len
            )));
        }
        self.next = index;
        if let Some(ahead) = &mut self.ahead {
            ahead.pending.clear();
            ahead.current = Vec::new().into_iter();
            ahead.dispatched = index;
        }
        Ok(())
    }

    /// The next slot, or `None` at the end.
    pub(super) fn next(&mut self, cx: &mut Cx) -> Option<Slot<D::Item>> {
        if self.next >= self.len {
            return None;
        }
        cx.begin_element();
        let index = self.next;
        self.next += 1;
        match &mut self.ahead {
            None => Some(self.dataset.get(index, cx).map_err(|e| e.index(index))),
            Some(_) => Some(self.next_ahead(cx)),
        }
    }

    fn next_ahead(&mut self, cx: &mut Cx) -> Slot<D::Item> {
        loop {
            let ahead = self.ahead.as_mut().expect("called with threads");
            if let Some(slot) = ahead.current.next() {
                return slot;
            }
            self.dispatch();
            let ahead = self.ahead.as_mut().expect("called with threads");
            let head = ahead.pending.pop_front().expect("an index below the length was dispatched");
            let chunk = receive(&head, self.stage, cx)?;
            ahead.learn(chunk.slots.len() as u64, chunk.took);
            ahead.current = chunk.slots.into_iter();
            self.dispatch();
        }
    }

    /// Keeps twice as many chunks under way as there are threads.
    fn dispatch(&mut self) {
        let Some(ahead) = &mut self.ahead else { return };
        while ahead.pending.len() < 2 * ahead.pool.threads() && ahead.dispatched < self.len {
            let end = self.len.min(ahead.dispatched.saturating_add(ahead.chunk));
            let range = ahead.dispatched..end;
            let (sender, receiver) = bounded(1);
            let (dataset, run) = (self.dataset.clone(), self.run.clone());
            ahead.pool.submit(Box::new(move || {
                // Nobody waits any more where the stream was moved or dropped.
                let _ = sender.send(evaluate(&*dataset, range, &run));
            }));
            ahead.pending.push_back(receiver);
            ahead.dispatched = end;
        }
    }
}

impl<T> Ahead<T> {
    /// Aims the chunk size at [`CHUNK_TIME`], at most doubling it at a time.
    fn learn(&mut self, len: u64, took: Duration) {
        let per_element = took.as_nanos() as u64 / len.max(1);
        let ideal = CHUNK_TIME.as_nanos() as u64 / per_element.max(1);
        self.chunk = ideal.clamp(1, MAX_CHUNK).min(self.chunk * 2);
    }
}

/// Waits for a chunk, counting the wait.
fn receive<T>(head: &Receiver<Chunk<T>>, stage: StageId, cx: &mut Cx) -> Result<Chunk<T>> {
    if let Ok(chunk) = head.try_recv() {
        return Ok(chunk);
    }
    let start = Instant::now();
    let chunk = head.recv();
    cx.waited(stage, start.elapsed());
    chunk.map_err(|_| Error::new(ErrorKind::Cancelled, "the threads that evaluate elements have stopped"))
}

fn evaluate<D: MapDataset>(dataset: &D, range: Range<u64>, run: &Runtime) -> Chunk<D::Item> {
    let mut cx = run.cx();
    let start = Instant::now();
    let slots = range.map(|index| evaluate_one(dataset, index, &mut cx)).collect();
    Chunk { slots, took: start.elapsed() }
}

/// A panic in a user's function becomes that element's error: it must not take the thread along.
fn evaluate_one<D: MapDataset>(dataset: &D, index: u64, cx: &mut Cx) -> Slot<D::Item> {
    cx.begin_element();
    let slot = catch_unwind(AssertUnwindSafe(|| dataset.get(index, cx)));
    slot.unwrap_or_else(|panic| Err(panicked(&*panic))).map_err(|e| e.index(index))
}

fn panicked(payload: &(dyn std::any::Any + Send)) -> Error {
    let text = payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    Error::new(ErrorKind::User, format!("a function panicked: {}", text.unwrap_or("(no message)")))
}
