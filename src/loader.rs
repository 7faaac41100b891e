//! The loader: a pipeline that runs.

mod ahead;
mod builder;
mod edited;
mod guarded;
mod here;
mod last_words;
mod limit;
mod moved;
mod parted;
mod traced;
mod watched;

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use self::ahead::Ahead;
pub(crate) use self::builder::Backend;
pub use self::builder::LoaderBuilder;
use self::guarded::Guarded;
use self::limit::Limit;
use self::parted::{Number, Parted, Pass, Wanted};
use self::watched::Watched;
use crate::checkpoint::{Checkpoint, Identity};
use crate::cx::{Cause, Cx, Recorder, Response, ThreadWaits};
use crate::dataset::iter::{Dealt, plan_in_words};
use crate::dataset::{DatasetIterator, IterDataset, Stage};
use crate::edits::Edits;
use crate::error::{Error, Result};
use crate::exec::Runtime;
use crate::fork::Ours;
use crate::keys::KeyRecorder;
use crate::ledger::Ledger;
use crate::live::Remarks;
use crate::part::{Deal, Part, RowNumbers};
use crate::report::beside;
use crate::report::{ConsumerMeter, First, Report, Seen};
use crate::startup::made_between;

/// Extension trait that runs pipelines, implemented by every [`IterDataset`].
pub trait Load: IterDataset {
    /// Returns a [`LoaderBuilder`], which chooses an executor and starts the pipeline.
    fn loader(self) -> LoaderBuilder<Self>
    where
        Self: Sized + 'static,
    {
        LoaderBuilder::new(self)
    }
}

impl<D: IterDataset> Load for D {}

fn typed_state<D: IterDataset>(json: serde_json::Value) -> Result<<D::Iter as DatasetIterator>::State> {
    serde_json::from_value(json).map_err(|e| {
        Error::state(format!("the checkpoint's state does not have the shape of this pipeline's state: {e}"))
    })
}

pub(crate) type StateOf<D> = <<D as IterDataset>::Iter as DatasetIterator>::State;

/// A running pipeline: an iterator of `Result<element>` that reports its position and the time it has spent.
///
/// The loader ends after an error. [`state`](Self::state) is then the position before the failed element.
///
/// # Fork
/// A loader with threads or worker processes belongs to the process that built it. In a fork of that process, `next` and
/// [`state`](Self::state) return errors, [`report`](Self::report) counts nothing, and dropping the loader does nothing.
/// The threads and worker processes continue in the parent only.
pub struct Loader<D: IterDataset> {
    dataset: Arc<D>,
    identity: Identity,
    accepts_changes: bool,
    executor: String,
    run: Runtime,
    recorder: Arc<Recorder>,
    /// Viewers of the running pass, if any. They are dropped before the pass.
    watched: Option<Ours<Watched>>,
    drive: Drive<D>,
    position: Position<StateOf<D>>,
    meter: ConsumerMeter,
    first: First,
    host: Host<D::Item>,
    limit: Option<Limit>,
    key_recorder: Option<Arc<KeyRecorder>>,
    ended: bool,
}

/// Position of the consumer, and states around it.
struct Position<S> {
    state: S,
    delivered: u64,
    /// States before the last elements, newest first.
    earlier: VecDeque<S>,
    /// State after the withheld element.
    withheld: Option<S>,
    /// Number of the first element after a restore, shared with the pass.
    restored: Number,
}

impl<S> Position<S> {
    /// Counts a delivered element. `state` is the state after it.
    fn advance(&mut self, state: S) {
        self.earlier.truncate(KEPT);
        self.earlier.push_front(std::mem::replace(&mut self.state, state));
        self.delivered += 1;
    }
}

/// Rows of this host, the comparison with other hosts, and the run log.
struct Host<T> {
    parted: Option<Parted<T>>,
    /// The requested part, shared with the pass. `None` unless the pass evaluates only the rows of a part.
    by_rows: Option<Wanted>,
    guarded: Option<Guarded<T>>,
    /// The run log, in the process that opened it.
    ledger: Option<Ours<Ledger>>,
}

enum Drive<D: IterDataset> {
    /// Evaluation on the consumer's thread. `begins` is the cause of the next wait, if it is for the first element after a start or restore.
    Inline {
        iter: Pass<D>,
        cx: Box<Cx>,
        begins: Option<Cause>,
    },
    Ahead(Ours<Ahead<Dealt<D::Item>, StateOf<D>>>),
}

impl<D: IterDataset> Drive<D> {
    /// Returns an error if this process is a fork, which lacks the threads that evaluate the elements.
    fn check(&self) -> Result<()> {
        match self {
            Self::Inline { .. } => Ok(()),
            Self::Ahead(ahead) => ahead.origin().check(NAME),
        }
    }
}

/// Longest wait for the first element that is reported without a cause.
const LONG_FIRST: Duration = Duration::from_millis(20);

/// Maximum number of elements that [`Loader::back`] takes back. One more state is kept for a withheld element.
const KEPT: usize = 2;

/// Name of the loader in the errors of a fork.
const NAME: &str = "this loader";

impl<D: IterDataset + 'static> Loader<D> {
    /// Returns the consumer's position: the state after the last element that [`next`](Iterator::next) returned.
    /// Prefetched elements do not count.
    ///
    /// # Errors
    /// [`ErrorKind::State`](crate::ErrorKind::State) if JSON cannot hold the state of a stage written outside the crate,
    /// [`ErrorKind::Worker`](crate::ErrorKind::Worker) in a fork.
    pub fn state(&self) -> Result<Checkpoint> {
        self.check_process()?;
        self.checkpoint_at(self.position.delivered, &self.position.state)
    }

    /// Returns the part of each batch that the loader delivers, unless it delivers whole batches.
    pub fn part(&self) -> Option<&Part> {
        self.host.parted.as_ref().map(Parted::part)
    }

    /// Returns the [`Deal`] of rows among parts, if the loader delivers a part.
    pub fn deal(&self) -> Option<&Deal> {
        self.host.parted.as_ref().map(Parted::deal)
    }

    /// Returns the numbers of the last element's rows in its global batch.
    /// `None` before the first element, and without a [part](LoaderBuilder::part).
    pub fn rows(&self) -> Option<&RowNumbers> {
        self.host.parted.as_ref()?.rows()
    }

    /// Returns the number of elements delivered, including elements before a resume.
    pub fn delivered(&self) -> u64 {
        self.position.delivered
    }

    /// Returns true if elements are made ahead of the consumer, so that some may be ready.
    pub(crate) fn is_ahead(&self) -> bool {
        matches!(self.drive, Drive::Ahead(_))
    }

    /// Returns the edits of the run.
    pub fn edits(&self) -> &Edits {
        self.identity.edits()
    }

    /// Returns the pipeline that the loader runs.
    pub fn dataset(&self) -> &D {
        &self.dataset
    }

    /// Returns a report of the time spent so far.
    pub fn report(&mut self) -> Report {
        self.report_around(None)
    }

    /// Returns the report with the times that a loop in another language measured `around` each call of [`next`](Iterator::next).
    pub(crate) fn report_around(&mut self, around: Option<&ConsumerMeter>) -> Report {
        if let Drive::Inline { cx, .. } = &mut self.drive {
            cx.flush();
        }
        if self.check_process().is_err() {
            // A thread that was counting at the time of the fork may have locked the counts.
            self.recorder = Recorder::new((&*self.dataset as &dyn Stage).count());
        }
        self.run.demand.aside(|| self.run.sync());
        let account = self.recorder.waits.account();
        let seen = Seen { meter: &self.meter, around, account: &account, first: &self.first };
        let mut report = Report::new(&*self.dataset, &self.executor, &self.recorder, &self.run, seen);
        self.remarks().add_to(&mut report);
        self.tell();
        report
    }

    /// Collects the remarks that the report adds to the counts.
    fn remarks(&self) -> Remarks {
        let part = self.part().map(|part| {
            let plan = plan_in_words(&*self.dataset, self.host.by_rows.is_some(), self.run.deal());
            let agreed =
                self.host.guarded.as_ref().map_or_else(String::new, |guarded| format!(" · {}", guarded.remark()));
            format!("{part} · this host {plan}{agreed}")
        });
        let dealt = self.host.parted.as_ref().and_then(Parted::remark).into_iter();
        let keys = self.key_recorder.iter().flat_map(|recorder| recorder.remarks());
        let changes = self.identity.accepted_changes().iter().map(|change| format!("accepted change: {change}"));
        let edits = self.identity.edits().effective(self.position.delivered);
        let changes = changes.chain(edits.into_iter().map(|edit| format!("edit {edit}")));
        Remarks { part, remarks: dealt.chain(keys).chain(self.run.failed().remark()).chain(changes).collect() }
    }

    /// Records the time that a loop `around` this loader has waited outside of it.
    pub(crate) fn note_around(&mut self, around: &ConsumerMeter) {
        if let Some((from, to)) = around.first().filter(|_| !self.first.is_told) {
            self.first.is_told = true;
            if to - from > LONG_FIRST {
                self.first.made = made_between(from, to);
            }
        }
        self.recorder.waited_beside(beside(&self.meter, Some(around)));
    }

    /// Returns the next element, like [`next`](Iterator::next).
    ///
    /// Pending if other threads or processes make the element and take longer than `patience`. The next call continues the wait.
    pub fn next_within(&mut self, patience: Duration) -> Poll<Option<Result<D::Item>>> {
        self.poll(Some(patience))
    }

    /// Returns true if worker processes wait for shared memory that views of elements hold.
    ///
    /// The consumer may release such views, for example by collecting garbage.
    /// If no view is released, elements are copied out after a moment, and the copies are counted.
    pub fn is_short_of_memory(&self) -> bool {
        self.run.demand.is_short()
    }

    /// Checks that this process is not a fork of the process whose threads evaluate the elements.
    ///
    /// # Errors
    /// [`ErrorKind::Worker`](crate::ErrorKind::Worker) in such a fork.
    pub(crate) fn check_process(&self) -> Result<()> {
        self.drive.check()
    }

    /// Records the work that was done during the wait for the first element, if the wait was long.
    #[cold]
    fn note_first(&mut self) {
        let Some((from, to)) = self.meter.first().filter(|(from, to)| *to - *from > LONG_FIRST) else { return };
        if let Drive::Inline { cx, .. } = &mut self.drive {
            cx.flush();
        }
        let work = self.recorder.totals().iter().map(|tally| tally.counts.self_time()).collect();
        (self.first.made, self.first.work) = (made_between(from, to), work);
    }

    fn poll(&mut self, patience: Option<Duration>) -> Poll<Option<Result<D::Item>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let next = match self.host.guarded {
            Some(_) => self.advance_guarded(patience),
            None => self.advance(patience),
        };
        self.ended = matches!(next, Ok(Poll::Ready(None)) | Err(_));
        if let (Ok(Poll::Ready(None)), Some(recorder)) = (&next, &self.key_recorder) {
            recorder.complete(self.run.parallel() > 0);
        }
        if matches!(next, Ok(Poll::Ready(None))) {
            self.log_end();
        }
        self.tell_viewers();
        match next {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(element)) => Poll::Ready(element.map(Ok)),
            Err(error) => Poll::Ready(Some(Err(error))),
        }
    }

    fn advance(&mut self, patience: Option<Duration>) -> Result<Poll<Option<D::Item>>> {
        let next = match &mut self.drive {
            Drive::Inline { iter, cx, begins } => {
                Poll::Ready(next_inline(iter, cx, begins, &mut self.meter, &self.recorder)?)
            }
            Drive::Ahead(ahead) => {
                let origin = ahead.origin();
                let ahead = ahead.get_mut().ok_or_else(|| origin.elsewhere(NAME))?;
                if let Some(limit) = &mut self.limit {
                    let next = ahead.next(Some(limit.patience(patience, Instant::now())), &mut self.meter)?;
                    limit.check(next.is_ready(), Instant::now(), self.position.delivered)?;
                    next
                } else {
                    ahead.next(patience, &mut self.meter)?
                }
            }
        };
        let Poll::Ready(next) = next else { return Ok(Poll::Pending) };
        let Some((element, state)) = next else { return Ok(Poll::Ready(None)) };
        if let Some(guarded) = &mut self.host.guarded {
            guarded.feed(self.position.delivered, &element);
        }
        let digest = element.plan_digest();
        let element = match (&mut self.host.parted, element) {
            (Some(parted), element) => parted.take(element, self.position.delivered)?,
            (None, element) => element.batch()?,
        };
        self.position.advance(state);
        self.run.edits().delivered(self.position.delivered);
        self.log_batch(digest);
        self.meter.delivered += 1;
        if self.meter.delivered == 1 {
            self.note_first();
        }
        Ok(Poll::Ready(Some(element)))
    }
}

#[cfg(feature = "python")]
impl<D: IterDataset + 'static> Loader<D> {
    /// Returns true if the loader yields no more elements.
    pub(crate) fn is_over(&self) -> bool {
        self.ended
    }

    /// Records a wait of the consumer for the interpreter's lock. `given`: the wait came after the last element was returned;
    /// otherwise it came before the consumer could check for an element.
    pub(crate) fn note_lock(&self, from: Instant, to: Instant, given: bool) {
        match given {
            true => self.recorder.waits.late(self.meter.delivered.saturating_sub(1), Cause::Lock, from, to),
            false => self.recorder.waits.kept(Cause::Lock, from, to),
        }
    }
}

impl<D: IterDataset + 'static> Loader<D> {
    /// Borrows the state that [`state`](Self::state) writes.
    pub(crate) fn typed_state(&self) -> &StateOf<D> {
        &self.position.state
    }

    /// Makes the checkpoint of an earlier state.
    pub(crate) fn checkpoint_at(&self, delivered: u64, state: &StateOf<D>) -> Result<Checkpoint> {
        let checkpoint = self.identity.at(delivered, state)?;
        Ok(Checkpoint { edited_mix: self.run.edits().progress(delivered), ..checkpoint })
    }

    /// Returns true if [`next`](Iterator::next) would not wait for other threads or processes.
    pub(crate) fn is_ready(&self) -> bool {
        match &self.drive {
            Drive::Inline { .. } => true,
            Drive::Ahead(ahead) => ahead.get().is_none_or(Ahead::is_ready),
        }
    }
}

fn next_inline<I: DatasetIterator>(
    iter: &mut I,
    cx: &mut Cx,
    begins: &mut Option<Cause>,
    meter: &mut ConsumerMeter,
    recorder: &Recorder,
) -> Result<Option<(I::Item, I::State)>> {
    let asked = meter.begin();
    let before = ThreadWaits::here();
    let next = iter.next(cx);
    if let Some(asked) = asked {
        let given = meter.end(asked);
        cx.flush_if_due();
        // Untimed elements were practically ready.
        let count = meter.unseen(next.as_ref().is_ok_and(Option::is_some));
        let first = meter.delivered + 1 - count.max(1);
        let response = Response { first, count: count as usize, ready: None, asked, given, made: None };
        recorder.made(&response, begins.take(), ThreadWaits::here().since(before), meter.stands_for);
    }
    Ok(next?.map(|element| (element, iter.state())))
}

impl<D: IterDataset + 'static> Iterator for Loader<D> {
    type Item = Result<D::Item>;

    fn next(&mut self) -> Option<Result<D::Item>> {
        match self.poll(None) {
            Poll::Ready(next) => next,
            // A wait without a limit is never pending.
            Poll::Pending => None,
        }
    }
}

debug_as!(<D: IterDataset> Loader<D>, |self, f| {
    f.debug_struct("Loader")
        .field("executor", &self.executor)
        .field("delivered", &self.position.delivered)
        .finish_non_exhaustive()
});

#[cfg(test)]
mod tests;
