//! A pool of threads whose number is tuned to the consumer's demand.

use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};

use super::demand::Demand;
use super::pool::Pool;
use crate::cx::{Recorder, clock};
use crate::error::{Error, ErrorKind, Result};
use crate::fork::Ours;
use crate::sync::Locked;
use crate::tune::{Bounds, Decision, MANY_THREADS, Setting, Totals, Tuner};

/// Maximum number of ranges that are in flight or ready. Their elements are in the memory of this process.
const MOST_WINDOW: usize = 4 * MANY_THREADS;
/// Interval between checks for idle threads.
const LOOK: Duration = Duration::from_millis(20);
/// Interval between tuning steps.
const TICK: Duration = Duration::from_secs(1);

/// Thread that tunes a pool until this handle is dropped. A fork has no such thread, and does not wait for it.
#[derive(Debug)]
pub(crate) struct Tuning(Ours<Running>);

#[derive(Debug)]
struct Running {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    decisions: Arc<Mutex<Vec<Decision>>>,
}

impl Tuning {
    /// Starts tuning `pool` to the consumer's `demand`. `recorder` is the recorder of the evaluators.
    pub(crate) fn start(pool: Arc<Pool>, demand: Arc<Demand>, recorder: Option<Arc<Recorder>>) -> Result<Self> {
        let (stop, stopped) = bounded(0);
        let decisions = Arc::<Mutex<Vec<Decision>>>::default();
        let told = decisions.clone();
        let thread = std::thread::Builder::new().name("gristmill-tuning".into());
        let thread = thread
            .spawn(move || tune(&pool, &demand, recorder.as_deref(), &stopped, &told))
            .map_err(|e| Error::new(ErrorKind::Io, format!("cannot start the thread that tunes the others: {e}")))?;
        Ok(Self(Ours::new(Running { stop: Some(stop), thread: Some(thread), decisions })))
    }

    /// Returns the decisions so far, with their reasons.
    pub(crate) fn decisions(&self) -> Vec<Decision> {
        let Some(Running { decisions, .. }) = self.0.get() else { return Vec::new() };
        decisions.locked().clone()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn tune(
    pool: &Pool,
    demand: &Demand,
    recorder: Option<&Recorder>,
    stopped: &Receiver<()>,
    told: &Mutex<Vec<Decision>>,
) {
    let threads = pool.threads();
    let bounds = Bounds { cores: threads, ..Bounds::of_threads(threads.max(MANY_THREADS), MOST_WINDOW) };
    let mut tuner = Tuner::new(Setting { threads, processes: 1, window: pool.window() }, bounds, TICK, Instant::now());
    while stopped.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
        let now = Instant::now();
        tuner.look(pool.is_idle(), now);
        if !tuner.is_due(pool.done().indices, now) {
            continue;
        }
        let done = pool.done();
        let (blocked, locked) = recorder.map(Recorder::blocked).unwrap_or_default();
        let (steps, longest) = demand.steps();
        let totals = Totals {
            busy: done.busy,
            locked,
            cpu: done.cpu,
            taken: clock::process_cpu(),
            indices: done.indices,
            blocked,
            waited: demand.waited(),
            steps,
        };
        if let Some(Setting { threads, window, .. }) = tuner.step(totals, longest, Instant::now()) {
            if let Err(error) = pool.set_threads(threads) {
                tracing::warn!(%error, "{threads} threads were requested, but {} are running", pool.threads());
            }
            pool.set_window(window);
        }
        told.locked().clone_from(&tuner.decisions);
    }
}
