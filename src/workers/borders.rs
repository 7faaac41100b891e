//! Borders of a pipeline in a worker: evaluate tasks into given memory.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::control::{Begin, Task};
use crate::cx::{Recorder, Tally};
use crate::dataset::{IterDataset, Stage};
use crate::error::{Error, ErrorKind, Result};
use crate::exec::remote::{Border, Evaluated, Serve, Served};
use crate::exec::{Engine, Runtime};
use crate::part::Part;
use crate::sync::Locked;

/// Minimum time between two reports of counts to the parent; a report takes a few kilobytes.
const TELL_EVERY: Duration = Duration::from_millis(50);

/// Function that registers the borders of a part.
type OpenPart = Box<dyn Fn(&Part) -> Result<()> + Send + Sync>;

/// The borders of a pipeline, and the counts of its stages.
pub(crate) struct Borders {
    /// Opens a part for tasks with elements of it.
    open_part: OpenPart,
    served: Arc<Served>,
    /// `None` if counting is off.
    recorder: Option<Arc<Recorder>>,
    told: Mutex<Instant>,
}

impl Borders {
    /// Opens the borders of `dataset`, which must be the pipeline named in `begin`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] that names the first different stage; errors of the dataset at the start of a pass.
    pub(crate) fn open<D: IterDataset + 'static>(dataset: D, begin: &Begin) -> Result<Self> {
        check_same(&begin.pipeline, &(&dataset as &dyn Stage).lines())?;
        let served = Arc::<Served>::default();
        let recorder = begin.counted.then(|| Recorder::new((&dataset as &dyn Stage).count()));
        let run = Runtime::of(Engine::Serving(served.clone()), recorder.clone());
        // The pass is never read; its start registers every border.
        drop(dataset.iter(&run)?);
        let open_part = Box::new(move |part: &Part| dataset.iter_part(&run, part).map(drop));
        Ok(Self { open_part, served, recorder, told: Mutex::new(Instant::now()) })
    }

    /// Evaluates a task into `room`, until the task ends or `room` is full.
    ///
    /// # Errors
    /// [`ErrorKind::Worker`] for a stage that is not a border.
    pub(crate) fn evaluate(&self, task: &Task, room: &mut [u8]) -> Result<Evaluated> {
        let unknown = || nonsense(&format!("stage {} evaluates no such elements here", task.border.stage));
        let range = task.start..task.end;
        if let Some(from) = &task.lane {
            let lanes = self.served.find_lanes(task.border).ok_or_else(unknown)?;
            return lanes.read_on(task.id, range, from, room);
        }
        if let Some(fed) = &task.fed {
            return self.served.find_fed(task.border).ok_or_else(unknown)?.apply(range, fed, room);
        }
        let serve = self.find(task.border)?.ok_or_else(unknown)?;
        match &task.listed {
            Some(indices) => serve.evaluate_listed(indices, room),
            None => serve.evaluate(range, task.groups_from, room),
        }
    }

    /// Returns the evaluator of a border; opens the border's part if this is the first task on that part.
    fn find(&self, border: Border) -> Result<Option<Arc<dyn Serve>>> {
        if let (None, Some((index, count))) = (self.served.find(border), border.share) {
            // If two threads open the part, the second is dropped.
            (self.open_part)(&Part::of(index as usize, count as usize))?;
        }
        Ok(self.served.find(border))
    }

    /// Returns the counts since the last report, or `None` if the next report is not due.
    pub(crate) fn tally(&self) -> Option<Tally> {
        let recorder = self.recorder.as_ref()?;
        let mut told = self.told.locked();
        if told.elapsed() < TELL_EVERY {
            return None;
        }
        *told = Instant::now();
        drop(told);
        Some(recorder.drain())
    }

    /// Returns all counts since the last report.
    pub(crate) fn drain(&self) -> Tally {
        self.recorder.as_ref().map(|recorder| recorder.drain()).unwrap_or_default()
    }
}

/// Checks that the pipelines are equal: elements of another pipeline would be different.
fn check_same(theirs: &[String], ours: &[String]) -> Result<()> {
    let at = theirs.iter().zip(ours).position(|(a, b)| a != b).unwrap_or(theirs.len().min(ours.len()));
    if theirs == ours {
        return Ok(());
    }
    let line = |lines: &[String]| lines.get(at).map_or("not there", String::as_str).to_owned();
    Err(Error::config(format!(
        "the factory made a different pipeline in a worker: stage {at} is {}, but in the parent {}",
        line(ours),
        line(theirs)
    ))
    .help("it must depend only on its argument, not on the environment, the time or earlier calls"))
}

pub(super) fn nonsense(what: &str) -> Error {
    Error::new(ErrorKind::Worker, format!("the parent sent an invalid request: {what}"))
}
