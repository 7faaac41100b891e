//! Root elements in index order, whoever evaluates them.
//!
//! Without threads or worker processes, an index is evaluated when it is asked for. With them, ranges of consecutive
//! indices are dispatched ahead and put back in order here. A range is a pure function of (pipeline, indices), so its
//! size and who runs it are free to follow the clock: they never shape the stream.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::Receiver;

use super::evaluate::{Chunk, Evaluator, Incoming, Slot, evaluator};
use crate::cx::{Cx, StageId};
use crate::dataset::map::MapDataset;
use crate::error::{Error, ErrorKind, Result};
use crate::exec::Runtime;

/// Work per range that hides the cost of handing it over.
const CHUNK_TIME: Duration = Duration::from_millis(2);
const MAX_CHUNK: u64 = 1024;

/// Slots of `0..len` in order, from any index on.
pub(super) struct Roots<D: MapDataset> {
    dataset: Arc<D>,
    stage: StageId,
    len: u64,
    next: u64,
    ahead: Option<Ahead<D::Item>>,
}

/// What is dispatched and not yet delivered.
struct Ahead<T> {
    evaluator: Box<dyn Evaluator<T>>,
    pending: VecDeque<Pending<T>>,
    current: std::vec::IntoIter<Slot<T>>,
    dispatched: u64,
    chunk: u64,
}

struct Pending<T> {
    incoming: Incoming<T>,
    /// Slots that have not come yet.
    left: u64,
}

impl<D> Roots<D>
where
    D: MapDataset + 'static,
    D::Item: Send + 'static,
{
    pub(super) fn new(dataset: Arc<D>, run: &Runtime, stage: StageId) -> Self {
        let (pending, current) = (VecDeque::new(), Vec::new().into_iter());
        let ahead = evaluator(&dataset, run, stage).map(|evaluator| Ahead {
            evaluator,
            pending,
            current,
            dispatched: 0,
            chunk: 1,
        });
        Self { len: dataset.len(), dataset, stage, next: 0, ahead }
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
            Some(ahead) => Some(ahead.next(self.len, self.stage, cx)),
        }
    }
}

impl<T> Ahead<T> {
    fn next(&mut self, len: u64, stage: StageId, cx: &mut Cx) -> Slot<T> {
        loop {
            if let Some(slot) = self.current.next() {
                return slot;
            }
            self.dispatch(len);
            let head = self.pending.front_mut().expect("an index below the length was dispatched");
            let chunk = receive(&head.incoming.chunks, stage, cx)?;
            let slots = chunk.slots.len() as u64;
            head.left = head.left.saturating_sub(slots);
            if head.left == 0 {
                self.pending.pop_front();
            }
            self.learn(slots, chunk.took);
            self.current = chunk.slots.into_iter();
            self.dispatch(len);
        }
    }

    /// Keeps as many ranges under way as the evaluator wants.
    fn dispatch(&mut self, len: u64) {
        while self.pending.len() < self.evaluator.window() && self.dispatched < len {
            let end = len.min(self.dispatched.saturating_add(self.chunk));
            let incoming = self.evaluator.submit(self.dispatched..end);
            self.pending.push_back(Pending { incoming, left: end - self.dispatched });
            self.dispatched = end;
        }
    }

    /// Aims the size of a range at [`CHUNK_TIME`], at most doubling it at a time.
    fn learn(&mut self, len: u64, took: Duration) {
        let per_element = took.as_nanos() as u64 / len.max(1);
        let ideal = CHUNK_TIME.as_nanos() as u64 / per_element.max(1);
        self.chunk = ideal.clamp(1, MAX_CHUNK).min(self.chunk * 2);
    }
}

/// Waits for a chunk, counting the wait.
fn receive<T>(head: &Receiver<Result<Chunk<T>>>, stage: StageId, cx: &mut Cx) -> Result<Chunk<T>> {
    if let Ok(chunk) = head.try_recv() {
        return chunk;
    }
    let start = Instant::now();
    let chunk = head.recv();
    cx.waited(stage, start.elapsed());
    chunk.map_err(|_| Error::new(ErrorKind::Cancelled, "those who evaluate elements have stopped"))?
}
