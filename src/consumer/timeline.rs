//! Times of a training loop: what it did, and when.

use std::time::Duration;

use serde::Serialize;

/// One step of a training loop; all times are since the start of the loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Time at which the loop asked for the batch.
    pub asked: Duration,
    /// Time at which it had the batch.
    pub got: Duration,
    /// Time at which the device could begin with it, were it free; never before `got`.
    pub ready: Duration,
    /// Time at which the device was done with it.
    pub done: Duration,
    /// Samples in the batch; 0 where nobody counts.
    pub samples: u64,
}

/// The steps of a training loop in their order, and how long it ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Timeline {
    steps: Vec<Step>,
    wall: Duration,
}

impl Timeline {
    /// The steps of a loop that took `wall` in all.
    ///
    /// Times that come too early are put right: a batch arrives no earlier than it was asked for, a step becomes ready no
    /// earlier than its batch arrives and ends no earlier than that, and the loop lasts as long as its steps.
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

    /// All steps.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The time that the loop took, from its start to its end.
    pub fn wall(&self) -> Duration {
        self.wall
    }

    /// Every step with the time at which the device was done with those before it.
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
    /// Time in `next`.
    pub fn load(&self) -> Duration {
        self.got.saturating_sub(self.asked)
    }

    /// Time for which the device worked on it, if it was free from `free` on.
    pub(super) fn compute(&self, free: Duration) -> Duration {
        self.done.saturating_sub(self.ready.max(free))
    }

    /// Time for which a device that was free from `free` on stood still before it.
    pub(super) fn stall(&self, free: Duration) -> Duration {
        self.ready.saturating_sub(free)
    }

    /// Time that it took in all, behind those before it, which took until `free`.
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
