//! Answers to the consumer, and their times.

use std::time::Instant;

/// An answer to the consumer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Given {
    /// The number of the first element in this run; and how many came with it.
    pub(crate) first: u64,
    pub(crate) count: usize,
    /// Places of the buffer that were filled when it was asked for, where there is a buffer.
    pub(crate) ready: Option<usize>,
    /// Time at which it was asked for, and given.
    pub(crate) asked: Instant,
    pub(crate) given: Instant,
    /// Time at which it was begun, and was there, where it was made ahead of the consumer.
    pub(crate) made: Option<(Instant, Instant)>,
}
