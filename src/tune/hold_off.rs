//! Hold-off times, during which a failed change is not tried again.

/// First and maximum length in seconds.
const LENGTH: (u32, u32) = (20, 640);

/// Hold-off time that doubles with each repetition.
#[derive(Clone, Copy, Debug)]
pub(super) struct HoldOff {
    length: u32,
    left: u32,
}

default_as!(HoldOff, Self { length: LENGTH.0, left: 0 });

impl HoldOff {
    /// Begins a hold-off and doubles the length of the next.
    pub(super) fn begin(&mut self) {
        self.left = self.length;
        self.length = (2 * self.length).min(LENGTH.1);
    }

    /// Counts down a second.
    pub(super) fn pass(&mut self) {
        self.left = self.left.saturating_sub(1);
    }

    pub(super) fn is_over(&self) -> bool {
        self.left == 0
    }

    /// Returns true if no hold-off has begun yet.
    pub(super) fn is_first(&self) -> bool {
        self.length == LENGTH.0
    }
}
