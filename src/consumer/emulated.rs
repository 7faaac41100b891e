//! An emulated accelerator that takes time for each step and computes nothing.

use std::time::{Duration, Instant};

use super::{Consumer, Handle, Ran};
use crate::error::Result;

/// An accelerator with a fixed step time, as MLPerf Storage emulates one; waiting for a step sleeps.
///
/// Steps follow each other on the device's clock, so several may be in flight. A batch is dropped when it is submitted.
/// If a sleep overruns, its step takes longer, as in MLPerf Storage, and the steps in flight after it take less time.
#[derive(Clone, Copy, Debug)]
pub struct Emulated {
    step_time: Duration,
    /// End of the last submitted step.
    free_at: Option<Instant>,
}

/// A step of an [`Emulated`] accelerator.
#[derive(Clone, Copy, Debug)]
#[must_use = "a step is not over before it has been waited for"]
pub struct EmulatedStep {
    ready_at: Instant,
    ends_at: Instant,
}

impl Emulated {
    /// Returns an emulated accelerator whose steps take `step_time` each.
    pub fn new(step_time: Duration) -> Self {
        Self { step_time, free_at: None }
    }

    /// Returns a step that begins no earlier than `ready_at` and follows the steps submitted before it.
    pub(super) fn step(&mut self, ready_at: Instant) -> EmulatedStep {
        let ends_at = self.free_at.map_or(ready_at, |free_at| free_at.max(ready_at)) + self.step_time;
        self.free_at = Some(ends_at);
        EmulatedStep { ready_at, ends_at }
    }
}

impl EmulatedStep {
    /// Waits as [`Handle::wait`] does, but reports the end of the step on the device's clock.
    ///
    /// A late wake-up does not move that end: a real device with several steps in flight does not pause for the host.
    pub(super) fn wait_for_device(self) -> Ran {
        // Emulates the device's work.
        std::thread::sleep(self.ends_at.saturating_duration_since(Instant::now()));
        Ran { ready_at: self.ready_at, done_at: self.ends_at }
    }
}

impl<B> Consumer<B> for Emulated {
    type Handle = EmulatedStep;

    fn submit(&mut self, batch: B) -> Result<EmulatedStep> {
        let step = self.step(Instant::now());
        drop(batch);
        Ok(step)
    }
}

impl Handle for EmulatedStep {
    fn wait(self) -> Result<Ran> {
        let left = self.ends_at.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(Ran { ready_at: self.ready_at, done_at: self.ends_at });
        }
        // Emulates the device's work.
        std::thread::sleep(left);
        Ok(Ran { ready_at: self.ready_at, done_at: Instant::now() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_millis(2);

    #[test]
    fn steps_follow_each_other_on_the_devices_clock() {
        let (mut device, now) = (Emulated::new(STEP), Instant::now());
        let (first, second) = (device.step(now), device.step(now));
        assert_eq!(second.ends_at - first.ends_at, STEP, "the second waits for the first");
        let (first, second) = (first.wait().unwrap(), second.wait().unwrap());
        assert!(first.done_at - first.ready_at >= STEP);
        // The first wait may last past the end of the second step, which still ends on schedule.
        assert!(second.done_at - first.ready_at >= 2 * STEP);
    }

    #[test]
    fn a_step_that_is_over_ended_when_it_did() {
        let mut device = Emulated::new(Duration::ZERO);
        let step = device.submit(()).unwrap();
        let ran = step.wait().unwrap();
        assert_eq!((ran.ready_at, ran.done_at), (step.ready_at, step.ready_at));
    }

    #[test]
    #[cfg(feature = "pjrt")]
    fn on_the_devices_clock_a_step_takes_its_time_however_late_it_is_noticed() {
        let (mut device, now) = (Emulated::new(STEP), Instant::now());
        let steps = [(); 3].map(|()| device.step(now));
        // Two of the steps end before the first wait.
        std::thread::sleep(2 * STEP);
        let done = steps.map(|step| step.wait_for_device().done_at);
        assert_eq!(done, [1, 2, 3].map(|i| now + i * STEP));
    }

    #[test]
    fn a_batch_is_let_go_of_when_it_is_submitted() {
        let batch = std::sync::Arc::new(());
        let step = Emulated::new(STEP).submit(batch.clone()).unwrap();
        assert_eq!(std::sync::Arc::strong_count(&batch), 1);
        step.wait().unwrap();
    }
}
