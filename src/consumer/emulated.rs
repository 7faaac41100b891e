//! A stand-in for an accelerator, which takes its time and computes nothing.

use std::time::{Duration, Instant};

use super::{Consumer, Handle, Ran};
use crate::error::Result;

/// An accelerator that takes the same time for every batch, as MLPerf Storage emulates one: whoever waits for it sleeps.
///
/// Its steps follow each other on a clock of its own, so that several may be in flight. A batch is in its memory at once,
/// and let go of. A sleep that ends late makes its step longer, as it does there, and those in flight behind it shorter.
#[derive(Clone, Copy, Debug)]
pub struct Emulated {
    step_time: Duration,
    /// Time at which the last step that was submitted ends.
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
    /// With steps of `step_time` each.
    pub fn new(step_time: Duration) -> Self {
        Self { step_time, free_at: None }
    }

    /// A step that can begin at `ready_at`, behind those before it.
    pub(super) fn step(&mut self, ready_at: Instant) -> EmulatedStep {
        let ends_at = self.free_at.map_or(ready_at, |free_at| free_at.max(ready_at)) + self.step_time;
        self.free_at = Some(ends_at);
        EmulatedStep { ready_at, ends_at }
    }
}

impl EmulatedStep {
    /// Waits as [`Handle::wait`] does, and says when the step ended by the clock of the device, however late it is noticed:
    /// a real one that has several steps in flight goes on without whoever waits for it.
    #[cfg(feature = "pjrt")]
    pub(super) fn wait_for_device(self) -> Ran {
        // The step of the emulated device.
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
        // The step of the emulated device.
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
        // Waiting for the first may have taken until behind the end of the second, which then ended when it was to.
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
        // Two of the steps end before anybody waits for them.
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
