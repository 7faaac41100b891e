//! What will be asked for next, so that what lies far away can be on its way by then.

use std::sync::Weak;

/// Indices that will be asked for, in about this order, unless whoever says so changes its mind: see
/// [`Stage::will_read`](super::Stage::will_read).
#[derive(Clone, Copy, Debug)]
pub struct Upcoming<'a> {
    indices: &'a [u64],
    wanted: &'a Weak<()>,
}

impl<'a> Upcoming<'a> {
    /// Indices that are asked for until `wanted` is dead.
    pub(crate) fn new(indices: &'a [u64], wanted: &'a Weak<()>) -> Self {
        Self { indices, wanted }
    }

    /// The indices.
    pub fn indices(&self) -> &'a [u64] {
        self.indices
    }

    /// The same, of the stage or source below, where these `indices` are asked for.
    #[must_use]
    pub fn at<'b>(&'b self, indices: &'b [u64]) -> Upcoming<'b> {
        Upcoming { indices, wanted: self.wanted }
    }

    /// Dead once nobody means to ask for them any more.
    #[cfg(feature = "store")]
    pub(crate) fn wanted(&self) -> &Weak<()> {
        self.wanted
    }
}
