//! The loader: a pipeline that runs.

mod ahead;
mod builder;
mod guarded;
mod here;
mod last_words;
mod moved;
mod parted;
mod watched;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
#[cfg(feature = "python")]
use std::time::Instant;

use self::ahead::Ahead;
#[cfg(all(feature = "workers", target_os = "linux"))]
pub(crate) use self::builder::Backend;
pub use self::builder::LoaderBuilder;
use self::guarded::Guarded;
use self::parted::{Parted, Pass, Wanted};
use self::watched::Watched;
use crate::checkpoint::{Checkpoint, Identity};
use crate::cx::{Cause, Cx, Given, Off, Recorder};
use crate::dataset::iter::{Dealt, plan_in_words};
use crate::dataset::{DatasetIterator, IterDataset, Stage};
use crate::error::{Error, Result};
use crate::exec::Runtime;
use crate::fork::Ours;
use crate::keys::KeyRecorder;
use crate::live::Remarks;
use crate::part::{Deal, Part, RowNumbers};
#[cfg(any(feature = "python", feature = "pjrt"))]
use crate::report::beside;
use crate::report::{ConsumerMeter, First, Report, Seen};
use crate::startup::made_between;

/// Runs pipelines: what every [`IterDataset`] can do.
pub trait Load: IterDataset {
    /// Chooses who evaluates the pipeline, and starts it: see [`LoaderBuilder`].
    fn loader(self) -> LoaderBuilder<Self>
    where
        Self: Sized + 'static,
    {
        LoaderBuilder::new(self)
    }
}

impl<D: IterDataset> Load for D {}

fn typed_state<D: IterDataset>(json: serde_json::Value) -> Result<<D::Iter as DatasetIterator>::State> {
    serde_json::from_value(json)
        .map_err(|e| Error::state(format!("the checkpoint's state is not of this pipeline's shape: {e}")))
}

pub(crate) type StateOf<D> = <<D as IterDataset>::Iter as DatasetIterator>::State;

/// A pipeline that runs: an iterator of `Result<element>` that can say where it is and where its time went.
///
/// After an error it ends; [`state`](Self::state) is then the position before the element that failed.
///
/// # Fork
/// One with threads or worker processes belongs to the process that built it. In a fork of that process, `next` and
/// [`state`](Self::state) are errors, [`report`](Self::report) counts nothing, and dropping it does nothing: what it has
/// threads and processes for goes on in the parent alone.
pub struct Loader<D: IterDataset> {
    dataset: Arc<D>,
    identity: Identity,
    #[cfg(feature = "python")]
    accepts_changes: bool,
    executor: String,
    run: Runtime,
    recorder: Arc<Recorder>,
    /// Those who look at the pass while it runs, if there are any: they are gone before it is.
    watched: Option<Ours<Watched>>,
    drive: Drive<D>,
    state: StateOf<D>,
    /// States before the last elements, the youngest first.
    earlier: VecDeque<StateOf<D>>,
    /// The state after an element that was withheld.
    withheld: Option<StateOf<D>>,
    delivered: u64,
    meter: ConsumerMeter,
    first: First,
    parted: Option<Parted<D::Item>>,
    /// Where the pass evaluates the rows of a part alone: how it is told of another.
    by_rows: Option<Wanted>,
    guarded: Option<Guarded<D::Item>>,
    key_recorder: Option<Arc<KeyRecorder>>,
    ended: bool,
}

enum Drive<D: IterDataset> {
    /// With the cause of the next wait, if that is for the first element behind a beginning.
    Inline {
        iter: Pass<D>,
        cx: Box<Cx>,
        begins: Option<Cause>,
    },
    Ahead(Ours<Ahead<Dealt<D::Item>, StateOf<D>>>),
}

impl<D: IterDataset> Drive<D> {
    /// Checks that this process has what evaluates the elements.
    fn check(&self) -> Result<()> {
        match self {
            Self::Inline { .. } => Ok(()),
            Self::Ahead(ahead) => ahead.origin().check(NAME),
        }
    }
}

/// A wait for the first element that is no longer has no cause worth naming.
const LONG_FIRST: Duration = Duration::from_millis(20);

/// Elements that [`Loader::back`] goes back at most. A state more is kept for an element that is withheld.
const KEPT: usize = 2;

/// The loader in the error that a fork gets.
const NAME: &str = "this loader";

impl<D: IterDataset + 'static> Loader<D> {
    /// Tells where the consumer is: the state behind the last element that [`next`](Iterator::next) returned, whatever is prefetched.
    ///
    /// # Errors
    /// [`ErrorKind::State`](crate::ErrorKind::State) if a stage written outside the crate has a state that JSON cannot hold,
    /// [`ErrorKind::Worker`](crate::ErrorKind::Worker) in a fork.
    pub fn state(&self) -> Result<Checkpoint> {
        self.check_process()?;
        self.identity.at(self.delivered, &self.state)
    }

    /// The part of every batch that it delivers, if it is not all.
    pub fn part(&self) -> Option<&Part> {
        self.parted.as_ref().map(Parted::part)
    }

    /// How rows are dealt among parts, if it delivers one.
    pub fn deal(&self) -> Option<&Deal> {
        self.parted.as_ref().map(Parted::deal)
    }

    /// The rows of its global batch that the last element delivered is; `None` before the first, and without a [part](LoaderBuilder::part).
    pub fn rows(&self) -> Option<&RowNumbers> {
        self.parted.as_ref()?.rows()
    }

    /// Whether it gives nothing more.
    #[cfg(feature = "python")]
    pub(crate) fn is_over(&self) -> bool {
        self.ended
    }

    /// Elements delivered, counting those before a resume.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Borrows what [`state`](Self::state) writes.
    #[cfg(feature = "pjrt")]
    pub(crate) fn typed_state(&self) -> &StateOf<D> {
        &self.state
    }

    /// The checkpoint of an earlier state.
    #[cfg(feature = "pjrt")]
    pub(crate) fn checkpoint_at(&self, delivered: u64, state: &StateOf<D>) -> Result<Checkpoint> {
        self.identity.at(delivered, state)
    }

    /// Whether [`next`](Iterator::next) would not wait for others.
    #[cfg(feature = "pjrt")]
    pub(crate) fn is_ready(&self) -> bool {
        match &self.drive {
            Drive::Inline { .. } => true,
            Drive::Ahead(ahead) => ahead.get().is_none_or(Ahead::is_ready),
        }
    }

    /// Whether elements are made ahead of the consumer, and may lie ready.
    #[cfg(feature = "cli")]
    pub(crate) fn is_ahead(&self) -> bool {
        matches!(self.drive, Drive::Ahead(_))
    }

    /// The pipeline it runs.
    pub fn dataset(&self) -> &D {
        &self.dataset
    }

    /// Reports where the time went so far.
    pub fn report(&mut self) -> Report {
        self.report_around(None)
    }

    /// The same, as a loop in another language saw it, `around` every call of [`next`](Iterator::next).
    pub(crate) fn report_around(&mut self, around: Option<&ConsumerMeter>) -> Report {
        if let Drive::Inline { cx, .. } = &mut self.drive {
            cx.flush();
        }
        if self.check_process().is_err() {
            // A thread that counted when this process was forked may have locked the counts.
            self.recorder = Recorder::new((&*self.dataset as &dyn Stage).count());
        }
        self.run.demand().aside(|| self.run.sync());
        let account = self.recorder.waits().account();
        let seen = Seen { meter: &self.meter, around, account: &account, first: &self.first };
        let mut report = Report::new(&*self.dataset, &self.executor, &self.recorder, &self.run, seen);
        self.remarks().add_to(&mut report);
        self.tell();
        report
    }

    /// What the report has beside what was counted.
    fn remarks(&self) -> Remarks {
        let part = self.part().map(|part| {
            let plan = plan_in_words(&*self.dataset, self.by_rows.is_some(), self.run.deal());
            let agreed = self.guarded.as_ref().map_or_else(String::new, |guarded| format!(" · {}", guarded.remark()));
            format!("{part} · this host {plan}{agreed}")
        });
        let dealt = self.parted.as_ref().and_then(Parted::remark).into_iter();
        let keys = self.key_recorder.iter().flat_map(|recorder| recorder.remarks());
        let changes = self.identity.accepted_changes().iter().map(|change| format!("accepted change: {change}"));
        Remarks { part, remarks: dealt.chain(keys).chain(self.run.failed().remark()).chain(changes).collect() }
    }

    /// Notes that the consumer waited for the interpreter's lock: before it could see whether an element was there, or behind the
    /// last that it was `given`.
    #[cfg(feature = "python")]
    pub(crate) fn note_lock(&self, from: Instant, to: Instant, given: bool) {
        match given {
            true => self.recorder.waits().late(self.meter.delivered.saturating_sub(1), Cause::Lock, from, to),
            false => self.recorder.waits().kept(Cause::Lock, from, to),
        }
    }

    /// Notes what a loop `around` has waited so far beside this.
    #[cfg(any(feature = "python", feature = "pjrt"))]
    pub(crate) fn note_around(&mut self, around: &ConsumerMeter) {
        if let Some((from, to)) = around.first().filter(|_| !self.first.is_told) {
            self.first.is_told = true;
            if to - from > LONG_FIRST {
                self.first.made = made_between(from, to);
            }
        }
        self.recorder.waited_beside(beside(&self.meter, Some(around)));
    }

    /// The next element, as [`next`](Iterator::next) gives it; pending where others make it and have not done so within
    /// `patience`. Asked again, it goes on waiting.
    pub fn next_within(&mut self, patience: Duration) -> Poll<Option<Result<D::Item>>> {
        self.poll(Some(patience))
    }

    /// Whether worker processes wait for shared memory that views of elements hold: for those that the consumer may let go of,
    /// by collecting what it has lost sight of. If none go, elements are copied out in a moment, and counted.
    pub fn is_short_of_memory(&self) -> bool {
        self.run.demand().is_short()
    }

    /// Checks that this is no fork of the process whose threads evaluate the elements.
    ///
    /// # Errors
    /// [`ErrorKind::Worker`](crate::ErrorKind::Worker) if it is.
    pub(crate) fn check_process(&self) -> Result<()> {
        self.drive.check()
    }

    /// The first element is there: notes what was done meanwhile.
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
        let next = match self.guarded {
            Some(_) => self.advance_guarded(patience),
            None => self.advance(patience),
        };
        self.ended = matches!(next, Ok(Poll::Ready(None)) | Err(_));
        if let (Ok(Poll::Ready(None)), Some(recorder)) = (&next, &self.key_recorder) {
            recorder.complete(self.run.parallel() > 0);
        }
        self.tell_viewers();
        match next {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(element)) => Poll::Ready(element.map(Ok)),
            Err(error) => Poll::Ready(Some(Err(error))),
        }
    }

    /// Counts an element; `state` is the one after it.
    fn deliver(&mut self, state: StateOf<D>) {
        self.earlier.truncate(KEPT);
        self.earlier.push_front(std::mem::replace(&mut self.state, state));
        self.delivered += 1;
    }

    fn advance(&mut self, patience: Option<Duration>) -> Result<Poll<Option<D::Item>>> {
        let next = match &mut self.drive {
            Drive::Inline { iter, cx, begins } => {
                Poll::Ready(next_inline(iter, cx, begins, &mut self.meter, &self.recorder)?)
            }
            Drive::Ahead(ahead) => {
                let origin = ahead.origin();
                let ahead = ahead.get_mut().ok_or_else(|| origin.elsewhere(NAME))?;
                ahead.next(patience, &mut self.meter)?
            }
        };
        let Poll::Ready(next) = next else { return Ok(Poll::Pending) };
        let Some((element, state)) = next else { return Ok(Poll::Ready(None)) };
        if let Some(guarded) = &mut self.guarded {
            guarded.feed(self.delivered, &element);
        }
        let element = match (&mut self.parted, element) {
            (Some(parted), element) => parted.take(element, self.delivered)?,
            (None, Dealt::Whole(element, _) | Dealt::Own(element, ..)) => element,
        };
        self.deliver(state);
        self.meter.delivered += 1;
        if self.meter.delivered == 1 {
            self.note_first();
        }
        Ok(Poll::Ready(Some(element)))
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
    let before = Off::here();
    let next = iter.next(cx);
    if let Some(asked) = asked {
        let given = meter.end(asked);
        cx.flush_if_due();
        // Those that were not timed were as good as there.
        let count = meter.unseen(next.as_ref().is_ok_and(Option::is_some));
        let first = meter.delivered + 1 - count.max(1);
        let given = Given { first, count: count as usize, ready: None, asked, given, made: None };
        recorder.made(&given, begins.take(), Off::here().since(before), meter.stands_for);
    }
    Ok(next?.map(|element| (element, iter.state())))
}

impl<D: IterDataset + 'static> Iterator for Loader<D> {
    type Item = Result<D::Item>;

    fn next(&mut self) -> Option<Result<D::Item>> {
        match self.poll(None) {
            Poll::Ready(next) => next,
            // Whoever has no limit to its patience is not told to wait.
            Poll::Pending => None,
        }
    }
}

impl<D: IterDataset> fmt::Debug for Loader<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loader")
            .field("executor", &self.executor)
            .field("delivered", &self.delivered)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
