//! A pass seen by others while it runs.
//!
//! Nearly all that a report is made of is shared anyway: counts, records, who evaluates. What the consumer alone knows, how long its own calls took, it
//! tells [`Live`] ten times a second where there are viewers; those make reports of both on threads of their own, and the consumer waits for
//! none of them. A pass without viewers has no `Live`.

mod address;
mod endpoint;
mod looks;
mod neighbour;
mod record;
#[cfg(all(feature = "top", target_os = "linux"))]
pub(crate) mod top;
mod trace;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
#[cfg(all(feature = "top", target_os = "linux"))]
use std::time::Instant;

pub(crate) use self::endpoint::Endpoint;
pub(crate) use self::looks::{Looks, View};
pub(crate) use self::record::RecordView;
pub(crate) use self::trace::TraceView;
use crate::cx::{Account, News, Recorder, Seen};
use crate::dataset::Stage;
use crate::exec::Runtime;
use crate::report::{ConsumerMeter, Depth, First, Report, Seen as SeenBy};
use crate::sync::Locked;

/// Time between two accounts of the consumer.
pub(crate) const EVERY: Duration = Duration::from_millis(100);
/// Time for which counts of other processes are waited for.
const SYNC: Duration = Duration::from_millis(2);

/// A pass as viewers see it.
#[derive(Debug)]
pub(crate) struct Live {
    told: Mutex<Told>,
    /// Elements that were delivered, which is told of each.
    delivered: AtomicU64,
    /// Times as a loop in another language sees them, around those of the pass.
    around: Mutex<Option<Arc<Mutex<ConsumerMeter>>>>,
    /// What reports are made of; `None` once the pass is gone.
    subject: Mutex<Option<Subject>>,
}

/// The account of the consumer: what it alone knows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    pub(crate) meter: ConsumerMeter,
    pub(crate) account: Account,
    pub(crate) first: First,
    pub(crate) remarks: Remarks,
    /// Times of the loop around it, if there is one.
    pub(crate) around: Option<ConsumerMeter>,
    /// Whether no more is told: the loop around it counts its last call behind that.
    pub(crate) ended: bool,
}

/// Remarks about a pass that stand beside its counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Remarks {
    /// The part that is delivered, in words.
    pub(crate) part: Option<String>,
    pub(crate) remarks: Vec<String>,
}

impl Remarks {
    /// Adds them to a report.
    pub(crate) fn add_to(self, report: &mut Report) {
        report.part = self.part;
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

    /// So many elements were delivered.
    #[inline]
    pub(crate) fn delivered(&self, count: u64) {
        self.delivered.store(count, Ordering::Relaxed);
    }

    /// The consumer tells of itself.
    pub(crate) fn tell(&self, told: Told) {
        *self.told.locked() = Told { around: self.now_around(), ..told };
    }

    /// Times of the loop around it, as they are now.
    fn now_around(&self) -> Option<ConsumerMeter> {
        self.around.locked().as_ref().map(|around| around.locked().clone())
    }

    /// Times of a loop in another language are seen from now on.
    #[cfg(feature = "python")]
    pub(crate) fn show_around(&self, around: Arc<Mutex<ConsumerMeter>>) {
        *self.around.locked() = Some(around);
    }

    /// Another pass is seen from now on in the place of this one, or none.
    pub(crate) fn show(&self, subject: Option<Subject>) {
        // Whoever makes a report has it until that is done, and drops none of it.
        let before = std::mem::replace(&mut *self.subject.locked(), subject);
        drop(before);
    }

    /// Records that have come since `seen`, which is moved behind them; at the `end` with what is under way.
    pub(crate) fn news(&self, seen: &mut Seen, end: bool) -> News {
        let subject = self.subject.locked();
        subject.as_ref().map(|subject| subject.recorder.news(seen, end)).unwrap_or_default()
    }

    /// For how long the consumer has been waiting, if it is.
    #[cfg(all(feature = "top", target_os = "linux"))]
    pub(crate) fn waiting(&self) -> Option<Duration> {
        self.subject.locked().as_ref()?.run.demand().waiting(Instant::now())
    }

    /// Reports on the pass as of now, unless it is gone.
    pub(crate) fn report(&self, depth: Depth) -> Option<Report> {
        let subject = self.subject.locked();
        let Subject { pipeline, executor, recorder, run } = subject.as_ref()?;
        run.sync_within(SYNC);
        let Told { mut meter, account, first, remarks, around, ended } = self.told.locked().clone();
        let around = if ended { self.now_around() } else { around };
        meter.delivered = self.delivered.load(Ordering::Relaxed);
        let seen = SeenBy { meter: &meter, around: around.as_ref(), account: &account, first: &first };
        let mut report = Report::of(depth, &**pipeline, executor, recorder, run, seen);
        remarks.add_to(&mut report);
        Some(report)
    }
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject").field("executor", &self.executor).finish_non_exhaustive()
    }
}
