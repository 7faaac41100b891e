//! Views of a pass from other threads and processes while it runs.
//!
//! Most input of a report is shared already: counts, records, and the threads and workers that evaluate. Only the
//! consumer has the durations of its calls, and it copies them to [`Live`] ten times a second. Viewers build reports on
//! their own threads, and the consumer waits for none of them. A pass without viewers has no `Live`.

mod address;
mod endpoint;
mod looks;
mod neighbour;
mod record;
#[cfg(all(feature = "top", target_os = "linux"))]
pub(crate) mod top;
mod trace;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::time::Instant;

pub(crate) use self::endpoint::Endpoint;
pub(crate) use self::looks::{Looks, View};
pub(crate) use self::record::RecordView;
pub(crate) use self::trace::TraceView;
use crate::cx::{Account, Cursor, Recorder, Update};
use crate::dataset::Stage;
use crate::exec::Runtime;
use crate::report::{ConsumerMeter, Depth, First, Report, Seen};
use crate::sync::Locked;

/// Time between two updates from the consumer.
pub(crate) const EVERY: Duration = Duration::from_millis(100);
/// Longest time to wait for counts of other processes.
const SYNC: Duration = Duration::from_millis(2);

/// A pass as viewers see it.
#[derive(Debug)]
pub(crate) struct Live {
    told: Mutex<Told>,
    /// Number of delivered elements, updated for each element.
    delivered: AtomicU64,
    /// Times of the surrounding loop in another language, which include the times of the pass.
    around: Mutex<Option<Arc<Mutex<ConsumerMeter>>>>,
    /// Shared input of reports; `None` if the pass is gone.
    subject: Mutex<Option<Subject>>,
}

/// Data that only the consumer has.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    pub(crate) meter: ConsumerMeter,
    pub(crate) account: Account,
    pub(crate) first: First,
    pub(crate) remarks: Remarks,
    /// Times of the surrounding loop, if there is a surrounding loop.
    pub(crate) around: Option<ConsumerMeter>,
    /// True after the last update. The surrounding loop counts its last call after that update.
    pub(crate) ended: bool,
}

/// Remarks about a pass, reported beside its counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Remarks {
    /// Description of the delivered part.
    pub(crate) part: Option<String>,
    pub(crate) remarks: Vec<String>,
}

impl Remarks {
    /// Adds the remarks to a report.
    pub(crate) fn add_to(self, report: &mut Report) {
        report.execution.part = self.part;
        report.remarks.extend(self.remarks);
    }
}

/// The shared parts of a pass.
pub(crate) struct Subject {
    pub(crate) pipeline: Arc<dyn Stage + Send + Sync>,
    pub(crate) executor: String,
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) run: Runtime,
}

impl Live {
    pub(crate) fn new(subject: Subject) -> Arc<Self> {
        Arc::new(Self {
            told: Mutex::default(),
            delivered: AtomicU64::new(0),
            around: Mutex::default(),
            subject: Mutex::new(Some(subject)),
        })
    }

    /// Sets the number of delivered elements.
    #[inline]
    pub(crate) fn delivered(&self, count: u64) {
        self.delivered.store(count, Ordering::Relaxed);
    }

    /// Updates the data of the consumer.
    pub(crate) fn tell(&self, told: Told) {
        *self.told.locked() = Told { around: self.now_around(), ..told };
    }

    /// Returns the current times of the surrounding loop.
    fn now_around(&self) -> Option<ConsumerMeter> {
        self.around.locked().as_ref().map(|around| around.locked().clone())
    }

    /// Sets the meter of the surrounding loop in another language.
    pub(crate) fn show_around(&self, around: Arc<Mutex<ConsumerMeter>>) {
        *self.around.locked() = Some(around);
    }

    /// Shows another pass in place of this pass, or no pass if `subject` is `None`.
    pub(crate) fn show(&self, subject: Option<Subject>) {
        // A report holds the lock until it is done, so viewers never drop a subject.
        let before = std::mem::replace(&mut *self.subject.locked(), subject);
        drop(before);
    }

    /// Returns the records since `seen` and advances `seen`; at the `end`, includes work that is under way.
    pub(crate) fn updates(&self, cursor: &mut Cursor, end: bool) -> Update {
        let subject = self.subject.locked();
        subject.as_ref().map(|subject| subject.recorder.updates(cursor, end)).unwrap_or_default()
    }

    /// Returns the time for which the consumer has been waiting, or `None` if the consumer is not waiting.
    #[cfg(all(feature = "top", target_os = "linux"))]
    pub(crate) fn waiting(&self) -> Option<Duration> {
        self.subject.locked().as_ref()?.run.demand.waiting(Instant::now())
    }

    /// Returns a report on the pass as of now, or `None` if the pass is gone.
    pub(crate) fn report(&self, depth: Depth) -> Option<Report> {
        let subject = self.subject.locked();
        let Subject { pipeline, executor, recorder, run } = subject.as_ref()?;
        run.sync_within(SYNC);
        let Told { mut meter, account, first, remarks, around, ended } = self.told.locked().clone();
        let around = if ended { self.now_around() } else { around };
        meter.delivered = self.delivered.load(Ordering::Relaxed);
        let seen = Seen { meter: &meter, around: around.as_ref(), account: &account, first: &first };
        let mut report = Report::of(depth, &**pipeline, executor, recorder, run, seen);
        remarks.add_to(&mut report);
        Some(report)
    }
}

debug_as!(Subject, |self, f| f.debug_struct("Subject").field("executor", &self.executor).finish_non_exhaustive());
