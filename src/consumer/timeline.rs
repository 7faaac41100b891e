//! Times of the steps of a training loop.

use std::time::Duration;

use serde::Serialize;

/// Times of a step of a training loop, relative to the start of the loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Time at which the loop requested the batch.
    pub asked: Duration,
    /// Time at which the loop received the batch.
    pub got: Duration,
    /// Earliest time at which a free device could begin the step; never before `got`.
    pub ready: Duration,
    /// Time at which the device finished the step.
    pub done: Duration,
    /// Samples in the batch; 0 if samples are not counted.
    pub samples: u64,
}

/// Steps of a training loop in order, with the loop's total time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Timeline {
    steps: Vec<Step>,
    wall: Duration,
}

impl Timeline {
    /// Returns the timeline of a loop that took `wall` in total.
    ///
    /// Times that are too early are corrected. A batch arrives no earlier than its request. A step is ready no earlier
    /// than its batch arrives, and ends no earlier than it is ready. The loop lasts at least until its last step ends.
    pub fn new(steps: impl IntoIterator<Item = Step>, wall: Duration) -> Self {
        let mut timeline = Self { steps: Vec::new(), wall };
        for step in steps {
            timeline.push(step);
        }
        timeline
    }

    fn push(&mut self, mut step: Step) {
        step.got = step.got.max(step.asked);
        step.ready = step.ready.max(step.got);
        step.done = step.done.max(step.ready);
        self.wall = self.wall.max(step.done);
        self.steps.push(step);
    }

    /// Returns all steps.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Returns the time from the start of the loop to its end.
    pub fn wall(&self) -> Duration {
        self.wall
    }

    /// Returns every step with the time at which the device finished all earlier steps.
    pub(super) fn with_free(&self) -> impl Iterator<Item = (Duration, &Step)> {
        let free = self.steps.iter().scan(Duration::ZERO, |free, step| {
            let before = *free;
            *free = before.max(step.done);
            Some(before)
        });
        free.zip(&self.steps)
    }
}

impl Step {
    /// Returns the time spent in `next`.
    pub fn load(&self) -> Duration {
        self.got.saturating_sub(self.asked)
    }

    /// Returns the time that the device computed, if it was free from `free` on.
    pub(super) fn compute(&self, free: Duration) -> Duration {
        self.done.saturating_sub(self.ready.max(free))
    }

    /// Returns the time that the device was idle before the step, if it was free from `free` on.
    pub(super) fn stall(&self, free: Duration) -> Duration {
        self.ready.saturating_sub(free)
    }

    /// Returns the total time of the step, from its request or from the end of earlier steps (`free`), if that is
    /// later.
    pub(super) fn process(&self, free: Duration) -> Duration {
        self.done.saturating_sub(self.asked.max(free))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_come_too_early_are_put_right() {
        let ms = Duration::from_millis;
        let step = Step { asked: ms(5), got: ms(4), ready: ms(3), done: ms(2), samples: 1 };
        let timeline = Timeline::new([step], ms(1));
        assert_eq!(timeline.steps(), [Step { asked: ms(5), got: ms(5), ready: ms(5), done: ms(5), samples: 1 }]);
        assert_eq!(timeline.wall(), ms(5));
    }
}
