//! The loader: a pipeline that runs.

mod ahead;

use std::fmt;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use self::ahead::Ahead;
use crate::checkpoint::{Checkpoint, Identity};
use crate::cx::{Cx, Recorder};
use crate::dataset::{DatasetIterator, IterDataset, Stage};
use crate::error::Result;
use crate::exec::{Engine, Executor, Runtime};
use crate::fork::Ours;
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

/// Starts those who evaluate a pipeline, if that is neither the consumer's thread nor threads beside it.
pub(crate) trait Backend: Send {
    /// Starts them for the elements of `pipeline`; returns what runs it, and who evaluates in words.
    ///
    /// # Errors
    /// If they cannot be started.
    fn start(self: Box<Self>, pipeline: &dyn Stage, recorder: &Arc<Recorder>) -> Result<(Runtime, String)>;
}

/// Chooses how a pipeline is run: see [`Load::loader`].
#[must_use = "a builder does nothing until `build`"]
pub struct LoaderBuilder<D> {
    dataset: D,
    executor: Executor,
    buffer: usize,
    resume: Option<Checkpoint>,
    backend: Option<Box<dyn Backend>>,
}

impl<D: IterDataset + 'static> LoaderBuilder<D> {
    pub(crate) fn new(dataset: D) -> Self {
        Self { dataset, executor: Executor::Inline, buffer: 2, resume: None, backend: None }
    }

    /// Has those evaluate the elements that `backend` starts, in place of an [`executor`](Self::executor).
    #[cfg(all(feature = "workers", target_os = "linux"))]
    pub(crate) fn backend(mut self, backend: impl Backend + 'static) -> Self {
        self.backend = Some(Box::new(backend));
        self
    }

    /// Who evaluates it; [`Executor::Inline`] at first. The choice never changes the elements.
    pub fn executor(mut self, executor: Executor) -> Self {
        self.executor = executor;
        self
    }

    /// `n` threads for the elementwise part and one for the stateful part.
    pub fn threads(self, n: usize) -> Self {
        self.executor(Executor::Threads(n))
    }

    /// Batches kept ready ahead of the consumer by [`Executor::Threads`]; 2 at first, and 1,048,576 at most.
    pub fn buffer(mut self, batches: usize) -> Self {
        self.buffer = batches.max(1);
        self
    }

    /// Continues where `checkpoint` was taken, under whatever executor that was.
    pub fn resume(mut self, checkpoint: Checkpoint) -> Self {
        self.resume = Some(checkpoint);
        self
    }

    /// Starts.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) naming the stage that cannot work; [`ErrorKind::State`](crate::ErrorKind::State)
    /// for a checkpoint of another pipeline; what the sources report while elements in memory are read again.
    pub fn build(mut self) -> Result<Loader<D>> {
        if self.buffer > MOST_BUFFER {
            let text = format!("buffer is {}, and must be {MOST_BUFFER} or less", self.buffer);
            return Err(crate::Error::config(text).help("it counts batches that are kept ready, not bytes"));
        }
        (&self.dataset as &dyn Stage).check_all()?;
        let recorder = Recorder::new((&self.dataset as &dyn Stage).count());
        let (run, executor) = self.runtime(&recorder)?;
        let mut iter = self.dataset.iter(&run)?;
        let mut cx = run.cx();
        let (identity, mut delivered) = (Identity::of(&self.dataset), 0);
        if let Some(checkpoint) = self.resume {
            checkpoint.check(&identity)?;
            iter.restore(typed_state::<D>(checkpoint.state)?, &mut cx)?;
            delivered = checkpoint.delivered;
        }
        let state = iter.state();
        let mut meter = ConsumerMeter::default();
        let drive = match run.engine() {
            Engine::Inline => Drive::Inline { iter, cx },
            _ => {
                meter.capacity = self.buffer;
                Drive::Ahead(Ours::new(Ahead::start(iter, cx, self.buffer, &run)?))
            }
        };
        let dataset = self.dataset;
        let first = First::default();
        Ok(Loader { dataset, identity, executor, run, recorder, drive, state, delivered, meter, first, ended: false })
    }

    /// Who evaluates, and that in words.
    fn runtime(&mut self, recorder: &Arc<Recorder>) -> Result<(Runtime, String)> {
        if let Some(backend) = self.backend.take() {
            return backend.start(&self.dataset, recorder);
        }
        Ok((Runtime::new(self.executor, Some(recorder.clone()))?, self.executor.to_string()))
    }
}

fn typed_state<D: IterDataset>(json: serde_json::Value) -> Result<<D::Iter as DatasetIterator>::State> {
    serde_json::from_value(json)
        .map_err(|e| crate::Error::state(format!("the checkpoint's state is not of this pipeline's shape: {e}")))
}

impl<D> fmt::Debug for LoaderBuilder<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoaderBuilder").field("executor", &self.executor).finish_non_exhaustive()
    }
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
    dataset: D,
    identity: Identity,
    executor: String,
    run: Runtime,
    recorder: Arc<Recorder>,
    drive: Drive<D>,
    state: StateOf<D>,
    delivered: u64,
    meter: ConsumerMeter,
    first: First,
    ended: bool,
}

enum Drive<D: IterDataset> {
    Inline { iter: D::Iter, cx: Cx },
    Ahead(Ours<Ahead<D::Item, StateOf<D>>>),
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

/// Batches that may be kept ready: each has its place from the start.
const MOST_BUFFER: usize = 1 << 20;

/// A wait for the first element that is no longer has no cause worth naming.
const LONG_FIRST: Duration = Duration::from_millis(20);

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

    /// Goes to where `checkpoint` was taken, with the same threads, worker processes and open files; `false` where it takes others:
    /// behind its end or an error, and where one is still busy.
    ///
    /// # Errors
    /// As [`LoaderBuilder::build`] with one to resume; then it has ended.
    #[cfg(feature = "python")]
    pub(crate) fn restore(&mut self, checkpoint: &Checkpoint) -> Result<bool> {
        self.check_process()?;
        checkpoint.check(&self.identity)?;
        let state = typed_state::<D>(checkpoint.state.clone())?;
        if std::mem::replace(&mut self.ended, true) {
            return Ok(false);
        }
        let restored = match &mut self.drive {
            Drive::Inline { iter, cx } => iter.restore(state, cx).map(|()| iter.state()),
            Drive::Ahead(ahead) => match ahead.get_mut().and_then(|ahead| ahead.restore(state)) {
                Some(restored) => restored,
                None => return Ok(false),
            },
        };
        (self.state, self.delivered, self.ended) = (restored?, checkpoint.delivered, false);
        Ok(true)
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
            self.recorder = Recorder::new((&self.dataset as &dyn Stage).count());
        }
        self.run.demand().aside(|| self.run.sync());
        let seen = Seen { meter: &self.meter, around, first: &self.first };
        Report::new(&self.dataset, &self.executor, &self.recorder, &self.run, seen)
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
        self.first = First { made: made_between(from, to), work };
    }

    fn poll(&mut self, patience: Option<Duration>) -> Poll<Option<Result<D::Item>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let next = self.advance(patience);
        self.ended = matches!(next, Ok(Poll::Ready(None)) | Err(_));
        match next {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(element)) => Poll::Ready(element.map(Ok)),
            Err(error) => Poll::Ready(Some(Err(error))),
        }
    }

    fn advance(&mut self, patience: Option<Duration>) -> Result<Poll<Option<D::Item>>> {
        let next = match &mut self.drive {
            Drive::Inline { iter, cx } => Poll::Ready(next_inline(iter, cx, &mut self.meter)?),
            Drive::Ahead(ahead) => {
                let origin = ahead.origin();
                let ahead = ahead.get_mut().ok_or_else(|| origin.elsewhere(NAME))?;
                ahead.next(patience, &mut self.meter)?
            }
        };
        let Poll::Ready(next) = next else { return Ok(Poll::Pending) };
        let Some((element, state)) = next else { return Ok(Poll::Ready(None)) };
        self.state = state;
        self.delivered += 1;
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
    meter: &mut ConsumerMeter,
) -> Result<Option<(I::Item, I::State)>> {
    let start = meter.begin();
    let next = iter.next(cx);
    if let Some(start) = start {
        meter.end(start);
        cx.flush_if_due();
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
mod tests {
    use super::*;
    use crate::dataset::map::Range;
    use crate::{Error, ErrorKind, MapDataset};

    fn pipeline(add: i64) -> impl IterDataset<Item = i64> + 'static {
        Range::new(0, 5000).map(move |x| x + add).to_iter().filter(|x| x % 7 != 0).boxed()
    }

    fn run(loader: Loader<impl IterDataset<Item = i64> + 'static>) -> Vec<i64> {
        loader.collect::<Result<_>>().unwrap()
    }

    #[test]
    fn executors_agree_and_a_checkpoint_restores_into_any() {
        let inline = run(pipeline(1).loader().build().unwrap());
        assert_eq!(inline.len(), 5000 - 5000 / 7);
        for threads in [1, 3] {
            let mut loader = pipeline(1).loader().threads(threads).build().unwrap();
            let mut seen: Vec<i64> = loader.by_ref().take(1234).map(Result::unwrap).collect();
            let json = loader.state().unwrap().to_json();
            let checkpoint = Checkpoint::from_json(&json).unwrap();
            assert_eq!(checkpoint.delivered, 1234);
            let resumed = pipeline(1).loader().resume(checkpoint).build().unwrap();
            assert_eq!(resumed.state().unwrap().to_json(), json);
            seen.extend(run(resumed));
            assert_eq!(seen, inline);
        }
    }

    #[test]
    fn a_foreign_checkpoint_is_refused_by_name() {
        let state = Range::new(0, 9).to_iter().loader().build().unwrap().state().unwrap();
        let error = Range::new(0, 8).to_iter().loader().resume(state).build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::State);
        assert!(error.message().contains("stage 0 was range(0, 9, 1) and is range(0, 8, 1)"), "{error}");
    }

    #[test]
    fn an_error_arrives_in_its_place_and_ends_the_run() {
        for executor in [Executor::Inline, Executor::Threads(2)] {
            let ds = Range::new(0, 100).try_map(|x| if x == 30 { Err(Error::data("bad")) } else { Ok(x) });
            let mut loader = ds.to_iter().loader().executor(executor).build().unwrap();
            assert_eq!(loader.by_ref().take(30).filter_map(Result::ok).count(), 30);
            assert_eq!(loader.next().unwrap().unwrap_err().to_string(), "stage 1 map: element 30: bad");
            assert!(loader.next().is_none());
            assert_eq!(loader.state().unwrap().state["next_index"], 30);
        }
    }

    /// The fourth element is only there once the third has arrived.
    #[test]
    fn elements_do_not_wait_for_the_next() {
        let (arrived, has_arrived) = crossbeam_channel::bounded(1);
        let next = move |x: i64| {
            let late = x == 3 && has_arrived.recv_timeout(std::time::Duration::from_secs(30)).is_err();
            if late { Err(Error::data("nothing has arrived")) } else { Ok(x) }
        };
        for stateful in [false, true] {
            let stream = Range::new(0, 9).to_iter().try_map(next.clone());
            let stream = if stateful { stream.window_shuffle(1, 1).boxed() } else { stream.boxed() };
            let mut loader = stream.loader().threads(2).build().unwrap();
            assert_eq!(loader.by_ref().take(3).map(Result::unwrap).collect::<Vec<_>>(), [0, 1, 2]);
            arrived.send(()).unwrap();
            assert_eq!(run(loader), [3, 4, 5, 6, 7, 8]);
        }
    }

    #[test]
    fn a_consumer_may_look_up_while_it_waits() {
        let (open, gate) = crossbeam_channel::bounded::<()>(1);
        let ds = Range::new(0, 3).map(move |x| gate.recv().map_or(x, |()| x));
        let mut loader = ds.to_iter().loader().threads(1).build().unwrap();
        let patience = Duration::from_millis(1);
        assert!((0..3).all(|_| loader.next_within(patience).is_pending()));
        assert_eq!((loader.delivered(), loader.report().delivered), (0, 0));
        drop(open);
        let first = std::iter::repeat_with(|| loader.next_within(patience)).find(Poll::is_ready);
        assert!(matches!(first, Some(Poll::Ready(Some(Ok(0))))));
        assert_eq!(run(loader), [1, 2]);
    }

    #[cfg(unix)]
    #[test]
    fn a_fork_neither_reads_it_nor_ends_it() {
        use crate::fork::tests::in_fork;
        for executor in [Executor::Threads(1), Executor::Threads(3), Executor::Auto] {
            let mut loader = Some(pipeline(0).loader().executor(executor).build().unwrap());
            let mut seen: Vec<i64> = loader.iter_mut().flatten().take(10).map(Result::unwrap).collect();
            let refused =
                |error: Error| error.kind() == ErrorKind::Worker && error.message().contains("is a fork of it");
            let code = in_fork(|| {
                let Some(mut loader) = loader.take() else { return false };
                let errors = [loader.next().and_then(Result::err), loader.state().err()];
                // The next time it has ended, as after any error.
                let over = loader.next().is_none() && loader.report().delivered == 10;
                drop(loader);
                over && errors.into_iter().flatten().filter_map(|e| refused(e).then_some(())).count() == 2
            });
            assert_eq!(code, 0);
            seen.extend(loader.into_iter().flatten().map(Result::unwrap));
            assert_eq!(seen, run(pipeline(0).loader().build().unwrap()));
        }
    }

    /// Also where tasks that are under way hold the threads, and where the stateful part would wait for ever.
    #[test]
    fn dropping_it_ends_its_threads() {
        let calls = Arc::new(());
        for round in 0..20 {
            let call = calls.clone();
            let slow = move |x: i64| {
                let _call = &call;
                std::thread::sleep(Duration::from_micros(300));
                x
            };
            let ds = Range::new(0, 1 << 40).map(slow).to_iter().filter(move |&x| round % 2 == 0 || x < 3);
            let mut loader = ds.loader().threads(2).build().unwrap();
            assert_eq!(loader.next().unwrap().unwrap(), 0);
            drop(loader);
            assert_eq!(Arc::strong_count(&calls), 1);
        }
    }

    #[test]
    fn a_panic_on_a_thread_is_an_error_of_its_element() {
        let ds = Range::new(0, 10).map(|x| if x == 3 { panic!("boom") } else { x });
        let mut loader = ds.to_iter().loader().threads(2).build().unwrap();
        let error = loader.by_ref().find_map(Result::err).unwrap();
        assert_eq!(error.to_string(), "element 3: a function panicked: boom");
    }
}
