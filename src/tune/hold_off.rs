//! Hold-off times: for how long nothing is tried that has brought nothing.

/// Seconds, the first time and at most.
const LENGTH: (u32, u32) = (20, 640);

/// A time that doubles with each one that follows another.
#[derive(Clone, Copy, Debug)]
pub(super) struct HoldOff {
    length: u32,
    left: u32,
}

impl Default for HoldOff {
    fn default() -> Self {
        Self { length: LENGTH.0, left: 0 }
    }
}

impl HoldOff {
    /// It begins.
    pub(super) fn begin(&mut self) {
        self.left = self.length;
        self.length = (2 * self.length).min(LENGTH.1);
    }

    /// A second passes.
    pub(super) fn pass(&mut self) {
        self.left = self.left.saturating_sub(1);
    }

    pub(super) fn is_over(&self) -> bool {
        self.left == 0
    }

    /// Whether none was needed yet.
    pub(super) fn is_first(&self) -> bool {
        self.length == LENGTH.0
    }
}
