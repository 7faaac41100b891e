//! A clock for a training loop.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::{Handle, Ran, Step, Timeline};
use crate::error::Result;

/// Records when a training loop requests and receives batches, and when steps begin and end.
///
/// The recorder reads the clock four times per step.
#[derive(Debug)]
pub struct Recorder<H> {
    start: Instant,
    in_flight: usize,
    /// Time at which the last batch was requested; `got` is the time at which it was received.
    asked: Duration,
    got: Duration,
    pub(crate) steps: Vec<Step>,
    /// Steps not yet waited for. Their times in `steps` end with `got`.
    pending: VecDeque<H>,
}

impl<H: Handle> Recorder<H> {
    /// Starts the clock of a loop that leaves the last `in_flight` steps running while it fetches the next batch.
    pub fn new(in_flight: usize) -> Self {
        let zero = Duration::ZERO;
        Self { start: Instant::now(), in_flight, asked: zero, got: zero, steps: Vec::new(), pending: VecDeque::new() }
    }

    /// Calls `next`, which fetches a batch, and records the duration of the call.
    pub fn next<T>(&mut self, next: impl FnOnce() -> T) -> T {
        self.asked = self.start.elapsed();
        let batch = next();
        self.got = self.start.elapsed();
        batch
    }

    /// Records a step of `samples` samples on the last batch. Waits for the end of all steps but the last `in_flight`.
    ///
    /// # Errors
    /// Errors that the device reports for the steps waited for.
    pub fn submitted(&mut self, samples: u64, handle: H) -> Result<()> {
        let Self { asked, got, .. } = *self;
        self.steps.push(Step { asked, got, ready: got, done: got, samples });
        self.pending.push_back(handle);
        self.wait(self.in_flight)
    }

    /// Returns the number of submitted steps.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Returns true if no step was submitted.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Waits for all steps and stops the clock.
    ///
    /// # Errors
    /// The errors of [`submitted`](Self::submitted).
    pub fn finish(mut self) -> Result<Timeline> {
        self.wait(0)?;
        Ok(Timeline::new(self.steps, self.start.elapsed()))
    }

    /// Waits until at most `left` steps are under way.
    fn wait(&mut self, left: usize) -> Result<()> {
        while self.pending.len() > left
            && let Some(handle) = self.pending.pop_front()
        {
            let at = self.steps.len() - self.pending.len() - 1;
            let Ran { ready_at, done_at } = handle.wait()?;
            let step = &mut self.steps[at];
            step.ready = ready_at.saturating_duration_since(self.start);
            step.done = done_at.saturating_duration_since(self.start);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;
    use crate::Error;
    use crate::consumer::{Consumer, feed};

    /// Logs every call; the step on batch `fails_at` fails.
    struct Noting {
        log: Rc<RefCell<Vec<String>>>,
        fails_at: Option<u32>,
    }

    struct Noted(Rc<RefCell<Vec<String>>>, u32, bool);

    impl Consumer<u32> for Noting {
        type Handle = Noted;

        fn submit(&mut self, batch: u32) -> Result<Noted> {
            self.log.borrow_mut().push(format!("submit {batch}"));
            Ok(Noted(self.log.clone(), batch, self.fails_at == Some(batch)))
        }
    }

    impl Handle for Noted {
        fn wait(self) -> Result<Ran> {
            self.0.borrow_mut().push(format!("wait {}", self.1));
            let now = Instant::now();
            if self.2 { Err(Error::data("lost")) } else { Ok(Ran { ready_at: now, done_at: now }) }
        }
    }

    fn run(in_flight: usize, fails_at: Option<u32>) -> (Result<Timeline>, String) {
        let log = Rc::new(RefCell::new(Vec::new()));
        let mut consumer = Noting { log: log.clone(), fails_at };
        let timeline = feed((0..3).map(Ok), &mut consumer, in_flight, |&batch| batch.into());
        (timeline, log.take().join(", "))
    }

    #[test]
    fn so_many_steps_are_in_flight_and_all_are_waited_for() {
        let (timeline, log) = run(0, None);
        assert_eq!(log, "submit 0, wait 0, submit 1, wait 1, submit 2, wait 2");
        let timeline = timeline.unwrap();
        assert_eq!(timeline.steps().iter().map(|step| step.samples).collect::<Vec<_>>(), [0, 1, 2]);
        assert!(timeline.steps().iter().all(|step| step.asked <= step.got && step.got <= step.ready));
        assert!(timeline.steps().is_sorted_by(|a, b| a.done <= b.asked));
        assert_eq!(run(1, None).1, "submit 0, submit 1, wait 0, submit 2, wait 1, wait 2");
        assert_eq!(run(9, None).1, "submit 0, submit 1, submit 2, wait 0, wait 1, wait 2");
    }

    #[test]
    fn the_first_error_ends_it() {
        let (timeline, log) = run(1, Some(0));
        assert_eq!((timeline.unwrap_err().message(), log.as_str()), ("lost", "submit 0, submit 1, wait 0"));
        let batches = [Ok(1), Err(Error::data("bad"))];
        let mut consumer = Noting { log: Rc::default(), fails_at: None };
        assert_eq!(feed(batches, &mut consumer, 0, |_| 0).unwrap_err().message(), "bad");
    }
}
