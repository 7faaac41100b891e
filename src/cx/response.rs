//! Responses to the consumer, with their times.

use std::time::Instant;

/// A response to the consumer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Response {
    /// Number of the first element in this run, and the number of elements.
    pub(crate) first: u64,
    pub(crate) count: usize,
    /// Filled places of the buffer at the time of the request. `None` if there is no buffer.
    pub(crate) ready: Option<usize>,
    /// Times of the request and of the delivery.
    pub(crate) asked: Instant,
    pub(crate) given: Instant,
    /// Times at which the batch was begun and ready. `None` unless it was made ahead of the consumer.
    pub(crate) made: Option<(Instant, Instant)>,
}
